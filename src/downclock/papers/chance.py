"""Chance as a reason: means of the same sets, judged together by three tests that can fail.

All numbers of a group come from the same ten published sets, so they move together. What ten sets
can do is seen in our own: ten of them, drawn again and again, are held against the rest. Chance
stands where as many numbers lie outside their intervals, where one lies as far off, and where the
numbers of one family (an algorithm, with or without DVFS) lean as far to one side, each often
enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from downclock.papers.rows import PUBLISHED_SETS
from downclock.units import Floats, Ints

DRAWS = 2000
TESTS = 3
LEVEL = 0.05
"""A group of sets like ours fails one of the three tests in at most so many cases."""

LEAST_SETS = 2 * PUBLISHED_SETS
"""Sets of ours that it takes to draw ten and hold them against others."""


@dataclass(frozen=True, slots=True)
class Chance:
    """Share of draws of ten of our own sets that are as odd as the published ten.

    Attributes:
        outside, numbers: how many of the published numbers lie outside their intervals.
        many: as many numbers outside.
        far: a number as far off.
        lean: a family that leans as far to one side.
        family: the one that leans farthest.
        by: its mean distance, in standard errors; above 0 where the published numbers are high.
    """

    outside: int
    numbers: int
    many: float
    far: float
    lean: float
    family: str
    by: float

    @property
    def stands(self) -> bool:
        """Whether none of the tests speaks against chance, at `LEVEL` for the three together."""
        return TESTS * min(self.many, self.far, self.lean) >= LEVEL

    @property
    def words(self) -> str:
        """Say how often our own sets are as odd."""
        many, far, lean = (f"{100.0 * each:.1f} %" for each in (self.many, self.far, self.lean))
        return (
            f"{self.outside} of {self.numbers} numbers of these ten sets lie outside; of draws of"
            f" ten of our own sets {many} have as many, {far} one as far off, {lean} an algorithm"
            f" that leans as far to one side as {self.family} ({self.by:+.1f} standard errors)"
        )


def chance(values: Floats, theirs: Floats, families: Sequence[str], seed: int = 0) -> Chance:
    """Judge published means ``theirs`` (numbers,) beside ours, ``values`` (numbers, sets)."""
    rng = np.random.default_rng(seed)
    names, family = np.unique(np.array(families), return_inverse=True)
    sets = values.shape[1]
    off = standard_errors(values, theirs)
    leaning = _means(off, family)
    measured = _oddness(off, family, sets)
    found = np.zeros(TESTS)
    for _ in range(DRAWS):
        order = rng.permutation(sets)
        drawn = values[:, order[:PUBLISHED_SETS]].mean(axis=1)
        rest = values[:, order[PUBLISHED_SETS:]]
        found += _oddness(standard_errors(rest, drawn), family, rest.shape[1]) >= measured
    many, far, lean = (float(each) for each in found / DRAWS)
    most = int(np.argmax(np.abs(leaning)))
    return Chance(
        int(measured[0]), len(off), many, far, lean, str(names[most]), float(leaning[most])
    )


def _oddness(off: Floats, family: Ints, sets: int) -> Floats:
    """Numbers outside, the farthest one, the family that leans most (3,)."""
    from scipy.stats import t

    outside = np.sum(np.abs(off) > t.ppf(0.975, sets - 1))
    return np.array([outside, np.abs(off).max(), np.abs(_means(off, family)).max()])


def _means(off: Floats, family: Ints) -> Floats:
    return np.asarray(np.bincount(family, off) / np.bincount(family))


def standard_errors(values: Floats, theirs: Floats) -> Floats:
    """How far means of ten sets lie above ours, in standard errors of the difference (numbers,)."""
    error = values.std(axis=1, ddof=1) * np.sqrt(1.0 / values.shape[1] + 1.0 / PUBLISHED_SETS)
    gap = theirs - values.mean(axis=1)
    return np.asarray(np.divide(gap, error, out=np.zeros_like(gap), where=error > 0.0))
