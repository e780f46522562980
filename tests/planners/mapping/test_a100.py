"""Measured A100 tables with section 7's deadlines."""

from __future__ import annotations

import numpy as np

from downclock.papers.liu.a100 import jobs_on, measured_a100, one_set


def test_a_level_a_job_beats_the_best_common_clock_and_the_top_clock(shared_data):
    """At most 0.77 of the top clock's energy on average, no set worse than its best cap."""
    found = measured_a100(shared_data / "dvfs" / "a100")
    ratios = [one_set(jobs_on(found, 1.8, seed), seed) for seed in range(3)]
    cap, ours = np.array([pair for pair in ratios if pair is not None]).T
    assert ours.size >= 2
    assert np.all(ours <= cap)
    assert ours.mean() <= 0.77
