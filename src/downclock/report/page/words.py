"""The words of a page: what a plan saves, meets and costs, as sentences."""

from __future__ import annotations

import numpy as np

from downclock.quantities import count
from downclock.report.page.judged import Judged
from downclock.report.summary import Planned
from downclock.report.worth import ENERGY, Worth
from downclock.schedule.schedule import DONE, FAILED, PENDING, REJECTED
from downclock.units import TOLERANCE

PLAINLY = {
    "race": "running every task at the default clock",
    "static-cap": "the best single clock for all tasks, chosen in hindsight",
    "least-cost": "planning for the least energy",
}
"""What the baselines are, for people who do not know the catalogue."""


def energy(joules: float) -> str:
    """Joules in four digits: enough to talk about."""
    return quantity(joules, "J")


def quantity(value: float, unit: str) -> str:
    """Four digits and a metric prefix."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= 0.9999 * size:
            return f"{value / size:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def duration(seconds: float) -> str:
    """Seconds, minutes, hours or days, whichever people would say."""
    for unit, size, least in (
        ("days", 86400.0, 172800.0),
        ("h", 3600.0, 7200.0),
        ("min", 60.0, 120.0),
    ):
        if seconds >= least:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def percent(fraction: float) -> str:
    """A fraction as per cent in three digits."""
    return f"{100.0 * fraction:.3g} %" if np.isfinite(fraction) else "none"


def money(amount: float, currency: str) -> str:
    """Cents, or more decimals where there are few of them."""
    return f"{amount:,.2f} {currency}" if abs(amount) >= 10.0 else f"{amount:.3g} {currency}"


def headline(judged: Judged) -> str:
    """One sentence: energy, and what that saves."""
    total, amount = judged.bill.total_j, f"needs {energy(judged.bill.total_j)}"
    said = [_saving(total, each) for each in judged.baselines if each.bill.total_j > 0.0]
    worth = judged.worth
    if worth is not None and worth.objective != ENERGY:
        amount = f"is worth {worth.say(worth.value)} ({worth.objective})"
        said = [_cheaper(worth, each) for each in judged.baselines if each.worth is not None]
    return f"This plan {amount}: {' and '.join(said)}." if said else f"This plan {amount}."


def sentences(judged: Judged) -> list[str]:
    """The rest of the summary: validity, deadlines, bound, money, CO2, servers."""
    said = [_deadlines(judged), _bound(judged), _servers(judged)]
    said += [_costs(judged)] if judged.bill.money is not None else []
    said += [_carbon(judged)] if judged.bill.carbon_kg is not None else []
    said += _not_compared(judged)
    return [sentence for sentence in said if sentence]


def cards(judged: Judged) -> list[tuple[str, str, str]]:
    """Figures to see first: (what, value, a few words)."""
    bill, problem = judged.bill, judged.problem
    shown = [
        ("Energy", energy(bill.total_j), f"{energy(bill.energy_j['run'])} of it running tasks")
    ]
    shown += [card for each in judged.baselines for card in _saved_card(judged, each)]
    shown += _bound_card(judged)
    met, asked = deadlines_met(judged)
    if asked:
        said = f"all {met:,}" if met == asked else f"{met:,}"
        shown.append(("Deadlines met", said, f"of {asked:,}; {_left(judged)}"))
    else:
        done = int(np.sum(judged.schedule.outcomes.status == DONE))
        note = f"of {len(problem.tasks):,}; none has a deadline"
        shown.append(("Tasks done", f"{done:,}", note))
    if bill.money is not None:
        shown.append(("Electricity", money(bill.money, bill.currency), _against_money(judged)))
    if bill.carbon_kg is not None:
        shown.append(("CO2", quantity(1000.0 * bill.carbon_kg, "g"), _against_carbon(judged)))
    used = f"{bill.servers_used:,} of {problem.platform.server_count:,}"
    woken = f"woken {count(bill.wakes, 'time')}" if bill.wakes else "none is woken"
    shown.append(("Servers used", used, woken))
    return shown


def _saved_card(judged: Judged, each: Planned) -> list[tuple[str, str, str]]:
    ours, theirs, said = judged.bill.total_j, each.bill.total_j, energy(each.bill.total_j)
    if judged.worth is not None and each.worth is not None:
        ours, theirs = judged.worth.value, each.worth.value
        said = each.worth.say(theirs)
    if not theirs > 0.0:
        return []
    saved = 1.0 - ours / theirs
    word = "Saved against" if saved >= 0.0 else "More than"
    return [(f"{word} {each.policy}", percent(abs(saved)), f"{each.policy} needs {said}")]


def _bound_card(judged: Judged) -> list[tuple[str, str, str]]:
    worth, gap, least = judged.worth, 0.0, energy(judged.bound_j)
    if worth is not None:
        gap, least = worth.gap, worth.say(worth.bound)
    elif judged.bound_j > 0.0:
        gap = judged.bill.total_j / judged.bound_j - 1.0
    if not (judged.bound_j if worth is None else worth.bound) > 0.0:
        return []
    return [("Above the lower bound", percent(gap), f"no plan needs less than {least}")]


def deadlines_met(judged: Judged) -> tuple[int, int]:
    """Return how many deadlines are met, and how many there are."""
    tasks = judged.problem.tasks
    asked = np.isfinite(tasks.deadline_s)
    finish = np.where(tasks.scale > 0.0, judged.finish_s, tasks.arrival_s)
    room = TOLERANCE * np.maximum(1.0, np.where(asked, np.abs(tasks.deadline_s), 1.0))
    met = asked & (judged.schedule.outcomes.status == DONE) & (finish <= tasks.deadline_s + room)
    return int(met.sum()), int(asked.sum())


def left_out(judged: Judged) -> list[tuple[str, str, str]]:
    """Tasks that do not get done: (task, how it ended, why)."""
    outcomes, names = judged.schedule.outcomes, judged.problem.tasks.name
    words = {REJECTED: "rejected", FAILED: "failed", PENDING: "not decided"}
    return [
        (str(names[row]), words[int(outcomes.status[row])], str(outcomes.reason[row]))
        for row in np.flatnonzero(outcomes.status != DONE)
    ]


def _not_compared(judged: Judged) -> list[str]:
    """Say which baselines are missing, those with one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in judged.without:
        by_reason.setdefault(reason, []).append(name)
    return [
        f"There is no comparison with {' and '.join(names)}: {reason}."
        for reason, names in by_reason.items()
    ]


