"""The authors' own result files, row by row, under the reading that their code has.

Voltage grid with slack, pairs full by peak load, no Algorithm 3, idle energy by the minute: see
`runs`. At time 0 the code treats a batch as any other time (Algorithm 5), but a day's first tasks
as Algorithm 2 does: those whose deadline binds come first, each on a pair of its own. All rows of
a load share ten task sets, so what lies outside its interval is judged together: see `chance`.
Where chance fails, the authors' own repeat of a load tells whether the ten sets are odd or we.
With DVFS some of their rules had changed by then: how far is seen at the other loads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from downclock.papers.chance import LEAST_SETS, Chance, chance
from downclock.papers.mei.runs import GRID, MW_MIN, RHO, Case, Outcome, outcome
from downclock.papers.mei2021 import PAPER, published
from downclock.papers.mei2021.published import LOADS, OFF, REPEAT_SETS, Setting
from downclock.papers.rows import Estimate, Item, Row, Settings, Verdict, estimate, printed
from downclock.units import Floats

TIMES = 3
"""Sets drawn for each one asked for: the published means are ten sets, ours should be surer."""

Part = Callable[[Outcome], float]
PARTS: dict[str, tuple[Part, str]] = {
    "run": (lambda one: one.run_j / MW_MIN, "MW min"),
    "idle": (lambda one: one.idle_j / MW_MIN, "MW min"),
    "servers": (lambda one: float(one.servers), "servers"),
}


def spec(setting: Setting, lengths: str = GRID) -> str:
    """Return the policy of a row under the authors' reading."""
    parts = [lengths if setting.theta != OFF else "dvfs=off"]
    if setting.algorithm == "bin":
        return f"bin:{parts[0]},start=peak-prior,rho={RHO}"
    if setting.algorithm == "edl":
        parts += [f"theta={setting.theta or 1.0:g}"]
    elif setting.algorithm != "lpt-ff":
        parts += ["by=peak"]
    if setting.mode == "online":
        parts += ["start=batch", "group=off", f"rho={RHO}"]
    else:
        parts += ["start=stream"]
    return f"{setting.algorithm}:{','.join(parts)}"


def outcomes(setting: Setting, seeds: range, lengths: str = GRID) -> list[Outcome]:
    """One outcome per set."""
    cases = [Case(setting.mode, s, setting.utilisation, setting.per_server) for s in seeds]
    return [outcome(case, spec(setting, lengths)) for case in cases]


def words(setting: Setting) -> str:
    """Name a row, as ``edl theta=0.9, U=1.6, l=16``."""
    how = " without DVFS" if setting.theta == OFF else ""
    if setting.algorithm == "edl" and setting.theta != OFF:
        how = f" theta={setting.theta:g}"
    return f"{setting.algorithm}{how}, U={setting.utilisation:g}, l={setting.per_server}"


def family(setting: Setting) -> str:
    """Rows that would lean together if a rule were read wrongly."""
    return f"{setting.algorithm}{' without' if setting.theta == OFF else ' with'} DVFS"


def offline(utilisation: float, settings: Settings) -> list[Row]:
    """Two numbers of each row: idle energy, or run energy where nothing idles; servers."""
    found = [
        (setting, ("run" if setting.per_server == 1 else "idle", "servers"))
        for setting in published.authors()
        if setting[:2] == ("offline", utilisation)
        and (not settings.quick or setting.per_server in (1, 16))
    ]
    return compared(f"authors-offline-{utilisation:g}", found, settings)


def online(settings: Settings) -> list[Row]:
    """Run energy, idle energy and servers of each row."""
    found = [
        (setting, ("run", "idle", "servers"))
        for setting in published.authors()
        if setting.mode == "online" and (not settings.quick or setting.per_server in (1, 16))
    ]
    return compared("authors-online", found, settings)


Number = tuple[Setting, str]
"""A row of the files and one of `PARTS`."""


