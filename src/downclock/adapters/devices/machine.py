"""All devices of this machine."""

from __future__ import annotations

from collections.abc import Sequence

from downclock.adapters.devices.device import Device, DeviceError
from downclock.errors import DownclockError, InvalidInput, MissingExtra


def gpus() -> list[Device]:
    """Return the GPUs of every maker; where there are none, refuse with the reason."""
    from downclock.adapters.devices.amd import amd_gpus
    from downclock.adapters.devices.nvml import nvidia_gpus

    found: list[Device] = list(amd_gpus())
    try:
        found += nvidia_gpus()
    except (DeviceError, MissingExtra):
        if not found:
            raise
    return found


def devices(root: str = "/") -> tuple[list[Device], list[str]]:
    """Return GPUs and CPU packages, and why there are none of either.

    Args:
        root: the folder under which ``sys`` lies.
    """
    from downclock.adapters.devices.cpu import cpu_packages

    found: list[Device] = []
    notes: list[str] = []
    try:
        found += gpus()
    except DownclockError as error:
        notes.append(str(error))
    try:
        found += cpu_packages(root)
    except (DownclockError, OSError, ValueError) as error:  # never at the cost of the GPUs
        notes.append(f"CPUs: {error}")
    return found, notes


def chosen(labels: Sequence[str], root: str = "/") -> list[Device]:
    """Return the devices of these labels, by default the first there is."""
    found, notes = devices(root)
    if not found:
        why = "; ".join(notes)
        raise DeviceError("devices", "driver", f"there is none that can be measured ({why})")
    known = {device.label: device for device in found}
    for label in labels:
        if label not in known:
            there = f"; there are: {', '.join(known)}"
            raise InvalidInput(f"is not a device here{there}", field="device", value=label)
    return [known[label] for label in dict.fromkeys(labels)] or found[:1]
