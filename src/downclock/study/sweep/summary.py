"""What came out of a sweep: means over seeds, and differences to the baseline, with intervals.

A difference is paired: the same problem, seed and parameters of both policies, and only where
both ran the same tasks. Intervals are Student's, for the mean of runs that differ by their seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from downclock.study.mean import Mean
from downclock.study.sweep.grid import Grid
from downclock.study.sweep.run import DONE


@dataclass(frozen=True, slots=True)
class Cell:
    """Runs that differ by their seed only.

    Attributes:
        problem, policy, spec: as in a run.
        axes: values of the sweep's axes.
        value: what is to be least.
        difference: to the baseline, as a part of it; None for the baseline itself.
        other_tasks: pairs left out because other tasks were run.
    """

    problem: str
    policy: str
    spec: str
    axes: Mapping[str, Any]
    value: Mean
    difference: Mean | None
    other_tasks: int


@dataclass(frozen=True, slots=True)
class SweepSummary:
    """All cells, and the policies over all of them.

    Attributes:
        metric: column that is summed up.
        cells: in the order of the file.
        overall: specs with their difference over all pairs, where there are several problems.
    """

    metric: str
    cells: tuple[Cell, ...]
    overall: tuple[tuple[str, Mean, int], ...]


def summarised(grid: Grid, rows: Sequence[Mapping[str, Any]]) -> SweepSummary:
    """Sum up the rows of a sweep, those of runs that ended well."""
    metric = "objective_value" if grid.runs[0].objective is not None else "total_j"
    # Of each run what it shares with those it is paired with, but for the seed.
    place = {run: (run.problem, run.source, run.chances) for run in grid.runs}
    groups: dict[tuple[Any, ...], dict[int, Mapping[str, Any]]] = {}
    for run, row in zip(grid.runs, rows, strict=True):
        if row["status"] == DONE:
            groups.setdefault((place[run], run.spec), {})[run.seed] = row
    cells: list[Cell] = []
    ratios: dict[str, list[tuple[list[float], int]]] = {}
    for (where, spec), found in groups.items():
        base = groups.get((where, grid.baseline), {})
        pairs, other = _pairs(found, base, metric)
        ratios.setdefault(spec, []).append((pairs, other))
        first = next(iter(found.values()))
        axes = {name: first[name] for name in grid.axes if name in first}
        value = Mean.of(float(row[metric]) for row in found.values())
        difference = None if spec == grid.baseline else Mean.of(pairs)
        named = first["problem"], first["policy"], spec
        cells.append(Cell(*named, axes, value, difference, other))
    overall = tuple(
        (spec, Mean.of(ratio for pairs, _ in each for ratio in pairs), sum(n for _, n in each))
        for spec, each in ratios.items()
        if spec != grid.baseline
    )
    return SweepSummary(metric, tuple(cells), overall if len(set(place.values())) > 1 else ())


def _pairs(
    found: Mapping[int, Mapping[str, Any]], base: Mapping[int, Mapping[str, Any]], metric: str
) -> tuple[list[float], int]:
    """Return the differences of pairs as parts of the baseline, and how many ran other tasks."""
    both = [(row, base[seed]) for seed, row in found.items() if seed in base]
    same = [(mine, theirs) for mine, theirs in both if mine["ran"] == theirs["ran"]]
    ratios = [
        float(mine[metric]) / float(theirs[metric]) - 1.0
        for mine, theirs in same
        if float(theirs[metric]) != 0.0
    ]
    return ratios, len(both) - len(same)
