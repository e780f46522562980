"""The report page: what its data holds, what it says, and that no input breaks out of it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.planners.catalog import policy
from downclock.planners.per_task import per_task_bound_j
from downclock.report.page import report_html, write_report
from downclock.report.page.pack import Pack
from downclock.report.page.words import cards, headline, left_out, sentences
from downclock.report.rejections import rejections
from downclock.schedule.account.account import account
from downclock.study.planned import Judge
from downclock.study.summary import judge
from tests.report.conftest import NASTY

KINDS = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "f32": "<f4"}


class Blocks(HTMLParser):
    """Scripts of a page by their id, its tags and its text outside scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.scripts: dict[str, str] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside: str | None = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = dict(attrs).get("id") or tag

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._inside = None

    def handle_data(self, data):
        if self._inside is None:
            self.text += data
        else:
            self.scripts[self._inside] = self.scripts.get(self._inside, "") + data


def unpacked(text: str) -> tuple[dict, dict[str, np.ndarray]]:
    """Read a block as the page's script does."""
    block = zlib.decompress(base64.b64decode(text, validate=True))
    length = int.from_bytes(block[:4], "little")
    header = json.loads(block[4 : 4 + length])
    columns = {}
    for column in header["columns"]:
        raw = np.frombuffer(block, KINDS[column["kind"]], column["n"], 4 + length + column["at"])
        if "step" in column:
            value = column["low"] + raw.astype(float) * column["step"]
            raw = np.where(raw == column["none"], np.inf, value)
        columns[column["name"]] = raw
    return header, columns


def test_the_data_are_the_schedule(odd) -> None:
    problem, schedule = odd
    page = Blocks(report_html(judge(problem, schedule, baselines=())))
    header, columns = unpacked(page.scripts["data"])
    segments = schedule.segments
    order = np.lexsort((segments.start_s, segments.processor))
    assert header["task_names"] == [str(name) for name in problem.tasks.name]
    assert columns["segment_task"].tolist() == segments.task[order].tolist()
    assert columns["segment_processor"].tolist() == segments.processor[order].tolist()
    assert columns["segment_attempt"].tolist() == segments.attempt[order].tolist()
    span = max(1.0, float(np.ptp(segments.start_s)) if len(segments) else 1.0)
    assert columns["segment_start"] == pytest.approx(segments.start_s[order], abs=1e-9 * span)
    assert columns["segment_core"] == pytest.approx(segments.core[order], abs=1e-4)
    assert columns["task_status"].tolist() == schedule.outcomes.status.tolist()
    assert columns["task_deadline"] == pytest.approx(problem.tasks.deadline_s, rel=1e-6)
    assert columns["task_joules"] == pytest.approx(account(problem, schedule).task_j, rel=1e-6)
    watts = columns["power_watts"].reshape(-1, 6)
    joules = np.diff(columns["power_edge"]) @ watts
    bill = account(problem, schedule)
    assert joules[0] == pytest.approx(bill.energy_j["run"], rel=1e-5, abs=1e-3)


def test_the_curves_are_the_frontiers(day) -> None:
    problem, schedule = day
    page = Blocks(report_html(judge(problem, schedule, baselines=())))
    _, columns = unpacked(page.scripts["curves"])
    used = np.unique(problem.tasks.application)
    frontier = problem.frontier(0)
    for c, application in enumerate(columns["curve_application"]):
        task = int(np.flatnonzero(problem.tasks.application == used[application])[0])
        scale = problem.tasks.scale[task]
        low, high = float(columns["curve_low_e"][c]), float(columns["curve_high_e"][c])
        best = low + (high - low) * columns["curve_optimum_e"][c] / 65534
        assert best * scale == pytest.approx(frontier.e_opt_j[task], rel=1e-4)
        assert columns["curve_low_t"][c] * scale == pytest.approx(frontier.t_min_s[task], rel=1e-5)
        assert columns["curve_high_t"][c] * scale == pytest.approx(frontier.t_max_s[task], rel=1e-5)


def test_the_same_plan_gives_the_same_page(day) -> None:
    assert report_html(judge(*day)) == report_html(judge(*day))


