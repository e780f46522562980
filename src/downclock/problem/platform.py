"""The platform: processors in chips, chips in servers, servers in zones. Columnar.

A processor runs one task at a time. A chip is the processors that share a clock (one each,
unless DVFS is chip-wide). A server is the chips that sleep together. A zone is the servers that
share a price. Processors are numbered server by server, chip by chip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from downclock.errors import InvalidInput, require_text, require_type, suggestion
from downclock.power.frontier import Frontier, frontier
from downclock.power.library import Library
from downclock.power.points import Clocks
from downclock.problem.limits import NO_LIMITS, Limits
from downclock.quantities import MOST, count, refuse_rows, require_quantity
from downclock.units import Bools, Floats, Ints, Names

Interrupt: TypeAlias = Literal["none", "pause", "preempt", "migrate"]
"""May a running task stop? none; pause (gaps, processor held); preempt (gaps, same processor,
others may run between); migrate (anywhere of the same kind)."""

ClockRule: TypeAlias = Literal["free", "locked"]
"""May the clock change while a task runs?"""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of processor: its clocks, its idle power and its rules."""

    name: str
    clocks: Clocks
    idle_w: float = 0.0
    interrupt: Interrupt = "none"
    clock: ClockRule = "free"

    def __post_init__(self) -> None:
        item = f"kind '{self.name}'"
        require_text("name", self.name, item=item)
        wanted = "a ClockRange, a ClockTable or PowerLimits"
        require_type(self.clocks, get_args(Clocks), wanted, field="clocks", item=item)
        require_quantity("idle_w", self.idle_w, item=item)
        for field, choices in (("interrupt", Interrupt), ("clock", ClockRule)):
            value, allowed = getattr(self, field), get_args(choices)
            if value not in allowed:
                rule = f"must be one of {', '.join(allowed)}"
                raise InvalidInput(rule, item=item, field=field, value=value)

    @classmethod
    def of(cls, library: Library, name: str, *, idle_w: float = 0.0) -> Kind:
        """Make a kind of the clocks and the voltage law that the library's profiles have.

        Raises:
            InvalidInput: the library has no such kind, or does not say its clocks.
        """
        return cls(name, library.clocks_of(name), idle_w)

    def frontier(self, library: Library, application: Ints, scale: Floats) -> Frontier:
        """Energy-time frontiers of tasks on this kind, a row each.

        Applications are solved once a library, so that those of tasks that arrive later cost next
        to nothing.
        """
        return frontier(library, self.name, self.clocks, application, scale)


