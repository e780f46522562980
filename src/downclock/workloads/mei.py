"""Task sets and clusters of mei2021 and mei2017: GPU tasks with deadlines, one batch or one day.

What the papers print and what their published numbers need differ in places; each reading is a
named argument, the default being the one that reproduces (docs/background/gpu-clusters.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.errors import InvalidInput
from downclock.power.library import Library
from downclock.power.points import WIDE, Clocks
from downclock.power.profiles import GpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.units import Floats, Ints

PAIR = "pair"
"""Name of the papers' processor: a CPU and a GPU that work together."""

MINUTE_S = 60.0
DAY_MINUTES = 1440
BASE_PAIRS = 1024
"""A task set utilisation of 1 is a sum of task utilisations of 1024 (mei2021 section 5.1.3)."""

MEAN_UNITS = 5.16
"""Mean run time of an application in the printed ranges: D + t0 (section 5.1.3)."""

PRINTED = {
    "p_star": (175.0, 206.0),
    "gamma": (0.1, 0.2),
    "p0": (0.20, 0.41),
    "delta": (0.07, 0.91),
    "d": (1.66, 7.61),
    "t0": (0.1, 0.95),
}
"""Ranges of mei2021 section 5.1.3. They are the confidence intervals of the mean of a fit, not the
ranges of its applications, but the published sets were drawn from them."""

TASK_UTILISATION = {"text": (0.0, 1.0), "offline": (0.25, 0.75), "online": (0.15, 0.85)}
"""Task utilisations as the text says, and as the published offline and online numbers need."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The papers' cluster; the defaults are mei2021's, `MEI2017` holds the other paper's.

    Attributes:
        pairs: processors in all.
        per_server: pairs in a server (the papers' l).
        idle_w: idle power of a pair.
        turn_on_j: energy to turn on (the papers' Delta, watt-minutes in fact), per pair, or per
            server as the published numbers have it.
        turn_on_per: "pair" (Eq. 7) or "server" (the authors' code).
        clocks: the scaling interval.
    """

    pairs: int = 2048
    per_server: int = 16
    idle_w: float = 37.0
    turn_on_j: float = 90.0 * MINUTE_S
    turn_on_per: str = "pair"
    clocks: Clocks = WIDE

    def platform(self, kind: str = PAIR) -> Platform:
        """Expand to servers of one kind of processor, all asleep at the start."""
        if self.turn_on_per not in ("pair", "server"):
            rule = "must be pair or server"
            raise InvalidInput(rule, field="turn_on_per", value=self.turn_on_per)
        if self.per_server < 1 or self.pairs < self.per_server:
            rule = f"must be between 1 and pairs={self.pairs}"
            raise InvalidInput(rule, field="per_server", value=self.per_server)
        wakes = self.per_server if self.turn_on_per == "pair" else 1
        pairs, count = ((kind, self.per_server),), self.pairs // self.per_server
        server = ServerSpec("s", pairs, count=count, wake_j=self.turn_on_j * wakes)
        spec = Kind(kind, self.clocks, idle_w=self.idle_w, clock="locked")
        return Platform.build((spec,), (server,))


MEI2021 = Cluster()
"""The journal paper's cluster (section 5.1.2), 16 pairs in a server."""

MEI2017 = Cluster(idle_w=85.0, turn_on_j=200.0 * MINUTE_S)
"""The conference paper's cluster (section V-A)."""


def offline(
    seed: int,
    *,
    utilisation: float = 1.6,
    task_utilisation: str | tuple[float, float] = "offline",
    library: Library | None = None,
    cluster: Cluster = MEI2021,
) -> Problem:
    """One batch of tasks that are all there at time 0 (mei2021 section 5.3)."""
    rng = np.random.default_rng(seed)
    n = _count(utilisation)
    return _problem(rng, np.zeros(n), task_utilisation, library, cluster, f"mei-offline-{seed}")


