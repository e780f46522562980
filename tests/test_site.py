"""The site is whole: every page is in the navigation, every link and picture leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.conftest import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
LARGEST_PICTURE_BYTES = 300_000


def prose(page: Path) -> str:
    """The page without code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    return re.sub(r"`[^`\n]+`", "", text)


def links(page: Path) -> Iterator[str]:
    """Targets of the links and pictures of a page."""
    yield from re.findall(r"(?<!\\)\]\(([^()\s]+)\)", prose(page))


def anchors(page: Path) -> set[str]:
    """Headings as mkdocs names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    words = [re.sub(r"[^\w\s-]", "", re.sub(r"[`*_\\]", "", each)).strip() for each in headings]
    return {re.sub(r"[-\s]+", "-", each.lower()) for each in words}


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_somewhere(page):
    for link in links(page):
        target, _, anchor = unquote(link).partition("#")
        if re.match(r"[a-z]+:", target):
            assert target.startswith("https://"), link
            continue
        there = page if not target else (page.parent / target).resolve()
        assert there.exists(), f"{named(page)}: {link}"
        assert there.is_relative_to(ROOT), f"{named(page)}: {link} leaves the checkout"
        if anchor:
            assert anchor in anchors(there), f"{named(page)}: {link}"


def test_pages_of_the_site_link_only_to_the_site():
    """A link out of docs/ works in a checkout, and breaks on the site."""
    for page in DOCS.rglob("*.md"):
        for link in links(page):
            if not re.match(r"[a-z]+:", link):
                there = (page.parent / unquote(link).partition("#")[0]).resolve()
                assert there.is_relative_to(DOCS), f"{named(page)}: {link}"


def test_every_page_is_in_the_navigation_once():
    listed = re.findall(r"^ +- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    pages = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
    assert sorted(listed) == pages


@pytest.mark.parametrize(
    "name", ["plan", "verify", "account", "report", "compare", "explain", "simulate", "papers"]
)
def test_the_pages_show_how_to(name):
    """Examples on these pages are run by `tests/test_docs.py`."""
    pages = [page for page in PAGES if page.parent.name != "reference"]
    assert any(f"$ downclock {name}" in page.read_text() for page in pages)


def test_pictures_are_small():
    pictures = [*DOCS.rglob("*.png"), *DOCS.rglob("*.svg")]
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < LARGEST_PICTURE_BYTES, named(picture)


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="the group 'docs' is not installed")
    ran = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "papers.html").is_file()


def test_drawings_in_text_fit_the_column_of_the_site():
    """At 1,440 pixels it holds 72 letters; what is longer would be cut."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        drawn = [line for line in page.read_text().splitlines() if "►" in line or "◄" in line]
        assert max(map(len, drawn), default=0) <= 72, page
