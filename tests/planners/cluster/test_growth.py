"""Tables that grow with the tasks told: what was known stays, and no call copies them all."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.engine.facts import ARRIVED, Fact, Facts
from downclock.engine.scheduler import Scheduler
from downclock.planners.catalog import policy
from tests.generated import random_problem

TASKS = 200


def sizes(scheduler: Scheduler) -> tuple[int, ...]:
    """Tasks that each of the large tables has room for."""
    state, kinds = scheduler.state, len(scheduler.view.platform.kinds)
    return state.board.tasks.size, state.curves.rows.size // kinds, len(state.curves.shape) // kinds


@pytest.mark.parametrize("flavours", [("gpu-wide",), ("gpu-wide", "cpu", "measured")])
def test_no_two_large_tables_double_at_one_moment(flavours: tuple[str, ...]) -> None:
    problem = random_problem(
        7, tasks=TASKS, flavours=flavours, chip_wide=False, slot_s=None, edges=False,
        milestones=False,
    )  # fmt: skip
    scheduler = Scheduler(problem, policy("late"))
    room, grew, known = sizes(scheduler), 0, 0
    for task in range(TASKS):
        (number,) = scheduler.tell(problem.tasks, np.array([task]))
        scheduler.handle(Facts(1e-3 * task, [Fact(ARRIVED, int(number))]))
        before, room = room, sizes(scheduler)
        doubled = sum(a != b for a, b in zip(before, room, strict=True))
        assert doubled <= (len(room) if task == 0 else 1)
        grew, known = grew + doubled, scheduler.state.board.known
    assert grew > 3 * len(room)
    assert known == TASKS
    told = scheduler.state.board.tasks[:known]
    deadline_s = problem.tasks.deadline_s
    assert np.array_equal(told["due_s"], deadline_s)


def test_a_row_that_nobody_told_of_is_blank() -> None:
    problem = random_problem(7, tasks=3, flavours=("cpu",), chip_wide=False, slot_s=None)
    scheduler = Scheduler(problem, policy("late"))
    scheduler.tell(problem.tasks, np.arange(3))
    scheduler.handle(Facts(0.0, [Fact(ARRIVED, 2)]))
    untold = scheduler.state.board.tasks[:2]
    assert untold["place"].tolist() == untold["booked"].tolist() == [-1, -1]
    assert np.all(np.isinf(untold["start_s"]))
