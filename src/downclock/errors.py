"""The few errors Downclock raises on purpose. Each says what, where and which rule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SEARCHED = 5_000
"""Among more words than this we do not look for the one that was meant: it would take long."""


class DownclockError(Exception):
    """Base of every deliberate error; the command line prints it as one line."""


class InvalidInput(DownclockError):
    """Something the user gave breaks a rule.

    Reads like ``jobs.csv line 7, task 't7': deadline_s=3.0 is before arrival_s=5.0``.

    Args:
        rule: what is wrong, as the end of a sentence ("is before arrival_s=5.0").
        item: the object at fault ("task 't7'").
        field: the field at fault, printed as ``field=value``.
        value: its value.
        row: position in its table, so that a reader can add the line number.
        source: the file.
        line: the line in that file, counted from 1.
    """

    def __init__(
        self,
        rule: str,
        *,
        item: str | None = None,
        field: str | None = None,
        value: Any = ...,
        row: int | None = None,
        source: str | Path | None = None,
        line: int | None = None,
    ) -> None:
        self.rule, self.item, self.field, self.value = rule, item, field, value
        self.row, self.source, self.line = row, source, line
        super().__init__(self._sentence())

    def located(
        self, source: str | Path, line: int | None = None, *, item: str | None = None
    ) -> InvalidInput:
        """Return the same complaint with the file, line and object it lacks."""
        item = item if self.item is None else self.item
        source = source if self.source is None else self.source
        line = line if self.line is None else self.line
        what = {"field": self.field, "value": self.value, "row": self.row}
        return InvalidInput(self.rule, item=item, source=source, line=line, **what)

    def _sentence(self) -> str:
        where = "" if self.source is None else _one_line(str(self.source), 800)
        if self.line is not None:
            where += f" line {self.line}"
        item = None if self.item is None else _one_line(self.item)
        places = [place for place in (where, item) if place]
        what = "" if self.field is None else self.field
        if self.value is not ...:
            what += f"={_short(self.value)}" if what else _short(self.value)
        sentence = _one_line(f"{what} {self.rule}" if what else self.rule, 800)
        return f"{', '.join(places)}: {sentence}" if places else sentence


class InvalidSchedule(DownclockError):
    """A schedule breaks a rule; raised where a valid one is required."""


class AdapterError(DownclockError):
    """Something outside (a device, a cluster) refused what it was asked, or is not there."""


class MissingExtra(DownclockError):
    """An optional package is needed for this."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        hint = f"pip install 'downclock[{extra}]'"
        super().__init__(f"{purpose} needs the package '{package}': {hint}")


def require_type(
    value: Any, kinds: type | tuple[type, ...], wanted: str, *, field: str, item: str | None = None
) -> None:
    """Refuse a value of another type than asked for, such as ``clocks=[0.5, 1.0]``.

    Args:
        value: what was given.
        kinds: the types that are fine.
        wanted: what should be there, as people say it ("a ClockRange or a ClockTable").
        field: its name.
        item: the object it is a part of.
    """
    if not isinstance(value, kinds):
        rule = f"must be {wanted}, not {type(value).__name__}"
        raise InvalidInput(rule, item=item, field=field, value=value)


def require_text(field: str, value: str, *, item: str | None = None) -> None:
    """Refuse a text of nothing but blanks where there must be one."""
    require_type(value, str, "text", field=field, item=item)
    if not value.strip():
        raise InvalidInput("must not be empty", item=item, field=field, value=value)


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return the end of a complaint about an unknown word: the one meant, or all there are."""
    if len(known) > _SEARCHED:
        return ""
    from difflib import get_close_matches

    near = get_close_matches(word[:80], known, n=1)
    if near:
        return f"; did you mean '{near[0]}'?"
    shown = ", ".join(sorted(known)[:30])
    return f"; there are: {shown}{', ...' if len(known) > 30 else ''}"


def _one_line(text: str, longest: int = 120) -> str:
    """Names come from files: they may hold line breaks or go on for ever."""
    text = text if text.isprintable() else " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."
