"""Jobs that asked for a part of a GPU: rounded up, packed together, or left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from downclock.quantities import count
from downclock.units import Floats, Ints
from downclock.workloads.traces.packing import Sweep
from downclock.workloads.traces.trace import Trace

Fractions: TypeAlias = Literal["up", "pack", "drop"]


def whole_gpus(trace: Trace, how: Fractions) -> Trace:
    """Return the trace with whole GPUs only; its assumptions say what was done to get there.

    ``up`` gives each such job a GPU of its own; ``pack`` makes one job of those of a kind and a
    queue that share a GPU, from the first start to the last end, first fit by start; ``drop``
    leaves them out.
    """
    some = trace.part < 1.0
    if not some.any():
        return trace
    if how == "drop":
        return trace.where(~some, "has a part of a GPU")
    packs = how == "pack"
    group = _shared(trace, np.flatnonzero(some)) if packs else np.arange(len(trace))
    whole = _merged(trace, group)
    shared = some[np.unique(group)]
    spans_s = whole.run_s[shared], trace.asked_s[some]
    held_h, asked_h = (float(seconds.sum()) / 3600.0 for seconds in spans_s)
    gpus = f"share {count(int(shared.sum()), 'GPU job')}, busy from the first start to the last end"
    note = (
        f"{count(int(some.sum()), 'job')} with a part of a GPU"
        f" {gpus if packs else 'have a whole one each'}:"
        f" {held_h:,.0f} GPU-hours for {asked_h:,.0f} asked for"
    )
    return replace(whole, assumptions=(*trace.assumptions, note))


def _merged(trace: Trace, group: Ints) -> Trace:
    """Return a job a group, as the job whose number the group has but for the time it takes."""
    first = np.unique(group)

    def summed(column: Floats | Ints) -> Floats:
        return np.asarray(np.bincount(group, column, minlength=group.size)[first], np.float64)

    end_s = np.full(group.size, -np.inf)
    np.maximum.at(end_s, group, trace.end_s)
    taken = trace.taken(first)
    return replace(
        taken,
        end_s=end_s[first],
        run_s=end_s[first] - taken.start_s,
        part=np.ones(first.size),
        asked_s=summed(trace.asked_s),
        rows=summed(trace.rows).astype(np.int64),
    )


@dataclass(slots=True)
class _Gpu:
    """A GPU that jobs share: the first of them, how many it runs now, and what is left of it."""

    first: int
    jobs: int = 0
    free: float = 1.0


def _shared(trace: Trace, rows: Ints) -> Ints:
    """Return a number for each job (n,): jobs that share a GPU have that of its first one."""
    group = np.arange(len(trace))
    open_gpus: dict[tuple[str, str], dict[int, _Gpu]] = {}
    sweep = Sweep(trace.start_s.tolist(), trace.end_s.tolist())
    for job in rows[np.argsort(trace.start_s[rows], kind="stable")].tolist():
        for ended in sweep.ended(job):
            there = open_gpus[trace.kind[ended], trace.queue[ended]]
            gpu = there[int(group[ended])]
            gpu.jobs, gpu.free = gpu.jobs - 1, gpu.free + trace.part[ended]
            if not gpu.jobs:  # given back: whoever comes next begins another job
                del there[gpu.first]
        part, there = trace.part[job], open_gpus.setdefault((trace.kind[job], trace.queue[job]), {})
        gpu = next((each for each in there.values() if each.free >= part - 1e-9), _Gpu(job))
        gpu.jobs, gpu.free = gpu.jobs + 1, gpu.free - part
        group[job] = gpu.first
        there[gpu.first] = gpu
        sweep.begin(job)
    return group
