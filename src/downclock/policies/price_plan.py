"""Our policy for prices: when to start, at which clock, on which server and at which site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from downclock.errors import InvalidInput
from downclock.exact.price_bound import expected, tariff_of
from downclock.policies.interface import Decisions, Policy, View, merged
from downclock.policies.lengths import OneClock
from downclock.policies.price_columns import asked_of, curves_for, decided, fleet_of
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.schedule.account import account
from downclock.units import Ints

if TYPE_CHECKING:
    from downclock.kernels.price_plan import Plan
    from downclock.kernels.price_spans import Tariff

TIE = 1e-3
"""Weight of energy where it costs nothing, as a part of its mean value: no burning for nothing."""

CROWD = 1.0
"""Part of the time a server is kept awake longer that will idle, where as many tasks wait or run as
the server has processors; the more there are, the less, as others come to fill it."""


@dataclass(frozen=True, slots=True)
class ThriftyPolicy:
    """Plan every task at the least added value; hold it back until its planned start.

    Attributes:
        name: name in the catalogue.
        objective: what a joule is worth, by zone and time.
        dvfs: False runs at default clocks, only the time and the place are chosen.
        calm: plans where the value of a joule never changes, and is a rival for batches.
        rivals: further rivals for batches.
    """

    name: str
    objective: Objective
    dvfs: bool
    calm: Policy
    rivals: tuple[Policy, ...] = ()

    def objection(self, problem: Problem) -> str | None:
        """As the price-blind policy; and prices must be known up to the last deadline."""
        objection = self.calm.objection(problem)
        if objection is not None:
            return objection
        try:
            tariff_of(problem, self.objective)
        except InvalidInput as error:
            return error.rule if error.source is None else f"{error.source}: {error.rule}"
        return None

    def start(self, view: View) -> Any:
        """An empty plan; where nothing changes, that of the price-blind policy."""
        from downclock.kernels.price_plan import new_plan

        if self._flat(view):
            return self.calm.start(view)
        on = view.problem.platform.initially_on.astype(np.int64)
        return new_plan(fleet_of(view), on, len(view.problem.tasks))

    def run(self, state: Any, view: View, arrived: Ints, until_s: float) -> tuple[Any, Decisions]:
        """Plan ``arrived`` and start what is due; a batch keeps the best of several plans."""
        if self._flat(view):
            return self.calm.run(state, view, arrived, until_s)
        if arrived.size == 0 or np.any(view.problem.tasks.arrival_s > 0.0):
            return state, self._plan(state, view, arrived, until_s, CROWD)
        plans = [self._plan(self.start(view), view, arrived, np.inf, w) for w in (CROWD, np.inf)]
        if self.dvfs:
            plans += [
                policy.run(policy.start(view), view, arrived, np.inf)[1]
                for policy in (self.calm, *self.rivals)
            ]
        return state, min(plans, key=lambda each: self._cost(view, each))

    def _flat(self, view: View) -> bool:
        """Tell whether a joule is worth the same everywhere from the first arrival on."""
        tariff, tasks = self._tariff(view), view.problem.tasks
        rate = tariff.rate[:, tariff.edge_s[1:] > tasks.arrival_s.min()]
        return self.dvfs and bool(np.all(rate == rate[0, 0]))

    def _tariff(self, view: View) -> Tariff:
        return view.once(
            ("tariff", str(self.objective)), lambda: tariff_of(view.problem, self.objective)
        )

    def _plan(
        self, state: Plan, view: View, arrived: Ints, until_s: float, crowd: float
    ) -> Decisions:
        from downclock.kernels import price_plan as kernel
        from downclock.kernels.price_run import run_priced
        from downclock.kernels.price_spans import new_tariff

        tasks, plain = view.problem.tasks, self._tariff(view)
        tariff = new_tariff(plain.edge_s, plain.rate + TIE * plain.rate.mean())
        curves = curves_for(view, self.dvfs)
        asked = asked_of(view, curves, float(tariff.edge_s[-1]))
        able = arrived[(tasks.scale[arrived] > 0.0) & (tasks.processors[arrived] == 1)]
        order = able[np.lexsort((able, tasks.deadline_s[able], tasks.arrival_s[able]))]
        m = int((state.place >= 0).sum()) + able.size
        counts, times = np.zeros((2, m), np.int64), np.zeros((2, m))
        spans = np.zeros((m + int(state.awake.sum()), 3))
        state.tally[kernel.PLACED] = state.tally[kernel.SPANS] = 0
        out = kernel.Written(counts[0], counts[1], times[0], times[1], spans)
        run_priced(fleet_of(view), asked, curves, tariff, state, out, crowd, order, until_s)
        m, rows = int(state.tally[kernel.PLACED]), int(state.tally[kernel.SPANS])
        out = kernel.Written(
            out.task[:m], out.processor[:m], out.start_s[:m], out.length_s[:m], spans[:rows]
        )
        return decided(view, asked, out, arrived, None if self.dvfs else OneClock())

    def _cost(self, view: View, each: Decisions) -> tuple[int, float]:
        """Tasks lost, and the value of the rest as far as it can be foreseen."""
        seen = view.once("expected", lambda: expected(view.problem))
        bill = account(seen, merged(seen, [each], ""))
        carbon = bill.carbon_kg
        return each.rejected.size, self.objective.value(bill.total_j, bill.money_clipped, carbon)
