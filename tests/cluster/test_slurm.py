"""A real Slurm: what it shows is read, what is decided is done, what is taken is given back."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import pytest

from downclock.adapters.slurm.read import observe
from tests.cluster.conftest import Site
from tests.cluster.loopback import wait_for

TAG = "downclock=app:mixed,run:8s,deadline:+{}s"
HOSTILE = (
    b"ev\"il\nname's $(touch {here}) `touch {here}` ; touch {here} JobId=1 \xff\xfe"
    b" Comment=downclock core_mhz=210"
)


def _comment(site: Site, job: str) -> str:
    return site.cluster.run("squeue", "-h", "-j", job, "-t", "all", "-o", "%k")


def _run(site: Site):
    def run(words):
        return site.cluster.run(*words)

    return run


def _same_both_ways(site: Site):
    """What Slurm shows, once as JSON and once as text."""
    as_json, as_text = observe(_run(site)), observe(_run(site), text=True)
    assert as_json.nodes == as_text.nodes
    assert as_json.jobs == as_text.jobs
    return as_json


def test_json_and_text_say_the_same_whatever_owners_write(site: Site) -> None:
    here = site.folder / "pwned"
    name = HOSTILE.replace(b"{here}", os.fsencode(here))
    site.cluster.submit("-H", "--gres=gpu:1", "-t", "5", "--deadline=now+3600", b"-J" + name)
    site.cluster.submit("-H", "--gpus=2", "-t", "1-01:00:00", b"--comment=" + name)
    site.cluster.submit("-H", "--gres=gpu:a100:1", "-J", "x" * 1000, "--exclusive")
    site.cluster.submit("-H", "--gpus-per-task=1", "-n", "2", "--array=1-3")
    site.cluster.submit("-H", "--gres=gpu:1", "--gpu-freq=900,memory=low")
    site.cluster.submit("--gres=gpu:1", "-N", "2", script="sleep 20")
    wait_for(lambda: "R" in site.cluster.run("squeue", "-h", "-o", "%t"), 60, "nothing runs")
    seen = _same_both_ways(site)
    jobs = list(seen.jobs.values())
    assert [job.gpus for job in jobs if job.waits] == [1, 2, 1, 2, 1]
    assert [job.odd for job in jobs] == [
        "",
        "",
        "it wants nodes of its own",
        "it is a job array",
        "",
        "",
    ]
    assert [job.gpu_freq for job in jobs if job.gpu_freq] == ["gpu:900,memory=low"]
    assert next(job for job in jobs if job.active).nodes == {"node1": 1, "node2": 1}
    assert {node.gpus["a100"] for node in seen.nodes.values()} == {2}
    assert not here.exists()


def test_hostile_jobs_are_planned_like_others_and_inject_nothing(site: Site) -> None:
    here = site.folder / "pwned"
    text = HOSTILE.replace(b"{here}", os.fsencode(here))
    tag = TAG.format(200).encode()
    name = site.cluster.submit("-H", "--gres=gpu:1", "-t", "5", b"-J" + text, b"--comment=" + tag)
    note = site.cluster.submit("-H", "--gres=gpu:1", "-t", "5", b"--comment=" + tag + b" " + text)
    long = site.cluster.submit(
        "-H", "--gres=gpu:1", "-t", "5", b"--comment=" + tag + b" " + b"y" * 900
    )
    where = os.fsencode(site.folder / "of ") + text.replace(b"/", b" ")
    os.mkdir(where)
    path = site.cluster.submit(
        "-H", "--gres=gpu:1", "-t", "5", b"--comment=" + tag, b"--chdir=" + where, b"-A" + text
    )
    wrong = site.cluster.submit("-H", "--gres=gpu:1", "--comment=downclock=run:$(id),deadline:+9s")
    for option in ("-J", "--comment="):  # Slurm takes 1,024 bytes
        with pytest.raises(OSError, match="too long"):
            site.cluster.submit("-H", "--gres=gpu:1", option + "z" * 10_000)
    site.watch()
    site.settled(150)
    for job in (name, note, long, path):
        assert _comment(site, job).startswith("downclock core_mhz=")
        assert "\n" not in _comment(site, job)
        assert observe(_run(site)).jobs[int(job)].states == {"COMPLETED"}
    assert "left=1" in _comment(site, wrong)  # let go, as nobody can read what it wants
    assert not here.exists()


def test_the_plan_is_shown_without_touching_anything_then_applied(site: Site) -> None:
    job = site.cluster.submit("-H", "--gres=gpu:1", "-t", "5", f"--comment={TAG.format(120)} mine")
    off = site.cluster.submit("-H", "--gres=gpu:1", "-t", "5", "--comment=downclock=off")
    none = site.cluster.submit("-H", "--gres=gpu:1", "-t", "5")
    fast = site.cluster.submit("-H", "--gres=gpu:1", "-t", "5", "--gpu-freq=high",
                               f"--comment={TAG.format(120)}")  # fmt: skip
    before = _same_both_ways(site)
    told = json.loads(site.run("plan", "--format", "json"))
    assert observe(_run(site)).jobs == before.jobs
    assert not (site.folder / "downclock.db").exists()
    assert told["untouched"] == {off: "its owner opted out", none: "it has no deadline"}
    assert [row["job"] for row in told["jobs"]] == [int(job), int(fast)]
    site.run("apply")
    assert _comment(site, job).endswith(" mine")
    row = told["jobs"][0]
    assert site.cluster.job(job, "ReqNodeList") == row["nodes"]
    assert site.cluster.job(job, "TresFreq") == f"gpu:{row['clock'].removeprefix('core_mhz=')}"
    after = observe(_run(site)).jobs
    assert after[int(off)] == before.jobs[int(off)]
    assert after[int(none)] == before.jobs[int(none)]
    assert "its-owner-chose-its-clocks" in _comment(site, fast)  # and it is let go as it is
    assert site.cluster.job(fast, "TresFreq") == "gpu:high"


def test_jobs_wait_with_a_start_that_keeps_their_deadline_if_nobody_plans_on(site: Site) -> None:
    """Four GPUs, ten jobs: what is accepted and has no start yet is let go with a last start."""
    jobs = [
        site.cluster.submit("-H", "--gres=gpu:1", "-t", "5", f"--comment={TAG.format(150)}")
        for _ in range(10)
    ]
    site.run("apply")
    seen = observe(_run(site)).jobs
    waiting = [seen[int(job)] for job in jobs if "core_mhz" not in seen[int(job)].comment]
    assert len(waiting) >= 6
    for job in waiting:
        assert not job.held
        assert job.submit_s + 60 < job.eligible_s < job.submit_s + 150 - 8
    site.watch()
    site.settled(150)
    ended = observe(_run(site)).jobs
    assert all("COMPLETED" in ended[int(job)].states for job in jobs)
    assert all(ended[int(job)].end_s <= ended[int(job)].submit_s + 150 for job in jobs)


def test_what_the_plan_did_not_foresee_is_followed(site: Site) -> None:
    """Cancelled, held by its owner, opted out late, a node that drains, a job of others."""
    filler = site.cluster.submit("--gres=gpu:1", "-w", "node1", script="sleep 25")
    wait_for(lambda: site.cluster.job(filler, "JobState") == "RUNNING", 60, "it does not run")
    site.cluster.run("scontrol", "update", "NodeName=node2", "State=DRAIN", "Reason=test")
    jobs = [
        site.cluster.submit("-H", "--gres=gpu:1", "-t", "5", f"--comment={TAG.format(300)} {k}",
                            script="sleep 8")
        for k in range(5)
    ]  # fmt: skip
    site.watch()
    wait_for(lambda: "core_mhz" in "".join(_comment(site, j) for j in jobs), 90, "nothing planned")
    started = [job for job in jobs if "core_mhz" in _comment(site, job)]
    assert len(started) == 1  # three GPUs of four are not ours to use
    assert site.cluster.job(started[0], "ReqNodeList") == "node1"
    gone, held, out, stays = [job for job in jobs if job not in started]
    wait_for(lambda: not observe(_run(site)).jobs[int(held)].held, 60, "it is not let go")
    site.cluster.run("scancel", gone)
    site.cluster.run("scontrol", "hold", held)
    wait_for(lambda: _opts_out(site, out), 60, "its comment is changed again and again")
    wait_for(lambda: not _comment(site, held).startswith("downclock "), 60, "it is not put back")
    site.cluster.run("scontrol", "update", "NodeName=node2", "State=RESUME")
    wait_for(lambda: site.cluster.job(stays, "JobState") == "COMPLETED", 120, "it is not run")
    seen = observe(_run(site)).jobs
    assert seen[int(held)].held  # its owner's hold is not ours to release
    assert _comment(site, held) == f"{TAG.format(300)} 2" or "300" in _comment(site, held)
    assert _comment(site, out) == "downclock=off"
    site.cluster.run("scancel", held)


def _opts_out(site: Site, job: str) -> bool:
    """Have a job's owner opt out; a plan that is carried out in that moment may write over it."""
    if _comment(site, job) != "downclock=off":
        site.cluster.run("scontrol", "update", f"JobId={job}", "Comment=downclock=off")
        time.sleep(3.0)
    return _comment(site, job) == "downclock=off"


