"""The page of a sweep: means by setting, the least energy, and what to do next."""

from __future__ import annotations

from downclock.report.devices import sweep_page


def runs(knob: str, *measured: tuple[float, float]) -> list[dict[str, str]]:
    """Rows of (setting, seconds), each run at 100 W."""
    return [
        {
            **{"application": "x", knob: f"{setting:g}"},
            **{"time_s": f"{time_s}", "power_w": "100", "energy_j": f"{100 * time_s}"},
        }
        for setting, time_s in measured
    ]


def test_a_sweep_of_clocks_names_the_best_and_the_command_that_fits() -> None:
    page = sweep_page(runs("core_mhz", (1000, 10.0), (1000, 10.4), (500, 15.0)), "runs.csv")
    assert page.lines == ("x: 3 runs; least energy at 1000 MHz",)
    assert page.notes == (
        "next: downclock fit runs.csv --kind NAME --default-core-mhz 1000 -o library.json",
    )
    first, second = page.records
    assert (first["core_mhz"], first["runs"], first["time_s"]) == (1000.0, 2, 10.2)
    assert (second["core_mhz"], second["runs"], second["energy_j"]) == (500.0, 1, 1500.0)


def test_runs_that_differ_or_are_short_are_noted_first() -> None:
    page = sweep_page(runs("power_limit_w", (200, 1.0), (200, 1.2), (100, 1.5)), "runs.csv")
    assert page.lines == ("x: 3 runs; least energy at 200 W",)
    assert page.notes[0].startswith("runs at one setting differ by 20.0 % in time: ")
    assert page.notes[1] == "runs under 2 s are measured coarsely: give them more work"
    assert page.notes[2] == "next: downclock fit runs.csv --kind NAME -o library.json"
