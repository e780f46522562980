"""From a trace to a problem: deadlines, applications, a cluster; every assumption in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from downclock.document import Document
from downclock.errors import InvalidInput
from downclock.problem.calendar import epoch_of, moment, seconds_of
from downclock.problem.files.files import load_problem
from downclock.problem.files.read_cluster import Cluster, cluster_of
from downclock.problem.problem import Problem
from downclock.quantities import count, duration
from downclock.tabular import Table
from downclock.units import Floats, Names
from downclock.workloads.traces.fractions import Fractions, whole_gpus
from downclock.workloads.traces.ledger import OUTSIDE
from downclock.workloads.traces.made_cluster import cluster_data, cluster_note
from downclock.workloads.traces.on_cluster import applications, on_cluster
from downclock.workloads.traces.packing import Placement, Pool, packed
from downclock.workloads.traces.trace import Trace

Deadlines: TypeAlias = Literal["run", "limit"]

ALL = "gpu"
"""The pool of a trace whose queues share their machines."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What a trace does not say.

    Attributes:
        deadlines: a job without a deadline is due so many times its ``run`` time, or its time
            ``limit`` where it has one, after it started in the trace.
        deadline_factor: that many times.
        grace_s: but never sooner than so long after it ended in the trace: a server may have to
            wake for it.
        fractions: what becomes of jobs with a part of a GPU.
        archetype: what jobs are like; None: what the cluster says.
        pools: queues have machines of their own; None: as the format says.
        card, per_server: of the cluster that is made where none is given.
        begin_s, length_s: only jobs submitted from then on, for so long; ``begin_s`` counts as the
            trace's times do.
        zone: of the problem's calendar; None: the cluster's, else UTC.
    """

    deadlines: Deadlines = "run"
    deadline_factor: float = 2.0
    grace_s: float = 600.0
    fractions: Fractions = "up"
    archetype: str | None = None
    pools: bool | None = None
    card: str = "v100"
    per_server: int = 8
    begin_s: float | None = None
    length_s: float = np.inf
    zone: tzinfo | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Converted:
    """A trace as a problem.

    Attributes:
        problem: what it asks for; its assumptions are all of them.
        trace: the jobs of the problem, in its order; times as in the file.
        zero_s: the problem's time 0 in those times.
        placement: where jobs ran, as the trace says or packed by best fit.
    """

    problem: Problem
    trace: Trace
    zero_s: float
    placement: Placement


def converted(
    trace: Trace, cluster: Cluster | None = None, choices: Choices | None = None
) -> Converted:
    """Make a problem of a trace.

    Args:
        trace: what ran.
        cluster: where; when not given, as many servers as hold the trace as it ran.
        choices: what the trace does not say.

    Raises:
        InvalidInput: no job is left.
    """
    choices = Choices() if choices is None else choices
    trace = whole_gpus(_window(trace, choices), choices.fractions)
    notes: tuple[str, ...] = ()
    pools = trace.format.pools if choices.pools is None else choices.pools
    queue = _pool_names(trace.queue) if pools else np.full(len(trace), ALL, dtype=object)
    if cluster is None:
        cluster, placement, note = _made(trace, queue, choices)
        trace, notes = _without_hosts(trace, note)
        kinds = queue if pools else np.full(len(trace), "", dtype=object)
    else:
        trace, kinds, placement = on_cluster(
            trace, queue if pools else trace.kind, cluster, choices.archetype, pools=pools
        )
    platform = cluster.platform  # servers that begin asleep wake before the first job
    lead_s = float(np.max(platform.wake_s[~platform.initially_on], initial=0.0))
    zero_s = float(trace.submit_s[0]) - lead_s  # a window may begin long before it
    due_s, due_notes = due(trace, choices)
    assumptions = (*trace.assumptions, *notes, *due_notes)
    problem = _problem(trace, cluster, choices, kinds, zero_s, due_s)
    problem = replace(problem, assumptions=(*assumptions, *problem.assumptions))
    return Converted(problem, trace, zero_s, placement)


def _window(trace: Trace, choices: Choices) -> Trace:
    begin_s = trace.submit_s[0] if choices.begin_s is None else choices.begin_s
    inside = (trace.submit_s >= begin_s) & (trace.submit_s < begin_s + choices.length_s)
    if not inside.any():
        within = "" if np.isinf(choices.length_s) else f" in the {duration(choices.length_s)}"
        rule = f"no job was submitted{within} from then on"
        raise InvalidInput(rule, source=trace.ledger.source)
    return trace.where(inside, OUTSIDE)


def _pool_names(queue: Names) -> Names:
    """Queues as names of kinds: without what separates names in a cell, and all of them apart."""
    names = {name: name.replace(";", "_").replace(" ", "_") or ALL for name in set(queue.tolist())}
    known: dict[str, str] = {}
    for name in sorted(names, key=lambda each: (each != names[each], each)):
        free, number = names[name], 1
        while free in known.values():
            number += 1
            free = f"{names[name]}_{number}"
        known[name] = free
    return np.array([known[name] for name in queue.tolist()], dtype=object)


def _without_hosts(trace: Trace, note: str) -> tuple[Trace, tuple[str, ...]]:
    """The trace on a made cluster, which has no nodes of its own; what is to be said of both."""
    used = tuple(pair for pair in trace.used if pair[0] != "hosts")
    if used == trace.used:
        return trace, (note,)
    said = "the nodes that the trace names are not used (--cluster says what they are)"
    return replace(trace, used=used), (note, said)


def _made(trace: Trace, queue: Names, choices: Choices) -> tuple[Cluster, Placement, str]:
    """Make a cluster of as few servers as hold the trace, and place its jobs there."""
    names, pool = np.unique(queue.astype(str), return_inverse=True)
    size = choices.per_server
    far = 1 << 40  # numbers of processors before their pool's place is known
    made = [Pool([], grows=size, first=k * far) for k in range(names.size)]
    placement = packed(made, pool[:, None].tolist(), trace.processors, trace.start_s, trace.end_s)
    servers = {str(name): len(each.machines) for name, each in zip(names, made, strict=True)}
    offset = np.concatenate([[0], np.cumsum(list(servers.values()))])[:-1] * size
    processor = offset[placement.processor // far] + placement.processor % far
    name = f"made for {Path(trace.ledger.source).name}"
    data = cluster_data(name, servers, size, choices.card)
    note = cluster_note(servers, size, choices.card)
    return cluster_of(Document(name, data)), replace(placement, processor=processor), note


def due(trace: Trace, choices: Choices) -> tuple[Floats, tuple[str, ...]]:
    """Deadlines in the trace's times, and the rule in words."""
    factor = choices.deadline_factor
    base_s, words = trace.run_s, "run time"
    if choices.deadlines == "limit":
        base_s, words = np.fmax(trace.limit_s, trace.run_s), "time limit (or run time without one)"
    own = np.isfinite(trace.deadline_s)
    notes = []
    if not own.all():
        rule = f"{factor:g} times their {words} after they started in the trace"
        if choices.grace_s:
            rule += f", at least {choices.grace_s / 60.0:g} min after they ended there"
        notes.append(f"deadlines: {count(int((~own).sum()), 'job')} due {rule}")
    if own.any():
        notes.append(f"deadlines: {count(int(own.sum()), 'job')} due when the trace says")
    slack_s = np.maximum(factor * base_s, trace.run_s + choices.grace_s)
    due_s = np.where(own, trace.deadline_s, trace.start_s + slack_s)
    return due_s, tuple(notes)


