"""What HiGHS prints stays out of what our commands print."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from downclock.planners.highs import entries


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


def test_entries_of_one_place_are_added_up() -> None:
    at = np.array([0, 0, 1]), np.array([1, 1, 0])
    assert entries(*at, (2, 2), np.array([1.0, 2.0, 4.0])).toarray().tolist() == [[0, 3], [4, 0]]
    assert entries(*at, (2, 3)).toarray().tolist() == [[0, 2, 0], [1, 0, 0]]
