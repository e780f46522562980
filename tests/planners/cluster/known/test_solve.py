"""Plans where all is known: valid, billed as the search counts, never worse than what was given."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import downclock as dc
from downclock.engine import play
from downclock.errors import InvalidInput
from downclock.planners.cluster.known.judge import judged
from downclock.planners.cluster.known.kernels.model import new_placement
from downclock.planners.cluster.known.question import ask, objection
from downclock.planners.cluster.known.solve import Searching, solve_known
from downclock.planners.cluster.known.write import settings_of
from downclock.planners.offline_solver import CarriedOut
from downclock.planners.portfolio import planned
from downclock.power.library import Library
from downclock.power.points import WIDE
from downclock.power.profiles import GpuProfiles
from downclock.problem.graph import Edges
from downclock.problem.objective import ENERGY, parse_objective
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.schedule import DONE, REJECTED, Schedule
from downclock.study.baselines import chosen_policy
from tests.generated import random_problem
from tests.generated_schedule import random_schedule
from tests.planners.cluster.known.clusters import A100, busy_day, library, own_cluster

LITTLE = 0.01


def assert_gangs_sit_together(problem: Problem, schedule: Schedule) -> None:
    """A gang that some server of its kind holds is on one server, others on whole servers."""
    platform, rows = problem.platform, schedule.segments
    for task in np.unique(rows.task):
        mine = np.unique(rows.processor[rows.task == task])
        servers, kind = np.unique(platform.server[mine]), platform.kind[mine[0]]
        sizes = np.bincount(platform.server[platform.kind == kind])
        if mine.size <= sizes.max():
            assert servers.size == 1


def assert_carried_out(problem: Problem, schedule: Schedule) -> None:
    """Playing the plan gives the plan: also servers that begin on and sleep at once."""
    carried = play.plan(problem, CarriedOut.of("known", problem, schedule))
    dc.require_valid(problem, carried)
    assert carried.outcomes.status.tolist() == schedule.outcomes.status.tolist()
    bills = [dc.account(problem, each).total_j for each in (carried, schedule)]
    assert bills[0] == pytest.approx(bills[1], rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("seed", range(60))
def test_plans_of_generated_problems_are_valid(seed: int) -> None:
    """Kinds, sizes, gangs, edges, milestones, prices, wakes and every interrupt rule at once."""
    problem = random_problem(seed, chip_wide=False, slot_s=None)
    objective = parse_objective("cost") if problem.prices.zones and seed % 2 else ENERGY
    found = solve_known(problem, objective, effort=LITTLE)
    dc.require_valid(problem, found.schedule)
    assert_gangs_sit_together(problem, found.schedule)
    assert found.bound <= found.objective
    assert found.objective == judged(problem, objective, found.schedule).value
    assert_carried_out(problem, found.schedule)


def test_a_job_that_takes_next_to_no_time_has_its_turn() -> None:
    """Times that a program chooses together let it begin when the job after it does."""
    platform = Platform.build(
        [Kind("gpu", WIDE, idle_w=37.0)],
        [ServerSpec("s", (("gpu", 2),), count=2, wake_j=90.0, sleep_w=2.0)],
    )
    curves = GpuProfiles(
        *np.array([[60.0, 30.0, 100.0, 20.0, 0.6, 0.2], [60.0, 30.0, 60.0, 4.0, 0.6, 0.2]]).T
    )
    made = Library.of_one_kind(np.array(["train", "infer"], dtype=object), "gpu", curves)
    tasks = Tasks.of(
        [0, 1, 0, 1, 0],
        scale=[2.0, 1.0, 3.0, 3.3162571129643275e-09, 0.5],
        arrival_s=[0.0, 5.0, 10.0, 10.0, 90.0],
        deadline_s=[200.0, 60.0, 900.0, 40.0, 130.0],
    )
    problem = Problem(tasks, made, platform)
    dc.require_valid(problem, solve_known(problem, ENERGY, effort=LITTLE).schedule)


@pytest.mark.parametrize("seed", range(12))
def test_the_search_counts_what_the_accountant_bills(seed: int) -> None:
    """Enumerated clocks, so that no curve is sampled; prices at every step."""
    flavours = ("gpu-table", "cpu-table", "measured")
    problem = random_problem(
        seed, chip_wide=False, slot_s=None, flavours=flavours, clock="locked", prices=True
    )
    objective = (ENERGY, parse_objective("cost+0.1carbon"))[seed % 2]
    running = Searching.of(problem, ask(problem, objective), seed)
    running.run([], 0.2, None)
    billed = judged(problem, objective, running.schedule()).value
    tally = running.search.board.tally[0]
    assert tally.value == pytest.approx(billed, rel=1e-9, abs=1e-12)
    assert tally.lost == np.sum(running.search.board.place.runs.kind < 0)


@pytest.mark.parametrize("seed", range(8))
def test_it_is_never_worse_than_what_it_was_given(seed: int) -> None:
    problem = own_cluster(seed, 12)
    given = [dc.plan(problem, dc.policy(name)) for name in ("race", "edl", "late")]
    found = judged(problem, ENERGY, solve_known(problem, effort=0.0, start=given).schedule)
    assert all(found.rank <= judged(problem, ENERGY, each).rank for each in given)


@pytest.mark.parametrize("seed", range(10))
def test_plans_that_pause_or_were_tried_twice_count_too(seed: int) -> None:
    """What the search cannot do itself is still an answer: the better one is returned."""
    problem = random_problem(seed, chip_wide=False, slot_s=None)
    given = random_schedule(problem, seed)
    given = replace(given, outcomes=replace(given.outcomes, work=np.ones(len(problem.tasks))))
    if not dc.verify(problem, given).ok:
        pytest.skip("its real run times differ from the estimates")
    found = solve_known(problem, effort=0.0, start=[given])
    one, other = (judged(problem, ENERGY, each) for each in (found.schedule, given))
    assert one.rank <= other.rank


def test_same_input_same_plan_and_other_seeds_other_searches() -> None:
    problem = own_cluster(3, 60)
    plans = [solve_known(problem, effort=LITTLE, seed=seed) for seed in (1, 1, 2)]
    assert plans[0].objective == plans[1].objective
    assert np.array_equal(plans[0].schedule.segments.start_s, plans[1].schedule.segments.start_s)
    assert plans[0].objective != plans[2].objective


def test_without_a_compiler_the_plan_is_the_same() -> None:
    problem = own_cluster(4, 6)
    told = (
        "from downclock.planners.cluster.known.solve import solve_known\n"
        "from tests.planners.cluster.known.clusters import own_cluster\n"
        "print(repr(solve_known(own_cluster(4, 6), effort=0.001).objective))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    plain = subprocess.run(
        [sys.executable, "-c", told], env=environment, capture_output=True, text=True, check=True
    )
    assert float(plain.stdout) == solve_known(problem, effort=0.001).objective


def test_search_beats_one_by_one() -> None:
    """Forty jobs on nine servers: the first plan is a tenth dearer than a short search's."""
    problem = own_cluster(5, 40)
    first, later = (solve_known(problem, effort=effort).objective for effort in (0.0, 0.3))
    assert later < 0.95 * first


