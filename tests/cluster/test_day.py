"""A day in minutes on a real Slurm with agents: what was promised is what happened."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from downclock.problem.files.read_cluster import read_cluster
from downclock.schedule.account.account import account
from downclock.study.as_it_ran import as_it_ran
from downclock.workloads.traces.read import read_trace
from downclock.workloads.traces.to_problem import converted
from tests.cluster.day import GPUS, IDLE_W, NODES, Day, drawn, foretold, set_and_reset

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc compiles the fake NVML")


def test_200_jobs_are_planned_run_at_their_clocks_and_save_energy(folder: Path) -> None:
    day = Day(folder / "day", drawn(200, seed=1, over_s=110.0, slack_s=140.0)).run(300.0)
    assert day.broken() == {}
    accepted = day.accepted() & set(day.numbers)
    pairs = zip(day.numbers, day.wanted, strict=True)
    gangs = {number for number, wanted in pairs if wanted.gpus > 1}
    assert len(accepted) >= 160
    assert len(gangs & accepted) >= 0.8 * len(gangs) > 0
    measured = {str(each.job): each for each in day.measured}
    assert set(measured) == set(day.numbers)
    for number in day.numbers:
        planned, found = day.planned_clocks(number), measured[number]
        assert planned == {"core_mhz": found.core_mhz, "memory_mhz": found.memory_mhz}
    assert day.off_device() == dict.fromkeys(day.numbers, True)
    used_j = sum(each.energy_j for each in day.measured)
    assert used_j < 0.95 * sum(job.race_j for job in day.wanted)
    told = json.loads(day.status)
    assert told["measured_j"] == pytest.approx(used_j)
    assert told["planned_j"] < 0.95 * told["default_j"]
    told = foretold(day)  # the watch may miss the last ends
    assert sum(count for count, _, _ in told.values()) >= 90
    for _, times, energies in told.values():
        assert times < 0.05
        assert energies < 0.05
    _as_it_ran_costs_what_its_rows_sum_to(day)


CALLS = [
    (1.0, 0, "nvmlDeviceSetGpuLockedClocks", 1410, 1410),
    (1.1, 0, "nvmlDeviceSetMemoryLockedClocks", 1215, 1215),
    (5.0, 0, "nvmlDeviceSetGpuLockedClocks", 900, 900),
    (5.1, 0, "nvmlDeviceSetMemoryLockedClocks", 810, 810),
    (9.0, 0, "nvmlDeviceResetGpuLockedClocks", 0, 0),
    (9.1, 0, "nvmlDeviceResetMemoryLockedClocks", 0, 0),
]


@pytest.mark.parametrize(
    ("without", "span", "core_mhz", "well"),
    [
        ((), (4.0, 8.0), 900, True),
        ((), (4.0, 8.0), 1410, False),  # another clock
        ((), (6.0, 8.0), 900, False),  # locked for another job
        ((), (4.0, 9.05), 900, False),  # reset while it ran
        ((3,), (4.0, 8.0), 900, False),  # memory was not locked
        ((4,), (4.0, 8.0), 900, False),  # not reset
        ((5,), (4.0, 8.0), 900, False),
    ],
)
def test_clocks_are_judged_by_the_calls_that_the_driver_saw(
    without: tuple[int, ...], span: tuple[float, float], core_mhz: int, well: bool
) -> None:
    calls = [each for k, each in enumerate(CALLS) if k not in without]
    assert set_and_reset(calls, span, {"core_mhz": core_mhz, "memory_mhz": 810}) == well


def _as_it_ran_costs_what_its_rows_sum_to(day: Day) -> None:
    """Slurm's records beside what it was seen to do: GPU-seconds at 280 W, the others idle."""
    (day.folder / "records.txt").write_text(day.records)
    cluster = read_cluster(day.folder / "site" / "cluster.toml")
    found = converted(read_trace(day.folder / "records.txt"), cluster)
    assert len(found.problem.tasks) == len(day.numbers)
    assert found.placement.placed.all()
    jobs = [day.job(number) for number in day.numbers]
    gpu_s = sum(
        wanted.gpus * (job.end_s - job.start_s)
        for wanted, job in zip(day.wanted, jobs, strict=True)
    )
    first_s, last_s = (end(job.submit_s for job in jobs) for end in (min, max))
    ended_s: dict[str, float] = {}
    for job in jobs:
        ended_s |= {node: max(ended_s.get(node, last_s), job.end_s) for node in job.nodes}
    idle_nodes = NODES - len(ended_s)
    node_s = sum(ended_s.values()) + idle_nodes * last_s - NODES * first_s
    run_j = 280.0 * gpu_s  # of `both`, the mixed one of the library
    idle_j = IDLE_W * (GPUS * node_s - gpu_s)
    bill = account(found.problem, as_it_ran(found))
    assert bill.total_j == pytest.approx(run_j + idle_j + 200.0 * NODES)  # each is woken once
