"""Why tasks of a workflow are refused, in words: one of them has no place, and all follow it."""

from __future__ import annotations

from downclock.engine.reasons import why_refused
from downclock.engine.view import View


def why_not(
    view: View, task: int, blamed: int, code: int, earliest_s: float, latest_s: float
) -> str:
    """Say why a task is refused: there is no place for it, or for one of its workflow.

    ``latest_s`` is when that one has to end, so that what follows it can be in time.
    """
    why = why_refused(view, blamed, code, earliest_s, latest_s)
    return why if task == blamed else f"its workflow is refused: {view.tasks.name[blamed]!r} {why}"
