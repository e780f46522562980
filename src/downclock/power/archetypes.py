"""Archetypes: what a job of a card is like when nobody measured it.

An application is compute-bound, mixed or memory-bound by how much of its time at default clocks
follows the core clock. The archetype of a card is the mean of its fitted applications of that
class, one second long. Cards without measurements have none; CPU cores follow f^3.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from downclock.columns import joined
from downclock.power.library import Basis, Library
from downclock.power.library_file import BUILT_IN, built_in_library
from downclock.power.points import PROPORTIONAL_LAW
from downclock.power.profiles import CpuProfiles, Curved, GpuProfiles

CLASSES = {"compute-bound": (2 / 3, 1.0), "mixed": (1 / 3, 2 / 3), "memory-bound": (0.0, 1 / 3)}
"""Archetypes by the least and greatest part of time that follows the core clock."""

CPU = "cpu"
CARDS = (*BUILT_IN, CPU)
"""Cards whose archetypes are known without a library of the user's."""

SPEED = {
    "gtx1080ti": {"compute-bound": 1.0, "mixed": 1.0, "memory-bound": 1.0},
    "rtx2070s": {"compute-bound": 0.72, "mixed": 0.83, "memory-bound": 0.98},
    "v100": {"compute-bound": 2.2, "mixed": 2.1, "memory-bound": 2.0},
    "a100": {"compute-bound": 6.7, "mixed": 5.2, "memory-bound": 4.3},
}
"""Speed at default clocks beside a GTX 1080 Ti.

RTX 2070 Super and V100: medians over the applications that two of the measurements behind the
built-in libraries share, of their class on the 1080 Ti. A100: V100 times the ratio of DGEMM (3.05)
and STREAM (2.18) in GA100- and GV100-dvfs-*-perf.csv, of the same source as the A100's library.
Mixed: half the time of each.
"""


@dataclass(frozen=True, slots=True)
class Archetype:
    """A job that takes one second at default clocks.

    Attributes:
        model: class of its profile, and ``parameters`` in the order of its fields.
        core_share: part of its time that follows the core clock.
        power_w: at default clocks; None where it is not known and the profile has 1 W.
    """

    model: type[Curved]
    parameters: tuple[float, ...]
    core_share: float
    power_w: float | None

    def scaled(self, time: float, power: float) -> tuple[float, ...]:
        """Return the parameters with time and power multiplied: units are in their names."""
        factor = {"s": time, "w": power}
        names = [spec.name.rpartition("_")[2] for spec in fields(self.model)]
        values = zip(names, self.parameters, strict=True)
        return tuple(value * factor.get(unit, 1.0) for unit, value in values)


def card_basis(card: str) -> Basis:
    """Return what the archetypes of a card refer to: its clocks and voltage law."""
    return Basis(PROPORTIONAL_LAW) if card == CPU else built_in_library(card).basis_of(card)


def card_archetype(card: str, name: str) -> Archetype | None:
    """Return an archetype of a card with public measurements, or of a CPU core."""
    if card == CPU:
        return _cpu(name)
    return archetype(built_in_library(card), card, name) if card in BUILT_IN else None


def archetype(library: Library, kind: str, name: str) -> Archetype | None:
    """Return the mean of a library's applications of one class on a kind; None without any."""
    parts = [p.take(rows) for p, _, rows in library.parts(kind) if isinstance(p, GpuProfiles)]
    return _mean(joined(parts), *CLASSES[name]) if parts else None


def _mean(gpu: GpuProfiles, low: float, high: float) -> Archetype | None:
    """Return the mean of the applications of a class, each one second long."""
    whole_s = gpu.d_s + gpu.t0_s
    core, fixed = gpu.d_s * gpu.delta / whole_s, gpu.t0_s / whole_s
    mine = (core >= low) & ((core < high) | (high == 1.0))
    if not mine.any():
        return None
    share, follows = float(core[mine].mean()), 1.0 - float(fixed[mine].mean())
    watts = [float(column[mine].mean()) for column in (gpu.p0_w, gpu.gamma_w, gpu.c_w)]
    times = (follows, min(1.0, share / follows) if follows > 0.0 else 1.0, 1.0 - follows)
    return Archetype(GpuProfiles, (*watts, *times), share, sum(watts))


def _cpu(name: str) -> Archetype:
    """A core whose power is f^3 (gerards: c1 f^alpha); what is not core time does not change."""
    if name == "compute-bound":
        return Archetype(CpuProfiles, (1.0, 1.0, 3.0, 0.0), 1.0, None)
    share = sum(CLASSES[name]) / 2
    return Archetype(GpuProfiles, (0.0, 0.0, 1.0, share, 1.0, 1.0 - share), share, None)
