"""What every device is asked, whoever made it; settings, and how they are undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from downclock.errors import AdapterError

Trouble: TypeAlias = Literal["driver", "permission", "lost", "unsupported", "refused"]


class DeviceError(AdapterError):
    """A device did not do what it was asked; ``trouble`` says of which sort the reason is."""

    def __init__(self, device: str, trouble: Trouble, sentence: str) -> None:
        super().__init__(f"{device}: {sentence}")
        self.trouble = trouble


KNOBS = ("core_mhz", "memory_mhz", "power_limit_w")


@dataclass(frozen=True, slots=True)
class Setting:
    """Clocks or a power limit; what is None is left alone."""

    core_mhz: int | None = None
    memory_mhz: int | None = None
    power_limit_w: float | None = None

    def __bool__(self) -> bool:
        return (self.core_mhz, self.memory_mhz, self.power_limit_w) != (None, None, None)

    def __str__(self) -> str:
        units = {"core_mhz": "MHz core", "memory_mhz": "MHz memory", "power_limit_w": "W limit"}
        given = [(getattr(self, name), unit) for name, unit in units.items()]
        return ", ".join(f"{v:g} {unit}" for v, unit in given if v is not None) or "as it is"

    def words(self) -> dict[str, str]:
        """What is set, by name."""
        given = {name: getattr(self, name) for name in KNOBS}
        return {name: f"{value:g}" for name, value in given.items() if value is not None}

    @property
    def frequency(self) -> str:
        """Clocks as Slurm writes them; empty: there are none."""
        memory = "" if self.memory_mhz is None else f",memory={self.memory_mhz}"
        return "" if self.core_mhz is None else f"{self.core_mhz}{memory}"


ClockPairs: TypeAlias = tuple[tuple[int | None, tuple[int, ...]], ...]
"""Core clocks (MHz, highest first) at each memory clock (highest first; None: it has none)."""


class Device(Protocol):
    """One GPU or CPU package. Every call may raise `DeviceError`."""

    @property
    def label(self) -> str:
        """How people call it: ``gpu0``, ``cpu1``."""

    @property
    def index(self) -> int:
        """Its number among devices of its sort, the one of its device file where it has one."""

    @property
    def uuid(self) -> str:
        """What names it for as long as it lives."""

    @property
    def name(self) -> str:
        """The product."""

    @property
    def setter(self) -> str:
        """Who may set it: ``root``, ``zeusd``, or empty where nobody here may."""

    def clock_pairs(self) -> ClockPairs:
        """Clocks that may be locked."""

    def clocks_mhz(self) -> tuple[int, int | None]:
        """Core and memory clock now."""

    def lock_clocks(self, core_mhz: int | None, memory_mhz: int | None) -> None:
        """Fix clocks until they are reset."""

    def reset_clocks(self) -> None:
        """Let the driver choose clocks again; does nothing where none can be locked."""

    def power_limits_w(self) -> tuple[float, float]:
        """Least and greatest power limit."""

    def power_limit_w(self) -> float:
        """Power limit now."""

    def set_power_limit(self, limit_w: float) -> None:
        """Set the power limit."""

    def power_w(self) -> float:
        """Power now."""

    def energy_j(self) -> float:
        """Energy since some moment in the past, by the hardware's counter."""


@runtime_checkable
class Ranged(Protocol):
    """A device whose driver forgets what clocks the site lets it have when one is locked."""

    def clock_ranges(self) -> str:
        """What the site lets it have now, for `restore_ranges`."""

    def restore_ranges(self, ranges: str) -> None:
        """Unlock clocks, and let it have what it had then."""


def nearest(device: Device, wanted: Setting) -> Setting:
    """Return the slowest setting the device has that is not slower than the one wanted."""
    core, memory, limit = wanted.core_mhz, wanted.memory_mhz, wanted.power_limit_w
    if core is not None or memory is not None:
        pairs = device.clock_pairs()
        memories = [m for m, _ in pairs if m is not None]
        if memory is not None:
            memory = _at_least(memory, memories) if memories else None
        cores = next((c for m, c in pairs if m == memory), pairs[0][1])
        core = None if core is None else _at_least(core, cores)
    if limit is not None:
        least, most = device.power_limits_w()
        limit = min(max(limit, least), most)
    return Setting(core, memory, limit)


def carry_out(device: Device, setting: Setting) -> None:
    """Set what the setting names, as `nearest` returned it."""
    if setting.power_limit_w is not None:
        device.set_power_limit(setting.power_limit_w)
    # A card with one memory clock has it already, and its driver may refuse to lock it.
    memory = setting.memory_mhz if len(device.clock_pairs()) > 1 else None
    if setting.core_mhz is not None or memory is not None:
        device.lock_clocks(setting.core_mhz, memory)


def undo(device: Device, power_limit_w: float | None, ranges: str = "") -> None:
    """Reset clocks, and ranges of clocks and the power limit to what they were, where given."""
    try:
        if ranges and isinstance(device, Ranged):
            device.restore_ranges(ranges)
        else:
            device.reset_clocks()
    finally:
        if power_limit_w is not None:
            device.set_power_limit(power_limit_w)


def ranges_of(device: Device) -> str:
    """Return what clocks the site lets a device have; empty where its driver remembers that."""
    if isinstance(device, Ranged):
        with suppress(DeviceError):
            return device.clock_ranges()
    return ""


def number_or_none(ask: Callable[[], float]) -> float | None:
    """Return what a device answers, None where it has no such thing or does not answer."""
    with suppress(DeviceError):
        return ask()
    return None


def _at_least(wanted: int, offered: Sequence[int]) -> int:
    return min((each for each in offered if each >= wanted), default=max(offered))
