"""``downclock explain``: why a task runs where, when and at the clock it does."""

from __future__ import annotations

import click

from downclock.cli import options


@options.command("explain")
@options.problem_files("CLUSTER JOBS SCHEDULE TASK | PROBLEM SCHEDULE TASK", folders=True)
@options.file(
    "--plot", help="Also draw energy against run time (.png .svg .pdf).", suffixes=options.FIGURES
)
@options.result_file
@options.form
def command(session: options.Session, source: options.Source, plot: str | None) -> None:
    """Say why a task has its clock, its processor and its start.

    Names what binds it (arrival, predecessor, processor, server, deadline, clock limit), what
    other clocks would need, and what moving it would cost. TASK is the name of a task.

    Example:
      downclock explain cluster.toml jobs.csv schedule.json etl-001
    """
    from downclock.report.explain import explain

    *files, task = source.files
    if len(files) < 2 or (len(files) == 2 and files[0].endswith(".toml")):
        raise click.UsageError("give the files of the problem, a schedule, and the name of a task")
    with session.working("weighing the alternatives"):
        problem, schedule = source.of(*files).load_with_schedule()
        explanation = explain(problem, schedule, task)
    if plot is not None:
        from downclock.report.figures import frontier_figure

        session.save(frontier_figure(problem, explanation.task, schedule), plot)
    session.show(explanation.page())
