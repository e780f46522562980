"""Nodes that sleep and wake by Slurm's power saving, and jobs that wait by its submit plugin."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from downclock.adapters.slurm.read import observe
from downclock.workloads.traces.hosts import hosts_of
from tests.cluster.conftest import Site
from tests.cluster.loopback import Loopback, wait_for

TAG = "downclock=app:mixed,run:{}s,deadline:+{}s"


@pytest.fixture
def sleepy(folder: Path) -> Iterator[Site]:
    """Two nodes whose slurmd is gone while they sleep."""
    with Loopback(folder, 2, 2, sleeps=True) as cluster:
        made = Site(cluster, more="sleep = true\n", wake_s=10.0)
        yield made
        made.stop(signal.SIGKILL)


def _asleep(site: Site) -> set[str]:
    nodes = observe(lambda words: site.cluster.run(*words)).nodes
    return {name for name, node in nodes.items() if "POWERED_DOWN" in node.states}


def test_nodes_sleep_past_break_even_and_are_up_for_their_next_job(sleepy: Site) -> None:
    """Idle draws 140 W, waking costs 100 J: both nodes sleep soon, and wake for later jobs."""
    sleepy.watch()
    wait_for(lambda: _asleep(sleepy) == {"node1", "node2"}, 150, "nodes are awake")
    cluster = sleepy.cluster
    jobs = [
        cluster.submit("-H", "--gres=gpu:1", "-t", "5", f"--comment={TAG.format(8, 120)}",
                       script="sleep 8")
        for _ in range(3)
    ]  # fmt: skip
    sleepy.settled(120)
    wait_for(lambda: _asleep(sleepy) == {"node1", "node2"}, 150, "nodes are awake")
    seen = observe(lambda words: cluster.run(*words)).jobs
    ran = [seen[int(job)] for job in jobs]
    assert all("COMPLETED" in job.states for job in ran)
    assert all(job.end_s <= job.submit_s + 120 for job in ran)
    woken = [
        (at_s, hosts_of(nodes)) for at_s, what, nodes in cluster.power_log() if what == "RESUME"
    ]
    for job in ran:  # woken before it is to start, and up by then: it starts within seconds
        planned_s = int(job.comment.partition("start=")[2].split()[0])
        (node,) = job.nodes
        assert any(at_s < planned_s and node in names for at_s, names in woken)
        assert job.start_s - planned_s <= 15
    for at_s, what, nodes in cluster.power_log():
        busy = {n for job in ran for n in job.nodes if job.start_s <= at_s - 1 < job.end_s - 1}
        assert what == "RESUME" or not busy & set(hosts_of(nodes))
    switched = [what for _, what, _ in cluster.power_log()]
    assert switched.count("RESUME") >= 1
    assert switched.count("SUSPEND") >= 3 or len(hosts_of(cluster.power_log()[0][2])) == 2


def test_jobs_with_a_deadline_wait_for_the_plan_without_being_held(folder: Path) -> None:
    if not list(Path("/usr/lib").rglob("job_submit_lua.so")):
        pytest.skip("this Slurm has no job_submit/lua")
    cluster = Loopback(folder, 2, 2, settings="JobSubmitPlugins=lua")
    text = resources.files("downclock.adapters.slurm").joinpath("job_submit.lua").read_text()
    (folder / "job_submit.lua").write_text(text)
    with cluster:
        site = Site(cluster)
        planned = cluster.submit("--gres=gpu:1", "-t", "5", "--deadline=now+900",
                                 "--comment=downclock=plan", script="sleep 3")  # fmt: skip
        endless = cluster.submit("--gres=gpu:1", "-t", "5", "--comment=downclock=plan")
        tagged = cluster.submit("--gpus=1", "-t", "5", f"--comment={TAG.format(5, 300)}")
        off = cluster.submit("--gres=gpu:1", "-t", "5", "--comment=downclock=off note")
        plain = cluster.submit("--gres=gpu:1", "-t", "5")
        wait_for(lambda: cluster.job(plain, "JobState") == "COMPLETED", 120, "it waits")
        wait_for(lambda: cluster.job(off, "JobState") == "COMPLETED", 120, "it waits")
        for job in (planned, tagged, endless):
            assert cluster.job(job, "JobState") == "PENDING"
            assert cluster.job(job, "Reason") in ("BeginTime", "None")
        site.run("apply")
        told = {planned: "core_mhz=", tagged: "core_mhz=", endless: "it-has-no-deadline"}
        for job, word in told.items():
            wait_for(lambda j=job: cluster.job(j, "JobState") == "COMPLETED", 120, "it waits")
            assert word in cluster.run("squeue", "-h", "-j", job, "-t", "all", "-o", "%k")
        whole = text.replace("PARTITIONS = {}", "PARTITIONS = {main = true}")
        (folder / "job_submit.lua").write_text(whole)  # Slurm reads it anew
        for words in ([], ["-p", "main"]):  # main is the default one
            job = cluster.submit("--gres=gpu:1", "-t", "5", *words)
            said = cluster.run("squeue", "-h", "-j", job, "-o", "%k")
            assert said.startswith("downclock=wait")
