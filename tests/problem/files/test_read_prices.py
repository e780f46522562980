"""Prices from files: units, calendars, gaps, zones, and how bad files are refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.power.library import Library
from downclock.power.points import ClockRange
from downclock.power.profiles import CpuProfiles
from downclock.problem.files.files import load_problem
from downclock.problem.files.read_prices import read_prices
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.price import Curve, Prices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import ON, Outcomes, PowerSpans, Schedule, Segments

EPOCH = datetime(2024, 6, 10, tzinfo=UTC)


def written(folder: Path, text: str, name: str = "prices.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read(folder: Path, text: str, **options: object) -> Prices:
    return read_prices(written(folder, text), **options)  # type: ignore[arg-type]


def refusal(folder: Path, text: str, **options: object) -> str:
    with pytest.raises(InvalidInput) as caught:
        read(folder, text, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(folder) + "/", "")


def price(prices: Prices, zone: str = "default") -> Curve:
    curve = prices.of(zone).price
    assert curve is not None
    return curve


def test_a_table_of_seconds(tmp_path: Path) -> None:
    text = "time_s,price_per_kwh\n0,0.3\n3600,-0.05\n7200,0.2\n"
    curve = price(read(tmp_path, text))
    assert curve.start_s.tolist() == [0.0, 3600.0, 7200.0]
    assert curve.value.tolist() == [0.3, -0.05, 0.2]
    assert curve.end_s == 10800.0


def test_units_and_currency_are_in_the_name(tmp_path: Path) -> None:
    """1 EUR/MWh is 0.001 EUR/kWh; 1 kg/MWh is 1 g/kWh."""
    text = (
        "time_s,price_usd_per_mwh,price_usd_per_mwh_forecast,carbon_kg_per_mwh,"
        "carbon_g_per_kwh_forecast\n0,50,60,400,380\n"
    )
    prices = read(tmp_path, text)
    zone = prices.of("default")
    assert prices.currency == "USD"
    assert zone.price is not None
    assert zone.price_forecast is not None
    assert zone.carbon is not None
    assert zone.carbon_forecast is not None
    assert zone.price.value.tolist() == [pytest.approx(0.05)]
    assert zone.price_forecast.value.tolist() == [pytest.approx(0.06)]
    assert zone.carbon.value.tolist() == [pytest.approx(400.0)]
    assert zone.carbon_forecast.value.tolist() == [380.0]


def test_a_single_row_holds_for_ever(tmp_path: Path) -> None:
    assert price(read(tmp_path, "time_s,price_per_kwh\n0,0.3\n")).end_s == np.inf


def test_an_end_may_be_given(tmp_path: Path) -> None:
    curve = price(read(tmp_path, "time_s,price_per_kwh\n0,1\n10,2\n", end_s=99.0))
    assert curve.end_s == 99.0


def test_irregular_steps_are_a_tariff(tmp_path: Path) -> None:
    """Night, day and evening: steps of 6, 14 and 4 h, then 6 h; the median of 6, 14, 4 is 6."""
    text = "time_s,price_per_kwh\n0,1\n21600,2\n72000,3\n86400,1\n"
    curve = price(read(tmp_path, text))
    assert curve.end_s == 86400.0 + 21600.0
    assert curve.at(50_000.0) == 2.0


def test_slots_have_a_length(tmp_path: Path) -> None:
    curve = price(read(tmp_path, "slot,price_per_kwh\n0,1\n1,2\n2,3\n", slot_s=900.0))
    assert curve.start_s.tolist() == [0.0, 900.0, 1800.0]
    assert curve.end_s == 2700.0


def test_stamps_with_offsets_count_from_the_epoch(tmp_path: Path) -> None:
    text = "timestamp,price_per_kwh\n2024-06-10T02:00+02:00,1\n2024-06-10T01:00Z,2\n"
    assert price(read(tmp_path, text, epoch=EPOCH)).start_s.tolist() == [0.0, 3600.0]


def test_a_local_day_of_25_hours(tmp_path: Path) -> None:
    """Berlin 27 October 2024: 02:00 comes at +02:00 and again at +01:00."""
    offsets = ["+02:00"] * 3 + ["+01:00"] * 22
    hours = [0, 1, 2, *range(2, 24)]
    rows = [f"2024-10-27T{h:02}:00{o},{k}" for k, (h, o) in enumerate(zip(hours, offsets))]  # noqa: B905
    text = "timestamp,price_per_kwh\n" + "\n".join(rows) + "\n"
    epoch = datetime(2024, 10, 27, tzinfo=ZoneInfo("Europe/Berlin"))
    curve = price(read(tmp_path, text, epoch=epoch))
    assert curve.start_s.tolist() == [3600.0 * k for k in range(25)]
    assert curve.end_s == 25 * 3600.0


def test_a_local_day_of_23_hours_has_no_gap(tmp_path: Path) -> None:
    """Berlin 31 March 2024 skips 02:00, without offsets."""
    hours = [h for h in range(24) if h != 2]
    text = "timestamp,price_per_kwh\n" + "".join(f"2024-03-31 {h:02}:00:00,1\n" for h in hours)
    berlin = ZoneInfo("Europe/Berlin")
    epoch = datetime(2024, 3, 31, tzinfo=berlin)
    curve = price(read(tmp_path, text, epoch=epoch, timezone=berlin))
    assert np.diff(curve.start_s).tolist() == [3600.0] * 22


def test_zones_are_told_apart(tmp_path: Path) -> None:
    text = "zone,time_s,price_per_kwh\nnorth,0,1\nsouth,0,5\nnorth,60,2\nsouth,30,6\n"
    prices = read(tmp_path, text)
    assert price(prices, "north").value.tolist() == [1.0, 2.0]
    assert price(prices, "south").end_s == 60.0


def test_a_file_without_zones_is_for_all_that_are_asked_for(tmp_path: Path) -> None:
    prices = read(tmp_path, "time_s,price_per_kwh\n0,1\n", zones=("a", "b"))
    assert [zone for zone, _ in prices.zones] == ["a", "b"]


def test_only_columns_that_differ_from_ours_need_a_name(tmp_path: Path) -> None:
    """As ``--columns`` says: a file with our name of the price and another of the time."""
    text = "when,price_eur_per_mwh,other\n2024-06-10 00:00,80,1\n2024-06-10 01:00,90,2\n"
    found = read(tmp_path, text, epoch=EPOCH, columns={"timestamp": "when"})
    assert (found.currency, list(price(found).value)) == ("EUR", [0.08, 0.09])


def test_columns_of_others_can_be_mapped(tmp_path: Path) -> None:
    text = "when,euros,other\n2024-06-10 00:00:00,50,x\n2024-06-10 01:00:00,60,y\n"
    columns = {"timestamp": "when", "price_eur_per_mwh": "euros"}
    curve = price(read(tmp_path, text, epoch=EPOCH, columns=columns))
    assert curve.value.tolist() == [pytest.approx(0.05), pytest.approx(0.06)]


def test_real_german_prices_are_read(shared_data: Path) -> None:
    """June 2024, a week of local hours, 20 of them negative (README of the data)."""
    path = shared_data / "prices" / "de_lu_dayahead_2024-06-10_to_16.csv"
    berlin = ZoneInfo("Europe/Berlin")
    prices = read_prices(
        path,
        epoch=datetime(2024, 6, 10, tzinfo=berlin),
        columns={"timestamp": "datetime_local", "price_eur_per_mwh": "price_eur_per_mwh"},
    )
    curve = price(prices)
    assert curve.value.size == 168
    assert int(np.sum(curve.value < 0.0)) == 20
    assert curve.end_s == 168 * 3600.0
    assert curve.value[0] == pytest.approx(0.07396)


HOURS = [f"{3600 * k},1\n" for k in range(12)]

BAD = {
    "NaN": ("time_s,price_per_kwh\n0,1\n60,nan\n", "line 3: price_per_kwh='nan' must be a number"),
    "infinite": ("time_s,price_per_kwh\n0,inf\n", "line 2: price_per_kwh=inf must be finite"),
    "empty value": ("time_s,price_per_kwh\n0,1\n60,\n", "line 3: price_per_kwh is empty"),
    "wrong type": ("time_s,price_per_kwh\n0,dear\n", "line 2: price_per_kwh='dear' must be a"),
    "too dear": (
        "time_s,price_eur_per_mwh\n0,1\n60,1e300\n",
        "line 3: price_eur_per_mwh='1e300' must be between -1e+09 and 1e+09",
    ),
    "too late": ("time_s,price_per_kwh\n0,1\n1e300,1\n", "line 3: time_s='1e300' must be between"),
    "given twice": (
        "time_s,price_per_kwh\n0,1\n60,2\n60,3\n",
        "line 4: time_s='60' is given twice (first on line 3)",
    ),
    "back in time": (
        "time_s,price_per_kwh\n0,1\n60,2\n30,3\n",
        "line 4: time_s='30' is before the row above",
    ),
    "missing rows": (
        "time_s,price_per_kwh\n" + "".join(HOURS[:5] + HOURS[7:]),
        "line 7: time_s='25200' is 10800 s after the row above, where steps are 3600 s:"
        " rows are missing. Add them, with the value before where it holds on (in Python,"
        " `read_prices(..., gaps='hold')` does that)",
    ),
    "missing slot": ("slot,price_per_kwh\n0,1\n1,2\n3,3\n", "line 4: slot='3' is 1800 s after"),
    "no values": ("time_s\n0\n", "line 1: has no column of values such as"),
    "no times": ("price_per_kwh\n1\n", "line 1: has no column of times; it must be one of"),
    "two times": (
        "slot,time_s,price_per_kwh\n0,0,1\n",
        "line 1, column 'time_s': cannot be given together with column 'slot'",
    ),
    "no rows": ("time_s,price_per_kwh\n", ": has no rows"),
    "unknown column": (
        "time_s,price_per_kwh,carbon_g_kwh\n0,1,2\n",
        "line 1, column 'carbon_g_kwh': is not a known column; did you mean 'carbon_g_per_kwh'?",
    ),
    "unknown unit": (
        "time_s,carbon_t_per_kwh\n0,1\n",
        "line 1, column 'carbon_t_per_kwh': needs g or kg as its unit",
    ),
    "value twice": (
        "time_s,price_per_kwh,price_eur_per_mwh\n0,1,1\n",
        "line 1, column 'price_eur_per_mwh': is a second curve beside column 'price_per_kwh'",
    ),
    "no date": (
        "timestamp,price_per_kwh\n2024-13-01,1\n",
        "line 2: timestamp='2024-13-01' must be an ISO 8601 date and time",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_a_bad_table_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    found = refusal(tmp_path, text, epoch=EPOCH, slot_s=900.0)
    assert found.startswith("prices.csv" + ("" if message[0] == ":" else " ") + message)


def test_the_hour_that_happens_twice_is_named(tmp_path: Path) -> None:
    text = "timestamp,price_per_kwh\n2024-10-27 01:00:00,1\n2024-10-27 02:00:00,1\n"
    message = refusal(tmp_path, text, epoch=EPOCH, timezone=ZoneInfo("Europe/Berlin"))
    assert message.startswith(
        "prices.csv line 3: timestamp='2024-10-27 02:00:00' happens twice in Europe/Berlin"
    )


def test_gaps_may_be_held(tmp_path: Path) -> None:
    text = "time_s,price_per_kwh\n" + "".join(HOURS[:5] + HOURS[7:])
    assert price(read(tmp_path, text, gaps="hold")).value.size == 10


def test_what_a_column_of_times_needs_is_named(tmp_path: Path) -> None:
    message = refusal(tmp_path, "timestamp,price_per_kwh\n2024-06-10T00:00Z,1\n")
    assert message == "prices.csv line 1, column 'timestamp': needs the problem's epoch"
    message = refusal(tmp_path, "slot,price_per_kwh\n0,1\n")
    assert message == "prices.csv line 1, column 'slot': needs the length of a slot (slot_s)"


CLUSTER = """\
applications = "builtin:gtx1080ti"

