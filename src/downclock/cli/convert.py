"""``downclock convert``: task graphs of other tools as problem files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from downclock.cli import options

if TYPE_CHECKING:
    from downclock.cli.session import Session
    from downclock.problem.problem import Problem
    from downclock.report.tables import Form
    from downclock.workloads.task_graph import TaskGraph

EPILOG = """\b
Examples:
  downclock convert robot.stg --cores 8 --output robot.json
  downclock plan robot.json
  downclock convert montage.json --cores 8 --slot 15m --prices day.csv --output m.json --plan
"""

SPREAD = 1e4
"""Clocks reach so far below and above the pace that does all work on one core in time."""


def _read_duration(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Read a length of time above 0."""
    if text is None:
        return None
    from downclock.problem.calendar import seconds_of

    try:
        seconds = seconds_of(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} {error}.", ctx, param) from None
    if seconds <= 0.0:
        raise click.BadParameter(f"{text!r} is no length of time.", ctx, param)
    return seconds


@click.command("convert", epilog=EPILOG)
@click.argument("graph", type=click.Path())
@click.option("--cores", type=click.IntRange(1, 4096), required=True, metavar="N", help="Cores.")
@click.option(
    "--deadline",
    type=click.FloatRange(0.0, 1e12, min_open=True),
    callback=options.finite,
    metavar="SECONDS",
    help="Of all tasks. [default: the time of all work on one core at clock 1; in slots, what any"
    " list schedule needs]",
)
@click.option("--per-core", is_flag=True, help="A clock per core, not one for the chip.")
@click.option(
    "--c1",
    type=click.FloatRange(0.0, 1e9, min_open=True),
    callback=options.finite,
    default=1.0,
    help="Power of a core: c1 f^alpha W. [default: 1]",
)
@click.option(
    "--alpha",
    type=click.FloatRange(1.0, 10.0, min_open=True),
    callback=options.finite,
    default=3.0,
    help="The alpha of that. [default: 3]",
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
    "--slot",
    "slot_s",
    callback=_read_duration,
    metavar="DURATION",
    help="Time in slots, such as 1h: equal machines with clocks of 0.2 to 1, each its own.",
)
@click.option(
    "--prices",
    "--price",
    type=click.Path(),
    metavar="FILE",
    help="Prices and CO2 intensity (CSV), with --slot; the problem starts at the first row.",
)
@click.option("--plan", "planned", is_flag=True, help="Plan it at once, as `downclock plan` does.")
@click.option(
    "--output", type=click.Path(), required=True, metavar="FILE", help="Write the problem (.json)."
)
@options.form
@options.quiet
@click.pass_obj
def command(
    session: Session,
    /,
    graph: str,
    cores: int,
    output: str,
    planned: bool,
    form: Form,
    **asked: Any,
) -> int:
    """Ask for a task graph on one chip, or on machines in slots, by one deadline.

    Reads the Standard Task Graph format (.stg) and WfFormat 1.5 workflows (.json). Clock 1 does
    one unit of the file's work (cycle or second) a second.

    On one chip all clocks are possible. With --slot there are five, tasks start and end on slots
    and may pause, and what is left of a task's last slot is waste; the prices become part of the
    problem. Without a deadline there is time for every list schedule at clock 1.
    """
    from downclock.errors import InvalidInput
    from downclock.problem.files.files import write_problem
    from downclock.report.describe import problem_page
    from downclock.workloads.stg import read_stg
    from downclock.workloads.wfformat import read_wfformat

    options.require_writable(output, (".json",))
    with session.working("reading and writing"):
        read = read_wfformat(graph) if graph.lower().endswith(".json") else read_stg(graph)
        if read.total_work <= 0.0:
            raise InvalidInput("has no work", source=graph)
        make = _on_chip if asked["slot_s"] is None else _in_slots
        problem = make(read, cores, **asked)
        write_problem(problem, output)
    session.wrote(output)
    if planned:
        from downclock.cli.plan import command as plan

        code: int = click.get_current_context().invoke(plan, files=(output,), form=form)
        return code
    session.show(problem_page(problem), form)
    return 0


def _on_chip(
    graph: TaskGraph, cores: int, *, slot_s: None, prices: str | None, per_core: bool, **asked: Any
) -> Problem:
    from downclock.power.points import ClockRange
    from downclock.workloads.chip import chip_problem

    if prices is not None:
        raise click.UsageError("--prices needs --slot: a chip without slots is planned by energy")
    deadline_s = asked.pop("deadline") or graph.total_work
    pace = graph.total_work / deadline_s
    return chip_problem(
        graph,
        cores,
        deadline_s,
        clocks=ClockRange(pace / SPREAD, pace * SPREAD),
        chip_wide=not per_core,
        **asked,
    )


def _in_slots(
    graph: TaskGraph, cores: int, *, slot_s: float, prices: str | None, **asked: Any
) -> Problem:
    from downclock.problem.files.read_prices import covering, read_prices
    from downclock.workloads.gerhards import Machines, slotted_workflow

    if asked["per_core"] or asked["c2"] or asked["c3"]:
        raise click.UsageError("--per-core, --c2 and --c3 are of chips: they do not go with --slot")
    machines = Machines(cores, watts=asked["c1"], alpha=asked["alpha"])
    problem = slotted_workflow(graph, machines, slot_s, deadline_s=asked["deadline"])
    if prices is None:
        return problem
    zones = problem.platform.zones
    read = read_prices(prices, epoch="first row", slot_s=slot_s, zones=zones)
    return replace(problem, prices=covering(read, zones, prices))
