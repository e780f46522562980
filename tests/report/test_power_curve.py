"""Power over time is the integrand of the bill: no joule more, no joule less."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from downclock.report.power_curve import power_curve
from downclock.schedule.account.account import account
from downclock.schedule.account.bill import PARTS
from tests.generated import random_problem
from tests.generated_schedule import random_schedule


@given(seed=st.integers(0, 10_000), most=st.sampled_from([5, 8192]))
def test_its_integral_is_the_bill_part_by_part(seed: int, most: int) -> None:
    problem = random_problem(seed)
    schedule = random_schedule(problem, seed)
    for boundary in ("last-task", "makespan", 5000.0):
        bill = account(problem, schedule, boundary=boundary)
        curve = power_curve(problem, schedule, boundary=boundary, most=most)
        billed = np.array([bill.energy_j[part] for part in PARTS])
        energy_j = np.diff(curve.edge_s) @ curve.watts
        energy_j[PARTS.index("wake")] += curve.wake_j.sum()
        assert energy_j == pytest.approx(billed, rel=1e-9, abs=1e-6 * (1 + bill.total_j))
        assert curve.edge_s.size - 1 <= most or curve.exact


def test_steps_are_exact_where_they_are_few(day) -> None:
    problem, schedule = day
    curve = power_curve(problem, schedule)
    assert curve.exact
    row = 0
    middle = (schedule.segments.start_s[row] + schedule.segments.end_s[row]) / 2
    step = int(np.searchsorted(curve.edge_s, middle)) - 1
    running = (schedule.segments.start_s <= middle) & (schedule.segments.end_s > middle)
    segments = schedule.segments
    kind = problem.platform.kind[segments.processor]
    _, watts = problem.at(segments.task, kind, segments.points)
    assert curve.watts[step, 0] == pytest.approx(watts[running].sum(), rel=1e-9)


def test_wakes_that_take_no_time_are_energy_without_power(day) -> None:
    problem, schedule = day
    curve = power_curve(problem, schedule)
    assert curve.wake_j.tolist() == [360.0] * account(problem, schedule).wakes
    assert not curve.watts[:, PARTS.index("wake")].any()
