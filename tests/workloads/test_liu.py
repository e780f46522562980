"""Job sets of liu: loads, margins and powers are those of its section 7 and Table 2."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.problem.problem import Problem
from downclock.units import Floats
from downclock.workloads.liu import (
    ACTUAL,
    FAMILIES,
    GPU_TIME_S,
    HD_5770,
    LOAD_RANGE,
    LOADS,
    MARGIN,
    XEON_5160,
    Box,
    PowerReading,
    job_set,
)


def worst_s(problem: Problem) -> tuple[Floats, Floats]:
    """Worst-case times on the CPU and on the GPU, at their top levels."""
    cpu, gpu = (problem.frontier(kind).t_min_s for kind in (0, 1))
    return cpu, gpu


def loads(problem: Problem) -> Floats:
    """Def. 3: the time on the faster processor over the time to the deadline."""
    window_s = problem.tasks.deadline_s - problem.tasks.arrival_s
    return np.minimum(*worst_s(problem)) / window_s


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("family", FAMILIES)
def test_loads_sum_to_the_cap_and_every_job_fits_on_its_slower_processor(
    load: str, family: str
) -> None:
    problem = job_set(7, load=load, family=family)
    mine = loads(problem)
    assert mine.sum() == pytest.approx(LOADS[load])
    assert np.all((mine[:-1] >= LOAD_RANGE[0]) & (mine[:-1] <= LOAD_RANGE[1]))
    assert mine[-1] <= LOAD_RANGE[1]  # what is left
    window_s = problem.tasks.deadline_s - problem.tasks.arrival_s
    assert np.all(np.maximum(*worst_s(problem)) <= window_s * (1.0 + 1e-9))


@pytest.mark.parametrize("family", FAMILIES)
def test_times_are_measured_ones_with_the_margin(family: str) -> None:
    problem = job_set(3, family=family, lengths="uniform")
    cpu_s, gpu_s = worst_s(problem)
    assert np.all((gpu_s >= MARGIN * GPU_TIME_S[0]) & (gpu_s <= MARGIN * GPU_TIME_S[1]))
    least, most = FAMILIES[family]
    assert np.all((cpu_s / gpu_s >= least) & (cpu_s / gpu_s <= most))
    spread = problem.tasks.spread
    assert spread is not None
    assert spread.text(0) == f"uniform:{ACTUAL[0] / MARGIN!r}:{ACTUAL[1] / MARGIN!r}"


@pytest.mark.parametrize("reading", ["switching", "cubic", "scaled"])
def test_the_top_level_draws_what_table_2_says(reading: PowerReading) -> None:
    for device, tdp_w in ((XEON_5160, 80.0), (HD_5770, 108.0)):
        assert device.power_w("clock", reading)[-1] == pytest.approx(tdp_w)


def test_lower_levels_follow_the_reading() -> None:
    # HD 5770 at 500 MHz and 1 V of 850 MHz and 1.25 V; idle 18 W of 108 W.
    v, f = 1.0 / 1.25, 500.0 / 850.0
    assert HD_5770.power_w("clock", "switching")[1] == pytest.approx(18.0 + 90.0 * v**2 * f)
    assert HD_5770.power_w("clock", "cubic")[1] == pytest.approx(18.0 + 90.0 * f**3)
    assert HD_5770.power_w("voltage", "cubic")[1] == pytest.approx(18.0 + 90.0 * v**3)
    lighter = 18.0 + (54.0 - 18.0) * v**2 * f  # half the power at the top, twice that
    assert HD_5770.power_w("clock", "scaled")[1] == pytest.approx(2.0 * lighter)


def test_speed_is_the_clock_or_the_voltage() -> None:
    by_clock, by_voltage = job_set(5), job_set(5, box=Box(speed="voltage"))
    slowest = [problem.frontier(1).t_max_s / problem.frontier(1).t_min_s for problem in
               (by_clock, by_voltage)]  # fmt: skip
    assert slowest[0] == pytest.approx(850.0 / 148.0)
    assert slowest[1] == pytest.approx(1.25 / 0.95)


def test_the_box_is_on_from_the_start_and_only_its_cpu_preempts() -> None:
    platform = Box(system_w=60.0, locked=True).platform()
    assert [kind.interrupt for kind in platform.kinds] == ["preempt", "none"]
    assert [kind.clock for kind in platform.kinds] == ["locked", "locked"]
    assert platform.initially_on.tolist() == [True]
    assert platform.host_w.tolist() == [60.0]


def test_arrivals_are_sorted_within_their_time_and_sets_repeat() -> None:
    problem = job_set(11, arrivals_s=500.0)
    arrival_s = problem.tasks.arrival_s
    assert np.all(np.diff(arrival_s) >= 0.0)
    assert 0.0 < arrival_s[0] < arrival_s[-1] < 500.0
    again = job_set(11, arrivals_s=500.0)
    assert again.tasks.deadline_s.tolist() == problem.tasks.deadline_s.tolist()


def test_an_unknown_benchmark_is_refused() -> None:
    with pytest.raises(InvalidInput, match="family='FFT' must be one of NMF, MM, MT, MO"):
        job_set(0, family="FFT")
