"""The same experiments with parameters as measured: what DVFS is worth without shrunk powers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from downclock.papers.mei.runs import MW_MIN, RHO, Outcome, compared, outcome_of
from downclock.papers.mei2021 import PAPER, published
from downclock.papers.mei2021.published import ONLINE
from downclock.papers.mei2021.single_task import savings
from downclock.papers.rows import Item, Row, Settings, judged, not_run
from downclock.power.fit import Fit, fit
from downclock.power.library import Library
from downclock.power.library_file import built_in_library
from downclock.power.measurements import read_measurements
from downclock.power.points import NARROW, WIDE, Clocks
from downclock.power.profiles import MeasuredProfiles
from downclock.units import Floats
from downclock.workloads import mei

ABSENT = "data absent: set DOWNCLOCK_DATA to the folder of public measurements"
HONEST = "parameters as measured; the paper divides P0 and gamma by 13"


def honest(settings: Settings) -> list[Row]:
    """Online day with the fitted 1080 Ti library, unshrunk, in both intervals."""
    library = built_in_library("gtx1080ti")
    value = 100.0 * (1.0 - ONLINE[16, 1.0][0] / ONLINE[16, 0.0][0])
    rows = []
    for name, clocks in (("wide", WIDE), ("narrow", NARROW)):
        found = [_day(seed, library, clocks) for seed in settings.seeds]
        saving = [100.0 * (1.0 - on.run_j / off.run_j) for on, off in found]
        quantity = f"run energy saved, 1080 Ti as fitted, {name} interval"
        rows.append(compared(settings, (PAPER, "honest"), quantity, value, saving, "%", HONEST))
        total = [on.total_j / MW_MIN for on, _ in found]
        quantity = f"total of EDL-D, 1080 Ti as fitted, {name} interval, l=16"
        rows.append(compared(settings, (PAPER, "honest"), quantity, None, total, "MW min", HONEST))
    return rows


def measured(settings: Settings) -> list[Row]:
    """Savings of the measured tables themselves: no model, only clocks that somebody ran."""
    folder = os.environ.get("DOWNCLOCK_DATA")
    text = published.SINGLE["measured"]
    if folder is None or not Path(folder, "dvfs").is_dir():
        return [
            not_run(PAPER, "measured", "1080 Ti, best measured point", text, "%", ABSENT),
            not_run(PAPER, "measured", "A100, best measured point", None, "%", ABSENT),
        ]
    pascal, ampere = _pascal(Path(folder)), _ampere(Path(folder))
    why = "the text's 4.3 % is the model's value in the narrow interval, not a measurement"
    card = float(best_points(pascal).mean())
    rows = [
        judged(PAPER, "measured", "1080 Ti, best measured point", text, card, "%", digits=1,
               because=why)
    ]  # fmt: skip
    why = "not in the paper: A100, 61 core clocks, against the top clock"
    newer = float(best_points(ampere).mean())
    rows.append(
        judged(PAPER, "measured", "A100, best measured point", None, newer, "%", because=why)
    )
    found = [_day(seed, ampere.library, ampere.clocks) for seed in settings.seeds]
    saving = [100.0 * (1.0 - on.run_j / off.run_j) for on, off in found]
    quantity = "run energy saved online, A100 tables, l=16"
    return [*rows, compared(settings, (PAPER, "measured"), quantity, None, saving, "%", why)]


def best_points(found: Fit) -> Floats:
    """Percent each application saves at its best measured point against the default clock."""
    assert isinstance(found.library.groups[0], MeasuredProfiles)
    return savings(found.library, found.clocks)


def _pascal(folder: Path) -> Fit:
    columns = {
        "application": "appName",
        "core_mhz": "coreF",
        "memory_mhz": "memF",
        "time_ms": "time/ms",
        "power_w": "power/W",
    }
    path = folder / "dvfs" / "hkbu" / "gtx1080ti-dvfs-real-Performance-Power.csv"
    return fit(
        read_measurements(path, columns),
        kind="gtx1080ti",
        default_core_mhz=1800.0,
        default_memory_mhz=5000.0,
        model="table",
    )


def _ampere(folder: Path) -> Fit:
    columns = {"core_mhz": "sm_app_clock", "time_s": "run_time", "power_w": "power_usage"}
    paths = sorted((folder / "dvfs" / "a100").glob("GA100-dvfs-*-dcgm.csv"))
    runs = read_measurements(paths, columns)
    return fit(runs, kind="a100", default_core_mhz=1410.0, model="table")


def _day(seed: int, library: Library, clocks: Clocks) -> tuple[Outcome, Outcome]:
    """The same day with and without DVFS."""
    cluster = mei.Cluster(pairs=4096, turn_on_per="server", clocks=clocks)
    problem = mei.online(seed, library=library, cluster=cluster)
    on = outcome_of(problem, f"edl:theta=0.9,rho={RHO},start=stream")
    off = outcome_of(problem, f"edl:dvfs=off,rho={RHO},start=stream")
    assert np.isfinite(on.total_j)
    return on, off


ITEMS = (
    Item("honest", "Online with the 1080 Ti's parameters as measured", honest),
    Item("measured", "Savings of measured tables: 1080 Ti and A100", measured),
)
