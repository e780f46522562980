"""``downclock slurm``: plans that a Slurm carries out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from downclock.cli import options

if TYPE_CHECKING:
    from downclock.adapters.slurm.planner import Planner, Step

EPILOG = """\b
Example:
  downclock slurm plan site.toml
  downclock slurm watch site.toml
"""


@click.group("slurm", epilog=EPILOG)
def command() -> None:
    """Let a Slurm carry plans out: clocks, nodes and starts of its waiting jobs.

    SITE is a TOML file that names the cluster file, which jobs are planned, and how; the guide
    docs/guides/slurm.md has one to start from. Jobs that opted out (--comment=downclock=off) or
    have no deadline are never touched; a job that cannot be planned is left to Slurm.
    """


def _planner(path: str, *, dry: bool) -> Planner:
    from downclock.adapters.slurm.planner import Planner
    from downclock.adapters.slurm.site import read_site

    return Planner(read_site(path), dry=dry)


def _sub(name: str) -> Callable[[Callable[..., Any]], None]:
    """Add a subcommand that is given the session and the site."""

    def add(function: Callable[..., Any]) -> None:
        site = click.argument("site", metavar="SITE", type=click.Path())
        command.add_command(options.command(name)(site(function)))

    return add


@_sub("plan")
@options.form
def plan(session: options.Session, site: str) -> None:
    """Show what would happen, changing nothing.

    Prints every job with its node, clock and start, and the exact commands.
    """
    _step(session, site, dry=True)


@_sub("apply")
@options.form
def apply(session: options.Session, site: str) -> int:
    """Plan once and carry it out. Exit code 1: Slurm refused some of it."""
    return 1 if _step(session, site, dry=False).trouble else 0


def _step(session: options.Session, site: str, *, dry: bool) -> Step:
    """Plan once and show it."""
    from downclock.report.slurm import plan_page

    with session.working("asking Slurm and planning"), _planner(site, dry=dry) as planner:
        step = planner.step()
        page = plan_page(planner, step, dry=dry)
    session.show(page)
    return step


@_sub("watch")
@click.option("--for", "until", type=float, metavar="SECONDS", help="Stop after so long.")
def watch(session: options.Session, site: str, until: float | None) -> None:
    """Plan and carry out, again and again, until it is stopped.

    It may be killed at any time: the log has all that was decided, and the next one goes on.
    """
    from downclock.report.slurm import step_lines

    with _planner(site, dry=False) as planner:

        def heard(step: Step) -> None:
            for line in (*planner.world.notes, *step_lines(step.todo, step.trouble)):
                session.note(line)
            planner.world.notes.clear()

        session.note(f"watching Slurm for {site}; Ctrl-C stops it, and jobs go on")
        with suppress(KeyboardInterrupt):
            planner.watch(heard, until_s=float("inf") if until is None else until)


@_sub("status")
@options.form
def status(session: options.Session, site: str) -> None:
    """Show where every job stands and what energy was measured."""
    from downclock.adapters.slurm.spool import read_spool
    from downclock.report.slurm import status_page

    with session.working("asking Slurm"), _planner(site, dry=True) as planner:
        page = status_page(planner, planner.step(), read_spool(planner.site.spool))
    session.show(page)


@_sub("learn")
@options.output(
    "Write the library (.json), and its errors beside it (.csv).",
    required=True,
    suffixes=(".json",),
)
@options.form
def learn(session: options.Session, site: str, output: str) -> None:
    """Refine applications by jobs that ended.

    Time and energy that agents measured become profiles, and what estimates missed widens them:
    name the library in the site file (learned = "...") and the next plan uses both.
    """
    from downclock.adapters.slurm.learn import learn, write_learnt
    from downclock.adapters.slurm.log import Log
    from downclock.adapters.slurm.site import read_site
    from downclock.adapters.slurm.spool import read_spool
    from downclock.report.slurm import learnt_page

    told = read_site(site)
    with session.working("learning"):
        library, found = learn(told, Log(told.log, dry=True), read_spool(told.spool))
    write_learnt(library, found, output)
    session.wrote(output)
    session.show(learnt_page(found))


def _words_for_node(text: str) -> list[str]:
    """Read a command for each ``{node}``; one without would reset no other machine's clocks."""
    import shlex

    words = shlex.split(text)
    if not any("{node}" in word for word in words):
        raise ValueError
    return words


@_sub("uninstall")
@click.option("--dry-run", is_flag=True, help="Only show the commands.")
@click.option(
    "--on-node",
    callback=options.reading(_words_for_node, "is not a command with {node} in it"),
    metavar="COMMAND",
    help="Reset clocks at once: run this for each {node}, such as"
    " 'ssh {node} downclock agent recover --all'.",
)
def uninstall(session: options.Session, site: str, dry_run: bool, on_node: list[str] | None) -> int:
    """Put waiting jobs back and delete the log.

    They are as they were submitted, and held ones are let go. Jobs that run keep their clocks
    until their Epilog resets them, or until you have them reset with --on-node.
    """
    from downclock.report.slurm import step_lines, uninstalled_page

    planner = _planner(site, dry=dry_run)
    step = planner.uninstall(on_node or ())
    session.show(uninstalled_page(step, dry=dry_run))
    for line in step_lines((), step.trouble):
        session.note(line)
    return 1 if step.trouble else 0


@command.add_command
@options.command("snippet")
@click.option(
    "--once", is_flag=True, help="The TaskProlog and TaskEpilog that let no job run twice."
)
def snippet(session: options.Session, once: bool) -> None:
    """Print a job_submit.lua that tags and delays jobs."""
    from importlib import resources

    name = "once.sh" if once else "job_submit.lua"
    file = resources.files("downclock.adapters.slurm").joinpath(name)
    session.show(file.read_text("utf-8"))
