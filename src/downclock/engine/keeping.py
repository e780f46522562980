"""A policy that keeps its promises: nothing starts before its promised start, or elsewhere.

The inner policy lives in a world where estimates come true, so it never learns of what happens;
what it promises there is carried out here, late where something before it is late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from downclock.columns import joined, taken
from downclock.engine.book import ASLEEP
from downclock.engine.decisions import Decisions, Switches, no_segments, woken
from downclock.engine.facts import AMENDED, ARRIVED, CANCELLED, LOST, SERVER_UP, Fact, Facts
from downclock.engine.policy import Columns, Coming, Folded, Policy
from downclock.engine.scheduler import Scheduler
from downclock.engine.snapshot import restored, saved
from downclock.engine.view import View
from downclock.engine.world import World
from downclock.problem.problem import Problem
from downclock.schedule.schedule import PENDING, Segments
from downclock.units import Ints


@dataclass(slots=True)
class Imagined:
    """The inner policy at work in the world where estimates come true."""

    scheduler: Scheduler
    world: World


@dataclass(frozen=True, slots=True)
class Keeping:
    """Keep what a policy promised, whatever happens.

    A lost task begins again on its processors, as fast as can be, ahead of what is promised there
    later; nothing moves elsewhere.
    """

    inner: Policy
    name: str = ""

    heeds: ClassVar[frozenset[int]] = frozenset((ARRIVED, LOST, CANCELLED, AMENDED, SERVER_UP))

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or f"keeping {self.inner.name}")

    def objection(self, problem: Problem) -> str | None:
        """What the inner policy says."""
        return self.inner.objection(problem)

    def start(self, view: View) -> Imagined:
        """Nothing is promised."""
        site = view.apart()
        return Imagined(Scheduler(site, self.inner), World(site.platform))

    def decide(self, state: Imagined, view: View, facts: Facts) -> tuple[Imagined, Decisions]:
        """Let the inner policy decide on what it is told; see to what is lost or repaired."""
        inner, now_s = state.scheduler, facts.now_s
        ended = state.world.happens(inner.book, now_s)
        told = ended + _told(inner, view, facts, {fact.task for fact in ended})
        due = now_s >= inner.call_me_s
        decided, started = inner.handle(Facts(now_s, told, due=due, closed=facts.closed))
        state.world.begin(inner.book, started)
        pages = {task: inner.book.tasks[task] for task in facts.tasks(LOST).tolist()}
        lost = {i: (p.running or (p.rows or p.log)[-1]).processors for i, p in pages.items()}
        again = begun_again(view, lost, now_s)
        wanted = np.union1d(view.platform.server[again.processor], facts.places(SERVER_UP))
        return state, replace(
            decided,
            eager=False,
            place=joined([decided.place, again]),
            power=_also_on(decided.power, inner, wanted, now_s),
            call_me_s=min(state.world.next_s(inner), inner.next_s),
        )

    def fold(self, state: Imagined, view: View, coming: Coming) -> tuple[Imagined, Folded] | None:
        """As the inner policy does where every task ends as promised."""
        if np.any(coming.work != 1.0):
            return None
        answer = self.inner.fold(state.scheduler.state, view, coming)
        return None if answer is None else (state, answer[1])

    def saved(self, state: Imagined) -> Columns:
        """The inner scheduler as bytes."""
        return {"inner": np.frombuffer(saved(state.scheduler), np.uint8)}

    def restored(self, view: View, columns: Columns) -> Imagined:
        """The inner scheduler from its bytes."""
        site = view.apart()
        world = World(site.platform)
        scheduler = restored(site, self.inner, columns["inner"].tobytes())
        world.resume(scheduler.book)
        return Imagined(scheduler, world)


def _told(inner: Scheduler, view: View, facts: Facts, ended: set[int]) -> list[Fact]:
    """What the inner policy may know: arrivals, and what is asked of tasks it has not done."""
    arrived = facts.tasks(ARRIVED)
    if arrived.size:
        known, edges = len(inner.view.edges), view.edges
        inner.tell(view.tasks, arrived, taken(edges, slice(known, None)))
    pages = inner.book.tasks
    asked = [fact for fact in facts.rows if fact.code in (ARRIVED, CANCELLED, AMENDED)]
    return [
        fact
        for fact in asked
        if fact.code == ARRIVED or (pages[fact.task].status == PENDING and fact.task not in ended)
    ]


def begun_again(view: View, lost: Mapping[int, Sequence[int]], now_s: float) -> Segments:
    """Rows for lost tasks and their processors: whole, from now on, as fast as can be."""
    rows, points = [], []
    for task, processors in lost.items():
        front = view.frontier(int(view.platform.kind[processors[0]]), np.array([task]))
        length_s = view.platform.slot_up(float(front.t_min_s[0]))
        rows += [(task, p, now_s, now_s + length_s) for p in processors]
        points += [front.cheapest(np.inf).points[0]] * len(processors)
    if not rows:
        return no_segments()
    task, processor, start_s, end_s = np.array(rows).T
    return Segments.of(
        task.astype(np.int64), processor.astype(np.int64), start_s, end_s, np.array(points)
    )


def _also_on(power: Switches, inner: Scheduler, wanted: Ints, now_s: float) -> Switches:
    """Wake servers too that are ``wanted``; those that were to sleep do so when it is done."""
    platform = inner.view.platform
    tired = wanted[[inner.book.state[j] == ASLEEP for j in wanted]]
    rest_s = np.nextafter(now_s + platform.wake_s[tired], np.inf)
    return joined(
        [power, woken(wanted, now_s), Switches(tired, np.zeros(tired.size, bool), rest_s)]
    )
