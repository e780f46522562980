"""``downclock convert``: task graphs of other tools as problem files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from downclock.cli import options

if TYPE_CHECKING:
    from downclock.cli.session import Session
    from downclock.report.tables import Form

EPILOG = """\b
Example:
  downclock convert robot.stg --cores 8 --output robot.json
  downclock plan robot.json
"""

SPREAD = 1e4
"""Clocks reach so far below and above the pace that does all work on one core in time."""


@click.command("convert", epilog=EPILOG)
@click.argument("graph", type=click.Path())
@click.option("--cores", type=click.IntRange(1, 4096), required=True, metavar="N", help="Cores.")
@click.option(
    "--deadline",
    type=click.FloatRange(0.0, 1e12, min_open=True),
    callback=options.finite,
    metavar="SECONDS",
    help="Of all tasks. [default: the time of all work on one core at clock 1]",
)
@click.option("--per-core", is_flag=True, help="A clock per core, not one for the chip.")
@click.option(
    "--alpha",
    type=click.FloatRange(1.0, 10.0, min_open=True),
    callback=options.finite,
    default=3.0,
    help="Power of a core: f^alpha W. [default: 3]",
)
@click.option(
    "--c2",
    type=click.FloatRange(0.0, 1e9),
    callback=options.finite,
    default=0.0,
    help="Chip adds c2 f W while it runs. [default: 0]",
)
@click.option(
    "--c3",
    type=click.FloatRange(0.0, 1e9),
    callback=options.finite,
    default=0.0,
    help="Chip adds c3 W while it runs. [default: 0]",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    required=True,
    metavar="FILE",
    help="Write the problem (.json).",
)
@options.form
@options.quiet
@click.pass_obj
def command(
    session: Session,
    /,
    graph: str,
    cores: int,
    deadline: float | None,
    per_core: bool,
    alpha: float,
    c2: float,
    c3: float,
    output: str,
    form: Form,
) -> None:
    """Ask for a task graph on one chip by one deadline.

    Reads the Standard Task Graph format (.stg) and WfFormat 1.5 workflows (.json). Clock 1 does
    one unit of the file's work (cycle or second) a second.
    """
    from downclock.errors import InvalidInput
    from downclock.power.points import ClockRange
    from downclock.problem.files.files import write_problem
    from downclock.report.describe import problem_page
    from downclock.workloads.chip import chip_problem
    from downclock.workloads.stg import read_stg
    from downclock.workloads.wfformat import read_wfformat

    options.require_writable(output, (".json",))
    with session.working("reading and writing"):
        read = read_wfformat(graph) if graph.lower().endswith(".json") else read_stg(graph)
        work = float(read.work.sum())
        if work <= 0.0:
            raise InvalidInput("has no work", source=graph)
        until_s = work if deadline is None else deadline
        pace = work / until_s
        problem = chip_problem(
            read,
            cores,
            until_s,
            clocks=ClockRange(pace / SPREAD, pace * SPREAD),
            alpha=alpha,
            c2=c2,
            c3=c3,
            chip_wide=not per_core,
        )
        write_problem(problem, output)
    session.wrote(output)
    session.show(problem_page(problem), form)
