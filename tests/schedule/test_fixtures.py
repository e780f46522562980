"""Five small schedules computed by hand, one for each way the papers use the model.

Every number is worked out in the comments; each schedule passes `verify` and its bill must match.
"""

from __future__ import annotations

import numpy as np
import pytest

from downclock.power.library import Library
from downclock.power.points import WIDE, ClockRange
from downclock.power.profiles import CpuProfiles, GpuProfiles
from downclock.problem.graph import Edges
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import (
    DONE,
    DOWN,
    ON,
    WAKING,
    Outcomes,
    PowerSpans,
    Schedule,
    Segments,
)
from downclock.schedule.verify.verify import verify
from downclock.units import Floats, Names

CPU_CLOCKS = ClockRange(0.1, 2.0)


def names(*words: str) -> Names:
    return np.array(words, dtype=object)


def spans(*rows: tuple[int, int, float, float]) -> PowerSpans:
    """Spans from rows (server, state, start, end)."""
    table = np.array(rows, dtype=float).reshape(-1, 4)
    return PowerSpans(table[:, 0], table[:, 1], table[:, 2], table[:, 3])


def segments(*rows: tuple[int, int, int, float, float, float, float]) -> Segments:
    """Segments from rows (task, attempt, processor, start, end, core clock, share)."""
    table = np.array(rows, dtype=float)
    points = np.column_stack([table[:, 5], np.ones(len(table)), np.ones(len(table))])
    return Segments.of(
        table[:, 0].astype(int),
        table[:, 2].astype(int),
        table[:, 3],
        table[:, 4],
        points,
        table[:, 6],
        table[:, 1].astype(int),
    )


def assert_valid(problem: Problem, schedule: Schedule) -> None:
    verdict = verify(problem, schedule)
    assert verdict.ok, str(verdict)


# 1. mei2021 Table 3 on two servers of two pairs -------------------------------------------------


@pytest.fixture
def table3() -> tuple[Problem, Schedule, Floats]:
    """The theta = 1 mapping of mei2021 section 4.2.1: S11(J2), S12(J1, J4), S21(J3, J5).

    Table 3: P0 = 100 W, P* = 300 W, t0 = 5, t* = 30 and gamma = 0 for all, hence c = 200 W and
    D = 25; memory runs at its fastest, 1.2.
    """
    delta = np.array([0.0, 1.0, 0.5, 0.8, 0.2])
    five = np.ones(5)
    profiles = GpuProfiles(100 * five, 0 * five, 200 * five, 25 * five, delta, 5 * five)
    jobs = names("J1", "J2", "J3", "J4", "J5")
    problem = Problem(
        Tasks.of(np.arange(5), deadline_s=np.array([50.0, 36.0, 60.0, 100.0, 300.0]), name=jobs),
        Library.of_one_kind(jobs, "pair", profiles),
        Platform.build(
            (Kind("pair", WIDE, idle_w=30.0),), (ServerSpec("S", (("pair", 2),), count=2),)
        ),
    )
    best = problem.frontier(0).within(problem.tasks.deadline_s)
    t = best.time_s
    start = np.array([0.0, 0.0, 0.0, t[0], t[2]])
    pair = np.array([1, 0, 2, 1, 2])
    ran = Segments.of(np.arange(5), pair, start, start + t, best.points)
    on = spans((0, ON, 0.0, np.inf), (1, ON, 0.0, np.inf))
    return problem, Schedule(ran, on, Outcomes.all_done(5)), t


