"""No valid schedule is below a bound: random ones that pause, preempt, migrate and waste."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.planners.bounds import Bounds
from downclock.schedule.account.account import account
from downclock.schedule.verify.verify import verify
from tests.generated import random_problem
from tests.generated_schedule import random_schedule


@pytest.mark.parametrize("seed", range(150))
def test_no_random_schedule_needs_less_than_the_bound(seed: int) -> None:
    drawn = random_problem(seed, edges=False)
    schedule = random_schedule(drawn, seed)
    work = schedule.outcomes.work  # what was really to do, foreseen
    problem = replace(drawn, tasks=replace(drawn.tasks, scale=drawn.tasks.scale * work))
    schedule = replace(schedule, outcomes=replace(schedule.outcomes, work=np.ones(work.size)))
    assert verify(problem, schedule).ok
    assert account(problem, schedule).total_j >= Bounds(problem).below(schedule) * (1.0 - 1e-9)
