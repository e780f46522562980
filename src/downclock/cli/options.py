"""Arguments and options that several commands share."""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from downclock.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from downclock.cli.session import Session
    from downclock.problem.problem import Problem
    from downclock.schedule.account.bill import Boundary
    from downclock.schedule.schedule import Schedule

F = TypeVar("F", bound=Callable[..., Any])


def _read_boundary(ctx: click.Context, param: click.Parameter, text: str) -> Boundary:
    """Read ``last-task``, ``makespan`` or a number of seconds."""
    if text == "last-task":
        return "last-task"
    if text == "makespan":
        return "makespan"
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < float("inf"):
        rule = f"{text!r} is not last-task, makespan or a number of seconds."
        raise click.BadParameter(rule, ctx, param)
    return seconds


def _complete_boundary(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [word for word in ("last-task", "makespan") if word.startswith(incomplete)]


boundary = click.option(
    "--boundary",
    callback=_read_boundary,
    default="last-task",
    show_default=True,
    metavar="last-task|makespan|SECONDS",
    shell_complete=_complete_boundary,
    help="Where a server's energy window ends.",
)


def _read_objective(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Read an objective and write it the one way the rest of the program does."""
    if text is None:
        return None
    from downclock.problem.objective import parse_objective

    return str(parse_objective(text))


objective = click.option(
    "--objective",
    callback=_read_objective,
    metavar="cost|carbon|energy|SUM",
    help="What is to be least; a sum such as 0.7cost+0.3carbon. [default: energy]",
)

form = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="How to print the result.",
)

result_file = click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE",
    help="Write the result there instead of printing it.",
)


def quiet(command: F) -> F:
    """Add ``--quiet``, which the session obeys."""
    return click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=_set_quiet,
        help="Print nothing but errors.",
    )(command)


def _set_quiet(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if ctx.obj is not None:
        ctx.obj.quiet = wanted


def input_files(metavar: str, *, folders: bool = False) -> Callable[[F], F]:
    """Add the argument ``files``: one or more, none of them a folder unless that is allowed."""
    return click.argument(
        "files",
        nargs=-1,
        required=True,
        metavar=metavar,
        type=click.Path(),
        callback=None if folders else _refuse_folders,
    )


def _refuse_folders(
    ctx: click.Context, param: click.Parameter, files: tuple[str, ...]
) -> tuple[str, ...]:
    for path in files:
        if os.path.isdir(path):
            raise InvalidInput("is a folder, not a file", source=path)
    return files


def finite(ctx: click.Context, param: click.Parameter, number: float | None) -> float | None:
    """Refuse what no range refuses: nan, and infinity."""
    if number is not None and not math.isfinite(number):
        raise click.BadParameter(f"{number} is not a finite number.", ctx, param)
    return number


def read_columns(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> dict[str, str] | None:
    """Read ``ours=theirs,...``."""
    if text is None:
        return None
    names: dict[str, str] = {}
    for part in text.split(","):
        ours, equals, theirs = (word.strip() for word in part.partition("="))
        if not (ours and equals and theirs):
            raise click.BadParameter(f"{part!r} is not of the form ours=theirs.", ctx, param)
        names[ours] = theirs
    return names


def problem_files(metavar: str, *, folders: bool = False) -> Callable[[F], F]:
    """Add the files of a problem, and the options that replace parts of it."""

    def add(command: F) -> F:
        for decorate in (
            click.option(
                "--prices",
                "--price",
                type=click.Path(),
                metavar="FILE",
                help="Prices and CO2 intensity (CSV) instead of the cluster's.",
            ),
            click.option(
                "--columns",
                metavar="OURS=THEIRS,...",
                expose_value=False,
                callback=_remember_columns,
                help="Names of the price file's columns where they differ from ours.",
            ),
            click.option(
                "--library",
                metavar="FILE|builtin:NAME",
                help="Applications instead of the cluster's.",
            ),
            click.option(
                "--archetype",
                type=click.Choice(["compute-bound", "mixed", "memory-bound"]),
                metavar="NAME",
                expose_value=False,
                callback=_remember,
                help="Jobs given by run time are compute-bound, mixed or memory-bound.",
            ),
            click.option(
                "--deadline-factor",
                type=float,
                metavar="N",
                expose_value=False,
                callback=_remember,
                help="Jobs without a deadline are due N run times after their arrival.",
            ),
            input_files(metavar, folders=folders),
        ):
            command = decorate(command)
        return command

    return add


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Keep how jobs are read in the session: every command that reads them means the same."""
    if isinstance(value, float) and not 0.0 < value < math.inf:
        raise click.BadParameter(f"{value} must be positive and finite.", ctx, param)
    if ctx.obj is not None and value is not None and param.name is not None:
        ctx.obj.jobs_read[param.name] = value


def _remember_columns(ctx: click.Context, param: click.Parameter, text: str | None) -> None:
    if ctx.obj is not None:
        ctx.obj.price_columns = read_columns(ctx, param, text)


def load(files: Sequence[str], library: str | None, prices: str | None) -> Problem:
    """Read a problem, and tell what was assumed of its jobs."""
    session: Session = click.get_current_context().obj
    if session.price_columns is not None and prices is None:
        raise click.UsageError("--columns is about the price file: give it with --prices")
    problem = _load(files, library, prices, session)
    session.tell(f"assumed: {line}" for line in problem.assumptions)
    return problem


def _load(
    files: Sequence[str], library: str | None, prices: str | None, session: Session
) -> Problem:
    """Read a cluster and a file of jobs, or one problem file."""
    from downclock.problem.files.files import load_problem, read_problem

    jobs_read, columns = session.jobs_read, session.price_columns
    if len(files) == 2:
        return load_problem(
            *files, library=library, prices=prices, price_columns=columns, **jobs_read
        )
    if len(files) != 1:
        raise click.UsageError("give a cluster and a file of jobs, or one problem file")
    if Path(files[0]).suffix == ".toml":
        raise click.UsageError(f"{files[0]} is a cluster: give a file of jobs after it")
    if library is not None:
        raise click.UsageError("a problem file holds its applications: --library does not apply")
    if jobs_read:
        option = next(iter(jobs_read)).replace("_", "-")
        raise click.UsageError(
            f"a problem file holds its tasks as they are: --{option} is not for it"
        )
    problem = read_problem(files[0])
    return problem if prices is None else _repriced(problem, prices, columns)


def _repriced(problem: Problem, prices: str, columns: Mapping[str, str] | None) -> Problem:
    from downclock.problem.files.read_prices import covering, read_prices

    platform = problem.platform
    read = read_prices(
        prices,
        epoch=problem.epoch or "first row",
        slot_s=platform.slot_s,
        zones=platform.zones,
        columns=columns,
    )
    return replace(problem, prices=covering(read, platform.zones, prices))


def load_with_schedule(
    files: Sequence[str], library: str | None, prices: str | None
) -> tuple[Problem, Schedule]:
    """Read a problem and, from the last file, a schedule of it."""
    from downclock.schedule.files import read_schedule

    if len(files) not in (2, 3):
        raise click.UsageError("give the problem (one file, or cluster and jobs) and a schedule")
    if len(files) == 2 and Path(files[0]).suffix == ".toml":
        raise click.UsageError("give a schedule after the cluster and the jobs")
    problem = load(files[:-1], library, prices)
    return problem, read_schedule(files[-1], problem)


def require_writable(path: str | None, suffixes: Sequence[str]) -> None:
    """Refuse an output file before the work is done for it."""
    if path is None:
        return
    target = Path(path)
    if ".svg" in suffixes and importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "plot", "drawing a figure")
    if target.suffix.lower() not in suffixes:
        raise InvalidInput(f"must end in {', '.join(suffixes)}", field="output", value=path)
    if target.is_dir():
        raise InvalidInput("is a folder, not a file", source=path)
    if not target.parent.is_dir():
        raise InvalidInput("its folder does not exist", source=path)
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InvalidInput("may not be written (no permission)", source=path)


def command_words(
    verb: str, files: Sequence[str], given: Sequence[tuple[str, Any, Any]]
) -> list[str]:
    """Return a command as words; ``given`` are its options as (name, value, default)."""
    words = ["downclock", verb, *files]
    for name, value, default in given:
        words += [] if value == default else [name, str(value)]
    return words
