"""Comments: what owners ask for, and our line before theirs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downclock.adapters.slurm.words import (
    MOST_BYTES,
    Wish,
    comment_of,
    is_ours,
    our_part,
    owners_part,
    restored,
    told_start_s,
    wish_of,
)


def test_owners_words_are_read() -> None:
    assert wish_of("") == Wish()
    assert wish_of("my note downclock=off") == Wish(off=True, tagged=True)
    asked = wish_of("downclock=app:resnet50,run:90m x downclock=deadline:+6h")
    assert asked == Wish(False, True, False, "resnet50", 5400.0, 21600.0)


@pytest.mark.parametrize(
    "word", ["run:soon", "run:-1", "run:0", "deadline:", "fast", "app:", "run:1e99"]
)
def test_words_that_cannot_be_read_are_named(word: str) -> None:
    assert wish_of(f"downclock={word}").wrong == word


def test_our_line_comes_first_and_theirs_is_kept() -> None:
    comment = comment_of({"core_mhz": "1005"}, "late, ends | soon", "hello\nyou downclock=off")
    assert comment == "downclock core_mhz=1005 reason=late,-ends-/-soon | downclock=off hello you"
    assert our_part(comment) == "downclock core_mhz=1005 reason=late,-ends-/-soon"
    assert wish_of(comment).off


@given(st.text(max_size=2000))
def test_any_comment_fits_on_one_line_and_keeps_our_words(owner: str) -> None:
    comment = comment_of({"core_mhz": "1005", "start": "1"}, "late", owner)
    assert len(comment.encode()) <= MOST_BYTES
    assert comment.isprintable()
    assert our_part(comment) == "downclock core_mhz=1005 start=1 reason=late"
    assert wish_of(comment).off == wish_of(" ".join(owner.split())).off or not owner.isprintable()


def test_words_of_ours_in_an_owners_comment_are_not_ours() -> None:
    assert not is_ours("downclock=plan core_mhz=210")
    assert owners_part("note downclock core_mhz=210") == "note downclock core_mhz=210"
    assert owners_part(comment_of({}, "x", "a | b")) == "a | b"


def test_an_owners_comment_comes_back_as_submitted_or_as_changed_since() -> None:
    mine = "a  downclock=plan b downclock=run:5s"
    ours = comment_of({"start": "1"}, "x", mine)
    assert restored(ours, mine) == mine
    assert restored(f"{ours} more", mine).endswith(" more")
    assert restored("downclock=off", mine) == "downclock=off"
    again = comment_of({"start": "2"}, "x", restored(f"{ours} more", mine))
    assert owners_part(again) == "downclock=plan downclock=run:5s a b more"


@pytest.mark.parametrize(
    ("comment", "start_s"),
    [
        ("downclock core_mhz=900 start=1794881014 nodes=a reason=x | start=7", 1794881014.0),
        ("downclock left=1 reason=x", math.inf),
        ("downclock start=1e9 reason=x", math.inf),
        ("start=5", math.inf),
    ],
)
def test_the_start_that_we_told_is_in_our_line(comment: str, start_s: float) -> None:
    assert told_start_s(comment) == start_s
