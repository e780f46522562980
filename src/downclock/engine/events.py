"""The event log of a schedule: what happens, in the order in which it happens.

Events at the same time are ordered as mei2021 Algorithm 4 treats them: tasks leave, servers fall
asleep, prices change, tasks arrive (and are refused), servers wake, tasks start; ties by position
in the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.engine.outcome import switches_of
from downclock.problem.problem import Problem
from downclock.schedule.schedule import REJECTED, Schedule
from downclock.units import Floats, Ints

FINISH, SLEEP, PRICE, ARRIVE, REFUSE, WAKE, START = range(7)
WORDS = ("finish", "sleep", "price", "arrive", "refuse", "wake", "start")
"""Kinds of event, by code, in the order in which they count at one time."""


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Rows (n,) in order.

    Attributes:
        time_s: when.
        kind: FINISH, SLEEP, PRICE, ARRIVE, REFUSE, WAKE or START.
        task: the task, or -1 for events of servers and prices.
        place: the processor of a start or finish, the server of a wake or sleep, the zone of a
            price, else -1.
    """

    time_s: Floats
    kind: Ints
    task: Ints
    place: Ints

    def __len__(self) -> int:
        return self.time_s.size

    def lines(self, problem: Problem) -> list[str]:
        """One line per event, for people."""
        return [self._line(problem, row) for row in range(len(self))]

    def _line(self, problem: Problem, row: int) -> str:
        kind, task, place = int(self.kind[row]), int(self.task[row]), int(self.place[row])
        words = [f"{self.time_s[row]:g}", WORDS[kind]]
        if task >= 0:
            words.append(str(problem.tasks.name[task]))
        if kind in (WAKE, SLEEP):
            words.append(str(problem.platform.server_name[place]))
        elif kind == PRICE:
            name = problem.platform.zones[place]
            curve = problem.prices.of(name).price
            words += [name] if curve is None else [name, f"{curve.at(self.time_s[row]):g}"]
        elif place >= 0:
            words.append(problem.platform.processor_name(place))
        return " ".join(words)


def events(problem: Problem, schedule: Schedule) -> Events:
    """List everything that happens in a schedule; cost n log n."""
    segments, tasks = schedule.segments, problem.tasks
    refused = np.flatnonzero(schedule.outcomes.status == REJECTED)
    server, on, at_s = switches_of(problem.platform, schedule.spans)
    woken, slept = (server[on], at_s[on]), (server[~on], at_s[~on])
    zones, changes_s = _price_changes(problem, schedule.makespan_s)
    nobody = np.full(len(tasks), -1)
    parts = [
        _part(FINISH, segments.end_s, segments.task, segments.processor),
        _part(SLEEP, slept[1], np.full(slept[1].size, -1), slept[0]),
        _part(PRICE, changes_s, np.full(zones.size, -1), zones),
        _part(ARRIVE, tasks.arrival_s, np.arange(len(tasks)), nobody),
        _part(REFUSE, tasks.arrival_s[refused], refused, nobody[refused]),
        _part(WAKE, woken[1], np.full(woken[1].size, -1), woken[0]),
        _part(START, segments.start_s, segments.task, segments.processor),
    ]
    time_s, kind, task, place = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((kind, time_s))
    whole = (column[order].astype(np.int64) for column in (kind, task, place))
    return Events(time_s[order], *whole)


def _price_changes(problem: Problem, until_s: float) -> tuple[Ints, Floats]:
    """Zones and times of every change of the actual price within (0, until_s]."""
    zones, times = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    for zone, name in enumerate(problem.platform.zones):
        curve = problem.prices.of(name).price
        if curve is not None:
            steps = curve.start_s[(curve.start_s > 0.0) & (curve.start_s <= until_s)]
            zones.append(np.full(steps.size, zone))
            times.append(steps)
    return np.concatenate(zones), np.concatenate(times)


def _part(kind: int, time_s: Floats, task: Ints, place: Ints) -> tuple[Floats, Ints, Ints, Ints]:
    return time_s, np.full(time_s.size, kind), task, place
