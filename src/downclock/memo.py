"""What was computed from a frozen object, kept beside it: each answer is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from downclock.errors import InvalidInput

T = TypeVar("T")


class Memo:
    """Answers by question. No part of the object: neither copied, compared nor pickled with it."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Any, InvalidInput | None]] = {}

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Compute an answer the first time it is asked; a refusal is an answer, too."""
        if key not in self._known:
            try:
                self._known[key] = compute(), None
            except InvalidInput as error:
                self._known[key] = None, error
        answer, refusal = self._known[key]
        if refusal is not None:
            raise refusal.with_traceback(None)
        known: T = answer
        return known

    def __reduce__(self) -> tuple[type[Memo], tuple[()]]:
        return Memo, ()
