"""Watch, controller, slurmd and agents are killed at random moments of a day."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cluster.day import Day, drawn

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc compiles the fake NVML")


def test_50_kills_lose_no_job_run_none_twice_and_leave_no_clock_locked(folder: Path) -> None:
    wanted = drawn(80, seed=2, over_s=80.0, slack_s=150.0)
    day = Day(folder / "day", wanted, kills=50, seed=2).run(300.0)
    assert len(day.killed) == 50
    assert day.broken() == {}
