"""The page of `whatif` in a browser: silent, alone, and nothing wider than the window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from downclock.cli import main
from tests.cli.test_widths import TRACE


@pytest.mark.parametrize("width", [1100, 800, 390])
def test_the_page_fits_its_window_and_asks_for_nothing(
    browser: Any, tmp_path: Path, width: int
) -> None:
    (tmp_path / "trace.csv").write_text(TRACE)
    page = tmp_path / "page.html"
    words = ["whatif", str(tmp_path / "trace.csv"), "-o", str(page), "--flat-price", "0.2", "-q"]
    assert main(words) == 0
    context = browser.new_context(viewport={"width": width, "height": 900})
    opened = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    opened.on("console", lambda m: said.append(m.text))
    opened.on("request", lambda r: asked.append(r.url))
    opened.goto(page.as_uri())
    assert opened.locator("h2").first.inner_text() == "How much of the trace this is about"
    assert opened.locator("table.knobs").count() == 4
    wide = "() => document.documentElement.scrollWidth <= window.innerWidth"
    assert opened.evaluate(wide)
    assert said == []
    assert len(asked) == 1
    context.close()
