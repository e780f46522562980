"""Pages of tables, in the three forms people ask for: a table to read, JSON, CSV."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal, TypeAlias

import numpy as np

from downclock.columns import html_table
from downclock.files import csv_text

Form: TypeAlias = Literal["table", "json", "csv"]

WIDTH = 100
"""Columns where there is no terminal to ask."""

GAP = 3
"""Columns between two columns of a table."""

LEAST_TEXT = 16
"""Columns that a column of text should have before it wraps."""

MOST_ROWS = 60
"""Rows of a table that are shown to people; JSON and CSV always hold all."""


@dataclass(frozen=True, slots=True)
class Table:
    """Text under headings. Numbers stand to the right, the columns in ``text`` to the left.

    A row that is None is a line between sections.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...] | None, ...]
    title: str = ""
    text: tuple[int, ...] = (0,)

    @classmethod
    def of(
        cls,
        items: Iterable[Any],
        columns: Sequence[tuple[str, Callable[[Any], str]]],
        title: str = "",
        text: tuple[int, ...] = (0,),
    ) -> Table:
        """A row for each item; a column is its heading and how to say it of an item."""
        rows = tuple(tuple(say(each) for _, say in columns) for each in items)
        return cls(tuple(name for name, _ in columns), rows, title, text)


@dataclass(frozen=True, slots=True)
class Page:
    """One answer in every form.

    Attributes:
        lines: sentences above the tables.
        tables: for people.
        notes: sentences below the tables.
        data: everything, as plain values, for JSON.
        records: flat rows with units in the names, for CSV.
        names: columns of the CSV that are there even without records.
        commands: below the notes, as a shell takes them: no terminal wraps these.
    """

    lines: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    data: Any = field(default_factory=dict)
    records: Sequence[Mapping[str, Any]] = ()
    names: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    def __str__(self) -> str:
        return rendered(self, "table").rstrip("\n")

    def _repr_html_(self) -> str:
        lines, notes = (
            "".join(f"<p>{escape(line)}</p>" for line in said) for said in (self.lines, self.notes)
        )
        tables = (
            html_table([row for row in each.rows[:MOST_ROWS] if row], each.head, each.title)
            for each in self.tables
        )
        commands = "".join(f"<pre>{escape(line)}</pre>" for line in self.commands)
        return lines + "".join(tables) + notes + commands


def rendered(page: Page, form: Form, *, width: int = WIDTH, style: bool = False) -> str:
    """Return the page as text that ends with a line feed; ``style`` allows bold and dim."""
    if form == "json":
        return json.dumps(plain(page.data), indent=2, ensure_ascii=False) + "\n"
    if form == "csv":
        used = (name for record in page.records for name in record)
        return csv_text(list(dict.fromkeys([*page.names, *used])), map(plain, page.records))
    return _readable(page, width, style)


def plain(value: Any) -> Any:
    """Return numpy values as Python's, and numbers JSON has no word for as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _readable(page: Page, width: int, style: bool) -> str:
    from rich.console import Console

    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        color_system="standard" if style else None,
        force_terminal=style,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for line in page.lines:
        console.print(line)
    for table in page.tables:
        console.print()
        if table.title:
            console.print(table.title, style="bold" if style else None)
        for piece in stacked(table, width):
            console.print(_rich(piece))
    if page.notes:
        console.print()
    for note in page.notes:
        console.print(note)
    for command in page.commands:
        console.print(command, soft_wrap=True)
    return _tidy(out.getvalue())


def stacked(table: Table, width: int) -> list[Table]:
    """Return the table, or several to stand below each other where it is too wide.

    Each has the first column, so that no number stands without its name; columns of text may wrap,
    numbers may not.
    """
    shown = [row for row in table.rows[:MOST_ROWS] if row is not None]
    wide = [max(map(len, cells)) for cells in zip(table.head, *shown, strict=True)]
    needed = [min(w, LEAST_TEXT) if k in table.text else w for k, w in enumerate(wide)]
    groups: list[list[int]] = []
    left = -1
    for k in range(1, len(wide)):
        if left < needed[k] + GAP:
            groups.append([0])
            left = width - GAP - min(wide[0], max(LEAST_TEXT, width - 2 * GAP - needed[k]))
        groups[-1].append(k)
        left -= needed[k] + GAP
    return [_columns(table, group) for group in groups] if len(groups) > 1 else [table]


def _columns(table: Table, which: list[int]) -> Table:
    """Return these columns; a row that has nothing in them but its name is left out."""
    rows = [row if row is None else tuple(row[k] for k in which) for row in table.rows]
    kept = [row for row in rows if row is None or any(row[1:])]
    text = tuple(at for at, k in enumerate(which) if k in table.text)
    return Table(tuple(table.head[k] for k in which), tuple(kept), text=text)


def _tidy(text: str) -> str:
    """Return the text without blanks at line ends, double blank lines and blank ends."""
    lines = [line.rstrip() for line in text.split("\n")]
    kept = [line for k, line in enumerate(lines) if line or (k and lines[k - 1])]
    return "\n".join(kept).strip("\n") + "\n"


def _rich(table: Table) -> Any:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    headed = any(table.head)
    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_header=headed)
    for k, name in enumerate(table.head):
        left = k in table.text
        drawn.add_column(
            Text(name), justify="left" if left else "right", no_wrap=not left, overflow="fold"
        )
    for row in table.rows[:MOST_ROWS]:
        if row is None:
            drawn.add_section()
        else:
            drawn.add_row(*(Text(cell) for cell in row))
    hidden = len(table.rows) - MOST_ROWS
    if hidden > 0:
        drawn.add_row(Text(f"and {hidden:,} more"))
    return drawn
