"""The best clocks of the three-variable GPU model on continuous clocks, exactly.

One unit of work takes ``t = t0 + a / core + b / memory`` seconds (``a = D delta``,
``b = D (1 - delta)``) at ``P = p0 + gamma memory + c h(core)`` watts (mei2021 Eq. 1-2). Here
``h = V² core`` with the least allowed voltage ``V = max(volt_min, a0 + a1 core + a2 core²)``,
so the core clock alone is searched. Theorem 1 of mei2021 (core as fast as the voltage allows)
is not assumed: it fails wherever the lowest voltage allows more than the lowest core clock.

Why a local search finds the global optimum, whatever the sign of ``p0`` (a price of time is
added to it): let ``u = 1 / core`` and ``w = 1 / memory``. Time is linear in (u, w) and power
convex, so on a curve of equal time power has no local minimum but the global one. Write
``Q(A)`` for the least ``gamma / w + c h(1/u)`` with ``a u + b w = A = t - t0``, so that
``E*(t) = (t0 + A) (p0 + Q(A))``. ``Q`` is convex; so is ``A Q``: where both clocks move at
multiplier ``mu``, ``A Q'' = mu A / (A_m / 2 + A_c / e)`` with the two parts of ``A = A_m + A_c``
and the elasticity ``e = -u k'' / k' >= 2`` of ``k(u) = h(1/u)``, because ``u k = V²`` is convex
in ``u`` wherever log h is convex in log core (ClockRange checks it); hence
``(A Q)'' = A Q'' - 2 mu >= 0``, and the same holds where one clock is at a bound. So ``E*`` is
convex on all of [t_min, t_max], energy plus any price times time is convex in time, and a local
minimum over the clocks is a local, hence the global, minimum over time.

``box`` is [core_min, core_max, memory_min, memory_max, volt_min, a0, a1, a2].
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.units import Floats, Ints


class Profiles(NamedTuple):
    """Columns of the GPU model (n,), as above."""

    p0: Floats
    gamma: Floats
    c: Floats
    d: Floats
    delta: Floats
    t0: Floats


CORE_MIN, CORE_MAX, MEMORY_MIN, MEMORY_MAX, VOLT_MIN, A0, A1, A2 = range(8)
"""Entries of ``box``."""

STEP = 1e-11
"""Relative step of a clock at which a search ends; energy is flat there to second order."""

NEWTON_STEP = 1e-7
"""The same for Newton's method, whose next step would be the square of the last."""

MAX_STEPS = 120
SECANT_STEPS = 24


@inner
def gpu_volt(core: float, box: Floats) -> float:
    """Return the least allowed voltage at a core clock."""
    return max(box[VOLT_MIN], box[A0] + core * (box[A1] + core * box[A2]))


@inner
def gpu_time(d: float, delta: float, t0: float, core: float, memory: float) -> float:
    """Return the time of one unit of work (mei2021 Eq. 2)."""
    return d * (delta / core + (1.0 - delta) / memory) + t0


@inner
def gpu_power(p0: float, gamma: float, c: float, box: Floats, core: float, memory: float) -> float:
    """Return the power at these clocks and the least voltage (mei2021 Eq. 1)."""
    volt = gpu_volt(core, box)
    return p0 + gamma * memory + c * (volt * volt) * core


@inner
def _knee(box: Floats) -> float:
    """Return the fastest clock at the lowest voltage, kept in the box: below it h is linear."""
    low, high, floor = box[CORE_MIN], box[CORE_MAX], box[VOLT_MIN]
    a0, a1, a2 = box[A0], box[A1], box[A2]
    if a0 + high * (a1 + high * a2) <= floor:
        return high
    if a0 + low * (a1 + low * a2) >= floor:
        return low
    root = sqrt(max(0.0, a1 * a1 - 4.0 * a2 * (a0 - floor)))
    core = 2.0 * (floor - a0) / (a1 + root) if a1 > 0.0 else (root - a1) / (2.0 * a2)
    return min(max(core, low), high)


@inner
def _switching(core: float, above_knee: float, box: Floats) -> tuple[float, float]:
    """Return h = V² core and its slope, above the knee (1) or below it (0).

    A number, as every constant bool would be compiled apart.
    """
    if above_knee == 0.0:
        square = box[VOLT_MIN] * box[VOLT_MIN]
        return square * core, square
    volt = box[A0] + core * (box[A1] + core * box[A2])
    rise = box[A1] + 2.0 * core * box[A2]
    return volt * volt * core, volt * (volt + 2.0 * core * rise)


