"""A headless Chromium; without it, or without Playwright, these tests are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from downclock.problem.problem import Problem
from downclock.report.page import write_report
from downclock.schedule.schedule import Schedule
from downclock.study.summary import judge

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@dataclass
class Opened:
    """A page and everything it complained about or asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def box(self, selector: str) -> dict[str, float]:
        """Where an element is on the screen, after scrolling to it."""
        self.page.locator(selector).scroll_into_view_if_needed()
        found: dict[str, float] = self.page.locator(selector).bounding_box()
        return found

    def settle(self) -> None:
        """Wait until what was asked for has been drawn."""
        frame = (
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        self.page.evaluate(frame)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture
def open_report(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Write a report, open it, and hold it to silence: no error, no request but its own file."""
    contexts: list[Any] = []
    pages: list[Opened] = []

    def opened(problem: Problem, schedule: Schedule, **options: Any) -> Opened:
        path = tmp_path / f"report-{len(pages)}.html"
        write_report(judge(problem, schedule), path)
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        mine = Opened(context.new_page())
        pages.append(mine)
        mine.page.on("console", lambda m: mine.complaints.append(f"{m.type}: {m.text}"))
        mine.page.on("pageerror", lambda error: mine.complaints.append(str(error)))
        mine.page.on("dialog", lambda d: (mine.complaints.append(d.message), d.dismiss()))
        mine.page.on("request", lambda r: mine.requests.append(r.url))
        mine.page.goto(path.as_uri())
        mine.page.wait_for_selector("html[data-ready=yes]", state="attached")
        return mine

    yield opened
    for mine in pages:
        assert mine.complaints == []
        assert len(mine.requests) == 1
    for context in contexts:
        context.close()