def test_mei_table_3_run_and_idle_energy_by_eq_6(
    table3: tuple[Problem, Schedule, Floats],
) -> None:
    problem, schedule, t = table3
    assert_valid(problem, schedule)
    bill = account(problem, schedule)
    # J1 (delta 0): core at 0.5, V 0.5: P = 100 + 200/8 = 125; t = 25/1.2 + 5 = 25.83333
    # J2 (delta 1): t = 36 -> core = 25/31, V = 2f^2 - 2f + 1 = 0.687825: P = 176.30701
    # J3, J4, J5: minimum of (100 + 200 V^2 f)(25 (delta/f + (1 - delta)/1.2) + 5) over f, at
    #   f = 0.624360, 0.668159, 0.543717: t = 35.43716, 39.09964, 30.86263
    #                                     P = 135.19990, 141.39298, 127.60307
    assert t == pytest.approx([25.83333, 36.0, 35.43716, 39.09964, 30.86263], abs=2e-5)
    # Erun_i = P_i t_i
    assert bill.task_j == pytest.approx(
        [3229.167, 6347.052, 4791.100, 5528.414, 3938.167], abs=0.01
    )
    # F_1 = 25.83333 + 39.09964 = 64.93297, F_2 = 35.43716 + 30.86263 = 66.29979
    # Eidle = 30 ((64.93297 - 36) + 0 + 0 + (66.29979 - 0)) = 867.989 + 1988.994
    assert bill.server_j[:, 2] == pytest.approx([867.989, 1988.994], abs=0.01)
    assert bill.total_j == pytest.approx(23833.901 + 2856.983, abs=0.02)
    assert (bill.wakes, bill.servers_used) == (2, 2)
    assert bill.makespan_s == pytest.approx(66.29979, abs=2e-5)


def test_mei_table_3_agrees_with_the_published_powers_and_times(
    table3: tuple[Problem, Schedule, Floats],
) -> None:
    problem, schedule, t = table3
    # mei2021 Table 3, columns P-hat and t-hat (found on a grid).
    power, time = [125.23, 176.31, 135.20, 141.39, 127.60], [25.83, 36.0, 35.44, 39.10, 30.86]
    assert t == pytest.approx(time, rel=0.003)
    assert account(problem, schedule).task_j / t == pytest.approx(power, rel=0.003)


def test_mei_table_3_until_makespan_keeps_the_first_server_idle_longer(
    table3: tuple[Problem, Schedule, Floats],
) -> None:
    problem, schedule, _ = table3
    longer = account(problem, schedule, boundary="makespan").total_j
    # S1 waits with two pairs for 66.29979 - 64.93297 = 1.36682 s: 2 x 30 x 1.36682 = 82.009 J
    assert longer - account(problem, schedule).total_j == pytest.approx(82.009, abs=0.01)


# 2. gerards Example 1 on one chip with c3 = 0.4 -------------------------------------------------


