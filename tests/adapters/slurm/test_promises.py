"""A Slurm that starts and ends jobs by itself, under the policies of the catalogue."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from downclock.adapters.slurm.observed import Job
from tests.adapters.slurm.test_world import BEGIN_S, DONE, RUNNING, Live, Shown, _site

GPUS = 4
OVERHEAD_S = 2.0


@dataclass
class Busy(Shown):
    """Starts what may start where GPUs are free, the first submitted first; jobs end in time.

    Attributes:
        run_s, due_s: of each job: run time at default clocks, and deadline.
        ends_s: of each that runs.
    """

    run_s: dict[int, float] = field(default_factory=dict)
    due_s: dict[int, float] = field(default_factory=dict)
    ends_s: dict[int, float] = field(default_factory=dict)

    def come(self, number: int, draw: random.Random, most_gpus: int) -> None:
        """Submit a job: it runs up to a fifth shorter than its owner says."""
        run_s = draw.choice([20, 60, 200, 400])
        allowed_s = round(run_s * draw.choice([1.5, 3.0, 8.0]) + 30)
        gpus = min(draw.choice([1, 1, 1, 2, 4]), most_gpus)
        self.submit(number, run=f"{run_s}s", deadline=f"+{allowed_s}s", gpus=gpus)
        self.run_s[number] = run_s * draw.uniform(0.8, 1.0)
        self.due_s[number] = self.now_s + allowed_s

    def go_on(self, live: Live) -> None:
        """End and start jobs."""
        for number in [number for number, end_s in self.ends_s.items() if end_s <= self.now_s]:
            self.change(number, states=DONE, end_s=self.ends_s.pop(number))
        for job in sorted(self.jobs.values(), key=lambda job: job.number):
            if job.waits and not job.held and job.eligible_s <= self.now_s:
                node = next((n for n in self._wanted(job) if self._free(n) >= job.gpus), None)
                if node is not None:
                    self._begin(job, node, live)

    def _begin(self, job: Job, node: str, live: Live) -> None:
        run_s = self.run_s[job.number] * _slowdown(live, job) + OVERHEAD_S
        self.ends_s[job.number] = self.now_s + math.ceil(run_s)
        self.change(job.number, states=RUNNING, nodes={node: job.gpus}, start_s=self.now_s)

    def _wanted(self, job: Job) -> list[str]:
        return [job.required_nodes] if job.required_nodes else list(self.states)

    def _free(self, node: str) -> int:
        return GPUS - sum(job.nodes.get(node, 0) for job in self.jobs.values() if job.active)


def _slowdown(live: Live, job: Job) -> float:
    """Time at the clock of a job's record beside that at the default one."""
    clock = re.search(r"gpu:(\d+)", live.shown.freq.get(job.number, ""))
    library, clocks = live.world.reader.library, live.site.cluster.platform.kinds[0].clocks
    points = np.array([clocks.nearest(int(clock[1]) / 1410 if clock else 1.0, 1.0),
                       clocks.nearest(1.0, 1.0)])  # fmt: skip
    row = [str(name) for name in library.names].index("mixed")
    time_s, _ = library.at(np.array([row, row]), "a100", points)
    return float(time_s[0] / time_s[1])


def _day(
    folder: Path, policy: str, most_gpus: int, seed: int, *, jobs: int = 40, new_site: bool = False
) -> tuple[Live, Busy, set[int]]:
    """Jobs of twenty minutes on eight GPUs; and those whose deadline was accepted.

    With ``new_site`` the site file changes half-way.
    """
    text = f'policy = "{policy}"\noverhead_s = 4\n'
    shown, draw, accepted = Busy(), random.Random(seed), set[int]()
    live = Live(_site(folder, text), shown)
    coming = sorted(draw.uniform(0.0, 1200.0) for _ in range(jobs))
    while coming or any(job.waits or job.active for job in shown.jobs.values()):
        while coming and coming[0] <= shown.now_s - BEGIN_S:
            coming.pop(0)
            shown.come(len(shown.jobs) + 1, draw, most_gpus)
        shown.go_on(live)
        if new_site and shown.now_s > BEGIN_S + 600.0:
            new_site, live.site = False, _site(folder, f"{text}run_factor = 0.99\n")
            live.kill()
        live.step(draw.choice([1.0, 1.0, 2.0, 5.0]))
        assert live.world.scheduler is not None
        pages = live.world.scheduler.book.tasks
        accepted |= {
            each.task.job
            for each in live.world.tracked.values()
            if pages[each.number].accepted and not each.task.missed
        }
    return live, shown, accepted


