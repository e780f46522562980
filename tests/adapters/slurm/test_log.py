"""The log: what was appended is there, whatever is killed; two writers are refused."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from downclock.adapters.slurm.log import MOMENT, Log
from downclock.errors import DownclockError, InvalidInput

WRITER = """
import sys
from pathlib import Path
from downclock.adapters.slurm.log import MOMENT, Log
log = Log(Path(sys.argv[1]))
for k in range(100000):
    log.append(float(k), [(MOMENT, {"k": k}), (MOMENT, {"k": k})])
    print(k, flush=True)
"""


def test_rows_come_back_in_order(tmp_path: Path) -> None:
    log = Log(tmp_path / "deep" / "log.db")
    log.append(1.0, [(MOMENT, {"a": [1, None]}), ("decided", {})])
    log.append(2.0, [])
    assert list(log.rows()) == [(1, 1.0, MOMENT, {"a": [1, None]}), (2, 1.0, "decided", {})]
    assert (log.last_two(MOMENT), log.last_two("begun")) == ((1, 1), (0, 0))
    log.delete()
    assert list((tmp_path / "deep").iterdir()) == []


def test_a_kill_loses_nothing_that_was_said_to_be_written(tmp_path: Path) -> None:
    file = tmp_path / "log.db"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file)], stdout=subprocess.PIPE, env=os.environ
    ) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(20)]
        writer.send_signal(signal.SIGKILL)
        said += writer.stdout.readlines()
    last = int(said[-1] if said[-1].endswith(b"\n") else said[-2])
    rows = [entry["k"] for *_, entry in Log(file).rows()]
    assert rows[: 2 * last + 2] == [k for k in range(last + 1) for _ in range(2)]
    assert len(rows) % 2 == 0  # a moment and its decisions are written together


def test_another_writer_is_refused_and_a_reader_is_not(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.db")
    log.append(0.0, [(MOMENT, {})])
    with pytest.raises(InvalidInput, match="is in use"):
        Log(tmp_path / "log.db")
    reader = Log(tmp_path / "log.db", dry=True)
    reader.append(1.0, [(MOMENT, {})])
    assert len(list(reader.rows())) == 1
    log.close()
    Log(tmp_path / "log.db").close()


READ = """
import os, sys
from pathlib import Path
from downclock.adapters.slurm.log import Log
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
print(len(list(Log(Path(sys.argv[1]), dry=True).rows())))
"""


@pytest.mark.parametrize("ends", ["closed", "killed", "written"])
def test_who_may_only_read_the_log_reads_it(ends: str) -> None:
    with tempfile.TemporaryDirectory(prefix="a?b#") as name:
        folder = Path(name)
        folder.chmod(0o755)
        log = Log(folder / "log.db")
        log.append(0.0, [(MOMENT, {})])
        if ends == "killed":
            shutil.copytree(folder, folder / "copy")
        (log.close if ends == "closed" else log.rows)()
        file = folder / "copy" / "log.db" if ends == "killed" else folder / "log.db"
        words = [sys.executable, "-c", READ, str(file)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == ("1\n", "")
        log.close()


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello, I am no database\n" * 100)
    for dry in (True, False):
        with pytest.raises(InvalidInput, match="cannot be opened"):
            Log(tmp_path / "text", dry=dry)
    with sqlite3.connect(tmp_path / "later.db") as other:
        other.execute("PRAGMA user_version=99")
    with pytest.raises(InvalidInput, match="version 99"):
        Log(tmp_path / "later.db")


def test_a_full_disk_is_one_line_and_leaves_no_half(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.db")
    log.append(0.0, [(MOMENT, {})])
    pages = log._db.execute("PRAGMA page_count").fetchone()[0]
    log._db.execute(f"PRAGMA max_page_count={pages}")
    for _ in range(2):
        with pytest.raises(DownclockError, match=r"log\.db: cannot be written.*full"):
            log.append(1.0, [(MOMENT, {}), (MOMENT, {"long": "x" * 100_000})])
    log._db.execute("PRAGMA max_page_count=100000")
    log.append(2.0, [(MOMENT, {"a": 1})])
    assert [entry for *_, entry in log.rows()] == [{}, {"a": 1}]


@pytest.mark.parametrize("dry", [True, False])
def test_a_damaged_log_is_one_line_that_says_what_to_do(tmp_path: Path, dry: bool) -> None:
    for file, size in (("rows.db", 0), ("pages.db", 4096)):
        log = Log(tmp_path / file)
        log.append(0.0, [(MOMENT, {})])
        log._db.execute("UPDATE log SET entry = '{'")
        log.close()
        if size:
            data = (tmp_path / file).read_bytes()
            (tmp_path / file).write_bytes(data[:size] + b"Z" * (len(data) - size))
        with pytest.raises(DownclockError, match=f"{file}: cannot be read: move it away"):
            list(Log(tmp_path / file, dry=dry).rows())


def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be opened"):
        Log(tmp_path / "a\0b")
