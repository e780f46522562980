"""Many calls on several processes or machines: one loop over any executor, answers as they come.

    with pool(8) as workers:
        for item, answer in completed(work, items, workers):
            ...

An executor is what `concurrent.futures` calls one: processes of this machine (`pool`), the workers
of a Dask scheduler (`dask`), or Slurm jobs that are such workers (`slurm`).
"""

from __future__ import annotations

import ctypes
import importlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

from downclock.errors import DownclockError, InvalidInput, MissingExtra

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Workers: TypeAlias = AbstractContextManager[Executor | None]
"""Who does the work while it is entered; nobody else than this process where it gives None."""

IN_FLIGHT = 4096
"""Calls that are handed out at once: enough for as many workers, and no more memory than that."""

LISTEN_S = 0.1
"""An interrupt is heard this soon, in whatever thread this is."""

REACH_S = 20.0
"""A scheduler that does not answer for so long is not there."""

_PR_SET_PDEATHSIG = 1


def completed(
    work: Callable[[Item], Answer], items: Iterable[Item], executor: Executor | None
) -> Iterator[tuple[Item, Answer]]:
    """Yield every item with its answer as soon as it is there; here, in order, without executor.

    Raises:
        DownclockError: workers are gone: killed, or out of memory.
    """
    if executor is None:
        for item in items:
            yield item, work(item)
        return
    left = iter(items)
    running: dict[Future[Answer], Item] = {}
    ended: SimpleQueue[Future[Answer]] = SimpleQueue()
    more = IN_FLIGHT
    try:
        while True:
            for item in islice(left, more):
                future = executor.submit(work, item)
                running[future] = item
                future.add_done_callback(ended.put)
            if not running:
                return
            more = 0
            try:
                future = ended.get(timeout=LISTEN_S)
            except Empty:
                continue
            more = 1
            yield running.pop(future), future.result()
    except (BrokenExecutor, CancelledError) as error:
        raise _lost(error) from None


def _lost(error: BaseException) -> DownclockError:
    why = " ".join(str(error).split()) or "the scheduler is gone"
    return DownclockError(f"workers ended before their work did (killed, or out of memory): {why}")


def workers(jobs: int | None, most: int, address: str | None) -> Workers:
    """Those of the Dask scheduler at an address, else processes of this machine."""
    return pool(jobs, most) if address is None else dask(address)


@contextmanager
def pool(jobs: int | None = None, most: int | None = None) -> Iterator[Executor | None]:
    """Processes of this machine, one a core; None where one will do, which is this one.

    They leave Ctrl-C to this process and end when it does, however it ends.

    Args:
        jobs: how many; all cores by default.
        most: no more than this are of use.
    """
    wanted = jobs or os.cpu_count() or 1
    wanted = wanted if most is None else min(wanted, most)
    if wanted <= 1:
        yield None
        return
    before = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    workers = ProcessPoolExecutor(wanted, mp_context=context, initializer=_follow_parent)
    try:
        yield workers
    except BaseException:
        workers.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.kill()
        raise
    finally:
        workers.shutdown(cancel_futures=True)


def _follow_parent() -> None:
    """Leave Ctrl-C to the parent, and end when it is gone: killed, it cannot say so.

    A thread that waits for that is not heard while a compiled loop or a solver runs, so that
    Linux is asked to do it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def dask(address: str) -> Iterator[Executor]:
    """The workers of a Dask scheduler, such as ``tcp://10.0.0.1:8786``.

    They need this version of Downclock, and the files at the same places.

    Raises:
        InvalidInput: nobody answers there.
        MissingExtra: Dask is not installed.
    """
    client_class = _imported("distributed").Client
    try:
        client = client_class(address, timeout=REACH_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        said = " ".join(str(error).split()) or "nobody answers"
        rule = f"is no Dask scheduler that can be reached: {said}"
        raise InvalidInput(rule, field="dask", value=address) from None
    with client:
        yield from _executor(client)


@contextmanager
def slurm(jobs: int, settings: Mapping[str, Any], folder: Path) -> Iterator[Executor]:
    """Workers that are Slurm jobs of their own; they end with this process, or soon after.

    Args:
        jobs: how many.
        settings: of each, as `dask_jobqueue.SLURMCluster` calls them; one core and 2 GB when not
            said.
        folder: where the jobs write what they have to say.
    """
    distributed = _imported("distributed")
    with _signals_kept():
        jobqueue = _imported("dask_jobqueue")
    usual = {"cores": 1, "processes": settings.get("cores", 1), "memory": "2GB"}
    usual |= {"job_name": "downclock-sweep", "log_directory": str(folder)}
    try:
        cluster = jobqueue.SLURMCluster(**{**usual, **settings})
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"cannot be used: {error}", item="slurm") from None
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        cluster.scale(jobs=jobs)
        yield from _executor(client)


def _executor(client: Any) -> Iterator[Executor]:
    """Yield the client as an executor; what it has not done when it is left is called off."""
    workers: Executor = client.get_executor(pure=False)
    killed = _imported("distributed").KilledWorker
    try:
        yield workers
    except killed as error:
        raise _lost(error) from None
    finally:
        workers.shutdown(wait=False)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep an import from taking Ctrl-C over, as dask_jobqueue's does; only main threads may."""
    kept = signal.signal
    signal.signal = lambda *_: None
    try:
        yield
    finally:
        signal.signal = kept


def _imported(package: str) -> Any:
    """Import a package of Dask: the one door to it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingExtra(package.replace("_", "-"), "dask", "running on Dask") from None
