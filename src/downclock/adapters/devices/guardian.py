"""Resets what a sweep has set when the sweep dies, however that happens.

A process of its own, started by the sweep; its standard input closes when the sweep ends. Until
then it is told of the command that runs (``run PID``, ``ran``), which must not outlive the sweep.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from downclock.adapters.devices.device import Device, undo
from downclock.adapters.devices.machine import devices
from downclock.adapters.devices.state import MEASURE, State
from downclock.errors import DownclockError

END_S = 5.0
"""A guardian with nothing left to do ends at once."""


def reset_measured(state: State, among: Sequence[Device]) -> None:
    """Reset what a sweep has set; the lock of sweeps is held by whoever calls."""
    trouble: DownclockError | None = None
    for record in state.records():
        for device in among if record.job == MEASURE else ():
            if device.uuid == record.uuid:
                try:
                    undo(device, record.before_w, record.ranges)
                    state.forget(record)
                except DownclockError as error:
                    trouble = error
    if trouble is not None:
        raise trouble


@contextmanager
def guarded(state: State, lock: int) -> Iterator[int]:
    """Have a guardian beside; gives the file to tell it of commands."""
    words = [sys.executable, "-P", "-m", __name__, str(state.folder)]
    guardian = subprocess.Popen(
        words, stdin=subprocess.PIPE, pass_fds=[lock], start_new_session=True
    )
    assert guardian.stdin is not None
    try:
        yield guardian.stdin.fileno()
    finally:
        guardian.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            guardian.wait(END_S)


def main(folder: str) -> None:
    """Wait for the end of the sweep, then reset."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    group = 0
    for line in sys.stdin:
        words = line.split()
        group = int(words[1]) if words[0] == "run" else 0
    if group:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    state = State(Path(folder))
    if any(record.job == MEASURE for record in state.records()):
        try:
            reset_measured(state, devices()[0])
        except DownclockError as error:
            sys.exit(f"{error}; clocks may still be set: see downclock agent recover")


if __name__ == "__main__":
    main(sys.argv[1])