def test_gerards_example_1_shares_the_chip_once() -> None:
    """Work 10, 20, 15, 40, 15, 10; T1 before T2..T5 before T6; d = 100, p_m(f) = m f^3 + c3."""
    work = np.array([10.0, 20.0, 15.0, 40.0, 15.0, 10.0])
    six = np.ones(6)
    labels = names("T1", "T2", "T3", "T4", "T5", "T6")
    problem = Problem(
        Tasks.of(np.arange(6), deadline_s=100.0 * six, name=labels),
        Library.of_one_kind(labels, "core", CpuProfiles(work, six, 3 * six, 0 * six)),
        Platform.build(
            (Kind("core", CPU_CLOCKS),),
            (ServerSpec("chip", (("core", 3),), chip_wide=True, shared_w=0.4, initially_on=True),),
        ),
        Edges(np.array([0, 0, 0, 0, 1, 2, 3, 4]), np.array([1, 2, 3, 4, 5, 5, 5, 5])),
    )
    # Intervals in cycles with their tasks (one per active core), as in the paper's Figure 2:
    # T1 | T4 T2 T3 | T4 T2 T5 | T4 T5 | T4 | T6, of 10, 15, 5, 10, 10, 10 cycles; so
    # omega = (30, 10, 20), S-bar = 30 + 10 2^(1/3) + 20 3^(1/3) = 71.44420,
    # f_m = S-bar/100 m^(-1/3): 0.714442, 0.567053, 0.495367.
    cores = {0: 0, 3: 0, 1: 1, 2: 2, 4: 2, 5: 0}
    weighted = 30 + 10 * 2 ** (1 / 3) + 20 * 3 ** (1 / 3)
    clock = {m: weighted / 100 * m ** (-1 / 3) for m in (1, 2, 3)}
    rows, now = [], 0.0
    plan = [(10, [0]), (15, [3, 1, 2]), (5, [3, 1, 4]), (10, [3, 4]), (10, [3]), (10, [5])]
    for cycles, active in plan:
        f = clock[len(active)]
        rows += [(i, 0, cores[i], now, now + cycles / f, f, cycles / work[i]) for i in active]
        now += cycles / f
    schedule = Schedule(segments(*rows), spans(), Outcomes.all_done(6))
    assert_valid(problem, schedule)
    bill = account(problem, schedule)
    # Run: 30 f1^2 + 2 10 f2^2 + 3 20 f3^2 = 15.3128 + 6.4310 + 14.7233 = 36.4671 (paper: 36.47)
    assert bill.energy_j["run"] == pytest.approx(36.4671, abs=1e-4)
    # Shared: 0.4 W while any core runs, once for the chip: 0.4 x 100 s
    assert bill.energy_j["shared"] == pytest.approx(40.0)
    assert bill.total_j == pytest.approx(76.4671, abs=1e-4)
    # T4 runs in four intervals at f3, f3, f2, f1: 20 f3^2 + 10 f2^2 + 10 f1^2
    #   = 4.90778 + 3.21549 + 5.10427
    assert bill.task_j[3] == pytest.approx(13.22754, abs=1e-4)


# 3. A preempted EDF job that finishes early, beside host power ----------------------------------


def test_a_preempted_job_that_ends_early_beside_host_power() -> None:
    """A (20 s estimated, due 45) yields to B (6 s, due 15) and needs only 3/4 of its work."""
    two = np.ones(2)
    labels = names("A", "B")
    problem = Problem(
        Tasks.of(
            np.arange(2),
            arrival_s=np.array([0.0, 5.0]),
            deadline_s=np.array([45.0, 15.0]),
            name=labels,
        ),
        Library.of_one_kind(
            labels, "core", CpuProfiles(np.array([20.0, 6.0]), 8 * two, 3 * two, 2 * two)
        ),
        Platform.build(
            (Kind("core", CPU_CLOCKS, idle_w=1.0, interrupt="preempt"),),
            (ServerSpec("host", (("core", 2),), host_w=10.0, initially_on=True),),
        ),
    )
    # A at clock 1 takes 20 x 3/4 = 15 s; it runs 5 s (1/3 of it) and stops for B. The rest at
    # clock 1/2 takes 2/3 x 30 = 20 s: from 11 s to 31 s, well before the estimate's 41 s.
    ran = segments(
        (0, 0, 0, 0.0, 5.0, 1.0, 1 / 3), (1, 0, 0, 5.0, 11.0, 1.0, 1.0),
        (0, 0, 0, 11.0, 31.0, 0.5, 2 / 3),
    )  # fmt: skip
    outcomes = Outcomes(np.full(2, DONE), names("", ""), np.array([0.75, 1.0]))
    schedule = Schedule(ran, spans(), outcomes)
    assert_valid(problem, schedule)
    bill = account(problem, schedule)
    # P(1) = 2 + 8 = 10 W, P(1/2) = 2 + 8/8 = 3 W: A 5 x 10 + 20 x 3 = 110 J, B 6 x 10 = 60 J
    assert bill.task_j == pytest.approx([110.0, 60.0])
    # Until 31 s: host 10 W; core 2 idles at 1 W all the time, core 1 never.
    assert bill.energy_j == pytest.approx(
        {"run": 170.0, "shared": 0.0, "idle": 31.0, "host": 310.0, "sleep": 0.0, "wake": 0.0}
    )
    # Until 40 s: 9 s more of host (90 J) and of both cores idle (18 J).
    assert account(problem, schedule, boundary=40.0).total_j == pytest.approx(511.0 + 108.0)


