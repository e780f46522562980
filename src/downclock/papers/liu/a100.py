"""One A100 with section 7's deadlines: measured times and powers instead of a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from downclock.engine.view import View
from downclock.papers.data import absent, data
from downclock.papers.liu import PAPER
from downclock.papers.mei2021.single_task import measured_a100
from downclock.papers.rows import Item, Row, Settings, estimate, not_run, ours_only
from downclock.planners.mapping.levels import TaskLevels, task_levels
from downclock.planners.mapping.replan import Replan
from downclock.power.fit import Fit
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.spread import UNIFORM, Spread
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.simulate.simulate import simulate
from downclock.workloads.liu import ACTUAL, LOAD_RANGE, MARGIN

LOADS = (1.0, 1.8, 2.6)
"""Sums of loads; deadlines lie so far apart that even 2.6 fits one processor."""


def jobs_on(found: Fit, load: float, seed: int) -> Problem:
    """Jobs of random applications with loads as in section 7, all at time 0.

    Estimates are worst cases, 1.2 times what was measured; actual times are 0.9 to 1 of that.
    """
    rng = np.random.default_rng([seed, 100])
    loads: list[float] = []
    while sum(loads) < load:
        loads.append(float(rng.uniform(*LOAD_RANGE)))
    loads[-1] = max(loads[-1] - (sum(loads) - load), 1e-3)
    application = rng.integers(len(found.library), size=len(loads))
    top = np.tile(found.clocks.default, (len(loads), 1))
    time_s, _ = found.library.at(application, "a100", top)
    kind = Kind("a100", found.clocks)
    server = ServerSpec("s", (("a100", 1),), initially_on=True)
    n = len(loads)
    low, high = (np.full(n, part / MARGIN) for part in ACTUAL)
    tasks = Tasks.of(
        application, scale=np.full(n, MARGIN), deadline_s=MARGIN * time_s / np.array(loads)
    )
    tasks = replace(tasks, spread=Spread(np.full(n, UNIFORM), low, high))
    return Problem(tasks, found.library, Platform.build((kind,), (server,)), name=f"a100-{seed}")


def in_time(problem: Problem, levels: TaskLevels, level: int) -> bool:
    """Tell whether one clock for all jobs meets every deadline in the worst case."""
    due_s = problem.tasks.deadline_s
    order = np.argsort(due_s, kind="stable")
    return bool(np.all(np.cumsum(levels.time_s[order, level]) <= due_s[order] * (1.0 + 1e-12)))


def one_set(problem: Problem, seed: int) -> tuple[float, float] | None:
    """Energy of the best common clock and of ours, as ratios to the top clock."""
    view = View(problem)
    view.tasks.add(problem.tasks, np.arange(len(problem.tasks)))
    levels = task_levels(view)[0]
    assert problem.tasks.spread is not None
    work = problem.tasks.spread.draw(seed)
    energy_j = work @ (levels.time_s * levels.power_w)
    fits = [k for k in range(energy_j.size) if in_time(problem, levels, k)]
    if energy_j.size - 1 not in fits:
        return None
    run = simulate(problem, Replan(looks=2e7), seed=seed)
    ours_j = account(problem, run.realised).energy_j["run"]
    return float(min(energy_j[fits]) / energy_j[-1]), float(ours_j / energy_j[-1])


def a100(settings: Settings) -> list[Row]:
    """Gross GPU energy relative to the top clock; run times vary as in section 7."""
    where, folder = (PAPER, "a100"), data("dvfs", "a100")
    if folder is None:
        return [not_run(where, "ours / top clock", None, "1", absent("dvfs/a100"))]
    found = measured_a100(folder)
    rows = []
    for load in LOADS:
        pairs = [one_set(jobs_on(found, load, seed), seed) for seed in settings.seeds]
        kept = np.array([pair for pair in pairs if pair is not None])
        worse = int(np.sum(kept[:, 1] > kept[:, 0] * (1.0 + 1e-9)))
        note = f"{len(kept)} sets, {worse} worse than their best common clock"
        for column, name in enumerate(("best common clock", "ours")):
            text = f"{name} / top clock, sum of loads {load:g}"
            rows.append(ours_only(where, text, estimate(list(kept[:, column])), "1", note))
    return rows


ITEMS = (Item("a100", "Measured A100 tables with section 7's deadlines", a100),)
