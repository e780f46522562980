"""Carry decisions out: what each waiting job and each node should be like, and what it takes.

Nothing is remembered of what was done: a job is changed until its record says what the plan says,
so that a kill at any moment, a command that failed or a controller that was away are made good at
the next step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from downclock.adapters.slurm.compare import REFUSALS, has_run, never_began, settles
from downclock.adapters.slurm.jobs import Task
from downclock.adapters.slurm.log import CARRIED
from downclock.adapters.slurm.moments import RESTORE, Tracked
from downclock.adapters.slurm.observed import Job, Node, Observed
from downclock.adapters.slurm.read import Run
from downclock.adapters.slurm.words import (
    FREE,
    RAN,
    comment_of,
    is_ours,
    our_part,
    restored,
    wish_of,
    without_free,
)
from downclock.adapters.slurm.world import SlurmWorld
from downclock.engine.book import ASLEEP, AWAKE, WAKING
from downclock.engine.pages import Row
from downclock.errors import AdapterError
from downclock.workloads.traces.hosts import hosts_of

MINUTE_S = 60.0
WAITS = 3.0
"""A job waits so many times its run time for GPUs of others, if its deadline is lost anyway."""


@dataclass(frozen=True, slots=True)
class Action:
    """Commands that make one job or node as the plan wants it, in order.

    Attributes:
        item: the job's number or the node's name.
        key: of the job; empty: it is a node.
        why: what is done, for people.
        commands: argument lists.
        releases: the last of them lets a held job go.
    """

    item: str
    key: str
    why: str
    commands: tuple[tuple[str, ...], ...]
    releases: bool = False


def actions(world: SlurmWorld, seen: Observed) -> Iterator[Action]:
    """All that is to be done now; starts first."""
    waiting = []
    for tracked in world.tracked.values():
        job = world.job_of(tracked, seen)
        if job is not None and has_run(world, tracked, job, seen):
            if (action := _kept_from_running(world, tracked, job)) is not None:
                yield action
        elif job is not None and never_began(world, tracked, job, seen):
            why = "Slurm failed it before its script began: it is requeued"
            words = ("scontrol", "requeue", str(job.number))
            yield Action(str(job.number), tracked.task.key, why, (words,))
        elif job is not None and job.waits and not settles(world, tracked, seen):
            owners = world.records.owner_holds(tracked.task, job, seen)  # not ours to end
            if not (owners and tracked.refused):
                waiting.append((tracked, replace(job, held=job.held and not owners)))
    yield from (a for each in waiting if (a := _job_action(world, *each, seen.now_s)) is not None)
    if world.site.sleep:
        yield from _node_actions(world, seen)


def carry_out(world: SlurmWorld, todo: Sequence[Action], run: Run, now_s: float) -> list[str]:
    """Run the commands; return what went wrong, a sentence each. One failure stops no other."""
    trouble = []
    for action in todo:
        entry: dict[str, Any] = {"at_s": now_s, "item": action.item, "key": action.key,
                                 "why": action.why, "commands": action.commands,
                                 "ok": True}  # fmt: skip
        try:
            for words in action.commands:
                run(words)
            entry["released"] = action.releases
        except AdapterError as error:
            entry |= {"ok": False, "error": str(error)}
            trouble.append(f"{action.item}: {error}")
        world.note_carried(entry)
        world.log.append(now_s, [(CARRIED, entry)])
    return trouble


def _job_action(world: SlurmWorld, tracked: Tracked, job: Job, now_s: float) -> Action | None:
    if world.waits_for_gpus(tracked) and not wish_of(job.comment).off:
        last_s = _last_start_s(world, tracked)
        if math.isinf(job.deadline_s):
            last_s = max(last_s, tracked.told_s + WAITS * tracked.task.whole_s)
        if last_s > now_s + world.site.interval_s:
            return _waits(world, tracked, job, last_s, now_s)
    if tracked.left:
        return _left(world, tracked, job, now_s)
    if tracked.ended:
        return None
    assert world.scheduler is not None
    page = world.scheduler.book.tasks[tracked.number]
    row = page.running or (page.rows[0] if page.rows else None)
    if row is not None:
        return _started(world, tracked, job, row, now_s)
    last_s = _last_start_s(world, tracked)
    if last_s <= now_s + world.site.interval_s or not (page.accepted or is_ours(job.comment)):
        return None
    return _waits(world, tracked, job, last_s, now_s)


def _started(
    world: SlurmWorld, tracked: Tracked, job: Job, row: Row, now_s: float
) -> Action | None:
    """A job that runs by the plan, or is promised a start: nodes, clocks, start, limit."""
    assert world.scheduler is not None
    kind = int(world.site.cluster.platform.kind[row.processors[0]])
    setting = world.site.setting(kind, row.point)
    nodes = world.nodes_of(row.processors)
    start_s = world.epoch_s + min(row.began_s, row.start_s)
    words = {**setting.words(), "start": f"{start_s:.0f}", "nodes": ",".join(nodes)}
    reason = f"{_missed(tracked)}{world.scheduler.policy.name} ends by {_stamp(tracked.deadline_s)}"
    needed_s = (row.end_s - row.start_s) * world.site.unreserved + MINUTE_S
    changes = [
        f"StartTime={_start(start_s, now_s)}",
        f"ReqNodeList={','.join(nodes)}",
        *([f"NumNodes={len(nodes)}"] if len(nodes) != job.node_count else []),
        *([f"TresFreq=gpu:{setting.frequency}"] if setting.frequency else []),
        *_limit(job, max(start_s, now_s), needed_s),
    ]
    return _changed(tracked, job, words, reason, changes)


def _waits(
    world: SlurmWorld, tracked: Tracked, job: Job, start_s: float, now_s: float
) -> Action | None:
    """A job without a start: Slurm itself starts it at the last moment, if nobody does.

    So a planner that is gone costs energy and no deadline.
    """
    words = {"start": f"{start_s:.0f}", "nodes": "any"}
    changes = [
        f"StartTime={_start(start_s, now_s)}",
        *(["ReqNodeList="] if job.required_nodes else []),
        *(["TresFreq="] if "TresFreq" in world.records.changed(tracked.task, job) else []),
        *_limit(job, start_s, world.least_s(tracked.task)),
    ]
    why = "waits for GPUs" if tracked.left else "planned"
    return _changed(tracked, job, words, f"{_missed(tracked)}{why}, starts then at the latest",
                    changes)  # fmt: skip


def _last_start_s(world: SlurmWorld, tracked: Tracked) -> float:
    """When a job must start that is to end in time at full speed."""
    site = world.site
    wake_s = float(site.cluster.platform.wake_s.max()) if site.sleep else 0.0
    return tracked.deadline_s - world.least_s(tracked.task) - wake_s + site.overhead_s / 2.0


def _missed(tracked: Tracked) -> str:
    return f"{tracked.task.missed}; " if tracked.task.missed else ""


def _kept_from_running(world: SlurmWorld, tracked: Tracked, job: Job) -> Action | None:
    """A job that ran already, which Slurm has forgotten: held until its owner releases it.

    One that Slurm takes for running is requeued first, which frees its GPUs. Our word comes after
    the hold: a job that has it and is not held was released.
    """
    how, number = world.site.forgotten, str(job.number)
    told = RAN in our_part(job.comment).split()
    if how == "run" or (told if job.waits else tracked.refusals >= REFUSALS):
        return None
    why = "ran already, which Slurm's controller has forgotten"
    if how == "cancel":
        return Action(number, tracked.task.key, why, (("scancel", number),))
    if job.active:
        return Action(number, tracked.task.key, why, (("scontrol", "requeuehold", number),))
    owner = restored(job.comment, tracked.task.comment)
    comment = comment_of(dict([RAN.split("=")]), f"{why}; release it to run it again", owner)
    commands = [_update(job, [f"Comment={comment}"])]
    if not job.held:
        commands.insert(0, ("scontrol", "uhold", number))
    return Action(number, tracked.task.key, our_part(comment), tuple(commands))


def _left(world: SlurmWorld, tracked: Tracked, job: Job, now_s: float) -> Action | None:
    """A job that is not in the plan: let go with the reason, or put back as it was."""
    if tracked.how == RESTORE or wish_of(job.comment).off:
        changed = is_ours(job.comment) or world.records.changed(tracked.task, job)
        return put_back(world, tracked.task, replace(job, held=False), now_s) if changed else None
    changes = _undone(world, tracked.task, job, now_s)
    return _changed(tracked, job, {"left": "1"}, tracked.left, changes)


def put_back(world: SlurmWorld, task: Task, job: Job, now_s: float) -> Action:
    """Make a job as its owner submitted it, or has changed it since; let it go if it is held."""
    comment = f"Comment={restored(job.comment, task.comment)}"
    commands = [_update(job, [*_undone(world, task, job, now_s), comment])]
    if job.held:
        commands.append(("scontrol", "release", str(job.number)))
    return Action(str(job.number), task.key, "put back", tuple(commands), job.held)


def _undone(world: SlurmWorld, task: Task, job: Job, now_s: float) -> list[str]:
    """Changes that take back ours."""
    changed, changes = world.records.changed(task, job), []
    if "ReqNodeList" in changed and job.required_nodes:
        changes.append("ReqNodeList=")
    if job.eligible_s > now_s and ("StartTime" in changed or wish_of(job.comment).waits):
        changes.append("StartTime=now")
    if "NumNodes" in changed and task.node_count != job.node_count:
        changes.append(f"NumNodes={task.node_count}")
    if "TresFreq" in changed:
        changes.append("TresFreq=")
    if "TimeLimit" in changed and task.limit_s not in (None, job.limit_s):
        changes.append(f"TimeLimit={task.limit_s / MINUTE_S:.0f}")
    return changes


def _changed(
    tracked: Tracked, job: Job, words: dict[str, str], reason: str, changes: list[str]
) -> Action | None:
    """What makes a job's record say this, and that it was seen free; None: it does."""
    free = {} if job.held or tracked.left else {FREE.rstrip("="): str(job.restarts)}
    comment = comment_of({**words, **free}, reason, restored(job.comment, tracked.task.comment))
    line, said, commands = our_part(comment), our_part(job.comment), []
    if line != said:
        changes = [] if without_free(line) == without_free(said) else changes
        commands.append(_update(job, [*changes, f"Comment={comment}"]))
    if job.held:
        commands.append(("scontrol", "release", str(job.number)))
    if not commands:
        return None
    return Action(str(job.number), tracked.task.key, line, tuple(commands), job.held)


