"""Facts that cannot be are refused by name, before anything changes."""

from __future__ import annotations

import numpy as np

from downclock.engine import facts as event
from downclock.engine.book import BROKEN, Book
from downclock.engine.facts import Fact, Facts
from downclock.engine.view import View
from downclock.errors import InvalidInput
from downclock.schedule.schedule import PENDING, STATUSES
from downclock.units import TOLERANCE

_OF_TASKS = (
    *(event.ARRIVED, event.FINISHED, event.PARTLY_DONE),
    *(event.LOST, event.CANCELLED, event.AMENDED),
)
_OF_PROCESSORS, _OF_SERVERS = (event.DOWN, event.UP), (event.SERVER_DOWN, event.SERVER_UP)


def check(view: View, book: Book, facts: Facts) -> None:
    """Refuse facts that cannot be.

    Raises:
        InvalidInput: names the fact, the object, the value and the rule.
    """
    if not np.isfinite(facts.now_s):
        raise InvalidInput("must be a finite number", field="now_s", value=facts.now_s)
    if facts.now_s < book.now_s:
        rule = f"is before the last facts at {book.now_s:g} s"
        raise InvalidInput(rule, field="now_s", value=facts.now_s)
    ended: set[int] = set()
    places: set[tuple[bool, int]] = set()
    for fact in facts.rows:
        _check_one(view, book, fact, facts.now_s)
        if fact.code in (*_OF_PROCESSORS, *_OF_SERVERS):
            place = (fact.code in _OF_SERVERS, fact.place)
            if place in places:
                raise _wrong(view, fact, "is named twice at one moment", "place", fact.place)
            places.add(place)
        if fact.code in _OF_TASKS and fact.code != event.AMENDED:
            if fact.task in ended:
                raise _wrong(view, fact, "is named twice at one moment")
            ended.add(fact.task)


def _check_one(view: View, book: Book, fact: Fact, now_s: float) -> None:
    if fact.code not in event.EVERY or fact.code in event.DERIVED:
        raise InvalidInput("is not a kind of fact that is told", field="code", value=fact.code)
    if fact.at_s > now_s:
        raise _wrong(view, fact, f"is after now ({now_s:g} s)", "at_s", fact.at_s)
    if fact.code in _OF_TASKS:
        _check_task(view, book, fact)
    elif fact.code in _OF_PROCESSORS:
        _check_place(view, fact, book.up, fact.code == event.DOWN)
    elif fact.code in _OF_SERVERS:
        works = [state != BROKEN for state in book.state]
        _check_place(view, fact, works, fact.code == event.SERVER_DOWN)
    elif fact.code == event.PRICE and not 0 <= fact.place < len(view.platform.zones):
        raise _wrong(view, fact, "names no zone", "place", fact.place)


def _check_task(view: View, book: Book, fact: Fact) -> None:
    if not 0 <= fact.task < len(view.tasks):
        raise _wrong(view, fact, "names no task that was told", "task", fact.task)
    page = book.page(fact.task)
    known = page is not None and page.arrived
    if fact.code == event.ARRIVED:
        if known:
            raise _wrong(view, fact, "has arrived before")
        return
    if page is None or not known:
        raise _wrong(view, fact, "has not arrived")
    if page.status != PENDING:
        raise _wrong(view, fact, f"has ended before: it is {STATUSES[page.status]}")
    if fact.code in (event.FINISHED, event.PARTLY_DONE) and page.running is None:
        raise _wrong(view, fact, "is not running")
    if fact.code == event.LOST and page.running is None and not page.begun_on:
        raise _wrong(view, fact, "is not running")
    if page.running is not None and fact.at_s < page.running.began_s:
        raise _wrong(view, fact, "is before it began", "at_s", fact.at_s)
    ends = fact.code in (event.FINISHED, event.LOST)
    if ends and not (np.isnan(fact.value) or 0.0 < fact.value < np.inf):
        raise _wrong(view, fact, "must be positive and finite", "value", fact.value)
    if not (np.isnan(fact.share) or 0.0 <= fact.share <= 1.0 + TOLERANCE):
        raise _wrong(view, fact, "must be between 0 and 1", "share", fact.share)
    if fact.code == event.AMENDED and not fact.value >= view.tasks.arrival_s[fact.task]:
        raise _wrong(view, fact, "must be a number, not before its arrival", "value", fact.value)


def _check_place(view: View, fact: Fact, working: list[bool], fails: bool) -> None:
    what = "server" if fact.code in _OF_SERVERS else "processor"
    if not 0 <= fact.place < len(working):
        raise _wrong(view, fact, f"names no {what}", "place", fact.place)
    if working[fact.place] != fails:
        rule = f"names a {what} that is {'down already' if fails else 'not down'}"
        raise _wrong(view, fact, rule, "place", fact.place)


def _wrong(
    view: View, fact: Fact, rule: str, field: str = "task", value: object = None
) -> InvalidInput:
    known = 0 <= fact.task < len(view.tasks)
    name = view.tasks.name[fact.task] if known else fact.task
    shown = name if value is None else value
    return InvalidInput(rule, item=f"fact '{event.WORDS[fact.code]}'", field=field, value=shown)
