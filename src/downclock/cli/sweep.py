"""``downclock sweep``: many runs from one file, on this machine, on Dask or on Slurm."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from downclock.cli import options
from downclock.errors import MissingExtra

if TYPE_CHECKING:
    from downclock.study.executor import Workers
    from downclock.study.sweep.grid import Grid

FIGURE, SUMMARY = "sweep.svg", "summary.csv"
FAILED = 3


@options.command("sweep")
@click.argument("file", type=click.Path(), metavar="FILE.toml")
@options.output(
    "Where results are, and are found again. [default: the file's name without .toml]",
    metavar="FOLDER",
    type=click.Path(),
)
@options.whole("--jobs", 1, help="Processes, or Slurm jobs.")
@options.dask
@click.option("--slurm", is_flag=True, help="Run on Slurm jobs; the file's [slurm] describes them.")
@click.option("--fresh", is_flag=True, help="Run again what the folder holds already.")
@options.form
def command(
    session: options.Session,
    file: str,
    output: str | None,
    jobs: int | None,
    dask: str | None,
    slurm: bool,
    fresh: bool,
) -> int:
    """Run problems × policies × seeds × parameters, and compare.

    The file lists them; a list in it is an axis of the grid. Results are on disk as they come: a
    sweep that was stopped, or whose file has grown, goes on with what is missing. The folder then
    holds runs.parquet (a row a run, with version, seed, machine and seconds), summary.csv (means
    and paired differences with 95 % intervals) and sweep.svg.

    Examples:
      downclock sweep slack.toml
      downclock sweep slack.toml --dask tcp://10.0.0.1:8786 --output /shared/slack
      downclock sweep slack.toml --slurm --jobs 40
    """
    from downclock.report.sweep import sweep_figure, sweep_page
    from downclock.report.tables import rendered
    from downclock.study.sweep.grid import read_grid
    from downclock.study.sweep.sweep import LOG, TABLE, sweep

    if dask is not None and (slurm or jobs is not None):
        raise click.UsageError("--dask is another engine than --slurm and --jobs")
    folder = options.folder(Path(file).with_suffix("") if output is None else output)
    grid = read_grid(file)
    session.saved.append(str(folder / LOG))
    with session.working("running") as bar:
        engine = partial(_workers, grid, folder, jobs, dask, slurm)
        done = sweep(grid, folder, engine, fresh=fresh, progress=bar)
    session.wrote(folder / TABLE)
    page = sweep_page(done)
    session.write(rendered(page, "csv"), folder / SUMMARY)
    try:
        session.save(sweep_figure(done), folder / FIGURE)
    except MissingExtra as error:
        session.note(f"no figure: {error}")
    session.show(page)
    return FAILED if any(row["status"] == "failed" for row in done.rows) else 0


def _workers(
    grid: Grid, folder: Path, jobs: int | None, dask: str | None, slurm: bool, left: int
) -> Workers:
    """Who does the runs that are left."""
    from downclock.study import executor

    if slurm:
        return executor.slurm(min(jobs or 1, left), grid.slurm, folder)
    return executor.workers(jobs, left, dask)
