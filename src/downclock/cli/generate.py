"""``downclock generate``: the papers' task sets as problem files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from downclock.cli import options

if TYPE_CHECKING:
    from downclock.cli.session import Session
    from downclock.problem.problem import Problem
    from downclock.report.tables import Form

WORKLOADS = ("mei2021-offline", "mei2021-online", "mei2017-offline", "mei2017-online")

EPILOG = """\b
Workloads:
  mei2021-offline, mei2017-offline  all tasks are there at time 0
  mei2021-online, mei2017-online    a batch at time 0, then arrivals over a day

\b
Example:
  downclock generate mei2021-online --seed 7 --per-server 16 --output problem.json
"""


def _read_range(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> str | tuple[float, float] | None:
    """Read ``low,high`` or a name; the generator refuses names it does not know."""
    if text is None or "," not in text:
        return text
    try:
        low, high = (float(word) for word in text.split(","))
    except ValueError:
        low, high = 1.0, 0.0
    if not 0.0 <= low < high <= 1.0:
        rule = f"{text!r} must be two numbers with 0 <= low < high <= 1."
        raise click.BadParameter(rule, ctx, param)
    return low, high


@click.command("generate", epilog=EPILOG)
@click.argument("workload", type=click.Choice(WORKLOADS), metavar="WORKLOAD")
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="[default: 0]")
@click.option(
    "--utilisation",
    type=click.FloatRange(min=0.0, min_open=True),
    callback=options.finite,
    default=1.6,
    metavar="U",
    help="Of the task set; 1 is 2048 tasks. [default: 1.6]",
)
@click.option(
    "--task-utilisation",
    callback=_read_range,
    metavar="text|offline|online|LOW,HIGH",
    help="Run time / time to the deadline. [default: as published]",
)
@click.option(
    "--days",
    type=click.IntRange(min=1),
    metavar="N",
    help="Length of an online set. [default: 1]",
)
@click.option(
    "--pairs",
    type=click.IntRange(min=1),
    default=2048,
    metavar="N",
    help="Processors in all. [default: 2048]",
)
@click.option(
    "--per-server",
    type=click.IntRange(min=1),
    default=16,
    metavar="N",
    help="Pairs in a server (the papers' l). [default: 16]",
)
@click.option(
    "--output",
    type=click.Path(),
    required=True,
    metavar="FILE",
    help="Write the problem (.json).",
)
@options.form
@options.quiet
@click.pass_obj
def command(session: Session, /, workload: str, output: str, form: Form, **wishes: Any) -> None:
    """Draw a task set of the papers, with its cluster."""
    from downclock.problem.files.files import write_problem
    from downclock.report.describe import problem_page

    options.require_writable(output, (".json",))
    with session.working("drawing and writing"):
        problem = _drawn(workload, **wishes)
        write_problem(problem, output)
    session.wrote(output)
    session.show(problem_page(problem), form)


def _drawn(
    workload: str,
    seed: int,
    utilisation: float,
    task_utilisation: str | tuple[float, float] | None,
    days: int | None,
    pairs: int,
    per_server: int,
) -> Problem:
    from downclock.workloads import mei

    paper, _, when = workload.partition("-")
    if pairs % per_server:
        rule = f"--pairs {pairs} must be a multiple of --per-server {per_server}: servers are equal"
        raise click.UsageError(rule)
    if when == "offline" and days is not None:
        raise click.UsageError("--days is for online sets: all tasks of this one are there at 0")
    base = mei.MEI2017 if paper == "mei2017" else mei.Cluster()
    cluster = replace(base, pairs=pairs, per_server=per_server)
    given: Any = {} if task_utilisation is None else {"task_utilisation": task_utilisation}
    if when == "offline":
        return mei.offline(seed, utilisation=utilisation, cluster=cluster, **given)
    return mei.online(seed, utilisation=utilisation, days=days or 1, cluster=cluster, **given)
