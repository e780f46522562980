"""The summary of a plan: its bill beside those of the usual ways, and beside the lower bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from downclock.planners.bounds import Bounds
from downclock.planners.catalog import (
    CATALOG,
    DEFAULT,
    objective_of,
    policy,
    with_objective,
    with_parameter,
    without_objective,
)
from downclock.planners.offline_solver import OfflinePolicy, planned_with_proof
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.quantities import count, duration, energy, money, percent, prefixed
from downclock.report.tables import Page, Table
from downclock.report.worth import ENERGY, Worth, goal, worth_of
from downclock.schedule.account.account import account
from downclock.schedule.account.bill import PARTS, Bill, Boundary
from downclock.schedule.schedule import DONE, REJECTED, Schedule
from downclock.schedule.verify.verify import require_valid
from downclock.units import TOLERANCE, Ints

BASELINES = ("race", "static-cap")
"""What a plan is compared with: full speed, and the best single clock for all jobs."""

GRAPH_BASELINES = ("graph:rule=lpt,clocks=single", "graph:rule=lpt")
"""The same for task graphs: gerards' list schedule at one clock, and at its best clocks."""

SLOT_BASELINES = ("least-cost:objective=energy",)
"""The same for task graphs in slots: blind to prices."""

SHOWN = 20
"""Rejected tasks listed for people; JSON lists all."""


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """One policy's plan: verified, billed, and bounded from below.

    Attributes:
        policy: its spec.
        schedule: the plan; `verify` found nothing wrong with it.
        bill: what it costs.
        bound_j: no valid schedule of the tasks it runs needs less.
        planning_s: how long planning took, the first compilation of kernels included.
        worth: its value under the objective it was asked for; None where that is energy alone.
    """

    policy: str
    schedule: Schedule
    bill: Bill
    bound_j: float
    planning_s: float
    worth: Worth | None = None

    @property
    def gap(self) -> float:
        """Energy above the lower bound, as a fraction of it."""
        if self.bound_j <= 0.0:
            return np.inf
        gap = self.bill.total_j / self.bound_j - 1.0
        return 0.0 if abs(gap) < TOLERANCE else gap

    @property
    def done(self) -> int:
        """Number of tasks that run."""
        return int(np.sum(self.schedule.outcomes.status == DONE))

    @property
    def rejected(self) -> Ints:
        """Tasks that do not run."""
        return np.flatnonzero(self.schedule.outcomes.status == REJECTED)


