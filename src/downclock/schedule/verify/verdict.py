"""What `verify` answers: the broken rules, one by one, and how many there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from downclock.columns import html_table
from downclock.units import Ints

SHOWN = 20
"""Violations printed by `str` before the rest is only counted."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: its slug, a sentence, and the task, processor or server at fault."""

    rule: str
    message: str
    task: int | None = None
    processor: int | None = None
    server: int | None = None

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """What one rule found: the offending rows of its table, and how to put one into words."""

    rule: str
    rows: Ints
    say: Callable[[int], Violation]

    def violations(self, most: int | None) -> tuple[Violation, ...]:
        """Put the first ``most`` rows (None: all) into words."""
        return tuple(self.say(int(row)) for row in self.rows[:most])


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of a schedule.

    Attributes:
        violations: the broken rules, at most a given number of each.
        counts: (rule, how often it is broken) for every broken rule, nothing left out.
        checked: rows judged: tasks, segments and power spans.
    """

    violations: tuple[Violation, ...]
    counts: tuple[tuple[str, int], ...]
    checked: int

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return not self.counts

    @property
    def total(self) -> int:
        """Number of violations, listed or not."""
        return sum(count for _, count in self.counts)

    @property
    def rules(self) -> frozenset[str]:
        """Slugs of the broken rules."""
        return frozenset(rule for rule, _ in self.counts)

    def __str__(self) -> str:
        if self.ok:
            return f"valid: {self.checked} rows checked"
        lines = [self._headline(), *(f"  {violation}" for violation in self.violations[:SHOWN])]
        more = self.total - len(lines) + 1
        return "\n".join([*lines, f"  and {more} more"] if more > 0 else lines)

    def _repr_html_(self) -> str:
        if self.ok:
            return f"<p>{escape(str(self))}</p>"
        rows = [(v.rule, v.message) for v in self.violations[:SHOWN]]
        return f"<p>{escape(self._headline())}</p>" + html_table(rows, ("rule", "what is wrong"))

    def _headline(self) -> str:
        often: dict[str, int] = {}
        for rule, count in self.counts:
            often[rule] = often.get(rule, 0) + count
        by_rule = ", ".join(f"{rule} {count}" for rule, count in often.items())
        noun = "violation" if self.total == 1 else "violations"
        return f"invalid: {self.total} {noun} in {self.checked} rows ({by_rule})"
