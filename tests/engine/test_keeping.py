"""Promises kept to the second, whatever happens."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

import downclock as dc
from downclock.engine.keeping import Keeping
from downclock.engine.play import plan, play
from downclock.engine.world import World
from downclock.planners.catalog import policy
from downclock.schedule.schedule import Schedule
from downclock.schedule.verify.verify import require_valid
from downclock.simulate.chances import Chances
from downclock.simulate.simulate import simulate
from downclock.workloads import mei

DAY = mei.online(5, utilisation=0.02, initial_utilisation=0.01)


def by_task(schedule: Schedule, name: str) -> np.ndarray:
    segments = schedule.segments
    column: np.ndarray = getattr(segments, name)
    return column[np.argsort(segments.task, kind="stable")]


@pytest.mark.parametrize("stepwise", [False, True])
@pytest.mark.parametrize("spec", ["race", "edl", "late", "prompt"])
def test_without_noise_it_is_the_plan(spec: str, stepwise: bool) -> None:
    kept = plan(DAY, Keeping(policy(spec)), stepwise=stepwise)
    for table in ("segments", "outcomes"):
        ours, promised = getattr(kept, table), getattr(plan(DAY, policy(spec)), table)
        for spec_ in fields(ours):
            one, other = getattr(ours, spec_.name), getattr(promised, spec_.name)
            if table == "segments":
                one, other = by_task(kept, spec_.name), by_task(plan(DAY, policy(spec)), spec_.name)
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("spec", ["race", "edl", "late"])
def test_what_ends_early_lets_nothing_start_sooner(spec: str) -> None:
    promised = plan(DAY, policy(spec))
    half = np.full(len(DAY.tasks), 0.5)
    kept = play(DAY, Keeping(policy(spec)), World(DAY, half)).schedule
    require_valid(DAY, kept)
    np.testing.assert_array_equal(by_task(kept, "start_s"), by_task(promised, "start_s"))
    assert np.all(by_task(kept, "end_s") < by_task(promised, "end_s"))
    free = play(DAY, policy(spec), World(DAY, half)).schedule
    assert np.any(by_task(free, "start_s") < by_task(kept, "start_s"))


@pytest.mark.parametrize("spec", ["edl", "late", "edl:slot=60"])
def test_what_is_lost_begins_again_and_everything_ends_once(spec: str) -> None:
    chances = Chances("uniform:0.8:1.2", 0.2, fail_servers=0.5, repair_s=600.0)
    run = simulate(DAY, Keeping(policy(spec)), chances=chances, seed=3)
    require_valid(DAY, run.realised)
    assert np.any(run.realised.segments.attempt > 0)
    assert run.done.size + run.failed.size + run.rejected.size == len(DAY.tasks)


@pytest.mark.parametrize("spec", ["race", "edl", "bin", "late", "prompt", "thrifty"])
def test_a_server_that_was_on_stays_on_until_a_longer_job_is_done(spec: str) -> None:
    """Beside one that idles from the start: what sleeps is said when it sleeps, not afterwards."""
    library = dc.built_in_library("a100")
    gpu = dc.Kind.of(library, "a100", idle_w=50.0)
    server = dc.ServerSpec("s", (("a100", 1),), count=2, host_w=100.0, initially_on=True)
    tasks = dc.Tasks.of(
        ["dgemm", "dgemm"], library=library, scale=[100.0, 1.0], arrival_s=[0.0, 5e5],
        deadline_s=[1e6, 1e6],
    )  # fmt: skip
    problem = dc.Problem(tasks, library, dc.Platform.build([gpu], [server]))
    if spec == "thrifty":
        flat = dc.ZonePrices(price=dc.Curve.constant(0.1))
        problem = replace(problem, prices=dc.Prices((("default", flat),)))
    kept = play(problem, Keeping(policy(spec)), World(problem, np.array([1.3, 1.3]))).schedule
    require_valid(problem, kept)
