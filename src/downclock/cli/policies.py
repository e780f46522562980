"""``downclock policies``: the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from downclock.cli import options

if TYPE_CHECKING:
    from downclock.cli.session import Session
    from downclock.report.tables import Form

EPILOG = """\b
Examples:
  downclock policies
  downclock policies edl
  downclock policies --format json
"""


@click.command("policies", epilog=EPILOG)
@click.argument("name", required=False)
@options.result_file
@options.form
@options.quiet
@click.pass_obj
def command(session: Session, name: str | None, output: str | None, form: Form) -> None:
    """List the policies, or say what the parameters of one mean."""
    from downclock.planners.catalog import DEFAULT, load_registered
    from downclock.report.catalogue import policies_page, policy_page

    load_registered()
    session.show(policies_page(DEFAULT) if name is None else policy_page(name), form, output)
