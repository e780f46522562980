"""Tasks: what must be run, when it may start and when it must be done. Columnar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from downclock.columns import Columns
from downclock.errors import InvalidInput
from downclock.power.library import Library
from downclock.problem.spread import Spread
from downclock.quantities import MOST, refuse_rows
from downclock.units import Bools, Floats, Ints, Names, as_column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tasks(Columns):
    """A table of tasks; every field has shape (n,).

    Attributes:
        name: unique names.
        application: index into the problem's library.
        scale: units of work; multiplies the profile's run time. 0 is allowed (a milestone).
        arrival_s: earliest start.
        deadline_s: latest end; infinite where there is none.
        processors: how many processors of one kind run it together (a gang when > 1).
        spread: distribution of actual / estimated work, or None where estimates are exact.
    """

    name: Names
    application: Ints
    scale: Floats
    arrival_s: Floats
    deadline_s: Floats
    processors: Ints
    spread: Spread | None = None

    def __post_init__(self) -> None:
        for field in ("application", "processors"):
            object.__setattr__(self, field, as_column(getattr(self, field), np.int64))
        for field in ("scale", "arrival_s", "deadline_s"):
            object.__setattr__(self, field, as_column(getattr(self, field), np.float64))
        object.__setattr__(self, "name", np.asarray(self.name, dtype=object))
        self._check()

    def __repr__(self) -> str:
        last = np.max(self.deadline_s[np.isfinite(self.deadline_s)], initial=-np.inf)
        deadline = f"last deadline {last:g} s" if np.isfinite(last) else "no deadlines"
        return f"Tasks: {len(self)}, last arrival {self.arrival_s.max():g} s, {deadline}"

    def __len__(self) -> int:
        return self.name.size

    @classmethod
    def of(
        cls,
        application: Ints | Sequence[int] | Sequence[str],
        *,
        deadline_s: Floats | Sequence[float] | float,
        library: Library | None = None,
        arrival_s: Floats | Sequence[float] | float = 0.0,
        scale: Floats | Sequence[float] | float = 1.0,
        processors: Ints | Sequence[int] | int = 1,
        name: Names | Sequence[str] | None = None,
    ) -> Tasks:
        """Make a table from what usually differs; names default to ``t0, t1, ...``.

        Applications are rows of the library, or names of it where the library is given.
        """
        named = [each for each in application if isinstance(each, str)]
        if named and library is None:
            rule = "must be a row, or a name where library= says of which library"
            raise InvalidInput(rule, item="tasks", field="application", value=named[0])
        rows = library.rows_of(named) if named and library is not None else application
        n = len(application)
        names = [f"t{i}" for i in range(n)] if name is None else name
        column = np.ones(n)
        return cls(
            np.asarray(names, dtype=object),
            np.asarray(rows, dtype=np.int64),
            column * np.asarray(scale),
            column * np.asarray(arrival_s),
            column * np.asarray(deadline_s),
            np.ones(n, dtype=np.int64) * np.asarray(processors),
        )

    def _check(self) -> None:
        """Refuse what no schedule could mean; the first bad row is named."""
        if len(self) == 0:
            raise InvalidInput("there are no tasks")
        columns = ("application", "scale", "arrival_s", "deadline_s", "processors")
        sizes = {field: getattr(self, field).size for field in columns}
        if self.spread is not None:
            sizes["spread"] = self.spread.shape.size
        for field, size in sizes.items():
            if size != len(self):
                rule = f"has {size} rows for {len(self)} tasks"
                raise InvalidInput(rule, item="tasks", field=field)
        finite = np.isfinite
        near = (self.deadline_s <= MOST["s"]) | ~finite(self.deadline_s)
        rules: list[tuple[str, Bools, str]] = [
            ("scale", finite(self.scale) & (self.scale >= 0), "must be finite and not negative"),
            ("arrival_s", finite(self.arrival_s), "must be finite"),
            ("arrival_s", self.arrival_s >= 0.0, "must not be negative"),
            ("arrival_s", self.arrival_s <= MOST["s"], f"must be at most {MOST['s']:g} s"),
            ("deadline_s", ~np.isnan(self.deadline_s), "must be a number"),
            ("deadline_s", near, f"means later than {MOST['s']:g} s; empty where there is none"),
            ("processors", self.processors >= 1, "must be at least 1"),
        ]
        for field, good, rule in rules:
            self.refuse(~good, rule, field)
        late = self.deadline_s < self.arrival_s
        self.refuse(late, lambda row: f"is before arrival_s={self.arrival_s[row]}", "deadline_s")
        if len(set(self.name)) < len(self):
            first: dict[str, int] = {}
            earlier = np.array([first.setdefault(name, row) for row, name in enumerate(self.name)])
            again = earlier < np.arange(len(self))
            self.refuse(again, lambda row: f"is already the name of row {earlier[row] + 1}", "name")

    def refuse(self, bad: Bools, rule: str | Callable[[int], str], field: str) -> None:
        """Refuse tasks (n,) for a field of theirs; the first one is named."""
        values = getattr(self, field)
        refuse_rows(
            bad, rule, field=field, values=values, item=lambda row: f"task '{self.name[row]}'"
        )
