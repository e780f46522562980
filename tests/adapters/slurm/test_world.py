"""The world of Slurm, shown moment by moment: what it decides, and what its log makes of a kill."""

from __future__ import annotations

import json
import os
import pwd
import random
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import pytest

from downclock.adapters.slurm.carry import Action, actions, carry_out
from downclock.adapters.slurm.jobs import Task
from downclock.adapters.slurm.log import Log
from downclock.adapters.slurm.moments import Moment
from downclock.adapters.slurm.observed import Job, Node, Observed
from downclock.adapters.slurm.planner import Planner, Step
from downclock.adapters.slurm.site import SlurmSite, read_site
from downclock.adapters.slurm.spool import read_spool
from downclock.adapters.slurm.world import SlurmWorld
from downclock.engine.facts import FINISHED, Fact
from downclock.engine.snapshot import saved
from downclock.power.library_file import built_in_library, write_library
from downclock.quantities import instant
from downclock.report.slurm import plan_page, status_page, uninstalled_page
from downclock.report.tables import Page, rendered
from tests.adapters.slurm.test_site import CLUSTER

BEGIN_S = 1_794_880_000.0
PENDING, RUNNING, DONE = (frozenset([word]) for word in ("PENDING", "RUNNING", "COMPLETED"))


def _site(folder: Path, more: str = "") -> SlurmSite:
    (folder / "cluster.toml").write_text(CLUSTER)
    (folder / "site.toml").write_text(f'cluster = "cluster.toml"\ngrace_s = 60\n{more}')
    return read_site(folder / "site.toml")


@dataclass
class Shown:
    """What a Slurm would show that does at once what it is told, and nothing else."""

    now_s: float = BEGIN_S
    boot_s: float = BEGIN_S - 1e6
    jobs: dict[int, Job] = field(default_factory=dict)
    freq: dict[int, str] = field(default_factory=dict)
    states: dict[str, frozenset[str]] = field(
        default_factory=lambda: {"node1": frozenset(["IDLE"]), "node2": frozenset(["IDLE"])}
    )

    def submit(self, number: int, run: str = "60s", deadline: str = "+1h", **more: object) -> None:
        words = f"downclock=app:mixed,run:{run},deadline:{deadline}"
        job = Job(number, f"j{number}", "ann", "main", words, PENDING, held=True,
                  submit_s=self.now_s, limit_s=3600.0, gpus=1)  # fmt: skip
        self.jobs[number] = replace(job, **more)  # type: ignore[arg-type]

    def seen(self) -> Observed:
        nodes = {name: Node(name, states, {"a100": 4}) for name, states in self.states.items()}
        return Observed(self.now_s, dict(self.jobs), nodes, self.boot_s)

    def change(self, number: int, **more: object) -> None:
        self.jobs[number] = replace(self.jobs[number], **more)  # type: ignore[arg-type]

    def obey(self, command: Sequence[str]) -> str:
        """Do what scontrol would do."""
        _, verb, *words = command
        if verb in ("release", "uhold"):
            self.change(int(words[0]), held=verb == "uhold")
        elif verb == "requeuehold":
            job = self.jobs[int(words[0])]
            self.change(job.number, states=PENDING, nodes={}, held=True, restarts=job.restarts + 1,
                        submit_s=self.now_s)  # fmt: skip
        elif command[0] == "scancel":
            self.change(int(verb), states=frozenset(["CANCELLED"]))
        elif words[0].startswith("JobId="):
            told = dict(word.split("=", 1) for word in words)
            self._update(int(told.pop("JobId")), told)
        return ""

    def _update(self, number: int, told: dict[str, str]) -> None:
        names = {"Comment": "comment", "ReqNodeList": "required_nodes"}
        self.change(number, **{names[k]: v for k, v in told.items() if k in names})
        if "TimeLimit" in told:
            self.change(number, limit_s=60.0 * int(told["TimeLimit"]))
        if "NumNodes" in told:
            self.change(number, node_count=int(told["NumNodes"]))
        if "TresFreq" in told:
            self.freq[number] = told["TresFreq"]
        if "StartTime" in told:
            start = told["StartTime"]
            at_s = datetime.fromisoformat(f"{start}Z").timestamp() if start != "now" else self.now_s
            self.change(number, eligible_s=at_s)

    def start(self) -> list[int]:
        """Start every job that was let go to start now; return their numbers."""
        ready = [
            job for job in self.jobs.values()
            if job.waits and not job.held and job.eligible_s <= self.now_s
        ]  # fmt: skip
        for job in ready:
            node = (job.required_nodes or "node1").split(",")[0]
            self.change(job.number, states=RUNNING, nodes={node: job.gpus}, start_s=self.now_s)
        return [job.number for job in ready]


class Live:
    """A world with its log, which may be killed and made again."""

    def __init__(self, site: SlurmSite, shown: Shown) -> None:
        self.site, self.shown = site, shown
        self.open()

    def open(self) -> None:
        self.log = Log(self.site.log)
        self.world = SlurmWorld(self.site, self.log, lambda job: "")

    def kill(self) -> None:
        self.log.close()
        self.open()

    def step(self, after_s: float = 1.0) -> list[Action]:
        """Look, decide, and let Slurm do it."""
        self.shown.now_s += after_s
        seen = self.shown.seen()
        self.world.step(seen)
        todo = list(actions(self.world, seen))
        assert carry_out(self.world, todo, self.shown.obey, seen.now_s) == []
        return todo

    def state(self) -> bytes:
        assert self.world.scheduler is not None
        return saved(self.world.scheduler)

    def left(self, number: int) -> str:
        return next(e.left for e in self.world.tracked.values() if e.task.job == number)


@pytest.fixture
def live(tmp_path: Path) -> Live:
    return Live(_site(tmp_path), Shown())


def test_a_job_is_let_go_with_node_clock_and_start(live: Live) -> None:
    live.shown.submit(1)
    (action,) = live.step()
    update, release = action.commands
    assert update[:3] == ("scontrol", "update", "JobId=1")
    assert any(word.startswith("TresFreq=gpu:") for word in update)
    assert release == ("scontrol", "release", "1")
    (free,) = live.step()
    assert [words[:3] for words in free.commands] == [("scontrol", "update", "JobId=1")]
    (comment,) = free.commands[0][3:]  # whoever holds it now means it, whatever is forgotten
    assert comment == f"Comment={live.shown.jobs[1].comment}"
    assert " free=0 " in comment
    assert live.step() == []  # its record says it all: nothing more to do
    assert live.shown.start() == [1]
    assert live.step() == []


