"""``downclock report``: a schedule as one HTML page, and as figures and a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from downclock.cli import options
from downclock.errors import InvalidInput, InvalidSchedule

if TYPE_CHECKING:
    from downclock.cli.session import Session
    from downclock.problem.problem import Problem
    from downclock.schedule.account.bill import Boundary
    from downclock.schedule.schedule import Schedule

EPILOG = """\b
Example:
  downclock report cluster.toml jobs.csv schedule.json --output report.html
"""

FIGURES = (".png", ".svg", ".pdf")


@click.command("report", epilog=EPILOG)
@options.problem_files("CLUSTER JOBS SCHEDULE | PROBLEM SCHEDULE")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="The page (.html).",
)
@click.option(
    "--baselines",
    metavar="NAMES",
    help="Policies to compare with, or none. [default: the usual ones for the problem]",
)
@click.option("--gantt", type=click.Path(), metavar="FILE", help="Also a chart (.png .svg .pdf).")
@click.option("--power", type=click.Path(), metavar="FILE", help="Also power over time, likewise.")
@click.option("--trace", type=click.Path(), metavar="FILE", help="Also a Perfetto trace (.json).")
@options.boundary
@options.quiet
@click.pass_obj
def command(
    session: Session,
    files: tuple[str, ...],
    library: str | None,
    prices: str | None,
    output: str,
    baselines: str | None,
    gantt: str | None,
    power: str | None,
    trace: str | None,
    boundary: Boundary,
) -> None:
    """Write a schedule as one HTML page.

    The page needs no network and no other file: summary, chart of the plan, power over time,
    energy against run time of a chosen task, slack, all tasks, what was left out and why.
    """
    from downclock.report.page import write_report
    from downclock.study.summary import judge

    for path, suffixes in ((output, (".html", ".htm")), (gantt, FIGURES), (power, FIGURES)):
        options.require_writable(path, suffixes)
    options.require_writable(trace, (".json",))
    with session.working("reading"):
        problem, schedule = options.load_with_schedule(files, library, prices)
    named = None
    if baselines is not None:
        named = [name for name in baselines.split(",") if name not in ("", "none")]
    words = _command(files, library, prices, baselines, boundary, output)
    try:
        with session.progress("planning the baselines") as progress:
            summary = judge(
                problem, schedule, boundary=boundary, baselines=named, progress=progress
            )
        with session.working("writing the page"):
            write_report(summary, output, command=words)
    except InvalidSchedule as error:
        raise InvalidInput(str(error), source=files[-1]) from None
    session.wrote(output)
    _others(session, problem, schedule, boundary, gantt, power, trace)


def _command(
    files: tuple[str, ...],
    library: str | None,
    prices: str | None,
    baselines: str | None,
    boundary: Boundary,
    output: str,
) -> list[str]:
    """Return the command that makes the page, without what is default."""
    given = (
        ("--library", library, None),
        ("--prices", prices, None),
        ("--baselines", baselines, None),
        ("--boundary", boundary, "last-task"),
        ("--output", output, None),
    )
    return options.command_words("report", files, given)


def _others(
    session: Session,
    problem: Problem,
    schedule: Schedule,
    boundary: Boundary,
    gantt: str | None,
    power: str | None,
    trace: str | None,
) -> None:
    """Write the figures and the trace that were asked for."""
    if gantt is not None:
        from downclock.report.figures import gantt_figure, save_figure

        save_figure(gantt_figure(problem, schedule), gantt)
        session.wrote(gantt)
    if power is not None:
        from downclock.report.figures import power_figure, save_figure

        save_figure(power_figure(problem, schedule, boundary=boundary), power)
        session.wrote(power)
    if trace is not None:
        from downclock.report.trace import write_trace

        write_trace(problem, schedule, trace, boundary=boundary)
        session.wrote(trace)