SERVER_QUANTITIES = ("shared_w", "shared_w_per_clock", "host_w", "sleep_w", "wake_j", "wake_s")
"""Fields of a server that are powers, energies and times, 0 by default."""


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """``count`` equal servers, the way people describe them; `Platform.build` expands it.

    Attributes:
        processors: (kind name, how many) in order.
        chip_wide: all processors of one entry share one clock (one chip) instead of one each.
        shared_w, shared_w_per_clock: what a chip adds while any of its processors runs:
            ``shared_w + shared_w_per_clock * core clock`` (gerards: c3 + c2 f).
        host_w: what an awake server draws besides its processors (liu: system power).
        sleep_w: what a sleeping server draws.
        wake_j, wake_s: energy and time to wake it.
        initially_on: awake at time 0, without a wake.
    """

    name: str
    processors: tuple[tuple[str, int], ...]
    count: int = 1
    zone: str = "default"
    chip_wide: bool = False
    shared_w: float = 0.0
    shared_w_per_clock: float = 0.0
    host_w: float = 0.0
    sleep_w: float = 0.0
    wake_j: float = 0.0
    wake_s: float = 0.0
    initially_on: bool = False

    def __post_init__(self) -> None:
        item = f"server '{self.name}'"
        require_text("name", self.name, item=item)
        if self.count < 1:
            raise InvalidInput("must be at least 1", item=item, field="count", value=self.count)
        if not self.processors or any(count < 1 for _, count in self.processors):
            raise InvalidInput("needs at least one processor of each kind it names", item=item)
        for field in SERVER_QUANTITIES:
            require_quantity(field, getattr(self, field), item=item)
        if 0.0 < self.wake_s < self.wake_j / MOST["w"]:
            rule = f"draws wake_j at more than {MOST['w']:g} W; 0 is a wake that takes no time"
            raise InvalidInput(rule, item=item, field="wake_s", value=self.wake_s)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Platform:
    """All processors, chips and servers.

    Attributes:
        kinds: processor kinds.
        kind, chip: kind and chip of each processor (p,).
        chip_server: server of each chip (c,), ascending.
        shared_w, shared_w_per_clock: per chip (c,).
        server_name, zone, host_w, sleep_w, wake_j, wake_s, initially_on: per server (s,).
        zones: zone names; ``zone`` indexes them.
        slot_s: length of a time slot where starts and ends fall on slots; None: continuous.
        limits: power caps, and times in which servers are down.
    """

    kinds: tuple[Kind, ...]
    kind: Ints
    chip: Ints
    chip_server: Ints
    shared_w: Floats
    shared_w_per_clock: Floats
    server_name: Names
    zone: Ints
    host_w: Floats
    sleep_w: Floats
    wake_j: Floats
    wake_s: Floats
    initially_on: Bools
    zones: tuple[str, ...] = ("default",)
    slot_s: float | None = None
    specs: tuple[ServerSpec, ...] = ()
    limits: Limits = NO_LIMITS

    def __post_init__(self) -> None:
        for name, _ in self.limits.zone_cap_w:
            if name not in self.zones:
                rule = f"is not a zone of this platform{suggestion(name, list(self.zones))}"
                raise InvalidInput(rule, field="zone_power_cap_w", value=name)
        down, rule = self.limits.server, f"must be one of the {self.server_count} servers"
        unknown = (down < 0) | (down >= self.server_count)
        refuse_rows(unknown, rule, field="server", values=down, item=lambda row: "limits")

    @classmethod
    def build(
        cls,
        kinds: Sequence[Kind],
        specs: Sequence[ServerSpec],
        slot_s: float | None = None,
        limits: Limits = NO_LIMITS,
    ) -> Platform:
        """Expand server descriptions to columns; cost linear in the processors."""
        for field, given, wanted in (("kinds", kinds, Kind), ("specs", specs, ServerSpec)):
            require_type(given, (list, tuple), f"a list of {wanted.__name__}", field=field)
            for each in given:
                require_type(each, wanted, f"a {wanted.__name__}", field=field)
        kinds, specs = tuple(kinds), tuple(specs)
        _check_specs(kinds, specs, slot_s)
        index = {kind.name: i for i, kind in enumerate(kinds)}
        zones = tuple(dict.fromkeys(spec.zone for spec in specs))
        kind, chip = _expand(specs, index)
        per_server = np.repeat(np.arange(len(specs)), [spec.count for spec in specs])
        chips = np.array([_chips_per_server(spec) for spec in specs])
        chip_server = np.repeat(np.arange(per_server.size), chips[per_server])
        per_chip = per_server[chip_server]

        columns = {
            field: np.array([getattr(spec, field) for spec in specs], dtype=np.float64)
            for field in SERVER_QUANTITIES
        }
        return cls(
            kinds=kinds,
            kind=kind,
            chip=chip,
            chip_server=chip_server,
            server_name=_server_names(specs),
            zone=np.array([zones.index(spec.zone) for spec in specs])[per_server],
            initially_on=np.array([spec.initially_on for spec in specs], dtype=bool)[per_server],
            **{
                k: v[per_chip if k.startswith("shared") else per_server] for k, v in columns.items()
            },
            zones=zones,
            slot_s=slot_s,
            specs=specs,
            limits=limits,
        )

    def __repr__(self) -> str:
        kinds = ", ".join(kind.name for kind in self.kinds)
        servers = count(self.server_count, "server")
        return f"Platform: {servers}, {count(self.processor_count, 'processor')} ({kinds})"

    @property
    def server(self) -> Ints:
        """Server of each processor (p,), ascending."""
        return np.asarray(self.chip_server[self.chip])

    @property
    def processor_count(self) -> int:
        """Number of processors."""
        return self.kind.size

    @property
    def server_count(self) -> int:
        """Number of servers."""
        return self.zone.size

    @property
    def first_processor(self) -> Ints:
        """First processor of each server, and the total at the end (s + 1,)."""
        return np.searchsorted(self.server, np.arange(self.server_count + 1)).astype(np.int64)

    @property
    def idle_w(self) -> Floats:
        """Idle power of each processor (p,)."""
        return np.array([kind.idle_w for kind in self.kinds])[self.kind]

    def slot_up(self, time_s: float) -> float:
        """The next slot boundary at or after a time; the time itself without slots."""
        if self.slot_s is None:
            return time_s
        return float(np.ceil(time_s / self.slot_s - 1e-9) * self.slot_s)

    def processor_name(self, processor: int) -> str:
        """Name as people say it: server, then the processor's place in it, from 1."""
        return str(self.processor_names(np.array([processor]))[0])

    def processor_names(self, processors: Ints | None = None) -> Names:
        """Names of these processors, or of all."""
        which = np.arange(self.processor_count) if processors is None else processors
        servers = self.server
        server = servers[which]
        place = which - np.searchsorted(servers, server) + 1
        pairs = zip(self.server_name[server], place.tolist(), strict=True)
        return np.array([f"{name}/{k}" for name, k in pairs], dtype=object)


def _check_specs(
    kinds: tuple[Kind, ...], specs: tuple[ServerSpec, ...], slot_s: float | None
) -> None:
    names = [kind.name for kind in kinds]
    if not kinds or not specs:
        raise InvalidInput("a platform needs at least one kind and one server")
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput("is defined twice", item=f"kind '{name}'")
    for spec in specs:
        for name, _ in spec.processors:
            if name not in names:
                rule = f"is not a kind of this platform{suggestion(name, names)}"
                raise InvalidInput(rule, item=f"server '{spec.name}'", field="kind", value=name)
    if slot_s is not None:
        require_quantity("slot_s", slot_s, positive=True)


def _chips_per_server(spec: ServerSpec) -> int:
    return len(spec.processors) if spec.chip_wide else sum(count for _, count in spec.processors)


def _expand(specs: tuple[ServerSpec, ...], index: dict[str, int]) -> tuple[Ints, Ints]:
    """Return kind and chip of each processor."""
    kinds: list[Ints] = []
    chips: list[Ints] = []
    first = 0
    for spec in specs:
        names, counts = zip(*spec.processors, strict=True)
        kind = np.repeat([index[name] for name in names], counts)
        per_server = _chips_per_server(spec)
        chip = np.repeat(np.arange(len(counts)), counts) if spec.chip_wide else np.arange(kind.size)
        kinds.append(np.tile(kind, spec.count))
        chips.append((first + np.arange(spec.count)[:, None] * per_server + chip).ravel())
        first += spec.count * per_server
    return np.concatenate(kinds), np.concatenate(chips)


def _server_names(specs: tuple[ServerSpec, ...]) -> Names:
    names: list[str] = []
    for spec in specs:
        numbers = [""] if spec.count == 1 else range(1, spec.count + 1)
        names += [f"{spec.name}{number}" for number in numbers]
    if len(set(names)) != len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InvalidInput("is the name of two servers", item=f"server '{twice}'")
    return np.array(names, dtype=object)
