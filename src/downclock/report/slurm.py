"""Pages about a Slurm under plan: what is planned, what would be done, what was measured."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from downclock.adapters.slurm.carry import Action
from downclock.adapters.slurm.learn import Learnt, against_default_clocks
from downclock.adapters.slurm.moments import Tracked
from downclock.adapters.slurm.observed import Job, Observed
from downclock.adapters.slurm.planner import Planner, Step
from downclock.adapters.slurm.spool import Measured
from downclock.adapters.slurm.world import SlurmWorld
from downclock.quantities import count, energy, instant, percent
from downclock.report.tables import Page, Table
from downclock.schedule.account.bill import Bill

MOST_NAMED = 20
"""Jobs that a sentence names."""

_HEAD = ("job", "application", "GPUs", "state", "nodes", "clock", "start", "end", "deadline")


def plan_page(planner: Planner, step: Step, *, dry: bool) -> Page:
    """What the plan says of every job, and the commands that follow from it.

    Tables show a number of rows: jobs that ended come last there, the latest first.
    """
    known = sorted(planner.world.tracked.values(), key=lambda each: each.task.job)
    known = [each for each in known if each.number >= 0 or _is_open(planner, each, step)]
    rows = [_job(planner, each, step.seen) for each in known]
    order = sorted(range(len(known)), key=lambda k: (bool(known[k].ended), -known[k].ended_s))
    left = planner.untouched(step.seen)
    lines = [_first_line(planner, known, len(left)), *_late_line(rows), *_unlearnt_line(planner)]
    verb = "would be run" if dry else "were run"
    commands = [command for action in step.todo for command in action.commands]
    tables = [_table([rows[k] for k in order])] if rows else []
    if left:
        told = tuple((str(job.number), why) for job, why in left)
        tables.append(Table(("job", "not touched, as"), told, text=(0, 1)))
    notes = [*(f"failed: {line}" for line in step.trouble),
             f"these commands {verb}:" if commands else "nothing to do"]  # fmt: skip
    return Page(
        tuple(lines),
        tuple(tables),
        tuple(notes),
        data={"jobs": rows, "untouched": {job.number: why for job, why in left},
              "commands": [list(words) for words in commands], "trouble": step.trouble},
        records=rows,
        names=("job",),
        commands=_script(commands),
    )  # fmt: skip


def _is_open(planner: Planner, tracked: Tracked, step: Step) -> bool:
    """Tell whether a job that was only let go still waits or runs."""
    job = planner.world.job_of(tracked, step.seen)
    return job is not None and (job.waits or job.active)


def _first_line(planner: Planner, known: Sequence[Tracked], untouched: int) -> str:
    """How many jobs are planned, left to Slurm, and not touched."""
    if not known and not untouched:
        return "no job waits for a plan"
    given_up = sum(bool(each.left) for each in known)
    line = f"{count(len(known) - given_up, 'job')} planned by {planner.site.policy}"
    line += f", {given_up} left to Slurm" if given_up else ""
    return line + (f"; {count(untouched, 'waiting job')} not touched" if untouched else "")


def status_page(planner: Planner, step: Step, measured: Sequence[Measured]) -> Page:
    """Where every job stands, and the energy that was measured of those that ended.

    Energy in all, of planned jobs that are done, and of those at default clocks; the latest first.
    """
    page = plan_page(planner, step, dry=True)
    rows = tuple(
        (str(each.job), each.node, f"{each.run_s:.0f} s", energy(each.energy_j), each.source)
        for each in reversed(measured)
    )
    head = ("job", "node", "ran", "energy", "measured by")
    tables = [Table(head, rows, "Measured", text=(0, 1, 4))] if rows else []
    planned_j, default_j = against_default_clocks(planner.site, planner.log, measured)
    measured_j = sum(each.energy_j for each in measured)
    sums = {"measured_j": measured_j, "planned_j": planned_j, "default_j": default_j}
    todo = count(sum(len(action.commands) for action in step.todo), "command")
    return replace(
        page,
        lines=(*page.lines, *_saved(len(measured), **sums)),
        tables=(*page.tables, *tables),
        notes=(f"the next step would run {todo}", *planner.world.notes),
        commands=(),
        data={**page.data, **sums, "measured": [asdict(each) for each in measured]},
    )


def _saved(attempts: int, measured_j: float, planned_j: float, default_j: float) -> list[str]:
    lines = []
    if attempts:
        lines.append(f"{count(attempts, 'attempt')} measured, {energy(measured_j)} in all")
    if default_j:
        less = percent(1.0 - planned_j / default_j)
        lines.append(f"planned jobs that are done took {energy(planned_j)}:"
                     f" by their profiles {less} less than at default clocks")  # fmt: skip
    return lines


def learnt_page(learnt: Sequence[Learnt]) -> Page:
    """What was learnt of each application, with its errors."""
    head = ("application", "kind", "runs", "clocks", "how", "time error", "energy error", "widen")
    names = [name.replace(" ", "_") for name in head]
    records = [{name: getattr(each, name) for name in names} for each in learnt]
    rows = tuple(
        (each.application, each.kind, f"{each.runs}", f"{each.clocks}", each.how,
         percent(each.time_error), percent(each.energy_error), f"{each.widen:.2f}")
        for each in learnt
    )  # fmt: skip
    table = Table(head, rows, text=(0, 1, 4))
    runs = count(sum(each.runs for each in learnt), "run")
    return Page((f"learnt from {runs}",), (table,), data={"learnt": records}, records=records)


def beside_measured(page: Page, bill: Bill, measured: Sequence[Measured]) -> Page:
    """A bill's page with what was measured of each task, by name; all attempts count."""
    used_j: dict[str, float] = {}
    for each in measured:
        used_j[each.job_name] = used_j.get(each.job_name, 0.0) + each.energy_j
    records: list[dict[str, Any]] = [
        {"task": str(name), "planned_j": float(planned_j), "measured_j": used_j[str(name)]}
        for name, planned_j in zip(bill.task_name, bill.task_j, strict=True)
        if str(name) in used_j
    ]
    rows = tuple(
        (row["task"], energy(row["planned_j"]), energy(row["measured_j"]),
         percent(row["measured_j"] / row["planned_j"] - 1.0) if row["planned_j"] else "")
        for row in records
    )  # fmt: skip
    planned_j, measured_j = (sum(row[k] for row in records) for k in ("planned_j", "measured_j"))
    line = (
        f"measured {count(len(records), 'task')}: {energy(measured_j)},"
        f" planned {energy(planned_j)} to run"
    )
    table = Table(("task", "planned", "measured", "difference"), rows)
    tables = (*page.tables, *([table] if rows else []))
    data = {**page.data, "measured": records}
    return replace(page, lines=(*page.lines, line), tables=tables, data=data)


