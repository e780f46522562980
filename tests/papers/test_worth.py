"""docs/papers-worth.md, the short page, says what the rows of docs/papers.csv say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from downclock.papers.gerards import published as gerards
from downclock.papers.gerhards import published as gerhards
from downclock.papers.rows import Row
from tests.papers.written import read_rows

DOCS = Path(__file__).parent.parent.parent / "docs"

WORDS = {5: "five", 2: "two"}

SETTINGS = {"0.8", "13", "16", "0.1", "0.2", "0.4", "0", "1", "2", "3"}
"""Numbers of the short page that name a setting (theta, the divisor, pairs, static power), a line
of a picture, a theorem or an algorithm, not a result."""


@pytest.fixture(scope="module")
def page() -> str:
    """The text without names of papers, titles of pictures and line ends."""
    text = " ".join((DOCS / "papers-worth.md").read_text(encoding="utf-8").split())
    return re.sub(r"mei20\d\d", "mei", re.sub(r"images/\S+|!\[", "", text))


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows(DOCS / "papers.csv")


def ours(rows: Iterable[Row], paper: str, item: str, quantity: str) -> float:
    """Our value of the one row of that name."""
    (found,) = (r for r in rows if (r.paper, r.item, r.quantity) == (paper, item, quantity))
    assert found.ours is not None
    return found.ours


def _is_mean(quantity: str) -> bool:
    return quantity.startswith("mean") and quantity.endswith("c3=0.2")


def of_mei(rows: list[Row]) -> list[str]:
    """What is said of mei2021 and mei2017, from the rows."""
    offline = [r for r in rows if r.item.startswith("authors-offline")]
    online = [r for r in rows if r.item == "authors-online"]
    inside = [sum(r.verdict == "within interval" for r in each) for each in (offline, online)]
    idle = ours(rows, "mei2021", "fig6", "idle energy of LPT-FF, U=0.2, l=16")
    wide = "wide interval, P0 and gamma over 13, 2070 Super, authors' fit"
    new = ours(rows, "mei2021", "fig4", "the same, nothing divided")
    old = ours(rows, "mei2021", "honest", "run energy saved, 1080 Ti as fitted, wide interval")
    grouped = [r.ours for r in rows if r.item == "fig8" and "with Algorithm 3" in r.quantity]
    saved = ours(rows, "mei2017", "fig4", "run energy saved")
    return [
        f"of {len(offline)} offline and {len(online)} online numbers in the authors' files"
        f" {inside[0]} and {inside[1]} lie where our runs of their rules put them",
        f"31 % is {idle:.1f} %",
        f"the {ours(rows, 'mei2021', 'fig4', wide):.1f} % that clocks could save",
        f"the two cards of the paper save {new:.0f} to {old:.0f} %",
        f"every one of its algorithms saves more than {int(min(each or 0 for each in grouped))} %",
        f"(10.57 and 10.58, 1.89 and 3.5, 36.8 and {saved:.1f})",
    ]


def of_graphs(rows: list[Row]) -> list[str]:
    """What is said of gerards, gerhards and liu."""
    exact = [r for r in rows if r.paper == "gerards" and r.item.endswith("-published")]
    assert {r.verdict for r in exact} == {"exact"}
    column = [r for r in rows if r.item == "table1-corrected" and _is_mean(r.quantity)]
    points = max(100.0 * abs((r.published or 0.0) - (r.ours or 0.0)) for r in column)
    none, breaks = (
        WORDS[round(ours(rows, "gerhards", "program", f"printed program {what}") / 10.0)]
        for what in ("finds no schedule though there is one", "breaks an edge")
    )
    worst = ours(rows, "gerhards", "fig3", "binary search above the sweep, at worst")
    stg = [r.ours or 0.0 for r in rows if r.item == "losses-stg" and "gap" in r.quantity]
    least = ours(rows, "liu", "theorem2", "levels that change at any time, same assignment")
    return [
        f"all {len(exact)} cells of both tables",
        f"the means of the 0.2 column by up to {points:.0f} points",
        f'"up to 72 %" ({ours(rows, "gerards", "claims", "static power, up to"):.0f} in its own',
        f"no schedule for {none} and breaks edges of {breaks} of the page's ten tiny cases",
        f"always very close ({worst:.0f} % apart at worst)",
        f"printed as {min(gerhards.LOSS.values()):.0f} to {max(gerhards.LOSS.values()):.0f} %",
        f"those of the Standard Task Graph set to {min(stg):.1f} to {max(stg):.0f} %",
        f"a constant level costs 5.34 where {least:.2f} is possible",
    ]


def test_every_number_of_the_short_page_is_on_the_long_one(page: str, rows: list[Row]) -> None:
    left = page
    for words in of_mei(rows) + of_graphs(rows):
        assert words in page
        left = left.replace(words, "")
    assert set(re.findall(r"\d+(?:\.\d+)?", left)) <= SETTINGS


def test_what_the_short_page_says_without_a_number(rows: list[Row]) -> None:
    """Twice the printed loss; within a tenth of a percent; which side of the claims."""
    losses = [
        ours(rows, "gerhards", "losses", f"sweep above ours, {curve}, {percent} %") / printed
        for (curve, percent), printed in gerhards.LOSS.items()
    ]
    assert 1.7 < sum(losses) / len(losses) < 2.3
    own = [r.ours or 0.0 for r in rows if r.item == "losses" and "gap" in r.quantity]
    assert max(own) < 0.1
    assert gerards.TABLE1[12][0.2][0] > ours(
        rows, "gerards", "table1-corrected", "mean, M=12, c3=0.2"
    )
    reversed_ = [r for r in rows if r.paper == "mei2017" and "less that of bin" in r.quantity]
    assert {r.verdict for r in reversed_} == {"does not hold"}
    for reading, sign in (("speed = voltage", 1.0), ("speed = clock", -1.0)):
        saved = [
            ours(rows, "liu", "fig4", f"energy saved, {scheme}, light, {reading}")
            for scheme in ("Static", "Dynamic", "Aggressive")
        ]
        assert all(sign * each > 0.0 for each in saved)
