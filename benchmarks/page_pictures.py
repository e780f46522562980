"""Screenshots of the report page for the docs: light, dark and on a phone.

    python -m benchmarks.page_pictures

Needs Playwright and Chromium; without them the pictures stay as they are, and that is said.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from downclock.problem.files.files import load_problem
from downclock.report.page import write_report
from downclock.study.summary import summarise

ROOT = Path(__file__).parent.parent
DAY = ROOT / "examples" / "gpu-day"
IMAGES = ROOT / "docs" / "images"
VIEWS = {
    "light": {"viewport": {"width": 1200, "height": 1300}},
    "dark": {"viewport": {"width": 1200, "height": 1300}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 1000}, "is_mobile": True},
}


def main() -> int:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        print("screenshots are left as they are: Chromium or Playwright is not installed")
        return 0
    summary = summarise(load_problem(DAY / "cluster.toml", DAY / "jobs.csv"), "late")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "report.html"
        write_report(summary, page_file)
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        for name, view in VIEWS.items():
            page = chromium.new_context(**view).new_page()
            page.goto(page_file.as_uri())
            page.wait_for_selector("html[data-ready=yes]", state="attached")
            page.screenshot(path=IMAGES / f"report-{name}.png")
        chromium.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
