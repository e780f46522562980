"""What may go otherwise than promised: run times, failing jobs, failing machines. Seeded.

All draws are made before the run and depend on the problem and the seed alone, so that different
policies meet the same fate.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma
from pathlib import Path
from typing import Any

import numpy as np

from downclock.engine.world import NEVER
from downclock.errors import InvalidInput
from downclock.problem.problem import Problem
from downclock.problem.spread import Spread
from downclock.quantities import require_quantity
from downclock.units import Floats, Ints

LEAST_SHAPE = 0.1
"""Below this Weibull shape nearly all lives are nothing and a few are endless."""

MOST_RETRIES = 1_000
"""A job that failed so often will fail again."""

MOST_FAILURES = 10_000_000
"""More failures of machines than this are a slip in the units."""


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
        server_life: how long a server runs between a repair and its next failure, again and
            again: ``exponential:MEAN_S`` or ``weibull:MEAN_S:SHAPE``. None: this does not happen.
        processor_life: the same of a single processor.
    """

    actual: str | None = None
    fail_jobs: float = 0.0
    retries: int = 3
    fail_servers: float = 0.0
    fail_processors: float = 0.0
    repair_s: float = 3600.0
    server_life: str | None = None
    processor_life: str | None = None

    def __post_init__(self) -> None:
        for field in ("fail_jobs", "fail_servers", "fail_processors"):
            value = getattr(self, field)
            if not 0.0 <= value <= 1.0:
                raise InvalidInput("must be between 0 and 1", field=field, value=value)
        require_quantity("repair_s", self.repair_s, positive=True)
        if not 0 <= self.retries <= MOST_RETRIES:
            rule = f"must be between 0 and {MOST_RETRIES:,}"
            raise InvalidInput(rule, field="retries", value=self.retries)
        for field in ("server_life", "processor_life"):
            Life.parse(getattr(self, field), field)


@dataclass(frozen=True, slots=True)
class Life:
    """Time between a repair and the next failure: Weibull; with shape 1 it is exponential."""

    mean_s: float
    shape: float

    @classmethod
    def parse(cls, text: str | None, field: str = "life") -> Life | None:
        """Read ``exponential:MEAN_S`` or ``weibull:MEAN_S:SHAPE``; None stays None."""
        if text is None:
            return None
        word, *numbers = text.split(":")
        try:
            values = [float(number) for number in numbers]
        except ValueError:
            values = []
        if not all(0.0 < value < np.inf for value in values):
            values = []
        if (word, len(values)) not in (("exponential", 1), ("weibull", 2)):
            rule = "must be exponential:MEAN_S or weibull:MEAN_S:SHAPE with positive numbers"
            raise InvalidInput(rule, field=field, value=text)
        if values[-1] < LEAST_SHAPE and word == "weibull":
            raise InvalidInput(f"needs a shape of {LEAST_SHAPE:g} or more", field=field, value=text)
        return cls(values[0], values[1] if len(values) > 1 else 1.0)

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw lives of ``count`` machines."""
        scale_s = self.mean_s / gamma(1.0 + 1.0 / self.shape)
        return np.asarray(scale_s * rng.weibull(self.shape, count))


NOISELESS = Chances()
"""Nothing unforeseen, except what the tasks' own spread says."""


