"""``downclock policies``: the catalogue."""

from __future__ import annotations

import click

from downclock.cli import options


@options.command("policies")
@click.argument("name", required=False)
@options.result_file
@options.form
def command(session: options.Session, name: str | None) -> None:
    """List the policies, or say what the parameters of one mean.

    Examples:
      downclock policies
      downclock policies edl
      downclock policies --format json
    """
    from downclock.planners.catalog import load_registered
    from downclock.report.catalogue import policies_page, policy_page

    load_registered()
    session.show(policies_page() if name is None else policy_page(name))
