"""Lower bounds on the energy of any schedule of a task graph on M equal cores.

Weighted makespan (one clock for the chip), all in cycles:

- `lemma3_bound`: total work and critical path only (gerards Lemma 3), sharper where all work is
  whole: then some best schedule starts every task at a whole cycle, because the cost is linear
  as long as the order of starts and ends does not change and difference constraints have whole
  corners. The same holds for multiples of any unit.
- `level_bound`: a linear program over ``T_m``, the cycles with exactly m active cores, and
  ``z_im``, how long task i runs in them. No two tasks of a path run at once, so at every m the
  longest path of ``z_·m`` is at most ``T_m``; the z add up to the work of each task and, at
  every m, to ``m T_m``; the T to the least makespan (`graph_length`). Both bounds of the paper
  follow from it. Whole work makes T whole.

Energy (a clock per core): `local_bound`, the convex program without a placement, whose busy time
is limited by what M cores have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from downclock.planners.chip.clocks import ChipPower, energy_of_weighted
from downclock.planners.chip.length import least_length
from downclock.planners.chip.local import local_clocks, reduced
from downclock.planners.chip.model import WorkGraph
from downclock.planners.highs import solve_integer
from downclock.units import Floats

_SAFETY = 1e-7
"""Relative allowance for the solver's own tolerance."""

_LARGEST = 60_000
"""Unknowns up to which the linear program is tried."""


def global_bound(
    graph: WorkGraph,
    cores: int,
    deadline: float,
    power: ChipPower,
    levels: Floats | tuple[float, float] = (0.0, np.inf),
    time_limit_s: float = 10.0,
) -> float:
    """Least energy any schedule with one chip-wide clock can have.

    ``levels`` are the enumerated clocks (k,), or the slowest and fastest of a range.
    """
    if graph.total_work <= 0.0:
        return 0.0
    length = least_length(graph, cores, common_unit(graph))
    weighted = weighted_bound(graph, cores, power.alpha, time_limit_s, length)
    free = energy_of_weighted(weighted, deadline, power) + power.c2 * length
    common = max(power.critical, weighted / deadline)
    slowest_used, fastest_used = common * cores ** (-1.0 / power.alpha), common
    low, high = float(np.min(levels)), float(np.max(levels))
    if isinstance(levels, tuple) and low <= slowest_used and fastest_used <= high:
        return free
    return max(free, _limited_bound(graph, cores, deadline, power, levels, time_limit_s, length))


def _limited_bound(
    graph: WorkGraph,
    cores: int,
    deadline: float,
    power: ChipPower,
    levels: Floats | tuple[float, float],
    time_limit_s: float,
    length: float,
) -> float:
    """Bound for limited clocks, by a price of time.

    For every price p >= 0 the energy is at least ``Σ ω_m h_m - p d`` where h_m is the least of
    energy plus p times time of a cycle with m active cores over the allowed clocks; h is concave
    in m, so the level program bounds the sum. The price is that of the program's own answer.
    """
    best, price = 0.0, 0.0
    for _ in range(3):
        cost = _cycle_cost(cores, power, levels, price)
        value, omega = _level_program(graph, cores, cost, time_limit_s, length)
        best = max(best, value - price * deadline)
        if omega is None:
            break
        price = _price_of_time(omega, deadline, power, levels)
    return best


def _cycle_cost(
    cores: int, power: ChipPower, levels: Floats | tuple[float, float], price: float
) -> Floats:
    """Return h_m for m = 1..cores."""
    m = np.arange(1.0, cores + 1.0)[:, None]
    if isinstance(levels, tuple):
        free = ((power.c3 + price) / (m * power.c1 * (power.alpha - 1.0))) ** (1.0 / power.alpha)
        f = np.clip(free, max(levels[0], 1e-300), levels[1])
    else:
        f = np.asarray(levels, dtype=np.float64)[None, :]
    joules = m * power.c1 * f ** (power.alpha - 1.0) + power.c2 + (power.c3 + price) / f
    return np.asarray(joules.min(axis=1))


def _price_of_time(
    omega: Floats, deadline: float, power: ChipPower, levels: Floats | tuple[float, float]
) -> float:
    """Return the price at which these cycles, each at its best clock, just meet the deadline."""

    def seconds(price: float) -> float:
        step = 1e-6 * max(price, 1e-9)
        rise = _cycle_cost(omega.size - 1, power, levels, price + step)
        return float(omega[1:] @ (rise - _cycle_cost(omega.size - 1, power, levels, price))) / step

    low, high = 0.0, 1.0
    while seconds(high) > deadline and high < 1e30:
        high *= 4.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if seconds(middle) > deadline else (low, middle)
    return high


def local_bound(
    graph: WorkGraph,
    cores: int,
    deadline: float,
    power: ChipPower,
    *,
    slowest: float = 0.0,
    fastest: float = np.inf,
) -> float:
    """Least energy any schedule with a clock per core can have."""
    relaxed = local_clocks(
        graph, None, deadline, power, slowest=slowest, fastest=fastest, cores=cores
    )
    return max(relaxed.bound, 0.0)


