"""Running items on several cores, and keeping what is finished as files.

A finished item is four files in ``FOLDER/PAPER``: ``ITEM.csv``, ``ITEM.md`` (ours beside the
published values), ``ITEM.svg`` and, written last, ``ITEM.json``, which the next run reads instead
of running the item again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from downclock.errors import InvalidInput
from downclock.files import write_text_atomically
from downclock.papers.registry import paper
from downclock.papers.rows import Item, Row, Settings, not_run
from downclock.study.executor import completed, workers

FORMAT = "downclock-paper-item/2"


@dataclass(frozen=True, slots=True)
class Task:
    """One item to run: picklable, so that another process can look it up."""

    paper: str
    item: str
    title: str


@dataclass(frozen=True, slots=True)
class Done:
    """An item that was run.

    Attributes:
        task: which.
        rows: its numbers; one row that was not run where it failed.
        seconds: how long it took.
        kept: it was read from files of an earlier run.
        failed: it stopped with an error, which the row names.
    """

    task: Task
    rows: list[Row]
    seconds: float
    kept: bool = False
    failed: bool = False

    @property
    def title(self) -> str:
        """Paper, item, and what that is."""
        return f"{self.task.paper} {self.task.item}: {self.task.title}"


Finished: TypeAlias = Callable[[Done], None]


def tasks_of(name: str, items: Sequence[Item]) -> list[Task]:
    """Return items of a paper as tasks."""
    return [Task(name, item.name, item.title) for item in items]


def run_all(
    tasks: Sequence[Task],
    settings: Settings,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    folder: Path | None = None,
    fresh: bool = False,
    finished: Finished = lambda done: None,
) -> list[Done]:
    """Run every task and return them in the order given.

    Args:
        tasks: what to run.
        settings: how much.
        jobs: processes; all cores by default. One runs here, without others.
        dask: address of a Dask scheduler whose workers run them instead.
        folder: where to keep finished items; those of an earlier run with the same settings are
            read instead of run.
        fresh: run them again.
        finished: called when an item is done and its files are written.
    """
    found: dict[Task, Done] = {}
    for task in tasks:
        kept = None if folder is None or fresh else read_kept(folder, task, settings)
        if kept is not None:
            found[task] = kept
            finished(kept)
    left = [task for task in tasks if task not in found]
    with workers(jobs, len(left), dask) as executor:
        for task, done in completed(partial(run_one, settings=settings), left, executor):
            if folder is not None and not done.failed:
                write_files(folder, done, settings)
            found[task] = done
            finished(done)
    return [found[task] for task in tasks]


def run_one(task: Task, settings: Settings) -> Done:
    """Run one item; an error becomes a row that says so."""
    start = time.perf_counter()
    try:
        rows = paper(task.paper).items[task.item].run(settings)
    except Exception as error:
        words = " ".join(f"stopped with {type(error).__name__}: {error}".split())
        rows = [not_run((task.paper, task.item), "all", None, "", words[:300])]
        return Done(task, rows, time.perf_counter() - start, failed=True)
    return Done(task, rows, time.perf_counter() - start)


def read_kept(folder: Path, task: Task, settings: Settings) -> Done | None:
    """Return an item that an earlier run finished with the same settings and version, or None."""
    path = _path(folder, task, "json")
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT or data["made"] != _made(settings):
            return None
        rows = [Row(**row) for row in data["rows"]]
        return Done(task, rows, float(data["seconds"]), kept=True)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_files(folder: Path, done: Done, settings: Settings) -> None:
    """Write an item's files, each as a whole; the one that says it is finished comes last."""
    from downclock.papers.figure import rows_figure
    from downclock.papers.pages import rows_page, side_by_side
    from downclock.report.figures import save_figure
    from downclock.report.tables import rendered

    try:
        (folder / done.task.paper).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        rule = f"cannot be made: {error.strerror}"
        raise InvalidInput(rule, source=folder / done.task.paper) from None
    write_text_atomically(_path(folder, done.task, "csv"), rendered(rows_page([done]), "csv"))
    write_text_atomically(_path(folder, done.task, "md"), side_by_side(done))
    figure = rows_figure(done)
    if figure is not None:
        save_figure(figure, _path(folder, done.task, "svg"))
    data = {
        "format": FORMAT,
        "made": _made(settings),
        "seconds": round(done.seconds, 3),
        "rows": [asdict(row) for row in done.rows],
    }
    text = json.dumps(data, indent=1, ensure_ascii=False)
    write_text_atomically(_path(folder, done.task, "json"), text + "\n")


def _path(folder: Path, task: Task, suffix: str) -> Path:
    return folder / task.paper / f"{task.item}.{suffix}"


def _made(settings: Settings) -> dict[str, Any]:
    """What decides the numbers: another version or other settings run again."""
    data = bool(os.environ.get("DOWNCLOCK_DATA"))
    return {"downclock": version("downclock"), "data": data, **asdict(settings)}
