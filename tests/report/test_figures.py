"""Figures and traces: they show the schedule's own numbers, and need matplotlib only when used."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from downclock import plot
from downclock.cli import main
from downclock.errors import InvalidInput, MissingExtra
from downclock.report.trace import schedule_trace
from downclock.schedule.account.account import account
from downclock.schedule.files import write_schedule
from downclock.study.compare import compare
from tests.conftest import ROOT

GPU_DAY = ROOT / "examples" / "gpu-day"


def test_the_gantt_has_a_bar_for_every_segment(day) -> None:
    problem, schedule = day
    (axes, *_) = plot.gantt(problem, schedule).axes
    bars = axes.collections[-1].get_paths()
    assert len(bars) == len(schedule.segments)
    corners = bars[3].vertices
    assert corners[:, 0].min() == pytest.approx(schedule.segments.start_s[3] / 3600.0)
    assert corners[:, 0].max() == pytest.approx(schedule.segments.end_s[3] / 3600.0)


def test_the_power_figure_shows_price_above_power(day) -> None:
    above, below = plot.power(*day).axes
    assert above.get_ylabel() == "EUR/kWh"
    assert below.get_ylabel() == "power (kW)"


def test_the_frontier_marks_the_point_used(day) -> None:
    problem, schedule = day
    (axes,) = plot.frontier(problem, "risk-052", schedule).axes
    task = problem.tasks.name.tolist().index("risk-052")
    used = axes.lines[-1]
    assert used.get_label() == "this plan"
    joules = account(problem, schedule).task_j[task]
    assert used.get_ydata()[0] == pytest.approx(joules / 1000.0)


def test_compare_bars_sum_to_the_totals(day) -> None:
    found = compare(day[0], ["race", "edl"])
    (axes,) = plot.compare(found).axes
    ends = {}
    for bar in axes.patches:
        row = round(bar.get_y() + bar.get_height() / 2)
        ends[row] = max(ends.get(row, 0.0), bar.get_x() + bar.get_width())
    labels = [text.get_text() for text in axes.get_yticklabels()]
    totals = {each.policy: each.bill.total_j / 1e6 for each in found.plans}
    assert {labels[row]: end for row, end in ends.items()} == pytest.approx(totals)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_files_are_the_same_every_time(day, tmp_path, suffix: str) -> None:
    paths = [tmp_path / f"{k}.{suffix}" for k in (1, 2)]
    for path in paths:
        plot.save(plot.power(*day), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].stat().st_size > 1000


def test_an_unknown_format_is_refused(day, tmp_path) -> None:
    with pytest.raises(InvalidInput, match=r"must end in \.png, \.svg, \.pdf"):
        plot.save(plot.power(*day), tmp_path / "x.bmp")


def test_every_odd_schedule_can_be_drawn(odd, tmp_path) -> None:
    problem, schedule = odd
    for figure in (plot.gantt(problem, schedule), plot.power(problem, schedule)):
        plot.save(figure, tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 1000


def test_without_matplotlib_the_message_says_what_to_install(day, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'downclock\[plot\]'"):
        plot.power(*day)


def test_importing_plot_does_not_import_matplotlib() -> None:
    script = "import sys, downclock.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_trace_has_every_segment_state_and_watt(odd) -> None:
    problem, schedule = odd
    trace = json.loads(json.dumps(schedule_trace(problem, schedule)))
    runs = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] != "power state"]
    assert len(runs) == len(schedule.segments)
    joules = sum(event["args"]["energy_j"] for event in runs)
    assert joules == pytest.approx(account(problem, schedule).energy_j["run"], rel=1e-9)
    threads = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in runs} <= threads
    lasted = sum(event["dur"] for event in runs) / 1e6
    segments = schedule.segments
    assert lasted == pytest.approx(np.sum(segments.end_s - segments.start_s), rel=1e-9)


def test_the_command_writes_page_figures_and_trace(day, tmp_path, capsys) -> None:
    write_schedule(day[1], day[0], tmp_path / "s.json")
    files = [str(GPU_DAY / "cluster.toml"), str(GPU_DAY / "jobs.csv"), str(tmp_path / "s.json")]
    made = {name: str(tmp_path / name) for name in ("r.html", "g.pdf", "p.svg", "t.json")}
    options = ["--gantt", made["g.pdf"], "--power", made["p.svg"], "--trace", made["t.json"]]
    assert main(["report", *files, "--output", made["r.html"], *options]) == 0
    assert capsys.readouterr().err.split() == [w for path in made.values() for w in ("wrote", path)]
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "downclock report" in html
    assert json.loads((tmp_path / "t.json").read_text())["otherData"]["policy"] == "edl"


def test_the_command_refuses_a_bad_output_before_it_works(tmp_path, capsys) -> None:
    assert main(["report", "nothing.toml", "no.csv", "s.json", "-o", str(tmp_path / "x.pdf")]) == 2
    assert "must end in .html" in capsys.readouterr().err


def test_a_bad_name_is_that_of_its_option(tmp_path, capsys) -> None:
    files = [str(GPU_DAY / "cluster.toml"), str(GPU_DAY / "jobs.csv")]
    assert main(["plan", *files, "--report", str(tmp_path / "x.pdf")]) == 2
    assert "report=" in capsys.readouterr().err
    assert main(["compare", *files, "--plot", str(tmp_path / "x.html")]) == 2
    assert "plot=" in capsys.readouterr().err
