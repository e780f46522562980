"""Machines that fail, again and again, and jobs that move away from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.facts import SERVER_DOWN, SERVER_UP
from downclock.engine.play import play
from downclock.errors import InvalidInput
from downclock.planners.catalog import policy
from downclock.power.library import Library
from downclock.power.points import ClockTable
from downclock.power.profiles import MeasuredProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, FAILED, ON, WAKING, Schedule
from downclock.schedule.verify.verify import require_valid
from downclock.simulate import chances as drawing
from downclock.simulate.chances import NEVER, Chances, Fate, Life, draw_fate
from downclock.simulate.drawn import drawn_world

CLOCKS = ClockTable(np.array([500.0, 1000.0]), np.array([1000.0]), 1000.0, 1000.0)


def cluster(
    servers: tuple[ServerSpec, ...], jobs: int, deadline_s: float = 1000.0, slow: float = 2.0
) -> Problem:
    """Jobs of 100 s at 50 W on a GPU (200 s at 20 W at half the clock), ``slow`` times that on a
    CPU; both idle at 10 W.
    """
    core, ones, offset = np.array([0.5, 1.0]), np.ones(2), np.array([0, 2])
    time_s, power_w = np.array([200.0, 100.0]), np.array([20.0, 50.0])
    groups = tuple(
        MeasuredProfiles(offset, core, ones, time_s * factor, power_w) for factor in (1.0, slow)
    )
    library = Library(
        np.array(["app"], dtype=object), ("gpu", "cpu"), groups,
        np.array([[0, 1]]), np.zeros((1, 2), dtype=np.int64),
    )  # fmt: skip
    kinds = (Kind("gpu", CLOCKS, 10.0), Kind("cpu", CLOCKS, 10.0))
    tasks = Tasks.of(np.zeros(jobs, dtype=np.int64), deadline_s=np.full(jobs, deadline_s))
    return Problem(tasks, library, Platform.build(kinds, servers))


def failing(
    jobs: int, *, server: dict[int, float] | None = None, processor: dict[int, float] | None = None
) -> Fate:
    """Machines that go down at given times for 500 s."""
    lists = [(np.array(list(d or {}), dtype=np.int64), np.array(list((d or {}).values()))) for d in
             (server, processor)]  # fmt: skip
    return Fate(np.ones(jobs), np.full((jobs, 4), NEVER), *lists[0], *lists[1], 500.0)


def run(problem: Problem, fate: Fate, retries: int = 3) -> Schedule:
    world = drawn_world(problem, fate)
    realised = play(problem, policy("race"), world, retries=retries).schedule
    require_valid(problem, realised)
    return realised


TWO_GPUS = (ServerSpec("s", (("gpu", 2),), initially_on=True),)


def test_a_failed_gpu_leaves_the_others_of_its_server_running_and_its_job_moves_to_one():
    problem = cluster(TWO_GPUS, jobs=2)
    real = run(problem, failing(2, processor={0: 30.0}))
    s = real.segments
    rows = sorted(
        zip(
            s.task.tolist(), s.attempt.tolist(), s.processor.tolist(), s.start_s, s.end_s,
            strict=True,
        )
    )  # fmt: skip
    lost, kept = (0, 1) if s.processor[s.task == 0][0] == 0 else (1, 0)
    assert rows == sorted(
        [(lost, 0, 0, 0.0, 30.0), (lost, 1, 1, 100.0, 200.0), (kept, 0, 1, 0.0, 100.0)]
    )
    assert real.outcomes.status.tolist() == [DONE, DONE]
    assert not np.any(real.spans.state == 3), "the server itself was never down"
    bill = account(problem, real, boundary="makespan")
    assert bill.energy_j["run"] == pytest.approx(50.0 * 230.0)
    assert bill.energy_j["idle"] == pytest.approx(10.0 * (400.0 - 230.0))


def test_a_job_moves_to_another_kind_where_that_still_makes_it_at_its_fastest_clock():
    servers = (
        ServerSpec("g", (("gpu", 1),), initially_on=True),
        ServerSpec("c", (("cpu", 1),), initially_on=True),
    )
    real = run(cluster(servers, jobs=1, deadline_s=240.0), failing(1, server={0: 30.0}))
    assert real.segments.processor.tolist() == [0, 1]
    assert real.segments.end_s.tolist() == [30.0, 230.0]
    assert real.segments.core.tolist() == [1.0, 1.0]
    assert real.outcomes.status.tolist() == [DONE]


def test_where_nothing_makes_it_the_job_runs_where_it_ends_first_and_fails_with_its_history():
    servers = (
        ServerSpec("g", (("gpu", 1),), initially_on=True),
        ServerSpec("c", (("cpu", 1),), initially_on=True),
    )
    real = run(cluster(servers, jobs=1, deadline_s=220.0), failing(1, server={0: 30.0}))
    assert real.segments.processor.tolist() == [0, 1]
    assert real.segments.end_s.tolist() == [30.0, 230.0]
    assert real.outcomes.status.tolist() == [FAILED]
    assert real.outcomes.reason[0] == (
        "done at 230 s, after its deadline 220 s; lost 1 attempt, at 30 s"
    )


def test_a_sleeping_server_wakes_for_a_job_that_lost_its_own():
    spec = {"wake_j": 20.0, "wake_s": 5.0}
    servers = tuple(ServerSpec(name, (("gpu", 1),), **spec) for name in "ab")
    real = run(cluster(servers, jobs=1), failing(1, server={0: 30.0}))
    assert real.segments.processor.tolist() == [0, 1]
    assert real.segments.start_s.tolist() == [5.0, 35.0]
    mine = real.spans.server == 1
    assert real.spans.state[mine].tolist() == [WAKING, ON]
    assert real.spans.start_s[mine].tolist() == [30.0, 35.0]
    assert real.spans.end_s[mine].tolist() == [35.0, 135.0]


def test_a_job_moves_only_where_no_promise_is_broken():
    """Both GPUs have two jobs of 100 s; what GPU 0 loses runs after the last promise of GPU 1."""
    real = run(cluster(TWO_GPUS, jobs=4), failing(4, processor={0: 30.0}))
    mine = np.flatnonzero(real.segments.processor == 1)
    order = mine[np.argsort(real.segments.start_s[mine])]
    assert real.segments.start_s[order].tolist() == [0.0, 100.0, 200.0, 300.0]
    assert np.all(real.outcomes.status == DONE)


def test_a_machine_fails_again_and_again():
    """A life of 900 s and a repair of 100 s: ten failures in 10,000 s, whatever the shape."""
    problem = cluster((ServerSpec("s", (("gpu", 2),), count=200),), jobs=1, deadline_s=1e4)
    for life in ("exponential:900", "weibull:900:2"):
        fate = draw_fate(problem, Chances(server_life=life, repair_s=100.0), 1)
        assert fate.server_down.size / 200 == pytest.approx(10.0, rel=0.1)
        assert fate.processor_down.size == 0
    assert (
        draw_fate(problem, Chances(processor_life="exponential:900"), 1).processor_down.size > 400
    )


def test_lives_have_the_mean_and_shape_asked_for():
    """Coefficient of variation of Weibull: 1 for shape 1, 0.5227 for shape 2."""
    rng = np.random.default_rng(1)
    for shape, spread in ((1.0, 1.0), (2.0, 0.5227)):
        drawn = Life(50.0, shape).draw(rng, 200_000)
        assert drawn.mean() == pytest.approx(50.0, rel=0.01)
        assert drawn.std() / drawn.mean() == pytest.approx(spread, rel=0.01)


def test_failures_during_a_repair_make_it_longer():
    fate = failing(1, server={0: 30.0})
    twice = Fate(fate.work, fate.breaks, np.array([0, 0]), np.array([30.0, 100.0]),
                 fate.processor_down, fate.processor_down_s, 500.0)  # fmt: skip
    problem = cluster((ServerSpec("s", (("gpu", 1),)),), jobs=1)
    told = [(each.at_s, each.code) for each in drawn_world(problem, twice).incidents]
    assert told == [(30.0, SERVER_DOWN), (600.0, SERVER_UP)]


def test_retries_end_with_all_their_times():
    problem = cluster((ServerSpec("s", (("gpu", 1),), initially_on=True),), jobs=1)
    fate = failing(1)
    at = np.array([50.0, 640.0, 1250.0])
    three = Fate(fate.work, fate.breaks, np.zeros(3, dtype=np.int64), at,
                 fate.processor_down, fate.processor_down_s, 500.0)  # fmt: skip
    real = run(problem, three, retries=1)
    assert real.outcomes.status.tolist() == [FAILED]
    assert real.outcomes.reason[0] == "lost 2 attempts, at 50 s, 640 s"


@pytest.mark.parametrize(
    "life",
    ["exponential", "weibull:5", "exponential:-1", "normal:1", "exponential:x", "weibull:9:0.005"],
)
def test_lives_out_of_range_are_refused(life):
    with pytest.raises(InvalidInput, match="server_life"):
        Chances(server_life=life)


def test_absurdly_short_lives_are_refused():
    problem = cluster(TWO_GPUS, jobs=1, deadline_s=1e9)
    with pytest.raises(InvalidInput, match="failures"):
        draw_fate(problem, Chances(server_life="exponential:1e-3", repair_s=1e-3), 1)


def test_failures_are_counted_as_they_are_drawn(monkeypatch):
    """Five are expected, which is allowed; a seed that draws more is stopped."""
    problem = cluster(TWO_GPUS, jobs=1, deadline_s=1e4)
    chances = Chances(server_life="exponential:2000", repair_s=1e-6)
    sizes = [draw_fate(problem, chances, seed).server_down.size for seed in range(9)]
    many = int(np.argmax(sizes))
    assert sizes[many] > 6
    monkeypatch.setattr(drawing, "MOST_FAILURES", 6)
    with pytest.raises(InvalidInput, match="failures"):
        draw_fate(problem, chances, many)


THREE = (
    ServerSpec("s", (("gpu", 2),), initially_on=True),
    ServerSpec("c", (("cpu", 1),), initially_on=True),
)


def test_a_job_that_moves_knows_no_real_end_before_it_comes():
    """GPU 0 fails at 30 s: GPU 1 is believed free at 100 s, the CPU would be done at 230 s."""
    problem = cluster(THREE, jobs=2)
    planned = run(problem, failing(2)).segments
    kept = int(planned.task[planned.processor == 1][0])
    for work in (0.5, 1.25, 1.35, 3.0):
        fate = failing(2, processor={0: 30.0})
        fate.work[kept] = work
        s = run(problem, fate).segments
        last = np.argmax(s.end_s * (s.task != kept))
        assert (s.processor[last], s.start_s[last]) == (1, 100.0 * work)


def test_a_job_that_moves_knows_no_failure_before_it_comes():
    """GPU 1, where it waits, fails at 60 s: then, not before, the CPU is the better place."""
    problem = cluster(THREE, jobs=2)
    s = run(problem, failing(2, processor={0: 30.0, 1: 60.0})).segments
    on_cpu = s.start_s[s.processor == 2]
    assert on_cpu[0] == 60.0


@pytest.mark.parametrize("seed", range(12))
def test_what_happens_later_does_not_change_what_began_before(seed):
    """Other real ends and more failures after a moment: the same segments begin before it."""
    rng = np.random.default_rng(seed)
    servers = (
        ServerSpec("g", (("gpu", 2),), count=3, wake_s=5.0, wake_j=20.0),
        ServerSpec("c", (("cpu", 2),), count=2, initially_on=True),
    )
    problem = cluster(servers, jobs=24, deadline_s=1200.0)
    chances = Chances("uniform:0.6:1.3", processor_life="exponential:900", repair_s=150.0)
    fate = draw_fate(problem, chances, seed)
    first = play(problem, policy("race"), drawn_world(problem, fate)).schedule.segments
    moment_s = float(rng.uniform(100.0, 500.0))
    ended = np.zeros(24)
    np.maximum.at(ended, first.task, first.end_s)
    work = np.where(ended > moment_s, fate.work * rng.uniform(1.0, 2.0, 24), fate.work)
    early = fate.processor_down_s <= moment_s
    down = np.concatenate([fate.processor_down[early], rng.integers(0, 10, 6)])
    down_s = np.concatenate([fate.processor_down_s[early], rng.uniform(moment_s, 900.0, 6)])
    other = replace(fate, work=work, processor_down=down, processor_down_s=down_s)
    second = play(problem, policy("race"), drawn_world(problem, other)).schedule.segments
    tables = [
        sorted(zip(s.start_s, s.task, s.processor, s.attempt, s.core, strict=True))
        for s in (first, second)
    ]
    began = [[row for row in table if row[0] < moment_s] for table in tables]
    assert began[0] == began[1]
    assert tables[0] != tables[1]
