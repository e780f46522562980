"""Integer programs with HiGHS, as SciPy ships it: the one door to it."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


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
    """Send what C code prints nowhere; for the whole process, as long as it lasts."""
    if sys.stdout is not None:
        sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # there is no standard output
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).fflush(None)  # what C still holds goes nowhere too
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
