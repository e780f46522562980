"""Every command at 40, 60 and 120 columns, piped: golden files, nothing cut, no name lost.

``python -m tests.cli.test_widths`` writes the golden files anew.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from downclock.cli import main
from downclock.cli.app import COMMANDS, app
from tests.cli.conftest import CLUSTER, JOBS, LIBRARY, MEASUREMENTS
from tests.planners.chip.test_stg import SMALL

GOLDEN = Path(__file__).parent / "golden"
WIDTHS = (40, 60, 120)
BOTH = ["cluster.toml", "jobs.csv"]
GIVEN: dict[str, list[str]] = {
    "demo": ["new"],
    "init": ["new"],
    "plan": [*BOTH, "--policy", "edl"],
    "verify": [*BOTH, "schedule.json"],
    "account": [*BOTH, "schedule.json"],
    "fit": ["runs.csv", "--kind", "g", "--default-core-mhz", "1000", "--model", "table"],
    "generate": ["mei2021-offline", "--utilisation", "0.01", "-o", "new.json"],
    "convert": ["graph.stg", "--cores", "2", "-o", "new.json"],
    "whatif": ["trace.csv", "-o", "new.html", "--flat-price", "0.2", "--flat-carbon", "400"],
    "show": [*BOTH, "schedule.json"],
    "report": [*BOTH, "schedule.json", "-o", "new.html"],
    "compare": [*BOTH, "--policies", "race,edl"],
    "simulate": [*BOTH, "--policy", "edl", "--runs", "2", "--actual", "uniform:0.5:1"],
    "sweep": ["sweep.toml", "--jobs", "1"],
    "explain": [*BOTH, "schedule.json", "a"],
    "papers": ["gerards", "--item", "example1", "--jobs", "1"],
    "policies": ["edl"],
    "compile": ["edl"],
    "devices": [],
}
"""What each command is given."""

SCRIPTS: dict[str, list[str]] = {
    "export": [*BOTH, "schedule.json", "--to", "csv"],
    "slurm": ["snippet"],
    "completion": ["bash"],
}
"""The same for commands that print a script, which a terminal may not wrap.

`measure`, `agent` and the rest of `slurm` act on devices and on Slurm: only their help is here.
"""

GPU = SimpleNamespace(
    label="gpu0",
    name="A100-SXM4-40GB",
    uuid="GPU-1",
    clock_pairs=lambda: ((1215, tuple(range(210, 1411, 15))),),
    clocks_mhz=lambda: (1410, 1215),
    power_limits_w=lambda: (100.0, 400.0),
    power_limit_w=lambda: 400.0,
    power_w=lambda: 45.0,
    energy_j=lambda: 1234.5,
    setter="root",
)
"""What `devices` finds."""

TRACE = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:00:00,3600,1,3600,vc1
2017-10-09 07:30:00,1800,1,1800,vc1
2017-10-09 12:00:00,600,1,600,vc2
"""

SWEEP = """
policies = ["race", "edl"]
seeds = 3
[[problem]]
cluster = "cluster.toml"
jobs = "jobs.csv"
[simulate]
actual = ["uniform:0.5:1", "uniform:0.9:1"]
"""


def printed(words: list[str], width: int, folder: Path) -> str:
    """What a command prints through a pipe, where planning takes no time and nothing compiles."""
    for name, text in (
        ("cluster.toml", CLUSTER),
        ("jobs.csv", JOBS),
        ("library.json", LIBRARY),
        ("runs.csv", MEASUREMENTS),
        ("graph.stg", SMALL),
        ("sweep.toml", SWEEP),
        ("trace.csv", TRACE),
    ):
        (folder / name).write_text(text)
    before, columns = os.getcwd(), os.environ.get("COLUMNS")
    out = io.StringIO()
    os.chdir(folder)
    os.environ["COLUMNS"] = str(width)
    try:
        if "schedule.json" in words:
            assert main(["plan", *BOTH, "--policy", "edl", "-o", "schedule.json", "-q"]) == 0
        frozen = mock.patch("time.perf_counter", return_value=0.0)
        plain = mock.patch("downclock.kernels.compiling.available", return_value=False)
        found = mock.patch(
            "downclock.adapters.devices.machine.devices", return_value=([GPU], ["a note"])
        )
        with frozen, plain, found, redirect_stdout(out), redirect_stderr(io.StringIO()):
            assert main(words) == 0
    finally:
        os.chdir(before)
        os.environ["COLUMNS"] = columns or "100"
    return out.getvalue()


def helped(width: int, folder: Path) -> str:
    """The help of every command."""
    asked = [["--help"], *([name, "--help"] for name in COMMANDS)]
    return "\n".join(printed(words, width, folder) for words in asked)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", GIVEN)
def test_a_command_prints_its_golden_file(command: str, width: int, tmp_path: Path) -> None:
    text = printed([command, *GIVEN[command]], width, tmp_path)
    assert text == (GOLDEN / f"{command}-{width}.txt").read_text(encoding="utf-8")
    assert max(map(len, text.splitlines()), default=0) <= width
    assert "…" not in text


@pytest.mark.parametrize("command", SCRIPTS)
def test_a_script_is_the_same_on_every_terminal(command: str, tmp_path: Path) -> None:
    golden = (GOLDEN / f"{command}.txt").read_text(encoding="utf-8")
    for width in WIDTHS:
        assert printed([command, *SCRIPTS[command]], width, tmp_path) == golden


@pytest.mark.parametrize("width", WIDTHS)
def test_help_prints_its_golden_file(width: int, tmp_path: Path) -> None:
    assert helped(width, tmp_path) == (GOLDEN / f"help-{width}.txt").read_text(encoding="utf-8")


def test_the_same_option_means_the_same_everywhere() -> None:
    """-o is --output wherever there is one; --prices, --seed, --format have no second names."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for name in COMMANDS:
        command = app.get_command(None, name)  # type: ignore[arg-type]
        for parameter in command.params if command is not None else ():
            for key in ("--output", "--quiet", "--prices", "--seed", "--format", "--columns"):
                if key in parameter.opts:
                    found.setdefault(key, set()).add(tuple(parameter.opts))
    assert found["--output"] == {("-o", "--output")}
    assert all(len(ways) == 1 for ways in found.values()), found


def write_golden() -> None:
    """Write all golden files."""
    GOLDEN.mkdir(exist_ok=True)
    for width in WIDTHS:
        for command in (*GIVEN, "help"):
            with tempfile.TemporaryDirectory() as folder:
                text = (
                    helped(width, Path(folder))
                    if command == "help"
                    else printed([command, *GIVEN[command]], width, Path(folder))
                )
            (GOLDEN / f"{command}-{width}.txt").write_text(text, encoding="utf-8")
    for command, given in SCRIPTS.items():
        with tempfile.TemporaryDirectory() as folder:
            text = printed([command, *given], WIDTHS[-1], Path(folder))
        (GOLDEN / f"{command}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(write_golden())
