"""A lower bound for jobs that run without a pause, by a linear program over starts.

Look at a schedule every so many seconds, from a first moment that is drawn: on average each job is
seen as often as it is long, each awake server as often as it is awake, and wakes in between are at
least what is awake more. A job is seen in a row of moments. So the average of all that can be seen
solves a program with a column for each first moment and number of moments of a job, in which what
is awake holds what is seen. Jobs that run in pieces are not bound by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from downclock.planners.cluster.known.hulls import Hulls, hulls
from downclock.planners.cluster.known.program import Program
from downclock.planners.cluster.known.question import KnownQuestion
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.known.kernels.model import Question, Records

STEPS_S = (300.0, 450.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0)
"""Seconds between two looks; the first that makes few enough columns is used."""

SAFE = 1e-6
"""Relative tolerance of the solver that is taken off its optimum."""


def start_bound(asked: KnownQuestion, *, columns: int) -> float:
    """Least value of any schedule that does every job of the question, none interrupted.

    Args:
        asked: the jobs, each with a deadline; a joule is always worth the same.
        columns: most columns of the program; 0 is returned where there would be more.
    """
    question, hull = asked.columns, hulls(asked.columns)
    pairs = _Pairs.of(question, hull)
    if np.unique(pairs.job).size < question.jobs.size or not np.all(
        np.isfinite(question.jobs.to_s)
    ):
        return 0.0
    for step_s in STEPS_S:
        if pairs.columns(step_s) <= columns:
            return _Model(question, hull, pairs, step_s).bound()
    return 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Every (job, group of equal servers, kind) that can be (p,), with its window and lengths."""

    job: Ints
    group: Ints
    kind: Ints
    from_s: Floats
    to_s: Floats
    short_s: Floats
    long_s: Floats

    @classmethod
    def of(cls, question: Question, hull: Hulls) -> _Pairs:
        jobs, sizes = question.jobs, sizes_of(question)
        many = (question.groups.end - question.groups.first)[:, None] * sizes
        enough = many[None] >= jobs.gang[:, None, None]
        job, group, kind = np.nonzero((question.curve[:, None, :] >= 0) & enough)
        lead = lead_of(question)[group]
        curve, scale = question.curve[job, kind], jobs.scale[job]
        from_s = np.maximum(jobs.from_s[job], np.where(lead.begins_on, 0.0, lead.wake_s))
        to_s, short_s = jobs.to_s[job], hull.time_s[hull.first[curve]] * scale
        long_s = np.minimum(hull.time_s[hull.first[curve + 1] - 1] * scale, to_s - from_s)
        fits = from_s + short_s <= to_s * (1.0 + 1e-9)
        columns = (job, group, kind, from_s, to_s, short_s, np.maximum(long_s, short_s))
        return cls(*(column[fits] for column in columns))

    def looks(self, step_s: float) -> tuple[Ints, Ints, Ints, Ints]:
        """First and end of each window in moments, and the least and most moments of a run."""
        first, end = np.floor(self.from_s / step_s), np.ceil(self.to_s / step_s)
        least, most = np.floor(self.short_s / step_s), np.ceil(self.long_s / step_s)
        found = (first, end, least, np.minimum(most, end - first))
        a, b, c, d = (each.astype(np.int64) for each in found)
        return a, b, c, d

    def columns(self, step_s: float) -> int:
        """How many ways to see a job there are."""
        first, end, least, most = self.looks(step_s)
        return int(np.sum((most - least + 1) * (end - first + 1 - (least + most) / 2)))


def lead_of(question: Question) -> Records:
    """A server of each group of equal ones."""
    return question.servers[question.alike[question.groups.first]]


def sizes_of(question: Question) -> Ints:
    """Processors of each kind on a server of each group (g, k)."""
    return np.asarray(question.capacity[question.alike[question.groups.first]])


