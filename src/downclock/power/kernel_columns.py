"""Energy-time curves as columns for compiled kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.power.frontier import Frontier
from downclock.power.frontier_cpu import CpuCurves
from downclock.power.frontier_gpu import GpuCurves
from downclock.power.kernels.models import CPU, GPU, LADDER
from downclock.units import Floats, Ints


class KernelColumns(NamedTuple):
    """Parameters of whole tasks on one kind."""

    model: Ints  # (n,) what answers, see power.kernels.models
    shape: Floats  # (n, 6) GPU: p0, gamma, c, d, delta, t0; CPU: work, c1, alpha, static
    box: Floats  # (8,) clock range of the GPU model


def kernel_columns(frontier: Frontier) -> KernelColumns:
    """Return the curves of every row as kernels take them; ladders are asked for by themselves."""
    n = len(frontier)
    model, shape, box = np.zeros(n, dtype=np.int64), np.zeros((n, 6)), np.zeros(8)
    for part, curves in enumerate(frontier.curves):
        mine = np.flatnonzero((frontier.part == part) & (frontier.scale > 0.0))
        row, scale = frontier.row[mine], frontier.scale[mine]
        if isinstance(curves, GpuCurves):
            g = curves.profiles
            model[mine], box[:] = GPU, curves.box
            columns = (g.p0_w[row], g.gamma_w[row], g.c_w[row])
            shape[mine] = np.column_stack(
                [*columns, g.d_s[row] * scale, g.delta[row], g.t0_s[row] * scale]
            )
        elif isinstance(curves, CpuCurves):
            c = curves.profiles
            model[mine] = CPU
            columns = (c.time_s[row] * scale, c.c1_w[row], c.alpha[row])
            shape[mine, :4] = np.column_stack([*columns, c.static_w[row]])
        else:
            model[mine] = LADDER
    return KernelColumns(model, shape, box)
