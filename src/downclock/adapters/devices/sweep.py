"""Run a command at many clocks or power limits and measure time and energy, for `fit`.

Every run is a row of a CSV file that is written anew after it: a sweep that was killed goes on
where it was. Rounds go through all settings in an order drawn anew, so that a card that warms up
does not favour one of them.
"""

from __future__ import annotations

import csv
import io
import os
import random
import select
import shlex
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from downclock.adapters.devices.device import (
    Device,
    Setting,
    carry_out,
    nearest,
    number_or_none,
    ranges_of,
    undo,
)
from downclock.adapters.devices.guardian import guarded, reset_measured
from downclock.adapters.devices.meter import Meter
from downclock.adapters.devices.state import MEASURE, Record, State
from downclock.errors import AdapterError, InvalidInput
from downclock.files import csv_text, read_text, write_text_atomically

MEASURED = ("time_s", "power_w", "energy_j", "source")
ABOUT = ("device", "command")

SLOWEST = 0.4
"""Clocks below this part of the highest are not tried unless asked for: they save no energy."""

TURN_S = 60.0
"""Counters are read so often, because that of a CPU starts again at 0 every few minutes."""

KILL_S = 0.3
"""A command that is to end has so long to do it."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """What to run, and at which settings.

    Attributes:
        application: what the rows are called.
        command: the program and its arguments.
        settings: as `nearest` returns them.
        repeats: runs of each.
        warm_up: runs before, of which nothing is kept.
        seed: of the order.
    """

    application: str
    command: tuple[str, ...]
    settings: tuple[Setting, ...]
    repeats: int = 3
    warm_up: int = 1
    seed: int = 0


Row = dict[str, str]
Tell = Callable[[str, int, int], None]


def settings_of(
    devices: Sequence[Device],
    core_mhz: Sequence[int],
    memory_mhz: Sequence[int],
    power_limit_w: Sequence[float],
) -> tuple[Setting, ...]:
    """Return distinct settings that the devices have, from what a person asks for."""
    if power_limit_w:
        wanted = [Setting(power_limit_w=limit) for limit in power_limit_w]
    else:
        memories: Sequence[int | None] = memory_mhz or [None]
        wanted = [Setting(core, memory) for memory in memories for core in core_mhz]
    return tuple(dict.fromkeys(nearest(devices[0], setting) for setting in wanted))


def spread(low: float, high: float, count: int) -> list[float]:
    """Return so many numbers from high to low."""
    return [high - (high - low) * k / max(1, count - 1) for k in range(count)]


def run_sweep(
    sweep: Sweep, devices: Sequence[Device], folder: str | Path, output: str, tell: Tell
) -> list[Row]:
    """Run what the file does not hold yet; return all rows of this application.

    Args:
        sweep: what to run.
        devices: all are set alike; energy is their sum.
        folder: where it is kept what is set.
        output: the CSV file, which may hold a part, and other applications.
        tell: is told what is being done, how much is done, and of how much.
    """
    label = "+".join(device.label for device in devices)
    columns = ("application", *sweep.settings[0].words(), *MEASURED, *ABOUT)
    rows = _rows_of(output, columns)
    mine = [row for row in rows if row["application"] == sweep.application]
    _refuse_others(sweep, label, mine, output)
    left = _left(sweep, mine)
    if not left:
        return mine
    said = {"device": label, "command": shlex.join(sweep.command)}
    with _guarded(State.opened(folder), devices, sweep.settings) as guardian:
        for number, setting in enumerate([left[0]] * sweep.warm_up + left):
            tell(f"{sweep.application} at {setting}", number, len(left) + sweep.warm_up)
            for device in devices:
                carry_out(device, setting)
            measured = _measured(sweep.command, devices, guardian, setting)
            if number >= sweep.warm_up:
                row = {"application": sweep.application, **setting.words(), **measured, **said}
                mine.append(row)
                rows.append(row)
                write_text_atomically(output, csv_text(columns, rows))
    return mine


@contextmanager
def _guarded(state: State, devices: Sequence[Device], settings: Sequence[Setting]) -> Iterator[int]:
    """Keep on disk what is about to be set, and reset it in the end; gives the guardian's file."""
    limited = any(setting.power_limit_w is not None for setting in settings)
    with state.held(MEASURE, wait=False) as lock, guarded(state, lock) as guardian:
        with state.held():  # no job's Prolog between the look and the record
            reset_measured(state, devices)  # of a sweep that was killed, and its guardian too
            _refuse_taken(state, devices)
            for device in devices:
                before_w = number_or_none(device.power_limit_w) if limited else None
                kept = Record(device.uuid, device.index, MEASURE, core_mhz=0, before_w=before_w,
                              ranges=ranges_of(device))  # fmt: skip
                undo(device, before_w, kept.ranges)  # who may not do this may not set anything
                state.keep(kept)
        try:
            yield guardian
        finally:
            reset_measured(state, devices)


