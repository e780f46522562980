"""A day in minutes on a real Slurm with agents: what was promised is what happened."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cluster.day import Day, drawn

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc compiles the fake NVML")


def _all_ran(day: Day) -> None:
    for number in day.numbers:
        assert "COMPLETED" in day.job(number).states, day.job(number)
    assert day.locked() == []
    assert day.late() == []


def test_200_jobs_are_planned_run_at_their_clocks_and_save_energy(folder: Path) -> None:
    day = Day(folder / "day", drawn(200, seed=1, over_s=120.0)).run(300.0)
    _all_ran(day)
    assert day.twice() == []
    accepted = day.accepted() & set(day.numbers)
    pairs = zip(day.numbers, day.wanted, strict=True)
    gangs = {number for number, wanted in pairs if wanted.gpus > 1}
    assert len(accepted) >= 160
    assert len(gangs & accepted) >= 0.8 * len(gangs) > 0
    measured = {str(each.job): each for each in day.measured}
    assert set(measured) == set(day.numbers)
    for number in accepted:
        planned, found = day.planned_clocks(number), measured[number]
        assert planned == {"core_mhz": found.core_mhz, "memory_mhz": found.memory_mhz}
    used_j = sum(each.energy_j for each in day.measured)
    assert used_j < 0.95 * sum(job.race_j for job in day.wanted)


def test_kills_lose_no_job_and_leave_no_clock_locked(folder: Path) -> None:
    day = Day(folder / "day", drawn(48, seed=2, over_s=40.0), kills=8, seed=2).run(240.0)
    assert len(day.killed) == 8
    _all_ran(day)
    assert day.twice() == []
