"""Ctrl-C on a real terminal: heard inside compiled loops and at 30,000 jobs, while a line moves."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from pathlib import Path

import pytest

import downclock as dc
from downclock.kernels.compiling import available
from tests.conftest import ROOT

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")

SPIN = """\
import sys
from downclock.cli.exit_codes import exit_code_of
from downclock.cli.interrupts import interruptible
from downclock.cli.session import Session
from downclock.kernels.compiling import at_once, compiled

@compiled
def spin(n):
    total = 0.0
    for i in range(n):
        total += 0.5 * i
    return total

def work():
    session = Session()
    with at_once(), session.working("spinning"):
        print("begun", flush=True)
        spin(10**13)
    return 0

sys.exit(interruptible(work, lambda interrupt: exit_code_of(interrupt, Session())))
"""
"""An hour in one call."""

LONG_S = 60.0
"""A test that waits for longer has failed; nothing here needs more than a few seconds."""


def interrupted(arguments: list[str], once: bytes, paints: int) -> tuple[int, str]:
    """Run Python on a terminal; press Ctrl-C when a text was painted so often."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ["PYTHONPATH"] = str(ROOT / "src")
        os.environ["COLUMNS"] = "100"
        os.environ["TERM"] = "xterm"
        os.execv(sys.executable, [sys.executable, *arguments])
    seen, pressed, begun = b"", False, time.monotonic()
    while time.monotonic() - begun < LONG_S:
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            some = os.read(terminal, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not some:
            break
        seen += some
        if not pressed and seen.count(once) >= paints:
            os.write(terminal, b"\x03")
            pressed = True
    else:
        os.kill(child, 9)
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert pressed, seen
    return os.waitstatus_to_exitcode(status), seen.decode()


@pytest.mark.skipif(not available(), reason="numba is not installed")
def test_a_compiled_loop_lets_the_line_move_and_is_interrupted(tmp_path: Path) -> None:
    script = tmp_path / "spin.py"
    script.write_text(SPIN)
    code, seen = interrupted([str(script)], b"spinning (0:0", paints=6)
    assert code == 130, seen
    assert re.search(r"(\n|\x1b\[2K)interrupted; nothing was written\r\n", seen)
    signs = re.findall(r"([|/\\-]) spinning", seen)
    assert set(signs) == set("|/\\-")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """30,000 jobs on 4,096 processors."""
    path = tmp_path_factory.mktemp("many") / "problem.json"
    problem = dc.generate("mei2021-online", utilisation=14.65, pairs=4096)
    assert len(problem.tasks) > 30_000
    dc.write_problem(problem, path)
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["plan", "simulate", "compare"])
def test_30000_jobs_are_interrupted_while_a_line_moves(command: str, many: str) -> None:
    code, seen = interrupted(["-m", "downclock", command, many], b"planning", paints=4)
    assert code == 130, seen
    assert re.search(r"(\n|\x1b\[2K)interrupted; nothing was written\r\n", seen)
