"""What the spool says of a run, whoever was killed meanwhile and whenever."""

from __future__ import annotations

import json
import time

import pytest

from downclock.adapters.devices import agent, spool
from downclock.adapters.devices.state import State
from tests.adapters.devices.conftest import FREE, PLAN, Node, begun, until


def test_the_spool_of_a_job_that_was_told_is_not_written_again(node: Node) -> None:
    node.job(7, PLAN)
    node.agent("prolog", 7, "0")
    until(lambda: begun(node))
    spool = node.state / "spool"
    spool.mkdir()
    (spool / "7-n1-0.json").write_text(json.dumps({"mine": 1}))
    node.agent("epilog", 7, "0")
    until(lambda: not list(node.state.glob("gpu-*")))
    assert node.spooled(7) == {"mine": 1}


@pytest.mark.parametrize(
    ("how", "completed"),
    [
        ({"state": "COMPLETING"}, True),
        ({"state": "COMPLETING", "restarts": 1}, False),  # it is requeued
        ({"state": "RUNNING"}, None),  # a controller that has forgotten
        ({"state": "COMPLETING", "name": "x Reboot=0 ExitCode=1:0 RunTime=00:00:01"}, False),
    ],
)
def test_the_spool_says_whether_slurm_knew_that_the_job_completed(
    node: Node, how: dict[str, object], completed: bool | None
) -> None:
    node.job(7, PLAN)
    node.agent("prolog", 7, "0")
    until(lambda: begun(node))
    node.job(7, PLAN, **how)
    node.agent("epilog", 7, "0")
    until(lambda: not list(node.state.glob("gpu-*")))
    if completed is None:
        time.sleep(0.5)
        assert node.spooled(7)["completed"] is None
    else:
        until(lambda: node.spooled(7)["completed"] is completed)


def test_a_run_ends_where_its_epilog_begins(node: Node) -> None:
    """However long the drivers take to answer, and Python to start."""
    node.job(7, PLAN)
    node.agent("prolog", 7, "0")
    until(lambda: begun(node))
    node.gpus.configure("delay nvmlInitWithFlags 3000")
    before_s = time.time()
    node.agent("epilog", 7, "0")
    node.ended(7)
    assert node.spooled(7)["started_s"] < node.spooled(7)["ended_s"]
    assert before_s - 0.1 < node.spooled(7)["ended_s"] < time.time() - 2.5


def test_an_end_is_known_although_the_agents_of_prolog_and_epilog_were_killed(node: Node) -> None:
    """A controller that is killed then would run the job again."""
    told = {"SLURM_JOB_RESTART_COUNT": "0", "SLURM_JOB_EXIT_CODE2": "0:0",
            "SLURM_JOB_NUM_NODES": "1"}  # fmt: skip
    slurm = Node(node.folder, node.gpus, told)
    job = agent.job_of(slurm.env(7, "0"))
    state = State.opened(node.state)
    agent._announce(state, job, time.time())  # and no more
    before_s = time.time()
    site = agent.Site(str(node.state), str(node.state / "spool"), str(node.folder / "none"))
    spool.note_end(site.spool, job, agent._withdraw(state, job, time.time()), before_s + 9.0)
    noted = node.spooled(7)
    assert (noted["completed"], noted["by"], noted["gpus"]) == (True, "epilog", [])
    assert before_s - 1.0 < noted["started_s"] < noted["ended_s"] == before_s + 9.0


def test_a_run_whose_prolog_never_lived_is_spooled_without_energy(node: Node) -> None:
    slurm = Node(node.folder, node.gpus, {"SLURM_JOB_EXIT_CODE2": "0:0"})
    node.job(7, PLAN, state="COMPLETING")
    slurm.agent("epilog", 7, "0")
    until(lambda: node.spooled(7)["completed"])
    assert (node.spooled(7)["energy_j"], node.spooled(7)["gpus"]) == (None, [])


def test_what_is_noted_of_an_end_is_kept_when_recover_adds_the_energy(node: Node) -> None:
    node.job(7, PLAN)
    node.agent("prolog", 7, "0")
    until(lambda: begun(node))
    state = State.opened(node.state)
    told = {"SLURM_JOB_RESTART_COUNT": "0", "SLURM_JOB_EXIT_CODE2": "0:0",
            "SLURM_JOB_NUM_NODES": "1"}  # fmt: skip
    job = agent.job_of({**node.env(7, "0"), **told})
    site = agent.Site(str(node.state), str(node.state / "spool"), str(node.folder / "none"))
    spool.note_end(site.spool, job, agent._withdraw(state, job, time.time()), time.time())
    node.job(7, PLAN, state="COMPLETED")
    assert node.agent("recover").returncode == 0
    found = node.spooled(7)
    assert (found["by"], found["completed"], len(found["gpus"])) == ("recover", True, 1)
    assert node.locked == [FREE] * 4


def test_a_start_that_slurm_has_forgotten_is_spooled_beside_the_next(node: Node) -> None:
    """Both are attempt 0 of the job, and both used energy."""
    node.job(7, PLAN)
    spool = node.state / "spool"
    for count in (1, 2):
        node.agent("prolog", 7, "0")
        until(lambda: begun(node))
        time.sleep(1.0)  # starts differ by whole seconds
        node.agent("epilog", 7, "0")
        until(lambda k=count: len(list(spool.glob("7-n1-0*.json"))) == k)
        until(lambda: not list(node.state.glob("gpu-*")))
    first, second = (json.loads(path.read_text()) for path in sorted(spool.glob("7-n1-0*.json")))
    assert {first["attempt"], second["attempt"]} == {0}
    assert first["started_s"] != second["started_s"]
