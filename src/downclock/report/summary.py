"""The page of a summary: a plan's bill beside those of the usual ways, and the lower bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from downclock.planners.catalog import without_objective
from downclock.planners.result import PROVEN
from downclock.problem.platform import Platform
from downclock.quantities import count, duration, energy, instant, money, percent, prefixed
from downclock.report.rejections import Rejection, rejections
from downclock.report.tables import Page, Table
from downclock.schedule.account.bill import PARTS, Bill
from downclock.schedule.account.power_draws import all_draws, total_draw
from downclock.study.planned import Planned
from downclock.study.summary import Summary
from downclock.units import J_PER_KWH, Bools

WEAK = 0.25
"""Gap above which the bound is doubted in words."""

ON_BOTH = "*"
"""Beside a saving that is not on all that either does."""

SHOWN = 20
"""Rejected tasks listed for people; JSON lists all."""

Rows = list[tuple[str, ...] | None]


def summary_page(summary: Summary) -> Page:
    """The summary as sentences, tables, plain values and flat rows."""
    notes = [f"{name} cannot plan this: {reason}" for name, reason in summary.without]
    notes += [*_partly_saved(summary), *broken_rules(summary.plans)]
    left = rejections(summary.problem, summary.plan.schedule)
    return Page(
        lines=(_headline(summary),),
        tables=(_table(summary), *_rejections(summary.plan, left)),
        notes=(*notes, *_weak_bound(summary.plan), *_price_notes(summary.plan.bill)),
        data=_data(summary, left),
        records=[each.record() for each in summary.plans],
    )


def broken_rules(plans: Iterable[Planned]) -> list[str]:
    """Say which rules schedules break that somebody made."""
    said = []
    for each in plans:
        if not each.verdict.ok:
            rules = ", ".join(f"{rule} {number:,} times" for rule, number in each.verdict.counts)
            said.append(f"{each.policy} breaks rules of the problem: {rules}")
    return said


def _headline(summary: Summary) -> str:
    plan, platform = summary.plan, summary.problem.platform
    where = count(platform.server_count, "server")
    processors = count(platform.processor_count, "processor")
    took = f" in {duration(plan.planning_s)}" if np.isfinite(plan.planning_s) else ""
    return (
        f"{summary.problem.name}: {_covered(plan)} on {where} ({processors}), planned by"
        f" {plan.policy}{took}; the plan is {'valid' if plan.verdict.ok else 'not valid'}"
    )


def _covered(plan: Planned) -> str:
    """How many tasks are done of those asked for, and of their processor-hours."""
    tasks = len(plan.problem.tasks)
    done_h, asked_h = (f"{h:,.0f}" if h >= 1000.0 else f"{h:.3g}" for h in plan.processor_hours)
    if plan.done == tasks:
        return f"{count(tasks, 'task')} ({asked_h} processor-hours)"
    return f"{plan.done:,} of {count(tasks, 'task')}, {done_h} of {asked_h} processor-hours,"


def _table(summary: Summary) -> Table:
    bills = [each.bill for each in summary.plans]
    used = [part for part in PARTS if any(bill.energy_j[part] for bill in bills)]
    rows: Rows = [
        (f"{part} energy", *(energy(bill.energy_j[part]) for bill in bills)) for part in used
    ]
    rows += [None, ("total energy", *(energy(bill.total_j) for bill in bills))]
    rows += _comparison_rows(summary)
    rows.append(None)
    rows += [(name, *map(say, summary.plans)) for name, say in _facts(summary)]
    if summary.plan.value is None:
        rows += [(name, *map(say, bills)) for name, say in _bought(bills)]
    return Table(("", *_heads([each.policy for each in summary.plans])), tuple(rows))


def _heads(specs: list[str]) -> list[str]:
    """Specs without their objective, but where two would be called the same."""
    short = [without_objective(spec) for spec in specs]
    return [a if short.count(a) == 1 else spec for a, spec in zip(short, specs, strict=True)]


def _comparison_rows(summary: Summary) -> Rows:
    """What is saved, and bounds; money and CO2 first where something else than energy counts."""
    said = [_saved(summary, each) for each in summary.baselines]
    rows: Rows = [("saved by the plan", "", *said)] if said else []
    values = [each.value for each in summary.plans if each.value is not None]
    least, title = [each.words(each.bound) for each in values], "lower bound"
    if values:
        bills = [each.bill for each in summary.plans]
        worth: Rows = [(name, *map(say, bills)) for name, say in _bought(bills)]
        if values[0].objective.mixed:
            worth.append((str(values[0].objective), *(each.words(each.amount) for each in values)))
        rows = worth + rows
        if any(bill.was_paid for bill in bills):
            title = "lower bound, negative prices as 0"
    rows.append((title, *(least or [energy(each.bound_j) for each in summary.plans])))
    gaps = [each.gap for each in values or summary.plans]
    said = ["0 %: optimal" if abs(gap) <= PROVEN else percent(gap) for gap in gaps]
    rows.append(("gap to the bound", *said))
    return rows


def _saved(summary: Summary, other: Planned) -> str:
    """What the plan saves; marked where it is of the tasks that both do."""
    part = summary.saved(other)
    if part is not None:
        return percent(part)
    part, tasks = summary.saved_on_both(other)
    return f"{percent(part)} {ON_BOTH}" if tasks else "no task in common"


def _partly_saved(summary: Summary) -> list[str]:
    """Say what a marked saving is of."""
    said = []
    for each in summary.baselines:
        _, tasks = summary.saved_on_both(each)
        if tasks and summary.saved(each) is None:
            said.append(
                f"{ON_BOTH} {each.policy} does other tasks: the saving is on running the"
                f" {count(tasks, 'task')} that both do"
            )
    return said


def _weak_bound(plan: Planned) -> tuple[str, ...]:
    """Say what a large gap is: nothing was proven, so nothing is known to be wasted."""
    gap = plan.gap if plan.value is None else plan.value.gap
    if not WEAK < gap < np.inf:
        return ()
    return (
        f"the gap of {percent(gap)} is what is not proven: no plan of these tasks saves more, and"
        " it may be the bound that is weak",
    )


def _facts(summary: Summary) -> list[tuple[str, Callable[[Planned], str]]]:
    """Rows under the energies: a name, and how to say it of a plan."""
    tasks, servers = len(summary.problem.tasks), summary.problem.platform.server_count
    epoch = summary.problem.epoch
    facts: list[tuple[str, Callable[[Planned], str]]] = [
        ("deadlines met", lambda each: f"{each.deadlines_met} of {each.deadlines}"),
        ("tasks done", lambda each: f"{each.done} of {tasks}"),
        ("processor-hours done", lambda each: percent(each.covered)),
        ("servers used", lambda each: f"{each.bill.servers_used} of {servers}"),
        ("server wakes", lambda each: f"{each.bill.wakes}"),
        *_peaks(summary.problem.platform),
        ("makespan", lambda each: duration(each.bill.makespan_s)),
        ("last end", lambda each: instant(60.0 * round(each.bill.makespan_s / 60.0), epoch)),
    ]
    left_out = any(each.done < tasks for each in summary.plans)
    told = {"processor-hours done": left_out, "last end": epoch is not None}
    return [fact for fact in facts if told.get(fact[0], True)]


def _peaks(platform: Platform) -> list[tuple[str, Callable[[Planned], str]]]:
    """The most power at any time, where that is capped."""

    def said(servers: Bools, cap_w: float) -> Callable[[Planned], str]:
        def peak(each: Planned) -> str:
            draws = all_draws(each.problem, each.schedule.segments, each.schedule.spans)
            most = prefixed(total_draw(draws, servers).peak_w, "W")
            return f"{most} of {prefixed(cap_w, 'W')}"

        return peak

    caps = platform.limits.caps(platform.zones, platform.zone)
    return [
        ("peak power" if np.all(servers) else f"peak power, {name}", said(servers, cap_w))
        for name, cap_w, servers in caps
    ]


def _bought(bills: list[Bill]) -> list[tuple[str, Callable[[Bill], str]]]:
    """Names of what is paid and emitted, and how to say it of a bill."""
    rows: list[tuple[str, Callable[[Bill], str]]] = []
    if bills[0].money is not None:
        kilo = 1000.0 / J_PER_KWH  # meters and invoices count kilowatt hours
        rows.append(("energy bought", lambda bill: prefixed(kilo * bill.total_j, "Wh")))
        rows.append(("money", lambda bill: money(bill.money or 0.0, bill.currency)))
        if any(bill.was_paid for bill in bills):
            title = "money, negative prices as 0"
            rows.append((title, lambda bill: money(bill.money_clipped or 0.0, bill.currency)))
    if bills[0].carbon_kg is not None:
        rows.append(("CO2", lambda bill: prefixed(1000.0 * (bill.carbon_kg or 0.0), "g")))
    return rows


def _rejections(plan: Planned, left: list[Rejection]) -> tuple[Table, ...]:
    if not left:
        return ()
    name = plan.problem.tasks.name
    rows = [(str(name[each.task]), each.why, each.possible or "none") for each in left[:SHOWN]]
    more = len(left) - SHOWN
    if more > 0:
        rows.append(("...", f"and {more} more; --format json lists all", ""))
    title = f"{count(len(left), 'task')} rejected"
    head = ("task", "why it does not run", "could end by, beside this plan")
    return (Table(head, tuple(rows), title, text=(0, 1, 2)),)


def _price_notes(bill: Bill) -> tuple[str, ...]:
    told = (("price", bill.unpriced), ("CO2 intensity", bill.uncounted))
    return tuple(
        f"zones without a {what} count 0: {', '.join(zones)}" for what, zones in told if zones
    )


def _data(summary: Summary, left: list[Rejection]) -> dict[str, Any]:
    platform = summary.problem.platform
    return {
        "problem": summary.problem.name,
        "tasks": len(summary.problem.tasks),
        "servers": platform.server_count,
        "processors": platform.processor_count,
        "valid": summary.plan.verdict.ok,
        "plan": {**_details(summary.plan), "rejected": _left(summary.plan, left)},
        "baselines": [
            {**_details(each), "saved": summary.saved(each)} for each in summary.baselines
        ],
        "not_compared": [{"policy": name, "reason": why} for name, why in summary.without],
    }


def _details(each: Planned) -> dict[str, Any]:
    reason, name = each.schedule.outcomes.reason, each.problem.tasks.name
    return {
        "policy": each.policy,
        "planning_s": each.planning_s,
        "bound_j": each.bound_j,
        "gap": each.gap,
        "done": each.done,
        "deadlines_met": each.deadlines_met,
        "rejected": [{"task": name[task], "reason": reason[task]} for task in each.rejected],
        "bill": each.bill.as_dict(),
        **({} if each.value is None else each.value.record()),
    }


def _left(plan: Planned, left: list[Rejection]) -> list[dict[str, Any]]:
    """Rejected tasks; the earliest deadline of the first that could be met beside the plan."""
    return [
        {
            "task": plan.problem.tasks.name[each.task],
            "reason": each.why,
            "earliest_deadline_s": each.earliest_s if np.isfinite(each.earliest_s) else None,
        }
        for each in left
    ]
