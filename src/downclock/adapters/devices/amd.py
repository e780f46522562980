"""AMD GPUs through amdsmi, which comes with ROCm: the one door to it.

amdsmi counts microwatts, hertz, and energy in steps of its own. Memory clocks are left alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from downclock.adapters.devices.device import ClockPairs, DeviceError, Trouble

T = TypeVar("T")

TROUBLES: dict[int, tuple[Trouble, str]] = {
    2: ("unsupported", "is not supported by this GPU"),
    3: ("unsupported", "is not known to this driver"),
    10: ("permission", "needs root"),
    49: ("unsupported", "is not supported by this GPU"),
}
"""Status codes of amdsmi that people meet."""


class AmdGpu:
    """One GPU of this machine."""

    def __init__(self, smi: Any, handle: Any, index: int) -> None:
        self._smi, self._handle, self.index = smi, handle, index

    @property
    def label(self) -> str:
        """``gpu0``."""
        return f"gpu{self.index}"

    @cached_property
    def uuid(self) -> str:
        """The driver's UUID."""
        return str(self._ask("its UUID", self._smi.amdsmi_get_gpu_device_uuid))

    @cached_property
    def name(self) -> str:
        """The product."""
        return str(self._ask("its name", self._smi.amdsmi_get_gpu_asic_info)["market_name"])

    @property
    def setter(self) -> str:
        """Root alone."""
        return "root" if os.geteuid() == 0 else ""

    def clock_pairs(self) -> ClockPairs:
        """Core clocks that may be locked."""
        core = self._smi.AmdSmiClkType.GFX
        told = self._ask("listing clocks", self._smi.amdsmi_get_clk_freq, core)
        clocks = {round(hertz / 1e6) for hertz in told["frequency"]}
        return ((None, tuple(sorted(clocks, reverse=True))),)

    def clocks_mhz(self) -> tuple[int, int | None]:
        """Core and memory clock now."""
        kinds, ask = self._smi.AmdSmiClkType, self._smi.amdsmi_get_clock_info
        core, memory = (self._ask("its clocks", ask, k)["clk"] for k in (kinds.GFX, kinds.MEM))
        return int(core), int(memory) if str(memory).isdigit() else None

    def lock_clocks(self, core_mhz: int | None, memory_mhz: int | None) -> None:
        """Fix the core clock until it is reset."""
        if core_mhz is not None:
            core, lock = self._smi.AmdSmiClkType.GFX, self._smi.amdsmi_set_gpu_clk_range
            self._ask("setting core clocks", lock, core_mhz, core_mhz, core)

    def reset_clocks(self) -> None:
        """Let the driver choose clocks again."""
        level = self._smi.AmdSmiDevPerfLevel.AUTO
        self._ask("setting core clocks", self._smi.amdsmi_set_gpu_perf_level, level)

    def power_limits_w(self) -> tuple[float, float]:
        """Least and greatest power limit."""
        told = self._ask("its power limits", self._smi.amdsmi_get_power_cap_info)
        return told["min_power_cap"] / 1e6, told["max_power_cap"] / 1e6

    def power_limit_w(self) -> float:
        """Power limit now."""
        told = self._ask("its power limit", self._smi.amdsmi_get_power_cap_info)
        return float(told["power_cap"]) / 1e6

    def set_power_limit(self, limit_w: float) -> None:
        """Set the power limit."""
        limit_uw = round(1e6 * limit_w)
        self._ask("setting the power limit", self._smi.amdsmi_set_power_cap, 0, limit_uw)

    def power_w(self) -> float:
        """Power now, or its recent mean where that is all there is."""
        told = self._ask("reading power", self._smi.amdsmi_get_power_info)
        for key in ("current_socket_power", "average_socket_power"):
            if isinstance(told.get(key), int | float):
                return float(told[key])
        raise DeviceError(self.label, "unsupported", "reading power is not supported by this GPU")

    def energy_j(self) -> float:
        """Energy since the driver was loaded."""
        told = self._ask("its energy counter", self._smi.amdsmi_get_energy_count)
        return float(told["energy_accumulator"]) * float(told["counter_resolution"]) / 1e6

    def _ask(self, doing: str, function: Callable[..., T], *values: Any) -> T:
        try:
            return function(self._handle, *values)
        except self._smi.AmdSmiException as error:
            code = getattr(error, "err_code", None) or 0
            trouble, words = TROUBLES.get(code, ("refused", f"was refused: {error}"))
            raise DeviceError(self.label, trouble, f"{doing} {words}") from None


def amd_gpus() -> list[AmdGpu]:
    """Return this machine's GPUs; none where amdsmi or its library is not there."""
    from importlib.util import find_spec

    if find_spec("amdsmi") is None:
        return []
    try:
        import amdsmi

        amdsmi.amdsmi_init()
        handles = amdsmi.amdsmi_get_processor_handles()
    except Exception:  # without its library it fails in any way, KeyError among them
        return []
    return [AmdGpu(amdsmi, handle, index) for index, handle in enumerate(handles)]
