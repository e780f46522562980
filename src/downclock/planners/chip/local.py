"""Optimal clocks where every core has its own clock (local DVFS), for a given placement.

The order of tasks on each core is kept, start times and clocks are chosen: minimise
``Σ w_i (c1 u_i^(1-alpha) + c2 + c3 u_i)`` with ``u = 1 / clock`` so that task i takes ``w_i u_i``
and everything ends by the deadline. Convex; solved by Clarabel with one power cone a task.
At the optimum the marginal power ``c1 (alpha-1) f^alpha - c3`` flows through graph and core
order like a current: what enters a task leaves it. A balanced flow gives a lower bound whatever
solver found it, so every answer carries its own proof (`LocalClocks.bound`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from downclock.errors import InvalidInput, MissingExtra
from downclock.planners.chip.between import with_pairs
from downclock.planners.chip.clocks import ChipPower
from downclock.planners.chip.flow_clocks import flow_of_cores, flow_of_placement
from downclock.planners.chip.kernels.flow import push_flow
from downclock.planners.chip.model import Placement, WorkGraph
from downclock.planners.highs import entries
from downclock.problem.graph import Edges
from downclock.units import TOLERANCE, Floats

_LENGTHS = (100.0, 30.0, 300.0, 10.0, 1000.0)
"""Deadline in solver units, tried in turn until the proof closes: with the deadline near 1, or in
cycles, the solver stops several percent too high, and on some graphs one scale alone fails."""

_CLOSED = 2e-7
"""Relative duality gap at which the first scale is good enough."""

_CONES = 2_000
"""Tasks up to which the cone program is solved; beyond, a flow that settles (`flow_clocks`)."""

_STRETCHES = 4
_REDUCE_BELOW = 20_000
"""Tasks up to which redundant edges are dropped: the bits take n² / 8 bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class LocalClocks:
    """Clock and start time of each task (n,), the energy, and its proof.

    Attributes:
        clock: clock of each task; 1 where a task has no work.
        start: start times, as early as the clocks allow.
        energy: of these clocks, each core drawing c2 f + c3 by itself.
        bound: no clocks for this placement need less (dual value of the flow).
    """

    clock: Floats
    start: Floats
    energy: float
    bound: float

    @property
    def residual(self) -> float:
        """Duality gap relative to the energy: 0 where all optimality conditions hold."""
        return (self.energy - self.bound) / self.energy if self.energy > 0.0 else 0.0


def local_clocks(
    graph: WorkGraph,
    placement: Placement | None,
    deadline: float,
    power: ChipPower,
    *,
    cores: float | None = None,
    quick: bool = False,
) -> LocalClocks:
    """Optimal clocks of the chip's range; without a placement, on as many cores as you like.

    ``cores`` limits the busy time to ``cores * deadline``, and that of the tasks between two
    others likewise: without a placement the answer then is a lower bound for every placement on
    that many cores. ``quick``, and where there are many tasks: nearly optimal, by a flow.

    Raises:
        InvalidInput: the deadline cannot be met.
    """
    joint = ordered_graph(graph, placement)
    length = joint.critical_path
    if length <= 0.0:
        return LocalClocks(np.ones(len(graph)), np.zeros(len(graph)), 0.0, 0.0)
    least = length / power.fastest
    if least > deadline * (1.0 + TOLERANCE):
        rule = f"is too short: the fastest clock needs {least}"
        raise InvalidInput(rule, field="deadline", value=deadline)
    if quick or len(graph) > _CONES:
        return _by_flow(joint, placement, deadline, power, cores)
    best: LocalClocks | None = None
    joint, between = (joint, None) if cores is None else with_pairs(joint, cores)
    for scale in _LENGTHS:
        model = _Model(joint, deadline, length, power, scale, cores, between)
        found = _proven(joint, model, deadline, power)
        if best is None or found.residual < best.residual:
            best = found
        if best.residual < _CLOSED:
            break
    assert best is not None
    n = len(graph)
    return replace(best, clock=best.clock[:n], start=best.start[:n])


