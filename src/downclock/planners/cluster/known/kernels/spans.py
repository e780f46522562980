"""When servers are awake: from one busy time to the next where idling costs no more than sleep."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled
from downclock.planners.cluster.known.kernels.gaps import is_busy, is_down, slept_value
from downclock.planners.cluster.known.kernels.model import Board, Question
from downclock.planners.cluster.known.kernels.tariff import over
from downclock.units import Floats, Ints


@compiled
def awake_times(question: Question, board: Board) -> tuple[Ints, Floats, Floats]:
    """Return (server, from, to) of every time a server is awake, by server and time.

    A server that begins on and stays so is awake from 0.
    """
    tariff, time_s, used = question.tariff, board.time_s, board.used
    most = time_s.size
    who, from_s, to_s = np.empty(most, np.int64), np.empty(most), np.empty(most)
    count = 0
    for place in range(question.servers.size):
        server, profile = question.servers[place], board.profiles[place]
        last_s, awake = 0.0, server.begins_on
        for step in range(profile.steps):
            at_s = time_s[profile.begin + step]
            if is_busy(used, profile, step) and not is_busy(used, profile, step - 1):
                idle = server.up_w * over(tariff, server.zone, last_s, at_s)
                slept = slept_value(tariff, server, last_s, at_s)
                stays = awake and slept >= idle
                stays = stays and not is_down(question.down, server, last_s, at_s)
                if not stays or step == 0:
                    who[count], from_s[count] = place, 0.0 if stays else at_s
                    count += 1
                awake = True
            elif not is_busy(used, profile, step):
                last_s, to_s[count - 1] = at_s, at_s
    return who[:count], from_s[:count], to_s[:count]
