"""A bill: what a schedule costs in joules, money and CO2, by part, server and task."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, TypeAlias

from downclock.columns import html_table
from downclock.quantities import energy, money, prefixed
from downclock.units import Floats, Names, slack

Boundary: TypeAlias = Literal["last-task", "makespan"] | float
"""Where the energy window of a server ends: its last task, the makespan, or a fixed second."""

PARTS = ("run", "shared", "idle", "host", "sleep", "wake")
"""Parts of a bill, in the order of the columns of the tables."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bill:
    """What a schedule costs. Tables (servers, 6) have a column per part, see `PARTS`.

    Attributes:
        server_j: energy by server and part.
        task_j: run energy of each task (tasks,), all attempts.
        server_money, task_money: the same in ``currency`` at actual prices; None where no zone
            has a price. Zones without one (``unpriced``) count 0.
        money_clipped: total money if negative prices were 0.
        server_carbon_kg, task_carbon_kg: the same in kilograms of CO2; zones without an
            intensity (``uncounted``) count 0.
        waste_j: run energy after a task's work was done, in its last slot.
        wakes: how many times a server was woken.
        servers_used: servers that ran anything.
        makespan_s: end of the last segment.
        boundary: where the windows end.
        server_name, task_name: names of the rows.
    """

    server_j: Floats
    task_j: Floats
    server_money: Floats | None
    task_money: Floats | None
    money_clipped: float | None
    server_carbon_kg: Floats | None
    task_carbon_kg: Floats | None
    waste_j: float
    wakes: int
    servers_used: int
    makespan_s: float
    boundary: Boundary
    currency: str
    server_name: Names
    task_name: Names
    unpriced: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()

    @property
    def was_paid(self) -> bool:
        """Tell whether negative prices change what is to be paid."""
        if self.money is None or self.money_clipped is None:
            return False
        return not math.isclose(self.money, self.money_clipped, rel_tol=1e-9)

    @property
    def energy_j(self) -> dict[str, float]:
        """Energy by part."""
        return _by_part(self.server_j)

    @property
    def total_j(self) -> float:
        """All energy."""
        return math.fsum(self.energy_j.values())

    @property
    def money_by_part(self) -> dict[str, float] | None:
        """Money by part; None where no zone has a price."""
        return None if self.server_money is None else _by_part(self.server_money)

    @property
    def money(self) -> float | None:
        """All money at actual prices; None where no zone has a price."""
        return None if self.server_money is None else math.fsum(self.server_money.sum(axis=0))

    @property
    def carbon_by_part_kg(self) -> dict[str, float] | None:
        """CO2 by part; None where no zone has an intensity."""
        return None if self.server_carbon_kg is None else _by_part(self.server_carbon_kg)

    @property
    def carbon_kg(self) -> float | None:
        """All CO2; None where no zone has an intensity."""
        table = self.server_carbon_kg
        return None if table is None else math.fsum(table.sum(axis=0))

    def as_dict(self, *, details: bool = False) -> dict[str, Any]:
        """Plain values for JSON; ``details`` adds a row per server and per task."""
        plain: dict[str, Any] = {
            "boundary": self.boundary,
            "energy_j": self.energy_j,
            "total_j": self.total_j,
            "money": self.money,
            "money_by_part": self.money_by_part,
            "money_clipped": self.money_clipped,
            "currency": None if self.money is None else self.currency,
            "carbon_kg": self.carbon_kg,
            "carbon_by_part_kg": self.carbon_by_part_kg,
            "waste_j": self.waste_j,
            "wakes": self.wakes,
            "servers_used": self.servers_used,
            "makespan_s": self.makespan_s,
            "zones_without_price": list(self.unpriced),
            "zones_without_carbon": list(self.uncounted),
        }
        if details:
            plain["servers"] = self._server_rows()
            plain["tasks"] = self._task_rows()
        return plain

    def _server_rows(self) -> list[dict[str, Any]]:
        money, carbon = self.server_money, self.server_carbon_kg
        return [
            {
                "server": name,
                "energy_j": dict(zip(PARTS, parts.tolist(), strict=True)),
                "total_j": float(parts.sum()),
                "money": None if money is None else float(money[row].sum()),
                "carbon_kg": None if carbon is None else float(carbon[row].sum()),
            }
            for row, (name, parts) in enumerate(zip(self.server_name, self.server_j, strict=True))
        ]

    def _task_rows(self) -> list[dict[str, Any]]:
        money, carbon = self.task_money, self.task_carbon_kg
        return [
            {
                "task": name,
                "run_j": float(joules),
                "money": None if money is None else float(money[row]),
                "carbon_kg": None if carbon is None else float(carbon[row]),
            }
            for row, (name, joules) in enumerate(zip(self.task_name, self.task_j, strict=True))
        ]

    def __str__(self) -> str:
        rows = self._table()
        width = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = []
        for row in rows:
            cells = map(str.rjust, row[1:], width[1:])
            lines.append("  ".join([row[0].ljust(width[0]), *cells]).rstrip())
        return "\n".join([self._title(), *lines, *self._notes()])

    def _repr_html_(self) -> str:
        head, *body = self._table()
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return html_table(body, head, self._title()) + notes

    def __repr__(self) -> str:
        sums = [energy(self.total_j)]
        sums += [] if self.money is None else [self._money(self.money)]
        sums += [] if self.carbon_kg is None else [prefixed(1000.0 * self.carbon_kg, "g CO2")]
        return f"Bill({', '.join(sums)}, until {self._end()})"

    def _money(self, value: float) -> str:
        return money(value, self.currency)

    def _title(self) -> str:
        return f"Bill until {self._end()}"

    def _end(self) -> str:
        words = {"last-task": "each server's last task", "makespan": "the makespan"}
        return words[self.boundary] if isinstance(self.boundary, str) else f"{self.boundary:g} s"

    def _table(self) -> list[list[str]]:
        """Rows of text: a head, the parts, the total."""
        parts, total = self.energy_j, self.total_j
        rows = [["part", "energy", "share"], *([part] for part in PARTS), ["total"]]
        for row, joules in zip(rows[1:], [*parts.values(), total], strict=True):
            share = 100.0 * joules / total if total else 0.0
            row += [energy(joules), f"{share:.1f} %"]
        if self.money_by_part is not None and self.money is not None:
            amounts = [*self.money_by_part.values(), self.money]
            _add_column(rows, "money", [self._money(value) for value in amounts])
        if self.carbon_by_part_kg is not None and self.carbon_kg is not None:
            carbon = [*self.carbon_by_part_kg.values(), self.carbon_kg]
            _add_column(rows, "CO2", [prefixed(1000.0 * value, "g") for value in carbon])
        return rows

    def _notes(self) -> list[str]:
        notes = [
            f"servers used: {self.servers_used} of {self.server_name.size}, wakes: {self.wakes},"
            f" makespan: {self.makespan_s:.6g} s"
        ]
        if self.waste_j > 0.0:
            notes.append(f"wasted in last slots: {energy(self.waste_j)} of the run energy")
        clipped = self.money_clipped
        if self.money is not None and clipped is not None and clipped - self.money > slack(clipped):
            notes.append(f"without negative prices: {self._money(clipped)}")
        if self.unpriced:
            notes.append(f"zones without a price, counted as 0: {', '.join(self.unpriced)}")
        if self.uncounted:
            notes.append(
                f"zones without a CO2 intensity, counted as 0: {', '.join(self.uncounted)}"
            )
        return notes


def _by_part(table: Floats) -> dict[str, float]:
    return dict(zip(PARTS, table.sum(axis=0).tolist(), strict=True))


def _add_column(rows: list[list[str]], title: str, cells: list[str]) -> None:
    for row, cell in zip(rows, [title, *cells], strict=True):
        row.append(cell)
