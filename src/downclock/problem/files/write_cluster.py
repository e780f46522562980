"""The platform as plain data: what a cluster file says about kinds and servers."""

from __future__ import annotations

from typing import Any

from downclock.errors import InvalidInput
from downclock.power.points import INTERVALS, Clocks
from downclock.problem.platform import Kind, Platform, ServerSpec


def platform_data(platform: Platform) -> dict[str, Any]:
    """Return kinds and servers as `downclock.problem.files.read_cluster.platform_of` reads them."""
    if not platform.specs:
        rule = "cannot be written: it was not made from server descriptions (Platform.build)"
        raise InvalidInput(rule, item="the platform")
    data: dict[str, Any] = {} if platform.slot_s is None else {"slot_s": platform.slot_s}
    data["kind"] = [_kind(kind) for kind in platform.kinds]
    data["server"] = [_server(spec) for spec in platform.specs]
    return data


def _kind(kind: Kind) -> dict[str, Any]:
    return {
        "name": kind.name,
        "idle_w": float(kind.idle_w),
        "interrupt": kind.interrupt,
        "clock": kind.clock,
        **_clocks(kind.clocks),
    }


def _clocks(clocks: Clocks) -> dict[str, Any]:
    for name, interval in INTERVALS.items():
        if clocks == interval:
            return {"interval": name}
    return clocks.data()


def _server(spec: ServerSpec) -> dict[str, Any]:
    processors = [{"kind": kind, "count": int(count)} for kind, count in spec.processors]
    return {
        "name": spec.name,
        "count": int(spec.count),
        "zone": spec.zone,
        "processors": processors,
        "chip_wide": bool(spec.chip_wide),
        "shared_w": float(spec.shared_w),
        "shared_w_per_clock": float(spec.shared_w_per_clock),
        "host_w": float(spec.host_w),
        "sleep_w": float(spec.sleep_w),
        "wake_j": float(spec.wake_j),
        "wake_s": float(spec.wake_s),
        "initially": "on" if spec.initially_on else "asleep",
    }
