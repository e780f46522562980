"""Writing a report: the template, the words, the data and the scripts as one HTML file."""

from __future__ import annotations

import platform as machine
import shlex
from collections.abc import Sequence
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from downclock.files import write_text_atomically
from downclock.problem.problem import Problem
from downclock.quantities import count
from downclock.report.page.columns import curve_data, page_data
from downclock.report.page.judged import Judged, judged, judged_summary
from downclock.report.page.words import cards, energy, headline, left_out, percent, sentences
from downclock.report.summary import Summary
from downclock.report.worth import ENERGY, Worth
from downclock.schedule.account.bill import PARTS, Bill, Boundary
from downclock.schedule.schedule import Schedule

SCRIPTS = (
    *("data", "words", "colours", "timeline", "signals", "gantt"),
    *("frontier", "slack", "table", "page"),
)
"""The page's scripts, in the order they need each other; they share one scope."""

LISTED = 200
"""Tasks left out that are listed with their reasons; the table of tasks holds all."""


def write_report(
    problem: Problem,
    schedule: Schedule,
    path: str | Path,
    *,
    boundary: Boundary = "last-task",
    baselines: Sequence[str] | None = None,
    command: Sequence[str] | None = None,
) -> None:
    """Write a schedule as one HTML page that opens from disk and asks no network.

    Args:
        problem: what was asked.
        schedule: the answer.
        path: the file, replaced as a whole.
        boundary: where the energy window of a server ends.
        baselines: policies to compare with; none plans nothing and so is quickest.
        command: the command that made the page, to be shown in it.

    Raises:
        InvalidSchedule: the schedule cannot be billed.
        InvalidInput: the file cannot be written, or a baseline is unknown.
    """
    html = report_html(problem, schedule, boundary=boundary, baselines=baselines, command=command)
    write_text_atomically(path, html)


def report_html(
    problem: Problem,
    schedule: Schedule,
    *,
    boundary: Boundary = "last-task",
    baselines: Sequence[str] | None = None,
    command: Sequence[str] | None = None,
) -> str:
    """Return the page; the same input gives the same text."""
    return page_html(judged(problem, schedule, boundary=boundary, baselines=baselines), command)


def write_summary(
    summary: Summary, path: str | Path, *, command: Sequence[str] | None = None
) -> None:
    """Write the page of a plan and its baselines, which are not planned again."""
    write_text_atomically(path, page_html(judged_summary(summary), command))


def page_html(mine: Judged, command: Sequence[str] | None = None) -> str:
    """Return the page of a schedule that has been judged."""
    parts = {
        "title": escape(mine.problem.name),
        "subtitle": escape(_subtitle(mine)),
        "headline": escape(headline(mine)),
        "sentences": " ".join(escape(sentence) for sentence in sentences(mine)),
        "verdict": _verdict(mine),
        "cards": "".join(_card(*card) for card in cards(mine)),
        "bars": _bars(mine),
        "comparison": _comparison(mine),
        "left-out": _left_out(mine),
        "reproduce": _reproduce(mine, command),
        "style": _asset("page.css"),
        "data": page_data(mine),
        "curves": curve_data(mine.problem),
        "script": "\n".join(_asset(f"{name}.js") for name in SCRIPTS),
    }
    pieces = _asset("page.html").split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def _asset(name: str) -> str:
    return files("downclock.report.page").joinpath("web", name).read_text(encoding="utf-8")


def _subtitle(mine: Judged) -> str:
    platform = mine.problem.platform
    where = (
        f"{count(platform.server_count, 'server')}, {count(platform.processor_count, 'processor')}"
    )
    return f"{count(len(mine.problem.tasks), 'task')} on {where}, planned by {mine.name}"


def _card(what: str, value: str, note: str) -> str:
    return (
        f'<div class="card"><dt>{escape(what)}</dt>'
        f'<dd>{escape(value)}</dd><dd class="note">{escape(note)}</dd></div>'
    )


def _verdict(mine: Judged) -> str:
    if mine.verdict.ok:
        checked = f"{mine.verdict.checked:,} rows"
        return f'<p class="verdict good">Checked: the plan breaks no rule ({checked}).</p>'
    lines = "".join(f"<li>{escape(str(v))}</li>" for v in mine.verdict.violations[:20])
    text = escape(str(mine.verdict).splitlines()[0])
    return f'<div class="verdict bad"><p>This schedule is {text}</p><ul>{lines}</ul></div>'


def _plans(mine: Judged) -> list[tuple[str, Bill]]:
    return [(mine.name, mine.bill), *((each.policy, each.bill) for each in mine.baselines)]


