"""Operating points: which (core, memory, volt) settings a processor kind allows.

A point is a row of three floats, each a ratio to the default clock or voltage. Quantities a
kind does not have (the memory clock of a CPU core) stay at 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np

from downclock.errors import InvalidInput
from downclock.quantities import count, require_quantity
from downclock.units import TOLERANCE, Bools, Floats, slack

CORE, MEMORY, VOLT = 0, 1, 2
"""Columns of a point."""

STEP = 0.05
"""One step of a continuous core clock, as a fraction of it."""

MOST_TERM = 1e6
"""Of a voltage law: voltages are ratios to that of the default clock."""


@dataclass(frozen=True, slots=True)
class VoltageLaw:
    """The least stable core voltage at a core clock: ``V(f) = a0 + a1 f + a2 f²``.

    Its inverse is the papers' fastest clock at a voltage, g1 (mei2021 section 5.1.1).
    """

    a0: float
    a1: float
    a2: float

    def __post_init__(self) -> None:
        terms = np.array([self.a0, self.a1, self.a2], dtype=np.float64)
        if not np.all(np.abs(terms) <= MOST_TERM):
            rule = f"must be three numbers from {-MOST_TERM:g} to {MOST_TERM:g}"
            raise InvalidInput(rule, field="law", value=terms.tolist())

    def min_volt(self, core: Floats | float) -> Floats:
        """Least voltage that keeps ``core`` stable."""
        f = np.asarray(core, dtype=np.float64)
        return np.asarray(self.a0 + self.a1 * f + self.a2 * f * f)

    @property
    def slowest(self) -> float:
        """The clock where the law's voltage is least: slower clocks need no more than that."""
        return -self.a1 / (2.0 * self.a2) if self.a2 > 0.0 else 0.0

    def max_core(self, volt: float) -> float:
        """Fastest clock that is stable at ``volt``; infinite where voltage never limits it.

        >>> round(MEI_LAW.max_core(1.2), 4)
        1.0916
        """
        if self.a2 == 0.0:
            return (volt - self.a0) / self.a1 if self.a1 > 0.0 else np.inf
        root = self.a1 * self.a1 - 4.0 * self.a2 * (self.a0 - volt)
        if root < 0.0:
            raise InvalidInput("is below every voltage of the law", field="volt", value=volt)
        return float((-self.a1 + np.sqrt(root)) / (2.0 * self.a2))


MEI_LAW = VoltageLaw(1.0, -2.0, 2.0)
"""g1(V) = sqrt((V - 0.5) / 2) + 0.5 of mei2021 and mei2017, solved for V."""

PROPORTIONAL_LAW = VoltageLaw(0.0, 1.0, 0.0)
"""The textbook's V = f."""

FIXED_VOLTAGE = VoltageLaw(1.0, 0.0, 0.0)
"""Voltage does not follow the clock (or is not modelled)."""

LAWS = {"mei": MEI_LAW, "proportional": PROPORTIONAL_LAW, "fixed": FIXED_VOLTAGE}
"""Laws that files may name; another one is written as [a0, a1, a2]."""


def law_data(law: VoltageLaw) -> str | list[float]:
    """Return a law as files hold it: its name, or its three numbers."""
    named = (name for name, known in LAWS.items() if known == law)
    return next(named, [float(law.a0), float(law.a1), float(law.a2)])


