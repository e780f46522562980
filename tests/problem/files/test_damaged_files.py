"""Whatever happens to a file, reading it works or is refused in one line: never another error."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.problem.files.files import load_problem
from downclock.problem.files.read_problem import read_problem
from downclock.problem.files.write_problem import write_problem
from downclock.problem.files.write_tasks import write_tasks
from downclock.schedule.files import read_schedule, write_schedule
from tests.conftest import ROOT
from tests.generated import random_problem, random_schedule

DAMAGES_A_FILE = 60

JUNK = (
    *(b"", b"nan", b"-1", b"1e999", b"null", b"true", b"[]", b"{}", b'"', b",", b"\n", b"\x00"),
    *(b"\xff", b"9" * 400, b"0.5", b"x", b"[[", b"]", b"}", b"'", b"=", b"\r", b"1e-320", b";"),
)


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace, insert or cut: a word of the file, or somewhere in the middle of it."""
    junk = JUNK[int(rng.integers(len(JUNK)))]
    words = list(re.finditer(rb"[\w.+-]+", data))
    kind = int(rng.integers(4))
    if kind < 2 and words:
        word = words[int(rng.integers(len(words)))]
        return data[: word.start()] + junk + data[word.end() :]
    at = int(rng.integers(len(data)))
    return data[:at] + junk + data[at:] if kind == 2 else data[:at]


def files(folder: Path) -> dict[str, Callable[[], object]]:
    """Write good files of every kind; return how each is read."""
    for name in ("cluster.toml", "jobs.csv", "prices.csv"):
        shutil.copy(ROOT / "examples" / "gpu-day" / name, folder / name)
    problem = random_problem(4, tasks=6, edges=True, prices=True)
    schedule = random_schedule(problem, 4)
    write_problem(problem, folder / "problem.json")
    for suffix in ("json", "csv", "parquet"):
        write_schedule(schedule, problem, folder / f"plan.{suffix}")
    day = load_problem(folder / "cluster.toml", folder / "jobs.csv")
    write_tasks(day.tasks, day.library, folder / "jobs.json")
    write_tasks(day.tasks, day.library, folder / "jobs.parquet")

    def load(jobs: str) -> Callable[[], object]:
        return lambda: load_problem(folder / "cluster.toml", folder / jobs)

    def plan(suffix: str) -> Callable[[], object]:
        return lambda: read_schedule(folder / f"plan.{suffix}", problem)

    return {
        "cluster.toml": load("jobs.csv"),
        "prices.csv": load("jobs.csv"),
        **{f"jobs.{suffix}": load(f"jobs.{suffix}") for suffix in ("csv", "json", "parquet")},
        "problem.json": lambda: read_problem(folder / "problem.json"),
        **{f"plan.{suffix}": plan(suffix) for suffix in ("csv", "json", "parquet")},
    }


NAMES = (
    *("cluster.toml", "prices.csv", "jobs.csv", "jobs.json", "jobs.parquet", "problem.json"),
    *("plan.csv", "plan.json", "plan.parquet"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, name: str) -> None:
    read = files(tmp_path)[name]
    good = (tmp_path / name).read_bytes()
    rng = np.random.default_rng(list(name.encode()))
    complaints = []
    for _ in range(DAMAGES_A_FILE):
        (tmp_path / name).write_bytes(damaged(good, rng))
        try:
            read()
        except InvalidInput as error:
            complaints.append(str(error))
    assert len(complaints) > DAMAGES_A_FILE / 4
    for complaint in complaints:
        assert "\n" not in complaint
        assert str(tmp_path) in complaint
