"""Laws of the simulator, over the catalogue's policies and generated problems."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from downclock.engine.play import plan
from downclock.engine.policy import Policy
from downclock.planners.catalog import CATALOG, policy
from downclock.planners.mapping.mapping import Rules
from downclock.planners.mapping.policy import LiuPolicy
from downclock.planners.mapping.queue import READINGS
from downclock.planners.mapping.replan import Replan
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, DOWN, FAILED, PENDING, REJECTED, Schedule
from downclock.schedule.verify.verify import verify
from downclock.simulate.chances import Chances
from downclock.simulate.simulate import Run, simulate
from tests.generated import random_problem
from tests.laws.test_conservation import sweep

LIU = [
    LiuPolicy("liu-static", Rules(scheme="static")),
    LiuPolicy("liu-dynamic", Rules(scheme="dynamic")),
    Replan(),
    Replan("replan:until=makespan", until="makespan", reserve=0.1),
]
WHOLE = ("graph", "least-cost")
"""Policies of whole task graphs; `test_graphs` has problems for them."""
POLICIES: list[Policy] = [
    *(policy(name) for name in CATALOG if name not in ("liu", "replan", "known", *WHOLE)),
    policy("known:effort=0.02"),
    *LIU,
]
ROUGH = Chances(
    actual="uniform:0.6:1.3", fail_jobs=0.1, fail_servers=0.3, fail_processors=0.1, repair_s=40.0
)
AGAIN = Chances(
    actual="uniform:0.5:1.2",
    fail_jobs=0.05,
    server_life="exponential:200",
    processor_life="weibull:150:1.5",
    repair_s=30.0,
)
"""Everything fails, and more than once."""


def problems(made: Policy, count: int, **knobs: object) -> list[Problem]:
    """Generated problems the policy does not object to."""
    found = []
    for seed in range(200):
        problem = random_problem(seed, deadlines=True, **knobs)
        if made.objection(problem) is None:
            found.append(problem)
        if len(found) == count:
            break
    return found


def tables(problem_kind: Policy) -> dict[str, object]:
    """Liu's schemes need enumerated clocks, no wake time, one kind of clock each."""
    if isinstance(problem_kind, LiuPolicy | Replan):
        return {
            "flavours": ("gpu-table", "cpu-table"),
            "wake_s": 0.0,
            "chip_wide": False,
            "slot_s": None,
            "edges": False,
            "tasks": 25,
        }
    return {"edges": False, "slot_s": None, "chip_wide": False, "tasks": 25}


def same(one: Schedule, other: Schedule) -> None:
    for name in ("segments", "spans", "outcomes"):
        for spec in fields(getattr(one, name)):
            a = getattr(getattr(one, name), spec.name)
            b = getattr(getattr(other, name), spec.name)
            assert np.array_equal(a, b), f"{name}.{spec.name}"


@pytest.mark.parametrize("made", POLICIES, ids=lambda made: made.name)
def test_a_noiseless_run_is_the_plan_bit_for_bit(made):
    found = problems(made, 5, **tables(made)) or problems(made, 3)
    assert found, "no generated problem suits this policy"
    for problem in found:
        run = simulate(problem, made)
        same(run.promised, plan(problem, made))
        same(run.realised, run.promised)


@pytest.mark.parametrize("made", POLICIES, ids=lambda made: made.name)
def test_whatever_fails_every_task_ends_once_and_both_schedules_are_valid(made):
    retried = downs = moved = 0
    for problem in problems(made, 4, **tables(made)):
        for seed in range(4):
            run = simulate(problem, made, chances=AGAIN if seed % 2 else ROUGH, seed=seed)
            promised, realised = verify(problem, run.promised), verify(problem, run.realised)
            assert promised.ok, promised
            assert realised.ok, realised
            status = run.realised.outcomes.status
            assert np.all(np.isin(status, (DONE, REJECTED, FAILED)))
            assert not np.any(status == PENDING)
            bill = account(problem, run.realised, boundary="makespan")
            swept = sum(map(sum, sweep(problem, run.realised, "makespan").parts))
            assert bill.total_j == pytest.approx(swept, rel=1e-9)
            retried += int(np.sum(run.realised.segments.attempt > 0))
            downs += int(np.sum(run.realised.spans.state == DOWN))
            moved += elsewhere(run)
    assert retried > 0
    assert downs > 0
    assert moved > 0 or made.name.startswith("known")  # a plan is carried out where it was made


def elsewhere(run: Run) -> int:
    """Segments on a processor that was not promised to their task."""
    promised, real = run.promised.segments, run.realised.segments
    pairs = set(zip(promised.task.tolist(), promised.processor.tolist(), strict=True))
    ran = zip(real.task.tolist(), real.processor.tolist(), strict=True)
    return sum(pair not in pairs for pair in ran)


@pytest.mark.parametrize("made", LIU, ids=lambda made: made.name)
def test_cutting_a_reactive_plan_changes_nothing(made):
    for problem in problems(made, 4, **tables(made)):
        whole = plan(problem, made)
        cut = plan(problem, made, stepwise=True)
        assert verify(problem, whole).ok
        same(replace(whole), cut)


@pytest.mark.parametrize(
    "made",
    [
        LiuPolicy("liu", Rules(reading=READINGS["safe"])),
        LiuPolicy("liu", Rules(reading=READINGS["safe-locked"])),
        Replan(),
        Replan(until="makespan"),
    ],
)
def test_accepted_jobs_are_never_late_while_run_times_stay_within_estimates(made):
    late = accepted = 0
    for problem in problems(made, 10, **tables(made)):
        run = simulate(problem, made, chances=Chances(actual="uniform:0.4:1"), seed=3)
        late += run.late.size
        accepted += len(problem.tasks) - run.rejected.size
    assert late == 0
    assert accepted > 100


def test_the_same_seed_gives_the_same_run():
    problem = problems(POLICIES[0], 1, **tables(POLICIES[0]))[0]
    one = simulate(problem, POLICIES[0], chances=ROUGH, seed=4)
    same(one.realised, simulate(problem, POLICIES[0], chances=ROUGH, seed=4).realised)
