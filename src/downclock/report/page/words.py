"""The words of a page: what a plan saves, meets and costs, as sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from downclock.problem.objective import ENERGY
from downclock.quantities import count, metric
from downclock.report.rejections import about, rejections
from downclock.schedule.account.bill import Bill
from downclock.schedule.schedule import DONE, FAILED, PENDING, REJECTED
from downclock.study.planned import Planned
from downclock.study.summary import Summary

PLAINLY = {
    "race": "running every task at the default clock",
    "static-cap": "the best single clock for all tasks, chosen in hindsight",
    "least-cost": "planning for the least energy",
}
"""What the baselines are, for people who do not know the catalogue."""


def plan_name(summary: Summary) -> str:
    """Who made the plan."""
    return summary.plan.policy or "this plan"


def energy(joules: float) -> str:
    """Joules in four digits: enough to talk about."""
    return quantity(joules, "J")


def quantity(value: float, unit: str) -> str:
    """Four digits and a metric prefix."""
    prefix, size = metric(value, 0.9999)
    return f"{value / size:.4g} {prefix}{unit}"


def percent(fraction: float) -> str:
    """A fraction as per cent in three digits."""
    return f"{100.0 * fraction:.3g} %" if np.isfinite(fraction) else "none"


def money(amount: float, currency: str) -> str:
    """Cents, or more decimals where there are few of them."""
    return f"{amount:,.2f} {currency}" if abs(amount) >= 10.0 else f"{amount:.3g} {currency}"


def headline(summary: Summary) -> str:
    """One sentence: energy, and what that saves."""
    amount, value = f"needs {energy(summary.plan.bill.total_j)}", summary.plan.value
    if value is not None and value.objective != ENERGY:
        amount = f"is worth {value.words(value.amount)} ({value.objective})"
    others = [each for each in summary.baselines if each.bill.total_j > 0.0]
    said = " and ".join(_less(summary.saved(each) or 0.0, each) for each in others)
    return f"This plan {amount}: {said}{_share(summary)}." if said else f"This plan {amount}."


def _share(summary: Summary) -> str:
    """Beside a saving, how much of what was asked for it is a saving on."""
    if summary.plan.done == len(summary.problem.tasks):
        return ""
    return f", on the {percent(summary.plan.covered)} of the processor-hours that they do"


def sentences(summary: Summary) -> list[str]:
    """The rest of the summary: validity, deadlines, bound, money, CO2, servers."""
    said = [_deadlines(summary), _bound(summary), _servers(summary)]
    for start, end, (_, amount, others) in _bought(summary):
        said.append(f"{start} {amount}{end} ({others})." if others else f"{start} {amount}{end}.")
    said += _not_compared(summary)
    return [sentence for sentence in said if sentence]


def cards(summary: Summary) -> list[tuple[str, str, str]]:
    """Figures to see first: (what, value, a few words)."""
    bill, problem = summary.plan.bill, summary.problem
    running = f"{energy(bill.energy_j['run'])} of it running tasks"
    shown = [("Energy", energy(bill.total_j), running)]
    shown += [_saved_card(summary, each) for each in summary.baselines if each.amount > 0.0]
    if (found := _least(summary)) is not None:
        shown.append(("Above the lower bound", found[1], f"no plan needs less than {found[0]}"))
    met, asked = summary.plan.deadlines_met, summary.plan.deadlines
    if asked:
        said = f"all {met:,}" if met == asked else f"{met:,}"
        missing = len(problem.tasks) - summary.plan.done
        left = f"{count(missing, 'task')} left out" if missing else "every task is done"
        shown.append(("Deadlines met", said, f"of {asked:,}; {left}"))
    else:
        done = summary.plan.done
        note = f"of {len(problem.tasks):,}; none has a deadline"
        shown.append(("Tasks done", f"{done:,}", note))
    shown += [card for _, _, card in _bought(summary)]
    used = f"{bill.servers_used:,} of {problem.platform.server_count:,}"
    woken = f"woken {count(bill.wakes, 'time')}" if bill.wakes else "none is woken"
    shown.append(("Servers used", used, woken))
    return shown


def _saved_card(summary: Summary, each: Planned) -> tuple[str, str, str]:
    said = energy(each.amount) if each.value is None else each.value.words(each.amount)
    saved = summary.saved(each) or 0.0
    word = "Saved against" if saved >= 0.0 else "More than"
    note = f"{each.policy} needs {said}{_share(summary)}"
    return f"{word} {each.policy}", percent(abs(saved)), note


def _least(summary: Summary) -> tuple[str, str] | None:
    """The lower bound and the gap to it; None where nothing is proven."""
    plan, value = summary.plan, summary.plan.value
    if value is None:
        return (energy(plan.bound_j), percent(plan.gap)) if plan.bound_j > 0.0 else None
    return (value.words(value.bound), percent(value.gap)) if value.bound > 0.0 else None


def left_out(summary: Summary) -> list[tuple[str, str, str, str]]:
    """Tasks that do not get done: (task, how it ended, why, what deadline could be met)."""
    schedule, names = summary.plan.schedule, summary.problem.tasks.name
    words = {REJECTED: "rejected", FAILED: "failed", PENDING: "not decided"}
    status, reason = schedule.outcomes.status, schedule.outcomes.reason
    known = {each.task: each for each in rejections(summary.problem, schedule)}
    found = []
    for row in np.flatnonzero(status != DONE):
        told = known.get(int(row))
        said = (str(reason[row]), "") if told is None else (told.why, told.possible)
        found.append((str(names[row]), words[int(status[row])], *said))
    return found


def _not_compared(summary: Summary) -> list[str]:
    """Say which baselines are missing, those with one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in summary.without:
        by_reason.setdefault(reason, []).append(name)
    return [
        f"There is no comparison with {' and '.join(names)}: {reason}."
        for reason, names in by_reason.items()
    ]


