"""Kernels run plain until compiling pays; both ways give the same."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from downclock.kernels import compiling
from downclock.kernels.compiling import METER, Kernel, compiled, inner
from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(not compiling.available(), reason="numba is not installed")

FACTOR = 3.0


@inner
def tripled(x: float) -> float:
    return FACTOR * x


@compiled
def total(values: np.ndarray, by: float) -> float:
    found = 0.0
    for value in values:
        found += tripled(value) / by
    return found


@inner
def doubled(values: np.ndarray) -> np.ndarray:
    return values + values


@inner
def first_doubled(values: np.ndarray) -> float:
    return doubled(values)[0]


@compiled
def first_of_many(values: np.ndarray, times: int) -> float:
    found = 0.0
    for _ in range(times):
        found += first_doubled(values)
    return found


@compiled
def raise_all(values: np.ndarray, by: float) -> float:
    values[:] = values[:] + by  # makes an array without a word
    return values[0]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Kernel:
    """The kernel `total` as a fresh process has it: nothing compiled, nothing on disk."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(pytest.importorskip("numba").config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(METER, "largest", 0)
    forget()
    return total


def forget() -> None:
    """What another process would not know."""
    for each in (total, tripled):
        each.__dict__.pop("_dispatcher", None)
        each.__dict__.pop("_is_kept", None)
        each._fast = None
        each.plain_s = 0.0


VALUES = np.array([1.0, 2.0, 4.0])


def test_a_kernel_is_compiled_once_it_has_run_plain_for_long(kernel, monkeypatch):
    before = len(METER.names)
    assert kernel(VALUES, 2.0) == 10.5
    assert kernel.plain_s > 0.0
    assert len(METER.names) == before
    monkeypatch.setattr(compiling, "PATIENCE_S", 0.0)
    told: list[tuple[str, int, int]] = []
    monkeypatch.setattr(METER, "listener", lambda *words: told.append(words))
    spent_s, plain_s = METER.compiled_s, kernel.plain_s
    assert kernel(VALUES, 2.0) == 10.5
    assert METER.names[before:] == ["total", "tripled"]
    assert [words[0] for words in told] == ["total", "tripled", "total"]
    assert [done < of for _, done, of in told] == [True, True, False]
    assert METER.compiled_s > spent_s
    assert kernel.plain_s == plain_s


def test_a_large_problem_is_worth_compiling_for_and_what_is_kept_is_used(kernel, monkeypatch):
    compiling.expect(compiling.LARGE)
    assert kernel(VALUES, 2.0) == 10.5
    assert kernel.plain_s == 0.0
    forget()
    monkeypatch.setattr(METER, "largest", 0)
    before = len(METER.names)
    assert kernel(VALUES, 2.0) == 10.5
    assert kernel.plain_s == 0.0
    assert len(METER.names) == before


def test_kernels_that_make_no_arrays_borrow_them():
    assert tripled.borrows
    assert total.borrows
    assert first_of_many.borrows
    assert not doubled.borrows  # it returns what it makes,
    assert not first_doubled.borrows  # and this one has to give it back
    assert not compiling.compiled(_zeros).borrows


def _zeros() -> None:
    np.zeros(3)


def test_arrays_that_kernels_make_are_given_back(tmp_path, monkeypatch):
    runtime = pytest.importorskip("numba.core.runtime")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(pytest.importorskip("numba").config, "CACHE_DIR", str(tmp_path))
    with compiling.at_once():
        first_of_many(VALUES, 1)
    runtime._nrt_python.memsys_enable_stats()
    before, references = runtime.rtsys.get_allocation_stats(), sys.getrefcount(VALUES)
    assert first_of_many(VALUES, 50) == 100.0
    after = runtime.rtsys.get_allocation_stats()
    runtime._nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free >= 50
    assert sys.getrefcount(VALUES) == references


def test_a_kernel_that_only_seems_to_borrow_is_compiled_all_the_same(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(pytest.importorskip("numba").config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(METER, "counts", False)
    assert raise_all.borrows
    with compiling.at_once():
        assert raise_all(VALUES.copy(), 2.0) == 3.0
    assert raise_all.is_ready
    forget()  # what was made meanwhile counts, too


def test_compiled_and_plain_divide_by_zero_alike(kernel):
    with np.errstate(all="raise"):
        assert kernel(VALUES, np.float64(0.0)) == np.inf


def test_a_folder_that_cannot_be_written_is_no_matter(kernel, monkeypatch):
    def full(*_: object, **__: object) -> object:
        raise OSError("no space left on device")

    monkeypatch.setattr(METER, "kept", True)
    compiling.expect(compiling.LARGE)
    broken = type("Broken", (), {"compile": full})()
    kernel.__dict__["_dispatcher"] = broken
    assert kernel(VALUES, 2.0) == 10.5
    assert not METER.kept


def test_kernels_are_kept_where_files_may_be_written(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    readonly = tmp_path / "file"
    readonly.write_text("")  # a folder cannot be made inside a file
    place = compiling.kept_in.__wrapped__(readonly)
    assert place is not None
    assert place.parent == tmp_path / "home" / "downclock"
    monkeypatch.setenv("XDG_CACHE_HOME", str(readonly))
    assert compiling.kept_in.__wrapped__(readonly) is None


def test_kernels_can_be_sent_to_other_processes():
    assert pickle.loads(pickle.dumps(total)) is total


def test_the_example_day_is_planned_without_the_compiler(tmp_path):
    """140 jobs on a machine where nothing was compiled: numba is not even imported."""
    script = (
        "import sys, downclock as dc; folder = 'examples/gpu-day/';"
        "problem = dc.load_problem(folder + 'cluster.toml', folder + 'jobs.csv');"
        "print(dc.plan(problem).policy, 'numba' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    name, imported = ran.stdout.split()
    assert name == "known"
    assert imported == "False"
