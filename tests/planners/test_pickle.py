"""A policy is a value: sent to another process it plans the same."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from downclock.engine.play import plan
from downclock.planners.catalog import CATALOG, policy
from tests.laws.test_policies import READINGS, problem_of


@pytest.mark.parametrize("spec", [*CATALOG, *READINGS])
def test_a_pickled_policy_is_equal_and_plans_the_same(spec: str) -> None:
    made, problem = policy(spec), problem_of(1, spec)
    sent = pickle.loads(pickle.dumps(made))
    assert sent == made
    ours, theirs = plan(problem, made), plan(pickle.loads(pickle.dumps(problem)), sent)
    assert np.array_equal(ours.segments.task, theirs.segments.task)
    assert np.array_equal(ours.segments.start_s, theirs.segments.start_s)
    assert np.array_equal(ours.segments.points, theirs.segments.points)
    assert np.array_equal(ours.spans.end_s, theirs.spans.end_s)
    assert ours.policy == theirs.policy == made.name