def planned(
    problem: Problem,
    spec: str,
    *,
    boundary: Boundary = "last-task",
    bounds: Bounds | None = None,
    objective: Objective | None = None,
) -> Planned:
    """Plan, verify, bill and bound.

    Args:
        problem: what is asked.
        spec: the policy, see `downclock.planners.catalog`.
        boundary: where the energy window of a server ends.
        bounds: lower bounds of the problem, where they are known already.
        objective: what plans are valued by; the policy's own where it has one, else energy.

    Raises:
        InvalidInput: an unknown policy, or one that cannot plan such problems.
        InvalidSchedule: the policy's plan breaks a rule; that is a bug.
    """
    chosen, own = policy(spec), goal(objective_of(spec))
    objective = objective or own
    start = time.perf_counter()
    schedule, proof = planned_with_proof(problem, chosen)
    planning_s = time.perf_counter() - start
    require_valid(problem, schedule)
    bounds = bounds or Bounds.of(problem)
    bill = account(problem, schedule, boundary=boundary)
    plain = Planned(spec, schedule, bill, bounds.below(schedule), planning_s)
    if objective is None:
        return plain
    bound = bounds.value_below(schedule, objective, proof if own == objective else None)
    return replace(plain, worth=worth_of(bill, objective, bound))


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """A plan beside its baselines.

    Attributes:
        problem: what was asked.
        plan: the plan.
        baselines: other plans of the same problem under the same sleep rule.
        without: (policy, reason) of baselines that cannot plan such a problem.
    """

    problem: Problem
    plan: Planned
    baselines: tuple[Planned, ...] = ()
    without: tuple[tuple[str, str], ...] = ()

    def page(self) -> Page:
        """The summary as sentences, tables, plain values and flat rows."""
        notes = [f"{name} cannot plan this: {reason}" for name, reason in self.without]
        return Page(
            lines=(self._headline(),),
            tables=(self._table(), *_rejections(self.problem, self.plan)),
            notes=(*notes, *_price_notes(self.plan.bill)),
            data=self._data(),
            records=[record(self.problem, each) for each in self._all],
        )

    def __str__(self) -> str:
        return str(self.page())

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()

    @property
    def _all(self) -> tuple[Planned, ...]:
        return (self.plan, *self.baselines)

    @property
    def hopeless(self) -> str | None:
        """Why a solver that plans all or nothing has no plan; None where it has one."""
        whole = isinstance(policy(self.plan.policy), OfflinePolicy)
        if not whole or self.plan.done or not self.plan.rejected.size:
            return None
        return str(self.plan.schedule.outcomes.reason[self.plan.rejected[0]])

    def _headline(self) -> str:
        platform = self.problem.platform
        asked = count(len(self.problem.tasks), "task")
        where = count(platform.server_count, "server")
        processors = count(platform.processor_count, "processor")
        return (
            f"{self.problem.name}: {asked} on {where} ({processors}), planned by"
            f" {self.plan.policy} in {duration(self.plan.planning_s)}; the plan is valid"
        )

    def _table(self) -> Table:
        bills = [each.bill for each in self._all]
        used = [part for part in PARTS if any(bill.energy_j[part] for bill in bills)]
        rows: list[tuple[str, ...] | None] = [
            (f"{part} energy", *(energy(bill.energy_j[part]) for bill in bills)) for part in used
        ]
        rows += [None, ("total energy", *(energy(bill.total_j) for bill in bills))]
        rows += self._comparison_rows()
        rows.append(None)
        rows += [(name, *map(say, self._all)) for name, say in _facts(self.problem)]
        if self.plan.worth is None:
            rows += [(name, *map(say, bills)) for name, say in _bought(bills)]
        head = ("", *(without_objective(each.policy) for each in self._all))
        return Table(head, tuple(rows))

    def _comparison_rows(self) -> list[tuple[str, ...] | None]:
        saved = [self._saved(each) for each in self.baselines]
        said = ["other tasks done" if part is None else percent(part) for part in saved]
        rows: list[tuple[str, ...] | None] = [("saved by the plan", "", *said)] if said else []
        worths = [each.worth for each in self._all if each.worth is not None]
        if worths:
            return [
                *_worth_rows(worths, [each.bill for each in self._all]),
                *rows,
                *_bounds(worths),
            ]
        rows.append(("lower bound", *(energy(each.bound_j) for each in self._all)))
        rows.append(("gap to the bound", *(percent(each.gap) for each in self._all)))
        return rows

    def _saved(self, other: Planned) -> float | None:
        """Part of the other's energy, or of what is to be least, that the plan saves.

        None where they do not run the same tasks.
        """
        mine, theirs = self.plan.schedule.outcomes.status, other.schedule.outcomes.status
        if np.any((mine == DONE) != (theirs == DONE)):
            return None
        ours, total = self.plan.bill.total_j, other.bill.total_j
        if self.plan.worth is not None and other.worth is not None:
            ours, total = self.plan.worth.value, other.worth.value
        return 1.0 - ours / total if total else 0.0

    def _data(self) -> dict[str, Any]:
        return {
            "problem": self.problem.name,
            "tasks": len(self.problem.tasks),
            "servers": self.problem.platform.server_count,
            "processors": self.problem.platform.processor_count,
            "valid": True,
            "plan": _details(self.problem, self.plan),
            "baselines": [
                {**_details(self.problem, each), "saved": self._saved(each)}
                for each in self.baselines
            ],
            "not_compared": [{"policy": name, "reason": why} for name, why in self.without],
        }


