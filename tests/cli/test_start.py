"""The first minute: demo and init write files that plan, from a checkout and from a wheel."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatch_build import links_of, with_absolute_links

from downclock.workloads.starters import FILES, starter
from tests.conftest import ROOT


def test_init_writes_files_that_plan_and_prints_the_next_commands(run, tmp_path, monkeypatch):
    ran = run("init", str(tmp_path / "mine"))
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "wrote cluster.toml, jobs.csv, prices.csv; next:"
    monkeypatch.chdir(tmp_path / "mine")
    assert sorted(os.listdir()) == sorted(FILES)
    assert lines[1] == f"  cd {tmp_path / 'mine'}"
    commands = [line.split() for line in lines[2:]]
    assert [words[:2] for words in commands] == [
        ["downclock", "show"],
        ["downclock", "plan"],
        ["downclock", "plan"],
    ]
    for words in commands[:2]:
        assert run(*words[1:]).code == 0
    planned = run("plan", "cluster.toml", "jobs.csv", "--format", "json")
    data = json.loads(planned.out)
    assert data["tasks"] == data["plan"]["done"] == 16
    assert Path("report.html").stat().st_size > 10_000


def test_init_overwrites_nothing(run, tmp_path):
    (tmp_path / "jobs.csv").write_text("mine")
    ran = run("init", str(tmp_path))
    assert ran.code == 2
    assert ran.err == f"error: {tmp_path}/jobs.csv: is there already: name another folder\n"
    assert os.listdir(tmp_path) == ["jobs.csv"]
    (tmp_path / "file").write_text("")
    assert "cannot be made" in run("init", str(tmp_path / "file" / "x")).err


def test_the_demo_plans_by_energy_and_by_price(run, tmp_path):
    ran = run("demo", str(tmp_path))
    assert ran.code == 0
    assert "planned by known" in ran.out
    assert "planned by known:objective=cost" in ran.out
    assert ran.err == f"wrote {tmp_path}/report.html\n"
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (ROOT / "examples/gpu-day" / name).read_bytes()
    again = run("demo", str(tmp_path), "--quiet")
    assert (again.code, again.out, again.err) == (0, "", "")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as an installed wheel has it, without the repository around it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_a_wheel_holds_what_the_first_minute_needs(wheel: Path) -> None:
    package = wheel / "downclock"
    assert (package / "py.typed").is_file()
    for name in FILES:
        example = ROOT / "examples/gpu-day" / name
        assert (package / "data/gpu-day" / name).read_bytes() == example.read_bytes()
        assert (package / "data/init" / name).read_bytes() == starter("init")[name]
    (metadata,) = wheel.glob("*.dist-info/METADATA")
    assert "Typing :: Typed" in metadata.read_text()
    assert "# Downclock" in metadata.read_text()


def test_an_index_shows_pictures_and_links_under_the_address_of_the_repository() -> None:
    home = "https://host.example/us/downclock"
    shown = with_absolute_links((ROOT / "README.md").read_text(), home)
    assert f"over time]({home}/raw/main/docs/images/example-day.svg)" in shown
    assert f"[tutorial]({home}/blob/main/docs/tutorial.md)" in shown
    assert "(https://slurm.schedmd.com)" in shown
    assert not re.search(r"\]\((?!https:)", shown)
    assert links_of(home)["Changelog"] == f"{home}/blob/main/CHANGELOG.md"


def test_a_wheel_starts_without_the_repository(wheel: Path, tmp_path: Path) -> None:
    script = "from downclock.workloads.starters import starter; print(len(starter('gpu-day')))"
    environment = {**os.environ, "PYTHONPATH": str(wheel)}
    for arguments in (["-c", script], ["-m", "downclock", "init", "mine"]):
        ran = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
    assert sorted(os.listdir(tmp_path / "mine")) == sorted(FILES)


USERS_SCRIPT = """\
import downclock as dc

problem = dc.load_problem("cluster.toml", "jobs.csv")
schedule = dc.plan(problem, "edl", objective=None)
bill = dc.account(problem, schedule)
joules: float = bill.total_j
verdict = dc.verify(problem, schedule)
run = dc.simulate(problem, chances=dc.Chances(actual="uniform:0.5:1"))
late: int = run.late.size
one = dc.compare(problem, ["race", dc.policy("edl")])
many = dc.compare([problem, dc.generate("mei2021-offline")])
best: str = one.plans[0].policy + many[0].plans[0].policy
page = dc.show(dc.summarise(problem))
made = dc.Tasks.of(["a", "b"], library=problem.library, deadline_s=10.0)
dc.write_report(dc.judge(problem, schedule), "report.html")
print(joules, verdict.ok, late, best, page, made, schedule.makespan_s)
"""


def test_a_users_script_is_typed_against_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """Every expression has a type: none of our names is Any."""
    script = tmp_path / "mine.py"
    script.write_text(USERS_SCRIPT)
    strict = ["--strict", "--disallow-any-expr", "--cache-dir", str(tmp_path / "cache")]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", *strict, str(script)],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": "", "PYTHONPATH": str(wheel)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
