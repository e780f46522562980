"""docs/papers.md is the full run of today's code: its rows, its verdicts, its published numbers."""

from __future__ import annotations

import math
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from downclock.cli.papers import BACKGROUND
from downclock.papers.mei2021.authors import words
from downclock.papers.mei2021.published import OFF, authors
from downclock.papers.pages import digest, page_markdown
from downclock.papers.registry import papers
from downclock.papers.rows import PUBLISHED_SETS, SAMPLE, Row, Settings
from downclock.papers.run import Done, Task
from tests.papers.written import read_rows

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
BESIDE = ROOT.parent / "shared" / "data"
"""Where the public data may lie if no one says so, as for all tests."""
SAMPLED = DOCS / "papers-sample.csv"
TIMED = ("gerhards", "speed")
"""The item whose number is a time."""

RENEW = (
    "docs/papers.md is out of date; with the public data in the folder DOWNCLOCK_DATA, run:"
    " downclock papers --all --output out/papers --page docs/papers.md"
)
"""With ``--output`` a run that was stopped goes on where it was."""


@pytest.fixture(scope="module")
def done() -> list[Done]:
    """The run behind the page."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in read_rows(DOCS / "papers.csv"):
        found.setdefault((row.paper, row.item), []).append(row)
    return [
        Done(Task(paper, item, papers()[paper].items[item].title), rows, 0.0)
        for (paper, item), rows in found.items()
    ]


def test_every_item_was_run(done: list[Done]) -> None:
    ran = [(each.task.paper, each.task.item) for each in done]
    assert ran == [(name, item) for name, paper in papers().items() for item in paper.items]


def test_the_page_says_what_the_rows_say(done: list[Done]) -> None:
    links = {name: f"background/{page}.md" for name, page in BACKGROUND.items()}
    text = page_markdown(done, list(papers().values()), Settings(), links)
    assert (DOCS / "papers.md").read_text(encoding="utf-8") == text


def test_published_numbers_and_the_judge_have_not_moved_since() -> None:
    """Published values and the rules of verdicts only: other code may change without a run."""
    text = (DOCS / "papers.md").read_text(encoding="utf-8")
    assert f"<!-- judged by {digest()} -->" in text, RENEW


@pytest.mark.parametrize(
    ("paper", "item"), [(name, item) for name in papers() for item in papers()[name].items]
)
def test_one_set_of_every_item_gives_the_rows_it_gave_then(
    paper: str, item: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy, a search or a generator that moves the page's numbers moves those of one set.

    Items that need no public data are asked without them, too.
    """
    monkeypatch.setenv("DOWNCLOCK_DATA", os.environ.get("DOWNCLOCK_DATA", str(BESIDE)))
    stored = [row for row in read_rows(SAMPLED) if (row.paper, row.item) == (paper, item)]
    again = papers()[paper].items[item].run(SAMPLE)
    absent = [row.note for row in again if row.note.startswith("data absent")]
    if absent:
        pytest.skip(absent[0])
    assert [_fixed(row) for row in again] == [_fixed(row) for row in stored], RENEW
    if (paper, item) != TIMED:
        then = [math.nan if row.ours is None else row.ours for row in stored]
        now = [math.nan if row.ours is None else row.ours for row in again]
        assert now == pytest.approx(then, rel=1e-6, abs=1e-9, nan_ok=True), RENEW


def _fixed(row: Row) -> tuple[object, ...]:
    return row.quantity, row.relation, row.published, row.unit, row.sets, row.verdict


def test_every_row_of_the_authors_files_has_a_verdict(done: list[Done]) -> None:
    """Two numbers of each of 448 offline rows, three of each of 40 online rows."""
    offline = _of(done, "mei2021", "authors-offline")
    online = _of(done, "mei2021", "authors-online")
    assert (len(offline), len(online)) == (896, 120)
    known = {"within interval", "by chance", "not repeated"}
    assert {row.verdict for row in offline + online} <= known
    assert sum(abs(_standard_errors(row)) < 2.1 for row in offline) >= 860


def test_rows_by_chance_are_no_more_than_chance_makes(done: list[Done]) -> None:
    """Groups that pass: 904 numbers, of which 5 % may lie outside; no more do.

    Numbers of the same sets move together, so the binomial's error is taken for 8 groups of sets
    with some ten numbers that are independent, not for 904.
    """
    rows = [row for row in _of(done, "mei2021", "authors") if "1.6" not in row.item]
    outside = [row for row in rows if row.verdict == "by chance"]
    share, groups = len(outside) / len(rows), 8
    assert not [row for row in rows if row.verdict in ("not repeated", "unexplained")]
    assert share < 0.05 + 1.64 * math.sqrt(0.05 * 0.95 / (10 * groups))
    assert all(abs(_standard_errors(row)) < 3.0 for row in outside)


def test_no_algorithm_leans_to_one_side_over_the_loads(done: list[Done]) -> None:
    """Eight loads are eight draws of ten sets: the mean of their distances has an error of 0.35.

    With 112 rules and sizes a distance of 3.5 errors is what one in twenty such pages shows. The
    highest load is left out: its ten sets are odd, which the page says.
    """
    found: dict[str, list[float]] = {}
    for row in _of(done, "mei2021", "authors-offline"):
        if "1.6" not in row.item:
            quantity = re.sub(r", U=[0-9.]+", "", row.quantity)
            found.setdefault(quantity, []).append(_standard_errors(row))
    assert len(found) == 112
    for quantity, off in found.items():
        assert len(off) == 7
        assert abs(sum(off)) / math.sqrt(7) < 3.5, quantity


