"""What tests of workloads share."""

from __future__ import annotations

from pathlib import Path

import pytest

from downclock.workloads.traces.read import read_trace
from downclock.workloads.traces.trace import Trace


@pytest.fixture
def read(tmp_path: Path):
    """Write a text to a file of this name and read it as a trace."""

    def go(name: str, content: str | bytes, **how: object) -> Trace:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_trace(path, **how)

    return go
