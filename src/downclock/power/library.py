"""A library: named applications, each with at most one profile per processor kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from downclock.errors import InvalidInput
from downclock.power.points import VoltageLaw
from downclock.power.profiles import GpuProfiles, Profiles
from downclock.units import Floats, Ints, Names


@dataclass(frozen=True, slots=True)
class Basis:
    """What the profiles of one kind refer to; None where that is not known.

    Attributes:
        law: the voltage at a core clock that the power was fitted with.
        default_core_mhz, default_memory_mhz: the clocks that a ratio of 1 stands for.
    """

    law: VoltageLaw | None = None
    default_core_mhz: float | None = None
    default_memory_mhz: float | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Library:
    """Applications by name and their profiles by processor kind, columnar.

    Attributes:
        names: application names (a,).
        kinds: names of the processor kinds the profiles are for (k,).
        groups: the profiles, one columnar group per hardware model.
        group: index into ``groups`` (a, k); -1 where the application cannot run on the kind.
        row: row inside that group (a, k).
        basis: voltage law and default clocks by kind, where they are known.
    """

    names: Names
    kinds: tuple[str, ...]
    groups: tuple[Profiles, ...]
    group: Ints
    row: Ints
    basis: Mapping[str, Basis] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = np.asarray(self.names, dtype=object)
        object.__setattr__(self, "names", names)
        if len(set(names)) != names.size:
            twice = Counter(names).most_common(1)[0][0]
            raise InvalidInput("is defined twice", item=f"application '{twice}'")

    def __repr__(self) -> str:
        return f"Library: {len(self)} applications on {', '.join(self.kinds)}"

    def __len__(self) -> int:
        return self.names.size

    @classmethod
    def of_one_kind(cls, names: Names, kind: str, profiles: Profiles) -> Library:
        """Make a library whose every application has one profile, all of one model and kind."""
        n = len(profiles)
        row = np.arange(n, dtype=np.int64)[:, None]
        return cls(names, (kind,), (profiles,), np.zeros((n, 1), dtype=np.int64), row)

    def needs_voltage(self, kind: str) -> bool:
        """Tell whether the power of any profile of a kind depends on the core voltage."""
        if kind not in self.kinds:
            return False
        k = self.kinds.index(kind)
        return any(
            bool(np.any(profiles.c_w[self.row[self.group[:, k] == g, k]] > 0.0))
            for g, profiles in enumerate(self.groups)
            if isinstance(profiles, GpuProfiles)
        )

    def at(self, application: Ints, kind: str, points: Floats) -> tuple[Floats, Floats]:
        """Return (time_s, power_w) per unit of work; NaN where there is no profile."""
        time, power = np.full(len(application), np.nan), np.full(len(application), np.nan)
        if kind not in self.kinds:
            return time, power
        k = self.kinds.index(kind)
        for g, profiles in enumerate(self.groups):
            mine = np.flatnonzero(self.group[application, k] == g)
            rows = self.row[application[mine], k]
            time[mine], power[mine] = profiles.at(rows, points[mine])
        return time, power
