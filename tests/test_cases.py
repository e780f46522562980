"""Problems that broke the program once; those that came to us as files are read where they are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import downclock as dc
from downclock.cli import main
from tests.conftest import ROOT

DAY = [str(ROOT / "examples" / "gpu-day" / name) for name in ("cluster.toml", "jobs.csv")]


@pytest.fixture(scope="module")
def cases() -> Path:
    folder = ROOT.parent / "shared" / "cases"
    if not folder.is_dir():
        pytest.skip("the files of these cases are not with us")
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "late-mixed-kinds.json"),
        ("plan", "late-mixed-kinds.json", "--policy", "late"),
        ("plan", "g4.toml", "g4.csv", "--price", "tariff.csv"),
        ("simulate", "slots-lost-attempt.json", "--fail-jobs", "0.5", "--runs", "5"),
    ],
    ids=" ".join,
)
def test_is_planned_or_simulated(cases: Path, arguments: tuple[str, ...]) -> None:
    """A plan that breaks a rule is an internal error: exit code 3."""
    told = [str(cases / each) if (cases / each).is_file() else each for each in arguments]
    assert main(told) == 0


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nested-column.parquet", "column"),
        ("invalid-utf8.parquet", "UTF-8"),
        ("lone-surrogate.json", "surrogate"),
    ],
)
def test_is_refused_in_one_line(
    cases: Path, capsys: pytest.CaptureFixture[str], name: str, told: str
) -> None:
    assert main(["plan", DAY[0], str(cases / name)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert name in line
    assert told in line


def test_a_list_is_no_workflow(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["convert", str(cases / "wfformat-list.json"), "--cores", "2", "--output", "x.json"]
    assert main(asked) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "wfformat-list.json" in line


@pytest.mark.parametrize("spec", ["late", "prompt", "race", "edl"])
def test_heavy_tails_are_late_at_full_speed_not_wrong(spec: str) -> None:
    """A task far beyond its estimate used to leave a run time below the least."""
    problem = dc.load_problem(*DAY)
    run = dc.simulate(problem, dc.policy(spec), chances=dc.Chances("lognormal:1:2"), seed=2)
    assert dc.verify(problem, run.realised).ok
    assert run.done.size + run.failed.size + run.rejected.size == len(problem.tasks)


@pytest.mark.parametrize("spec", ["late:reserve=0.3", "prompt:reserve=0.3", "thrifty", "edl"])
def test_a_chance_that_never_strikes_changes_nothing(
    spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["simulate", *DAY, "--policy", spec, "--actual", "uniform:0.9:1.3", "--seed", "5"]
    found = []
    for more in ([], ["--fail-jobs", "1e-12"]):
        assert main([*asked, *more, "--format", "json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]


def test_wide_numbers_are_planned_or_refused_without_a_warning() -> None:
    """Power of 1e9 W and a wake of 1e100 s."""
    problem = dc.load_problem(*DAY)
    for name, value in (("wake_s", 1e100), ("host_w", 1e9)):
        platform = problem.platform
        column = np.full(platform.server_count, value)
        wide = dc.Platform(**{**_fields(platform), name: column})
        changed = dc.Problem(problem.tasks, problem.library, wide)
        assert dc.verify(changed, dc.plan(changed, dc.policy("late"))).ok


def _fields(platform: dc.Platform) -> dict[str, object]:
    return {name: getattr(platform, name) for name in platform.__dataclass_fields__}
