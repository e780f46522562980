"""Plan a cluster whose tasks are all known: destroy and repair, from the plans of others on."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from downclock.kernels.compiling import at_once
from downclock.planners.cluster.known.bounds import is_small, prove
from downclock.planners.cluster.known.judge import Judged, judged
from downclock.planners.cluster.known.kernels.model import (
    Placement,
    Search,
    new_placement,
    new_search,
)
from downclock.planners.cluster.known.kernels.search import search_on
from downclock.planners.cluster.known.question import (
    KnownQuestion,
    ask,
    at_one_price,
    require_known,
)
from downclock.planners.cluster.known.write import held_by, placement_of, processors_of, written
from downclock.planners.portfolio import Progress
from downclock.planners.result import Result, Status, status_of
from downclock.problem.objective import ENERGY, Objective
from downclock.problem.problem import Problem
from downclock.schedule.schedule import Schedule
from downclock.schedule.verify.verify import verify
from downclock.units import Ints

NAME = "known"

TRIALS_PER_S, TRIALS_A_PAIR = 1_500_000, 1500
"""Places that a second of effort stands for, counted so that results repeat; few jobs need fewer,
as the square of their number."""

MOST_SEARCHES = 6
"""Searches of a small problem whose plans differ, at most."""

ROUNDS, MOST_RETIMED = 4, 1500
"""Times the search pauses to choose all times together, and the jobs up to which it does."""

SPARED, FEW = 4, 100
"""Servers without which the search tries to do in the end, at most, and the jobs up to which it
does, for as long as it took before: a server may be all that keeps it in a valley."""

WARM = 25_000
"""Places tried for each job from which on the search begins as hot as it may; less begins cooler,
as there is no time to cool down."""

SLICE, STEPS, PATIENCE, PLAIN = 20_000, 10, 40_000, 4_000
"""Places tried before somebody may interrupt, the fewest steps in which the search cools down,
places that are worth compiling for, and those that take a second where nothing is compiled."""


def _trials_a_second(jobs: int) -> int:
    return min(TRIALS_PER_S, TRIALS_A_PAIR * jobs * (jobs + 3))


def usual_effort(jobs: int) -> float:
    """A second where the search is compiled; else what it does in about as long without."""
    if getattr(search_on, "is_ready", False):
        return 1.0
    return min(1.0, PLAIN / (_trials_a_second(max(jobs, 1)) * (2 if jobs <= FEW else 1)))


def searches(jobs: int, effort: float) -> int:
    """How many searches fit into a second's effort, two at least."""
    fit = min(effort, 1.0) * TRIALS_PER_S / _trials_a_second(max(jobs, 1))
    return max(2, min(MOST_SEARCHES, int(fit)))


def solve_known(
    problem: Problem,
    objective: Objective = ENERGY,
    *,
    effort: float = 1.0,
    seed: int = 0,
    start: Iterable[Schedule] = (),
) -> Result:
    """Search as `search_known` does, and prove how good the plan is.

    The bound is on schedules that do the same tasks. Plan and bound see forecasts and count
    negative prices as 0.
    """
    best = search_known(problem, objective, effort=effort, seed=seed, start=start)
    proof = prove(problem, objective, best, effort)
    status: Status = "feasible" if proof.more else status_of(best.value, proof.bound)
    unit = "J" if objective == ENERGY else objective.unit(problem.prices.currency)
    return Result(best.schedule, best.value, proof.bound, status, best.schedule.policy, unit)


def search_known(
    problem: Problem,
    objective: Objective = ENERGY,
    *,
    effort: float = 1.0,
    seed: int = 0,
    start: Iterable[Schedule] = (),
    proof: float | None = None,
    progress: Progress | None = None,
) -> Judged:
    """Plan all tasks at once: as many as possible, then at the least value.

    Args:
        problem: tasks with arrivals, deadlines, edges and gangs on servers of any kinds.
        objective: what is to be least.
        effort: about seconds of search, less for few jobs; counted, so that plans repeat.
        seed: of the search.
        start: schedules of others to begin with; the answer is no worse than any valid one.
        proof: effort of the proof that may better a small plan; None: that of the search.
        progress: told how far the search is.

    Raises:
        InvalidInput: the problem is of another kind (see `objection`), or prices end too early.
    """
    require_known(problem, objective)
    asked = ask(problem, objective)
    given = [judged(problem, objective, each) for each in start if verify(problem, each).ok]
    search = Searching.of(problem, asked, seed)
    search.run([each.schedule for each in given], effort, progress)
    found = judged(problem, objective, search.schedule())
    if given and not verify(problem, found.schedule).ok:
        found = given[0]
    best = min([*given, found], key=lambda each: each.rank)
    proof = effort if proof is None else proof
    if is_small(problem, asked, proof) and np.all(best.done | asked.hopeless):
        better = prove(problem, objective, best, proof).better
        schedule = None if better is None else search.adopted(better)
        if schedule is not None and verify(problem, schedule).ok:
            best = min(best, judged(problem, objective, schedule), key=lambda each: each.rank)
    return best


