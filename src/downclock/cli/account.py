"""``downclock account``: what a schedule costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from downclock.cli import options
from downclock.errors import InvalidInput, InvalidSchedule

if TYPE_CHECKING:
    from downclock.cli.session import Session
    from downclock.report.tables import Form
    from downclock.schedule.account.bill import Boundary

EPILOG = """\b
Example:
  downclock account cluster.toml jobs.csv schedule.json --boundary makespan --format csv
"""


@click.command("account", epilog=EPILOG)
@options.problem_files("CLUSTER JOBS SCHEDULE | PROBLEM SCHEDULE")
@options.boundary
@options.result_file
@options.form
@options.quiet
@click.pass_obj
def command(
    session: Session,
    files: tuple[str, ...],
    library: str | None,
    prices: str | None,
    boundary: Boundary,
    output: str | None,
    form: Form,
) -> None:
    """Bill a schedule: energy, money, CO2.

    The table has a row per part of the energy; CSV a row per server; JSON everything, each task
    included. The schedule is taken at its word; a note says so where it is not valid.
    """
    from downclock.report.describe import bill_page
    from downclock.schedule.account.account import account
    from downclock.schedule.verify.verify import verify

    with session.working("reading and billing"):
        problem, schedule = options.load_with_schedule(files, library, prices)
        try:
            bill = account(problem, schedule, boundary=boundary)
        except InvalidSchedule as error:
            raise InvalidInput(str(error), source=files[-1]) from None
        verdict = verify(problem, schedule, most=1)
    if not verdict.ok:
        session.note(f"note: {str(verdict).splitlines()[0]}; see downclock verify")
    session.show(bill_page(bill), form, output)
