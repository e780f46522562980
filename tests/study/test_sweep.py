"""Sweeps: files into runs, runs into rows, rows that survive, and what is said of them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from downclock.errors import InvalidInput
from downclock.planners.catalog import policy
from downclock.report.sweep import sweep_figure, sweep_page
from downclock.report.tables import rendered
from downclock.study.executor import pool
from downclock.study.mean import Mean
from downclock.study.planned import Judge
from downclock.study.sweep import store
from downclock.study.sweep.grid import Grid, read_grid
from downclock.study.sweep.run import PROVENANCE, _judge, made_problem, run_one
from downclock.study.sweep.store import Log
from downclock.study.sweep.sweep import LOG, TABLE, Sweep, sweep
from tests.conftest import ROOT

DAY = ROOT / "examples" / "gpu-day"
SMALL = """
policies = ["race", "edl"]
seeds = 3
[[problem]]
workload = "mei2021-offline"
pairs = 16
utilisation = [0.003, 0.006]
"""


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the text of a sweep to a file."""

    def write(text: str) -> Path:
        path = tmp_path / "s.toml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def swept(written, tmp_path: Path) -> Callable[..., Sweep]:
    """Runs the text of a sweep in this process."""

    def run(text: str, **more: object) -> Sweep:
        return sweep(read_grid(written(text)), tmp_path / "out", lambda left: pool(1), **more)

    return run


def figures(row: dict[str, object]) -> dict[str, object]:
    """A row without what may differ between two runs."""
    return {name: value for name, value in row.items() if name not in PROVENANCE}


def test_a_grid_is_every_combination_once(written):
    grid = read_grid(written(SMALL + "[parameters]\ntheta = [0.8, 1.0]\n"))
    found = [(run.spec, run.seed, dict(run.axes)["utilisation"]) for run in grid.runs]
    assert len(found) == len(set(found)) == 2 * 3 * (1 + 2)
    assert {spec for spec, *_ in found} == {"race", "edl:theta=0.8", "edl"}
    assert grid.axes == ("utilisation", "theta")
    assert grid.baseline == "race"


def test_a_list_walks_its_lists_together(written):
    text = SMALL.replace("seeds = 3", 'seeds = [5, 9]\ncombine = "list"')
    runs = read_grid(written(text)).runs
    assert [(run.policy, run.seed, dict(run.axes)["utilisation"]) for run in runs] == [
        ("race", 5, 0.003),
        ("edl", 9, 0.006),
    ]


