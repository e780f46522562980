"""What carrying out promises works on: promises, tasks, machines, the queue and the log."""

from __future__ import annotations

from typing import NamedTuple

from downclock.units import Floats, Ints

WAITING, FINISHED, LATE, LOST, ORPHAN = 0, 1, 2, 3, 4
"""How a task ends: not yet; done; done after its deadline; failed in every attempt; not run, as a
predecessor did not finish."""

TASK, ATTEMPT, PROCESSOR, ROW, GUEST, BEFORE = 0, 1, 2, 3, 4, 5
"""Rows of ``Log.numbers``; ROW is the promised segment it comes from, GUEST is 1 where it ran
elsewhere, at the fastest clock, BEFORE what was logged before it on its processor, -1: nothing."""

START_S, END_S, SHARE, ESTIMATE_S = 0, 1, 2, 3
"""Rows of ``Log.times``; ESTIMATE_S is how long it would take if estimates held."""

PLANNED_START_S, PLANNED_END_S, PLANNED_SHARE, WHOLE_S = 0, 1, 2, 3
"""Rows of ``Promises.times``; WHOLE_S is the estimated time of the whole task at the point."""

LEFT, BUSY_S, FINISH_S, TURN_S = 0, 1, 2, 3
"""Rows of ``Tasks.state``: part still to be done; end of its last segment; when it was done; when
its turn is, while it stands in the queue."""

STATUS, TRY, MARK, RESTARTED, AWAY = 0, 1, 2, 3, 4
"""Rows of ``Tasks.flags``: how it ends; number of the attempt; whether that has a segment; whether
it runs in one go, as it was lost before or has lost its place; whether it stands in the queue."""

LONGER = 0.1
"""What is overdue is believed to take this part of its run time so far longer."""

LOOK_AHEAD = 16
"""Promises of a processor after which a task that has lost its place looks for room."""


class Promises(NamedTuple):
    """Promised segments by start, a gang's rows side by side (m,)."""

    task: Ints
    processor: Ints
    size: Ints  # rows of the bundle that begins here; 0 inside a bundle
    last: Ints  # 1 where no later segment of the task follows
    times: Floats  # (4, m)


class Tasks(NamedTuple):
    """The tasks (n,), what is drawn for them, and what has become of them."""

    deadline_s: Floats
    work: Floats
    breaks: Floats  # (n, attempts) part of its work after which the attempt fails; 2: never
    first: Ints  # (n + 1,) predecessors of task i are before[first[i]:first[i + 1]]
    before: Ints
    fast_s: Floats  # (n, kinds) estimated time at the fastest clock; infinite: cannot run there
    movable: Ints  # (n,) 1 where it may move to another processor
    state: Floats  # (4, n)
    flags: Ints  # (5, n)


class Machines(NamedTuple):
    """The processors (p,) and when each is down: rows of ``down_s`` (start, usable again)."""

    free_s: Floats
    first: Ints  # (p + 1,)
    down_s: Floats  # (2, d)
    kind: Ints
    wake_s: Floats
    host: Ints  # 1 where it may take in tasks from elsewhere
    turn: Ints  # (p, 2) its promises are rows[turn[p, 0]:turn[p, 1]], the done ones left out
    rows: Ints
    logged: Ints  # what was logged last; -1: nothing


class Queue(NamedTuple):
    """Tasks that have lost their place, in no order: when their turn is, and their promise."""

    time_s: Floats  # (n,)
    row: Ints  # (n,)
    length: Ints  # (1,) what lies beyond is of no meaning


class Log(NamedTuple):
    """What really ran, and the real end of each promised row (minus infinity: it never ran)."""

    numbers: Ints  # (6, rows)
    times: Floats  # (4, rows)
    row_end_s: Floats  # (m,)
