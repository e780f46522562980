"""Figures 4 and 5 of liu: power and energy of Static, Dynamic and Aggressive against ERF.

Only sentences about the figures are known, not the plots. Idle and system power, the GPU's
advantage and actual times are assumed (docs/background/cpu-gpu-mapping.md).
"""

from __future__ import annotations

import numpy as np

from downclock.papers.liu import PAPER
from downclock.papers.liu.runs import SCHEMES, Ended, cpu_only, sets, table
from downclock.papers.rows import Item, Row, Settings, estimate, judged
from downclock.workloads.liu import LOADS, Box

PAPERS = ("Static", "Dynamic", "Aggressive")
SYSTEM_W = 100.0
PUBLISHED_LIGHT = {"power": 20.0, "energy": 27.0}
"""Section 7.2, light load: about 20 % less power, more than 27 % less energy than ERF."""

WHY = {
    "voltage": "idle and system power, speed-ups and actual times are assumed",
    "clock": "148 MHz runs at 17 % speed: energy rises where the paper takes voltage for speed",
}


def saving(ends: dict[str, list[Ended]], name: str, quantity: str) -> list[float]:
    """Percent saved against ERF, set by set."""
    found = []
    for one, erf in zip(ends[name], ends["ERF"], strict=True):
        ours, base = one.total_j, erf.total_j
        if quantity == "power":
            ours, base = ours / one.makespan_s, base / erf.makespan_s
        found.append(100.0 * (1.0 - ours / base))
    return found


def figure4(settings: Settings) -> list[Row]:
    """Whole-system power and energy until the last job is done, both speed readings."""
    rows = []
    chosen = {name: SCHEMES[name] for name in ("ERF", *PAPERS)}
    loads = ("light",) if settings.quick else tuple(LOADS)
    for speed in ("voltage", "clock"):
        box = Box(system_w=SYSTEM_W, speed="voltage" if speed == "voltage" else "clock")
        for load in loads:
            ends = table(sets(settings, load, box), chosen)
            for name in PAPERS:
                for quantity, published in PUBLISHED_LIGHT.items():
                    value = published if load == "light" else None
                    ours = estimate(saving(ends, name, quantity))
                    text = f"{quantity} saved, {name}, {load}, speed = {speed}"
                    rows.append(judged(PAPER, "fig4", text, value, ours, "%", because=WHY[speed]))
            rows.append(_misses(ends, load, speed))
    return rows


def _misses(ends: dict[str, list[Ended]], load: str, speed: str) -> Row:
    missed = {name: sum(one.missed for one in ends[name]) for name in ends}
    told = ", ".join(f"{name} {count}" for name, count in missed.items())
    text = f"misses in all, {load}, speed = {speed}"
    return judged(PAPER, "fig4", text, None, float(sum(missed.values())), "jobs", because=told)


def figure5(settings: Settings) -> list[Row]:
    """Worst case at 150 % of measured, and DVFS on the CPU only; NMF."""
    box = Box(system_w=SYSTEM_W, speed="voltage")
    found = sets(settings, "heavy", box, families=("NMF",), margin=1.5)
    ends = table(found, {name: SCHEMES[name] for name in PAPERS})
    more = [
        100.0 * (1.0 - a.total_j / min(s.total_j, d.total_j))
        for a, s, d in zip(ends["Aggressive"], ends["Static"], ends["Dynamic"], strict=True)
    ]
    why = "Dynamic already reclaims what ends early; Aggressive has little left to gain"
    text = "energy Aggressive saves beyond Static and Dynamic, 150 %, heavy"
    rows = [judged(PAPER, "fig5", text, 13.0, estimate(more), "%", because=why)]
    chosen = {"ERF": SCHEMES["ERF"], "Dynamic": cpu_only(SCHEMES["Dynamic"])}
    ends = table(sets(settings, "light", box, families=("NMF",)), chosen)
    why = "with the GPU at full speed little is left to slow; the assumed GPU does most jobs"
    for quantity, published in (("power", 16.0), ("energy", 25.0)):
        ours = estimate(saving(ends, "Dynamic", quantity))
        text = f"{quantity} saved, CPU only, Dynamic, light"
        rows.append(judged(PAPER, "fig5", text, published, ours, "%", because=why))
    return rows


def speed_as_voltage(settings: Settings) -> list[Row]:
    """Jobs that would miss if levels were set by voltage and the silicon ran at its clocks."""
    rows = []
    for load in LOADS:
        share = [
            _late_share(seed, load, family)
            for seed in settings.seeds
            for family in ("NMF", "MM", "MT", "MO")
        ]
        text = f"jobs late under Static if voltage is taken for speed, {load}"
        why = "Table 2: the GPU's 0.95 V level runs at 17 % of the top clock, not at 76 %"
        value = 100.0 * float(np.mean(share))
        rows.append(judged(PAPER, "voltage", text, 0.0, value, "%", because=why))
    return rows


def _late_share(seed: int, load: str, family: str) -> float:
    """Share of jobs late when a plan made for voltage speeds meets clock speeds."""
    from downclock.simulate.simulate import simulate
    from downclock.workloads.liu import job_set

    thought = job_set(seed, load=load, family=family, box=Box(speed="voltage"))
    real = job_set(seed, load=load, family=family, box=Box(speed="clock"))
    segments = simulate(thought, SCHEMES["Static"]).promised.segments
    kind = real.platform.kind[segments.processor]
    real_s, _ = real.at(segments.task, kind, segments.points)
    work = (
        real.tasks.spread.draw(seed) if real.tasks.spread is not None else np.ones(len(real.tasks))
    )
    late = 0
    for p in range(real.platform.processor_count):
        mine = np.flatnonzero(segments.processor == p)
        mine = mine[np.argsort(segments.start_s[mine], kind="stable")]
        length_s = segments.share[mine] * real_s[mine] * work[segments.task[mine]]
        late += int(np.sum(np.cumsum(length_s) > real.tasks.deadline_s[segments.task[mine]]))
    return late / len(real.tasks)


ITEMS = (
    Item("fig4", "Power and energy against ERF under three loads", figure4),
    Item("fig5", "Worst case at 150 % of measured; DVFS on the CPU only", figure5),
    Item("voltage", "What happens when voltage is taken for speed", speed_as_voltage),
)
