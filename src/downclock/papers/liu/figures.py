"""Figures 4 and 5 of liu: power and energy of Static, Dynamic and Aggressive against ERF.

Only sentences about the figures are known, not the plots. Idle and system power, the GPU's
advantage and actual times are assumed (docs/background/cpu-gpu-mapping.md).
"""

from __future__ import annotations

import numpy as np

from downclock.papers.liu import PAPER
from downclock.papers.liu.runs import SCHEMES, Ends, cpu_only, sets, table
from downclock.papers.rows import Item, Row, Settings, estimate, judged
from downclock.workloads.liu import LOADS, Box, SpeedReading

PAPERS = ("Static", "Dynamic", "Aggressive")
SYSTEM_W = 100.0
SPEEDS: tuple[SpeedReading, ...] = ("voltage", "clock")
PUBLISHED_LIGHT = {"power": 20.0, "energy": 27.0}
"""Section 7.2, light load: about 20 % less power, more than 27 % less energy than ERF."""

WHY = {
    "voltage": "idle and system power, speed-ups, lengths and actual times are assumed",
    "clock": "148 MHz runs at 17 % speed: energy rises where the paper takes voltage for speed",
}
QUANTITIES = {
    "power": "power saved, until makespan",
    "energy": "energy saved, until makespan",
    "horizon": "energy saved, common horizon",
}
"""Both energy boundaries: the box is turned off after the last job; or it stays on as long as the
slowest scheme takes, whoever is done before."""


def saving(ends: Ends, name: str, quantity: str) -> list[float]:
    """Percent saved against ERF, set by set."""
    found = []
    for k, (one, erf) in enumerate(zip(ends[name], ends["ERF"], strict=True)):
        ours, base = one.total_j, erf.total_j
        if quantity == "power":
            ours, base = ours / one.makespan_s, base / erf.makespan_s
        elif quantity == "horizon":
            until_s = max(mine[k].makespan_s for mine in ends.values())
            ours, base = one.until_j(until_s), erf.until_j(until_s)
        found.append(100.0 * (1.0 - ours / base))
    return found


def _ours(ends: Ends, load: str, speed: str) -> list[Row]:
    """Our savings; nothing is published for them."""
    planned = {"power": "Ours, makespan", "energy": "Ours, makespan", "horizon": "Ours, horizon"}
    rows = []
    for quantity, name in planned.items():
        text = f"{QUANTITIES[quantity]}, Ours, {load}, speed = {speed}"
        found = estimate(saving(ends, name, quantity))
        rows.append(judged(PAPER, "fig4", text, None, found, "%", because="not in the paper"))
    return rows


def figure4(settings: Settings) -> list[Row]:
    """Whole-system power and energy of every scheme, both boundaries, both speed readings."""
    rows = []
    names = ("ERF", *PAPERS, "Ours, horizon", "Ours, makespan")
    loads = ("light",) if settings.quick else tuple(LOADS)
    for speed in SPEEDS:
        box = Box(system_w=SYSTEM_W, speed=speed)
        for load in loads:
            ends = table(sets(settings, load, box), {name: SCHEMES[name] for name in names})
            for name in PAPERS:
                for quantity, words in QUANTITIES.items():
                    value = PUBLISHED_LIGHT.get(quantity) if load == "light" else None
                    found = estimate(saving(ends, name, quantity))
                    text = f"{words}, {name}, {load}, speed = {speed}"
                    rows.append(judged(PAPER, "fig4", text, value, found, "%", because=WHY[speed]))
            rows += [*_ours(ends, load, speed), _broken(ends, "fig4", f"{load}, speed = {speed}")]
    return rows


def _broken(ends: Ends, item: str, where: str) -> Row:
    """Misses and rejections of all schemes, in the note one by one."""
    lost = {name: sum(one.missed for one in mine) for name, mine in ends.items()}
    refused = {name: sum(one.rejected for one in mine) for name, mine in ends.items()}
    told = ", ".join(f"{name} {lost[name]} + {refused[name]}" for name in ends)
    value = float(sum(lost.values()) + sum(refused.values()))
    text = f"missed + rejected, {where}"
    return judged(PAPER, item, text, None, value, "jobs", because=told)


def figure5(settings: Settings) -> list[Row]:
    """Worst case at 150 % of measured, and DVFS on the CPU only; NMF, both speed readings."""
    rows = []
    for speed in SPEEDS:
        box = Box(system_w=SYSTEM_W, speed=speed)
        rows += _late_estimates(settings, box, speed)
        rows += _cpu_scaled(settings, box, speed)
    return rows


def _late_estimates(settings: Settings, box: Box, speed: str) -> list[Row]:
    """Fig. 5a-b: what Aggressive saves beyond the better of Static and Dynamic."""
    found = sets(settings, "heavy", box, families=("NMF",), margin=1.5)
    ends = table(found, {name: SCHEMES[name] for name in ("ERF", *PAPERS)})
    why = {
        "voltage": "Dynamic already reclaims what ends early; Aggressive has little left to gain",
        "clock": "lower levels cost energy where 148 MHz is among them",
    }
    rows = []
    for quantity, published in (("energy", 13.0), ("horizon", None)):
        saved = [np.array(saving(ends, name, quantity)) for name in PAPERS]
        kept = 1.0 - np.maximum(saved[0], saved[1]) / 100.0
        more = 100.0 * (1.0 - (1.0 - saved[2] / 100.0) / kept)
        words = QUANTITIES[quantity].replace("saved", "Aggressive saves beyond Static and Dynamic")
        text = f"{words}, 150 %, heavy, speed = {speed}"
        row = judged(PAPER, "fig5", text, published, estimate(more.tolist()), "%",
                     because=why[speed])  # fmt: skip
        rows.append(row)
    return [*rows, _broken(ends, "fig5", f"150 %, heavy, speed = {speed}")]


def _cpu_scaled(settings: Settings, box: Box, speed: str) -> list[Row]:
    """Fig. 5c-d: the GPU stays at its top level."""
    chosen = {"ERF": SCHEMES["ERF"], "Dynamic": cpu_only(SCHEMES["Dynamic"])}
    ends = table(sets(settings, "light", box, families=("NMF",)), chosen)
    why = (
        "balancing brings in the CPU, which draws more than the GPU saves waiting; with the GPU at"
        " full speed little is left to slow"
    )
    published = {"power": 16.0, "energy": 25.0}
    rows = []
    for quantity, words in QUANTITIES.items():
        found = estimate(saving(ends, "Dynamic", quantity))
        text = f"{words}, CPU only, Dynamic, light, speed = {speed}"
        rows.append(judged(PAPER, "fig5", text, published.get(quantity), found, "%", because=why))
    return [*rows, _broken(ends, "fig5", f"CPU only, light, speed = {speed}")]


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