def test_uninstall_puts_jobs_back_and_leaves_nothing(site: Site) -> None:
    jobs = [
        site.cluster.submit("-H", "--gres=gpu:1", "-t", "5", f"--comment={TAG.format(400)} mine",
                            script="sleep 100")
        for _ in range(8)
    ]  # fmt: skip
    site.run("apply")
    here = site.folder.parent
    site.run("uninstall", "--on-node", f"touch {here}/reset-{{node}}")
    assert sorted(path.name for path in here.glob("reset-*")) == ["reset-node1", "reset-node2"]
    seen = observe(_run(site)).jobs
    waiting = [seen[int(job)] for job in jobs if seen[int(job)].waits]
    assert len(waiting) >= 4
    for job in waiting:
        assert (job.comment, job.held) == (f"{TAG.format(400)} mine", False)
        assert (job.required_nodes, job.limit_s) == ("", 300.0)
        assert job.eligible_s <= time.time() + 1
    assert sorted(path.name for path in site.folder.iterdir()) == ["cluster.toml", "site.toml"]
    for job in seen.values():
        if not job.waits:
            site.cluster.run("scancel", str(job.number))
    again = [str(job.number) for job in waiting]
    wait_for(
        lambda: sum(site.cluster.job(job, "JobState") == "RUNNING" for job in again) >= 4,
        60,
        "not let go",
    )