def test_ends_are_facts_and_the_next_job_starts(live: Live) -> None:
    for number in range(1, 10):
        live.shown.submit(number, run="600s", deadline="+15m" if number < 9 else "+2h")
    live.step()
    started = live.shown.start()
    assert len(started) == 8
    last = next(number for number in range(1, 10) if number not in started)
    assert "start=" in live.shown.jobs[last].comment
    assert not live.shown.jobs[last].held
    live.step(300.0)
    live.shown.change(started[0], states=DONE, end_s=live.shown.now_s)
    live.step(2.0)
    live.step(2.0)
    assert live.shown.start() == [last]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"states": RUNNING, "nodes": {"node9": 1}}, "Slurm started it outside the plan"),
        ({"comment": "downclock=off"}, "its owner opted out"),
    ],
)
def test_jobs_that_leave_the_plan_are_left_alone(live: Live, change, why: str) -> None:
    live.shown.submit(1)
    live.step()
    live.shown.change(1, **change)
    live.step()
    assert live.left(1) == why
    assert live.step() == []


def test_a_hold_of_the_owner_is_kept_but_not_one_that_a_controller_forgot(live: Live) -> None:
    live.shown.submit(1, deadline="+2h")
    live.shown.submit(2, deadline="+2h")
    live.step()
    live.shown.change(1, held=True)
    live.shown.boot_s = live.shown.now_s + 1.0  # the controller was killed and forgot
    live.step(12.0)
    assert not live.shown.jobs[1].held
    live.step(2.0)
    live.shown.change(2, held=True)
    live.shown.change(1, states=RUNNING, nodes={live.shown.jobs[1].required_nodes: 1})
    live.shown.boot_s = BEGIN_S
    live.step(2.0)
    assert live.left(2) == "its owner holds it"
    assert live.shown.jobs[2].held
    assert live.shown.jobs[2].comment == "downclock=app:mixed,run:60s,deadline:+2h"


def test_a_job_that_is_not_started_is_planned_once_more_then_given_back(live: Live) -> None:
    live.shown.submit(1)
    live.step()
    live.step(61.0)
    live.step(1.0)
    assert "core_mhz" in live.shown.jobs[1].comment
    live.step(61.0)
    assert live.left(1) == "Slurm did not start it for 60 s"
    assert live.shown.jobs[1].required_nodes == ""
    assert "left=1" in live.shown.jobs[1].comment


def test_a_requeued_job_is_the_same_job_with_the_same_deadline(live: Live) -> None:
    live.shown.submit(1)
    live.step()
    live.shown.start()
    live.step(30.0)
    live.shown.change(1, states=PENDING, nodes={}, restarts=1, submit_s=live.shown.now_s + 1)
    live.step(5.0)
    live.step(5.0)
    (tracked,) = live.world.tracked.values()
    assert (tracked.restarts, tracked.left) == (1, "")
    assert tracked.deadline_s == pytest.approx(BEGIN_S + 3600.0)


def test_a_changed_deadline_is_followed(live: Live) -> None:
    for number in range(1, 10):
        live.shown.submit(number, run="600s", deadline="+2h")
    live.step()
    live.shown.start()
    waiting = next(job for job in live.shown.jobs.values() if job.waits)
    live.shown.change(waiting.number, comment=waiting.comment.replace("+2h", "+3h"))
    live.step()
    tracked = next(e for e in live.world.tracked.values() if e.task.job == waiting.number)
    assert tracked.deadline_s == pytest.approx(BEGIN_S + 3 * 3600.0)


def test_gpus_of_others_and_nodes_that_drain_are_not_planned(live: Live) -> None:
    other = Job(9, states=RUNNING, gpus=3, nodes={"node1": 3}, submit_s=BEGIN_S)
    live.shown.jobs[9] = other
    live.shown.states["node2"] = frozenset(["IDLE", "DRAIN"])
    for number, deadline in ((1, "+15m"), (2, "+30m")):
        live.shown.submit(number, run="600s", deadline=deadline)
    live.step()
    assert live.shown.start() == [1]
    assert live.shown.jobs[1].nodes == {"node1": 1}
    live.shown.submit(3, run="600s", deadline="+15m")
    live.step()
    (late,) = (e for e in live.world.tracked.values() if e.task.job == 3)
    assert "cannot end by its deadline" in late.task.missed
    assert (late.left, late.deadline_s > BEGIN_S + 1200.0) == ("", True)
    assert "reason=cannot-end-by-its-deadline" in live.shown.jobs[3].comment
    assert live.shown.start() == []
    live.shown.states["node2"] = frozenset(["IDLE"])
    live.shown.submit(4, run="600s", deadline="+15m")
    live.step()
    assert 4 in live.shown.start()
    assert live.shown.jobs[4].nodes == {"node2": 1}


def test_a_job_whose_deadline_is_over_is_planned_for_later(live: Live) -> None:
    live.shown.submit(1, run="60s", deadline="+1m")
    live.step(100.0)
    (tracked,) = live.world.tracked.values()
    assert tracked.task.missed == "its deadline has passed"
    assert live.shown.now_s + 60.0 < tracked.deadline_s < live.shown.now_s + 180.0
    assert "reason=its-deadline-has-passed" in live.shown.jobs[1].comment
    live.step(60.0)
    assert live.shown.start() == [1]


def test_a_job_that_slurm_ends_by_its_deadline_is_not_planned_for_later(live: Live) -> None:
    """It is let go with the reason: perhaps Slurm finds a place, and its owner is told."""
    live.shown.submit(1, run="20m", deadline_s=BEGIN_S + 900.0, comment="downclock=run:20m")
    live.step()
    assert "cannot end by its deadline" in live.left(1)
    assert "left=1 reason=cannot-end-by-its-deadline" in live.shown.jobs[1].comment
    assert not live.shown.jobs[1].held


def test_the_owner_of_a_job_that_will_be_late_may_put_its_deadline_off(live: Live) -> None:
    live.shown.submit(1, run="20m", deadline="+15m")
    live.step()
    (tracked,) = live.world.tracked.values()
    due_s = tracked.deadline_s
    assert BEGIN_S + 1200.0 < due_s < BEGIN_S + 2400.0
    live.step()
    assert tracked.deadline_s == due_s
    live.shown.change(1, comment=live.shown.jobs[1].comment.replace(":+15m", ":+3h"))
    live.step()
    assert live.world.tracked[tracked.task.key].deadline_s == BEGIN_S + 3 * 3600.0


