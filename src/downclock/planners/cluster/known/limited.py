"""What caps on power and downtimes take from a linear program over bins or moments of time."""

from __future__ import annotations

import numpy as np

from downclock.planners.cluster.known.kernels.model import Question
from downclock.planners.cluster.known.program import Program
from downclock.planners.cluster.known.question import KnownQuestion, lead_of, sizes_of
from downclock.units import Bools, Floats, Ints


def open_s(question: Question, edge_s: Floats) -> Floats:
    """Seconds that the servers of each group together can be awake between edges (g, h)."""
    counts = (question.groups.end - question.groups.first).astype(float)
    room_s = counts[:, None] * np.diff(edge_s)
    for group, from_s, to_s in _downtimes(question):
        both_s = np.minimum(edge_s[1:], to_s) - np.maximum(edge_s[:-1], from_s)
        room_s[group] -= np.maximum(both_s, 0.0)
    return np.asarray(np.maximum(room_s, 0.0))


def is_down_at(question: Question, at_s: Floats) -> Bools:
    """Tell of each group whether it is down at times (g, h); the ends of a downtime are not."""
    down = np.zeros((question.groups.size, at_s.size), np.bool_)
    for group, from_s, to_s in _downtimes(question):
        down[group] |= (at_s > from_s) & (at_s < to_s)
    return down


def between_downtimes(
    question: Question, group: Ints, from_s: Floats, to_s: Floats, piece_s: Floats
) -> tuple[Floats, Floats]:
    """Windows (p,) on groups of servers, less what no downtime leaves of them at their ends.

    A run needs ``piece_s`` (p,) without an interruption: a window begins where the first such piece
    can, and ends where the last one does.
    """
    from_s, to_s, piece_s = from_s.copy(), to_s.copy(), piece_s * (1.0 - 1e-9)
    downtimes = list(_downtimes(question))
    for g, down_s, up_s in downtimes:
        meets = (group == g) & (from_s + piece_s > down_s) & (from_s < up_s)
        from_s[meets] = up_s
    for g, down_s, up_s in reversed(downtimes):
        meets = (group == g) & (to_s - piece_s < up_s) & (to_s > down_s)
        to_s[meets] = down_s
    return from_s, to_s


def _downtimes(question: Question) -> list[tuple[int, float, float]]:
    """Group, and from when to when its one server can run nothing: by group and time.

    Where the next downtime begins before it is awake again, they are one.
    """
    found: list[tuple[int, float, float]] = []
    for group, lead in enumerate(lead_of(question)):
        for from_s, to_s in question.down[lead.down_first : lead.down_end].tolist():
            if found and found[-1][0] == group and from_s <= found[-1][2]:
                found[-1] = (group, found[-1][1], max(to_s, found[-1][2]))
            else:
                found.append((group, from_s, to_s))
    return found


def draws_too_much(asked: KnownQuestion, job: Ints, group: Ints, kind: Ints) -> Bools:
    """Tell of jobs on groups and kinds (p,) whether they draw more than a cap at their slowest.

    Where a gang needs several servers that is known if none with its kind is outside the cap.
    """
    question = asked.columns
    lead, gang = lead_of(question), question.jobs.gang[job]
    fits = gang <= question.kinds.largest[kind]
    servers = -(-gang // question.kinds.largest[kind])
    run_w = asked.least_w[question.curve[job, kind]]
    run_w = gang * np.maximum(run_w + lead.shared_w[group] - question.kinds.idle_w[kind], 0.0)
    over = np.zeros(job.size, np.bool_)
    has = sizes_of(question) > 0
    for spare_w, held, asleep_w in _caps(question):
        more_w = lead.up_w - asleep_w
        least_w = np.where(has, more_w[:, None], np.inf).min(axis=0)
        inside = ~np.any(has & ~held[:, None], axis=0)
        awake_w = np.where(fits, more_w[group], servers * least_w[kind])
        known = held[group] & (fits | inside[kind])
        over |= known & (awake_w + run_w > spare_w * (1.0 + 1e-9))
    return over


def _caps(question: Question) -> list[tuple[float, Bools, Floats]]:
    """Of each cap: its watts less what sleeps, groups it holds for, and what they draw asleep."""
    lead = lead_of(question)
    waking_w = lead.wake_j / np.where(lead.wake_s > 0.0, lead.wake_s, 1.0)
    asleep_w = np.where(lead.wake_s > 0.0, np.minimum(lead.sleep_w, waking_w), lead.sleep_w)
    counts = question.groups.end - question.groups.first
    found = []
    for cap, servers in zip(question.caps, question.capped, strict=True):
        held = servers[question.alike[question.groups.first]]
        less_w = float((counts * (lead.sleep_w - asleep_w))[held].sum())
        found.append((float(cap.cap_w) + less_w, held, asleep_w))
    return found


def add_caps(
    program: Program,
    question: Question,
    awake: tuple[Ints, Floats, float],
    shares: tuple[Ints, Ints, Ints, Floats],
) -> None:
    """On average over a bin no cap is passed.

    Args:
        program: it grows by a row for each cap and bin.
        question: with its caps.
        awake: columns of what is awake (g, h), length of each bin, and the seconds one stands for.
        shares: columns of work (s,), their groups, bins and joules more than idle.
    """
    lead, (columns, length_s, unit_s) = lead_of(question), awake
    share, group, at, joules = shares
    closed = np.flatnonzero(np.isfinite(length_s))
    for spare_w, held, asleep_w in _caps(question):
        row = np.full(length_s.size, -1)
        row[closed] = program.rows(closed.size, -spare_w * length_s[closed])
        for g in np.flatnonzero(held):
            more_w = float(lead.up_w[g] - asleep_w[g])
            program.put(row[closed], columns[g, closed], -more_w * unit_s)
        mine = np.flatnonzero(held[group] & (row[at] >= 0))
        program.put(row[at[mine]], share[mine], -joules[mine])
