"""A cluster for a trace that says nothing of its machines: as many servers as it ran on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from downclock.quantities import count

IDLE_W = 40.0
"""Of a GPU that runs nothing; what the starter cluster (``downclock init``) has for a V100."""

SERVER = {"host_w": 300.0, "sleep_w": 15.0, "wake_j": 40000.0, "wake_s": 120.0}
"""Of a server: what the starter cluster has."""


def server_data(name: str, kind: str, gpus: int, many: int) -> dict[str, Any]:
    """Return servers as a cluster file describes them."""
    processors = [{"kind": kind, "count": gpus}]
    return {"name": name, "count": many, "processors": processors, "initially": "on", **SERVER}


def cluster_data(
    name: str, servers: Mapping[str, int], per_server: int, card: str
) -> dict[str, Any]:
    """Return a cluster of so many servers of each pool, a kind each, all of one card."""
    power = {"power_w": 100.0} if card == "cpu" else {}
    called = _server_names(servers)
    return {
        "name": name,
        "kind": [{"name": pool, "card": card, "idle_w": IDLE_W, **power} for pool in servers],
        "server": [
            server_data(called[pool], pool, per_server, many) for pool, many in servers.items()
        ],
    }


def _server_names(servers: Mapping[str, int]) -> dict[str, str]:
    """Names of the pools' servers, to which their numbers are added: no two servers share one.

    Of pools 1 and 11, the eleventh server of the first would be called as the first of the second.
    """
    called, taken = {}, set[str]()
    for pool, many in servers.items():
        name = f"{pool}-" if many > 1 and pool[-1:].isdigit() else pool
        while taken & (all_of := _numbered(name, many)):
            name += "-"
        called[pool] = name
        taken |= all_of
    return called


def _numbered(name: str, many: int) -> set[str]:
    """What equal servers are called, together and, where they are several, each."""
    return {name, *(f"{name}{k + 1}" for k in range(many) if many > 1)}


def cluster_note(servers: Mapping[str, int], per_server: int, card: str) -> str:
    """Say what the made cluster is."""
    many = count(sum(servers.values()), "server")
    pools = f" in {len(servers)} pools" if len(servers) > 1 else ""
    drawn = ", ".join(f"{key} {value:g}" for key, value in SERVER.items())
    return (
        f"the cluster: {many}{pools} of {per_server} {card} each, as few as hold the trace as it"
        f" ran; a GPU idles at {IDLE_W:g} W, a server has {drawn} (--cluster says otherwise)"
    )


def toml_text(data: Mapping[str, Any]) -> str:
    """Return a cluster as TOML."""
    lines = [
        f"{key} = {_toml(value)}" for key, value in data.items() if not isinstance(value, list)
    ]
    for key, rows in data.items():
        for row in rows if isinstance(rows, list) else ():
            lines += ["", f"[[{key}]]", *(f"{k} = {_toml(v)}" for k, v in row.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        # TOML knows the escapes of JSON, and refuses one letter more as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
