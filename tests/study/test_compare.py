"""Comparisons: sorted, honest about what does not apply, and never below the bound."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from downclock.cli import main
from downclock.errors import InvalidInput
from downclock.planners.catalog import CATALOG, policy
from downclock.problem.files.write_problem import write_problem
from downclock.report.comparison import comparison_page
from downclock.report.tables import rendered
from downclock.study.baselines import chosen_policy
from downclock.study.compare import compare
from downclock.study.planned import Judge
from downclock.workloads import mei
from tests.conftest import ROOT
from tests.generated import random_problem

GPU_DAY = str(ROOT / "examples" / "gpu-day")
FILES = (f"{GPU_DAY}/cluster.toml", f"{GPU_DAY}/jobs.csv")


@pytest.fixture(scope="module")
def small():
    """A paper's day, small enough for every policy."""
    cluster = mei.Cluster(pairs=128, per_server=4)
    return mei.online(7, utilisation=0.03, initial_utilisation=0.01, cluster=cluster)


def test_every_policy_of_the_catalogue_is_compared_or_named(small) -> None:
    found = compare(small)
    said = [each.policy for each in found.plans] + [spec for spec, _ in found.without]
    assert sorted(said) == sorted(CATALOG)
    for spec, reason in found.without:
        assert reason == policy(spec).objection(small) or reason.startswith("its plan is")


def test_plans_that_complete_all_come_first_and_then_the_least_energy(small) -> None:
    plans = compare(small).plans
    keys = [(-each.done, each.bill.total_j) for each in plans]
    assert keys == sorted(keys)


def test_online_leaves_out_what_looks_ahead_and_known_adds_what_plan_answers(small) -> None:
    both = {each.policy: each.foresees for each in compare(small, ["race", "static-cap"]).plans}
    assert both == {"race": False, "static-cap": True}
    online = compare(small, ["race", "static-cap"], knowing="arrivals")
    assert [each.policy for each in online.plans] == ["race"]
    assert online.without == (("static-cap", "it looks at jobs before they arrive"),)
    known = compare(small, ["race", "edl"], knowing="all")
    answer = chosen_policy(small)
    assert known.plans[0].policy == answer.name
    assert known.plans[0].bill.total_j == Judge.of(small).planned(answer).bill.total_j
    assert [each.policy for each in known.plans].count(answer.name) == 1


def test_the_command_names_what_policies_know(small, tmp_path, capsys) -> None:
    write_problem(small, tmp_path / "p.json")
    files = [str(tmp_path / "p.json"), "--policies", "race,static-cap"]
    assert main(["compare", *files]) == 0
    assert {"arrivals", "jobs"} <= set(capsys.readouterr().out.split())
    assert main(["compare", *files, "--online"]) == 0
    out = capsys.readouterr().out
    assert "not compared, static-cap: it looks at jobs before they arrive" in out


def test_no_policy_is_below_the_bound(small) -> None:
    for each in compare(small).plans:
        assert each.gap >= -1e-9, each.policy


def test_figures_are_those_of_the_plan_alone(day) -> None:
    problem, _ = day
    (row,) = compare(problem, ["edl:theta=0.9"]).records()
    alone = Judge.of(problem).planned(policy("edl:theta=0.9")).bill
    assert row["total_j"] == alone.total_j
    assert row["money"] == alone.money
    assert row["carbon_kg"] == alone.carbon_kg
    assert row["problem"] == problem.name


def test_a_policy_that_does_not_apply_says_why() -> None:
    problem = random_problem(2, edges=True, tasks=10)
    found = compare(problem, ["race", "edl"])
    page = comparison_page(found)
    for spec in ("race", "edl"):
        reason = policy(spec).objection(problem)
        assert reason is not None
        assert f"not compared, {spec}: {reason}" in page.notes
    assert "no policy has a plan" in str(page)


def test_an_unknown_policy_is_an_error_before_any_work(day) -> None:
    seen: list[str] = []
    with pytest.raises(InvalidInput, match="is not a policy"):
        compare(day[0], ["race", "fastest"], progress=lambda spec, *_: seen.append(spec))
    assert seen == []


def test_progress_is_told_before_each_policy(day) -> None:
    seen: list[tuple[str, int, int]] = []
    compare(day[0], ["race", "edl"], progress=lambda *said: seen.append(said))
    assert seen == [("planning by race", 0, 2), ("planning by edl", 1, 2)]


def test_many_problems_are_summed_up(day) -> None:
    problems = [day[0]] * 5
    page = comparison_page(*compare(problems, ["race", "edl"]))
    assert len(page.tables) == 1
    first, second = page.tables[0].rows
    assert first is not None
    assert second is not None
    assert first[0] == "edl"
    assert first[3] == "0.00 %"
    assert (first[5], second[5]) == ("5", "0")
    assert len(page.records) == 10


def test_who_does_fewer_tasks_is_not_below_the_best(day) -> None:
    """On 16 pairs that are full `edl` does a third fewer tasks than `late`: it was 43 % better."""
    cluster = mei.Cluster(pairs=16, per_server=4)
    full = mei.online(0, utilisation=0.5, initial_utilisation=0.3, cluster=cluster)
    page = comparison_page(*compare([full, day[0]], ["late", "edl"]))
    rows = {row[0]: row for row in page.tables[-1].rows if row}
    assert rows["edl"][3].endswith(" % *")
    assert not rows["edl"][3].startswith("-")
    assert "* without problems where the best plan does other tasks" in page.notes
    alone = comparison_page(*compare([full, full], ["late", "edl"])).tables[-1].rows
    assert [row[3] for row in alone if row] == ["0.00 %", "other tasks *"]


def test_json_holds_every_column_of_the_issue(day) -> None:
    data = json.loads(rendered(comparison_page(compare(day[0], ["edl"])), "json"))
    (row,) = data["problems"][0]["plans"]
    for name in (
        "run_j",
        "idle_j",
        "wake_j",
        "total_j",
        "money",
        "carbon_kg",
        "deadlines_met",
        "rejected",
        "servers_used",
        "wakes",
        "gap",
        "planning_s",
    ):
        assert row[name] is not None, name


def test_the_command_writes_tables_and_a_plot(tmp_path: Path, capsys) -> None:
    import pyarrow.parquet as pq

    for name in ("t.csv", "t.json", "t.parquet"):
        arguments = ["compare", *FILES, "--policies", "edl:theta=0.9,rho=60,race"]
        plot = ["--plot", str(tmp_path / "bars.svg")]
        assert main([*arguments, "--output", str(tmp_path / name), *plot]) == 0
    out = capsys.readouterr().out
    assert "edl:theta=0.9,rho=60" in out
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [row["policy"] for row in rows] == ["edl:theta=0.9,rho=60", "race"]
    table = pq.read_table(tmp_path / "t.parquet").to_pylist()
    assert [float(row["total_j"]) for row in rows] == [row["total_j"] for row in table]
    assert len(json.loads((tmp_path / "t.json").read_text())["problems"][0]["plans"]) == 2
    assert "<svg" in (tmp_path / "bars.svg").read_text()


def test_the_command_reads_a_folder_of_problems(day, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "problems"
    folder.mkdir()
    for name in ("a", "b"):
        write_problem(day[0], folder / f"{name}.json")
    assert main(["compare", str(folder), "--policies", "race", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_an_empty_folder_is_refused(tmp_path: Path, capsys) -> None:
    assert main(["compare", str(tmp_path)]) == 2
    assert "holds no problem file" in capsys.readouterr().err
