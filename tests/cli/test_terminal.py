"""Every command on a terminal: quiet where asked, no colour where asked, a sign of life, Ctrl-C."""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from downclock.adapters.devices.cpu import cpu_packages
from downclock.cli import main
from downclock.cli.app import COMMANDS
from downclock.cli.session import Session
from downclock.cli.waiting import PATIENCE_S, Line, line
from downclock.kernels.compiling import METER
from tests.adapters.devices.test_devices import sysfs
from tests.cli.conftest import MEASUREMENTS, Files
from tests.cli.test_widths import SWEEP, TRACE
from tests.planners.chip.test_stg import SMALL

COLOUR = re.compile(r"\x1b\[[\d;]*m")
SAYS_NOTHING_FOR_LONG = {"policies", "completion", "init", "agent", "slurm"}
"""Commands that only list what is there."""


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Terminal]:
    """Return how to make both streams one terminal; pytest changes them after fixtures."""

    def turned_on() -> Terminal:
        screen = Terminal()
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setattr(sys, "stderr", screen)
        return screen

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return turned_on


@pytest.fixture
def arguments(files, run, monkeypatch) -> Callable[[str], list[str]]:
    """Return how to give a command something to do, and a file to write where it can."""
    schedule = files.path("schedule.json")
    assert run("plan", files.cluster, files.jobs, "--output", schedule, "--quiet").code == 0
    both, measured = [files.cluster, files.jobs], files.write("runs.csv", MEASUREMENTS)
    graph = files.write("graph.stg", SMALL)
    given = {
        "demo": [files.path("demo")],
        "init": [files.path("init")],
        "plan": [*both, "--output", files.path("new.json"), "--report", files.path("new.html")],
        "verify": [*both, schedule, "--output", files.path("new.txt")],
        "account": [*both, schedule, "--output", files.path("new.txt")],
        "fit": [measured, "--kind", "g", "--default-core-mhz", "1000", "--model", "table"],
        "slurm": ["snippet"],
        "devices": ["--output", files.path("new.txt")],
        "measure": a_sweep(files, monkeypatch),
        "export": [*both, schedule, "--to", "csv", "--output", files.path("new.csv")],
        "agent": ["recover", "--state", files.path("state")],
        "generate": [
            "mei2021-offline",
            "--utilisation",
            "0.01",
            "--output",
            files.path("new.json"),
        ],
        "convert": [graph, "--cores", "2", "--output", files.path("new.json")],
        "whatif": [files.write("trace.csv", TRACE), "--output", files.path("new.html")],
        "sweep": [files.write("s.toml", SWEEP), "--jobs", "1", "--output", files.path("runs")],
        "show": [*both, schedule, "--output", files.path("new.txt")],
        "report": [*both, schedule, "--output", files.path("new.html")],
        "compare": [*both, "--policies", "race", "--output", files.path("new.csv")],
        "simulate": [*both, "--output", files.path("new.json")],
        "explain": [*both, schedule, "a", "--output", files.path("new.txt")],
        "papers": ["gerards", "--item", "example1", "--page", files.path("new.md")],
        "policies": ["--output", files.path("new.txt")],
        "compile": ["race"],
        "completion": ["bash"],
    }
    return lambda name: [name, *given[name]]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "completion"])
def test_quiet_prints_nothing_but_errors(name, run, arguments):
    ran = run(*arguments(name), "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_no_color_is_obeyed(name, arguments, terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    screen = terminal()
    assert main(without_result_file(arguments(name))) == 0
    assert screen.getvalue().strip()
    assert not COLOUR.search(screen.getvalue())


@pytest.mark.parametrize("name", COMMANDS)
def test_what_may_take_long_says_so_on_a_terminal(name, arguments, terminal, monkeypatch):
    said = []

    @contextmanager
    def heard(session: Session, text: str) -> Iterator[None]:
        said.append(text)
        yield

    monkeypatch.setattr(Session, "working", heard)
    terminal()
    assert main(arguments(name)) == 0
    assert bool(said) == (name not in SAYS_NOTHING_FOR_LONG)


KEEPS_WHAT_IS_DONE = {"sweep"}
"""Goes on where it was stopped; tests/study/test_sweep.py has it."""


@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if name not in SAYS_NOTHING_FOR_LONG | KEEPS_WHAT_IS_DONE]
)
def test_an_interrupt_leaves_nothing_half_written(name, run, files, arguments, monkeypatch):
    @contextmanager
    def interrupted(session: Session, text: str) -> Iterator[None]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(Session, "working", interrupted)
    given = arguments(name)
    before = set(Path(files.folder).iterdir())
    ran = run(*given)
    assert (ran.code, ran.out) == (130, "")
    assert ran.err.strip() == "interrupted; nothing was written"
    assert set(Path(files.folder).iterdir()) == before


