"""``downclock compile``: compile the hot loops now, so that no first plan waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from downclock.cli import options

if TYPE_CHECKING:
    from downclock.cli.session import Session


@click.command("compile")
@click.argument("policies", nargs=-1, metavar="[POLICY]...")
@options.quiet
@click.pass_obj
def command(session: Session, /, policies: tuple[str, ...]) -> None:
    """Compile what the policies need (default: late, edl and bin) and keep it on disk.

    Without this the first plan does it, which takes about half a minute. Does nothing without
    numba.
    """
    from downclock.engine.engine import plan
    from downclock.policies.catalog import policy
    from downclock.report.bounds import Bounds
    from downclock.schedule.account import account
    from downclock.schedule.verify import require_valid
    from downclock.workloads import mei

    cluster = mei.Cluster(pairs=8, per_server=4)
    sets = [
        make(1, utilisation=0.01, cluster=cluster, **more)
        for make, more in ((mei.offline, {}), (mei.online, {"initial_utilisation": 0.002}))
    ]
    for spec in policies or ("late", "edl", "bin"):
        with session.working(f"compiling what {spec} needs"):
            for problem in sets:
                chosen = policy(spec)
                if chosen.objection(problem) is None:
                    schedule = plan(problem, chosen)
                    require_valid(problem, schedule)
                    account(problem, schedule)
                    Bounds.of(problem)