def _problem(
    trace: Trace, cluster: Cluster, choices: Choices, kinds: Names, zero_s: float, due_s: Floats
) -> Problem:
    epoch = moment(zero_s, choices.zone or cluster.timezone) if trace.calendar else None
    columns: dict[str, Any] = {
        "name": trace.name,
        "run": [repr(seconds) for seconds in trace.run_s.tolist()],
        "arrival_s": trace.submit_s - zero_s,
        "deadline_s": due_s - zero_s,
        "gpus": trace.processors,
        "kind": kinds,
        "application": applications(trace, cluster),
    }
    if np.isfinite(trace.power_w).any():
        columns["power_w"] = [w if math.isfinite(w) else None for w in trace.power_w.tolist()]
    jobs, archetype = Table.of(trace.ledger.source, columns), choices.archetype
    return load_problem(cluster, jobs, epoch=epoch, timezone=choices.zone, archetype=archetype)


def window_begin(trace: Trace, text: str, zone: tzinfo | None) -> float:
    """Read the begin of a window in the trace's times: a stamp, or a time after its first job.

    Raises:
        InvalidInput: it is neither.
    """
    try:
        return float(trace.submit_s[0]) + seconds_of(text)
    except ValueError:
        if not trace.calendar:
            rule = "must be a time after the first job, such as 2d: the trace has no calendar"
            raise InvalidInput(rule, field="begin", value=text) from None
    try:
        return epoch_of(text, zone or UTC).timestamp()
    except InvalidInput as error:
        raise InvalidInput(error.rule, field="begin", value=text) from None