def test_a_job_that_will_be_late_is_its_owners_as_others_are(tmp_path: Path) -> None:
    live = Live(_site(tmp_path), Shown())
    for number in range(1, 10):
        live.shown.submit(number, run="20m", deadline="+15m")
    live.step()
    live.shown.change(8, comment="downclock=off")
    waiting = next(job for job in live.shown.jobs.values() if not job.required_nodes)
    live.shown.change(waiting.number, held=True)
    live.kill()
    live.step(20.0)
    assert live.left(8) == "its owner opted out"
    assert live.left(waiting.number) == "its owner holds it"
    assert live.shown.jobs[waiting.number].held
    assert live.step() == []


def test_nodes_sleep_and_wake_by_the_plan_and_never_with_a_job(tmp_path: Path) -> None:
    cluster = CLUSTER.replace(
        'name = "node"', 'name = "node"\nhost_w = 100\nwake_j = 50\nwake_s = 5'
    )
    (tmp_path / "cluster.toml").write_text(cluster)
    (tmp_path / "site.toml").write_text('cluster = "cluster.toml"\nsleep = true\n')
    shown = Shown()
    live = Live(read_site(tmp_path / "site.toml"), shown)
    shown.submit(1)
    (start, *switched) = live.step()
    assert start.item == "1"
    asleep = shown.jobs[1].required_nodes == "node1"
    first, other = ("node1", "node2") if asleep else ("node2", "node1")
    shown.start()
    told = [*switched, *live.step(5.0), *live.step(5.0)]
    told = [action for action in told if action.item != "1"]
    assert {action.item for action in told} == {other}
    assert all(action.why.startswith("power_down_asap") for action in told)
    shown.states[other] = frozenset(["IDLE", "POWERED_DOWN"])
    shown.change(1, states=DONE, end_s=shown.now_s)
    told = [*live.step(5.0), *live.step(60.0)]
    assert first in {action.item for action in told}
    shown.states[first] = frozenset(["IDLE", "POWERED_DOWN"])
    shown.submit(2)
    told = live.step(1.0)
    assert [action.why.partition(":")[0] for action in told if not action.key] == ["power_up"]


@pytest.mark.parametrize("seed", range(4))
def test_a_world_that_was_killed_goes_on_as_if_it_had_not_been(tmp_path: Path, seed: int) -> None:
    """Random days, shown to a world that is killed at any step and to one that never is."""
    days = []
    for name, kills in (("calm", 0.0), ("killed", 0.4)):
        folder = tmp_path / name
        folder.mkdir()
        draw, shown = random.Random(seed), Shown()
        live, chance = Live(_site(folder), shown), random.Random(99)
        for k in range(60):
            _happens(draw, shown, k)
            live.step(draw.choice([1.0, 7.0, 40.0]))
            shown.start()
            if chance.random() < kills:
                live.kill()
        days.append((live.state(), shown.jobs))
    assert days[0] == days[1]


def _happens(draw: random.Random, shown: Shown, k: int) -> None:
    """Something, as it comes on a cluster."""
    running = [job for job in shown.jobs.values() if job.active]
    what = draw.random()
    if what < 0.5:
        deadline = f"+{draw.choice([2, 10, 60])}m"
        shown.submit(k + 1, run=f"{draw.choice([20, 90, 300])}s", deadline=deadline)
    elif what < 0.8 and running:
        job = draw.choice(running)
        end = DONE if draw.random() < 0.8 else frozenset(["FAILED"])
        shown.change(job.number, states=end, end_s=shown.now_s)
    elif what < 0.9:
        node = draw.choice(["node1", "node2"])
        shown.states[node] = frozenset(draw.choice([["IDLE"], ["DOWN"], ["MIXED", "DRAIN"]]))
    elif shown.jobs:
        job = draw.choice(list(shown.jobs.values()))
        if job.waits:
            shown.change(job.number, states=frozenset(["CANCELLED"]))


def test_another_site_file_begins_a_new_plan_and_forgets_no_comment(tmp_path: Path) -> None:
    live = Live(_site(tmp_path), Shown())
    live.shown.submit(1, deadline="+2h")
    live.step()
    live.log.close()
    live.site = _site(tmp_path, "reserve = 0.5\n")
    live.open()
    assert live.world.scheduler is None
    live.step()
    (tracked,) = live.world.tracked.values()
    assert tracked.task.comment == "downclock=app:mixed,run:60s,deadline:+2h"
    assert live.world.as_submitted(live.shown.jobs[1]) == tracked.task


def test_a_cluster_file_of_another_cluster_is_refused(tmp_path: Path) -> None:
    shown = Shown()
    del shown.states["node2"]
    with pytest.raises(Exception, match="no node of Slurm"):
        Live(_site(tmp_path), shown).step()


# --- controllers that were killed --------------------------------------------------------------


def _run(live: Live, seconds: float, **end: object) -> Job:
    """Run the one job for a while, and let it end so; return it as it was while it ran."""
    live.shown.submit(1)
    live.step()
    assert live.shown.start() == [1]
    live.step(seconds)
    before = live.shown.jobs[1]
    if end:
        live.shown.change(1, end_s=live.shown.now_s, **end)
        live.step(1.0)
    return before


def _forget(live: Live, job: Job) -> None:
    """Kill the controller, which shows the job as it was."""
    live.shown.jobs[1] = job
    live.shown.boot_s = live.shown.now_s + 1.0


@pytest.mark.parametrize("shown", ["running", "waiting", "requeued"])
def test_a_job_that_completed_is_held_where_a_controller_has_forgotten(
    live: Live, shown: str
) -> None:
    before = _run(live, 60.0, states=DONE)
    waiting = replace(before, states=PENDING, nodes={})
    again = replace(waiting, restarts=1, submit_s=live.shown.now_s + 30.0)
    _forget(live, {"running": before, "waiting": waiting, "requeued": again}[shown])
    live.step(40.0 if shown == "requeued" else 2.0)
    if shown == "running":
        assert live.shown.jobs[1].held  # and its GPUs are free
        live.shown.boot_s = live.shown.now_s + 5.0  # killed once more, but it has saved this
        live.step(10.0)
    live.kill()
    assert live.step() == []
    job = live.shown.jobs[1]
    assert job.held
    assert "ran=1 reason=ran-already" in job.comment
    assert job.comment.endswith(" | downclock=app:mixed,run:60s,deadline:+1h")
    live.shown.change(1, held=False)  # its owner wants it run again
    assert live.step() == []
    assert all(live.world.book.up)


