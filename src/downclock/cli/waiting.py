"""What people see on standard error while they wait: one line, painted again and again.

It says what is being done, how much of it is done, and how long the rest will take, as far as that
is known. A thread paints it, so it moves while compiled loops run.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Heard: TypeAlias = Callable[[str, int, int], None]
"""Called with a loop that is compiled, how many are done, and of about how many."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much is done, and of how much."""

PATIENCE_S = 0.7
"""What takes no longer needs no line."""

EVERY_S = 0.25
"""A line is painted so often."""

COMPILE_S = 0.4
"""About what it takes to compile one loop."""

SIGNS = "|/-\\"
CLEAR = "\r\x1b[2K"


class Line:
    """The line, from its text and counts."""

    def __init__(self, text: str) -> None:
        self._begun_s = time.monotonic()
        self._text, self._done, self._of = text, 0, 0
        self._compiling = ""
        self._painted = 0
        self._ended = threading.Event()
        self._guard = threading.RLock()
        self._painter = threading.Thread(target=self._paint_on, daemon=True)

    def update(self, text: str, done: int, of: int) -> None:
        """Say what is done, and how much of it."""
        self._text, self._done, self._of = text, done, of
        self._compiling = ""

    def compiling(self, _: str, done: int, of: int) -> None:
        """Say that loops are being compiled meanwhile, until all are."""
        left = f"{_percent(done, of)}, about {_clock(COMPILE_S * (of - done))} left"
        self._compiling = f"compiling, once on this machine: {left}" if done < of else ""

    def words(self, now_s: float) -> str:
        """The line at a time."""
        spent_s = now_s - self._begun_s
        if self._compiling:
            return f"{self._text}: {self._compiling}"
        if not self._of:
            return f"{self._text} ({_clock(spent_s)})"
        parts = [f"{self._done} of {self._of}", _percent(self._done, self._of)]
        if self._done:
            parts.append(f"about {_clock(spent_s / self._done * (self._of - self._done))} left")
        return f"{self._text} ({', '.join([*parts, _clock(spent_s)])})"

    def start(self) -> None:
        """Paint it from now on, once it has taken a moment."""
        self._painter.start()

    def stop(self) -> None:
        """Take it away."""
        self._ended.set()
        with self.hidden():
            pass

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Take it away for something else to be printed."""
        with self._guard:
            if self._painted:
                _write(CLEAR)
            yield

    def _paint_on(self) -> None:
        wait_s = PATIENCE_S
        while not self._ended.wait(wait_s):
            with self._guard:
                if not self._ended.is_set():
                    columns = shutil.get_terminal_size((100, 24)).columns
                    sign = SIGNS[self._painted % len(SIGNS)]
                    words = f"{sign} {self.words(time.monotonic())}"
                    _write(f"{CLEAR}{words[: max(1, columns - 1)]}")
                    self._painted += 1
            wait_s = EVERY_S


_LINES: list[Line] = []
"""Lines on the screen: the last one is painted."""


@contextmanager
def line(text: str) -> Iterator[Progress]:
    """Show a line until the work is done, if it takes long at all."""
    shown = Line(text)
    with hearing(shown.compiling):
        _LINES.append(shown)
        shown.start()
        try:
            yield shown.update
        finally:
            _LINES.remove(shown)
            shown.stop()


@contextmanager
def hearing(heard: Heard) -> Iterator[None]:
    """Tell of every loop that is compiled meanwhile."""
    from downclock.kernels.compiling import METER

    before, METER.listener = METER.listener, heard
    try:
        yield
    finally:
        METER.listener = before


@contextmanager
def aside() -> Iterator[None]:
    """Print something beside the line."""
    if not _LINES:
        yield
        return
    with _LINES[-1].hidden():
        yield


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _percent(done: int, of: int) -> str:
    return f"{100 * done // max(1, of)} %"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
