from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest

from downclock.report.tables import MOST_ROWS, Page, Table, rendered, stacked

PAGE = Page(
    lines=("Two things",),
    tables=(Table(("name", "energy"), (("a", "1 J"), None, ("[b]", "20 J")), "Things"),),
    notes=("That is all",),
    data={"n": np.int64(2), "x": np.array([1.5, math.inf]), "none": math.nan, "t": (True, None)},
    records=[{"name": "a", "energy_j": 1.0}, {"name": "b, c", "gap": math.inf}],
)


def test_a_page_reads_from_top_to_bottom():
    lines = rendered(PAGE, "table").splitlines()
    assert lines[0] == "Two things"
    assert lines[2] == "Things"
    assert lines[-1] == "That is all"
    assert not any(line != line.rstrip() for line in lines)
    assert "\n\n\n" not in rendered(PAGE, "table")


def test_numbers_stand_to_the_right_and_markup_is_text():
    lines = rendered(PAGE, "table").splitlines()
    one = next(line for line in lines if line.split()[:1] == ["a"])
    two = next(line for line in lines if line.split()[:1] == ["[b]"])
    assert len(one) == len(two)


def test_json_has_no_values_that_json_lacks():
    assert json.loads(rendered(PAGE, "json")) == {
        "n": 2,
        "x": [1.5, None],
        "none": None,
        "t": [True, None],
    }


def test_csv_has_every_name_and_leaves_unknown_cells_empty():
    rows = list(csv.DictReader(io.StringIO(rendered(PAGE, "csv"))))
    assert rows == [
        {"name": "a", "energy_j": "1.0", "gap": ""},
        {"name": "b, c", "energy_j": "", "gap": ""},
    ]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_long_text_folds_into_the_width(width):
    table = Table(("task", "why"), (("t", "word " * 60),), text=(0, 1))
    assert (
        max(map(len, rendered(Page(tables=(table,)), "table", width=width).splitlines())) <= width
    )


def test_style_only_where_it_is_asked_for():
    assert "\x1b[" in rendered(PAGE, "table", style=True)
    assert "\x1b[" not in rendered(PAGE, "table")


def test_long_tables_say_how_much_they_leave_out():
    table = Table(("n",), tuple((str(k),) for k in range(MOST_ROWS + 7)))
    assert "and 7 more" in rendered(Page(tables=(table,)), "table")


def test_html_escapes_and_holds_the_cells():
    page = Page(lines=("<i>",), tables=(Table(("a<b",), (("x&y",),), "T"),))
    html = page._repr_html_()
    assert "<i>" not in html
    assert "a&lt;b" in html
    assert "x&amp;y" in html


def test_a_wide_table_stacks_and_keeps_its_names():
    """Nine numbers of 8 digits at 40 columns: two beside a name of 8 letters, then the next two."""
    head = ("policy", *(f"figure {k}" for k in range(9)))
    rows = tuple((f"policy-{r}", *(f"{r}{k}345.67" for k in range(9))) for r in range(3))
    table = Table(head, rows)
    pieces = stacked(table, 40)
    assert [piece.head[0] for piece in pieces] == ["policy"] * 5
    assert [name for piece in pieces for name in piece.head[1:]] == list(head[1:])
    text = rendered(Page(tables=(table,)), "table", width=40)
    assert max(map(len, text.splitlines())) <= 40
    for row in rows:
        assert text.count(row[0]) == 5
        assert all(cell in text for cell in row)
    assert stacked(table, 200) == [table]