def test_a_requeue_that_slurm_refuses_keeps_no_word_from_the_owner(live: Live) -> None:
    """It refuses while a job is being requeued already."""
    _forget(live, _run(live, 60.0, states=DONE))
    live.step(2.0)
    (tracked,) = live.world.tracked.values()
    tracked.refusals = 30
    live.step(2.0)
    assert "ran=1" in live.shown.jobs[1].comment


def test_an_owner_who_requeues_a_job_has_it_run_again(live: Live) -> None:
    before = _run(live, 60.0, states=DONE)
    live.shown.boot_s = live.shown.now_s + 1.0
    live.step(400.0)
    waiting = replace(before, states=PENDING, nodes={})
    live.shown.jobs[1] = replace(waiting, restarts=1, submit_s=live.shown.now_s)
    assert live.step() == []
    live.shown.change(1, states=RUNNING, nodes={"node1": 1})
    live.shown.boot_s = live.shown.now_s + 1.0
    assert live.step(2.0) == []


@pytest.mark.parametrize(("how", "state"), [("cancel", "CANCELLED"), ("run", "RUNNING")])
def test_a_site_may_cancel_or_run_again_what_was_forgotten(
    tmp_path: Path, how: str, state: str
) -> None:
    live = Live(_site(tmp_path, f'forgotten = "{how}"\n'), Shown())
    _forget(live, _run(live, 60.0, states=DONE))
    live.step(2.0)
    live.step(2.0)
    assert live.shown.jobs[1].states == {state}


@pytest.mark.parametrize(
    ("started_s", "completed"), [(1.2, True), (1.2, None), (1.2, False), (-4.0, None)]
)
def test_a_nodes_word_counts_where_nobody_saw_the_end(
    live: Live, started_s: float, completed: bool | None
) -> None:
    """Not what it says of an earlier run, which a controller has forgotten and ended."""
    before = _run(live, 60.0)
    row = {"started_s": BEGIN_S + started_s, "ended_s": live.shown.now_s + 0.5,
           "completed": completed, "by": "epilog", "attempt": 0}  # fmt: skip
    live.site.spool.mkdir()
    (node,) = before.nodes
    (live.site.spool / f"1-{node}-0.json").write_text(json.dumps(row))
    live.step(5.0)
    assert live.shown.jobs[1] == before  # the controller lives: its word counts
    _forget(live, before)
    live.step(2.0)
    live.step(2.0)
    assert ("ran=1" in live.shown.jobs[1].comment) == (started_s > 0.0 and completed is not False)


@pytest.mark.parametrize("completed", [True, None, False])
def test_a_nodes_word_counts_where_a_controller_has_forgotten_start_and_end(
    live: Live, completed: bool | None
) -> None:
    """A controller that has forgotten a start ends the run: only what ended well has run."""
    before = _run(live, 60.0)
    row = {"started_s": BEGIN_S + 1.0, "ended_s": live.shown.now_s, "completed": completed,
           "by": "epilog", "attempt": 0}  # fmt: skip
    live.site.spool.mkdir()
    (live.site.spool / "1-node2-0.json").write_text(json.dumps(row))
    _forget(live, replace(before, states=PENDING, nodes={}))
    live.step(10.0)
    live.step(1.0)
    assert ("ran=1" in live.shown.jobs[1].comment) == bool(completed)
    assert live.shown.jobs[1].held == bool(completed)


def test_a_node_that_was_told_of_an_end_is_believed_whenever_its_epilog_ran(live: Live) -> None:
    """A controller that lives would show the job as one that ends."""
    before = _run(live, 60.0)
    _forget(live, before)
    row = {"started_s": BEGIN_S + 1.0, "ended_s": live.shown.now_s + 4.0, "completed": True,
           "by": "epilog", "attempt": 0}  # fmt: skip
    live.site.spool.mkdir()
    (node,) = before.nodes
    (live.site.spool / f"1-{node}-0.json").write_text(json.dumps(row))
    live.step(4.5)
    assert "ran=1" not in live.shown.jobs[1].comment  # perhaps it ends just now
    live.step(5.0)
    live.step(1.0)
    assert "ran=1" in live.shown.jobs[1].comment


@pytest.mark.parametrize("shown", ["running", "requeued", "held", "another's"])
def test_the_word_of_a_script_that_ended_counts_where_a_controller_has_forgotten(
    live: Live, shown: str
) -> None:
    """`once.sh` wrote it before the controller heard of the end, or when it held the job."""
    live.shown.submit(1, user=pwd.getpwuid(os.getuid()).pw_name)
    live.step()
    assert live.shown.start() == [1]
    live.step(60.0)
    before = live.shown.jobs[1]
    word = live.site.spool / "once" / "1.ended"
    word.parent.mkdir(parents=True)
    word.write_text("held\n" if shown == "held" else "")
    os.utime(word, (live.shown.now_s + 0.5,) * 2)
    live.step(1.0)
    assert live.shown.jobs[1] == before or shown == "held"  # the controller lives
    again = replace(before, states=PENDING, nodes={}, restarts=1, submit_s=live.shown.now_s)
    job = {"running": before, "held": replace(again, held=True)}.get(shown, again)
    if shown != "held":
        live.shown.boot_s = live.shown.now_s + 1.0
    live.shown.jobs[1] = replace(job, user="root'") if shown == "another's" else job
    live.step(10.0)
    assert shown != "running" or live.shown.jobs[1] == before  # its node may yet tell it
    for _ in range(3):
        live.step(12.0)
    job = live.shown.jobs[1]
    ours = shown != "another's"  # nobody is believed of a job that is not his
    assert ("ran=1" in job.comment, job.held) == (ours, ours)


@pytest.mark.parametrize("made", ["pipe", "link to a pipe", "endless"])
def test_an_owners_word_that_is_no_small_file_stops_nobody(live: Live, made: str) -> None:
    """Anybody may make files there: a planner that waits for a pipe plans for nobody."""
    live.shown.submit(1, user=pwd.getpwuid(os.getuid()).pw_name)
    live.step()
    live.shown.start()
    live.step(60.0)
    folder = live.site.spool / "once"
    folder.mkdir(parents=True)
    if made == "endless":
        with (folder / "1.ended").open("wb") as file:
            file.truncate(1 << 42)
    else:
        pipe = folder / ("1.ended" if made == "pipe" else "pipe")
        os.mkfifo(pipe)
        if made != "pipe":
            (folder / "1.ended").symlink_to(pipe)
    live.shown.change(1, states=frozenset(["FAILED"]), end_s=live.shown.now_s)
    live.step(1.0)
    row = {"job": 1, "node": "node1", "user": "ann", "job_name": "j", "started_s": 1.0,
           "ended_s": 2.0, "energy_j": 3.0, "gpus": [], "source": "counter"}  # fmt: skip
    (live.site.spool / "1-node1-0.json").write_text(json.dumps(row))
    assert [each.waited_s for each in read_spool(live.site.spool)] == [0.0]