@inner
def _best_memory(pull: float, push: float, box: Floats) -> float:
    """Return the memory clock that minimises ``pull / memory + push memory``."""
    low, high = box[MEMORY_MIN], box[MEMORY_MAX]
    if pull <= push * low * low:
        return low
    if pull >= push * high * high:
        return high
    return sqrt(pull / push)


@inner
def _slope(
    p0: float,
    gamma: float,
    c: float,
    a: float,
    b: float,
    t0: float,
    box: Floats,
    core: float,
    above_knee: float,
) -> float:
    """Return core² dE/dcore at the best memory clock for this core clock."""
    h, rise = _switching(core, above_knee, box)
    head_w = p0 + c * h
    rest_s = t0 + a / core
    memory = _best_memory(head_w * b, gamma * rest_s, box)
    return c * rise * core * core * (rest_s + b / memory) - (head_w + gamma * memory) * a


@inner
def _cheapest_core(
    p0: float, gamma: float, c: float, a: float, b: float, t0: float, box: Floats
) -> float:
    """Return the core clock of least energy: where the slope changes sign (Illinois method)."""
    low, high, above = box[CORE_MIN], _knee(box), 0.0
    if a <= 0.0:
        return low
    high_slope = -1.0 if high <= low else _slope(p0, gamma, c, a, b, t0, box, high, above)
    if high_slope < 0.0:
        low, high, above = high, box[CORE_MAX], 1.0
        high_slope = _slope(p0, gamma, c, a, b, t0, box, high, above)
    low_slope = _slope(p0, gamma, c, a, b, t0, box, low, above)
    if low_slope >= 0.0 or high <= low:
        return low
    if high_slope <= 0.0:
        return high
    core, side = low, 0
    for step in range(MAX_STEPS):
        last = core
        core = (low * high_slope - high * low_slope) / (high_slope - low_slope)
        if step > SECANT_STEPS or not low < core < high:
            core = 0.5 * (low + high)
        if abs(core - last) <= STEP * core or high - low <= STEP * high:
            break
        slope = _slope(p0, gamma, c, a, b, t0, box, core, above)
        if slope > 0.0:
            high, high_slope = core, slope
            if side == 1:
                low_slope *= 0.5
            side = 1
        else:
            low, low_slope = core, slope
            if side == -1:
                high_slope *= 0.5
            side = -1
    return core


@inner
def _trade(target: float, a: float, room: float, low: float, high: float, box: Floats) -> float:
    """Return the root of ``sqrt(h') spare = target`` for ``spare = room core - a`` in bounds.

    There the core and the memory clock are worth the same (least power at a given time needs
    ``c h' spare² = gamma a b``). In closed form at the lowest voltage; above it by Newton's steps
    on this nearly straight function, halving where they would leave the bracket.
    """
    knee = _knee(box)
    at_knee = room * knee - a
    spare = target / box[VOLT_MIN]
    if knee > box[CORE_MIN] and (spare <= at_knee or at_knee >= high):
        return min(spare, high)
    _, rise = _switching(knee, 1.0, box)
    if at_knee > 0.0 and sqrt(rise) * at_knee >= target:
        return at_knee
    low = max(low, at_knee)
    spare = 0.5 * (low + high)
    for _ in range(MAX_STEPS):
        core = (a + spare) / room
        volt = box[A0] + core * (box[A1] + core * box[A2])
        rise = box[A1] + 2.0 * core * box[A2]
        slope = volt * (volt + 2.0 * core * rise)
        bend = 4.0 * volt * rise + 2.0 * core * (rise * rise + 2.0 * volt * box[A2])
        root = sqrt(slope)
        excess = root * spare - target
        if excess > 0.0:
            high = spare
        else:
            low = spare
        last = spare
        spare -= excess / (root + 0.5 * bend * spare / (root * room))
        if not low <= spare <= high:
            spare = 0.5 * (low + high)
        if abs(spare - last) <= NEWTON_STEP * spare:
            break
    return spare


