"""Job sets of liu section 7 on the hardware of its Table 2: one CPU, one GPU, jobs with deadlines.

The paper leaves open how much faster the GPU is, idle and system power, arrivals and actual
times; the assumptions here are named arguments (docs/background/cpu-gpu-mapping.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from downclock.errors import InvalidInput
from downclock.power.library import Library
from downclock.power.points import ClockTable
from downclock.power.profiles import MeasuredProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.spread import UNIFORM, Spread
from downclock.problem.tasks import Tasks
from downclock.units import Floats

CPU, GPU = "cpu", "gpu"

SpeedReading: TypeAlias = Literal["clock", "voltage"]
"""What sets the run time: the clock, as in silicon; or the voltage, as the paper says."""

PowerReading: TypeAlias = Literal["switching", "cubic", "scaled"]
"""What a device draws: idle power plus (TDP - idle) V² f; or, as section 3 has it, plus lambda s³
of its speed s, whichever that is; or, on the GPU, what a lighter application draws at each level
times the ratio of both at the top one, as section 7.1 obtains it."""

Lengths: TypeAlias = Literal["log-uniform", "uniform"]
"""How GPU times are spread over `GPU_TIME_S`: assumed, the paper prints none."""

LOADS = {"light": 1.0, "medium": 1.4, "heavy": 1.8}
"""Sum of the jobs' loads (section 7.1)."""

FAMILIES = {"NMF": (2.0, 6.0), "MM": (4.0, 12.0), "MT": (0.7, 2.5), "MO": (1.5, 4.0)}
"""CPU time / GPU time of the four benchmarks, log-uniform: assumed, the paper prints none."""

LOAD_RANGE = (0.001, 0.1)
GPU_TIME_S = (0.5, 20.0)
MARGIN = 1.2
"""Worst case / measured time (section 7.1); 1.5 in the second experiment."""

ACTUAL = (0.9, 1.0)
"""Range of actual / measured time, uniform: assumed; kept as the tasks' spread."""

LIGHTER = 0.5
"""Power of the application whose power the GPU's is scaled from / TDP: assumed."""


@dataclass(frozen=True, slots=True)
class Device:
    """A processor of Table 2: clocks and voltages (ascending), power at the top and when idle."""

    mhz: tuple[float, ...]
    volts: tuple[float, ...]
    tdp_w: float
    idle_w: float

    @property
    def clocks(self) -> ClockTable:
        """Its levels."""
        return ClockTable(np.array(self.mhz), np.array(1.0), self.mhz[-1], 1.0)

    @property
    def voltage(self) -> Floats:
        """Voltages as ratios to the top one."""
        return np.array(self.volts) / self.volts[-1]

    @property
    def clock(self) -> Floats:
        """Clocks as ratios to the top one."""
        return np.array(self.mhz) / self.mhz[-1]

    def speed(self, reading: SpeedReading) -> Floats:
        """Speeds as ratios to the top one."""
        return self.clock if reading == "clock" else self.voltage

    def power_w(self, speed: SpeedReading, reading: PowerReading) -> Floats:
        """Power at every level, see `PowerReading`."""
        part = LIGHTER if reading == "scaled" else 1.0
        drawn = self.speed(speed) ** 3 if reading == "cubic" else self.voltage**2 * self.clock
        return np.asarray(self.idle_w + (part * self.tdp_w - self.idle_w) * drawn) / part


XEON_5160 = Device((2000.0, 3000.0), (1.2, 1.5), 80.0, 24.0)
HD_5770 = Device((148.0, 500.0, 850.0), (0.95, 1.0, 1.25), 108.0, 18.0)
HD_5770_FAST = Device((500.0, 850.0), (1.0, 1.25), 108.0, 18.0)
"""Table 2; idle powers are assumed. The last one leaves out 148 MHz, which never pays."""