def uninstalled_page(step: Step, *, dry: bool) -> Page:
    """What was put back, or would be, as commands."""
    jobs = count(sum(bool(action.key) for action in step.todo), "job")
    if step.trouble:
        text = f"not all of {jobs} and the clocks could be put back: the log is kept, run it again"
    else:
        text = f"{jobs} {'would be put back' if dry else 'put back, and the log is gone'}"
    commands = [command for action in step.todo for command in action.commands]
    return Page((text,), commands=_script(commands), data={"commands": commands})


def _script(commands: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Commands that do the same in anybody's shell: we run them in UTC, so they tell its times."""
    starts = {word for words in commands for word in words if word.startswith("StartTime=")}
    zone = ("export TZ=UTC",) if starts - {"StartTime=now"} else ()
    return (*zone, *map(shown, commands))


def step_lines(actions: Sequence[Action], trouble: Sequence[str]) -> list[str]:
    """One line for each thing that a step did, or could not do."""
    done = [f"{action.item}: {action.why}" for action in actions]
    return done + [f"failed: {each}" for each in trouble]


def shown(words: Sequence[str]) -> str:
    """A command as a shell would take it, on one line of printable letters."""
    text = shlex.join(words)
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _job(planner: Planner, tracked: Tracked, seen: Observed) -> dict[str, Any]:
    """One job as a flat record."""
    world = planner.world
    assert world.scheduler is not None
    if tracked.number < 0:
        return {"job": tracked.task.job, "gpus": tracked.task.gpus,
                "state": _state(tracked, False, False)}  # fmt: skip
    page = world.scheduler.book.tasks[tracked.number]
    row = page.running or (page.rows or page.log[-1:] or (None,))[0]
    record: dict[str, Any] = {
        "job": tracked.task.job,
        "application": tracked.task.application_name,
        "gpus": tracked.task.gpus,
        "state": _state(
            tracked, page.running is not None, page.accepted, world.waits_for_gpus(tracked)
        ),
        "deadline": instant(tracked.deadline_s - world.epoch_s, world.epoch),
    }
    job = _started(world, tracked, seen)
    if row is None or tracked.left:
        return record | _outside(world, tracked, job, seen.now_s)
    kind = int(planner.site.cluster.platform.kind[row.processors[0]])
    clock = " ".join(f"{k}={v}" for k, v in planner.site.setting(kind, row.point).words().items())
    begin_s = row.start_s if page.running is None and not page.log else row.began_s
    begin_s = begin_s if job is None else job.start_s - world.epoch_s
    end_s = row.ended_s if row.ended_s < float("inf") else begin_s + row.end_s - row.start_s
    return record | {
        "nodes": ",".join(world.nodes_of(row.processors)),
        "clock": clock,
        "start": instant(begin_s, world.epoch),
        "end": instant(end_s, world.epoch),
        **_late(tracked, world.epoch_s + end_s),
    }


def _started(world: SlurmWorld, tracked: Tracked, seen: Observed) -> Job | None:
    """The job as Slurm shows it, where it has started it; else None."""
    job = world.job_of(tracked, seen)
    return None if job is None or job.waits or not job.start_s else job


def _outside(world: SlurmWorld, tracked: Tracked, job: Job | None, now_s: float) -> dict[str, Any]:
    """Where and when a job ran that the plan has no row of, as far as Slurm shows it."""
    if job is None:
        return _late(tracked, tracked.ended_s)
    start = instant(job.start_s - world.epoch_s, world.epoch)
    told = {"nodes": ",".join(job.nodes), "start": start}
    if job.active:
        return told | _late(tracked, now_s)
    told["end"] = instant(job.end_s - world.epoch_s, world.epoch)
    return told | _late(tracked, job.end_s)


def _late_line(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Which jobs ended, or will end, after the deadline that their owners asked for."""
    late = [str(row["job"]) for row in rows if "late_s" in row]
    named = ", ".join(late[-MOST_NAMED:])
    more = f" and {len(late) - MOST_NAMED:,} before" if len(late) > MOST_NAMED else ""
    return [f"{count(len(late), 'job')} later than asked: {named}{more}"] if late else []


def _unlearnt_line(planner: Planner) -> list[str]:
    """That the library which the site file names is not there."""
    path = planner.site.unlearnt
    return [f"{path} (learned) is not there yet: downclock slurm learn writes it"] if path else []


def _late(tracked: Tracked, end_s: float) -> dict[str, float]:
    """How long after its owner's deadline a job ends, in whole seconds as Slurm counts."""
    due_s = tracked.task.deadline_s if tracked.task.missed else tracked.deadline_s
    late_s = math.floor(end_s - due_s)
    return {"late_s": float(late_s)} if late_s > 0 else {}


def _state(tracked: Tracked, running: bool, accepted: bool, waits: bool = False) -> str:
    if waits and not tracked.ended:
        return f"waits for GPUs: {tracked.left}"
    if tracked.ended or tracked.left:
        return tracked.ended or f"left to Slurm: {tracked.left}"
    state = "started" if running else "accepted" if accepted else "not decided"
    return f"{state}, but {tracked.task.missed}" if tracked.task.missed else state


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    cells = tuple(tuple(str(row.get(key.lower(), "")) for key in _HEAD) for row in rows)
    return Table(_HEAD, cells, text=(0, 1, 3, 4, 5, 6, 7, 8))