@dataclass(frozen=True, slots=True)
class ClockRange:
    """Continuous clocks: a box of core clock, memory clock and voltage under a voltage law.

    ``core_max`` may be infinite: the highest voltage limits the clock anyway.
    """

    knob: ClassVar[str] = "clock"
    listed: ClassVar[bool] = False
    points: ClassVar[Floats] = np.empty((0, 3))
    default_mhz: ClassVar[None] = None  # not known: clocks are ratios
    core_min: float
    core_max: float = np.inf
    memory_min: float = 1.0
    memory_max: float = 1.0
    volt_min: float = 1.0
    volt_max: float = 1.0
    law: VoltageLaw = FIXED_VOLTAGE

    def __post_init__(self) -> None:
        top = min(self.core_max, self.law.max_core(self.volt_max))
        object.__setattr__(self, "core_max", top)
        for name in ("core_min", "memory_min", "volt_min"):
            require_quantity(name, getattr(self, name), positive=True)
        for name in ("core", "memory", "volt"):
            low, high = getattr(self, f"{name}_min"), getattr(self, f"{name}_max")
            if not (np.isfinite(high) and low <= high + TOLERANCE):
                rule = f"must be finite and at least {name}_min={low}"
                raise InvalidInput(rule, field=f"{name}_max", value=high)
            require_quantity(f"{name}_max", high)
        self._check_law()

    def _check_law(self) -> None:
        """Voltage may not fall as the clock rises, and log(V²f) must be convex in log f.

        The second is what makes the energy optimum unique (specs of the solver); the papers'
        law has it on its whole range.
        """
        log_f = np.linspace(np.log(self.core_min), np.log(self.core_max), 257)
        volt = self.volt(np.exp(log_f))
        if np.any(volt <= 0.0) or np.any(np.diff(volt) < -TOLERANCE):
            raise InvalidInput("must be positive and rise with the clock", field="law")
        if log_f[-1] > log_f[0] and np.any(np.diff(2.0 * np.log(volt) + log_f, 2) < -1e-7):
            raise InvalidInput("must have log(V²f) convex in log f", field="law")

    def volt(self, core: Floats | float) -> Floats:
        """Least allowed voltage at a core clock: the best one for it."""
        return np.maximum(self.volt_min, self.law.min_volt(core))

    def allows(self, points: Floats) -> Bools:
        """Tell which points (n, 3) lie in the box and keep the core stable."""
        clocks, volt = points[:, :VOLT], points[:, VOLT]
        inside = (clocks >= self.low - TOLERANCE) & (clocks <= self.high + TOLERANCE)
        stable = volt >= self.volt(points[:, CORE]) - TOLERANCE
        return np.asarray(np.all(inside, axis=1) & stable & (volt <= self.volt_max + TOLERANCE))

    @property
    def default(self) -> Floats:
        """The point a processor runs at when nobody asks: all ratios 1, or the nearest allowed."""
        core = min(max(1.0, self.core_min), self.core_max)
        volt = min(max(1.0, float(self.volt(core))), self.volt_max)
        return np.array([core, min(max(1.0, self.memory_min), self.memory_max), volt])

    @property
    def scales_memory(self) -> bool:
        """The memory clock can be chosen."""
        return self.memory_max > self.memory_min

    @property
    def low(self) -> Floats:
        """Lowest core and memory clock (2,)."""
        return np.array([self.core_min, self.memory_min])

    @property
    def high(self) -> Floats:
        """Highest core and memory clock (2,)."""
        return np.array([self.core_max, self.memory_max])

    def nearest(self, core: float, memory: float) -> Floats:
        """The allowed point nearest to the asked (core, memory) ratios."""
        core, memory = np.clip([core, memory], self.low, self.high).tolist()
        return np.array([core, memory, float(self.volt(core))])

    def at_cores(self, core: Floats) -> Floats:
        """Points (n, 3) of core clocks: memory at its default, the least voltage."""
        return np.column_stack([core, np.full(core.size, self.default[MEMORY]), self.volt(core)])

    def grid(self, core_steps: int, memory_steps: int) -> Floats:
        """Points (n, 3) to choose from: so many clocks along core and memory."""
        core = np.unique(np.linspace(self.core_min, self.core_max, core_steps))
        memory = np.unique(np.linspace(self.memory_min, self.memory_max, memory_steps))
        pairs = np.stack(np.meshgrid(core, memory, indexing="ij"), -1).reshape(-1, 2)
        return np.column_stack([pairs, self.volt(pairs[:, 0])])

    def voltages(self, step: float) -> list[tuple[float, float]]:
        """Voltages so far apart, each with the fastest core clock it allows: (core, volt)."""
        steps = int(np.floor((self.volt_max - self.volt_min) / step + TOLERANCE)) + 1
        volts = (self.volt_min + step * np.arange(steps)).tolist()
        cores = [np.clip(self.law.max_core(v), self.core_min, self.core_max) for v in volts]
        return [(float(core), v) for core, v in zip(cores, volts, strict=True)]

    def step(self, point: Floats, way: int) -> Floats | None:
        """A point with a core clock `STEP` up or down; None at the end."""
        core = float(np.clip(point[CORE] * (1.0 + way * STEP), self.core_min, self.core_max))
        if abs(core - point[CORE]) <= TOLERANCE:
            return None
        return np.array([core, point[MEMORY], float(self.volt(core))])

    def words(self, point: Floats) -> str:
        """A point as people say it: ratios to the default."""
        words = f"core {point[CORE]:.4g}"
        return f"{words}, memory {point[MEMORY]:.4g}" if self.scales_memory else words

    def describe(self) -> str:
        """All of them in a few words."""
        return (
            f"core {self.core_min:.3g} to {self.core_max:.3g},"
            f" memory {self.memory_min:.3g} to {self.memory_max:.3g} of default"
        )

    def data(self) -> dict[str, Any]:
        """As files hold it."""
        return {
            "core": [float(self.core_min), float(self.core_max)],
            "memory": [float(self.memory_min), float(self.memory_max)],
            "volt": [float(self.volt_min), float(self.volt_max)],
            "law": law_data(self.law),
        }


