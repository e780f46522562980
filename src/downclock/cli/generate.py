"""``downclock generate``: the papers' task sets as problem files."""

from __future__ import annotations

from typing import Any

import click

from downclock.cli import options
from downclock.errors import InvalidInput

WORKLOADS = ("mei2021-offline", "mei2021-online", "mei2017-offline", "mei2017-online")


def _range(text: str) -> str | tuple[float, float]:
    """Read ``low,high`` or a name; the generator refuses names it does not know."""
    if "," not in text:
        return text
    low, high = (float(word) for word in text.split(","))
    if not 0.0 <= low < high <= 1.0:
        raise ValueError
    return low, high


@options.command("generate")
@click.argument("workload", type=click.Choice(WORKLOADS), metavar="WORKLOAD")
@options.whole("--seed", 0, default=0, help="[default: 0]")
@options.number(
    "--utilisation", 0.0, above=True, default=1.6, metavar="U",
    help="Of the task set; 1 is 2048 tasks. [default: 1.6]",
)  # fmt: skip
@click.option(
    "--task-utilisation",
    callback=options.reading(_range, "must be two numbers with 0 <= low < high <= 1"),
    metavar="text|offline|online|LOW,HIGH",
    help="Run time / time to the deadline. [default: as published]",
)
@options.whole("--days", 1, help="Length of an online set. [default: 1]")
@options.whole("--pairs", 1, default=2048, help="Processors in all. [default: 2048]")
@options.whole(
    "--per-server", 1, default=16, help="Pairs in a server (the papers' l). [default: 16]"
)
@options.output("Write the problem (.json).", required=True, suffixes=(".json",))
@options.form
def command(session: options.Session, /, workload: str, output: str, **wishes: Any) -> None:
    """Draw a task set of the papers, with its cluster.

    Workloads:
      mei2021-offline, mei2017-offline  all tasks are there at time 0
      mei2021-online, mei2017-online    a batch at time 0, then arrivals over a day

    Example:
      downclock generate mei2021-online --seed 7 --per-server 16 --output problem.json
    """
    from downclock.problem.files.write_problem import write_problem
    from downclock.report.describe import problem_page
    from downclock.workloads.generate import generate

    with session.working("drawing and writing"):
        try:
            problem = generate(workload, **wishes)
        except InvalidInput as error:  # options that do not go together
            raise click.UsageError(str(error)) from None
        write_problem(problem, output)
    session.wrote(output)
    session.show(problem_page(problem))
