"""Simulated runs as rows: what happened beside what was promised."""

from __future__ import annotations

import pytest

from downclock.errors import InvalidInput
from downclock.planners.catalog import policy
from downclock.report.simulated import simulated_page
from downclock.schedule.account.account import account
from downclock.simulate.chances import Chances
from downclock.simulate.simulate import simulate_many
from downclock.study.simulated import judged_runs, reserve_curve, reserves_of


def test_without_chance_the_run_is_the_plan(day) -> None:
    problem, schedule = day
    runs = judged_runs(simulate_many(problem, policy("edl"), seeds=(3, 4)))
    assert runs.promised_j == pytest.approx(account(problem, schedule).total_j)
    assert [row.seed for row in runs.rows] == [3, 4]
    for row in runs.rows:
        assert row.energy_j == runs.promised_j
        assert (row.done, row.late, row.failed, row.lost_attempts) == (140, 0, 0, 0)
    assert runs.failures == ((), ())


def test_failed_tasks_are_named_with_their_reason(day) -> None:
    chances = Chances(fail_jobs=0.5, retries=0)
    runs = judged_runs(simulate_many(day[0], policy("edl"), chances=chances, seeds=(1,)))
    (row,), (failures,) = runs.rows, runs.failures
    assert row.failed + row.late == len(failures) > 0
    assert row.done + row.late + row.failed + row.rejected == 140
    assert all(reason.startswith("lost") or "done at" in reason for _, reason in failures)


def test_energy_beside_the_plan_is_marked_where_other_tasks_are_done(day) -> None:
    """Half of the jobs fail: less energy than promised is no saving."""
    for chance, same in ((0.0, True), (0.5, False)):
        chances = Chances(fail_jobs=chance, retries=0)
        found = judged_runs(simulate_many(day[0], policy("edl"), chances=chances, seeds=(1, 2)))
        page = simulated_page(found)
        assert {row.same_tasks for row in found.rows} == {same}
        assert {row[2].endswith(" *") for row in page.tables[0].rows if row} == {not same}
        assert bool(page.notes) == (not same)


def test_a_reserve_of_the_greatest_overrun_misses_nothing(day) -> None:
    told: list[str] = []
    rows = reserve_curve(
        *(day[0], "late", reserves_of("0,0.2")),
        chances=Chances("uniform:0.9:1.2"),
        seeds=(1, 2),
        progress=lambda what, *_: told.append(what),
    )
    assert told == ["reserve 0", "reserve 0.2"]
    assert rows[1].missed == rows[1].missed_share == 0.0
    assert rows[0].missed_share == pytest.approx(rows[0].missed / (140 - rows[0].rejected))
    assert rows[0].missed > 0.0


def test_a_reserve_is_a_number_and_the_policy_has_one(day) -> None:
    with pytest.raises(InvalidInput, match="numbers with commas"):
        reserves_of("0;1")
    with pytest.raises(InvalidInput, match="has no reserve"):
        reserve_curve(day[0], "race", (0.1,), chances=Chances(), seeds=(0,))