def weighted_bound(
    graph: WorkGraph,
    cores: int,
    alpha: float = 3.0,
    time_limit_s: float = 10.0,
    length: float | None = None,
) -> float:
    """Best lower bound on the weighted makespan within a time limit.

    ``length`` is `least_length` where it is known already, here and below.
    """
    if length is None:
        length = least_length(graph, cores, common_unit(graph))
    simple = simple_bound(graph, cores, alpha, length)
    if cores <= 2:  # Lemma 6: with two cores the makespan is all that counts
        return simple
    return max(simple, level_bound(graph, cores, alpha, time_limit_s, length))


def simple_bound(
    graph: WorkGraph, cores: int, alpha: float = 3.0, length: float | None = None
) -> float:
    """Least weighted makespan by total work and least makespan alone."""
    unit = common_unit(graph)
    if length is None:
        length = least_length(graph, cores, unit)
    return lemma3_bound(graph.total_work, length, cores, alpha, unit)


def common_unit(graph: WorkGraph) -> float:
    """Return the largest number all work is a multiple of; 0 if it is not whole, or in pieces."""
    if graph.pieces or not np.all(graph.work == np.rint(graph.work)) or graph.total_work > 2**53:
        return 0.0
    return float(np.gcd.reduce(graph.work.astype(np.int64)))


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


def level_bound(
    graph: WorkGraph,
    cores: int,
    alpha: float = 3.0,
    time_limit_s: float = 10.0,
    length: float | None = None,
) -> float:
    """Least weighted makespan of the level program; 0 where time runs out without a bound."""
    if length is None:
        length = least_length(graph, cores, common_unit(graph))
    cost = ChipPower(alpha=alpha).weight(cores)[1:]
    return _level_program(graph, cores, cost, time_limit_s, length)[0]


def _level_program(
    graph: WorkGraph, cores: int, cycle_cost: Floats, time_limit_s: float, length: float
) -> tuple[float, Floats | None]:
    """Least ``Σ T_m cost_m`` and the T (M + 1,) found, if any; ``cycle_cost`` (M,) concave."""
    from scipy.optimize import Bounds, LinearConstraint

    if 2 * cores * len(graph) > _LARGEST:
        return 0.0, None
    unit = common_unit(graph)
    scale = unit or float(graph.work.mean())
    paths, sums = _level_rows(graph, cores)
    right = np.concatenate([np.zeros(cores), graph.work / scale])
    cost = np.zeros(cores + 2 * cores * len(graph))
    cost[:cores] = cycle_cost
    integral = np.zeros(cost.size, dtype=np.int64)
    integral[:cores] = unit > 0.0
    shortest = length / scale * (1.0 - 1e-9)
    answer = solve_integer(
        cost,
        constraints=[
            LinearConstraint(paths, -np.inf, 0.0),
            LinearConstraint(sums, right, right),
            LinearConstraint((np.arange(cost.size) < cores)[None, :] * 1.0, shortest, np.inf),
        ],
        integrality=integral,
        bounds=Bounds(0.0, np.inf),
        options={"time_limit": time_limit_s, "mip_rel_gap": 1e-9},
    )
    proven = answer.mip_dual_bound if unit > 0.0 else answer.fun
    if proven is None or not np.isfinite(proven) or (answer.status != 0 and unit <= 0.0):
        return 0.0, None
    omega = None if answer.x is None else np.concatenate([[0.0], answer.x[:cores] * scale])
    return float(proven) * scale * (1.0 - _SAFETY), omega


def _level_rows(graph: WorkGraph, cores: int) -> tuple[Any, Any]:
    """Return the rows "<= 0" (paths) and "=" (sums) over (T, z by level, path ends by level)."""
    from scipy import sparse

    slim = reduced(graph)
    n, edges = len(graph), slim.succ.size
    sources = np.flatnonzero(np.diff(slim.pred_at) == 0)
    sinks = np.flatnonzero(np.diff(slim.succ_at) == 0)
    one_level = sparse.eye_array(cores)
    into = np.concatenate([slim.succ, sources])
    adds = _pick(np.arange(into.size), into, into.size, n)
    ends = -adds + _pick(np.arange(edges), slim.before, into.size, n)
    last = _pick(np.arange(sinks.size), sinks, sinks.size, n)
    steps = sparse.hstack(
        [
            sparse.csr_array((cores * into.size, cores)),
            sparse.kron(one_level, adds),
            sparse.kron(one_level, ends),
        ]
    )
    closing = sparse.hstack(
        [
            sparse.kron(one_level, -np.ones((sinks.size, 1))),
            sparse.csr_array((cores * sinks.size, cores * n)),
            sparse.kron(one_level, last),
        ]
    )
    return sparse.csr_array(sparse.vstack([steps, closing])), _sum_rows(n, cores)


def _sum_rows(n: int, cores: int) -> Any:
    """At each level m the z add up to m T; each task's z add up to its work."""
    from scipy import sparse

    levels = sparse.diags_array(-np.arange(1.0, cores + 1.0))
    per_level = sparse.kron(sparse.eye_array(cores), np.ones((1, n)))
    per_task = sparse.kron(np.ones((1, cores)), sparse.eye_array(n))
    unused = sparse.csr_array((cores, cores * n))
    top = sparse.hstack([levels, per_level, unused])
    bottom = sparse.hstack(
        [sparse.csr_array((n, cores)), per_task, sparse.csr_array((n, cores * n))]
    )
    return sparse.csr_array(sparse.vstack([top, bottom]))


def _pick(row: Any, column: Any, height: int, width: int) -> Any:
    from scipy import sparse

    return sparse.csr_array((np.ones(row.size), (row, column)), shape=(height, width))
