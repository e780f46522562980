"""Objectives and price files from the command line: what users type, see and are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from downclock.cli import main

LIBRARY = {
    "format": "downclock-library/1",
    "applications": [
        {
            "name": "work",
            "profiles": {
                "pe": {"model": "cpu", "time_s": 3600, "c1_w": 1000, "alpha": 2, "static_w": 0}
            },
        }
    ],
}
CLUSTER = """
applications = "library.json"
epoch = "2024-03-31T00:00+01:00"
timezone = "Europe/Berlin"
slot_s = 3600
[[kind]]
name = "pe"
core_mhz = [400, 800, 1200, 1600, 2000]
default_core_mhz = 2000
interrupt = "pause"
[[server]]
name = "machine"
zone = "DE"
processors = [{ kind = "pe", count = 2 }]
initially = "on"
"""
JOBS = """name,application,scale,deadline_s,after
extract,work,2,{0},
train,work,3,{0},extract
test,work,1,{0},extract
publish,work,1,{0},train;test
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in a folder with a cluster of slots and jobs due after so many hours."""
    monkeypatch.chdir(tmp_path)
    Path("library.json").write_text(json.dumps(LIBRARY))
    Path("cluster.toml").write_text(CLUSTER)

    def ran(verb: str, *options: str, hours: int = 20, prices: str = "") -> tuple[int, str, str]:
        Path("jobs.csv").write_text(JOBS.format(3600 * hours))
        given = ["--price", "prices.csv"] if prices else []
        Path("prices.csv").write_text(prices)
        code = main([verb, "cluster.toml", "jobs.csv", *given, *options])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return ran


def hourly(values: list[float], carbon: list[float] | None = None) -> str:
    carbon = carbon or [100.0] * len(values)
    rows = [f"{k},{v},{c}" for k, (v, c) in enumerate(zip(values, carbon, strict=True))]
    return "\n".join(["slot,price_eur_per_mwh,carbon_g_per_kwh", *rows]) + "\n"


CHEAP_LATE = hourly([80.0] * 10 + [20.0] * 10, [100.0] * 10 + [400.0] * 10)


def test_each_objective_is_least_in_its_own_plan(run: Run) -> None:
    found = {}
    for objective in ("cost", "carbon", "energy", "0.7cost+0.3carbon"):
        code, out, err = run(
            "plan", "--objective", objective, "--format", "json", prices=CHEAP_LATE
        )
        assert code == 0, err
        found[objective] = json.loads(out)["plan"]
    bills = {name: plan["bill"] for name, plan in found.items()}
    for own, part in (("cost", "money"), ("carbon", "carbon_kg"), ("energy", "total_j")):
        least = min(bill[part] for bill in bills.values())
        assert bills[own][part] == pytest.approx(least, rel=1e-9)
    mixed = found["0.7cost+0.3carbon"]
    value = 0.7 * mixed["bill"]["money"] + 0.3 * mixed["bill"]["carbon_kg"]
    assert mixed["objective_value"] == pytest.approx(value, rel=1e-9)
    for plan in found.values():
        assert plan["objective_bound"] <= plan["objective_value"] * (1.0 + 1e-6)
        assert plan["objective_gap"] < 0.01


def test_bound_and_gap_are_in_the_unit_of_the_objective(run: Run) -> None:
    for objective, unit in (("cost", "EUR"), ("carbon", "g"), ("energy", "MJ")):
        _, out, _ = run("plan", "--objective", objective, prices=CHEAP_LATE)
        line = next(line for line in out.splitlines() if line.startswith(" lower bound"))
        assert line.split()[3] == unit


def test_prices_are_worth_knowing(run: Run) -> None:
    _, out, _ = run("plan", "--objective", "cost", "--format", "json", prices=CHEAP_LATE)
    blind = json.loads(out)["baselines"][0]
    assert blind["policy"] == "least-cost:objective=energy"
    assert blind["saved"] > 0.05  # which of the cheapest plans in energy it is compared with varies


def test_negative_prices_show_both_bills(run: Run) -> None:
    prices = hourly([30.0] * 6 + [-10.0] * 6 + [30.0] * 8)
    code, out, _ = run("plan", "--objective", "cost", prices=prices)
    assert code == 0
    assert " money " in out
    assert " money, negative prices as 0 " in out
    _, out, _ = run("plan", "--objective", "cost", "--format", "json", prices=prices)
    plan = json.loads(out)["plan"]
    assert plan["bill"]["money"] < 0.0 <= plan["objective_value"]
    assert plan["objective_value"] == pytest.approx(plan["bill"]["money_clipped"])


def test_the_report_shows_the_price_above_the_load(run: Run, tmp_path: Path) -> None:
    code, _, err = run("plan", "--objective", "cost", "--report", "page.html", prices=CHEAP_LATE)
    assert code == 0, err
    page = (tmp_path / "page.html").read_text()
    assert '<option value="price">' in page or "Price, EUR/kWh" in page or "price" in page
    assert "less than planning for the least energy" in page
    assert "--objective cost" in page


def test_compare_values_every_policy_by_the_objective(run: Run) -> None:
    code, out, _ = run(
        *("compare", "--objective", "carbon", "--policies", "least-cost,race"),
        *("--format", "json"),
        prices=CHEAP_LATE,
    )
    assert code == 0
    problem = json.loads(out)["problems"][0]
    assert [plan["policy"] for plan in problem["plans"]] == ["least-cost:objective=carbon"]
    assert problem["plans"][0]["objective_unit"] == "kg CO2"


def test_a_policy_that_asks_for_another_objective_is_refused(run: Run) -> None:
    given = ("--policy", "least-cost:objective=energy", "--objective", "cost")
    code, _, err = run("plan", *given, prices=CHEAP_LATE)
    assert code == 2
    assert "asks for another objective than 'cost'" in err


@pytest.mark.parametrize("text", ["speed", "cost+cost", "-1cost", ""])
def test_an_unknown_objective_is_one_line(run: Run, text: str) -> None:
    code, out, err = run("plan", "--objective", text, prices=CHEAP_LATE)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "objective" in err
    assert err.count("\n") == 1


def test_deadlines_that_cannot_hold_name_the_path(run: Run) -> None:
    code, out, err = run(
        "plan", "--objective", "cost", "--output", "s.json", hours=5, prices=CHEAP_LATE
    )
    assert (code, err.splitlines()[-1]) == (1, "error: all jobs are rejected")
    assert "task 'publish' cannot end by its deadline" in out
    reason = " ".join(json.loads(Path("s.json").read_text())["outcomes"][0]["reason"].split())
    assert reason.endswith("the path extract > train > publish needs 6 slots, and there are 5")


def test_a_short_curve_names_zone_file_and_span_and_only_where_it_matters(run: Run) -> None:
    short = hourly([50.0] * 12)
    code, _, err = run("plan", "--objective", "cost", prices=short)
    assert code == 2
    for part in ("zone 'DE'", "prices.csv", "72000 s", "43200 s"):
        assert part in err
    assert run("plan", "--objective", "cost", hours=12, prices=short)[0] == 0


def test_without_a_curve_the_objective_says_so(run: Run) -> None:
    code, _, err = run("plan", "--objective", "cost")
    assert code == 2
    assert "needs a price, and there is none (--prices FILE, or" in err


def test_a_night_of_23_hours_has_23_prices(run: Run) -> None:
    # On 2024-03-31 02:00 in Berlin does not exist; hours without an offset skip it.
    stamps = [f"2024-03-31T{hour:02d}:00" for hour in range(24) if hour != 2]
    rows = [f"{stamp},{10 * k}" for k, stamp in enumerate(stamps)]
    table = "\n".join(["timestamp,price_eur_per_mwh", *rows]) + "\n"
    assert run("plan", "--objective", "cost", hours=23, prices=table)[0] == 0
    code, _, err = run("plan", "--objective", "cost", hours=24, prices=table)
    assert code == 2
    assert "to 82800 s" in err
    missing = table.replace("2024-03-31T01:00", "2024-03-31T02:00")
    code, _, err = run("plan", "--objective", "cost", hours=12, prices=missing)
    assert code == 2
    assert "2024-03-31T02:00" in err


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda rows: [*rows[:5], "4,nan,100", *rows[6:]], "line 6"),
        (lambda rows: [*rows[:5], "4,,100", *rows[6:]], "line 6"),
        (lambda rows: [*rows[:5], *rows[6:]], "rows are missing"),
        (lambda rows: [*rows[:5], rows[4], *rows[5:]], "is given twice"),
    ],
)
def test_broken_rows_are_named_with_their_line(
    run: Run, spoil: Callable[[list[str]], list[str]], said: str
) -> None:
    rows = hourly([50.0] * 24).splitlines()
    code, out, err = run("plan", "--objective", "cost", prices="\n".join(spoil(rows)) + "\n")
    assert (code, out) == (2, "")
    assert "prices.csv line 6" in err
    assert said in err
    assert err.count("\n") == 1


LATER = """name,application,scale,arrival_s,deadline_s,after
extract,work,2,0,28800,
train,work,3,7200,57600,extract
report,work,1,36000,72000,
"""
DAY = "time_s,price_eur_per_kwh\n0,0.3\n36000,0.1\n54000,0.4\n86400,0.4\n"


def test_jobs_that_come_later_and_have_deadlines_of_their_own_are_planned(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """All are known to `plan`; simulated, each starts after it came and ends by its deadline."""
    run("plan", hours=20)
    Path("later.csv").write_text(LATER)
    Path("day.csv").write_text(DAY)
    given = ["cluster.toml", "later.csv", "--price", "day.csv"]
    assert main(["plan", *given, "-o", "plan.json"]) == 0
    assert "3 of 3" in capsys.readouterr().out
    assert main(["verify", "cluster.toml", "later.csv", "plan.json"]) == 0
    assert main(["simulate", *given, "--policy", "least-cost"]) == 0
    assert "3 of 3 tasks done" in capsys.readouterr().out


def test_power_of_sleeping_servers_in_slots_is_handed_over_in_words(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run("plan", hours=20)
    Path("cluster.toml").write_text(CLUSTER + "host_w = 30\nwake_j = 500\n")
    assert main(["plan", "cluster.toml", "jobs.csv"]) == 2
    assert "known plans by prices in continuous time (leave slot_s out)" in capsys.readouterr().err
