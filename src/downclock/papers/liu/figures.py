"""Figures 4 and 5 of liu: power and energy of Static, Dynamic and Aggressive against ERF.

The paper measured one desktop computer. Its idle and system power, the GPU's advantage, lengths and
actual times are not printed; job sets with assumed ones (docs/background/cpu-gpu-mapping.md) are
run under three readings. Claims are counted under the text's own, the first.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from downclock.papers.liu import PAPER
from downclock.papers.liu.runs import SCHEMES, Ends, aggressive, cpu_only, sets, table
from downclock.papers.rows import (
    Estimate,
    Item,
    Reason,
    Row,
    Settings,
    Where,
    beside,
    claimed,
    estimate,
    not_run,
    ours_only,
    printed,
)
from downclock.units import Floats
from downclock.workloads.liu import FAMILIES, HD_5770, LOADS, XEON_5160, Box

PAPERS = ("Static", "Dynamic", "Aggressive")
UNBALANCED = "Dynamic, no balancing"
BOXES = {
    "speed = voltage": Box(system_w=100.0, speed="voltage"),
    "speed = clock": Box(system_w=100.0, speed="clock"),
    "lambda s³, speed = voltage": Box(system_w=100.0, speed="voltage", power="cubic"),
}
TEXT = "speed = voltage"
"""Readings: the text takes voltage for speed, silicon its clock; section 3's power model."""

SCALED = Box(system_w=100.0, speed="voltage", power="scaled")
"""Section 7.1: the GPU's power is that of a lighter application, times one ratio."""

MEASURED = {
    "power saved, light, 'around'": 20.0,
    "energy saved by Aggressive, NMF, heavy, 'up to'": 40.0,
    "Aggressive saves beyond the others, 150 %, heavy": 13.0,
    "power saved, CPU only, light": 16.0,
    "energy saved, CPU only, light": 25.0,
}
"""Percentages of section 7.2, measured on the authors' machine."""

ABSTRACT, LIGHT_ENERGY = 20.0, 27.0
"""Abstract: more than 20 % less power and energy; section 7.2: more than 27 % of energy, light."""

QUANTITIES = ("power", "energy")


def saving(ends: Ends, name: str, quantity: str, base: str = "ERF") -> list[float]:
    """Percent saved against another scheme until the last job is done, set by set."""
    found = []
    for one, other in zip(ends[name], ends[base], strict=True):
        ours, theirs = one.total_j, other.total_j
        if quantity == "power":
            ours, theirs = ours / one.makespan_s, theirs / other.makespan_s
        found.append(100.0 * (1.0 - ours / theirs))
    return found


def figure4(settings: Settings) -> list[Row]:
    """What section 7.2 says of three loads and four benchmarks."""
    where = (PAPER, "fig4")
    rows: list[Row] = []
    names = {name: SCHEMES[name] for name in ("ERF", "ERF-response", *PAPERS)}
    for reading, box in BOXES.items():
        found = {
            (family, load): table(sets(settings, load, box, families=(family,)), names)
            for family in FAMILIES
            for load in (("light",) if settings.quick else LOADS)
        }
        claims = [*_by_load(where, reading, found), *_by_benchmark(where, reading, found)]
        claims += _slower(where, reading, found)
        rows += _measured4(settings, where, found) if reading == TEXT else []
        rows += claims if reading == TEXT else beside(claims)
        rows += _nobody_knows(where, reading, found)
    return rows


def _measured4(settings: Settings, where: Where, found: dict[tuple[str, str], Ends]) -> list[Row]:
    """Numbers of Fig. 4; what the paper leaves open is the switch."""
    names = {name: SCHEMES[name] for name in ("ERF", *PAPERS)}
    light, heavy = list(MEASURED)[:2]
    scaled = table(sets(settings, "light", SCALED), names)
    ours, theirs = (_of_schemes(ends, "power") for ends in (_pooled(found, "light"), scaled))
    why = Reason("the GPU's power scaled from a lighter application, as in section 7.1", theirs)
    rows = [printed(where, light, MEASURED[light], ours, "%", reason=why)]
    if ("NMF", "heavy") in found:
        box = replace(BOXES[TEXT], system_w=15.0)
        other = table(sets(settings, "heavy", box, families=("NMF",)), names)
        both = found["NMF", "heavy"], other
        ours, theirs = (estimate(saving(ends, "Aggressive", "energy")) for ends in both)
        why = Reason("system power, which is not printed, 15 W instead of 100", theirs)
        rows.append(printed(where, heavy, MEASURED[heavy], ours, "%", reason=why))
    return rows


