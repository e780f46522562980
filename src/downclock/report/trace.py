"""A schedule as a trace in the Trace Event Format, for Perfetto and Chrome's tracing page.

A server is a process, a processor a thread; a server's power states are a thread of their own,
power by part a counter. Times are microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from downclock.files import write_text_atomically
from downclock.problem.problem import Problem
from downclock.report.power_curve import PowerCurve, power_curve
from downclock.report.tables import plain
from downclock.schedule.account.bill import PARTS, Boundary
from downclock.schedule.schedule import STATES, Schedule, Segments
from downclock.schedule.states import States

POWER_PID = 0
STATE_TID = 0
SHOWN = ("core", "memory", "volt", "share", "attempt")


def write_trace(
    problem: Problem, schedule: Schedule, path: str | Path, *, boundary: Boundary = "last-task"
) -> None:
    """Write the trace; open it at ui.perfetto.dev or chrome://tracing."""
    trace = schedule_trace(problem, schedule, boundary=boundary)
    write_text_atomically(path, json.dumps(trace, ensure_ascii=False, separators=(",", ":")))


def schedule_trace(
    problem: Problem, schedule: Schedule, *, boundary: Boundary = "last-task"
) -> dict[str, Any]:
    """Return the trace as plain values."""
    power = power_curve(problem, schedule, boundary=boundary)
    events = (_names(problem), _segments(problem, schedule), _states(power), _counters(power))
    return {
        "traceEvents": list(chain(*events)),
        "displayTimeUnit": "ms",
        "otherData": {"problem": problem.name, "policy": schedule.policy},
    }


def _names(problem: Problem) -> Iterator[dict[str, Any]]:
    platform = problem.platform
    yield _meta("process_name", POWER_PID, 0, f"power of {problem.name}")
    for server, name in enumerate(platform.server_name):
        yield _meta("process_name", server + 1, 0, str(name))
        yield _meta("thread_name", server + 1, STATE_TID, "power state")
    place = np.arange(platform.processor_count) - platform.first_processor[platform.server]
    for processor, server in enumerate(platform.server):
        kind = platform.kinds[platform.kind[processor]].name
        name = f"{platform.server_name[server]}/{place[processor] + 1} {kind}"
        yield _meta("thread_name", int(server) + 1, processor + 1, name)


def _meta(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _segments(problem: Problem, schedule: Schedule) -> Iterator[dict[str, Any]]:
    segments, platform, tasks = schedule.segments, problem.platform, problem.tasks
    _, watts = problem.at(segments.task, platform.kind[segments.processor], segments.points)
    server, application = platform.server, problem.library.names
    for row in np.argsort(segments.start_s, kind="stable"):
        task, processor = int(segments.task[row]), int(segments.processor[row])
        what = str(tasks.name[task]), str(application[tasks.application[task]])
        bar = _bar(*what, int(server[processor]), processor + 1, segments, row)
        told = {name: getattr(segments, name)[row] for name in SHOWN}
        told["power_w"] = watts[row]
        told["energy_j"] = watts[row] * (segments.end_s[row] - segments.start_s[row])
        told["slack_s"] = tasks.deadline_s[task] - segments.end_s[row]
        yield {**bar, "args": plain(told)}


def _states(power: PowerCurve) -> Iterator[dict[str, Any]]:
    states = power.states
    for row, (server, state) in enumerate(zip(states.server, states.state, strict=True)):
        yield _bar(STATES[state], "power state", int(server), STATE_TID, states, row)


def _bar(
    name: str, category: str, server: int, thread: int, times: Segments | States, row: int
) -> dict[str, Any]:
    """One row of segments or states as an event with a beginning and a length."""
    start_s, end_s = float(times.start_s[row]), float(times.end_s[row])
    where = {"cat": category, "pid": server + 1, "tid": thread}
    return {"ph": "X", "name": name, **where, "ts": 1e6 * start_s, "dur": 1e6 * (end_s - start_s)}


def _counters(power: PowerCurve) -> Iterator[dict[str, Any]]:
    used = np.flatnonzero(np.any(power.watts != 0.0, axis=0))
    rows = np.vstack([power.watts, np.zeros(len(PARTS))])
    for at_s, watts in zip(power.edge_s, rows, strict=True):
        values = {PARTS[part]: float(watts[part]) for part in used}
        if values:
            event = {"ph": "C", "name": "power_w", "pid": POWER_PID, "ts": 1e6 * float(at_s)}
            yield {**event, "args": values}
