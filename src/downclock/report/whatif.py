"""What a trace would have cost otherwise: the page for the terminal, and the one for a meeting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from html import escape
from importlib.metadata import version
from pathlib import Path

from downclock.quantities import count, duration, percent, prefixed
from downclock.report.converted import coverage_line, malformed_notes, row_cells, row_records
from downclock.report.page.write import card_html, command_html, energy_bars, framed, table_html
from downclock.report.summary import ON_BOTH
from downclock.report.tables import Page, Table
from downclock.schedule.schedule import AS_IT_RAN
from downclock.study.whatif import CAPPED, RACE, Case, WhatIf
from downclock.units import J_PER_KWH

OTHERS = (AS_IT_RAN, RACE, CAPPED)

_NONE = "no jobs were found that every way runs"


def whatif_page(asked: WhatIf) -> Page:
    """Every case as tables, coverage first, assumptions last."""
    title = "part saved (money, CO2: beside as-it-ran)"
    tables = [Table(head, tuple(rows), f"{knob}: {title}") for knob, head, rows in _tables(asked)]
    records = [
        {"knob": case.knob, "setting": case.setting, **asdict(each),
         "compared_jobs": case.jobs, "compared": case.covered}
        for case in (asked.usual, *asked.cases)
        for each in case.figures
    ]  # fmt: skip
    ledger = asked.found.trace.ledger
    if ledger.dropped:
        tables.insert(0, Table(("rows", "number", ledger.hours), row_cells(ledger), "Rows"))
    notes = (
        *_on_fewer(asked),
        *malformed_notes(ledger),
        *(f"assumed: {line}" for line in asked.assumptions),
    )
    data = {
        "trace": str(ledger.source),
        "covered": ledger.covered,
        "rows": row_records(ledger),
        "policy": asked.policy,
        "busy": asked.busy,
        "cases": records,
        "malformed": ledger.complaints,
        "assumptions": list(asked.assumptions),
    }
    lines = (coverage_line(asked.found), _headline(asked))
    return Page(lines, tuple(tables), notes, data, records)


def whatif_html(asked: WhatIf, *, command: Sequence[str] | None = None) -> str:
    """Return the page for a meeting, which needs no network; the same input, the same text."""
    ledger = asked.found.trace.ledger
    told = (*asked.assumptions, *malformed_notes(ledger))
    cells = [(what, rest) for what, *rest in row_cells(ledger)]
    parts = {
        "title": escape(Path(ledger.source).name),
        "subtitle": escape(_subtitle(asked)),
        "coverage": escape(coverage_line(asked.found) + "."),
        "rows": table_html("plain rows", ("rows that", "number", ledger.hours), cells),
        "headline": escape(_headline(asked)),
        "cards": "".join(card_html(*card) for card in _cards(asked)),
        "bars": energy_bars(list(asked.bills.items()), words=_wh) + _unlike_its_bar(asked),
        "knobs": "".join(_knob(*each) for each in _tables(asked)),
        "marked": "".join(map(_note, _on_fewer(asked))),
        "assumptions": "".join(f"<li>{escape(line)}</li>" for line in told),
        "reproduce": command_html(command),
        "version": escape(version("downclock")),
    }
    return framed("whatif.html", parts).replace(" %", "\u00a0%")  # never alone on a line


def _headline(asked: WhatIf) -> str:
    ran, ours = asked.usual.figures[0], asked.usual.figures[-1]
    if not asked.usual.jobs:
        return f"No saving can be told: {_NONE}.{_turned_away(asked)}"
    said = [f"{_saved(asked.usual, each)} than {_called(each)}" for each in OTHERS]
    return (
        f"As it ran, these jobs took {_wh(ran.energy_j)}; planned by {asked.policy} they would have"
        f" taken {_wh(ours.energy_j)}: {', '.join(said)}.{_turned_away(asked)}{_asleep(asked)}"
        f"{_better(asked)}"
    )


def _turned_away(asked: WhatIf) -> str:
    usual, jobs = asked.usual, len(asked.found.problem.tasks)
    left = usual.figures[-1].left_out
    said = f" It turns away {left:,} of {jobs:,} jobs." if left else ""
    return f"{said} All of this is of {_those(usual)}." if 0.0 < usual.covered < 1.0 else said


def _those(case: Case) -> str:
    """The jobs that figures of a case are of."""
    jobs, covered = count(case.jobs, "job"), percent(case.covered)
    return f"the {jobs} ({covered} of GPU-hours) that every way runs"


def _on_fewer(asked: WhatIf) -> list[str]:
    """Say what marked savings are of."""
    said = []
    for case in (asked.usual, *asked.cases):
        setting = f"{case.knob}, {case.setting}" if case.setting else "the usual case"
        if case.covered < 1.0:
            what = f"energy and savings are of {_those(case)}" if case.jobs else _NONE
            said.append(f"{ON_BOTH} {setting}: {what}")
    return said


def _asleep(asked: WhatIf) -> str:
    """Say what sleep alone saves (`race`): that part needs no slower clock."""
    ran, race = asked.usual.figures[:2]
    said = f" As it ran, processors were busy {percent(asked.busy)} of the time"
    saved = 1.0 - race.energy_j / ran.energy_j
    if saved <= 0.0:
        return f"{said}."
    return f"{said}; full speed with idle servers asleep already saves {percent(saved)}."


def _better(asked: WhatIf) -> str:
    """Say plainly who costs less than the plan, in the usual case or in others."""
    beaten = [each for each in OTHERS if (asked.usual.saved(each) or 0.0) < 0.0]
    said = []
    if beaten:
        costs = "costs" if len(beaten) == 1 else "cost"
        others = " and ".join(map(_called, beaten))
        said.append(f"The plan is not the least: {others} {costs} less.")
    if RACE not in beaten:
        worse = sum((case.saved(RACE) or 0.0) < 0.0 for case in asked.cases)
        said += [f"In {worse} of the other cases {_called(RACE)} costs less."] if worse else []
    return "".join(f" {sentence}" for sentence in said)


def _called(other: str) -> str:
    return {
        AS_IT_RAN: "as it ran",
        RACE: "running at full speed with idle servers asleep",
        CAPPED: "running at the best single clock, asleep when idle",
    }[other]


def _saved(case: Case, other: str, what: str = "energy_j") -> str:
    saved = case.saved(other, what)
    if saved is None:
        return "not known"
    return f"{percent(saved)} less" if saved >= 0.0 else f"{percent(-saved)} more"


def _subtitle(asked: WhatIf) -> str:
    problem, trace = asked.found.problem, asked.found.trace
    length = duration(float(trace.submit_s[-1] - trace.submit_s[0]))
    since = "" if problem.epoch is None else f" from {problem.epoch:%Y-%m-%d %H:%M}"
    where = count(problem.platform.server_count, "server")
    gpus = count(problem.platform.processor_count, "processor")
    return f"{count(len(problem.tasks), 'job')} of {length}{since}, on {where} ({gpus})"


def _cards(asked: WhatIf) -> list[tuple[str, str, str]]:
    usual, ours = asked.usual, asked.usual.figures[-1]
    currency = asked.found.problem.prices.currency
    found = []
    told: tuple[tuple[str, str, Callable[[float], str]], ...] = (
        ("Energy saved", "energy_j", _wh),
        ("Money saved", "money", lambda amount: f"{amount:,.2f} {currency}"),
        ("CO2 saved", "carbon_kg", lambda kg: f"{kg / 1e3:.4g} t" if kg >= 1e3 else f"{kg:.4g} kg"),
    )
    for title, what, words in told:
        if getattr(ours, what) is None:
            found.append((title, "not known", "give --prices, or --flat-price and --flat-carbon"))
            continue
        saved = [_part(usual, each, what, words) for each in OTHERS]
        mine, theirs = (words(getattr(each, what)) for each in (ours, usual.figures[0]))
        note = f"{mine} instead of {theirs}; beside full speed {saved[1]},"
        found.append((title, saved[0], f"{note} beside the best single clock {saved[2]}"))
    jobs = f"of {len(asked.found.problem.tasks):,} jobs"
    return [*found, ("Deadlines broken", f"{ours.late:,}", jobs)]


def _wh(energy_j: float) -> str:
    """Energy as those who pay for it say it."""
    return prefixed(1000.0 * energy_j / J_PER_KWH, "Wh")


def _tables(asked: WhatIf) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """What is changed, headings, and rows of cells, the usual case first."""
    ours = asked.usual.figures[-1]
    known = (("money", "money"), ("CO2", "carbon_kg"))
    priced = [(title, what) for title, what in known if getattr(ours, what) is not None]
    head = ("", "energy", *(f"beside {each}" for each in OTHERS))
    head += (*(title for title, _ in priced), "left out", "late")
    found = []
    for knob in dict.fromkeys(case.knob for case in asked.cases):
        mine = [asked.usual, *(case for case in asked.cases if case.knob == knob)]
        rows = [_cells(case, case.setting or asked.usually[knob], priced) for case in mine]
        found.append((knob, head, rows))
    return found


def _part(case: Case, other: str, what: str, words: Callable[[float], str]) -> str:
    """Part saved; the amount where the other's is none or less, as with negative prices."""
    if not case.jobs:
        return "other jobs"
    saved = case.saved(other, what)
    if saved is not None:
        return percent(saved)
    ours, theirs = (getattr(each, what) for each in (case.figures[-1], case.of(other)))
    if ours is None or theirs is None:
        return "not known"
    more = ours - theirs
    return f"{words(abs(more))} {'more' if more > 0.0 else 'less'}"