def _of_schemes(ends: Ends, quantity: str) -> Estimate:
    """Percent saved, mean of the three schemes."""
    found = [saving(ends, name, quantity) for name in PAPERS]
    return estimate(list(np.mean(found, axis=0)))


def _pooled(found: dict[tuple[str, str], Ends], load: str) -> Ends:
    """Runs of all benchmarks under a load."""
    mine = [ends for (_, each), ends in found.items() if each == load]
    return {name: [one for ends in mine for one in ends[name]] for name in mine[0]}


def _loads(found: dict[tuple[str, str], Ends]) -> list[str]:
    return list(dict.fromkeys(load for _, load in found))


def _by_load(where: Where, reading: str, found: dict[tuple[str, str], Ends]) -> list[Row]:
    """More than 20 % (27 % of energy, light); Aggressive and Dynamic below Static."""
    rows = []
    for load in _loads(found):
        ends = _pooled(found, load)
        for name in PAPERS:
            for quantity in QUANTITIES:
                light = load == "light" and quantity == "energy"
                limit = LIGHT_ENERGY if light else ABSTRACT
                text = f"{quantity} saved, {name}, {load}, {reading}"
                rows.append(claimed(where, text, ">", limit, saving(ends, name, quantity), "%"))
        spread = np.ptp([saving(ends, name, "power") for name in PAPERS], axis=0)
        if load == "light":
            text = f"power of the three schemes, greatest less least, light, {reading}"
            rows.append(claimed(where, text, "<", 1.0, list(spread), "% of ERF",
                                "'the same power consumption'"))  # fmt: skip
            continue
        for name in ("Dynamic", "Aggressive"):
            text = f"power that {name} saves beyond Static, {load}, {reading}"
            rows.append(claimed(where, text, ">", 0.0, saving(ends, name, "power", "Static"), "%"))
    return rows


def _by_benchmark(where: Where, reading: str, found: dict[tuple[str, str], Ends]) -> list[Row]:
    """Better than ERF "in all scenarios"; Aggressive worse than Static for MatrixMultiply."""
    rows = []
    for family in FAMILIES:
        for quantity in QUANTITIES:
            cases = product(_loads(found), PAPERS)
            every = {(load, n): saving(found[family, load], n, quantity) for load, n in cases}
            load, name = min(every, key=lambda key: float(np.mean(every[key])))
            text = f"{quantity} saved, {family}, least of all ({name}, {load}), {reading}"
            rows.append(claimed(where, text, ">", 0.0, every[load, name], "%"))
    for load in _loads(found)[1:]:
        for name in ("Static", "Dynamic"):
            more = [-each for each in saving(found["MM", load], "Aggressive", "energy", name)]
            text = f"energy of Aggressive above {name}, MM, {load}, {reading}"
            rows.append(claimed(where, text, ">", 0.0, more, "%"))
    return rows


def _slower(where: Where, reading: str, found: dict[tuple[str, str], Ends]) -> list[Row]:
    """27 % of energy with 20 % of power means that slower clocks finish 9 % sooner than ERF."""
    ends = _pooled(found, "light")
    ratio = [a.makespan_s / b.makespan_s for a, b in zip(ends["Static"], ends["ERF"], strict=True)]
    text = f"run time, Static / ERF, light, {reading}"
    note = "(1 - 0.27) / (1 - 0.20), the paper's own energy over power"
    return [claimed(where, text, "<", 0.9125, ratio, "ratio", note)]


def _nobody_knows(where: Where, reading: str, found: dict[tuple[str, str], Ends]) -> list[Row]:
    """Our numbers for what the paper measured, and against ERF that minds its queues."""
    rows = []
    if ("NMF", "heavy") in found and reading != TEXT:
        mine = estimate(saving(found["NMF", "heavy"], "Aggressive", "energy"))
        text = f"energy saved by Aggressive, NMF, heavy, {reading}"
        rows.append(ours_only(where, text, mine, "%"))
    ends = _pooled(found, "light")
    for name in PAPERS:
        mine = estimate(saving(ends, name, "energy", "ERF-response"))
        text = f"energy saved against ERF by response time, {name}, light, {reading}"
        late = sum(one.missed for one in ends["ERF-response"])
        rows.append(ours_only(where, text, mine, "%", f"ERF by response time misses {late}"))
    return rows


