"""A whole run of our planner in one loop, in which nothing but arrivals and ends can happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from downclock.engine.decisions import Decisions, joined_decisions
from downclock.engine.policy import Coming, Folded
from downclock.engine.view import View
from downclock.kernels.least_tree import new_trees
from downclock.planners.cluster.board import make_room_for_gangs
from downclock.planners.cluster.state import State, is_shared, next_event_s
from downclock.planners.orphans import with_orphans
from downclock.schedule.schedule import Segments
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.board import Cluster
    from downclock.planners.cluster.policy import ClusterPolicy

CHUNK = 65_536
"""Starts written before they are collected."""


class WholeRun:
    """A run that is played in one loop, in chunks."""

    def __init__(
        self, policy: ClusterPolicy, state: State, view: View, coming: Coming, new: Ints
    ) -> None:
        self.policy, self.state, self.view, self.coming = policy, state, view, coming
        tasks = state.board.tasks
        rank = np.lexsort((new, tasks["deadline_s"][new], tasks["arrival_s"][new]))
        self.order = new[rank]
        self.ends = new_trees(np.full((1, view.platform.processor_count), np.inf))
        self.parts: list[Decisions] = []

    def play(self) -> Folded:
        """Play to the end."""
        at = self._begin_batch()
        while True:
            until_s = min(self._next_question_s(at), self._first_gang_s(at))
            at = self._play_until(at, until_s)
            if until_s == np.inf:
                break
            self._pause(at, until_s)
        decided = with_orphans(joined_decisions(self.parts), self.view)
        return Folded(decided, self._real_s(decided.place))

    def _first_gang_s(self, at: int) -> float:
        """When the first gang, or a task that follows another, comes, if none has."""
        board, rest = self.state.board, self.order[at:]
        if board.tally["shared"][0]:
            return np.inf
        return float(board.tasks["arrival_s"][rest[is_shared(board, rest)]].min(initial=np.inf))

    def _pause(self, at: int, now_s: float) -> None:
        """Do what a moment begins with: the question of cheap hours, reservations for gangs."""
        if self.state.watch.asks:
            known = int(np.searchsorted(self.coming.told_s, now_s, side="right"))
            self._question(known, now_s)
        self._share(at, now_s)

    def _share(self, at: int, now_s: float) -> None:
        """Begin to keep reservations if what comes now asks for it."""
        rest = self.order[at:]
        self.policy.begin_reservations(self.state, self.view, self._now(rest, now_s), now_s)
        if self.state.board.tally["shared"][0]:
            make_room_for_gangs(self.state.board, self.state.board.tasks["gang"][rest])

    def _now(self, tasks: Ints, now_s: float) -> Ints:
        return tasks[self.state.board.tasks["arrival_s"][tasks] <= now_s]

    def _begin_batch(self) -> int:
        """Where all is there at time 0, plan it at once; return how many tasks have come."""
        arrival_s = self.state.board.tasks["arrival_s"][self.order]
        if not self.coming.closed or not self.order.size or np.any(arrival_s > 0.0):
            return 0
        self.policy.choose_waiting(self.state, self.view)
        self.policy.begin_reservations(self.state, self.view, self.order, 0.0)
        tally = self.state.board.tally
        tally["closed"] = tally["shared"] > 0
        return 0 if tally["shared"][0] else self._step(0, 0.0, batch=True)

    def _step(self, at: int, now_s: float, *, batch: bool = False) -> int:
        """Play one moment by itself; return the next task to come."""
        from downclock.planners.cluster.kernels.moment import FREED

        processors = self.state.board.processors
        leaf = self.ends.shape[1] // 2
        end_s = self.ends[0, leaf : leaf + len(processors)].copy()
        done = np.flatnonzero(end_s <= now_s)
        told = np.column_stack([np.full(done.size, FREED), processors["running"][done], done])
        new = self._now(self.order[at:], now_s)
        cluster = self.policy.cluster(self.state, self.view, self.order.size - at)
        self.policy.happen(self.state, self.view, cluster, told, new, now_s, batch=batch)
        self._collect(cluster)
        begun = self.parts[-1].place
        end_s[done] = np.inf
        end_s[begun.processor] = self._real_s(begun)
        self.ends = new_trees(end_s[None, :])
        return at + int(new.size)

    def _real_s(self, place: Segments) -> Floats:
        """When rows really end."""
        work, start_s, end_s = self.coming.work[place.task], place.start_s, place.end_s
        return np.where(work == 1.0, end_s, start_s + (end_s - start_s) * work)

    def _question(self, seen: int, now_s: float) -> None:
        whole, self.state.seen = self.state.seen, seen
        self.policy.ask_waiting(self.state, self.view, 1, now_s)
        self.state.seen = whole

    def _next_question_s(self, at: int) -> float:
        """When to ask next whether waiting pays, if ever."""
        watch, arrival_s = self.state.watch, self.coming.told_s[self.order[at:]]
        if not watch.asks or not arrival_s.size:
            return np.inf
        known = np.searchsorted(self.coming.told_s, arrival_s, side="right")
        due = np.flatnonzero((known >= watch.enough) | (arrival_s >= watch.next_s))
        return float(arrival_s[due[0]]) if due.size else np.inf

    def _play_until(self, at: int, until_s: float) -> int:
        """Play moments before ``until_s``; return the next task to come."""
        from downclock.planners.cluster.kernels.play import is_full, run

        if self._rests_until(at, until_s):
            return at
        while True:
            cluster = self._chunk(self.order.size - at)
            at += run(
                cluster, self.coming.work, self.policy.reserve, self.ends, self.order[at:], until_s
            )
            self._collect(cluster)
            if is_full(cluster):
                continue
            next_s = self._next_arrival_s(at)
            if next_s >= until_s:
                return at
            self._share(at, next_s)  # few come
            if not self.state.board.tally["shared"][0]:
                at = self._step(at, next_s)  # many come at once

    def _rests_until(self, at: int, until_s: float) -> bool:
        """Tell whether nothing can happen before then."""
        next_s = min(self._next_arrival_s(at), next_event_s(self.state), self.ends[0, 1])
        return until_s < np.inf and until_s <= next_s

    def _next_arrival_s(self, at: int) -> float:
        return float(
            self.state.board.tasks["arrival_s"][self.order[at : at + 1]].min(initial=np.inf)
        )

    def _chunk(self, left: int) -> Cluster:
        queued = int(self.state.board.tally["queued"][0])
        rows = min(CHUNK, 2 * left + queued + 64)
        return self.policy.cluster(self.state, self.view, left, rows)

    def _collect(self, cluster: Cluster) -> None:
        """Keep what was decided."""
        none = np.empty(0, np.int64)
        self.parts.append(self.policy.decisions(self.state, self.view, cluster, none))
