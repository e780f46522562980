"""Dataclasses of columns of one length: rows taken and joined, and how they print as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from downclock.errors import MissingExtra
from downclock.quantities import count
from downclock.units import Bools, Ints

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_SHOWN = 5  # rows of a long table at either end

T = TypeVar("T")


def taken(table: T, rows: Ints | Bools | slice) -> T:
    """Return some rows of a dataclass of columns, in the order given."""
    columns = fields(table)  # type: ignore[arg-type]  # generic over dataclasses
    return type(table)(*(getattr(table, column.name)[rows] for column in columns))


def joined(tables: Sequence[T]) -> T:
    """Return the rows of several dataclasses of columns of one type as one; at least one."""
    columns = fields(tables[0])  # type: ignore[arg-type]  # generic over dataclasses
    return type(tables[0])(
        *(np.concatenate([getattr(table, column.name) for table in tables]) for column in columns)
    )


class Columns:
    """A dataclass of columns of one length that prints, and can be taken elsewhere, as a table."""

    __slots__ = ()

    def _words(self) -> Mapping[str, Sequence[str]]:
        """Columns that hold codes, and what each code means."""
        return {}

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name, codes as words."""
        found: dict[str, NDArray[Any]] = {}
        words = self._words()
        for spec in fields(self):  # type: ignore[arg-type]  # those who inherit are dataclasses
            column = getattr(self, spec.name)
            if spec.name in words:
                column = np.array(words[spec.name], dtype=object)[column]
            if isinstance(column, np.ndarray):
                found[spec.name] = column
        return found

    def to_arrow(self) -> pa.Table:
        """Return the table as an Arrow table."""
        import pyarrow as pa

        return pa.table(self.columns())

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas data frame."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("pandas", "pandas", "a data frame") from None
        return pd.DataFrame(self.columns())

    def __repr__(self) -> str:
        head, rows = self._shown()
        widths = [max(map(len, cells)) for cells in zip(head, *rows, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)).rstrip() for row in (head, *rows)]
        return "\n".join([f"{type(self).__name__}: {count(self._length(), 'row')}", *lines])

    def _repr_html_(self) -> str:
        head, rows = self._shown()
        return html_table(rows, head, f"{type(self).__name__}: {count(self._length(), 'row')}")

    def _length(self) -> int:
        return next(iter(self.columns().values())).size

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        """Return names and cells of the first and last rows, each row after its number."""
        columns, n = self.columns(), self._length()
        which = range(n) if n <= 2 * _SHOWN else [*range(_SHOWN), -1, *range(n - _SHOWN, n)]
        rows = [
            ["..."] * (1 + len(columns))
            if row < 0
            else [str(row), *(_cell(column[row]) for column in columns.values())]
            for row in which
        ]
        return ["", *columns], rows


def html_table(rows: Iterable[Sequence[str]], head: Sequence[str] = (), caption: str = "") -> str:
    """Return cells of text as an HTML table; without a head, the first cell of a row heads it."""

    def line(cells: Sequence[str], heads: int) -> str:
        tags = ["th" if k < heads else "td" for k in range(len(cells))]
        pairs = zip(tags, cells, strict=True)
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for tag, cell in pairs) + "</tr>"

    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = f"<thead>{line(head, len(head))}</thead>" if head else ""
    body = "".join(line(row, 0 if head else 1) for row in rows)
    return f"<table>{title}{top}<tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
