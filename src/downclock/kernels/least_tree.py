"""A tree over keys that finds the smallest one, or the first small enough, in log n steps.

``tree`` has shape (2 * size,), size a power of two; leaf ``i`` sits at ``size + i``; each inner
node holds the least key below it. Free leaves are infinite.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled
from downclock.units import Floats


def new_tree(keys: Floats) -> Floats:
    """Build a tree over ``keys`` (n,); cost n."""
    size = 1
    while size < max(keys.size, 1):
        size *= 2
    tree = np.full(2 * size, np.inf)
    tree[size : size + keys.size] = keys
    while size > 1:
        tree[size // 2 : size] = np.minimum(
            tree[size : 2 * size : 2], tree[size + 1 : 2 * size : 2]
        )
        size //= 2
    return tree


@compiled
def set_key(tree: Floats, leaf: int, key: float) -> None:
    """Change one key."""
    node = tree.size // 2 + leaf
    tree[node] = key
    node //= 2
    while node >= 1:
        least = min(tree[2 * node], tree[2 * node + 1])
        if tree[node] == least:
            return
        tree[node] = least
        node //= 2


@compiled
def first_at_most(tree: Floats, limit: float) -> int:
    """Return the first leaf with a key <= limit, or -1."""
    if not tree[1] <= limit:
        return -1
    node, size = 1, tree.size // 2
    while node < size:
        node *= 2
        if not tree[node] <= limit:
            node += 1
    return node - size


@compiled
def least(tree: Floats) -> int:
    """Return the first leaf that has the least key, or -1 where all are infinite."""
    if tree[1] == np.inf:
        return -1
    return first_at_most(tree, tree[1])
