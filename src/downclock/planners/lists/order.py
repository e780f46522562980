"""Order: which of the tasks that arrive together is placed first."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from downclock.units import Bools, Floats, Ints

Order: TypeAlias = Literal["deadline", "longest", "given"]
"""Earliest deadline first (EDF); longest processing time first (LPT); as in the file."""


def in_order(
    order: Order, arrival_s: Floats, deadline_s: Floats, length_s: Floats, later: Bools
) -> Ints:
    """Rank tasks by arrival, then those not marked ``later``, then by the rule.

    All columns are those of the tasks to rank (m,); ties stay in the given order.
    """
    keys = [later, arrival_s]
    if order != "given":
        keys.insert(0, deadline_s if order == "deadline" else -length_s)
    telling = [key for key in keys if key.size and np.any(key != key[0])]
    return np.lexsort(telling) if telling else np.arange(arrival_s.size)
