"""JSON and TOML documents: strict reading, and complaints that name file, line, object and key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from downclock.errors import InvalidInput, suggestion
from downclock.files import parsed_json, read_text

Place: TypeAlias = tuple[str | int, ...]
"""Keys and list positions that lead from the top of a document to a value."""

_ABSENT: Any = object()


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A parsed file: plain dicts, lists, strings and numbers.

    Attributes:
        source: the file, for complaints.
        data: its content.
        find_line: returns the line of the value at a place; None where it cannot be told.
    """

    source: str | Path
    data: Any
    find_line: Callable[[Place], int | None] = lambda place: None

    def complaint(
        self,
        rule: str,
        place: Place = (),
        *,
        item: str | None = None,
        value: Any = ...,
        whole: bool = False,
    ) -> InvalidInput:
        """Return the error for a value; its last key is the field, unless it is about the whole."""
        field = place[-1] if place and isinstance(place[-1], str) and not whole else None
        line = self.find_line(place)
        return InvalidInput(
            rule, item=item, field=field, value=value, source=self.source, line=line
        )

    def fields(self, item: str | None, known: Sequence[str]) -> Fields:
        """Return the keys of the document; see `Fields`."""
        return Fields(self, self.data, item, known)


def read_json(path: str | Path) -> Document:
    """Read a JSON file; a key given twice is refused."""
    text = read_text(path)
    return Document(path, parsed_json(text, path), partial(_json_line, text))


def read_toml(path: str | Path) -> Document:
    """Read a TOML file."""
    import tomllib

    text = read_text(path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r" \(at line (\d+), (column \d+)\)$", str(error))
        what = str(error)[: at.start()] + f" ({at[2]})" if at else str(error)
        line = int(at[1]) if at else text.count("\n") + 1
        raise InvalidInput(f"is not TOML: {what}", source=path, line=line) from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is not TOML we can read: {error}", source=path) from None
    return Document(path, data, partial(_toml_line, text))


class Fields:
    """The keys of one table of a document, each asked for by name and type.

    Args:
        document: where it stands.
        data: the table; anything else is refused.
        item: what it describes, for complaints ("kind 'gpu'").
        known: every key it may have; another is refused, with the one probably meant. None: see
            `only`.
        place: where in the document it stands.
    """

    def __init__(
        self,
        document: Document,
        data: Any,
        item: str | None,
        known: Sequence[str] | None,
        place: Place = (),
    ) -> None:
        self.document, self.place, self.item = document, place, item
        if not isinstance(data, dict):
            raise document.complaint("must be a table of keys and values", place, item=item)
        self._data: Mapping[str, Any] = data
        if known is not None:
            self.only(known)

    def __contains__(self, key: str) -> bool:
        return self._data.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._data if key in self)

    def only(self, known: Sequence[str]) -> None:
        """Refuse keys that are not known."""
        for key in self._data:
            if key not in known:
                rule = f"is not a known key{suggestion(key, known)}"
                raise self.document.complaint(rule, (*self.place, key), item=self.item)

    def complaint(self, rule: str, key: str, value: Any = _ABSENT) -> InvalidInput:
        """Return the error for one key."""
        shown = self._data.get(key, ...) if value is _ABSENT else value
        return self.document.complaint(rule, (*self.place, key), item=self.item, value=shown)

    def whole_complaint(self, rule: str) -> InvalidInput:
        """Return an error that is about no single key."""
        return self.document.complaint(rule, self.place, item=self.item, whole=True)

    def raw(self, key: str, default: Any = _ABSENT) -> Any:
        """Return a value of any type; null counts as absent."""
        value = self._data.get(key)
        if value is not None:
            return value
        if default is _ABSENT:
            raise self.document.complaint(
                f"needs the key '{key}'", self.place, item=self.item or "the file", whole=True
            )
        return default

    def text(self, key: str, default: Any = _ABSENT) -> Any:
        """Return a string."""
        return self._typed(key, default, str, "must be text")

    def flag(self, key: str, default: Any = _ABSENT) -> Any:
        """Return true or false."""
        return self._typed(key, default, bool, "must be true or false")

    def number(self, key: str, default: Any = _ABSENT) -> Any:
        """Return a float."""
        value = self.raw(key, default)
        return value if key not in self else self.as_float(key, value)

    def numbers(self, key: str, length: int | None = None) -> list[float]:
        """Return a list of floats, of a given length if any."""
        values = self._typed(key, _ABSENT, list, "must be a list of numbers")
        if length is not None and len(values) != length:
            raise self.complaint(f"must be a list of {length} numbers", key)
        return [self.as_float(key, value) for value in values]

    def integer(self, key: str, default: Any = _ABSENT) -> Any:
        """Return a whole number."""
        value = self.raw(key, default)
        if key in self and (isinstance(value, bool) or not isinstance(value, int)):
            raise self.complaint("must be a whole number", key)
        return value

    def choice(self, key: str, choices: Sequence[str], default: Any = _ABSENT) -> Any:
        """Return one of a few words."""
        value = self.raw(key, default)
        if key in self and value not in choices:
            raise self.complaint(f"must be one of {', '.join(choices)}", key)
        return value

    def table(self, key: str, item: str | None, known: Sequence[str]) -> Fields:
        """Return a table inside this one; an absent one is empty."""
        return Fields(self.document, self.raw(key, {}), item, known, (*self.place, key))

    def tables(self, key: str, known: Sequence[str], noun: str | None = None) -> list[Fields]:
        """Return a list of tables; each is called by its name, or by its place from 1."""
        noun = key if noun is None else noun
        rows = self._typed(key, _ABSENT, list, "must be a list of tables")
        return [
            Fields(self.document, row, _called(noun, row, k), known, (*self.place, key, k))
            for k, row in enumerate(rows)
        ]

    def named(self, key: str, noun: str, known: Sequence[str] | None) -> dict[str, Fields]:
        """Return tables by their names, those of a table inside this one; none where it is absent.

        Each is called by the noun and its name.
        """
        tables = self._typed(key, {}, dict, "must be a table of keys and values")
        return {
            name: Fields(self.document, data, f"{noun} '{name}'", known, (*self.place, key, name))
            for name, data in tables.items()
        }

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Give complaints raised inside the file, line and object they are about."""
        try:
            yield
        except InvalidInput as error:
            if error.source is not None:
                raise
            place = self.place
            if error.field is not None and error.field in self._data:
                place = (*place, error.field)
            line = self.document.find_line(place)
            raise error.located(self.document.source, line, item=self.item) from None

    def _typed(self, key: str, default: Any, kind: type, rule: str) -> Any:
        value = self.raw(key, default)
        if key in self and not isinstance(value, kind):
            raise self.complaint(rule, key)
        return value

    def as_float(self, key: str, value: Any) -> float:
        """Return a value that belongs to ``key`` as a float; true and false are none."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                return float(value)
            except OverflowError:
                pass
        raise self.complaint("must be a number", key, value)


