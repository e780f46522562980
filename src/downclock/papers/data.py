"""Public data that are not ours to pass on: looked for in the folder that DOWNCLOCK_DATA names."""

from __future__ import annotations

import os
from pathlib import Path


def data(*parts: str) -> Path | None:
    """Return a file or folder of the public data; None where it is absent."""
    root = os.environ.get("DOWNCLOCK_DATA")
    path = None if root is None else Path(root, *parts)
    return path if path is not None and path.exists() else None


def absent(*parts: str) -> str:
    """Say what is absent."""
    return f"data absent: set DOWNCLOCK_DATA to a folder that holds {'/'.join(parts)}"
