"""Jobs of JSON documents, one after the other: memory holds one of them, never the file.

A trace in JSON is an object with a list ``jobs``; several of them in one file are read one after
the other. A job that is no JSON is counted and the next one read, as far as brackets tell where it
ends; a file that is cut gives the jobs before the cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecodeError
from pathlib import Path
from typing import Any, TextIO

from downclock.errors import InvalidInput
from downclock.files import JSON
from downclock.workloads.traces.ledger import Ledger
from downclock.workloads.traces.rows import opened

AT_ONCE = 1 << 18
"""Letters read at once; as many as are held where these are more."""

LARGEST = 1 << 28
"""Letters of a value; where none ends for longer, the file is damaged."""

_LETTER = re.compile(r"[^ \t\n\r]")
_MARK = re.compile(r'"(?:[^"\\\n]|\\[^\n])*+\\?(?:"|\n|\Z)|[][{},]')
"""A text, up to the end of its line where nobody closes it; or what begins, parts, ends values."""

_BEGINS = {"]": "[", "}": "{"}


def json_jobs(path: str | Path, ledger: Ledger) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the jobs of a file, numbered; what is no object is malformed, as is what is cut.

    Raises:
        InvalidInput: there is no list of jobs.
    """
    number, listed = 0, False
    with opened(path) as (stream, raw):
        text = JsonText(stream)
        for name in text.members():
            if name != "jobs" or text.next() != "[":
                continue
            listed = True
            for entry in text.elements():
                number += 1
                if isinstance(entry, dict):
                    yield number, entry
                elif isinstance(entry, InvalidInput):
                    ledger.malformed(number, str(entry))
                else:
                    ledger.malformed(number, "is no object", value=entry)
    fault = raw.fault or text.fault
    if not listed:
        rule = fault or "is no trace we know: it has no list 'jobs'"
        raise InvalidInput(rule, source=path)
    if fault:
        ledger.malformed(number + 1, f"the file is cut or damaged here: {fault}", always=True)


class JsonText:
    """JSON that is read from its beginning to its end, a value at a time.

    Attributes:
        fault: why it could not be read to its end; empty as long as it can.
    """

    def __init__(self, stream: TextIO) -> None:
        self.fault = ""
        self._stream, self._text, self._at, self._ended = stream, "", 0, False
        self._letters, self._lines = 0, 1  # before what is held

    def next(self) -> str:
        """Return the next letter that is no blank, and stay before it; empty at the end."""
        while not (found := _LETTER.search(self._text, self._at)):
            self._at = len(self._text)
            if not self._more():
                return ""
        self._at = found.start()
        return found[0]

    def members(self) -> Iterator[str]:
        """Yield the names of an object's members, and of objects behind it.

        Their values are next then; those that are not read are passed over.
        """
        try:
            while letter := self.next():
                if letter in "{},":
                    self._at += 1
                    continue
                name = self.value()
                if not isinstance(name, str) or self.next() != ":":
                    line = self._lines + self._text.count("\n", 0, self._at)
                    raise InvalidInput(f"is no JSON object (line {line})")
                self._at += 1
                self.next()
                here = self._letters + self._at
                yield name
                if self._letters + self._at == here:
                    self._pass_over()
        except InvalidInput as error:
            self.fault = str(error)

    def _pass_over(self) -> None:
        if self.next() != "[":
            self.value()
        for _ in self.elements():
            pass

    def elements(self) -> Iterator[Any]:
        """Yield the elements of the list that is next; one that is no JSON as a complaint."""
        if self.next() != "[":
            return
        self._at += 1
        while self.next() not in ("]", ""):
            try:
                found = self.value()
            except InvalidInput as error:
                found = error
            if not self.next() and isinstance(found, InvalidInput):
                break
            yield found
            if self.next() == ",":
                self._at += 1
        if self.next():
            self._at += 1
        else:
            self.fault = "it ends within a list"

    def value(self) -> Any:
        """Return the value that is next, and go behind it.

        Raises:
            InvalidInput: it is no JSON; behind it is as far as brackets tell.
        """
        self.next()
        while True:
            found, end = self._decoded()
            if end < len(self._text) or not self._more():
                break
        self._at = end
        if isinstance(found, InvalidInput):
            raise found
        return found

    def _decoded(self) -> tuple[Any, int]:
        """The value that is next, or what is wrong with it, and where it ends in what is held."""
        try:
            return JSON.raw_decode(self._text, self._at)
        except JSONDecodeError as error:
            rule = f"is not JSON: {error.msg} (line {self._lines - 1 + error.lineno})"
            return InvalidInput(rule), self._end()
        except InvalidInput as error:
            return error, self._end()
        except (ValueError, RecursionError) as error:
            return InvalidInput(f"is not JSON we can read: {error}"), self._end()

    def _end(self) -> int:
        """Where a value that is no JSON ends by its brackets; all that is held where none tells."""
        begun: list[str] = []
        for mark in _MARK.finditer(self._text, self._at):
            letter = mark[0]
            if letter in _BEGINS.values():
                begun.append(letter)
            elif not begun and letter[0] != '"':  # of the list or object around it
                return max(mark.start(), self._at + 1)
            elif _BEGINS.get(letter) in begun:
                while begun.pop() != _BEGINS[letter]:
                    pass
                if not begun:
                    return mark.end()
        return len(self._text)

    def _more(self) -> bool:
        """Read on, and forget what is behind; False at the end."""
        held = len(self._text) - self._at
        fresh = "" if self._ended or held > LARGEST else self._stream.read(max(AT_ONCE, held))
        self._ended = not fresh
        if fresh:
            self._letters += self._at
            self._lines += self._text.count("\n", 0, self._at)
            self._text, self._at = self._text[self._at :] + fresh, 0
        return bool(fresh)