def figure5(settings: Settings) -> list[Row]:
    """Worst case at 150 % of measured, and DVFS on the CPU only; NMF."""
    where = (PAPER, "fig5")
    rows = [*_measured_late(settings, where), *_measured_cpu(settings, where)]
    for reading, box in BOXES.items():
        for load in ("heavy",) if settings.quick else LOADS:
            claims = _late_estimates(settings, where, reading, load, box)
            claims += _cpu_scaled(settings, where, reading, load, box)
            rows += claims if reading == TEXT else beside(claims)
    return rows


def _measured_late(settings: Settings, where: Where) -> list[Row]:
    """Numbers of Fig. 5a-b."""
    words, rows = list(MEASURED)[2], []
    boxes = (BOXES[TEXT], replace(BOXES[TEXT], system_w=30.0))
    ours, other = (_late(settings, "heavy", box) for box in boxes)
    for quantity in QUANTITIES:
        theirs = estimate(saving(other, "Aggressive", quantity, "Static"))
        why = "beside Static alone, and system power, which is not printed, 30 W instead of 100"
        mine = estimate(list(_beyond(ours, quantity)))
        rows.append(
            printed(where, f"{quantity} {words}", MEASURED[words], mine, "%",
                    reason=Reason(why, theirs))
        )  # fmt: skip
    return rows


def _measured_cpu(settings: Settings, where: Where) -> list[Row]:
    """Numbers of Fig. 5c-d."""
    cpu, gpu = (replace(device, idle_w=0.0) for device in (XEON_5160, HD_5770))
    bare = replace(BOXES[TEXT], system_w=0.0, cpu=cpu, gpu=gpu)
    ours, other = (_cpu(settings, "light", box) for box in (BOXES[TEXT], bare))
    rows, why = [], "beside ERF by response time, without Load-Balancing"
    for quantity, words, ends, also in (
        ("power", list(MEASURED)[3], ours, ""),
        ("energy", list(MEASURED)[4], other, ", and without idle and system power"),
    ):
        theirs = estimate(saving(ends, UNBALANCED, quantity, "ERF-response"))
        rows.append(
            printed(where, words, MEASURED[words], _of_schemes(ours, quantity), "%",
                    reason=Reason(why + also, theirs))
        )  # fmt: skip
    return rows


def _late_estimates(
    settings: Settings, where: Where, reading: str, load: str, box: Box
) -> list[Row]:
    """Fig. 5a-b: what Aggressive saves beyond the better of Static and Dynamic."""
    ends, rows = _late(settings, load, box), []
    for quantity in QUANTITIES:
        text = f"{quantity} Aggressive saves beyond the others, 150 %, {load}, {reading}"
        rows.append(claimed(where, text, ">", 0.0, list(_beyond(ends, quantity)), "%"))
    return rows


def _late(settings: Settings, load: str, box: Box) -> Ends:
    """NMF with worst cases at 150 % of measured."""
    found = sets(settings, load, box, families=("NMF",), margin=1.5)
    return table(found, {name: SCHEMES[name] for name in PAPERS})


def _beyond(ends: Ends, quantity: str) -> Floats:
    """Percent that Aggressive saves beyond the better of the others (sets,)."""
    found = [saving(ends, "Aggressive", quantity, name) for name in ("Static", "Dynamic")]
    return np.asarray(np.min(found, axis=0))


def _cpu_scaled(settings: Settings, where: Where, reading: str, load: str, box: Box) -> list[Row]:
    """Fig. 5c-d: the GPU stays at its top level; less "in all scenarios"."""
    ends, rows = _cpu(settings, load, box), []
    for quantity in QUANTITIES:
        for name in PAPERS:
            text = f"{quantity} saved, CPU only, {name}, {load}, {reading}"
            rows.append(claimed(where, text, ">", 0.0, saving(ends, name, quantity), "%"))
    return rows


def _cpu(settings: Settings, load: str, box: Box) -> Ends:
    """NMF with levels on the CPU only."""
    races = {name: SCHEMES[name] for name in ("ERF", "ERF-response")}
    scaled = {name: cpu_only(SCHEMES[name]) for name in (*PAPERS, UNBALANCED)}
    return table(sets(settings, load, box, families=("NMF",)), races | scaled)


