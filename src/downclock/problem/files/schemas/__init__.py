"""JSON Schemas of our files, for editors and other programs.

``tasks``, ``cluster`` (the JSON image of the TOML file), ``prices`` (as they stand in a problem
file), ``library``, ``problem`` and ``schedule``. References between them are file names, so the
folder can be copied as it is. The readers do not need them.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

NAMES = ("cluster", "library", "prices", "problem", "schedule", "tasks")


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of one kind of file."""
    text = resources.files(__package__).joinpath(f"{name}.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded
