"""Trees over keys that find the smallest one, or the first small enough, in log n steps.

``trees`` has shape (count, 2 * size), a tree a row, size a power of two; leaf ``i`` sits at
``size + i``; each inner node holds the least key below it. Free leaves are infinite.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.units import Floats

LARGEST = 1e300
"""Keys above this count as infinite."""


def new_trees(keys: Floats) -> Floats:
    """Build a tree over each row of ``keys`` (count, n); cost count * n."""
    count, n = keys.shape
    size = 1
    while size < n:
        size *= 2
    trees = np.full((count, 2 * size), np.inf)
    trees[:, size : size + n] = keys
    while size > 1:
        left, right = trees[:, size : 2 * size : 2], trees[:, size + 1 : 2 * size : 2]
        np.minimum(left, right, out=trees[:, size // 2 : size])
        size //= 2
    return trees


@inner
def set_key(trees: Floats, row: int, leaf: int, key: float) -> None:
    """Change one key."""
    node = trees.shape[1] // 2 + leaf
    trees[row, node] = key
    while node > 1:
        other = trees[row, node ^ 1]
        key = min(key, other)
        node //= 2
        if trees[row, node] == key:
            return
        trees[row, node] = key


@inner
def first_at_most(trees: Floats, row: int, limit: float) -> int:
    """Return the first leaf with a key <= limit, or -1; infinite keys do not count."""
    limit = min(limit, LARGEST)
    if not trees[row, 1] <= limit:
        return -1
    node, size = 1, trees.shape[1] // 2
    while node < size:
        node *= 2
        if not trees[row, node] <= limit:
            node += 1
    return node - size