@dataclass(frozen=True, slots=True, eq=False)
class Fate:
    """What is drawn.

    Attributes:
        work: actual / estimated work of each task (n,).
        breaks: part of the work after which each attempt fails (n, retries + 1), or `NEVER`.
        server_down, server_down_s: servers (k,) that go down, and when; rows are one incident,
            and a server may have several.
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
    def noiseless(self) -> bool:
        """Everything goes as estimated."""
        drawn = np.any(self.work != 1.0) or np.any(self.breaks != NEVER)
        return not (drawn or self.server_down.size or self.processor_down.size)


def draw_fate(problem: Problem, chances: Chances, seed: int) -> Fate:
    """Draw what will happen to a problem. Machines fail between time 0 and the last deadline."""
    rng = np.random.default_rng([seed, 7])
    n = len(problem.tasks)
    work = _work(problem, chances.actual, seed)
    breaks = np.full((n, chances.retries + 1 if chances.fail_jobs > 0.0 else 1), NEVER)
    if chances.fail_jobs > 0.0:
        fails = rng.uniform(size=breaks.shape) < chances.fail_jobs
        breaks[fails] = rng.uniform(0.02, 0.98, int(fails.sum()))
    machines = (
        (problem.platform.server_count, chances.fail_servers, chances.server_life),
        (problem.platform.processor_count, chances.fail_processors, chances.processor_life),
    )
    risky = any(risk > 0.0 or life is not None for _, risk, life in machines)
    end_s, repair_s = _horizon_s(problem) if risky else 0.0, chances.repair_s
    once = [_incidents(rng, n, risk, end_s) for n, risk, _ in machines]
    again = [_failures(rng, n, Life.parse(life), repair_s, end_s) for n, _, life in machines]
    down: list[Any] = [
        np.concatenate(column)
        for both in zip(once, again, strict=True)
        for column in zip(*both, strict=True)
    ]
    server, server_s, processor, processor_s = down
    return Fate(work, breaks, server, server_s, processor, processor_s, repair_s)


def _incidents(
    rng: np.random.Generator, count: int, chance: float, end_s: float
) -> tuple[Ints, Floats]:
    """Machines that go down once, and when."""
    hit = np.flatnonzero(rng.uniform(size=count) < chance)
    return hit, rng.uniform(0.0, 1.0, count)[hit] * end_s


def _failures(
    rng: np.random.Generator, count: int, life: Life | None, repair_s: float, end_s: float
) -> tuple[Ints, Floats]:
    """Machines that fail again and again, and when: a life, a repair, a life, and so on."""
    none = np.empty(0, dtype=np.int64), np.empty(0)
    if life is None:
        return none
    machine, at_s = [none[0]], [none[1]]
    alive, now_s = np.arange(count), np.zeros(count)
    expected, drawn = count * end_s / (life.mean_s + repair_s), 0
    while alive.size:
        if max(expected, drawn) > MOST_FAILURES:
            rule = f"means more than {MOST_FAILURES:,} failures within {end_s:g} s"
            raise InvalidInput(rule, field="life", value=f"{life.mean_s:g} s")
        now_s = now_s + life.draw(rng, alive.size)
        alive, now_s = alive[now_s < end_s], now_s[now_s < end_s]
        machine.append(alive)
        at_s.append(now_s)
        drawn += alive.size
        now_s = now_s + repair_s
    return np.concatenate(machine), np.concatenate(at_s)


def _horizon_s(problem: Problem) -> float:
    """When machines may fail: up to the last deadline or arrival.

    Tasks without a deadline may take twice the time that all processors together need for them.
    """
    tasks, platform = problem.tasks, problem.platform
    ends = np.where(np.isfinite(tasks.deadline_s), tasks.deadline_s, tasks.arrival_s)
    end_s = float(max(ends.max(), 1.0))
    endless = ~np.isfinite(tasks.deadline_s)
    if endless.any():
        fast_s = np.min([problem.frontier(k).t_min_s for k in range(len(platform.kinds))], axis=0)
        busy_s = fast_s[endless & np.isfinite(fast_s)]
        work_s = 2.0 * float(busy_s.sum()) / platform.processor_count
        end_s = max(end_s, float(tasks.arrival_s.max()) + work_s + busy_s.max(initial=0.0))
    return end_s


def _work(problem: Problem, actual: str | None, seed: int) -> Floats:
    n = len(problem.tasks)
    if actual is None:
        spread = problem.tasks.spread
        return np.ones(n) if spread is None else spread.draw(seed)
    if actual.startswith("file:"):
        ratios = read_ratios(actual.removeprefix("file:"))
        return np.asarray(np.random.default_rng(seed).choice(ratios, n))
    one = Spread.parse([actual])
    same = Spread(np.repeat(one.shape, n), np.repeat(one.a, n), np.repeat(one.b, n))
    return same.draw(seed)


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
