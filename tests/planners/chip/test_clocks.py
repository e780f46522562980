"""Optimal chip-wide clocks: Theorem 1, its limits, enumerated levels, and section 5's lemmas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize_scalar

from downclock.errors import InvalidInput
from downclock.papers.gerards import theory as graph_theory
from downclock.planners.chip.bounds import lemma3_bound
from downclock.planners.chip.clocks import (
    ChipPower,
    energy_of_weighted,
    global_clocks,
    level_clocks,
    makespan,
    single_clock,
    weighted_makespan,
)

OMEGA1 = np.array([0.0, 30.0, 10.0, 20.0])
omegas = st.lists(st.floats(0.0, 50.0), min_size=2, max_size=6).map(
    lambda cells: np.array([0.0, 1.0 + cells[0], *cells[1:]])
)
powers = st.builds(
    ChipPower,
    c1=st.floats(0.5, 2.0),
    c2=st.floats(0.0, 1.0),
    c3=st.floats(0.0, 2.0),
    alpha=st.floats(1.5, 4.0),
)


def seconds(omega, clock) -> float:
    """How long all cycles take at these clocks; gaps take no time."""
    used = np.flatnonzero(omega[1:] > 0.0) + 1
    return float((omega[used] / clock[used]).sum())


def test_example_1() -> None:
    """gerards Example 1: 0.714, 0.567, 0.495; 36.47 J against 39.60 J."""
    best = global_clocks(OMEGA1, 100.0, ChipPower())
    assert best.clock[1:] == pytest.approx([0.71444, 0.56705, 0.49537], abs=5e-6)
    assert best.energy == pytest.approx(36.4671, abs=5e-5)
    assert seconds(OMEGA1, best.clock) == pytest.approx(100.0)
    single = single_clock(OMEGA1, 100.0, ChipPower(), static_aware=False)
    assert single.energy == pytest.approx(39.6)


def test_example_2() -> None:
    """gerards Example 2; the paper's 80.397 counts 36 units of work, the tasks have 35.5."""
    values = [
        global_clocks(np.array([0.0, *omega]), 10.0, ChipPower()).energy
        for omega in ((0.0, 10.25, 5.0), (5.25, 0.0, 10.25), (5.5, 0.0, 10.0))
    ]
    assert values == pytest.approx([81.515, 80.397, 79.074], abs=5e-4)


@given(omegas, powers, st.floats(1.0, 200.0))
def test_theorem_1_beats_every_scaling_of_two_clocks(omega, power, deadline) -> None:
    best = global_clocks(omega, deadline, power)
    assert seconds(omega, best.clock) <= deadline * (1.0 + 1e-9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        clock = best.clock * rng.uniform(0.8, 1.25, omega.size)
        late = float((omega[1:] / clock[1:]).sum()) / deadline
        clock = clock * max(late, 1.0)
        assert power.energy(omega, clock) >= best.energy * (1.0 - 1e-9)


@given(omegas, powers, st.floats(1.0, 200.0))
def test_energy_depends_on_the_weighted_makespan_alone(omega, power, deadline) -> None:
    """Section 5.1, plus c2 S."""
    weighted = weighted_makespan(omega, power.alpha)
    by_formula = energy_of_weighted(weighted, deadline, power) + power.c2 * makespan(omega)
    assert global_clocks(omega, deadline, power).energy == pytest.approx(by_formula, rel=1e-9)


@given(omegas, powers, st.floats(1.0, 200.0))
def test_single_clocks_order_themselves(omega, power, deadline) -> None:
    best = global_clocks(omega, deadline, power).energy
    aware = single_clock(omega, deadline, power, static_aware=True).energy
    unaware = single_clock(omega, deadline, power, static_aware=False).energy
    assert best <= aware * (1.0 + 1e-9)
    assert aware <= unaware * (1.0 + 1e-9)


def test_aware_single_clock_is_the_best_single_clock() -> None:
    power = ChipPower(c3=0.7)
    found = single_clock(OMEGA1, 1000.0, power, static_aware=True)
    scanned = minimize_scalar(
        lambda f: power.energy(OMEGA1, np.full(4, f)), bounds=(0.06, 3.0), method="bounded"
    )
    assert found.energy == pytest.approx(scanned.fun, rel=1e-8)


@given(omegas, powers, st.floats(0.3, 2.0))
def test_limited_clocks_stay_inside_and_match_many_levels(omega, power, tightness) -> None:
    low, high = 0.4, 1.2
    deadline = makespan(omega) / high * (1.0 + tightness)
    best = global_clocks(omega, deadline, replace(power, slowest=low, fastest=high))
    used = omega[1:] > 0.0
    assert np.all(best.clock[1:][used] >= low - 1e-12)
    assert np.all(best.clock[1:][used] <= high + 1e-12)
    assert seconds(omega, best.clock) <= deadline * (1.0 + 1e-9)
    many = replace(power, levels=tuple(np.linspace(low, high, 400).tolist()))
    _, fine = level_clocks(omega, deadline, many)
    assert best.energy <= fine * (1.0 + 1e-9)
    assert fine == pytest.approx(best.energy, rel=2e-4)


@given(omegas, powers, st.floats(1.01, 3.0))
def test_levels_equal_the_linear_program(omega, power, slack) -> None:
    levels = np.array([0.3, 0.5, 0.8, 1.0])
    deadline = makespan(omega) * slack
    cycles, energy = level_clocks(omega, deadline, replace(power, levels=tuple(levels.tolist())))
    assert cycles.sum(axis=1)[1:] == pytest.approx(omega[1:])
    assert float((cycles / levels).sum()) <= deadline * (1.0 + 1e-9)
    m = np.arange(1, omega.size)[:, None]
    cost = m * power.c1 * levels ** (power.alpha - 1) + power.c2 + power.c3 / levels
    sums = np.kron(np.eye(omega.size - 1), np.ones((1, 4)))
    answer = linprog(
        cost.ravel(),
        A_ub=np.tile(1.0 / levels, omega.size - 1)[None, :],
        b_ub=[deadline],
        A_eq=sums,
        b_eq=omega[1:],
    )
    assert energy == pytest.approx(answer.fun, rel=1e-7)


def test_impossible_deadlines_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"deadline=10\.0 is too short for 60 cycles"):
        global_clocks(OMEGA1, 10.0, ChipPower(fastest=2.0))
    with pytest.raises(InvalidInput, match="deadline"):
        level_clocks(OMEGA1, 10.0, ChipPower(levels=(1.0, 2.0)))
    with pytest.raises(InvalidInput, match="deadline=0 must be positive"):
        global_clocks(OMEGA1, 0, ChipPower())


