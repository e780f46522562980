"""Random problems that use the whole model, and random valid answers to them. Seeded.

`random_problem` mixes kinds (continuous and enumerated GPU clocks, CPU clocks, measured tables),
server sizes, chip-wide clocks, wake time and energy, slots, gangs, milestones, edges, zones with
prices, and every interrupt and clock rule. `random_schedule` (from `tests.generated_schedule`)
answers such a problem with a schedule that is valid by construction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.power.library import Library
from downclock.power.points import MEI_LAW, NARROW_2017, WIDE, ClockRange, Clocks, ClockTable
from downclock.power.profiles import CpuProfiles, GpuProfiles, MeasuredProfiles
from downclock.problem.graph import Edges
from downclock.problem.platform import ClockRule, Interrupt, Kind, Platform, ServerSpec
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from tests.generated_schedule import random_schedule

__all__ = ["Knobs", "random_problem", "random_schedule"]

CORE_MHZ = np.array([600.0, 800.0, 1000.0, 1100.0])
GPU_TABLE = ClockTable(np.tile(CORE_MHZ, 2), np.repeat([700.0, 1000.0], 4), 1000.0, 1000.0, MEI_LAW)
CPU_TABLE = ClockTable(np.array([400.0, 700.0, 1000.0, 1300.0]), np.array(1000.0), 1000.0, 1000.0)

FLAVOURS: dict[str, tuple[str, Clocks]] = {
    "gpu-wide": ("gpu", WIDE),
    "gpu-2017": ("gpu", NARROW_2017),
    "gpu-table": ("gpu", GPU_TABLE),
    "cpu": ("cpu", ClockRange(0.2, 2.0)),
    "cpu-table": ("cpu", CPU_TABLE),
    "measured": ("measured", GPU_TABLE),
}
"""Kinds a problem may have: profile model and clocks."""


@dataclass(frozen=True, slots=True)
class Knobs:
    """What a test wants to fix; None leaves it to the seed."""

    tasks: int | None = None
    flavours: tuple[str, ...] | None = None
    interrupt: Interrupt | None = None
    clock: ClockRule | None = None
    chip_wide: bool | None = None
    initially_on: bool | None = None
    wake_s: float | None = None
    slot_s: float | str | None = "any"
    edges: bool | None = None
    gangs: bool | None = None
    milestones: bool | None = None
    deadlines: bool | None = None
    prices: bool | None = None


def random_problem(seed: int, **knobs: object) -> Problem:
    """Return the problem of a seed; ``knobs`` are the fields of `Knobs`."""
    wish = Knobs(**knobs)  # type: ignore[arg-type]
    rng = np.random.default_rng([seed, 1])
    flavours = wish.flavours or tuple(
        rng.choice(list(FLAVOURS), size=int(rng.integers(1, 4)), replace=False)
    )
    platform = _platform(rng, wish, flavours)
    library = _library(rng, flavours, int(rng.integers(2, 6)))
    tasks = _tasks(rng, wish, library, platform)
    edges = _edges(rng, len(tasks)) if _coin(rng, wish.edges) else Edges()
    prices = _prices(rng, platform.zones) if _coin(rng, wish.prices) else Prices()
    return Problem(tasks, library, platform, edges, prices, name=f"random-{seed}")


def _coin(rng: np.random.Generator, wish: bool | None, chance: float = 0.5) -> bool:
    toss = bool(rng.uniform() < chance)
    return toss if wish is None else wish


def _platform(rng: np.random.Generator, wish: Knobs, flavours: tuple[str, ...]) -> Platform:
    kinds = tuple(
        Kind(
            name,
            FLAVOURS[name][1],
            float(rng.uniform(0.0, 50.0)),
            wish.interrupt or str(rng.choice(["none", "pause", "preempt", "migrate"])),  # type: ignore[arg-type]
            wish.clock or str(rng.choice(["free", "locked"])),  # type: ignore[arg-type]
        )
        for name in flavours
    )
    specs = tuple(_server(rng, wish, flavours, i) for i in range(int(rng.integers(1, 4))))
    specs += (_server(rng, wish, flavours, len(specs), all_kinds=True),)
    slot_s = float(rng.choice([2.0, 7.5])) if rng.uniform() < 0.3 else None
    return Platform.build(kinds, specs, slot_s if isinstance(wish.slot_s, str) else wish.slot_s)


def _server(
    rng: np.random.Generator,
    wish: Knobs,
    flavours: tuple[str, ...],
    index: int,
    all_kinds: bool = False,
) -> ServerSpec:
    held = flavours if all_kinds else tuple(rng.choice(flavours, size=1))
    wake_s = float(rng.choice([0.0, 3.0, 11.25])) if wish.wake_s is None else wish.wake_s
    return ServerSpec(
        name=f"s{index}",
        processors=tuple((str(name), int(rng.integers(1, 5))) for name in held),
        count=int(rng.integers(1, 3)),
        zone=str(rng.choice(["north", "south"])),
        chip_wide=_coin(rng, wish.chip_wide),
        shared_w=float(rng.uniform(0.0, 5.0)),
        shared_w_per_clock=float(rng.uniform(0.0, 5.0)),
        host_w=float(rng.uniform(0.0, 100.0)),
        sleep_w=float(rng.uniform(0.0, 5.0)),
        wake_j=float(rng.uniform(0.0, 200.0)),
        wake_s=wake_s,
        initially_on=_coin(rng, wish.initially_on),
    )


def _library(rng: np.random.Generator, flavours: tuple[str, ...], n: int) -> Library:
    """``n`` applications; each lacks some kinds but never all."""
    models = sorted({FLAVOURS[name][0] for name in flavours})
    size = n * len(flavours)
    makers = {"gpu": _gpu_profiles, "cpu": _cpu_profiles, "measured": _measured_profiles}
    groups = tuple(makers[model](rng, size) for model in models)
    group = np.array([[models.index(FLAVOURS[name][0]) for name in flavours]] * n)
    missing = rng.uniform(size=group.shape) < 0.25
    missing[np.arange(n), rng.integers(len(flavours), size=n)] = False
    group[missing] = -1
    row = np.arange(size).reshape(n, len(flavours))
    names = np.array([f"app{i}" for i in range(n)], dtype=object)
    return Library(names, flavours, groups, group, row)


def _gpu_profiles(rng: np.random.Generator, n: int) -> GpuProfiles:
    return GpuProfiles(
        rng.uniform(20.0, 80.0, n),
        rng.uniform(0.0, 40.0, n),
        rng.uniform(20.0, 150.0, n),
        rng.uniform(5.0, 60.0, n),
        rng.uniform(0.0, 1.0, n),
        rng.uniform(0.0, 10.0, n),
    )


def _cpu_profiles(rng: np.random.Generator, n: int) -> CpuProfiles:
    return CpuProfiles(
        rng.uniform(5.0, 60.0, n),
        rng.uniform(1.0, 60.0, n),
        rng.uniform(1.5, 3.0, n),
        rng.uniform(0.0, 20.0, n),
    )


def _measured_profiles(rng: np.random.Generator, n: int) -> MeasuredProfiles:
    """Each row was measured at two to eight of the pairs of `GPU_TABLE`."""
    pairs = [
        np.sort(rng.choice(len(GPU_TABLE.points), size=int(rng.integers(2, 9)), replace=False))
        for _ in range(n)
    ]
    points = GPU_TABLE.points[np.concatenate(pairs)]
    time_s = rng.uniform(5.0, 30.0, len(points)) / points[:, 0]
    offset = np.concatenate([[0], np.cumsum([len(mine) for mine in pairs])])
    power_w = rng.uniform(50.0, 90.0, len(points)) * (1.0 + points[:, 0])
    return MeasuredProfiles(offset, points[:, 0], points[:, 1], time_s, power_w)


def _tasks(rng: np.random.Generator, wish: Knobs, library: Library, platform: Platform) -> Tasks:
    n = int(rng.integers(4, 15)) if wish.tasks is None else wish.tasks
    scale = rng.uniform(0.2, 3.0, n)
    if _coin(rng, wish.milestones):
        scale[rng.uniform(size=n) < 0.15] = 0.0
    arrival_s = np.where(rng.uniform(size=n) < 0.5, 0.0, rng.uniform(0.0, 200.0, n))
    deadline_s = np.full(n, np.inf)
    if _coin(rng, wish.deadlines):
        some = rng.uniform(size=n) < 0.6
        deadline_s[some] = arrival_s[some] + rng.uniform(100.0, 2000.0, some.sum())
    gang = np.ones(n, dtype=np.int64)
    if _coin(rng, wish.gangs):
        gang = rng.integers(1, 4, size=n)
    return Tasks(
        np.array([f"t{i}" for i in range(n)], dtype=object),
        rng.integers(len(library), size=n),
        scale,
        arrival_s,
        deadline_s,
        np.minimum(gang, np.bincount(platform.kind).max()),
    )


def _edges(rng: np.random.Generator, n: int) -> Edges:
    """About one edge per task, forwards in a random order of the tasks."""
    order = rng.permutation(n)
    ends = np.sort(rng.integers(n, size=(n, 2)), axis=1)
    ends = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
    return Edges(order[ends[:, 0]], order[ends[:, 1]])


def _prices(rng: np.random.Generator, zones: tuple[str, ...]) -> Prices:
    """Hourly-like steps of 60 s that may be negative; the last one holds for ever."""
    steps = np.arange(40) * 60.0

    def curve(low: float, high: float) -> Curve:
        return Curve(steps, rng.uniform(low, high, steps.size), np.inf)

    return Prices(
        tuple((zone, ZonePrices(curve(-0.05, 0.4), curve(20.0, 600.0))) for zone in zones)
    )
