"""Replanning: the cheapest processor and level for every job, found anew whenever something ends.

Where liu maps by load and slows whole processors, this plans energy: each job gets its own level,
never below the one where it costs least (power while waiting counted), assignments included.
It is a local search, begun again at every arrival and completion. Deadlines hold for worst cases,
so accepted jobs are never late while run times stay within them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from downclock.engine.decisions import Decisions
from downclock.engine.facts import AMENDED, CHANGES, Facts
from downclock.engine.policy import Columns, MomentByMoment
from downclock.engine.view import View
from downclock.planners.mapping.kernels.search import Options, lateness_and_cost, search
from downclock.planners.mapping.levels import TaskLevels, learn, objection_to_levels, task_levels
from downclock.planners.mapping.running import IDLE, Told, decided, still_running, told_of
from downclock.problem.problem import Problem
from downclock.problem.spread import LOGNORMAL, UNIFORM
from downclock.units import Floats, Ints

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
class Roster:
    """All accepted jobs, and what each processor runs, at which level."""

    kind: list[int]
    preempts: list[bool]
    locks: list[bool]
    idle_w: list[float]
    on_w: float
    levels: list[TaskLevels]
    runs: list[tuple[int, int]]
    up: list[bool]
    now_s: float = 0.0
    held: dict[int, Held] = field(default_factory=dict)
    menus: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    began: bool = False


@dataclass(frozen=True, slots=True)
class Replan(MomentByMoment):
    """Energy-aware mapping with replanning.

    Attributes:
        name: name in the catalogue.
        until: energy boundary.
        looks: job times looked at in one search: it ends after that, and exchanges pairs only
            where a pass of them costs no more. Large sets keep the levels they were accepted at.
        reserve: part of the time to each deadline that plans leave free where they can, so that
            tight jobs that come later find room.
    """

    name: str = "replan"
    until: Until = "horizon"
    looks: float = 2e6
    reserve: float = 0.0

    heeds: ClassVar[frozenset[int]] = CHANGES

    def objection(self, problem: Problem) -> str | None:
        """Independent tasks on few processors, each with its own clock."""
        if problem.platform.processor_count > MOST_PROCESSORS:
            return f"this policy plans anew at every event; at most {MOST_PROCESSORS} processors"
        if len(problem.tasks) > MOST_TASKS:
            return f"this policy plans anew at every event; at most {MOST_TASKS:,} tasks"
        return objection_to_levels(problem)

    def start(self, view: View) -> Roster:
        """No jobs."""
        platform = view.platform
        kinds, idle_w = platform.kinds, platform.idle_w
        return Roster(
            kind=platform.kind.tolist(),
            preempts=[kinds[k].interrupt in ("preempt", "migrate") for k in platform.kind],
            locks=[kinds[k].clock == "locked" for k in platform.kind],
            idle_w=idle_w.tolist(),
            on_w=float(idle_w.sum() + platform.host_w.sum()) if self.until == "makespan" else 0.0,
            levels=task_levels(view),
            runs=[(IDLE, 0)] * platform.processor_count,
            up=[True] * platform.processor_count,
        )

    def decide(self, state: Roster, view: View, facts: Facts) -> tuple[Roster, Decisions]:
        """Take note, find room for what arrived, plan the rest anew."""
        told = told_of(view, facts)
        learn(state.levels, view, np.array(told.arrived, dtype=np.int64))
        _advance(state, told)
        for task in facts.tasks(AMENDED).tolist():
            if task in state.held:
                state.held[task].deadline_s = float(view.tasks.deadline_s[task])
        refused = self._admit(state, view, told)
        if state.held:
            self._improve(state)
        before, state.runs = state.runs, _orders(state)
        answer = decided(
            view, state, told, before, refused, left=lambda _, task: state.held[task].left
        )
        return state, answer

    def saved(self, state: Roster) -> Columns:
        """Jobs and processors as columns."""
        jobs = [
            (job.task, job.deadline_s, job.hoped, job.left, job.processor, job.level, job.begun)
            for job in state.held.values()
        ]
        processors = [(up, *run) for up, run in zip(state.up, state.runs, strict=True)]
        return {
            "jobs": np.array(jobs, dtype=np.float64).reshape(-1, 7),
            "processors": np.array(processors, dtype=np.int64).reshape(-1, 3),
            "moment": np.array([state.now_s, state.began], dtype=np.float64),
        }

    def restored(self, view: View, columns: Columns) -> Roster:
        """Fill the roster again."""
        state = self.start(view)
        for task, due_s, hoped, left, p, level, begun in columns["jobs"].tolist():
            state.held[int(task)] = Held(
                int(task), due_s, hoped, left, int(p), int(level), bool(begun)
            )
        for p, (up, *run) in enumerate(columns["processors"].tolist()):
            state.up[p], state.runs[p] = bool(up), (run[0], run[1])
        state.now_s, state.began = float(columns["moment"][0]), bool(columns["moment"][1])
        return state

    def _admit(self, state: Roster, view: View, told: Told) -> list[int]:
        """Accept what can be promised beside all that was: by deadline, one by one if need be."""
        deadline_s = view.tasks.deadline_s
        refused = []
        places = _candidates(state)
        for task in sorted(told.arrived, key=lambda task: (deadline_s[task], task)):
            before = {j: (job.processor, job.level) for j, job in state.held.items()}
            state.held[task] = Held(task, float(deadline_s[task]), _hoped_work(view, task))
            if not (_menu(state, state.held[task], places) and self._fits(state, task)):
                del state.held[task]
                for j, (processor, level) in before.items():
                    state.held[j].processor, state.held[j].level = processor, level
                refused.append(task)
        return refused

    def _fits(self, state: Roster, task: int) -> bool:
        """Place a new job: where it costs least beside the others as planned, else by search."""
        trial = _Trial(state, 0.0)
        fits = trial.insert(task)
        if not fits and len(state.held) <= OPEN_JOBS:
            fits = trial.search(0.0, self.looks) <= 1e-9
        if fits:
            trial.keep(state)
        return fits

    def _improve(self, state: Roster) -> None:
        """Search for less energy, leaving the reserve where that is possible."""
        for reserve in dict.fromkeys((self.reserve, 0.0)):
            trial = _Trial(state, reserve)
            if trial.search(state.on_w, self.looks) <= 1e-9 or reserve == 0.0:
                trial.keep(state)
                return


def _advance(state: Roster, told: Told) -> None:
    """Let running jobs get on, then drop, restart or take back what was told."""
    for p, (task, level) in enumerate(state.runs):
        if task != IDLE:
            job = state.held[task]
            whole_s = state.levels[state.kind[p]].time_s[task, level]
            job.left = max(job.left - (told.now_s - state.now_s) / float(whole_s), 0.0)
    state.now_s = told.now_s
    for task in (*told.finished, *told.ended):
        state.held.pop(task, None)
    for task in told.lost:
        state.held[task].left, state.held[task].begun = 1.0, False
    state.runs = still_running(state.runs, told)
    for p in told.down:
        state.up[p] = False
    for p in told.up:
        state.up[p] = True
    if told.down or told.up:
        state.menus.clear()


def _hoped_work(view: View, task: int) -> float:
    """Work to expect of a task, at most its estimate: what its spread says on average."""
    spread = view.tasks.spread
    if spread is None:
        return 1.0
    shape, a, b = spread.shape[task], float(spread.a[task]), float(spread.b[task])
    mean = 0.5 * (a + b) if shape == UNIFORM else 1.0
    return min(a * float(np.exp(0.5 * b**2)) if shape == LOGNORMAL else mean, 1.0)


def _candidates(state: Roster) -> list[int]:
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


def _menu(state: Roster, job: Held, places: list[int]) -> list[int]:
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


def _worthwhile(state: Roster, p: int, task: int) -> list[int]:
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
    """One planning attempt: jobs by deadline, their ``entry`` codes and these as options."""

    def __init__(self, state: Roster, reserve: float) -> None:
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
        due_s = np.array([job.deadline_s for job in jobs]) - state.now_s
        running = {task for p, (task, _) in enumerate(state.runs) if not state.preempts[p]}
        first = np.searchsorted(self.owner, np.arange(len(jobs) + 1)).astype(np.int64)
        leads = np.array([job.task in running for job in jobs], dtype=np.int64)
        processor, amounts = self.entry // 1000, self._amounts(state)
        self.options = Options(first, processor, amounts, due_s * (1.0 - reserve), leads)
        self.choice = self._present()

    def _amounts(self, state: Roster) -> Floats:
        """Worst-case time, cost and time to expect of every entry (3, e)."""
        place, level = self.entry // 1000, self.entry % 1000
        left = np.array([job.left for job in self.jobs])[self.owner]
        task = np.array([job.task for job in self.jobs])[self.owner]
        kind = np.array(state.kind)[place]
        time_s, power_w = np.empty(self.entry.size), np.empty(self.entry.size)
        for k, levels in enumerate(state.levels):
            mine = kind == k
            time_s[mine] = levels.time_s[task[mine], level[mine]]
            power_w[mine] = levels.power_w[task[mine], level[mine]]
        spared = 1.0 - np.array([job.hoped for job in self.jobs])[self.owner]
        hoped = np.maximum(left - spared, 0.0)
        hoped_s = time_s * np.where(hoped > 0.0, hoped, left)
        cost_j = hoped_s * (power_w - np.array(state.idle_w)[place])
        return np.array([time_s * left, cost_j, hoped_s])

    def _menu(self, i: int) -> range:
        """Entries of a job."""
        return range(*self.options.first[i : i + 2].tolist())

    def _present(self) -> Ints:
        """The present plan as entries; a job without one takes its fastest."""
        choice = np.empty(len(self.jobs), dtype=np.int64)
        for i, job in enumerate(self.jobs):
            mine = self._menu(i)
            code = job.processor * 1000 + job.level
            same = [e for e in mine if self.entry[e] == code] if len(mine) > 1 else mine
            choice[i] = same[0] if same else min(mine, key=lambda e: self.options.amount[0, e])
        return choice

    def insert(self, task: int) -> bool:
        """Try every option of one job beside the present plan; keep the cheapest in time."""
        i = next(i for i, job in enumerate(self.jobs) if job.task == task)
        best, kept, work = np.inf, -1, np.zeros((2, self.processors))
        for e in self._menu(i):
            self.choice[i] = e
            late, cost = lateness_and_cost(self.options, self.choice, self.on_w, work)
            if late <= 1e-9 and cost < best:
                best, kept = cost, e
        if kept >= 0:
            self.choice[i] = kept
        return kept >= 0

    def search(self, on_w: float, most: float) -> float:
        """Improve the present plan; return how late it is in all."""
        one = self.entry.size * len(self.jobs)
        pairs, passes = int(self.entry.size * one <= most), min(50, int(most / one))
        return float(search(self.options, self.choice, on_w, self.processors, pairs, passes)[0])

    def keep(self, state: Roster) -> None:
        """Write the plan into the book."""
        for i, job in enumerate(self.jobs):
            code = int(self.entry[self.choice[i]])
            state.held[job.task].processor, state.held[job.task].level = code // 1000, code % 1000


def _orders(state: Roster) -> list[tuple[int, int]]:
    """Every processor runs its job with the earliest deadline; what cannot be put back goes on."""
    waiting: list[list[Held]] = [[] for _ in state.kind]
    for job in state.held.values():
        waiting[job.processor].append(job)
    rows = []
    for p, jobs in enumerate(waiting):
        next_one = state.runs[p][0] if not state.preempts[p] else IDLE
        if next_one == IDLE and jobs:
            next_one = min(jobs, key=lambda job: (job.deadline_s, job.task)).task
        task = next_one if state.up[p] else IDLE
        if task != IDLE:
            state.held[task].begun = True
        rows.append((task, state.held[task].level if task != IDLE else 0))
    return rows
