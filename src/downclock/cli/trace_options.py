"""Options on how a trace is read and what it does not say, shared by the commands that take one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from downclock.cli import options

if TYPE_CHECKING:
    from downclock.problem.files.read_cluster import Cluster
    from downclock.workloads.traces.to_problem import Choices
    from downclock.workloads.traces.trace import Trace

FORMATS = (
    *("philly", "philly-slo", "alibaba", "eagle", "helios", "sacct", "sacct-json"),
    *("slurm-records", "swf", "batsim"),
)


def _seconds(text: str) -> float:
    from downclock.problem.calendar import seconds_of

    return seconds_of(text)


def _length(text: str) -> float:
    """Read a length of time above 0."""
    if _seconds(text) <= 0.0:
        raise ValueError("is no length of time")
    return _seconds(text)


read_length = options.reading(_length)


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    options.file("--cluster", help="Where it runs. [default: as many servers as hold it]"),
    options.choice(
        "--trace-format", "format", of=FORMATS, metavar="NAME",
        help=f"One of {', '.join(FORMATS)}. [default: found by the columns]",
    ),
    options.file(
        "--map", "mapping", help="Which column is what (.toml), for any CSV or Parquet file."
    ),
    options.choice(
        "--count", of=("gpus", "nodes", "cpus"),
        help="What counts as a processor. [default: the first that the file has]",
    ),
    click.option(
        "--timezone", metavar="NAME",
        help="Of times without an offset. [default: the cluster's, else UTC]",
    ),
    click.option("--begin", metavar="WHEN", help="Only jobs submitted from then on."),
    click.option(
        "--length", "length_s", callback=read_length, metavar="DURATION",
        help="Only jobs submitted in so long a time, such as 7d.",
    ),
    options.choice(
        "--deadlines", of=("run", "limit"), default="run",
        help="What a job's deadline follows where the trace has none: run time or time limit.",
    ),
    options.number(
        "--deadline-factor", 1.0, 1e6, default=2.0, show_default=True,
        help="So many times that, after its start.",
    ),
    click.option(
        "--grace", "grace_s", callback=options.reading(_seconds), default="10m", show_default=True,
        metavar="DURATION", help="A deadline is at least so long after the job's own end.",
    ),
    options.choice(
        "--fractions", of=("up", "pack", "drop"), default="up",
        help="Jobs with a part of a GPU: rounded up, packed together or left out.",
    ),
    options.archetype("What jobs are like: compute-bound, mixed or memory-bound."),
    click.option(
        "--pools/--one-pool", default=None,
        help="Queues have machines of their own, or share them. [default: by the format]",
    ),
    click.option("--card", default="v100", show_default=True, help="Of a cluster that is made."),
    click.option(
        "--per-server", type=click.IntRange(1, 1024), default=8, show_default=True,
        help="Its GPUs a server.",
    ),
    click.option("--strict", is_flag=True, help="The first malformed row is an error."),
)  # fmt: skip

_WHERE_AND_WHEN = ("cluster", "timezone", "begin", "length_s")
_READING = ("format", "mapping", "count", "strict")
_CHOICES = (
    *("deadlines", "deadline_factor", "grace_s", "fractions", "archetype", "pools", "card"),
    "per_server",
)


def trace_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a trace; the command gets them as one dictionary, ``trace``."""

    @wraps(function)
    def given(session: options.Session, /, **rest: Any) -> Any:
        told = {name: rest.pop(name) for name in (*_WHERE_AND_WHEN, *_READING, *_CHOICES)}
        if told["mapping"] is not None:
            options.refuse({"format"}, "--map")
        if told["cluster"] is not None:
            options.refuse({"card", "per_server"}, "--cluster")
        return function(session, trace=told, **rest)

    for decorate in reversed(_OPTIONS):
        given = decorate(given)
    return given


def read_told(path: str, told: dict[str, Any]) -> tuple[Trace, Cluster | None, Choices]:
    """Read a trace, its cluster and what it does not say, as the options say."""
    from downclock.problem.calendar import zone_of
    from downclock.problem.files.read_cluster import read_cluster
    from downclock.workloads.traces.read import read_trace
    from downclock.workloads.traces.to_problem import Choices, window_begin

    cluster = None if told["cluster"] is None else read_cluster(Path(told["cluster"]))
    site = None if cluster is None else cluster.timezone
    zone = site if told["timezone"] is None else zone_of(told["timezone"])
    found = read_trace(path, zone=zone, **{name: told[name] for name in _READING})
    begin_s = None if told["begin"] is None else window_begin(found, told["begin"], zone)
    length_s = float("inf") if told["length_s"] is None else told["length_s"]
    choices = Choices(
        **{name: told[name] for name in _CHOICES}, begin_s=begin_s, length_s=length_s, zone=zone
    )
    return found, cluster, choices
