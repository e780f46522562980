"""Chance is a reason that can fail: by how much lies outside, how far, and to which side."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.papers import chance as module
from downclock.papers.chance import LEVEL, chance, standard_errors
from downclock.units import Floats

FAMILIES = ["a"] * 10 + ["b"] * 10 + ["c"] * 20


@pytest.fixture(autouse=True)
def _fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAWS", 400)


def drawn(seed: int) -> tuple[Floats, Floats]:
    """Forty numbers of thirty sets, and of ten more like them; neighbours move together."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(4, 40))
    sets = 0.5 * np.repeat(common, 10, axis=0) + rng.normal(size=(40, 40))
    return sets[:, :30], sets[:, 30:].mean(axis=1)


def test_sets_like_ours_pass_as_often_as_the_level_says() -> None:
    passed = sum(chance(*drawn(seed), FAMILIES).stands for seed in range(60))
    assert passed >= 60 * (1.0 - LEVEL) - 4


def test_too_many_outside_is_no_chance() -> None:
    values, theirs = drawn(2)
    found = chance(values, theirs + np.where(np.arange(40) % 2, 0.8, -0.8), FAMILIES)
    assert found.many < LEVEL / 3
    assert not found.stands


def test_one_number_far_off_is_no_chance() -> None:
    values, theirs = drawn(2)
    found = chance(values, theirs + np.where(np.arange(40) < 1, 3.0, 0.0), FAMILIES)
    assert found.far < LEVEL / 3
    assert not found.stands


def test_an_algorithm_that_leans_to_one_side_is_no_chance_though_little_lies_outside() -> None:
    """Every number of one family 1.6 standard errors high: none of them is outside by itself."""
    values, theirs = drawn(3)
    theirs[10:20] = values[10:20].mean(axis=1) + 1.6 * values[10:20].std(axis=1, ddof=1) * np.sqrt(
        1 / 30 + 1 / 10
    )
    found = chance(values, theirs, FAMILIES)
    assert (found.family, found.by) == ("b", pytest.approx(1.6))
    assert found.lean < LEVEL / 3
    assert found.many > LEVEL
    assert not found.stands
    assert "as far to one side as b (+1.6 standard errors)" in found.words


def test_distances_have_a_sign_and_the_error_of_both_means() -> None:
    values = np.array([[1.0, 2.0, 3.0, 2.0]])
    error = values.std(ddof=1) * np.sqrt(1 / 4 + 1 / 10)
    assert standard_errors(values, np.array([1.0])) == pytest.approx([-1.0 / error])