class PointTable:
    """Enumerated operating points: what clock tables and power limits have in common."""

    __slots__ = ()
    knob: ClassVar[str] = "clock"
    listed: ClassVar[bool] = True
    law: VoltageLaw
    points: Floats

    def volt(self, core: Floats | float) -> Floats:
        """Voltage at a core clock: the law's, and its least one at clocks that need no more."""
        return self.law.min_volt(np.maximum(core, self.law.slowest))

    def allows(self, points: Floats) -> Bools:
        """Tell which points (n, 3) are in the table, at its voltage; few of them differ."""
        pair, back = np.unique(points[:, CORE] + 1j * points[:, MEMORY], return_inverse=True)
        allowed = np.zeros(pair.size, dtype=np.bool_)
        for core, memory, _ in self.points:
            allowed |= (np.abs(pair.real - core) <= TOLERANCE) & (
                np.abs(pair.imag - memory) <= TOLERANCE
            )
        volt = self.volt(pair.real)[back]
        return np.asarray(allowed[back] & (np.abs(points[:, VOLT] - volt) <= slack(volt)))

    @property
    def scales_memory(self) -> bool:
        """The memory clock can be chosen."""
        return bool(np.ptp(self.points[:, MEMORY]) > 0.0)

    @property
    def default(self) -> Floats:
        """The default point, or the nearest one in the table."""
        return self.nearest(1.0, 1.0)

    @property
    def low(self) -> Floats:
        """Lowest core and memory clock (2,)."""
        return np.asarray(self.points[:, :VOLT].min(axis=0))

    @property
    def high(self) -> Floats:
        """Highest core and memory clock (2,)."""
        return np.asarray(self.points[:, :VOLT].max(axis=0))

    def nearest(self, core: float, memory: float) -> Floats:
        """The point nearest to the asked (core, memory) ratios."""
        distance = np.abs(self.points[:, CORE] - core) + np.abs(self.points[:, MEMORY] - memory)
        return np.asarray(self.points[int(np.argmin(distance))])

    def at_cores(self, core: Floats) -> Floats:
        """Points (n, 3) with the nearest core clocks."""
        near = np.argmin(np.abs(self.points[None, :, CORE] - core[:, None]), axis=1)
        return np.asarray(self.points[near])

    def grid(self, core_steps: int, memory_steps: int) -> Floats:
        """Points (n, 3) to choose from: all there are."""
        return self.points

    def voltages(self, step: float) -> list[tuple[float, float]]:
        """None: voltages are not set by themselves."""
        return []

    def step(self, point: Floats, way: int) -> Floats | None:
        """The next core clock up or down, at the same memory clock; None at the end."""
        same = np.abs(self.points[:, MEMORY] - point[MEMORY]) <= TOLERANCE
        rise = way * (self.points[:, CORE] - point[CORE])
        beyond = np.flatnonzero(same & (rise > TOLERANCE))
        return np.asarray(self.points[beyond[np.argmin(rise[beyond])]]) if beyond.size else None