class _Model:
    """The program."""

    def __init__(self, question: Question, hull: Hulls, pairs: _Pairs, step_s: float) -> None:
        self.question, self.pairs, self.step_s = question, pairs, step_s
        self.program, self.lead = Program(), lead_of(question)
        self.rate = question.tariff[1 + 2 * self.lead.zone, 0]
        moments = int(np.ceil(question.jobs.to_s.max() / step_s))
        counts = (question.groups.end - question.groups.first).astype(float)
        # a server sleeps before its last job whenever it is neither awake nor waking
        awake_w = self.lead.up_w - self.lead.sleep_w
        shape = np.ones((1, moments))
        self.awake = self.program.columns(
            (awake_w * self.rate * step_s)[:, None] * shape, counts[:, None] * shape
        )
        wakes = self._servers(counts)
        ways = self._runs(hull)
        self._hold(ways)
        self._wake_for(ways, wakes, np.where(self.lead.begins_on, counts, 0.0))

    def _servers(self, counts: Floats) -> Ints:
        """Awake servers were woken, and are needed until their last job; return the wakes."""
        program, lead, awake = self.program, self.lead, self.awake
        shape = np.ones((1, awake.shape[1]))
        wake_j = lead.wake_j - lead.sleep_w * lead.wake_s
        wakes = program.columns((wake_j * self.rate)[:, None] * shape)
        before = np.where(lead.begins_on, counts, 0.0)
        rows = program.rows(counts.size, -before)
        program.put(rows, wakes[:, 0], 1.0)
        program.put(rows, awake[:, 0], -1.0)
        rows = program.rows(awake[:, 1:].size, 0.0).reshape(awake[:, 1:].shape)
        for columns, value in ((wakes[:, 1:], 1.0), (awake[:, 1:], -1.0), (awake[:, :-1], 1.0)):
            program.put(rows, columns, value)
        if np.any(lead.sleep_w > 0.0):
            needed = program.columns((lead.sleep_w * self.rate * self.step_s)[:, None] * shape)
            for later in (awake, needed[:, 1:]):
                now = needed[:, : later.shape[1]]
                rows = program.rows(now.size, 0.0).reshape(now.shape)
                program.put(rows, now, 1.0)
                program.put(rows, later, -1.0)
        return wakes

    def _runs(self, hull: Hulls) -> Ints:
        """Every job is done, for as long as it is seen; return its ways to be seen (p, 2)."""
        question, pairs, program = self.question, self.pairs, self.program
        jobs, curve = question.jobs, question.curve[pairs.job, pairs.kind]
        size = np.diff(hull.first)[curve]
        pair = np.repeat(np.arange(curve.size), size)
        corner = np.arange(pair.size) + np.repeat(
            hull.first[curve] - (np.cumsum(size) - size), size
        )
        scale, gang = jobs.scale[pairs.job[pair]], jobs.gang[pairs.job[pair]]
        own_w = self.lead.shared_w[pairs.group] - question.kinds.idle_w[pairs.kind]
        time_s = hull.time_s[corner] * scale
        joules = hull.energy_j[corner] * scale + own_w[pair] * time_s
        share = program.columns(gang * joules * self.rate[pairs.group[pair]])
        once = program.rows(jobs.size, 1.0, 1.0)
        program.put(once[pairs.job[pair]], share, 1.0)
        same, long = program.rows(curve.size, 0.0, 0.0), program.rows(curve.size, 0.0, 0.0)
        program.put(same[pair], share, -1.0)
        program.put(long[pair], share, -time_s / self.step_s)
        ways = self._ways()
        seen = program.columns(np.zeros(len(ways)))
        program.put(same[ways[:, 0]], seen, 1.0)
        program.put(long[ways[:, 0]], seen, ways[:, 2].astype(float))
        return np.column_stack([ways, seen])

    def _ways(self) -> Ints:
        """Rows (pair, first moment, moments)."""
        found = []
        for p, (first, end, least, most) in enumerate(
            zip(*self.pairs.looks(self.step_s), strict=True)
        ):
            for count in range(least, most + 1):
                at = np.arange(first, end - count + 1) if count else np.array([first])
                found.append(np.column_stack([np.full(at.size, p), at, np.full(at.size, count)]))
        return np.concatenate(found).astype(np.int64)

    def _hold(self, ways: Ints) -> None:
        """What is awake holds each job that is seen, and all of them."""
        program, pairs, question = self.program, self.pairs, self.question
        groups, moments = self.awake.shape
        row = np.repeat(np.arange(len(ways)), ways[:, 2])
        begin = np.cumsum(ways[:, 2]) - ways[:, 2]
        moment = ways[row, 1] + np.arange(row.size) - begin[row]
        cells, cell = np.unique(ways[row, 0] * moments + moment, return_inverse=True)
        pair, at = np.divmod(cells, moments)
        there = program.columns(np.zeros(cells.size))
        rows = program.rows(cells.size, 0.0, 0.0)
        program.put(rows, there, -1.0)
        program.put(rows[cell], ways[row, 3], 1.0)
        sizes, gang = sizes_of(question), question.jobs.gang[pairs.job]
        size = sizes[pairs.group, pairs.kind]
        group, alone = pairs.group[pair], program.rows(cells.size, 0.0)
        program.put(alone, self.awake[group, at], 1.0)
        program.put(alone, there, -(-(-gang // size))[pair].astype(float))
        kinds = sizes.shape[1]
        holds = program.rows(groups * kinds * moments, 0.0).reshape(groups, kinds, moments)
        program.put(
            holds, np.repeat(self.awake[:, None], kinds, 1), sizes[:, :, None].astype(float)
        )
        program.put(holds[group, pairs.kind[pair], at], there, -gang[pair].astype(float))

    def _wake_for(self, ways: Ints, wakes: Ints, on: Floats) -> None:
        """A server of a job is awake when its window begins, or wakes within it."""
        program, pairs = self.program, self.pairs
        first, end, *_ = pairs.looks(self.step_s)
        early = first == 0
        rows = program.rows(first.size, np.where(early, -on[pairs.group], 0.0))
        program.put(rows[ways[:, 0]], ways[:, 3], -1.0)
        late = np.flatnonzero(~early)
        program.put(rows[late], self.awake[pairs.group[late], first[late] - 1], 1.0)
        size = end - first
        pair = np.repeat(np.arange(first.size), size)
        moment = np.arange(pair.size) + np.repeat(first - (np.cumsum(size) - size), size)
        program.put(rows[pair], wakes[pairs.group[pair], moment], 1.0)

    def bound(self) -> float:
        """Solve it."""
        if np.any(self.lead.wake_j < self.lead.sleep_w * self.lead.wake_s):
            return 0.0
        found = self.program.solve(interior=True)
        return 0.0 if found.x is None else max(0.0, float(found.fun) * (1.0 - SAFE))
