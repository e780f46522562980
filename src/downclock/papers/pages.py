"""Results of the papers for people: tables, a side-by-side for each item, one Markdown page."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.resources import files

from downclock.papers.registry import Paper
from downclock.papers.rows import MEANING, Row, Settings, Verdict
from downclock.papers.run import Done
from downclock.quantities import count
from downclock.report.tables import Page, Table

HEAD = ("quantity", "published", "ours", "interval", "unit", "verdict", "note")
OPEN: tuple[Verdict, ...] = (
    "unexplained",
    "differs",
    "by chance",
    "not repeated",
    "contradicts itself",
    "does not hold",
    "undecided",
    "not run",
)
FOLDED: tuple[Verdict, ...] = ("exact", "within interval", "holds", "consistent", "ours only")
"""Verdicts that the page shows at once, by their reason, and those that it folds away."""

REPRODUCED = ("exact", "within interval", "holds")


def listing(papers: Iterable[Paper]) -> Page:
    """Return the papers and what can be run of each."""
    tables, records = [], []
    for paper in papers:
        rows = tuple((item.name, item.title) for item in paper.items.values())
        title = f"{paper.name}: {paper.about}"
        tables.append(Table(("item", "what it is"), rows, title, text=(0, 1)))
        records += [{"paper": paper.name, "item": name, "title": text} for name, text in rows]
    notes = ("downclock papers PAPER --item NAME runs one of them, --all runs all.",)
    return Page((), tuple(tables), notes, records, records, ("paper", "item", "title"))


def rows_page(done: Sequence[Done]) -> Page:
    """Return every number with its verdict, and how many there are of each kind."""
    every = [row for each in done for row in each.rows]
    records = [asdict(row) for row in every]
    tables = [
        Table(HEAD[:-1], tuple(_cells(row)[:-1] for row in each.rows), each.title, (0, 4, 5))
        for each in done
    ]
    if len(done) > 1:
        tables.append(_counts(done))
    noted = [row for row in every if row.note]
    reasons = dict.fromkeys(f"{r.paper} {r.item}, {r.verdict}: {r.note}" for r in noted)
    names = tuple(Row.__dataclass_fields__)
    return Page((), tuple(tables), tuple(reasons), records, records, names)


def _counts(done: Sequence[Done]) -> Table:
    """Return how many numbers and claims of each paper have which verdict."""
    papers = dict.fromkeys(each.task.paper for each in done)
    rows = []
    for paper in papers:
        found = tallied(row for each in done if each.task.paper == paper for row in each.rows)
        judged = found.total() - found["ours only"]
        good = sum(found[name] for name in REPRODUCED)
        rows.append((paper, f"{good} of {judged}", *(str(found[name]) for name in MEANING)))
    return Table(("paper", "reproduced", *MEANING), tuple(rows), "Numbers and claims by verdict")


def tallied(rows: Iterable[Row]) -> Counter[str]:
    """Return how many numbers and claims have which verdict, each under one reading."""
    return Counter(row.verdict for row in rows if not row.beside)


def tally(rows: Iterable[Row]) -> str:
    """Say how many rows have which verdict, as ``3 exact, 1 differs``."""
    found = tallied(rows)
    return ", ".join(f"{found[name]} {name}" for name in MEANING if found[name]) or "no numbers"


def side_by_side(done: Done) -> str:
    """Return an item as Markdown: every number beside the published one."""
    return "\n".join(
        [f"# {done.title}", "", *_markdown(HEAD, [_cells(row) for row in done.rows]), ""]
    )


def _cells(row: Row) -> tuple[str, ...]:
    interval = ""
    if row.low is not None and row.high is not None and row.low < row.high:
        interval = f"{number(row.low)} to {number(row.high)}"
    return (
        row.quantity,
        f"{row.relation} {number(row.published)}".strip(),
        number(row.ours),
        interval,
        row.unit,
        row.verdict,
        f"another reading, not counted; {row.note}".rstrip("; ") if row.beside else row.note,
    )


def number(value: float | None) -> str:
    """Say a number with four digits; nothing where there is none."""
    if value is None:
        return ""
    return f"{value:.0f}" if 1000.0 <= abs(value) < 1e7 else f"{value:.4g}"


def page_markdown(
    done: Sequence[Done], papers: Sequence[Paper], settings: Settings, links: dict[str, str]
) -> str:
    """Return the page: one table of verdicts, what they mean, then each paper's numbers.

    ``links`` leads from a paper's name to a page about it.
    """
    lines = ["# What of the papers reproduces", "", *_introduction(done, settings), ""]
    table = _counts(done)
    lines += _markdown(table.head, [row for row in table.rows if row is not None])
    lines += ["", *_markdown(("verdict", "meaning"), MEANING.items())]
    for paper in papers:
        mine = [each for each in done if each.task.paper == paper.name]
        if mine:
            lines += ["", *_paper(paper, mine, links.get(paper.name))]
    return "\n".join([*lines, "", f"<!-- judged by {digest()} -->", ""])


JUDGES = ("published.py", "authors.csv", "authors.py")
"""Files of a paper with its numbers, and with the rule by which what lies outside is explained."""


def digest() -> str:
    """Return a hash of the published numbers and of the code that judges them."""
    package = files("downclock.papers")
    sources = [package / "rows.py", package / "chance.py"]
    for folder in sorted(package.iterdir(), key=lambda each: each.name):
        if folder.is_dir():
            sources += [folder / name for name in JUDGES]
    found = hashlib.sha256()
    for source in sources:
        if source.is_file():
            found.update(source.read_bytes())
    return found.hexdigest()[:16]


def _introduction(done: Sequence[Done], settings: Settings) -> list[str]:
    options = ["--quick"] if settings.quick else []
    options += [f"--sets {settings.sets}"] if settings.sets != Settings().sets else []
    options += [f"--seed {settings.seed}"] if settings.seed else []
    command = " ".join(["downclock papers --all", *options, "--page docs/papers.md"])
    found = tallied(row for each in done for row in each.rows)
    mine, others = found["ours only"], sum(row.beside for each in done for row in each.rows)
    return [
        f"Written by `{command}`, which writes the same rows as `papers.csv`:",
        f"{count(found.total() - mine, 'number')} and claims of the papers from"
        f" {count(len(done), 'item')}, and {mine} of our own that are not counted.",
        f"Means are over {settings.sets} sets (three times as many beside the authors' files).",
        "A number of gerards' tables has two rows, as printed and as stated.",
        "A claim is counted once: its rows under other readings of the paper,"
        f" {others} in all, say so and are not counted.",
        "[What five papers' numbers are worth](papers-worth.md) is the short of it;",
        "`downclock papers PAPER --item NAME --output FOLDER` runs one item and writes its plot.",
    ]


def _paper(paper: Paper, done: Sequence[Done], link: str | None) -> list[str]:
    rows = [(each.task.item, row) for each in done for row in each.rows]
    lines = [f"## {paper.name}", "", f"{paper.about[0].upper()}{paper.about[1:]}.", ""]
    if link is not None:
        lines += [f"How we read the paper, and how we know: [background]({link}).", ""]
    table = [(each.task.item, each.task.title, tally(each.rows)) for each in done]
    lines += _markdown(("item", "what it is", "verdicts"), table)
    for name in (*OPEN, *FOLDED):
        lines += _section(name, [pair for pair in rows if pair[1].verdict == name])
    return lines


def _section(verdict: Verdict, rows: list[tuple[str, Row]]) -> list[str]:
    """Return rows of a verdict, in full or folded away."""
    if not rows:
        return []
    others = sum(row.beside for _, row in rows)
    number_of = f"{len(rows) - others}" + (f", and {others} under other readings" if others else "")
    title = f"{verdict[0].upper()}{verdict[1:]} ({number_of})"
    if verdict in OPEN:
        return ["", f"### {title}", "", *_numbers(rows)]
    lines = ["", '<details markdown="1">', f"<summary>{title}</summary>", ""]
    return [*lines, *_numbers(rows), "", "</details>"]


def _numbers(rows: Sequence[tuple[str, Row]]) -> list[str]:
    cells = [(item, *_cells(row)[:5], _cells(row)[-1]) for item, row in rows]
    last = 7 if any(each[-1] for each in cells) else 6
    return _markdown(("item", *HEAD[:5], "note")[:last], [each[:last] for each in cells])


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(escaped(cell) for cell in cells) + " |"

    return [line(head), "|" + "---|" * len(head), *(line(row) for row in rows)]


def escaped(text: str) -> str:
    """Return the text so that Markdown shows it as it is."""
    return re.sub(r"([\\|*_<`[])", r"\\\1", text)
