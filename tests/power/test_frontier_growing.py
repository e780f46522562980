"""Applications are solved once; tasks take their rows, however many come later."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from downclock.power import frontier as frontiers
from downclock.power.frontier import frontier
from downclock.power.kernel_columns import kernel_columns
from downclock.power.kernels.models import CPU, GPU, LADDER, NOWHERE
from downclock.power.library import Library
from downclock.power.points import MEI_LAW, WIDE, ClockRange, ClockTable
from downclock.power.profiles import CpuProfiles, GpuProfiles, MeasuredProfiles
from tests.generated import random_problem

COLUMNS = ("t_min_s", "t_opt_s", "t_max_s", "e_min_time_j", "e_opt_j", "e_max_time_j", "scale")


def mixed_library() -> Library:
    """Applications a (GPU model), b (CPU core), c (two measured points), d (none)."""
    gpu = GpuProfiles(*(np.array([v]) for v in (60.0, 30.0, 100.0, 20.0, 0.6, 1.0)))
    cpu = CpuProfiles(*(np.array([v]) for v in (10.0, 20.0, 3.0, 5.0)))
    table = MeasuredProfiles(
        np.array([0, 2]), np.array([0.5, 1.0]), np.ones(2), np.array([9.0, 5.0]), np.full(2, 50.0)
    )
    names = np.array(["a", "b", "c", "d"], dtype=object)
    group, row = np.array([[0], [1], [2], [-1]]), np.zeros((4, 1), dtype=np.int64)
    return Library(names, ("x",), (gpu, cpu, table), group, row)


def test_a_library_is_solved_once_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[object] = []
    curves = frontiers._curves

    def counting(*args):
        solved.append(args)
        return curves(*args)

    monkeypatch.setattr(frontiers, "_curves", counting)
    library = mixed_library()
    for n in range(1, 5):
        frontier(library, "x", WIDE, np.arange(n), np.ones(n))
    assert len(solved) == 3, "one of each model"
    frontier(library, "x", ClockRange(0.9, 1.0), np.arange(2), np.ones(2))
    assert len(solved) == 6, "other clocks are another question"
    frontier(pickle.loads(pickle.dumps(library)), "x", WIDE, np.arange(2), np.ones(2))
    assert len(solved) == 9, "what was solved is not sent along"


@pytest.mark.parametrize("seed", range(6))
def test_frontiers_of_tasks_that_come_later_are_rows_of_the_whole(seed: int) -> None:
    problem = random_problem(seed)
    tasks, half = problem.tasks, len(problem.tasks) // 2
    for k, kind in enumerate(problem.platform.kinds):
        whole, window = problem.frontier(k), tasks.deadline_s - tasks.arrival_s
        for rows in (np.arange(half), np.arange(half, len(tasks))):
            part = kind.frontier(problem.library, tasks.application[rows], tasks.scale[rows])
            for name in COLUMNS:
                assert np.array_equal(getattr(part, name), getattr(whole, name)[rows]), name
            mine, theirs = part.within(window[rows]), whole.within(window[rows], rows)
            assert np.array_equal(mine.time_s, theirs.time_s, equal_nan=True)
            assert np.array_equal(mine.points, theirs.points, equal_nan=True)


def test_kernels_get_the_parameters_of_whole_tasks() -> None:
    tasks, scale = np.array([0, 1, 2, 3, 0]), np.array([2.0, 3.0, 4.0, 5.0, 0.0])
    columns = kernel_columns(frontier(mixed_library(), "x", WIDE, tasks, scale))
    assert columns.model.tolist() == [GPU, CPU, LADDER, NOWHERE, NOWHERE]
    assert columns.shape[0].tolist() == [60.0, 30.0, 100.0, 40.0, 0.6, 2.0]
    assert columns.shape[1].tolist() == [30.0, 20.0, 3.0, 5.0, 0.0, 0.0]
    assert not columns.shape[2:].any()
    assert columns.box[:4] == pytest.approx([0.5, WIDE.core_max, 0.5, 1.2])


def test_at_a_core_and_voltage_the_memory_clock_is_chosen() -> None:
    line = frontier(mixed_library(), "x", WIDE, np.array([0, 1, 2]), np.array([2.0, 2.0, 2.0]))
    rows, setting = np.arange(3), (1.0, 1.0)
    limit = np.array([60.0, 60.0, 60.0])
    best = line.at_core(setting, limit, rows, "within")
    assert best.feasible.tolist() == [True, False, False], "others have no memory clock"
    # 20 (0.6 / 1 + 0.4 / m) + 1 seconds a unit at 160 + 30 m watts: least at m = sqrt(1280 / 390).
    assert best.points[0].tolist() == [1.0, 1.2, 1.0]
    tight = line.at_core(setting, np.full(3, 42.0), rows, "exactly")
    assert tight.time_s[0] == pytest.approx(42.0)
    assert tight.points[0, 1] == pytest.approx(1.0)
    assert not line.at_core(setting, np.full(3, 30.0), rows, "free").feasible[0]


def test_the_law_of_a_core_is_asked_for_not_its_model() -> None:
    library = mixed_library()
    law = library.core_law(np.array([1, 1]), "x")
    assert law is not None
    assert law.c1_w.tolist() == [20.0, 20.0]
    assert library.core_law(np.array([1, 0]), "x") is None
    assert library.core_law(np.array([3]), "x") is None


def test_a_library_says_what_it_knows_of_an_application() -> None:
    library = mixed_library()
    assert library.describe(0, 0) == ("gpu", 21.0, 190.0)
    assert library.describe(1, 0) == ("cpu", 10.0, 25.0)
    assert library.describe(2, 0) == ("table of 2 points", 5.0, 50.0)
    table = ClockTable(np.array([500.0, 1000.0]), np.array(1.0), 1000.0, 1.0, MEI_LAW)
    assert library.shortest_s("x", table).tolist() == [21.0, 10.0, 5.0, np.inf]
