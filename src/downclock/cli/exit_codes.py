"""How a command may end when it does not end well: an exit code and one line."""

from __future__ import annotations

import sys

import click

from downclock.cli.session import Session
from downclock.errors import DownclockError, InvalidSchedule

BAD_INPUT, INTERNAL, INTERRUPTED = 2, 3, 130

LONGEST = 300
"""Characters of an internal error's own text that are shown."""


def exit_code_of(error: BaseException, session: Session) -> int:
    """Say what happened in one line on standard error and return the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else INTERNAL
    if isinstance(error, KeyboardInterrupt | click.Abort):
        saved = f"saved: {', '.join(session.saved)}" if session.saved else "nothing was written"
        _say(f"interrupted; {saved}")
        return INTERRUPTED
    if session.debug:
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    complaint = _complaint(error)
    if complaint is not None:
        _say(f"error: {complaint}")
        return BAD_INPUT
    _say(_report(error, session.debug))
    return INTERNAL


def _complaint(error: BaseException) -> str | None:
    """Say what the user gave wrongly; None where the fault is ours."""
    if isinstance(error, click.UsageError):
        path = "downclock" if error.ctx is None else error.ctx.command_path
        return f"{error.format_message()} (see {path} --help)"
    if isinstance(error, click.ClickException):
        return error.format_message()
    # An invalid schedule that reaches this place was made here: commands that read one say so.
    if isinstance(error, DownclockError) and not isinstance(error, InvalidSchedule):
        return str(error)
    return None


def _say(text: str) -> None:
    """Print exactly one line, whatever the text holds."""
    from downclock.cli.waiting import aside

    line = " ".join(text.split())
    with aside():
        click.echo("".join(c if c.isprintable() else "?" for c in line), err=True)


def _report(error: BaseException, debug: bool) -> str:
    from downclock import __version__

    if isinstance(error, MemoryError):
        return f"error: not enough memory for a problem of this size ({error})"
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    what = what if len(what) <= LONGEST else what[: LONGEST - 3] + "..."
    where = "" if debug else "; DOWNCLOCK_DEBUG=1 shows where it happened"
    return (
        f"internal error in downclock {__version__}: {what}; this is a bug, please report it with"
        f" the command and, if you may share them, its files{where}"
    )
