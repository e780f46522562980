"""How large a report is, how soon it draws and how smoothly it moves: `-m benchmarks.report_page`.

A plan of 100,000 tasks on 512 processors, each task its own application (the worst case for the
file), is written as a page and opened in headless Chromium without a GPU. First draw is the
browser's own clock from the start of navigation; frames a second are of 120 frames that pan and
zoom together. Needs Playwright and Chromium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.report.page import write_report
from downclock.study.summary import judge
from downclock.workloads import mei

TARGET_MB, TARGET_DRAW_S, TARGET_FPS = 12.0, 1.0, 30.0
ROUNDS = 3
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
MOVE = """() => new Promise((done) => {
  const { timeline } = downclock, frames = 120;
  timeline.zoom(0.3);
  let k = 0;
  const start = performance.now();
  const step = () => {
    if (k++ >= frames) return done((1000 * frames) / (performance.now() - start));
    timeline.pan(timeline.span * (k % 60 < 30 ? 0.02 : -0.02));
    timeline.zoom(k % 40 < 20 ? 0.97 : 1.03);
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def measure(chromium: Any, page: Path, **options: Any) -> tuple[float, float, float]:
    """Return first draw (s), frames a second, and the cost of a frame (ms)."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, **options)
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_selector("html[data-ready=yes]", state="attached", timeout=60_000)
    drawn = tab.evaluate("downclock.firstDraw_ms") / 1000.0
    fps = tab.evaluate(MOVE)
    cost = tab.evaluate(
        """() => { downclock.timeline.all(); const start = performance.now();
        for (let k = 0; k < 20; k++) downclock.timeline.draw();
        return (performance.now() - start) / 20; }"""
    )
    context.close()
    return drawn, fps, cost


def main() -> None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.exit("not run: Playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("not run: Chromium is not installed")
    cluster = mei.Cluster(pairs=512)
    problem = mei.online(1, utilisation=0.8, initial_utilisation=0.8, days=60, cluster=cluster)
    schedule = plan(problem, policy("edl"))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "report.html"
        start = time.perf_counter()
        write_report(judge(problem, schedule, baselines=()), page)
        size = page.stat().st_size / 1e6
        print(f"{len(problem.tasks):,} tasks: {size:.1f} MB in {time.perf_counter() - start:.1f} s")
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        rounds = [measure(browser, page) for _ in range(ROUNDS)]
        browser.close()
    drawn, fps, cost = (sorted(column)[ROUNDS // 2] for column in zip(*rounds, strict=True))
    print(f"first draw {drawn:.2f} s, {fps:.0f} frames/s, {cost:.1f} ms a frame (medians)")
    met = size <= TARGET_MB and drawn <= TARGET_DRAW_S and fps >= TARGET_FPS
    verdict = "met" if met else "missed"
    print(f"target {TARGET_MB:g} MB, {TARGET_DRAW_S:g} s, {TARGET_FPS:g} frames/s: {verdict}")


if __name__ == "__main__":
    main()
