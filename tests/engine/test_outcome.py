"""What came of a run as a schedule: spans of switches, and how every task ended."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import downclock as dc
from downclock.engine.decisions import no_segments
from downclock.engine.outcome import (
    NOT_WANTED,
    OFF,
    REPAIRED,
    TURNED_ON,
    WENT_DOWN,
    Ended,
    schedule_of,
    spans_of,
    switches_of,
)
from downclock.schedule.schedule import (
    DONE,
    DOWN,
    FAILED,
    ON,
    PENDING,
    REJECTED,
    WAKING,
    Schedule,
    Segments,
)

LIBRARY = dc.built_in_library("a100")


def platform(wake_s: float = 30.0, *, awake: bool = False) -> dc.Platform:
    """Two servers of one GPU."""
    gpu = dc.Kind.of(LIBRARY, "a100")
    server = dc.ServerSpec("s", (("a100", 1),), 2, wake_s=wake_s, initially_on=awake)
    return dc.Platform.build([gpu], [server])


def spans(site: dc.Platform, *switched: tuple[int, int, float]) -> list[tuple[float, ...]]:
    """Spans of some switches as (server, state, start, end), by server and start."""
    found = spans_of(site, np.array(switched, dtype=np.float64).reshape(-1, 3))
    return sorted(zip(found.server, found.start_s, found.end_s, found.state, strict=True))


def test_a_wake_is_a_span_of_waking_and_one_of_being_on() -> None:
    assert spans(platform(), (0, TURNED_ON, 100.0), (0, OFF, 500.0)) == [
        (0, 100.0, 130.0, WAKING),
        (0, 130.0, 500.0, ON),
    ]


def test_a_server_that_wakes_at_once_has_no_span_of_waking() -> None:
    assert spans(platform(0.0), (1, TURNED_ON, 100.0), (1, OFF, 500.0)) == [(1, 100.0, 500.0, ON)]


def test_a_wake_that_is_cut_short_is_shown_as_long_as_it_lasted() -> None:
    assert spans(platform(), (0, TURNED_ON, 100.0), (0, OFF, 110.0)) == [(0, 100.0, 110.0, WAKING)]


def test_what_is_on_at_first_never_woke_and_what_is_never_switched_stays_on() -> None:
    on = spans(platform(awake=True), (0, OFF, 50.0))
    assert on == [(0, 0.0, 50.0, ON), (1, 0.0, np.inf, ON)]


def test_a_failure_is_a_span_and_a_repaired_server_sleeps() -> None:
    site = platform(awake=True)
    found = spans(site, (0, WENT_DOWN, 10.0), (0, REPAIRED, 40.0), (1, OFF, 0.0))
    assert (0, 0.0, 10.0, ON) in found
    assert (0, 10.0, 40.0, DOWN) in found
    assert all(start_s < 40.0 for server, start_s, *_ in found if server == 0)


@given(
    st.lists(st.floats(1.0, 1e4), min_size=2, max_size=8, unique=True),
    st.sampled_from([0.0, 3.0]),
    st.booleans(),
)
def test_switches_that_are_read_off_spans_make_the_same_spans(
    times: list[float], wake_s: float, awake: bool
) -> None:
    site, at_s = platform(wake_s, awake=awake), np.cumsum(sorted(times)) + 10.0
    first = int(not awake)  # a server is switched the other way in turn
    rows = [(0, (first + k) % 2, when) for k, when in enumerate(at_s)]
    once = spans_of(site, np.array(rows))
    back = switches_of(site, once)
    order = np.argsort(back.at_s, kind="stable")
    again = spans_of(site, np.column_stack([back.server, back.on, back.at_s])[order])
    for name in ("server", "state", "start_s", "end_s"):
        keys = [np.lexsort((each.state, each.start_s, each.server)) for each in (once, again)]
        one, other = getattr(once, name)[keys[0]], getattr(again, name)[keys[1]]
        np.testing.assert_array_equal(one, other)


def ended_as(
    status: list[int], rows: list[tuple[int, int, float, float]], reason: list[str] | None = None
) -> Schedule:
    """A schedule of tasks due at 100 s that ended so; rows are (task, attempt, start, end)."""
    n = len(status)
    tasks = dc.Tasks.of(["dgemm"] * n, library=LIBRARY, deadline_s=100.0)
    problem = dc.Problem(tasks, LIBRARY, platform())
    segments = no_segments()
    if rows:
        task, attempt, start_s, end_s = np.array(rows).T
        lane = np.zeros(len(rows), np.int64)
        points = np.ones((len(rows), 3))
        segments = Segments.of(
            task.astype(np.int64), lane, start_s, end_s, points, 1.0, attempt.astype(np.int64)
        )
    why = np.array(reason or [""] * n, dtype=object)
    ended = Ended(segments, np.empty((0, 3)), np.array(status), why, np.full(n, 0.5))
    return schedule_of(problem, np.arange(n), ended, "by hand")


def test_a_task_done_after_its_deadline_has_failed_and_says_when() -> None:
    told = ended_as([DONE], [(0, 0, 0.0, 101.0)]).outcomes
    assert told.status.tolist() == [FAILED]
    assert told.reason[0] == "done at 101 s, after its deadline 100 s"


def test_a_task_done_at_its_deadline_is_done() -> None:
    assert ended_as([DONE], [(0, 0, 0.0, 100.0)]).outcomes.status.tolist() == [DONE]


def test_a_task_that_nobody_finished_has_failed() -> None:
    told = ended_as([PENDING], []).outcomes
    assert (told.status[0], told.reason[0]) == (FAILED, "it was never finished")


@pytest.mark.parametrize(
    ("status", "reason", "told"),
    [
        (FAILED, "all its attempts were lost", "lost 2 attempts, at 10 s, 30 s"),
        (FAILED, NOT_WANTED, "it was cancelled; lost 1 attempt, at 10 s"),
    ],
)
def test_a_failed_task_tells_its_history(status: int, reason: str, told: str) -> None:
    rows = [(0, 0, 0.0, 10.0), (0, 1, 20.0, 30.0)]
    assert ended_as([status], rows, [reason]).outcomes.reason[0] == told


def test_a_rejected_task_has_done_no_other_work_than_estimated() -> None:
    told = ended_as([REJECTED, DONE], [(1, 0, 0.0, 50.0)], ["no room", ""]).outcomes
    assert told.work.tolist() == [1.0, 0.5]
    assert told.reason[0] == "no room"


def test_a_task_that_was_told_late_is_found_under_its_own_number() -> None:
    tasks = dc.Tasks.of(["dgemm"] * 3, library=LIBRARY, deadline_s=100.0)
    problem = dc.Problem(tasks, LIBRARY, platform())
    segments = Segments.of(
        np.array([0]), np.array([1]), np.array([0.0]), np.array([5.0]), np.ones((1, 3))
    )
    ended = Ended(
        segments, np.empty((0, 3)), np.array([DONE]), np.array([""], object), np.array([1.0])
    )
    made = schedule_of(problem, np.array([2, 0, 1]), ended, "by hand")
    assert made.segments.task.tolist() == [2]
    assert made.outcomes.status.tolist() == [FAILED, FAILED, DONE]
