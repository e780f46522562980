"""The command line: one verb a command; each parses, calls one library function, prints.

``main`` is the door: it turns every way a command can end into an exit code and, where something
went wrong, one line on standard error.
"""

from __future__ import annotations

import atexit
import gc
import shutil
import sys
from collections.abc import Sequence

from downclock.cli.app import app
from downclock.cli.exit_codes import exit_code_of
from downclock.cli.interrupts import interruptible
from downclock.cli.session import Session

WIDEST = 100
"""Columns that help uses at most."""

atexit.register(gc.freeze)  # else a process that ends first looks for garbage: a sixth of a plan


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Unicode still gets its text
    session = Session()
    args = None if arguments is None else list(arguments)
    return interruptible(
        lambda: _ended(args, session), lambda interrupt: exit_code_of(interrupt, session)
    )


def _ended(args: list[str] | None, session: Session) -> int:
    """Run the command; say how it ended where it did not end well."""
    try:
        width = max(min(shutil.get_terminal_size().columns, WIDEST) - 2, 38)
        code = app.main(args, "downclock", standalone_mode=False, obj=session, terminal_width=width)
        return code if isinstance(code, int) else 0
    except BaseException as error:
        return exit_code_of(error, session)
