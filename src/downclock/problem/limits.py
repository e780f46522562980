"""Limits of a site: how much power it may draw, and when servers are not to be had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from downclock.errors import InvalidInput
from downclock.quantities import MOST, require_quantity
from downclock.units import Bools, Floats, Ints

Down: TypeAlias = tuple[int, float, float]
"""A server, and from when to when it is down."""


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """What a site allows; nothing is limited by default.

    Attributes:
        power_cap_w: most power that all servers may draw together at any time.
        zone_cap_w: the same for single zones, by name.
        server, from_s, to_s: times in which a server is down (maintenance, a reservation), known
            beforehand (m,): by server and time, apart from each other. Nothing runs there, and it
            is neither awake nor waking.
    """

    power_cap_w: float = np.inf
    zone_cap_w: tuple[tuple[str, float], ...] = ()
    server: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    from_s: Floats = field(default_factory=lambda: np.empty(0))
    to_s: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(
        cls,
        power_cap_w: float | None = None,
        zone_cap_w: Sequence[tuple[str, float]] = (),
        down: Sequence[Down] = (),
    ) -> Limits:
        """Make limits of what people write; downtimes that touch are one.

        Raises:
            InvalidInput: a cap that is no power, or a downtime that ends before it begins.
        """
        for item, watts in (("the cluster", power_cap_w), *zone_cap_w):
            if watts is not None:
                require_quantity("power_cap_w", watts, positive=True, item=item)
        for _, from_s, to_s in down:
            if not 0.0 <= from_s < to_s <= MOST["s"]:
                rule = f"must begin at 0 or later, and end after that and by {MOST['s']:g} s"
                raise InvalidInput(rule, field="down", value=f"{from_s:g} to {to_s:g} s")
        rows = _apart(sorted(down))
        return cls(
            np.inf if power_cap_w is None else float(power_cap_w),
            tuple(zone_cap_w),
            np.array([row[0] for row in rows], np.int64),
            np.array([row[1] for row in rows], np.float64),
            np.array([row[2] for row in rows], np.float64),
        )

    @property
    def has_cap(self) -> bool:
        """Whether power is limited anywhere."""
        return bool(np.isfinite(self.power_cap_w) or self.zone_cap_w)

    def __bool__(self) -> bool:
        return self.has_cap or self.server.size > 0

    def caps(self, zones: tuple[str, ...], zone: Ints) -> list[tuple[str, float, Bools]]:
        """Every cap: what it is of, its watts, and the servers it holds for (s,)."""
        found = [
            (f"zone '{name}'", cap, zone == zones.index(name)) for name, cap in self.zone_cap_w
        ]
        if np.isfinite(self.power_cap_w):
            found.append(("the cluster", self.power_cap_w, np.ones(zone.size, np.bool_)))
        return found


NO_LIMITS = Limits()
"""Nothing is limited."""


def _apart(rows: list[Down]) -> list[Down]:
    """Join downtimes of a server that touch; rows are sorted."""
    found: list[Down] = []
    for server, from_s, to_s in rows:
        if found and found[-1][0] == server and from_s <= found[-1][2]:
            found[-1] = (server, found[-1][1], max(found[-1][2], to_s))
        else:
            found.append((server, from_s, to_s))
    return found
