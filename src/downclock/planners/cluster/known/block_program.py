"""The optimum of small problems where a joule is always worth the same, by an integer program.

A block is a time in which a server is awake. It is named by the first of its jobs (in the order of
arrivals), so that no two names stand for one block; a job joins its own block or one of an earlier
job. A block lasts from before its jobs begin until they have ended, and holds no more work than
its processors can do. Whether its jobs can share its processors is left open, unless the program
also says which job follows which on a processor. Every valid schedule in which jobs run without a
pause is a solution, so no schedule costs less than the program's bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.cluster.known.hulls import Hulls, hulls
from downclock.planners.cluster.known.kernels.model import (
    Placement,
    Question,
    Records,
    new_placement,
)
from downclock.planners.cluster.known.places import closed
from downclock.planners.cluster.known.program import Program
from downclock.planners.cluster.known.question import KnownQuestion, lead_of, sizes_of
from downclock.planners.cluster.known.retime import in_turn
from downclock.units import Floats, Ints

UNIT_S = 3600.0
"""The program counts in hours, and in hundredths of the value of a plan."""

MOST_NODES = 2**31 - 1
"""The solver counts no more."""

SAFE = 2e-7
"""Relative tolerance of the solver that is taken off its bound."""


def block_bound(
    asked: KnownQuestion, value: float, *, nodes: int, chained: bool = False
) -> tuple[float, Placement | None]:
    """Least value of any schedule that does every job of the question, and a plan near it.

    Args:
        asked: the jobs, none of which may be interrupted; a joule is always worth the same.
        value: of a plan that exists: it is a solution of its own, so that there always is one, and
            the search for a better one is cut off there.
        nodes: of the search tree to look at, at most.
        chained: say which job follows which on a processor; for jobs of one processor only. There
            is a plan only then.
    """
    model = _Model.of(closed(asked).columns, value)
    chain = model.chain() if chained else None
    found = model.program.solve(nodes=min(nodes, MOST_NODES))
    least = found.mip_dual_bound
    bound = 0.0 if least is None else max(0.0, float(least) * model.scale * (1.0 - SAFE))
    if chain is None or found.x is None:
        return bound, None
    return bound, model.read(found.x, chain)


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Blocks (b,) and their possible members (m,), the first of a block being its name.

    Attributes:
        group, name: servers of a block, and the job that names it.
        block, job: of each member.
        leads: the member is the name of its block.
    """

    group: Ints
    name: Ints
    block: Ints
    job: Ints

    @property
    def leads(self) -> Ints:
        """Members that name their block (b,)."""
        return np.flatnonzero(self.name[self.block] == self.job)


@dataclass(frozen=True, slots=True, eq=False)
class _Ways:
    """Ways (w,) a member can run: corners of the hull of a kind's clocks."""

    member: Ints
    kind: Ints
    time_s: Floats
    energy_j: Floats
    whole: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Chain:
    """Columns of the start of each job (n,), and of one job following another (p,)."""

    start: Ints
    before: Ints
    after: Ints
    follows: Ints


