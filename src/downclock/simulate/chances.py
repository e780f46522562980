"""What may go otherwise than promised: run times, failing jobs, failing machines. Seeded.

All draws are made before the run and depend on the problem and the seed alone, so that different
policies meet the same fate.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from downclock.errors import InvalidInput
from downclock.problem.problem import Problem
from downclock.problem.spread import Spread
from downclock.units import Floats, Ints

NEVER = 2.0
"""A failure after this part of an attempt's work does not happen."""


@dataclass(frozen=True, slots=True)
class Chances:
    """What may happen.

    Attributes:
        actual: actual / estimated work of every task: ``uniform:0.5:1``, ``lognormal:1:0.2``, or
            ``file:ratios.csv`` (one ratio a line, drawn with equal chance). None: the spread
            the tasks state, or exact.
        fail_jobs: chance that an attempt of a job fails, after a uniform part of its work.
        retries: further attempts a job may have; then it has failed.
        fail_servers: chance that a server goes down once while the tasks are there.
        fail_processors: the same of a single processor (a GPU that falls off the bus).
        repair_s: how long a repair takes.
    """

    actual: str | None = None
    fail_jobs: float = 0.0
    retries: int = 3
    fail_servers: float = 0.0
    fail_processors: float = 0.0
    repair_s: float = 3600.0

    def __post_init__(self) -> None:
        for field in ("fail_jobs", "fail_servers", "fail_processors"):
            value = getattr(self, field)
            if not 0.0 <= value <= 1.0:
                raise InvalidInput("must be between 0 and 1", field=field, value=value)
        if not 0.0 < self.repair_s < np.inf:
            raise InvalidInput("must be positive and finite", field="repair_s", value=self.repair_s)
        if self.retries < 0:
            raise InvalidInput("must not be negative", field="retries", value=self.retries)


CALM = Chances()
"""Nothing unforeseen, except what the tasks' own spread says."""


@dataclass(frozen=True, slots=True, eq=False)
class Fate:
    """What is drawn.

    Attributes:
        work: actual / estimated work of each task (n,).
        breaks: part of the work after which each attempt fails (n, retries + 1), or `NEVER`.
        server_down, server_down_s: servers (k,) that go down, and when; rows are one incident.
        processor_down, processor_down_s: the same of processors.
        repair_s: how long each stays down.
    """

    work: Floats
    breaks: Floats
    server_down: Ints
    server_down_s: Floats
    processor_down: Ints
    processor_down_s: Floats
    repair_s: float

    @property
    def calm(self) -> bool:
        """Everything goes as estimated."""
        return bool(
            np.all(self.work == 1.0)
            and np.all(self.breaks == NEVER)
            and self.server_down.size == 0
            and self.processor_down.size == 0
        )


def draw_fate(problem: Problem, chances: Chances, seed: int) -> Fate:
    """Draw what will happen to a problem. Machines fail between time 0 and the last deadline."""
    rng = np.random.default_rng([seed, 7])
    n = len(problem.tasks)
    work = _work(problem, chances.actual, seed)
    breaks = np.full((n, chances.retries + 1 if chances.fail_jobs > 0.0 else 1), NEVER)
    if chances.fail_jobs > 0.0:
        fails = rng.uniform(size=breaks.shape) < chances.fail_jobs
        breaks[fails] = rng.uniform(0.02, 0.98, int(fails.sum()))
    end_s = _horizon_s(problem)
    server, server_s = _incidents(rng, problem.platform.server_count, chances.fail_servers, end_s)
    processor, processor_s = _incidents(
        rng, problem.platform.processor_count, chances.fail_processors, end_s
    )
    return Fate(work, breaks, server, server_s, processor, processor_s, chances.repair_s)


def _incidents(
    rng: np.random.Generator, count: int, chance: float, end_s: float
) -> tuple[Ints, Floats]:
    hit = np.flatnonzero(rng.uniform(size=count) < chance)
    return hit, rng.uniform(0.0, 1.0, count)[hit] * end_s


def _horizon_s(problem: Problem) -> float:
    """The last finite deadline or arrival: when machines may fail."""
    tasks = problem.tasks
    ends = np.where(np.isfinite(tasks.deadline_s), tasks.deadline_s, tasks.arrival_s)
    return float(max(ends.max(), 1.0))


def _work(problem: Problem, actual: str | None, seed: int) -> Floats:
    n = len(problem.tasks)
    if actual is None:
        spread = problem.tasks.spread
        return np.ones(n) if spread is None else spread.draw(seed)
    if actual.startswith("file:"):
        ratios = read_ratios(actual.removeprefix("file:"))
        return np.asarray(np.random.default_rng(seed).choice(ratios, n))
    one = Spread.parse([actual])
    column = np.ones(n)
    spread = Spread(np.full(n, one.shape[0]), column * one.a[0], column * one.b[0])
    return spread.draw(seed)


def read_ratios(path: str | Path) -> Floats:
    """Read actual / estimated ratios, one a line; a first line that is no number is a heading."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InvalidInput(error.strerror or "cannot be read", source=path) from None
    ratios = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            ratio = float(line)
        except ValueError:
            if number == 1:
                continue
            ratio = np.nan
        if not 0.0 < ratio < np.inf:
            rule = "must be a positive number"
            raise InvalidInput(rule, field="ratio", value=line.strip(), source=path, line=number)
        ratios.append(ratio)
    if not ratios:
        raise InvalidInput("holds no ratio", source=path)
    return np.array(ratios)