def _refuse_taken(state: State, devices: Sequence[Device]) -> None:
    """Refuse devices of jobs: their clocks would be lost, and the energy of their job."""
    labels = {device.uuid: device.label for device in devices}
    for record in state.records():
        if record.uuid in labels:
            whose = f"job {record.job}" if record.job else "a job whose record cannot be read"
            hint = "downclock agent recover resets what ended jobs have left"
            raise AdapterError(f"{labels[record.uuid]}: {whose} has it ({hint})")


def _left(sweep: Sweep, rows: Sequence[Row]) -> list[Setting]:
    """Return the runs that are still to do, round by round."""
    done = Counter(tuple(row[knob] for knob in sweep.settings[0].words()) for row in rows)
    chance = random.Random(sweep.seed)
    left: list[Setting] = []
    for turn in range(sweep.repeats):
        order = list(sweep.settings)
        chance.shuffle(order)
        left += [each for each in order if done[tuple(each.words().values())] <= turn]
    return left


def _measured(
    command: Sequence[str], devices: Sequence[Device], guardian: int, setting: Setting
) -> Row:
    """Run the command once; return time, power and energy, and how energy was measured."""
    meter = Meter(devices)
    with tempfile.TemporaryFile() as complaints:
        meter.start()
        begun_s = time.monotonic()
        code = _run(command, devices, guardian, complaints)
        time_s = time.monotonic() - begun_s
        energy_j = meter.stop()
        if code:
            raise AdapterError(
                f"{shlex.join(command)[:200]}: ended with code {code} at {setting}"
                f"{_last_line(complaints)}; runs before it are kept"
            )
    if energy_j <= 0.0:
        rule = f"the energy meter did not move in a run of {time_s:.3g} s: give it more work"
        raise AdapterError(f"{shlex.join(command)[:200]}: {rule}")
    values = (f"{time_s:.6f}", f"{energy_j / time_s:.6f}", f"{energy_j:.6f}", meter.source)
    return dict(zip(MEASURED, values, strict=True))


def _run(
    command: Sequence[str], devices: Sequence[Device], guardian: int, complaints: IO[bytes]
) -> int:
    nothing = subprocess.DEVNULL
    try:
        child = subprocess.Popen(
            command, stdin=nothing, stdout=nothing, stderr=complaints, start_new_session=True
        )
    except OSError as error:
        rule = f"cannot be run: {error.strerror}"
        raise InvalidInput(rule, field="command", value=command[0]) from None
    _tell(guardian, f"run {child.pid}\n")
    ended = os.pidfd_open(child.pid)
    read_s = time.monotonic()
    try:
        while not select.select([ended], [], [], 0.1)[0]:  # so that Ctrl-C is heard
            if time.monotonic() - read_s > TURN_S:
                read_s = time.monotonic()
                for device in devices:
                    number_or_none(device.energy_j)
        return child.wait()
    finally:
        os.close(ended)
        _end_group(child)
        _tell(guardian, "ran\n")


def _tell(guardian: int, text: str) -> None:
    with suppress(BrokenPipeError):  # killed alone, it cannot help; its work is done here too
        os.write(guardian, text.encode())


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """End the command and what it started, where it has not ended."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with suppress(subprocess.TimeoutExpired):
                child.wait(KILL_S)


def _rows_of(path: str, columns: tuple[str, ...]) -> list[Row]:
    """Return the rows a file holds already; refuse one that another command wrote."""
    if not os.path.exists(path) or not os.path.getsize(path):
        return []
    reader = csv.DictReader(io.StringIO(read_text(path)))
    if tuple(reader.fieldnames or ()) != columns:
        rule = f"is there and is not a sweep like this one: its columns are not {','.join(columns)}"
        raise InvalidInput(rule, source=path, line=1)
    rows = list(reader)
    for row in rows:
        if None in row or None in row.values():
            raise InvalidInput("has not as many cells as the header", source=path)
    return rows


def _refuse_others(sweep: Sweep, label: str, rows: Sequence[Row], path: str) -> None:
    for row in rows:
        for field, now in (("command", shlex.join(sweep.command)), ("device", label)):
            if row[field] != now:
                rule = f"was measured there with another {field}: name another --application"
                item = f"application '{sweep.application}'"
                raise InvalidInput(rule, item=item, field=field, value=row[field], source=path)


def _last_line(complaints: IO[bytes]) -> str:
    complaints.seek(max(0, complaints.seek(0, os.SEEK_END) - 2000))
    lines = complaints.read().decode("utf-8", "replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return f" ({said[-1][:200]})" if said else ""