def _update(job: Job, changes: list[str]) -> tuple[str, ...]:
    return ("scontrol", "update", f"JobId={job.number}", *changes)


def _limit(job: Job, start_s: float, needed_s: float) -> list[str]:
    """A limit that lets the plan end, and with which Slurm believes that the deadline is met."""
    limit_s = job.limit_s
    if math.isfinite(limit_s) and limit_s < needed_s:
        limit_s = math.ceil(needed_s / MINUTE_S) * MINUTE_S
    if math.isfinite(job.deadline_s):
        limit_s = min(limit_s, math.floor((job.deadline_s - start_s) / MINUTE_S) * MINUTE_S)
    if limit_s == job.limit_s:
        return []
    return [f"TimeLimit={max(1, round(limit_s / MINUTE_S))}"]


def _start(start_s: float, now_s: float) -> str:
    return "now" if start_s <= now_s + 1.0 else _stamp(start_s)


def _stamp(at_s: float) -> str:
    """An instant in whole seconds, none of them too soon."""
    return datetime.fromtimestamp(math.ceil(at_s), UTC).strftime("%Y-%m-%dT%H:%M:%S")


# --- nodes -------------------------------------------------------------------------------------


def _node_actions(world: SlurmWorld, seen: Observed) -> Iterator[Action]:
    """Nodes that should sleep or wake; never one with a job on it."""
    assert world.scheduler is not None
    busy = {name for job in seen.jobs.values() if job.active for name in job.nodes}
    wanted = {name for job in seen.jobs.values() if job.waits and job.required_nodes
              for name in hosts_of(job.required_nodes)}  # fmt: skip
    for name, server in world.server_of.items():
        node, state = seen.nodes.get(name), world.scheduler.book.state[server]
        if node is None or not node.usable:
            continue
        if state == ASLEEP and not node.asleep and name not in busy | wanted:
            yield _switched(node, "POWER_DOWN_ASAP", "nothing is planned there before it pays")
        elif state in (AWAKE, WAKING) and "POWERED_DOWN" in node.states and not node.wakes:
            yield _switched(node, "POWER_UP", "a job is planned there")


def _switched(node: Node, state: str, why: str) -> Action:
    words = ("scontrol", "update", f"NodeName={node.name}", f"State={state}")
    return Action(node.name, "", f"{state.lower()}: {why}", (words,))