def _less(saved: float, each: Planned) -> str:
    """Say what a plan saves against another."""
    name = each.policy.partition(":")[0]
    left = int(each.rejected.size)
    aside = f", which leaves {count(left, 'task')} out" if left else ""
    than = f"{PLAINLY[name]} ({each.policy}{aside})" if name in PLAINLY else each.policy + aside
    if abs(saved) < 5e-5:
        return f"as much as {than}"
    return f"{percent(abs(saved))} {'less' if saved > 0.0 else 'more'} than {than}"


def _deadlines(summary: Summary) -> str:
    met, asked = summary.plan.deadlines_met, summary.plan.deadlines
    done = summary.plan.done
    tasks = len(summary.problem.tasks)
    number = f"all {tasks:,}" if done == tasks > 1 else f"{done:,} of {tasks:,}"
    runs = f"It completes {number} tasks"
    if not asked:
        return f"{runs}; none has a deadline."
    if met == asked:
        return f"{runs} and meets every deadline."
    return f"{runs} and meets {met:,} of {count(asked, 'deadline')}."


def _bound(summary: Summary) -> str:
    found, value = _least(summary), summary.plan.value
    if found is None:
        return ""
    by = "" if value is None else f" ({value.objective}, negative prices as 0)"
    verb = "needs" if value is None else "is worth"
    return (
        f"No valid plan of the tasks it completes {verb} less than {found[0]}{by}; this one is"
        f" {found[1]} above that."
    )


def _servers(summary: Summary) -> str:
    bill, servers = summary.plan.bill, summary.problem.platform.server_count
    woken = "none is woken" if bill.wakes == 0 else f"servers wake {count(bill.wakes, 'time')}"
    return (
        f"It uses {bill.servers_used:,} of {count(servers, 'server')}, {woken}, and the last task"
        f" ends {about(bill.makespan_s, 2.0)} after the start."
    )


def _bought(summary: Summary) -> Iterator[tuple[str, str, tuple[str, str, str]]]:
    """Yield what is paid and emitted: a sentence's start and end, and (what, amount, others')."""

    def said(bill: Bill, field: str) -> str | None:
        amount = getattr(bill, field)
        if amount is None:
            return None
        is_money = field == "money"
        return money(amount, bill.currency) if is_money else quantity(1000.0 * amount, "g")

    for what, start, end, field in (
        ("Electricity", "The electricity costs", "", "money"),
        ("CO2", "It emits", " of CO2", "carbon_kg"),
    ):
        ours = said(summary.plan.bill, field)
        if ours is not None:
            rows = [(each.policy, said(each.bill, field)) for each in summary.baselines]
            others = ", ".join(f"{name} {words}" for name, words in rows if words is not None)
            yield start, end, (what, ours, others)
