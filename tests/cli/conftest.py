"""A small cluster and its jobs as files, and a way to run commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from downclock.cli import main
from downclock.cli.session import COMPILING

CLUSTER = """\
applications = "library.json"

[[kind]]
name = "gpu"
idle_w = 10.0
core = [0.5, 1.0]
law = "fixed"

[[server]]
name = "s"
count = 2
processors = [{ kind = "gpu", count = 2 }]
wake_j = 100.0
"""

LIBRARY = """\
{"format": "downclock-library/1", "applications": [
  {"name": "train", "profiles": {"gpu": {"model": "gpu", "p0_w": 40, "gamma_w": 0, "c_w": 60,
                                         "d_s": 10, "delta": 1, "t0_s": 0}}}]}
"""

JOBS = """\
name,application,scale,arrival_s,deadline_s
a,train,2,0,100
b,train,1,5,60
c,train,3,10,
d,train,4,0,30
"""
"""Job d needs 40 s at full speed and has 30 s: it cannot be met."""

MEASUREMENTS = """\
application,core_mhz,memory_mhz,time_s,power_w
slow,500,1000,20,60
slow,1000,1000,10,100
slow,1500,1000,7,170
"""


@dataclass(frozen=True)
class Files:
    """A folder with a problem in it."""

    folder: Path
    cluster: str
    jobs: str

    def write(self, name: str, content: str | bytes) -> str:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def path(self, name: str) -> str:
        return str(self.folder / name)


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path, str(tmp_path / "cluster.toml"), str(tmp_path / "jobs.csv"))
    made.write("cluster.toml", CLUSTER)
    made.write("library.json", LIBRARY)
    made.write("jobs.csv", JOBS)
    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run a command in this process, as the console script would.

    What other tests ran before says whether a loop is compiled meanwhile: that line is left out.
    """

    def go(*arguments: str) -> Ran:
        code = main(arguments)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err.replace(f"{COMPILING}\n", ""))

    return go
