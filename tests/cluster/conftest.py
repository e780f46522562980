"""A Slurm for each test that asks for one; nothing runs where Slurm is missing or not wanted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.loopback import Loopback, missing, wait_for

WHY_NOT = missing() or ("" if os.environ.get("DOWNCLOCK_CLUSTER") else "make cluster-test runs it")

CLUSTER = """\
applications = "builtin:a100"

[[kind]]
name = "a100"
idle_w = 45.0

[[server]]
name = "node"
count = {nodes}
processors = [{{ kind = "a100", count = {gpus} }}]
host_w = 50.0
wake_j = 100.0
wake_s = {wake_s}
"""

SITE = """\
cluster = "cluster.toml"
interval_s = 0.5
overhead_s = 6.0
grace_s = 60.0
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Name every test as skipped where it cannot run."""
    for item in items:
        if WHY_NOT and "tests/cluster" in str(item.path):
            item.add_marker(pytest.mark.skip(reason=WHY_NOT))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: the path of a socket must be short."""
    made = Path(tempfile.mkdtemp(prefix="dcs"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


class Site:
    """A cluster with its site files, and our command."""

    def __init__(self, cluster: Loopback, more: str = "", wake_s: float = 0.0) -> None:
        self.cluster, self.folder = cluster, cluster.folder / "site"
        self.folder.mkdir()
        text = CLUSTER.format(nodes=len(cluster.nodes), gpus=cluster.gpus, wake_s=wake_s)
        (self.folder / "cluster.toml").write_text(text)
        self.file = self.folder / "site.toml"
        self.file.write_text(SITE + more)
        self.watcher: subprocess.Popen[bytes] | None = None

    def words(self, verb: str, *words: str) -> list[str]:
        """Our command."""
        return [sys.executable, "-m", "downclock", "slurm", verb, str(self.file), *words]

    def run(self, verb: str, *words: str) -> str:
        """Run it to its end and return what it prints."""
        return self.cluster.run(*self.words(verb, *words), timeout=200)

    def watch(self) -> None:
        """Start to watch."""
        with (self.folder / "watch.out").open("ab") as out:
            self.watcher = subprocess.Popen(
                self.words("watch"), env=self.cluster.environment, stdout=out, stderr=out,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def stop(self, number: int = signal.SIGINT) -> None:
        """Stop watching."""
        if self.watcher is not None:
            self.watcher.send_signal(number)
            self.watcher.wait(30)
            self.watcher = None

    def settled(self, seconds: float) -> None:
        """Wait until no job waits or runs."""
        wait_for(lambda: not self.cluster.run("squeue", "-h"), seconds, "jobs are left")


@pytest.fixture
def site(folder: Path) -> Iterator[Site]:
    """Two nodes with two GPUs each."""
    with Loopback(folder, 2, 2) as cluster:
        made = Site(cluster)
        yield made
        made.stop(signal.SIGKILL)