def test_the_exact_commands_may_be_pasted_into_any_shell(live: Live) -> None:
    for number in range(1, 12):
        live.shown.submit(number, gpus=4)
    todo = live.step()
    live.log.close()
    with Planner(live.site, dry=True) as planner:
        page = plan_page(planner, Step(live.shown.seen(), todo, ["1: no"]), dry=False)
    lines = rendered(page, "table", width=60).splitlines()
    at = lines.index("these commands were run:") + 1
    assert (lines[at - 2], lines[at]) == ("failed: 1: no", "export TZ=UTC")
    told = [shlex.split(line) for line in lines[at + 1 :]]
    assert told == [list(words) for action in todo for words in action.commands]


def test_jobs_that_were_only_let_go_do_not_add_up(live: Live) -> None:
    """Where all jobs of a partition are delayed for us, most may be such; watch runs for months."""
    live.shown.submit(1, comment="downclock=plan")  # it has no deadline
    live.step()
    assert (live.left(1), live.shown.jobs[1].held) == ("it has no deadline", False)
    live.shown.change(1, states=DONE, end_s=live.shown.now_s)
    live.step()
    live.log.close()
    with Planner(live.site, dry=True) as planner:
        page = plan_page(planner, Step(live.shown.seen(), [], []), dry=True)
    assert page.lines == ("no job waits for a plan",)
    live.open()
    del live.shown.jobs[1]
    live.step()
    world = live.world
    assert (world.tracked, world.records.originals, world.records.carried) == ({}, {}, {})


@pytest.mark.parametrize("trouble", [[], ["node2: ssh failed"]])
def test_uninstall_says_what_became_of_the_log(live: Live, trouble: list[str]) -> None:
    todo = [Action("7", "7.1", "put back", ()), Action("node2", "", "reset its clocks", ())]
    (line,) = uninstalled_page(Step(live.shown.seen(), todo, trouble), dry=False).lines
    assert line.startswith("not all of 1 job" if trouble else "1 job put back")
    assert ("the log is kept" in line) == bool(trouble)


def test_a_job_that_ended_later_than_asked_is_named(live: Live) -> None:
    live.shown.submit(1, deadline="+5m")
    live.shown.submit(2, deadline="+5m")
    live.step()
    live.shown.start()
    live.step(100.0)
    live.shown.change(1, states=DONE, end_s=live.shown.now_s)
    live.step(300.0)  # the other one goes on
    live.shown.change(2, states=DONE, end_s=live.shown.now_s)
    live.step()
    live.log.close()
    with Planner(live.site, dry=True) as planner:
        step = Step(live.shown.seen(), [], [])
        page = plan_page(planner, step, dry=True)
    assert [row.get("late_s") for row in page.records] == [None, 102.0]  # told a second later
    assert page.lines[1] == "1 job later than asked: 2"


def _page(live: Live) -> Page:
    live.log.close()
    with Planner(live.site, dry=True) as planner:
        page = status_page(planner, Step(live.shown.seen(), [], []), read_spool(live.site.spool))
    live.open()
    return page


def test_the_latest_of_many_jobs_are_shown_and_the_rest_is_counted(live: Live) -> None:
    live.site.spool.mkdir()
    for number in range(1, 76):
        live.shown.submit(number, run="20s", deadline="+15s")
        live.step()
        live.shown.start()
        live.step(30.0)
        live.shown.change(number, states=DONE, end_s=live.shown.now_s)
        row = {"job": number, "node": "node1", "user": "ann", "job_name": "j", "energy_j": 1.0,
               "started_s": live.shown.now_s - 1.0, "ended_s": live.shown.now_s, "gpus": [],
               "source": "counter"}  # fmt: skip
        (live.site.spool / f"{number}-node1-0.json").write_text(json.dumps(row))
        live.step()
    live.shown.submit(76)
    live.step()
    page = _page(live)
    assert [row["job"] for row in page.records] == [*range(1, 77)]  # as JSON and CSV have them
    jobs, measured = ([row[0] for row in table.rows] for table in page.tables)
    assert jobs == [str(k) for k in (76, *range(75, 0, -1))]
    assert measured == [str(k) for k in range(75, 0, -1)]
    named = ", ".join(str(k) for k in range(56, 76))
    assert page.lines[1] == f"75 jobs later than asked: {named} and 55 before"
    assert rendered(page, "table").count("and 16 more") >= 1
    assert rendered(page, "table").count("and 15 more") >= 1


def test_a_job_that_started_outside_the_plan_shows_when_and_where_it_did(live: Live) -> None:
    for number in range(1, 10):
        live.shown.submit(number, run="600s", deadline="+30s")
    live.step()
    waits = next(job.number for job in live.shown.jobs.values() if "core_mhz" not in job.comment)
    start_s = live.shown.now_s + 7.0
    live.shown.change(waits, states=RUNNING, nodes={"node2": 1}, start_s=start_s)
    live.step(47.0)
    row = _page(live).records[waits - 1]
    assert (row["state"], row["nodes"]) == (f"left to Slurm: {live.left(waits)}", "node2")
    assert row["start"] == instant(start_s - live.world.epoch_s, live.world.epoch)
    assert ("end" in row, row["late_s"]) == (False, 18.0)
    live.shown.change(waits, states=DONE, end_s=start_s + 100.0)
    live.step(60.0)
    row = _page(live).records[waits - 1]
    assert row["end"] == instant(start_s + 100.0 - live.world.epoch_s, live.world.epoch)
    assert (row["start"], row["late_s"]) == (
        instant(start_s - live.world.epoch_s, live.world.epoch),
        78.0,
    )


def test_a_job_that_slurm_starts_later_than_planned_shows_when_it_did(live: Live) -> None:
    live.shown.submit(1)
    live.step()
    live.shown.now_s += 20.0
    live.shown.start()
    live.step()
    (row,) = _page(live).records
    assert row["state"] == "started"
    assert row["start"] == instant(
        live.shown.jobs[1].start_s - live.world.epoch_s, live.world.epoch
    )


