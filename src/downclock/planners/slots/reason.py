"""Why a slot graph has no schedule: the task, the path or the machines that cannot hold."""

from __future__ import annotations

import numpy as np

from downclock.planners.slots.model import SlotGraph, SlotGraphIndex
from downclock.units import Ints, Names

SHOWN = 6
"""Tasks of a path that are named."""


def reason(graph: SlotGraph, name: Names) -> str:
    """Say what keeps every schedule from meeting the deadlines, as far as it is known.

    ``name`` are the tasks' names (n,).
    """
    index = SlotGraphIndex.of(graph)
    early, _, _ = index.windows(index.before, index.after)
    end = early + index.length
    late = np.flatnonzero(end > graph.due + 1)
    if late.size:
        return _path_reason(index, early, int(late[np.argmin(end[late])]), name)
    return _room_reason(graph, index.length) or (
        "no schedule was found that meets the deadlines: every path fits, and so does the work of"
        f" all tasks on {graph.machines} machines, but not both"
    )


def _path_reason(index: SlotGraphIndex, early: Ints, task: int, name: Names) -> str:
    """Name the task whose longest path does not fit, and that path."""
    graph, path = index.graph, [task]
    while early[path[0]] > graph.release[path[0]]:
        i = path[0]
        pred = index.pred[index.pred_at[i] : index.pred_at[i + 1]]
        path.insert(0, int(pred[np.argmax(early[pred] + index.length[pred])]))
    words = [str(name[i]) for i in path]
    if len(words) > SHOWN:
        words = [*words[: SHOWN // 2], "...", *words[-SHOWN // 2 :]]
    need, room = int(index.length[path].sum()), int(graph.due[task] + 1 - graph.release[path[0]])
    via = f"the path {' > '.join(words)} needs" if len(path) > 1 else "it needs"
    return (
        f"task '{name[task]}' cannot end by its deadline: at the highest clock {via} {need} slots,"
        f" and there are {max(room, 0)}"
    )


def _room_reason(graph: SlotGraph, length: Ints) -> str | None:
    """Name the deadline by which the machines cannot do all that is due; None where they can."""
    for due in np.unique(graph.due):
        mine = graph.due <= due
        need = int(length[mine].sum())
        room = graph.machines * int(due + 1 - graph.release[mine].min())
        if need > room:
            return (
                f"the {int(mine.sum())} tasks due by the end of slot {due + 1} need {need} machine"
                f" slots at the highest clock, and {graph.machines} machines have {room}"
            )
    return None
