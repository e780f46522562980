"""One run of a sweep: the problem is made, planned or simulated, judged, and told as one row."""

from __future__ import annotations

import hashlib
import platform as machines
import time
from dataclasses import asdict
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np

from downclock.engine.policy import Policy
from downclock.errors import DownclockError, InvalidInput, InvalidSchedule
from downclock.planners.catalog import policy, with_seed
from downclock.problem.files.files import load_problem
from downclock.problem.files.read_problem import read_problem
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.account.bill import Boundary
from downclock.schedule.schedule import REJECTED, Schedule
from downclock.simulate.chances import Chances
from downclock.simulate.simulate import simulate
from downclock.study.objective_value import ObjectiveValue, objective_or_none
from downclock.study.planned import Judge
from downclock.study.simulated import judged_runs
from downclock.study.sweep.grid import Pairs, Run
from downclock.workloads.generate import generate

DONE, REFUSED, FAILED = "done", "refused", "failed"
"""How a run ends: with its figures; the policy or the problem does not allow it; by an error."""

PROVENANCE = ("version", "machine", "seconds", "planning_s")
"""Columns that may differ between two runs of one sweep; all others may not."""


def run_one(run: Run) -> dict[str, Any]:
    """Do a run and return its row: how it ended, its figures, and where and how it was made."""
    begun_s = time.perf_counter()
    try:
        figures = {"status": DONE, "reason": None, **_figures(run)}
    except InvalidSchedule as error:
        figures = {"status": FAILED, "reason": _words(error)}
    except DownclockError as error:
        figures = {"status": REFUSED, "reason": _words(error)}
    except Exception as error:
        figures = {"status": FAILED, "reason": f"{type(error).__name__}: {_words(error)}"}
    return {
        "problem": run.problem,
        "policy": run.policy,
        "spec": run.spec,
        "seed": run.seed,
        **{k: "-".join(map(str, v)) if isinstance(v, tuple) else v for k, v in run.axes},
        **figures,
        "version": version("downclock"),
        "machine": f"{machines.node()} ({machines.machine()}, Python {machines.python_version()})",
        "seconds": round(time.perf_counter() - begun_s, 4),
    }


def _figures(run: Run) -> dict[str, Any]:
    chosen = policy(with_seed(run.spec, run.seed))
    drawn = any(name == "workload" for name, _ in run.source)
    where = run.source, run.content, run.seed if drawn else None
    judge = _judge(*where, run.boundary, run.objective)
    objection = chosen.objection(judge.problem)
    if objection is not None:
        raise InvalidInput(objection)
    if run.chances is not None:
        return _simulated(judge.problem, chosen, run)
    planned = judge.planned(chosen)
    row = {key: value for key, value in planned.record().items() if key != "policy"}
    return {**row, "ran": _ran(planned.schedule)}


def _simulated(problem: Problem, chosen: Policy, run: Run) -> dict[str, Any]:
    """Simulate; the figures are those of what happened, beside the energy that was promised."""
    done = simulate(problem, chosen, chances=Chances(**dict(run.chances or ())), seed=run.seed)
    judged = judged_runs([done], run.boundary)
    row = asdict(judged.rows[0])
    figures = {"total_j": row.pop("energy_j"), "promised_j": judged.promised_j}
    del row["seed"]
    objective = objective_or_none(run.objective)
    if objective is not None:
        bill = account(problem, done.realised, boundary=run.boundary)
        worth = ObjectiveValue.of(bill, objective, np.nan).record()
        figures |= {key: worth[key] for key in ("objective", "objective_unit", "objective_value")}
    return {**figures, "tasks": len(problem.tasks), **row, "ran": _ran(done.realised)}


@lru_cache(maxsize=2)
def _judge(
    source: Pairs,
    content: tuple[str, ...],
    seed: int | None,
    boundary: Boundary,
    objective: str | None,
) -> Judge:
    """The problem with its bounds, kept for the runs that follow: they are sorted by problem."""
    return Judge.of(made_problem(dict(source), seed), boundary, objective_or_none(objective))


def made_problem(source: dict[str, Any], seed: int | None) -> Problem:
    """Read or draw a problem."""
    given = dict(source)
    if "workload" in given:
        return generate(given.pop("workload"), seed=seed or 0, **given)
    if "file" in given:
        return read_problem(given["file"])
    return load_problem(given.pop("cluster"), given.pop("jobs"), **given)


def _ran(schedule: Schedule) -> str:
    """A short name of the set of tasks that were not turned away."""
    kept = np.packbits(schedule.outcomes.status != REJECTED)
    return hashlib.sha256(kept.tobytes()).hexdigest()[:12]


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
