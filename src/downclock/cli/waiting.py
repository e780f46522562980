"""What people see on standard error while they wait: a line, or a bar."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much is done, and of how much."""

PATIENCE_S = 0.7
"""What takes no longer needs no line."""


@contextmanager
def saying(text: str) -> Iterator[None]:
    """Show a line with a moving sign until the work is done, if it takes long at all."""
    shown: list[Any] = []
    guard = threading.Lock()
    ended = threading.Event()

    def start() -> None:
        from rich.console import Console

        with guard:
            if not ended.is_set():
                shown.append(Console(stderr=True).status(text))
                shown[0].start()

    timer = threading.Timer(PATIENCE_S, start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with guard:
            ended.set()
            for status in shown:
                status.stop()


@contextmanager
def bar(text: str) -> Iterator[Progress]:
    """Show a bar until the work is done; lines printed meanwhile stand above it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console, transient=True) as drawn:
        row = drawn.add_task(text, total=None)

        def update(what: str, done: int, of: int) -> None:
            drawn.update(row, description=what, completed=done, total=of)

        yield update