@pytest.mark.parametrize("there", [False, True])
def test_a_learnt_library_that_is_not_there_is_named(tmp_path: Path, there: bool) -> None:
    if there:
        write_library(built_in_library("a100"), tmp_path / "typo.json")
    live = Live(_site(tmp_path, 'learned = "typo.json"\n'), Shown())
    live.step()
    said = [line for line in _page(live).lines if "typo.json" in line]
    assert (
        said == []
        if there
        else [f"{tmp_path}/typo.json (learned) is not there yet: downclock slurm learn writes it"]
    )


def test_uninstall_does_not_let_a_job_go_that_ran_already(live: Live) -> None:
    _forget(live, _run(live, 60.0, states=DONE))
    live.step(2.0)
    live.step(2.0)
    live.log.close()
    with Planner(live.site, run=live.shown.obey) as planner:
        action = planner._put_back(live.shown.jobs[1], live.shown.seen())
    for command in action.commands:
        live.shown.obey(command)
    job = live.shown.jobs[1]
    assert (job.comment, job.held) == ("downclock=app:mixed,run:60s,deadline:+1h", True)


def test_a_job_that_was_left_to_slurm_does_not_run_twice_either(live: Live) -> None:
    before = replace(_run(live, 60.0), nodes={"node9": 1})
    live.shown.jobs[1] = before
    live.step()
    assert live.left(1) == "Slurm started it outside the plan"
    live.shown.change(1, states=DONE, end_s=live.shown.now_s)
    live.step()
    _forget(live, before)
    live.step(2.0)
    live.step(2.0)
    assert live.shown.jobs[1].held
    assert "ran=1" in live.shown.jobs[1].comment


def test_a_start_that_was_forgotten_is_planned_anew(live: Live) -> None:
    live.shown.submit(1, run="600s", deadline="+12m")
    live.step()
    assert live.shown.start() == [1]
    slow = live.shown.freq[1]
    live.step(30.0)
    waiting = replace(live.shown.jobs[1], states=PENDING, nodes={})
    _forget(live, waiting)
    assert live.step(2.0) == []  # its node may still run it
    live.step(10.0)
    assert live.shown.freq[1] > slow  # the time that is left wants a faster clock
    assert live.step() == []
    assert live.shown.start() == [1]
    live.step()
    assert live.left(1) == ""


def _fails(live: Live, start_s: float, run_s: float, state: str = "FAILED") -> list[Action]:
    """Have Slurm end the one job so; return what is done."""
    live.shown.change(1, states=frozenset([state]), nodes={}, start_s=start_s,
                      end_s=start_s + run_s)  # fmt: skip
    live.shown.now_s = max(live.shown.now_s, start_s + run_s)
    return live.step(12.0)


def _runs_again(live: Live) -> bool:
    """Tell whether it runs by the plan once Slurm has requeued it."""
    job = live.shown.jobs[1]
    live.shown.change(1, states=PENDING, restarts=job.restarts + 1, submit_s=live.shown.now_s,
                      start_s=0.0)  # fmt: skip
    live.step(2.0)
    live.step(2.0)
    started = live.shown.start() == [1]
    live.step()
    return started and live.left(1) == ""


REQUEUE = [(("scontrol", "requeue", "1"),)]


@pytest.mark.parametrize("replanned", [False, True])
@pytest.mark.parametrize("run_s", [0.0, 8.0])
def test_a_job_that_slurm_failed_to_launch_again_is_requeued(
    live: Live, run_s: float, replanned: bool
) -> None:
    """Seen on 22.05: the start was forgotten, the run cut, and the next one refused by the node."""
    live.shown.submit(1, run="600s", deadline="+1h")
    live.step()
    assert live.shown.start() == [1]
    live.step(5.0)
    live.shown.boot_s = live.shown.now_s + 1.0
    if replanned:  # Slurm shows it as waiting for long enough
        live.shown.change(1, states=PENDING, nodes={})
        live.step(12.0)
        live.step(2.0)
    todo = _fails(live, live.shown.now_s + 3.0, run_s)
    assert [action.commands for action in todo] == ([] if run_s else REQUEUE)
    assert run_s or _runs_again(live)


@pytest.mark.parametrize(
    ("word", "mine", "again"),
    [
        ("waits", True, True),
        ("waits", False, False),
        ("begun", True, False),
        ("ended", True, False),
    ],
)
@pytest.mark.parametrize("run_s", [0.0, 30.0])
def test_a_job_that_failed_before_its_script_began_is_requeued(
    live: Live, word: str, mine: bool, again: bool, run_s: float
) -> None:
    """`once.sh` says whether it began, whatever ended it and whatever the controller knows."""
    user = pwd.getpwuid(os.getuid()).pw_name if mine else "root'"
    live.shown.submit(1, deadline="+1h", user=user)
    live.step()
    assert live.shown.start() == [1]
    file = live.site.spool / "once" / f"1.{word}"
    for restarts in range(12):
        start_s = live.shown.now_s
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (start_s + 1.0,) * 2)
        todo = _fails(live, start_s, run_s, "NODE_FAIL" if restarts else "FAILED")
        goes_on = again and restarts < 10  # not for ever
        assert [action.commands for action in todo] == (REQUEUE if goes_on else [])
        if not goes_on:
            break
        assert _runs_again(live)


def test_a_word_of_an_earlier_launch_counts_where_the_next_was_refused(live: Live) -> None:
    live.shown.submit(1, deadline="+1h", user=pwd.getpwuid(os.getuid()).pw_name)
    live.step()
    assert live.shown.start() == [1]
    file = live.site.spool / "once" / "1.waits"
    file.parent.mkdir(parents=True)
    file.touch()
    os.utime(file, (live.shown.now_s - 100.0,) * 2)
    assert [action.commands for action in _fails(live, live.shown.now_s, 2.0)] == REQUEUE
    assert _runs_again(live)
    assert _fails(live, live.shown.now_s, 30.0) == []  # it may have run where nobody wrote words


def test_a_job_that_slurm_could_not_launch_is_let_go_a_few_times(live: Live) -> None:
    live.shown.submit(1)
    live.step()
    for restarts in range(1, 5):
        live.shown.change(1, states=PENDING, nodes={}, held=True, restarts=restarts,
                          reason="launch failed requeued held",
                          submit_s=live.shown.now_s)  # fmt: skip
        live.step(2.0)
        live.step(2.0)
        assert live.shown.jobs[1].held == (restarts > 3)
    assert live.left(1) == "its owner holds it"


