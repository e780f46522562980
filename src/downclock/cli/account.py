"""``downclock account``: what a schedule costs."""

from __future__ import annotations

from pathlib import Path

import click

from downclock.cli import options
from downclock.errors import InvalidInput, InvalidSchedule


@options.command("account")
@options.problem_files("CLUSTER JOBS SCHEDULE | PROBLEM SCHEDULE")
@options.boundary
@click.option(
    "--measured",
    type=click.Path(exists=True, file_okay=False),
    metavar="SPOOL",
    help="Beside what agents measured of jobs with the tasks' names.",
)
@options.result_file
@options.form
def command(
    session: options.Session,
    source: options.Source,
    boundary: options.Boundary,
    measured: str | None,
) -> None:
    """Bill a schedule: energy, money, CO2.

    The table has a row per part of the energy; CSV a row per server; JSON everything, each task
    included. The schedule is taken at its word; a note says so where it is not valid.

    Example:
      downclock account cluster.toml jobs.csv schedule.json --boundary makespan --format csv
    """
    from downclock.report.describe import bill_page
    from downclock.schedule.account.account import account
    from downclock.schedule.verify.verify import verify

    with session.working("reading and billing"):
        problem, schedule = source.load_with_schedule()
        try:
            bill = account(problem, schedule, boundary=boundary)
        except InvalidSchedule as error:
            raise InvalidInput(str(error), source=source.files[-1]) from None
        verdict = verify(problem, schedule, most=1)
    if not verdict.ok:
        session.note(f"note: {str(verdict).splitlines()[0]}; see downclock verify")
    page = bill_page(bill)
    if measured is not None:
        from downclock.adapters.slurm.spool import read_spool
        from downclock.report.slurm import beside_measured

        page = beside_measured(page, bill, read_spool(Path(measured)))
    session.show(page)
