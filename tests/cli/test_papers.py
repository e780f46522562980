"""`downclock papers`: listing, choosing, running, writing, stopping."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.papers.written import read_rows

PAPERS = ("mei2021", "mei2017", "gerards", "gerhards", "liu")


def test_without_arguments_it_lists_the_papers_and_what_can_be_run(run):
    ran = run("papers")
    assert ran.code == 0
    for name in PAPERS:
        assert f"{name}: " in ran.out
    rows = json.loads(run("papers", "gerards", "--format", "json").out)
    assert {"paper": "gerards", "item": "example1"}.items() <= rows[0].items()
    assert {row["paper"] for row in rows} == {"gerards"}


def test_an_item_is_run_and_judged(run):
    """Example 1 of gerards is exact in every printed digit."""
    ran = run("papers", "gerards", "--item", "example1", "--format", "json")
    assert ran.code == 0
    rows = json.loads(ran.out)
    assert {row["verdict"] for row in rows} == {"exact"}
    assert "gerards example1: 5 exact" in ran.err


def test_dask_runs_items(run, scheduler):
    asked = ("papers", "gerards", "--item", "example1", "--format", "json")
    assert json.loads(run(*asked, "--dask", scheduler).out) == json.loads(run(*asked).out)


def test_a_second_run_keeps_what_the_first_wrote(run, tmp_path):
    pytest.importorskip("matplotlib")
    arguments = ("papers", "gerards", "--figure", "5", "--output", str(tmp_path / "new" / "out"))
    first, second = run(*arguments), run(*arguments)
    assert first.code == second.code == 0
    assert first.out == second.out
    assert "(kept)" in second.err
    assert "(kept)" not in first.err


def test_the_page_is_written_and_quiet_says_nothing(run, tmp_path):
    page = tmp_path / "papers.md"
    ran = run("papers", "gerards", "--item", "example1", "--page", str(page), "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert "## gerards" in page.read_text()
    sample = read_rows(tmp_path / "papers-sample.csv")
    assert [row.ours for row in sample] == [row.ours for row in read_rows(tmp_path / "papers.csv")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nonsense",), ["nonsense", "mei2021"]),
        (("mei2021", "--figure", "99"), ["fig99", "fig10"]),
        (("mei2021", "--item", "fig10x"), ["fig10x"]),
        (("--figure", "10"), ["one paper"]),
        (("mei2021", "--all", "--figure", "10"), ["--all"]),
        (("mei2021", "--page", "page.pdf"), [".md"]),
        (("--all", "--dask", "tcp://127.0.0.1:1", "--jobs", "2"), ["another engine"]),
        (("mei2021", "--all", "--sets", "0"), ["--sets"]),
        (("mei2021", "--all", "--output", __file__), ["is a file"]),
    ],
)
def test_wrong_use_is_one_line_and_code_2(run, arguments, words):
    ran = run("papers", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    for word in words:
        assert word in ran.err


def test_an_item_that_fails_ends_with_code_3_after_the_others(run, monkeypatch):
    def broken(settings: object) -> None:
        raise ZeroDivisionError

    from downclock.papers.registry import papers
    from downclock.papers.rows import Item

    monkeypatch.setitem(papers()["gerards"].items, "fig6", Item("fig6", "Broken", broken))
    ran = run("papers", "gerards", "--item", "example1", "--item", "fig6", "--jobs", "1")
    assert ran.code == 3
    assert "stopped with ZeroDivisionError" in ran.out
    assert "example1: 5 exact" in ran.err


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_says_what_was_saved_and_leaves_nothing_half_written(tmp_path):
    pytest.importorskip("matplotlib")
    arguments = ("papers", "gerards", "liu", "--all", "--sets", "500", "--jobs", "2")
    process = subprocess.Popen(
        [sys.executable, "-m", "downclock", *arguments, "--output", str(tmp_path)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60.0
    while time.monotonic() < until and not list(tmp_path.glob("*/*.json")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    last = err.splitlines()[-1]
    assert last.startswith("interrupted; saved: ")
    saved = [Path(path) for path in last.removeprefix("interrupted; saved: ").split(", ")]
    assert saved
    for path in saved:
        assert json.loads(path.with_name(f"{path.name}.json").read_text())["rows"]
    assert not list(tmp_path.rglob("*.tmp"))
