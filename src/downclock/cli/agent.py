"""``downclock agent``: what Slurm's Prolog and Epilog call."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from downclock.cli import options

if TYPE_CHECKING:
    from downclock.adapters.devices.agent import Site

F = TypeVar("F", bound=Callable[..., Any])

EPILOG = """\b
Example (Slurm's Prolog, as root):
  timeout 2 downclock agent prolog --scontrol /usr/bin/scontrol || true
"""

RECOVER = """\b
Exit code 1: something could not be reset.

\b
Example (at boot, as root):
  downclock agent recover
"""


@click.group("agent", epilog=EPILOG)
def command() -> None:
    """Lock, measure and reset the GPUs of a Slurm job.

    A job planned by Downclock has its clocks in its comment. `prolog` locks them and reads the
    GPUs' meters, `epilog` resets them and writes the job's energy to the spool, `recover` resets
    what an agent left behind that did not live to do it. Failing to set clocks never fails a job.
    """


def _site(function: F) -> F:
    """Add the options on where things are."""
    for name, value, text in (
        ("scontrol", "/usr/bin/scontrol", "Slurm's scontrol (there is no PATH in a Prolog)."),
        ("spool", "STATE/spool", "Where the energy of ended jobs is written."),
        ("state", "/var/lib/downclock", "Where the agent keeps what it has set."),
    ):
        function = click.option(
            f"--{name}",
            envvar=f"DOWNCLOCK_{name.upper()}",
            default=value,
            show_default=True,
            metavar="PATH",
            help=f"{text} Or DOWNCLOCK_{name.upper()}.",
        )(function)
    return function


def _where(state: str, spool: str, scontrol: str) -> Site:
    from downclock.adapters.devices.agent import Site

    spool = os.path.join(state, "spool") if spool == "STATE/spool" else spool
    return Site(os.path.abspath(state), os.path.abspath(spool), scontrol)


def _do(verb: str, session: options.Session, site: Site) -> None:
    """Never fail: Slurm takes a node out of service whose Prolog fails."""
    from downclock.adapters.devices.agent import call
    from downclock.errors import DownclockError

    try:
        said = call(verb, site, os.environ)
    except (DownclockError, OSError) as error:
        said = f"downclock agent: {error}\n"
    if not session.quiet:
        click.echo(said, err=True, nl=False)


@options.command("prolog", EPILOG)
@_site
def prolog(session: options.Session, **where: str) -> None:
    """Lock the GPUs of a job that starts.

    Their energy meters are read too, also where there is nothing to lock.
    """
    _do("prolog", session, _where(**where))


@options.command("epilog", EPILOG.replace("Prolog", "Epilog").replace("prolog", "epilog"))
@_site
def epilog(session: options.Session, **where: str) -> None:
    """Reset the GPUs of a job that ended.

    Its energy goes to the spool.
    """
    _do("epilog", session, _where(**where))


@options.command("recover", RECOVER)
@click.option("--all", "everything", is_flag=True, help="Also GPUs of jobs that still run.")
@click.option(
    "--slurmd",
    type=int,
    metavar="PID",
    help="Also requeue jobs that the slurmd before this one was launching when it died.",
)
@_site
def recover(session: options.Session, everything: bool, slurmd: int | None, **where: str) -> int:
    """Reset what agents left behind.

    For after a crash, at boot, and before Downclock is removed. Slurm is asked whether the jobs
    still run; where it does not answer, clocks are reset.
    """
    from downclock.adapters.devices.agent import after_start
    from downclock.adapters.devices.agent import recover as reset_left_behind

    if slurmd is not None:
        after_start(_where(**where), slurmd, session.note)
    left = reset_left_behind(_where(**where), session.note, everything=everything)
    if not session.quiet and not left:
        click.echo("nothing is left that an agent should have reset")
    return 1 if left else 0


for each in (prolog, epilog, recover):
    command.add_command(each)
