"""Jobs as people know them: how long it ran, on what it may run, what it draws.

Such a job gets an application made for it: an archetype of its card (compute-bound, mixed or
memory-bound), a second long at default clocks on the kind its run time is of, so that its units
of work are its seconds. What was assumed on the way is told once, in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from downclock.errors import InvalidInput, suggestion
from downclock.power.archetypes import (
    CARDS,
    CLASSES,
    Archetype,
    archetype,
    card_archetype,
    card_basis,
)
from downclock.power.library import Library
from downclock.power.profiles import Curved
from downclock.problem.files.site import Site
from downclock.quantities import count


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a job says of itself.

    Attributes:
        application: of the library, or an archetype; empty: the site's archetype.
        power_w: at default clocks where its run time is of; None: the archetype's.
        kinds: that it may run on, its run time being of the first; none: all of them.
    """

    application: str = ""
    power_w: float | None = None
    kinds: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the application made for it is called."""
        power = "" if self.power_w is None else f" {self.power_w:g} W"
        return f"{self.application}{power}{' on ' + '+'.join(self.kinds) if self.kinds else ''}"


@dataclass(slots=True)
class Applications:
    """Finds or makes the application of each job, and remembers what was assumed."""

    library: Library
    site: Site
    _known: dict[str, int] = field(init=False)
    _made: dict[Wanted, tuple[int, float]] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)
    _places: list[dict[str, tuple[int, int]]] = field(default_factory=list)
    _rows: dict[type[Curved], list[tuple[float, ...]]] = field(default_factory=dict)
    _jobs: Counter[str] = field(default_factory=Counter)
    _elsewhere: dict[str, str] = field(default_factory=dict)
    _found: dict[tuple[str, str], Archetype | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = {name: place for place, name in enumerate(self.library.names)}

    def of(self, wanted: Wanted, *, timed: bool = True) -> tuple[int, float]:
        """Return the application's place and how long a unit takes where the run time is of.

        ``timed``: the job says how long it runs; without that it needs an application.
        """
        wanted = wanted if wanted.application else replace(wanted, application=self.site.archetype)
        known = wanted.application in self._known
        if wanted not in self._made:
            self._refuse_unknown_kinds(wanted)
            self._made[wanted] = self._fitted(wanted) if known else self._typical(wanted)
        if not known and not timed:
            rule = "is an archetype, not an application of the library: give run"
            raise InvalidInput(rule, field="application", value=wanted.application)
        if not known:
            self._jobs[wanted.application] += 1
        return self._made[wanted]

    def all(self) -> Library:
        """Return the library with the applications that were made."""
        if not self._names:
            return self.library
        library = self.library
        kinds = tuple(dict.fromkeys([*library.kinds, *(kind.name for kind in self.site.kinds)]))
        shape = (len(library) + len(self._names), len(kinds))
        group, row = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        old = np.ix_(np.arange(len(library)), np.arange(len(library.kinds)))
        group[old], row[old] = library.group, library.row
        for a, places in enumerate(self._places, start=len(library)):
            for kind, place in places.items():
                group[a, kinds.index(kind)], row[a, kinds.index(kind)] = place
        names = np.array([*library.names, *self._names], dtype=object)
        made = [model(*np.array(rows).T) for model, rows in self._rows.items()]
        groups = (*library.groups, *made)
        return Library(names, kinds, groups, group, row, library.basis, library.source)

    def assumptions(self) -> tuple[str, ...]:
        """Say what was assumed of jobs that gave a run time and no application of the library."""
        lines = [
            f"run times of {name} are those on {kind}: it was not measured on another"
            for name, kind in self._elsewhere.items()
        ]
        if not self._jobs:
            return tuple(lines)
        site = self.site
        several = len({(kind.card, kind.speed, kind.power_w) for kind in site.kinds}) > 1
        if several:
            hint = ' (reference = "..." in the cluster names another)' if site.is_default else ""
            has_kinds = any(wanted.kinds for wanted in self._made)
            own = ", or on the first of a job's own kinds" if has_kinds else ""
            lines.append(f"run times are those at default clocks on {site.reference}{own}{hint}")
        for name, jobs in self._jobs.items():
            lines.append(f"{count(jobs, 'job')} without measurements: {self._told(name)}")
        if several:
            lines += self._speeds()
        return (*lines, *self._silent())

    def _silent(self) -> Iterator[str]:
        """Say what draws nothing because the cluster does not tell."""
        idle = [kind.name for kind in self.site.kinds if not kind.tells_idle]
        if idle:
            yield f"idle processors draw nothing on {', '.join(idle)} (idle_w in the kind says it)"
        if not self.site.tells_hosts:
            yield "servers draw nothing but for their processors (host_w in the server says it)"

    def _refuse_unknown_kinds(self, wanted: Wanted) -> None:
        names = [kind.name for kind in self.site.kinds]
        for name in wanted.kinds:
            if name not in names:
                rule = f"is not a kind of the cluster{suggestion(name, names)}"
                raise InvalidInput(rule, field="kind", value=name)

    def _fitted(self, wanted: Wanted) -> tuple[int, float]:
        """An application of the library, perhaps on some of its kinds only."""
        if wanted.power_w is not None:
            rule = f"cannot be given for application '{wanted.application}', whose power is known"
            raise InvalidInput(rule, field="power_w", value=wanted.power_w)
        library = self.library
        place = self._known[wanted.application]
        allowed = wanted.kinds or tuple(kind.name for kind in self.site.kinds)
        places = {
            kind: (int(library.group[place, k]), int(library.row[place, k]))
            for k, kind in enumerate(library.kinds)
            if kind in allowed and library.group[place, k] >= 0
        }
        if not places:
            rule = f"has no profile for kind {', '.join(allowed)}; measure it there (downclock fit)"
            raise InvalidInput(rule, field="application", value=wanted.application)
        reference = wanted.kinds[0] if wanted.kinds else self.site.reference
        if reference not in places:
            self._elsewhere[wanted.application] = reference = next(iter(places))
        unit_s = self._unit_s(place, reference)
        return (self._add(wanted.name, places) if wanted.kinds else place), unit_s

    def _unit_s(self, place: int, kind: str) -> float:
        point = self.site.named(kind).kind.clocks.default[None, :]
        time_s, _ = self.library.at(np.array([place]), kind, point)
        if not np.isfinite(time_s[0]):
            name = self.library.names[place]
            rule = f"was not measured at the default clocks of {kind}: give scale instead of run"
            raise InvalidInput(rule, field="application", value=name)
        return float(time_s[0])

    def _typical(self, wanted: Wanted) -> tuple[int, float]:
        """An archetype on every kind where it is known how fast it is."""
        if wanted.application not in CLASSES:
            known = [str(name) for name in self.library.names]
            rule = "is not in the library"
            if not known:
                rule += " (the cluster names none: key 'applications')"
            rule += suggestion(wanted.application, [*known, *CLASSES])
            raise InvalidInput(rule, field="application", value=wanted.application)
        reference = wanted.kinds[0] if wanted.kinds else self.site.reference
        factor = self._power_factor(wanted, reference)
        places = {}
        for kind in wanted.kinds or [kind.name for kind in self.site.kinds]:
            speed = self.site.speed(kind, reference, wanted.application)
            typical = self._archetype(kind, wanted.application)
            power_w = self._watts(kind, wanted.application)
            if speed is not None and typical is not None and (power_w or kind == reference):
                power = factor * (power_w or 1.0) / (typical.power_w or 1.0)
                places[kind] = self._place(typical.model, typical.scaled(1.0 / speed, power))
        return self._add(wanted.name, places), 1.0

    def _power_factor(self, wanted: Wanted, reference: str) -> float:
        """What a job draws, in that of its archetype where its run time is of."""
        if self._archetype(reference, wanted.application) is None:
            card = self.site.named(reference).card
            rule = (
                f"cannot be planned on kind '{reference}': there are no measurements of"
                f" '{card}' to make it from. Measure some jobs of yours there (downclock fit), or"
                f" plan with the archetypes of another card: card = one of {', '.join(CARDS)}"
            )
            raise InvalidInput(rule, item=f"a {wanted.application} job")
        power_w = self._watts(reference, wanted.application)
        if wanted.power_w is None and power_w is None:
            rule = f"is needed: nobody measured what kind '{reference}' draws (or in the kind)"
            raise InvalidInput(rule, field="power_w")
        return 1.0 if wanted.power_w is None else wanted.power_w / (power_w or 1.0)

    def _archetype(self, kind: str, name: str) -> Archetype | None:
        """From what the library measured on the kind, else from its card."""
        if (kind, name) not in self._found:
            found = archetype(self.library, kind, name)
            card, law = self.site.named(kind).card, self.library.basis_of(kind).law
            if found is None and card in CARDS and card_basis(card).law == law:
                found = card_archetype(card, name)
            self._found[kind, name] = found
        return self._found[kind, name]

    def _watts(self, kind: str, name: str) -> float | None:
        """What an archetype draws at default clocks; None where nobody knows."""
        typical = self._archetype(kind, name)
        told = self.site.named(kind).power_w
        return told if told is not None or typical is None else typical.power_w

    def _place(self, model: type[Curved], parameters: tuple[float, ...]) -> tuple[int, int]:
        """Add one row to the group of its model and return where it is."""
        rows = self._rows.setdefault(model, [])
        rows.append(parameters)
        group = list(self._rows).index(model)
        return len(self.library.groups) + group, len(rows) - 1

    def _add(self, name: str, places: dict[str, tuple[int, int]]) -> int:
        self._names.append(name)
        self._places.append(places)
        return len(self.library) + len(self._names) - 1

    def _told(self, name: str) -> str:
        reference = self.site.reference
        typical, watts = self._archetype(reference, name), self._watts(reference, name)
        if typical is None:
            return name
        mine = [wanted for wanted in self._made if wanted.application == name]
        own = " or their own power_w" if any(each.power_w is not None for each in mine) else ""
        power = "" if watts is None else f", {watts:.0f} W{own}"
        cards = {kind.card for kind in self.site.kinds}
        where = reference if len(cards) > 1 else cards.pop()
        return (
            f"{name}, on {where} {100 * typical.core_share:.0f} % of the time follows the core"
            f" clock{power} (column application, or --archetype, says otherwise)"
        )

    def _speeds(self) -> list[str]:
        """Say how fast other kinds are taken to be, and which cannot be used at all."""
        site = self.site
        others = [kind.name for kind in site.kinds if kind.name != site.reference]
        known = {kind: self._speeds_of(kind) for kind in others}
        unknown = [kind for kind, words in known.items() if not words]
        lines = []
        if len(unknown) < len(others):
            told = "; ".join(f"{kind} {words}" for kind, words in known.items() if words)
            hint = "speed = ... in the kind says otherwise"
            lines.append(f"speed beside {site.reference}: {told} ({hint})")
        if unknown:
            hint = "state card, speed and power_w in the kind"
            lines.append(f"jobs without measurements do not run on {', '.join(unknown)}: {hint}")
        return lines

    def _speeds_of(self, kind: str) -> str:
        """The speed of a kind, for each archetype where they differ; empty: it cannot be used."""
        speeds = {}
        for name in self._jobs:
            speed = self.site.speed(kind, self.site.reference, name)
            known = (speed, self._archetype(kind, name), self._watts(kind, name))
            if None not in known:
                speeds[name] = f"{speed:.2g}"
        if len(set(speeds.values())) < 2:
            return next(iter(speeds.values()), "")
        return ", ".join(f"{speed} {name}" for name, speed in speeds.items())
