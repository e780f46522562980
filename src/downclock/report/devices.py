"""Pages of real devices: what a machine has, and what a sweep measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from downclock.adapters.devices.device import Device, DeviceError, number_or_none
from downclock.quantities import count, percent
from downclock.report.tables import Page, Table
from downclock.study.mean import Mean

T = TypeVar("T")

COARSE_S = 2.0
"""Counters of GPUs are renewed every tenth of a second or so: shorter runs are known coarsely."""

APART = 0.05
"""Runs at one setting whose times differ by more were disturbed."""


def devices_page(devices: Sequence[Device], notes: Sequence[str]) -> Page:
    """What this machine has, and what may be set."""
    said = list(notes)
    told = [_told(device, said) for device in devices]
    if not any(device.label.startswith("cpu") for device in devices):
        said.append("CPUs: neither energy counters (RAPL) nor settable clocks (cpufreq) here")
    head = ("device", "", "now", "core clocks", "memory clocks", "power limit", "counter", "set by")
    rows = tuple(_row(each) for each in told)
    lines = (f"{count(len(devices), 'device')} on this machine",)
    tables = (Table(head, rows, text=(0, 1)),) if rows else ()
    return Page(lines, tables, tuple(said), {"devices": told, "notes": said}, told)


def _told(device: Device, notes: list[str]) -> dict[str, Any]:
    """Everything of one device; None where it does not say. A device that is lost is noted."""

    def ask(what: Callable[[], T]) -> T | None:
        try:
            return what()
        except DeviceError as error:
            if error.trouble == "lost" and str(error) not in notes:
                notes.append(str(error))
            return None

    pairs = ask(device.clock_pairs) or ()
    core, memory = ask(device.clocks_mhz) or (None, None)
    least_w, most_w = ask(device.power_limits_w) or (None, None)
    return {
        "device": device.label,
        "name": ask(lambda: device.name),
        "uuid": ask(lambda: device.uuid),
        "core_mhz": core,
        "memory_mhz": memory,
        "power_w": ask(device.power_w),
        "core_clocks_mhz": sorted({clock for _, clocks in pairs for clock in clocks}),
        "memory_clocks_mhz": sorted(memory for memory, _ in pairs if memory is not None),
        "power_limit_w": ask(device.power_limit_w),
        "least_power_limit_w": least_w,
        "most_power_limit_w": most_w,
        "energy_counter": number_or_none(device.energy_j) is not None,
        "set_by": device.setter,
    }


def _row(told: Mapping[str, Any]) -> tuple[str, ...]:
    now = [(told["core_mhz"], "MHz"), (told["power_w"], "W")]
    limit = ""
    if told["power_limit_w"] is not None:
        ends = f"{told['least_power_limit_w']:g} to {told['most_power_limit_w']:g}"
        limit = f"{told['power_limit_w']:g} W ({ends})"
    return (
        told["device"],
        told["name"] or "does not answer",
        ", ".join(f"{value:.0f} {unit}" for value, unit in now if value is not None),
        _range(told["core_clocks_mhz"]),
        _range(told["memory_clocks_mhz"]),
        limit,
        "yes" if told["energy_counter"] else "no",
        told["set_by"] or "nobody here",
    )


def _range(clocks: Sequence[int]) -> str:
    if len(clocks) < 3:
        return ", ".join(f"{clock}" for clock in clocks) + (" MHz" if clocks else "")
    return f"{len(clocks)}, {clocks[0]} to {clocks[-1]} MHz"


def sweep_page(rows: Sequence[Mapping[str, str]], output: str) -> Page:
    """Means of a sweep by setting, with the half-widths of their 95 % confidence intervals."""
    knobs = [knob for knob in _KNOBS if knob in rows[0]]
    groups: dict[tuple[float, ...], list[Mapping[str, str]]] = {}
    for row in rows:
        groups.setdefault(tuple(float(row[knob]) for knob in knobs), []).append(row)
    records = [
        {**dict(zip(knobs, setting, strict=True)), "runs": len(group), **_means(group)}
        for setting, group in sorted(groups.items(), reverse=True)
    ]
    least = min(records, key=lambda each: each["energy_j"])
    name = rows[0]["application"]
    at = ", ".join(f"{least[knob]:g} {_UNITS[knob]}" for knob in knobs)
    lines = (f"{name}: {count(len(rows), 'run')}; least energy at {at}",)
    named = {"core_mhz": "--default-core-mhz", "memory_mhz": "--default-memory-mhz"}
    default = "".join(f" {named[k]} {records[0][k]:g}" for k in knobs if k in named)
    notes = [f"next: downclock fit {output} --kind NAME{default} -o library.json"]
    if min(each["time_s"] for each in records) < COARSE_S:
        notes.insert(0, f"runs under {COARSE_S:g} s are measured coarsely: give them more work")
    times = [[float(row["time_s"]) for row in group] for group in groups.values()]
    apart = max(max(each) / min(each) for each in times) - 1.0
    if apart > APART:
        rule = "other programs may disturb them; fit takes the median of three runs or more"
        notes.insert(0, f"runs at one setting differ by {percent(apart)} in time: {rule}")
    head = (*(_KNOBS[k] for k in knobs), "runs", "time", "±", "power", "±", "energy", "±")
    table = Table(head, tuple(_mean_row(each, knobs) for each in records), text=())
    return Page(lines, (table,), tuple(notes), {"application": name, "settings": records}, records)


_KNOBS = {"core_mhz": "core", "memory_mhz": "memory", "power_limit_w": "limit"}
_UNITS = {"core_mhz": "MHz", "memory_mhz": "MHz memory", "power_limit_w": "W"}
_MEASURED = {"time_s": "s", "power_w": "W", "energy_j": "J"}


def _means(group: Sequence[Mapping[str, str]]) -> dict[str, float]:
    told: dict[str, float] = {}
    for name in _MEASURED:
        mean = Mean.of(float(row[name]) for row in group)
        told |= {name: mean.value, f"{name}_half_width": mean.half}
    return told


def _mean_row(record: Mapping[str, float], knobs: Sequence[str]) -> tuple[str, ...]:
    cells = [f"{record[knob]:g} {_UNITS[knob].split()[0]}" for knob in knobs]
    cells.append(f"{record['runs']:g}")
    for name, unit in _MEASURED.items():
        half = record[f"{name}_half_width"] / record[name]
        cells += [f"{record[name]:.5g} {unit}", percent(half) if np.isfinite(half) else ""]
    return tuple(cells)
