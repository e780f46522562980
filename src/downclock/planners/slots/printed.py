"""The mixed integer program of gerhards section 4, as printed and corrected.

As printed it is wrong: (7) and (9) are off by one, so that a task may also run in the slot before
its start and after its stop, and (12) then lets a successor run beside its predecessor; (10) asks
for at least two slots a task, so that unit tasks on a tight path make it infeasible; (11) only
counts slots. `FLAWS` lists each with its correction, and each can be switched on alone. It serves
to reproduce those failures and, corrected, as an oracle on tiny cases: it needs tasks x machines x
levels x slots binaries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from downclock.planners.highs import Rows, solve_integer
from downclock.planners.result import Status
from downclock.planners.slots.model import SlotGraph
from downclock.units import Bools, Floats, Ints

Reading: TypeAlias = Literal["printed", "corrected"] | frozenset[str]
"""All places as printed, none, or those named (keys of `FLAWS`)."""

LAST = "0 <= l <= D'"

FLAWS = {
    "(7)": "sums x over l' < l: slot start-1 may be used; corrected to l' <= l",
    "(9)": "sums x over l' > l: slot stop+1 may be used; corrected to l' >= l",
    "(10)": "1 + start <= stop asks for two slots a task; corrected to start <= stop",
    "(11)": "only counts slots; contiguous once (7) and (9) are corrected",
    "(4)": "a weak row for every pair of machines; one row a machine says the same",
    LAST: "one slot too many, against 0 <= l < D' in section 3",
}
"""What is wrong in the printed program, by equation."""

PRINTED = frozenset(FLAWS) - {LAST}
"""Places of the reading "printed". The slot D' has no price, so section 3 is followed there."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramRun:
    """What the program returned.

    Attributes:
        status: "optimal", "infeasible", or "feasible" where time ran out.
        cost: of the returned schedule; NaN without one.
        running: slots in which each task runs at a level above off (n, slots).
        holding: slots in which it is mapped at all, off included (n, slots).
        rows: number of rows of the program.
    """

    status: Status
    cost: float
    running: Bools
    holding: Bools
    rows: int

    def broken_edges(self, graph: SlotGraph) -> int:
        """Count edges whose successor runs before or beside its predecessor."""
        broken = 0
        for i, j in graph.edges:
            ends = np.flatnonzero(self.running[i])
            starts = np.flatnonzero(self.running[j])
            broken += bool(ends.size and starts.size and starts[0] <= ends[-1])
        return broken

    def gaps(self) -> int:
        """Count tasks that give their machine away between their first and last slot."""
        held = [np.flatnonzero(row) for row in self.holding]
        return sum(bool(at.size and at[-1] - at[0] + 1 > at.size) for at in held)


class _Names(NamedTuple):
    """Positions of x[i, j, k, l], z[i, j], y[i, l] and Y[i, l] among the variables."""

    x: Ints
    z: Ints
    start: Ints
    stop: Ints

    @classmethod
    def of(cls, graph: SlotGraph) -> _Names:
        """Number all variables; levels include off."""
        n, machines, slots = len(graph), graph.machines, graph.slots
        x = (n, machines, graph.units[0].size + 1, slots)
        shapes = (x, (n, machines), (n, slots), (n, slots))
        ends = np.cumsum([prod(shape) for shape in shapes]).tolist()
        every = np.split(np.arange(ends[-1]), ends[:-1])
        return cls(*(each.reshape(shape) for each, shape in zip(every, shapes, strict=True)))

    @property
    def size(self) -> int:
        """Number of variables."""
        return sum(each.size for each in self)


