"""How far a task's actual run time may lie from its estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.errors import InvalidInput
from downclock.units import Floats, Ints

EXACT, UNIFORM, LOGNORMAL = 0, 1, 2
"""Shapes: the estimate itself; uniform in [a, b]; log-normal with median a and sigma b."""

MOST_SIGMA = 5.0
"""Of a log-normal spread: one run in 40 is then 20,000 times as long as the median."""

LEAST_RATIO = 1e-6
"""Of actual to estimated work; the largest is its inverse."""

_WORDS = {"exact": EXACT, "uniform": UNIFORM, "lognormal": LOGNORMAL}


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Distribution of actual work / estimated work, a row per task, each field (n,)."""

    shape: Ints
    a: Floats
    b: Floats

    @classmethod
    def parse(cls, texts: list[str]) -> Spread:
        """Read rows like ``exact``, ``uniform:0.9:1`` or ``lognormal:1:0.2``."""
        rows = [_parse_one(text, row) for row, text in enumerate(texts)]
        shape, a, b = zip(*rows, strict=True) if rows else ((), (), ())
        return cls(np.array(shape, dtype=np.int64), np.array(a, float), np.array(b, float))

    def text(self, row: int) -> str:
        """Write one row the way `parse` reads it."""
        word = next(word for word, code in _WORDS.items() if code == self.shape[row])
        return word if word == "exact" else f"{word}:{float(self.a[row])!r}:{float(self.b[row])!r}"

    def draw(self, seed: int) -> Floats:
        """Draw actual / estimated work for every task."""
        rng = np.random.default_rng(seed)
        uniform = rng.uniform(size=self.shape.size)
        normal = rng.normal(size=self.shape.size)
        drawn = np.ones(self.shape.size)
        is_uniform, is_log = self.shape == UNIFORM, self.shape == LOGNORMAL
        drawn[is_uniform] = (self.a + (self.b - self.a) * uniform)[is_uniform]
        drawn[is_log] = self.a[is_log] * np.exp(self.b[is_log] * normal[is_log])
        return drawn


def _parse_one(text: str, row: int) -> tuple[int, float, float]:
    word, *numbers = text.strip().split(":")
    rule = "must be 'exact', 'uniform:LOW:HIGH' or 'lognormal:MEDIAN:SIGMA'"
    try:
        shape = _WORDS[word or "exact"]
        a, b = (float(number) for number in numbers) if shape != EXACT else (1.0, 1.0)
    except (KeyError, ValueError):
        raise InvalidInput(rule, field="actual", value=text, row=row) from None
    if shape == UNIFORM and not LEAST_RATIO <= a <= b <= 1.0 / LEAST_RATIO:
        rule = f"needs {LEAST_RATIO:g} <= LOW <= HIGH <= {1.0 / LEAST_RATIO:g}"
    elif shape == LOGNORMAL and not (
        LEAST_RATIO <= a <= 1.0 / LEAST_RATIO and 0.0 <= b <= MOST_SIGMA
    ):
        rule = f"needs a MEDIAN from {LEAST_RATIO:g} to {1.0 / LEAST_RATIO:g}"
        rule += f" and a SIGMA from 0 to {MOST_SIGMA:g}"
    else:
        return shape, a, b
    raise InvalidInput(rule, field="actual", value=text, row=row)
