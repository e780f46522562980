"""The site file, and which jobs it makes tasks of."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from downclock.adapters.slurm.commands import run
from downclock.adapters.slurm.jobs import JobReader, Task
from downclock.adapters.slurm.observed import Job
from downclock.adapters.slurm.site import SlurmSite, _spread, read_site
from downclock.errors import InvalidInput

CLUSTER = """\
applications = "builtin:a100"
[[kind]]
name = "a100"
[[server]]
name = "node"
count = 2
processors = [{ kind = "a100", count = 4 }]
"""

JOB = Job(
    7, "train-1", "ann", "gpu", "downclock=plan", frozenset(["PENDING"]), held=True,
    submit_s=1000.0, deadline_s=10_000.0, limit_s=3600.0, gpus=1,
)  # fmt: skip


def _site(folder: Path, text: str = "", cluster: str = CLUSTER) -> SlurmSite:
    (folder / "cluster.toml").write_text(cluster)
    (folder / "site.toml").write_text(f'cluster = "cluster.toml"\n{text}')
    return read_site(folder / "site.toml")


def _task(folder: Path, text: str = "", **changes: object) -> Task | str:
    reader = JobReader(_site(folder, text), lambda number: f"script of {number}")
    return reader.task_of(replace(JOB, **changes), 1000.0)  # type: ignore[arg-type]


def test_a_job_becomes_a_task(tmp_path: Path) -> None:
    task = _task(tmp_path)
    assert isinstance(task, Task)
    # An hour by its limit and ten seconds to start and end; Slurm's minutes are kept free.
    assert (task.whole_s, task.deadline_s, task.gpus) == (3610.0, 9940.0, 1)
    assert task.application_name == "mixed"


@pytest.mark.parametrize(
    ("why", "text", "changes"),
    [
        ("its owner opted out", "", {"comment": "downclock=off"}),
        ("it asks for no GPU", "", {"gpus": 0}),
        ("its partition is not ours", 'partitions = ["a"]', {}),
        ("it is not held", "", {"held": False, "comment": ""}),
        ("its comment does not ask for it", 'take = "tagged"', {"comment": ""}),
        ("its owner chose its nodes", "", {"required_nodes": "node1"}),
        ("its owner chose its clocks", "", {"gpu_freq": "gpu:900"}),
        ("its owner lets it start later", "", {"eligible_s": 2000.0}),
        ("it has no deadline", "", {"deadline_s": float("inf")}),
        ("its deadline has passed", "", {"deadline_s": 1030.0}),
        ("it is a job array", "", {"odd": "it is a job array"}),
        ("it has no time limit, and nobody says how long it runs", "", {"limit_s": float("inf")}),
        ("it was left to Slurm before", "", {"comment": "downclock left=1 reason=x"}),
        ("GPUs on part of several nodes are not planned", "", {"node_count": 2, "gpus": 2}),
        ("it asks for GPUs of a type that the cluster does not have", "", {"gpu_type": "h100"}),
        (
            "application 'x' cannot run there, or nobody knows it",
            "",
            {"comment": "downclock=app:x"},
        ),
    ],
)
def test_jobs_that_are_not_planned_and_why(tmp_path: Path, why: str, text: str, changes) -> None:
    assert _task(tmp_path, text, **changes) == why


def test_deadlines_by_word_by_slurm_and_by_factor(tmp_path: Path) -> None:
    word = _task(tmp_path, comment="downclock=deadline:+1h")
    rule = _task(tmp_path, 'deadline = "factor"\ndeadline_factor = 2', deadline_s=float("inf"))
    assert isinstance(word, Task)
    assert isinstance(rule, Task)
    assert (word.deadline_s, rule.deadline_s) == (4600.0, 8200.0)


def test_a_stated_run_time_counts_where_the_site_says_so(tmp_path: Path) -> None:
    comment = "downclock=run:60s,deadline:+2h"
    heeded = _task(tmp_path, comment=comment)
    limited = _task(tmp_path, "stated_runs = false", comment=comment)
    assert isinstance(heeded, Task)
    assert isinstance(limited, Task)
    assert (heeded.whole_s, limited.whole_s) == (70.0, 3610.0)


def test_applications_by_word_and_by_rule(tmp_path: Path) -> None:
    text = """
