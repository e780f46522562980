"""The data of a page: segments, tasks, server states, power and prices, packed."""

from __future__ import annotations

from typing import Any

import numpy as np

from downclock.problem.platform import Kind
from downclock.problem.price import Curve
from downclock.problem.problem import Problem
from downclock.report.page.curves import sampled_curves
from downclock.report.page.pack import Pack
from downclock.report.page.words import plan_name
from downclock.report.power_curve import PowerCurve, power_curve
from downclock.schedule.account.bill import PARTS
from downclock.schedule.schedule import DOWN, ON, STATES, STATUSES, WAKING, Schedule
from downclock.study.summary import Summary
from downclock.units import Floats, Ints


def page_data(summary: Summary) -> str:
    """Return what the page's scripts draw first, as one block of text."""
    problem, schedule = summary.problem, summary.plan.schedule
    power = power_curve(problem, schedule, boundary=summary.plan.bill.boundary)
    used, application = np.unique(problem.tasks.application, return_inverse=True)
    into = Pack()
    _segments(into, problem, schedule)
    _tasks(into, summary, application)
    _servers(into, problem, power)
    last_s = max(float(power.edge_s[-1]), schedule.makespan_s)
    return into.text(_header(summary, used, power, last_s))


def curve_data(problem: Problem) -> str:
    """Return the energy-time frontiers, which are wanted for one task at a time, and so later."""
    into = Pack()
    sampled_curves(problem, np.unique(problem.tasks.application)).pack(into)
    return into.text({})


def _header(summary: Summary, used: Ints, power: PowerCurve, last_s: float) -> dict[str, Any]:
    problem, epoch = summary.problem, summary.problem.epoch
    offset = None if epoch is None else epoch.utcoffset()
    reason = summary.plan.schedule.outcomes.reason
    return {
        "policy": plan_name(summary),
        "epoch_ms": None if epoch is None else epoch.timestamp() * 1000.0,
        "offset_min": 0.0 if offset is None else offset.total_seconds() / 60.0,
        "last_s": last_s,
        "parts": list(PARTS),
        "states": list(STATES),
        "statuses": list(STATUSES),
        "exact_power": power.exact,
        "power_cap_w": _cap_w(problem),
        "currency": problem.prices.currency,
        "kinds": [_kind(kind) for kind in problem.platform.kinds],
        "server_names": _texts(problem.platform.server_name),
        "application_names": _texts(problem.library.names[used]),
        "task_names": _texts(problem.tasks.name),
        "reasons": {str(row): str(reason[row]) for row in np.flatnonzero(reason != "")},
        "signals": _signals(problem, last_s),
    }


def _cap_w(problem: Problem) -> float | None:
    """The cap on all power, where there is one; that of the only zone is one."""
    platform = problem.platform
    caps = platform.limits.caps(platform.zones, platform.zone)
    whole = [cap_w for _, cap_w, servers in caps if np.all(servers)]
    return min(whole) if whole else None


def _segments(into: Pack, problem: Problem, schedule: Schedule) -> None:
    """Add the segments by processor, then start."""
    segments = schedule.segments
    order = np.lexsort((segments.start_s, segments.processor))
    kind = problem.platform.kind[segments.processor]
    _, watts = problem.at(segments.task, kind, segments.points)
    for name in ("task", "processor", "attempt"):
        into.whole(f"segment_{name}", getattr(segments, name)[order])
    into.measured("segment_start", segments.start_s[order])
    into.measured("segment_end", segments.end_s[order])
    for name in ("core", "memory", "volt", "share"):
        into.measured(f"segment_{name}", getattr(segments, name)[order], bits=16)
    into.real("segment_watts", watts[order])


def _tasks(into: Pack, summary: Summary, application: Ints) -> None:
    tasks, outcomes = summary.problem.tasks, summary.plan.schedule.outcomes
    into.whole("task_application", application)
    into.whole("task_status", outcomes.status)
    into.whole("task_processors", tasks.processors)
    into.whole("edge_before", summary.problem.edges.before)
    into.whole("edge_after", summary.problem.edges.after)
    into.measured("task_arrival", tasks.arrival_s)
    into.measured("task_deadline", tasks.deadline_s)
    into.real("task_work", tasks.scale * outcomes.work)
    into.real("task_joules", summary.plan.bill.task_j)


def _servers(into: Pack, problem: Problem, power: PowerCurve) -> None:
    """Add what servers do (a time that is not listed is sleep), and power over time."""
    platform = problem.platform
    states = power.states.only(ON, WAKING, DOWN)
    into.whole("processor_server", platform.server)
    into.whole("processor_kind", platform.kind)
    into.whole("state_server", states.server)
    into.whole("state_kind", states.state)
    into.measured("state_start", states.start_s)
    into.measured("state_end", states.end_s)
    into.measured("power_edge", power.edge_s)
    into.real("power_watts", power.watts.ravel())
    into.measured("wake_at", power.wake_s)
    into.real("wake_joules", power.wake_j)


def _kind(kind: Kind) -> dict[str, Any]:
    core_mhz, memory_mhz = kind.clocks.default_mhz or (None, None)
    return {
        "name": kind.name,
        "idle_w": kind.idle_w,
        "core_mhz": core_mhz,
        "memory_mhz": memory_mhz,
        "scales_memory": kind.clocks.scales_memory,
    }


def _signals(problem: Problem, last_s: float) -> list[dict[str, Any]]:
    """Return the price and carbon curves of every zone, until the plan's end."""
    signals = []
    for zone in problem.platform.zones:
        curves = problem.prices.of(zone)
        for what, unit, curve, forecast in (
            ("price", f"{problem.prices.currency}/kWh", curves.price, curves.price_forecast),
            ("CO2", "g/kWh", curves.carbon, curves.carbon_forecast),
        ):
            if curve is not None:
                shown = {"zone": zone, "what": what, "unit": unit, **_steps(curve, last_s)}
                shown["forecast"] = None if forecast is None else _steps(forecast, last_s)
                signals.append(shown)
    return signals


def _steps(curve: Curve, last_s: float) -> dict[str, Any]:
    kept: Ints = np.flatnonzero(curve.start_s < last_s)
    kept = kept if kept.size else np.array([0])
    end = curve.start_s[kept[-1] + 1] if kept[-1] + 1 < curve.start_s.size else curve.end_s
    values: Floats = curve.value[kept]
    return {
        "start": curve.start_s[kept].tolist(),
        "value": values.tolist(),
        "end": float(min(end, max(last_s, float(curve.start_s[kept[-1]])))),
    }


def _texts(names: Any) -> list[str]:
    return [str(name) for name in names]