def solve_program(graph: SlotGraph, reading: Reading, *, seconds: float = 60.0) -> ProgramRun:
    """Solve the program of section 4 with HiGHS, as printed or corrected.

    Levels include off (the paper's f_n = 0), so a task may pause on its machine.
    """
    from scipy.optimize import Bounds

    named = {"printed": PRINTED, "corrected": frozenset[str]()}
    places = named[reading] if isinstance(reading, str) else reading
    if LAST in places:  # slot D' too, at the last price
        price, nothing = np.append(graph.price, graph.price[-1]), np.empty(0, dtype=np.int64)
        graph = replace(graph, price=price, release=nothing, due=nothing)
    names = _Names.of(graph)
    rows = _rows(graph, names, places)
    cost = np.zeros(names.size)
    cost[names.x] = np.multiply.outer(np.append(0.0, graph.power[0]), graph.price)
    rules, whole = rows.constraint(names.size), np.ones(names.size, dtype=np.int64)
    limits = {"time_limit": seconds, "mip_rel_gap": 0.0}
    answer = solve_integer(
        cost, integrality=whole, bounds=Bounds(0.0, 1.0), constraints=rules, options=limits
    )
    return _run(names, answer, cost, len(rows))


def _run(names: _Names, answer: Any, cost: Floats, rows: int) -> ProgramRun:
    if answer.x is None:
        status: Status = "infeasible" if answer.status == 2 else "feasible"
        nowhere = np.zeros(names.start.shape, dtype=bool)
        return ProgramRun(status, np.nan, nowhere, nowhere, rows)
    chosen = answer.x[names.x] > 0.5
    running, holding = (np.any(each, axis=(1, 2)) for each in (chosen[:, :, 1:], chosen))
    status = "optimal" if answer.status == 0 else "feasible"
    return ProgramRun(status, float(cost @ np.round(answer.x)), running, holding, rows)


def _rows(graph: SlotGraph, names: _Names, places: frozenset[str]) -> Rows:
    rows = Rows()
    for i in range(len(graph)):
        _task_rows(rows, graph, names, i, places)
        _time_rows(rows, names, i, places)
    for j in range(graph.machines):
        for t in range(graph.slots):  # (3)
            rows.add(-np.inf, 1.0, (names.x[:, j, :, t], 1.0))
    slot = np.arange(graph.slots, dtype=np.float64)
    for i, j in graph.edges:
        rows.add(1.0, np.inf, (names.start[j], slot), (names.stop[i], -slot))  # (12)
    return rows


def _task_rows(rows: Rows, graph: SlotGraph, names: _Names, i: int, places: frozenset[str]) -> None:
    """Rows (1), (2), (4) and (5): one level a slot, enough work, one machine."""
    x, z = names.x[i], names.z[i]
    units = np.concatenate([[0], graph.units[0]]).astype(np.float64)
    most = float(graph.slots)
    for j in range(graph.machines):
        for t in range(graph.slots):
            rows.add(-np.inf, 1.0, (x[j, :, t], 1.0))
        if "(4)" not in places:
            rows.add(-np.inf, 0.0, (x[j], 1.0), (z[j : j + 1], -most))
            continue
        for other in range(graph.machines):
            if other != j:
                rows.add(-np.inf, most, (x[other], 1.0), (z[j : j + 1], most))
    rows.add(float(graph.work[i]), np.inf, (x, np.broadcast_to(units[None, :, None], x.shape)))
    rows.add(1.0, 1.0, (z, 1.0))


def _time_rows(rows: Rows, names: _Names, i: int, places: frozenset[str]) -> None:
    """Rows (6) to (11): one start, one stop, and the slots between them.

    Row (11) is the same in every reading: what it fails to say, (7) and (9) say once corrected.
    """
    x, y, stop = names.x[i], names.start[i], names.stop[i]
    at_start, at_stop = int("(7)" not in places), int("(9)" not in places)
    slots = y.size
    slot = np.arange(slots, dtype=np.float64)
    rows.add(1.0, 1.0, (y, 1.0))
    rows.add(1.0, 1.0, (stop, 1.0))
    for t in range(slots):
        rows.add(-np.inf, 0.0, (x[:, :, : t + at_start], 1.0), (y[: t + 1], -float(slots)))
        rows.add(-np.inf, 0.0, (x[:, :, t + 1 - at_stop :], 1.0), (stop[t:], -float(slots)))
    rows.add(float("(10)" in places), np.inf, (stop, slot), (y, -slot))
    rows.add(1.0, 1.0, (x, 1.0), (stop, -slot), (y, slot))
