"""Our online EDL places every task where a line-by-line transcription of the paper does."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.clusters import jobs_of
from benchmarks.rivals.mei_day import edl_day, solve

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.planners.lists.voltage_grid import VoltageGrid
from downclock.workloads import mei
from tests.planners.lists.table3 import told


@pytest.mark.parametrize(("per_server", "theta"), [(1, 1.0), (4, 0.9), (16, 0.5)])
def test_the_same_places_and_the_same_sleep(per_server: int, theta: float) -> None:
    cluster = mei.Cluster(pairs=128, per_server=per_server)
    problem = mei.online(7, utilisation=0.06, initial_utilisation=0.015, cluster=cluster)
    view, every = told(problem)
    jobs = jobs_of(problem)
    wanted = VoltageGrid().wanted(view, 0, every) / 60.0
    shortest = view.frontier(0, every).t_min_s / 60.0
    for i, job in enumerate(jobs):
        job.length, job.shortest = float(wanted[i]), float(shortest[i])
    day = edl_day(jobs, 128, per_server, theta, 2.0)
    spec = f"edl:theta={theta},rho=120,start=stream,grid=0.05"
    schedule = plan(problem, policy(spec))
    mine = np.empty((len(jobs), 3))
    segments = schedule.segments
    length_s = segments.end_s - segments.start_s
    mine[segments.task] = np.column_stack([segments.processor, segments.start_s, length_s])
    theirs = np.array(day.places)
    assert np.array_equal(mine[:, 0], theirs[:, 0])
    assert mine[:, 1] == pytest.approx(theirs[:, 1] * 60.0)
    assert len(day.spans) == len(schedule.spans)
    assert np.sort(schedule.spans.end_s) == pytest.approx(np.sort([s[2] * 60.0 for s in day.spans]))


def test_the_rivals_grid_is_ours() -> None:
    problem = mei.online(8, utilisation=0.05, initial_utilisation=0.02)
    jobs = jobs_of(problem)
    for job in jobs:
        solve(job)
    view, every = told(problem)
    wanted = VoltageGrid().wanted(view, 0, every) / 60.0
    assert [job.length for job in jobs] == pytest.approx(wanted, rel=1e-9)
