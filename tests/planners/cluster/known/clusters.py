"""Small clusters of one's own, drawn: three kinds with measured clocks, host, sleep and wakes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from downclock.power.library import Library
from downclock.power.points import ClockTable
from downclock.power.profiles import MeasuredProfiles
from downclock.problem.graph import Edges
from downclock.problem.limits import Limits
from downclock.problem.platform import ClockRule, Kind, Platform, ServerSpec
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks

HOUR_S = 3600.0

CLOCKS = np.linspace(0.45, 1.0, 9)
TABLE = ClockTable(1000.0 * CLOCKS, np.full(CLOCKS.size, 1000.0), 1000.0, 1000.0)


def kind(name: str, idle_w: float, clock: ClockRule = "free") -> Kind:
    return Kind(name, TABLE, idle_w, "none", clock)


A100, V100, CPU = kind("a100", 50.0), kind("v100", 40.0), kind("cpu", 15.0)


def library(rng: np.random.Generator, applications: int, kinds: tuple[Kind, ...]) -> Library:
    """Applications an hour long at the default clock of the first kind, slower on the others."""
    slower = {"a100": (1.0, 1.0, 330.0), "v100": (1.4, 2.2, 250.0), "cpu": (3.0, 9.0, 110.0)}
    time_s, power_w = [], []
    for each in kinds:
        low, high, peak_w = slower[each.name]
        factor = rng.uniform(low, high, applications)
        memory = rng.uniform(0.1, 0.7, applications)
        static = rng.uniform(0.3, 0.5, applications)
        draw_w = rng.uniform(0.6, 1.0, applications) * peak_w
        time_s.append(HOUR_S * factor[:, None] * (memory[:, None] + (1 - memory[:, None]) / CLOCKS))
        power_w.append(draw_w[:, None] * (static[:, None] + (1 - static[:, None]) * CLOCKS**2.4))
    rows = applications * len(kinds)
    profiles = MeasuredProfiles(
        np.arange(rows + 1) * CLOCKS.size,
        np.tile(CLOCKS, rows),
        np.ones(rows * CLOCKS.size),
        np.concatenate(time_s).ravel(),
        np.concatenate(power_w).ravel(),
    )
    names = np.array([f"app{i}" for i in range(applications)], dtype=object)
    row = np.arange(rows).reshape(len(kinds), applications).T
    group = np.zeros((applications, len(kinds)), dtype=np.int64)
    return Library(names, tuple(k.name for k in kinds), (profiles,), group, row)


def jobs(
    rng: np.random.Generator,
    count: int,
    applications: int,
    *,
    day_s: float = 24 * HOUR_S,
    slack: tuple[float, float] = (1.2, 4.0),
    gangs: tuple[int, ...] = (1,),
) -> Tasks:
    """Jobs over a day, minutes to hours long, most with some slack."""
    scale = np.exp(rng.normal(0.0, 0.8, count)).clip(0.1, 6.0)
    arrival_s = np.sort(rng.uniform(0.0, day_s, count))
    deadline_s = arrival_s + scale * HOUR_S * rng.uniform(*slack, count) + 600.0
    return Tasks(
        np.array([f"t{i}" for i in range(count)], dtype=object),
        rng.integers(applications, size=count),
        scale,
        arrival_s,
        deadline_s,
        rng.choice(gangs, size=count),
    )


def own_cluster(seed: int, count: int) -> Problem:
    """2 × 8 A100, 3 × 4 V100 and 4 × 2 CPU with host, sleep and wake power."""
    rng = np.random.default_rng([seed, 18])
    kinds = (A100, V100, CPU)
    wake_s = float(rng.choice([0.0, 120.0, 300.0]))
    specs = (
        ServerSpec("a", (("a100", 8),), 2, host_w=600.0, sleep_w=20.0, wake_j=1.8e5, wake_s=wake_s),
        ServerSpec("v", (("v100", 4),), 3, host_w=350.0, sleep_w=12.0, wake_j=9e4, wake_s=wake_s),
        ServerSpec("c", (("cpu", 2),), 4, host_w=90.0, sleep_w=5.0, wake_j=2e4, wake_s=wake_s),
    )
    profiles = library(rng, 12, kinds)
    return Problem(
        jobs(rng, count, 12), profiles, Platform.build(kinds, specs), name=f"own-{seed}-{count}"
    )


def two_by_four(seed: int, count: int, clock: ClockRule = "free") -> Problem:
    """2 × 4 A100 with 400 W of host and wakes of 0.5 MJ."""
    rng = np.random.default_rng([seed, 24])
    kinds = (kind("a100", 50.0, clock),)
    spec = ServerSpec("a", (("a100", 4),), 2, host_w=400.0, wake_j=5e5, wake_s=180.0)
    profiles = library(rng, 8, kinds)
    tasks = jobs(rng, count, 8, day_s=12 * HOUR_S)
    return Problem(tasks, profiles, Platform.build(kinds, (spec,)), name=f"two-{seed}-{count}")


def busy_day(
    seed: int,
    count: int,
    *,
    kinds: int = 1,
    servers: int = 4,
    size: int = 4,
    gangs: tuple[int, ...] = (1,),
    workflows: bool = False,
    prices: bool = False,
    host_w: float = 400.0,
) -> Problem:
    """A day of jobs, gangs or workflows on equal servers of one or two kinds."""
    rng = np.random.default_rng([seed, 31])
    used = (A100, V100)[:kinds]
    specs = tuple(
        ServerSpec(each.name, ((each.name, size),), servers, host_w=host_w, wake_j=1e5, wake_s=60.0)
        for each in used
    )
    tasks = jobs(rng, count, 10, day_s=20 * HOUR_S, slack=(1.6, 5.0), gangs=gangs)
    edges = _workflows(rng, count) if workflows else Edges()
    if workflows:
        tasks = _one_window(tasks, edges)
    day = day_prices(rng) if prices else Prices()
    return Problem(
        tasks, library(rng, 10, used), Platform.build(used, specs), edges, day, name=f"day-{seed}"
    )


def _workflows(rng: np.random.Generator, count: int) -> Edges:
    """Workflows of three to six neighbouring jobs: each after one or two before it."""
    before, after, first = [], [], 0
    while first < count:
        size = min(int(rng.integers(3, 7)), count - first)
        for i in range(1, size):
            for j in rng.choice(i, size=min(i, int(rng.integers(1, 3))), replace=False):
                before.append(first + int(j))
                after.append(first + i)
        first += size
    return Edges(np.array(before), np.array(after))


def _one_window(tasks: Tasks, edges: Edges) -> Tasks:
    """Jobs of a workflow arrive with its first, and share the deadline of a path through it."""
    arrival_s, deadline_s = tasks.arrival_s.copy(), tasks.deadline_s.copy()
    for before, after in sorted(zip(edges.before.tolist(), edges.after.tolist(), strict=True)):
        room_s = deadline_s[after] - tasks.arrival_s[after]
        arrival_s[after] = min(arrival_s[after], arrival_s[before])
        deadline_s[after] = max(deadline_s[after], deadline_s[before] + room_s)
    return Tasks(
        tasks.name, tasks.application, tasks.scale, arrival_s, deadline_s, tasks.processors
    )


def day_prices(rng: np.random.Generator) -> Prices:
    """Hourly prices of three days that fall at noon, with noise."""
    hour = np.arange(96)
    price = 0.10 - 0.05 * np.cos((hour - 1) * np.pi / 12 * 2) + rng.normal(0, 0.01, hour.size)
    curve = Curve(hour * HOUR_S, np.maximum(price, 0.0), 96 * HOUR_S)
    return Prices((("default", ZonePrices(curve)),))


def strangers(seed: int) -> Problem:
    """A few jobs on a few servers, as people send them: gangs, edges, limits, prices, or none."""
    rng = np.random.default_rng([seed, 47])
    kinds = tuple((A100, V100, CPU)[i] for i in sorted(rng.permutation(3)[: rng.integers(1, 4)]))
    wake_s = float(rng.choice([0.0, 60.0, 300.0]))
    sizes = [int(rng.choice([1, 2, 4, 8])) for _ in kinds]
    specs = [
        ServerSpec(
            each.name, ((each.name, size),), int(rng.integers(1, 4)),
            host_w=float(rng.choice([0.0, 100.0, 500.0])), sleep_w=float(rng.choice([0.0, 15.0])),
            wake_j=float(rng.choice([0.0, 2e4, 3e5])), wake_s=wake_s,
            initially_on=bool(rng.uniform() < 0.3),
        )
        for each, size in zip(kinds, sizes, strict=True)
    ]  # fmt: skip
    if rng.uniform() < 0.4:
        odd = ((kinds[0].name, max(1, sizes[0] - 1)),)
        specs.append(ServerSpec("odd", odd, 1, host_w=240.0, wake_j=1e4))
    count = int(rng.choice([3, 5, 8, 12, 20, 40]))
    gangs = (1, 1, 1, 2, min(4, max(sizes))) if rng.uniform() < 0.5 else (1,)
    tasks = jobs(rng, count, 6, day_s=rng.uniform(1.0, 24.0) * HOUR_S, gangs=gangs)
    edges = _workflows(rng, count) if rng.uniform() < 0.35 else Edges()
    prices = day_prices(rng) if rng.uniform() < 0.4 else Prices()
    platform = Platform.build(kinds, tuple(specs))
    platform = replace(platform, limits=_site_limits(rng, platform))
    tasks = _one_window(tasks, edges) if len(edges) else tasks
    return Problem(tasks, library(rng, 6, kinds), platform, edges, prices, name=f"strange-{seed}")


def _site_limits(rng: np.random.Generator, platform: Platform) -> Limits:
    """A cap between one and all servers at work, and one server that is down for a while."""
    peak_w = {"a100": 300.0, "v100": 220.0, "cpu": 100.0}
    of_kind_w = np.array([peak_w[each.name] for each in platform.kinds])
    full_w = float(platform.host_w.sum() + of_kind_w[platform.kind].sum())
    cap_w = rng.uniform(0.3, 1.0) * full_w if rng.uniform() < 0.35 else None
    from_s = rng.uniform(0.0, 12.0) * HOUR_S
    down = [(int(rng.integers(platform.server_count)), from_s, from_s + 4.0 * HOUR_S)]
    return Limits.of(cap_w, down=down if rng.uniform() < 0.3 else [])