@inner
def _clocks_at(
    gamma: float, c: float, a: float, b: float, room: float, box: Floats
) -> tuple[float, float]:
    """Return the (core, memory) of least power with ``a / core + b / memory = room``.

    Solved for ``spare = room core - a = core b / memory``, which keeps its precision where one
    of the clocks hardly matters for the time; the one that matters more then makes up the time.
    """
    core_min, core_max = box[CORE_MIN], box[CORE_MAX]
    memory_min, memory_max = box[MEMORY_MIN], box[MEMORY_MAX]
    if a <= 0.0:
        memory = b / room if b > 0.0 and room > 0.0 else memory_min
        return core_min, min(max(memory, memory_min), memory_max)
    if room <= b / memory_max:
        return core_max, memory_max
    if b <= 0.0:
        return min(max(a / room, core_min), core_max), memory_min
    high = room * core_max - a
    if room > b / memory_min:
        high = min(high, a / (room - b / memory_min) * b / memory_min)
    low = max(room * core_min - a, a / (room - b / memory_max) * b / memory_max)
    spare = low
    if low < high:
        spare = high if c <= 0.0 else _trade(sqrt(gamma * a * b / c), a, room, low, high, box)
        spare = min(max(spare, low), high)
    core = min(max((a + spare) / room, core_min), core_max)
    if spare >= a:
        return core, min(max(b / (room - a / core), memory_min), memory_max)
    memory = min(max(core * b / spare, memory_min), memory_max)
    return min(max(a / (room - b / memory), core_min), core_max), memory


@inner
def gpu_energy_at(
    p0: float,
    gamma: float,
    c: float,
    d: float,
    delta: float,
    t0: float,
    box: Floats,
    time_s: float,
) -> tuple[float, float, float]:
    """Return (energy_j, core, memory) of one unit of work done in exactly ``time_s``.

    The time is taken to lie between those of :func:`gpu_time_range`; outside, the clocks are
    the nearest in the box.
    """
    a, b = d * delta, d * (1.0 - delta)
    core, memory = _clocks_at(gamma, c, a, b, time_s - t0, box)
    power = gpu_power(p0, gamma, c, box, core, memory)
    return power * gpu_time(d, delta, t0, core, memory), core, memory


@inner
def gpu_cheapest(
    p0: float,
    gamma: float,
    c: float,
    d: float,
    delta: float,
    t0: float,
    box: Floats,
    time_price_w: float,
) -> tuple[float, float, float, float]:
    """Return (time_s, energy_j, core, memory) of least energy + price × time."""
    a, b = d * delta, d * (1.0 - delta)
    priced = p0 + time_price_w
    core = _cheapest_core(priced, gamma, c, a, b, t0, box)
    head_w = gpu_power(priced, 0.0, c, box, core, 1.0)
    memory = _best_memory(head_w * b, gamma * (t0 + a / core), box)
    time = gpu_time(d, delta, t0, core, memory)
    return time, gpu_power(p0, gamma, c, box, core, memory) * time, core, memory


@inner
def gpu_time_range(d: float, delta: float, t0: float, box: Floats) -> tuple[float, float]:
    """Return the shortest and the longest time of one unit of work."""
    shortest = gpu_time(d, delta, t0, box[CORE_MAX], box[MEMORY_MAX])
    return shortest, gpu_time(d, delta, t0, box[CORE_MIN], box[MEMORY_MIN])


@compiled
def cheapest_rows(
    g: Profiles, box: Floats, rows: Ints, time_price_w: Floats
) -> tuple[Floats, Floats, Floats]:
    """Answer :func:`gpu_cheapest` for many profile rows: (time, energy, points (n, 3))."""
    n = rows.size
    time, energy, points = np.empty(n), np.empty(n), np.empty((n, 3))
    for i in range(n):
        r = rows[i]
        time[i], energy[i], core, memory = gpu_cheapest(
            g.p0[r], g.gamma[r], g.c[r], g.d[r], g.delta[r], g.t0[r], box, time_price_w[i]
        )
        points[i, 0], points[i, 1], points[i, 2] = core, memory, gpu_volt(core, box)
    return time, energy, points


@compiled
def at_rows(
    g: Profiles, box: Floats, rows: Ints, time_s: Floats, slack_s: Floats
) -> tuple[Floats, Floats, Floats]:
    """Answer :func:`gpu_energy_at` for many profile rows; (nan, inf, nan) out of reach."""
    n = rows.size
    time, energy, points = np.full(n, np.nan), np.full(n, np.inf), np.full((n, 3), np.nan)
    for i in range(n):
        r = rows[i]
        shortest, longest = gpu_time_range(g.d[r], g.delta[r], g.t0[r], box)
        if shortest - slack_s[i] <= time_s[i] <= longest + slack_s[i]:
            asked = min(max(time_s[i], shortest), longest)
            energy[i], core, memory = gpu_energy_at(
                g.p0[r], g.gamma[r], g.c[r], g.d[r], g.delta[r], g.t0[r], box, asked
            )
            time[i] = gpu_time(g.d[r], g.delta[r], g.t0[r], core, memory)
            points[i, 0], points[i, 1], points[i, 2] = core, memory, gpu_volt(core, box)
    return time, energy, points
