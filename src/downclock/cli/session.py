"""What the commands of one run share: notes to the user, and files that were saved."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from downclock.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from downclock.cli.waiting import Progress
    from downclock.report.tables import Form, Page


COMPILING = "compiling, once on this machine: it may take minutes"


@dataclass(slots=True)
class Session:
    """One run of the command line.

    Attributes:
        debug, quiet: as the user asked.
        form, result_file: how results are shown, and where instead of on the screen.
        saved: files that are complete.
        told: sentences that were noted once.
    """

    debug: bool = False
    quiet: bool = False
    form: Form = "table"
    result_file: str | None = None
    saved: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)

    def note(self, text: str) -> None:
        """Tell the user something that is not the result."""
        if not self.quiet:
            from downclock.cli.waiting import aside

            with aside():
                click.echo(text, err=True)

    def tell(self, lines: Iterable[str]) -> None:
        """Note each of these sentences, once in a run."""
        for line in lines:
            if line not in self.told:
                self.told.add(line)
                self.note(line)

    @contextmanager
    def working(self, text: str) -> Iterator[Progress | None]:
        """Say on a terminal what is being done once it takes long, until it is done.

        Gives what is to be told how much is done, and of how much; None where nobody looks. What
        is no terminal is told once if loops are compiled, which may take minutes.
        """
        from downclock.cli.waiting import hearing, line

        if self.quiet:
            yield None
        elif not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            with hearing(self._compiling):
                yield None
        else:
            with line(text) as update:
                yield update

    def _compiling(self, _: str, done: int, of: int) -> None:
        if done < of:
            self.tell([COMPILING])

    def wrote(self, path: str | Path) -> None:
        """Remember that a file is complete, and say so."""
        self.saved.append(str(path))
        self.note(f"wrote {path}")

    def write(self, text: str, path: str | Path) -> None:
        """Write a file as a whole, and say so."""
        from downclock.files import write_text_atomically

        write_text_atomically(path, text)
        self.wrote(path)

    def save(self, figure: Figure, path: str | Path) -> None:
        """Write a figure, and say so."""
        from downclock.report.figures import save_figure

        save_figure(figure, path)
        self.wrote(path)

    def show(self, result: Page | str) -> None:
        """Print a result, or write it to the file that was asked for."""
        from downclock.report.tables import rendered

        if self.result_file is not None:
            text = result if isinstance(result, str) else rendered(result, self.form)
            self.write(text, self.result_file)
        elif not self.quiet:
            if not isinstance(result, str):
                bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
                result = rendered(result, self.form, width=width(), style=bold)
            _print(result)


def width() -> int:
    """Columns of the terminal; ``COLUMNS`` overrides, 100 where there is no terminal."""
    import shutil

    return max(40, shutil.get_terminal_size((100, 24)).columns)


def blocks() -> bool:
    """Tell whether standard output can show block characters."""
    try:
        "·░█".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough; nothing may be flushed at exit either.
        _silence_stdout()
    except OSError as error:
        _silence_stdout()
        raise InvalidInput(f"cannot be written: {error.strerror}", item="standard output") from None


def _silence_stdout() -> None:
    """Let what is still buffered go nowhere when Python flushes it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
