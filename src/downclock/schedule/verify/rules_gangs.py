"""Rules for gangs: all processors together, on one server or on whole ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from downclock.schedule.schedule import DOWN
from downclock.schedule.verify.parsed_schedule import ParsedSchedule
from downclock.schedule.verify.rules_processors import other_point
from downclock.schedule.verify.verdict import Finding
from downclock.units import Ints, slack


def together(parsed: ParsedSchedule) -> Iterator[Finding]:
    """A gang starts together on as many different processors as it needs, all alike."""
    runs, rows = parsed.runs, parsed.runs.rows
    size, distinct = np.diff(runs.bundle), runs.distinct()
    needed = parsed.problem.tasks.processors[rows.task[runs.first]]
    first = np.repeat(runs.first, size)
    in_gang = np.repeat(needed > 1, size)
    wrong = (needed > 1) & parsed.clear[rows.task[runs.first]]
    wrong &= (size != needed) | (distinct != needed)
    yield parsed.bad_rows(
        "gang-size",
        wrong,
        lambda b: f"starts on {distinct[b]} processors ({size[b]} rows), but needs {needed[b]}",
        runs.first,
    )
    unequal = np.abs(rows.end_s - rows.end_s[first]) > slack(rows.end_s)
    unequal |= np.abs(rows.share - rows.share[first]) > slack(1.0)
    unequal |= other_point(rows, np.arange(len(rows)), first)
    text = "differs in end, point or share from the rest of its gang"
    yield parsed.bad_rows("gang-unequal", in_gang & unequal, text)
    mixed = in_gang & (runs.kind != runs.kind[first])
    yield parsed.bad_rows("gang-kinds", mixed, "runs a gang on two kinds of processor")


def servers(parsed: ParsedSchedule) -> Iterator[Finding]:
    """A gang is on one server where one holds it, else on whole ones but for the last.

    Not where something failed: a schedule does not say which processors were down, and when.
    """
    runs, rows = parsed.runs, parsed.runs.rows
    failed = np.any(rows.attempt > 0) or np.any(parsed.spans.state == DOWN)
    bundle, cell, used = _held(parsed)
    several = np.bincount(bundle, minlength=runs.first.size) > 1
    partly = several[bundle] & (used < _sizes(parsed)[cell])
    needed, most = parsed.problem.tasks.processors[rows.task[runs.first]], _largest(parsed)
    fits = several & (needed <= most[runs.kind[runs.first]])
    parts = np.bincount(bundle[partly], minlength=runs.first.size)

    def say(b: int) -> str:
        if fits[b]:
            return f"is spread over servers, but one holds its {needed[b]} processors"
        return f"is on parts of {parts[b]} servers; of all but one it has to use every processor"

    wrong = (fits | (parts > 1)) & (not failed)
    yield parsed.bad_rows("gang-spread", wrong, say, runs.first)


def _sizes(parsed: ParsedSchedule) -> Ints:
    """Processors of each kind on each server: a cell for each kind of each server."""
    platform = parsed.problem.platform
    cell = platform.server * len(platform.kinds) + platform.kind
    return np.bincount(cell, minlength=platform.server_count * len(platform.kinds))


def _largest(parsed: ParsedSchedule) -> Ints:
    """Most processors of each kind on one server, of those without downtimes (kinds,)."""
    platform = parsed.problem.platform
    works = np.ones(platform.server_count, dtype=bool)
    works[platform.limits.server] = False
    sizes = _sizes(parsed).reshape(platform.server_count, -1)
    return np.asarray(sizes[works].max(axis=0, initial=0))


def _held(parsed: ParsedSchedule) -> tuple[Ints, Ints, Ints]:
    """Bundles of gangs, the cells that they run in, and how many processors there; (k,) each.

    The kind is that of the first row: that it is one is another rule.
    """
    runs, rows = parsed.runs, parsed.runs.rows
    bundle = np.repeat(np.arange(runs.first.size), np.diff(runs.bundle))
    mine = np.flatnonzero(parsed.problem.tasks.processors[rows.task] > 1)
    platform, cells = parsed.problem.platform, _sizes(parsed).size
    cell = platform.server[rows.processor[mine]] * len(platform.kinds)
    key = bundle[mine] * cells + cell + runs.kind[runs.first[bundle[mine]]]
    pair, used = np.unique(key, return_counts=True)
    return pair // cells, pair % cells, used