# 4. A paused, slotted task with waste at a negative price ---------------------------------------


def test_a_paused_slotted_task_earns_nothing_from_waste() -> None:
    """25 s of work in slots of 10 s with a pause; half of the last slot is waste."""
    one = np.ones(1)
    profile = CpuProfiles(25 * one, 100 * one, 2 * one, 0 * one)
    # Prices of 3600, 7200, 1800 and -3600 EUR/kWh are 1, 2, 0.5 and -1 EUR per kJ.
    price = Curve(np.array([0.0, 10.0, 20.0, 30.0]), np.array([3600.0, 7200, 1800, -3600]), 40.0)
    problem = Problem(
        Tasks.of(np.arange(1), deadline_s=40.0 * one),
        Library.of_one_kind(names("app"), "core", profile),
        Platform.build(
            (Kind("core", CPU_CLOCKS, idle_w=5.0, interrupt="pause"),),
            (ServerSpec("s", (("core", 1),), zone="north", initially_on=True),),
            slot_s=10.0,
        ),
        prices=Prices((("north", ZonePrices(price, Curve.constant(360.0))),)),
    )
    # Each full slot at clock 1 does 10/25 = 0.4; 0.2 is left for the last one, 5 s of its 10 s.
    ran = segments(
        (0, 0, 0, 0.0, 10.0, 1.0, 0.4), (0, 0, 0, 20.0, 30.0, 1.0, 0.4),
        (0, 0, 0, 30.0, 40.0, 1.0, 0.2),
    )  # fmt: skip
    schedule = Schedule(ran, spans(), Outcomes.all_done(1))
    assert_valid(problem, schedule)
    bill = account(problem, schedule)
    # 100 W in three slots: 3000 J, 500 J of them wasted; 5 W while paused from 10 s to 20 s: 50 J
    assert (bill.energy_j["run"], bill.energy_j["idle"]) == pytest.approx((3000.0, 50.0))
    assert bill.waste_j == pytest.approx(500.0)
    # Run: 1 kJ x 1 + 1 kJ x 0.5 - 0.5 kJ x 1 (useful half) + 0 (wasted half) = 1.00 EUR
    # Idle: 0.05 kJ x 2 = 0.10 EUR
    assert bill.money_by_part is not None
    assert (bill.money_by_part["run"], bill.money_by_part["idle"]) == pytest.approx((1.0, 0.1))
    assert bill.money == pytest.approx(1.1)
    assert bill.money_clipped == pytest.approx(1.6)
    # 3050 J at 360 g/kWh = 1e-4 g/J: 0.305 g
    assert bill.carbon_kg == pytest.approx(0.000305)
    assert "wasted in last slots: 500 J of the run energy" in str(bill)
    assert "without negative prices: 1.6000 EUR" in str(bill)


@pytest.mark.parametrize(("end_s", "valid"), [(300.0, True), (600.0, False)])
def test_a_task_far_shorter_than_a_slot_needs_one_slot_and_no_more(end_s, valid) -> None:
    one = np.ones(1)
    problem = Problem(
        Tasks.of(np.arange(1), deadline_s=900.0 * one),
        Library.of_one_kind(names("app"), "core", CpuProfiles(4e-9 * one, one, one, 0 * one)),
        Platform.build(
            (Kind("core", CPU_CLOCKS, idle_w=5.0, interrupt="pause"),),
            (ServerSpec("s", (("core", 1),), initially_on=True),),
            slot_s=300.0,
        ),
    )
    ran = segments((0, 0, 0, 0.0, end_s, 1.0, 1.0))
    assert verify(problem, Schedule(ran, spans(), Outcomes.all_done(1))).ok is valid


# 5. A gang and a graph on two kinds, with wake time, a failed attempt and a retry ---------------


