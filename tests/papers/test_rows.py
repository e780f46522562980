"""Verdicts follow from the numbers, and each can come out otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.papers.rows import (
    MEANING,
    Estimate,
    Reason,
    Settings,
    against_itself,
    claimed,
    estimate,
    not_run,
    ours_only,
    printed,
)

WHERE = ("p", "t")


def test_equal_to_the_printed_digits_is_exact() -> None:
    assert printed(WHERE, "q", 35.44, 35.4412, "s", digits=2).verdict == "exact"
    assert printed(WHERE, "q", 35.44, 35.4551, "s", digits=2).verdict == "unexplained"
    assert printed(WHERE, "q", 3.0, 3.0, "s").verdict == "exact"


def test_a_drawn_mean_is_never_exact_even_where_it_rounds_alike() -> None:
    assert printed(WHERE, "q", 4.0, Estimate(4.0, 3.9, 4.1, 10), "%").verdict == "within interval"
    assert printed(WHERE, "q", 4.0, Estimate(4.0, 3.9, 4.1, 9), "%").verdict == "undecided"
    assert printed(WHERE, "q", 4.0, Estimate(4.0, 2.9, 5.1, 40), "%").verdict == "undecided"


def test_outside_even_a_wide_interval_is_not_reproduced() -> None:
    row = printed(WHERE, "q", 9.0, Estimate(4.0, 2.0, 6.0, 40), "%")
    assert (row.verdict, row.note) == ("unexplained", "")


def test_a_reason_counts_only_where_its_switch_gives_the_printed_number() -> None:
    ours = Estimate(10.0, 9.5, 10.5, 10)
    good = Reason("the other card", Estimate(12.1, 11.8, 12.4, 10))
    row = printed(WHERE, "q", 12.0, ours, "J", reason=good)
    assert (row.verdict, row.note) == ("differs", "the other card: 12.1 (11.8 to 12.4)")
    bad = Reason("the other card", Estimate(11.0, 10.8, 11.2, 10))
    assert printed(WHERE, "q", 12.0, ours, "J", reason=bad).verdict == "unexplained"
    exact = printed(WHERE, "q", 0.982, 0.898, "", digits=3, reason=Reason("c3 = 0.1", 0.98208))
    assert (exact.verdict, exact.note) == ("differs", "c3 = 0.1: 0.98208")


def test_claims_are_one_sided() -> None:
    """'More than 27 %' is no number to come near to."""
    assert claimed(WHERE, "q", ">", 27.0, 31.0, "%").verdict == "holds"
    assert claimed(WHERE, "q", ">", 27.0, 26.9, "%").verdict == "does not hold"
    assert claimed(WHERE, "q", "<", 27.0, 26.9, "%").verdict == "holds"
    rng = np.random.default_rng(1)
    clear, near = list(rng.normal(30.0, 1.0, 20)), list(rng.normal(27.0, 1.0, 20))
    assert claimed(WHERE, "q", ">", 27.0, clear, "%").verdict == "holds"
    assert claimed(WHERE, "q", "<", 27.0, clear, "%").verdict == "does not hold"
    assert claimed(WHERE, "q", ">", 27.0, near, "%").verdict == "undecided"
    assert claimed(WHERE, "q", ">", 27.0, clear[:9], "%").verdict == "undecided"


def test_a_paper_is_held_against_its_own_numbers() -> None:
    """mei2021: 34.7 % printed, 120.22 and 79.87 give 33.56."""
    saved = 100.0 * (1.0 - 79.87 / 120.22)
    row = against_itself(WHERE, "saved", 34.7, saved, "%", digits=1)
    assert row.verdict == "contradicts itself"
    assert against_itself(WHERE, "saved", 33.6, saved, "%", digits=1).verdict == "consistent"
    least = against_itself(WHERE, "q", 0.0, 3.9, "%", relation="<")
    assert least.verdict == "contradicts itself"


def test_what_is_ours_alone_and_what_is_absent() -> None:
    own = ours_only(WHERE, "q", estimate([1.0, 2.0, 3.0]), "J")
    assert (own.verdict, own.ours, own.published, own.sets) == ("ours only", 2.0, None, 3)
    gone = not_run(WHERE, "q", 1.0, "J", "data absent")
    assert (gone.verdict, gone.ours, gone.note) == ("not run", None, "data absent")


def test_every_verdict_has_a_meaning() -> None:
    assert len(MEANING) == 13
    assert "unexplained" in MEANING


def test_the_interval_holds_other_means_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(1000):
        found = estimate(rng.normal(size=5), published_sets=10)
        hits += found.low < rng.normal(size=10).mean() < found.high
    assert hits == pytest.approx(950, abs=25)


def test_one_value_has_no_interval() -> None:
    assert estimate([3.0]) == Estimate(3.0, 3.0, 3.0, 1)


def test_seeds_follow_each_other() -> None:
    assert list(Settings(sets=3, seed=7).seeds) == [7, 8, 9]
    assert list(Settings(sets=2, seed=7).more(3)) == [7, 8, 9, 10, 11, 12]
