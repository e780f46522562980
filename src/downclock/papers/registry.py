"""Which papers there are, and what of them can be run. A paper is imported when it is asked for."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from downclock.errors import InvalidInput
from downclock.papers.rows import Item

NAMES = ("mei2021", "mei2017", "gerards", "gerhards", "liu")
"""The papers in the order people need them."""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper: its short name, one line about it, and what can be run by name."""

    name: str
    about: str
    items: dict[str, Item]


def items_of(package: str, *modules: str) -> dict[str, Item]:
    """Return what can be run of a paper, by name, from its modules in their order."""
    parts: list[Any] = [importlib.import_module(f"{package}.{module}") for module in modules]
    return {item.name: item for part in parts for item in part.ITEMS}


@cache
def papers() -> dict[str, Paper]:
    """Every paper, by name."""
    return {name: _paper(name) for name in NAMES}


def paper(name: str) -> Paper:
    """Return one paper; refuse a name that is none."""
    found = papers().get(name)
    if found is None:
        raise InvalidInput(
            f"is no paper; the papers are {', '.join(papers())}", field="paper", value=name
        )
    return found


def _paper(name: str) -> Paper:
    module: Any = importlib.import_module(f"{__package__}.{name}")
    first = str(module.__doc__).strip().splitlines()[0]
    return Paper(name, first.removeprefix(f"{name}: ").rstrip("."), module.items())


def chosen(
    source: Paper, *, figures: tuple[str, ...], tables: tuple[str, ...], names: tuple[str, ...]
) -> list[Item]:
    """Return the items asked for, in the paper's order; all where nothing is asked for.

    Figure 8 is ``fig8`` and every ``fig8-...``; table 1 likewise.
    """
    if not (figures or tables or names):
        return list(source.items.values())
    wanted: list[str] = []
    for kind, given in (("fig", figures), ("table", tables), ("", names)):
        for one in given:
            wanted += _named(source, f"{kind}{one}")
    return [item for name, item in source.items.items() if name in wanted]


def _named(source: Paper, name: str) -> list[str]:
    found = [each for each in source.items if re.fullmatch(re.escape(name) + r"(-.*)?", each)]
    if not found:
        rule = f"is nothing that can be run; there are {', '.join(source.items)}"
        raise InvalidInput(rule, item=f"paper '{source.name}'", field="item", value=name)
    return found
