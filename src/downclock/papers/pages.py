"""Results of the papers for people: tables, a side-by-side for each item, one Markdown page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from downclock.papers.registry import Paper
from downclock.papers.rows import Row, Settings
from downclock.papers.run import Done
from downclock.quantities import count
from downclock.report.tables import Page, Table

WORDS = ("exact", "within interval", "differs", "ours only", "not run")
"""How a row is counted: its verdict, where "ours only" is a number the paper does not print."""

HEAD = ("quantity", "published", "ours", "interval", "unit", "verdict", "note")


def word(row: Row) -> str:
    """Return the row's verdict, or "ours only" where the paper prints no such number."""
    return "ours only" if row.verdict == "not run" and row.ours is not None else row.verdict


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
    records = [asdict(row) for each in done for row in each.rows]
    tables = [_table(each) for each in done]
    if len(done) > 1:
        tables.append(_counts(done))
    reasons = dict.fromkeys(
        f"{row.paper} {row.item}, {word(row)}: {row.note}"
        for each in done
        for row in each.rows
        if row.note
    )
    names = tuple(Row.__dataclass_fields__)
    return Page((), tuple(tables), tuple(reasons), records, records, names)


def _table(done: Done) -> Table:
    title = f"{done.task.paper} {done.task.item}: {done.task.title}"
    rows = tuple(_cells(row)[:-1] for row in done.rows)
    return Table(HEAD[:-1], rows, title, text=(0, 4, 5))


def _counts(done: Sequence[Done]) -> Table:
    """Return how many numbers of each paper have which verdict."""
    papers = dict.fromkeys(each.task.paper for each in done)
    rows = []
    for paper in papers:
        found = counted(row for each in done if each.task.paper == paper for row in each.rows)
        rows.append((paper, *(str(found[name]) for name in WORDS)))
    return Table(("paper", *WORDS), tuple(rows), "Numbers by verdict")


def counted(rows: Iterable[Row]) -> Counter[str]:
    """Return how many rows have which word."""
    return Counter(word(row) for row in rows)


def tally(rows: Iterable[Row]) -> str:
    """Say how many rows have which word, as ``3 exact, 1 differs``."""
    found = counted(rows)
    return ", ".join(f"{found[name]} {name}" for name in WORDS if found[name]) or "no numbers"


def side_by_side(done: Done) -> str:
    """Return an item as Markdown: every number beside the published one."""
    title = f"# {done.task.paper} {done.task.item}: {done.task.title}"
    return "\n".join([title, "", *_markdown(HEAD, [_cells(row) for row in done.rows]), ""])


def _cells(row: Row) -> tuple[str, ...]:
    interval = ""
    if row.low is not None and row.high is not None and row.low < row.high:
        interval = f"{number(row.low)} to {number(row.high)}"
    return (
        row.quantity,
        number(row.published),
        number(row.ours),
        interval,
        row.unit,
        word(row),
        row.note,
    )


def number(value: float | None) -> str:
    """Say a number with four digits; nothing where there is none."""
    if value is None:
        return ""
    return f"{value:.0f}" if 1000.0 <= abs(value) < 1e7 else f"{value:.4g}"


def page_markdown(
    done: Sequence[Done], papers: Sequence[Paper], settings: Settings, links: dict[str, str]
) -> str:
    """Return the page: what matches exactly, what within the interval, what differs and why.

    ``links`` leads from a paper's name to a page about it.
    """
    lines = ["# What of the papers reproduces", "", *_introduction(done, settings), ""]
    table = _counts(done)
    lines += _markdown(table.head, [row for row in table.rows if row is not None])
    for paper in papers:
        mine = [each for each in done if each.task.paper == paper.name]
        if mine:
            lines += ["", *_paper(paper, mine, links.get(paper.name))]
    return "\n".join(lines) + "\n"


def _introduction(done: Sequence[Done], settings: Settings) -> list[str]:
    options = ["--quick"] if settings.quick else []
    options += [f"--sets {settings.sets}"] if settings.sets != Settings().sets else []
    options += [f"--seed {settings.seed}"] if settings.seed else []
    command = " ".join(["downclock papers --all", *options, "--page docs/papers.md"])
    total = count(sum(len(each.rows) for each in done), "number")
    found = count(len(done), "item")
    return [
        f"Written by `{command}`:",
        f"{total} from {found}, which are tables, figures and claims of the text.",
        f"Means are over {settings.sets} sets. A published mean is *within the interval* where it",
        "lies in the 95 % prediction interval of a mean like it, drawn by our process; *exact* is",
        "equal in every printed digit; *ours only* is a number that the paper does not print.",
        "`downclock papers PAPER --item NAME --output FOLDER` runs one item and writes its plot.",
    ]


def _paper(paper: Paper, done: Sequence[Done], link: str | None) -> list[str]:
    rows = [(each.task.item, row) for each in done for row in each.rows]
    lines = [f"## {paper.name}", "", f"{paper.about[0].upper()}{paper.about[1:]}.", ""]
    if link is not None:
        lines += [f"How we read the paper, and how we know: [background]({link}).", ""]
    table = [(each.task.item, each.task.title, tally(each.rows)) for each in done]
    lines += _markdown(("item", "what it is", "numbers"), table)
    lines += _reasons("Differs, and why", [pair for pair in rows if word(pair[1]) == "differs"])
    lines += _reasons("Not run", [pair for pair in rows if word(pair[1]) == "not run"])
    for name, title in (
        ("exact", "Equal in every printed digit"),
        ("within interval", "Within the interval"),
        ("ours only", "Ours only: the paper prints no such number"),
    ):
        lines += _folded(title, [pair for pair in rows if word(pair[1]) == name])
    return lines


def _reasons(title: str, rows: list[tuple[str, Row]]) -> list[str]:
    """Return rows by their reason: a sentence, then the numbers it explains."""
    if not rows:
        return []
    lines = ["", f"### {title}"]
    for reason in dict.fromkeys(row.note for _, row in rows):
        lines += ["", f"{escaped(reason[:1].upper() + reason[1:])}:", ""]
        lines += _numbers([(item, row) for item, row in rows if row.note == reason])
    return lines


def _folded(title: str, rows: list[tuple[str, Row]]) -> list[str]:
    if not rows:
        return []
    lines = ["", '<details markdown="1">', f"<summary>{title} ({len(rows)})</summary>", ""]
    noted = any(row.note for _, row in rows)
    return [*lines, *_numbers(rows, noted=noted), "", "</details>"]


def _numbers(rows: Sequence[tuple[str, Row]], *, noted: bool = False) -> list[str]:
    head = ("item", *HEAD[:5], *(("note",) if noted else ()))
    table = [(item, *_cells(row)[:5], *((row.note,) if noted else ())) for item, row in rows]
    return _markdown(head, table)


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(escaped(cell) for cell in cells) + " |"

    return [line(head), "|" + "---|" * len(head), *(line(row) for row in rows)]


def escaped(text: str) -> str:
    """Return the text so that Markdown shows it as it is."""
    for mark in ("\\", "|", "*", "_", "<", "`", "["):
        text = text.replace(mark, f"\\{mark}")
    return text
