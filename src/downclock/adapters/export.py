"""Plans as commands to read first: for sites that carry them out by hand, or with their own tools.

A row of the plan is one task on one server at one setting. Every name is quoted for a shell, and
none is taken for an option. Instants are seconds since 1970 (``uts``, as Slurm reads them), which
are the same on a login node of any time zone; a line before says them as people do.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from downclock.adapters.devices.device import KNOBS, Setting
from downclock.adapters.settings import setting_at
from downclock.errors import InvalidInput
from downclock.files import csv_text
from downclock.problem.problem import Problem
from downclock.schedule.schedule import Schedule

TARGETS = ("sbatch", "scontrol", "nvidia-smi", "csv")

RESERVE = 0.1
RESERVE_S = 60.0
"""A time limit is so much above the planned time: Slurm ends a job that runs over it."""


@dataclass(frozen=True, slots=True)
class Run:
    """One task where and how it runs.

    Attributes:
        number: of the task in its problem.
        servers: names, and ``gpus`` the processors of each, from 0.
        kind: of the GPUs, and ``mixed`` whether one of the servers has others too.
        core, memory: clocks as ratios to the default ones.
        setting: what is set; nothing where nobody knows it in MHz.
        default_limit_w: power limit to go back to; None: it is left alone.
        after: runs that must have ended.
        epoch: the instant that times count from; None: there is no calendar.
    """

    number: int
    task: str
    servers: tuple[str, ...]
    gpus: tuple[tuple[int, ...], ...]
    kind: str
    mixed: bool
    start_s: float
    end_s: float
    core: float
    memory: float
    setting: Setting
    default_limit_w: float | None
    after: tuple[Run, ...] = ()
    epoch: datetime | None = None

    @property
    def start(self) -> str:
        """As people write it: an instant, or ``now+SECONDS``."""
        return _when(self.epoch, self.start_s)

    @property
    def end(self) -> str:
        """As people write it."""
        return _when(self.epoch, self.end_s)

    @property
    def begin(self) -> str:
        """The start as Slurm reads it in any time zone."""
        if self.epoch is None or self.epoch.tzinfo is None:
            return self.start
        return f"uts{self.epoch.timestamp() + self.start_s:.0f}"

    @property
    def request(self) -> str:
        """Its GPUs, as an option of sbatch: so many on each server, or in all where they differ."""
        kind = f"{self.kind}:" if self.mixed else ""
        counts = {len(each) for each in self.gpus}
        if len(counts) == 1:
            return f"--gres=gpu:{kind}{counts.pop()}"
        return f"--gpus={kind}{sum(map(len, self.gpus))}"

    @property
    def minutes(self) -> int:
        """Its time limit, in Slurm's minutes, with a reserve."""
        limit_s = (self.end_s - self.start_s) * (1.0 + RESERVE) + RESERVE_S
        return math.ceil(round(limit_s, 3) / 60.0)


def runs_of(problem: Problem, schedule: Schedule) -> list[Run]:
    """Rows of a plan, by start, and what waits behind what it waits for.

    Raises:
        InvalidInput: a task runs in several parts, which no command says.
    """
    rows: dict[int, list[int]] = {}
    for row, task in enumerate(schedule.segments.task.tolist()):
        rows.setdefault(task, []).append(row)
    before: dict[int, list[int]] = {}
    edges = problem.edges
    for first, then in zip(edges.before.tolist(), edges.after.tolist(), strict=True):
        before.setdefault(then, []).append(first)
    runs: dict[int, Run] = {}
    awaited: dict[int, list[int]] = {}  # by what follows a task: itself, or what a milestone awaits
    for task in edges.order(len(problem.tasks)).tolist():
        earlier = sorted({run for each in before.get(task, ()) for run in awaited[each]})
        awaited[task] = earlier
        if task in rows:
            after = tuple(runs[each] for each in earlier)
            runs[task], awaited[task] = _run(problem, schedule, task, rows[task], after), [task]
    return sorted(runs.values(), key=lambda run: run.start_s)


def _run(
    problem: Problem, schedule: Schedule, task: int, rows: list[int], after: tuple[Run, ...]
) -> Run:
    segments, platform = schedule.segments, problem.platform
    name = str(problem.tasks.name[task])
    starts = np.unique(segments.start_s[rows])
    if starts.size > 1:
        rule = "runs at several clocks, in parts or attempts, which no command says: plan it with"
        rule += ' clock = "locked" and interrupt = "none" in the kinds of the cluster file'
        raise InvalidInput(rule, item=f"task '{name}'")
    processors = segments.processor[rows]
    kind, of = int(platform.kind[processors[0]]), platform.server[processors]
    servers, clocks = np.unique(of).tolist(), platform.kinds[kind].clocks
    return Run(
        task,
        name,
        tuple(str(platform.server_name[server]) for server in servers),
        tuple(
            tuple(sorted((processors[of == server] - platform.first_processor[server]).tolist()))
            for server in servers
        ),
        platform.kinds[kind].name,
        bool(np.any(platform.kind[np.isin(platform.server, servers)] != kind)),
        float(starts[0]),
        float(segments.end_s[rows].max()),
        float(segments.core[rows[0]]),
        float(segments.memory[rows[0]]),
        setting_at(clocks, segments.points[rows[0]]),
        setting_at(clocks, (1.0, 1.0, 1.0)).power_limit_w,
        after,
        problem.epoch,
    )


