"""Starts and run times chosen together by a linear program, as if prices were flat.

The search moves one job at a time; a server that could fall asleep sooner if all of its jobs ran a
little faster is beyond it. Here every job keeps its server, its processors and its neighbours on
them, and every server its awake times; what is left is convex where clocks are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.cluster.known.kernels.model import Board, Placement, Question, Records
from downclock.planners.cluster.known.kernels.spans import awake_times
from downclock.planners.cluster.known.program import Program
from downclock.planners.cluster.known.write import held_by
from downclock.problem.graph import Edges
from downclock.units import Floats, Ints

UNIT_S = 1000.0
"""The program counts in these: its tolerances are absolute."""

POINTS = 24
"""Run times of a job that the program mixes, at most."""


def retimed(question: Question, board: Board, job: Ints, processor: Ints) -> Placement | None:
    """Return the plan with better times, or None; (job, processor) has a row for each processor."""
    if not np.any(board.place.runs.kind >= 0):
        return None
    model = _Times.of(question, board, job, processor)
    found = model.program.solve()
    return None if found.x is None else model.read(found.x)


@dataclass(slots=True)
class _Times:
    """The program with its columns by name."""

    program: Program
    question: Question
    board: Board
    placed: Ints  # jobs
    links: tuple[Ints, Ints]  # (before, after) jobs on one processor or along an edge
    windows: tuple[Floats, Floats]  # (n,) earliest start and latest end of each job
    start: Ints  # (n,) column of each job's start
    first: Ints  # (n + 1,) run times of each job
    mixed: Ints  # columns of them
    time_s: Floats

    @classmethod
    def of(cls, question: Question, board: Board, job: Ints, processor: Ints) -> _Times:
        runs = board.place.runs
        placed = np.flatnonzero(runs.kind >= 0)
        program, count = Program(), runs.size
        start = np.full(count, -1)
        start[placed] = program.columns(np.zeros(placed.size))
        first, time_s, cost = _run_times(question, board, placed)
        mixed = program.columns(cost)
        links = _links(question, board, job, processor)
        windows = _windows(question, board)
        model = cls(program, question, board, placed, links, windows, start, first, mixed, time_s)
        once = program.rows(placed.size, 1.0, 1.0)
        program.put(once[np.searchsorted(placed, model._owner())], mixed, 1.0)
        from_s, to_s = windows
        model._between(np.full(placed.size, -1), placed, from_s[placed])
        bounded = placed[np.isfinite(to_s[placed])]
        model._between(bounded, np.full(bounded.size, -1), -to_s[bounded])
        model._between(*links, np.zeros(links[0].size))
        model._servers()
        return model

    def _owner(self) -> Ints:
        """Job of each run time."""
        return np.repeat(np.arange(self.first.size - 1), np.diff(self.first))

    def _between(self, before: Ints, after: Ints, gap_s: Floats) -> Ints:
        """Add rows: start of ``after`` - end of ``before`` >= gap; -1 stands for time 0."""
        program = self.program
        rows = program.rows(before.size, gap_s / UNIT_S)
        late, early = np.flatnonzero(after >= 0), np.flatnonzero(before >= 0)
        program.put(rows[late], self.start[after[late]], 1.0)
        program.put(rows[early], self.start[before[early]], -1.0)
        self._put_lengths(rows[early], before[early])
        return rows

    def _put_lengths(self, rows: Ints, jobs: Ints) -> None:
        """Take the run times of jobs off rows."""
        size = np.diff(self.first)[jobs]
        at = np.arange(size.sum()) + np.repeat(self.first[jobs] - (np.cumsum(size) - size), size)
        self.program.put(np.repeat(rows, size), self.mixed[at], -self.time_s[at] / UNIT_S)

    def _servers(self) -> None:
        """Awake times hold their jobs; a server sleeps and wakes between them."""
        question, program, runs = self.question, self.program, self.board.place.runs
        who, from_s, _ = awake_times(question, self.board)
        servers = question.servers[who]
        rate = question.tariff[1::2, 0][servers.zone]
        last = np.append(who[1:] != who[:-1], True)
        stays = servers.begins_on & (from_s == 0.0) & np.append(True, who[1:] != who[:-1])
        sleep = np.where(last, servers.sleep_w, 0.0)
        opens = program.columns(sleep * UNIT_S * rate, np.where(stays, 0.0, np.inf))
        awake_w = servers.up_w - servers.sleep_w + sleep
        lasts = program.columns(awake_w * UNIT_S * rate)
        ready = program.rows(
            who.size, np.where(stays | servers.begins_on, 0.0, servers.wake_s / UNIT_S)
        )
        program.put(ready, opens, 1.0)
        again = np.flatnonzero(~last)
        rows = program.rows(again.size, servers.wake_s[again] / UNIT_S)
        program.put(rows, opens[again + 1], 1.0)
        program.put(rows, opens[again], -1.0)
        program.put(rows, lasts[again], -1.0)
        job, server = held_by(question, self.board.place)
        order = np.lexsort((from_s, who))
        block = order[
            np.searchsorted(
                who[order] + 1j * from_s[order], server + 1j * runs.start_s[job], side="right"
            )
            - 1
        ]
        rows = self._between(np.full(job.size, -1), job, np.zeros(job.size))
        program.put(rows, opens[block], -1.0)
        rows = self._between(job, np.full(job.size, -1), np.zeros(job.size))
        program.put(rows, opens[block], 1.0)
        program.put(rows, lasts[block], 1.0)

    def read(self, x: Floats) -> Placement | None:
        """The plan, with times that keep to the last digit what the program keeps nearly."""
        question, runs = self.question, self.board.place.runs.copy()
        length_s = np.bincount(self._owner(), x[self.mixed] * self.time_s, runs.size).astype(float)
        start_s = np.zeros(runs.size)
        start_s[self.placed] = x[self.start[self.placed]] * UNIT_S
        runs = in_turn(question, runs, self.windows, start_s, length_s, self.links)
        return None if runs is None else Placement(runs, self.board.place.held)


def in_turn(
    question: Question,
    runs: Records,
    windows: tuple[Floats, Floats],
    start_s: Floats,
    length_s: Floats,
    links: tuple[Ints, Ints],
) -> Records | None:
    """Runs with times (n,) that keep what a program keeps nearly; None: one gets too short.

    Or jobs wait for each other: to a program one that takes next to no time takes none.

    Args:
        question: the jobs.
        runs: where they run; what is not placed stays so.
        windows: earliest starts and latest ends.
        start_s: wanted.
        length_s: wanted.
        links: (before, after) jobs, the second of which begins when the first has ended.
    """
    before: dict[int, list[int]] = {}
    for a, b in zip(*links, strict=True):
        before.setdefault(int(b), []).append(int(a))
    try:
        order = Edges(*links).order(runs.size)
    except InvalidInput:
        return None
    for job in order:
        if runs[job].kind < 0:
            continue
        spec, curve = question.jobs[job], question.curves[question.curve[job, runs[job].kind]]
        from_s, to_s = windows[0][job], windows[1][job]
        at_s = max([start_s[job], from_s, *(runs[i].end_s for i in before.get(int(job), ()))])
        runs[job].start_s, runs[job].end_s = at_s, min(at_s + length_s[job], to_s)
        shortest_s = question.entries[curve.first].time_s * spec.scale
        if runs[job].end_s - at_s < shortest_s * (1.0 - 1e-9):
            return None
    return runs


def _windows(question: Question, board: Board) -> tuple[Floats, Floats]:
    """Earliest starts and latest ends (n,): no job moves across a downtime of its servers."""
    runs, down = board.place.runs, question.down
    from_s, to_s = question.jobs.from_s.copy(), question.jobs.to_s.copy()
    for job, server in zip(*held_by(question, board.place), strict=True) if down.size else ():
        spec = question.servers[server]
        for gone_s, back_s in down[spec.down_first : spec.down_end]:
            if back_s <= runs.start_s[job]:
                from_s[job] = max(from_s[job], back_s)
            else:
                to_s[job] = min(to_s[job], gone_s)
    return from_s, to_s


def _links(question: Question, board: Board, job: Ints, processor: Ints) -> tuple[Ints, Ints]:
    """Jobs that follow each other: on a processor, or along an edge between placed jobs."""
    runs = board.place.runs
    order = np.lexsort((runs.start_s[job], processor))
    same = np.flatnonzero(np.diff(processor[order]) == 0)
    pairs = np.column_stack([job[order[same]], job[order[same + 1]]])
    into = np.repeat(np.arange(runs.size), question.jobs.before_end - question.jobs.before_first)
    edges = np.column_stack([question.before, into])
    edges = edges[(runs.kind[edges] >= 0).all(axis=1)]
    links = np.unique(np.concatenate([pairs, edges]).reshape(-1, 2), axis=0)
    return links[:, 0], links[:, 1]


def _run_times(question: Question, board: Board, placed: Ints) -> tuple[Ints, Floats, Floats]:
    """Run times each placed job may mix and their values; one where its clock is locked."""
    runs, jobs, rate = board.place.runs, question.jobs, question.tariff[1::2, 0]
    sizes = np.zeros(runs.size, np.int64)
    times, costs = [np.empty(0)], [np.empty(0)]
    for job in placed:
        run, scale = runs[job], jobs[job].scale
        curve = question.curves[question.curve[job, run.kind]]
        mine = question.entries[curve.first : curve.end]
        if curve.smooth:
            mine = _few(mine, (run.end_s - run.start_s) / scale)
        else:
            now = int(np.argmin(np.abs(mine.time_s * scale - (run.end_s - run.start_s))))
            mine = mine[now : now + 1]
        server = question.servers[board.place.held[jobs[job].held_first]]
        own_w = server.shared_w - question.kinds[run.kind].idle_w
        joules = mine.energy_j + server.shared_w_per_clock * mine.clock_s + own_w * mine.time_s
        times.append(mine.time_s * scale)
        costs.append(joules * scale * jobs[job].gang * rate[server.zone])
        sizes[job] = mine.size
    first = np.append(0, np.cumsum(sizes))
    return first, np.concatenate(times), np.concatenate(costs)


def _few(entries: Records, unit_s: float) -> Records:
    """Entries of a curve: all, or those next to a run time and some from everywhere."""
    if entries.size <= POINTS:
        return entries
    here = int(np.searchsorted(entries.time_s, unit_s))
    near = np.clip(np.arange(here - 4, here + 4), 0, entries.size - 1)
    far = np.linspace(0, entries.size - 1, POINTS - 8).astype(int)
    return entries[np.unique(np.append(near, far))]