def test_shared_clocks_and_slots_are_refused_with_a_reason() -> None:
    chips = random_problem(1, chip_wide=True, slot_s=None, flavours=("cpu",))
    slots = random_problem(1, chip_wide=False, slot_s=2.0)
    assert "share a clock" in (objection(chips) or "")
    assert "slotted" in (objection(slots) or "")
    with pytest.raises(InvalidInput, match="problem 'random-1'"):
        solve_known(slots)


def chain(deadline_s: tuple[float, float, float]) -> Problem:
    """Three jobs of an hour at full speed, one after the other, on one processor."""
    rng = np.random.default_rng(9)
    spec = ServerSpec("s", (("a100", 1),), host_w=100.0)
    tasks = Tasks.of(np.zeros(3, np.int64), deadline_s=np.array(deadline_s))
    edges = Edges(np.array([0, 1]), np.array([1, 2]))
    return Problem(tasks, library(rng, 1, (A100,)), Platform.build((A100,), (spec,)), edges)


def test_what_cannot_be_done_in_time_is_rejected_with_all_that_follows() -> None:
    problem = chain((1e5, 3600.0, 1e5))
    found = solve_known(problem, effort=LITTLE)
    dc.require_valid(problem, found.schedule)
    assert found.schedule.outcomes.status.tolist() == [DONE, REJECTED, REJECTED]
    assert (
        "cannot end by its deadline 3600 s even at full speed" in found.schedule.outcomes.reason[1]
    )
    assert "before it is not done" in found.schedule.outcomes.reason[2]
    assert found.status == "optimal"


def test_a_gang_larger_than_its_cluster_is_told_so_and_what_follows_is_left_out() -> None:
    """Without deadlines too, where nothing is ever late."""
    endless = chain((np.inf, np.inf, np.inf))
    problem = replace(endless, tasks=replace(endless.tasks, processors=np.array([1, 3, 1])))
    found = solve_known(problem, effort=LITTLE).schedule
    assert found.outcomes.status.tolist() == [DONE, REJECTED, REJECTED]
    assert found.outcomes.reason[1:].tolist() == [
        "needs 3 processors at once, of one kind; there are 1", "a task before it is not done",
    ]  # fmt: skip


def test_slack_of_a_chain_is_shared() -> None:
    """One application, one end: all three jobs run equally long."""
    shortest_s = chain((1e5, 1e5, 1e5)).frontier(0).t_min_s[0]
    problem = chain((1e5, 1e5, 3.3 * shortest_s))
    found = solve_known(problem, effort=0.05)
    rows = found.schedule.segments
    length_s = np.bincount(rows.task, rows.end_s - rows.start_s)
    assert length_s == pytest.approx(np.full(3, 1.1 * shortest_s), rel=1e-6)
    assert found.status == "optimal"


