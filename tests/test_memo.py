"""Answers kept with a frozen object: computed once, and no part of it."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.memo import Memo
from tests.generated import random_problem


def test_an_answer_is_computed_the_first_time_it_is_asked():
    memo, asked = Memo(), []
    for _ in range(3):
        assert memo.once("square", lambda: asked.append(1) or 49) == 49
    assert len(asked) == 1


def test_a_refusal_is_kept_too():
    memo, asked = Memo(), []

    def refuse():
        asked.append(1)
        raise InvalidInput("is not ours", item="task 'a'")

    for _ in range(2):
        with pytest.raises(InvalidInput, match="task 'a': is not ours"):
            memo.once("ours", refuse)
    assert len(asked) == 1


def test_a_problem_keeps_its_frontiers():
    problem = random_problem(4)
    assert problem.frontier(0) is problem.frontier(np.int64(0))


def test_another_problem_and_a_pickled_one_start_without_answers():
    problem = random_problem(4)
    known = problem.frontier(0)
    again, renamed = pickle.loads(pickle.dumps(problem)), replace(problem, name="other")
    for other in (again, renamed):
        assert other.frontier(0) is not known
        assert np.array_equal(other.frontier(0).t_opt_s, known.t_opt_s)
    assert len(pickle.dumps(problem)) == len(pickle.dumps(again))
