"""Running items: choosing them, keeping finished ones as files, several processes, failures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from downclock.errors import InvalidInput
from downclock.papers import registry
from downclock.papers.pages import digest, page_markdown, rows_page, side_by_side, tally
from downclock.papers.registry import Paper, chosen, papers
from downclock.papers.rows import (
    Estimate,
    Item,
    Reason,
    Row,
    Settings,
    not_run,
    ours_only,
    printed,
)
from downclock.papers.run import Done, Task, run_all, tasks_of
from downclock.report.tables import rendered

WHERE = ("toy", "fig1")
ROWS = [
    printed(WHERE, "speed", 2.0, 2.0, "m/s"),
    printed(WHERE, "mean", 3.0, Estimate(3.1, 2.9, 3.3, 10), "m"),
    printed(WHERE, "mass", 3.0, 5.0, "kg", reason=Reason("a | b", 3.0)),
    ours_only(WHERE, "heat", 7.0, "J"),
    not_run(WHERE, "light", 1.0, "lx", "data absent"),
]


class Counting:
    """An item that counts how often it ran."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, settings: Settings) -> list[Row]:
        self.runs += 1
        return ROWS


def fails(settings: Settings) -> list[Row]:
    raise ZeroDivisionError("by\nzero")


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    """A paper ``toy`` with an item that counts and one that fails."""
    item = Counting()
    items = {"fig1": Item("fig1", "One", item), "broken": Item("broken", "Two", fails)}
    toy = Paper("toy", "a toy", items)
    monkeypatch.setattr("downclock.papers.run.paper", lambda name: toy)
    return item


FIG1 = Task("toy", "fig1", "One")


def test_five_papers_each_with_items_whose_rows_bear_their_names():
    assert tuple(papers()) == registry.NAMES
    for name, paper in papers().items():
        assert paper.items, name
        assert all(item.name == key and item.title for key, item in paper.items.items())
        assert not paper.about.startswith(name)


def test_a_number_chooses_a_figure_and_its_variants_but_no_longer_number():
    names = ("fig1", "fig10", "table1-published", "table1-corrected", "fig1-b")
    paper = Paper("p", "", {name: Item(name, name, fails) for name in names})

    def of(**given: tuple[str, ...]) -> list[str]:
        wanted = {"figures": (), "tables": (), "names": (), **given}
        return [item.name for item in chosen(paper, **wanted)]

    assert of(figures=("1",)) == ["fig1", "fig1-b"]
    assert of(tables=("1",), figures=("10",)) == ["fig10", "table1-published", "table1-corrected"]
    assert of(names=("table1-corrected",)) == ["table1-corrected"]
    assert of() == list(names)
    with pytest.raises(InvalidInput, match=r"fig2.*fig10"):
        of(figures=("2",))


def test_a_finished_item_is_kept_and_run_again_only_when_asked(counting, tmp_path):
    (first,) = run_all([FIG1], Settings(), folder=tmp_path)
    (again,) = run_all([FIG1], Settings(), folder=tmp_path)
    assert counting.runs == 1
    assert again.kept
    assert again.rows == first.rows == ROWS
    run_all([FIG1], Settings(), folder=tmp_path, fresh=True)
    run_all([FIG1], Settings(sets=3), folder=tmp_path)
    assert counting.runs == 3


def test_an_item_is_a_table_a_side_by_side_a_picture_and_its_rows(counting, tmp_path):
    pytest.importorskip("matplotlib")
    run_all([FIG1], Settings(), folder=tmp_path)
    files = {path.name for path in (tmp_path / "toy").iterdir()}
    assert files == {"fig1.csv", "fig1.md", "fig1.svg", "fig1.json"}
    assert (tmp_path / "toy" / "fig1.csv").read_text().splitlines()[3].endswith("a | b: 3,False")
    assert "| kg | differs | a \\| b: 3 |" in (tmp_path / "toy" / "fig1.md").read_text()
    assert "published" in (tmp_path / "toy" / "fig1.svg").read_text()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": "other/1"}'])