def summarise(
    problem: Problem,
    spec: str,
    *,
    boundary: Boundary = "last-task",
    baselines: Sequence[str] | None = None,
    objective: Objective | None = None,
) -> Summary:
    """Plan with a policy and with the baselines, under the same sleep rule.

    The baselines are the usual ones for such a problem unless they are given; all are valued by
    the objective, which is that of the policy where none is given.

    Raises:
        InvalidInput: an unknown policy, or one that cannot plan such problems.
    """
    bounds, objective = Bounds.of(problem), objective or goal(objective_of(spec))
    mine = planned(problem, spec, boundary=boundary, bounds=bounds, objective=objective)
    others: list[Planned] = []
    without: list[tuple[str, str]] = []
    for name in usual_baselines(problem, objective) if baselines is None else baselines:
        other = with_limits_of(spec, name)
        if policy(other).name == policy(spec).name:
            continue
        objection = policy(other).objection(problem)
        if objection is None:
            others.append(
                planned(problem, other, boundary=boundary, bounds=bounds, objective=objective)
            )
        else:
            without.append((other, objection))
    return Summary(problem, mine, tuple(others), tuple(without))


def usual_baselines(problem: Problem, objective: Objective | None = None) -> tuple[str, ...]:
    """What a plan of such a problem is compared with.

    Where prices count: full speed and our price-blind plan, and full speed at cheap hours, so
    that the worth of clocks and that of prices can be told apart.
    """
    if len(problem.edges) and policy("graph").objection(problem) is None:
        return GRAPH_BASELINES
    if len(problem.edges) and policy(SLOT_BASELINES[-1]).objection(problem) is None:
        return SLOT_BASELINES
    if objective is None or objective == ENERGY:
        return BASELINES
    return ("race", with_objective("thrifty:dvfs=off", str(objective)), DEFAULT)


def with_limits_of(spec: str, baseline: str) -> str:
    """Return the baseline's spec with the patience and the time that ``spec`` asks for, if any."""
    given = dict(part.partition("=")[::2] for part in spec.partition(":")[2].split(",") if part)
    entry = CATALOG.get(baseline.partition(":")[0])  # an unknown one is refused where it is made
    for name in ("rho", "seconds", "rounds"):
        if name in given and entry is not None and name in entry.defaults:
            baseline = with_parameter(baseline, name, given[name])
    return baseline


def with_seed(spec: str, seed: int | None) -> str:
    """Return the spec with a seed, where its policy has one and the spec does not give it."""
    name, _, given = spec.partition(":")
    if seed is None or name not in CATALOG or "seed" not in CATALOG[name].defaults:
        return spec
    if any(part.startswith("seed=") for part in given.split(",")):
        return spec
    return f"{name}:{given},seed={seed}" if given else f"{name}:seed={seed}"


def _facts(problem: Problem) -> list[tuple[str, Callable[[Planned], str]]]:
    """Rows under the energies: a name, and how to say it of a plan."""
    tasks, servers = len(problem.tasks), problem.platform.server_count
    deadlines = int(np.sum(np.isfinite(problem.tasks.deadline_s)))
    rows: list[tuple[str, Callable[[Planned], str]]] = [
        ("deadlines met", lambda each: f"{deadlines_met(problem, each)} of {deadlines}"),
        ("tasks done", lambda each: f"{each.done} of {tasks}"),
        ("servers used", lambda each: f"{each.bill.servers_used} of {servers}"),
        ("server wakes", lambda each: f"{each.bill.wakes}"),
        ("makespan", lambda each: duration(each.bill.makespan_s)),
    ]
    return rows