[[application]]
user = "bob"
application = "LSTM"
[[application]]
job_name = "train-*"
application = "LAMMPS"
[types]
nvidia = "a100"
"""
    rule, word = _task(tmp_path, text), _task(tmp_path, text, comment="downclock=app:GROMACS")
    typed = _task(tmp_path, text, gpu_type="nvidia", name="other")
    assert isinstance(rule, Task)
    assert isinstance(word, Task)
    assert isinstance(typed, Task)
    names = [task.application_name for task in (rule, word, typed)]
    assert names == ["LAMMPS", "GROMACS", "mixed"]
    assert rule.scale == pytest.approx(3610.0 / (9.707310983988208 + 9.487263483683844))


def test_clocks_as_words_for_the_node(tmp_path: Path) -> None:
    assert _site(tmp_path).setting(0, (990 / 1410, 1.0, 1.0)).words() == {"core_mhz": "990"}
    limits = CLUSTER.replace("builtin:a100", "library.json")
    limits = limits.replace('name = "a100"', 'name = "a100"\npower_limit_w = [200, 300]', 1)
    (tmp_path / "library.json").write_text(
        '{"format": "downclock-library/1", "kinds": {"a100": {"default_power_limit_w": 300}},'
        ' "applications": [{"name": "x", "profiles": {"a100": {"model": "table", "points": ['
        '{"power_limit_w": 200, "time_s": 2, "power_w": 190},'
        '{"power_limit_w": 300, "time_s": 1.5, "power_w": 290}]}}}]}'
    )
    site = _site(tmp_path, cluster=limits)
    assert site.setting(0, (2 / 3, 1.0, 1.0)).words() == {"power_limit_w": "200"}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("nodes = ['a[1-3]']", "must name each of the cluster's 2 servers once"),
        ("nodes = ['gpu[1,]']", "must name each of the cluster's 2 servers once"),
        ("nodes = ['gpu[1-2-3]']", "must name each of the cluster's 2 servers once"),
        ("polcy = 'late'", "did you mean 'policy'"),
        ("policy = 'lat'", "is not a policy"),
        ("policy = 'known'", "plans what is known beforehand"),
        ("reserve = -1", "must be finite and not negative"),
        ("interval_s = 0", "must be positive"),
        ("take = 'all'", "must be one of held, tagged"),
        ("partitions = 'gpu'", "must be a list of texts"),
        ("[[application]]\napplication = 'x'", "is neither in the library nor an archetype"),
        ("[types]\nx = 'h100'", "must be one of a100"),
    ],
)
def test_bad_sites_are_refused_by_name(tmp_path: Path, text: str, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        _site(tmp_path, text)


def test_clocks_that_nobody_could_set_are_refused(tmp_path: Path) -> None:
    ratios = CLUSTER.replace(
        'name = "a100"', 'name = "x"\ncard = "gtx1080ti"\ninterval = "wide"', 1
    )
    ratios = ratios.replace('kind = "a100"', 'kind = "x"').replace(
        "builtin:a100", "builtin:gtx1080ti"
    )
    with pytest.raises(InvalidInput, match="clocks are ratios"):
        _site(tmp_path, cluster=ratios)


def test_an_application_on_two_kinds_is_widened_for_the_worse_one(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text(
        "application,kind,widen\ntrain,a100,1.5\ntrain,v100,1.02\nscore,a100,1\n"
    )
    assert _spread(tmp_path / "l.json") == {"train": 1.5, "score": 1.0}


def test_settings_of_a_user_do_not_filter_what_slurm_shows(monkeypatch) -> None:
    for name in ("SQUEUE_USERS", "SINFO_PARTITION", "SCONTROL_ALL", "SLURM_CLUSTERS"):
        monkeypatch.setenv(name, "other")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
    shown = run([sys.executable, "-c", "import os; print(*sorted(os.environ))"]).split()
    told = {name for name in shown if name.startswith(("SQUEUE", "SINFO", "SCONTROL", "SLURM"))}
    assert told == {"SLURM_CONF", "SLURM_TIME_FORMAT"}


def test_other_prices_make_another_plan(tmp_path: Path) -> None:
    cluster = CLUSTER.replace("[[kind]]", '[prices]\nfile = "prices.csv"\n[[kind]]', 1)
    marks = set()
    for price in (0.1, 0.2):
        (tmp_path / "prices.csv").write_text(f"time,price\n2026-01-01T00:00:00Z,{price}\n")
        marks.add(_site(tmp_path, cluster=cluster).fingerprint)
    assert len(marks) == 2
