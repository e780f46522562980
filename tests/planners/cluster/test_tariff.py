"""How long a run may wait for what it may cost, on edges of which sums are rounded."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.planners.cluster.kernels.tariff import Tariff, last_start_s, new_tariff, over


def odd_tariff(rng: np.random.Generator) -> Tariff:
    pieces = int(rng.integers(2, 30))
    piece_s = rng.choice([1.0, 900.0, 3600.0, rng.uniform(0.1, 1e4)])
    first_s = rng.choice([0.0, rng.uniform(-1e5, 1e5)])
    rate = rng.integers(1, 4, (1, pieces)).astype(np.float64)
    return new_tariff(first_s + np.arange(pieces + 1) * piece_s, rate)


@pytest.mark.parametrize("seed", range(100))
def test_a_run_waits_as_long_as_it_stays_cheap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tariff = odd_tariff(rng)
    first_s, last_s = tariff.edge_s[0], tariff.edge_s[-1]
    for _ in range(20):
        length_s = rng.uniform(0.01, 5.0) * (last_s - first_s) / tariff.rate.size
        edge_s = rng.choice(tariff.edge_s)
        from_s = rng.choice([edge_s, edge_s - length_s, rng.uniform(first_s, last_s)])
        to_s = rng.choice([rng.uniform(from_s, last_s + length_s), 1e300])
        most = over(tariff, 0, from_s, from_s + length_s) * rng.choice([1.0 + 1e-6, 1.02, 1.37])
        start_s = last_start_s(tariff, 0, from_s, to_s, length_s, most)
        little_s = 1e-9 * (last_s - first_s + abs(first_s))
        assert from_s <= start_s <= to_s + little_s
        tried_s = np.linspace(from_s, start_s, 200) if start_s < 1e300 else tariff.edge_s
        cost = [over(tariff, 0, t, t + length_s) for t in tried_s if t >= from_s]
        assert max(cost) <= most + little_s
        beyond_s = start_s + 100 * little_s
        assert start_s >= to_s - little_s or over(tariff, 0, beyond_s, beyond_s + length_s) > most
