"""The book by itself: what starts when, what follows from what, and what is written down."""

from __future__ import annotations

import numpy as np
import pytest

import downclock as dc
from downclock.engine.book import ASLEEP, AWAKE, BROKEN, WAKING, Book
from downclock.engine.decisions import Decisions, Switches
from downclock.engine.facts import (
    ARRIVED,
    CANCELLED,
    DOWN,
    FAILED,
    FINISHED,
    LOST,
    ORPHANED,
    OVERDUE,
    PARTLY_DONE,
    SERVER_DOWN,
    SERVER_UP,
    UP,
    Fact,
    Facts,
)
from downclock.engine.outcome import OFF, TURNED_ON
from downclock.engine.view import View
from downclock.schedule.schedule import DONE, PENDING, REJECTED, Segments
from downclock.schedule.schedule import FAILED as HAS_FAILED

WAKE_S = 30.0
Place = tuple[int, int, float, float]
"""Task, processor, start and end."""


def open_book(
    tasks: int = 4,
    *,
    awake: bool = True,
    retries: int = 1,
    edges: tuple[tuple[int, int], ...] = (),
    work: tuple[float, ...] = (),
) -> Book:
    """A book of two servers with two GPUs each, told of some tasks at time 0."""
    library = dc.built_in_library("a100")
    gpu = dc.Kind.of(library, "a100")
    server = dc.ServerSpec("s", (("a100", 2),), 2, wake_s=WAKE_S, initially_on=awake)
    asked = dc.Tasks.of(["dgemm"] * tasks, library=library, deadline_s=1e6, scale=work or 1.0)
    view = View(dc.Problem(asked, library, dc.Platform.build([gpu], [server])))
    book = Book(view, retries)
    view.tasks.add(asked, np.arange(tasks))
    for before, after in edges:
        book.precede(before, after)
    book.note(Facts(0.0, [Fact(ARRIVED, task) for task in range(tasks)]))
    return book


def put(book: Book, *rows: Place, eager: bool = False, share: float = 1.0) -> list[int]:
    """Promise rows; return the tasks that start now."""
    task, processor, start_s, end_s = np.array(rows).T
    points = np.ones((len(rows), 3))
    placed = Segments.of(
        task.astype(np.int64), processor.astype(np.int64), start_s, end_s, points, share
    )
    book.apply(Decisions(place=placed, eager=eager))
    return starts(book)


def starts(book: Book, *, overdue: bool = False) -> list[int]:
    return [row.task for row in book.start_rows(overdue)]


def tell(book: Book, now_s: float, *facts: Fact) -> list[tuple[int, int]]:
    """Tell facts; return the kind and task of all that follows from them."""
    return [(fact.code, fact.task) for fact in book.note(Facts(now_s, facts)).rows]


def switch(book: Book, server: int, on: bool, at_s: float) -> None:
    power = Switches(np.array([server]), np.array([on]), np.array([at_s]))
    book.apply(Decisions(power=power))


def test_a_row_waits_for_its_promised_start() -> None:
    book = open_book()
    assert put(book, (0, 0, 5.0, 9.0)) == []
    assert book.next_s == 5.0
    tell(book, 5.0)
    assert starts(book) == [0]


def test_an_eager_row_starts_as_soon_as_its_processor_is_free() -> None:
    book = open_book()
    assert put(book, (0, 0, 0.0, 4.0), (1, 0, 4.0, 9.0), eager=True) == [0]
    tell(book, 1.5, Fact(FINISHED, 0))
    assert starts(book) == [1]
    assert book.tasks[1].running.began_s == 1.5


def test_a_row_that_is_not_eager_keeps_its_start_although_the_processor_is_free() -> None:
    book = open_book()
    put(book, (0, 0, 0.0, 4.0), (1, 0, 4.0, 9.0))
    tell(book, 1.5, Fact(FINISHED, 0))
    assert starts(book) == []
    tell(book, 4.0)
    assert starts(book) == [1]


def test_a_gang_starts_when_all_its_processors_are_free() -> None:
    book = open_book()
    put(book, (0, 0, 0.0, 4.0), eager=True)
    assert put(book, (1, 0, 4.0, 8.0), (1, 1, 4.0, 8.0), eager=True) == []
    tell(book, 3.0, Fact(FINISHED, 0))
    assert starts(book) == [1]
    gang = book.tasks[1].running
    assert gang.processors == (0, 1)
    assert book.running[0] is gang is book.running[1]


