"""Reader of the Standard Task Graph format (Tobita and Kasahara, J. Scheduling 5, 2002).

A file is the number of real tasks, then a record ``id work predecessors pred...`` for each task
and for the dummy entry (0) and exit (n + 1), all separated by white space; ``#`` starts a
trailer that repeats what the generator knew. Predecessors have smaller ids.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from downclock.errors import InvalidInput
from downclock.files import read_text
from downclock.problem.graph import Edges
from downclock.units import Floats, Ints, Names
from downclock.workloads.task_graph import TaskGraph

_MOST = 2**53
"""Largest number a file may hold: beyond it, work is no longer exact."""

_NUMBER = re.compile(r"-?\d+(\.\d*)?")


def read_stg(path: str | Path) -> TaskGraph:
    """Read the real tasks of an STG file; the two dummies are dropped.

    Raises:
        InvalidInput: naming file, line and rule, where the file is not a sound STG file.
    """
    text = read_text(path)
    try:
        return parse_stg(text, name=Path(path).stem)
    except InvalidInput as error:
        raise error.located(path) from None


def parse_stg(text: str, name: str = "graph") -> TaskGraph:
    """Read STG text; see `read_stg`."""
    lines = text.splitlines()
    body, body_lines = _tokens(lines)
    work, before, after = _records(body, body_lines)
    n = work.size - 2
    inner = (before >= 1) & (before <= n) & (after >= 1) & (after <= n)
    names: Names = np.array([f"t{i}" for i in range(1, n + 1)], dtype=object)
    graph = TaskGraph(name, names, work[1:-1], Edges(before[inner] - 1, after[inner] - 1))
    _check_trailer(graph, lines)
    return graph


def _tokens(lines: list[str]) -> tuple[Ints, Ints]:
    """Return every number before the trailer and the line it stands on."""
    values: list[int] = []
    at: list[int] = []
    for number, line in enumerate(lines, start=1):
        for word in line.split("#", 1)[0].split():
            try:
                values.append(int(word))
            except ValueError:
                raise InvalidInput("is not a whole number", value=word, line=number) from None
            if abs(values[-1]) > _MOST:
                raise InvalidInput(f"must be at most {_MOST}", value=word, line=number)
            at.append(number)
    if not values:
        raise InvalidInput("is empty: an STG file starts with the number of tasks")
    return np.array(values, dtype=np.int64), np.array(at, dtype=np.int64)


def _records(body: Ints, at: Ints) -> tuple[Floats, Ints, Ints]:
    """Return work (n + 2,) and edges, dummies included, of checked records."""
    n = int(body[0])
    if n < 1:
        raise InvalidInput("must be at least 1", field="tasks", value=n, line=int(at[0]))
    work: list[int] = []
    before: list[int] = []
    after: list[int] = []
    place = 1
    while place < body.size and len(work) <= n + 1:
        if place + 3 > body.size:
            raise InvalidInput("ends inside a record", line=int(at[-1]))
        task, cycles, count = (int(v) for v in body[place : place + 3])
        _check_record(task, cycles, count, len(work), n, int(at[place]))
        preds = body[place + 3 : place + 3 + count]
        _check_preds(preds, count, task, int(at[place]))
        work.append(cycles)
        before += [int(p) for p in preds]
        after += [task] * count
        place += 3 + count
    _check_count(len(work), n, place < body.size, int(at[min(place, at.size - 1)]))
    columns = (np.array(before, dtype=np.int64), np.array(after, dtype=np.int64))
    return np.array(work, dtype=np.float64), *columns


def _check_record(task: int, cycles: int, count: int, expected: int, n: int, line: int) -> None:
    if task != expected:
        hint = " (this mirror lacks the dummy entry task 0)" if expected == 0 and task == 1 else ""
        raise InvalidInput(f"should be {expected}{hint}", field="task id", value=task, line=line)
    item = f"task {task}"
    if cycles < 0 or count < 0:
        field, value = ("work", cycles) if cycles < 0 else ("predecessors", count)
        raise InvalidInput("is negative", item=item, field=field, value=value, line=line)
    if task in (0, n + 1) and cycles > 0:
        end = "entry" if task == 0 else "exit"
        rule = (
            f"the dummy {end} task must have no work (does the header count the dummies, or does"
            " this mirror lack them?)"
        )
        raise InvalidInput(rule, item=item, field="work", value=cycles, line=line)


def _check_preds(preds: Ints, count: int, task: int, line: int) -> None:
    item = f"task {task}"
    if preds.size < count:
        raise InvalidInput(f"has {preds.size} of its {count} predecessors", item=item, line=line)
    if np.any((preds < 0) | (preds >= task)):
        wrong, rule = int(preds[(preds < 0) | (preds >= task)][0]), "is not a smaller task id"
        raise InvalidInput(rule, item=item, field="predecessor", value=wrong, line=line)
    if np.unique(preds).size < count:
        raise InvalidInput("names a predecessor twice", item=item, line=line)


def _check_count(records: int, n: int, more: bool, line: int) -> None:
    if records == n + 2 and not more:
        return
    hint = ""
    if records == n:
        hint = "; the header may count the two dummies, or the dummies may be cut"
    found = f"more than {n + 2}" if more else str(records)
    raise InvalidInput(
        f"needs {n + 2} records ({n} tasks and two dummies) and has {found}{hint}", line=line
    )


def _check_trailer(graph: TaskGraph, lines: list[str]) -> None:
    """Compare critical path and parallelism with what the generator wrote, where it did."""
    for number, line in enumerate(lines, start=1):
        key, _, value = line.lstrip("# ").partition(":")
        found = _NUMBER.search(value)
        if not line.startswith("#") or found is None:
            continue
        said = float(found.group())
        if key.strip() == "CP Length":
            _compare("critical path", graph.critical_path, said, 0.5, number)
        elif key.strip() == "Parallelism":
            ours = graph.total_work / graph.critical_path
            _compare("parallelism", ours, said, 1e-5, number)


def _compare(what: str, ours: float, said: float, tolerance: float, line: int) -> None:
    if abs(ours - said) > tolerance:
        rule = f"is stated as {said:g} but the records give {ours:g}: the file was altered"
        raise InvalidInput(rule, field=what, line=line)
