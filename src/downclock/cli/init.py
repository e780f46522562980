"""``downclock init``: a cluster, jobs and prices to fill in."""

from __future__ import annotations

import click

from downclock.cli import options


@options.command("init")
@click.argument("folder", type=click.Path(), default=".", metavar="[FOLDER]")
def command(session: options.Session, /, folder: str) -> None:
    """Write a commented cluster, jobs and prices to start from.

    They plan as they are; change the numbers to yours. No file that is there is overwritten.

    Example:
      downclock init my-cluster
    """
    from downclock.report.tables import Page
    from downclock.workloads.starters import starter, write_starter

    files = starter("init")
    write_starter(folder, files)
    session.saved += files
    commands = [
        "downclock show cluster.toml jobs.csv",
        "downclock plan cluster.toml jobs.csv --report report.html",
        "downclock plan cluster.toml jobs.csv --objective cost",
    ]
    into = [] if folder == "." else [f"cd {folder}"]
    lines = (f"wrote {', '.join(files)}; next:", *(f"  {each}" for each in into + commands))
    session.show(Page(lines=lines, data={"wrote": list(files), "next": commands}))
