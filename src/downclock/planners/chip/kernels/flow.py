"""Clocks per core of large graphs: a flow of marginal power that settles where paths are equal.

Unknown is the flow: how what passes a task is split over its successors. A task's price of time is
the flow through it, its run time follows from the price, and every task's successors see the mean
time that remains from them to the end. Where that time is longer, more flow must go.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled
from downclock.units import Array


@compiled
def run_times(work: Array, price: Array, law: Array, time: Array, answer: Array) -> None:
    """Best run time of each task against its price of time, and how it falls with its flow.

    ``law`` is (c1, c3, alpha, least and most seconds a cycle); ``answer[i]`` is the fall of the
    run time of task i for a relative rise of its flow.
    """
    c1, c3, alpha, low, high = law
    for i in range(work.size):
        whole = c3 + price[i]
        slowness = high
        if whole > 0.0:
            slowness = (c1 * (alpha - 1.0) / whole) ** (1.0 / alpha)
        inside = low < slowness < high
        slowness = min(max(slowness, low), high)
        time[i] = work[i] * slowness
        answer[i] = time[i] / alpha * price[i] / whole if inside else 0.0


@compiled
def dual_value(work: Array, price: Array, law: Array) -> float:
    """Energy of every task at its best against its price of time, with the price paid."""
    c1, c3, alpha, low, high = law
    value = 0.0
    for i in range(work.size):
        whole = c3 + price[i]
        if work[i] > 0.0 and (whole > 0.0 or high < np.inf):
            slowness = (c1 * (alpha - 1.0) / whole) ** (1.0 / alpha) if whole > 0.0 else high
            slowness = min(max(slowness, low), high)
            value += work[i] * (c1 * slowness ** (1.0 - alpha) + whole * slowness)
    return value


@compiled
def push_flow(order: Array, succ_at: Array, succ: Array, split: Array, through: Array) -> None:
    """Send what enters at the tasks (``through``) along the splits."""
    for k in range(order.size):
        i = order[k]
        for e in range(succ_at[i], succ_at[i + 1]):
            through[succ[e]] += through[i] * split[e]


@compiled
def settle(
    order: Array,
    succ_at: Array,
    succ: Array,
    split: Array,
    through: Array,
    time: Array,
    answer: Array,
    step: float,
) -> tuple[Array, Array]:
    """Move the splits towards the longer ways; return the mean time left and its fall with flow.

    The fall of a successor counts by the share of its flow that comes over the edge.
    """
    left, fall = np.zeros(time.size), np.zeros(time.size)
    for k in range(order.size - 1, -1, -1):
        i = order[k]
        first, last = succ_at[i], succ_at[i + 1]
        mean, gives = 0.0, 0.0
        for e in range(first, last):
            j = succ[e]
            part = through[i] * split[e] / through[j] if through[j] > 0.0 else 1.0
            mean += split[e] * left[j]
            gives += split[e] * part * fall[j]
        left[i], fall[i] = time[i] + mean, answer[i] + gives
        if last - first > 1:
            total = 0.0
            for e in range(first, last):
                j = succ[e]
                part = through[i] * split[e] / through[j] if through[j] > 0.0 else 1.0
                move = step * (left[j] - mean) / (part * fall[j] + gives + 1e-300)
                split[e] *= np.exp(min(max(move, -2.0), 2.0))
                total += split[e]
            for e in range(first, last):
                split[e] = max(split[e] / total, 1e-12)
    return left, fall
