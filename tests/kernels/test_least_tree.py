"""Trees of least keys agree with a plain list."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.kernels import least_tree

set_key = getattr(least_tree.set_key, "py_func", least_tree.set_key)
first_at_most = getattr(least_tree.first_at_most, "py_func", least_tree.first_at_most)


@pytest.mark.parametrize("size", [1, 2, 5, 8, 13])
def test_trees_find_what_a_list_finds(size: int) -> None:
    rng = np.random.default_rng(size)
    keys = rng.choice([0.0, 1.0, 2.5, 7.0, np.inf], size=(3, size))
    trees = least_tree.new_trees(keys)
    for _ in range(60):
        row, leaf = int(rng.integers(3)), int(rng.integers(size))
        keys[row, leaf] = rng.choice([0.0, 0.5, 1.0, 3.0, np.inf])
        set_key(trees, row, leaf, keys[row, leaf])
        assert trees[row, 1] == keys[row].min()
        limit = float(rng.choice([-1.0, 0.5, 2.0, 9.0, np.inf]))
        hits = np.flatnonzero((keys[row] <= limit) & (keys[row] < np.inf))
        assert first_at_most(trees, row, limit) == (hits[0] if hits.size else -1)
    assert np.array_equal(trees[:, 1:], least_tree.new_trees(keys)[:, 1:])