def _called(noun: str, row: Any, k: int) -> str:
    name = row.get("name") if isinstance(row, dict) else None
    return f"{noun} '{name}'" if isinstance(name, str) else f"{noun} {k + 1}"


def _json_line(text: str, place: Place) -> int | None:
    """Return the line where the value at ``place`` starts, by walking there."""
    at = _skip(text, 0)
    for step in place:
        if (found := _child(text, at, step)) is None:
            break
        at = found
    return text.count("\n", 0, at) + 1


def _child(text: str, at: int, step: str | int) -> int | None:
    """Return where the value of a key or list position starts, in the object or list at ``at``."""
    decoder = json.JSONDecoder()
    at, position = _skip(text, at + 1), 0
    while text[at] not in "]}":
        key: str | int = position
        if isinstance(step, str):
            key, at = decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        if key == step:
            return at
        at = _skip(text, decoder.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _skip(text, at + 1)
        position += 1
    return None


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\n\r":
        at += 1
    return at


def _toml_line(text: str, place: Place) -> int | None:
    """Return the line of a key, or of the header of the table it belongs in.

    Headers are matched as they are usually written (``[a.b]``, ``[[a]]``); where that fails the
    line is not known.
    """
    lines = text.split("\n")
    keys = [step for step in place if isinstance(step, str)]
    nth = next((step for step in place if isinstance(step, int)), 0)
    for depth in range(len(keys), -1, -1):
        start = _header_line(lines, keys[:depth], nth)
        if start is not None:
            header = start + 1 if depth else None
            inside = _key_line(lines, header or 0, keys[depth]) if depth < len(keys) else None
            return inside or header
    return None


def _header_line(lines: list[str], keys: list[str], nth: int) -> int | None:
    if not keys:
        return 0
    name = r"\s*\.\s*".join(rf"\"?{re.escape(key)}\"?" for key in keys)
    single, repeated = re.compile(rf"\s*\[\s*{name}\s*\]"), re.compile(rf"\s*\[\[\s*{name}\s*\]\]")
    seen = 0
    for k, line in enumerate(lines):
        if single.match(line):
            return k
        if repeated.match(line):
            if seen == nth:
                return k
            seen += 1
    return None


def _key_line(lines: list[str], start: int, key: str) -> int | None:
    pattern = re.compile(rf"\s*\"?{re.escape(key)}\"?\s*[=.]")
    for k in range(start, len(lines)):
        if lines[k].lstrip().startswith("["):
            return None
        if pattern.match(lines[k]):
            return k + 1
    return None
