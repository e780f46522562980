"""Objectives: what the user writes and what it weighs."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.problem.objective import Objective, parse_objective
from downclock.problem.price import Curve, ZonePrices


@pytest.mark.parametrize(
    ("text", "objective"),
    [
        ("cost", Objective(cost=1.0)),
        ("carbon", Objective(carbon=1.0)),
        ("energy", Objective(energy=1.0)),
        ("0.7cost+0.3carbon", Objective(cost=0.7, carbon=0.3)),
        ("cost + .05*carbon", Objective(cost=1.0, carbon=0.05)),
        ("2000000cost+1e-7carbon", Objective(cost=2e6, carbon=1e-7)),
        ("0.12345678energy", Objective(energy=0.12345678)),
    ],
)
def test_objectives_read_as_written(text: str, objective: Objective) -> None:
    assert parse_objective(text) == objective
    assert parse_objective(str(objective)) == objective


@pytest.mark.parametrize("text", ["", "speed", "cost+cost", "0cost", "-1cost", "0.5"])
def test_nonsense_is_named(text: str) -> None:
    with pytest.raises(InvalidInput, match="objective="):
        parse_objective(text)


def test_a_slot_is_worth_the_mean_of_the_clipped_curve() -> None:
    price = Curve(np.array([0.0, 1.0, 2.0, 3.0]), np.array([-2.0, 4.0, 6.0, 8.0]), 4.0)
    carbon = Curve.constant(500.0)
    zone = ZonePrices(price=price, carbon=carbon, price_forecast=Curve.constant(3.0))
    edges_s = np.array([0.0, 2.0, 4.0])
    both = Objective(cost=1.0, carbon=2.0, energy=0.25)
    # Actual: (0 + 4) / 2 and (6 + 8) / 2; 500 g are 0.5 kg; energy counts each kWh.
    assert both.per_kwh(zone, edges_s, actual=True) == pytest.approx([3.25, 8.25])
    assert both.per_kwh(zone, edges_s) == pytest.approx([4.25, 4.25])
