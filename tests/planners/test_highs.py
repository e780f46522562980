"""What HiGHS prints stays out of what our commands print."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="needs the C library of the process")
def test_lines_that_c_code_prints_do_not_reach_standard_output() -> None:
    script = """
        import ctypes
        from downclock.planners.highs import _silence
        print("before")
        with _silence():
            ctypes.CDLL(None).puts(b"noise")
        print("after")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["before", "after"]
    assert done.stderr == ""
