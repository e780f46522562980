"""Facts as the kernels of our planner take them."""

from __future__ import annotations

import numpy as np

from downclock.engine.facts import (
    AMENDED,
    ARRIVED,
    CANCELLED,
    DOWN,
    FAILED,
    FINISHED,
    LOST,
    SERVER_DOWN,
    SERVER_UP,
    UP,
    Facts,
)
from downclock.planners.cluster.kernels.status import GONE
from downclock.planners.cluster.state import State
from downclock.units import Ints

_MACHINES = {DOWN: "GONE", UP: "RETURNED", SERVER_DOWN: "SERVER_GONE", SERVER_UP: "SERVER_BACK"}


def told_rows(state: State, facts: Facts, revoked: Ints) -> Ints:
    """Facts as the kernel takes them: what fails first, what is cut, then ends, by processor."""
    from downclock.planners.cluster.kernels import moment as kernel

    if not revoked.size and all(fact.code == ARRIVED for fact in facts.rows):
        return np.empty((0, 3), np.int64)
    cut = {fact.task for fact in facts.rows if fact.code == CANCELLED}
    shared = bool(state.board.tally["shared"][0])
    rows = [(kernel.AGAIN, task, -1) for task in sorted(set(revoked.tolist()) - cut)]
    for fact in facts.rows:
        if fact.code in (FINISHED, FAILED, LOST, CANCELLED):
            at = fact.place if fact.place >= 0 else _where(state, fact.task)
            if fact.code in (CANCELLED, FAILED) and not shared:
                state.board.tasks["status"][fact.task] = GONE
            if fact.code == CANCELLED or (fact.code == FAILED and shared):
                rows.append((kernel.CUT, fact.task, at))
            elif at >= 0 and not (fact.code == LOST and shared):
                rows.append((kernel.FREED, fact.task, at))
        if fact.code == LOST:
            rows.append((kernel.AGAIN, fact.task, -1))
        if fact.code == AMENDED and fact.task not in cut:
            rows.append((kernel.CHANGED, fact.task, -1))
        if fact.code in _MACHINES:
            rows.append((getattr(kernel, _MACHINES[fact.code]), -1, fact.place))
    if state.homeless.size:
        state.homeless = np.array([task for task in state.homeless if task not in cut], np.int64)
        if any(row[0] in (kernel.RETURNED, kernel.SERVER_BACK) for row in rows):
            rows += [(kernel.AGAIN, int(task), -1) for task in state.homeless]
            state.homeless = state.homeless[:0]
    rank = {kernel.GONE: 0, kernel.SERVER_GONE: 0, kernel.CUT: 1, kernel.FREED: 2}
    rows.sort(key=lambda row: (rank.get(row[0], 3), row[2], row[1]))
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def unbegun(state: State, facts: Facts) -> Ints:
    """Tasks that were to begin on a processor that fails now, when its server would be awake."""
    if not any(fact.code in (DOWN, SERVER_DOWN) for fact in facts.rows):
        return np.empty(0, np.int64)
    down, servers = facts.places(DOWN), facts.places(SERVER_DOWN)
    processors = state.board.processors
    hit = np.isin(processors["server"], servers)
    hit[down] = True
    ahead = hit & (processors["running"] >= 0) & (processors["begun_s"] > facts.now_s)
    return np.unique(processors["running"][ahead])


def _where(state: State, task: int) -> int:
    """Processor that a task runs on, or -1."""
    found = np.flatnonzero(state.board.processors["running"] == task)
    return int(found[0]) if found.size else -1
