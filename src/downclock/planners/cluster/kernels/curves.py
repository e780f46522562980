"""Energy-time curves as the packing kernels ask for them: one task on one kind at a time.

A row is a (kind, task) pair, ``row = kind * tasks + task``. Continuous GPU and CPU curves are
answered exactly, enumerated clocks by their ladder.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from downclock.kernels.compiling import compiled
from downclock.power.kernels.gpu_clock import gpu_cheapest, gpu_energy_at
from downclock.power.kernels.models import CPU, GPU, LADDER

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


class Curves(NamedTuple):
    """Curves of n tasks on k kinds (r = k n rows)."""

    model: Ints  # (r,) what answers, see power.kernels.models
    shape: Floats  # (r, 6) GPU: p0, gamma, c, d, delta, t0; CPU: work, c1, alpha, static
    box: Floats  # (k, 8) clock range of each kind
    idle_w: Floats  # (k,) idle power: running replaces it
    price_w: Floats  # (k,) what a second of a processor costs besides its own power
    first: Ints  # (r + 1,) first rung of each row
    rung_s: Floats  # (entries,) run times of enumerated clocks, ascending per row
    rung_j: Floats  # (entries,) their energies
    calm: Ints  # (entries,) rung of least energy - idle × time so far
    short_s: Floats  # (r,) shortest run time; infinite where the task cannot run
    free_s: Floats  # (r,) cheapest run time within the window, at the price of time
    free_j: Floats  # (r,) its energy
    long_s: Floats  # (r,) run time on a processor that would idle otherwise


@compiled
def _rung(curves: Curves, row: int, room_s: float) -> int:
    """Return the last rung of at most ``room_s``, or -1."""
    low, high = curves.first[row], curves.first[row + 1]
    limit, found = room_s * (1.0 + 1e-12), -1
    while low < high:
        middle = (low + high) // 2
        if curves.rung_s[middle] <= limit:
            found, low = middle, middle + 1
        else:
            high = middle
    return found


@compiled
def energy_j(curves: Curves, row: int, time_s: float) -> float:
    """Return the least energy of a row in exactly ``time_s``, which it can reach."""
    model = curves.model[row]
    a = curves.shape[row]
    if model == GPU:
        box = curves.box[row // (curves.model.size // curves.box.shape[0])]
        return gpu_energy_at(a[0], a[1], a[2], a[3], a[4], a[5], box, time_s)[0]
    if model == CPU:
        return a[3] * time_s + a[1] * a[0] ** a[2] * time_s ** (1.0 - a[2])
    rung = _rung(curves, row, time_s)
    return curves.rung_j[rung] if rung >= 0 else np.inf


@compiled
def fill_s(curves: Curves, row: int, room_s: float) -> float:
    """Return the run time of at most ``room_s`` that is best where idling is the alternative.

    It minimises energy - idle power × time; -1 where the room is too short.
    """
    if room_s < curves.short_s[row] * (1.0 - 1e-12):
        return -1.0
    if curves.model[row] != LADDER:
        return min(room_s, curves.long_s[row])
    rung = _rung(curves, row, room_s)
    return curves.rung_s[curves.calm[rung]] if rung >= 0 else -1.0


@compiled
def want_s(curves: Curves, row: int, room_s: float) -> float:
    """Return the cheapest run time of at most ``room_s``, or -1."""
    if room_s >= curves.free_s[row]:
        return curves.free_s[row]
    if room_s < curves.short_s[row] * (1.0 - 1e-12):
        return -1.0
    if curves.model[row] != LADDER:
        return room_s
    best, last = -1, _rung(curves, row, room_s)
    price = curves.price_w[row // (curves.model.size // curves.box.shape[0])]
    for rung in range(curves.first[row], last + 1):
        cost = curves.rung_j[rung] + price * curves.rung_s[rung]
        if best < 0 or cost < curves.rung_j[best] + price * curves.rung_s[best]:
            best = rung
    return curves.rung_s[best] if best >= 0 else -1.0


@compiled
def _cpu_at_slope(curves: Curves, row: int, slope_w: float) -> float:
    """Return where ``static + c1 work^alpha (1 - alpha) t^-alpha`` is the slope."""
    a = curves.shape[row]
    gain = a[3] - slope_w
    if gain <= 0.0 or a[2] <= 1.0:
        return curves.long_s[row]
    return a[0] * (a[1] * (a[2] - 1.0) / gain) ** (1.0 / a[2])


@compiled
def at_slope_s(curves: Curves, row: int, slope_w: float) -> float:
    """Return the run time of least energy - slope × time: where energy rises by ``slope_w``."""
    a = curves.shape[row]
    if curves.model[row] == GPU:
        box = curves.box[row // (curves.model.size // curves.box.shape[0])]
        return gpu_cheapest(a[0], a[1], a[2], a[3], a[4], a[5], box, -slope_w)[0]
    if curves.model[row] == CPU:
        return _cpu_at_slope(curves, row, slope_w)
    return _ladder_at_slope(curves, row, slope_w)


@compiled
def _ladder_at_slope(curves: Curves, row: int, slope_w: float) -> float:
    """Return the rung of least energy - slope × time."""
    best, least = np.nan, np.inf
    for rung in range(curves.first[row], curves.first[row + 1]):
        cost = curves.rung_j[rung] - slope_w * curves.rung_s[rung]
        if cost < least:
            best, least = curves.rung_s[rung], cost
    return best


@compiled
def calm_rungs(curves: Curves) -> None:
    """Fill ``calm``: per rung, the one of least energy - idle × time among it and faster ones."""
    tasks = curves.model.size // curves.box.shape[0]
    for row in range(curves.model.size):
        idle, best = curves.idle_w[row // tasks], curves.first[row]
        for rung in range(curves.first[row], curves.first[row + 1]):
            kept = curves.rung_j[best] - idle * curves.rung_s[best]
            if curves.rung_j[rung] - idle * curves.rung_s[rung] < kept:
                best = rung
            curves.calm[rung] = best
