"""Integer programs with HiGHS, as SciPy ships it: the one door to them."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from downclock.units import Floats, Ints

_ONE = threading.Lock()


class Rows:
    """Sparse rows of a linear program with their bounds, gathered one by one."""

    def __init__(self) -> None:
        self._entries: list[tuple[Ints, Floats]] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def __len__(self) -> int:
        return len(self._low)

    def add(
        self, low: float, high: float, *terms: tuple[Any, Floats | Sequence[float] | float]
    ) -> None:
        """Add ``low <= sum of terms <= high``; a term is variables and their coefficients."""
        pairs = [np.broadcast_arrays(variables, value) for variables, value in terms]
        columns, values = (
            np.concatenate([*map(np.ravel, part)]) for part in zip(*pairs, strict=True)
        )
        self._entries.append((columns.astype(np.int64), values))
        self._low.append(low)
        self._high.append(high)

    def constraint(self, width: int) -> Any:
        """Return the rows over so many variables, as SciPy takes them."""
        from scipy.optimize import LinearConstraint

        columns, values = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        at = np.repeat(np.arange(len(self)), [column.size for column, _ in self._entries])
        matrix = entries(at, columns, (len(self), width), values)
        return LinearConstraint(matrix, np.array(self._low), np.array(self._high))


def entries(row: Ints, column: Ints, shape: tuple[int, int], value: Floats | float = 1.0) -> Any:
    """Return a sparse matrix with these entries; those of one place are added up."""
    from scipy.sparse import csr_array

    return csr_array((np.broadcast_to(value, row.shape), (row, column)), shape=shape)


def solve_integer(*args: Any, **options: Any) -> Any:
    """Call `scipy.optimize.milp`; nothing is printed.

    HiGHS prints some lines to the standard output of the process whatever its options say; they
    would end up in the middle of what a user's command prints.
    """
    from scipy.optimize import milp

    with _silence():
        return milp(*args, **options)


@contextmanager
def _silence() -> Iterator[None]:
    """Send what is printed nowhere, by any thread of the process; one solve at a time."""
    with _ONE:
        with suppress(AttributeError, ValueError):  # there is no standard output, or it is closed
            sys.stdout.flush()
        try:
            kept = os.dup(1)
        except OSError:
            yield
            return
        _flush_c()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        try:
            yield
        finally:
            _flush_c()
            os.dup2(kept, 1)
            os.close(kept)
            os.close(nowhere)


def _flush_c() -> None:
    """Write out what the C library holds, where it can be reached."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)
