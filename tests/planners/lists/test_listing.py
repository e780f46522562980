"""List policies: the papers' example, what cannot be done, mixed servers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.planners.lists.lengths import LeastEnergy, window_s
from downclock.power.library import Library
from downclock.power.points import WIDE
from downclock.power.profiles import GpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, REJECTED
from downclock.schedule.verify.verify import verify
from downclock.workloads import mei
from tests.planners.lists.table3 import mapping, table3, told


def test_table_3_run_times_and_powers() -> None:
    """mei2021 Table 3; the paper prints 125.23 W for J1, the optimum of its own model is 125.00."""
    best = table3().frontier(0).within(window_s(*told(table3())))
    assert best.time_s.round(2) == pytest.approx([25.83, 36.0, 35.44, 39.10, 30.86])
    assert best.power_w.round(2) == pytest.approx([125.00, 176.31, 135.20, 141.39, 127.60])


def test_table_3_shortest_time_of_j3_is_not_the_printed_one() -> None:
    """Section 4.2 prints 25.83, which is the optimum of J1; fc = 1.0916, fm = 1.2 give 26.87."""
    assert table3().frontier(0).t_min_s[2] == pytest.approx(26.87, abs=5e-3)


@pytest.mark.parametrize(
    ("theta", "expected"),
    [
        (0.9, {"s1/1": ("J2", "J4"), "s2/1": ("J1", "J3", "J5")}),
        (1.0, {"s1/1": ("J2",), "s2/1": ("J1", "J4"), "s3/1": ("J3", "J5")}),
    ],
)
def test_table_3_mappings_in_opening_order(theta: float, expected: dict[str, tuple]) -> None:
    """Section 4.2: both example mappings, before Algorithm 3 groups the pairs (S11, S12, S21)."""
    problem = table3(per_server=1)
    schedule = plan(problem, policy(f"edl:theta={theta},group=off"))
    assert mapping(problem, schedule) == expected
    assert verify(problem, schedule).ok


def test_table_3_readjusts_j3_to_the_time_left() -> None:
    """Section 4.2: d3 - t1 = 34.17 lies in [31.90, 35.44]."""
    schedule = plan(table3(), policy("edl:theta=0.9"))
    third = schedule.segments.task == 2
    length = (schedule.segments.end_s - schedule.segments.start_s)[third]
    assert length == pytest.approx(34.17, abs=5e-3)
    assert schedule.segments.end_s[third] == pytest.approx(60.0)


def test_algorithm_3_groups_the_longest_pairs() -> None:
    problem = table3()
    schedule = plan(problem, policy("edl"))
    expected = {"s1/1": ("J3", "J5"), "s1/2": ("J1", "J4"), "s2/1": ("J2",)}
    assert mapping(problem, schedule) == expected
    ends_s = 66.304, 64.938, 36.0
    idle_s = ends_s[0] - ends_s[1] + ends_s[2]
    assert account(problem, schedule).energy_j["idle"] == pytest.approx(30.0 * idle_s, rel=1e-3)


def test_a_deadline_prior_task_takes_the_next_pair_of_an_open_server() -> None:
    """Without Algorithm 3: J4, J2 and J3 bind and get a pair each, J1 the next one."""
    problem = table3(deadline_s=np.array([60.0, 30.0, 30.0, 29.0, 300.0]))
    schedule = plan(problem, policy("edl:group=off,theta=0.5"))
    found = mapping(problem, schedule)
    first = {place: tasks[0] for place, tasks in found.items()}
    assert first == {"s1/1": "J4", "s1/2": "J2", "s2/1": "J3", "s2/2": "J1"}
    assert verify(problem, schedule).ok


def test_an_impossible_deadline_is_rejected_by_name() -> None:
    problem = table3(deadline_s=np.array([20.0, 36.0, 60.0, 100.0, 300.0]))
    schedule = plan(problem, policy("edl"))
    assert schedule.outcomes.status.tolist() == [REJECTED, DONE, DONE, DONE, DONE]
    shortest = problem.frontier(0).t_min_s[0]
    expected = f"cannot end by its deadline 20 s even at full speed: earliest {shortest:g} s"
    assert schedule.outcomes.reason[0] == expected
    assert verify(problem, schedule).ok


def test_when_pairs_run_out_tasks_are_shortened_and_then_rejected() -> None:
    """One pair only: J3 must hurry behind J2 as a last resort; J1 finds no room at all."""
    problem = table3(1, 1, np.array([85.0, 36.0, 64.0, 200.0, 300.0]))
    schedule = plan(problem, policy("edl:theta=1"))
    third = schedule.segments.task == 2
    assert (schedule.segments.end_s - schedule.segments.start_s)[third] == pytest.approx(28.0)
    assert schedule.outcomes.status.tolist() == [REJECTED, DONE, DONE, DONE, DONE]
    earliest = 64.0 + problem.frontier(0).t_min_s[0]
    expected = f"as every processor is taken: earliest {earliest:g} s"
    assert schedule.outcomes.reason[0].endswith(expected)
    assert verify(problem, schedule).ok


@pytest.mark.parametrize("spec", ["edl", "bin", "lpt-ff", "edf-bf", "edf-wf", "race", "static-cap"])
def test_tasks_without_deadline_run_at_their_optimum(spec: str) -> None:
    problem = table3(deadline_s=np.full(5, np.inf))
    schedule = plan(problem, policy(spec))
    assert verify(problem, schedule).ok
    assert np.all(schedule.outcomes.status == DONE)
    if spec not in ("race", "static-cap"):
        length = np.zeros(5)
        length[schedule.segments.task] = schedule.segments.end_s - schedule.segments.start_s
        assert length == pytest.approx(problem.frontier(0).t_opt_s)


def test_milestones_need_no_processor_and_gangs_take_several() -> None:
    problem = table3()
    tasks = replace(
        problem.tasks,
        scale=np.array([0.0, 1.0, 1.0, 1.0, 1.0]),
        processors=np.array([1, 1, 2, 1, 1]),
    )
    problem = replace(problem, tasks=tasks)
    schedule = plan(problem, policy("edl"))
    assert 0 not in schedule.segments.task
    assert schedule.outcomes.status.tolist() == [DONE] * 5
    assert np.count_nonzero(schedule.segments.task == 2) == 2
    assert verify(problem, schedule).ok


def test_servers_of_different_sizes_and_kinds() -> None:
    """A task goes to the kind where it is cheapest, as long as that kind has room."""
    problem = table3()
    profile = problem.library.groups[0]
    assert isinstance(profile, GpuProfiles)
    costly = GpuProfiles(
        profile.p0_w * 2, profile.gamma_w, profile.c_w, profile.d_s, profile.delta, profile.t0_s
    )
    rows = np.arange(5)[:, None] * np.ones(2, dtype=np.int64)
    library = Library(
        problem.library.names, ("old", "new"), (costly, profile), np.tile([0, 1], (5, 1)), rows
    )
    platform = Platform.build(
        (Kind("old", WIDE, 30.0, clock="locked"), Kind("new", WIDE, 30.0, clock="locked")),
        (
            ServerSpec("small", (("old", 1),), count=3),
            ServerSpec("mixed", (("old", 2), ("new", 1))),
            ServerSpec("big", (("new", 2),)),
        ),
    )
    mixed = Problem(
        Tasks.of(np.zeros(5, dtype=np.int64), deadline_s=np.full(5, 26.0)), library, platform
    )
    schedule = plan(mixed, policy("edl"))
    used = platform.kind[schedule.segments.processor]
    assert sorted(used.tolist()) == [0, 0, 1, 1, 1]
    assert verify(mixed, schedule).ok


def test_waking_takes_time_and_delays_the_first_task() -> None:
    problem = table3()
    slow = ServerSpec("s", (("pair", 2),), count=4, wake_s=4.0, wake_j=100.0)
    problem = replace(problem, platform=Platform.build(problem.platform.kinds, (slow,)))
    schedule = plan(problem, policy("edl"))
    assert verify(problem, schedule).ok
    assert schedule.segments.start_s.min() == 4.0
    second = schedule.segments.task == 1
    assert (schedule.segments.end_s - schedule.segments.start_s)[second] == pytest.approx(32.0)


def test_servers_that_begin_awake_are_not_woken() -> None:
    problem = table3()
    awake = ServerSpec("s", (("pair", 2),), count=4, wake_s=4.0, wake_j=100.0, initially_on=True)
    problem = replace(problem, platform=Platform.build(problem.platform.kinds, (awake,)))
    schedule = plan(problem, policy("edl"))
    assert verify(problem, schedule).ok
    bill = account(problem, schedule, boundary="makespan")
    assert (bill.wakes, bill.energy_j["wake"]) == (0, 0.0)


def test_slots_delay_starts_to_whole_slots() -> None:
    problem = table3()
    for spec in ("edl:theta=0.9,slot=10", "bin:slot=10", "edl:start=stream,slot=10"):
        schedule = plan(problem, policy(spec))
        assert verify(problem, schedule).ok
        assert np.all(schedule.segments.start_s % 10.0 == 0.0)
        assert np.any(schedule.segments.start_s > 0.0)


def test_a_slot_of_ages_begins_no_task_before_it_arrives() -> None:
    day = mei.online(1, utilisation=0.01, initial_utilisation=0.01, cluster=mei.Cluster(64))
    endless = replace(day, tasks=replace(day.tasks, deadline_s=np.full(len(day.tasks), np.inf)))
    schedule = plan(endless, policy("bin:slot=1e15"))
    assert verify(endless, schedule).ok
    assert np.all(schedule.segments.start_s % 1e15 == 0.0)


def test_objections_name_what_the_policy_cannot_plan() -> None:
    problem = table3()
    slotted = replace(problem, platform=replace(problem.platform, slot_s=5.0))
    assert "slotted" in str(policy("edl").objection(slotted))
    chip = ServerSpec("s", (("pair", 2),), count=4, chip_wide=True)
    shared = replace(problem, platform=Platform.build(problem.platform.kinds, (chip,)))
    assert "share a clock" in str(policy("edl").objection(shared))
    assert policy("edl").objection(problem) is None


def test_wanted_lengths_never_exceed_the_window() -> None:
    view, every = told(table3())
    assert np.all(LeastEnergy().wanted(view, 0, every) <= window_s(view, every))
    assert LeastEnergy().binds(view, 0, every).tolist() == [False, True, False, False, False]


def test_servers_that_wake_faster_are_not_held_up_by_slower_ones() -> None:
    """A job of 30 s due after 100 s fits the server that wakes in 5 s, not those of 2,000 s."""
    profiles = GpuProfiles([100.0], [50.0], [150.0], [20.0], [0.5], [10.0])
    library = Library.of_one_kind(np.array(["a"], dtype=object), "pair", profiles)
    servers = (
        ServerSpec("slow", (("pair", 2),), count=2, wake_s=2000.0),
        ServerSpec("quick", (("pair", 2),), wake_s=5.0),
    )
    platform = Platform.build((Kind("pair", WIDE, idle_w=30.0),), servers)
    tasks = Tasks.of(np.zeros(1, dtype=np.int64), deadline_s=np.array([100.0]))
    problem = Problem(tasks, library, platform)
    schedule = plan(problem, policy("edl"))
    assert verify(problem, schedule).ok
    assert schedule.segments.start_s.tolist() == [5.0]
    assert platform.server_name[platform.server[schedule.segments.processor[0]]] == "quick"