[[kind]]
name = "gtx1080ti"
interval = "wide"

[[server]]
name = "a"
zone = "north"
processors = [{ kind = "gtx1080ti" }]

[[server]]
name = "b"
zone = "south"
processors = [{ kind = "gtx1080ti" }]
"""


def cluster_with(folder: Path, prices: str) -> tuple[Path, Path]:
    written(folder, "application\ncfd\n", "jobs.csv")
    return written(folder, CLUSTER + prices, "cluster.toml"), folder / "jobs.csv"


def test_a_cluster_may_name_prices_per_zone(tmp_path: Path) -> None:
    written(tmp_path, "time_s,price_usd_per_kwh,price_usd_per_kwh_forecast\n0,1,2\n", "n.csv")
    written(tmp_path, "time_s,carbon_g_per_kwh\n0,300\n", "c.csv")
    text = '[prices.north]\nprice = "n.csv"\ncarbon = "c.csv"\n[prices.south]\nprice_per_kwh = 4\n'
    prices = load_problem(*cluster_with(tmp_path, text)).prices
    north, south = prices.of("north"), prices.of("south")
    assert prices.currency == "USD"
    assert north.price_forecast is not None
    assert north.carbon is not None
    assert price(prices, "north").value.tolist() == [1.0]
    assert north.price_forecast.value.tolist() == [2.0]
    assert north.carbon.value.tolist() == [300.0]
    assert price(prices, "south").at(1e9) == 4.0
    assert south.carbon is None


def test_a_price_file_may_serve_all_zones(tmp_path: Path) -> None:
    written(tmp_path, "time_s,price_per_kwh\n0,1\n")
    prices = load_problem(*cluster_with(tmp_path, '[prices]\nfile = "prices.csv"\n')).prices
    assert price(prices, "north").value.tolist() == price(prices, "south").value.tolist() == [1.0]


def test_a_zone_without_rows_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "zone,time_s,price_per_kwh\nnorth,0,1\nsuoth,0,1\n")
    with pytest.raises(InvalidInput, match=r"prices\.csv, zone 'south': has no rows; the file's"):
        load_problem(*cluster_with(tmp_path, ""), prices=path)


def test_a_price_file_without_the_wanted_curve_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "time_s,carbon_g_per_kwh\n0,1\n")
    files = cluster_with(tmp_path, '[prices.north]\nprice = "prices.csv"\n')
    with pytest.raises(InvalidInput, match=r"prices\.csv line 1: has no column of price values"):
        load_problem(*files)


def test_a_bill_beyond_the_prices_names_file_zone_and_the_whole_span(tmp_path: Path) -> None:
    """Idle power until 900 s counts too, not only the run until 500 s."""
    (tmp_path / "prices.csv").write_text("time_s,price_per_kwh\n0,0.3\n100,0.2\n")
    prices = read_prices(tmp_path / "prices.csv")
    kind = Kind("k", ClockRange(1.0, 1.0), idle_w=5.0)
    platform = Platform.build((kind,), (ServerSpec("s", (("k", 1),), initially_on=True),))
    library = Library.of_one_kind(["x"], "k", CpuProfiles(500.0, 1.0, 1.0, 0.0))
    tasks = Tasks.of(np.array([0]), deadline_s=np.array([1000.0]))
    problem = Problem(tasks, library, platform, prices=prices)
    segments = Segments.of(np.array([0]), np.array([0]), [0.0], [500.0], np.ones((1, 3)))
    spans = PowerSpans([0], [ON], [0.0], [900.0])
    with pytest.raises(
        InvalidInput,
        match=r"prices.csv, price curve of zone 'default': is known from 0 s to 200 s,"
        r" but 0 s to 900 s is needed",
    ):
        account(problem, Schedule(segments, spans, Outcomes.all_done(1)))


def test_without_an_epoch_times_may_count_from_the_first_row(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("timestamp,price_eur_per_mwh\n2024-06-10 00:00,80\n2024-06-10 01:00,40\n")
    curve = read_prices(path, epoch="first row").of("default").price
    assert curve is not None
    assert list(curve.start_s) == [0.0, 3600.0]
    assert curve.end_s == 7200.0


def test_carbon_intensity_is_not_negative(tmp_path: Path) -> None:
    message = refusal(tmp_path, "time_s,carbon_g_per_kwh\n0,100\n3600,-3\n")
    assert message.startswith("prices.csv line 3: carbon_g_per_kwh='-3' must not be negative")
