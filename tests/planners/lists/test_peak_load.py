"""Peak load: the fullness of EDF-BF and EDF-WF in mei2021's public code, beside a plain twin."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.problem.problem import Problem
from downclock.units import Floats, Ints
from downclock.workloads import mei

PER_SERVER = 4


def batch() -> Problem:
    """409 tasks that are all there at time 0, four pairs in a server."""
    cluster = mei.Cluster(pairs=1024, per_server=PER_SERVER)
    return mei.offline(3, utilisation=0.2, cluster=cluster)


def placed(deadline_s: Floats, length_s: Floats, *, fullest: bool) -> Ints:
    """Pair of each task, one by one, earliest deadline first."""
    end_s, work_s, peak = np.zeros(0), np.zeros(0), np.zeros(0)
    pair = np.zeros(deadline_s.size, dtype=np.int64)
    for task in np.argsort(deadline_s, kind="stable"):
        fits = np.flatnonzero(end_s + length_s[task] <= deadline_s[task])
        if fits.size:
            score = -peak[fits] if fullest else peak[fits]
            at = int(fits[np.argmin(score)])
        else:
            at = end_s.size
            fresh = np.zeros(PER_SERVER)
            end_s, work_s, peak = (np.append(old, fresh) for old in (end_s, work_s, peak))
        pair[task] = at
        end_s[at] += length_s[task]
        work_s[at] += 60.0 * np.ceil(length_s[task] / 60.0)
        peak[at] = max(peak[at], work_s[at] / deadline_s[task])
    return pair


@pytest.mark.parametrize(("spec", "fullest"), [("edf-bf", True), ("edf-wf", False)])
def test_the_kernel_places_as_the_plain_rule_does(spec: str, fullest: bool) -> None:
    problem = batch()
    segments = plan(problem, policy(f"{spec}:by=peak,start=stream,dvfs=off")).segments
    length_s = np.zeros(len(problem.tasks))
    length_s[segments.task] = segments.end_s - segments.start_s
    expected = placed(problem.tasks.deadline_s, length_s, fullest=fullest)
    assert np.array_equal(segments.processor, expected[segments.task])


def test_full_by_peak_load_is_neither_full_by_end_nor_by_load() -> None:
    chosen = {
        tuple(plan(batch(), policy(f"edf-bf:by={by},start=stream,dvfs=off")).segments.processor)
        for by in ("end", "load", "peak")
    }
    assert len(chosen) == 3
