"""The JSON Schemas that come with the package, by the kind of file."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

NAMES = ("cluster", "library", "prices", "problem", "schedule", "tasks")


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of one kind of file."""
    folder = resources.files("downclock.problem.files.schemas")
    loaded: dict[str, Any] = json.loads(folder.joinpath(f"{name}.json").read_text("utf-8"))
    return loaded
