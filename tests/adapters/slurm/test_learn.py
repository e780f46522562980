"""Learning: measured jobs become profiles that foretell the next ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from downclock.adapters.slurm.jobs import JobReader, Task, identity
from downclock.adapters.slurm.learn import against_default_clocks, learn, write_learnt
from downclock.adapters.slurm.log import MOMENT, Log
from downclock.adapters.slurm.moments import Moment
from downclock.adapters.slurm.site import SlurmSite, read_site
from downclock.adapters.slurm.spool import Measured, read_spool
from downclock.errors import AdapterError
from tests.adapters.slurm.test_site import CLUSTER, JOB

HIDDEN = {"train": (400.0, 0.75, 320.0), "score": (90.0, 0.35, 210.0)}
"""Applications that nobody told us of: seconds at 1410 MHz, part that follows the core, watts."""


def _truth(name: str, core_mhz: float) -> tuple[float, float]:
    """Time and power of a run by the hidden law; V as the built-in A100 has it (mei)."""
    time_s, share, power_w = HIDDEN[name]
    f = core_mhz / 1410.0
    volt = 1.0 - 2.0 * f + 2.0 * f * f if f > 0.5 else 0.5
    return time_s * (share / f + 1.0 - share), power_w * (0.3 + 0.7 * volt * volt * f)


def _called(name: str) -> str:
    return identity("user+name", "ann", name, "")


def _site(folder: Path, more: str = "") -> SlurmSite:
    (folder / "cluster.toml").write_text(CLUSTER)
    (folder / "site.toml").write_text(f'cluster = "cluster.toml"\noverhead_s = 0\n{more}')
    return read_site(folder / "site.toml")


def _history(folder: Path, site: SlurmSite, count: int, clocks: list[int], seed: int) -> None:
    """Jobs in the log and in the spool, with run times and meters that vary by two per cent."""
    draw = np.random.default_rng(seed)
    (folder / "spool").mkdir(exist_ok=True)
    told = []
    for k in range(count):
        name, core_mhz = list(HIDDEN)[k % 2], clocks[k // 2 % len(clocks)]
        time_s, power_w = _truth(name, core_mhz)
        time_s *= draw.normal(1.0, 0.02)
        energy_j = time_s * power_w * draw.normal(1.0, 0.02)
        told.append(Task(k, f"{k}.0", name, 0, "mixed", 1.0, 600.0, 1e9, 1, "", 600.0, 0.0,
                         _called(name)))  # fmt: skip
        gpu = {"index": 0, "core_mhz": core_mhz, "memory_mhz": None, "set": True}
        row = {"job": str(k), "node": "node1", "user": "ann", "job_name": name,
               "started_s": 1e3, "ended_s": 1e3 + time_s, "gpus": [gpu], "energy_j": energy_j,
               "source": "counter"}  # fmt: skip
        (folder / "spool" / f"{k}-node1-0.json").write_text(json.dumps(row))
    log = Log(site.log)
    ended = [(task.key, "COMPLETED") for task in told]
    log.append(0.0, [(MOMENT, Moment(0.0, told, ended=ended).entry())])
    log.close()


@pytest.mark.parametrize("clocks", [[705, 900, 1110, 1410], [990]])
def test_100_jobs_foretell_the_next_100_within_five_per_cent(tmp_path: Path, clocks) -> None:
    site = _site(tmp_path)
    _history(tmp_path, site, 100, clocks, seed=1)
    library, learnt = learn(site, Log(site.log, dry=True), read_spool(site.spool))
    assert {each.application: each.runs for each in learnt} == {
        "job:ann/train": 50,
        "job:ann/score": 50,
    }
    assert {each.how for each in learnt} == {"fitted" if len(clocks) > 1 else "scaled"}
    write_learnt(library, learnt, tmp_path / "learned.json")
    names = [str(name) for name in library.names]
    for k in range(100):
        name, core_mhz = list(HIDDEN)[k % 2], clocks[k // 2 % len(clocks)]
        time_s, power_w = _truth(name, core_mhz)
        point = site.cluster.platform.kinds[0].clocks.nearest(core_mhz / 1410.0, 1.0)
        told_s, told_w = library.at(np.array([names.index(_called(name))]), "a100", point[None, :])
        assert told_s[0] == pytest.approx(time_s, rel=0.05)
        assert told_s[0] * told_w[0] == pytest.approx(time_s * power_w, rel=0.05)
    for each in learnt:
        assert each.time_error < 0.05
        assert 1.0 <= each.widen < 1.1


def test_the_next_plan_uses_what_was_learnt(tmp_path: Path) -> None:
    """A job called as a learnt application needs no limit, and its estimate is widened."""
    site = _site(tmp_path)
    _history(tmp_path, site, 40, [705, 900, 1110, 1410], seed=3)
    library, learnt = learn(site, Log(site.log, dry=True), read_spool(site.spool))
    write_learnt(library, learnt, tmp_path / "learned.json")
    wise = _site(tmp_path, 'learned = "learned.json"\n')
    assert wise.fingerprint != site.fingerprint

    task = JobReader(wise, lambda job: "").task_of(replace(JOB, name="train"), 1000.0)
    assert isinstance(task, Task)
    assert task.application_name == "job:ann/train"
    widen = next(each.widen for each in learnt if each.application == "job:ann/train")
    assert task.whole_s == pytest.approx(400.0 * widen, rel=0.03)


def test_what_was_saved_follows_the_profiles(tmp_path: Path) -> None:
    """Jobs at 705 MHz that took what their profile says: at 1410 they would take what it says."""
    site = _site(tmp_path)
    reader = JobReader(site, lambda job: "")
    clocks = site.cluster.platform.kinds[0].clocks
    points = np.array([clocks.nearest(0.5, 1.0), clocks.nearest(1.0, 1.0)])
    row = [str(name) for name in reader.library.names].index("mixed")
    time_s, power_w = reader.library.at(np.array([row, row]), "a100", points)
    slow_j, fast_j = (time_s * power_w).tolist()
    told = (1, "node1", "ann", "x", 100.0, 100.0 + time_s[0], slow_j, 1, 705.0, None, "counter")
    log = _ended(site, {"1.0": "COMPLETED", "2.0": "FAILED"})
    sums = against_default_clocks(site, log, [Measured(*told), _run(2, 100.0, 5.0)])
    assert sums == pytest.approx((slow_j, fast_j))
    assert slow_j < 0.9 * fast_j


def test_files_that_are_no_measurements_are_passed_over(tmp_path: Path) -> None:
    site = _site(tmp_path)
    _history(tmp_path, site, 4, [990], seed=1)
    for name, text in (("x", "{"), ("y", "[]"), ("z", '{"job": "1"}'), ("n", "\0" * 100)):
        (site.spool / f"{name}.json").write_text(text)
    assert len(read_spool(site.spool)) == 4
    assert read_spool(tmp_path / "nowhere") == []
    with pytest.raises(AdapterError, match="fewer than 3"):
        learn(site, Log(site.log, dry=True), read_spool(site.spool)[:2])


def test_measured_energy_stands_beside_a_bill(tmp_path: Path, capsys) -> None:
    from downclock.cli import main

    (tmp_path / "cluster.toml").write_text(CLUSTER)
    (tmp_path / "jobs.csv").write_text("name,run,deadline\ntrain,400,+2000s\nother,100,+2000s\n")
    _history(tmp_path, _site(tmp_path), 4, [990], seed=1)
    files = [str(tmp_path / "cluster.toml"), str(tmp_path / "jobs.csv")]
    schedule = str(tmp_path / "schedule.json")
    assert main(["plan", *files, "--policy", "race", "--output", schedule, "--quiet"]) == 0
    words = ["account", *files, schedule, "--measured", str(tmp_path / "spool"), "--format", "json"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)["measured"]
    used_j = sum(
        each.energy_j for each in read_spool(tmp_path / "spool") if each.job_name == "train"
    )
    assert [row["task"] for row in told] == ["train"]
    assert told[0]["measured_j"] == pytest.approx(used_j)


def _run(job: int, started_s: float, run_s: float, node: str = "node1", **more: float) -> Measured:
    energy_j = 200.0 * run_s
    told = (job, node, "ann", "x", started_s, started_s + run_s, energy_j, 1)
    return Measured(*told, more.get("core_mhz"), None, "counter", more.get("power_limit_w"))


def _ended(site: SlurmSite, states: dict[str, str], application: str = "mixed") -> Log:
    """A log with a job for each key (number.submitted), and how it ended."""
    log = Log(site.log)
    tasks = []
    for key in states:
        number, _, submit = key.partition(".")
        tasks.append(Task(int(number), key, "x", 0, application, 1.0, 600.0, 1e9, 1, "", 600.0,
                          float(submit), "x"))  # fmt: skip
    ended = [(key, state) for key, state in states.items() if state]
    log.append(0.0, [(MOMENT, Moment(0.0, tasks, ended=ended).entry())])
    return log


def test_only_the_last_attempts_of_completed_jobs_are_learnt(tmp_path: Path) -> None:
    site = _site(tmp_path)
    states = {"1.0": "COMPLETED", "2.0": "COMPLETED", "3.0": "COMPLETED", "4.0": "CANCELLED",
              "5.0": "FAILED", "6.0": "", "4.5000": "COMPLETED"}  # fmt: skip
    measured = [
        _run(1, 100.0, 400.0),
        _run(2, 100.0, 9.0, "node2"),  # requeued: the node died
        _run(2, 200.0, 400.0),
        _run(3, 100.0, 400.0),
        _run(4, 100.0, 5.0),
        _run(4, 5100.0, 400.0),  # another job of that number
        _run(5, 100.0, 5.0),
        _run(6, 100.0, 5.0),
        _run(7, 100.0, 5.0),
    ]
    _, (learnt,) = learn(site, _ended(site, states), measured)
    assert (learnt.runs, learnt.widen) == (4, pytest.approx(1.0))
    assert learnt.time_error == pytest.approx(0.0)


def test_runs_under_a_power_limit_are_learnt_at_that_limit(tmp_path: Path) -> None:
    """Jobs at 200 W as slow as planned: the profile is what it was, and not slower at 300 W."""
    limits = CLUSTER.replace("builtin:a100", "library.json")
    limits = limits.replace('name = "a100"', 'name = "a100"\npower_limit_w = [200, 300]', 1)
    (tmp_path / "library.json").write_text(
        '{"format": "downclock-library/1", "kinds": {"a100": {"default_power_limit_w": 300}},'
        ' "applications": [{"name": "x", "profiles": {"a100": {"model": "table", "points": ['
        '{"power_limit_w": 200, "time_s": 2, "power_w": 200},'
        '{"power_limit_w": 300, "time_s": 1.5, "power_w": 290}]}}}]}'
    )
    (tmp_path / "cluster.toml").write_text(limits)
    (tmp_path / "site.toml").write_text('cluster = "cluster.toml"\n')
    site = read_site(tmp_path / "site.toml")
    log = _ended(site, {f"{k}.0": "COMPLETED" for k in range(3)}, "x")
    library, (learnt,) = learn(
        site, log, [_run(k, 1.0, 2.0, power_limit_w=200.0) for k in range(3)]
    )
    assert learnt.time_error == pytest.approx(0.0)
    clocks = site.cluster.platform.kinds[0].clocks
    time_s, power_w = library.at(np.array([0, 0]), "a100", clocks.points)
    assert time_s.tolist() == pytest.approx([2.0, 1.5])
    assert power_w.tolist() == pytest.approx([200.0, 290.0])


HOSTILE = ("mixed", "LSTM", 'a"b', "x\ny\r,;", "$(touch here)", "=1+1", "z" * 10_000, "\ufffd", "",
           " lead", "\x1b[31mred", "../../etc", "nan")  # fmt: skip


def test_whatever_jobs_are_called_only_their_own_estimates_change(tmp_path: Path) -> None:
    """Neither an archetype nor an application of the library is replaced by a job's name."""
    site = _site(tmp_path)
    log, tasks = Log(site.log), []
    for k, name in enumerate(name for name in HOSTILE for _ in range(3)):
        job = replace(JOB, number=k, name=name)
        task = JobReader(site, lambda job: "").task_of(job, 1000.0)
        assert isinstance(task, Task)
        tasks.append(task)
    ended = [(task.key, "COMPLETED") for task in tasks]
    log.append(0.0, [(MOMENT, Moment(0.0, tasks, ended=ended).entry())])
    library, learnt = learn(site, log, [_run(k, 2000.0, 7.0) for k in range(len(tasks))])
    write_learnt(library, learnt, tmp_path / "learned.json")
    assert len(learnt) == len(HOSTILE) - 1  # what has no name is not learnt
    assert all(each.application.isprintable() for each in learnt)
    wise = _site(tmp_path, 'learned = "learned.json"\n')
    before, after = (JobReader(each, lambda job: "") for each in (site, wise))
    for comment in ("downclock=app:mixed", "downclock=app:LSTM", "downclock=plan"):
        job = replace(JOB, name="other", comment=comment)
        old, new = before.task_of(job, 1000.0), after.task_of(job, 1000.0)
        assert isinstance(old, Task)
        assert isinstance(new, Task)
        assert replace(new, application=old.application) == old
    for name in HOSTILE[:-1]:
        task = after.task_of(replace(JOB, name=name), 1000.0)
        assert isinstance(task, Task)
        assert (task.whole_s == pytest.approx(7.0)) == bool(name)


def test_time_that_a_script_waited_to_begin_teaches_nothing(tmp_path: Path) -> None:
    """`once.sh` wrote when it began: seven idle seconds at 45 W before a run are none of it."""
    site = _site(tmp_path)
    _history(tmp_path, site, 40, [705, 900, 1110, 1410], seed=5)
    plain, _ = learn(site, Log(site.log, dry=True), read_spool(site.spool))
    idle_w = site.cluster.platform.kinds[0].idle_w
    (site.spool / "once").mkdir()
    for file in site.spool.glob("*.json"):
        row = json.loads(file.read_text())
        row |= {"started_s": row["started_s"] - 7.0, "energy_j": row["energy_j"] + 7.0 * idle_w}
        file.write_text(json.dumps(row))
        (site.spool / "once" / f"{row['job']}.ended").write_text("1000.0\nheld\n")
    waited, _ = learn(site, Log(site.log, dry=True), read_spool(site.spool))
    for name in HIDDEN:
        rows = np.array([[str(each) for each in plain.names].index(_called(name))])
        point = site.cluster.platform.kinds[0].clocks.nearest(0.7, 1.0)[None, :]
        assert np.allclose(plain.at(rows, "a100", point), waited.at(rows, "a100", point))