def test_a_damaged_file_is_as_good_as_none(counting, tmp_path, damage):
    run_all([FIG1], Settings(), folder=tmp_path)
    (tmp_path / "toy" / "fig1.json").write_text(damage)
    run_all([FIG1], Settings(), folder=tmp_path)
    assert counting.runs == 2


def test_without_its_last_file_an_item_is_not_finished(counting, tmp_path, monkeypatch):
    """As when the run is interrupted while the files are written."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("downclock.report.figures.save_figure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_all([FIG1], Settings(), folder=tmp_path)
    assert {path.name for path in (tmp_path / "toy").iterdir()} == {"fig1.csv", "fig1.md"}


def test_an_item_that_fails_says_so_in_one_line_and_is_not_kept(counting, tmp_path):
    tasks = [Task("toy", "broken", "Two"), FIG1]
    failed, fine = run_all(tasks, Settings(), jobs=1, folder=tmp_path)
    assert failed.failed
    assert failed.rows[0].note == "stopped with ZeroDivisionError: by zero"
    assert failed.rows[0].verdict == "not run"
    assert fine.rows == ROWS
    assert not (tmp_path / "toy" / "broken.json").exists()


def test_two_processes_give_what_one_gives():
    tasks = tasks_of("gerards", [papers()["gerards"].items[n] for n in ("example1", "fig5")])
    seen: list[str] = []
    two = run_all(tasks, Settings(1), jobs=2, finished=lambda done: seen.append(done.task.item))
    one = run_all(tasks, Settings(1), jobs=1)
    assert [each.rows for each in two] == [each.rows for each in one]
    assert sorted(seen) == ["example1", "fig5"]


def test_rows_are_a_list_in_json_with_paper_item_numbers_and_verdict():
    page = rows_page([Done(FIG1, ROWS, 1.0)])
    rows = json.loads(rendered(page, "json"))
    wanted = {"paper", "item", "quantity", "published", "ours", "unit", "verdict", "note"}
    assert wanted <= set(rows[0])
    assert [row["verdict"] for row in rows] == [
        *("exact", "within interval", "differs"),
        *("ours only", "not run"),
    ]
    assert tally(ROWS) == "1 exact, 1 within interval, 1 differs, 1 not run, 1 ours only"


def test_a_claim_under_another_reading_is_shown_but_not_counted():
    other = replace(ROWS[0], quantity="other", beside=True)
    assert tally([*ROWS, other]) == tally(ROWS)
    text = page_markdown(
        [Done(FIG1, [*ROWS, other], 1.0)], [Paper("toy", "a toy", {})], Settings(), {}
    )
    assert "| fig1 | other |" in text
    assert "another reading, not counted" in text
    assert "Exact (1, and 1 under other readings)" in text


def test_the_page_has_every_number_once_with_its_reason():
    paper = Paper("toy", "a toy", {})
    text = page_markdown([Done(FIG1, ROWS, 1.0)], [paper], Settings(), {"toy": "background/toy.md"})
    assert "[background](background/toy.md)" in text
    for row in ROWS:
        assert text.count(f"| fig1 | {row.quantity} |") == 1
    assert "| kg | a \\| b: 3 |" in text
    assert "| toy | 2 of 4 | 1 | 1 | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 1 | 1 |" in text
    assert f"<!-- judged by {digest()} -->" in text


def test_the_side_by_side_has_a_row_for_every_number():
    lines = side_by_side(Done(FIG1, ROWS, 1.0)).splitlines()
    assert len([line for line in lines if line.startswith("| ")]) == 1 + len(ROWS)


def test_no_folder_can_be_made_inside_a_file(counting, tmp_path):
    path = Path(tmp_path) / "file"
    path.write_text("")
    with pytest.raises(InvalidInput, match="cannot be made"):
        run_all([FIG1], Settings(), folder=path)
