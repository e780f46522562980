"""A lower bound that counts awake servers and wakes, by a linear program over bins of time.

For each group of equal servers and each bin: the seconds its servers are awake, how many of them
are awake at the bin's left edge, how many wake in it, and for each job the seconds it runs there.
Work buys run energy on the convex hull of its clocks. Awake seconds hold all run seconds, those of
any one job, and all of the bin for a server that is awake at its right edge and did not wake in it;
a job needs a server that is awake when its window begins or wakes within it; a server sleeps
whenever it is not awake before its last job. Servers are not awake while they are down, and draw
no more than caps allow on average over a bin. Runs may be split, paused and moved, gangs may be
spread over servers: every valid schedule is a solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.cluster.known.hulls import Hulls, hulls
from downclock.planners.cluster.known.kernels.model import Question
from downclock.planners.cluster.known.limited import add_caps, is_down_at, open_s
from downclock.planners.cluster.known.places import Pairs, counts_when
from downclock.planners.cluster.known.program import Program
from downclock.planners.cluster.known.question import KnownQuestion, lead_of, sizes_of
from downclock.units import Floats, Ints

MOST_PAIRS = 20_000
"""Of a job and a group of servers it may run on: more make programs that take minutes to solve."""

ROUNDS, GAIN = 8, 1e-3
"""Times the program is solved again with rows that were broken, while the bound rises so much."""

SAFE = 2e-7
"""Relative tolerance of the solver that is taken off its optimum."""


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Times and values of bins (h,): ``rate`` (zones, h) is the least value of a joule in each.

    The last bin may be open: tasks without a deadline run there as late as they like.
    """

    edge_s: Floats
    length_s: Floats
    rate: Floats


def bins_of(question: Question, count: int) -> Bins:
    """About ``count`` bins of equal length, with edges at steps of the price."""
    jobs, tariff = question.jobs, question.tariff
    finite = jobs.to_s[np.isfinite(jobs.to_s)]
    end_s = max(float(finite.max(initial=0.0)), float(jobs.from_s.max()) + 1.0)
    edge_s = np.linspace(0.0, end_s, count + 1)
    steps = tariff[0, 1:][tariff[0, 1:] < end_s]
    if 0 < steps.size <= 2 * count:
        near = np.abs(edge_s[:, None] - steps).min(axis=1) < 0.25 * end_s / count
        edge_s = np.unique(np.concatenate([edge_s[~near], steps, [0.0, end_s]]))
    length_s = np.diff(edge_s)
    if finite.size < jobs.size:
        edge_s, length_s = np.append(edge_s, np.inf), np.append(length_s, np.inf)
    return Bins(edge_s, length_s, least_rates(tariff, edge_s))


def least_rates(tariff: Floats, edge_s: Floats) -> Floats:
    """Least value of a joule between edges (zones, h)."""
    first = np.searchsorted(tariff[0], edge_s[:-1], side="right") - 1
    last = np.searchsorted(tariff[0], edge_s[1:], side="left") - 1
    return np.array(
        [
            [zone[max(0, a) : max(a, b) + 1].min() for a, b in zip(first, last, strict=True)]
            for zone in tariff[1::2]
        ]
    )


def bins_bound(asked: KnownQuestion, *, count: int = 96) -> float:
    """Least value of any schedule that does every job of the question, by so many bins."""
    question = asked.columns
    if asked.task.size == 0:
        return 0.0
    bins, hull = bins_of(question, count), hulls(question)
    pairs = Pairs.of(asked, hull)
    if np.unique(pairs.job).size < asked.task.size or pairs.job.size > MOST_PAIRS:
        return 0.0
    return _Model.of(question, bins, pairs, hull).bound()


