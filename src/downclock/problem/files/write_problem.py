"""Write a whole problem to one JSON file; floats come back bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from downclock.errors import InvalidInput
from downclock.files import json_text, write_text_atomically
from downclock.power.library_file import library_document
from downclock.problem.files.columns import known_suffix
from downclock.problem.files.write_cluster import platform_data
from downclock.problem.files.write_tasks import refuse_blank_ends, task_rows
from downclock.problem.price import CURVES, Curve, Prices, ZonePrices
from downclock.problem.problem import Problem

FORMAT = "downclock-problem/1"


def write_problem(problem: Problem, path: str | Path) -> None:
    """Write tasks, edges, library, platform, prices and epoch to one ``.json`` file."""
    known_suffix(path, (".json",))
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
    pairs = zip(names[edges.before], names[edges.after], strict=True)
    lists: dict[str, list[Any]] = {
        "edges": [list(pair) for pair in pairs],
        "tasks": task_rows(problem.tasks, problem.library),
    }
    write_text_atomically(path, json_text(head, lists))


def prices_data(prices: Prices) -> dict[str, Any]:
    """Return prices as plain data: currency, and the curves of each zone."""
    zones = {zone: _zone(curves) for zone, curves in prices.zones}
    return {"currency": prices.currency, "zones": zones}


def _zone(prices: ZonePrices) -> dict[str, Any]:
    curves = {name: getattr(prices, name) for name in CURVES}
    return {name: _curve(curve) for name, curve in curves.items() if curve is not None}


def _curve(curve: Curve) -> dict[str, Any]:
    end_s = float(curve.end_s) if np.isfinite(curve.end_s) else None
    return {"start_s": curve.start_s.tolist(), "value": curve.value.tolist(), "end_s": end_s}
