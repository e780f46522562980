"""The judge of schedules: silent on valid ones, one complaint for each planted fault."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from downclock.columns import taken
from downclock.errors import InvalidSchedule
from downclock.power.library import Library
from downclock.power.points import ClockRange
from downclock.power.profiles import CpuProfiles
from downclock.problem.graph import Edges
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.schedule import (
    DOWN,
    ON,
    PENDING,
    WAKING,
    Outcomes,
    PowerSpans,
    Schedule,
    Segments,
)
from downclock.schedule.verify import rules_tables
from downclock.schedule.verify import verify as verify_module
from downclock.schedule.verify.verify import Verdict, require_valid, verify
from tests.generated import random_problem, random_schedule
from tests.schedule.faults import FAULTS, Entry, Planted

CASES = 3
"""Schedules each fault is planted in."""

TRIES = 400


@cache
def planted(name: str) -> list[Planted]:
    """The first few generated schedules that have room for a fault."""
    entry = next(entry for entry in FAULTS if entry.name == name)
    found: list[Planted] = []
    for seed in range(TRIES):
        problem = random_problem(seed, **entry.knobs)
        case = entry.plant(problem, random_schedule(problem, seed))
        found += [] if case is None else [case]
        if len(found) == CASES:
            break
    return found


@pytest.mark.parametrize("block", range(6))
def test_valid_schedules_have_nothing_wrong(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        problem = random_problem(seed)
        verdict = verify(problem, random_schedule(problem, seed))
        assert verdict.ok, f"seed {seed}: {verdict}"


@pytest.mark.parametrize("entry", FAULTS, ids=lambda entry: entry.name)
def test_each_planted_fault_is_found_and_nothing_else(entry: Entry) -> None:
    cases = planted(entry.name)
    assert len(cases) == CASES
    for case in cases:
        verdict = verify(case.problem, case.schedule)
        assert verdict.rules == {entry.rule} | entry.also, str(verdict)


@pytest.mark.parametrize("entry", FAULTS, ids=lambda entry: entry.name)
def test_the_complaint_names_who_is_at_fault(entry: Entry) -> None:
    case = planted(entry.name)[0]
    verdict = verify(case.problem, case.schedule)
    about = [violation for violation in verdict.violations if violation.rule == entry.rule]
    for field in ("task", "processor", "server"):
        wanted = getattr(case, field)
        stated = {getattr(violation, field) for violation in about}
        about_tasks_only = field != "task" and stated == {None}
        assert wanted is None or wanted in stated or about_tasks_only, str(verdict)
    if case.task is not None:
        assert any(f"'{case.problem.tasks.name[case.task]}'" in v.message for v in about)
    elif case.server is not None:
        assert any(case.problem.platform.server_name[case.server] in v.message for v in about)


TABLE_RULES = {
    *("ragged", "unknown-task", "unknown-processor", "not-finite", "negative-start", "backwards"),
    *("unknown-server", "unknown-state", "span-not-finite", "span-negative", "span-backwards"),
    *("outcome-rows", "unknown-status", "outcome-work", "no-reason"),
}
MODEL_RULES = {
    *("arrival", "deadline", "rejected-ran", "zero-work", "not-run", "no-profile", "point"),
    *("unmeasured", "share", "work", "excess-work", "attempt-number", "attempt-order"),
    *("overlap", "two-places", "gang-size", "gang-unequal", "gang-kinds", "chip-clock", "slot"),
    "gang-spread",
    *("interrupted", "moved", "held", "clock-locked", "precedence", "orphan"),
    *("span-overlap", "asleep", "waking", "down", "wake-missing", "wake-length", "wake-lost"),
}


def test_there_are_faults_for_every_rule() -> None:
    assert {entry.rule for entry in FAULTS} == TABLE_RULES | MODEL_RULES


def test_the_list_of_rules_is_the_one_in_the_code() -> None:
    """Every rule that yields a finding, empty or not, is in the list above."""
    problem = random_problem(7, slot_s=2.0)
    schedule = random_schedule(problem, 7)
    findings = list(verify_module._findings(problem, schedule))
    assert {finding.rule for finding in findings} == (TABLE_RULES | MODEL_RULES) - {
        "ragged",
        "outcome-rows",
    }
    assert list(rules_tables.ragged(schedule)) == []


# --- small stories -----------------------------------------------------------------------------


def plain_problem(n: int = 2, **server: object) -> Problem:
    """``n`` tasks of 10 s at clock 1 on one server of two cores, both done by 100 s."""
    kind = Kind("core", ClockRange(0.5, 2.0), idle_w=1.0)
    platform = Platform.build((kind,), (ServerSpec("s", (("core", 2),), **server),))  # type: ignore[arg-type]
    profiles = CpuProfiles(np.array([10.0]), np.array([1.0]), np.array([3.0]), np.array([0.0]))
    library = Library.of_one_kind(np.array(["app"], dtype=object), "core", profiles)
    tasks = Tasks.of(np.zeros(n, dtype=np.int64), deadline_s=np.full(n, 100.0))
    return Problem(tasks, library, platform)


def plain_schedule(
    start_s: list[float], processor: list[int], *spans: tuple[int, float, float]
) -> Schedule:
    """Tasks 0, 1, ... at clock 1 for 10 s each, and spans (state, start, end) of server 0."""
    n = len(start_s)
    start = np.array(start_s)
    rows = np.array(spans).reshape(-1, 3)
    return Schedule(
        Segments.of(np.arange(n), np.array(processor), start, start + 10.0, np.ones((n, 3))),
        PowerSpans(np.zeros(len(rows)), rows[:, 0], rows[:, 1], rows[:, 2]),
        Outcomes.all_done(n),
    )


def test_the_sentence_names_tasks_processor_and_times() -> None:
    problem = plain_problem(initially_on=True)
    verdict = verify(problem, plain_schedule([0.0, 4.0], [1, 1]))
    (violation,) = verdict.violations
    assert str(violation) == (
        "overlap: task 't1' on s/2, 4 s to 14 s, overlaps task 't0', which runs there until 10 s"
    )
    assert (violation.task, violation.processor, violation.server) == (1, 1, 0)


def test_every_overlapping_segment_is_listed_not_only_neighbours() -> None:
    problem = plain_problem(3, initially_on=True)
    schedule = plain_schedule([0.0, 1.0, 5.0], [0, 0, 0])
    short = replace(schedule.segments, end_s=np.array([10.0, 2.0, 15.0]))
    verdict = verify(problem, replace(schedule, segments=short))
    assert [v.task for v in verdict.violations if v.rule == "overlap"] == [1, 2]


def test_touching_segments_and_rounding_are_no_overlap() -> None:
    problem = plain_problem(initially_on=True)
    assert verify(problem, plain_schedule([0.0, 10.0], [0, 0])).ok
    assert verify(problem, plain_schedule([0.0, 10.0 - 1e-9], [0, 0])).ok
    assert not verify(problem, plain_schedule([0.0, 10.0 - 1e-6], [0, 0])).ok


def test_a_server_that_begins_on_is_on_until_its_first_span_only() -> None:
    problem = plain_problem(initially_on=True)
    assert verify(problem, plain_schedule([0.0, 20.0], [0, 0])).ok
    late = plain_schedule([0.0, 20.0], [0, 0], (ON, 12.0, 15.0))
    assert [(v.rule, v.task) for v in verify(problem, late).violations] == [("asleep", 1)]
    whole = plain_schedule([0.0, 20.0], [0, 0], (ON, 12.0, np.inf))
    assert verify(problem, whole).ok


def test_a_server_that_begins_asleep_must_wake_for_its_wake_time() -> None:
    problem = plain_problem(wake_s=3.0, wake_j=1.0)
    good = plain_schedule([3.0, 3.0], [0, 1], (WAKING, 0.0, 3.0), (ON, 3.0, 13.0))
    assert verify(problem, good).ok
    at_once = plain_schedule([0.0, 0.0], [0, 1], (ON, 0.0, 13.0))
    assert verify(problem, at_once).rules == {"wake-missing"}
    again = plain_schedule(
        [3.0, 20.0], [0, 1], (WAKING, 0.0, 3.0), (ON, 3.0, 13.0), (ON, 14.0, 30.0)
    )
    assert verify(problem, again).rules == {"wake-missing"}


def test_a_wake_too_short_for_the_clock_has_no_span() -> None:
    """50 s + 1e-300 s is 50 s: such a span would have no length."""
    problem = plain_problem(wake_s=1e-300, wake_j=1e-300)
    assert verify(problem, plain_schedule([50.0, 50.0], [0, 1], (ON, 50.0, 63.0))).ok


def test_a_crash_may_cut_a_wake_short() -> None:
    problem = plain_problem(wake_s=3.0)
    spans = [(WAKING, 0.0, 1.0), (DOWN, 1.0, 5.0), (WAKING, 5.0, 8.0), (ON, 8.0, 18.0)]
    assert verify(problem, plain_schedule([8.0, 8.0], [0, 1], *spans)).ok


def test_a_partial_schedule_is_accepted() -> None:
    problem = plain_problem(initially_on=True)
    schedule = plain_schedule([0.0, 0.0], [0, 1])
    status = np.array([0, PENDING])
    started = replace(schedule.segments, end_s=np.array([10.0, 5.0]), share=np.array([1.0, 0.5]))
    partial = Schedule(started, schedule.spans, replace(schedule.outcomes, status=status))
    assert verify(problem, partial).ok


def test_work_that_turned_out_shorter_takes_less_time() -> None:
    problem = plain_problem(1, initially_on=True)
    schedule = plain_schedule([0.0], [0])
    early = replace(schedule, segments=replace(schedule.segments, end_s=np.array([6.0])))
    assert verify(problem, early).rules == {"share"}
    outcomes = replace(schedule.outcomes, work=np.array([0.6]))
    assert verify(problem, replace(early, outcomes=outcomes)).ok


def test_a_successor_may_start_the_moment_its_predecessor_ends() -> None:
    problem = replace(plain_problem(initially_on=True), edges=Edges(np.array([0]), np.array([1])))
    assert verify(problem, plain_schedule([0.0, 10.0], [0, 1])).ok
    (violation,) = verify(problem, plain_schedule([0.0, 9.0], [0, 1])).violations
    assert violation.message == "task 't1' starts at 9 s, before task 't0' is done at 10 s"


def test_an_empty_schedule_of_pending_tasks_is_valid() -> None:
    problem = plain_problem()
    none = np.empty(0)
    nothing = Schedule(
        Segments.of(none, none, none, none, np.empty((0, 3))),
        PowerSpans(none, none, none, none),
        Outcomes(np.full(2, PENDING), np.full(2, "", dtype=object), np.ones(2)),
    )
    assert verify(problem, nothing).ok


def crowded(n: int) -> tuple[Problem, Schedule]:
    """n tasks at once on one core: n - 1 overlaps."""
    return plain_problem(n, initially_on=True), plain_schedule([0.0] * n, [0] * n)


def test_long_lists_are_cut_but_counted() -> None:
    verdict = verify(*crowded(50), most=10)
    assert len(verdict.violations) == 10
    assert (verdict.counts, verdict.total, verdict.checked) == ((("overlap", 49),), 49, 100)
    assert str(verdict).startswith("invalid: 49 violations in 100 rows (overlap 49)\n  overlap: ")
    assert str(verdict).endswith("and 39 more")
    assert len(verify(*crowded(50), most=None).violations) == 49
    assert not verify(*crowded(50), most=0).ok


def test_a_verdict_reads_well_and_escapes_names() -> None:
    problem, schedule = crowded(2)
    assert "valid: 4 rows checked" in str(verify(problem, plain_schedule([0.0, 0.0], [0, 1])))
    names = np.array(["<b>", "t1"], dtype=object)
    shown = replace(problem, tasks=replace(problem.tasks, name=names))
    page = verify(shown, schedule)._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert isinstance(verify(shown, schedule), Verdict)


def test_require_valid_raises_with_the_violations() -> None:
    require_valid(plain_problem(initially_on=True), plain_schedule([0.0, 0.0], [0, 1]))
    with pytest.raises(InvalidSchedule, match="overlap: task 't1' on s/1, 0 s to 10 s"):
        require_valid(*crowded(2))


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_means_nothing(seed: int) -> None:
    problem = random_problem(seed)
    schedule = random_schedule(problem, seed)
    late = replace(schedule.segments, end_s=schedule.segments.end_s + 1.0)
    order = np.random.default_rng(seed).permutation(len(late))
    assert verify(problem, replace(schedule, segments=taken(schedule.segments, order))).ok
    one = verify(problem, replace(schedule, segments=taken(late, order)))
    other = verify(problem, replace(schedule, segments=late))
    assert one.counts == other.counts
    assert not one.ok
