"""The independent judge: is this schedule an answer to this problem?

`verify` knows the model (DESIGN: processors, chips, servers, attempts, gangs, interrupts, clocks,
graph, slots, limits of the site) and nothing of how schedules are made. Each rule is a short
function in a ``rules_*`` module; its slug is in `Violation.rule`. Times are compared with
`units.slack`. Pending tasks are accepted: a schedule may be partial. Gangs of a trace as it ran are
where its cluster put them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from downclock.columns import joined, taken
from downclock.errors import InvalidSchedule, require_type
from downclock.problem.problem import Problem
from downclock.schedule.schedule import AS_IT_RAN, DONE, FAILED, PENDING, Outcomes, Schedule
from downclock.schedule.verify import (
    rules_gangs,
    rules_graph,
    rules_interrupts,
    rules_limits,
    rules_processors,
    rules_servers,
    rules_tables,
    rules_tasks,
)
from downclock.schedule.verify.parsed_schedule import ParsedSchedule, parse_schedule
from downclock.schedule.verify.verdict import Finding, Verdict, Violation
from downclock.units import Bools, Ints

__all__ = ["Verdict", "Violation", "require_valid", "verify"]

RULES: tuple[Callable[[ParsedSchedule], Iterator[Finding]], ...] = (
    rules_tasks.arrival,
    rules_tasks.deadline,
    rules_tasks.ran_or_not,
    rules_tasks.point,
    rules_tasks.share,
    rules_tasks.work,
    rules_tasks.attempts,
    rules_processors.overlap,
    rules_processors.two_places,
    rules_gangs.together,
    rules_gangs.servers,
    rules_processors.chip_clock,
    rules_processors.slots,
    rules_interrupts.interrupts,
    rules_graph.precedence,
    rules_servers.span_overlap,
    rules_servers.awake_while_running,
    rules_servers.waking,
    rules_limits.down,
    rules_limits.power_cap,
)
"""Rules over well-formed rows; `rules_tables` has those for single rows."""


def verify(
    problem: Problem, schedule: Schedule, *, most: int | None = 1000, realised: bool = False
) -> Verdict:
    """List every broken rule; of each rule at most ``most`` violations, the rest is counted.

    Where a schedule was ``realised`` amid failures, gangs are where processors were left.
    Cost: a few sorts of the segments; a million take seconds.
    """
    require_type(problem, Problem, "a Problem", field="problem")
    require_type(schedule, Schedule, "a Schedule", field="schedule")
    checked = len(problem.tasks) + len(schedule.segments) + len(schedule.spans)
    found = list(rules_tables.ragged(schedule))
    if not found:
        found = list(_findings(problem, schedule, realised or schedule.policy == AS_IT_RAN))
    broken = [finding for finding in found if finding.rows.size]
    violations = tuple(v for finding in broken for v in finding.violations(most))
    return Verdict(violations, tuple((f.rule, f.rows.size) for f in broken), checked)


def require_valid(problem: Problem, schedule: Schedule, *, realised: bool = False) -> Verdict:
    """Return the verdict where the schedule is valid.

    Raises:
        InvalidSchedule: it is not; the text lists the first violations.
    """
    verdict = verify(problem, schedule, most=20, realised=realised)
    if not verdict.ok:
        raise InvalidSchedule(str(verdict))
    return verdict


def _findings(problem: Problem, schedule: Schedule, realised: bool = False) -> Iterator[Finding]:
    """Judge single rows, then everything else over the rows that are well formed."""
    segments, spans = schedule.segments, schedule.spans
    of_segments = list(rules_tables.segment_rows(problem, segments))
    of_spans = list(rules_tables.span_rows(problem, spans))
    yield from (*of_segments, *of_spans)
    yield from rules_tables.outcome_rows(problem, schedule.outcomes)
    outcomes, missing = _one_per_task(problem, schedule.outcomes)
    bad_segment, bad_span = _marked(of_segments, len(segments)), _marked(of_spans, len(spans))
    hurt = missing | _named(segments.task[bad_segment], len(problem.tasks))
    server_hurt = _named(spans.server[bad_span], problem.platform.server_count)
    good = taken(segments, ~bad_segment), taken(spans, ~bad_span), outcomes
    parsed = parse_schedule(problem, *good, hurt, server_hurt)
    reached = (parsed.status == DONE) | (parsed.status == FAILED)  # a late one has failed
    finish_s = rules_graph.milestone_times(problem, parsed.finish_s, reached)
    parsed = replace(parsed, finish_s=finish_s)
    for rule in RULES:
        if not (realised and rule is rules_gangs.servers):
            yield from rule(parsed)


def _one_per_task(problem: Problem, outcomes: Outcomes) -> tuple[Outcomes, Bools]:
    """Cut or fill outcomes to a row per task; filled rows are marked (n,)."""
    n, given = len(problem.tasks), min(len(problem.tasks), len(outcomes))
    left = n - given
    blank = Outcomes(np.full(left, PENDING), np.full(left, "", dtype=object), np.ones(left))
    return joined([taken(outcomes, slice(given)), blank]), np.arange(n) >= given


def _marked(findings: Iterable[Finding], n: int) -> Bools:
    marked = np.zeros(n, dtype=bool)
    for finding in findings:
        marked[finding.rows] = True
    return marked


def _named(indices: Ints, n: int) -> Bools:
    """Mark the indices that exist (n,)."""
    named = np.zeros(n, dtype=bool)
    named[indices[(indices >= 0) & (indices < n)]] = True
    return named
