"""The report in a browser: it draws, moves, tells and stays silent."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.workloads import mei
from tests.report.conftest import NASTY, awkward

WINDOW = "[downclock.timeline.low, downclock.timeline.high]"
CENTRE = """task => {
  const { model, timeline, gantt } = downclock, i = model.task_segment[task];
  const lane = model.segment_processor[i];
  const at = (model.segment_start[i] + model.segment_end[i]) / 2;
  return [gantt.scale.x(at), (lane - timeline.top + 0.5) * gantt.row];
}"""
PIXELS = "id => document.getElementById(id).toDataURL()"
UNNAMED = """() => [...document.querySelectorAll("button, select, input, canvas, svg[role]")]
  .filter((e) => !e.textContent.trim() && !e.getAttribute("aria-label") && !e.labels?.length)
  .map((e) => e.outerHTML.slice(0, 80))"""


def task_called(problem, name: str) -> int:
    return problem.tasks.name.tolist().index(name)


def point_at(opened, task: int) -> tuple[float, float]:
    box = opened.box("#gantt-canvas")
    x, y = opened.page.evaluate(CENTRE, task)
    return box["x"] + x, box["y"] + y


def test_hover_tells_task_clock_power_and_slack(open_report, day) -> None:
    problem, schedule = day
    opened = open_report(problem, schedule)
    task = task_called(problem, "simulation-076")
    opened.page.mouse.move(*point_at(opened, task))
    opened.settle()
    tip = opened.page.locator("#tip")
    assert tip.is_visible()
    row = int(np.flatnonzero(schedule.segments.task == task)[0])
    _, watts = problem.at(
        schedule.segments.task[[row]], np.array([0]), schedule.segments.points[[row]]
    )
    text = tip.inner_text()
    assert text.startswith("simulation-076")
    assert problem.library.names[problem.tasks.application[task]] in text
    assert f"{schedule.segments.core[row]:.3g}"[:4] in text
    assert f"{watts[0]:.4g} W" in text
    assert "slack" in text
    opened.page.mouse.move(5, 5)
    opened.settle()
    assert not tip.is_visible()


def test_hover_over_an_idle_server_says_so(open_report, day) -> None:
    opened = open_report(*day)
    box = opened.box("#gantt-canvas")
    lane, at = opened.page.evaluate("""() => {
      const { model, timeline, gantt } = downclock;
      for (let lane = 0; lane < model.processors; lane++)
        for (let i = model.segment_first[lane]; i + 1 < model.segment_first[lane + 1]; i++)
          if (model.segment_start[i + 1] - model.segment_end[i] > 900 &&
              gantt.stateAt(model.processor_server[lane], model.segment_end[i] + 450) === 0)
            return [(lane + 0.5) * gantt.row, gantt.scale.x(model.segment_end[i] + 450)];
    }""")
    opened.page.mouse.move(box["x"] + at, box["y"] + lane)
    opened.settle()
    text = opened.page.locator("#tip").inner_text()
    assert "is awake and idle" in text
    assert "37 W" in text


def test_buttons_wheel_and_keys_zoom_and_pan(open_report, day) -> None:
    opened = open_report(*day)
    page = opened.page
    first = page.evaluate(WINDOW)
    page.click("#zoom-in")
    opened.settle()
    low, high = page.evaluate(WINDOW)
    assert high - low == pytest.approx((first[1] - first[0]) / 2)
    assert (low + high) / 2 == pytest.approx((first[0] + first[1]) / 2)
    page.locator("#gantt-canvas").focus()
    page.keyboard.press("ArrowRight")
    opened.settle()
    moved = page.evaluate(WINDOW)
    assert moved[0] - low == pytest.approx((high - low) / 8)
    page.keyboard.press("+")
    opened.settle()
    assert np.diff(page.evaluate(WINDOW))[0] == pytest.approx(0.6 * (high - low))
    page.keyboard.press("0")
    opened.settle()
    assert page.evaluate(WINDOW) == first
    box = opened.box("#gantt-canvas")
    page.mouse.move(box["x"] + 400, box["y"] + 100)
    under = page.evaluate("downclock.gantt.scale.at(400)")
    page.mouse.wheel(0, -240)
    opened.settle()
    assert np.diff(page.evaluate(WINDOW))[0] < 0.8 * (first[1] - first[0])
    assert page.evaluate("downclock.gantt.scale.at(400)") == pytest.approx(under)


def test_the_wheel_scrolls_the_page_until_the_chart_is_chosen(open_report, day) -> None:
    opened = open_report(*day)
    box = opened.box("#gantt-canvas")
    before = opened.page.evaluate(WINDOW)
    opened.page.mouse.move(box["x"] + 400, box["y"] + 100)
    opened.page.mouse.wheel(0, 120)
    opened.settle()
    assert opened.page.evaluate(WINDOW) == before


def test_dragging_moves_time(open_report, day) -> None:
    opened = open_report(*day)
    page = opened.page
    page.click("#zoom-in")
    opened.settle()
    low, high = page.evaluate(WINDOW)
    box = opened.box("#gantt-canvas")
    page.mouse.move(box["x"] + 600, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 60, steps=4)
    page.mouse.up()
    opened.settle()
    wide = page.evaluate("downclock.gantt.scale.right - downclock.gantt.scale.left")
    assert page.evaluate(WINDOW)[0] - low == pytest.approx(100 / wide * (high - low), rel=0.05)


def test_a_click_chooses_the_task_everywhere(open_report, day) -> None:
    problem, schedule = day
    opened = open_report(problem, schedule)
    task = task_called(problem, "training-012")
    opened.page.mouse.click(*point_at(opened, task))
    opened.settle()
    assert opened.page.locator("#frontier-note").inner_text().startswith("training-012")
    assert opened.page.locator("tr.chosen td").first.inner_text() == "training-012"
    assert "training-012" in opened.page.locator("#said").inner_text()
    assert "this plan" in opened.page.locator("#frontier svg").text_content()


def test_keys_step_through_tasks_and_say_them(open_report, day) -> None:
    opened = open_report(*day)
    opened.page.locator("#gantt-canvas").focus()
    for _ in range(3):
        opened.page.keyboard.press("n")
    assert opened.page.locator("#said").inner_text().startswith("etl-003")
    opened.page.keyboard.press("p")
    assert opened.page.locator("#said").inner_text().startswith("simulation-002")


def test_colours_change_with_their_legend(open_report, day) -> None:
    opened = open_report(*day)
    seen = set()
    for by, word in (("clock", "core clock"), ("application", "transpose"), ("slack", "slack")):
        opened.page.select_option("#colour-by", by)
        opened.settle()
        seen.add(opened.page.evaluate(PIXELS, "gantt-canvas"))
        assert word in opened.page.locator("#gantt-legend").inner_text()
    assert len(seen) == 3


def test_the_curve_above_can_be_price_or_carbon(open_report, day) -> None:
    opened = open_report(*day)
    before = opened.page.evaluate(PIXELS, "signal-canvas")
    opened.page.select_option("#signal", label="CO2")
    opened.settle()
    assert opened.page.evaluate(PIXELS, "signal-canvas") != before
    label = opened.page.locator("#signal-canvas").get_attribute("aria-label")
    assert label.startswith("CO2 intensity over time")


def test_search_and_sort(open_report, day) -> None:
    problem, _ = day
    opened = open_report(*day)
    page = opened.page
    page.fill("#search", "risk sobol")
    names = [
        name
        for name, application in zip(problem.tasks.name, problem.tasks.application, strict=True)
        if "risk" in name and "sobol" in problem.library.names[application].lower()
    ]
    assert page.locator("#found").inner_text() == f"{len(names)} of 140 tasks"
    assert page.locator("tr.row td:first-child").all_inner_texts() == sorted(names)
    page.fill("#search", "")
    page.click("#table th:has-text('Energy') button")
    page.click("#table th:has-text('Energy') button")
    assert page.locator("#table th:has-text('Energy')").get_attribute("aria-sort") == "descending"
    first = page.locator("tr.row td:first-child").first.inner_text()
    joules = page.evaluate("[...downclock.model.task_joules]")
    assert first == problem.tasks.name[int(np.argmax(joules))]


def test_a_long_table_draws_only_what_is_seen(open_report) -> None:
    problem = mei.online(3, utilisation=1.0, initial_utilisation=0.1)
    opened = open_report(problem, plan(problem, policy("edl")))
    assert len(problem.tasks) > 2000
    assert opened.page.locator("#table").get_attribute("aria-rowcount") == str(
        len(problem.tasks) + 1
    )
    assert opened.page.locator("tr.row").count() < 60
    opened.page.evaluate("document.getElementById('table-scroll').scrollTop = 1e9")
    opened.settle()
    assert opened.page.locator("tr.row").last.get_attribute("aria-rowindex") == str(
        len(problem.tasks) + 1
    )


@pytest.mark.parametrize("name", sorted(awkward()))
def test_every_odd_schedule_is_drawn(open_report, name: str) -> None:
    problem, schedule = awkward()[name]
    opened = open_report(problem, schedule)
    assert opened.page.evaluate("downclock.timeline.frames") > 0
    assert opened.page.evaluate("downclock.model.segments") == len(schedule.segments)
    shown = opened.page.locator("tr.row td:first-child").all_text_contents()
    assert sorted(shown) == sorted(str(n) for n in problem.tasks.name)


def test_hostile_names_are_only_text(open_report) -> None:
    problem, schedule = awkward()["hostile names"]
    opened = open_report(problem, schedule)
    assert opened.page.locator("h1").text_content() == NASTY[0]
    opened.page.locator("#gantt-canvas").focus()
    for _ in range(len(problem.tasks)):
        opened.page.keyboard.press("n")
    assert opened.page.evaluate("document.querySelectorAll('b, main script').length") == 0


def test_dark_and_light_differ_and_follow_the_system(open_report, day) -> None:
    light = open_report(*day, color_scheme="light")
    before = light.page.evaluate(PIXELS, "gantt-canvas")
    light.page.emulate_media(color_scheme="dark")
    light.settle()
    assert light.page.evaluate(PIXELS, "gantt-canvas") != before
    paper = "getComputedStyle(document.body).backgroundColor"
    assert light.page.evaluate(paper) == "rgb(18, 21, 24)"


def test_a_phone_needs_no_sideways_scrolling(open_report, day) -> None:
    phone = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True}
    opened = open_report(*day, **phone)
    assert opened.page.evaluate("document.documentElement.scrollWidth") == 390
    opened.page.touchscreen.tap(*point_at(opened, 0))
    opened.settle()
    assert opened.page.locator("#tip").is_visible()


def test_it_prints(open_report, day, tmp_path) -> None:
    opened = open_report(*day, color_scheme="dark")
    opened.page.emulate_media(media="print")
    opened.settle()
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    assert not opened.page.locator("#zoom-in").is_visible()
    opened.page.pdf(path=str(tmp_path / "report.pdf"))
    assert (tmp_path / "report.pdf").stat().st_size > 20_000


def test_a_long_table_prints_its_first_rows_and_no_empty_pages(open_report) -> None:
    problem = mei.online(3, utilisation=1.0, initial_utilisation=0.1)
    opened = open_report(problem, plan(problem, policy("edl")))
    opened.page.emulate_media(media="print")
    opened.settle()
    assert opened.page.evaluate("document.documentElement.scrollHeight") < 6000
    assert opened.page.locator(".on-paper").is_visible()


def test_every_control_has_a_name(open_report, day) -> None:
    opened = open_report(*day)
    unnamed = opened.page.evaluate(UNNAMED)
    assert unnamed == []
    assert opened.page.evaluate("document.querySelectorAll('h1').length") == 1


def test_the_task_table_cuts_nothing_where_there_is_room(open_report, day) -> None:
    opened = open_report(*day, viewport={"width": 1440, "height": 900})
    cut = """() => [...document.querySelectorAll("#table th, #table td")]
      .filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"""
    assert opened.page.evaluate(cut) == []
    room = "() => [table.offsetWidth, table.parentElement.clientWidth]"
    wide, there = opened.page.evaluate(room)
    assert wide <= there


def test_servers_that_sleep_all_the_time_are_folded_until_asked_for(open_report, day) -> None:
    problem, schedule = day
    opened = open_report(problem, schedule)
    used = np.unique(problem.platform.server[schedule.segments.processor])
    last = int(problem.platform.first_processor[used.max() + 1])
    assert opened.page.evaluate("downclock.gantt.lanes") == last < problem.platform.processor_count
    asleep = problem.platform.server_count - used.max() - 1
    assert opened.page.locator("#folded").inner_text().startswith(f"{asleep} servers sleep all")
    opened.page.locator("#unfold").click()
    opened.settle()
    assert opened.page.evaluate("downclock.gantt.lanes") == problem.platform.processor_count
    assert not opened.page.locator("#folded").is_visible()


def test_a_gang_is_one_bar_and_a_chosen_workflow_has_arrows(open_report) -> None:
    from tests.report.test_explain import gang_day

    opened = open_report(*gang_day(160.0, 1.0))
    page = opened.page
    # `align` on the first core; `pair` on both, as one bar that its first row owns.
    assert page.evaluate("[...downclock.model.segment_task]") == [0, 1, 1]
    assert page.evaluate("[...downclock.model.segment_rows]") == [1, 2, 0]
    colours = """() => {
      const { gantt } = downclock, { canvas, row, scale } = gantt;
      const ratio = canvas.width / canvas.clientWidth, tall = Math.round(1.4 * row * ratio);
      const pen = canvas.getContext("2d"), x = scale.x(150) * ratio;
      const pixels = pen.getImageData(x, 0.3 * row * ratio, 1, tall);
      return new Set(new Uint32Array(pixels.data.buffer)).size;
    }"""
    assert page.evaluate(colours) == 1
    before = page.evaluate(PIXELS, "gantt-canvas")
    assert page.evaluate("downclock.gantt.workflow.edges") == []
    page.mouse.click(*point_at(opened, 1))
    opened.settle()
    assert page.evaluate("downclock.gantt.workflow.edges") == [0]
    assert page.evaluate(PIXELS, "gantt-canvas") != before
