"""A site: what is known of a cluster's kinds that turns the run time of a job into work."""

from __future__ import annotations

from dataclasses import dataclass

from downclock.errors import InvalidInput
from downclock.power.archetypes import SPEED
from downclock.problem.platform import Kind

ODD = 1e6
"""Of a processor: more watts, or that many times the speed of its card, are a mistake."""


def refuse_odd(field: str, value: float) -> None:
    """Refuse a power or a speed that no processor has."""
    if not 1.0 / ODD <= value <= ODD:
        rule = f"must be between {1.0 / ODD:g} and {ODD:g}"
        raise InvalidInput(rule, field=field, value=value)


@dataclass(frozen=True, slots=True, eq=False)
class SiteKind:
    """A kind of processor as the cluster file tells it.

    Attributes:
        kind: its clocks and rules.
        card: whose profiles and archetypes it has; its own name by default.
        speed: of a job at default clocks beside the reference kind; None: what is known of cards.
        power_w: busy at default clocks; None: what is known of the card.
        tells_idle: the file says what it draws when it runs nothing.
    """

    kind: Kind
    card: str
    speed: float | None = None
    power_w: float | None = None
    tells_idle: bool = True

    @property
    def name(self) -> str:
        """The kind's name."""
        return self.kind.name


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """The kinds of a cluster, and what jobs that say little are taken for.

    Attributes:
        kinds: all of them.
        reference: name of the kind that run times are of, where a job names none.
        archetype: what a job without an application is like.
        is_default: nobody named the reference.
        tells_hosts: the file says what servers draw besides their processors.
    """

    kinds: tuple[SiteKind, ...]
    reference: str
    archetype: str = "mixed"
    is_default: bool = True
    tells_hosts: bool = True

    def named(self, name: str) -> SiteKind:
        """Return a kind by its name."""
        return next(kind for kind in self.kinds if kind.name == name)

    def speed(self, kind: str, beside: str, archetype: str) -> float | None:
        """Return how fast a job runs on a kind beside another one; None where nobody knows."""
        if kind == beside:
            return 1.0
        here, there = (self._speed(name, archetype) for name in (kind, beside))
        return None if here is None or there is None else here / there

    def _speed(self, name: str, archetype: str) -> float | None:
        kind, reference = self.named(name), self.named(self.reference)
        if kind.speed is not None or kind is reference:
            return 1.0 if kind.speed is None else kind.speed
        if kind.card == reference.card:
            return 1.0
        if kind.card not in SPEED or reference.card not in SPEED:
            return None
        return SPEED[kind.card][archetype] / SPEED[reference.card][archetype]
