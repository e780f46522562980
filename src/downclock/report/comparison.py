"""The page of comparisons: plans of one problem or many, in one tidy table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from downclock.quantities import count, duration, energy, metric, percent
from downclock.report.summary import ON_BOTH, broken_rules
from downclock.report.tables import Page, Table
from downclock.schedule.account.bill import PARTS
from downclock.study.compare import Comparison
from downclock.study.planned import Planned

SHOWN = 4
"""Problems that get a table of their own; more of them are only summed up."""


KNOWS = {True: "all jobs", False: "arrivals", None: ""}
"""What a policy knew when it decided."""


def comparison_page(*comparisons: Comparison) -> Page:
    """One table a problem where they are few, and means over all where they are several."""
    shown = comparisons if len(comparisons) <= SHOWN else ()
    tables = [table for each in shown for table in _tables(each)]
    if len(comparisons) > 1:
        tables.append(_means(comparisons))
    notes = {f"{spec}: {why}": None for each in comparisons for spec, why in each.without}
    return Page(
        lines=(_line(comparisons),),
        tables=tuple(tables),
        notes=(
            *([_OTHER_TASKS] if len(comparisons) > 1 and _differ(comparisons) else []),
            *(f"not compared, {note}" for note in notes),
            *(line for each in comparisons for line in broken_rules(each.plans)),
        ),
        data={"problems": [_data(each) for each in comparisons]},
        records=[row for each in comparisons for row in each.records()],
    )


_OTHER_TASKS = f"{ON_BOTH} without problems where the best plan does other tasks"


def _differ(comparisons: Sequence[Comparison]) -> bool:
    """Tell whether a plan runs other tasks than the best of its problem."""
    return not all(each.plans[0].runs_the_tasks_of(p) for each in comparisons for p in each.plans)


def _line(comparisons: Sequence[Comparison]) -> str:
    plans = [plan for each in comparisons for plan in each.plans]
    every = "every plan" if all(plan.verdict.ok for plan in plans) else "not every plan"
    if len(comparisons) == 1:
        only = comparisons[0]
        where = count(only.problem.platform.processor_count, "processor")
        tasks = count(len(only.problem.tasks), "task")
        return f"{only.problem.name}: {tasks} on {where}; {every} shown is valid"
    return f"{count(len(comparisons), 'problem')}; {every} shown is valid"


def _tables(comparison: Comparison) -> tuple[Table, Table]:
    """Return the energies and costs, and what is got for them."""
    plans, problem = comparison.plans, comparison.problem
    prefix, size = metric(max((each.bill.total_j for each in plans), default=0.0))

    def joules(*parts: str) -> Callable[[Planned], str]:
        return lambda each: f"{sum(each.bill.energy_j[part] for part in parts) / size:.4f}"

    columns: list[tuple[str, Callable[[Planned], str]]] = [
        ("policy", lambda each: each.policy),
        (f"total {prefix}J", lambda each: f"{each.bill.total_j / size:.4f}"),
        ("run", joules("run")),
        ("idle", joules("idle")),
        ("other", joules(*(part for part in PARTS if part not in ("run", "idle")))),
        ("gap", lambda each: percent(comparison.gap(each))),
    ]
    if plans and plans[0].bill.money is not None:
        columns.append((plans[0].bill.currency, lambda each: f"{each.bill.money:.4f}"))
    if plans and plans[0].bill.carbon_kg is not None:
        columns.append(("kg CO2", lambda each: f"{each.bill.carbon_kg:.4f}"))
    if comparison.objective is not None and comparison.objective.mixed:
        named = str(comparison.objective)
        columns.append((named, lambda each: each.value.words(each.amount) if each.value else ""))
    title = problem.name if plans else f"{problem.name}: no policy has a plan"
    return Table.of(plans, columns, title), Table.of(plans, SERVICE)


SERVICE: list[tuple[str, Callable[[Planned], str]]] = [
    ("policy", lambda each: each.policy),
    ("knows", lambda each: KNOWS[each.foresees]),
    ("done", lambda each: f"{each.done:,} of {len(each.problem.tasks):,}"),
    ("deadlines met", lambda each: f"{each.deadlines_met:,} of {each.deadlines:,}"),
    ("servers", lambda each: f"{each.bill.servers_used:,}"),
    ("wakes", lambda each: f"{each.bill.wakes:,}"),
    ("makespan", lambda each: duration(each.bill.makespan_s)),
    (
        "planned in",
        lambda each: duration(each.planning_s) if np.isfinite(each.planning_s) else "given",
    ),
]
"""What is got for the energy of a plan."""


def _means(comparisons: Sequence[Comparison]) -> Table:
    """Means over the problems each policy has a plan for, and how often it is the best."""
    found: dict[str, list[tuple[Comparison, Planned]]] = {}
    for each in comparisons:
        for plan in each.plans:
            found.setdefault(plan.policy, []).append((each, plan))
    rows = sorted(_mean_cells(spec, pairs) for spec, pairs in found.items())
    figures = ("mean energy", "above the best", "mean gap", "best in", "left out")
    head = ("policy", "problems", *figures)
    return Table(head, tuple(cells for _, cells in rows), "All problems")


def _mean_cells(
    spec: str, pairs: Sequence[tuple[Comparison, Planned]]
) -> tuple[tuple[bool, float], tuple[str, ...]]:
    """Return the row, and what to sort by: those that do other tasks last, then mean excess."""
    total = np.array([plan.bill.total_j for _, plan in pairs])
    same = [(each, plan) for each, plan in pairs if each.plans[0].runs_the_tasks_of(plan)]
    amount = np.array([each.amount(plan) for each, plan in same])
    best = np.array([each.amount(each.plans[0]) for each, _ in same])
    excess = float(np.mean(amount / np.where(best > 0.0, best, 1.0))) - 1.0 if same else np.inf
    above = percent(excess) if same else "other tasks"
    above += f" {ON_BOTH}" if len(same) < len(pairs) else ""
    wins = sum(each.plans[0].policy == spec for each, _ in pairs)
    left = sum(int(plan.rejected.size) for _, plan in pairs)
    gap = float(np.mean([each.gap(plan) for each, plan in pairs]))
    cells = (energy(float(total.mean())), above, percent(gap), f"{wins}", f"{left}")
    return (len(same) < len(pairs), excess), (spec, f"{len(pairs)}", *cells)


def _data(comparison: Comparison) -> dict[str, Any]:
    return {
        "problem": comparison.problem.name,
        "tasks": len(comparison.problem.tasks),
        "plans": [each.record() for each in comparison.plans],
        "not_compared": [{"policy": spec, "reason": reason} for spec, reason in comparison.without],
    }