def test_the_authors_repeat_of_the_highest_load_is_like_ours(done: list[Done]) -> None:
    """Without DVFS, where their rules had not changed, 38 of 40 means of twenty sets are ours."""
    rows = {row.quantity: row for row in _of(done, "mei2021", "authors-offline-1.6")}
    off = []
    for setting, numbers in authors().items():
        if (setting.mode, setting.theta) == ("repeat", OFF):
            for part in ("servers", "run" if setting.per_server == 1 else "idle"):
                row = rows[f"{part} of {words(setting)}"]
                repeat = replace(row, published=getattr(numbers, part))
                off.append(abs(_standard_errors(repeat, published_sets=20)))
    assert (len(off), sum(each < 2.1 for each in off)) == (40, 38)


def test_what_was_not_repeated_with_dvfs_says_how_other_loads_bear_on_the_rule(
    done: list[Done],
) -> None:
    """Twelve rules that are the first file's, and one that had moved by 0.9 %."""
    rows = [row for row in _of(done, "mei2021", "authors") if row.verdict == "not repeated"]
    on = [row for row in rows if "without DVFS" not in row.quantity]
    assert (len(rows), len(on)) == (19, 13)
    assert all("at seven other loads" in row.note for row in on)
    (moved,) = (row for row in on if "less what its changed rule adds" in row.note)
    assert moved.quantity == "servers of edf-wf, U=1.6, l=2"


def test_every_quantity_has_one_verdict(done: list[Done]) -> None:
    """A number is not run or ours only, never both; the other reading has another name."""
    names = [(row.paper, row.item, row.quantity) for each in done for row in each.rows]
    assert len(names) == len(set(names))


def _standard_errors(row: Row, published_sets: int = PUBLISHED_SETS) -> float:
    """How far the published mean lies from ours, in standard errors of their difference."""
    from scipy.stats import t

    assert row.published is not None
    assert row.ours is not None
    assert row.low is not None
    error = (row.ours - row.low) / float(t.ppf(0.975, row.sets - 1))
    error *= math.sqrt((1 / row.sets + 1 / published_sets) / (1 / row.sets + 1 / PUBLISHED_SETS))
    return (row.published - row.ours) / error


def test_percentages_of_liu_are_judged_and_its_claims_counted_once(done: list[Done]) -> None:
    """20, 40, 13 twice, 16 and 25 % were run: none of them is "not run"."""
    rows = [row for item in ("fig4", "fig5") for row in _of(done, "liu", item)]
    told = [row for row in rows if row.published is not None and not row.relation]
    assert [row.published for row in told] == [20.0, 40.0, 13.0, 13.0, 16.0, 25.0]
    assert {row.verdict for row in told} == {"differs"}
    assert not [row for row in rows if row.relation and row.beside == _by_voltage(row)]


def _by_voltage(row: Row) -> bool:
    return row.quantity.endswith(", speed = voltage") and "lambda" not in row.quantity


def test_numbers_of_mei2021s_text_have_rows(done: list[Done]) -> None:
    """Section 5.4: 33.64 KJ to 18.44 MJ idle without DVFS; 18.44, 22.61, 19.82, 21.05 at l = 16."""
    rows = {row.quantity: row for row in _of(done, "mei2021", "fig1")}
    idle = [row for name, row in rows.items() if "idle energy" in name and row.published]
    assert {row.published for row in idle} == {33.64, 18440.0, 18.44, 22.61, 19.82, 21.05}
    assert {row.verdict for row in idle} == {"consistent"}
    assert all("watts times minutes" in row.note for row in idle)


def test_edl_is_within_3_percent_of_lpt_ff_only_by_another_baseline(done: list[Done]) -> None:
    """Section 5.3.3, l = 4: 4.71 % beside section 5.3's baseline, 2.86 % each beside its own."""
    rows = {row.quantity: row for row in _of(done, "mei2021", "fig9")}
    text = "EDL saves less than LPT-FF, l=4, at most over U and theta"
    stated, own = rows[text], rows[f"{text}, own baseline"]
    assert (stated.ours, own.ours) == pytest.approx((4.71, 2.86), abs=0.005)
    assert (stated.verdict, stated.beside) == ("contradicts itself", False)
    assert (own.verdict, own.beside) == ("consistent", True)


def test_all_198_cells_of_gerards_are_exact(done: list[Done]) -> None:
    cells = _of(done, "gerards", "table1-published") + _of(done, "gerards", "table2-published")
    assert [row.verdict for row in cells] == ["exact"] * 198


def test_no_number_is_without_a_tested_reason(done: list[Done]) -> None:
    rows = [row for each in done for row in each.rows]
    assert not [row for row in rows if row.verdict == "unexplained"]
    assert all(
        row.note
        for row in rows
        if row.verdict in ("differs", "by chance", "not repeated", "not run")
    )
    assert all(row.ours is None for row in rows if row.verdict == "not run")
    assert all(row.sets >= 10 for row in rows if row.verdict == "within interval")


def _of(done: list[Done], paper: str, item: str) -> list[Row]:
    return [
        row
        for each in done
        if each.task.paper == paper and each.task.item.startswith(item)
        for row in each.rows
    ]
