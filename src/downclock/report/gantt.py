"""A schedule as text: a row per processor or server, a column per stretch of time."""

from __future__ import annotations

import numpy as np

from downclock.problem.problem import Problem
from downclock.quantities import duration
from downclock.schedule.schedule import ON, WAKING, Schedule
from downclock.schedule.states import server_states
from downclock.units import Floats

BLOCKS = " ·░▒▓█"
"""Asleep, awake and idle, then busy: up to a quarter, a half, three quarters, more."""

LETTERS = " .-=+#"
"""The same for terminals without block characters."""

MOST_ROWS = 32


def gantt(
    problem: Problem, schedule: Schedule, *, width: int = 100, letters: str = BLOCKS
) -> list[str]:
    """Return the lines of a chart, its legend last; processors where they fit, else servers."""
    platform = problem.platform
    by_processor = platform.processor_count <= MOST_ROWS
    names = platform.processor_names().tolist() if by_processor else platform.server_name.tolist()
    shown = names[:MOST_ROWS]
    label = max(len(name) for name in shown)
    columns = max(10, width - label - 3)
    edges = np.linspace(0.0, schedule.makespan_s or 1.0, columns + 1)
    windows_s = np.full(platform.server_count, edges[-1])
    states, _ = server_states(platform, schedule.spans, windows_s)
    awake, segments = states.only(ON, WAKING), schedule.segments
    lines = []
    for row, name in enumerate(shown):
        server = int(platform.server[row]) if by_processor else row
        first, last = (row, row + 1) if by_processor else platform.first_processor[row : row + 2]
        inside = (segments.processor >= first) & (segments.processor < last)
        busy = _covered(segments.start_s[inside], segments.end_s[inside], edges) / (last - first)
        mine = awake.server == server
        up = _covered(awake.start_s[mine], awake.end_s[mine], edges)
        lines.append(f"{name:<{label}} |{_line(busy, up, letters)}|")
    if len(names) > len(shown):
        lines.append(f"and {len(names) - len(shown):,} more")
    end = duration(schedule.makespan_s)
    lines.append(f"{'':<{label}} |0 s{end:>{columns - 3}}|")
    lines.append(f"busy: {letters[2:]}   awake and idle: {letters[1]}   asleep: blank")
    return lines


def _covered(start_s: Floats, end_s: Floats, edges: Floats) -> Floats:
    """How much of each stretch between edges the intervals cover, summed; 1 is all of it."""
    before = np.clip(edges[:, None] - start_s[None, :], 0.0, (end_s - start_s)[None, :]).sum(axis=1)
    return np.asarray(np.diff(before) / np.diff(edges))


def _line(busy: Floats, awake: Floats, letters: str) -> str:
    level = np.where(awake > 1e-9, 1, 0)
    level = np.where(busy > 1e-9, np.clip(np.ceil(busy * 4.0 - 1e-9), 1, 4).astype(int) + 1, level)
    return "".join(letters[k] for k in level)
