"""Draws of fate, and small runs whose numbers are known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.engine.play import play
from downclock.errors import InvalidInput
from downclock.planners.catalog import policy
from downclock.power.library import Library
from downclock.power.points import ClockTable
from downclock.power.profiles import MeasuredProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, DOWN, FAILED, ON, WAKING
from downclock.schedule.verify.verify import require_valid
from downclock.simulate.chances import NEVER, Chances, Fate, draw_fate, read_ratios
from downclock.simulate.drawn import drawn_world


def two_jobs(deadline_s: float = 1000.0, wake_s: float = 0.0) -> Problem:
    """Two jobs of 100 s at 50 W on one processor that idles at 10 W."""
    profiles = MeasuredProfiles(
        np.array([0, 1]), np.ones(1), np.ones(1), np.array([100.0]), np.array([50.0])
    )
    library = Library.of_one_kind(np.array(["app"], dtype=object), "gpu", profiles)
    kind = Kind("gpu", ClockTable(np.array([1000.0]), np.array([1000.0]), 1000.0, 1000.0), 10.0)
    server = ServerSpec("s", (("gpu", 1),), wake_j=20.0, wake_s=wake_s)
    tasks = Tasks.of(np.zeros(2, dtype=np.int64), deadline_s=np.full(2, deadline_s))
    return Problem(tasks, library, Platform.build((kind,), (server,)))


def fate(
    work: tuple[float, float] = (1.0, 1.0), breaks: float = NEVER, down_s: float | None = None
) -> Fate:
    none, at = np.empty(0, dtype=np.int64), np.empty(0)
    server = none if down_s is None else np.zeros(1, dtype=np.int64)
    when = at if down_s is None else np.array([down_s])
    column = np.full((2, 4), NEVER)
    column[0, 0] = breaks
    return Fate(np.array(work), column, server, when, none, at, 30.0)


def run_of(problem: Problem, drawn: Fate, retries: int = 3):
    world = drawn_world(problem, drawn)
    realised = play(problem, policy("race"), world, retries=retries).schedule
    require_valid(problem, realised)
    return realised


def test_a_job_that_ends_early_lets_the_next_start_at_once():
    realised = run_of(two_jobs(), fate(work=(0.5, 1.0)))
    assert realised.segments.start_s.tolist() == [0.0, 50.0]
    assert realised.segments.end_s.tolist() == [50.0, 150.0]
    bill = account(two_jobs(), realised)
    assert bill.energy_j["run"] == pytest.approx(50.0 * 150.0)
    assert bill.energy_j["idle"] == pytest.approx(0.0)


def test_a_job_that_runs_late_moves_the_next_and_the_server_stays_on():
    realised = run_of(two_jobs(), fate(work=(1.2, 1.0)))
    assert realised.segments.start_s.tolist() == [0.0, 120.0]
    assert realised.segments.end_s.tolist() == [120.0, 220.0]
    assert realised.spans.end_s.max() == pytest.approx(220.0)


def test_a_late_job_has_failed_with_its_time_as_reason():
    realised = run_of(two_jobs(deadline_s=205.0), fate(work=(1.2, 1.0)))
    assert realised.outcomes.status.tolist() == [DONE, FAILED]
    assert realised.outcomes.reason[1] == "done at 220 s, after its deadline 205 s"


def test_a_failed_attempt_is_billed_and_repeated_where_it_breaks_no_promise():
    realised = run_of(two_jobs(), fate(breaks=0.4))
    assert realised.segments.attempt.tolist() == [0, 1, 0]
    assert realised.segments.end_s.tolist() == [40.0, 240.0, 140.0]
    assert account(two_jobs(), realised).energy_j["run"] == pytest.approx(50.0 * 240.0)


def test_without_retries_a_failed_attempt_is_the_end_and_says_when():
    realised = run_of(two_jobs(), fate(breaks=0.4), retries=0)
    assert realised.outcomes.status.tolist() == [FAILED, DONE]
    assert realised.outcomes.reason[0] == "lost 1 attempt, at 40 s"
    assert realised.segments.start_s.tolist() == [0.0, 40.0]


def test_a_server_that_fails_is_down_wakes_again_and_repeats_the_job():
    realised = run_of(two_jobs(wake_s=5.0), fate(down_s=50.0))
    spans = realised.spans
    order = np.argsort(spans.start_s, kind="stable")
    assert spans.state[order].tolist() == [WAKING, ON, DOWN, WAKING, ON]
    assert spans.start_s[order].tolist() == [0.0, 5.0, 50.0, 80.0, 85.0]
    assert np.sort(realised.segments.start_s).tolist() == [5.0, 85.0, 185.0]
    assert realised.segments.attempt.tolist() == [0, 1, 0]


def test_fate_depends_on_problem_and_seed_alone():
    problem = two_jobs()
    chances = Chances("lognormal:1:0.3", 0.5, fail_servers=0.5, fail_processors=0.5)
    one, other = draw_fate(problem, chances, 3), draw_fate(problem, chances, 3)
    assert one.work.tolist() == other.work.tolist()
    assert one.breaks.tolist() == other.breaks.tolist()
    assert draw_fate(problem, chances, 4).work.tolist() != one.work.tolist()
    assert draw_fate(problem, Chances(), 3).noiseless


def test_ratios_come_from_a_file(tmp_path):
    path = tmp_path / "ratios.csv"
    path.write_text("ratio\n0.5\n0.75\n")
    assert read_ratios(path).tolist() == [0.5, 0.75]
    work = draw_fate(two_jobs(), Chances(actual=f"file:{path}"), 1).work
    assert set(work) <= {0.5, 0.75}
    path.write_text("ratio\n0.5\n-1\n")
    with pytest.raises(InvalidInput, match=r"line 3: ratio='-1' must be a positive number"):
        read_ratios(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [("fail_jobs", 1.5), ("fail_servers", -0.1), ("repair_s", 0.0), ("retries", -1)],
)
def test_chances_out_of_range_are_refused(field, value):
    with pytest.raises(InvalidInput, match=field):
        Chances(**{field: value})
