from __future__ import annotations

import numpy as np
import pytest

from downclock.report.gantt import LETTERS, _covered, gantt
from downclock.schedule.schedule import ON, Outcomes, PowerSpans, Schedule, Segments
from tests.generated import random_problem, random_schedule


def test_covered_time_is_shared_out_between_the_stretches():
    edges = np.array([0.0, 10.0, 20.0, 30.0])
    covered = _covered(np.array([5.0, 12.0]), np.array([15.0, 14.0]), edges)
    # 5-15 covers half of the first and half of the second stretch, 12-14 a fifth of the second.
    assert covered == pytest.approx([0.5, 0.7, 0.0])


def test_an_open_span_covers_to_the_end():
    covered = _covered(np.array([10.0]), np.array([np.inf]), np.array([0.0, 10.0, 20.0]))
    assert covered.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("seed", range(5))
def test_every_row_is_as_wide_as_asked_and_busy_rows_are_those_that_run(seed):
    problem = random_problem(seed)
    schedule = random_schedule(problem, seed)
    lines = gantt(problem, schedule, width=80, letters=LETTERS)
    rows = lines[:-2]
    assert {len(line) for line in lines[:-1]} == {80}
    assert len(rows) == problem.platform.processor_count
    busy = {k for k, row in enumerate(rows) if set(row.split("|")[1]) & set(LETTERS[2:])}
    assert busy == set(schedule.segments.processor.tolist())


def test_many_processors_are_drawn_by_server():
    from downclock.workloads.mei import Cluster, offline

    problem = offline(0, utilisation=0.01, cluster=Cluster(pairs=64, per_server=8))
    one = np.ones((1, 3))
    zero = np.array([0])
    schedule = Schedule(
        Segments.of(zero, np.array([9]), np.array([0.0]), np.array([100.0]), one),
        PowerSpans(np.array([1]), np.array([ON]), np.array([0.0]), np.array([100.0])),
        Outcomes.all_done(len(problem.tasks)),
    )
    rows = gantt(problem, schedule, width=60, letters=LETTERS)[:-2]
    assert len(rows) == 8
    # One of the eight processors of the second server is busy: at most a quarter.
    assert set(rows[1].split("|")[1]) == {LETTERS[2]}
    assert set(rows[0].split("|")[1]) == {" "}