def test_a_deadline_that_slurm_enforces_is_met_with_a_limit_that_fits(site: Site) -> None:
    """Slurm drops a job whose limit is longer than what is left to its deadline.

    Later ones do not even take it: there the limit is that of a start within 22 s.
    """
    site.watch()
    for _ in range(5):
        job, state, comment = _with_a_deadline(site)
        if state != "DEADLINE" or "core_mhz=" in comment:
            break  # else Slurm dropped it before the watch saw it
    assert state == "COMPLETED", job


def _with_a_deadline(site: Site) -> tuple[str, str, str]:
    """Submit a job with a deadline; return it, how it ended, and its comment."""
    limit, due = ("60", 242) if site.cluster.version < (23, 11) else ("4", 262)
    job = site.cluster.submit(
        "-H", "--gres=gpu:1", "-t", limit, f"--deadline=now+{due}", "--comment=downclock=run:20s",
        script="sleep 10",
    )  # fmt: skip
    wait_for(lambda: site.cluster.job(job, "JobState") not in ("PENDING", "RUNNING"), 120, "waits")
    return job, site.cluster.job(job, "JobState"), site.cluster.job(job, "Comment")


def test_an_exported_plan_asks_slurm_for_its_gpus_and_order(site: Site) -> None:
    """Three GPUs on two nodes of two are 2 + 1, and what comes after waits."""
    jobs = "name,run,gpus,after,deadline\ngang,20s,3,,+1h\nlast,20s,1,gang,+1h\n"
    (site.folder / "jobs.csv").write_text(jobs)
    for name in ("gang", "last"):
        (site.folder / f"{name}.sh").write_text(f"#!{site.cluster.shell}\nsleep 5\n")
    files = [str(site.folder / name) for name in ("cluster.toml", "jobs.csv", "plan.json")]
    ours = (sys.executable, "-m", "downclock")
    site.cluster.run(*ours, "plan", *files[:2], "--output", files[2])
    script = site.cluster.run(
        *ours, "export", *files, "--to", "sbatch", "--script", f"{site.folder}/{{task}}.sh"
    )
    site.cluster.run("sh", "-euc", f"cd {site.folder}\n{script}")  # sbatch writes there
    seen = observe(_run(site)).jobs
    assert (seen[1].gpus, seen[2].odd) == (3, "it waits for another job")
    wait_for(lambda: site.cluster.job("1", "JobState") == "RUNNING", 60, "it does not start")
    assert sorted(observe(_run(site)).jobs[1].nodes.values()) == [1, 2]
    assert site.cluster.job("2", "JobState") == "PENDING"


def test_a_killed_watch_goes_on_where_it_was(site: Site) -> None:
    jobs = [
        site.cluster.submit("-H", "--gres=gpu:1", "-t", "5", f"--comment={TAG.format(200)}")
        for _ in range(8)
    ]
    for _ in range(4):
        site.watch()
        time.sleep(4.0)
        site.stop(signal.SIGKILL)
    site.watch()
    site.settled(150)
    seen = observe(_run(site)).jobs
    assert all("COMPLETED" in seen[int(job)].states for job in jobs)
    assert all(seen[int(job)].restarts == 0 for job in jobs)
    assert all("core_mhz=" in seen[int(job)].comment for job in jobs)
