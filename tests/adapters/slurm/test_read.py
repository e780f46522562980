"""Jobs and nodes as Slurm 22.05 and 24.11 showed them: recordings of small clusters."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from downclock.adapters.slurm.observed import Node, gpu_counts, state_words
from downclock.adapters.slurm.read import (
    NoJson,
    heard_of,
    jobs_of_json,
    jobs_of_text,
    nodes_of_json,
    observe,
)
from downclock.errors import AdapterError
from downclock.workloads.traces.hosts import hosts_of

RECORDINGS = Path(__file__).parent / "recordings"


def _recorded(name: str) -> str:
    return (RECORDINGS / name).read_text("utf-8")


def test_a_planned_job_of_24_11_has_its_numbers() -> None:
    job = jobs_of_json(_recorded("squeue-24.11.json"))[1]
    assert (job.name, job.user, job.partition) == ("plain", "root", "main")
    assert (job.gpus, job.gpu_type, job.node_count) == (1, "", 1)
    assert (job.limit_s, job.deadline_s - job.submit_s) == (300.0, 1200.0)
    assert (job.required_nodes, job.held, job.waits) == ("node2", False, True)
    assert job.comment.startswith("downclock core_mhz=1005")


@pytest.mark.parametrize("version", ["22.05", "24.11"])
def test_hostile_names_stay_text(version: str) -> None:
    job = jobs_of_json(_recorded(f"squeue-{version}.json"))[2]
    assert job.name.startswith('ev"il\nname $(touch here) JobId=99 UserId=root(0) ')
    assert (job.number, job.user, job.gpus) == (2, "root", 2)


def test_states_and_nodes_of_running_and_ended_jobs() -> None:
    new, old = (jobs_of_json(_recorded(f"squeue-{v}.json")) for v in ("24.11", "22.05"))
    assert new[4].active
    assert new[4].nodes == {"node1": 2, "node2": 2}
    assert old[15].nodes == {"node1": 2, "node2": 2}
    assert not new[6].active
    assert not new[6].waits
    assert math.isinf(new[6].limit_s)
    assert old[5].states == {"DEADLINE"}
    assert not old[5].waits


def test_what_cannot_be_planned_is_said() -> None:
    new, old = (jobs_of_json(_recorded(f"squeue-{v}.json")) for v in ("24.11", "22.05"))
    assert (new[3].odd, old[4].odd) == ("it is a job array", "it is a job array")
    assert (new[5].odd, old[11].odd) == ("it wants nodes of its own", "it wants nodes of its own")
    assert old[13].odd == "it waits for another job"
    assert old[14].odd == "it excludes nodes"


def test_nodes_of_both_versions() -> None:
    new = nodes_of_json(_recorded("sinfo-24.11.json"))
    old = nodes_of_json(_recorded("sinfo-22.05.json"))
    assert {name: node.usable for name, node in new.items()} == {"node1": True, "node2": False}
    assert {name: node.gpus for name, node in old.items()} == {
        "node1": {"a100": 4},
        "node2": {"a100": 4},
    }


def test_nodes_that_a_new_controller_has_not_heard_of_are_not_down() -> None:
    words = {"a": "UNKNOWN", "b": "IDLE*", "c": "DOWN*", "d": "IDLE+DRAIN"}
    nodes = {name: Node(name, state_words(text), {}) for name, text in words.items()}
    new, old = heard_of(nodes, 10.0), heard_of(nodes, 100.0)
    assert [node.usable for node in new.values()] == [True, True, False, False]
    assert [node.usable for node in old.values()] == [False, False, False, False]


def test_a_slurm_without_an_answer_is_an_error_not_an_empty_cluster() -> None:
    text = '{"jobs": [], "errors": [{"description": "Failed while looking for jobs"}]}'
    with pytest.raises(AdapterError, match="Failed while looking"):
        jobs_of_json(text)
    for odd in ("", "slurm was built without JSON", "[]", '{"nodes": 3}'):
        with pytest.raises(NoJson):
            jobs_of_json(odd)


def test_a_slurm_without_json_is_read_as_text() -> None:
    """Fields end with a mark that is drawn for each call; here two jobs, one with odd letters."""

    def run(words):
        if words[0] == "scontrol":
            return "Configuration data\nBOOT_TIME               = 2026-11-17T02:00:00\n"
        if "--json" in words:
            return "squeue: error: JSON is not supported"
        if words[0] == "sinfo":
            row = f"{'node1':128}{'idle+powered_down':128}{'gpu:a100:4(S:0)':512}\n"
            return row
        form = next((word for word in words if word.startswith("--format=")), "")
        if not form:
            return f"{'7':20}{'N/A':24}{'2':12}{'N/A':24}{'1':12}{'gres:gpu:2':120}{'N/A':120}\n"
        mark = form[-26:]
        fields = ["7", "N/A", "PENDING", "JobHeldUser", "0", "", "", "1", "main", "ann", "(null)",
                  "", "(null)", "(null)", "OK", "2026-11-17T02:00:00", "N/A", "N/A", "1-00:00:00",
                  "N/A", "(null)", "a\nb 8<x>9", "downclock=off"]  # fmt: skip
        return mark.join(fields) + mark + "\n"

    seen = observe(run)
    job = seen.jobs[7]
    assert (job.name, job.comment) == ("a\nb 8<x>9", "downclock=off")
    assert (job.gpus, job.limit_s, job.restarts, job.held) == (2, 86400.0, 2, True)
    assert seen.boot_s == job.submit_s
    assert seen.nodes["node1"].asleep
    assert seen.nodes["node1"].gpus == {"a100": 4}
    assert jobs_of_text("", "<mark>") == []


@pytest.mark.parametrize("version", ["22.05", "24.11"])
def test_text_of_both_versions_has_its_numbers(version: str) -> None:
    """A hostile name, clocks of an owner, an array, six GPUs on two nodes, a job that failed."""
    recorded = json.loads(_recorded(f"text-{version}.json"))
    mark, asked = "<0123456789abcdef01234567>", []

    def run(words: Sequence[str]) -> str:
        asked.append(words[-1])
        drawn = words[-1][-len(mark) :] if words[-1].startswith("--format=") else mark
        return str(recorded[" ".join(words).replace(drawn, mark)]).replace(mark, drawn)

    seen = observe(run, text=True)
    evil, chosen, array, gang, failed = (seen.jobs[number] for number in range(1, 6))
    assert evil.name == 'ev"il\nname $(touch here) JobId=99 UserId=root(0) \ufffd'
    assert (evil.gpus, evil.limit_s, evil.deadline_s - evil.submit_s) == (2, 93840.0, 200000.0)
    assert (evil.held, evil.reason, evil.waits) == (True, "JobHeldUser", True)
    assert evil.comment == "downclock=run:60s,deadline:+6h mine"
    assert (chosen.gpu_freq, array.odd) == ("gpu:900,memory=low", "it is a job array")
    assert (gang.gpus, gang.active, gang.nodes) == (6, True, {"node1": 4, "node2": 2})
    assert (failed.states, failed.waits) == ({"FAILED"}, False)
    usable = {name: node.usable for name, node in seen.nodes.items()}
    assert usable == {"node1": True, "node2": False}
    assert observe(run, text=True, before=seen).jobs == seen.jobs
    assert [asked.count(number) for number in ("2", "4")] == [2, 1]  # a run keeps its nodes


def test_lists_of_nodes_gpus_and_states() -> None:
    assert hosts_of("gpu[01-03,7],fat1") == ["gpu01", "gpu02", "gpu03", "gpu7", "fat1"]
    assert hosts_of("r[1-2]n[1-2]") == ["r1n1", "r1n2", "r2n1", "r2n2"]
    assert hosts_of("a[1-999999999]") == ["a[1-999999999]"]
    assert hosts_of("") == []
    assert gpu_counts("gres:gpu:a100:2,craynetwork:1,gres/gpu=3,gpu") == {"a100": 2, "": 4}
    assert gpu_counts("gpu:a100:2(IDX:0-1)") == {"a100": 2}
    assert state_words("idle~*") == {"IDLE", "POWERED_DOWN", "NOT_RESPONDING"}
    assert state_words("MIXED+DRAIN") == {"MIXED", "DRAIN"}


def test_what_two_controllers_say_is_not_taken_for_one_answer() -> None:
    """One is killed between two questions, and the next has forgotten some of it."""
    boots = iter([10, 20, 20, 20])  # of config: before and after
    jobs = iter(["old", "new"])

    def run(words: Sequence[str]) -> str:
        if words[0] == "scontrol":
            return f"BOOT_TIME = 2026-11-17T10:00:{next(boots)}\n"
        name = next(jobs) if words[0] == "squeue" else ""
        return json.dumps({"jobs": [{"job_id": 1, "name": name}], "nodes": []})

    seen = observe(run)
    assert seen.jobs[1].name == "new"
    assert next(boots, None) is None
    restarted = itertools.count(10)
    with pytest.raises(AdapterError, match="again and again"):
        observe(lambda words: f"BOOT_TIME = 2026-11-17T10:00:{next(restarted)}\n"
                if words[0] == "scontrol" else '{"jobs": [], "nodes": []}')  # fmt: skip
