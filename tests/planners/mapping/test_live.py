"""The live engine's book: what it writes down is what the simulator says happened."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.planners.catalog import policy
from downclock.planners.mapping.live import Live
from downclock.planners.mapping.policy import LiuPolicy
from downclock.planners.mapping.reacting import Facts, Floor, play
from downclock.planners.mapping.replan import Replan
from downclock.schedule.schedule import DONE, PENDING
from downclock.schedule.verify.verify import verify
from downclock.simulate.simulate import simulate
from downclock.workloads.liu import job_set


@pytest.mark.parametrize("made", [LiuPolicy("liu"), Replan()], ids=lambda made: made.name)
def test_told_what_happened_it_keeps_the_simulators_schedule(made):
    problem = job_set(2, load="heavy", family="MT", arrivals_s=120.0)
    run = simulate(problem, made, seed=6)
    live = Live(problem, made)
    work = problem.tasks.spread.draw(6)
    state, floor = made.begin(live.view), Floor.of(live.view, work)
    arrivals = sorted(zip(problem.tasks.arrival_s.tolist(), range(len(work)), strict=True))
    for facts, orders in play(made, state, live.view, floor, arrivals, np.inf):
        assert live.handle(facts) == orders
    kept = live.schedule()
    assert verify(problem, kept).ok
    assert np.array_equal(kept.segments.end_s, run.realised.segments.end_s)
    assert kept.segments.share == pytest.approx(run.realised.segments.share)
    done = kept.outcomes.status == DONE
    assert done.any()
    assert kept.outcomes.work[done] == pytest.approx(work[done])


def test_running_work_is_cut_at_the_last_moment_told():
    problem = job_set(2, load="light", family="MT")
    live = Live(problem, LiuPolicy("liu"))
    live.handle(Facts(0.0, arrived=tuple(range(len(problem.tasks)))))
    live.handle(Facts(0.25))
    kept = live.schedule()
    assert kept.segments.end_s.tolist() == [0.25, 0.25]
    assert np.all(kept.outcomes.status == PENDING)


def test_time_does_not_run_backwards_and_promising_policies_are_refused():
    problem = job_set(2, load="light", family="MT")
    live = Live(problem, LiuPolicy("liu"))
    live.handle(Facts(5.0, arrived=(0,)))
    with pytest.raises(InvalidInput, match=r"now_s=4.0 is before the last facts at 5.0 s"):
        live.handle(Facts(4.0))
    with pytest.raises(InvalidInput, match="does not react"):
        Live(problem, policy("race"))
