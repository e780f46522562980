"""Verdicts follow from the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.papers.rows import Estimate, Settings, estimate, judged, not_run


def test_equal_to_the_printed_digits_is_exact() -> None:
    assert judged("p", "t", "q", 35.44, 35.4412, "s", digits=2).verdict == "exact"
    assert judged("p", "t", "q", 35.44, 35.4551, "s", digits=2).verdict == "differs"
    assert judged("p", "t", "q", 3.0, 3.0, "s").verdict == "exact"


def test_inside_the_interval_and_outside() -> None:
    ours = Estimate(10.0, 9.0, 11.0)
    inside = judged("p", "t", "q", 10.5, ours, "J", because="never shown")
    assert (inside.verdict, inside.note) == ("within interval", "")
    outside = judged("p", "t", "q", 11.5, ours, "J", because="another cluster")
    assert (outside.verdict, outside.note) == ("differs", "another cluster")
    assert judged("p", "t", "q", 11.5, ours, "J").note == "no reason known"


def test_nothing_published_is_no_comparison() -> None:
    row = judged("p", "t", "q", None, 4.0, "J", because="honest version")
    assert (row.verdict, row.ours, row.note) == ("not run", 4.0, "honest version")
    absent = not_run("p", "t", "q", 1.0, "J", "data absent")
    assert (absent.verdict, absent.ours, absent.note) == ("not run", None, "data absent")


def test_the_interval_holds_other_means_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(1000):
        found = estimate(rng.normal(size=5), published_sets=10)
        hits += found.low < rng.normal(size=10).mean() < found.high
    assert hits == pytest.approx(950, abs=25)


def test_one_value_has_no_interval() -> None:
    assert estimate([3.0]) == Estimate(3.0, 3.0, 3.0)


def test_seeds_follow_each_other() -> None:
    assert list(Settings(sets=3, seed=7).seeds) == [7, 8, 9]
