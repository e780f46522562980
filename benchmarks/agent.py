"""How long a Slurm job waits for the agent, beside ``python -c "import numpy"``.

Run ``python -m benchmarks.agent``: a prolog and an epilog of a job on four fake GPUs (gcc compiles
them), with a driver that answers and with one that hangs for five seconds. The least of several
runs of each, alternating, in wall-clock time (what the job waits) and in processor time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from downclock.adapters.devices.fakes.nvml import FakeGpus

RUNS = 7
HANGS = "delay nvmlInitWithFlags 5000"
COMMENT = (
    "JobId=1 JobName=a UserId=a(1) JobState=RUNNING Reason=None Comment=downclock core_mhz=900"
)


def seconds(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return (wall-clock time, processor time) of one run; of children that it left, none."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(words, env=environment, check=True, stderr=subprocess.DEVNULL)
    wall_s, after = time.perf_counter() - start, os.times()
    busy = after.children_user - before.children_user
    return wall_s, busy + after.children_system - before.children_system


def node(folder: Path) -> tuple[FakeGpus, dict[str, str]]:
    """Return fake GPUs, and the environment of a Prolog."""
    gpus = FakeGpus.built(folder)
    scontrol = folder / "scontrol"
    scontrol.write_text(f"#!/bin/sh\necho '{COMMENT}'\n")
    scontrol.chmod(0o755)
    job = {"SLURM_JOB_ID": "1", "SLURM_JOB_GPUS": "0,1,2,3", "SLURMD_NODENAME": "n1"}
    where = {"DOWNCLOCK_STATE": str(folder / "state"), "DOWNCLOCK_SCONTROL": str(scontrol)}
    return gpus, {**os.environ, **gpus.environment, **job, **where}


def main() -> None:
    agent = [sys.executable, "-m", "downclock", "agent"]
    cases = {
        "python -c 'import numpy'": [sys.executable, "-c", "import numpy"],
        "agent prolog": [*agent, "prolog"],
        "agent epilog": [*agent, "epilog"],
    }
    with tempfile.TemporaryDirectory() as name:
        gpus, environment = node(Path(name))
        runs: dict[str, list[tuple[float, float]]] = {}
        for _ in range(RUNS):
            for case, words in cases.items():
                runs.setdefault(case, []).append(seconds(words, environment))
        gpus.configure(HANGS)
        case = "agent prolog, driver hangs"
        runs[case] = [seconds(cases["agent prolog"], environment) for _ in range(3)]
        gpus.configure()
        time.sleep(6.0)
        subprocess.run([*agent, "recover", "--all", "-q"], env=environment, check=True)
    least = {case: tuple(map(min, zip(*times, strict=True))) for case, times in runs.items()}
    base = least["python -c 'import numpy'"]
    for case, (wall, cpu) in least.items():
        ratios = f"{wall / base[0]:6.2f}x {cpu * 1e3:6.0f} ms {cpu / base[1]:6.2f}x"
        print(f"{case:<28} waits {wall * 1e3:6.0f} ms {ratios}")


if __name__ == "__main__":
    main()
