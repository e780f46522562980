"""Explanations: the constraint that binds is named, and the figures are the model's."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from downclock.cli import main
from downclock.engine.play import plan
from downclock.errors import InvalidInput
from downclock.planners.catalog import policy
from downclock.power.library import Library
from downclock.power.points import ClockRange, ClockTable
from downclock.power.profiles import CpuProfiles
from downclock.problem.calendar import epoch_of
from downclock.problem.graph import Edges
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.report.explain import explain
from downclock.schedule.account.account import account
from downclock.schedule.files import write_schedule
from downclock.schedule.schedule import ON, Outcomes, PowerSpans, Schedule, Segments
from downclock.schedule.verify.verify import require_valid
from downclock.simulate.chances import Chances
from downclock.simulate.simulate import simulate
from tests.conftest import ROOT

TABLE = ClockTable(np.array([500.0, 1000.0, 1500.0]), np.array([800.0]), 1000.0, 800.0)


def two_tasks(clocks: ClockRange | ClockTable = TABLE, prices: Prices | None = None) -> Problem:
    """Tasks of 100 s at default clock on one server of two cores; power 10 + 90 core^3 W.

    At 500 MHz a task takes 200 s at 21.25 W (4250 J), at 1000 MHz 100 s at 100 W (10,000 J), at
    1500 MHz 66.7 s at 313.75 W (20,917 J).
    """
    profiles = CpuProfiles(np.array([100.0]), np.array([90.0]), np.array([3.0]), np.array([10.0]))
    library = Library.of_one_kind(np.array(["work"], dtype=object), "cpu", profiles)
    kind = Kind("cpu", clocks, idle_w=5.0)
    server = ServerSpec("s", (("cpu", 2),), 2, wake_j=50.0, initially_on=False)
    tasks = Tasks.of(
        np.zeros(2, dtype=np.int64),
        deadline_s=np.array([100.0, 1000.0]),
        arrival_s=np.zeros(2),
        name=np.array(["tight", "loose"], dtype=object),
    )
    platform = Platform.build((kind,), (server,))
    return Problem(tasks, library, platform, prices=prices or Prices())


def one_after_the_other(problem: Problem) -> Schedule:
    """`tight` at 1000 MHz in [0, 100], then `loose` at 500 MHz in [100, 300], on one core."""
    schedule = Schedule(
        Segments.of(
            np.array([0, 1]),
            np.array([0, 0]),
            np.array([0.0, 100.0]),
            np.array([100.0, 300.0]),
            np.array([[1.0, 1.0, 1.0], [0.5, 1.0, 1.0]]),
        ),
        PowerSpans(np.array([0]), np.array([ON]), np.array([0.0]), np.array([300.0])),
        Outcomes.all_done(2),
        policy="by hand",
    )
    require_valid(problem, schedule)
    return schedule


def test_what_binds_is_named() -> None:
    problem = two_tasks()
    schedule = one_after_the_other(problem)
    tight, loose = explain(problem, schedule, "tight"), explain(problem, schedule, "loose")
    assert tight.start == ("arrival: it arrives at 0 s",)
    assert [reason.partition(":")[0] for reason in tight.end] == ["deadline", "processor busy"]
    assert loose.start == ("processor busy: tight ends there then",)
    assert loose.end == ("server end: it is the last task on s1, which can sleep afterwards",)
    assert loose.clock[0].startswith("least energy")
    assert loose.clock[1] == "clock limit: the core clock is the lowest this processor allows"


def test_alternatives_have_the_models_time_and_energy() -> None:
    problem = two_tasks()
    options = {
        o.alternative: o for o in explain(problem, one_after_the_other(problem), "tight").options
    }
    assert options["as planned"].energy_j == pytest.approx(10_000.0)
    assert options["least energy"].energy_j == pytest.approx(4_250.0)
    assert options["least energy"].time_s == pytest.approx(200.0)
    assert options["least energy"].possible == "no: 100 s after the deadline"
    assert options["one step slower"].clock == "500 MHz"
    assert options["one step faster"].energy_j == pytest.approx(313.75 * 100.0 / 1.5)
    assert options["one step faster"].possible == "yes"
    assert options["fastest"].time_s == pytest.approx(100.0 / 1.5)


def test_the_hurry_is_priced() -> None:
    problem = two_tasks()
    reason, in_all = explain(problem, one_after_the_other(problem), "tight").clock
    assert in_all.startswith("least in all: of the clocks that fit none is better")
    assert reason == (
        "hurry: at its cheapest clock it would take 200 s; going faster costs 135.3 % more"
    )


def test_continuous_clocks_step_by_a_twentieth_and_fill_the_time() -> None:
    problem = two_tasks(ClockRange(0.1, 2.0))
    options = {
        o.alternative: o for o in explain(problem, one_after_the_other(problem), "loose").options
    }
    assert options["one step faster"].clock == "core 0.525"
    assert options["until the deadline"].time_s == pytest.approx(900.0)
    free = (10.0 / (90.0 * 2.0)) ** (1 / 3)  # d/df (10 + 90 f^3) / f = 0
    assert options["least energy"].time_s == pytest.approx(100.0 / free)


def test_moving_counts_free_processors_and_what_waking_costs() -> None:
    problem = two_tasks()
    said = explain(problem, one_after_the_other(problem), "loose").moves
    assert said[0].startswith("1 processor of the same kind (such as s1/2) free")
    # Waking s2: 50 J, and its other core idles at 5 W for 200 s.
    assert said[1].startswith("2 processors of the same kind (such as s2/1) free, but asleep")
    assert "asleep: 1.05" in said[1]


def test_a_cheaper_time_is_found_even_where_the_price_is_negative() -> None:
    price = Curve(np.array([0.0, 500.0, 700.0]), np.array([0.36, -0.36, 0.36]), 2000.0)
    problem = two_tasks(prices=Prices((("default", ZonePrices(price=price)),)))
    schedule = one_after_the_other(problem)
    # The makespan ends the search where nothing is planned later: stretch it by hand.
    late = Schedule(
        Segments.of(
            np.array([0, 1]),
            np.array([0, 0]),
            np.array([0.0, 800.0]),
            np.array([100.0, 1000.0]),
            np.array([[1.0, 1.0, 1.0], [0.5, 1.0, 1.0]]),
        ),
        PowerSpans(np.array([0]), np.array([ON]), np.array([0.0]), np.array([1000.0])),
        Outcomes.all_done(2),
    )
    (said,) = [move for move in explain(problem, late, "loose").moves if "EUR" in move]
    # 21.25 W for 200 s at 0.36 EUR/kWh is 0.000425 EUR.
    assert said == "started at 500 s the same run would take -0.000425 EUR instead of 0.000425 EUR"
    assert any("no other start" in move for move in explain(problem, schedule, "tight").moves)


def gang_day(end_s: float, core: float, size: int = 2) -> tuple[Problem, Schedule]:
    """`pair` on two cores of s1 after `align`; s1 has a host and is awake until the last end."""
    base = two_tasks()
    spec = ServerSpec("s", (("cpu", size),), 2, host_w=30.0, wake_j=50.0)
    tasks = Tasks.of(
        np.zeros(2, dtype=np.int64),
        name=np.array(["align", "pair"], dtype=object),
        scale=np.array([0.6, 1.0]),
        processors=np.array([1, 2]),
        deadline_s=np.array([np.inf, 4000.0]),
    )
    problem = Problem(
        tasks,
        base.library,
        Platform.build(base.platform.kinds, (spec,)),
        edges=Edges(np.array([0]), np.array([1])),
        epoch=epoch_of("2026-03-02T10:19:00+00:00"),
    )
    points = np.array([[1.0, 1.0, 1.0], [core, 1.0, 1.0], [core, 1.0, 1.0]])
    rows = np.array([0, 1, 1]), np.array([0, 0, 1])
    times = np.array([0.0, 60.0, 60.0]), np.array([60.0, end_s, end_s])
    on = PowerSpans(np.array([0]), np.array([ON]), np.array([0.0]), np.array([end_s]))
    schedule = Schedule(Segments.of(*rows, *times, points), on, Outcomes.all_done(2), policy="us")
    require_valid(problem, schedule)
    return problem, schedule


def test_gangs_of_workflows_name_what_they_wait_for_and_count_host_and_idle() -> None:
    problem, schedule = gang_day(160.0, 1.0)
    mine = explain(problem, schedule, "pair")
    assert mine.start[0] == "predecessor: it starts at Mon 10:20 because 'align' ends then"
    assert "runs on 2 processors of s1 from Mon 10:20 to Mon 10:21:40" in str(mine)
    (move,) = mine.moves
    assert move.startswith(
        "1 other server (such as s2) with 2 processors of the same kind free, but"
    )
    slower = {option.alternative: option for option in mine.options}["one step slower"]
    other = account(*gang_day(260.0, 0.5)).total_j
    assert slower.change_j == pytest.approx(other - account(problem, schedule).total_j)
    told = {row["alternative"]: row["change_j"] for row in mine.page().records}
    assert told["one step slower"] == slower.change_j


def test_the_server_that_a_gang_runs_on_is_no_other_one() -> None:
    """Two of its four processors are free too."""
    (move,) = explain(*gang_day(160.0, 1.0, size=4), "pair").moves
    assert move.startswith("1 other server (such as s2) with 2 processors")


def test_a_longer_run_is_not_possible_where_another_task_waits_for_it() -> None:
    mine = {o.alternative: o.possible for o in explain(*gang_day(160.0, 1.0), "align").options}
    assert mine["as planned"] == "yes"
    assert mine["one step slower"].startswith("not without moving pair, ")


def test_a_server_that_others_keep_awake_costs_no_host_power_more() -> None:
    problem = two_tasks()
    schedule = one_after_the_other(problem)
    slower = {o.alternative: o for o in explain(problem, schedule, "tight").options}[
        "one step slower"
    ]
    # 4250 J instead of 10,000, and 100 s in which its core would have idled at 5 W otherwise.
    assert slower.change_j == pytest.approx(4250.0 - 10_000.0 - 500.0)


def test_a_task_that_does_not_run_says_why() -> None:
    problem = two_tasks()
    late = Problem(
        Tasks.of(np.zeros(1, dtype=np.int64), deadline_s=np.array([10.0])),
        problem.library,
        problem.platform,
    )
    schedule = plan(late, policy("race"))
    explanation = explain(late, schedule, 0)
    assert explanation.run is None
    assert explanation.start == (
        "cpu would need 1.11 min at full speed; its deadline 10 s leaves 10 s",
        "earliest deadline: beside this plan it could end by 66.6667 s on s1",
    )
    assert "is rejected and does not run." in str(explanation)
    assert explanation.options[0].possible == "too slow: 10 s until the deadline"


def test_a_gang_that_is_too_large_says_how_many_it_needs() -> None:
    """Two servers have two cores each."""
    problem = two_tasks()
    gang = replace(problem, tasks=replace(problem.tasks, processors=np.array([9, 1])))
    option = explain(gang, plan(gang, policy("race")), 0).options[0]
    assert option.possible == "no: needs 9, there are 4"


def test_a_task_that_failed_tells_its_history(day) -> None:
    problem, _ = day
    run = simulate(problem, policy("edl"), chances=Chances(fail_jobs=0.2, retries=0), seed=1)
    failed = int(run.failed[0])
    text = str(explain(problem, run.realised, failed)).replace("\n", " ")
    assert f"; failed: {run.realised.outcomes.reason[failed]}" in text
    assert "lost 1 attempt, at " in text


@pytest.mark.parametrize("task", ["t99", 140, -1])
def test_an_unknown_task_is_refused(day, task) -> None:
    with pytest.raises(InvalidInput, match="task="):
        explain(*day, task)


def test_near_names_are_suggested(day) -> None:
    with pytest.raises(InvalidInput, match="did you mean etl-001"):
        explain(*day, "ETL-00")


def test_every_task_of_every_odd_schedule_is_explained(odd) -> None:
    problem, schedule = odd
    for task in range(len(problem.tasks)):
        explanation = explain(problem, schedule, task)
        page = explanation.page()
        assert page.lines[0].startswith(str(problem.tasks.name[task]).split("\n")[0])
        json.dumps(page.data, default=float)
        if explanation.run is not None:
            used = explanation.options[0]
            assert used.energy_j == explanation.run.energy_j
            assert explanation.start
            assert explanation.end


def test_energy_of_the_run_is_the_bills_where_it_was_tried_once(day) -> None:
    problem, schedule = day
    billed = account(problem, schedule).task_j
    for task in range(0, 140, 7):
        run = explain(problem, schedule, task).run
        assert run is not None
        assert run.energy_j == pytest.approx(billed[task], rel=1e-12)


def test_the_command(day, tmp_path, capsys) -> None:
    folder = ROOT / "examples" / "gpu-day"
    write_schedule(day[1], day[0], tmp_path / "s.json")
    files = [str(folder / "cluster.toml"), str(folder / "jobs.csv"), str(tmp_path / "s.json")]
    assert main(["explain", *files, "risk-052", "--plot", str(tmp_path / "f.png")]) == 0
    out = capsys.readouterr().out
    assert "Why this clock:" in out
    assert (tmp_path / "f.png").stat().st_size > 1000
    assert main(["explain", *files, "nobody"]) == 2
    assert capsys.readouterr().err == "error: task='nobody' is not a task of this problem\n"
    assert main(["explain", *files[:2]]) == 2
