"""Tasks that wait on processors, in order, as chains through tables of records.

Processors have ``head`` and ``tail``, tasks ``after``, ``before`` and ``place``; -1: none.
"""

from __future__ import annotations

from downclock.kernels.compiling import inner
from downclock.kernels.records import Records


@inner
def link(processors: Records, tasks: Records, p: int, i: int, ahead: int) -> None:
    """Put task ``i`` into the chain of processor ``p`` behind ``ahead``; -1: as the first."""
    after = processors.head[p] if ahead < 0 else tasks.after[ahead]
    tasks.place[i], tasks.before[i], tasks.after[i] = p, ahead, after
    if ahead < 0:
        processors.head[p] = i
    else:
        tasks.after[ahead] = i
    if after < 0:
        processors.tail[p] = i
    else:
        tasks.before[after] = i


@inner
def unlink(processors: Records, tasks: Records, i: int) -> int:
    """Take task ``i`` out of its chain; return the processor."""
    p, ahead, after = tasks.place[i], tasks.before[i], tasks.after[i]
    if ahead < 0:
        processors.head[p] = after
    else:
        tasks.after[ahead] = after
    if after < 0:
        processors.tail[p] = ahead
    else:
        tasks.before[after] = ahead
    tasks.place[i] = -1
    return p