def scaled_power(settings: Settings) -> list[Row]:
    """The claims of all benchmarks together with the GPU's power as section 7.1 obtains it."""
    names = {name: SCHEMES[name] for name in ("ERF", *PAPERS)}
    loads = ("light",) if settings.quick else ("light", "heavy")
    found = {("all", load): table(sets(settings, load, SCALED), names) for load in loads}
    return beside(_by_load((PAPER, "gpu-power"), "speed = voltage, GPU power scaled", found))


def caution(settings: Settings) -> list[Row]:
    """The paper's K, which is in none of its experiments: Aggressive between average and worst."""
    where, rows = (PAPER, "caution"), []
    kept = (0.0, 0.5, 0.7, 0.9, 1.0)
    chosen = {"Dynamic": SCHEMES["Dynamic"], **{f"K={k:g}": aggressive(k) for k in kept}}
    box = replace(BOXES["speed = clock"], system_w=0.0)
    ends = table(sets(settings, "heavy", box), chosen)
    for name in list(chosen)[1:]:
        missed = sum(one.missed for one in ends[name])
        pairs = zip(ends[name], ends["Dynamic"], strict=True)
        ratio = [a.above_idle_j / b.above_idle_j for a, b in pairs]
        text = f"energy above idle, Aggressive {name} / Dynamic, heavy, speed = clock"
        rows.append(ours_only(where, text, estimate(ratio), "1", f"{missed} jobs missed"))
    return rows


def speed_as_voltage(settings: Settings) -> list[Row]:
    """Jobs that would miss if levels were set by voltage and the silicon ran at its clocks."""
    rows = []
    note = "Table 2: the GPU's 0.95 V level runs at 17 % of the top clock, not at 76 %"
    for load in LOADS:
        drawn = product(settings.seeds, FAMILIES)
        share = [100.0 * _late_share(seed, load, family) for seed, family in drawn]
        text = f"jobs late under Static if voltage is taken for speed, {load}"
        rows.append(claimed((PAPER, "voltage"), text, "<", 0.1, share, "%", note))
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


def complexity(_: Settings) -> list[Row]:
    """Additions that Assignment makes, O(n² m): its powers of n and m."""
    where = (PAPER, "complexity")
    jobs = float(np.log2(_additions(160, 4) / _additions(80, 4)))
    processors = float(np.log2(_additions(160, 16, one_each=True)
                               / _additions(160, 8, one_each=True)))  # fmt: skip
    note = "additions in Definition 3, the tests of Theorem 1"
    return [
        claimed(where, "power of n in Assignment's steps, O(n² m)", "<", 2.05, jobs, "",
                f"{note}; all jobs find a place"),
        claimed(where, "power of m in Assignment's steps, O(n² m)", "<", 1.05, processors, "",
                f"{note}; a processor holds one job, so the others try all of their type"),
        not_run(where, "power of n in Dynamic-Mapping, O(m² n²) for each arrival", 2.0, "",
                "its worst case, an arrival that makes every pair of jobs change, is not built"),
    ]  # fmt: skip


class Counted(float):
    """A number that counts how often it is added."""

    added = 0

    def __radd__(self, other: float) -> float:
        Counted.added += 1
        return float(other) + float(self)


def _additions(jobs: int, processors: int, *, one_each: bool = False) -> int:
    """Additions of Assignment with so many jobs, half the processors CPUs."""
    from downclock.planners.mapping.rules import Job, assign

    rng = np.random.default_rng(jobs)
    times = rng.uniform(1.0, 2.0, (jobs, 2))
    window = times.max(axis=1) * jobs / processors * rng.uniform(1.0, 2.0, jobs)
    window = times.max(axis=1) if one_each else window
    asked = [
        Job(i, 0.0, float(window[i]), (Counted(times[i, 0]), Counted(times[i, 1])))
        for i in range(jobs)
    ]
    Counted.added = 0
    assign(asked, [p % 2 for p in range(processors)])
    return Counted.added


ITEMS = (
    Item("fig4", "Power and energy against ERF under three loads", figure4),
    Item("fig5", "Worst case at 150 % of measured; DVFS on the CPU only", figure5),
    Item("gpu-power", "Section 7.1: GPU power scaled from another application", scaled_power),
    Item("caution", "K, the caution of Aggressive", caution),
    Item("voltage", "What happens when voltage is taken for speed", speed_as_voltage),
    Item("complexity", "Steps of Assignment", complexity),
)
