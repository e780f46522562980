"""The authors' own result files, row by row, under the reading that their code has.

Voltage grid with slack, pairs full by peak load, Algorithm 5 at time 0, no Algorithm 3, idle energy
by the minute: see `runs`. All rows of a load share ten task sets, so what lies outside its interval
is judged together: as often as ten of our own sets would lie outside?
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from downclock.papers.mei.runs import GRID, MW_MIN, RHO, Case, Outcome, outcome
from downclock.papers.mei2021 import PAPER, published
from downclock.papers.mei2021.published import OFF, Setting
from downclock.papers.rows import PUBLISHED_SETS, Item, Row, Settings, estimate, printed
from downclock.units import Floats

TIMES = 3
"""Sets drawn for each one asked for: the published means are ten sets, ours should be surer."""

Part = Callable[[Outcome], float]
PARTS: dict[str, tuple[Part, str]] = {
    "run": (lambda one: one.run_j / MW_MIN, "MW min"),
    "idle": (lambda one: one.idle_j / MW_MIN, "MW min"),
    "servers": (lambda one: float(one.servers), "servers"),
}
DRAWS = 2000
LEAST_CHANCE = 0.01
"""Below this share of draws with as many outside, chance is no reason."""


def spec(setting: Setting, lengths: str = GRID) -> str:
    """Return the policy of a row under the authors' reading."""
    parts = [lengths if setting.theta != OFF else "dvfs=off"]
    if setting.algorithm == "edl":
        parts += [f"theta={setting.theta or 1.0:g}", "start=stream"]
    elif setting.algorithm == "bin":
        parts += ["start=peak"]
    else:
        parts += ["start=stream", *(["by=peak"] if setting.algorithm != "lpt-ff" else [])]
    parts += [f"rho={RHO}"] if setting.mode == "online" else []
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


def compared(
    item: str, found: Sequence[tuple[Setting, tuple[str, ...]]], settings: Settings
) -> list[Row]:
    """Judge parts of rows of the authors' files, and what lies outside together."""
    seeds = settings.more(TIMES)
    by_size = sorted(found, key=lambda each: each[0].per_server)  # a problem is made once
    ran = {setting: outcomes(setting, seeds) for setting, _ in by_size}
    rows, values, printed_values = [], [], []
    for setting, parts in found:
        for part in parts:
            of, unit = PARTS[part]
            value = getattr(published.authors()[setting], part)
            values.append([of(one) for one in ran[setting]])
            printed_values.append(value)
            quantity = f"{part} of {words(setting)}"
            rows.append(printed((PAPER, item), quantity, value, estimate(values[-1]), unit))
    return _by_chance(rows, np.array(values), np.array(printed_values))


def _by_chance(rows: list[Row], values: Floats, theirs: Floats) -> list[Row]:
    """Give rows outside their interval the reason chance, where it stands the test."""
    outside = sum(row.verdict == "unexplained" for row in rows)
    if not outside or values.shape[1] < 2 * PUBLISHED_SETS:
        return rows
    many, far = chance(values, theirs)
    if min(many, far) < LEAST_CHANCE:
        return rows
    note = (
        f"chance: {outside} of {len(rows)} numbers of these ten sets lie outside; of draws of ten"
        f" of our own sets {100.0 * many:.0f} % have as many, {100.0 * far:.0f} % one as far off"
    )
    return [
        replace(row, verdict="differs", note=note) if row.verdict == "unexplained" else row
        for row in rows
    ]


def chance(values: Floats, theirs: Floats, seed: int = 0) -> tuple[float, float]:
    """Share of draws of ten of our sets with as many numbers outside, and with one as far off.

    ``values`` is (numbers, sets), ``theirs`` the published means (numbers,).
    """
    from scipy.stats import t

    rng = np.random.default_rng(seed)
    sets = values.shape[1]
    off = _standard_errors(values, theirs)
    outside = int(np.sum(off > t.ppf(0.975, sets - 1)))
    limit = float(t.ppf(0.975, sets - PUBLISHED_SETS - 1))
    many = far = 0
    for _ in range(DRAWS):
        order = rng.permutation(sets)
        drawn = values[:, order[:PUBLISHED_SETS]].mean(axis=1)
        found = _standard_errors(values[:, order[PUBLISHED_SETS:]], drawn)
        many += int(np.sum(found > limit)) >= outside
        far += float(found.max()) >= float(off.max())
    return many / DRAWS, far / DRAWS


def _standard_errors(values: Floats, theirs: Floats) -> Floats:
    """How far means of ten sets lie from ours, in standard errors of the difference (numbers,)."""
    error = values.std(axis=1, ddof=1) * np.sqrt(1.0 / values.shape[1] + 1.0 / PUBLISHED_SETS)
    gap = np.abs(values.mean(axis=1) - theirs)
    return np.asarray(np.divide(gap, error, out=np.zeros_like(gap), where=error > 0.0))


ITEMS = (
    *(
        Item(
            f"authors-offline-{utilisation:g}",
            f"The authors' file offline.csv, U = {utilisation:g}",
            partial(offline, utilisation),
        )
        for utilisation in published.LOADS
    ),
    Item("authors-online", "The authors' file online.csv", online),
)