def _saving(total: float, each: Planned) -> str:
    return _less(1.0 - total / each.bill.total_j, each)


def _cheaper(worth: Worth, each: Planned) -> str:
    other = each.worth.value if each.worth is not None else 0.0
    return _less(1.0 - worth.value / other if other > 0.0 else 0.0, each)


def _less(saved: float, each: Planned) -> str:
    """Say what a plan saves against another."""
    name = each.policy.partition(":")[0]
    left = int(each.rejected.size)
    aside = f", which leaves {count(left, 'task')} out" if left else ""
    than = f"{PLAINLY[name]} ({each.policy}{aside})" if name in PLAINLY else each.policy + aside
    if abs(saved) < 5e-5:
        return f"as much as {than}"
    return f"{percent(abs(saved))} {'less' if saved > 0.0 else 'more'} than {than}"


def _deadlines(judged: Judged) -> str:
    met, asked = deadlines_met(judged)
    done = int(np.sum(judged.schedule.outcomes.status == DONE))
    tasks = len(judged.problem.tasks)
    number = f"all {tasks:,}" if done == tasks > 1 else f"{done:,} of {tasks:,}"
    runs = f"It completes {number} tasks"
    if not asked:
        return f"{runs}; none has a deadline."
    if met == asked:
        return f"{runs} and meets every deadline."
    return f"{runs} and meets {met:,} of {count(asked, 'deadline')}."


def _bound(judged: Judged) -> str:
    worth = judged.worth
    if worth is not None:
        if not worth.bound > 0.0:
            return ""
        return (
            f"No valid plan of the tasks it completes is worth less than {worth.say(worth.bound)}"
            f" ({worth.objective}, negative prices as 0); this one is {percent(worth.gap)} above"
            " that."
        )
    if judged.bound_j <= 0.0:
        return ""
    gap = percent(judged.bill.total_j / judged.bound_j - 1.0)
    return (
        f"No valid plan of the tasks it completes needs less than {energy(judged.bound_j)};"
        f" this one is {gap} above that."
    )


def _servers(judged: Judged) -> str:
    bill, servers = judged.bill, judged.problem.platform.server_count
    woken = "none is woken" if bill.wakes == 0 else f"servers wake {count(bill.wakes, 'time')}"
    return (
        f"It uses {bill.servers_used:,} of {count(servers, 'server')}, {woken}, and the last task"
        f" ends {duration(bill.makespan_s)} after the start."
    )


def _costs(judged: Judged) -> str:
    bill = judged.bill
    said = f"The electricity costs {money(bill.money or 0.0, bill.currency)}"
    against = _against_money(judged)
    return f"{said} ({against})." if against else f"{said}."


def _carbon(judged: Judged) -> str:
    said = f"It emits {quantity(1000.0 * (judged.bill.carbon_kg or 0.0), 'g')} of CO2"
    against = _against_carbon(judged)
    return f"{said} ({against})." if against else f"{said}."


def _against_money(judged: Judged) -> str:
    rows = [(each.policy, each.bill.money) for each in judged.baselines]
    return ", ".join(
        f"{name} {money(value, judged.bill.currency)}" for name, value in rows if value is not None
    )


def _against_carbon(judged: Judged) -> str:
    rows = [(each.policy, each.bill.carbon_kg) for each in judged.baselines]
    return ", ".join(
        f"{name} {quantity(1000.0 * value, 'g')}" for name, value in rows if value is not None
    )


def _left(judged: Judged) -> str:
    missing = int(np.sum(judged.schedule.outcomes.status != DONE))
    return "every task is done" if missing == 0 else f"{count(missing, 'task')} left out"
