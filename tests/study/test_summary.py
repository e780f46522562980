"""A plan beside its baselines: the same judge for what we plan and for what somebody else did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.errors import InvalidInput, InvalidSchedule
from downclock.planners.catalog import policy
from downclock.quantities import percent
from downclock.report.summary import summary_page
from downclock.report.tables import rendered
from downclock.schedule.schedule import REJECTED
from downclock.study import planned as planned_module
from downclock.study.baselines import chosen_policy, usual_baselines
from downclock.study.summary import judge, summarise
from downclock.workloads import mei
from tests.laws.test_policies import problem_of


def test_a_schedule_that_was_read_gets_the_figures_of_the_plan(day) -> None:
    problem, schedule = day
    ours, theirs = summarise(problem, "edl"), judge(problem, schedule)
    for mine, other in zip(ours.plans, theirs.plans, strict=True):
        mine_row, other_row = mine.record(), other.record()
        for row in (mine_row, other_row):
            del row["planning_s"], row["foresees"]
        assert mine_row == other_row
    assert theirs.plan.verdict.ok
    assert np.isnan(theirs.plan.planning_s)


def test_a_policy_is_as_good_as_its_spec(day) -> None:
    by_spec = summarise(day[0], "edl:theta=0.90", baselines=())
    by_value = summarise(day[0], policy("edl:theta=0.9"), baselines=())
    assert by_spec.plan.policy == by_value.plan.policy == "edl:theta=0.9"
    assert by_spec.plan.bill.total_j == by_value.plan.bill.total_j


def test_no_program_is_solved_for_the_bound_of_very_many_tasks(monkeypatch) -> None:
    def bound_j(**how: bool) -> float:
        cluster = mei.Cluster(pairs=8, per_server=4)
        problem = mei.offline(0, utilisation=0.01, cluster=cluster)  # 20 tasks
        return summarise(problem, "edl", baselines=(), **how).plan.bound_j

    at_once_j = bound_j(prove=False)
    assert bound_j() > 1.004 * at_once_j
    monkeypatch.setattr(planned_module, "PROVED", 19)
    assert bound_j() == at_once_j


def test_an_effort_that_is_no_time_buys_no_longer_proof(monkeypatch) -> None:
    """Replanning counts job times; of plans that take seconds the proof may take as many."""
    spent = []
    monkeypatch.setattr(planned_module.Bounds, "prove", lambda *given: spent.append(given[-1]))
    for spec in ("replan", "known:effort=3"):
        summarise(problem_of(1, spec), spec, baselines=())
    assert spent == [1.0, 3.0]


def test_savings_are_only_said_of_the_same_tasks(day) -> None:
    problem, schedule = day
    fewer = summarise(problem, "edl", baselines=["race"])
    status = schedule.outcomes.status.copy()
    status[0] = REJECTED
    kept = schedule.segments.task != 0
    rows = {name: getattr(schedule.segments, name)[kept] for name in _columns(schedule.segments)}
    left = replace(
        schedule,
        segments=type(schedule.segments)(**rows),
        outcomes=replace(schedule.outcomes, status=status),
    )
    other = judge(problem, left, baselines=["race"])
    race_j = fewer.baselines[0].bill.total_j
    assert fewer.saved(fewer.baselines[0]) == 1.0 - fewer.plan.bill.total_j / race_j > 0.0
    assert other.saved(other.baselines[0]) is None
    assert other.comparable().baselines == ()
    ((name, why),) = other.comparable().without
    assert name == "race"
    saved, both = other.saved_on_both(other.baselines[0])
    assert why == (
        f"it runs other tasks, 140 in all; running the {both} that both do takes"
        f" {percent(saved)} less in this plan"
    )
    part, tasks = other.saved_on_both(other.baselines[0])
    ours, theirs = (each.bill.task_j[1:].sum() for each in (other.plan, other.baselines[0]))
    assert (part, tasks) == (pytest.approx(1.0 - ours / theirs), 139)
    said = rendered(summary_page(other), "text")
    assert f"{percent(part)} *" in said
    assert "the saving is on running the 139 tasks that both do" in said.replace("\n", " ")


def test_what_is_saved_on_both_is_of_what_was_to_be_least(day) -> None:
    mine = summarise(day[0], "thrifty", baselines=["race"])
    part, tasks = mine.saved_on_both(mine.baselines[0])
    ours, theirs = (each.bill.task_money.sum() for each in (mine.plan, mine.baselines[0]))
    assert (part, tasks) == (pytest.approx(1.0 - ours / theirs), 140)


def _columns(table: object) -> list[str]:
    return list(table.__dataclass_fields__)  # type: ignore[attr-defined]


def test_a_baseline_with_a_broken_plan_is_named_and_the_plan_is_shown(day, monkeypatch) -> None:
    require = planned_module.require_valid

    def broken(problem, schedule):
        if schedule.policy == "race":
            raise InvalidSchedule("invalid: 1 violation\n  and more")
        return require(problem, schedule)

    monkeypatch.setattr(planned_module, "require_valid", broken)
    summary = summarise(day[0], "edl", baselines=["race", "static-cap"])
    assert [each.policy for each in summary.plans] == ["edl", "static-cap"]
    assert summary.without == (("race", "its plan is invalid: 1 violation"),)


def test_the_plan_is_no_baseline_of_itself(day) -> None:
    assert [each.name for each in usual_baselines(day[0], "race")] == ["static-cap"]
    graph = problem_of(2, "graph")
    assert [each.name for each in usual_baselines(graph, "graph:rule=lpt")] == [
        "graph:rule=lpt,clocks=single"
    ]


def test_baselines_search_as_long_and_sleep_as_late_as_the_plan(day) -> None:
    named = [each.name for each in usual_baselines(day[0], "edl:theta=0.9,rho=120")]
    assert named == ["race:rho=120", "static-cap:rho=120"]
    slotted = problem_of(1, "least-cost")
    (blind,) = usual_baselines(slotted, "least-cost:rounds=3")
    assert blind.name == "least-cost:objective=energy,rounds=3"


def test_the_policy_is_chosen_by_what_the_problem_is(day) -> None:
    assert chosen_policy(day[0]).name == "known"
    assert chosen_policy(day[0], effort=0.0).name == "late"
    assert chosen_policy(day[0], known=False).name == "late"
    assert chosen_policy(day[0], objective="carbon").name == "known:objective=carbon"
    assert chosen_policy(day[0], effort=0.1).name == "known:effort=0.1"
    graph = problem_of(2, "graph")
    assert chosen_policy(graph, seed=7).name == "graph:seed=7"
    assert chosen_policy(graph, "graph:seed=3", seed=7).name == "graph:seed=3"
    with pytest.raises(InvalidInput, match="has no effort"):
        chosen_policy(day[0], "race", effort=1.0)


def test_a_summary_prints_a_line_a_plan(day) -> None:
    lines = str(summarise(day[0], "edl", baselines=["race"])).splitlines()
    assert "140 tasks" in lines[0]
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["edl", "race"]
    assert all("140 of 140 done" in line for line in lines[1:])