@given(st.integers(2, 9), st.floats(2.0, 4.0), st.randoms())
def test_no_parallelism_is_below_the_bound_of_lemma_3(cores, alpha, random) -> None:
    omega = np.array([0.0] + [random.random() + 0.01 for _ in range(cores)])
    work, length = float(omega @ np.arange(cores + 1)), makespan(omega)
    low = lemma3_bound(work, length, cores, alpha)
    assert low * (1 - 1e-9) <= weighted_makespan(omega, alpha)
    best = np.zeros(cores + 1)  # all cores as long as possible, one for the rest
    best[cores] = (work - length) / (cores - 1)
    best[1] = length - best[cores]
    assert low == pytest.approx(weighted_makespan(best, alpha))


def test_lemma_5_builds_tasks_with_the_wanted_parallelism() -> None:
    work = [8.0, 5.0, 5.0]  # cycles with at least 1, 2 and 3 active cores
    from downclock.planners.chip.lists import list_schedule
    from tests.planners.chip.graphs_for_tests import graph_of

    graph = graph_of(work)
    assert list(list_schedule(graph, 3, "lpt").parallelism(graph)) == [0.0, 3.0, 0.0, 5.0]


def test_theorem_2_and_figure_6() -> None:
    """Values checked numerically: shared/specs/graphs.md section 2."""
    ratios = [graph_theory.approximation_ratio(m) for m in (6, 10)]
    assert ratios == pytest.approx([1.0901, 1.1497], abs=5e-5)
    savings = [1.0 - graph_theory.largest_saving(m) for m in (2, 4, 8, 16)]
    assert savings == pytest.approx([0.9610, 0.8548, 0.7085, 0.5524], abs=5e-5)
    length = np.linspace(1 / 16, 1.0, 2001)
    scanned = graph_theory.best_to_single(length, 16)
    assert scanned.min() == pytest.approx(1.0 - graph_theory.largest_saving(16), abs=1e-6)


@given(st.floats(1.0, 50.0), st.floats(1.0, 2.0), st.floats(2.0, 4.0))
def test_two_cores_need_only_the_makespan(length, parallel, alpha) -> None:
    """Lemma 6 with its coefficients exchanged back."""
    work = length * parallel
    omega = np.array([0.0, 2 * length - work, work - length])
    expected = weighted_makespan(omega, alpha)
    assert graph_theory.two_core_weighted_makespan(work, length, alpha) == pytest.approx(expected)