@pytest.mark.parametrize("ago_s", [4.0, 400.0])
def test_a_job_that_a_new_controller_launched_twice_is_not_held_by_an_administrator(
    live: Live, ago_s: float
) -> None:
    """Slurm forgets why it holds the job; administrators seldom hold one just then."""
    live.shown.submit(1)
    live.step()
    live.step(500.0)
    live.shown.boot_s = live.shown.now_s - ago_s
    live.shown.change(1, states=PENDING, nodes={}, held=True, restarts=1, reason="JobHeldAdmin",
                      submit_s=live.shown.now_s)  # fmt: skip
    live.step(2.0)
    live.step(2.0)
    assert live.shown.jobs[1].held == (ago_s > 60.0)


# --- whose job it is ---------------------------------------------------------------------------


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("restarts", [0, 1])
def test_a_hold_after_a_boot_is_kept_where_the_job_was_seen_free_since(
    live: Live, restarts: int, killed: bool
) -> None:
    """The controller was started just after we let the job go and saw it free, and forgot nothing.

    Its record says so: also a hold of before our first look is kept.
    """
    live.shown.submit(1, run="600s", deadline="+1h")
    live.step()
    live.step()
    live.shown.change(1, eligible_s=live.shown.now_s + 600.0)
    live.shown.boot_s = live.shown.now_s + 1.0
    if restarts:
        again_s = live.shown.boot_s + 1.0
        live.shown.change(1, held=True, restarts=1, reason="JobHeldAdmin", submit_s=again_s)
        live.step(9.0)  # launched twice: let go again
        live.step(2.0)
    assert not live.shown.jobs[1].held
    live.shown.change(1, held=True, reason="JobHeldAdmin" if restarts else "JobHeldUser")
    if killed:
        live.kill()
    live.step(9.0)
    assert live.left(1) == "its owner holds it"
    assert live.shown.jobs[1].held


@pytest.mark.parametrize("released", [False, True])
def test_an_administrators_hold_is_kept_whenever_the_controller_was_started(
    live: Live, released: bool
) -> None:
    """Slurm calls the hold of sbatch -H the user's, before and after it is killed."""
    live.shown.submit(1, deadline="+1h", reason="JobHeldUser")
    if released:
        live.step()
        live.shown.boot_s = live.shown.now_s + 1.0
    else:
        live.world.step(live.shown.seen())  # planned, and nothing carried out yet
    live.shown.change(1, held=True, reason="JobHeldAdmin")
    live.step(9.0)
    assert live.left(1) == "its owner holds it"
    assert live.shown.jobs[1].held


def test_a_hold_on_a_job_that_was_never_held_for_us_is_kept(live: Live) -> None:
    """Jobs that the submit plugin delays are not held: whoever holds them means it."""
    live.shown.submit(1, deadline="+2h", held=False)
    live.step()
    live.shown.change(1, held=True)
    live.step(200.0)
    assert live.left(1) == "its owner holds it"
    live.step()
    assert live.shown.jobs[1].held
    assert live.shown.jobs[1].required_nodes == ""


@pytest.mark.parametrize("held", [True, False])
def test_a_hold_on_a_job_that_was_left_to_slurm_is_kept(live: Live, held: bool) -> None:
    words = "downclock=wait downclock=run:60s"  # no deadline
    live.shown.submit(1, held=held, comment=words)
    live.step()
    assert live.left(1) == "it has no deadline"
    assert not live.shown.jobs[1].held
    live.shown.change(1, held=True)
    live.kill()
    assert live.step(3600.0) == []
    assert live.shown.jobs[1].held


def test_a_start_that_slurm_refused_to_change_is_put_back_all_the_same(live: Live) -> None:
    """The job waits with a last start; it is to start now, Slurm refuses, and we are taken out."""
    for number in range(1, 10):
        live.shown.submit(number, run="600s", deadline="+1h")
    live.step()
    later = next(job for job in live.shown.jobs.values() if job.eligible_s > live.shown.now_s)
    entry = {"at_s": live.shown.now_s, "item": "x", "key": later.key, "why": "x", "ok": False,
             "commands": [("scontrol", "update", f"JobId={later.number}", "StartTime=now",
                           "ReqNodeList=node1")]}  # fmt: skip
    live.world.note_carried(entry)
    task = live.world.as_submitted(later)
    changed = live.world.records.changed(task, later)
    assert {"StartTime", "ReqNodeList"} <= set(changed)


def test_a_node_is_not_planned_to_have_more_gpus_than_any(live: Live) -> None:
    """--gres=gpu:8 asks for eight on each node, and nodes have four; --gpus=8 is for two nodes."""
    live.shown.submit(1, gpus=8, gpus_by_node=True)
    live.shown.submit(2, gpus=8)
    live.step()
    assert live.left(1) == "it asks for more GPUs of a node than any has"
    assert live.left(2) == ""


def test_uninstall_releases_only_what_is_held_for_us(tmp_path: Path) -> None:
    live = Live(_site(tmp_path), Shown())
    live.shown.submit(1, deadline="+2h")
    live.shown.submit(2, deadline="+2h")
    live.step()
    live.shown.change(1, held=True)
    seen = live.shown.seen()
    for number, job in seen.jobs.items():
        task = live.world.as_submitted(job)
        assert live.world.records.owner_holds(task, job, seen) == (number == 1)
    untold = replace(seen.jobs[1], number=3)
    assert live.world.records.owner_holds(live.world.as_submitted(untold), untold, seen)


@pytest.mark.parametrize("how", ["replaced", "appended"])
def test_an_owner_who_opts_out_has_the_job_back(tmp_path: Path, how: str) -> None:
    live = Live(_site(tmp_path, 'policy = "edl"\n'), Shown())
    live.shown.submit(1, run="58m", deadline="+2h")
    live.step()
    job = live.shown.jobs[1]
    assert (job.required_nodes, live.shown.freq[1] != "") == ("node1", True)
    assert job.limit_s > 3600.0
    words = "downclock=off" if how == "replaced" else f"{job.comment} downclock=off"
    live.shown.change(1, comment=words)
    live.kill()
    live.step(20.0)
    job = live.shown.jobs[1]
    assert (job.required_nodes, job.limit_s, live.shown.freq[1]) == ("", 3600.0, "")
    submitted = "downclock=app:mixed,run:58m,deadline:+2h"
    assert job.comment == ("downclock=off" if how == "replaced" else f"{submitted} downclock=off")
    live.shown.change(1, limit_s=1800.0)  # from now on all of it is the owner's
    assert live.step() == []