def _bars(mine: Judged) -> str:
    """Stacked bars of the energy parts, all to one scale."""
    plans = _plans(mine)
    longest = max([bill.total_j for _, bill in plans] + [mine.bound_j]) or 1.0
    rows = []
    for name, bill in plans:
        pieces = "".join(
            f'<span class="part {part}" style="width:{100.0 * joules / longest:.4f}%"'
            f' title="{part}: {energy(joules)}"></span>'
            for part, joules in bill.energy_j.items()
            if joules > 0.0
        )
        rows.append(
            f'<div class="bar"><span class="name">{escape(name)}</span>'
            f'<span class="track">{pieces}</span>'
            f'<span class="value">{energy(bill.total_j)}</span></div>'
        )
    if mine.bound_j > 0.0:
        rows.append(
            '<div class="bar"><span class="name">lower bound</span><span class="track">'
            f'<span class="part bound" style="width:{100.0 * mine.bound_j / longest:.4f}%"></span>'
            f'</span><span class="value">{energy(mine.bound_j)}</span></div>'
        )
    used = [part for part in PARTS if any(bill.energy_j[part] > 0.0 for _, bill in plans)]
    legend = "".join(f'<li><span class="part {part}"></span>{part}</li>' for part in used)
    bars = f'<div class="bars" aria-hidden="true">{"".join(rows)}</div>'
    return f'{bars}<ul class="legend">{legend}</ul>'


def _comparison(mine: Judged) -> str:
    plans = _plans(mine)
    used = [part for part in PARTS if any(bill.energy_j[part] for _, bill in plans)]
    rows = [(f"{part} energy", [energy(bill.energy_j[part]) for _, bill in plans]) for part in used]
    rows.append(("total energy", [energy(bill.total_j) for _, bill in plans]))
    worths = [mine.worth, *(each.worth for each in mine.baselines)]
    if mine.worth is not None and mine.worth.objective != ENERGY:
        said = ["" if worth is None else worth.say(worth.value) for worth in worths]
        rows.append((f"{mine.worth.objective}, negative prices as 0", said))
    bounds = [mine.bound_j, *(each.bound_j for each in mine.baselines)]
    gaps = [
        _above(bill, bound, worth)
        for (_, bill), bound, worth in zip(plans, bounds, worths, strict=True)
    ]
    rows.append(("above its lower bound", gaps))
    rows.append(("server wakes", [f"{bill.wakes:,}" for _, bill in plans]))
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name, _ in plans)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, cells in rows
    )
    return (
        f'<table class="plain"><thead><tr><th scope="col"><span class="unseen">what</span></th>'
        f"{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _above(bill: Bill, bound_j: float, worth: Worth | None) -> str:
    """Say the gap to the bound on what is to be least."""
    if worth is not None:
        return percent(worth.gap)
    return percent(bill.total_j / bound_j - 1.0) if bound_j > 0.0 else "none"


def _left_out(mine: Judged) -> str:
    rows = left_out(mine)
    if not rows:
        return ""
    body = "".join(
        f"<tr><td>{escape(name)}</td><td>{how}</td><td>{escape(why or 'no reason given')}</td></tr>"
        for name, how, why in rows[:LISTED]
    )
    more = len(rows) - LISTED
    note = f'<p class="note">And {more:,} more: see the table of tasks.</p>' if more > 0 else ""
    return (
        '<section aria-labelledby="left-out-title">'
        '<h2 id="left-out-title">What is left out, and why</h2>'
        f"<p>{count(len(rows), 'task')} of {len(mine.problem.tasks):,} will not be done.</p>"
        '<div class="scroll short"><table class="plain left"><thead><tr><th scope="col">Task</th>'
        '<th scope="col">Outcome</th><th scope="col">Why</th></tr></thead>'
        f"<tbody>{body}</tbody></table></div>{note}</section>"
    )


def _reproduce(mine: Judged, command: Sequence[str] | None) -> str:
    """Say how this file was made, so that somebody else can make it again."""
    facts = [
        ("Downclock", version("downclock")),
        ("Python", machine.python_version()),
        ("NumPy", version("numpy")),
        ("Problem", mine.problem.name),
        ("Policy", mine.schedule.policy or "not stated"),
        ("Baselines", ", ".join(each.policy for each in mine.baselines) or "none"),
        ("Energy counted until", _until(mine.bill.boundary)),
    ]
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts)
    shown = "" if command is None else f"<pre><code>{escape(shlex.join(command))}</code></pre>"
    return f'{shown}<dl class="facts">{rows}</dl>'


def _until(boundary: Boundary) -> str:
    names = {"last-task": "each server's last task", "makespan": "the end of the last task"}
    return names[boundary] if isinstance(boundary, str) else f"{boundary:g} s, or a later last task"
