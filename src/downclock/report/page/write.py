"""Writing a report: the template, the words, the data and the scripts as one HTML file."""

from __future__ import annotations

import platform as machine
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from downclock.files import write_text_atomically
from downclock.problem.objective import ENERGY
from downclock.quantities import count
from downclock.report.page.columns import curve_data, page_data
from downclock.report.page.words import (
    cards,
    energy,
    headline,
    left_out,
    percent,
    plan_name,
    sentences,
)
from downclock.report.use import use_of_kinds
from downclock.schedule.account.bill import PARTS, Bill, Boundary
from downclock.study.summary import Summary

SCRIPTS = (
    *("data", "workflow", "words", "colours", "timeline", "signals", "gantt"),
    *("frontier", "slack", "table", "page"),
)
"""The page's scripts, in the order they need each other; they share one scope."""

LISTED = 200
"""Tasks left out that are listed with their reasons; the table of tasks holds all."""


def write_report(
    summary: Summary, path: str | Path, *, command: Sequence[str] | None = None
) -> None:
    """Write a plan beside its baselines as one HTML page that opens from disk, asks no network.

    Args:
        summary: what `downclock.judge` says of a schedule, or `downclock.summarise` of a policy.
        path: the file, replaced as a whole.
        command: the command that made the page, to be shown in it.

    Raises:
        InvalidInput: the file cannot be written.
    """
    write_text_atomically(path, report_html(summary, command=command))


def report_html(summary: Summary, *, command: Sequence[str] | None = None) -> str:
    """Return the page; the same input gives the same text."""
    summary = summary.comparable()
    parts = {
        "title": escape(summary.problem.name),
        "subtitle": escape(_subtitle(summary)),
        "headline": escape(headline(summary)),
        "sentences": " ".join(escape(sentence) for sentence in sentences(summary)),
        "verdict": _verdict(summary),
        "cards": "".join(card_html(*card) for card in cards(summary)),
        "use": _use(summary),
        "bars": energy_bars(_plans(summary), summary.plan.bound_j),
        "comparison": _comparison(summary),
        "left-out": _left_out(summary),
        "reproduce": _reproduce(summary, command),
        "data": page_data(summary),
        "curves": curve_data(summary.problem),
        "script": "\n".join(asset(f"{name}.js") for name in SCRIPTS),
    }
    return framed("page.html", parts, "script-src 'unsafe-inline'; ")


def framed(template: str, parts: Mapping[str, str], scripts: str = "") -> str:
    """Return a page: each ``{{name}}`` of its template is replaced by its part.

    ``scripts`` is what the page may run, in words of a content security policy.
    """
    parts = {**parts, "style": asset("page.css"), "scripts": scripts}
    text = asset("frame.html").replace("{{body}}", asset(template))
    return re.sub(r"{{(.+?)}}", lambda found: parts[found[1]], text)


def asset(name: str) -> str:
    """Return a file of the pages: template, style or script."""
    return files("downclock.report.page").joinpath("web", name).read_text(encoding="utf-8")


def _subtitle(summary: Summary) -> str:
    platform = summary.problem.platform
    where = (
        f"{count(platform.server_count, 'server')}, {count(platform.processor_count, 'processor')}"
    )
    tasks = count(len(summary.problem.tasks), "task")
    return f"{tasks} on {where}, planned by {plan_name(summary)}"


def card_html(what: str, value: str, note: str) -> str:
    """Return one figure with its name above and a note below."""
    return (
        f'<div class="card"><dt>{escape(what)}</dt>'
        f'<dd>{escape(value)}</dd><dd class="note">{escape(note)}</dd></div>'
    )


def _verdict(summary: Summary) -> str:
    if summary.plan.verdict.ok:
        checked = f"{summary.plan.verdict.checked:,} rows"
        return f'<p class="verdict good">Checked: the plan breaks no rule ({checked}).</p>'
    lines = "".join(f"<li>{escape(str(v))}</li>" for v in summary.plan.verdict.violations[:20])
    text = escape(str(summary.plan.verdict).splitlines()[0])
    return f'<div class="verdict bad"><p>This schedule is {text}</p><ul>{lines}</ul></div>'


def _plans(summary: Summary) -> list[tuple[str, Bill]]:
    names = [plan_name(summary), *(each.policy for each in summary.baselines)]
    return list(zip(names, (each.bill for each in summary.plans), strict=True))