@dataclass(slots=True)
class _Model:
    """The program with its columns by name."""

    program: Program
    question: Question
    lead: Records  # a server of each group
    blocks: _Blocks
    ways: _Ways
    end_s: float
    scale: float
    opened: Ints  # (b,)
    begin: Ints  # (b,)
    length: Ints  # (b,)
    joins: Ints  # (m,)
    runs: Ints  # (w,)
    given: Ints  # (1,) the plan that exists

    @classmethod
    def of(cls, question: Question, value: float) -> _Model:
        lead = lead_of(question)
        blocks = _blocks_of(question, lead)
        ways = _ways_of(question, lead, blocks, hulls(question, locked=True))
        end_s, scale = float(question.jobs.to_s.max()), value / 100.0
        program, servers = Program(), lead[blocks.group]
        rate = question.tariff[1 + 2 * servers.zone, 0] / scale
        length = program.columns(servers.up_w * rate * UNIT_S, end_s / UNIT_S)
        begin = program.columns(np.zeros(length.size), end_s / UNIT_S)
        opened = program.columns(servers.wake_j * rate, 1.0, whole=True)
        joins = program.columns(np.zeros(blocks.job.size), 1.0, whole=True)
        of = blocks.group[blocks.block[ways.member]]
        own_w = lead.shared_w[of] - question.kinds.idle_w[ways.kind]
        joules = ways.energy_j + own_w * ways.time_s
        gang = question.jobs.gang[blocks.job[ways.member]]
        runs = program.columns(gang * joules * rate[blocks.block[ways.member]], 1.0)
        program.whole[-1] = ways.whole
        given = program.columns(np.full(1, value / scale), 1.0, whole=True)
        columns = (opened, begin, length, joins, runs, given)
        model = cls(program, question, lead, blocks, ways, end_s, scale, *columns)
        model._members()
        model._times()
        model._begins_on(rate)
        model._sleep()
        cost = np.concatenate(program.cost)
        cut = program.rows(1, -np.inf, 100.0 * (1.0 + 1e-5))
        program.put(np.repeat(cut, cost.size), np.arange(cost.size), cost)
        return model

    def _members(self) -> None:
        """Every job joins one block that is open and runs in one way, or all are as given."""
        program, blocks, ways = self.program, self.blocks, self.ways
        once = program.rows(self.question.jobs.size, 1.0, 1.0)
        program.put(once[blocks.job[ways.member]], self.runs, 1.0)
        program.put(once, self.given, 1.0)
        once = program.rows(blocks.job.size, 0.0, 0.0)
        program.put(once[ways.member], self.runs, 1.0)
        program.put(once, self.joins, -1.0)
        most = np.full(blocks.job.size, np.inf)
        most[blocks.leads] = 0.0
        inside = program.rows(blocks.job.size, 0.0, most)
        program.put(inside, self.opened[blocks.block], 1.0)
        program.put(inside, self.joins, -1.0)

    def _times(self) -> None:
        """A block holds the windows of its members, and their work."""
        program, blocks, ways, question = self.program, self.blocks, self.ways, self.question
        count, length = blocks.job.size, self.length[blocks.block]
        begin, time_s = self.begin[blocks.block], ways.time_s / UNIT_S
        from_s, to_s = self._windows(blocks.job)
        lasts = program.rows(count, 0.0)
        program.put(lasts, length, 1.0)
        program.put(lasts[ways.member], self.runs, -time_s)
        ends = program.rows(count, 0.0)
        program.put(ends, length, 1.0)
        program.put(ends, begin, 1.0)
        program.put(ends[ways.member], self.runs, -time_s - from_s[ways.member])
        starts = program.rows(count, -self.end_s / UNIT_S)
        program.put(starts, begin, -1.0)
        late = self.end_s / UNIT_S - to_s[ways.member] + time_s
        program.put(starts[ways.member], self.runs, -late)
        self._with_name(from_s, to_s)
        sizes = sizes_of(question)[blocks.group]
        holds = program.rows(sizes.size, 0.0).reshape(sizes.shape)
        program.put(
            holds, np.repeat(self.length[:, None], sizes.shape[1], axis=1), sizes.astype(float)
        )
        block, gang = blocks.block[ways.member], question.jobs.gang[blocks.job[ways.member]]
        taken = np.minimum(gang, sizes[block, ways.kind])  # of a gang over servers: a whole one
        program.put(holds[block, ways.kind], self.runs, -taken * time_s)

    def _with_name(self, from_s: Floats, to_s: Floats) -> None:
        """A member that begins long after the block's name must end, or the reverse, spans both."""
        program, blocks, ways = self.program, self.blocks, self.ways
        leads = np.empty(blocks.name.size, np.int64)
        leads[blocks.block[blocks.leads]] = blocks.leads
        short = np.full(blocks.job.size, np.inf)
        np.minimum.at(short, ways.member, ways.time_s / UNIT_S)
        name = leads[blocks.block]
        time_s = ways.time_s / UNIT_S
        for gap in (from_s - to_s[name] + short[name], from_s[name] + short[name] - to_s):
            gap[blocks.leads] = 0.0
            apart = np.flatnonzero(gap + short > short[name])
            place = np.full(gap.size, -1)
            place[apart] = program.rows(apart.size, 0.0)
            program.put(place[apart], self.length[blocks.block[apart]], 1.0)
            mine = place[ways.member] >= 0
            value = -(time_s + gap[ways.member])[mine]
            program.put(place[ways.member[mine]], self.runs[mine], value)

    def _windows(self, job: Ints) -> tuple[Floats, Floats]:
        """Earliest start and latest end of members, in hours."""
        lead = self.lead[self.blocks.group[self.blocks.block]]
        ready_s = np.where(lead.begins_on, 0.0, lead.wake_s)
        from_s = np.maximum(self.question.jobs.from_s[job], ready_s)
        return from_s / UNIT_S, self.question.jobs.to_s[job] / UNIT_S

    def _begins_on(self, rate: Floats) -> None:
        """A block from time 0 on needs no wake on a server that begins on."""
        program, blocks, question = self.program, self.blocks, self.question
        on = np.flatnonzero(self.lead.begins_on[blocks.group])
        if not on.size:
            return
        wake_j = self.lead.wake_j[blocks.group[on]]
        early = program.columns(-wake_j * rate[on], 1.0, whole=True)
        rows = program.rows(on.size, 0.0)
        program.put(rows, self.opened[on], 1.0)
        program.put(rows, early, -1.0)
        rows = program.rows(on.size, -self.end_s / UNIT_S)
        program.put(rows, self.begin[on], -1.0)
        program.put(rows, early, -self.end_s / UNIT_S)
        count = question.groups.end - question.groups.first
        rows = program.rows(count.size, -count.astype(float))
        program.put(rows[blocks.group[on]], early, -1.0)

    def _sleep(self) -> None:
        """Until its last task a server that is neither awake nor waking sleeps."""
        program, blocks, lead = self.program, self.blocks, self.lead
        some = np.flatnonzero(lead.sleep_w > 0.0)
        if not some.size:
            return
        rate = self.question.tariff[1 + 2 * lead.zone[some], 0] / self.scale
        asleep = program.columns(lead.sleep_w[some] * rate * UNIT_S)
        last = program.columns(np.zeros(some.size), self.end_s / UNIT_S)
        place = np.full(lead.size, -1)
        place[some] = np.arange(some.size)
        mine = np.flatnonzero(place[blocks.group] >= 0)
        of = place[blocks.group[mine]]
        rows = program.rows(mine.size, 0.0)
        program.put(rows, last[of], 1.0)
        program.put(rows, self.begin[mine], -1.0)
        program.put(rows, self.length[mine], -1.0)
        rows = program.rows(some.size, 0.0)
        program.put(rows, asleep, 1.0)
        program.put(rows, last, -1.0)
        program.put(rows[of], self.length[mine], 1.0)
        program.put(rows[of], self.opened[mine], lead.wake_s[blocks.group[mine]] / UNIT_S)

    def chain(self) -> _Chain:
        """Say which job follows which on a processor of a block, and when each begins."""
        program, blocks, jobs = self.program, self.blocks, self.question.jobs
        start = program.columns(np.zeros(jobs.size), (self.end_s - jobs.shortest_s) / UNIT_S)
        rows = program.rows(jobs.size, jobs.from_s / UNIT_S)
        program.put(rows, start, 1.0)
        self._inside(start)
        enters = program.rows(jobs.size, 1.0, 1.0)
        first = program.columns(np.zeros(blocks.job.size), 1.0)
        program.put(enters[blocks.job], first, 1.0)
        program.put(enters, self.given, 1.0)
        rows = program.rows(blocks.job.size, 0.0)
        program.put(rows, self.joins, 1.0)
        program.put(rows, first, -1.0)
        sizes = sizes_of(self.question)
        rows = program.rows(blocks.name.size, 0.0)
        program.put(rows, self.opened, sizes.sum(axis=1)[blocks.group].astype(float))
        program.put(rows[blocks.block], first, -1.0)
        before, after = _followers(self.question)
        follows = program.columns(np.zeros(before.size), 1.0, whole=True)
        program.put(enters[after], follows, 1.0)
        leaves = program.rows(jobs.size, -1.0)
        program.put(leaves[before], follows, -1.0)
        self._in_turn(start, before, after, follows)
        self._together(before, after, follows)
        none = np.empty(0, np.int64)
        self._in_turn(start, self.question.before, _into(self.question), none)
        return _Chain(start, before, after, follows)

    def _inside(self, start: Ints) -> None:
        """Jobs begin and end within their blocks, and by their latest ends."""
        program, blocks, jobs = self.program, self.blocks, self.question.jobs
        end = self.end_s / UNIT_S
        rows = program.rows(blocks.job.size, -end)
        program.put(rows, start[blocks.job], 1.0)
        program.put(rows, self.begin[blocks.block], -1.0)
        program.put(rows, self.joins, -end)
        rows = program.rows(blocks.job.size, -end)
        program.put(rows, start[blocks.job], -1.0)
        program.put(rows, self.begin[blocks.block], 1.0)
        program.put(rows, self.length[blocks.block], 1.0)
        program.put(rows, self.joins, -end)
        program.put(rows[self.ways.member], self.runs, -self.ways.time_s / UNIT_S)
        rows = program.rows(jobs.size, -jobs.to_s / UNIT_S)
        program.put(rows, start, -1.0)
        self._put_lengths(rows, np.arange(jobs.size))

    def _put_lengths(self, rows: Ints, jobs: Ints) -> None:
        """Take run times of jobs off rows."""
        mine = self.blocks.job[self.ways.member]
        for row, job in zip(rows, jobs, strict=True):
            at = np.flatnonzero(mine == job)
            self.program.put(np.repeat(row, at.size), self.runs[at], -self.ways.time_s[at] / UNIT_S)

    def _in_turn(self, start: Ints, before: Ints, after: Ints, follows: Ints) -> None:
        """One job begins after another has ended, always or where it follows it."""
        program, jobs = self.program, self.question.jobs
        late_s = jobs.to_s[before] - jobs.from_s[after]
        slack = np.maximum(0.0, late_s) / UNIT_S if follows.size else np.zeros(before.size)
        binds = np.flatnonzero((slack > 0.0) | (follows.size == 0))
        rows = program.rows(binds.size, -slack[binds])
        program.put(rows, start[after[binds]], 1.0)
        program.put(rows, start[before[binds]], -1.0)
        self._put_lengths(rows, before[binds])
        if follows.size:
            program.put(rows, follows[binds], -slack[binds])

    def _together(self, before: Ints, after: Ints, follows: Ints) -> None:
        """A job follows only jobs of its own block."""
        program, blocks = self.program, self.blocks
        member = np.full((self.question.jobs.size, blocks.name.size), -1)
        member[blocks.job, blocks.block] = np.arange(blocks.job.size)
        for one, other in ((before, after), (after, before)):
            pair, block = np.nonzero(member[one] >= 0)
            rows = program.rows(pair.size, -1.0)
            program.put(rows, self.joins[member[one[pair], block]], -1.0)
            program.put(rows, follows[pair], -1.0)
            both = np.flatnonzero(member[other[pair], block] >= 0)
            joins = self.joins[member[other[pair[both]], block[both]]]
            program.put(rows[both], joins, 1.0)

    def read(self, x: Floats, chain: _Chain) -> Placement | None:
        """The plan; None where it is the given one, or servers are too few for its blocks."""
        question, blocks = self.question, self.blocks
        jobs, place = question.jobs, new_placement(question.jobs)
        held = self._servers(x)
        joins = np.flatnonzero((x[self.joins] > 0.5) & (held[blocks.block] >= 0))
        if joins.size < jobs.size:
            return None
        place.held[jobs.held_first[blocks.job[joins]]] = held[blocks.block[joins]]
        share, job = x[self.runs], blocks.job[self.ways.member]
        most = np.argsort(share, kind="stable")  # the last of a job is what it does most
        place.runs.kind[job[most]], place.runs["count"] = self.ways.kind[most], 1
        length_s = np.bincount(job, share * self.ways.time_s, jobs.size).astype(float)
        follows = x[chain.follows] > 0.5
        edges = question.before, _into(question)
        links = [
            np.append(a[follows], b)
            for a, b in zip((chain.before, chain.after), edges, strict=True)
        ]
        windows, ends = (question.jobs.from_s, question.jobs.to_s), (links[0], links[1])
        runs = in_turn(question, place.runs, windows, x[chain.start] * UNIT_S, length_s, ends)
        return None if runs is None else Placement(runs, place.held)

    def _servers(self, x: Floats) -> Ints:
        """A server for each block that is open (b,), first come first served; -1: none is free."""
        groups, held = self.question.groups, np.full(self.blocks.name.size, -1)
        free_s = np.zeros(self.question.servers.size)
        begin_s = x[self.begin] * UNIT_S
        for block in np.argsort(begin_s, kind="stable"):
            g = self.blocks.group[block]
            if x[self.opened[block]] > 0.5:
                mine = self.question.alike[groups[g].first : groups[g].end]
                first = mine[np.argmin(free_s[mine])]
                if free_s[first] <= begin_s[block] + 1.0:
                    held[block] = first
                    free_s[first] = (
                        begin_s[block] + x[self.length[block]] * UNIT_S + self.lead[g].wake_s
                    )
        return held


