"""A sweep from its file to its table, on any executor, going on where an earlier one ended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from downclock.errors import InvalidInput
from downclock.planners.portfolio import Progress
from downclock.study.executor import Workers, completed
from downclock.study.sweep.grid import Grid, Run
from downclock.study.sweep.run import FAILED, REFUSED, run_one
from downclock.study.sweep.store import Log, write_table
from downclock.study.sweep.summary import SweepSummary, summarised

LOG, TABLE = "runs.jsonl", "runs.parquet"


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep that is done.

    Attributes:
        grid: what was asked.
        rows: one a run, in the order of the grid.
        summary: what came out.
        kept: how many were done by an earlier sweep of the same folder.
    """

    grid: Grid
    rows: tuple[dict[str, Any], ...]
    summary: SweepSummary
    kept: int

    def without_figures(self) -> dict[tuple[str, str], list[str]]:
        """Why runs were refused or failed, by (status, spec)."""
        why: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            if row["status"] in (REFUSED, FAILED):
                why.setdefault((row["status"], row["spec"]), []).append(row["reason"])
        return why


def sweep(
    grid: Grid,
    folder: Path,
    workers: Callable[[int], Workers],
    *,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Do every run of a grid that the folder does not hold yet, and write the table there.

    Args:
        grid: what is asked.
        folder: where the log and the table are; made where it is not there.
        workers: called with the number of runs that are left; gives who does them.
        fresh: do all runs again.
        progress: told how many of those left are done.

    Raises:
        InvalidInput: a file cannot be read, or no run at all could be done.
        DownclockError: workers are gone; what is done is kept.
    """
    made_by = version("downclock")
    keys = {run: run.key(made_by) for run in grid.runs}
    with closing(Log(folder / LOG, fresh=fresh)) as log:
        done = {key for key, row in log.rows.items() if row["status"] != FAILED}
        left = [run for run in grid.runs if keys[run] not in done]
        _work_off(left, keys, log, workers, progress)
        rows = tuple(log.rows[keys[run]] for run in grid.runs)
    refused = [row for row in rows if row["status"] == REFUSED]
    if len(refused) == len(rows):
        raise InvalidInput(f"no run could be done: {rows[0]['reason']}", item=grid.name)
    write_table(rows, folder / TABLE)
    return Sweep(grid, rows, summarised(grid, rows), len(rows) - len(left))


def _work_off(
    left: list[Run],
    keys: dict[Run, str],
    log: Log,
    workers: Callable[[int], Workers],
    progress: Progress | None,
) -> None:
    """Do the runs, those of one problem beside each other, so that a worker makes it once."""
    if progress is not None:
        progress("running", 0, len(left))
    if not left:
        return
    order: dict[Any, int] = {}
    left.sort(key=lambda run: (order.setdefault(run.source, len(order)), run.seed))
    with workers(len(left)) as executor:
        for done, (run, row) in enumerate(completed(run_one, left, executor), 1):
            log.add(keys[run], row)
            if progress is not None:
                progress("running", done, len(left))
