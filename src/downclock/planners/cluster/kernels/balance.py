"""All tasks at once: balanced chains on a given number of processors."""

from __future__ import annotations

from downclock.kernels.compiling import compiled
from downclock.kernels.least_tree import first_at_most, set_key
from downclock.planners.cluster.kernels.curves import Curves, energy_j, want_s
from downclock.units import Floats, Ints


@compiled
def balance(
    curves: Curves,
    rows: Ints,
    due_s: Floats,
    order: Ints,
    ready_s: Floats,
    ends: Floats,
    opened: int,
    chain: Ints,
) -> tuple[float, int, int]:
    """Give each task, in order, to the processor free soonest.

    ``rows`` and ``due_s`` are of the tasks; ``ends`` is a tree over the processors (1, tree):
    when each is free (``ready_s``) for the first ``opened``, else infinite. A task that would
    have to be shortened opens another processor, if one is left. Writes ``chain`` (processor of
    each task; -1: no room); returns (energy above the tasks' best, processors opened, tasks
    without room).
    """
    extra, lost = 0.0, 0
    for a in range(order.size):
        i = order[a]
        row = rows[i]
        p, start = first_at_most(ends, 0, ends[0, 1]), ends[0, 1]
        late = due_s[i] - start < curves.rows.free_s[row]
        if late and opened < ready_s.size and ready_s[opened] < start:
            p, start = opened, ready_s[opened]
            set_key(ends, 0, p, start)
            opened += 1
        t = want_s(curves, row, due_s[i] - start)
        if t < 0.0:
            lost += 1
            continue
        if t < curves.rows.free_s[row]:
            extra += energy_j(curves, row, t) - curves.rows.free_j[row]
        chain[i] = p
        set_key(ends, 0, p, start + t)
    return extra, opened, lost