def _worth_rows(worths: list[Worth], bills: list[Bill]) -> list[tuple[str, ...] | None]:
    """Money and CO2, as billed and as plans count them, and a sum where that is to be least."""
    rows: list[tuple[str, ...] | None] = [(name, *map(say, bills)) for name, say in _bought(bills)]
    if worths[0].objective.mixed:
        rows.append((str(worths[0].objective), *(each.say(each.value) for each in worths)))
    return rows


def _bought(bills: list[Bill]) -> list[tuple[str, Callable[[Bill], str]]]:
    """Names of what is paid and emitted, and how to say it of a bill."""
    rows: list[tuple[str, Callable[[Bill], str]]] = []
    if bills[0].money is not None:
        rows.append(("money", lambda bill: money(bill.money or 0.0, bill.currency)))
        if any(bill.money_clipped != bill.money for bill in bills):
            title = "money, negative prices as 0"
            rows.append((title, lambda bill: money(bill.money_clipped or 0.0, bill.currency)))
    if bills[0].carbon_kg is not None:
        rows.append(("CO2", lambda bill: prefixed(1000.0 * (bill.carbon_kg or 0.0), "g")))
    return rows


def _bounds(worths: list[Worth]) -> list[tuple[str, ...]]:
    return [
        ("lower bound", *(each.say(each.bound) for each in worths)),
        ("gap to the bound", *(percent(each.gap) for each in worths)),
    ]


def deadlines_met(problem: Problem, each: Planned) -> int:
    """Deadlines met; the verifier has seen that every task that is done met its own."""
    done = each.schedule.outcomes.status == DONE
    return int(np.sum(done & np.isfinite(problem.tasks.deadline_s)))


def _rejections(problem: Problem, plan: Planned) -> tuple[Table, ...]:
    if not plan.rejected.size:
        return ()
    reason, name = plan.schedule.outcomes.reason, problem.tasks.name
    rows = [(str(name[task]), str(reason[task])) for task in plan.rejected[:SHOWN]]
    more = plan.rejected.size - SHOWN
    if more > 0:
        rows.append(("...", f"and {more} more; --format json lists all"))
    title = f"{count(int(plan.rejected.size), 'task')} rejected"
    return (Table(("task", "why it does not run"), tuple(rows), title, text=(0, 1)),)


def _price_notes(bill: Bill) -> tuple[str, ...]:
    notes = []
    if bill.unpriced:
        notes.append(f"zones without a price count 0: {', '.join(bill.unpriced)}")
    if bill.uncounted:
        notes.append(f"zones without a CO2 intensity count 0: {', '.join(bill.uncounted)}")
    return tuple(notes)


def _details(problem: Problem, each: Planned) -> dict[str, Any]:
    reason, name = each.schedule.outcomes.reason, problem.tasks.name
    return {
        "policy": each.policy,
        "planning_s": each.planning_s,
        "bound_j": each.bound_j,
        "gap": each.gap,
        "done": each.done,
        "deadlines_met": deadlines_met(problem, each),
        "rejected": [{"task": name[task], "reason": reason[task]} for task in each.rejected],
        "bill": each.bill.as_dict(),
        **({} if each.worth is None else each.worth.record()),
    }


def record(problem: Problem, each: Planned) -> dict[str, Any]:
    """Return a plan's figures as one flat row, units in the names."""
    bill = each.bill
    return {
        "policy": each.policy,
        **{f"{part}_j": joules for part, joules in bill.energy_j.items()},
        "total_j": bill.total_j,
        "bound_j": each.bound_j,
        "gap": each.gap,
        "tasks": len(problem.tasks),
        "done": each.done,
        "deadlines_met": deadlines_met(problem, each),
        "rejected": int(each.rejected.size),
        "servers_used": bill.servers_used,
        "wakes": bill.wakes,
        "makespan_s": bill.makespan_s,
        "money": bill.money,
        "currency": bill.currency if bill.money is not None else None,
        "carbon_kg": bill.carbon_kg,
        "planning_s": each.planning_s,
        **({} if each.worth is None else each.worth.record()),
    }
