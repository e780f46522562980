"""States as bytes: named arrays in, the same out; what is no such state is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from downclock.engine.saved import flat, from_bytes, rebuilt, to_bytes
from downclock.errors import InvalidInput


class Inner(NamedTuple):
    column: np.ndarray
    count: int


@dataclass(frozen=True)
class State:
    inner: Inner
    limit_s: float
    on: bool
    nothing: None = None


STATE = State(Inner(np.array([1.0, np.inf]), 7), 2.5, True)


def test_a_state_is_arrays_by_path() -> None:
    columns = flat(STATE)
    assert sorted(columns) == ["inner/column", "inner/count", "limit_s", "on"]
    assert columns["inner/column"].tolist() == [1.0, np.inf]


def test_it_is_rebuilt_with_the_types_it_had() -> None:
    empty = State(Inner(np.empty(0), 0), 0.0, False)
    again = rebuilt(empty, flat(STATE))
    assert again.inner.column.tolist() == [1.0, np.inf]
    assert (again.inner.count, again.limit_s, again.on) == (7, 2.5, True)
    assert (type(again.inner.count), type(again.on)) == (int, bool)


def test_a_part_that_is_missing_is_named() -> None:
    columns = flat(STATE)
    del columns["inner/count"]
    with pytest.raises(InvalidInput, match=r"inner/count.*is missing in the saved state"):
        rebuilt(STATE, columns)


def test_bytes_and_back() -> None:
    header, columns = from_bytes(to_bytes({"policy": "mine"}, flat(STATE)))
    assert header["policy"] == "mine"
    np.testing.assert_array_equal(columns["inner/column"], STATE.inner.column)


def test_the_same_state_is_the_same_bytes() -> None:
    assert to_bytes({}, flat(STATE)) == to_bytes({}, flat(STATE))


def test_bytes_of_another_version_are_refused_by_it() -> None:
    with pytest.raises(InvalidInput, match=r"version.*99.*must be"):
        from_bytes(to_bytes({"version": 99}, {}))


def test_objects_are_neither_written_nor_read() -> None:
    with pytest.raises(InvalidInput, match="is no saved state"):
        from_bytes(to_bytes({}, {"bad": np.array([object()])}))


@pytest.mark.parametrize("cut", [0, 1, 50, -1])
def test_bytes_that_end_too_soon_are_refused(cut: int) -> None:
    with pytest.raises(InvalidInput, match="is no saved state"):
        from_bytes(to_bytes({"policy": "mine"}, flat(STATE))[:cut])


def test_bytes_with_a_changed_one_are_refused() -> None:
    data = bytearray(to_bytes({"policy": "mine"}, flat(STATE)))
    data[data.index(STATE.inner.column.tobytes())] ^= 1
    with pytest.raises(InvalidInput, match="is no saved state"):
        from_bytes(bytes(data))
