"""What a package index shows: the README with absolute links, and links to the project.

Both need the address of the repository, which is `home` in pyproject.toml; without one the README
stays as it is, and there are no links.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
"""A picture or a link to a file of the repository."""


def with_absolute_links(readme: str, home: str) -> str:
    """Return the README with its pictures and links under the repository's address."""
    return LINK.sub(
        lambda m: f"{m[1]}[{m[2]}]({home}/{'raw' if m[1] else 'blob'}/main/{m[3]})", readme
    )


def links_of(home: str) -> dict[str, str]:
    """Return the links that an index shows beside the package."""
    return {
        "Homepage": home,
        "Documentation": f"{home}/blob/main/docs/index.md",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }


class Shown(MetadataHookInterface):
    """Fills in README and links when the package is built."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Write both into the metadata."""
        home = self.config.get("home", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        if home:
            text = with_absolute_links(text, home)
            metadata["urls"] = links_of(home)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
