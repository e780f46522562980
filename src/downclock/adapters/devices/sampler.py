"""Energy of a GPU without a counter while a job runs: a process that samples its power.

It keeps one line a GPU, ``joules last_s last_w`` (time of the monotonic clock), written in place,
and ends when that file is deleted: nobody needs to find and stop it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from downclock.adapters.devices.device import Device, DeviceError
from downclock.adapters.devices.meter import Trapezoid
from downclock.adapters.devices.state import State

EVERY_S = 0.5
"""Jobs run for minutes: their power is read so often."""

GAP_S = 10.0
"""A longer time without a sample is told of."""

LINE = "{:24.6f} {:24.6f} {:12.3f}\n"


def start_sampler(state: State, uuids: Sequence[str]) -> None:
    """Sample these GPUs from now on, until their records are forgotten."""
    if uuids:
        for uuid in uuids:
            state.samples(uuid).write_text("")
        words = [sys.executable, "-P", "-m", __name__, str(state.folder), *uuids]
        nothing = subprocess.DEVNULL
        subprocess.Popen(
            words, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )


def read_samples(path: Path, gpu: Device | None) -> tuple[float | None, str]:
    """Return the joules until now, None where there is no sample, and what to know of them."""
    try:
        joules, last_s, last_w = (float(word) for word in path.read_text().split())
    except (OSError, ValueError):
        return None, "there is no energy counter, and power was not sampled"
    curve, gap_s = Trapezoid(joules, last_s, last_w), time.monotonic() - last_s
    with suppress(DeviceError):
        if gpu is not None:
            curve.add(time.monotonic(), gpu.power_w())
    return curve.energy_j, "" if gap_s < GAP_S else f"power was not sampled for {gap_s:.0f} s"


def main(arguments: Sequence[str]) -> None:
    """Sample until nobody wants it any more."""
    from downclock.adapters.devices.machine import gpus

    state, wanted = State(Path(arguments[0])), set(arguments[1:])
    mine = [gpu for gpu in gpus() if gpu.uuid in wanted]
    watched = {os.open(state.samples(gpu.uuid), os.O_WRONLY): (gpu, Trapezoid()) for gpu in mine}
    while watched:
        for file, (gpu, curve) in list(watched.items()):
            if os.fstat(file).st_nlink == 0:
                del watched[file]
                continue
            with suppress(DeviceError):
                curve.add(time.monotonic(), gpu.power_w())
                line = LINE.format(curve.energy_j, curve.last_s, curve.last_w)
                os.pwrite(file, line.encode(), 0)
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main(sys.argv[1:])
