"""``downclock verify``: is this schedule an answer to this problem?"""

from __future__ import annotations

import click

from downclock.cli import options


@options.command("verify")
@options.problem_files("CLUSTER JOBS SCHEDULE | PROBLEM SCHEDULE")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Violations listed per rule; the rest is counted.",
)
@options.result_file
@options.form
def command(session: options.Session, source: options.Source, most: int) -> int:
    """Judge a schedule: list every rule it breaks.

    The judge knows nothing of how schedules are made. Exit code 0: the schedule is valid; 1: it
    breaks a rule.

    Examples:
      downclock verify cluster.toml jobs.csv schedule.json
      downclock verify problem.json schedule.parquet --format json
    """
    from downclock.report.describe import verdict_page
    from downclock.schedule.verify.verify import verify

    with session.working("reading and checking"):
        problem, schedule = source.load_with_schedule()
        verdict = verify(problem, schedule, most=most)
    session.show(verdict_page(problem, verdict))
    return 0 if verdict.ok else 1
