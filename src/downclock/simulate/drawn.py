"""Worlds that are drawn: a fate as what really happens to a problem."""

from __future__ import annotations

import numpy as np

from downclock.engine.facts import DOWN, PRICE, SERVER_DOWN, SERVER_UP, UP
from downclock.engine.world import Incident, World
from downclock.problem.problem import Problem
from downclock.simulate.chances import Fate
from downclock.units import Floats, Ints


def noiseless_world(problem: Problem) -> World:
    """The world where estimates and forecasts come true."""
    return World(problem, incidents=_quotes(problem, actual=False))


def drawn_world(problem: Problem, fate: Fate) -> World:
    """The world of a fate, with actual prices."""
    machines = [
        *_incidents(fate.server_down, fate.server_down_s, fate.repair_s, SERVER_DOWN, SERVER_UP),
        *_incidents(fate.processor_down, fate.processor_down_s, fate.repair_s, DOWN, UP),
    ]
    incidents = sorted(machines + _quotes(problem, actual=True))
    return World(problem, fate.work, fate.breaks, incidents)


def _quotes(problem: Problem, *, actual: bool) -> list[Incident]:
    """Every change of price by time, the actual ones or those expected."""
    found = []
    for zone, name in enumerate(problem.platform.zones):
        prices = problem.prices.of(name)
        curve = prices.price if actual else prices.expected_price
        if curve is not None:
            first = max(int(np.searchsorted(curve.start_s, 0.0, side="right")) - 1, 0)
            rows = zip(curve.start_s[first:].tolist(), curve.value[first:].tolist(), strict=True)
            found += [Incident(max(at_s, 0.0), PRICE, zone, price) for at_s, price in rows]
    return sorted(found)


def _incidents(
    machine: Ints, start_s: Floats, repair_s: float, down: int, up: int
) -> list[Incident]:
    """Failures and repairs; a failure that comes during a repair makes it longer."""
    order = np.lexsort((start_s, machine))
    machine, start_s = machine[order], start_s[order]
    begins = np.ones(machine.size, dtype=bool)
    same = machine[1:] == machine[:-1]
    begins[1:] = ~same | (start_s[1:] > start_s[:-1] + repair_s)
    ends = np.append(begins[1:], True)[: machine.size]
    rows = zip(machine[begins].tolist(), start_s[begins].tolist(), start_s[ends].tolist(),
               strict=True)  # fmt: skip
    found = []
    for place, from_s, last_s in rows:
        found += [Incident(from_s, down, place), Incident(last_s + repair_s, up, place)]
    return found
