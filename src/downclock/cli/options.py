"""Arguments, options and types that several commands share."""

from __future__ import annotations

import importlib.util
import inspect
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from downclock.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from downclock.cli.session import Session as Session
    from downclock.problem.problem import Problem as Problem
    from downclock.report.tables import Page as Page
    from downclock.schedule.account.bill import Boundary as Boundary
    from downclock.schedule.schedule import Schedule

F = TypeVar("F", bound=Callable[..., Any])


def reading(read: Callable[[str], Any], rule: str | None = None) -> Callable[..., Any]:
    """Make a callback of how a text is read: a ValueError is told as the rule, or in its words."""

    def callback(ctx: click.Context, param: click.Parameter, text: str | None) -> Any:
        try:
            return None if text is None else read(text)
        except ValueError as error:
            raise click.BadParameter(f"{text!r} {rule or error}.", ctx, param) from None

    return callback


def _boundary(text: str) -> Boundary:
    """Read ``last-task``, ``makespan`` or a number of seconds."""
    if text == "last-task":
        return "last-task"
    if text == "makespan":
        return "makespan"
    seconds = float(text.removesuffix("s"))
    if not 0.0 <= seconds < float("inf"):
        raise ValueError
    return seconds


def completing(words: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    """Make a shell complete one of these words."""
    return lambda ctx, param, incomplete: [w for w in words() if w.startswith(incomplete)]


boundary = click.option(
    "--boundary",
    callback=reading(_boundary, "is not last-task, makespan or a number of seconds"),
    default="last-task",
    show_default=True,
    metavar="last-task|makespan|SECONDS",
    shell_complete=completing(lambda: ("last-task", "makespan")),
    help="Where a server's energy window ends.",
)


def _objective(text: str) -> str:
    """Read an objective and write it the one way the rest of the program does."""
    from downclock.problem.objective import parse_objective

    return str(parse_objective(text))


objective = click.option(
    "--objective",
    callback=reading(_objective),
    metavar="cost|carbon|energy|SUM",
    help="What is to be least; a sum such as 0.7cost+0.3carbon. [default: energy]",
)


def _specs(text: str) -> list[str]:
    """Split specs at commas; a part without a name of its own belongs to the spec before it."""
    specs: list[str] = []
    for part in text.split(","):
        if not part.strip():
            raise ValueError("has an empty name between commas")
        if "=" in part.partition(":")[0] and specs:
            specs[-1] += f",{part}"
        else:
            specs.append(part)
    return specs


def policies(name: str, **settings: Any) -> Callable[[F], F]:
    """Add an option that lists policies, each with its parameters."""
    return click.option(name, callback=reading(_specs), **settings)


def _finite(ctx: click.Context, param: click.Parameter, number: float | None) -> float | None:
    """Refuse what no range refuses: nan, and infinity."""
    if number is not None and not math.isfinite(number):
        raise click.BadParameter(f"{number} is not a finite number.", ctx, param)
    return number


def number(
    name: str, least: float, most: float | None = None, *, above: bool = False, **settings: Any
) -> Callable[[F], F]:
    """Add an option that is a finite number from ``least`` (or ``above`` it) to ``most``."""
    allowed = click.FloatRange(least, most, min_open=above)
    return click.option(name, type=allowed, callback=_finite, **settings)


def whole(name: str, least: int, most: int | None = None, **settings: Any) -> Callable[[F], F]:
    """Add an option that is a whole number."""
    return click.option(name, type=click.IntRange(least, most), metavar="N", **settings)


def choice(*names: str, of: Sequence[str], **settings: Any) -> Callable[[F], F]:
    """Add an option that is one of some words; the default is shown where there is one."""
    shown = settings.get("default") is not None
    return click.option(*names, type=click.Choice(of), show_default=shown, **settings)


def _told(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if ctx.obj is not None:
        setattr(ctx.obj, str(param.name), value)


_OF_SESSION: dict[str, Any] = {"callback": _told, "expose_value": False}
"""Of options that the session obeys, whatever the command."""

form = choice(
    *("--format", "form"), of=("table", "json", "csv"), default="table",
    help="How to print the result.", **_OF_SESSION,
)  # fmt: skip


dask = click.option("--dask", metavar="ADDRESS", help="Run on the workers of this Dask scheduler.")


def archetype(help: str) -> Callable[[F], F]:
    """Add ``--archetype``: what jobs are like that are known by their run time only."""
    known = ("compute-bound", "mixed", "memory-bound")
    return choice("--archetype", of=known, metavar="NAME", help=help)


def file(
    *names: str, help: str, suffixes: Sequence[str] = (), metavar: str = "FILE", **settings: Any
) -> Callable[[F], F]:
    """Add an option that names a file; one to write (by its suffix) is refused before any work."""

    def refuse(ctx: click.Context, param: click.Parameter, path: str | None) -> str | None:
        require_writable(path, suffixes, param.name or "output")
        return path

    if suffixes:
        settings = {"type": Written(), "callback": refuse, **settings}
    settings.setdefault("type", click.Path())
    return click.option(*names, metavar=metavar, help=help, **settings)


def output(help: str, **settings: Any) -> Callable[[F], F]:
    """Add ``--output``, the file that is written; a folder where that is its ``type``."""
    return file("-o", "--output", help=help, **{"type": Written(), **settings})


class Written(click.Path):
    """The name of a file that a command writes; see `_Command`."""


class _Command(click.Command):
    """A command that writes no file over another that it writes, or over one that it reads."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; refuse a file to be written that another option names too."""
        rest = super().parse_args(ctx, args)
        named: dict[str, click.Parameter] = {}
        paths = [param for param in self.params if isinstance(param.type, click.Path)]
        for param in sorted(paths, key=lambda each: isinstance(each.type, Written)):
            own = param.expose_value and ctx.params.get(param.name or "")
            given = own or getattr(ctx.obj, param.name or "", None)
            for path in [given] if isinstance(given, str) else given or ():
                place = os.path.realpath(path)
                if isinstance(param.type, Written) and place in named and not _device(place):
                    other = named[place].get_error_hint(ctx)
                    raise click.BadParameter(f"{path!r} is the file of {other} too.", ctx, param)
                named[place] = param
        return rest


def _device(path: str) -> bool:
    """Tell whether a path is that of a pipe or device: what is written there replaces nothing."""
    return os.path.exists(path) and not os.path.isfile(path)


FIGURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")

beside = file(
    "--beside", help="A schedule to compare with, such as a trace as it ran (convert --ran)."
)


result_file = file(
    *("-o", "--output", "result_file"), help="Write the result there instead of printing it.",
    type=Written(), **_OF_SESSION,
)  # fmt: skip


def command(name: str, epilog: str = "") -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command; it is given the session, which obeys ``--quiet``.

    Without an ``epilog``, the lists at the end of its docstring are printed below the options.
    """

    def make(function: Callable[..., Any]) -> click.Command:
        text, *lists = re.split(r"\n\n(?=.+:\n  )", inspect.cleandoc(function.__doc__ or ""))
        below = epilog or "\n\n".join(f"\b\n{each}" for each in lists)
        made = click.command(name, _Command, help=text, epilog=below)(click.pass_obj(function))
        quiet = "Print nothing but errors."
        made.params.append(click.Option(["-q", "--quiet"], is_flag=True, help=quiet, **_OF_SESSION))
        return made

    return make


def input_files(metavar: str, *, folders: bool = False) -> Callable[[F], F]:
    """Add the argument ``files``: one or more, none of them a folder unless that is allowed."""
    refuse = None if folders else _refuse_folders
    return click.argument(
        "files", nargs=-1, required=True, metavar=metavar, type=click.Path(), callback=refuse
    )


def _refuse_folders(
    ctx: click.Context, param: click.Parameter, files: tuple[str, ...]
) -> tuple[str, ...]:
    for path in files:
        if os.path.isdir(path):
            raise InvalidInput("is a folder, not a file", source=path)
    return files


def _positive(ctx: click.Context, param: click.Parameter, number: float | None) -> float | None:
    if number is not None and not 0.0 < number < math.inf:
        raise click.BadParameter(f"{number} must be positive and finite.", ctx, param)
    return number


def _columns(text: str) -> dict[str, str]:
    """Read ``ours=theirs,...``."""
    names: dict[str, str] = {}
    for part in text.split(","):
        ours, _, theirs = (word.strip() for word in part.partition("="))
        if not (ours and theirs):
            raise ValueError(f"is not of the form ours=theirs,...: {part!r}")
        names[ours] = theirs
    return names


def columns(help: str) -> Callable[[F], F]:
    """Add ``--columns``: what a file calls our columns."""
    read = reading(_columns)
    return click.option("--columns", metavar="OURS=THEIRS,...", callback=read, help=help)


_PROBLEM_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    file("--prices", "--price", help="Prices and CO2 intensity (CSV) instead of the cluster's."),
    columns("Names of the price file's columns where they differ from ours."),
    click.option(
        "--library", metavar="FILE|builtin:NAME", help="Applications instead of the cluster's."
    ),
    archetype("Jobs given by run time are compute-bound, mixed or memory-bound."),
    click.option(
        "--deadline-factor",
        type=float,
        metavar="N",
        callback=_positive,
        help="Jobs without a deadline are due N run times after their arrival.",
    ),
)


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a problem, and the options that replace parts of it.

    ``jobs`` are the options on how jobs are read, as far as they are given.
    """

    session: Session
    files: tuple[str, ...]
    library: str | None
    prices: str | None
    columns: dict[str, str] | None
    jobs: dict[str, Any]

    def of(self, *files: str) -> Source:
        """The same options for other files."""
        return replace(self, files=files)

    def load(self) -> Problem:
        """Read the problem, and tell what was assumed of its jobs."""
        if self.columns is not None and self.prices is None:
            raise click.UsageError("--columns is about the price file: give it with --prices")
        problem = self._load()
        self.session.tell(f"assumed: {line}" for line in problem.assumptions)
        return problem

    def load_with_schedule(self) -> tuple[Problem, Schedule]:
        """Read the problem and, from the last file, a schedule of it."""
        from downclock.schedule.files import read_schedule

        *files, schedule = self.files
        if len(files) not in (1, 2):
            rule = "give the problem (one file, or cluster and jobs) and a schedule"
            raise click.UsageError(rule)
        if len(files) == 1 and Path(files[0]).suffix == ".toml":
            raise click.UsageError("give a schedule after the cluster and the jobs")
        problem = self.of(*files).load()
        return problem, read_schedule(schedule, problem)

    def read_beside(self, problem: Problem, path: str | None) -> list[Schedule]:
        """Read the schedule of ``--beside``, where there is one."""
        from downclock.schedule.files import read_schedule

        return [] if path is None else [read_schedule(path, problem)]

    def words(self, verb: str, **given: Any) -> list[str]:
        """Return the command as words, with these options, without what is default."""
        words = ["downclock", verb, *self.files]
        for name, value in {"library": self.library, "prices": self.prices, **given}.items():
            words += [] if value in (None, "last-task") else [f"--{name}", str(value)]
        return words

    def _load(self) -> Problem:
        """Read a cluster and a file of jobs, or one problem file."""
        from downclock.problem.files.files import load_problem
        from downclock.problem.files.read_problem import read_problem

        files = self.files
        if len(files) == 2:
            parts = {"library": self.library, "prices": self.prices, **self.jobs}
            return load_problem(*files, price_columns=self.columns, **parts)
        if len(files) != 1:
            raise click.UsageError("give a cluster and a file of jobs, or one problem file")
        if Path(files[0]).suffix == ".toml":
            raise click.UsageError(f"{files[0]} is a cluster: give a file of jobs after it")
        if self.library is not None:
            rule = "a problem file holds its applications: --library does not apply"
            raise click.UsageError(rule)
        for option in self.jobs:
            rule = f"--{option.replace('_', '-')} is not for it"
            raise click.UsageError(f"a problem file holds its tasks as they are: {rule}")
        problem = read_problem(files[0])
        return problem if self.prices is None else self._repriced(problem, self.prices)

    def _repriced(self, problem: Problem, prices: str) -> Problem:
        from downclock.problem.files.read_prices import zone_prices

        zones, slot_s = problem.platform.zones, problem.platform.slot_s
        epoch = problem.epoch or "first row"
        read = zone_prices(prices, zones, epoch=epoch, slot_s=slot_s, columns=self.columns)
        return replace(problem, prices=read)


def problem_files(
    metavar: str, *, folders: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the files of a problem and their options, which the command gets as a `Source`."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def given(session: Session, archetype: Any, deadline_factor: Any, **rest: Any) -> Any:
            jobs = {"deadline_factor": deadline_factor, "archetype": archetype}
            known = {name: value for name, value in jobs.items() if value is not None}
            parts = {name: rest.pop(name) for name in ("files", "library", "prices", "columns")}
            return function(session, source=Source(session, **parts, jobs=known), **rest)

        for decorate in (*_PROBLEM_OPTIONS, input_files(metavar, folders=folders)):
            given = decorate(given)
        return given

    return add


def refuse(names: set[str], where: str) -> None:
    """Refuse options by these names that were given: nobody would look at them."""
    context = click.get_current_context()
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name in names
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"options that do not go with {where}: {', '.join(given)}")


def folder(path: str | Path) -> Path:
    """Return the folder that an output goes to; refuse a file of that name."""
    if Path(path).exists() and not Path(path).is_dir():
        raise InvalidInput("is a file, not a folder", source=path)
    return Path(path)


def require_writable(path: str | None, suffixes: Sequence[str], option: str = "output") -> None:
    """Refuse the file of an option to write before the work is done for it."""
    if path is None:
        return
    target = Path(path)
    if ".svg" in suffixes and importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "plot", "drawing a figure")
    if target.suffix.lower() not in suffixes:
        rule = f"must end in {', '.join(filter(None, suffixes))}"
        raise InvalidInput(rule, field=option, value=path)
    if target.is_dir():
        raise InvalidInput("is a folder, not a file", source=path)
    if not target.suffix and target.exists() and not target.is_file():
        raise InvalidInput("is no file, and a suffix is added to a name without one", source=path)
    if not target.parent.is_dir():
        raise InvalidInput("its folder does not exist", source=path)
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InvalidInput("may not be written (no permission)", source=path)