def test_a_gang_is_written_down_as_a_segment_a_processor() -> None:
    book = open_book()
    put(book, (1, 0, 0.0, 8.0), (1, 1, 0.0, 8.0))
    tell(book, 8.0, Fact(FINISHED, 1))
    ran = book.ended().segments
    assert ran.processor.tolist() == [0, 1]
    assert ran.end_s.tolist() == [8.0, 8.0]
    assert ran.share.tolist() == [1.0, 1.0]


def test_a_task_waits_for_those_before_it_and_starts_when_the_last_ends() -> None:
    book = open_book(edges=((0, 2), (1, 2)))
    rows = ((0, 0, 0.0, 4.0), (1, 1, 0.0, 6.0), (2, 2, 6.0, 9.0))
    assert put(book, *rows, eager=True) == [0, 1]
    tell(book, 4.0, Fact(FINISHED, 0))
    assert starts(book) == []
    tell(book, 5.0, Fact(FINISHED, 1))
    assert starts(book) == [2]


def test_a_task_without_work_is_done_with_those_before_it() -> None:
    book = open_book(3, edges=((0, 1), (1, 2)), work=(1.0, 0.0, 1.0))
    assert put(book, (0, 0, 0.0, 4.0), (2, 1, 4.0, 6.0), eager=True) == [0]
    tell(book, 3.0, Fact(FINISHED, 0))
    assert book.tasks[1].status == DONE
    assert starts(book) == [2]


def test_what_follows_a_cancelled_task_is_given_up_along_the_whole_path() -> None:
    book = open_book(edges=((0, 1), (1, 2)))
    told = tell(book, 1.0, Fact(CANCELLED, 0))
    assert told == [(CANCELLED, 0), (ORPHANED, 1), (ORPHANED, 2)]
    assert [page.status for page in book.tasks] == [REJECTED, REJECTED, REJECTED, PENDING]
    assert book.tasks[2].reason == "a task before it did not finish"


def test_a_task_told_after_its_predecessor_was_rejected_is_an_orphan_at_once() -> None:
    book = open_book(2)
    tell(book, 1.0, Fact(CANCELLED, 0))
    book.view.tasks.add(book.view.tasks, np.array([1]))
    book.precede(0, 2)
    assert tell(book, 2.0, Fact(ARRIVED, 2)) == [(ARRIVED, 2), (ORPHANED, 2)]


def test_lost_attempts_are_counted_only_where_they_ran_and_the_last_is_the_end() -> None:
    book = open_book(retries=1)
    put(book, (0, 0, 0.0, 10.0))
    assert tell(book, 4.0, Fact(LOST, 0, share=0.4)) == [(LOST, 0)]
    assert book.tasks[0].attempt == 1
    put(book, (0, 1, 4.0, 14.0))
    assert tell(book, 4.0, Fact(LOST, 0)) == [(LOST, 0)]  # it had no time to run
    assert book.tasks[0].attempt == 1
    put(book, (0, 1, 4.0, 14.0))
    assert tell(book, 9.0, Fact(LOST, 0, share=0.5)) == [(FAILED, 0)]
    assert book.tasks[0].status == HAS_FAILED
    ran = book.ended().segments
    assert ran.attempt.tolist() == [0, 1]
    assert ran.share.tolist() == [0.4, 0.5]


def test_a_revoked_task_is_cut_keeps_its_share_and_may_go_on_elsewhere() -> None:
    book = open_book()
    put(book, (0, 0, 0.0, 10.0))
    tell(book, 4.0)
    book.apply(Decisions(revoke=np.array([0])))
    assert book.running[0] is None
    assert book.begun(range(4)) == [0]
    put(book, (0, 3, 4.0, 10.0), share=0.6)
    tell(book, 10.0, Fact(FINISHED, 0))
    ended = book.ended()
    assert ended.segments.processor.tolist() == [0, 3]
    assert ended.segments.share == pytest.approx([0.4, 0.6])
    assert ended.work[0] == pytest.approx(1.0)


def test_what_was_cut_before_it_did_anything_is_not_written_down() -> None:
    """A moment of 5e-324 s after the start is another one, and no part of a task."""
    book = open_book()
    put(book, (0, 0, 0.0, 10.0))
    tell(book, 5e-324)
    book.apply(Decisions(revoke=np.array([0])))
    assert len(book.ended().segments) == 0
    assert book.begun(range(4)) == []


