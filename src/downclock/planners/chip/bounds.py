"""Lower bounds on the energy of any schedule of a task graph on M equal cores.

Weighted makespan (one clock for the chip), all in cycles:

- `lemma3_bound`: total work and least makespan only (gerards Lemma 3), sharper where all work is
  whole: then some best schedule starts every task at a whole cycle, because the cost is linear
  as long as the order of starts and ends does not change and difference constraints have whole
  corners. The same holds for multiples of any unit.
- `LevelProgram`: a linear program over the cycles with exactly m active cores, stage by stage
  between near-barriers (`level_program`). Both bounds of the paper follow from it.

Energy (a clock per core): `local_bound`, the convex program without a placement, whose busy time
is limited by what M cores have.
"""

from __future__ import annotations

import numpy as np

from downclock.planners.chip.clocks import ChipPower, energy_of_weighted
from downclock.planners.chip.level_program import LevelProgram
from downclock.planners.chip.local import local_clocks
from downclock.planners.chip.model import WorkGraph
from downclock.units import Floats


def global_bound(graph: WorkGraph, cores: int, deadline: float, power: ChipPower) -> float:
    """Least energy any schedule with one chip-wide clock can have."""
    if graph.total_work <= 0.0:
        return 0.0
    program = LevelProgram.of(graph, cores)
    weighted = _weighted(program, power.alpha)
    free = energy_of_weighted(weighted, deadline, power) + power.c2 * program.lengths.whole
    common = max(power.critical, weighted / deadline)
    slowest_used = common * cores ** (-1.0 / power.alpha)
    if not power.levels and power.slowest <= slowest_used and common <= power.fastest:
        return free
    return max(free, _limited_bound(program, deadline, power))


def _limited_bound(program: LevelProgram, deadline: float, power: ChipPower) -> float:
    """Bound for limited clocks, by a price of time.

    For every price p >= 0 the energy is at least ``Σ ω_m h_m - p d`` where h_m is the least of
    energy plus p times time of a cycle with m active cores over the allowed clocks; h is concave
    in m, so the level program bounds the sum. The price is that of the program's own answer.
    """
    best, price = 0.0, 0.0
    for _ in range(3):
        value, omega = program.solve(_cycle_cost(program.cores, power, price))
        best = max(best, value - price * deadline)
        if omega is None:
            break
        price = _price_of_time(omega, deadline, power)
    return best


def _cycle_cost(cores: int, power: ChipPower, price: float) -> Floats:
    """Return h_m for m = 1..cores."""
    m = np.arange(1.0, cores + 1.0)[:, None]
    f = np.array(power.levels)[None, :]
    if not power.levels:
        free = ((power.c3 + price) / (m * power.c1 * (power.alpha - 1.0))) ** (1.0 / power.alpha)
        f = np.clip(free, max(power.slowest, 1e-300), power.fastest)
    joules = m * power.c1 * f ** (power.alpha - 1.0) + power.c2 + (power.c3 + price) / f
    return np.asarray(joules.min(axis=1))


def _price_of_time(omega: Floats, deadline: float, power: ChipPower) -> float:
    """Return the price at which these cycles, each at its best clock, just meet the deadline."""

    def seconds(price: float) -> float:
        step = 1e-6 * max(price, 1e-9)
        rise = _cycle_cost(omega.size - 1, power, price + step)
        return float(omega[1:] @ (rise - _cycle_cost(omega.size - 1, power, price))) / step

    low, high = 0.0, 1.0
    while seconds(high) > deadline and high < 1e30:
        high *= 4.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if seconds(middle) > deadline else (low, middle)
    return high


def local_bound(graph: WorkGraph, cores: int, deadline: float, power: ChipPower) -> float:
    """Least energy any schedule with a clock per core can have."""
    found = [
        local_clocks(graph, None, deadline, power, cores=cores, quick=quick).bound
        for quick in (True, False)
    ]
    return max(*found, 0.0)


def weighted_bound(graph: WorkGraph, cores: int, alpha: float = 3.0) -> float:
    """Best lower bound on the weighted makespan."""
    return _weighted(LevelProgram.of(graph, cores), alpha)


def _weighted(program: LevelProgram, alpha: float) -> float:
    cores, length, unit = program.cores, program.lengths.whole, program.unit
    simple = lemma3_bound(program.graph.total_work, length, cores, alpha, unit)
    if cores == 1:
        return simple
    return max(simple, program.solve(ChipPower(alpha=alpha).weight(cores)[1:])[0])


def lemma3_bound(
    work: float, shortest: float, cores: int, alpha: float = 3.0, unit: float = 0.0
) -> float:
    """Least weighted makespan for a total work and a critical path or other least makespan.

    Lemma 3 of gerards.

    ``unit``: what the work of every task is a multiple of; 0 where there is no such number.
    """
    if cores == 1:
        return work
    top = cores ** (1.0 / alpha)
    if unit <= 0.0:
        length = max(shortest, work / cores)
        full = (work - length) / (cores - 1)
        return float(length - full + full * top)
    work, shortest = round(work / unit), round(shortest / unit)
    length = max(shortest, -(-work // cores))
    full, rest = divmod(work - length, cores - 1)
    alone = length - full - (rest > 0)
    return float(unit * (full * top + (rest > 0) * (1.0 + rest) ** (1.0 / alpha) + alone))