def _when(epoch: datetime | None, at_s: float) -> str:
    if epoch is None:
        return f"now+{round(at_s)}"  # never now+-0, which Slurm refuses
    at = epoch + timedelta(seconds=at_s) if epoch.tzinfo is None else (
        epoch.astimezone(UTC) + timedelta(seconds=at_s)
    ).astimezone(epoch.tzinfo)  # fmt: skip
    return at.isoformat(timespec="seconds")


def sbatch(runs: Sequence[Run], script: str) -> list[str]:
    """Submit tasks as they were planned; the number of one that others wait for is kept."""
    waited_for = {each.number for run in runs for each in run.after}
    lines = []
    for run in runs:
        words = ["sbatch", f"--job-name={run.task}", f"--begin={run.begin}",
                 f"--nodelist={','.join(run.servers)}", f"--nodes={len(run.servers)}",
                 run.request, f"--time={run.minutes}"]  # fmt: skip
        words += [f"--gpu-freq={run.setting.frequency}"] if run.setting.frequency else []
        if run.number in waited_for:
            words.append("--parsable")
        file = script.replace("{task}", run.task)
        file = shlex.quote(f"./{file}" if file.startswith("-") else file)
        numbers = "".join(f":${{job_{each.number}%;*}}" for each in run.after)
        depends = f" --dependency=afterok{numbers} --kill-on-invalid-dep=yes" if numbers else ""
        line = f"{shlex.join(words)}{depends} {file}"
        lines += [*_head(run), f"job_{run.number}=$({line})" if "--parsable" in words else line]
    return lines


def scontrol(runs: Sequence[Run]) -> list[str]:
    """Change jobs of these names that wait, and let them go."""
    lines = []
    for run in runs:
        words = ["scontrol", "update", f"JobName={run.task}", f"StartTime={run.begin}",
                 f"ReqNodeList={','.join(run.servers)}"]  # fmt: skip
        words += [f"NumNodes={len(run.servers)}"] if len(run.servers) > 1 else []
        words += [f"TresFreq=gpu:{run.setting.frequency}"] if run.setting.frequency else []
        numbers = "".join(f":$({_number_of(each)})" for each in run.after)
        depends = f' "Dependency=afterok{numbers}"' if numbers else ""
        lines += [*_head(run), *([f"# as submitted: {run.request}"] if run.mixed else []),
                  shlex.join(words) + depends,
                  shlex.join(["scontrol", "release", f"jobname={run.task}"])]  # fmt: skip
    return lines


def _head(run: Run) -> list[str]:
    """Say the start as people do, where the command does not."""
    return [] if run.begin == run.start else [f"# {run.start}: {_plain(run.task)}"]


def _number_of(run: Run) -> str:
    """The command that prints the number of a waiting job, of whoever runs it."""
    if "," in run.task:
        rule = "is waited for, and squeue takes a comma in a name for two names"
        raise InvalidInput(rule, item=f"task '{run.task}'", field="name", value=run.task)
    return shlex.join(["squeue", "--me", "--noheader", "--format=%A", f"--name={run.task}"])


def nvidia_smi(runs: Sequence[Run]) -> list[str]:
    """What to set on which server, and to reset, by time."""
    moments: list[tuple[float, int, str, list[str]]] = []
    for run in runs:
        waits = f" after {', '.join(_plain(each.task) for each in run.after)}" if run.after else ""
        for server, gpus in zip(run.servers, run.gpus, strict=True):
            card = f"nvidia-smi -i {','.join(map(str, gpus))}"
            on, off = _switched(run.setting, run.default_limit_w)
            begin = [f"# {run.start} on {server}: {_plain(run.task)} starts{waits}"]
            end = [f"# {run.end} on {server}: {_plain(run.task)} ends"]
            moments.append((run.start_s, 1, server, begin + [f"{card} {words}" for words in on]))
            moments.append((run.end_s, 0, server, end + [f"{card} {words}" for words in off]))
    return [line for *_, lines in sorted(moments) for line in lines]


def _switched(setting: Setting, default_limit_w: float | None) -> tuple[list[str], list[str]]:
    """Options that set and that reset."""
    if default_limit_w is not None:
        return [f"-pl {setting.power_limit_w:g}"], [f"-pl {default_limit_w:g}"]
    on, off = [f"-lgc {setting.core_mhz},{setting.core_mhz}"], ["-rgc"]
    if setting.memory_mhz is not None:
        on.append(f"-lmc {setting.memory_mhz},{setting.memory_mhz}")
        off.append("-rmc")
    return on, off


def _plain(text: str) -> str:
    """Text for a line behind a #."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def exported(problem: Problem, schedule: Schedule, target: str, script: str) -> str:
    """Return a plan as text of one of `TARGETS`."""
    runs = runs_of(problem, schedule)
    if target == "csv":
        return _csv(runs)
    if not all(run.setting for run in runs):
        rule = "has clocks that are ratios, which nobody can set: give core_mhz in its kinds"
        raise InvalidInput(rule, item="the cluster")
    if target == "sbatch":
        lines = sbatch(runs, script)
    else:
        lines = scontrol(runs) if target == "scontrol" else nvidia_smi(runs)
    return "".join(f"{line}\n" for line in lines)


def _csv(runs: Sequence[Run]) -> str:
    same = ("task", "kind", "start", "end", "core", "memory")
    rows = [
        {name: getattr(run, name) for name in same}
        | {name: getattr(run.setting, name) for name in KNOBS}
        | {
            "servers": ";".join(run.servers),
            "gpus": ";".join(",".join(map(str, each)) for each in run.gpus),
            "after": ";".join(each.task for each in run.after),
        }
        for run in runs
    ]
    names = ("task", "servers", "gpus", "kind", "start", "end", "core", "memory", *KNOBS, "after")
    return csv_text(names, rows)
