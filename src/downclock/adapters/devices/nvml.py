"""NVIDIA GPUs through NVML: the one door to the package nvidia-ml-py.

NVML counts milliwatts, millijoules and MHz. Setting needs root, or zeusd where it runs.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cached_property
from typing import Any

from downclock.adapters.devices.device import ClockPairs, DeviceError, Trouble
from downclock.adapters.devices.zeusd import post, running_zeusd
from downclock.errors import MissingExtra

CORE, MEMORY = 0, 2
"""NVML's numbers of the graphics and the memory clock."""

TROUBLES: dict[int, tuple[Trouble, str]] = {
    3: ("unsupported", "is not supported by this GPU"),
    4: ("permission", "needs root, or zeusd running"),
    9: ("driver", "the NVIDIA driver is not loaded"),
    12: ("driver", "there is no NVIDIA driver on this machine (libnvidia-ml.so.1 is not found)"),
    13: ("unsupported", "is not known to this driver, which is too old"),
    15: ("lost", "the GPU is lost (it no longer answers on the bus): reboot the machine"),
}
"""NVML's return codes that people meet, and what they mean for them."""


class NvidiaGpu:
    """One GPU of this machine."""

    def __init__(self, nvml: Any, number: int, zeusd: str | None) -> None:
        self._nvml, self._number, self._zeusd, self._handle = nvml, number, zeusd, None
        self.index = number
        with suppress(DeviceError):  # /dev/nvidia3 is Slurm's GPU 3, whatever its place here
            self.index = self._ask("its number", "nvmlDeviceGetMinorNumber")

    @property
    def label(self) -> str:
        """``gpu0``."""
        return f"gpu{self.index}"

    @cached_property
    def uuid(self) -> str:
        """NVML's UUID."""
        return str(self._ask("its UUID", "nvmlDeviceGetUUID"))

    @cached_property
    def name(self) -> str:
        """The product."""
        return str(self._ask("its name", "nvmlDeviceGetName"))

    @property
    def setter(self) -> str:
        """Root, or zeusd."""
        if os.geteuid() == 0:
            return "root"
        return "zeusd" if self._zeusd is not None else ""

    def clock_pairs(self) -> ClockPairs:
        """Clocks that may be locked."""
        memories = self._ask("listing clocks", "nvmlDeviceGetSupportedMemoryClocks")
        listed = "nvmlDeviceGetSupportedGraphicsClocks"
        return tuple(
            (int(memory), tuple(sorted(self._ask("listing clocks", listed, memory), reverse=True)))
            for memory in sorted(memories, reverse=True)
        )

    def clocks_mhz(self) -> tuple[int, int | None]:
        """Core and memory clock now."""
        ask = "nvmlDeviceGetClockInfo"
        core, memory = (int(self._ask("its clocks", ask, which)) for which in (CORE, MEMORY))
        return core, memory

    def lock_clocks(self, core_mhz: int | None, memory_mhz: int | None) -> None:
        """Fix clocks until they are reset."""
        for (part, word, short), mhz in zip(_PARTS, (core_mhz, memory_mhz), strict=True):
            if mhz is not None:
                name, route = f"nvmlDeviceSet{part}LockedClocks", f"set_{short}_locked_clocks"
                given = {"min_clock_mhz": mhz, "max_clock_mhz": mhz}
                self._set(f"setting {word} clocks", name, (mhz, mhz), route, given)

    def reset_clocks(self) -> None:
        """Let the driver choose clocks again; one that refuses does not keep the other locked."""
        troubles: list[DeviceError] = []
        for part, word, short in _PARTS:
            name, route = f"nvmlDeviceReset{part}LockedClocks", f"reset_{short}_locked_clocks"
            try:
                self._set(f"setting {word} clocks", name, (), route, {})
            except DeviceError as error:
                troubles.append(error)
        for each in troubles:
            if each.trouble != "unsupported":  # what cannot be locked is not locked
                raise each

    def power_limits_w(self) -> tuple[float, float]:
        """Least and greatest power limit."""
        name = "nvmlDeviceGetPowerManagementLimitConstraints"
        least_mw, most_mw = self._ask("its power limits", name)
        return least_mw / 1e3, most_mw / 1e3

    def power_limit_w(self) -> float:
        """Power limit now."""
        return float(self._ask("its power limit", "nvmlDeviceGetPowerManagementLimit")) / 1e3

    def set_power_limit(self, limit_w: float) -> None:
        """Set the power limit."""
        limit_mw = round(1e3 * limit_w)
        name, given = "nvmlDeviceSetPowerManagementLimit", {"power_limit_mw": limit_mw}
        self._set("setting the power limit", name, (limit_mw,), "set_power_limit", given)

    def power_w(self) -> float:
        """Power now."""
        return float(self._ask("reading power", "nvmlDeviceGetPowerUsage")) / 1e3

    def energy_j(self) -> float:
        """Energy since the driver was loaded."""
        name = "nvmlDeviceGetTotalEnergyConsumption"
        return float(self._ask("its energy counter", name)) / 1e3

    def _set(
        self, doing: str, name: str, values: tuple[int, ...], route: str, given: dict[str, int]
    ) -> None:
        """Set through NVML, or through zeusd where that may and we may not."""
        try:
            self._ask(doing, name, *values)
        except DeviceError as error:
            if error.trouble != "permission" or self._zeusd is None:
                raise
            post(self._zeusd, route, self._number, f"{self.label}: {doing}", given)

    def _ask(self, doing: str, name: str, *values: int) -> Any:
        try:
            if self._handle is None:  # of a GPU that is lost there is none
                self._handle = self._nvml.nvmlDeviceGetHandleByIndex(self._number)
            return getattr(self._nvml, name)(self._handle, *values)
        except self._nvml.NVMLError as error:
            raise _told(self.label, doing, error) from None


_PARTS = (("Gpu", "core", "gpu"), ("Memory", "memory", "mem"))
"""What has clocks, as NVML, people and zeusd call it."""


def nvidia_gpus() -> list[NvidiaGpu]:
    """Return this machine's GPUs; refuse where there is no driver or no package to ask it."""
    try:
        import pynvml
    except ModuleNotFoundError:
        raise MissingExtra("nvidia-ml-py", "nvidia", "asking NVIDIA GPUs") from None
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        raise _told("NVIDIA GPUs", "listing them", error) from None
    zeusd = running_zeusd()
    return [NvidiaGpu(pynvml, number, zeusd) for number in range(count)]


def _told(who: str, doing: str, error: Any) -> DeviceError:
    trouble, words = TROUBLES.get(error.value, ("refused", f"was refused: {error}"))
    named = trouble in ("driver", "lost")
    return DeviceError(who, trouble, words if named else f"{doing} {words}")
