"""What is set on a device at an operating point of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from downclock.adapters.devices.device import Setting
from downclock.power.points import CORE, MEMORY, Clocks, PowerLimits
from downclock.units import Floats


def setting_at(clocks: Clocks, point: Sequence[float] | Floats) -> Setting:
    """Clocks in MHz, or a limit in watts; nothing where clocks are ratios of nobody knows what."""
    if isinstance(clocks, PowerLimits):
        return Setting(power_limit_w=round(point[CORE] * clocks.default_limit_w))
    if clocks.default_mhz is None:
        return Setting()
    core_mhz, memory_mhz = clocks.default_mhz
    memory = round(point[MEMORY] * memory_mhz) if clocks.scales_memory else None
    return Setting(round(point[CORE] * core_mhz), memory)
