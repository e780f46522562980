"""``downclock papers``: the papers' tables and figures, ours beside the published numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from downclock.cli import options
from downclock.files import write_text_atomically

if TYPE_CHECKING:
    from downclock.papers.registry import Paper
    from downclock.papers.rows import Settings
    from downclock.papers.run import Done, Task

BACKGROUND = {
    "mei2021": "gpu-clusters",
    "mei2017": "gpu-clusters",
    "gerards": "task-graphs",
    "gerhards": "prices",
    "liu": "cpu-gpu-mapping",
}
"""Pages beside the generated one, in ``background/``; linked where they are there."""

FAILED = 3


@options.command("papers")
@click.argument(
    "names", nargs=-1, metavar="[PAPER...]", shell_complete=options.completing(lambda: BACKGROUND)
)
@click.option("--figure", "figures", multiple=True, metavar="N", help="Run a figure.")
@click.option("--table", "tables", multiple=True, metavar="N", help="Run a table.")
@click.option("--item", "items", multiple=True, metavar="NAME", help="Run anything by its name.")
@click.option("--all", "every", is_flag=True, help="Run everything of these papers, or of all.")
@click.option("--quick", is_flag=True, help="Leave out what takes more than seconds.")
@click.option("--sets", type=click.IntRange(1), default=10, show_default=True, help="Per mean.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The first.")
@options.whole("--jobs", 1, help="Processes. [default: cores]")
@options.dask
@options.output(
    "Write plot, CSV and side-by-side of every item there; finished ones are kept.",
    metavar="FOLDER",
    type=click.Path(),
)
@click.option("--fresh", is_flag=True, help="Run again what the folder holds already.")
@options.file("--page", help="Write all results (.md, and .csv).", suffixes=(".md",))
@options.form
def command(
    session: options.Session,
    names: tuple[str, ...],
    figures: tuple[str, ...],
    tables: tuple[str, ...],
    items: tuple[str, ...],
    every: bool,
    quick: bool,
    sets: int,
    seed: int,
    jobs: int | None,
    dask: str | None,
    output: str | None,
    fresh: bool,
    page: str | None,
) -> int:
    """Run the papers' experiments beside the published numbers.

    Lists the papers and what can be run of them, or runs what is asked for: each number gets a
    verdict. Data that do not come with Downclock are looked for in the folder DOWNCLOCK_DATA.

    Examples:
      downclock papers
      downclock papers mei2021 --figure 10 --output out/papers
      downclock papers --all --quick --page papers.md
      downclock papers --all --dask tcp://10.0.0.1:8786 --output out/papers
    """
    from downclock.papers.pages import listing, rows_page
    from downclock.papers.registry import chosen, paper, papers
    from downclock.papers.rows import Settings
    from downclock.papers.run import tasks_of

    if dask is not None and jobs is not None:
        raise click.UsageError("--dask is another engine than --jobs")
    sources = [paper(name) for name in names] or list(papers().values())
    asked = bool(figures or tables or items)
    if asked and (every or len(names) != 1):
        raise click.UsageError("--figure, --table and --item need one paper, and not --all")
    if not (asked or every or page is not None):
        session.show(listing(sources))
        return 0
    asked_for = {"figures": figures, "tables": tables, "names": items}
    tasks = [task for each in sources for task in tasks_of(each.name, chosen(each, **asked_for))]
    settings = Settings(sets, seed, quick)
    workers = {"jobs": jobs, "dask": dask}
    folder = None if output is None else options.folder(output)
    done = _run(session, tasks, settings, folder, fresh=fresh, **workers)
    if page is not None:
        _write_page(session, Path(page), done, sources, settings, **workers)
    session.show(rows_page(done))
    return FAILED if any(each.failed for each in done) else 0


def _run(
    session: options.Session, tasks: list[Task], settings: Settings, folder: Path | None, **how: Any
) -> list[Done]:
    """Run the tasks; say what is done, and remember what is saved."""
    from downclock.papers.pages import tally
    from downclock.papers.run import run_all

    ended = 0
    with session.working("running") as bar:

        def finished(done: Done) -> None:
            nonlocal ended
            ended += 1
            name = f"{done.task.paper} {done.task.item}"
            how = "kept" if done.kept else f"{done.seconds:.1f} s"
            session.note(f"{name}: {tally(done.rows)} ({how})")
            if folder is not None and not done.failed:
                session.saved.append(str(folder / done.task.paper / done.task.item))
            if bar is not None:
                bar("running", ended, len(tasks))

        if bar is not None:
            bar("running", 0, len(tasks))
        return run_all(tasks, settings, folder=folder, finished=finished, **how)


def _write_page(
    session: options.Session,
    path: Path,
    done: list[Done],
    sources: list[Paper],
    settings: Settings,
    **workers: Any,
) -> None:
    """Write the page, its rows, and those of one set of every item.

    The last are enough to see later that numbers have moved.
    """
    from downclock.papers.pages import page_markdown, rows_page
    from downclock.papers.rows import SAMPLE
    from downclock.papers.run import run_all
    from downclock.report.tables import rendered

    links = {name: f"background/{page}.md" for name, page in BACKGROUND.items()}
    links = {name: link for name, link in links.items() if (path.parent / link).is_file()}
    write_text_atomically(path, page_markdown(done, sources, settings, links))
    write_text_atomically(path.with_suffix(".csv"), rendered(rows_page(done), "csv"))
    session.wrote(path)
    sample = rows_page(run_all([each.task for each in done], SAMPLE, **workers))
    write_text_atomically(path.with_name(f"{path.stem}-sample.csv"), rendered(sample, "csv"))
