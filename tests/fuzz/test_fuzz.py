"""A short run of the fuzzer over every format, and proof that it notices what is wrong."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

import downclock as dc
from downclock.errors import InvalidInput
from tests.fuzz.formats import FORMATS, one_input
from tests.fuzz.judge import SPECS, Outcome, judge_problem
from tests.generated import random_problem

INPUTS = 60
"""Of each format; ``make fuzz`` runs many more, planned by every policy."""

DRAWN = 3
"""Policies that plan an accepted input here."""


@pytest.mark.parametrize("name", FORMATS)
def test_odd_inputs_are_refused_in_one_line_or_planned(tmp_path: Path, name: str) -> None:
    refused = accepted = 0
    for seed in range(INPUTS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcome = one_input(name, seed, folder, Random(seed).sample(SPECS, DRAWN))
        assert not outcome.failures, f"python -m tests.fuzz --only {name} --seed {seed}"
        refused += outcome.refused is not None
        accepted += outcome.accepted
    assert refused > INPUTS // 10
    assert accepted > INPUTS // 20


def test_a_seed_makes_its_input_again(tmp_path: Path) -> None:
    for name in ("tasks-parquet", "cluster-toml", "schedule-csv"):
        files = []
        for folder in (tmp_path / f"{name}-1", tmp_path / f"{name}-2"):
            folder.mkdir()
            one_input(name, 7, folder, ())
            files.append({path.name: path.read_bytes() for path in folder.iterdir()})
        assert files[0] == files[1]


def test_every_policy_of_the_catalogue_is_fuzzed() -> None:
    assert {spec.partition(":")[0] for spec in SPECS} == set(dc.CATALOG)


def failures_of(do: object) -> list[str]:
    outcome = Outcome()
    outcome.attempt("read", do)  # type: ignore[arg-type]
    return outcome.failures


def test_what_is_not_ours_is_a_failure() -> None:
    def refuses() -> None:
        raise InvalidInput("is wrong", field="scale")

    def breaks() -> None:
        raise KeyError("scale")

    def warns() -> None:
        warnings.warn("overflow encountered in multiply", RuntimeWarning, stacklevel=1)

    def rambles() -> None:
        raise InvalidInput("is wrong", value="y" * 79 + "x" * 3000, item="x" * 3000)

    assert failures_of(refuses) == []
    assert "KeyError" in failures_of(breaks)[0]
    assert "RuntimeWarning" in failures_of(warns)[0]
    assert failures_of(rambles) == [], "what files hold is cut and told in one line"


def test_an_invalid_plan_and_a_bill_without_a_number_are_failures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = random_problem(5, tasks=4, edges=False, slot_s=None, chip_wide=False)
    plan, account = dc.plan, dc.account

    def overlapping(asked: dc.Problem, policy: object) -> dc.Schedule:
        made = plan(asked, policy)  # type: ignore[arg-type]
        moved = replace(made.segments, end_s=made.segments.end_s + 1e6)
        return replace(made, segments=moved)

    def unbilled(asked: dc.Problem, schedule: dc.Schedule) -> dc.Bill:
        bill = account(asked, schedule)
        return replace(bill, server_j=bill.server_j * np.nan)

    for name, fake, what in (
        ("plan", overlapping, "invalid"),
        ("account", unbilled, "a bill with NaN"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(dc, name, fake)
            outcome = Outcome()
            judge_problem(outcome, problem, ("race",))
            assert what in outcome.failures[0]
