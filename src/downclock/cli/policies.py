"""``downclock policies``: the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from downclock.cli import options

if TYPE_CHECKING:
    from downclock.cli.session import Session
    from downclock.report.tables import Form

EPILOG = """\b
Example:
  downclock policies --format json
"""


@click.command("policies", epilog=EPILOG)
@options.result_file
@options.form
@click.pass_obj
def command(session: Session, output: str | None, form: Form) -> None:
    """List the policies and their parameters."""
    from downclock.policies.catalog import DEFAULT
    from downclock.report.describe import policies_page

    session.show(policies_page(DEFAULT), form, output)
