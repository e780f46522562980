"""What an experiment yields: one row per published number or claim, ours beside it, a verdict.

A paper is a module with ``items() -> dict[str, Item]``; an item is a table, a figure or a claim of
the text, and running it yields rows. Verdicts follow from the numbers and every one of them can
come out otherwise: that is what the functions here are for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

Verdict: TypeAlias = Literal[
    "exact",
    "within interval",
    "holds",
    "does not hold",
    "differs",
    "by chance",
    "not repeated",
    "consistent",
    "contradicts itself",
    "unexplained",
    "undecided",
    "not run",
    "ours only",
]

MEANING: dict[Verdict, str] = {
    "exact": "a printed number that was computed, equal in every printed digit",
    "within interval": "a printed mean inside the 95 % prediction interval of a mean like it, drawn"
    " by our process; from ten sets or more, the interval narrower than half the number",
    "holds": "a claim (more than, less than, the least of) that our numbers bear out",
    "does not hold": "a claim that our numbers refute",
    "differs": "a printed number that is not ours; the reason was tested: a switch, named in the"
    " note with what it gives: the printed number, or a mean whose interval holds it",
    "by chance": "a printed mean outside its interval, among numbers of the same sets of which no"
    " more lie outside, none farther off, and no algorithm's to one side, than ten of our own sets"
    " do in 5 % of draws; the note gives the three shares",
    "not repeated": "a printed mean outside its interval, and not by chance, that its authors did"
    " not get again: their own repeat with other sets, in the note, lies inside our interval; with"
    " DVFS under a rule that other loads show to be the first file's, or less its change there",
    "consistent": "a printed number or claim that the paper's own numbers bear out; not run by us",
    "contradicts itself": "a printed number or claim that the paper's own numbers refute",
    "unexplained": "a printed number that is not ours, and no switch that we tried gives it; the"
    " note says how far it is off",
    "undecided": "fewer than ten sets, or an interval too wide to tell",
    "not run": "data, programs or rules behind the number are not public, not printed or not"
    " built here; the note says which",
    "ours only": "a number that the paper does not print; not counted",
}

Relation: TypeAlias = Literal["", "<", ">"]
"""How ours must lie to the published value: equal to it, below it, above it."""

Where: TypeAlias = tuple[str, str]
"""Paper and item."""

PUBLISHED_SETS = 10
"""Task sets behind a published mean unless said otherwise (mei's sums are tenths)."""

LEAST_SETS = 10
"""Sets from which a mean is judged."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number or claim of a paper, and ours.

    Attributes:
        paper, item, quantity: what it is, e.g. ``mei2021``, ``fig12``, ``total, l=16, theta=0.9``.
        relation: see `Relation`.
        published: the paper's value; None where it prints none.
        ours: our value, a mean where sets are drawn.
        low, high: where the published value should fall if it came from our process; of a claim,
            where our mean lies.
        unit: of all four numbers.
        sets: sets behind ours; 0 where nothing is drawn.
        verdict: see `MEANING`.
        note: why it differs, and what the switch gives; or what is absent.
        beside: the claim of another row under another reading of the paper; not counted.
    """

    paper: str
    item: str
    quantity: str
    relation: Relation
    published: float | None
    ours: float | None
    low: float | None
    high: float | None
    unit: str
    sets: int
    verdict: Verdict
    note: str = ""
    beside: bool = False


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

    def more(self, times: int) -> range:
        """Seeds of so many times the sets."""
        return range(self.seed, self.seed + times * self.sets)


SAMPLE = Settings(sets=1, quick=True)
"""What a test can run again of every item, to see whether its numbers have moved."""


@dataclass(frozen=True, slots=True)
class Item:
    """A table, figure or claim that can be run."""

    name: str
    title: str
    run: Callable[[Settings], list[Row]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, the interval in which another mean should fall, and the sets behind it."""

    mean: float
    low: float
    high: float
    sets: int = 0


Value: TypeAlias = float | Estimate
"""A number that is computed, or an estimate of one that is drawn."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why ours may differ, and what comes out when the switch it names is set."""

    words: str
    value: Value


def estimate(
    values: Sequence[float], *, published_sets: float = PUBLISHED_SETS, level: float = 0.95
) -> Estimate:
    """Student's prediction interval for the mean of ``published_sets`` further draws.

    With infinitely many it is the confidence interval of our mean. With one value there is no
    interval: low and high are the value itself.
    """
    sample = np.asarray(values, dtype=np.float64)
    mean = float(sample.mean())
    if sample.size < 2:
        return Estimate(mean, mean, mean, sample.size)
    from scipy.stats import t

    spread = float(sample.std(ddof=1)) * np.sqrt(1.0 / sample.size + 1.0 / published_sets)
    half = float(t.ppf(0.5 + level / 2.0, sample.size - 1)) * float(spread)
    return Estimate(mean, mean - half, mean + half, sample.size)


def printed(
    where: Where,
    quantity: str,
    published: float,
    ours: Value,
    unit: str,
    *,
    digits: int = 0,
    reason: Reason | None = None,
) -> Row:
    """Judge a printed number: exact or within its interval, else by the tested ``reason``.

    ``digits`` are the decimals that the paper prints: a computed number is exact where it is
    equal after rounding to them.
    """
    verdict: Verdict = _agreement(published, ours, digits)
    note = ""
    if verdict == "differs":
        tested = "unexplained" if reason is None else _agreement(published, reason.value, digits)
        verdict = "differs" if tested in ("exact", "within interval") else "unexplained"
        note = "" if reason is None else f"{reason.words}: {_with_interval(reason.value)}"
    return _row(where, quantity, "", published, ours, unit, verdict, note)


def claimed(
    where: Where,
    quantity: str,
    relation: Relation,
    limit: float,
    ours: float | Sequence[float],
    unit: str,
    note: str = "",
) -> Row:
    """Judge a one-sided claim: by the value, or by the 95 % interval of the mean of the draws."""
    value = ours if isinstance(ours, (int, float)) else estimate(ours, published_sets=np.inf)
    low, high = (value.low, value.high) if isinstance(value, Estimate) else (value, value)
    verdict: Verdict = "undecided"
    enough = not isinstance(value, Estimate) or value.sets >= LEAST_SETS
    if enough and (low > limit or high < limit):
        verdict = "holds" if (low > limit) == (relation == ">") else "does not hold"
    return _row(where, quantity, relation, limit, value, unit, verdict, note)


def against_itself(
    where: Where,
    quantity: str,
    published: float,
    derived: float,
    unit: str,
    *,
    relation: Relation = "",
    digits: int = 0,
    note: str = "",
) -> Row:
    """Judge a printed number or claim by the paper's own numbers, ``derived``."""
    if relation:
        agrees = derived < published if relation == "<" else derived > published
    else:
        agrees = _agreement(published, derived, digits) == "exact"
    verdict: Verdict = "consistent" if agrees else "contradicts itself"
    return _row(where, quantity, relation, published, derived, unit, verdict, note)


def not_run(where: Where, quantity: str, published: float | None, unit: str, reason: str) -> Row:
    """Return a row for a number that could not be computed."""
    return Row(*where, quantity, "", published, None, None, None, unit, 0, "not run", reason)


def ours_only(where: Where, quantity: str, ours: Value, unit: str, note: str = "") -> Row:
    """Return a row for a number that the paper does not print."""
    return _row(where, quantity, "", None, ours, unit, "ours only", note)


def beside(rows: Sequence[Row]) -> list[Row]:
    """Mark claims that other rows count, here under another reading of the paper."""
    return [row if row.verdict == "ours only" else replace(row, beside=True) for row in rows]


def _agreement(published: float, ours: Value, digits: int) -> Verdict:
    """Tell whether a number agrees with the printed one, as far as can be told."""
    if not isinstance(ours, Estimate):
        near = abs(ours - published) <= 0.5 * 10.0**-digits * (1.0 + 1e-9)
        return "exact" if near else "differs"
    if ours.sets < LEAST_SETS:
        return "undecided"
    if not ours.low < published < ours.high:
        return "differs"
    return "within interval" if ours.high - ours.low < 0.5 * abs(published) else "undecided"


def _mean(value: Value) -> float:
    return value.mean if isinstance(value, Estimate) else float(value)


def _with_interval(value: Value) -> str:
    """Say what a switch gives, and where a mean like it may lie."""
    if isinstance(value, Estimate) and value.low < value.high:
        return f"{value.mean:.5g} ({value.low:.4g} to {value.high:.4g})"
    return f"{_mean(value):.5g}"


def _row(
    where: Where,
    quantity: str,
    relation: Relation,
    published: float | None,
    ours: Value,
    unit: str,
    verdict: Verdict,
    note: str,
) -> Row:
    low = high = None
    sets = 0
    if isinstance(ours, Estimate):
        low, high, sets = ours.low, ours.high, ours.sets
    return Row(
        *where, quantity, relation, published, _mean(ours), low, high, unit, sets, verdict, note
    )
