"""Ctrl-C that is heard at once, whatever is running.

Python hears signals in its main thread only, between two instructions; a compiled loop or a solver
may be one instruction for minutes. So the work is done in a thread beside, and the main one waits.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import threading
from collections.abc import Callable

GRACE_S = 0.7
"""Time to tidy up after Ctrl-C; then the process ends as it is."""

STACK_BYTES = 64 << 20
"""Compilers recurse deeply; threads have small stacks on some systems."""


def interruptible(work: Callable[[], int], farewell: Callable[[KeyboardInterrupt], int]) -> int:
    """Do the work and return its exit code; Ctrl-C stops it, or ends the process.

    Args:
        work: what to do; raised KeyboardInterrupt in it makes it tidy up and return.
        farewell: says what was saved where the work does not stop, and returns the exit code.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    codes: list[int] = []
    ended = threading.Event()
    here = contextvars.copy_context()

    def beside() -> None:
        try:
            codes.append(here.run(work))
        finally:
            ended.set()

    before = threading.stack_size(STACK_BYTES)
    worker = threading.Thread(target=beside, daemon=True)
    try:
        worker.start()
    finally:
        threading.stack_size(before)
    try:
        while not ended.wait(0.1):  # without a limit, some systems would not hear signals
            pass
    except KeyboardInterrupt as interrupt:
        with contextlib.suppress(KeyboardInterrupt):  # asked twice: at once
            _interrupt(worker)
            ended.wait(GRACE_S)
        if not codes:
            _end_now(farewell(interrupt))
        # An interrupt that went through text that was executed (compilers do that) would have the
        # interpreter die of a signal at its end; executing other text makes it forget that.
        exec("")
    return codes[0]


def _interrupt(worker: threading.Thread) -> None:
    """Raise KeyboardInterrupt in the worker, which hears it at its next instruction."""
    import ctypes

    ident = ctypes.c_ulong(worker.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(KeyboardInterrupt))


def _end_now(code: int) -> None:
    """End the process without asking a thread that does not answer."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
