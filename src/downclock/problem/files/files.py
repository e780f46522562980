"""A problem from files: the cluster, its tasks, its prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path

from downclock.errors import InvalidInput
from downclock.power.archetypes import CLASSES
from downclock.power.library import Library
from downclock.power.library_file import read_library
from downclock.problem.calendar import epoch_of, zone_of
from downclock.problem.files.read_cluster import Cluster, cluster_of, read_cluster
from downclock.problem.files.read_prices import prices_of, zone_prices
from downclock.problem.files.read_tasks import read_tasks
from downclock.problem.files.site import Site
from downclock.problem.price import Prices
from downclock.problem.problem import Problem, refuse_unresolved
from downclock.tabular import Table


def load_problem(
    cluster: str | Path | Cluster,
    tasks: str | Path | Table,
    *,
    library: str | Path | Library | None = None,
    prices: str | Path | Prices | None = None,
    price_columns: Mapping[str, str] | None = None,
    epoch: str | datetime | None = None,
    timezone: str | tzinfo | None = None,
    archetype: str | None = None,
    deadline_factor: float | None = None,
) -> Problem:
    """Make a problem from a cluster file and a file of tasks.

    Args:
        cluster: a TOML file (see `read_cluster`), or what was read from one.
        tasks: CSV, Parquet or JSON (see `read_tasks`), or the table that such a file holds.
        library: a library file or ``builtin:NAME``; by default the one the cluster file names.
        prices: a CSV file (see `read_prices`); by default the cluster file's.
            Where the cluster has no epoch, its time 0 is the first row.
        price_columns: our column names to those of that file, where they differ.
        epoch: instant that times count from; by default the cluster file's, else the tasks'
            first arrival where they have calendar times.
        timezone: name of the zone that times without an offset are in; by default the cluster
            file's, else the epoch's.
        archetype: what jobs without an application are like (compute-bound, mixed, memory-bound);
            by default what the cluster file says, else mixed.
        deadline_factor: deadline of jobs that state none: so many run times after their arrival.

    Raises:
        InvalidInput: with file, line, object, field, value and rule.
    """
    if isinstance(library, str | Path):
        library = read_library(library)
    where = cluster if isinstance(cluster, Cluster) else read_cluster(cluster, library)
    if library is not None and where is cluster:
        where = cluster_of(where.document, library)
    zone = where.timezone if timezone is None else zone_of(timezone)
    start = where.epoch if epoch is None else epoch_of(epoch, zone)
    site = _site(where, archetype)
    file = read_tasks(
        tasks, where.library, epoch=start, timezone=zone, site=site, deadline_factor=deadline_factor
    )
    name = Path(tasks.source if isinstance(tasks, Table) else tasks).stem
    try:
        costs = _prices(where, prices, file.epoch, zone, price_columns)
        known = file.tasks, file.library, where.platform, file.edges, costs, file.epoch
        problem = Problem(*known, name, file.assumptions)
        refuse_unresolved(problem)
    except InvalidInput as error:
        raise file.blame(error) from None
    return problem


def _site(cluster: Cluster, archetype: str | None) -> Site:
    if archetype is None:
        return cluster.site
    if archetype not in CLASSES:
        rule = f"must be one of {', '.join(CLASSES)}"
        raise InvalidInput(rule, field="archetype", value=archetype)
    return replace(cluster.site, archetype=archetype)


def _prices(
    cluster: Cluster,
    prices: str | Path | Prices | None,
    epoch: datetime | None,
    zone: tzinfo | None,
    columns: Mapping[str, str] | None,
) -> Prices:
    if isinstance(prices, Prices):
        return prices
    zones, times = cluster.platform.zones, {"timezone": zone, "slot_s": cluster.platform.slot_s}
    if prices is None:
        return prices_of(cluster.prices, zones, epoch=epoch, **times)
    return zone_prices(prices, zones, epoch=epoch or "first row", columns=columns, **times)