@dataclass(frozen=True, slots=True, eq=False)
class ClockTable(PointTable):
    """Enumerated (core, memory) clock pairs, as real GPUs expose them.

    Attributes:
        core_mhz, memory_mhz: the allowed pairs, one entry each.
        default_core_mhz, default_memory_mhz: the pair that ratios refer to (ratio 1).
        law: voltage of a core clock, for profiles that need one.
    """

    core_mhz: Floats
    memory_mhz: Floats
    default_core_mhz: float
    default_memory_mhz: float
    law: VoltageLaw = FIXED_VOLTAGE
    points: Floats = field(init=False)

    def __post_init__(self) -> None:
        core = np.asarray(self.core_mhz, dtype=np.float64)
        memory = np.broadcast_to(np.asarray(self.memory_mhz, dtype=np.float64), core.shape).copy()
        object.__setattr__(self, "core_mhz", core)
        object.__setattr__(self, "memory_mhz", memory)
        if core.ndim != 1 or core.size == 0:
            raise InvalidInput("needs at least one clock", item="clock table")
        for name in ("core_mhz", "memory_mhz", "default_core_mhz", "default_memory_mhz"):
            require_quantity(name, getattr(self, name), positive=True)
        ratio = core / self.default_core_mhz
        points = np.column_stack([ratio, memory / self.default_memory_mhz, self.volt(ratio)])
        object.__setattr__(self, "points", points)
        for name, column in (("core", CORE), ("memory", MEMORY), ("volt", VOLT)):
            require_quantity(name, np.abs(points[:, column]), positive=column != VOLT)
        volt = points[np.argsort(ratio), VOLT]
        if np.any(volt <= 0.0) or np.any(np.diff(volt) < -TOLERANCE):
            raise InvalidInput("must be positive and rise with the clock", field="law")

    @property
    def default_mhz(self) -> tuple[float, float]:
        """Core and memory clock that ratios refer to."""
        return self.default_core_mhz, self.default_memory_mhz

    def words(self, point: Floats) -> str:
        """A point as people say it: in MHz."""
        words = f"{point[CORE] * self.default_core_mhz:.0f} MHz"
        memory = f"{point[MEMORY] * self.default_memory_mhz:.0f} MHz"
        return f"{words}, memory {memory}" if self.scales_memory else words

    def describe(self) -> str:
        """All of them in a few words."""
        core = self.core_mhz
        return f"{count(core.size, 'pair')}, core {core.min():g} to {core.max():g} MHz"

    def data(self) -> dict[str, Any]:
        """As files hold it."""
        pairs = zip(self.memory_mhz.tolist(), self.core_mhz.tolist(), strict=True)
        return {
            "clock_pairs": [list(pair) for pair in pairs],
            "default_core_mhz": float(self.default_core_mhz),
            "default_memory_mhz": float(self.default_memory_mhz),
            "law": law_data(self.law),
        }


def clock_pairs(core_mhz: Floats, memory_mhz: Floats) -> tuple[Floats, Floats]:
    """Return core and memory of every combination of two lists of clocks."""
    return np.tile(core_mhz, memory_mhz.size), np.repeat(memory_mhz, core_mhz.size)


@dataclass(frozen=True, slots=True, eq=False)
class PowerLimits(PointTable):
    """Enumerated power limits, as ``nvidia-smi -pl`` sets them; the card chooses its own clocks.

    A point's first number is the limit as a ratio to the default one; the others stay at 1. No
    model says what a limit does to time and power, so profiles at limits are measured tables.

    Attributes:
        limit_w: the allowed limits.
        default_limit_w: the one that ratios refer to.
    """

    knob: ClassVar[str] = "power limit"
    default_mhz: ClassVar[None] = None  # a card at a limit chooses its own clocks
    limit_w: Floats
    default_limit_w: float
    law: VoltageLaw = field(default=FIXED_VOLTAGE, init=False)
    points: Floats = field(init=False)

    def __post_init__(self) -> None:
        limit = np.unique(np.asarray(self.limit_w, dtype=np.float64))
        object.__setattr__(self, "limit_w", limit)
        if not limit.size:
            raise InvalidInput("needs at least one", item="power limits", field="power_limit_w")
        require_quantity("power_limit_w", limit, positive=True)
        require_quantity("default_power_limit_w", self.default_limit_w, positive=True)
        ones = np.ones(limit.size)
        points = np.column_stack([limit / self.default_limit_w, ones, ones])
        object.__setattr__(self, "points", points)

    def words(self, point: Floats) -> str:
        """A point as people say it: in watts."""
        return f"limit {point[CORE] * self.default_limit_w:.0f} W"

    def describe(self) -> str:
        """All of them in a few words."""
        limit = self.limit_w
        return f"{count(limit.size, 'power limit')}, {limit.min():g} to {limit.max():g} W"

    def data(self) -> dict[str, Any]:
        """As files hold it."""
        limits = {"power_limit_w": self.limit_w.tolist()}
        return {**limits, "default_power_limit_w": float(self.default_limit_w)}


Clocks: TypeAlias = ClockRange | ClockTable | PowerLimits
"""What a kind allows; they answer alike, and nobody else needs to know which it is."""

WIDE = ClockRange(0.5, np.inf, 0.5, 1.2, 0.5, 1.2, MEI_LAW)
"""The simulated interval of mei2021 section 5.1.1 and mei2017 section V-A."""

NARROW = ClockRange(0.89, np.inf, 0.8, 1.1, 0.8, 1.24, MEI_LAW)
"""The real GTX 1080 Ti of mei2021 section 5.1.1."""

NARROW_2017 = ClockRange(0.85, np.inf, 0.5, 1.1, 0.85, 1.05, MEI_LAW)
"""The real Fermi card of mei2017 section V-A. Here fc = g1(V) is not optimal (Theorem 1)."""

INTERVALS = {"wide": WIDE, "narrow": NARROW, "narrow-2017": NARROW_2017}
