"""A library: named applications, each with at most one profile per processor kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

import numpy as np

from downclock.errors import InvalidInput, suggestion
from downclock.memo import Memo
from downclock.power.points import (
    FIXED_VOLTAGE,
    Clocks,
    ClockTable,
    PowerLimits,
    VoltageLaw,
    clock_pairs,
)
from downclock.power.profiles import CpuProfiles, GpuProfiles, Profiles
from downclock.units import Floats, Ints, Names

T = TypeVar("T")

Part: TypeAlias = tuple[Profiles, Ints, Ints]
"""Profiles of one model, which applications have them, and their rows."""

KNOBS = ("core_mhz", "memory_mhz", "power_limit_w")
"""What can be set: lists of `Basis`, and columns of measurements."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What the profiles of one kind refer to; None where that is not known.

    Attributes:
        law: the voltage at a core clock that the power was fitted with.
        default_core_mhz, default_memory_mhz: the clocks that a ratio of 1 stands for.
        default_power_limit_w: the power limit of ratio 1, of profiles measured at power limits.
        core_mhz, memory_mhz, power_limit_w: the settings at which the profiles hold.
    """

    law: VoltageLaw | None = None
    default_core_mhz: float | None = None
    default_memory_mhz: float | None = None
    default_power_limit_w: float | None = None
    core_mhz: tuple[float, ...] = ()
    memory_mhz: tuple[float, ...] = ()
    power_limit_w: tuple[float, ...] = ()


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
        source: where the numbers come from.
    """

    names: Names
    kinds: tuple[str, ...]
    groups: tuple[Profiles, ...]
    group: Ints
    row: Ints
    basis: Mapping[str, Basis] = field(default_factory=dict)
    source: str = ""
    _memo: Memo = field(default_factory=Memo, init=False)

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
    def empty(cls) -> Library:
        """Make a library without applications."""
        none = np.zeros((0, 0), dtype=np.int64)
        return cls(np.zeros(0, dtype=object), (), (), none, none)

    @classmethod
    def of_one_kind(cls, names: Names, kind: str, profiles: Profiles) -> Library:
        """Make a library whose every application has one profile, all of one model and kind."""
        n = len(profiles)
        row = np.arange(n, dtype=np.int64)[:, None]
        return cls(names, (kind,), (profiles,), np.zeros((n, 1), dtype=np.int64), row)

    def basis_of(self, kind: str) -> Basis:
        """Return what the profiles of a kind refer to, as far as it is known."""
        return self.basis.get(kind, Basis())

    def clocks_of(self, kind: str) -> Clocks:
        """Return the clocks or power limits that the profiles of a kind hold at, with their law.

        Raises:
            InvalidInput: an unknown kind, or one whose clocks the library does not say.
        """
        known = self.basis_of(kind)
        if kind not in self.kinds:
            rule = f"is not in the library{suggestion(kind, self.kinds)}"
            raise InvalidInput(rule, item=f"kind '{kind}'")
        if known.power_limit_w and known.default_power_limit_w is not None:
            return PowerLimits(np.array(known.power_limit_w), known.default_power_limit_w)
        if not known.core_mhz or known.default_core_mhz is None:
            rule = "has profiles that do not say their clocks: give it a ClockRange or ClockTable"
            raise InvalidInput(rule, item=f"kind '{kind}'")
        memories = np.array(known.memory_mhz or (known.default_memory_mhz or 1.0,))
        default_memory = known.default_memory_mhz or float(memories[0])
        law, pairs = known.law or FIXED_VOLTAGE, clock_pairs(np.array(known.core_mhz), memories)
        return ClockTable(*pairs, known.default_core_mhz, default_memory, law)

    def rows_of(self, names: Sequence[str]) -> Ints:
        """Return the rows of applications by name.

        Raises:
            InvalidInput: an application that the library does not have.
        """
        place = {str(name): row for row, name in enumerate(self.names)}
        for name in names:
            if name not in place:
                rule = f"is not in the library{suggestion(str(name), list(place))}"
                raise InvalidInput(rule, field="application", value=name)
        return np.array([place[name] for name in names], dtype=np.int64)

    def called(self, kind: str, known: str) -> Library:
        """Return this library with the profiles of ``known`` for another kind as well."""
        k = self.kinds.index(known)
        return replace(
            self,
            kinds=(*self.kinds, kind),
            group=np.column_stack([self.group, self.group[:, k]]),
            row=np.column_stack([self.row, self.row[:, k]]),
            basis={**self.basis, kind: self.basis_of(known)},
        )

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Compute something that depends on the library alone, the first time it is asked."""
        return self._memo.once(key, compute)

    def parts(self, kind: str, application: Ints | None = None) -> Iterator[Part]:
        """Yield the profiles that these applications (all by default) have on a kind, by model."""
        k = self.kinds.index(kind) if kind in self.kinds else None
        some = slice(None) if application is None else application
        for g, profiles in enumerate(self.groups if k is not None else ()):
            mine = np.flatnonzero(self.group[some, k] == g)
            if mine.size:
                yield profiles, mine, self.row[some, k][mine]

    def needs_voltage(self, kind: str) -> bool:
        """Tell whether the power of any profile of a kind depends on the core voltage."""
        return any(
            isinstance(profiles, GpuProfiles) and bool(np.any(profiles.c_w[rows] > 0.0))
            for profiles, _, rows in self.parts(kind)
        )

    def shortest_s(self, kind: str, clocks: Clocks) -> Floats:
        """Least time of a unit of each application (a,); infinite where there is no profile."""
        least = np.full(len(self), np.inf)
        for profiles, mine, rows in self.parts(kind):
            least[mine] = profiles.shortest_s(clocks)[rows]
        return least

    def core_law(self, application: Ints, kind: str) -> CpuProfiles | None:
        """Rows of ``time = time_s / core``, ``power = static_w + c1_w core^alpha``, one each.

        None where the time or the power of one of these applications follows no such law.
        """
        k = self.kinds.index(kind)
        groups = np.unique(self.group[application, k])
        profiles = self.groups[int(groups[0])] if groups.size == 1 and groups[0] >= 0 else None
        if not isinstance(profiles, CpuProfiles):
            return None
        return profiles.take(self.row[application, k])

    def with_less_constant_power(self, divisor: float) -> Library:
        """The library with P0 and gamma of the three-variable GPU model divided."""
        groups = tuple(
            replace(each, p0_w=each.p0_w / divisor, gamma_w=each.gamma_w / divisor)
            if isinstance(each, GpuProfiles)
            else each
            for each in self.groups
        )
        return Library(self.names, self.kinds, groups, self.group, self.row)

    def describe(self, application: int, kind: int) -> tuple[str, float, float]:
        """The model of a profile, and (time_s, power_w) of a unit; see the profiles."""
        profiles: Profiles = self.groups[self.group[application, kind]]
        return profiles.describe(int(self.row[application, kind]))

    def at(self, application: Ints, kind: str, points: Floats) -> tuple[Floats, Floats]:
        """Return (time_s, power_w) per unit of work; NaN where there is no profile."""
        time, power = np.full(len(application), np.nan), np.full(len(application), np.nan)
        for profiles, mine, rows in self.parts(kind, application):
            time[mine], power[mine] = profiles.at(rows, points[mine])
        return time, power


def merged(libraries: Sequence[Library]) -> Library:
    """Return the applications of several libraries; each may have profiles for other kinds.

    Raises:
        InvalidInput: two have a profile of one application on one kind, or differ in what the
            profiles of a kind refer to.
    """
    if len(libraries) == 1:
        return libraries[0]
    names = list(dict.fromkeys(name for library in libraries for name in library.names))
    kinds = tuple(dict.fromkeys(kind for library in libraries for kind in library.kinds))
    place = {name: a for a, name in enumerate(names)}
    group = np.full((len(names), len(kinds)), -1, dtype=np.int64)
    row = np.zeros_like(group)
    groups: list[Profiles] = []
    basis: dict[str, Basis] = {}
    for library in libraries:
        rows = np.array([place[name] for name in library.names], dtype=np.int64)
        for kind in dict.fromkeys([*library.kinds, *library.basis]):
            second = library.basis_of(kind)
            basis[kind] = _same_basis(kind, basis.get(kind, second), second)
        for k, kind in enumerate(library.kinds):
            mine, at = library.group[:, k] >= 0, kinds.index(kind)
            for name in library.names[mine & (group[rows, at] >= 0)][:1]:
                rule = f"has a profile for kind '{kind}' in two libraries"
                raise InvalidInput(rule, item=f"application '{name}'")
            group[rows[mine], at] = library.group[mine, k] + len(groups)
            row[rows[mine], at] = library.row[mine, k]
        groups += library.groups
    source = "; ".join(dict.fromkeys(library.source for library in libraries if library.source))
    return Library(np.array(names, dtype=object), kinds, tuple(groups), group, row, basis, source)


def _same_basis(kind: str, first: Basis, second: Basis) -> Basis:
    """Return what both mean; other clocks or another voltage law are refused."""
    for name in ("law", "default_core_mhz", "default_memory_mhz", "default_power_limit_w"):
        ours, theirs = getattr(first, name), getattr(second, name)
        if ours != theirs:
            rule = f"differs between two libraries ({ours} and {theirs})"
            raise InvalidInput(rule, item=f"kind '{kind}'", field=name)
    settings = {name: getattr(first, name) or getattr(second, name) for name in KNOBS}
    return replace(first, **settings)
