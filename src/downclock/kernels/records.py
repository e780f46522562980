"""Records: tables of a few named columns as one array, which kernels take as one argument.

A kernel with a hundred arrays takes minutes to compile; as records they are few. Columns are asked
for by name, ``table.column[i]``, compiled or not.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any, TypeAlias

import numpy as np

Records: TypeAlias = Any
"""A table of records, as kernels see it."""


def record(**columns: type) -> np.dtype[Any]:
    """Describe a table: names and types of its columns."""
    kinds = {int: np.int64, float: np.float64}
    return np.dtype([(name, kinds[kind]) for name, kind in columns.items()])


def in_columns(argument: Any) -> Any:
    """An argument as code takes it that is not compiled: tables as their columns by name."""
    if isinstance(argument, np.ndarray) and argument.dtype.names is not None:
        return _views(argument.dtype)(*(argument[name] for name in argument.dtype.names))
    if hasattr(argument, "_fields"):
        return type(argument)(*map(in_columns, argument))
    return argument


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
