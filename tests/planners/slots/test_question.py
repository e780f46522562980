"""What the slot solvers are asked: levels, units of work, windows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from downclock.cli import main
from downclock.errors import InvalidInput
from downclock.planners.slots.plan import plan_least_cost
from downclock.planners.slots.question import as_slot_question, undominated
from downclock.power.library import Library
from downclock.power.points import ClockTable
from downclock.power.profiles import CpuProfiles
from downclock.problem.objective import Objective
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.verify.verify import verify


def test_a_level_is_dropped_where_another_is_as_quick_and_draws_no_more() -> None:
    units, power = np.array([3, 5, 5, 8, 7]), np.array([10.0, 30.0, 25.0, 60.0, 60.0])
    assert undominated(units, power).tolist() == [0, 2, 3]
    assert undominated(np.array([4, 4]), np.array([2.0, 2.0])).size == 1


def nearly_equal_speeds() -> Problem:
    """Three clocks of which two are as quick but for a thousandth: a slot has at most 240 units."""
    one = np.ones(1)
    profile = CpuProfiles(600.0 * one, 100.0 * one, 3.0 * one, 0.0 * one)
    clocks = ClockTable(np.array([500.0, 999.0, 1000.0]), one, 1000.0, 1.0)
    tasks = Tasks.of(
        np.zeros(2, dtype=np.int64), deadline_s=np.full(2, 6000.0), scale=np.array([2.0, 3.0])
    )
    return Problem(
        tasks,
        Library.of_one_kind(np.array(["work"], dtype=object), "pe", profile),
        Platform.build(
            (Kind("pe", clocks, interrupt="pause"),),
            (ServerSpec("machine", (("pe", 1),), initially_on=True),),
            600.0,
        ),
    )


def test_slots_too_short_to_table_are_refused_with_their_number() -> None:
    """Found by odd inputs: 23,002 slots and a task of 5,751 of them took hours and 13 GB."""
    problem = nearly_equal_speeds()
    fine = replace(problem, platform=replace(problem.platform, slot_s=0.25))
    rule = "needs longer slots: there are 24,000, and a task that takes 7,200 of them"
    with pytest.raises(InvalidInput, match=rule):
        as_slot_question(fine, Objective(energy=1.0))


def test_levels_of_equal_speed_are_merged() -> None:
    problem, by_energy = nearly_equal_speeds(), Objective(energy=1.0)
    for relaxed in (False, True):
        graph = as_slot_question(problem, by_energy, relaxed=relaxed).graph
        assert np.all(np.diff(graph.units) > 0)
        assert np.all(np.diff(graph.power) > 0)
    assert as_slot_question(problem, by_energy, relaxed=True).graph.units.tolist() == [[120, 240]]
    result = plan_least_cost(problem, "energy", rounds=10)
    assert verify(problem, result.schedule).ok
    # Ten slots at half the clock do all five slots of work at an eighth of the power.
    assert account(problem, result.schedule).total_j == pytest.approx(10 * 600.0 * 100.0 / 8)
    assert result.status == "optimal"


@pytest.mark.parametrize("more", [1e-10, 6e-10, 1e-9, 2e-9, 3e-9, 1e-8])
def test_work_of_whole_slots_and_next_to_nothing_is_valid(more: float) -> None:
    """Found by odd inputs: four slots did 0.999999999 of a task, and five were one too many."""
    problem = nearly_equal_speeds()
    tasks = replace(problem.tasks, scale=np.array([2.0, 1.5]) * (1.0 + more))
    result = plan_least_cost(replace(problem, tasks=tasks), "energy", rounds=1)
    assert str(verify(replace(problem, tasks=tasks), result.schedule)).startswith("valid")


def test_work_of_years_takes_no_memory_and_meets_no_deadline() -> None:
    problem = nearly_equal_speeds()
    endless = replace(problem, tasks=replace(problem.tasks, scale=np.array([2.0, 1e15])))
    with pytest.raises(InvalidInput, match="it needs 1000000000000000 slots, and there are 10"):
        plan_least_cost(endless, "energy", rounds=1)


def test_measured_levels_of_a_gpu_are_planned_at_prices(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """GROMACS on an A100: 1200 and 1410 MHz differ by less than a unit of a slot."""
    cases = shared_data.parent / "cases"
    if not cases.is_dir():
        pytest.skip("cases absent beside the public data")
    files = [str(cases / name) for name in ("g4.toml", "g4.csv")]
    assert main(["plan", *files, "--price", str(cases / "tariff.csv")]) == 0
    assert "tasks done" in capsys.readouterr().out
