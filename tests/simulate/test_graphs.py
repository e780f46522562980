"""Task graphs under the simulator: chips that share a clock, and slots under prices."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.planners.catalog import policy
from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, REJECTED
from downclock.schedule.verify.verify import verify
from downclock.simulate.chances import Chances
from downclock.simulate.simulate import simulate
from downclock.workloads.chip import chip_problem
from downclock.workloads.gerhards import (
    Machines,
    alternating_prices,
    random_graph,
    slotted_problem,
)
from tests.simulate.test_laws import same


def chip(chip_wide: bool = True) -> Problem:
    return chip_problem(random_graph(8, seed=1), 3, 60.0, c3=0.5, chip_wide=chip_wide)


def slotted() -> Problem:
    return slotted_problem(random_graph(6, seed=2), Machines(2), alternating_prices(60))


@pytest.mark.parametrize(
    ("spec", "problem"),
    [("graph:effort=0.1", chip()), ("least-cost:rounds=5,seconds=36000", slotted())],
)
def test_a_noiseless_run_is_the_plan_bit_for_bit(spec, problem):
    run = simulate(problem, policy(spec))
    same(run.realised, run.promised)


def test_a_clock_that_is_shared_cannot_be_carried_out_when_run_times_vary():
    """Only where the plan changes the clock; one clock for all times would do."""
    problem = chip()
    run = simulate(problem, policy("graph:effort=0.1"))
    assert np.ptp(run.promised.segments.core) > 0.0
    with pytest.raises(InvalidInput, match="share a clock"):
        simulate(problem, policy("graph:effort=0.1"), chances=Chances(actual="uniform:0.5:1"))


@pytest.mark.parametrize("seed", range(5))
def test_slots_hold_when_run_times_vary_and_jobs_fail(seed):
    problem = slotted()
    chances = Chances(
        actual="uniform:0.6:1.3",
        fail_jobs=0.2,
        fail_servers=0.5,
        repair_s=7200.0,
        processor_life="exponential:20000",
    )
    run = simulate(problem, policy("least-cost:rounds=5,seconds=36000"), chances=chances, seed=seed)
    verdict = verify(problem, run.realised)
    assert verdict.ok, verdict


def test_what_follows_a_failed_task_is_not_run():
    problem = slotted()
    chances = Chances(fail_jobs=0.5, retries=0)
    run = simulate(problem, policy("least-cost:rounds=5,seconds=36000"), chances=chances, seed=3)
    status = run.realised.outcomes.status
    edges = problem.edges
    assert run.failed.size > 0
    assert np.all(status[edges.after[status[edges.before] != DONE]] == REJECTED)
    assert verify(problem, run.realised).ok


def test_tasks_that_are_late_one_after_the_other_are_late_not_wrong():
    """A late task has failed, but it was done: what follows it may run."""
    problem = chip_problem(random_graph(8, seed=1), 3, 60.0, chip_wide=False)
    run = simulate(
        problem, policy("graph:effort=0.1"), chances=Chances(actual="uniform:1.1:1.2"), seed=1
    )
    verdict = verify(problem, run.realised)
    assert verdict.ok, verdict
    assert run.late.size > 1


@pytest.mark.parametrize("seed", [1, 3, 11])
def test_a_lost_attempt_did_the_share_that_was_drawn_also_in_its_last_slot(seed):
    run = simulate(
        slotted(),
        policy("least-cost:rounds=5,seconds=36000"),
        chances=Chances(fail_jobs=0.5),
        seed=seed,
    )
    segments = run.realised.segments
    last = np.zeros(len(run.problem.tasks), dtype=np.int64)
    np.maximum.at(last, segments.task, segments.attempt)
    lost = segments.attempt < last[segments.task]
    assert np.any(lost)
    assert np.all(segments.share[lost] <= 0.98)