def _cells(case: Case, setting: str, priced: list[tuple[str, str]]) -> tuple[str, ...]:
    """A row; energy and savings are marked where they are on fewer than all jobs."""
    ours = case.figures[-1]
    said = [_wh(ours.energy_j), *(_part(case, each, "energy_j", _wh) for each in OTHERS)]
    said += [_part(case, AS_IT_RAN, what, lambda amount: f"{amount:,.2f}") for _, what in priced]
    marked = said if case.covered == 1.0 else [f"{each} {ON_BOTH}" for each in said]
    return setting, *marked, f"{ours.left_out:,}", f"{ours.late:,}"


def _knob(knob: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """One table, the usual case first."""
    cells = [(setting, rest) for setting, *rest in rows]
    return f'<div class="scroll">{table_html("plain knobs", (knob, *head[1:]), cells)}</div>'


def _unlike_its_bar(asked: WhatIf) -> str:
    """Say where the trace as it ran counts less than its bar, as other jobs had the cluster too."""
    ran_j, bill = asked.usual.figures[0].energy_j, asked.bills[AS_IT_RAN]
    if ran_j >= bill.total_j:
        return ""
    return _note(
        f"{AS_IT_RAN}: a cluster that is on for these jobs alone. Savings are beside their share of"
        f" what all jobs of the trace took, {_wh(ran_j)}."
    )


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'
