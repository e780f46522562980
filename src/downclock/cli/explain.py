"""``downclock explain``: why a task runs where, when and at the clock it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from downclock.cli import options

if TYPE_CHECKING:
    from downclock.cli.session import Session
    from downclock.report.tables import Form

EPILOG = """\b
Example:
  downclock explain cluster.toml jobs.csv schedule.json etl-001
"""


@click.command("explain", epilog=EPILOG)
@options.problem_files("CLUSTER JOBS SCHEDULE TASK | PROBLEM SCHEDULE TASK", folders=True)
@click.option(
    "--plot",
    type=click.Path(),
    metavar="FILE",
    help="Also draw energy against run time (.png .svg .pdf).",
)
@options.result_file
@options.form
@options.quiet
@click.pass_obj
def command(
    session: Session,
    files: tuple[str, ...],
    library: str | None,
    prices: str | None,
    plot: str | None,
    output: str | None,
    form: Form,
) -> None:
    """Say why a task has its clock, its processor and its start.

    Names what binds it (arrival, predecessor, processor, server, deadline, clock limit), what
    other clocks would need, and what moving it would cost. TASK is the name of a task.
    """
    from downclock.report.explain import explain

    if len(files) < 3:
        raise click.UsageError("give the files of the problem, a schedule, and the name of a task")
    options.require_writable(plot, (".png", ".svg", ".pdf"))
    with session.working("weighing the alternatives"):
        problem, schedule = options.load_with_schedule(files[:-1], library, prices)
        explanation = explain(problem, schedule, files[-1])
    if plot is not None:
        from downclock.report.figures import frontier_figure, save_figure

        save_figure(frontier_figure(problem, explanation.task, schedule), plot)
        session.wrote(plot)
    session.show(explanation.page(), form, output)