def two_kinds() -> Problem:
    """prep (CPU) before train (two GPUs) before report (CPU, 0.8 of prep's work)."""
    gpu = GpuProfiles(*(np.array([value]) for value in (50.0, 50.0, 100.0, 20.0, 0.5, 0.0)))
    cpu = CpuProfiles(*(np.array([value]) for value in (10.0, 8.0, 3.0, 4.0)))
    none = -1
    library = Library(
        names("training", "files"), ("gpu", "cpu"), (gpu, cpu),
        np.array([[0, none], [none, 1]]), np.zeros((2, 2), dtype=np.int64),
    )  # fmt: skip
    tasks = Tasks(
        names("prep", "train", "report"), np.array([1, 0, 1]), np.array([1.0, 1.0, 0.8]),
        np.zeros(3), np.full(3, 100.0), np.array([1, 2, 1]),
    )  # fmt: skip
    platform = Platform.build(
        (Kind("gpu", WIDE, idle_w=20.0), Kind("cpu", CPU_CLOCKS, idle_w=4.0)),
        (
            ServerSpec(
                "node", (("gpu", 2),), chip_wide=True, shared_w=3.0, shared_w_per_clock=1.0,
                host_w=50.0, sleep_w=2.0, wake_j=500.0, wake_s=5.0,
            ),
            ServerSpec("head", (("cpu", 1),), host_w=30.0, initially_on=True),
        ),
    )  # fmt: skip
    return Problem(tasks, library, platform, Edges(np.array([0, 1]), np.array([1, 2])))


def test_a_gang_in_a_graph_wakes_fails_and_is_retried() -> None:
    problem = two_kinds()
    # train takes 20 s at the default point. The node wakes in time for prep's end at 10 s, goes
    # down at 20 s when half of train is done, wakes again at 30 s, and train starts over at 35 s.
    ran = segments(
        (0, 0, 2, 0.0, 10.0, 1.0, 1.0),
        (1, 0, 0, 10.0, 20.0, 1.0, 0.5), (1, 0, 1, 10.0, 20.0, 1.0, 0.5),
        (1, 1, 0, 35.0, 55.0, 1.0, 1.0), (1, 1, 1, 35.0, 55.0, 1.0, 1.0),
        (2, 0, 2, 55.0, 63.0, 1.0, 1.0),
    )  # fmt: skip
    states = spans(
        (0, WAKING, 5.0, 10.0), (0, ON, 10.0, 20.0), (0, DOWN, 20.0, 30.0),
        (0, WAKING, 30.0, 35.0), (0, ON, 35.0, 55.0),
    )  # fmt: skip
    schedule = Schedule(ran, states, Outcomes.all_done(3))
    assert_valid(problem, schedule)
    bill = account(problem, schedule)
    # GPU power 50 + 50 + 100 = 200 W each, CPU power 4 + 8 = 12 W.
    # train: 2 x 200 x 10 (failed) + 2 x 200 x 20 = 12,000 J; prep 10 x 12, report 8 x 12.
    assert bill.task_j == pytest.approx([120.0, 12000.0, 96.0])
    # node until 55 s: chip (3 + 1) W x 30 s, host 50 W x 30 s, sleep 2 W x 5 s, two wakes of
    # 500 J, no GPU ever idle. head until 63 s: host 30 W, CPU idle 4 W for 63 - 18 = 45 s.
    assert bill.server_j == pytest.approx(
        np.array([[12000.0, 120.0, 0, 1500.0, 10.0, 1000.0], [216.0, 0, 180.0, 1890.0, 0, 0]])
    )
    assert bill.total_j == pytest.approx(16916.0)
    assert (bill.wakes, bill.servers_used, bill.makespan_s) == (2, 2, 63.0)
    # Until the makespan the node sleeps 8 s more, at 2 W.
    assert account(problem, schedule, boundary="makespan").total_j == pytest.approx(16932.0)