@pytest.mark.parametrize("most_gpus", [1, 4])
@pytest.mark.parametrize("policy", ["late", "prompt", "race", "edl", "edf-bf", "bin"])
def test_whatever_is_refused_no_promise_is_broken(
    tmp_path: Path, policy: str, most_gpus: int
) -> None:
    """Jobs that cannot end in time are planned for later: no GPU is used but by the plan."""
    live, shown, accepted = _day(tmp_path, policy, most_gpus, seed=0)
    assert len(accepted) >= 25
    assert {
        number for number in accepted if shown.jobs[number].end_s > shown.due_s[number]
    } == set()
    assert [each.left for each in live.world.tracked.values() if each.left] == []
    assert live.world.notes == []
    missed = {each.task.job for each in live.world.tracked.values() if each.task.missed}
    assert accepted | missed == set(shown.jobs)
    assert most_gpus == 1 or missed


@pytest.mark.parametrize(("policy", "most_gpus"), [("late", 1), ("late", 4), ("race", 1)])
def test_a_plan_begun_anew_on_a_full_cluster_gives_no_job_away(
    tmp_path: Path, policy: str, most_gpus: int
) -> None:
    """What runs is not in the new plan; what waits is planned as soon as GPUs are back."""
    live, shown, accepted = _day(tmp_path, policy, most_gpus, seed=1, jobs=60, new_site=True)
    assert len(accepted) >= 35
    assert {
        number for number in accepted if shown.jobs[number].end_s > shown.due_s[number]
    } == set()
    assert [each.left for each in live.world.tracked.values() if each.left] == []


def _full(folder: Path) -> Live:
    """Two nodes whose GPUs are in use by jobs of others."""
    live = Live(_site(folder), Shown())
    for number, node in ((8, "node1"), (9, "node2")):
        used = {"states": RUNNING, "gpus": 4, "nodes": {node: 4}}
        live.shown.jobs[number] = Job(number, submit_s=BEGIN_S, **used)  # type: ignore[arg-type]
    return live


def test_a_job_that_waits_for_gpus_is_its_owners(tmp_path: Path) -> None:
    live = _full(tmp_path)
    for number in (1, 2):
        live.shown.submit(number, run="600s", deadline="+1h")
    live.step()
    live.shown.change(1, held=True)
    live.shown.change(2, comment=f"{live.shown.jobs[2].comment} downclock=off")
    before = live.shown.jobs[1]
    live.step(5.0)
    live.shown.change(9, states=DONE, end_s=live.shown.now_s)
    for _ in range(3):
        live.step(40.0)
    assert live.shown.jobs[1] == before
    assert live.shown.jobs[2].comment == "downclock=app:mixed,run:600s,deadline:+1h downclock=off"


def test_a_deadline_that_slurm_enforces_bounds_the_wait_for_gpus(tmp_path: Path) -> None:
    live = _full(tmp_path)
    live.shown.submit(1, comment="downclock=run:600s", deadline_s=BEGIN_S + 900.0)
    live.step()
    assert "waits-for-GPUs" in live.shown.jobs[1].comment
    assert live.shown.jobs[1].eligible_s < BEGIN_S + 900.0 - 600.0


def test_a_job_waits_for_gpus_of_others_with_a_last_start(tmp_path: Path) -> None:
    live = _full(tmp_path)
    live.shown.submit(1, run="600s", deadline="+1h")
    live.step()
    (tracked,) = live.world.tracked.values()
    assert live.world.waits_for_gpus(tracked)
    job = live.shown.jobs[1]
    assert "waits-for-GPUs" in job.comment
    assert not job.held  # a planner that dies does not keep it from its last start
    assert BEGIN_S + 3600.0 - 800.0 < job.eligible_s < BEGIN_S + 3600.0 - 600.0
    assert live.step(5.0) == []
    live.shown.change(9, states=DONE, end_s=live.shown.now_s)
    live.step(60.0)
    assert live.shown.start() == [1]
    assert live.shown.jobs[1].nodes == {"node2": 1}
