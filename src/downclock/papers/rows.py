"""What an experiment yields: one row per published number, ours beside it and a verdict.

A paper is a module with ``items() -> dict[str, Item]``; an item is a table or figure, and running
it yields rows. Verdicts are computed, never typed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

Verdict: TypeAlias = Literal["exact", "within interval", "differs", "not run"]
"""Equal to the printed digits; inside the interval where the published mean should fall; neither;
or there is nothing to compare."""

PUBLISHED_SETS = 10
"""Task sets behind a published mean unless said otherwise (mei's sums are tenths)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number of a paper and ours.

    Attributes:
        paper, item, quantity: what it is, e.g. ``mei2021``, ``fig12``, ``total, l=16, theta=0.9``.
        published: the paper's value; None where it prints none.
        ours: our value, a mean where sets are drawn.
        low, high: where the published value should fall if it came from our process.
        unit: of all four numbers.
        verdict: computed by `judged`.
        note: why it differs, or was not run; empty where it agrees.
    """

    paper: str
    item: str
    quantity: str
    published: float | None
    ours: float | None
    low: float | None
    high: float | None
    unit: str
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """How much to run.

    Attributes:
        sets: task sets (or graphs, or draws) per mean.
        seed: the first seed.
        quick: leave out what takes more than seconds.
    """

    sets: int = 10
    seed: int = 0
    quick: bool = False

    @property
    def seeds(self) -> range:
        """Seeds of the sets."""
        return range(self.seed, self.seed + self.sets)


@dataclass(frozen=True, slots=True)
class Item:
    """A table or figure that can be run."""

    name: str
    title: str
    run: Callable[[Settings], list[Row]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Our mean and the interval in which another mean of the same process should fall."""

    mean: float
    low: float
    high: float


def estimate(
    values: Sequence[float], *, published_sets: int = PUBLISHED_SETS, level: float = 0.95
) -> Estimate:
    """Student's prediction interval for the mean of ``published_sets`` further draws.

    With one value there is no interval: low and high are the value itself.
    """
    sample = np.asarray(values, dtype=np.float64)
    mean = float(sample.mean())
    if sample.size < 2:
        return Estimate(mean, mean, mean)
    from scipy.stats import t

    spread = float(sample.std(ddof=1)) * np.sqrt(1.0 / sample.size + 1.0 / published_sets)
    half = float(t.ppf(0.5 + level / 2.0, sample.size - 1)) * float(spread)
    return Estimate(mean, mean - half, mean + half)


def judged(
    paper: str,
    item: str,
    quantity: str,
    published: float | None,
    ours: float | Estimate,
    unit: str,
    *,
    digits: int | None = None,
    because: str = "",
) -> Row:
    """Return a row with its verdict; the first arguments are those of `Row`.

    ``ours`` is our value, or an estimate with its interval. ``digits`` are the decimals the paper
    prints: equal after rounding to them is exact. ``because`` is the reason, kept where the
    verdict is "differs" or nothing is published.
    """
    found = ours if isinstance(ours, Estimate) else Estimate(float(ours), float(ours), float(ours))
    verdict = _verdict(published, found, digits)
    note = because if verdict in ("differs", "not run") else ""
    if verdict == "differs" and not note:
        note = "no reason known"
    return Row(
        paper, item, quantity, published, found.mean, found.low, found.high, unit, verdict, note
    )


def not_run(
    paper: str, item: str, quantity: str, published: float | None, unit: str, reason: str
) -> Row:
    """Return a row for a number that could not be computed."""
    return Row(paper, item, quantity, published, None, None, None, unit, "not run", reason)


def _verdict(published: float | None, ours: Estimate, digits: int | None) -> Verdict:
    if published is None:
        return "not run"
    if digits is not None and abs(ours.mean - published) <= 0.5 * 10.0**-digits * (1.0 + 1e-9):
        return "exact"
    if digits is None and abs(ours.mean - published) <= 1e-9 * max(1.0, abs(published)):
        return "exact"
    return "within interval" if ours.low < published < ours.high else "differs"
