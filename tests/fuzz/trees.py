"""Plain data as trees that may break every rule, and mutations of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any


class Obj(list[Any]):
    """An object as a list of [key, value]: keys may come twice."""


class Raw(str):
    """Text that encoders write as it is, such as a thousand brackets."""

    __slots__ = ()


NUMBERS: tuple[float, ...] = (
    *(0, 1, 2, 3, 7, 100, -1, -0.0, 0.5, 0.1, 1.5, 1e-3, 1e-6, 1e-9, 1e-12, 1e-30, 1e-300),
    *(5e-324, 1e3, 1e4, 1e6, 1e7, 1e9, 1e12, 1e15, 1e18, 1e30, 1e100, 1e154, 1e200, 1e300),
    *(1.7976931348623157e308, float("nan"), float("inf"), float("-inf"), -1e9, -1e308),
    *(2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, 10**400, -(10**400)),
    *(0.9999999999999999, 1.0000000000000002, 86400, 1718000000),
)

STRINGS = (
    *("", " ", "\ud800", "a\udcffb", "\x00", "a\x00b", "x" * 70_000, "nan", "inf", "-inf", "1e999"),
    *("1_000", "\uff11\uff12", "\u00e9", "e\u0301", "\u202eabc", "\n", "a\nb", "a,b", '"', "'"),
    *(";", "..", "../x", "no/such/file.csv", "true", "null", "None", "0x10", "-0", "1e-320", "\\"),
    *("2024-06-10T08:00+02:00", "2024-13-01", "9999-12-31T23:59:59+00:00", "0001-01-01T00:00Z"),
    *("2024-03-31T02:30", "2024-10-27T02:30", "2024-06-10", "08:00", "builtin:a100", "builtin:x"),
    *("uniform:0.5:2", "uniform:nan:1", "lognormal:1:9", "lognormal:1e308:5", "exact", "Etc/None"),
    *("mei", "fixed", "proportional", "wide", "on", "asleep", "pause", "locked", "gpu", "cpu"),
    *("2h", "1h30m", "01:30:00", "2-00:00:00", "+6h", "18:30", "24:00", "25:61", "+", "1e308h"),
    *("9" * 400 + "h", "0s", "-2h", "compute-bound", "mixed", "v100", "+99999999999d"),
    *("a;b", "a b", "t0", "s1/1", "cost", "\u2603" * 50, "[" * 3000, "\x1b[31m", "\u2028"),
)


def number(rng: Random) -> float:
    """An odd number, or an ordinary one."""
    if rng.random() < 0.7:
        return rng.choice(NUMBERS)
    return rng.choice((1, -1)) * 10.0 ** rng.uniform(-12.0, 12.0)


def near(rng: Random, value: float) -> float:
    """A number that resembles another, of the same or a neighbouring size."""
    changes = (
        lambda: value * 10.0 ** rng.uniform(-1.0, 1.0),
        lambda: value * 10.0 ** rng.randint(-6, 6),
        lambda: value * (1.0 + rng.choice((1e-15, 1e-12, 1e-9, 1e-6))),
        lambda: -value,
        lambda: value + rng.choice((1, -1, 0.5)),
        lambda: round(value),
        lambda: float(value),
        lambda: 0,
    )
    try:
        return rng.choice(changes)()
    except (OverflowError, ValueError):
        return value


def odd_text(rng: Random, text: str = "") -> str:
    """An odd string, or a given one with something done to it."""
    if not text or rng.random() < 0.6:
        return rng.choice(STRINGS)
    at = rng.randrange(len(text) + 1)
    piece = rng.choice(("\ud800", "\x00", " ", "\n", "x", "\u00e4", ",", '"', "-", "0", ":"))
    return rng.choice(
        (text[:at] + piece + text[at:], text[:at], text.upper(), text * 2, f" {text} ")
    )


def odd_value(rng: Random, value: Any = None) -> Any:
    """A value to put in the place of another: mostly of its type, but odd."""
    if rng.random() < 0.75:
        if isinstance(value, str):
            return odd_text(rng, value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return near(rng, value) if rng.random() < 0.6 else number(rng)
    depth = rng.choice((3, 60, 5_000))
    return rng.choice(
        (
            lambda: number(rng),
            lambda: odd_text(rng),
            lambda: rng.choice((None, True, False)),
            lambda: [],
            Obj,
            lambda: [value],
            lambda: Obj([["kind", value]]),
            lambda: Raw("[" * depth + "]" * depth),
            lambda: [number(rng) for _ in range(rng.randint(1, 4))],
            lambda: str(value),
        )
    )()


@dataclass(frozen=True)
class Spot:
    """A place in a tree: ``holder[index]`` is the value; its owner is a list or an object."""

    holder: list[Any]
    index: int
    owner: list[Any]
    place: int

    @property
    def value(self) -> Any:
        return self.holder[self.index]


def tree_of(data: Any) -> Any:
    """Plain data as a tree that may be mutated."""
    if isinstance(data, dict):
        return Obj([key, tree_of(value)] for key, value in data.items())
    return [tree_of(value) for value in data] if isinstance(data, list) else data


def spots(tree: Any) -> Iterator[Spot]:
    """Every place of a tree but its top."""
    if isinstance(tree, Obj):
        for k, pair in enumerate(tree):
            yield Spot(pair, 1, tree, k)
            yield from spots(pair[1])
    elif isinstance(tree, list):
        for k, value in enumerate(tree):
            yield Spot(tree, k, tree, k)
            yield from spots(value)


def mutated(rng: Random, data: Any) -> Any:
    """A copy of plain data with a few things wrong, or just unusual.

    Half of the time only numbers change: what is accepted then goes on to the policies.
    """
    tree = tree_of(data)
    if rng.random() < 0.5:
        _change_numbers(rng, tree)
        return tree
    keys = sorted({spot.holder[0] for spot in spots(tree) if isinstance(spot.owner, Obj)})
    while True:
        places = list(spots(tree))
        if not places:
            return tree
        _mutate(rng, rng.choice(places), keys)
        if rng.random() < 0.55:
            return tree


def _change_numbers(rng: Random, tree: Any) -> None:
    places = [spot for spot in spots(tree) if type(spot.value) in (int, float)]
    for spot in rng.sample(places, min(len(places), rng.choice((1, 1, 1, 2, 3, 5)))):
        ordinary = rng.random() < 0.7
        spot.holder[spot.index] = near(rng, spot.value) if ordinary else number(rng)


def _mutate(rng: Random, spot: Spot, keys: list[str]) -> None:
    """Do one thing to one place; leaves are changed more often than their owners."""
    leaf = not isinstance(spot.value, list)
    if leaf and rng.random() < 0.7:
        spot.holder[spot.index] = odd_value(rng, spot.value)
        return
    is_pair = isinstance(spot.owner, Obj)
    match rng.randrange(7):
        case 0:
            del spot.owner[spot.place]
        case 1:
            spot.owner.insert(spot.place, _copy(spot.owner[spot.place]))
        case 2 if is_pair:
            key = spot.holder[0]
            spot.holder[0] = rng.choice(
                (rng.choice(keys), odd_text(rng, key), f"x_{key}", key[:-1])
            )
        case 3 if is_pair:
            spot.owner.append([rng.choice((*keys, "x_own")), odd_value(rng)])
        case 4:
            other = rng.randrange(len(spot.owner))
            spot.owner[spot.place], spot.owner[other] = spot.owner[other], spot.owner[spot.place]
        case 5 if len(spot.owner) > 1:
            other = rng.choice(list(spots(spot.owner)))
            spot.holder[spot.index] = _copy(other.value)
        case _:
            spot.holder[spot.index] = odd_value(rng, spot.value)


def _copy(tree: Any) -> Any:
    if isinstance(tree, list):
        return type(tree)(_copy(value) for value in tree)
    return tree


def json_of(tree: Any) -> str:
    """A tree as JSON text; NaN and infinities as Python's module writes them."""
    if isinstance(tree, Raw):
        return str(tree)
    if isinstance(tree, Obj):
        return "{" + ", ".join(f"{json.dumps(str(k))}: {json_of(v)}" for k, v in tree) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(json_of, tree)) + "]"
    return json.dumps(tree)


def plain_of(tree: Any) -> Any:
    """A tree as plain data; of a key that comes twice the last counts."""
    if isinstance(tree, Obj):
        return {str(key): plain_of(value) for key, value in tree}
    return [plain_of(value) for value in tree] if isinstance(tree, list) else tree
