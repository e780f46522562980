"""Named small problems and data shared by all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import downclock as dc

settings.register_profile("downclock", deadline=None, derandomize=True)
settings.load_profile("downclock")

# A shell has what it runs in the background ignore Ctrl-C, and so would every command tested here.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with the public measurements, graphs and prices; tests skip where it is absent."""
    folder = Path(os.environ.get("DOWNCLOCK_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("public data absent: set DOWNCLOCK_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def day() -> tuple[dc.Problem, dc.Schedule]:
    """The example: 140 jobs with deadlines, prices that go below 0, carbon, a calendar."""
    folder = ROOT / "examples" / "gpu-day"
    problem = dc.load_problem(folder / "cluster.toml", folder / "jobs.csv")
    return problem, dc.plan(problem, dc.policy("edl"))


@pytest.fixture(scope="session")
def shared_cases(shared_data: Path) -> Path:
    """Folder with inputs that once broke something; tests skip where it is absent."""
    folder = shared_data.parent / "cases"
    if not folder.is_dir():
        pytest.skip("the cases are absent: they lie beside the public data")
    return folder


@pytest.fixture(autouse=True)
def one_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide here as where there is no terminal, however the tests are run."""
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def scheduler() -> Iterator[str]:
    """A Dask scheduler with one worker process, on loopback."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster.scheduler_address
