"""Sampled frontiers of a page: each curve owns its samples, and they lie on its frontier."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.problem.problem import Problem
from downclock.report.page.curves import FINE, Curves, sampled_curves
from downclock.workloads import mei
from downclock.workloads.gerhards import (
    FREQUENCIES,
    Machines,
    flat_prices,
    random_graph,
    slotted_problem,
)


def curves_of(problem: Problem) -> Curves:
    return sampled_curves(problem, np.unique(problem.tasks.application))


def test_continuous_clocks_are_sampled_from_the_shortest_to_the_longest_time() -> None:
    problem = mei.offline(3, utilisation=0.005, cluster=mei.Cluster(pairs=8, per_server=4))
    curves, many = curves_of(problem), len(problem.library)
    assert curves.size.tolist() == [FINE] * many
    assert not curves.enumerated.any()
    of_one = problem.platform.kinds[0].frontier(problem.library, np.arange(many), np.ones(many))
    times = curves.time_s.reshape(many, FINE)
    assert times[:, 0] == pytest.approx(of_one.t_min_s)
    assert times[:, -1] == pytest.approx(of_one.t_max_s)
    exact = of_one.at(curves.time_s, np.repeat(np.arange(many), FINE)).energy_j
    assert curves.energy_j == pytest.approx(exact)


def test_enumerated_clocks_have_one_sample_each() -> None:
    graph = random_graph(4)
    problem = slotted_problem(graph, Machines(2), flat_prices(int(graph.work.sum())))
    curves = curves_of(problem)
    assert curves.size.tolist() == [len(FREQUENCIES)]
    assert curves.enumerated.all()
    # A second of work at clock f takes 1 / f s and 1000 f^2 W (gerhards section 3, alpha = 2).
    clock = np.array(FREQUENCIES[::-1])
    assert curves.time_s == pytest.approx(1.0 / clock)
    assert curves.energy_j == pytest.approx(1000.0 * clock)
    assert curves.optimum.tolist() == [[pytest.approx(5.0), pytest.approx(200.0)]]
    assert curves.default.tolist() == [[pytest.approx(1.0), pytest.approx(1000.0)]]
