"""Small valid inputs as plain data: each world has a cluster, a library, tasks and prices.

Between them every policy of the catalogue has something it can plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Plain = dict[str, Any]


@dataclass(frozen=True)
class World:
    """The files of one problem."""

    name: str
    cluster: Plain
    library: Plain
    tasks: list[Plain]
    prices: list[Plain] = field(default_factory=list)


def _gpu(d_s: float, c_w: float) -> Plain:
    return {
        **{"model": "gpu", "p0_w": 60.0, "gamma_w": 30.0, "c_w": c_w},
        **{"d_s": d_s, "delta": 0.6, "t0_s": 0.2},
    }


def _cpu(time_s: float) -> Plain:
    return {"model": "cpu", "time_s": time_s, "c1_w": 40.0, "alpha": 3.0, "static_w": 0.0}


def _library(applications: Plain, kinds: Plain | None = None) -> Plain:
    named = [{"name": name, "profiles": profiles} for name, profiles in applications.items()]
    head = {"format": "downclock-library/1", "source": "made up"}
    return {**head, **({"kinds": kinds} if kinds else {}), "applications": named}


def _steps(step_s: float, *values: float) -> list[Plain]:
    return [
        {"time_s": k * step_s, "price_per_kwh": value, "carbon_g_per_kwh": 300.0 + 40.0 * k}
        for k, value in enumerate(values)
    ]


_TABLE = {
    "model": "table",
    "points": [
        {"core": 0.6, "memory": 1.0, "time_s": 30.0, "power_w": 70.0},
        {"core": 0.8, "memory": 1.0, "time_s": 24.0, "power_w": 100.0},
        {"core": 1.0, "memory": 1.0, "time_s": 20.0, "power_w": 150.0},
    ],
}

GPU = World(
    "gpu",
    {
        "name": "small",
        "applications": "library.json",
        "kind": [{"name": "gpu", "idle_w": 37.0, "interval": "wide"}],
        "server": [
            {
                **{"name": "s", "count": 2, "processors": [{"kind": "gpu", "count": 2}]},
                **{"wake_j": 90.0, "sleep_w": 2.0},
            }
        ],
        "prices": {"file": "prices.csv", "currency": "EUR"},
    },
    _library({"train": {"gpu": _gpu(20.0, 100.0)}, "infer": {"gpu": _gpu(4.0, 60.0)}}),
    [
        {"name": "a", "application": "train", "scale": 2.0, "arrival_s": 0.0, "deadline_s": 200.0},
        {"name": "b", "application": "infer", "scale": 1.0, "arrival_s": 5.0, "deadline_s": 60.0},
        {"name": "c", "application": "train", "scale": 3.0, "arrival_s": 10.0, "deadline_s": 900.0},
        {"name": "d", "application": "infer", "scale": 9.0, "arrival_s": 10.0, "deadline_s": 40.0},
        {"name": "e", "application": "train", "scale": 0.5, "arrival_s": 90.0, "deadline_s": 130.0},
    ],
    _steps(150.0, 0.3, 0.1, 0.4, -0.05, 0.2, 0.2, 0.25),
)

MIXED = World(
    "mixed",
    {
        "applications": "library.json",
        "epoch": "2024-06-10T00:00:00+02:00",
        "timezone": "Europe/Berlin",
        "kind": [
            {
                **{"name": "gpu", "idle_w": 20.0, "interrupt": "preempt", "clock": "locked"},
                **{"clock_pairs": [[700, 600], [700, 1000], [1000, 800], [1000, 1000]]},
                **{"default_core_mhz": 1000.0, "default_memory_mhz": 1000.0, "law": "mei"},
            },
            {"name": "cpu", "idle_w": 5.0, "core": [0.4, 1.5], "law": "fixed"},
        ],
        "server": [
            {
                **{"name": "g", "zone": "north", "initially": "on", "host_w": 30.0},
                **{"processors": [{"kind": "gpu", "count": 1}, {"kind": "cpu", "count": 1}]},
            },
            {
                **{"name": "c", "zone": "south", "initially": "on", "wake_s": 3.0},
                **{"processors": [{"kind": "cpu", "count": 2}], "shared_w": 3.0},
            },
        ],
        "prices": {
            "north": {"price_per_kwh": 0.2, "carbon_g_per_kwh": 400.0},
            "south": {"price_per_kwh": 0.3, "price_per_kwh_forecast": 0.25},
        },
    },
    _library(
        {
            "solve": {"gpu": _gpu(10.0, 80.0), "cpu": _cpu(50.0)},
            "clean": {"cpu": _cpu(8.0)},
        },
        {"gpu": {"law": "mei", "default_core_mhz": 1000, "default_memory_mhz": 1000}},
    ),
    [
        {
            **{"name": "a", "application": "solve", "arrival": "2024-06-10T00:00+02:00"},
            **{"deadline": "2024-06-10T00:05+02:00", "actual": "uniform:0.8:1.2"},
        },
        {
            **{"name": "b", "application": "clean", "arrival": "2024-06-10T00:00:30+02:00"},
            **{"deadline": "2024-06-10T00:10", "actual": "exact"},
        },
        {
            **{"name": "c", "application": "solve", "arrival": "2024-06-09T22:01:00Z"},
            **{"actual": "lognormal:1:0.2"},
        },
    ],
)

MEASURED = World(
    "measured",
    {
        "applications": "library.json",
        "kind": [{"name": "card", "core_mhz": [600, 800, 1000], "default_core_mhz": 1000}],
        "server": [
            {
                **{"name": "m", "count": 2, "processors": [{"kind": "card", "count": 2}]},
                **{"host_w": 40.0, "wake_j": 500.0, "wake_s": 10.0},
            }
        ],
        "prices": {"default": {"price": "prices.csv", "carbon_g_per_kwh": 380.0}},
    },
    _library({"render": {"card": _TABLE}, "bake": {"card": _TABLE}}),
    [
        {"name": "a", "application": "render", "scale": 2.0, "within_s": 400.0, "gpus": 1},
        {"name": "b", "application": "bake", "scale": 1.0, "within_s": 100.0, "gpus": 1},
        {"name": "c", "application": "bake", "scale": 0.0, "gpus": 1},
        {"name": "d", "application": "render", "scale": 5.0, "gpus": 2, "within_s": 999.0},
        {"name": "e", "application": "render", "scale": 5.0, "gpus": 1, "x_owner": "me"},
    ],
    _steps(300.0, 0.3, 0.1, 0.4, 0.2),
)

CHIP = World(
    "chip",
    {
        "applications": "library.json",
        "kind": [{"name": "core", "core": [0.2, 1.0], "law": "fixed"}],
        "server": [
            {
                **{"name": "chip", "processors": [{"kind": "core", "count": 2}]},
                **{"chip_wide": True, "initially": "on", "shared_w": 4.0},
                **{"shared_w_per_clock": 2.0},
            }
        ],
    },
    _library({"w": {"core": _cpu(1.0)}}),
    [
        {"name": "a", "application": "w", "scale": 20.0, "deadline_s": 200.0, "after": ""},
        {"name": "b", "application": "w", "scale": 20.0, "deadline_s": 200.0, "after": "a"},
        {"name": "c", "application": "w", "scale": 30.0, "deadline_s": 200.0, "after": ""},
        {"name": "d", "application": "w", "scale": 10.0, "deadline_s": 200.0, "after": "b;c"},
    ],
)

LEVELS = World(
    "levels",
    {
        **CHIP.cluster,
        "kind": [
            {
                **{"name": "core", "core_mhz": [400, 600, 800, 1000], "default_core_mhz": 1000},
                **{"law": "fixed"},
            }
        ],
    },
    CHIP.library,
    CHIP.tasks,
)

SLOTS = World(
    "slots",
    {
        "applications": "library.json",
        "slot_s": 300.0,
        "kind": [
            {
                **{"name": "core", "core_mhz": [500, 750, 1000], "default_core_mhz": 1000},
                **{"interrupt": "pause", "law": "fixed"},
            }
        ],
        "server": [
            {
                **{"name": "n", "processors": [{"kind": "core", "count": 2}]},
                **{"initially": "on"},
            }
        ],
        "prices": {"file": "prices.csv"},
    },
    _library({"w": {"core": _cpu(300.0)}}),
    [
        {"name": "a", "application": "w", "scale": 2.0, "deadline_s": 3600.0, "after": ""},
        {"name": "b", "application": "w", "scale": 1.5, "deadline_s": 3600.0, "after": "a"},
        {"name": "c", "application": "w", "scale": 3.0, "deadline_s": 3600.0, "after": "a"},
    ],
    _steps(900.0, 0.3, 0.1, 0.4, 0.2),
)

RUNS = World(
    "runs",
    {
        "applications": ["library.json", "builtin:v100"],
        "reference": "v100",
        "archetype": "mixed",
        "timezone": "Europe/Berlin",
        "kind": [
            {"name": "v100", "idle_w": 40.0},
            {"name": "old", "card": "gtx1080ti", "speed": 0.4, "power_w": 180.0, "idle_w": 10.0},
        ],
        "server": [
            {
                **{"name": "r", "count": 2, "wake_j": 100.0, "host_w": 50.0},
                **{"processors": [{"kind": "v100", "count": 2}, {"kind": "old", "count": 1}]},
            }
        ],
    },
    _library(
        {"own": {"v100": _gpu(20.0, 100.0)}},
        {"v100": {"law": "proportional", "default_core_mhz": 1380, "default_memory_mhz": 877}},
    ),
    [
        {"name": "a", "run": "2h", "deadline": "18:30", "arrival": "08:00"},
        {"name": "b", "run": "01:30:00", "power_w": 220.0, "kind": "v100", "deadline": "+6h"},
        {"name": "c", "run": "90m", "application": "compute-bound", "arrival": "+10m"},
        {"name": "d", "application": "own", "scale": 60.0, "deadline_factor": 3.0},
        {"name": "e", "run": "5400", "application": "vectorAdd", "kind": "v100;old"},
    ],
)

LIMITS = World(
    "limits",
    {
        "applications": "library.json",
        "kind": [{"name": "card", "power_limit_w": [150, 200, 300], "idle_w": 30.0}],
        "server": [{"name": "p", "count": 2, "processors": [{"kind": "card", "count": 2}]}],
    },
    _library(
        {
            "train": {
                "card": {
                    "model": "table",
                    "points": [
                        {"power_limit_w": 150.0, "time_s": 30.0, "power_w": 140.0},
                        {"power_limit_w": 200.0, "time_s": 24.0, "power_w": 190.0},
                        {"power_limit_w": 300.0, "time_s": 20.0, "power_w": 280.0},
                    ],
                }
            }
        },
        {"card": {"default_power_limit_w": 300.0, "power_limit_w": [150, 200, 300]}},
    ),
    [
        {"name": "a", "application": "train", "scale": 2.0, "deadline_s": 200.0},
        {"name": "b", "application": "train", "scale": 1.0, "arrival_s": 5.0, "deadline_s": 60.0},
        {"name": "c", "application": "train", "scale": 7.0, "arrival_s": 5.0},
    ],
)

GANGS = World(
    "gangs",
    {
        **{key: MEASURED.cluster[key] for key in ("applications", "kind")},
        "server": [{**MEASURED.cluster["server"][0], "count": 3}],
    },
    MEASURED.library,
    [
        {"name": "a", "application": "render", "scale": 2.0, "within_s": 400.0, "gpus": 2},
        {"name": "b", "application": "bake", "scale": 1.0, "within_s": 200.0, "after": "a"},
        {"name": "c", "application": "bake", "scale": 3.0, "gpus": 4, "arrival_s": 30.0},
        {"name": "d", "application": "render", "scale": 1.0, "after": "a;c", "within_s": 999.0},
    ],
)
"""Gangs, and tasks that follow them."""

SITE = World(
    "site",
    {
        **GANGS.cluster,
        **{"power_cap_w": 900.0, "zone_power_cap_w": {"default": 1200.0}},
        "down": [
            {"server": "m1", "from_s": 20.0, "to_s": 60.0},
            {"server": "m", "from_s": 900.0, "to_s": 960.0},
        ],
    },
    GANGS.library,
    GANGS.tasks,
)
"""The same below power caps, with times of maintenance."""

WORLDS = (GPU, MIXED, MEASURED, CHIP, LEVELS, SLOTS, RUNS, LIMITS, GANGS, SITE)

LIMITED = [
    {"application": "train", "power_limit_w": limit, "time_s": time_s, "power_w": 0.95 * limit}
    for limit, time_s in ((150, 30.0), (200, 24.0), (250, 21.5), (300, 20.0))
]

MEASUREMENTS = [
    {
        **{"application": name, "core_mhz": core, "memory_mhz": memory},
        **{"time_s": round(4.0 + work / core + 900.0 / memory, 3)},
        **{"power_w": round(30.0 + 0.02 * memory + 60.0 * (core / 1000.0) ** 3, 3)},
    }
    for name, work in (("slow", 9000.0), ("quick", 500.0))
    for core in (600, 800, 1000)
    for memory in (500, 1000)
]

WORKFLOW = {
    "name": "tiny",
    "schemaVersion": "1.5",
    "author": {"name": "nobody", "email": "nobody@example.org"},
    "workflow": {
        "specification": {
            "tasks": [
                {"name": "split", "id": "split", "children": ["left", "right"], "parents": []},
                {"name": "left", "id": "left", "children": ["join"], "parents": ["split"]},
                {"name": "right", "id": "right", "children": ["join"], "parents": ["split"]},
                {"name": "join", "id": "join", "children": [], "parents": ["left", "right"]},
            ],
            "files": [],
        },
        "execution": {
            "makespanInSeconds": 9.5,
            "tasks": [
                {"id": "split", "runtimeInSeconds": 1.5, "coreCount": 1},
                {"id": "left", "runtimeInSeconds": 4.0, "coreCount": 1},
                {"id": "right", "runtimeInSeconds": 6.0, "coreCount": 1},
                {"id": "join", "runtimeInSeconds": 2, "coreCount": 1},
            ],
        },
    },
}

STG = """\
   5
   0 0 0
   1 7 1 0
   2 12 1 0
   3 3 2 1 2
   4 9 1 2
   5 4 2 3 4
   6 0 1 5
# CP Length : 25
# Parallelism : 1.400000
"""
