"""Make jobs.csv and prices.csv of this example anew: ``python examples/gpu-day/make.py``."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np

from downclock.power.library_file import built_in_library
from downclock.power.points import WIDE

FOLDER = Path(__file__).parent
SUMMER = timezone(timedelta(hours=2))
MIDNIGHT = datetime(2024, 6, 10, tzinfo=SUMMER)
JOBS = 140

WORK = {
    "risk": ("BlackScholes", "binomialOptions", "quasirandomGenerator", "SobolQRNG"),
    "training": ("matrixMulGlobal", "matrixMulShared", "backpropForward", "backpropBackward"),
    "imaging": ("srad", "convolutionSeparable", "stereoDisparity", "histogram"),
    "simulation": ("cfd", "hotspot", "conjugateGradient", "gaussian"),
    "etl": ("mergeSort", "reduction", "transpose", "scalarProd"),
}
"""Teams of an imagined company, and the applications of the built-in library they run."""


def main() -> None:
    rng = np.random.default_rng(20240610)
    write(FOLDER / "jobs.csv", "name,application,scale,arrival,deadline", jobs(rng))
    header = "timestamp,price_eur_per_mwh,price_eur_per_mwh_forecast,carbon_g_per_kwh"
    write(FOLDER / "prices.csv", header, prices(rng))


def jobs(rng: np.random.Generator) -> list[str]:
    """Jobs of 10 to 90 minutes at default clocks, arriving from 8 to 17 o'clock."""
    library = built_in_library("gtx1080ti")
    unit_s = unit_times(library)
    rows = []
    minutes = np.sort(rng.uniform(8 * 60, 17 * 60, JOBS)).astype(int)
    for number, minute in enumerate(minutes, start=1):
        team = str(rng.choice(list(WORK)))
        application = str(rng.choice(WORK[team]))
        length_min = rng.uniform(10, 90)
        scale = round(length_min * 60 / unit_s[application], -2)
        arrival = MIDNIGHT + timedelta(minutes=int(minute))
        due = deadline(rng, arrival, length_min)
        rows.append(f"{team}-{number:03},{application},{scale:.0f},{stamp(arrival)},{stamp(due)}")
    return rows


def unit_times(library) -> dict[str, float]:
    rows = np.arange(len(library))
    time_s, _ = library.at(rows, "gtx1080ti", np.tile(WIDE.default, (len(rows), 1)))
    return dict(zip(library.names.tolist(), time_s.tolist(), strict=True))


def deadline(rng: np.random.Generator, arrival: datetime, length_min: float) -> datetime:
    """Six jobs in ten are wanted soon, three by the evening, one by the next morning."""
    kind = rng.choice(["soon", "evening", "morning"], p=[0.6, 0.3, 0.1])
    soon = arrival + timedelta(minutes=int(length_min * rng.uniform(1.3, 3.0)) + 5)
    if kind == "soon":
        return soon
    end = MIDNIGHT + (timedelta(hours=20) if kind == "evening" else timedelta(hours=30))
    return max(soon, end)


def prices(rng: np.random.Generator) -> list[str]:
    """Two days of an invented curve: dear mornings and evenings, a sunny dip below zero."""
    rows = []
    for hour in range(48):
        clock = hour % 24
        price = 82 + 38 * bump(clock, 8) + 55 * bump(clock, 20) - 95 * bump(clock, 13.5)
        carbon = 360 + 60 * bump(clock, 20) - 190 * bump(clock, 13)
        forecast = price + rng.normal(0, 6)
        when = stamp(MIDNIGHT + timedelta(hours=hour))
        rows.append(f"{when},{price:.2f},{forecast:.2f},{carbon:.0f}")
    return rows


def bump(clock: float, peak: float) -> float:
    return float(np.exp(-(((clock - peak) / 2.4) ** 2)))


def stamp(when: datetime) -> str:
    return when.isoformat(timespec="minutes")


def write(path: Path, header: str, rows: list[str]) -> None:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
