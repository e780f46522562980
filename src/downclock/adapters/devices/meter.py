"""Energy: by the hardware's counter, else by the trapezoid of sampled power."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from downclock.adapters.devices.device import Device, DeviceError, number_or_none

Source: TypeAlias = Literal["counter", "trapezoid"]

SAMPLE_S = 0.1
"""Power is read so often where there is no counter."""


@dataclass(slots=True)
class Trapezoid:
    """Energy under the line through samples of power."""

    energy_j: float = 0.0
    last_s: float = 0.0
    last_w: float | None = None

    def add(self, at_s: float, power_w: float) -> None:
        """Take one sample."""
        if self.last_w is not None:
            self.energy_j += 0.5 * (self.last_w + power_w) * (at_s - self.last_s)
        self.last_s, self.last_w = at_s, power_w


@dataclass(slots=True)
class Meter:
    """Energy of several devices together from `start` to `stop`."""

    devices: Sequence[Device]
    _counters: list[float | None] = field(default_factory=list)
    _curves: list[Trapezoid] = field(default_factory=list)
    _sampler: threading.Thread | None = None
    _ended: threading.Event = field(default_factory=threading.Event)
    _failed: list[DeviceError] = field(default_factory=list)

    @property
    def source(self) -> Source:
        """By counter, where all devices have one."""
        return "trapezoid" if None in self._counters else "counter"

    def start(self) -> None:
        """Read the counters, or begin to sample."""
        self._counters = [number_or_none(device.energy_j) for device in self.devices]
        if self.source == "counter":
            return
        self._curves = [Trapezoid() for _ in self.devices]
        self._sample()
        self._sampler = threading.Thread(target=self._sample_on, daemon=True)
        self._sampler.start()

    def stop(self) -> float:
        """Return the joules since `start`."""
        if self._sampler is None:
            begun = [value or 0.0 for value in self._counters]
            return sum(d.energy_j() - b for d, b in zip(self.devices, begun, strict=True))
        self._ended.set()
        self._sampler.join()
        if self._failed:
            raise self._failed[0]
        self._sample()
        return sum(curve.energy_j for curve in self._curves)

    def _sample(self) -> None:
        for device, curve in zip(self.devices, self._curves, strict=True):
            curve.add(time.monotonic(), device.power_w())

    def _sample_on(self) -> None:
        try:
            while not self._ended.wait(SAMPLE_S):
                self._sample()
        except DeviceError as error:
            self._failed.append(error)