def test_our_limit_moves_no_deadline_that_follows_the_limit(tmp_path: Path) -> None:
    live = Live(_site(tmp_path, 'deadline = "factor"\npolicy = "edl"\n'), Shown())
    live.shown.submit(1, comment="downclock=plan")
    for _ in range(3):
        live.step()
    (tracked,) = live.world.tracked.values()
    assert live.shown.jobs[1].limit_s > 3600.0
    assert tracked.deadline_s == BEGIN_S + 3 * 3600.0


def test_a_plan_begun_anew_estimates_by_the_owners_limit(tmp_path: Path) -> None:
    live = Live(_site(tmp_path), Shown())
    live.shown.submit(1, comment="downclock=deadline:+20h")
    whole_s = []
    for reserve in (0.1, 0.2, 0.3):
        live.log.close()
        live.site = _site(tmp_path, f"reserve = {reserve}\n")
        live.open()
        live.step()
        (tracked,) = live.world.tracked.values()
        whole_s.append((tracked.task.whole_s, tracked.task.limit_s))
    assert live.shown.jobs[1].limit_s > 3600.0
    assert set(whole_s) == {(3610.0, 3600.0)}


def test_a_job_that_slurm_starts_on_time_is_in_the_plan(tmp_path: Path) -> None:
    """Nine jobs on eight GPUs: the last is promised a start, and Slurm is there before the watch.

    Slurm's whole seconds may be a little ahead of the promise.
    """
    for early_s in (0.0, -0.6):
        folder = tmp_path / str(early_s)
        folder.mkdir()
        live = Live(_site(folder, 'policy = "edl"\n'), Shown())
        for number in range(1, 10):
            live.shown.submit(number, run="600s", deadline="+2h")
        live.step()
        started = live.shown.start()
        (last,) = {*range(1, 10)} - {*started}
        tracked = next(e for e in live.world.tracked.values() if e.task.job == last)
        assert live.world.scheduler is not None
        (row,) = live.world.scheduler.book.tasks[tracked.number].rows
        promised_s = live.world.epoch_s + row.start_s
        assert live.shown.jobs[last].eligible_s - promised_s < 1.0
        for number in started:
            live.shown.change(number, states=DONE, end_s=promised_s - 1.0)
        there = {live.shown.jobs[last].required_nodes: 1}
        live.shown.change(last, states=RUNNING, nodes=there, start_s=promised_s)
        live.step(promised_s + 0.4 + early_s - live.shown.now_s)
        assert live.left(last) == ""
        assert all(live.world.scheduler.book.up)  # its GPU is its own, and no other's
        live.step()
        assert live.world.scheduler.book.tasks[tracked.number].running is row


def test_nodes_that_anybody_waits_for_are_not_put_to_sleep(tmp_path: Path) -> None:
    shown = Shown()
    live = Live(_site(tmp_path, "sleep = true\n"), shown)
    shown.jobs[9] = Job(9, states=PENDING, required_nodes="node[1-2]", gpus=8, node_count=2)
    for _ in range(3):
        assert live.step(60.0) == []
    del shown.jobs[9]
    assert {action.item for action in live.step(60.0)} == {"node1", "node2"}


def test_a_start_that_is_taken_back_takes_its_clock_with_it(live: Live) -> None:
    live.shown.submit(1, run="600s", deadline="+2h")
    live.step()
    assert live.shown.freq[1].startswith("gpu:")
    for name in live.shown.states:
        live.shown.states[name] = frozenset(["DOWN"])
    live.step(5.0)
    assert "nodes=any" in live.shown.jobs[1].comment
    assert (live.shown.freq[1], live.shown.jobs[1].required_nodes) == ("", "")


@pytest.mark.parametrize("policy", ["late", "edl"])
def test_the_reserve_is_counted_once(tmp_path: Path, policy: str) -> None:
    """``late`` keeps a reserve itself; estimates of policies that do not are widened by it."""
    site = _site(tmp_path, f'policy = "{policy}"\nreserve = 0.2\noverhead_s = 0\n')
    reader = SlurmWorld(site, Log(site.log), lambda job: "").reader
    shown = Shown()
    shown.submit(1, run="1000s", deadline="+2h")
    task = reader.task_of(shown.jobs[1], shown.now_s)
    assert isinstance(task, Task)
    assert task.whole_s * site.unreserved == pytest.approx(1200.0)


def test_a_log_that_no_longer_fits_begins_a_new_plan(tmp_path: Path) -> None:
    live = Live(_site(tmp_path), Shown())
    live.shown.submit(1, deadline="+2h")
    live.step()
    wrong = Moment(99.0, facts=[Fact(FINISHED, 3, at_s=99.0)])
    live.log.append(live.shown.now_s, [("moment", wrong.entry())])
    live.kill()
    assert "the log cannot be gone on with" in live.world.notes[0]
    live.step()
    assert live.left(1) == ""
    (tracked,) = live.world.tracked.values()
    assert tracked.task.comment == "downclock=app:mixed,run:60s,deadline:+2h"


@pytest.mark.parametrize(("gpus", "nodes"), [(2, 1), (4, 1), (8, 2)])
@pytest.mark.parametrize("policy", ["late", "race", "edl"])
def test_gangs_are_planned(tmp_path: Path, policy: str, gpus: int, nodes: int) -> None:
    """On one node, or on whole ones: Slurm is told on how many (--gpus=8 asks for one or more)."""
    live = Live(_site(tmp_path, f'policy = "{policy}"\n'), Shown())
    live.shown.submit(1, gpus=gpus)
    (action,) = live.step()
    assert live.left(1) == ""
    for _ in range(400):  # late may wait for others first
        if live.shown.jobs[1].required_nodes:
            break
        action = next(iter(live.step(10.0)), action)
    assert len(live.shown.jobs[1].required_nodes.split(",")) == nodes
    assert ("NumNodes=2" in action.commands[0]) == (nodes == 2)
    where = dict.fromkeys(live.shown.jobs[1].required_nodes.split(","), gpus // nodes)
    live.shown.change(1, states=RUNNING, nodes=where)
    live.step()
    assert live.left(1) == ""
    live.shown.change(1, states=DONE, end_s=live.shown.now_s)
    live.step()
    assert next(iter(live.world.tracked.values())).ended == "COMPLETED"
