"""What our planner remembers between two moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.cluster.board import Board
from downclock.planners.cluster.columns import CurveTables
from downclock.planners.cluster.price_choice import PriceWatch
from downclock.units import Bools, Ints


@dataclass(slots=True)
class State:
    """What the policy remembers: the board, columns of the tasks told, and when to ask on prices.

    ``homeless`` are accepted tasks that nothing working can run; ``seen`` is how many tasks were
    told.
    """

    board: Board
    curves: CurveTables
    watch: PriceWatch
    homeless: Ints
    work_s: float = 0.0
    seen: int = 0
    began: bool = False


def is_shared(board: Board, tasks: Ints) -> Bools:
    """Tell which tasks need reservations: gangs, those that follow others; all at prices (m,)."""
    bound = (board.tasks["gang"][tasks] > 1) | (board.tasks["follows"][tasks] >= 0)
    return np.asarray(bound | (board.tally["priced"][0] > 0))


def next_event_s(state: State) -> float:
    """When something happens by itself: what runs should end, or a server needs attention."""
    return float(min(state.board.busy[0, 1], state.board.attend[0, 1]))
