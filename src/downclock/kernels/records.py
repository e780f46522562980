"""Records: tables of a few named columns as one array, which kernels take as one argument.

A kernel with a hundred arrays takes minutes to compile; as records they are few. Columns are asked
for by name, ``table.column[i]``, compiled or not; rows, ``table[i].column``, of record arrays only.
"""

from __future__ import annotations

import itertools
import operator
from collections import namedtuple
from dataclasses import make_dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

Records: TypeAlias = Any
"""A table of records, as kernels see it."""


def record(**columns: type) -> np.dtype[Any]:
    """Describe a table: names and types of its columns."""
    kinds = {int: np.int64, float: np.float64}
    return np.dtype([(name, kinds[kind]) for name, kind in columns.items()])


class Rows(list[Any]):
    """A record array as code takes it that is not compiled: rows with attributes, and columns.

    An attribute of a Python object is read ten times faster than one of numpy's records. What the
    code changed is written back by `close`.
    """

    def __init__(self, table: Any) -> None:
        super().__init__(itertools.starmap(_row(table.dtype), table.tolist()))
        self.table, self.size = table, len(self)

    def __getattr__(self, column: str) -> Any:
        return self.table[column]

    def close(self) -> None:
        """Write the rows into the array."""
        names = operator.attrgetter(*self.table.dtype.names)
        for i, row in enumerate(self):
            self.table[i] = names(row)


def in_columns(argument: Any, opened: dict[int, Rows]) -> Any:
    """An argument as code takes it that is not compiled: tables as their columns by name.

    Record arrays, whose rows are asked for, are added to those ``opened``, each once.
    """
    if isinstance(argument, np.recarray):
        if id(argument) not in opened:
            opened[id(argument)] = Rows(argument)
        return opened[id(argument)]
    if isinstance(argument, np.ndarray) and argument.dtype.names is not None:
        return _views(argument.dtype)(*(argument[name] for name in argument.dtype.names))
    if hasattr(argument, "_fields"):
        return type(argument)(*(in_columns(part, opened) for part in argument))
    return argument


@cache
def _row(dtype: np.dtype[Any]) -> Any:
    assert dtype.names is not None
    return make_dataclass("Row", dtype.names, slots=True)


@cache
def _views(dtype: np.dtype[Any]) -> Any:
    assert dtype.names is not None
    return namedtuple("Columns", dtype.names)


def filled(size: int, dtype: np.dtype[Any], **values: Any) -> np.ndarray[Any, Any]:
    """A table with some columns filled, the others 0."""
    table = np.zeros(size, dtype)
    for name, value in values.items():
        table[name] = value
    return table