def online(
    seed: int,
    *,
    utilisation: float = 1.6,
    initial_utilisation: float = 0.4,
    days: int = 1,
    task_utilisation: str | tuple[float, float] = "online",
    library: Library | None = None,
    cluster: Cluster = MEI2021,
) -> Problem:
    """A day (or more) of Poisson arrivals after an initial batch (mei2021 section 5.4).

    The Poisson counts per minute are refined to the exact number of tasks, as the papers do.
    """
    rng = np.random.default_rng(seed)
    at_zero, later = _count(initial_utilisation), _count(utilisation) * days
    minute = _arrival_minutes(rng, later, DAY_MINUTES * days)
    arrival_s = np.concatenate([np.zeros(at_zero), minute * MINUTE_S])
    return _problem(rng, arrival_s, task_utilisation, library, cluster, f"mei-online-{seed}")


def printed_profiles(rng: np.random.Generator, n: int) -> GpuProfiles:
    """Draw every parameter by itself, uniformly in its printed range."""
    draw = {name: rng.uniform(low, high, n) for name, (low, high) in PRINTED.items()}
    p0_w, gamma_w = draw["p0"] * draw["p_star"], draw["gamma"] * draw["p_star"]
    c_w = draw["p_star"] - p0_w - gamma_w
    return GpuProfiles(p0_w, gamma_w, c_w, draw["d"], draw["delta"], draw["t0"])


def shrunk(library: Library, divisor: float = 13.0) -> Library:
    """Divide P0 and gamma of every GPU profile: the papers' "potential of DVFS" (36 %)."""
    return library.with_less_constant_power(divisor)


def _count(utilisation: float) -> int:
    """Number of tasks: mean task utilisation is one half, so 2048 per unit."""
    if not (np.isfinite(utilisation) and utilisation >= 0.0):
        raise InvalidInput("must not be negative", field="utilisation", value=utilisation)
    return int(2 * BASE_PAIRS * utilisation + 1e-9)


def _arrival_minutes(rng: np.random.Generator, n: int, minutes: int) -> Ints:
    """Arrival minute of each task, 1..minutes, ascending: Poisson counts refined to sum to n."""
    counts = rng.poisson(n / minutes, minutes)
    while (excess := int(counts.sum()) - n) != 0:
        slot = rng.integers(minutes)
        if excess < 0:
            counts[slot] += 1
        elif counts[slot] > 0:
            counts[slot] -= 1
    return np.repeat(np.arange(1, minutes + 1), counts)


def _problem(
    rng: np.random.Generator,
    arrival_s: Floats,
    task_utilisation: str | tuple[float, float],
    library: Library | None,
    cluster: Cluster,
    name: str,
) -> Problem:
    """Draw a task per arrival; deadline = arrival + default run time / utilisation."""
    n = arrival_s.size
    if library is None:
        names = np.array([f"a{i}" for i in range(n)], dtype=object)
        library = Library.of_one_kind(names, PAIR, printed_profiles(rng, n))
        application, unit_s = np.arange(n), MINUTE_S
    else:
        application = rng.integers(len(library), size=n)
        # A library's applications get the papers' mean run time of about 5.2 units.
        every = np.arange(len(library))
        points = np.tile(cluster.clocks.default, (every.size, 1))
        mean_s = float(np.mean(library.at(every, library.kinds[0], points)[0]))
        unit_s = MINUTE_S / (mean_s / MEAN_UNITS)
    kind = library.kinds[0]
    scale = rng.integers(10, 51, n).astype(np.float64) * unit_s
    point = np.tile(cluster.clocks.default, (n, 1))
    default_s = library.at(application, kind, point)[0] * scale
    low, high = _range(task_utilisation)
    used = low + (high - low) * (1.0 - rng.uniform(size=n))
    tasks = Tasks.of(
        application, deadline_s=arrival_s + default_s / used, arrival_s=arrival_s, scale=scale
    )
    return Problem(tasks, library, cluster.platform(kind), name=name)


def _range(task_utilisation: str | tuple[float, float]) -> tuple[float, float]:
    if isinstance(task_utilisation, tuple):
        return task_utilisation
    if task_utilisation not in TASK_UTILISATION:
        rule = f"must be one of {', '.join(TASK_UTILISATION)} or a pair of numbers"
        raise InvalidInput(rule, field="task_utilisation", value=task_utilisation)
    return TASK_UTILISATION[task_utilisation]
