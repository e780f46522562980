"""Task graphs as problems: works and edges as drawn, prices and deadlines as in the papers."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.problem.graph import Edges
from downclock.workloads.chip import chip_problem
from downclock.workloads.gerhards import (
    REACH,
    Machines,
    alternating_prices,
    flat_prices,
    graph_of,
    increasing_prices,
    random_graph,
    repeated_prices,
    slotted_problem,
    slotted_workflow,
)
from downclock.workloads.task_graph import TaskGraph

DIAMOND = graph_of("diamond", np.array([2.0, 3.0, 1.0, 4.0]), [(0, 1), (0, 2), (1, 3), (2, 3)])


def test_the_critical_path_is_the_longest_in_work() -> None:
    assert DIAMOND.critical_path == 2.0 + 3.0 + 4.0
    assert DIAMOND.total_work == 10.0
    assert graph_of("apart", np.array([2.0, 5.0]), []).critical_path == 5.0


def test_its_tasks_have_its_work_and_one_deadline() -> None:
    tasks = DIAMOND.tasks(12.5)
    assert tasks.name.tolist() == ["t0", "t1", "t2", "t3"]
    assert tasks.scale.tolist() == [2.0, 3.0, 1.0, 4.0]
    assert tasks.deadline_s.tolist() == [12.5] * 4
    assert not tasks.arrival_s.any()


def test_a_graph_that_cannot_be_is_refused() -> None:
    names = np.array(["a", "a"], dtype=object)
    with pytest.raises(InvalidInput, match="task 'a': is the name of two tasks"):
        TaskGraph("twice", names, np.ones(2), Edges())
    with pytest.raises(InvalidInput, match="the graph has a cycle through this task"):
        graph_of("round", np.ones(2), [(0, 1), (1, 0)])


@pytest.mark.parametrize("reach", ["short", "random", "long"])
def test_drawn_graphs_repeat_and_reach_as_far_as_they_may(reach: str) -> None:
    graph = random_graph(60, reach=reach, meshing="high", seed=5)  # type: ignore[arg-type]
    again = random_graph(60, reach=reach, meshing="high", seed=5)  # type: ignore[arg-type]
    assert graph.work.tolist() == again.work.tolist()
    assert set(graph.work.tolist()) <= set(range(1, 11))
    before, after = graph.edges.before, graph.edges.after
    near = np.maximum(1, np.ceil(REACH[reach] * after))
    assert np.all(before < (near if reach == "long" else after))
    assert np.all(before >= (0 if reach == "long" else after - near))


def test_prices_are_those_of_figure_4() -> None:
    assert flat_prices(3).tolist() == [1.0, 1.0, 1.0]
    assert increasing_prices(23).tolist() == [10.0] * 20 + [20.0, 30.0, 40.0]
    assert alternating_prices(5).tolist() == [5.0, 50.0, 5.0, 50.0, 5.0]
    assert repeated_prices(np.array([1.0, 2.0]), 5).tolist() == [1.0, 2.0, 1.0, 2.0, 1.0]


def test_a_slot_at_clock_1_costs_the_price_itself() -> None:
    problem = slotted_problem(DIAMOND, Machines(2), flat_prices(10))
    every = np.arange(4)
    time_s, power_w = problem.at(every, np.zeros(4, dtype=np.int64), np.ones((4, 3)))
    assert time_s == pytest.approx(3600.0 * DIAMOND.work)
    assert power_w * 3600.0 == pytest.approx(3.6e6)  # a kilowatt hour a slot
    assert problem.platform.slot_s == 3600.0


@pytest.mark.parametrize(("static", "exponent"), [(0.0, 2.0), (0.3, 3.0)])
def test_power_is_the_models_of_section_3(static: float, exponent: float) -> None:
    problem = slotted_problem(DIAMOND, Machines(1, static=static), flat_prices(10))
    point = np.array([[0.6, 1.0, 1.0]])
    _, power_w = problem.at(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), point)
    assert power_w[0] == pytest.approx(1000.0 * (static + (1.0 - static) * 0.6**exponent))


def test_a_price_for_too_few_slots_is_refused() -> None:
    with pytest.raises(InvalidInput, match="price: has 3 slots, and 5 are needed"):
        slotted_problem(DIAMOND, Machines(2), flat_prices(3), deadline_slots=5)


@pytest.mark.parametrize(("machines", "slots"), [(1, 10), (2, 10), (4, 10), (100, 10)])
def test_without_a_deadline_any_list_schedule_is_in_time(machines: int, slots: int) -> None:
    # Graham 1969: the longest path, 9, and what is left of the work, 1, shared by all machines.
    problem = slotted_workflow(DIAMOND, Machines(machines), 1.0)
    assert problem.tasks.deadline_s.tolist() == [float(slots)] * 4


def test_works_are_rounded_up_to_slots_for_that() -> None:
    problem = slotted_workflow(DIAMOND, Machines(1), 4.0)  # 1 + 1 + 1 + 1 slots in a row
    assert problem.tasks.deadline_s.tolist() == [16.0] * 4


def test_a_chip_may_be_islands_or_cores_of_their_own() -> None:
    whole, islands = (chip_problem(DIAMOND, 4, 9.0, islands=n, c2=1.5, c3=2.5) for n in (1, 2))
    apart = chip_problem(DIAMOND, 4, 9.0, chip_wide=False)
    assert [p.platform.chip.tolist() for p in (whole, islands, apart)] == [
        [0, 0, 0, 0],
        [0, 0, 1, 1],
        [0, 1, 2, 3],
    ]
    assert islands.platform.shared_w.tolist() == [2.5, 2.5]
    assert islands.platform.shared_w_per_clock.tolist() == [1.5, 1.5]
    assert whole.tasks.deadline_s.tolist() == [9.0] * 4
