"""Prices and carbon on GPU clusters: `thrifty` beside its price-blind rivals and its bound.

    python -m benchmarks.price_clusters money carbon de-carbon sites swings forty speed

The papers' day (U_off 0.4 + U_on 1.6, u(.15,.85)) under the seven days of DE-LU, 10 to 16 June
2024; the week is turned so that each day comes first. GB carbon intensity, 8 to 14 January 2024,
with the forecast made 24 hours before. Real curves are read from the folder that DOWNCLOCK_DATA
names (else ../shared/data). Seeds 900 and up were not used in development; `--seed` moves them.
Every plan is verified and does every task. Seconds are CPU seconds of one thread.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.measured import verified
from downclock.planners.cluster.price_bound import price_bound
from downclock.problem.objective import Objective
from downclock.problem.platform import Platform
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.account.bill import Bill
from downclock.schedule.schedule import DONE
from downclock.units import Bools, Floats
from downclock.workloads import mei

HOUR_S = 3600.0
SIZES = (1, 4, 16)
WAYS = ("race", "thrifty:dvfs=off", "late", "thrifty")
"""Top clock and least-energy clocks, each blind to prices and aware of them."""

FILES = {
    "de": ("de_lu_dayahead_2024-06-10_to_16.csv", "price_eur_per_mwh", 1e-3),
    "de-carbon": ("de_carbon_intensity_2024-06-10_to_16.csv", "gco2eq_per_kwh_direct", 1.0),
    "gb": ("gb_carbon_intensity_2024-01-08_to_14.csv", "actual_gco2_per_kwh", 1.0),
    "gb-forecast": (
        "gb_carbon_intensity_2024-01-08_to_14.csv",
        "forecast_made_about_24h_before_gco2_per_kwh",
        1.0,
    ),
}


def week(name: str) -> Floats:
    """The 168 hourly values of a file, per kWh."""
    file, column, factor = FILES[name]
    path = Path(os.environ.get("DOWNCLOCK_DATA", "../shared/data"), "prices", file)
    if not path.exists():
        raise SystemExit(f"skipped: no {path}; name the folder of the data in DOWNCLOCK_DATA")
    with path.open(encoding="utf-8") as rows:
        return factor * np.array([float(row[column]) for row in csv.DictReader(rows)])


def from_day(values: Floats, day: int) -> Curve:
    """The week from one of its days on; what lies before that day follows at the end."""
    turned = np.roll(values, -24 * day)
    return Curve(np.arange(turned.size) * HOUR_S, turned, turned.size * HOUR_S)


def a_day(seed: int, size: int, zone: ZonePrices) -> Problem:
    cluster = mei.Cluster(per_server=size)
    prices = Prices((("default", zone),))
    return replace(mei.online(seed, cluster=cluster), prices=prices)


def billed(problem: Problem, spec: str) -> tuple[Bill, float]:
    """Plan, verify, and return the bill and the CPU seconds."""
    schedule, seconds = verified(problem, spec, whole=True)
    return account(problem, schedule), seconds


def saved(more: float, less: float) -> float:
    return 100.0 * (1.0 - less / more)


def money(seed: int, sizes: tuple[int, ...], days: tuple[int, ...]) -> None:
    """Cost by day and server size; negative prices count 0 but in the last two columns."""
    prices = week("de")
    print("DE-LU June 2024: EUR, negative prices counted as 0; saved % against late")
    print("l  day seed  " + "  ".join(f"{way:>16s}" for way in WAYS) + "  bound   gap % saved %"
          "  true late  true thrifty  s")  # fmt: skip
    for size in sizes:
        rows = []
        for day in days:
            problem = a_day(seed + day, size, ZonePrices(price=from_day(prices, day)))
            found = [billed(problem, way) for way in WAYS]
            cost = [float(bill.money_clipped or 0.0) for bill, _ in found]
            true = [float(bill.money or 0.0) for bill, _ in found]
            bound = float(price_bound(problem, Objective(cost=1.0)).sum())
            gap, gain = 100.0 * (cost[3] / bound - 1.0), saved(cost[2], cost[3])
            rows.append((*cost, bound, gap, gain, true[2], true[3], found[3][1]))
            cells = "  ".join(f"{value:16.3f}" for value in cost)
            print(
                f"{size:2d} {day:3d} {seed + day:5d}  {cells}  {bound:6.2f} {gap:6.2f} {gain:6.2f}"
                f"  {true[2]:9.3f}  {true[3]:12.3f}  {found[3][1]:.1f}",
                flush=True,
            )
        _means(size, np.array(rows))


def _means(size: int, rows: Floats) -> None:
    below = int(np.sum((rows[:, 3] < rows[:, 2]) & (rows[:, 8] < rows[:, 7])))
    race, fast, blind, ours = rows[:, :4].sum(axis=0)
    print(
        f"l={size}: below late on {below}/{len(rows)} (both bills); saved on average"
        f" {rows[:, 6].mean():.2f} %, least {rows[:, 6].min():.2f} %; of the sum: clocks alone"
        f" {saved(race, blind):.1f} %, prices alone {saved(race, fast):.1f} %, both"
        f" {saved(race, ours):.1f} %; gap to the bound {rows[:, 5].mean():.2f} %",
        flush=True,
    )


def carbon(seed: int, sizes: tuple[int, ...], days: tuple[int, ...]) -> None:
    """What a forecast costs: planned on it, on the truth, and blind; kg at the truth."""
    actual, forecast = week("gb"), week("gb-forecast")
    spec = "thrifty:objective=carbon"
    for size in sizes:
        rows = []
        for day in days:
            truth, guess = from_day(actual, day), from_day(forecast, day)
            known = a_day(seed + day, size, ZonePrices(carbon=truth))
            told = a_day(seed + day, size, ZonePrices(carbon=truth, carbon_forecast=guess))
            kg = [
                float(billed(problem, way)[0].carbon_kg or 0.0)
                for problem, way in ((known, spec), (told, spec), (known, "late"))
            ]
            rows.append((*kg, float(price_bound(known, Objective(carbon=1.0)).sum())))
            print(
                f"GB l={size} day {day} seed {seed + day}: truth {kg[0]:.2f} kg, forecast"
                f" {kg[1]:.2f} (+{100 * (kg[1] / kg[0] - 1):.2f} %), late {kg[2]:.2f}, bound"
                f" {rows[-1][3]:.2f}",
                flush=True,
            )
        table = np.array(rows)
        worse = 100.0 * (table[:, 1] / table[:, 0] - 1.0)
        gain, told_gain = (100.0 * (1.0 - table[:, k] / table[:, 2]) for k in (0, 1))
        print(
            f"GB l={size}: the forecast costs {worse.mean():.2f} % on average, worst"
            f" {worse.max():.2f} %; against late the truth saves {gain.mean():.2f} %, least"
            f" {gain.min():.2f} %, the forecast {told_gain.mean():.2f} %, least"
            f" {told_gain.min():.2f} %",
            flush=True,
        )


def german_carbon(seed: int, sizes: tuple[int, ...], days: tuple[int, ...]) -> None:
    """Carbon in Germany, known beforehand: kg of `thrifty` and of `late`."""
    values = week("de-carbon")
    for size in sizes:
        gains = []
        for day in days:
            problem = a_day(seed + day, size, ZonePrices(carbon=from_day(values, day)))
            ours, blind = (
                float(billed(problem, way)[0].carbon_kg or 0.0)
                for way in ("thrifty:objective=carbon", "late")
            )
            gains.append(saved(blind, ours))
            print(
                f"DE carbon l={size} day {day} seed {seed + day}: thrifty {ours:.2f} kg, late"
                f" {blind:.2f}, saved {gains[-1]:.2f} %",
                flush=True,
            )
        print(f"DE carbon l={size}: saves {np.mean(gains):.2f} %, least {min(gains):.2f} %")


def sites(seed: int, sizes: tuple[int, ...], days: tuple[int, ...]) -> None:
    """Half of the servers at each of two sites (DE and GB carbon curves), or all at one."""
    de, gb = week("de-carbon"), week("gb")
    spec, shares = "thrifty:objective=carbon", []
    for day in days:
        curves = (from_day(de, day), from_day(gb, day))
        base = mei.online(seed + day, cluster=mei.Cluster(per_server=sizes[-1]))
        kg = [_at_sites(base, pair, spec) for pair in (curves, curves[:1] * 2, curves[1:] * 2)]
        shares.append(saved(min(kg[1:]), kg[0]))
        print(
            f"sites day {day} seed {seed + day}: both {kg[0]:.2f} kg, DE only {kg[1]:.2f}, GB"
            f" only {kg[2]:.2f}; choosing saves {shares[-1]:.2f} % of the better one",
            flush=True,
        )
    print(f"sites: choosing saves {np.mean(shares):.2f} % on average, least {min(shares):.2f} %")


def _at_sites(base: Problem, curves: tuple[Curve, ...], spec: str) -> float:
    only = base.platform.specs[0]
    half = replace(only, count=only.count // 2)
    servers = (replace(half, name="a", zone="a"), replace(half, name="b", zone="b"))
    zones = tuple((name, ZonePrices(carbon=c)) for name, c in zip("ab", curves, strict=True))
    platform = Platform.build(base.platform.kinds, servers)
    problem = replace(base, platform=platform, prices=Prices(zones))
    return float(billed(problem, spec)[0].carbon_kg or 0.0)


def swings(seed: int, sizes: tuple[int, ...], days: tuple[int, ...]) -> None:
    """Prices that swing by a fifth and by a half over the day, beside the price-aware bound."""
    for size in sizes:
        for swing in (0.2, 0.5):
            gaps = []
            for day in days:
                problem = a_day(seed + day, size, ZonePrices(price=swinging(swing, 6.0)))
                bound = float(price_bound(problem, Objective(cost=1.0)).sum())
                cost = [float(billed(problem, way)[0].money or 0.0) for way in WAYS[2:]]
                gaps.append([100.0 * (each / bound - 1.0) for each in cost])
            blind, ours = np.mean(gaps, axis=0)
            print(
                f"swing {100 * swing:.0f} % l={size}: thrifty {ours:.2f} % above the bound, late"
                f" {blind:.2f} %, on average of {len(gaps)} days",
                flush=True,
            )


def swinging(swing: float, dearest_h: float) -> Curve:
    """Four days of hourly prices around 0.1."""
    hour = np.arange(96)
    price = 0.1 * (1.0 + swing * np.cos((hour + 0.5 - dearest_h) * np.pi / 12.0))
    return Curve(hour * HOUR_S, price, hour.size * HOUR_S)


def forty(seed: int, _: tuple[int, ...], __: tuple[int, ...]) -> None:
    """40 days of 1,023 tasks: half at real prices, half with little room; beside late."""
    prices, lost, worse = week("de"), 0, []
    for i in range(40):
        rng = np.random.default_rng([seed + i, 40])
        curve = swinging(rng.uniform(0.0, 0.6), rng.uniform(0.0, 24.0))
        zone = ZonePrices(price=from_day(prices, i % 7) if i % 2 else curve)
        size = (1, 2, 4, 8, 16)[i % 5]
        pairs = 512 if i % 4 < 2 else int(rng.choice([96, 112, 128, 160, 192, 256]))
        cluster = mei.Cluster(pairs=pairs, per_server=size)
        drawn = mei.online(seed + i, utilisation=0.4, initial_utilisation=0.1, cluster=cluster)
        problem = replace(drawn, prices=Prices((("default", zone),)))
        done, cost = zip(*(_done(problem, way) for way in WAYS[2:]), strict=True)
        dropped = int(np.sum(done[0] & ~done[1]))
        lost += dropped
        worse.append(100.0 * (cost[1] / cost[0] - 1.0) if np.array_equal(*done) else np.nan)
        print(
            f"day {i} l={size} pairs {pairs}: thrifty {worse[-1]:+.2f} % beside late, done"
            f" {done[1].sum()} and {done[0].sum()}, dropped {dropped}",
            flush=True,
        )
    print(
        f"forty: {lost} jobs that late keeps dropped; most above late {np.nanmax(worse):.2f} % of"
        f" {np.sum(np.isfinite(worse))} days with the same jobs, mean {np.nanmean(worse):.2f} %"
    )


def _done(problem: Problem, spec: str) -> tuple[Bools, float]:
    """Which tasks are done, and what it costs."""
    schedule, _ = verified(problem, spec)
    bill = account(problem, schedule)
    return np.asarray(schedule.outcomes.status == DONE), float(bill.money_clipped or 0.0)


def speed(seed: int, sizes: tuple[int, ...], _: tuple[int, ...]) -> None:
    """Growth: CPU seconds for a half, one and two days of arrivals, compiling not counted."""
    prices = np.tile(week("de"), 2)
    curve = Curve(np.arange(prices.size) * HOUR_S, prices, prices.size * HOUR_S)
    zone = Prices((("default", ZonePrices(price=curve)),))
    for days, part in ((1, 0.5), (1, 0.5), (1, 1.0), (2, 1.0), (4, 1.0)):
        cluster = mei.Cluster(per_server=sizes[-1])
        drawn = mei.online(
            seed, days=days, utilisation=1.6 * part, initial_utilisation=0.4 * part, cluster=cluster
        )
        seconds = billed(replace(drawn, prices=zone), "thrifty")[1]
        print(
            f"{len(drawn.tasks)} tasks, {days} day(s), l={sizes[-1]}: {seconds:.1f} s", flush=True
        )


PARTS: dict[str, Callable[[int, tuple[int, ...], tuple[int, ...]], None]] = {
    "money": money,
    "carbon": carbon,
    "de-carbon": german_carbon,
    "sites": sites,
    "swings": swings,
    "forty": forty,
    "speed": speed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), choices=[*PARTS, []])
    parser.add_argument("--seed", type=int, default=900, help="of the first day")
    parser.add_argument("--sizes", default="1,4,16", help="GPUs a server")
    parser.add_argument("--days", default="0,1,2,3,4,5,6", help="of the week")
    given = parser.parse_args()
    sizes, days = (tuple(map(int, each.split(","))) for each in (given.sizes, given.days))
    for name in given.parts:
        PARTS[name](given.seed, sizes, days)


if __name__ == "__main__":
    main()
