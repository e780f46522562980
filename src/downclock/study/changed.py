"""A problem with one thing changed: servers that never sleep, default clocks, prices that last."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np

from downclock.power.profiles import MeasuredProfiles
from downclock.problem.platform import Platform
from downclock.problem.price import CURVES, Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.units import Ints


def vary(prices: Prices) -> bool:
    """Tell whether prices differ by time or place; else the least energy is the least cost."""
    told = [curves.price.value for _, curves in prices.zones if curves.price is not None]
    return bool(told) and bool(np.ptp(np.concatenate(told)) > 0.0)


def sleepless(platform: Platform) -> Platform:
    """The platform whose servers draw the same asleep as awake and idle: sleeping saves nothing."""
    idle_w = {kind.name: kind.idle_w for kind in platform.kinds}
    specs = []
    for spec in platform.specs:
        asleep_w = spec.host_w + sum(number * idle_w[kind] for kind, number in spec.processors)
        specs.append(replace(spec, sleep_w=asleep_w, wake_j=0.0, wake_s=0.0))
    return Platform.build(platform.kinds, specs, platform.slot_s)


def at_default(problem: Problem, fixed: Ints) -> Problem:
    """The problem whose tasks ``fixed`` run at default clocks only: their owners want it so."""
    if not fixed.size:
        return problem
    library, used = problem.library, np.unique(problem.tasks.application[fixed])
    points: list[tuple[float, float, float, float]] = []
    group = np.full((used.size, len(library.kinds)), -1, dtype=np.int64)
    row = np.zeros_like(group)
    for kind in problem.platform.kinds:
        k, point = library.kinds.index(kind.name), kind.clocks.default
        time_s, power_w = library.at(used, kind.name, np.tile(point, (used.size, 1)))
        for a in np.flatnonzero(np.isfinite(time_s)).tolist():
            group[a, k], row[a, k] = len(library.groups), len(points)
            points.append((float(point[0]), float(point[1]), float(time_s[a]), float(power_w[a])))
    table = MeasuredProfiles(np.arange(len(points) + 1), *np.array(points).T)
    names = [f"{library.names[a]} at default clocks" for a in used]
    grown = replace(
        library,
        names=np.concatenate([library.names, names]),
        groups=(*library.groups, table),
        group=np.concatenate([library.group, group]),
        row=np.concatenate([library.row, row]),
    )
    application = problem.tasks.application.copy()
    application[fixed] = len(library) + np.searchsorted(used, application[fixed])
    return replace(problem, library=grown, tasks=replace(problem.tasks, application=application))


def lasting(problem: Problem, prices: Prices) -> Prices:
    """Prices from time 0 until long after the last deadline, repeated where they are not known."""
    zones, until_s = [], 2.0 * float(problem.tasks.deadline_s.max())
    for name, curves in prices.zones:
        told = {curve: getattr(curves, curve) for curve in CURVES}
        known = {c: v.around(0.0, until_s) for c, v in told.items() if v is not None}
        zones.append((name, ZonePrices(**known)))
    return Prices(tuple(zones), prices.currency)


def price_note(problem: Problem, name: str, prices: Prices) -> str:
    """Say when prices hold."""
    _, curves = prices.zones[0]
    told = (("price", curves.price, prices.currency), ("CO2", curves.carbon, "g"))
    said = [f"{what} {_when(problem, each, unit)}" for what, each, unit in told if each is not None]
    return f"prices: {name}, {'; '.join(said)}"


def _when(problem: Problem, curve: Curve, unit: str) -> str:
    if np.isinf(curve.end_s):
        return f"{curve.value[-1]:g} {unit} per kWh at any time"
    if problem.epoch is None:
        return "from the first job on, and repeated"
    ends = (problem.epoch + timedelta(seconds=at) for at in (curve.start_s[0], curve.end_s))
    by_date = f"by date ({' to '.join(f'{at:%Y-%m-%d %H:%M}' for at in ends)})"
    known = curve.covers(0.0, float(problem.tasks.deadline_s.max()))
    return by_date if known else f"{by_date}, whole weeks or days of that before and after"
