"""Names of nodes as Slurm lists them: ``gpu[1-3,07],login``."""

from __future__ import annotations

import re
from itertools import product

MOST_NODES = 100_000
"""More nodes in one list are taken for a mistake."""

_PART = re.compile(r"(?:\[[^\]]*\]|[^,])+")
_PIECE = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


def hosts_of(text: str) -> list[str]:
    """Return every node of a list; a part of it that is no list is one name.

    >>> hosts_of("gpu[1-2,07],login")
    ['gpu1', 'gpu2', 'gpu07', 'login']
    """
    return [name for part in _PART.findall(text) for name in _expanded(part)]


def _expanded(part: str) -> list[str]:
    pieces = _PIECE.split(part)  # what is between brackets has odd places
    choices, count = [], 1
    for k, piece in enumerate(pieces):
        found = _numbers(piece) if k % 2 else [piece]
        count *= len(found)
        if not 0 < count <= MOST_NODES:
            return [part]
        choices.append(found)
    return ["".join(each) for each in product(*choices)]


def _numbers(text: str) -> list[str]:
    """Numbers of ``1-3,07``, with the zeros that the first of a range has; none of another text."""
    found: list[str] = []
    for piece in text.split(","):
        match = _RANGE.fullmatch(piece)
        if match is None:
            return []
        low, last = match[1], int(match[2] or match[1])
        if last - int(low) > MOST_NODES:
            return []
        found += [f"{number:0{len(low)}d}" for number in range(int(low), last + 1)]
    return found
