"""What follows a task that is rejected is rejected, too: the book does so, and whole runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from downclock.engine.book import ORPHAN
from downclock.engine.decisions import Decisions
from downclock.engine.view import View


def with_orphans(decided: Decisions, view: View) -> Decisions:
    """Reject what follows a rejected task, too."""
    if not len(view.edges) or not decided.rejected.size:
        return decided
    lost = np.setdiff1d(view.edges.reach(len(view.tasks), decided.rejected), decided.rejected)
    why = np.full(lost.size, ORPHAN, dtype=object)
    return replace(
        decided,
        rejected=np.concatenate([decided.rejected, lost]),
        reason=np.concatenate([decided.reason, why]),
    )
