"""A scheduler as bytes, and back: tasks, the book and the policy's state, without pickle.

What is written goes on as what was: a law holds that over the whole catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from downclock.engine.book import Book
from downclock.engine.journal import Journal
from downclock.engine.pages import Row, TaskBook
from downclock.engine.policy import Policy
from downclock.engine.saved import flat, from_bytes, to_bytes
from downclock.engine.scheduler import Scheduler
from downclock.engine.view import View
from downclock.errors import InvalidInput
from downclock.problem.graph import Edges
from downclock.problem.problem import Problem
from downclock.problem.spread import Spread
from downclock.problem.tasks import Tasks

Arrays = dict[str, Any]

_ROW = ("task", "attempt", "start_s", "end_s", "share", "eager", "number", "began_s", "ended_s",
        "done", "cut")  # fmt: skip
_PAGE = ("status", "accepted", "attempt", "tried", "work", "waits_for", "arrived")
_TASK = ("application", "scale", "arrival_s", "deadline_s", "processors")
_AGENDA = ("row", "awake", "switch", "overdue")
LOGGED, RUNNING, PROMISED = range(3)
"""Where a row stands."""


def saved(scheduler: Scheduler) -> bytes:
    """Write a scheduler; where a later call fails it goes back from here."""
    policy = scheduler.policy
    state = policy.saved(scheduler.state)
    columns: Arrays = {f"policy/{name}": column for name, column in state.items()}
    columns |= {f"tasks/{name}": column for name, column in _tasks(scheduler).items()}
    columns |= {f"book/{name}": column for name, column in _book(scheduler.book).items()}
    columns["seen"] = np.array(sorted(scheduler._seen), dtype=np.int64)
    tasks = scheduler.view.tasks
    header = {
        "policy": policy.name,
        "names": [str(name) for name in tasks.name],
        "reasons": {i: p.reason for i, p in enumerate(scheduler.book.tasks) if p.reason},
        "call_me_s": float(scheduler.call_me_s),
        "seen_below": scheduler._seen_below,
        "retries": scheduler.book.retries,
    }
    data = to_bytes(header, columns)
    scheduler.journal = Journal(lambda site: restored(site, policy, data))
    return data


def restored(site: Problem | View, policy: Policy, data: bytes) -> Scheduler:
    """Read what `saved` wrote, for the same platform and policy.

    Raises:
        InvalidInput: the bytes are of another policy, or no such state.
    """
    header, columns = from_bytes(data)
    if header["policy"] != policy.name:
        rule = f"is of policy '{header['policy']}'"
        raise InvalidInput(rule, item="state", field="policy", value=policy.name)
    scheduler = Scheduler(site, policy, retries=int(header["retries"]))
    _tell(scheduler, header["names"], _part(columns, "tasks/"))
    scheduler.state = policy.restored(scheduler.view, _part(columns, "policy/"))
    _fill(scheduler.book, _part(columns, "book/"), header["reasons"])
    scheduler.call_me_s = float(header["call_me_s"])
    scheduler._seen, scheduler._seen_below = set(columns["seen"].tolist()), header["seen_below"]
    scheduler.journal = Journal(lambda site: restored(site, policy, data))
    return scheduler


def _part(columns: Arrays, prefix: str) -> Arrays:
    return {k.removeprefix(prefix): v for k, v in columns.items() if k.startswith(prefix)}


def _tasks(scheduler: Scheduler) -> Arrays:
    tasks, spread = scheduler.view.tasks, scheduler.view.tasks.spread
    found = {name: getattr(tasks, name) for name in _TASK} | flat(scheduler.view.edges)
    return found if spread is None else found | flat(spread)


def _tell(scheduler: Scheduler, names: list[str], columns: Arrays) -> None:
    if not names:
        return
    spread = None
    if "shape" in columns:
        spread = Spread(columns["shape"], columns["a"], columns["b"])
    rows = {name: columns[name] for name in _TASK}
    tasks = Tasks(name=np.array(names, dtype=object), **rows, spread=spread)
    scheduler.view.tasks.add(tasks, np.arange(len(names)))
    scheduler.view.learn(Edges(columns["before"], columns["after"]))


def _ragged(lists: Iterable[Iterable[int]]) -> tuple[Any, Any]:
    """Lists of different lengths as offsets and one column."""
    rows = [list(each) for each in lists]
    offset = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return offset, np.array([x for row in rows for x in row], dtype=np.int64)


def _unragged(offset: Any, column: Any) -> list[list[int]]:
    values = column.tolist()
    return [values[a:b] for a, b in zip(offset[:-1].tolist(), offset[1:].tolist(), strict=True)]


def _rows_of(book: Book) -> list[tuple[Row, int]]:
    """Every row with where it stands."""
    found: list[tuple[Row, int]] = []
    for page in book.tasks:
        found += [(row, LOGGED) for row in page.log]
        if page.running is not None:
            found.append((page.running, RUNNING))
        found += [(row, PROMISED) for row in page.rows]
    return found


def _book(book: Book) -> Arrays:
    rows = _rows_of(book)
    number = {id(row): a for a, (row, _) in enumerate(rows)}
    found: Arrays = {f"row/{name}": [getattr(row, name) for row, _ in rows] for name in _ROW}
    found["row/point"] = np.array([row.point for row, _ in rows]).reshape(-1, 3)
    found["row/where"] = np.array([where for _, where in rows], dtype=np.int64)
    found["row/offset"], found["row/processor"] = _ragged(row.processors for row, _ in rows)
    found |= {f"page/{name}": [getattr(page, name) for page in book.tasks] for name in _PAGE}
    found["page/begun_offset"], found["page/begun"] = _ragged(p.begun_on for p in book.tasks)
    found["up"], found["state"] = np.array(book.up), np.array(book.state, dtype=np.int64)
    found["awake_s"] = np.array(book.awake_s)
    found["switched"] = np.array(book.switched, dtype=np.float64).reshape(-1, 3)
    found["sleepy"] = np.array(sorted(book.sleepy), dtype=np.int64)
    found["agenda"] = np.array(_agenda(book, number), dtype=np.float64).reshape(-1, 6)
    found["scalars"] = np.array([book.now_s, book._numbers, book.events, book.open_tasks])
    return found


def _agenda(book: Book, number: dict[int, int]) -> list[tuple[float, ...]]:
    """What is due: (time, order, what, three numbers); rows that are gone are left out."""
    found: list[tuple[float, ...]] = []
    for at_s, order, what, item in book.agenda:
        if what in ("row", "overdue"):
            if id(item) in number:
                found.append((at_s, order, _AGENDA.index(what), number[id(item)], 0.0, 0.0))
        else:
            padded = (*(float(x) for x in item), 0.0, 0.0, 0.0)[:3]
            found.append((at_s, order, _AGENDA.index(what), *padded))
    return found


def _fill(book: Book, columns: Arrays, reasons: dict[str, str]) -> None:
    """Write everything back into an empty book."""
    rows = _read_rows(columns)
    pages = zip(*(columns[f"page/{name}"].tolist() for name in _PAGE), strict=True)
    book.tasks = [TaskBook(**dict(zip(_PAGE, values, strict=True))) for values in pages]
    begun = _unragged(columns["page/begun_offset"], columns["page/begun"])
    for task, page in enumerate(book.tasks):
        page.begun_on, page.reason = tuple(begun[task]), reasons.get(str(task), "")
    for before, after in book.view.edges:
        book.after.setdefault(before, []).append(after)
    for row, where in zip(rows, columns["row/where"].tolist(), strict=True):
        _put(book, row, where)
    for queue in book.queue:
        queue.sort()
    book.up, book.state = columns["up"].tolist(), columns["state"].tolist()
    book.awake_s = columns["awake_s"].tolist()
    book.switched = [(int(j), int(what), at_s) for j, what, at_s in columns["switched"].tolist()]
    book.sleepy = set(columns["sleepy"].tolist())
    book.agenda = sorted(_read_agenda(columns["agenda"].tolist(), rows))
    now_s, numbers, events, open_tasks = columns["scalars"].tolist()
    book.now_s, book._numbers = now_s, int(numbers)
    book.events, book.open_tasks = int(events), int(open_tasks)


def _read_rows(columns: Arrays) -> list[Row]:
    lanes = _unragged(columns["row/offset"], columns["row/processor"])
    values = zip(*(columns[f"row/{name}"].tolist() for name in _ROW), strict=True)
    rows = zip(lanes, columns["row/point"].tolist(), values, strict=True)
    return [
        Row(processors=tuple(lane), point=(a, b, c), **dict(zip(_ROW, row, strict=True)))
        for lane, (a, b, c), row in rows
    ]


def _put(book: Book, row: Row, where: int) -> None:
    page = book.tasks[row.task]
    if where == LOGGED:
        page.log = (*page.log, row)
    elif where == RUNNING:
        page.running = row
        for p in row.processors:
            book.running[p] = row
    else:
        page.rows = (*page.rows, row)
        for p in row.processors:
            book.queue[p].append(row)


def _read_agenda(lines: list[list[float]], rows: list[Row]) -> list[tuple[float, int, str, Any]]:
    found: list[tuple[float, int, str, Any]] = []
    for at_s, order, what, a, b, c in lines:
        word = _AGENDA[int(what)]
        item: Any = rows[int(a)] if word in ("row", "overdue") else (int(a), b)
        if word == "switch":
            item = (int(a), bool(b), c)
        found.append((at_s, int(order), word, item))
    return found