def _by_flow(
    joint: WorkGraph,
    placement: Placement | None,
    deadline: float,
    power: ChipPower,
    cores: float | None,
) -> LocalClocks:
    """Take run times from a flow that settled, and stretch every task into what its paths leave."""
    limits = _slowness(power)
    if cores is None:
        core = None if placement is None else placement.core
        flow = flow_of_placement(joint, core, deadline, power, limits)
    else:
        flow = flow_of_cores(joint, cores, deadline, power, limits)
    low, high = limits
    bound = _dual(joint, flow.price, power) - flow.total * deadline
    with np.errstate(divide="ignore"):
        settled = _marginal_slowness(power, power.c3 + flow.last_price)
    found = [
        _clocks(joint, _stretched(joint, slowness, deadline, low, high), power, bound)
        for slowness in (settled, np.full(len(joint), deadline / joint.critical_path))
    ]
    return min(found, key=lambda clocks: clocks.energy)


def _stretched(
    graph: WorkGraph, slowness: Floats, deadline: float, low: float, high: float
) -> Floats:
    """Fit the slowness to the deadline, then give every task what its longest path leaves."""
    real = graph.work > 0.0
    slowness = np.where(real, np.minimum(slowness, 1e300), low)
    slowness = _fit(graph, slowness, deadline, low, high)
    for _ in range(_STRETCHES):
        time = graph.work * slowness
        through = np.where(real, graph.top_levels(time) + graph.bottom_levels(time), deadline)
        slowness = np.clip(slowness * (deadline / through), low, high)
    return _fit(graph, slowness, deadline, low, high)


def _proven(graph: WorkGraph, model: _Model, deadline: float, power: ChipPower) -> LocalClocks:
    """Solve, scale the clocks to end in time, balance the flow, and value both."""
    slowness, wish, entry = model.solve()
    through, total, flow = _balanced(graph, wish, entry)
    slowness = _fit(graph, slowness, deadline, model.low, model.high)
    rent = 0.0 if model.between is None else model.between.T @ (flow / model.times)
    bound = _dual(graph, through + rent, power) - total * deadline
    return _clocks(graph, slowness, power, bound)


def _clocks(graph: WorkGraph, slowness: Floats, power: ChipPower, bound: float) -> LocalClocks:
    real = graph.work > 0.0
    clock = 1.0 / np.where(real, slowness, 1.0)
    start = graph.top_levels(np.where(real, graph.work * slowness, 0.0))
    return LocalClocks(clock, start, float(graph.work @ power.per_cycle(clock)), bound)


def _slowness(power: ChipPower) -> Floats:
    """Least and most seconds a cycle that can be of use."""
    low, high = 1.0 / power.fastest, np.inf if power.slowest <= 0.0 else 1.0 / power.slowest
    if power.critical > 0.0:
        high = min(high, max(1.0 / power.critical, low))
    return np.array([low, high])


def _marginal_slowness(power: ChipPower, price: Floats) -> Floats:
    """Seconds a cycle that are best against a price of time."""
    return np.asarray((power.c1 * (power.alpha - 1.0) / price) ** (1.0 / power.alpha))


def ordered_graph(graph: WorkGraph, placement: Placement | None) -> WorkGraph:
    """Graph edges plus the order on each core, without edges that longer paths imply."""
    before, after = graph.before, graph.succ
    if placement is not None:
        extra = placement.core_order(graph)
        before = np.concatenate([before, extra.before])
        after = np.concatenate([after, extra.after])
    joint = WorkGraph.of(graph.work, Edges(before, after))
    return joint if len(graph) > _REDUCE_BELOW else joint.reduced()