@dataclass(slots=True)
class _Model:
    """The program with its columns by name."""

    program: Program
    question: Question
    bins: Bins
    pairs: Pairs
    pair: Ints  # (cells,) of each pair and bin that share time
    bin: Ints  # (cells,)
    awake: Ints  # (groups, bins) server-seconds awake
    run: Ints  # (cells,) processor-seconds

    @classmethod
    def of(cls, question: Question, bins: Bins, pairs: Pairs, hull: Hulls) -> _Model:
        program = Program()
        lead = lead_of(question)
        rate = bins.rate[lead.zone]
        counts = (question.groups.end - question.groups.first)[:, None]
        awake = program.columns(lead.up_w[:, None] * rate, open_s(question, bins.edge_s))
        gang = question.jobs.gang[pairs.job]
        room_s = np.minimum(pairs.to_s[:, None], bins.edge_s[1:])
        room_s -= np.maximum(pairs.from_s[:, None], bins.edge_s[:-1])
        pair, at = np.nonzero(room_s > 0.0)
        run = program.columns(np.zeros(pair.size), gang[pair] * room_s[pair, at])
        model = cls(program, question, bins, pairs, pair, at, awake, run)
        share = model._work(hull, rate)
        model._capacity()
        wakes = model._wakes(rate, counts, share)
        model._sleep(hull, rate, counts, share, wakes)
        return model

    def _work(self, hull: Hulls, rate: Floats) -> tuple[Ints, Ints]:
        """Every job is done; return the columns of work and the pair of each."""
        question, pairs, program = self.question, self.pairs, self.program
        pair, at, row = self.pair, self.bin, np.arange(self.pair.size)
        if not counts_when(question):
            pair, at, row = np.arange(pairs.job.size), np.zeros(pairs.job.size, np.int64), pair
        cell, of, time_s, joules = pairs.works(question, hull, pair)
        job, group = pairs.job[of], pairs.group[of]
        share = program.columns(joules * rate[group, at[cell]])
        linked = program.rows(pair.size, 0.0, 0.0)
        program.put(linked[cell], share, -question.jobs.gang[job] * time_s)
        program.put(linked[row], self.run, 1.0)
        once = program.rows(question.jobs.size, 1.0)
        program.put(once[job], share, 1.0)
        awake = (self.awake, self.bins.length_s, 1.0)
        add_caps(program, question, awake, (share, group, at[cell], joules))
        return share, of

    def _capacity(self) -> None:
        """Awake servers hold what runs on them."""
        pairs, program, bins = self.pairs, self.program, self.bins.length_s.size
        sizes = sizes_of(self.question)
        groups, kinds = sizes.shape
        holds = program.rows(groups * kinds * bins, 0.0).reshape(groups, kinds, bins)
        every = np.broadcast_to(self.awake[:, None, :], holds.shape)
        program.put(holds, every, np.broadcast_to(sizes[:, :, None], holds.shape).astype(float))
        program.put(holds[pairs.group[self.pair], pairs.kind[self.pair], self.bin], self.run, -1.0)

    def _wakes(self, rate: Floats, counts: Ints, share: tuple[Ints, Ints]) -> Ints:
        """Servers awake at edges and waking in bins; return the columns of wakes."""
        question, pairs, program, bins = self.question, self.pairs, self.program, self.bins
        lead = lead_of(question)
        groups, h = rate.shape
        early = np.maximum(
            0, np.searchsorted(bins.edge_s, bins.edge_s[:-1] - lead.wake_s.max()) - 1
        )
        least = np.array([[zone[a : b + 1].min() for b, a in enumerate(early)] for zone in rate])
        wakes = program.columns(lead.wake_j[:, None] * least)
        limit = np.repeat(counts, h + 1, axis=1).astype(float)
        limit[:, 0] = np.where(lead.begins_on, counts[:, 0], 0)
        limit[is_down_at(question, bins.edge_s)] = 0.0
        edge = program.columns(np.zeros((groups, h + 1)), limit)
        length = np.where(np.isfinite(bins.length_s), bins.length_s, 0.0)
        stays = program.rows(groups * h, 0.0).reshape(groups, h)
        program.put(stays, self.awake, 1.0)
        program.put(stays, edge[:, 1:], -length)
        program.put(stays, wakes, length)
        closed = np.flatnonzero(np.isfinite(bins.length_s))
        within = program.rows(groups * closed.size, 0.0).reshape(groups, -1)
        program.put(within, self.awake[:, closed], -1.0)
        program.put(within, edge[:, closed], bins.length_s[closed])
        program.put(within, wakes[:, closed], bins.length_s[closed])
        follows = program.rows(groups * h, 0.0).reshape(groups, h)
        program.put(follows, edge[:, :-1], 1.0)
        program.put(follows, wakes, 1.0)
        program.put(follows, edge[:, 1:], -1.0)
        # what a job does on a group is at most the servers there that are or become awake
        needs = program.rows(pairs.job.size, 0.0)
        program.put(needs[share[1]], share[0], -1.0)
        program.put(needs[self.pair], wakes[pairs.group[self.pair], self.bin], 1.0)
        first = np.append(True, self.pair[1:] != self.pair[:-1])
        begin = np.flatnonzero(first)
        program.put(
            needs[self.pair[begin]], edge[pairs.group[self.pair[begin]], self.bin[begin]], 1.0
        )
        return wakes

    def _sleep(
        self, hull: Hulls, rate: Floats, counts: Ints, share: tuple[Ints, Ints], wakes: Ints
    ) -> None:
        """A server sleeps before its last task whenever it is neither awake nor waking."""
        question, pairs, program, bins = self.question, self.pairs, self.program, self.bins
        lead = lead_of(question)
        if not np.any(lead.sleep_w > 0.0):
            return
        groups, h = rate.shape
        length = np.where(np.isfinite(bins.length_s), bins.length_s, 0.0)
        asleep = program.columns(lead.sleep_w[:, None] * rate)
        waking = program.columns(np.zeros((groups, h)))
        needed = program.columns(np.zeros((groups, h)), np.repeat(counts, h, axis=1))
        rows = program.rows(groups * h, 0.0).reshape(groups, h)
        for columns, value in ((asleep, 1.0), (self.awake, 1.0), (waking, 1.0), (needed, -length)):
            program.put(rows, columns, value)
        spent = program.rows(groups, 0.0)
        program.put(spent[:, None], wakes, lead.wake_s[:, None])
        program.put(spent[:, None], waking, -1.0)
        short_s = hull.time_s[hull.first[question.curve[pairs.job, pairs.kind]]]
        short_s = np.where(question.kinds.migrates[pairs.kind], 0.0, short_s)
        ends_s = question.jobs.from_s[pairs.job] + short_s * question.jobs.scale[pairs.job]
        before = np.searchsorted(bins.edge_s[1:], ends_s, side="right")
        held = np.flatnonzero(before > 0)
        rows = program.rows(held.size, 0.0)
        place = np.full(pairs.job.size, -1)
        place[held] = rows
        program.put(rows, needed[pairs.group[held], before[held] - 1], 1.0)
        mine = place[share[1]] >= 0
        program.put(place[share[1][mine]], share[0][mine], -1.0)
        falls = program.rows(groups * (h - 1), 0.0).reshape(groups, h - 1)
        program.put(falls, needed[:, :-1], 1.0)
        program.put(falls, needed[:, 1:], -1.0)

    def bound(self) -> float:
        """Solve; add rows of tasks that run longer in a bin than servers are awake there."""
        pairs, program = self.pairs, self.program
        gang = self.question.jobs.gang[pairs.job[self.pair]]
        awake = self.awake[pairs.group[self.pair], self.bin]
        added, least = np.zeros(self.pair.size, np.bool_), 0.0
        for _ in range(ROUNDS):
            found = program.solve()
            if found.x is None:
                break
            broken = found.x[self.run] > gang * found.x[awake] * (1.0 + 1e-6) + 1e-3
            cells, risen = np.flatnonzero(broken & ~added), float(found.fun) - least
            least = float(found.fun)
            if risen <= GAIN * least or not cells.size:
                break
            added[cells] = True
            rows = program.rows(cells.size, 0.0)
            program.put(rows, awake[cells], gang[cells].astype(float))
            program.put(rows, self.run[cells], -1.0)
        return max(0.0, least * (1.0 - SAFE))


def cells_per_bin(asked: KnownQuestion) -> float:
    """About how many cells (job, group of servers, kind, bin) a bin more makes."""
    question = asked.columns
    jobs = question.jobs
    end_s = jobs.to_s[np.isfinite(jobs.to_s)].max(initial=1.0)
    part = np.minimum((jobs.to_s - jobs.from_s) / end_s, 1.0)
    pairs = (question.curve[:, None, :] >= 0) & (sizes_of(question) > 0)
    return max(1e-9, float(part @ pairs.sum(axis=(1, 2))))