def test_paths_are_relative_to_the_file(tmp_path):
    for name in ("cluster.toml", "jobs.csv", "prices.csv"):
        (tmp_path / name).write_text((DAY / name).read_text())
    path = tmp_path / "s.toml"
    path.write_text('policies = ["race"]\n[[problem]]\ncluster = "cluster.toml"\njobs = "jobs.csv"')
    run = read_grid(path).runs[0]
    assert run.problem == "jobs"
    assert len(made_problem(dict(run.source), None).tasks) == 140


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("race", "rase"), "line 2: policies 'rase' is not a policy; did you mean 'race'"),
        (("seeds = 3", "seeds = -1"), "line 3: seeds=-1 must be how many"),
        (("seeds = 3", "seeds = []"), "has no value"),
        (("seeds", "sedes"), "sedes is not a known key; did you mean 'seeds'"),
        (("mei2021-offline", "mei1999"), None),
        (("pairs = 16", "pairs = 1.5"), "line 6, problem 1: pairs=1.5 must be a whole number"),
        (("pairs = 16", 'file = "x.json"'), "needs a workload, or a file, or a cluster and jobs"),
        (("pairs = 16", "deadline_factor = 2"), "deadline_factor=2 is not for such a problem"),
        (("[[problem]]", "[parameters]\nreserve = 1\n[[problem]]"), "reserve is not a known key"),
        (
            ("[[problem]]", "[simulate]\nfail_jobs = 2.0\n[[problem]]"),
            "line 5, simulate: fail_jobs=2.0 must be between 0 and 1",
        ),
        (("seeds = 3", "slurm = 3"), "line 3: slurm=3 must be a table"),
        (("seeds = 3", 'slurm = "x"'), "line 3: slurm='x' must be a table"),
        (
            ("pairs = 16", "task_utilisation = [[0.1, 0.2, 0.3]]"),
            "task_utilisation=[0.1, 0.2, 0.3] must be words, or lists of two numbers",
        ),
        (
            ("[[problem]]", '[simulate]\nfail_jobs = "a"\n[[problem]]'),
            "line 5, simulate: fail_jobs='a' must be a number",
        ),
        (
            ("[[problem]]", '[simulate]\nactual = [["a"]]\n[[problem]]'),
            "line 5, simulate: actual=['a'] must be text",
        ),
        (
            ("[[problem]]", "[simulate]\nretries = 2026-01-01\n[[problem]]"),
            "must be a whole number",
        ),
        (("seeds = 3", 'combine = "list"\nseeds = 3'), "needs lists of one length"),
        (("seeds = 3", 'baseline = "late"'), "must be one of race, edl"),
        (("seeds = 3", 'objective = "joy"'), "line 3: objective='joy'"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(written, swept, change, complaint):
    text = SMALL.replace(*change)
    if complaint is None:  # known only where the problem is made
        with pytest.raises(InvalidInput, match="no run could be done: workload='mei1999'"):
            swept(text)
        return
    with pytest.raises(InvalidInput, match=re.escape(complaint)):
        read_grid(written(text))


def test_two_problems_of_one_name_are_refused(written):
    other = '[[problem]]\nworkload = "mei2021-online"\nname = "mei2021-offline"\n'
    with pytest.raises(InvalidInput, match="two problems called 'mei2021-offline'"):
        read_grid(written(SMALL + other))


def test_another_input_or_version_has_another_key(tmp_path):
    for name in ("cluster.toml", "jobs.csv", "prices.csv"):
        (tmp_path / name).write_text((DAY / name).read_text())
    path = tmp_path / "s.toml"
    path.write_text('policies = ["race"]\n[[problem]]\ncluster = "cluster.toml"\njobs = "jobs.csv"')
    seen = {read_grid(path).runs[0].key("1")}
    assert read_grid(path).runs[0].key("1") in seen
    assert read_grid(path).runs[0].key("2") not in seen
    for name in ("jobs.csv", "cluster.toml", "prices.csv"):
        with (tmp_path / name).open("a") as file:
            file.write("\n")
        key = read_grid(path).runs[0].key("1")
        assert key not in seen, name
        seen.add(key)


def test_a_file_that_changed_is_read_again_in_the_same_process(tmp_path):
    for name in ("cluster.toml", "jobs.csv", "prices.csv"):
        (tmp_path / name).write_text((DAY / name).read_text())
    path = tmp_path / "s.toml"
    path.write_text('policies = ["race"]\n[[problem]]\ncluster = "cluster.toml"\njobs = "jobs.csv"')
    assert run_one(read_grid(path).runs[0])["tasks"] == 140
    lines = (tmp_path / "jobs.csv").read_text().splitlines()
    (tmp_path / "jobs.csv").write_text("\n".join(lines[:-1]) + "\n")
    assert run_one(read_grid(path).runs[0])["tasks"] == 139


def test_a_row_has_the_figures_of_a_judged_plan(written):
    grid = read_grid(written(SMALL))
    run = next(run for run in grid.runs if run.spec == "edl" and run.seed == 2)
    row = run_one(run)
    problem = made_problem(dict(run.source), run.seed)
    wanted = Judge.of(problem).planned(policy("edl")).record()
    assert row["status"] == "done"
    for name in ("total_j", "run_j", "bound_j", "gap", "done", "makespan_s"):
        assert row[name] == wanted[name], name
    assert {"version", "machine", "seconds", "seed", "utilisation", "spec"} <= set(row)


def test_a_policy_that_cannot_is_a_row_that_says_why(swept):
    done = swept(SMALL.replace('"edl"', '"least-cost"'))
    refused = [row for row in done.rows if row["status"] == "refused"]
    assert len(refused) == 6
    assert all("power" in row["reason"] for row in refused)
    assert len(sweep_page(done).notes) == 1
    assert sweep_page(done).notes[0].startswith("least-cost: 6 runs refused, the first: ")


def test_an_error_is_a_row_and_is_tried_again(swept, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by zero")

    _judge.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr("downclock.study.sweep.run.made_problem", broken)
        failed = swept(SMALL)
    assert {row["reason"] for row in failed.rows} == {"ZeroDivisionError: by zero"}
    again = swept(SMALL)
    assert again.kept == 0
    assert {row["status"] for row in again.rows} == {"done"}


def test_simulated_runs_meet_the_same_fate(swept):
    done = swept(SMALL + '[simulate]\nactual = ["uniform:0.5:1", "uniform:0.9:1"]\n')
    early = {row["seed"]: row for row in done.rows if row["actual"] == "uniform:0.5:1"}
    assert all(row["total_j"] < row["promised_j"] for row in early.values())
    assert done.grid.axes == ("utilisation", "actual")


@pytest.mark.parametrize(("objective", "unit"), [("energy", "kWh"), ("cost", "EUR")])
def test_simulated_runs_are_valued_by_the_objective(swept, objective, unit):
    text = f'''
policies = ["race", "edl"]
seeds = 2
objective = "{objective}"
[[problem]]
cluster = "{DAY / "cluster.toml"}"
jobs = "{DAY / "jobs.csv"}"
[simulate]
actual = "uniform:0.8:1"
'''
    done = swept(text)
    assert done.summary.metric == "objective_value"
    assert {row["objective_unit"] for row in done.rows} == {unit}
    cells = [cell.value.value for cell in done.summary.cells]
    assert cells == pytest.approx(
        [np.mean([row["objective_value"] for row in done.rows if row["spec"] == cell.spec])
         for cell in done.summary.cells]
    )  # fmt: skip
    kwh = [row["total_j"] / 3.6e6 for row in done.rows]
    worth = [row["objective_value"] for row in done.rows]
    assert (worth == pytest.approx(kwh)) is (objective == "energy")


def test_a_second_sweep_does_only_what_is_new(swept):
    first = swept(SMALL)
    grown = swept(SMALL.replace("seeds = 3", "seeds = 4"))
    assert (first.kept, grown.kept, len(grown.rows)) == (0, 12, 16)
    assert [row for row in grown.rows if row["seed"] < 3] == list(first.rows)
    assert swept(SMALL, fresh=True).kept == 0


def test_the_table_has_a_row_a_run_in_order_of_the_grid(swept, tmp_path):
    done = swept(SMALL + "[parameters]\nrho = [0, 60.0]\n")
    table = pq.read_table(tmp_path / "out" / TABLE).to_pylist()
    assert [row["spec"] for row in table] == [run.spec for run in done.grid.runs]
    assert [row["total_j"] for row in table] == [row["total_j"] for row in done.rows]
    assert list(table[0])[-3:] == ["version", "machine", "seconds"]


def test_words_and_numbers_in_one_column_are_words(swept, tmp_path):
    swept(SMALL + '[parameters]\nrho = [0, "never"]\n')
    column = pq.read_table(tmp_path / "out" / TABLE).column("rho").to_pylist()
    assert set(column) == {"0", "never"}


def test_what_a_killed_process_left_of_a_line_is_dropped(tmp_path):
    path = tmp_path / LOG
    with closing(Log(path)) as log:
        log.add("a", {"x": 1.5})
        log.add("b", {"x": np.inf})
    whole = path.read_bytes()
    for cut in range(1, 20):
        path.write_bytes(whole[:-cut])
        with closing(Log(path)) as log:
            assert log.rows == {"a": {"x": 1.5}}
            log.add("b", {"x": np.inf})
        assert path.read_bytes() == whole


@pytest.mark.parametrize("damage", ["{}", "[1]", '{"key": "a"}', "x"])
def test_a_damaged_line_is_named(tmp_path, damage):
    path = tmp_path / LOG
    path.write_text(json.dumps({"format": store.FORMAT}) + f"\n{damage}\n")
    with pytest.raises(InvalidInput, match=r"runs\.jsonl line 2: is not a result"):
        Log(path)


@pytest.mark.parametrize("head", ['{"format": "downclock-sweep/0"}', "[]", "no"])
def test_the_log_of_another_version_is_not_gone_on_with(tmp_path, head):
    (tmp_path / LOG).write_text(head + "\n")
    with pytest.raises(InvalidInput, match=r"line 1: is not a log of this version"):
        Log(tmp_path / LOG)
    with closing(Log(tmp_path / LOG, fresh=True)) as log:
        assert not log.rows


@pytest.mark.skipif(sys.platform == "win32", reason="needs flock")
def test_two_sweeps_do_not_write_in_one_folder(tmp_path):
    with (
        closing(Log(tmp_path / LOG)),
        pytest.raises(InvalidInput, match="another sweep writes there"),
    ):
        Log(tmp_path / LOG)


def test_intervals_are_those_of_student():
    drawn = np.random.default_rng(3).normal(5.0, 2.0, 17)
    mean = Mean.of(drawn)
    low, high = stats.t.interval(0.95, 16, drawn.mean(), stats.sem(drawn))
    assert (mean.value - mean.half, mean.value + mean.half) == pytest.approx((low, high))
    assert np.isnan(Mean.of([1.0]).half)
    assert np.isnan(Mean.of([]).value)


def test_the_interval_holds_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(11)
    means = [Mean.of(rng.normal(1.0, 3.0, 6)) for _ in range(2000)]
    held = np.mean([abs(mean.value - 1.0) <= mean.half for mean in means])
    assert 0.935 < held < 0.965


def test_differences_are_paired_by_seed_and_problem(swept):
    done = swept(SMALL)
    edl = [cell for cell in done.summary.cells if cell.spec == "edl"]
    for cell in edl:
        mine, base = (
            np.array([
                row["total_j"] for row in done.rows
                if row["spec"] == spec and row["utilisation"] == cell.axes["utilisation"]
            ]) for spec in ("edl", "race")
        )  # fmt: skip
        assert cell.difference is not None
        assert cell.difference.value == pytest.approx(float(np.mean(mine / base - 1.0)))
        assert cell.difference.count == 3
    ((spec, mean, other),) = done.summary.overall
    assert (spec, mean.count, other) == ("edl", 6, 0)
    assert mean.value == pytest.approx(np.mean([cell.difference.value for cell in edl]))


def test_pairs_that_ran_other_tasks_are_left_out_and_counted(swept):
    done = swept(SMALL)
    rows = [{**row, "ran": f"{row['ran']}{row['seed'] == 1 and row['spec']}"} for row in done.rows]
    from downclock.study.sweep.summary import summarised

    cells = summarised(done.grid, rows).cells
    edl = [cell for cell in cells if cell.spec == "edl"]
    assert [cell.difference.count for cell in edl if cell.difference] == [2, 2]
    assert [cell.other_tasks for cell in edl] == [1, 1]


def test_the_page_says_it_in_every_form(swept):
    page = sweep_page(swept(SMALL))
    text = rendered(page, "table")
    assert "12 runs, 12 done" in text
    assert "to race" in text
    lines = rendered(page, "csv").splitlines()
    assert len(lines) == 1 + 4
    data = json.loads(rendered(page, "json"))
    assert data["baseline"] == "race"
    assert [cell["runs"] for cell in data["cells"]] == [3, 3, 3, 3]


@pytest.mark.parametrize("axis", ["[0.003, 0.006]", "0.003"])
def test_the_figure_is_along_the_axis_or_of_differences(swept, axis):
    pytest.importorskip("matplotlib")
    done = swept(SMALL.replace("[0.003, 0.006]", axis))
    figure = sweep_figure(done)
    wanted = "utilisation" if "[" in axis else "difference to race (%)"
    assert figure.axes[0].get_xlabel() == wanted


LARGE = """
policies = ["race", "edl"]
seeds = 250
[[problem]]
workload = "mei2021-offline"
pairs = 16
utilisation = 0.004
"""


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, list[str]]]:
    """Options of every engine; the Dask scheduler has one worker, on loopback."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield {"pool": ["--jobs", "2"], "dask": ["--dask", cluster.scheduler_address]}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> list[dict[str, object]]:
    """The 500 runs in one process that nobody disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "s.toml").write_text(LARGE)
    done = sweep(read_grid(folder / "s.toml"), folder, lambda left: pool(1))
    return [figures(row) for row in done.rows]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
@pytest.mark.parametrize("engine", ["pool", "dask"])
def test_a_sweep_killed_half_way_goes_on_to_the_same_table(
    tmp_path, engines, uninterrupted, engine
):
    (tmp_path / "s.toml").write_text(LARGE)
    command = [sys.executable, "-m", "downclock", "sweep", str(tmp_path / "s.toml")]
    command += [*engines[engine], "--output", str(tmp_path / "out")]
    log = tmp_path / "out" / LOG
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _wait_for(lambda: log.is_file() and log.read_bytes().count(b"\n") > 250, process)
        os.kill(process.pid, signal.SIGKILL)
    assert not (tmp_path / "out" / TABLE).exists()
    before = log.read_bytes().count(b"\n") - 1
    assert 250 <= before < 500
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{before:,} kept from before" in " ".join(ended.stdout.split())
    table = pq.read_table(tmp_path / "out" / TABLE).to_pylist()
    assert [figures(row) for row in table] == uninterrupted


def _wait_for(there: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 600.0
    while not there():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)


def test_grids_are_values(written):
    assert isinstance(read_grid(written(SMALL)), Grid)
    assert read_grid(written(SMALL)) == read_grid(written(SMALL))