def test_three_jobs_that_fit_one_by_one_are_all_done_where_two_would_be_cheaper() -> None:
    """Acceptance first: nothing is left out to save energy."""
    shortest_s = chain((1e5, 1e5, 1e5)).frontier(0).t_min_s[0]
    found = solve_known(chain((1e5, 1e5, 3.0 * shortest_s)), effort=LITTLE)
    assert np.all(found.schedule.outcomes.status == DONE)


def test_a_gang_that_no_server_holds_takes_whole_servers() -> None:
    problem = busy_day(2, 24, gangs=(1, 3, 10), servers=4, size=4)
    found = solve_known(problem, effort=0.1)
    dc.require_valid(problem, found.schedule)
    rows, platform = found.schedule.segments, problem.platform
    for task in np.flatnonzero(problem.tasks.processors == 10):
        mine = rows.task == task
        servers = np.unique(platform.server[rows.processor[mine]])
        assert servers.size == 3
        for server in servers:
            there = platform.server[rows.processor] == server
            start_s, end_s = rows.start_s[mine].min(), rows.end_s[mine].max()
            others = there & ~mine & (rows.start_s < end_s - 1e-6) & (rows.end_s > start_s + 1e-6)
            assert not np.any(others)


def test_prices_move_work_to_cheap_hours() -> None:
    problem = busy_day(1, 30, prices=True)
    cost = parse_objective("cost")
    blind = solve_known(problem, effort=0.2).schedule
    found = solve_known(problem, cost, effort=0.2)
    assert found.objective < 0.95 * judged(problem, cost, blind).value
    assert found.unit == "EUR"


def test_nothing_to_do_is_done() -> None:
    problem = chain((1e5, 1e5, 1e5))
    idle = replace(problem, tasks=replace(problem.tasks, scale=np.zeros(3)))
    found = solve_known(idle)
    assert np.all(found.schedule.outcomes.status == DONE)
    assert found.objective == 0.0


def test_search_begins_where_it_is_told() -> None:
    """Without effort the given plan, its times chosen together, is the answer."""
    problem = own_cluster(6, 15)
    best = solve_known(problem, effort=0.3)
    again = solve_known(problem, effort=0.0, start=[best.schedule])
    assert again.objective <= best.objective * (1.0 + 1e-9)


def test_a_plan_of_equal_value_elsewhere_is_not_taken_for_the_best() -> None:
    """Moves between equal servers cost nothing; what is kept is one plan, not parts of two."""
    for seed in (13, 36, 45):
        problem = random_problem(seed, chip_wide=False, slot_s=None)
        dc.require_valid(problem, solve_known(problem, effort=0.5).schedule)


def test_where_nothing_can_be_on_time_all_is_rejected() -> None:
    problem = own_cluster(3, 4)
    hopeless = replace(problem.tasks, deadline_s=problem.tasks.arrival_s + 1e-3)
    found = solve_known(replace(problem, tasks=hopeless), effort=LITTLE).schedule
    assert found.outcomes.status.tolist() == [REJECTED] * 4
    assert len(found.segments) == 0


def test_a_job_shorter_than_the_tolerance_of_its_end_has_a_row() -> None:
    """After 1e9 s and more, ends are compared to within seconds."""
    problem = own_cluster(3, 2)
    tasks = replace(
        problem.tasks, scale=np.array([1e6, 1e-4]), arrival_s=np.zeros(2),
        deadline_s=np.full(2, np.inf), processors=np.ones(2, dtype=np.int64),
    )  # fmt: skip
    chain = replace(problem, tasks=tasks, edges=Edges(np.array([0]), np.array([1])))
    found = solve_known(chain, effort=LITTLE).schedule
    dc.require_valid(chain, found)
    assert sorted(set(found.segments.task.tolist())) == [0, 1]


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_is_no_worse_than_the_search_alone(seed: int) -> None:
    """The best policy's plan may lead to a valley that a search from nothing does not know."""
    problem = busy_day(300 + seed, 40, gangs=(1, 3, 5), servers=3, size=4)
    chosen = chosen_policy(problem, effort=0.02)
    made = judged(problem, ENERGY, planned(problem, chosen)[0])
    alone = judged(problem, ENERGY, planned(problem, dc.policy("known:effort=0.02"))[0])
    assert made.rank <= alone.rank


def test_a_run_time_that_is_rounded_late_has_its_clock() -> None:
    """Found by odd inputs: after thirty thousand years a run is a tenth of a millisecond off."""
    library = dc.built_in_library("v100")
    platform = Platform.build([dc.Kind.of(library, "v100")], [ServerSpec("s", (("v100", 1),))])
    problem = Problem(Tasks.of(["cfd"], library=library, deadline_s=1e12), library, platform)
    asked, frontier = ask(problem, ENERGY), problem.frontier(0)
    place = new_placement(asked.columns.jobs)
    place.runs.kind, place.runs.start_s = 0, 9.8e11
    for length_s in (frontier.t_min_s[0] - 1e-4, frontier.t_max_s[0] + 1e-4):
        place.runs.end_s = place.runs.start_s + length_s
        assert np.all(np.isfinite(settings_of(problem, asked, place).first))
