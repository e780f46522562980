"""Comparing policies: every one that applies, on one problem or many, in one tidy table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from downclock.errors import InvalidSchedule
from downclock.planners.bounds import Bounds
from downclock.planners.catalog import CATALOG, policy, with_objective
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.quantities import count, duration, energy, percent
from downclock.report.summary import Planned, deadlines_met, planned, record
from downclock.report.tables import Page, Table
from downclock.schedule.account.bill import Boundary

Progress = Callable[[str, int, int], None]
"""Told what begins, how many are done, and of how many."""

SHOWN = 4
"""Problems that get a table of their own; more of them are only summed up."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Plans of one problem, from the least energy to the most.

    Attributes:
        problem: what was asked.
        plans: verified and billed; those that complete most tasks first, then by what is to be
            least.
        without: (policy, why it has no plan here).
        objective: what is to be least; None: energy.
    """

    problem: Problem
    plans: tuple[Planned, ...]
    without: tuple[tuple[str, str], ...]
    objective: Objective | None = None

    def page(self) -> Page:
        """The comparison as a table, plain values and flat rows."""
        return comparisons_page([self])

    def __str__(self) -> str:
        return str(self.page())

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()


def compare(
    problem: Problem,
    policies: Sequence[str] | None = None,
    *,
    boundary: Boundary = "last-task",
    progress: Progress | None = None,
    objective: Objective | None = None,
) -> Comparison:
    """Plan a problem with many policies.

    Args:
        problem: what is asked.
        policies: specs; all of the catalogue that apply when not given.
        boundary: where the energy window of a server ends.
        progress: told before each policy.
        objective: what is to be least; policies that can plan by it do. Energy when not given.

    Raises:
        InvalidInput: a policy that does not exist.
    """
    specs = list(CATALOG) if policies is None else list(dict.fromkeys(policies))
    if objective is not None:
        specs = [with_objective(spec, str(objective)) for spec in specs]
    chosen = [policy(spec) for spec in specs]
    bounds = Bounds.of(problem)
    plans: list[Planned] = []
    without: list[tuple[str, str]] = []
    for k, (spec, way) in enumerate(zip(specs, chosen, strict=True)):
        if progress is not None:
            progress(spec, k, len(specs))
        objection = way.objection(problem)
        if objection is not None:
            without.append((spec, objection))
            continue
        try:
            plans.append(
                planned(problem, spec, boundary=boundary, bounds=bounds, objective=objective)
            )
        except InvalidSchedule as error:
            without.append((spec, f"its plan is {str(error).splitlines()[0]}"))
    plans.sort(key=lambda each: (-each.done, _amount(each, objective)))
    return Comparison(problem, tuple(plans), tuple(without), objective)


def _amount(each: Planned, objective: Objective | None) -> float:
    """Return what is to be least."""
    return each.bill.total_j if objective is None or each.worth is None else each.worth.value


def compare_all(
    problems: Iterable[Problem],
    policies: Sequence[str] | None = None,
    *,
    boundary: Boundary = "last-task",
    progress: Progress | None = None,
    objective: Objective | None = None,
) -> list[Comparison]:
    """Compare on every problem in turn."""
    return [
        compare(each, policies, boundary=boundary, progress=progress, objective=objective)
        for each in problems
    ]


def comparisons_page(comparisons: Sequence[Comparison]) -> Page:
    """One table a problem where they are few, and means over all where they are several."""
    shown = comparisons if len(comparisons) <= SHOWN else ()
    tables = [table for each in shown for table in _tables(each)]
    if len(comparisons) > 1:
        tables.append(_means(comparisons))
    notes = {f"{spec}: {why}": None for each in comparisons for spec, why in each.without}
    return Page(
        lines=(_line(comparisons),),
        tables=tuple(tables),
        notes=tuple(f"not compared, {note}" for note in notes),
        data={"problems": [_data(each) for each in comparisons]},
        records=[row for each in comparisons for row in rows_of(each)],
    )


def rows_of(comparison: Comparison) -> list[dict[str, Any]]:
    """Flat rows, one a plan."""
    problem = comparison.problem
    return [{"problem": problem.name, **record(problem, each)} for each in comparison.plans]


def _line(comparisons: Sequence[Comparison]) -> str:
    if len(comparisons) == 1:
        only = comparisons[0]
        where = count(only.problem.platform.processor_count, "processor")
        tasks = count(len(only.problem.tasks), "task")
        return f"{only.problem.name}: {tasks} on {where}; every plan shown is valid"
    return f"{count(len(comparisons), 'problem')}; every plan shown is valid"


def _tables(comparison: Comparison) -> tuple[Table, Table]:
    """Return the energies and costs, and what is got for them."""
    plans, problem = comparison.plans, comparison.problem
    prefix, size = _scale(max((each.bill.total_j for each in plans), default=0.0))
    head = ["policy", f"total {prefix}J", "run", "idle", "other", "gap"]
    if plans and plans[0].bill.money is not None:
        head.append(plans[0].bill.currency)
    if plans and plans[0].bill.carbon_kg is not None:
        head.append("kg CO2")
    mixed = comparison.objective is not None and comparison.objective.mixed
    if mixed:
        head.append(str(comparison.objective))
    title = problem.name if plans else f"{problem.name}: no policy has a plan"
    energies = Table(
        tuple(head), tuple(_energy_cells(comparison, each, size) for each in plans), title
    )
    service = ("policy", "done", "deadlines met", "servers", "wakes", "makespan", "planned in")
    rows = tuple(_service_cells(problem, each) for each in plans)
    return energies, Table(service, rows)


def _scale(joules: float) -> tuple[str, float]:
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if joules >= size:
            return prefix, size
    return "", 1.0


def _energy_cells(comparison: Comparison, each: Planned, size: float) -> tuple[str, ...]:
    bill = each.bill
    parts = bill.energy_j
    other = bill.total_j - parts["run"] - parts["idle"]
    numbers = [bill.total_j, parts["run"], parts["idle"], other]
    cells = [
        each.policy,
        *(f"{number / size:.4f}" for number in numbers),
        percent(_gap(comparison, each)),
    ]
    if bill.money is not None:
        cells.append(f"{bill.money:.4f}")
    if bill.carbon_kg is not None:
        cells.append(f"{bill.carbon_kg:.4f}")
    worth = each.worth
    if worth is not None and comparison.objective is not None and worth.objective.mixed:
        cells.append(worth.say(worth.value))
    return tuple(cells)


def _service_cells(problem: Problem, each: Planned) -> tuple[str, ...]:
    bill = each.bill
    deadlines = int(np.sum(np.isfinite(problem.tasks.deadline_s)))
    return (
        each.policy,
        f"{each.done:,} of {len(problem.tasks):,}",
        f"{deadlines_met(problem, each):,} of {deadlines:,}",
        f"{bill.servers_used:,}",
        f"{bill.wakes:,}",
        duration(bill.makespan_s),
        duration(each.planning_s),
    )


def _means(comparisons: Sequence[Comparison]) -> Table:
    """Means over the problems each policy has a plan for, and how often it is the best."""
    found: dict[str, list[tuple[Comparison, Planned]]] = {}
    for each in comparisons:
        for plan in each.plans:
            found.setdefault(plan.policy, []).append((each, plan))
    rows = sorted(_mean_cells(spec, pairs) for spec, pairs in found.items())
    head = (
        "policy",
        "problems",
        "mean energy",
        "above the best",
        "mean gap",
        "best in",
        "left out",
    )
    return Table(head, tuple(cells for _, cells in rows), "All problems")


def _mean_cells(
    spec: str, pairs: Sequence[tuple[Comparison, Planned]]
) -> tuple[float, tuple[str, ...]]:
    """Return the mean excess over the best plan, to sort by, and the row."""
    total = np.array([plan.bill.total_j for _, plan in pairs])
    amount = np.array([_amount(plan, each.objective) for each, plan in pairs])
    best = np.array([_amount(each.plans[0], each.objective) for each, _ in pairs])
    excess = float(np.mean(amount / np.where(best > 0.0, best, 1.0))) - 1.0
    wins = sum(each.plans[0].policy == spec for each, _ in pairs)
    left = sum(int(plan.rejected.size) for _, plan in pairs)
    gap = float(np.mean([_gap(each, plan) for each, plan in pairs]))
    cells = (energy(float(total.mean())), percent(excess), percent(gap), f"{wins}", f"{left}")
    return excess, (spec, f"{len(pairs)}", *cells)


def _gap(comparison: Comparison, each: Planned) -> float:
    """Return the gap to the bound on what is to be least."""
    if comparison.objective is None or each.worth is None:
        return each.gap
    return each.worth.gap


def _data(comparison: Comparison) -> dict[str, Any]:
    return {
        "problem": comparison.problem.name,
        "tasks": len(comparison.problem.tasks),
        "plans": [record(comparison.problem, each) for each in comparison.plans],
        "not_compared": [{"policy": spec, "reason": reason} for spec, reason in comparison.without],
    }