def energy_bars(
    plans: Sequence[tuple[str, Bill]], bound_j: float = 0.0, words: Callable[[float], str] = energy
) -> str:
    """Stacked bars of the energy parts, all to one scale; ``words`` writes an energy."""
    longest = max([bill.total_j for _, bill in plans] + [bound_j]) or 1.0
    rows = []
    for name, bill in plans:
        drawn = [(part, joules) for part, joules in bill.energy_j.items() if joules > 0.0]
        parts = [(part, joules / longest, f"{part}: {words(joules)}") for part, joules in drawn]
        rows.append(_bar(name, parts, words(bill.total_j)))
    if bound_j > 0.0:
        rows.append(_bar("lower bound", [("bound", bound_j / longest, "")], words(bound_j)))
    used = [part for part in PARTS if any(bill.energy_j[part] > 0.0 for _, bill in plans)]
    legend = "".join(f'<li><span class="part {part}"></span>{part}</li>' for part in used)
    bars = f'<div class="bars" aria-hidden="true">{"".join(rows)}</div>'
    return f'{bars}<ul class="legend">{legend}</ul>'


def _bar(name: str, parts: Iterable[tuple[str, float, str]], value: str) -> str:
    """One bar of parts: what each is, its share of the track, and words that show above it."""
    pieces = "".join(
        f'<span class="part {part}" style="width:{100.0 * share:.4f}%"'
        + (f' title="{words}"></span>' if words else "></span>")
        for part, share, words in parts
    )
    return (
        f'<div class="bar"><span class="name">{escape(name)}</span>'
        f'<span class="track">{pieces}</span><span class="value">{value}</span></div>'
    )


def _comparison(summary: Summary) -> str:
    plans = _plans(summary)
    used = [part for part in PARTS if any(bill.energy_j[part] for _, bill in plans)]
    rows = [(f"{part} energy", [energy(bill.energy_j[part]) for _, bill in plans]) for part in used]
    rows.append(("total energy", [energy(bill.total_j) for _, bill in plans]))
    values = [each.value for each in summary.plans]
    if summary.plan.value is not None and summary.plan.value.objective != ENERGY:
        said = ["" if value is None else value.words(value.amount) for value in values]
        rows.append((f"{summary.plan.value.objective}, negative prices as 0", said))
    gaps = [percent((each if each.value is None else each.value).gap) for each in summary.plans]
    rows.append(("above its lower bound", gaps))
    rows.append(("server wakes", [f"{bill.wakes:,}" for _, bill in plans]))
    return table_html("plain", ["", *(name for name, _ in plans)], rows)


def table_html(kind: str, head: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return a table of a class; a row is its name and its cells."""
    unseen = '<span class="unseen">what</span>'
    top = "".join(f'<th scope="col">{escape(name) or unseen}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, cells in rows
    )
    return f'<table class="{kind}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def _use(summary: Summary) -> str:
    """How busy the processors of each kind are, as bars."""
    rows = []
    for each in use_of_kinds(summary.problem, summary.plan.schedule):
        parts = [("run", each.busy, ""), ("idle", max(0.0, each.awake - each.busy), "")]
        said = f"{percent(each.busy)} busy, {percent(each.awake)} awake"
        rows.append(_bar(f"{each.kind}, {each.processors:,}", parts, said))
    return "".join(rows)


def _left_out(summary: Summary) -> str:
    rows = left_out(summary)
    if not rows:
        return ""
    cells = [
        (name, (how, why or "no reason given", possible or "none"))
        for name, how, why, possible in rows[:LISTED]
    ]
    head = ("Task", "Outcome", "Why", "Could end by, beside this plan")
    more = len(rows) - LISTED
    note = f'<p class="note">And {more:,} more: see the table of tasks.</p>' if more > 0 else ""
    return (
        '<section aria-labelledby="left-out-title">'
        '<h2 id="left-out-title">What is left out, and why</h2>'
        f"<p>{count(len(rows), 'task')} of {len(summary.problem.tasks):,} will not be done.</p>"
        f'<div class="scroll short">{table_html("plain left", head, cells)}</div>{note}</section>'
    )


def _reproduce(summary: Summary, command: Sequence[str] | None) -> str:
    """Say how this file was made, so that somebody else can make it again."""
    facts = [
        ("Downclock", version("downclock")),
        ("Python", machine.python_version()),
        ("NumPy", version("numpy")),
        ("Problem", summary.problem.name),
        ("Policy", summary.plan.schedule.policy or "not stated"),
        ("Baselines", ", ".join(each.policy for each in summary.baselines) or "none"),
        ("Energy counted until", _until(summary.plan.bill.boundary)),
    ]
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts)
    return f'{command_html(command)}<dl class="facts">{rows}</dl>'


def command_html(command: Sequence[str] | None) -> str:
    """Return a command as a shell would take it."""
    return "" if command is None else f"<pre><code>{escape(shlex.join(command))}</code></pre>"


def _until(boundary: Boundary) -> str:
    names = {"last-task": "each server's last task", "makespan": "the end of the last task"}
    return names[boundary] if isinstance(boundary, str) else f"{boundary:g} s, or a later last task"