def test_rows_of_one_task_follow_each_other_and_only_the_last_is_its_end() -> None:
    book = open_book()
    put(book, (0, 0, 0.0, 5.0), (0, 0, 5.0, 15.0), share=0.5)
    tell(book, 5.0, Fact(PARTLY_DONE, 0, share=0.5))
    assert book.tasks[0].status == PENDING
    assert starts(book) == [0]
    tell(book, 15.0, Fact(FINISHED, 0, share=0.5))
    assert book.tasks[0].status == DONE


def test_the_work_of_a_task_follows_from_how_long_it_took() -> None:
    book = open_book()
    put(book, (0, 0, 0.0, 10.0), (1, 1, 0.0, 10.0), eager=True)
    tell(book, 7.0, Fact(FINISHED, 0))
    tell(book, 12.0, Fact(FINISHED, 1, value=1.25))
    assert book.ended().work[:2].tolist() == [0.7, 1.25]  # told where somebody knows better


def test_a_row_on_a_processor_that_is_down_waits_until_it_is_up() -> None:
    book = open_book()
    tell(book, 0.0, Fact(DOWN, place=0))
    assert put(book, (0, 0, 0.0, 10.0)) == []
    tell(book, 3.0, Fact(UP, place=0))
    assert starts(book) == [0]


def test_a_sleeping_server_is_awake_after_its_wake_time_and_rows_wait_for_it() -> None:
    book = open_book(awake=False)
    switch(book, 0, on=True, at_s=0.0)
    assert book.state == [WAKING, ASLEEP]
    assert put(book, (0, 0, 0.0, 10.0), eager=True) == []
    assert book.next_s == WAKE_S
    tell(book, WAKE_S)
    assert book.state[0] == AWAKE
    assert starts(book) == [0]


def test_a_server_that_is_told_to_sleep_does_so_when_nothing_needs_it() -> None:
    book = open_book()
    put(book, (0, 0, 0.0, 10.0), eager=True)
    switch(book, 0, on=False, at_s=0.0)
    assert book.state[0] == AWAKE
    tell(book, 10.0, Fact(FINISHED, 0))
    starts(book)
    assert book.state[0] == ASLEEP
    assert book.switched == [(0, OFF, 10.0)]


def test_a_switch_that_lies_ahead_is_made_when_its_time_comes() -> None:
    book = open_book(awake=False)
    switch(book, 1, on=True, at_s=20.0)
    assert book.state[1] == ASLEEP
    tell(book, 20.0)
    assert book.switched == [(1, TURNED_ON, 20.0)]
    assert book.next_s == 20.0 + WAKE_S


def test_a_broken_server_cannot_be_woken_and_is_asleep_when_repaired() -> None:
    book = open_book()
    tell(book, 1.0, Fact(SERVER_DOWN, place=0))
    switch(book, 0, on=True, at_s=1.0)
    assert book.state == [BROKEN, AWAKE]
    tell(book, 2.0, Fact(SERVER_UP, place=0))
    assert book.state[0] == ASLEEP


def test_who_wants_to_know_is_told_of_what_did_not_end_in_time() -> None:
    book = open_book()
    put(book, (1, 1, 2.0, 5.0))
    tell(book, 2.0)
    assert starts(book, overdue=True) == [1]
    assert tell(book, 5.0) == [(OVERDUE, 1)]


def test_nobody_is_told_that_what_has_ended_is_overdue() -> None:
    book = open_book()
    put(book, (1, 1, 2.0, 5.0))
    tell(book, 2.0)
    starts(book, overdue=True)
    tell(book, 4.0, Fact(FINISHED, 1))
    assert tell(book, 5.0) == []


def test_a_refused_task_ends_there_and_one_that_ran_before_has_failed() -> None:
    book = open_book()
    put(book, (0, 0, 0.0, 10.0))
    tell(book, 4.0)
    reasons = np.array(["no room", "no room"], dtype=object)
    book.apply(Decisions(rejected=np.array([0, 1]), reason=reasons))
    assert [page.status for page in book.tasks[:2]] == [HAS_FAILED, REJECTED]
    assert book.ended().reason[1] == "no room"