def compared(
    item: str, found: Sequence[tuple[Setting, tuple[str, ...]]], settings: Settings
) -> list[Row]:
    """Judge parts of rows of the authors' files, and what lies outside together."""
    numbers = [(setting, part) for setting, parts in found for part in parts]
    seeds = settings.more(TIMES)
    values = drawn(numbers, seeds)
    rows = [
        _row(item, number, estimate(mine)) for number, mine in zip(numbers, values, strict=True)
    ]
    outside = [k for k, row in enumerate(rows) if row.verdict == "unexplained"]
    if not outside or len(seeds) < LEAST_SETS:
        return rows
    test = _chance(numbers, values)
    for k in outside:
        rows[k] = _outside(rows[k], numbers[k], values[k], test)
    return rows


def drawn(numbers: Sequence[Number], seeds: range) -> Floats:
    """The numbers of our sets (numbers, sets)."""
    settings = dict.fromkeys(setting for setting, _ in numbers)
    ran = {each: outcomes(each, seeds) for each in settings}
    return np.array([[PARTS[part][0](one) for one in ran[setting]] for setting, part in numbers])


def _row(item: str, number: Number, mine: Estimate) -> Row:
    setting, part = number
    quantity = f"{part} of {words(setting)}"
    return printed((PAPER, item), quantity, _published(setting, part), mine, PARTS[part][1])


def _published(setting: Setting, part: str) -> float:
    return float(getattr(published.authors()[setting], part))


def _chance(numbers: Sequence[Number], values: Floats) -> Chance:
    theirs = np.array([_published(*number) for number in numbers])
    return chance(values, theirs, [family(setting) for setting, _ in numbers])


def _outside(row: Row, number: Number, mine: Floats, test: Chance) -> Row:
    """Judge a number outside its interval: chance; or the authors' repeat is ours; or neither."""
    if test.stands:
        return replace(row, verdict="by chance", note=test.words)
    found = repeated(*number)
    if found is None:
        return replace(row, note=f"not chance: {test.words}")
    value, how = found
    like = estimate(mine.tolist(), published_sets=REPEAT_SETS)
    verdict: Verdict = "not repeated" if like.low < value < like.high else "unexplained"
    note = f"{value:.5g} in the authors' repeat with {REPEAT_SETS} other sets{how}; {test.words}"
    return replace(row, verdict=verdict, note=note)


def repeated(setting: Setting, part: str) -> tuple[float, str] | None:
    """A number in the authors' repeat, by the rules of their first file; None where it has none."""
    again = setting._replace(mode="repeat")
    if again not in published.authors():
        return None
    value = _published(again, part)
    if setting.theta == OFF:
        return value, ""
    change = rule_change(setting, part)
    if change is None:
        return None
    moved = f"{change.mean:+.1f} % ({change.low:+.1f} to {change.high:+.1f}) at seven other loads"
    if change.low < 0.0 < change.high:
        return value, f", whose rule here is the first file's: {moved}"
    return value / (1.0 + change.mean / 100.0), f", less what its changed rule adds: {moved}"


def rule_change(setting: Setting, part: str) -> Estimate | None:
    """Percent by which the repeat lies above the first file at the loads that are not in question.

    Sets of both are drawn anew at every load, so what they share is a changed rule.
    """
    pairs = [
        [setting._replace(mode=mode, utilisation=load) for mode in ("repeat", "offline")]
        for load in LOADS
        if load != setting.utilisation
    ]
    if not all(each in published.authors() for pair in pairs for each in pair):
        return None
    ratios = [_published(again, part) / _published(first, part) for again, first in pairs]
    return estimate([100.0 * (ratio - 1.0) for ratio in ratios], published_sets=np.inf)


ITEMS = (
    *(
        Item(
            f"authors-offline-{utilisation:g}",
            f"The authors' file offline.csv, U = {utilisation:g}",
            partial(offline, utilisation),
        )
        for utilisation in LOADS
    ),
    Item("authors-online", "The authors' file online.csv", online),
)