def test_every_odd_schedule_becomes_a_page(odd, tmp_path) -> None:
    write_report(judge(*odd), tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert html.count("</html>") == 1
    assert "{{" not in Blocks(html).text.replace("{{data}}", "")


def test_names_stay_text(odd) -> None:
    problem, schedule = odd
    page = Blocks(report_html(judge(problem, schedule), command=["downclock", NASTY[0]]))
    scripts = [attributes.get("id") for tag, attributes in page.tags if tag == "script"]
    assert scripts == ["data", None, "curves"]
    assert not [tag for tag, _ in page.tags if tag in ("b", "iframe", "img", "object")]
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
    if problem.name == NASTY[0]:
        assert NASTY[0] in page.text


def test_the_page_asks_no_network(day) -> None:
    page = Blocks(report_html(judge(*day)))
    links = [
        value
        for _, attributes in page.tags
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "action") and value is not None
    ]
    assert set(links) == {"data:,", "#tasks-title"}
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv"))
    assert policy is not None
    assert "default-src 'none'" in policy
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page.scripts["script"])


def test_savings_are_those_of_the_bills(day) -> None:
    problem, schedule = day
    mine = judge(problem, schedule)
    race = Judge.of(problem).planned(policy("race"))
    saved = 100.0 * (1.0 - account(problem, schedule).total_j / race.bill.total_j)
    assert f"{saved:.3g} % less than running every task at the default clock (race)" in headline(
        mine
    )
    shown = {what: value for what, value, _ in cards(mine)}
    assert shown["Saved against race"] == f"{saved:.3g} %"
    assert shown["Deadlines met"] == "all 140"
    bound = float(per_task_bound_j(problem).sum())
    gap = 100.0 * (mine.plan.bill.total_j / bound - 1.0)
    assert shown["Above the lower bound"] == f"{gap:.3g} %"
    assert "meets every deadline" in " ".join(sentences(mine))


def test_what_is_left_out_is_listed_with_its_reason() -> None:
    from tests.report.conftest import awkward

    problem, schedule = awkward()["rejected only"]
    mine = judge(problem, schedule)
    said = [(each.why, each.possible) for each in rejections(problem, schedule)]
    assert [f"no room for t{i}" in why for i, (why, _) in enumerate(said)] == [True] * 6
    assert left_out(mine) == [(f"t{i}", "rejected", *told) for i, told in enumerate(said)]
    page = Blocks(report_html(judge(problem, schedule)))
    assert "no room for t5" in page.text
    assert "6 tasks of 6 will not be done" in page.text
    assert headline(mine).startswith("This plan needs 0 J")


def test_an_invalid_schedule_is_reported_as_such(day) -> None:
    from dataclasses import replace

    problem, schedule = day
    late = replace(
        schedule, segments=replace(schedule.segments, end_s=schedule.segments.end_s + 9e4)
    )
    text = Blocks(report_html(judge(problem, late, baselines=()))).text
    assert "This schedule is invalid" in text
    assert "breaks no rule" not in text


def test_an_unknown_baseline_is_refused(day) -> None:
    with pytest.raises(InvalidInput, match="is not a policy"):
        judge(*day, baselines=("fastest",))


def test_numbers_beyond_single_precision_are_infinite() -> None:
    into = Pack()
    into.real("x", np.array([1e300, 1.0]))  # a warning is an error here
    assert unpacked(into.text({}))[1]["x"].tolist() == [np.inf, 1.0]


@pytest.mark.parametrize("bits", [16, 32])
def test_measured_columns_are_right_to_half_a_step(bits: int) -> None:
    rng = np.random.default_rng(4)
    values = np.append(rng.uniform(-5.0, 900.0, 1000), [np.inf, -5.0, 900.0])
    into = Pack()
    into.measured("x", values, bits=bits)
    into.measured("same", np.full(3, 7.5), bits=bits)
    into.measured("none", np.array([np.inf]), bits=bits)
    _, columns = unpacked(into.text({}))
    step = 905.0 / (2**bits - 2)
    known = np.isfinite(values)
    assert np.isinf(columns["x"][~known]).all()
    assert np.abs(columns["x"][known] - values[known]).max() <= 0.5001 * step
    assert columns["same"].tolist() == [7.5] * 3
    assert columns["none"].tolist() == [np.inf]


def test_whole_columns_take_the_bytes_they_need() -> None:
    into = Pack()
    for name, largest in (("a", 255), ("b", 256), ("c", 65536)):
        into.whole(name, np.array([0, largest]))
    header, columns = unpacked(into.text({"x": 1}))
    assert [column["kind"] for column in header["columns"]] == ["u8", "u16", "u32"]
    assert [columns[name].tolist()[1] for name in "abc"] == [255, 256, 65536]
