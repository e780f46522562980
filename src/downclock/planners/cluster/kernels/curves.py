"""Energy-time curves as the packing kernels ask for them: one task on one kind at a time.

A row is a (task, kind) pair, ``row = task * kinds + kind``, so that rows stay where they are as
tasks come. Continuous GPU and CPU curves are answered exactly, enumerated clocks by their ladder.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.kernels.records import Records, record
from downclock.power.kernels.gpu_clock import gpu_cheapest, gpu_energy_at
from downclock.power.kernels.models import CPU, GPU, LADDER
from downclock.units import Floats, Ints

ROW = record(
    model=int,
    rung_first=int,  # its enumerated clocks in ``rungs``
    rung_end=int,
    try_first=int,  # its run times to try where prices count, in ``tries``
    try_end=int,
    short_s=float,  # shortest run time; infinite where the task cannot run; from here on columns
    # grow with the work of a task
    free_s=float,  # cheapest run time within the window, at the price of time
    free_j=float,  # its energy
    long_s=float,  # run time on a processor that would idle otherwise
    best_s=float,  # cheapest run time at the price of time, whatever the window
    short_j=float,  # how cost rises with the square of the part by which a run is shorter
    long_j=float,  # the same, longer
)
KIND = record(
    idle_w=float,  # idle power: running replaces it
    price_w=float,  # what a second of a processor costs besides its own power
    largest=int,  # most processors of it in one server
)
RUNG = record(
    time_s=float,  # ascending per row
    energy_j=float,
    idle=int,  # rung of least energy - idle × time so far
)
TRY = record(time_s=float, energy_j=float)


class Curves(NamedTuple):
    """Curves of n tasks on k kinds (r = n k rows)."""

    rows: Records  # (r,) of ROW
    shape: Floats  # (r, 6) GPU: p0, gamma, c, d, delta, t0; CPU: work, c1, alpha, static
    box: Floats  # (k, 8) clock range of each kind
    kinds: Records  # (k,) of KIND
    rungs: Records  # of RUNG
    tries: Records  # of TRY


@inner
def _rung(curves: Curves, row: int, room_s: float) -> int:
    """Return the last rung of at most ``room_s``, or -1."""
    low, high = curves.rows.rung_first[row], curves.rows.rung_end[row]
    limit, found = room_s * (1.0 + 1e-12), -1
    while low < high:
        middle = (low + high) // 2
        if curves.rungs.time_s[middle] <= limit:
            found, low = middle, middle + 1
        else:
            high = middle
    return found


@compiled
def energy_j(curves: Curves, row: int, time_s: float) -> float:
    """Return the least energy of a row in exactly ``time_s``, which it can reach."""
    model = curves.rows.model[row]
    a = curves.shape[row]
    if model == GPU:
        box = curves.box[row % curves.box.shape[0]]
        return gpu_energy_at(a[0], a[1], a[2], a[3], a[4], a[5], box, time_s)[0]
    if model == CPU:
        return a[3] * time_s + a[1] * a[0] ** a[2] * time_s ** (1.0 - a[2])
    rung = _rung(curves, row, time_s)
    return curves.rungs.energy_j[rung] if rung >= 0 else np.inf


@inner
def fill_s(curves: Curves, row: int, room_s: float) -> float:
    """Return the run time of at most ``room_s`` that is best where idling is the alternative.

    It minimises energy - idle power × time; -1 where the room is too short.
    """
    if room_s < curves.rows.short_s[row] * (1.0 - 1e-12):
        return -1.0
    if curves.rows.model[row] != LADDER:
        return min(room_s, curves.rows.long_s[row])
    rung = _rung(curves, row, min(room_s, curves.rows.long_s[row]))
    return curves.rungs.time_s[curves.rungs.idle[rung]] if rung >= 0 else -1.0


@compiled
def _rise_j(curves: Curves, row: int, time_s: float) -> float:
    """Return about what a run time costs above the best one."""
    best = curves.rows.best_s[row]
    part = (time_s - best) / best
    return part * part * (curves.rows.short_j[row] if part < 0.0 else curves.rows.long_j[row])


@inner
def wanted_j(curves: Curves, row: int) -> float:
    """Return what a row costs at the run time that it wants, its price of time included."""
    price = curves.kinds.price_w[row % curves.box.shape[0]]
    return curves.rows.free_j[row] + price * curves.rows.free_s[row]


@compiled
def about_over_j(curves: Curves, row: int, time_s: float) -> float:
    """Return about what a run time costs above the one wanted, its price of time included.

    Exact on enumerated clocks and on CPUs; on GPUs two half parabolas, as the exact energy is a
    search for two clocks and this is asked hundreds of times a task.
    """
    free = curves.rows.free_s[row]
    if time_s == free:
        return 0.0
    if curves.rows.model[row] == GPU:
        return _rise_j(curves, row, time_s) - _rise_j(curves, row, free)
    price = curves.kinds.price_w[row % curves.box.shape[0]]
    joules = energy_j(curves, row, time_s) - curves.rows.free_j[row]
    return joules + price * (time_s - free)


@compiled
def hurried_s(curves: Curves, row: int, more_w: float) -> float:
    """Return about the run time that a row wants where a second costs ``more_w`` more."""
    short, best = curves.rows.short_s[row], curves.rows.best_s[row]
    if curves.rows.model[row] != GPU:
        price = curves.kinds.price_w[row % curves.box.shape[0]]
        return max(short, at_slope_s(curves, row, -price - more_w))
    steep = 2.0 * curves.rows.short_j[row]
    return max(short, best * (1.0 - more_w * best / steep)) if steep > 0.0 else short


@inner
def want_s(curves: Curves, row: int, room_s: float) -> float:
    """Return the cheapest run time of at most ``room_s``, or -1."""
    if room_s >= curves.rows.free_s[row]:
        return curves.rows.free_s[row]
    if room_s < curves.rows.short_s[row] * (1.0 - 1e-12):
        return -1.0
    if curves.rows.model[row] != LADDER:
        return room_s
    best, last = -1, _rung(curves, row, room_s)
    price = curves.kinds.price_w[row % curves.box.shape[0]]
    for rung in range(curves.rows.rung_first[row], last + 1):
        cost = curves.rungs.energy_j[rung] + price * curves.rungs.time_s[rung]
        if best < 0 or cost < curves.rungs.energy_j[best] + price * curves.rungs.time_s[best]:
            best = rung
    return curves.rungs.time_s[best] if best >= 0 else -1.0


@inner
def _cpu_at_slope(curves: Curves, row: int, slope_w: float) -> float:
    """Return where ``static + c1 work^alpha (1 - alpha) t^-alpha`` is the slope."""
    a = curves.shape[row]
    gain = a[3] - slope_w
    if gain <= 0.0 or a[2] <= 1.0:
        return curves.rows.long_s[row]
    return a[0] * (a[1] * (a[2] - 1.0) / gain) ** (1.0 / a[2])


@compiled
def at_slope_s(curves: Curves, row: int, slope_w: float) -> float:
    """Return the run time of least energy - slope × time: where energy rises by ``slope_w``."""
    a = curves.shape[row]
    if curves.rows.model[row] == GPU:
        box = curves.box[row % curves.box.shape[0]]
        return gpu_cheapest(a[0], a[1], a[2], a[3], a[4], a[5], box, -slope_w)[0]
    if curves.rows.model[row] == CPU:
        return _cpu_at_slope(curves, row, slope_w)
    return _ladder_at_slope(curves, row, slope_w)


@inner
def _ladder_at_slope(curves: Curves, row: int, slope_w: float) -> float:
    """Return the rung of least energy - slope × time."""
    best, least = np.nan, np.inf
    for rung in range(curves.rows.rung_first[row], curves.rows.rung_end[row]):
        cost = curves.rungs.energy_j[rung] - slope_w * curves.rungs.time_s[rung]
        if cost < least:
            best, least = curves.rungs.time_s[rung], cost
    return best


@compiled
def energies(curves: Curves, rows: Ints, time_s: Floats) -> Floats:
    """Return the energy of rows at run times they can reach (m,)."""
    found = np.empty(rows.size)
    for a in range(rows.size):
        found[a] = energy_j(curves, rows[a], time_s[a])
    return found
