"""Plans as commands to read first: for sites that carry them out by hand, or with their own tools.

A row of the plan is one task on one server at one setting. Every name is quoted for a shell, and
none is taken for an option. Instants are seconds since 1970 (``uts``, as Slurm reads them), which
are the same on a login node of any time zone; a line before says them as people do.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from downclock.errors import InvalidInput
from downclock.power.points import CORE, MEMORY, PowerLimits
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
        servers: names, and ``gpus`` the processors of each, from 0.
        start, end: as people write it: an instant, or ``now+SECONDS`` where there is no calendar;
            ``begin`` is the start as Slurm reads it in any time zone.
        core, memory: clocks as ratios to the default ones.
        core_mhz, memory_mhz, power_limit_w: what is set; None: nothing, or nobody knows in MHz.
    """

    task: str
    servers: tuple[str, ...]
    gpus: tuple[tuple[int, ...], ...]
    start_s: float
    end_s: float
    start: str
    end: str
    core: float
    memory: float
    core_mhz: int | None
    memory_mhz: int | None
    power_limit_w: int | None
    begin: str

    @property
    def count(self) -> int:
        """GPUs on each of its servers."""
        return max(len(each) for each in self.gpus)

    @property
    def minutes(self) -> int:
        """Its time limit, in Slurm's minutes, with a reserve."""
        limit_s = (self.end_s - self.start_s) * (1.0 + RESERVE) + RESERVE_S
        return math.ceil(round(limit_s, 3) / 60.0)

    @property
    def frequency(self) -> str:
        """Clocks as Slurm writes them; empty: none."""
        memory = "" if self.memory_mhz is None else f",memory={self.memory_mhz}"
        return "" if self.core_mhz is None else f"{self.core_mhz}{memory}"


def runs_of(problem: Problem, schedule: Schedule) -> list[Run]:
    """Rows of a plan, by start.

    Raises:
        InvalidInput: a task runs in several parts, which no command says.
    """
    rows: dict[int, list[int]] = {}
    for row, task in enumerate(schedule.segments.task.tolist()):
        rows.setdefault(task, []).append(row)
    runs = [_run(problem, schedule, task, mine) for task, mine in rows.items()]
    return sorted(runs, key=lambda run: (run.start_s, run.task))


def _run(problem: Problem, schedule: Schedule, task: int, rows: list[int]) -> Run:
    segments, platform = schedule.segments, problem.platform
    name = str(problem.tasks.name[task])
    starts = np.unique(segments.start_s[rows])
    if starts.size > 1:
        rule = "runs in several parts or attempts: no command says that"
        raise InvalidInput(rule, item=f"task '{name}'")
    processors = segments.processor[rows]
    servers = platform.server[processors]
    gpus = tuple(
        tuple(sorted((processors[servers == s] - platform.first_processor[s]).tolist()))
        for s in np.unique(servers)
    )
    start_s, end_s = float(starts[0]), float(segments.end_s[rows].max())
    return Run(
        name,
        tuple(str(platform.server_name[s]) for s in np.unique(servers)),
        gpus,
        start_s,
        end_s,
        _when(problem.epoch, start_s),
        _when(problem.epoch, end_s),
        float(segments.core[rows[0]]),
        float(segments.memory[rows[0]]),
        *_settings(problem, int(platform.kind[processors[0]]), segments.points[rows[0]]),
        _begin(problem.epoch, start_s),
    )


def _settings(
    problem: Problem, kind: int, point: Sequence[float]
) -> tuple[int | None, int | None, int | None]:
    clocks = problem.platform.kinds[kind].clocks
    if isinstance(clocks, PowerLimits):
        return None, None, round(point[CORE] * clocks.default_limit_w)
    if clocks.default_mhz is None:
        return None, None, None
    core_mhz, memory_mhz = clocks.default_mhz
    memory = round(point[MEMORY] * memory_mhz) if clocks.scales_memory else None
    return round(point[CORE] * core_mhz), memory, None


