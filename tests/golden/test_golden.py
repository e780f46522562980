"""Every policy does what it did when ``golden.jsonl`` was written.

Counts and who ran where are compared exactly, energies to 1e-9; every bit of the schedules where
the machine and the versions of numpy and numba are those that wrote the file. Elsewhere a search
may take another way: of its plans, tasks done and energies to 1 % are compared. A spec meets every
fifth problem here, each another fifth; all of them where ``DOWNCLOCK_GOLDEN=all``. Where a change
is wanted, ``python -m tests.golden.write`` writes the file anew.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache

import pytest

from tests.golden.problems import WORLDS, problems
from tests.golden.write import SEARCH, SPECS, Record, machine, read, records_of

CLOSE = 1e-9
"""Relative difference of energies that counts as none."""

NEAR = 0.01
"""The same for plans of a search on another machine."""

LEAST = 8
"""Problems on which every spec meets every world without an error."""

PART = 1 if os.environ.get("DOWNCLOCK_GOLDEN") == "all" else 5
"""One problem of so many is asked of each spec."""

SHOWN = 20
"""Cases a failure tells of; the others are counted."""

stored = cache(read)


@pytest.mark.parametrize("spec", SPECS)
def test_nothing_moved(spec: str) -> None:
    wrote, every = stored()
    names = [*problems()][SPECS.index(spec) % PART :: PART]
    found = every.get(spec, [])
    old = {(each.problem, each.world): each for each in found if each.problem in names}
    new = {(each.problem, each.world): each for each in records_of(spec, names)}
    exact = wrote == machine()
    judge = difference if exact or spec not in SEARCH else strayed
    moved = [
        f"{spec} on {problem}, {world}: {what}"
        for problem, world in {**old, **new}
        if (what := judge(old.get((problem, world)), new.get((problem, world)), exact))
    ]
    shown = [*moved[:SHOWN], *([f"and {len(moved) - SHOWN} more"] if len(moved) > SHOWN else [])]
    assert not moved, f"{len(moved)} of {len(old)} cases moved\n" + "\n".join(shown)


def difference(old: Record | None, new: Record | None, exact: bool) -> str:
    """Say what moved, or nothing."""
    if old is None or new is None:
        return "is not recorded" if old is None else "is no longer planned (an objection)"
    parts = [
        f"{field} {before!r} -> {after!r}"
        for field, before, after in zip(Record._fields, old, new, strict=True)
        if field in ("segments", "done", "rejected", "failed", "error") and before != after
    ]
    if old.discrete != new.discrete:
        parts.append("who ran where differs")
    elif exact and old.exact != new.exact:
        parts.append("times, clocks or shares differ, who ran where does not")
    if not same_energy(old.energy_j, new.energy_j) or parts:
        parts.append(f"energy_j {old.energy_j} -> {new.energy_j}")
    return "; ".join(parts)


def strayed(old: Record | None, new: Record | None, _exact: bool) -> str:
    """Say what moved of a plan that was searched for on another machine, or nothing."""
    if old is None or new is None or old.error != new.error:
        return difference(old, new, exact=False)
    if old.world != "plan" or (
        old.done == new.done and same_energy(old.energy_j, new.energy_j, NEAR)
    ):
        return ""
    return f"done {old.done} -> {new.done}; energy_j {old.energy_j} -> {new.energy_j}"


def same_energy(old: str, new: str, close: float = CLOSE) -> bool:
    """Tell whether two energies are close; texts without a number only if same."""
    if old == new or not (old and new):
        return old == new
    return abs(float(old) - float(new)) <= close * abs(float(old))


def test_every_spec_meets_every_world_often_enough() -> None:
    _, every = stored()
    assert set(every) == set(SPECS)
    assert len(problems()) >= 60
    for spec, records in every.items():
        met = Counter(record.world for record in records if not record.error)
        assert all(met[world] >= LEAST for world in ("plan", *WORLDS)), (spec, met)


def test_what_moved_is_told() -> None:
    old = Record("edl", "whole-1", "plan", "a", "b", 3, 3, 0, 0, "2.0")
    assert difference(old, old, exact=True) == ""
    other = old._replace(exact="c", energy_j="2.0000000000000004")
    assert difference(old, other, exact=False) == ""
    assert "times, clocks" in difference(old, other, exact=True)
    fewer = difference(old, old._replace(discrete="d", done=2, failed=1), exact=True)
    assert "done 3 -> 2; failed 0 -> 1; who ran where" in fewer
    assert "energy_j 2.0 -> 2.1" in difference(old, old._replace(energy_j="2.1"), exact=False)
    assert "objection" in difference(old, None, exact=True)
    assert "not recorded" in difference(None, old, exact=True)
    assert strayed(old, other._replace(discrete="d", segments=4, energy_j="2.01"), False) == ""
    assert "energy_j 2.0 -> 2.1" in strayed(old, old._replace(energy_j="2.1"), False)
    assert "done 3 -> 2" in strayed(old, old._replace(done=2), False)
    assert "objection" in strayed(old, None, False)
