"""Read a whole problem from the one file that `write_problem` writes."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from downclock.document import Document, Fields, read_json
from downclock.errors import InvalidInput, suggestion
from downclock.files import parsed_json
from downclock.power.library_file import KEYS, library_of
from downclock.problem.files.read_cluster import PLATFORM_KEYS, platform_of
from downclock.problem.files.read_tasks import Context, TaskFile, read_tasks, tasks_of_rows
from downclock.problem.files.write_problem import FORMAT, SUFFIXES
from downclock.problem.graph import Edges
from downclock.problem.price import CURVES, Curve, Prices, ZonePrices
from downclock.problem.problem import Problem, refuse_unresolved
from downclock.tabular import parquet_head

_KEYS = (
    *("format", "name", "assumptions", "epoch", "platform", "prices", "library", "edges", "tasks"),
)

_OF_TRACES = (".csv", ".txt", ".swf", ".gz")


def read_problem(path: str | Path) -> Problem:
    """Read a problem file.

    Raises:
        InvalidInput: with file, line, object, field, value and rule.
    """
    suffix = Path(path).suffix.lower()
    packed = suffix in SUFFIXES[1:]
    if suffix in _OF_TRACES:
        rule = "is no problem (.json, .parquet): `downclock convert` makes one of a trace"
        raise InvalidInput(rule, source=path)
    document = _head(path) if packed else read_json(path)
    top = document.fields(None, _KEYS)
    top.choice("format", (FORMAT,))
    for key in ("platform", "library", *(() if packed else ("tasks",))):
        top.raw(key)
    library = library_of(top.table("library", None, KEYS))
    context = Context(library)
    file = read_tasks(path, library) if packed else tasks_of_rows(document, ("tasks",), context)
    try:
        platform = platform_of(top.table("platform", "platform", PLATFORM_KEYS), library)
        edges, prices, epoch = _edges(top, file), _prices(top), _epoch(top)
        known = file.tasks, library, platform, edges, prices, epoch
        problem = Problem(*known, top.text("name", Path(path).stem), _assumptions(top))
        refuse_unresolved(problem)
    except InvalidInput as error:
        raise file.blame(error) from None
    return problem


def _head(path: str | Path) -> Document:
    """Return what a Parquet file holds beside its tasks."""
    head = parquet_head(path)
    if head is None:
        rule = "holds tasks and no cluster: give the cluster before it"
        raise InvalidInput(rule, source=path)
    return Document(path, parsed_json(head, path))


def _epoch(top: Fields) -> datetime | None:
    text = top.text("epoch", None)
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        raise top.complaint("must be an ISO 8601 date and time", "epoch") from None


def _assumptions(top: Fields) -> tuple[str, ...]:
    lines = top.raw("assumptions", [])
    if not (isinstance(lines, list) and all(isinstance(line, str) for line in lines)):
        raise top.complaint("must be a list of sentences", "assumptions")
    return tuple(lines)


def _edges(top: Fields, file: TaskFile) -> Edges:
    """Read edges as pairs of names; a file may give them as ``after`` of its tasks instead."""
    pairs = top.raw("edges", [])
    if not isinstance(pairs, list):
        raise top.complaint("must be a list of [before, after]", "edges")
    if not pairs:
        return file.edges
    if len(file.edges):
        raise top.complaint("cannot be given together with 'after' of tasks", "edges", ...)
    place = {name: row for row, name in enumerate(file.tasks.name)}
    rows = [_pair(top.document, k, pair, place) for k, pair in enumerate(pairs)]
    before, after = np.array(rows, dtype=np.int64).T
    return Edges(before, after)


def _pair(document: Document, k: int, pair: Any, place: dict[str, int]) -> list[int]:
    where, item = ("edges", k), f"edge {k + 1}"
    if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, str) for x in pair)):
        raise document.complaint("must be [before, after]", where, item=item, value=pair)
    for name in pair:
        if name not in place:
            rule = f"names no task{suggestion(name, list(place))}"
            raise document.complaint(rule, where, item=item, value=name)
    return [place[name] for name in pair]


def _prices(top: Fields) -> Prices:
    fields = top.table("prices", "prices", ("currency", "zones"))
    found = []
    for name, curves in fields.named("zones", "prices of zone", CURVES).items():
        read = {curve: _curve(curves, curve) for curve in CURVES}
        found.append((name, ZonePrices(**read)))
    return Prices(tuple(found), fields.text("currency", "EUR"))


def _curve(zone: Fields, name: str) -> Curve | None:
    if name not in zone:
        return None
    fields = zone.table(name, f"{zone.item}, {name}", ("start_s", "value", "end_s"))
    with fields.blamed():
        return Curve(
            np.array(fields.numbers("start_s")),
            np.array(fields.numbers("value")),
            fields.number("end_s", np.inf),
        )
