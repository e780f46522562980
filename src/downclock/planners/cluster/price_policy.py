"""Our policy for prices: when to start, at which clock, on which server and at which site."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from downclock.engine.policy import Decisions, Policy, View, joined, merged
from downclock.errors import InvalidInput
from downclock.planners.cluster.price_bound import expected, known_tariff, known_until_s, tariff_of
from downclock.planners.cluster.price_choice import (
    Watch,
    asked_again,
    asking,
    pays,
    taken_over,
    trust,
)
from downclock.planners.cluster.price_columns import (
    asked_of,
    curves_for,
    decided,
    fleet_of,
    latest_s,
)
from downclock.planners.lists.lengths import OneClock
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.units import Bools, Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.price_plan import Plan
    from downclock.planners.cluster.kernels.price_spans import Tariff

TIE = 1e-3
"""Weight of energy where it costs nothing, as a part of its mean value: no burning for nothing."""

CROWD = 3.0
"""So many times the processors of a server must wait or run before less than all of the time that
it is kept awake longer counts as idle; the more tasks there are, the less, as others fill it."""


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
        """An empty plan; that of the price-blind policy until waiting is found to pay."""
        if self._flat(view):
            return self.calm.start(view)
        if self.dvfs:
            return Watch(self.calm.start(self._known(view)))
        return _empty(view, view.problem.platform.initially_on)

    def run(self, state: Any, view: View, arrived: Ints, until_s: float) -> tuple[Any, Decisions]:
        """Plan ``arrived`` and start what is due; a batch keeps the best of several plans."""
        if self._flat(view):
            return self.calm.run(state, view, arrived, until_s)
        if arrived.size == 0 or np.any(view.problem.tasks.arrival_s > 0.0):
            return self._online(state, view, arrived, until_s)
        on = view.problem.platform.initially_on
        plans = [self._plan(_empty(view, on), view, arrived, np.inf, w) for w in (CROWD, np.inf)]
        if self.dvfs:
            known = self._known(view)
            plans += [
                policy.run(policy.start(known), known, arrived, np.inf)[1]
                for policy in (self.calm, *self.rivals)
            ]
        best = min(plans, key=lambda each: self._cost(view, each))
        return _empty(view, np.zeros_like(on)), best

    def _online(
        self, state: Any, view: View, arrived: Ints, until_s: float
    ) -> tuple[Any, Decisions]:
        """Let the price-blind policy plan until waiting for cheap hours pays; then wait."""
        parts, known = [], self._known(view)
        while isinstance(state, Watch):
            come_s = view.problem.tasks.arrival_s[arrived]
            at = asking(state, come_s)
            if at < 0:
                calm, decided = self.calm.run(state.calm, known, arrived, until_s)
                parts.append(decided)
                return state._replace(calm=calm, seen=state.seen + arrived.size), joined(parts)
            now_s = float(come_s[at])
            before, now = (int(np.searchsorted(come_s, now_s, side)) for side in ("left", "right"))
            calm, decided = self.calm.run(state.calm, known, arrived[:before], now_s)
            parts.append(decided)
            arrived = arrived[before:]
            if self._pays(view, now_s):
                state = taken_over(view, self._tied(view), calm, now_s)
            else:
                state = asked_again(state, calm, before, now - before, now_s)
        parts.append(self._plan(state, view, arrived, until_s, CROWD))
        return state, joined(parts)

    def _pays(self, view: View, now_s: float) -> bool:
        until_s = known_until_s(view.problem, self.objective)
        trusted = trust(view.problem, self.objective)
        return pays(view, self._tied(view), trusted, self._latest_s(view), until_s, now_s)

    def _flat(self, view: View) -> bool:
        """Tell whether a joule is worth the same everywhere, as long as prices are known."""
        rate = self._tariff(view).rate
        return self.dvfs and bool(np.all(rate == rate[0, 0]))

    def _tariff(self, view: View) -> Tariff:
        return view.once(
            ("tariff", str(self.objective)), lambda: known_tariff(view.problem, self.objective)
        )

    def _tied(self, view: View) -> Tariff:
        """The tariff with a little weight on energy; computed once."""

        def compute() -> Tariff:
            from downclock.planners.cluster.kernels.price_spans import new_tariff

            plain = self._tariff(view)
            mean = plain.past[:, -1].mean() / plain.edge_s[-1]
            return new_tariff(plain.edge_s, plain.rate + TIE * mean)

        return view.once(("tied tariff", str(self.objective)), compute)

    def _latest_s(self, view: View) -> Floats:
        """When each task must end; computed once."""

        def compute() -> Floats:
            until_s = known_until_s(view.problem, self.objective)
            return latest_s(view.problem, until_s, float(self._tariff(view).edge_s[-2]))

        return view.once(("latest", str(self.objective)), compute)

    def _known(self, view: View) -> View:
        """For rivals: a task without a deadline has to end while prices are known."""
        tasks = view.problem.tasks
        if np.all(np.isfinite(tasks.deadline_s)):
            return view

        def compute() -> View:
            return View(
                replace(view.problem, tasks=replace(tasks, deadline_s=self._latest_s(view)))
            )

        return view.once(("known", str(self.objective)), compute)

    def _plan(
        self, state: Plan, view: View, arrived: Ints, until_s: float, crowd: float
    ) -> Decisions:
        from downclock.planners.cluster.kernels import price_plan as kernel
        from downclock.planners.cluster.kernels.price_run import run_priced

        tasks, fleet, tariff = view.problem.tasks, fleet_of(view), self._tied(view)
        curves = curves_for(view, self.dvfs)
        asked = asked_of(view, curves, self._latest_s(view))
        able = arrived[(tasks.scale[arrived] > 0.0) & (tasks.processors[arrived] == 1)]
        order = able[np.lexsort((able, tasks.deadline_s[able], tasks.arrival_s[able]))]
        m = int((state.place >= 0).sum()) + able.size
        counts, times = np.zeros((2, m), np.int64), np.zeros((2, m))
        spans = np.zeros((m + 2 * fleet.zone.size, 3))
        state.tally[kernel.PLACED] = state.tally[kernel.SPANS] = 0
        while True:
            out = kernel.Written(counts[0], counts[1], times[0], times[1], spans)
            done = run_priced(fleet, asked, curves, tariff, state, out, crowd, order, until_s)
            if done < 0:
                break
            order, spans = order[done:], np.concatenate([spans, np.zeros_like(spans)])
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


def _empty(view: View, on: Bools) -> Plan:
    """A plan without tasks; servers with ``on`` are awake. With none on nothing more happens."""
    from downclock.planners.cluster.kernels.price_plan import new_plan

    return new_plan(fleet_of(view), on.astype(np.int64), len(view.problem.tasks))