def _blocks_of(question: Question, lead: Records) -> _Blocks:
    """Blocks and members: jobs so far apart that a server would sleep between them share none."""
    jobs, sizes = question.jobs, sizes_of(question)
    order = np.argsort(jobs.from_s, kind="stable")
    group: list[int] = []
    name: list[int] = []
    block: list[int] = []
    member: list[int] = []
    for g, server in enumerate(lead):
        able = ((question.curve >= 0) & (sizes[g] > 0)).any(axis=1)
        saved_w = max(server.up_w - server.sleep_w, 1e-9)
        reach_s = jobs.to_s[order] + server.wake_s + server.wake_j / saved_w
        reach_s = np.maximum.accumulate(reach_s)
        apart = np.append(0, np.cumsum(jobs.from_s[order][1:] > reach_s[:-1]))
        for a in np.flatnonzero(able[order]):
            with_it = np.flatnonzero(able[order] & (apart == apart[a]))
            with_it = order[with_it[with_it >= a]]
            block += [len(group)] * with_it.size
            member += with_it.tolist()
            group.append(g)
            name.append(int(order[a]))
    return _Blocks(np.array(group), np.array(name), np.array(block), np.array(member))


def _ways_of(question: Question, lead: Records, blocks: _Blocks, hull: Hulls) -> _Ways:
    """Corners of every member on every kind of its servers, cut off at its window."""
    sizes = sizes_of(question)
    parts: list[tuple[int, int, Floats, Floats, bool]] = []
    for m, (block, job) in enumerate(zip(blocks.block, blocks.job, strict=True)):
        group, spec = blocks.group[block], question.jobs[job]
        ready_s = 0.0 if lead[group].begins_on else lead[group].wake_s
        room_s = spec.to_s - max(spec.from_s, ready_s)
        for k in np.flatnonzero((question.curve[job] >= 0) & (sizes[group] > 0)):
            curve = question.curve[job, k]
            part = slice(hull.first[curve], hull.first[curve + 1])
            time_s, energy_j = hull.time_s[part] * spec.scale, hull.energy_j[part] * spec.scale
            whole = not question.curves[curve].smooth
            cut = _cut(time_s, energy_j, room_s, whole)
            parts.append((m, int(k), *cut, whole))
    size = [each[2].size for each in parts]
    return _Ways(
        np.repeat([each[0] for each in parts], size),
        np.repeat([each[1] for each in parts], size),
        np.concatenate([each[2] for each in parts]),
        np.concatenate([each[3] for each in parts]),
        np.repeat([float(each[4]) for each in parts], size),
    )


def _cut(time_s: Floats, energy_j: Floats, room_s: float, whole: bool) -> tuple[Floats, Floats]:
    """Corners within a time; where clocks mix, the mix that just fits is one."""
    fits = time_s <= room_s * (1.0 + 1e-12)
    if fits.all() or whole or not fits.any():
        return time_s[fits], energy_j[fits]
    return np.append(time_s[fits], room_s), np.append(
        energy_j[fits], np.interp(room_s, time_s, energy_j)
    )


def _into(question: Question) -> Ints:
    """The job that each of ``Question.before`` is before."""
    jobs = question.jobs
    return np.repeat(np.arange(jobs.size), jobs.before_end - jobs.before_first)


def _followers(question: Question) -> tuple[Ints, Ints]:
    """Pairs of jobs of which the second can run after the first."""
    jobs = question.jobs
    soonest_s = (jobs.from_s + jobs.shortest_s)[:, None] + jobs.shortest_s
    can = soonest_s <= jobs.to_s * (1.0 + 1e-12)
    np.fill_diagonal(can, False)
    before, after = np.nonzero(can)
    return before, after
