"""Integer programs with HiGHS, as SciPy ships it: the one door to them."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_ONE = threading.Lock()


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