class Searching:
    """A search and what it is about."""

    def __init__(self, problem: Problem, asked: KnownQuestion, search: Search, order: Ints) -> None:
        self.problem, self.asked, self.search, self.order = problem, asked, search, order

    @classmethod
    def of(cls, problem: Problem, asked: KnownQuestion, seed: int) -> Searching:
        """Nothing is placed."""
        jobs = asked.columns.jobs
        key = jobs.rank if asked.columns.before.size else jobs.to_s
        return cls(problem, asked, new_search(asked.columns, seed), np.argsort(key, kind="stable"))

    def run(self, given: list[Schedule], effort: float, progress: Progress | None) -> None:
        """Search from the given plans and one made job by job."""
        jobs = self.asked.task.size
        total = int(effort * _trials_a_second(jobs))
        rounds = 1 if total == 0 or self._level() is None else ROUNDS
        trials = total // rounds
        if not jobs:
            return
        with at_once() if total > PATIENCE else nullcontext():
            self._begin(new_placement(self.asked.columns.jobs))
            for each in given:
                self._begin(placement_of(self.problem, self.asked, each))
            self._rounds(trials, rounds, progress)
            spared = self._spared() if trials and jobs <= FEW else []
            for server in spared:
                self._spare(server, trials // len(spared), rounds, progress)
            self._begin(self.search.best)

    def _rounds(self, trials: int, rounds: int, progress: Progress | None) -> None:
        """Search, and choose all times together after each round."""
        for turn in range(rounds):
            self._round(trials, turn, rounds, progress)
            self._retime()

    def _spared(self) -> list[int]:
        """Servers that the plan might do without, those that run the least first.

        One of each group of equal ones; none where another of them runs nothing.
        """
        asked, runs = self.asked.columns, self.search.best.runs
        job, server = held_by(asked, self.search.best)
        part_s = (runs.end_s - runs.start_s) * asked.jobs.gang / np.maximum(runs["count"], 1)
        busy_s = np.bincount(server, part_s[job], asked.servers.size)
        groups = np.split(asked.alike, asked.groups.end[:-1])
        least = sorted(
            (float(busy_s[each].min()), int(each[busy_s[each].argmin()])) for each in groups
        )
        return [server for busy, server in least if busy > 0.0][:SPARED]

    def _spare(self, server: int, trials: int, rounds: int, progress: Progress | None) -> None:
        """Search on the cluster without a server, from the best plan on, less its jobs."""
        asked, place = self.asked.columns, self.search.best
        capacity, runs = asked.capacity.copy(), place.runs.copy()
        capacity[server] = 0
        job, held = held_by(asked, place)
        runs.kind[job[held == server]] = -1
        less = replace(self.asked, columns=asked._replace(capacity=capacity))
        seed = int(self.search.board.tally.luck[0]) + server
        other = Searching(self.problem, less, new_search(less.columns, seed), self.order)
        other._begin(Placement(runs, place.held))
        other._rounds(trials, rounds, progress)
        self._begin(other.search.best)

    def _round(self, trials: int, turn: int, rounds: int, progress: Progress | None) -> None:
        """Search from the best plan on, cooler from round to round; end with the best."""
        self._begin(self.search.best)
        step, in_all = max(1, min(SLICE, trials // STEPS)), rounds * trials
        warm = min(1.0, in_all / (WARM * self.asked.task.size)) ** 0.5
        for done in range(0, trials, step):
            so_far = turn * trials + done
            if progress is not None:
                progress("searching for a better plan", so_far, in_all)
            self._advance(min(step, trials - done), 1.0 - warm * (1.0 - so_far / in_all))
        self._begin(self.search.best)

    def schedule(self) -> Schedule:
        """The plan as it stands."""
        return written(self.problem, self.asked, self.search.board, NAME)

    def adopted(self, place: Placement) -> Schedule:
        """The best plan, after one that was given is looked at too."""
        self._begin(place)
        self._retime()
        self._begin(self.search.best)
        return self.schedule()

    def _begin(self, place: Placement) -> None:
        search_on(self.asked.columns, self.search, place, self.order, 0, 0.0)

    def _advance(self, trials: int, cooled: float) -> None:
        go_on = np.empty(0, np.int64)
        search_on(self.asked.columns, self.search, self.search.best, go_on, trials, cooled)

    def _level(self) -> KnownQuestion | None:
        """The question for which times can be chosen together; None where that is none.

        Then to pause would only mean to heat up again.
        """
        return at_one_price(self.asked) if self.asked.task.size <= MOST_RETIMED else None

    def _retime(self) -> None:
        """Choose all times together; what breaks a cap then does not become the best plan."""
        from downclock.planners.cluster.known.retime import retimed

        level = self._level()
        if level is None:
            return
        place = self.search.board.place
        rows = processors_of(self.problem, self.asked.columns, place, whole=True)
        better = retimed(level.columns, self.search.board, *rows)
        if better is not None:
            self._begin(better)
