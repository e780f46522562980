"""Replanning and the exact mapping: optimal where brute force can tell, and never late."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from benchmarks.exact_mapping import Choices, solve_mapping

from downclock.papers.liu.runs import SCHEMES, ended
from downclock.planners.mapping.replan import Replan
from downclock.schedule.verify.verify import verify
from downclock.simulate.simulate import simulate
from downclock.workloads.liu import HD_5770, XEON_5160, Box, job_set


def random_choices(seed: int, on_w: float, leading: bool) -> Choices:
    """Six jobs on two processors with two levels each."""
    rng = np.random.default_rng(seed)
    n = 6
    job, processor = np.repeat(np.arange(n), 4), np.tile([0, 0, 1, 1], n)
    time_s = rng.uniform(1.0, 5.0, job.size) * np.tile([1.0, 1.6, 1.0, 1.6], n)
    cost_j = rng.uniform(10.0, 40.0, job.size) * np.tile([1.0, 0.6, 1.0, 0.6], n)
    leads = np.zeros(n, dtype=bool)
    keep = np.ones(job.size, dtype=bool)
    if leading:
        leads[3] = True
        keep = (job != 3) | (processor == 1)
    due_s = rng.uniform(4.0, 16.0, n)
    return Choices(job[keep], processor[keep], time_s[keep], cost_j[keep], due_s, leads, 2, on_w)


def brute_force(choices: Choices) -> float:
    """Least cost over all mappings whose jobs, by deadline, are all in time."""
    menus = [np.flatnonzero(choices.job == i) for i in range(choices.due_s.size)]
    order = np.argsort(choices.due_s)
    order = np.concatenate([order[choices.leads[order]], order[~choices.leads[order]]])
    best = np.inf
    for entries in product(*menus):
        work = np.zeros(2)
        fine = True
        for i in order:
            p = choices.processor[entries[i]]
            work[p] += choices.time_s[entries[i]]
            fine &= work[p] <= choices.due_s[i] + 1e-9
        if fine:
            picked = list(entries)
            best = min(best, choices.cost_j[picked].sum() + choices.on_w * work.max())
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("on_w", [0.0, 30.0])
@pytest.mark.parametrize("leading", [False, True])
def test_the_exact_mapping_is_what_brute_force_finds(seed, on_w, leading):
    choices = random_choices(seed, on_w, leading)
    found, best = solve_mapping(choices, gap=0.0), brute_force(choices)
    if np.isinf(best):
        assert found.status == "infeasible"
    else:
        assert found.status == "optimal"
        assert found.objective_j == pytest.approx(best, rel=1e-9)
        assert found.bound_j == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(("load", "most"), [("light", 0.40), ("heavy", 0.45)])
def test_replanning_beats_dynamic_by_the_promised_margins(load, most):
    """Of Dynamic's: energy above idle at most 0.83, and ``most`` with 100 W until makespan."""
    above, until = np.zeros(2), np.zeros(2)
    for seed in range(2):
        for family in ("NMF", "MM", "MT", "MO"):
            problem = job_set(seed, load=load, family=family, box=Box(system_w=100.0))
            dynamic = ended(problem, SCHEMES["Dynamic"], seed)
            paced = ended(problem, SCHEMES["Ours, horizon"], seed)
            raced = ended(problem, SCHEMES["Ours, makespan"], seed)
            above += (paced.above_idle_j, dynamic.above_idle_j)
            until += (raced.total_j, dynamic.total_j)
            assert paced.missed == raced.missed == 0
    assert above[0] / above[1] <= 0.83
    assert until[0] / until[1] <= most


@pytest.mark.parametrize("locked", [False, True])
def test_replanned_runs_are_valid_with_free_and_locked_clocks(locked):
    problem = job_set(3, load="heavy", family="MT", box=Box(locked=locked), arrivals_s=100.0)
    run = simulate(problem, Replan(), seed=1)
    verdict = verify(problem, run.realised)
    assert verdict.ok, verdict
    assert run.late.size == 0


def test_a_reserve_makes_plans_faster():
    problem = job_set(1, load="heavy", family="MM", arrivals_s=100.0)
    lazy, eager = (ended(problem, Replan(reserve=r), 1) for r in (0.0, 0.5))
    assert eager.above_idle_j > lazy.above_idle_j


def test_table_2s_powers_per_unit_of_work():
    """GPU: (18 + 9) / 0.174 = 155 J at 148 MHz, 88 at 500, 108 at 850 (specs A4)."""
    per_work = HD_5770.power_w("clock", "switching") / HD_5770.clock
    assert per_work == pytest.approx([155.3, 88.2, 108.0], abs=0.5)
    assert XEON_5160.power_w("clock", "switching") == pytest.approx(
        [24.0 + 56.0 * 0.64 * 2 / 3, 80.0]
    )


@pytest.mark.parametrize(("lengths", "median_s"), [("log-uniform", 10**0.5), ("uniform", 10.25)])
def test_lengths_have_the_median_of_their_spread(lengths, median_s):
    """GPU times of 0.5 to 20 s, times the margin of 1.2."""
    problem = job_set(1, load=100.0, lengths=lengths)
    gpu_s = problem.library.groups[1].time_s.reshape(len(problem.tasks), -1)[:, -1]
    assert np.median(gpu_s) == pytest.approx(1.2 * median_s, rel=0.1)
    assert gpu_s.min() >= 1.2 * 0.5
    assert gpu_s.max() <= 1.2 * 20.0


def test_section_7s_loads_sum_to_the_cap():
    problem = job_set(5, load="medium", family="NMF")
    top_s = np.min(
        [problem.library.groups[k].time_s.reshape(len(problem.tasks), -1)[:, -1] for k in (0, 1)],
        axis=0,
    )
    loads = top_s / (problem.tasks.deadline_s - problem.tasks.arrival_s)
    assert loads.sum() == pytest.approx(1.4, abs=0.1)
    assert loads.max() <= 0.1 + 1e-9
