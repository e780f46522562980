"""Fake GPUs behind the real nvidia-ml-py, and a Slurm that answers one question."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from downclock.adapters.devices.fakes.nvml import FakeGpus
from tests.conftest import ROOT

SCONTROL = """\
#!/bin/sh
# Answers `scontrol show job -o JOBID` from the files beside it.
here=$(dirname "$0")
fail() { echo "slurm_load_jobs error: $1" >&2; exit 1; }
[ "$1 $2 $3" = "show job -o" ] || exit 9
[ -e "$here/down" ] && fail "Unable to contact slurm controller"
[ -e "$here/$4" ] || fail "Invalid job id specified"
exec cat "$here/$4"
"""

RECORD = (
    "JobId={job} JobName={name} UserId=ann(1000) GroupId=ann(1000) MCS_label=N/A Priority=1"
    " Nice=0 Account=(null) QOS=normal JobState={state} Reason=None Dependency=(null) Requeue=1"
    " Restarts={restarts} BatchFlag=1 Reboot=0 ExitCode={exit} RunTime={run} NodeList=n1"
    " Command=/home/ann/job.sh WorkDir=/home/ann Comment={comment} StdErr=/home/ann/err"
    " StdIn=/dev/null StdOut=/home/ann/out Power= TresPerNode=gres:gpu:1\n"
)
"""As Slurm 22.05 prints a job in one line."""

SHOWN = {"state": "RUNNING", "restarts": 0, "run": "00:00:01", "exit": "0:0"}
"""What it says of a job that runs."""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> FakeGpus:
    """The fake library, compiled once."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed: it compiles the fake NVML library")
    return FakeGpus.built(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def gpus(library: FakeGpus, tmp_path: Path) -> FakeGpus:
    """Four fake GPUs of this test."""
    return FakeGpus(library.library, tmp_path / "gpus")


@dataclass(frozen=True)
class Node:
    """A node with fake GPUs, an agent and a Slurm that knows the jobs it was told of."""

    folder: Path
    gpus: FakeGpus
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def job(self, job: int, comment: str = "(null)", **how: Any) -> None:
        """Tell Slurm of a job."""
        text = RECORD.format(job=job, comment=comment, **{"name": "train", **SHOWN, **how})
        (self.folder / "slurm" / str(job)).write_text(text)

    def words(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "downclock", *arguments]

    def env(self, job: int = 0, gpus: str = "") -> dict[str, str]:
        """As a Prolog sees it."""
        slurm = {"SLURM_JOB_ID": str(job), "SLURM_JOB_GPUS": gpus, "SLURMD_NODENAME": "n1"}
        where = {
            "SLURM_JOB_USER": "ann",
            "DOWNCLOCK_STATE": str(self.state),
            "DOWNCLOCK_SCONTROL": str(self.folder / "slurm" / "scontrol"),
            "PYTHONPATH": str(ROOT / "src"),
        }
        return {**self.gpus.environment, **slurm, **where, **self.environment}

    def agent(self, verb: str, job: int = 0, gpus: str = "", *more: str) -> Any:
        """Run the agent as Slurm would."""
        return subprocess.run(
            self.words("agent", verb, *more),
            env=self.env(job, gpus),
            capture_output=True,
            text=True,
            check=False,
        )

    def spooled(self, job: int, attempt: int = 0) -> Any:
        return json.loads((self.state / "spool" / f"{job}-n1-{attempt}.json").read_text())

    def ended(self, job: int) -> Any:
        """What is spooled of a job, once its GPUs are reset and its energy is told."""
        path = self.state / "spool" / f"{job}-n1-0.json"
        until(lambda: path.exists() and self.spooled(job)["gpus"])
        return self.spooled(job)

    def run(self, gpus: str, scale: float = 0.1, application: str = "any") -> None:
        """Keep GPUs busy."""
        words = [str(self.gpus.job), application, str(scale), gpus]
        subprocess.run(words, env={**os.environ, **self.gpus.environment}, check=True)

    @property
    def locked(self) -> list[tuple[int, int, float]]:
        """Locked clocks and power limit of every GPU."""
        return [(g.core_mhz, g.memory_mhz, g.power_limit_w) for g in self.gpus.read()]


def until(done: Callable[[], object], for_s: float = 30.0) -> None:
    """Wait for what a process that goes on by itself will do."""
    end_s = time.monotonic() + for_s
    while not done():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def begun(node: Node) -> bool:
    """All records of a prolog are written and its announcement is gone."""
    return not list(node.state.glob("job-*"))


FREE = (0, 0, 400.0)
"""A fake GPU that nobody has set."""

PLAN = "downclock core_mhz=1005 memory_mhz=1215 reason=fits-before-18:00 | my own words"
"""The comment of a job that is planned."""


@pytest.fixture
def node(gpus: FakeGpus, tmp_path: Path) -> Node:
    slurm = tmp_path / "slurm"
    slurm.mkdir()
    (slurm / "scontrol").write_text(SCONTROL)
    (slurm / "scontrol").chmod(0o755)
    return Node(tmp_path, gpus)