class _Model:
    """The cone program. Unknowns: x (relative slowness), v >= x^(1-alpha), start times s.

    Slowness is relative to running the longest path exactly in time, so x is near 1; times are
    such that the deadline is ``scale``; the objective is divided by the total work.
    """

    def __init__(
        self,
        graph: WorkGraph,
        deadline: float,
        length: float,
        power: ChipPower,
        scale: float,
        cores: float | None,
        between: Any | None,
    ) -> None:
        self.graph, self.power, self.scale, self.between = graph, power, scale, between
        self.times = np.ones(graph.succ.size)
        if between is not None and cores is not None:
            self.times[np.diff(between.indptr) > 0] = cores
        self.unit = deadline / length  # slowness of x = 1
        self.real = np.flatnonzero(graph.work > 0.0)
        self.span = graph.work[self.real] * (scale / length)
        self.low, self.high = _slowness(power)
        self.sources = np.flatnonzero(np.diff(graph.pred_at) == 0)
        self.sinks = np.flatnonzero(np.diff(graph.succ_at) == 0)

    def solve(self) -> tuple[Floats, Floats, Floats]:
        """Return slowness (n,), the wished flow on edges (m,) and into sources."""
        try:
            import clarabel
        except ImportError:
            raise MissingExtra("clarabel", "solve", "local DVFS") from None
        from scipy import sparse

        rows, bounds = self._rows()
        matrix = sparse.csc_matrix(rows)
        k = self.real.size
        quadratic = sparse.csc_matrix((matrix.shape[1], matrix.shape[1]))
        cones = [clarabel.NonnegativeConeT(matrix.shape[0] - 3 * k)]
        cones += [clarabel.PowerConeT(1.0 / self.power.alpha)] * k
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        solver = clarabel.DefaultSolver(
            quadratic, self._objective(matrix.shape[1]), matrix, bounds, cones, settings
        )
        answer = solver.solve()
        return self._unpack(np.array(answer.x), np.array(answer.z))

    def _objective(self, width: int) -> Floats:
        """Energy per total work, in units of c1 unit^(1-alpha)."""
        share = self.graph.work[self.real] / self.graph.total_work
        cost = np.zeros(width)
        k = self.real.size
        cost[:k] = share * self.power.c3 * self.unit**self.power.alpha / self.power.c1
        cost[k : 2 * k] = share
        return cost * self.scale

    def _rows(self) -> tuple[Any, Floats]:
        """Constraint matrix over (x, v, s) and right-hand side, inequalities first."""
        from scipy import sparse

        graph, k, n = self.graph, self.real.size, len(self.graph)
        place = np.full(n, -1, dtype=np.int64)
        place[self.real] = np.arange(k)
        before, after = graph.before, graph.succ
        m, sources, sinks = after.size, self.sources, self.sinks
        count = m + sources.size + sinks.size
        tail = np.concatenate([before, sinks])
        tail_row = np.concatenate([np.arange(m), np.arange(m + sources.size, count)])
        works = place[tail] >= 0
        own = place[tail[works]]
        x = entries(tail_row[works], own, (count, k), self.span[own])
        head, head_row = np.concatenate([after, sources]), np.arange(m + sources.size)
        sign = np.repeat([1.0, -1.0], [tail.size, head.size])
        s_at = np.concatenate([tail_row, head_row]), np.concatenate([tail, head])
        s = entries(*s_at, (count, n), sign)
        right = np.zeros(count)
        right[m + sources.size :] = self.scale
        x, s = self._crowded(x, s)
        none = sparse.csr_matrix((count, k))
        linear = sparse.hstack([x, none, s])
        boxes, box_right = self._boxes(n)
        cone, cone_right = self._cones(n)
        return sparse.vstack([linear, boxes, cone]), np.concatenate([right, box_right, cone_right])

    def _crowded(self, x: Any, s: Any) -> tuple[Any, Any]:
        """Turn the rows of pairs into: run times between <= cores times the gap."""
        from scipy import sparse

        if self.between is None:
            return x, s
        times = sparse.diags_array(
            np.concatenate([self.times, np.ones(x.shape[0] - self.times.size)])
        )
        busy = self.between[:, self.real] @ sparse.diags_array(self.span)
        none = sparse.csr_matrix((x.shape[0] - busy.shape[0], busy.shape[1]))
        return times @ x + sparse.vstack([busy, none]), times @ s

    def _boxes(self, n: int) -> tuple[Any, Floats]:
        """Rows for x <= high where the deadline alone allows more, and for x >= low."""
        from scipy import sparse

        k = self.real.size
        eye = sparse.csr_matrix(sparse.eye_array(k, 2 * k + n))
        capped = np.flatnonzero(self.high / self.unit < self.scale / self.span)
        floored = np.arange(k if self.low > 0.0 else 0)
        right = np.repeat([self.high, -self.low], [capped.size, floored.size]) / self.unit
        return sparse.vstack([eye[capped], -eye[floored]]), right

    def _cones(self, n: int) -> tuple[Any, Floats]:
        """Rows that put (v, x, 1) into a power cone for each task."""
        k = self.real.size
        row, x = 3 * np.arange(k), np.arange(k)
        at = np.concatenate([row, row + 1]), np.concatenate([k + x, x])
        return entries(*at, (3 * k, 2 * k + n), -1.0), np.tile([0.0, 0.0, 1.0], k)

    def _unpack(self, x: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        slowness = np.ones(len(self.graph)) * self.unit
        k = self.real.size
        slowness[self.real] = np.clip(x[:k], 1e-12, np.inf) * self.unit
        m = self.graph.succ.size
        # The solver's unit of energy is c1 unit^(1-alpha) W / scale, of time deadline / scale.
        scale = self.power.c1 * self.unit ** (-self.power.alpha) * self.graph.total_work
        scale /= self.graph.critical_path
        entry = z[m : m + self.sources.size]
        return slowness, z[:m] * self.times * scale, entry * scale


def _fit(graph: WorkGraph, slowness: Floats, deadline: float, low: float, high: float) -> Floats:
    """Scale the slowness so that the last task ends exactly at the deadline where it may."""
    slowness = np.clip(slowness, low, high)
    for _ in range(50):
        length = graph.bottom_levels(graph.work * slowness).max()
        if deadline * (1.0 - 1e-12) <= length <= deadline:
            return slowness
        scaled = np.clip(slowness * (deadline / length) * (1.0 - 1e-15), low, high)
        if np.array_equal(scaled, slowness):
            return slowness
        slowness = scaled
    length = graph.bottom_levels(graph.work * slowness).max()
    least = low * graph.critical_path
    if length > deadline > least:  # mix with the fastest clock: paths mix alike
        slowness = low + (slowness - low) * ((deadline - least) / (length - least))
    return slowness


def _balanced(graph: WorkGraph, wish: Floats, entry: Floats) -> tuple[Floats, float, Floats]:
    """Return the flow through each task after balancing, the total, and that on each edge."""
    through = np.zeros(len(graph))
    through[np.diff(graph.pred_at) == 0] = np.maximum(entry, 0.0)
    total = float(through.sum())
    wish, before = np.maximum(wish, 0.0), graph.before
    asked = np.bincount(before, wish, len(graph))[before]
    split = 1.0 / np.diff(graph.succ_at)[before]  # evenly where nothing is wished
    np.divide(wish, asked, out=split, where=asked > 0.0)
    push_flow(graph.order, graph.succ_at, graph.succ, split, through)
    return through, total, through[before] * split


def _dual(graph: WorkGraph, through: Floats, power: ChipPower) -> float:
    """Least energy with every task at its best against the price of its time, which is paid.

    Less what enters a balanced flow times the deadline it is a lower bound.
    """
    price = power.c3 + through
    with np.errstate(invalid="ignore", divide="ignore"):
        best = np.clip(_marginal_slowness(power, price), *_slowness(power))
        value = power.c1 * best ** (1.0 - power.alpha) + power.c2
        value = value + np.where(price > 0.0, price * best, 0.0)
    return float(graph.work @ value)