def test_tables_are_bold_on_a_terminal_that_allows_it(terminal):
    screen = terminal()
    assert main(["policies"]) == 0
    assert COLOUR.search(screen.getvalue())


def test_a_line_appears_once_it_takes_long_and_goes_when_it_is_done(terminal):
    screen = terminal()
    with line("thinking"):
        until = time.monotonic() + 20.0 + PATIENCE_S
        while "thinking" not in screen.getvalue() and time.monotonic() < until:
            time.sleep(0.02)
    assert "thinking" in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[2K")


def test_what_is_quick_needs_no_line(terminal):
    screen = terminal()
    with line("thinking"):
        pass
    assert screen.getvalue() == ""


def test_a_line_says_how_much_is_done_and_how_long_the_rest_takes(monkeypatch):
    now = 100.0
    monkeypatch.setattr("downclock.cli.waiting.time.monotonic", lambda: now)
    shown = Line("planning")
    assert shown.words(103.0) == "planning (0:03)"
    shown.update("planning by race", 1, 4)
    assert shown.words(120.0) == "planning by race (1 of 4, 25 %, about 1:00 left, 0:20)"
    shown.compiling("run_plan", 10, 60)
    words = "planning by race: compiling, once on this machine: 16 %, about 0:20 left"
    assert shown.words(121.0) == words
    shown.compiling("run_plan", 60, 60)
    assert shown.words(140.0) == "planning by race (1 of 4, 25 %, about 2:00 left, 0:40)"


@pytest.mark.parametrize("quiet", [False, True])
def test_what_is_no_terminal_is_told_once_of_compiling(capsys, quiet):
    """Every command waits in `working`; a log said nothing for the minutes that it took."""
    session = Session(quiet=quiet)
    for text in ("planning", "writing"):
        with session.working(text) as progress:
            assert progress is None
            if METER.listener is not None:
                METER.listener("run_plan", 0, 9)
                METER.listener("run_plan", 9, 9)
    assert METER.listener is None
    said = "" if quiet else "compiling, once on this machine: it may take minutes\n"
    assert capsys.readouterr().err == said


def test_notes_stand_above_the_line(terminal):
    screen = terminal()
    session = Session()
    with line("thinking"):
        until = time.monotonic() + 20.0
        while "thinking" not in screen.getvalue() and time.monotonic() < until:
            time.sleep(0.02)
        session.note("half of it is done")
    assert "\r\x1b[2Khalf of it is done\n" in screen.getvalue()


def without_result_file(given: list[str]) -> list[str]:
    """Let the result be printed rather than written, where the command could do either."""
    if "--output" not in given or given[0] in (
        "convert",
        "generate",
        "measure",
        "report",
        "sweep",
        "whatif",
    ):
        return given
    k = given.index("--output")
    return given[:k] + given[k + 2 :]


def a_sweep(files: Files, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Words that measure a command on a CPU whose meter that command moves."""
    root = files.folder / "machine"
    sysfs(root)
    found = cpu_packages(str(root))
    monkeypatch.setattr("downclock.adapters.devices.machine.devices", lambda *_: (found, []))
    meter = root / "sys/class/powercap/intel-rapl:0/energy_uj"
    script = files.write("work", f"#!/bin/sh\necho $(($(cat {meter}) + 4000000)) > {meter}\n")
    Path(script).chmod(0o755)
    how = ["--device", "cpu1", "--core-mhz", "1000,2000", "--repeats", "1", "--warm-up", "0"]
    return [*how, "--state", str(root / "state"), "--output", files.path("sweep.csv"), script]
