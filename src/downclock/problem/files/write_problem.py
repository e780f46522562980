"""Write a whole problem to one file, JSON or Parquet; floats come back bit for bit.

In Parquet the tasks are the table, and all else is the JSON object of its metadata.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from downclock.errors import InvalidInput
from downclock.files import json_text, write_text_atomically
from downclock.power.library_file import library_document
from downclock.power.points import INTERVALS
from downclock.problem.files.columns import known_suffix
from downclock.problem.files.write_tasks import refuse_blank_ends, task_columns, task_rows
from downclock.problem.platform import SERVER_QUANTITIES, Kind, Platform, ServerSpec
from downclock.problem.price import CURVES, Curve, Prices
from downclock.problem.problem import Problem
from downclock.tabular import write_columns

FORMAT = "downclock-problem/1"

SUFFIXES = (".json", ".parquet", ".pq")
"""Of the files a problem may be in."""


def write_problem(problem: Problem, path: str | Path) -> None:
    """Write all of a problem by the file's suffix: ``.json`` or ``.parquet``."""
    suffix = known_suffix(path, SUFFIXES)
    refuse_blank_ends(problem.tasks, path)
    try:
        platform = platform_data(problem.platform)
    except InvalidInput as error:
        raise error.located(path) from None
    head = {
        "format": FORMAT,
        "name": problem.name,
        **({"assumptions": list(problem.assumptions)} if problem.assumptions else {}),
        "epoch": None if problem.epoch is None else problem.epoch.isoformat(),
        "platform": platform,
        "prices": prices_data(problem.prices),
        "library": library_document(problem.library),
    }
    names, edges = problem.tasks.name, problem.edges
    pairs = [list(pair) for pair in zip(names[edges.before], names[edges.after], strict=True)]
    if suffix == ".json":
        rows = task_rows(problem.tasks, problem.library)
        write_text_atomically(path, json_text(head, {"edges": pairs, "tasks": rows}))
    else:
        columns = task_columns(problem.tasks, problem.library)
        write_columns(columns, path, head=json_text(head, {"edges": pairs}))


def platform_data(platform: Platform) -> dict[str, Any]:
    """Return kinds and servers as `downclock.problem.files.read_cluster.platform_of` reads them."""
    if not platform.specs:
        rule = "cannot be written: it was not made from server descriptions (Platform.build)"
        raise InvalidInput(rule, item="the platform")
    data: dict[str, Any] = {} if platform.slot_s is None else {"slot_s": platform.slot_s}
    data["kind"] = [_kind(kind) for kind in platform.kinds]
    data["server"] = [_server(spec) for spec in platform.specs]
    return {**data, **_limits(platform)}


def _limits(platform: Platform) -> dict[str, Any]:
    """Return power caps and downtimes; nothing where there are none."""
    limits = platform.limits
    data: dict[str, Any] = {}
    if np.isfinite(limits.power_cap_w):
        data["power_cap_w"] = float(limits.power_cap_w)
    if limits.zone_cap_w:
        data["zone_power_cap_w"] = {name: float(cap) for name, cap in limits.zone_cap_w}
    rows = zip(platform.server_name[limits.server], limits.from_s, limits.to_s, strict=True)
    if limits.server.size:
        data["down"] = [
            {"server": name, "from_s": float(from_s), "to_s": float(to_s)}
            for name, from_s, to_s in rows
        ]
    return data


def _kind(kind: Kind) -> dict[str, Any]:
    named = [name for name, interval in INTERVALS.items() if kind.clocks == interval]
    return {
        "name": kind.name,
        "idle_w": float(kind.idle_w),
        "interrupt": kind.interrupt,
        "clock": kind.clock,
        **({"interval": named[0]} if named else kind.clocks.data()),
    }


def _server(spec: ServerSpec) -> dict[str, Any]:
    processors = [{"kind": kind, "count": int(count)} for kind, count in spec.processors]
    return {
        "name": spec.name,
        "count": int(spec.count),
        "zone": spec.zone,
        "processors": processors,
        "chip_wide": bool(spec.chip_wide),
        **{name: float(getattr(spec, name)) for name in SERVER_QUANTITIES},
        "initially": "on" if spec.initially_on else "asleep",
    }


def prices_data(prices: Prices) -> dict[str, Any]:
    """Return prices as plain data: currency, and the curves of each zone."""
    zones: dict[str, Any] = {}
    for zone, told in prices.zones:
        curves = {name: getattr(told, name) for name in CURVES}
        zones[zone] = {name: _curve(curve) for name, curve in curves.items() if curve is not None}
    return {"currency": prices.currency, "zones": zones}


def _curve(curve: Curve) -> dict[str, Any]:
    end_s = float(curve.end_s) if np.isfinite(curve.end_s) else None
    return {"start_s": curve.start_s.tolist(), "value": curve.value.tolist(), "end_s": end_s}
