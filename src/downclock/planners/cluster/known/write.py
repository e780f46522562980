"""Plans of the search as schedules, and schedules of others as plans to begin with."""

from __future__ import annotations

import numpy as np

from downclock.engine.reasons import why_refused
from downclock.engine.view import View
from downclock.kernels.refusals import NO_TIME
from downclock.planners.cluster.known.kernels.model import Board, Placement, Question, new_placement
from downclock.planners.cluster.known.kernels.spans import awake_times
from downclock.planners.cluster.known.question import KnownQuestion
from downclock.power.settings import MixedSettings
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.schedule.schedule import (
    ASLEEP,
    DONE,
    ON,
    REJECTED,
    WAKING,
    Outcomes,
    PowerSpans,
    Schedule,
    Segments,
)
from downclock.units import Floats, Ints, slack


def written(problem: Problem, asked: KnownQuestion, board: Board, name: str) -> Schedule:
    """The plan as a schedule."""
    job, processor = processors_of(problem, asked.columns, board.place)
    return Schedule(
        _segments(problem, asked, board.place, job, processor),
        _spans(problem, asked.columns, board),
        _outcomes(problem, asked, board.place),
        name,
    )


def processors_of(
    problem: Problem, question: Question, place: Placement, *, whole: bool = False
) -> tuple[Ints, Ints]:
    """Give each job processors, in the order of starts: (job, processor), a row each.

    ``whole``: a gang on several servers has all of their processors, also those it leaves idle.
    """
    platform, capacity = problem.platform, question.capacity
    free_s = np.zeros(platform.processor_count)
    pool = {
        (int(v), k): np.flatnonzero((platform.server == v) & (platform.kind == k))
        for v in np.unique(held_by(question, place)[1])
        for k in range(capacity.shape[1])
    }
    rows: list[tuple[int, int]] = []
    for job in np.argsort(place.runs.start_s, kind="stable"):
        kind, left = int(place.runs.kind[job]), int(question.jobs.gang[job])
        first = question.jobs.held_first[job]
        servers = place.held[first : first + place.runs.count[job]] if kind >= 0 else ()
        for server in servers:
            size = int(capacity[server, kind])
            mine = size if whole and len(servers) > 1 else min(left, size)
            here = pool[int(server), kind]
            taken = here[np.argsort(free_s[here], kind="stable")[:mine]]
            free_s[taken] = place.runs.end_s[job]
            rows += [(int(job), int(p)) for p in taken]
            left -= mine
    table = np.array(rows, np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def held_by(question: Question, place: Placement) -> tuple[Ints, Ints]:
    """Servers that placed jobs hold: (job, server), a row each."""
    count = np.where(place.runs.kind >= 0, place.runs.count, 0)
    job = np.repeat(np.arange(count.size), count)
    row = question.jobs.held_first[job] + np.arange(job.size)
    return job, place.held[row - (np.cumsum(count) - count)[job]]


def _segments(
    problem: Problem, asked: KnownQuestion, place: Placement, job: Ints, processor: Ints
) -> Segments:
    """One row a processor, or two where the clock changes on the way."""
    one = settings_of(problem, asked, place)
    start_s, end_s = place.runs.start_s[job], place.runs.end_s[job]
    task, share = asked.task[job], one.share[job]
    whole_s = problem.at(asked.task, np.maximum(place.runs.kind, 0), one.first)[0]
    middle_s = start_s + share * whole_s[job]
    seen = slack(end_s)  # a part that is shorter is none
    second = (end_s - middle_s > seen) & (share < 1.0)
    first = (middle_s - start_s > seen) | ~second
    middle_s = np.where(second, middle_s, end_s)
    middle_s[~first] = start_s[~first]
    share = np.where(first & second, share, np.where(first, 1.0, 0.0))
    one_row, two_row = np.flatnonzero(first), np.flatnonzero(second)
    rows = np.append(one_row, two_row)
    return Segments.of(
        task[rows],
        processor[rows],
        np.append(start_s[one_row], middle_s[two_row]),
        np.append(middle_s[one_row], end_s[two_row]),
        np.concatenate([one.first[job[one_row]], one.second[job[two_row]]]),
        np.append(share[one_row], 1.0 - share[two_row]),
    )


def settings_of(problem: Problem, asked: KnownQuestion, place: Placement) -> MixedSettings:
    """The clocks that give each job its run time; two where its kind lets them change."""
    found = MixedSettings.none(asked.task.size)
    for k, kind in enumerate(problem.platform.kinds):
        mine = np.flatnonzero(place.runs.kind == k)
        if not mine.size:
            continue
        frontier, rows = problem.frontier(k), asked.task[mine]
        end_s, length_s = place.runs.end_s[mine], (place.runs.end_s - place.runs.start_s)[mine]
        able_s = np.clip(length_s, frontier.t_min_s[rows], frontier.t_max_s[rows])
        length_s = np.where(np.abs(able_s - length_s) <= slack(end_s), able_s, length_s)
        if kind.clock == "free":
            answer = frontier.mixed().at(length_s, rows)
        else:
            answer = MixedSettings.of(frontier.at(length_s, rows))
        found.put(mine, answer, np.ones(mine.size))
    return found


def _spans(problem: Problem, question: Question, board: Board) -> PowerSpans:
    """Awake times, each after a wake where the server slept before."""
    server, from_s, to_s = awake_times(question, board)
    wake_s = problem.platform.wake_s[server]
    first = np.append(True, server[1:] != server[:-1])[: server.size]
    stays = first & problem.platform.initially_on[server] & (from_s == 0.0)
    wakes = np.flatnonzero(~stays & (wake_s > 0.0))
    sleeps = np.flatnonzero(first & problem.platform.initially_on[server] & ~stays)
    off = np.setdiff1d(np.flatnonzero(problem.platform.initially_on), server)  # never used
    return PowerSpans(
        np.concatenate([server, server[wakes], server[sleeps], off]),
        np.repeat([ON, WAKING, ASLEEP], [server.size, wakes.size, sleeps.size + off.size]),
        np.concatenate([from_s, (from_s - wake_s)[wakes], np.zeros(sleeps.size + off.size)]),
        np.concatenate([to_s, from_s[wakes], (from_s - wake_s)[sleeps], np.full(off.size, np.inf)]),
    )


def _outcomes(problem: Problem, asked: KnownQuestion, place: Placement) -> Outcomes:
    """Done, or why not; tasks without work are done unless something before them is not."""
    tasks = problem.tasks
    status, reason = np.full(len(tasks), DONE), np.full(len(tasks), "", dtype=object)
    lost = asked.hopeless.copy()
    lost[asked.task[place.runs.kind < 0]] = True
    status[problem.edges.reach(len(tasks), np.flatnonzero(lost))] = REJECTED
    orphans = problem.edges.after[status[problem.edges.before] == REJECTED]
    reason[lost] = _no_plan(problem.platform)
    view = View(problem)
    view.tasks.add(tasks, np.arange(len(tasks)))
    for task in np.flatnonzero(asked.hopeless):
        reason[task] = why_refused(view, int(task), NO_TIME, float(asked.soonest_s[task]))
    reason[orphans] = "a task before it is not done"
    return Outcomes(status, reason, np.ones(len(tasks)))


def _no_plan(platform: Platform) -> str:
    """Why a job that could be in time alone has no place, as far as that is known."""
    said = "no plan was found that does it beside the others in time"
    if not platform.limits.has_cap:
        return said
    wake_w = platform.wake_j / np.where(platform.wake_s > 0.0, platform.wake_s, np.inf)
    kept = np.zeros(platform.server_count, dtype=bool)
    for _, cap_w, held in platform.limits.caps(platform.zones, platform.zone):
        kept |= held & (wake_w > cap_w)
    if np.all(kept & ~platform.initially_on):
        return f"no server can wake under the cap on power: a wake draws {wake_w.min():g} W or more"
    return f"{said} under the cap on power"


def placement_of(problem: Problem, asked: KnownQuestion, schedule: Schedule) -> Placement:
    """What a valid schedule does, as far as the search could do the same.

    Left out: tasks that pause, move or were tried twice, gangs on parts of several servers, and
    run times nobody can want.
    """
    place, rows = new_placement(asked.columns.jobs), schedule.segments
    order = np.lexsort((rows.processor, rows.start_s, rows.task))
    first = np.searchsorted(rows.task[order], np.arange(len(problem.tasks) + 1))
    for job, task in enumerate(asked.task):
        mine = order[first[task] : first[task + 1]]
        if schedule.outcomes.status[task] == DONE and mine.size:
            _place(problem, asked, place, rows, job, mine)
    return place


def _place(
    problem: Problem,
    asked: KnownQuestion,
    place: Placement,
    rows: Segments,
    job: int,
    mine: Ints,
) -> None:
    """Take over where one task runs, given its rows by start."""
    question, platform = asked.columns, problem.platform
    jobs = question.jobs
    gang, processors = int(jobs.gang[job]), np.unique(rows.processor[mine])
    start_s, end_s = float(rows.start_s[mine[0]]), float(rows.end_s[mine].max())
    busy_s = float((rows.end_s - rows.start_s)[mine].sum()) / gang
    together = processors.size == gang and abs(end_s - start_s - busy_s) <= slack(end_s)
    if rows.attempt[mine].any() or not together:
        return
    kind, servers = int(platform.kind[processors[0]]), np.unique(platform.server[processors])
    wide = gang > question.kinds.largest[kind]
    if servers.size > 1 and not (
        wide and servers.size <= jobs.held_end[job] - jobs.held_first[job]
    ):
        return
    length_s = _useful_s(question, job, kind, end_s - start_s)
    if length_s > 0.0:
        place.runs.kind[job], place.runs.count[job] = kind, servers.size
        place.runs.start_s[job] = start_s
        place.runs.end_s[job] = end_s if length_s == end_s - start_s else start_s + length_s
        here = question.jobs.held_first[job]
        place.held[here : here + servers.size] = servers


def _useful_s(question: Question, job: int, kind: int, length_s: float) -> float:
    """The longest run time of at most ``length_s`` that the search knows; -1: there is none."""
    row, curves = question.curve[job, kind], question.curves
    if row < 0:
        return -1.0
    mine: Floats = question.entries.time_s[curves.first[row] : curves.end[row]]
    mine = mine * question.jobs.scale[job]
    fits = mine <= length_s * (1.0 + 1e-9)
    if not fits.any():
        return -1.0
    if curves.smooth[row] and length_s <= mine[-1]:
        return max(length_s, float(mine[0]))
    return float(mine[fits][-1])