def _when(epoch: datetime | None, at_s: float) -> str:
    if epoch is None:
        return f"now+{at_s:.0f}"
    at = epoch + timedelta(seconds=at_s) if epoch.tzinfo is None else (
        epoch.astimezone(UTC) + timedelta(seconds=at_s)
    ).astimezone(epoch.tzinfo)  # fmt: skip
    return at.isoformat(timespec="seconds")


def _begin(epoch: datetime | None, at_s: float) -> str:
    if epoch is None or epoch.tzinfo is None:
        return _when(epoch, at_s)
    return f"uts{epoch.timestamp() + at_s:.0f}"


def _head(run: Run) -> list[str]:
    """Say the start as people do, where the command does not."""
    if run.begin == run.start:
        return []
    return [f"# {run.start}: {_plain(run.task)}"]


def sbatch(run: Run, script: str = "{task}.sh") -> list[str]:
    """Submit a task as it was planned."""
    words = ["sbatch", f"--job-name={run.task}", f"--begin={run.begin}",
             f"--nodelist={','.join(run.servers)}", f"--nodes={len(run.servers)}",
             f"--gres=gpu:{run.count}", f"--time={run.minutes}"]  # fmt: skip
    words += [f"--gpu-freq={run.frequency}"] if run.frequency else []
    file = script.replace("{task}", run.task)
    return [*_head(run), shlex.join([*words, f"./{file}" if file.startswith("-") else file])]


def scontrol(run: Run) -> list[str]:
    """Change a job of this name that waits, and let it go."""
    words = ["scontrol", "update", f"JobName={run.task}", f"StartTime={run.begin}",
             f"ReqNodeList={','.join(run.servers)}"]  # fmt: skip
    words += [f"TresFreq=gpu:{run.frequency}"] if run.frequency else []
    release = shlex.join(["scontrol", "release", f"jobname={run.task}"])
    return [*_head(run), shlex.join(words), release]


def nvidia_smi(runs: Sequence[Run]) -> list[str]:
    """What to set on which server, and to reset, by time."""
    moments: list[tuple[float, int, str, list[str]]] = []
    for run in runs:
        for server, gpus in zip(run.servers, run.gpus, strict=True):
            card = f"nvidia-smi -i {','.join(map(str, gpus))}"
            on, off = _switched(run)
            begin = [f"# {run.start} on {server}: {_plain(run.task)} starts"]
            end = [f"# {run.end} on {server}: {_plain(run.task)} ends"]
            moments.append((run.start_s, 1, server, begin + [f"{card} {words}" for words in on]))
            moments.append((run.end_s, 0, server, end + [f"{card} {words}" for words in off]))
    return [line for *_, lines in sorted(moments) for line in lines]


def _switched(run: Run) -> tuple[list[str], list[str]]:
    """Options that set and that reset."""
    if run.power_limit_w is not None:
        return [f"-pl {run.power_limit_w}"], ["-pl default"]
    on, off = [f"-lgc {run.core_mhz},{run.core_mhz}"], ["-rgc"]
    if run.memory_mhz is not None:
        on.append(f"-lmc {run.memory_mhz},{run.memory_mhz}")
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
    if any(run.core_mhz is None and run.power_limit_w is None for run in runs):
        rule = "has clocks that are ratios, which nobody can set: give core_mhz in its kinds"
        raise InvalidInput(rule, item="the cluster")
    lines: dict[str, Callable[[], list[str]]] = {
        "sbatch": lambda: [line for run in runs for line in sbatch(run, script)],
        "scontrol": lambda: [line for run in runs for line in scontrol(run)],
        "nvidia-smi": lambda: nvidia_smi(runs),
    }
    return "".join(f"{line}\n" for line in lines[target]())


def _csv(runs: Sequence[Run]) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ("task", "servers", "gpus", "start", "end", "core", "memory", "core_mhz", "memory_mhz",
             "power_limit_w")  # fmt: skip
    writer.writerow(names)
    for run in runs:
        gpus = ";".join(",".join(map(str, each)) for each in run.gpus)
        values = [run.task, ";".join(run.servers), gpus, run.start, run.end, run.core, run.memory]
        writer.writerow([*values, run.core_mhz, run.memory_mhz, run.power_limit_w])
    return out.getvalue()
