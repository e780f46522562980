"""Where the jobs of a trace ran on a given cluster: on the nodes it names, the others packed.

The run time of a job is that on the kind it ran on, so that kind comes first of those it may use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from downclock.errors import InvalidInput
from downclock.power.archetypes import CLASSES
from downclock.problem.files.read_cluster import Cluster
from downclock.problem.files.run_jobs import Applications, Wanted
from downclock.problem.platform import Platform
from downclock.units import Names
from downclock.workloads.traces.cells import known
from downclock.workloads.traces.hosts import hosts_of
from downclock.workloads.traces.packing import Nodes, Placement, Pool, packed
from downclock.workloads.traces.trace import Trace

LACKING = "needs machines the cluster does not have"


def on_cluster(
    trace: Trace, named: Names, cluster: Cluster, archetype: str | None, *, pools: bool
) -> tuple[Trace, Names, Placement]:
    """Place the jobs of a trace.

    Args:
        trace: what ran.
        named: kinds that each job asked for, separated by bars or blanks; empty: any.
        cluster: where it ran.
        archetype: what jobs are like; None: what the cluster says.
        pools: they are names of queues, which have machines of their own.

    Returns:
        The jobs that the cluster has machines for, the kinds each may use (empty: all, the
        reference first), and where it ran.

    Raises:
        InvalidInput: the cluster has machines for no job.
    """
    names = [kind.name for kind in cluster.platform.kinds]
    names.sort(key=lambda name: name != cluster.site.reference)
    machines, machine_of = _machines(cluster.platform, names)
    nodes = _nodes(trace.hosts, machine_of)
    kinds = _kinds(named, nodes, names)
    here = np.array([cell is not None for cell in kinds])
    if pools and not here.any():
        rule = f"no job is left: each {LACKING} (queues are taken for kinds: --one-pool if not)"
        raise InvalidInput(rule, source=trace.ledger.source)
    trace, kinds = trace.where(here, LACKING), kinds[here]
    able = _able(trace, kinds, cluster, archetype, names)
    there = [
        None if each is None else {k: each[k] for k in able[job] if k in each}
        for job, each in enumerate(nodes[row] for row in np.flatnonzero(here).tolist())
    ]
    times = trace.start_s, trace.end_s
    placement = packed(machines, able, trace.processors, *times, there)
    return trace, _first_kinds(kinds, placement, names), placement


def _machines(platform: Platform, names: Sequence[str]) -> tuple[list[Pool], list[dict[str, int]]]:
    """The machines of each kind, and their places by the names of their servers."""
    pools, machine_of = [], []
    for name in names:
        kind = [each.name for each in platform.kinds].index(name)
        mine = np.flatnonzero(platform.kind == kind)
        servers, first = np.unique(platform.server[mine], return_index=True)
        pools.append(Pool([part[::-1].tolist() for part in np.split(mine, first[1:])]))
        machine_of.append({str(platform.server_name[s]): m for m, s in enumerate(servers)})
    return pools, machine_of


def _nodes(hosts: Names, machine_of: Sequence[Mapping[str, int]]) -> list[Nodes | None]:
    """Machines that each job names, in each kind that has all of them; None: it names none."""
    found: dict[str, Nodes | None] = {}
    for cell in set(hosts.tolist()):
        listed = hosts_of(cell) if known(cell) else []
        there = {k: [of.get(host, -1) for host in listed] for k, of in enumerate(machine_of)}
        whole = {k: places for k, places in there.items() if min(places, default=-1) >= 0}
        found[cell] = whole if listed else None
    return [found[cell] for cell in hosts.tolist()]


def _kinds(named: Names, nodes: Sequence[Nodes | None], names: Sequence[str]) -> Names:
    """Kinds that each job may use, those it ran on among them: '' for all, None for none."""
    found: dict[tuple[str, tuple[int, ...]], str | None] = {}
    cells = [(cell, tuple(there or ())) for cell, there in zip(named, nodes, strict=True)]
    for cell, there in set(cells):
        wanted = cell.replace("|", " ").split()
        here = [part for part in wanted if part in names] + [names[k] for k in there]
        found[cell, there] = ";".join(dict.fromkeys(here)) or None if wanted else ""
    return np.array([found[each] for each in cells], dtype=object)


def applications(trace: Trace, cluster: Cluster) -> list[str]:
    """Applications that the cluster knows; the others are of the archetype."""
    there = {*map(str, cluster.library.names), *CLASSES}
    return [name if name in there else "" for name in trace.application.tolist()]


def _able(
    trace: Trace, kinds: Names, cluster: Cluster, archetype: str | None, names: Sequence[str]
) -> list[list[int]]:
    """Kinds that each job may use and whose profile is known for it, by their place in ``names``.

    All that it may use where none is: whoever reads the problem says what is missing.
    """
    site = replace(cluster.site, archetype=archetype or cluster.site.archetype)
    made = Applications(cluster.library, site)
    drawn = np.isfinite(trace.power_w).tolist()
    wanted = list(zip(kinds.tolist(), applications(trace, cluster), drawn, strict=True))
    found: dict[tuple[str, str, bool], list[int]] = {}
    for cell, application, draws in set(wanted):
        allowed = [names.index(name) for name in (cell.split(";") if cell else names)]
        profiled = []
        for k in allowed:
            with suppress(InvalidInput):
                made.of(Wanted(application, 1.0 if draws else None, (names[k],)))
                profiled.append(k)
        found[cell, application, draws] = profiled or allowed
    return [found[each] for each in wanted]


def _first_kinds(kinds: Names, placement: Placement, names: Sequence[str]) -> Names:
    """The kinds of each job, that which it ran on first."""
    found: dict[tuple[str, int], str] = {}
    cells = list(zip(kinds.tolist(), placement.pool.tolist(), strict=True))
    for cell, home in set(cells):
        others = cell.split(";") if cell else names
        as_said = home < 0 or names[home] == others[0]
        found[cell, home] = cell if as_said else ";".join(dict.fromkeys([names[home], *others]))
    return np.array([found[each] for each in cells], dtype=object)
