"""Optimal clocks of one chip-wide clock for a given parallelism (gerards sections 3 to 5).

``omega`` (M + 1,) holds the cycles with exactly m active cores; entry 0 (gaps) costs nothing.
The power of m active cores at clock f is ``m c1 f^alpha + c2 f + c3``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from downclock.errors import InvalidInput
from downclock.units import TOLERANCE, Floats, Ints


@dataclass(frozen=True, slots=True)
class ChipPower:
    """Power of a chip with m active cores: ``m c1 f^alpha + c2 f + c3`` (section 3.2).

    Its clocks f are those from ``slowest`` to ``fastest``, or enumerated ``levels``.
    """

    c1: float = 1.0
    c2: float = 0.0
    c3: float = 0.0
    alpha: float = 3.0
    slowest: float = 0.0
    fastest: float = np.inf
    levels: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("c1", "c2", "c3", "alpha"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise InvalidInput("must be finite and not negative", field=name, value=value)
        if self.c1 == 0.0 or self.alpha <= 1.0:
            raise InvalidInput("needs c1 > 0 and alpha > 1", item="chip power")
        if self.levels:
            object.__setattr__(self, "levels", tuple(sorted(set(self.levels))))
            object.__setattr__(self, "slowest", self.levels[0])
            object.__setattr__(self, "fastest", self.levels[-1])

    def weight(self, cores: int) -> Floats:
        """``m^(1/alpha)`` for m = 0..cores: what a cycle with m active cores counts in S̄."""
        return np.arange(cores + 1, dtype=np.float64) ** (1.0 / self.alpha)

    @property
    def critical(self) -> float:
        """Generalised critical clock: slower saves nothing (Theorem 1)."""
        return float((self.c3 / (self.c1 * (self.alpha - 1.0))) ** (1.0 / self.alpha))

    def per_cycle(self, clock: Floats, active: Ints | int = 1) -> Floats:
        """Energy of a cycle at each clock with so many active cores."""
        return active * self.c1 * clock ** (self.alpha - 1.0) + self.c2 + self.c3 / clock

    def energy(self, omega: Floats, clock: Floats) -> float:
        """Energy of running ω_m cycles at clock f_m, m = 0..M (equation 2, with c2 S)."""
        used = np.flatnonzero(omega[1:] > 0.0) + 1
        return float(omega[used] @ self.per_cycle(clock[used], used))


@dataclass(frozen=True, slots=True, eq=False)
class ChipClocks:
    """A clock per number of active cores (M + 1,), and the energy.

    Static power counts while any core runs.
    """

    clock: Floats
    energy: float


def makespan(omega: Floats) -> float:
    """S: cycles with any core active."""
    return float(omega[1:].sum())


def weighted_makespan(omega: Floats, alpha: float = 3.0) -> float:
    """S̄ = Σ ω_m m^(1/alpha): least energy grows with it and with nothing else (section 5.1)."""
    return float(omega @ np.arange(omega.size) ** (1.0 / alpha))


def global_clocks(omega: Floats, deadline: float, power: ChipPower) -> ChipClocks:
    """Optimal clocks of Theorem 1 (equations 5 and 6), kept within the chip's range.

    Raises:
        InvalidInput: the fastest clock is too slow for the deadline.
    """
    weighted = weighted_makespan(omega, power.alpha)
    _check_deadline(deadline, makespan(omega), power.fastest)
    common = max(power.critical, weighted / deadline)
    m = np.maximum(np.arange(omega.size, dtype=np.float64), 1.0)
    clock = common * m ** (-1.0 / power.alpha)
    if np.any(clock < power.slowest) or np.any(clock > power.fastest):
        clock = _boxed(omega, deadline, power)
    return ChipClocks(clock, power.energy(omega, clock))


def _boxed(omega: Floats, deadline: float, power: ChipPower) -> Floats:
    """Find the one price of time (as a common clock f̂) at which clipped clocks just fit."""
    m = np.maximum(np.arange(omega.size, dtype=np.float64), 1.0)
    ratio, slowest, fastest = m ** (-1.0 / power.alpha), power.slowest, power.fastest

    def clipped(common: float) -> Floats:
        return np.clip(common * ratio, slowest, fastest)

    low = power.critical
    high = max(low, weighted_makespan(omega, power.alpha) / deadline, slowest) * m[-1]
    high = max(high, fastest / ratio[-1] if fastest < np.inf else high)
    if float((omega[1:] / clipped(low)[1:]).sum() if low > 0.0 else np.inf) <= deadline:
        return clipped(low)
    for _ in range(200):
        middle = 0.5 * (low + high)
        late = float((omega[1:] / clipped(middle)[1:]).sum()) > deadline
        low, high = (middle, high) if late else (low, middle)
    return clipped(high)


def energy_of_weighted(weighted: float, deadline: float, power: ChipPower) -> float:
    """E(S̄) of section 5.1 without the c2 S term: continuous and strictly increasing."""
    if weighted <= 0.0:
        return 0.0
    f = max(power.critical, weighted / deadline)
    return float(weighted * (power.c1 * f ** (power.alpha - 1.0) + power.c3 / f))


def single_clock(
    omega: Floats, deadline: float, power: ChipPower, *, static_aware: bool
) -> ChipClocks:
    """One clock for the whole run, of those that the chip has.

    Unaware: ``f = S / d``, static power until the deadline; the baseline of gerards section 6.
    Aware: never below the clock where energy is least, ``(c3 S / (c1 (alpha-1) W))^(1/alpha)``.
    """
    length, most = makespan(omega), power.fastest
    _check_deadline(deadline, length, most)
    work = float(omega @ np.arange(omega.size))
    f = length / deadline
    if power.levels:
        fits = np.array([level for level in power.levels if level >= min(f, most)])
        joules = work * power.c1 * fits ** (power.alpha - 1.0) + power.c3 * length / fits
        f = float(fits[np.argmin(joules)] if static_aware else fits[0])
    elif static_aware and work > 0.0:
        least = power.c3 * length / (power.c1 * (power.alpha - 1.0) * work)
        f = max(f, least ** (1.0 / power.alpha))
    clock = np.full(omega.size, np.clip(f, power.slowest, most))
    return ChipClocks(clock, power.energy(omega, clock))


def level_clocks(omega: Floats, deadline: float, power: ChipPower) -> tuple[Floats, float]:
    """Optimal use of enumerated clock levels: cycles (M + 1, levels) at each, and the energy.

    Time and energy per cycle of each (m, level) lie on a convex chain after dominated levels are
    dropped; all m share one price of time, so the answer is greedy: start every m at its least
    energy level and take the cheapest joules per second saved until the deadline is met. At most
    one m is split between two levels. Raises where even the fastest level is too slow.
    """
    levels = np.array(power.levels)
    _check_deadline(deadline, makespan(omega), power.fastest)
    steps: list[tuple[float, int, int, int]] = []
    cycles = np.zeros((omega.size, levels.size))
    spent = 0.0
    for m in np.flatnonzero(omega[1:] > 0.0) + 1:
        joules = power.per_cycle(levels, int(m))
        hull = _hull(1.0 / levels, joules)
        cycles[m, hull[0]] = omega[m]
        spent += omega[m] / levels[hull[0]]
        for slow, fast in pairwise(hull):
            price = (joules[fast] - joules[slow]) / (1.0 / levels[slow] - 1.0 / levels[fast])
            steps.append((float(price), int(m), slow, fast))
    _hurry(cycles, levels, spent - deadline, sorted(steps))
    return cycles, float((cycles * power.per_cycle(levels, np.arange(omega.size)[:, None])).sum())


def _hurry(
    cycles: Floats, levels: Floats, late: float, steps: list[tuple[float, int, int, int]]
) -> None:
    """Move cycles to faster levels, cheapest first, until nothing is late."""
    for _, m, slow, fast in steps:
        if late <= 0.0:
            return
        saved = 1.0 / levels[slow] - 1.0 / levels[fast]
        moved = min(cycles[m, slow], late / saved)
        cycles[m, slow] -= moved
        cycles[m, fast] += moved
        late -= moved * saved


def _hull(time: Floats, joules: Floats) -> list[int]:
    """Return levels on the lower convex hull, from the least energy to the fastest."""
    hull: list[int] = []
    for k in range(time.size - 1, -1, -1):  # fastest first
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            rise = (joules[b] - joules[a]) * (time[k] - time[a])
            if rise < (joules[k] - joules[a]) * (time[b] - time[a]):
                break
            hull.pop()
        hull.append(k)
    while len(hull) > 1 and joules[hull[-1]] >= joules[hull[-2]]:
        hull.pop()
    return hull[::-1]


def _check_deadline(deadline: float, cycles: float, fastest: float) -> None:
    if not deadline > 0.0 and cycles > 0.0:
        raise InvalidInput("must be positive", field="deadline", value=deadline)
    if cycles > deadline * fastest * (1.0 + TOLERANCE):
        rule = f"is too short for {cycles:g} cycles at the fastest clock {fastest:g}"
        raise InvalidInput(rule, field="deadline", value=deadline)
