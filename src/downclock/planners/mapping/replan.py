"""Replanning: the cheapest processor and level for every job, found anew whenever something ends.

Where liu maps by load and slows whole processors, this plans energy: each job gets its own level,
never below the one where it costs least (power while waiting counted), assignments included.
Small sets are solved exactly (`planners.mapping.exact`), others by local search; at every arrival
and completion the rest is searched again. Deadlines hold for worst cases, so accepted jobs are
never late while run times stay within them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from downclock.engine.policy import Decisions, View
from downclock.planners.mapping.levels import Levels, levels_of, objection_to_levels
from downclock.planners.mapping.policy import refusal
from downclock.planners.mapping.reacting import (
    IDLE,
    Facts,
    Orders,
    Planning,
    run_planning,
    start_planning,
)
from downclock.problem.problem import Problem
from downclock.problem.spread import LOGNORMAL, UNIFORM
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.mapping.kernels.search import Options

Until: TypeAlias = Literal["horizon", "makespan"]
"""Energy boundary: servers stay on for a fixed time, or until the last job is done."""


MOST_PROCESSORS = 256
"""Larger platforms are for the list policies."""

MOST_TASKS = 2000
"""Above this a plan takes minutes."""

CANDIDATES = 4
"""Processors of each kind that a plan looks at for a job, besides the one it has."""


OPEN_JOBS = 48
"""Jobs with the earliest deadlines that a plan may change; later ones wait for their turn."""


@dataclass(slots=True)
class Held:
    """An accepted job: part left in the worst case, where it goes, at which level.

    ``hoped`` is the work to expect, as a part of the worst case; only costs use it.
    """

    task: int
    deadline_s: float
    hoped: float = 1.0
    left: float = 1.0
    processor: int = -1
    level: int = -1
    begun: bool = False


@dataclass(slots=True)
class Book:
    """All accepted jobs, and what each processor runs."""

    kind: list[int]
    preempts: list[bool]
    locks: list[bool]
    idle_w: list[float]
    on_w: float
    levels: list[Levels]
    running: list[int]
    up: list[bool]
    now_s: float = 0.0
    held: dict[int, Held] = field(default_factory=dict)
    menus: dict[tuple[int, int], list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Replan:
    """Energy-aware mapping with replanning.

    Attributes:
        name: name in the catalogue.
        until: energy boundary.
        exact: jobs up to which the first plan is solved exactly; 0: never.
        effort: job times looked at in one search: it ends after that, and exchanges pairs only
            where a pass of them costs no more. Large sets keep the levels they were accepted at.
        reserve: part of the time to each deadline that plans leave free where they can, so that
            tight jobs that come later find room.
        limit_s: time for an exact solution.
    """

    name: str = "replan"
    until: Until = "horizon"
    exact: int = 0
    effort: float = 2e6
    reserve: float = 0.0
    limit_s: float = 5.0

    def objection(self, problem: Problem) -> str | None:
        """Independent tasks on few processors, each with its own clock."""
        if problem.platform.processor_count > MOST_PROCESSORS:
            return f"this policy plans anew at every event; at most {MOST_PROCESSORS} processors"
        if len(problem.tasks) > MOST_TASKS:
            return f"this policy plans anew at every event; at most {MOST_TASKS:,} tasks"
        return objection_to_levels(problem)

    def begin(self, view: View) -> Book:
        """No jobs."""
        platform = view.problem.platform
        kinds = platform.kinds
        idle_w = platform.idle_w
        return Book(
            platform.kind.tolist(),
            [kinds[k].interrupt in ("preempt", "migrate") for k in platform.kind],
            [kinds[k].clock == "locked" for k in platform.kind],
            idle_w.tolist(),
            float(idle_w.sum() + platform.host_w.sum()) if self.until == "makespan" else 0.0,
            [levels_of(view, k) for k in range(len(kinds))],
            [IDLE] * platform.processor_count,
            [True] * platform.processor_count,
        )

    def react(self, state: Book, view: View, facts: Facts) -> Orders:
        """Take note, find room for what arrived, plan the rest anew."""
        _advance(state, facts)
        refused = self._admit(state, view, facts)
        if state.held:
            self._improve(state, first=facts.now_s == 0.0)
        return Orders(_orders(state), [(task, refusal(view, task)) for task in refused])

    def start(self, view: View) -> Planning:
        """State of a plan at time 0."""
        return start_planning(self, view)

    def run(
        self, state: Planning, view: View, arrived: Ints, until_s: float
    ) -> tuple[Planning, Decisions]:
        """Plan with run times as estimated."""
        return run_planning(self, state, view, arrived, until_s)

    def _admit(self, state: Book, view: View, facts: Facts) -> list[int]:
        """Accept what can be promised beside all that was: by deadline, one by one if need be."""
        deadline_s = view.problem.tasks.deadline_s
        hoped = view.once("hoped work", lambda: _hoped_work(view.problem))
        refused = []
        places = _candidates(state)
        for task in sorted(facts.arrived, key=lambda task: (deadline_s[task], task)):
            before = {j: (job.processor, job.level) for j, job in state.held.items()}
            state.held[task] = Held(task, float(deadline_s[task]), float(hoped[task]))
            if not (_menu(state, state.held[task], places) and self._fits(state, task)):
                del state.held[task]
                for j, (processor, level) in before.items():
                    state.held[j].processor, state.held[j].level = processor, level
                refused.append(task)
        return refused

    def _fits(self, state: Book, task: int) -> bool:
        """Place a new job: where it costs least beside the others as planned, else by search."""
        trial = _Trial(state, 0.0)
        fits = trial.insert(task)
        if not fits and len(state.held) <= OPEN_JOBS:
            fits = trial.search(0.0, self.effort) <= 1e-9
        if fits:
            trial.keep(state)
        return fits

    def _improve(self, state: Book, first: bool) -> None:
        """Search for less energy, leaving the reserve where that is possible."""
        if first and len(state.held) <= self.exact:
            trial = _Trial(state, self.reserve)
            if trial.solve(self.limit_s):
                trial.keep(state)
                return
        for reserve in dict.fromkeys((self.reserve, 0.0)):
            trial = _Trial(state, reserve)
            if trial.search(state.on_w, self.effort) <= 1e-9 or reserve == 0.0:
                trial.keep(state)
                return


def _advance(state: Book, facts: Facts) -> None:
    """Let running jobs get on, then drop, restart or take back what facts say."""
    for p, task in enumerate(state.running):
        if task != IDLE:
            job = state.held[task]
            whole_s = state.levels[state.kind[p]].time_s[task, job.level]
            job.left = max(job.left - (facts.now_s - state.now_s) / float(whole_s), 0.0)
    state.now_s = facts.now_s
    for task in (*facts.finished, *facts.failed):
        del state.held[task]
    for task in facts.lost:
        state.held[task].left, state.held[task].begun = 1.0, False
    gone = {*facts.finished, *facts.failed, *facts.lost}
    state.running = [IDLE if task in gone else task for task in state.running]
    for p in facts.down:
        state.up[p] = False
    for p in facts.up:
        state.up[p] = True
    if facts.down or facts.up:
        state.menus.clear()


def _hoped_work(problem: Problem) -> Floats:
    """Work to expect of each task, at most its estimate: what its spread says on average."""
    spread = problem.tasks.spread
    if spread is None:
        return np.ones(len(problem.tasks))
    mean = np.where(spread.shape == UNIFORM, 0.5 * (spread.a + spread.b), 1.0)
    mean = np.where(spread.shape == LOGNORMAL, spread.a * np.exp(0.5 * spread.b**2), mean)
    return np.asarray(np.minimum(mean, 1.0))


def _candidates(state: Book) -> list[int]:
    """Processors worth a try: of each kind those with the least work; the rest are like them."""
    work_s = [0.0] * len(state.kind)
    for job in state.held.values():
        if job.processor >= 0:
            times = state.levels[state.kind[job.processor]].time_s
            work_s[job.processor] += job.left * float(times[job.task, job.level])
    kept: dict[int, list[int]] = {}
    for p in sorted(range(len(work_s)), key=lambda p: (work_s[p], p)):
        mine = kept.setdefault(state.kind[p], [])
        if state.up[p] and len(mine) < CANDIDATES:
            mine.append(p)
    return sorted(p for mine in kept.values() for p in mine)


def _menu(state: Book, job: Held, places: list[int]) -> list[int]:
    """Options of a job, as processor * 1000 + level: not slower and dearer than another."""
    found: list[int] = []
    if job.begun:
        places = [job.processor]
    elif job.processor >= 0 and job.processor not in places and state.up[job.processor]:
        places = [*places, job.processor]
    for p in places:
        if job.begun and state.locks[p]:
            return [p * 1000 + job.level]
        found += [p * 1000 + level for level in _worthwhile(state, p, job.task)]
    return found


def _worthwhile(state: Book, p: int, task: int) -> list[int]:
    """Levels that no faster one beats in energy above idle: the critical level is the floor."""
    key = (p, task)
    if key not in state.menus:
        levels = state.levels[state.kind[p]]
        time_s, power_w = levels.time_s[task], levels.power_w[task]
        kept: list[int] = []
        least = np.inf
        for level in np.argsort(time_s, kind="stable"):
            extra = state.on_w if len(state.kind) == 1 else 0.0
            energy = float(time_s[level] * (power_w[level] - state.idle_w[p] + extra))
            if np.isfinite(energy) and energy < least:
                least = energy
                kept.append(int(level))
        state.menus[key] = kept
    return state.menus[key]


class _Trial:
    """One planning attempt: jobs by deadline and their options as columns."""

    def __init__(self, state: Book, reserve: float) -> None:
        jobs = sorted(state.held.values(), key=lambda job: (job.deadline_s, job.task))
        places = _candidates(state)
        menus = [
            (_menu(state, job, places) if i < OPEN_JOBS or job.processor < 0 else [])
            or [job.processor * 1000 + job.level]
            for i, job in enumerate(jobs)
        ]
        self.jobs, self.processors, self.on_w = jobs, len(state.kind), state.on_w
        self.entry = np.array([entry for menu in menus for entry in menu], dtype=np.int64)
        self.owner = np.repeat(np.arange(len(jobs)), [len(menu) for menu in menus])
        self.first = np.searchsorted(self.owner, np.arange(len(jobs) + 1)).astype(np.int64)
        self.place, level = self.entry // 1000, self.entry % 1000
        left = np.array([job.left for job in jobs])[self.owner]
        task = np.array([job.task for job in jobs])[self.owner]
        kind = np.array(state.kind)[self.place]
        time_s, power_w = np.empty(self.entry.size), np.empty(self.entry.size)
        for k, levels in enumerate(state.levels):
            mine = kind == k
            time_s[mine] = levels.time_s[task[mine], level[mine]]
            power_w[mine] = levels.power_w[task[mine], level[mine]]
        self.time_s = time_s * left
        hoped = np.maximum(left - (1.0 - np.array([job.hoped for job in jobs])[self.owner]), 0.0)
        self.hoped_s = time_s * np.where(hoped > 0.0, hoped, left)
        self.cost_j = self.hoped_s * (power_w - np.array(state.idle_w)[self.place])
        due_s = np.array([job.deadline_s for job in jobs]) - state.now_s
        self.due_s = due_s * (1.0 - reserve)
        running = {task for p, task in enumerate(state.running) if not state.preempts[p]}
        self.leads = np.array([job.task in running for job in jobs])
        self.choice = self._present()

    def _present(self) -> Ints:
        """The present plan as entries; a job without one takes its fastest."""
        choice = np.empty(len(self.jobs), dtype=np.int64)
        for i, job in enumerate(self.jobs):
            mine = range(self.first[i], self.first[i + 1])
            code = job.processor * 1000 + job.level
            same = [e for e in mine if self.entry[e] == code] if len(mine) > 1 else mine
            choice[i] = same[0] if same else min(mine, key=lambda e: self.time_s[e])
        return choice

    def _options(self) -> Options:
        from downclock.planners.mapping.kernels.search import Options

        amount = np.array([self.time_s, self.cost_j, self.hoped_s])
        leads = self.leads.astype(np.int64)
        return Options(self.first, self.place, amount, self.due_s, leads)

    def insert(self, task: int) -> bool:
        """Try every option of one job beside the present plan; keep the cheapest in time."""
        from downclock.planners.mapping.kernels.search import lateness_and_cost

        i = next(i for i, job in enumerate(self.jobs) if job.task == task)
        options, work = self._options(), np.zeros((2, self.processors))
        best, kept = np.inf, -1
        for e in range(self.first[i], self.first[i + 1]):
            self.choice[i] = e
            late, cost = lateness_and_cost(options, self.choice, self.on_w, work)
            if late <= 1e-9 and cost < best:
                best, kept = cost, e
        if kept >= 0:
            self.choice[i] = kept
        return kept >= 0

    def search(self, on_w: float, most: float) -> float:
        """Improve the present plan; return how late it is in all."""
        from downclock.planners.mapping.kernels.search import search

        one = self.entry.size * len(self.jobs)
        pairs, passes = int(self.entry.size * one <= most), min(50, int(most / one))
        late, _ = search(self._options(), self.choice, on_w, self.processors, pairs, passes)
        return float(late)

    def solve(self, limit_s: float) -> bool:
        """Solve exactly; tell whether that found a plan."""
        from downclock.planners.mapping.exact import Choices, solve_mapping

        choices = Choices(
            self.owner,
            self.place,
            self.time_s,
            self.cost_j,
            self.due_s,
            self.leads,
            self.processors,
            self.on_w,
        )
        found = solve_mapping(choices, limit_s=limit_s)
        if found.status in ("optimal", "feasible"):
            self.choice = found.entry
            return True
        return False

    def keep(self, state: Book) -> None:
        """Write the plan into the book."""
        for i, job in enumerate(self.jobs):
            code = int(self.entry[self.choice[i]])
            state.held[job.task].processor, state.held[job.task].level = code // 1000, code % 1000


def _orders(state: Book) -> list[tuple[int, int, int]]:
    """Every processor runs its job with the earliest deadline; what cannot be put back goes on."""
    waiting: list[list[Held]] = [[] for _ in state.kind]
    for job in state.held.values():
        waiting[job.processor].append(job)
    rows = []
    for p, jobs in enumerate(waiting):
        kept = state.running[p] if not state.preempts[p] else IDLE
        if not state.up[p]:
            task = IDLE
        elif kept != IDLE:
            task = kept
        else:
            task = min(jobs, key=lambda job: (job.deadline_s, job.task)).task if jobs else IDLE
        state.running[p] = task
        if task != IDLE:
            state.held[task].begun = True
        rows.append((p, task, state.held[task].level if task != IDLE else 0))
    return rows