@dataclass(frozen=True, slots=True)
class Box:
    """The desktop computer of section 7.

    Attributes:
        cpu, gpu: its processors.
        system_w: what the rest of the box draws while it is on.
        speed: see `SpeedReading`.
        power: see `PowerReading`.
        locked: clocks stay during a job.
    """

    cpu: Device = XEON_5160
    gpu: Device = HD_5770
    system_w: float = 0.0
    speed: SpeedReading = "clock"
    power: PowerReading = "switching"
    locked: bool = False

    def platform(self) -> Platform:
        """One server, on from the start; CPUs preempt, GPUs do not (section 3)."""
        rule: Literal["free", "locked"] = "locked" if self.locked else "free"
        kinds = (
            Kind(CPU, self.cpu.clocks, self.cpu.idle_w, "preempt", rule),
            Kind(GPU, self.gpu.clocks, self.gpu.idle_w, "none", rule),
        )
        server = ServerSpec("box", ((CPU, 1), (GPU, 1)), host_w=self.system_w, initially_on=True)
        return Platform.build(kinds, (server,))

    def library(self, cpu_s: Floats, gpu_s: Floats) -> Library:
        """An application per job, with its worst-case time at the top level of either device."""
        n = cpu_s.size
        cpu_power: PowerReading = "switching" if self.power == "scaled" else self.power
        on_cpu = self._profiles(self.cpu, cpu_s, cpu_power)
        on_gpu = self._profiles(self.gpu, gpu_s, self.power)
        names = np.array([f"j{i}" for i in range(n)], dtype=object)
        row = np.column_stack([np.arange(n)] * 2)
        return Library(names, (CPU, GPU), (on_cpu, on_gpu), np.tile([0, 1], (n, 1)), row)

    def _profiles(self, device: Device, top_s: Floats, power: PowerReading) -> MeasuredProfiles:
        n, count = top_s.size, len(device.mhz)
        speed = device.speed(self.speed)
        first, core, memory = np.arange(n + 1) * count, np.tile(device.clock, n), np.ones(n * count)
        time_s = (top_s[:, None] / speed[None, :]).ravel()
        power_w = np.tile(device.power_w(self.speed, power), n)
        return MeasuredProfiles(first, core, memory, time_s, power_w)


def job_set(
    seed: int,
    *,
    load: str | float = "light",
    family: str = "NMF",
    box: Box | None = None,
    margin: float = MARGIN,
    arrivals_s: float = 0.0,
    lengths: Lengths = "log-uniform",
) -> Problem:
    """Draw a set: jobs until their loads sum to the cap, the last one shrunk to meet it.

    Args:
        seed: of the draw.
        load: light, medium, heavy or a number.
        family: benchmark, see `FAMILIES`.
        box: hardware; Table 2's by default.
        margin: worst case / measured time.
        arrivals_s: jobs arrive uniformly within this time; 0: all at time 0.
        lengths: how GPU times are spread. Log-uniform gives many short jobs, whose deadlines lie
            far apart, so that loads (Def. 3) are lower than those of uniform lengths.
    """
    if family not in FAMILIES:
        rule = f"must be one of {', '.join(FAMILIES)}"
        raise InvalidInput(rule, field="family", value=family)
    rng = np.random.default_rng([seed, sorted(FAMILIES).index(family)])
    cap = LOADS[load] if isinstance(load, str) else load
    used, gpu_s, ratio = _draws(rng, cap, FAMILIES[family], lengths)
    n, gpu_s = used.size, gpu_s * margin
    cpu_s = gpu_s * ratio
    window_s = np.minimum(cpu_s, gpu_s) / used
    arrival_s = np.sort(rng.uniform(0.0, arrivals_s, n)) if arrivals_s else np.zeros(n)
    chosen = box or Box()
    least, most = (np.full(n, end / margin) for end in ACTUAL)
    names = [f"{family.lower()}{i + 1}" for i in range(n)]
    due_s = arrival_s + window_s
    tasks = Tasks.of(np.arange(n), deadline_s=due_s, arrival_s=arrival_s, name=names)
    tasks = replace(tasks, spread=Spread(np.full(n, UNIFORM), least, most))
    library = chosen.library(cpu_s, gpu_s)
    return Problem(tasks, library, chosen.platform(), name=f"liu-{family}-{load}-{seed}")


def _draws(
    rng: np.random.Generator, cap: float, advantage: tuple[float, float], lengths: Lengths
) -> tuple[Floats, Floats, Floats]:
    """Loads, GPU times and CPU / GPU ratios of jobs until the loads sum to the cap.

    The last load is what is left of it. A load is drawn again while the job could not end in
    time on its slower processor, which the model asks for (section 3).
    """
    rows: list[tuple[float, float, float]] = []
    left = cap
    while left > 0.0:
        log = lengths == "log-uniform"
        gpu_s = _log_uniform(rng, GPU_TIME_S) if log else float(rng.uniform(*GPU_TIME_S))
        ratio = _log_uniform(rng, advantage)
        load = float(rng.uniform(*LOAD_RANGE))
        while load > min(ratio, 1.0 / ratio):
            load = float(rng.uniform(*LOAD_RANGE))
        rows.append((max(min(load, left), 1e-6), gpu_s, ratio))
        left -= load
    table = np.array(rows)
    return table[:, 0], table[:, 1], table[:, 2]


def _log_uniform(rng: np.random.Generator, limits: tuple[float, float]) -> float:
    return float(np.exp(rng.uniform(np.log(limits[0]), np.log(limits[1]))))
