"""Order: which of the tasks that arrive together is placed first."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from downclock.units import Bools, Floats, Ints

Order: TypeAlias = Literal["deadline", "longest", "given"]
"""Earliest deadline first (EDF); longest processing time first (LPT); as in the file."""


def in_order(
    order: Order, tasks: Ints, arrival_s: Floats, deadline_s: Floats, length_s: Floats, first: Bools
) -> Ints:
    """Sort ``tasks`` by arrival, then those marked ``first``, then by the rule, then by index.

    The columns are those of the whole problem; ties go to the lower index.
    """
    keys: dict[str, Floats] = {
        "deadline": deadline_s[tasks],
        "longest": -length_s[tasks],
        "given": tasks.astype(np.float64),
    }
    rank = np.lexsort((tasks, keys[order], ~first[tasks], arrival_s[tasks]))
    return np.asarray(tasks[rank])
