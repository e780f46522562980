"""Many calls on processes of this machine or on Dask: the same answers, and nobody left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from downclock.errors import DownclockError, InvalidInput, MissingExtra
from downclock.study import executor
from downclock.study.executor import completed, pool

SQUARES = {n: n * n for n in range(40)}


def square(number: int) -> int:
    return number * number


def die_at_three(number: int) -> int:
    if number == 3:
        os._exit(9)
    return number


def test_without_workers_answers_come_in_order():
    with pool(1) as nobody:
        assert nobody is None
        assert list(completed(square, SQUARES, nobody)) == list(SQUARES.items())


def test_processes_answer_every_item_once(monkeypatch):
    monkeypatch.setattr(executor, "IN_FLIGHT", 3)
    with pool(2) as workers:
        assert sorted(completed(square, SQUARES, workers)) == sorted(SQUARES.items())


def test_no_more_processes_than_are_of_use():
    with pool(8, most=1) as workers:
        assert workers is None


def test_dask_answers_every_item_once(scheduler):
    with executor.dask(scheduler) as workers:
        assert sorted(completed(square, SQUARES, workers)) == sorted(SQUARES.items())


def test_a_process_that_is_killed_is_told_of():
    with pytest.raises(DownclockError, match="workers ended before their work did"), pool(2) as two:
        list(completed(die_at_three, range(8), two))


def test_a_dask_worker_that_is_killed_again_and_again_is_told_of(scheduler):
    gone = pytest.raises(DownclockError, match="workers ended before their work did")
    with gone, executor.dask(scheduler) as workers:
        list(completed(die_at_three, [3], workers))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere:x", ""])
def test_an_address_without_a_scheduler_is_refused(monkeypatch, address):
    pytest.importorskip("distributed")
    monkeypatch.setattr(executor, "REACH_S", 0.5)
    with pytest.raises(InvalidInput, match=r"dask=.*no Dask scheduler"), executor.dask(address):
        pass


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"downclock\[dask\]"), executor.dask("tcp://x:1"):
        pass


WAITING = """
import ctypes, sys, time
from downclock.study.executor import pool

def stuck(seconds):
    open(sys.argv[1] + str(time.monotonic_ns()), "w").close()
    ctypes.PyDLL(None).sleep(seconds)  # as a compiled loop does: no thread beside it runs

if __name__ == "__main__":
    with pool(2) as workers:
        naps = [workers.submit(WORK, 600) for _ in range(2)]
        while len(workers._processes) < 2 or not all(nap.running() for nap in naps):
            time.sleep(0.05)
        time.sleep(1.0)
        print(*workers._processes, flush=True)
        time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
@pytest.mark.parametrize("work", ["time.sleep", "stuck"])
def test_workers_end_with_a_parent_that_is_killed(tmp_path, work):
    """A killed process cannot tell its workers, and a busy worker does not look."""
    if work == "stuck" and sys.platform != "linux":
        pytest.skip("only Linux ends a process that does not look")
    script = tmp_path / "waiting.py"
    script.write_text(WAITING.replace("WORK", work))
    command = [sys.executable, script, str(tmp_path / "begun-")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        workers = [int(pid) for pid in process.stdout.readline().split()]
        while work == "stuck" and len(list(tmp_path.glob("begun-*"))) < 2:
            time.sleep(0.05)
        process.kill()
    assert len(workers) == 2
    until = time.monotonic() + 60.0
    while any(alive(pid) for pid in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in workers)


def alive(pid: int) -> bool:
    """Whether a process is there; one that ended and that nobody collects is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.is_file() and state.read_text().rsplit(")", 1)[1].split()[0] == "Z")
