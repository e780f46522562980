"""Fitting finds the parameters that made the data, and says how good it is or why it cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downclock.errors import InvalidInput
from downclock.power.archetypes import SPEED
from downclock.power.fit import Fit, fit
from downclock.power.library_file import built_in_library
from downclock.power.measurements import Measurements, read_measurements
from downclock.power.points import FIXED_VOLTAGE, MEI_LAW, PROPORTIONAL_LAW, ClockTable, PowerLimits
from downclock.power.profiles import GpuProfiles, MeasuredProfiles
from downclock.tabular import read_csv

HKBU = {
    "application": "appName",
    "core_mhz": "coreF",
    "memory_mhz": "memF",
    "time_ms": "time/ms",
    "power_w": "power/W",
}
V100 = {
    "application": "benchmark+argNo",
    "core_mhz": "core_frequency",
    "memory_mhz": "memory_frequency",
    "time_ms": "time",
    "power_w": "average_power",
}
ZEUS = {
    "application": "dataset+network+batch_size+optimizer",
    "power_limit_w": "power_limit",
    "time_s": "time_per_epoch",
    "power_w": "average_power",
}
GRID_CORE, GRID_MEMORY = (g.ravel() for g in np.meshgrid([1600, 1700, 1800, 1900], [4000, 5000]))


def runs_of(
    parameters: list[float], core: np.ndarray, memory: np.ndarray, name: str = "x"
) -> Measurements:
    """Measure a perfect card: the model itself at 1800 / 5000 MHz defaults."""
    clocks = ClockTable(core, memory, 1800.0, 5000.0, MEI_LAW)
    profile = GpuProfiles(*np.array(parameters))
    time, power = profile.at(np.zeros(len(core), dtype=np.int64), clocks.points)
    return Measurements(np.full(len(core), name, dtype=object), core, memory, time, power)


def fit_1080ti(measurements: Measurements, **options: object) -> Fit:
    return fit(
        measurements,
        kind="gpu",
        default_core_mhz=1800.0,
        default_memory_mhz=5000.0,
        **options,  # type: ignore[arg-type]
    )


def parameters_of(fitted: Fit) -> list[float]:
    (profiles,) = fitted.library.groups
    assert isinstance(profiles, GpuProfiles)
    names = ("p0_w", "gamma_w", "c_w", "d_s", "delta", "t0_s")
    return [float(getattr(profiles, name)[0]) for name in names]


@settings(deadline=None)
@given(
    p0=st.floats(1.0, 300.0),
    gamma=st.floats(1.0, 200.0),
    c=st.floats(1.0, 300.0),
    d=st.floats(1e-4, 1e4),
    delta=st.floats(0.0, 1.0),
    t0=st.floats(0.0, 1.0),
    weighting=st.sampled_from(["even", "relative"]),
)
def test_exact_data_give_back_their_parameters(
    p0: float, gamma: float, c: float, d: float, delta: float, t0: float, weighting: str
) -> None:
    truth = [p0, gamma, c, d, delta, t0 * d]
    fitted = fit_1080ti(runs_of(truth, GRID_CORE, GRID_MEMORY), weighting=weighting)
    size = np.array([p0 + gamma + c] * 3 + [d, 1.0, d])
    assert np.all(np.abs(np.array(parameters_of(fitted)) - truth) <= 1e-7 * size)
    assert fitted.reports[0].model == "gpu"
    assert fitted.reports[0].points == 8
    assert fitted.reports[0].time_worst < 1e-9
    assert fitted.reports[0].power_worst < 1e-9


@settings(deadline=None)
@given(st.lists(st.floats(0.5, 2.0), min_size=16, max_size=16))
def test_whatever_is_measured_no_parameter_is_negative(noise: list[float]) -> None:
    exact = runs_of([60, 30, 100, 2, 0.5, 0.1], GRID_CORE, GRID_MEMORY)
    noisy = Measurements(
        exact.application,
        exact.core_mhz,
        exact.memory_mhz,
        exact.time_s * noise[:8],
        exact.power_w * noise[8:],
    )
    fitted = fit_1080ti(noisy, model="gpu")
    assert min(parameters_of(fitted)) >= 0.0
    report = fitted.reports[0]
    assert 0.0 <= report.time_mape <= report.time_worst
    assert 0.0 <= report.power_mape <= report.power_worst


def test_errors_are_those_of_the_library_at_the_measured_clocks() -> None:
    exact = runs_of([60, 30, 100, 2, 0.5, 0.1], GRID_CORE, GRID_MEMORY)
    wobble = np.array([1.0, 1.02, 0.99, 1.0, 1.01, 0.98, 1.0, 1.0])
    bent = Measurements(
        exact.application,
        exact.core_mhz,
        exact.memory_mhz,
        exact.time_s * wobble,
        exact.power_w * wobble[::-1],
    )
    fitted = fit_1080ti(bent)
    points = np.column_stack(
        [GRID_CORE / 1800, GRID_MEMORY / 5000, MEI_LAW.min_volt(GRID_CORE / 1800)]
    )
    time, power = fitted.library.at(np.zeros(8, dtype=np.int64), "gpu", points)
    report = fitted.reports[0]
    assert report.time_mape == pytest.approx(np.mean(np.abs(time / bent.time_s - 1)), rel=1e-9)
    assert report.power_worst == pytest.approx(np.max(np.abs(power / bent.power_w - 1)), rel=1e-9)


def test_a_fixed_memory_clock_gives_the_reduced_model() -> None:
    core = np.array([900.0, 1200.0, 1500.0, 1800.0])
    fitted = fit_1080ti(runs_of([60, 30, 100, 2, 0.75, 0.1], core, np.full(4, 5000.0)))
    # gamma (30 W) goes to p0; b = 2 x 0.25 s goes to t0; a = 2 x 0.75 s stays.
    assert parameters_of(fitted) == pytest.approx([90, 0, 100, 1.5, 1, 0.6], abs=1e-9)
    assert fitted.reports[0].model == "gpu-core-only"
    assert "memory clock fixed" in fitted.reports[0].note


def test_a_fixed_core_clock_gives_the_other_reduced_model() -> None:
    memory = np.array([3000.0, 4000.0, 5000.0])
    fitted = fit_1080ti(runs_of([60, 30, 100, 2, 0.75, 0.1], np.full(3, 1800.0), memory))
    assert parameters_of(fitted) == pytest.approx([160, 30, 0, 0.5, 0, 1.6], abs=1e-9)
    assert fitted.reports[0].model == "gpu-memory-only"
    assert "core clock fixed" in fitted.reports[0].note


def test_an_unrecorded_memory_clock_counts_as_the_default() -> None:
    core = np.array([900.0, 1350.0, 1800.0])
    known = runs_of([60, 0, 100, 2, 1, 0.1], core, np.full(3, 5000.0))
    unknown = Measurements(known.application, core, np.nan, known.time_s, known.power_w)
    fitted = fit(unknown, kind="gpu", default_core_mhz=1800.0)
    assert parameters_of(fitted) == pytest.approx([60, 0, 100, 2, 1, 0.1], abs=1e-9)
    assert fitted.clocks.points[:, 1].tolist() == [1.0, 1.0, 1.0]


def test_below_the_least_voltage_of_the_law_the_voltage_stays_there() -> None:
    # V(f) = 2f² - 2f + 1 is least at f = 0.5: no clock below needs more than V = 0.5.
    core = np.array([540.0, 900.0, 1350.0, 1800.0])
    volt = np.array([0.5, 0.5, 0.625, 1.0])
    power = 50.0 + 80.0 * volt**2 * core / 1800.0
    fitted = fit(
        Measurements(np.full(4, "x", dtype=object), core, np.nan, 1800.0 / core, power),
        kind="gpu",
        default_core_mhz=1800.0,
    )
    assert fitted.clocks.points[:, 2] == pytest.approx(volt)
    assert parameters_of(fitted) == pytest.approx([50, 0, 80, 1, 1, 0], abs=1e-9)


def test_another_law_may_be_given() -> None:
    core = np.array([900.0, 1350.0, 1800.0])
    flat = Measurements(
        np.full(3, "x", dtype=object), core, np.nan, 1800.0 / core, 50.0 + 80.0 * core / 1800.0
    )
    fitted = fit(flat, kind="gpu", default_core_mhz=1800.0, law=FIXED_VOLTAGE)
    assert parameters_of(fitted) == pytest.approx([50, 0, 80, 1, 1, 0], abs=1e-9)


def test_of_repeated_runs_the_median_counts_and_the_report_says_so() -> None:
    core = np.array([900.0, 1800.0, 1800.0])
    fitted = fit(
        Measurements(np.full(3, "x", dtype=object), core, np.nan, [2.0, 0.9, 1.1], [60, 90, 110]),
        kind="gpu",
        default_core_mhz=1800.0,
        model="table",
    )
    (table,) = fitted.library.groups
    assert isinstance(table, MeasuredProfiles)
    assert table.core.tolist() == [0.5, 1.0]
    assert table.time_s == pytest.approx([2.0, 1.0])
    assert table.power_w == pytest.approx([60.0, 100.0])
    assert fitted.reports[0].points == 2
    assert fitted.reports[0].note == "median of repeated runs at 1 clocks"


def test_a_run_that_others_disturbed_does_not_move_its_clock() -> None:
    """Of 1.00, 1.02 and 1.50 s at one clock and 2.0, 2.2 at the other: 1.02 and 2.1 s."""
    core = np.array([1800.0, 900.0, 1800.0, 1800.0, 900.0])
    times, powers = [1.5, 2.0, 1.0, 1.02, 2.2], [70.0, 60.0, 101.0, 100.0, 58.0]
    fitted = fit(
        Measurements(np.full(5, "x", dtype=object), core, np.nan, times, powers),
        kind="gpu",
        default_core_mhz=1800.0,
        model="table",
    )
    (table,) = fitted.library.groups
    assert isinstance(table, MeasuredProfiles)
    assert table.time_s == pytest.approx([2.1, 1.02])
    assert table.power_w == pytest.approx([59.0, 100.0])


def test_auto_keeps_the_table_where_the_model_is_far_off() -> None:
    core = np.array([900.0, 1200.0, 1500.0, 1800.0])
    good = runs_of([60, 0, 100, 2, 1, 0.1], core, np.full(4, 5000.0), "good")
    both = Measurements(
        np.array(["bad"] * 4 + ["good"] * 4, dtype=object),
        np.tile(core, 2),
        5000.0,
        np.concatenate([[1.0, 2.0, 1.0, 2.0], good.time_s]),
        np.concatenate([good.power_w, good.power_w]),
    )
    fitted = fit_1080ti(both)
    assert [report.model for report in fitted.reports] == ["table", "gpu-core-only"]
    assert fitted.reports[0].note == (
        "measured table kept: the model gpu-core-only is off by more than 10 % at more than one"
        " clock in ten"
    )
    time, _ = fitted.library.at(np.array([0, 0, 1]), "gpu", fitted.clocks.points[[0, 1, 3]])
    assert time == pytest.approx([1.0, 2.0, good.time_s[3]])
    forced = fit_1080ti(both, model="gpu")
    assert [report.model for report in forced.reports] == ["gpu-core-only"] * 2
    assert forced.reports[0].time_worst > 0.10
    lenient = fit_1080ti(both, table_above=2.0)
    assert [report.model for report in lenient.reports] == ["gpu-core-only"] * 2


@pytest.mark.parametrize(
    ("core", "memory", "rule"),
    [
        ([1800, 1800], [5000, 5000], "no clock varies, so nothing can be fitted"),
        ([1800, 900], [5000, 4000], "has 2 distinct clocks, the model has 3 parameters"),
        ([1800, 1620, 1440], [5000, 4500, 4000], "its clocks vary together"),
    ],
)
def test_what_cannot_be_fitted_is_refused_by_name(
    core: list[float], memory: list[float], rule: str
) -> None:
    runs = Measurements(
        np.full(len(core), "app", dtype=object), core, memory, 1.0, 100.0, sources=("m.csv",)
    )
    with pytest.raises(InvalidInput, match=rf"^m\.csv, application 'app': {rule}"):
        fit_1080ti(runs)


def test_a_varying_memory_clock_needs_its_default() -> None:
    runs = runs_of([60, 30, 100, 2, 0.5, 0.1], GRID_CORE, GRID_MEMORY)
    with pytest.raises(InvalidInput, match="default_memory_mhz is needed"):
        fit(runs, kind="gpu", default_core_mhz=1800.0)


@pytest.mark.parametrize("default", [1.8, 1.8e6])
def test_a_default_clock_in_another_unit_is_refused(default: float) -> None:
    runs = runs_of([60, 30, 100, 2, 0.5, 0.1], GRID_CORE, GRID_MEMORY)
    with pytest.raises(InvalidInput, match=r"is far from the measured clocks, 1600 to 1900 MHz"):
        fit(runs, kind="gpu", default_core_mhz=default, default_memory_mhz=5000.0)


def test_nothing_measured_is_refused() -> None:
    empty = np.zeros(0)
    with pytest.raises(InvalidInput, match="no measurement"):
        fit_1080ti(Measurements(empty.astype(object), empty, empty, empty, empty))


@pytest.mark.parametrize("value", [np.nan, 0.0, -1.0, np.inf])
def test_measurements_must_be_positive(value: float) -> None:
    with pytest.raises(InvalidInput, match=r"application 'x': power_w=.* must be positive"):
        Measurements(np.array(["x"], dtype=object), 1800.0, np.nan, 1.0, value)


def test_the_law_of_least_held_out_error_is_chosen_and_said() -> None:
    # The card's voltage is proportional to its clock, so power is 50 + 80 f³.
    core = np.array([900.0, 1100.0, 1300.0, 1500.0, 1800.0])
    power = 50.0 + 80.0 * (core / 1800.0) ** 3
    runs = Measurements(np.full(5, "x", dtype=object), core, np.nan, 1800.0 / core, power)
    fitted = fit(runs, kind="gpu", default_core_mhz=1800.0, law="auto")
    assert fitted.clocks.law == fitted.library.basis["gpu"].law == PROPORTIONAL_LAW
    assert fitted.notes[0].startswith("voltage law proportional: held-out power error 0.00 % (mei")
    assert fitted.reports[0].power_held_out < 1e-9
    guessed = fit(runs, kind="gpu", default_core_mhz=1800.0, model="gpu").reports[0]
    assert guessed.power_held_out > guessed.power_mape > 0.01
    two = fit(runs.take(core > 1300.0), kind="gpu", default_core_mhz=1800.0, law="auto")
    assert two.notes == ("voltage law mei: too few clocks to tell it from others",)
    assert np.isnan(two.reports[0].power_held_out)


def test_clocks_below_which_time_rises_faster_than_1_over_clock_are_left_out() -> None:
    core = np.array([400.0, 600.0, 800.0, 1000.0, 1200.0])
    time = 1200.0 / core
    time[:2] *= [1.8, 1.3]
    runs = Measurements(
        np.full(5, "x", dtype=object), core, np.nan, time, 50.0 + 50.0 * core / 1200
    )
    options = {"kind": "gpu", "default_core_mhz": 1200.0, "law": FIXED_VOLTAGE}
    fitted = fit(runs, **options)  # type: ignore[arg-type]
    assert fitted.notes == (
        "fitted over 800 to 1200 MHz: below, time rises faster than 1 / clock, which the model"
        " cannot follow (--clocks 400- fits all)",
    )
    assert fitted.reports[0].points == 3
    assert parameters_of(fitted) == pytest.approx([50, 0, 50, 1, 1, 0], abs=1e-9)
    assert fitted.library.basis["gpu"].core_mhz == (800.0, 1000.0, 1200.0)
    asked = fit(runs, clocks_mhz=(600.0, 1200.0), model="gpu", **options)  # type: ignore[arg-type]
    assert (asked.notes, asked.reports[0].points) == ((), 4)
    with pytest.raises(InvalidInput, match=r"clocks='2000-3000' holds none of the measured clocks"):
        fit(runs, clocks_mhz=(2000.0, 3000.0), **options)  # type: ignore[arg-type]


def test_power_limits_are_kept_as_measured_levels() -> None:
    runs = Measurements(
        np.full(3, "x", dtype=object),
        np.nan,
        np.nan,
        [2.0, 1.2, 1.0],
        [98.0, 148.0, 190.0],
        power_limit_w=[100.0, 150.0, 200.0],
    )
    fitted = fit(runs, kind="a40")
    assert isinstance(fitted.clocks, PowerLimits)
    assert fitted.clocks.points[:, 0].tolist() == [0.5, 0.75, 1.0]
    assert fitted.library.basis["a40"].default_power_limit_w == 200.0
    time, power = fitted.library.at(np.array([0]), "a40", fitted.clocks.points[[1]])
    assert (time[0], power[0]) == (1.2, 148.0)
    with pytest.raises(InvalidInput, match="model='gpu' is for clocks"):
        fit(runs, kind="a40", model="gpu")
    with pytest.raises(InvalidInput, match=r"is far from the measured limits, 100 to 200 W"):
        fit(runs, kind="a40", default_power_limit_w=200_000.0)


class TestPublicMeasurements:
    """Fits of public data; the expected figures are from an independent prototype."""

    def test_the_30_applications_of_the_1080_ti(self, shared_data: Path) -> None:
        fitted = fit_public_1080ti(shared_data)
        reports = fitted.reports
        assert [report.model for report in reports] == ["gpu"] * 30
        assert {report.points for report in reports} == {20}
        # Time 0.80 % (worst point 9.2 %), power 0.83 % (8.5 %).
        assert np.mean([r.time_mape for r in reports]) == pytest.approx(0.0080, abs=5e-5)
        assert np.mean([r.power_mape for r in reports]) == pytest.approx(0.0083, abs=5e-5)
        assert max(r.time_worst for r in reports) == pytest.approx(0.092, abs=5e-4)
        assert max(r.power_worst for r in reports) == pytest.approx(0.085, abs=5e-4)

    @pytest.mark.parametrize(
        ("name", "expected", "errors"),
        [
            ("BlackScholes", (54.7, 181.6, 5.2, 1.582, 0.000, 0.000), (0.64, 0.38)),
            ("binomialOptions", (118.4, 31.3, 20.6, 36.249, 1.000, 5.336), (0.39, 1.00)),
            ("cfd", (107.8, 38.4, 5.8, 0.119, 0.628, 0.014), (0.46, 0.78)),
            ("matrixMulShared", (149.3, 42.1, 23.3, 9.249, 0.972, 0.629), (0.48, 1.51)),
            ("quasirandomGenerator", (139.4, 94.0, 22.5, 1.416, 0.487, 0.181), (4.24, 2.68)),
            ("srad", (143.7, 97.8, 25.2, 3.229, 0.603, 0.274), (1.68, 1.25)),
        ],
    )
    def test_parameters_of_single_applications(
        self, shared_data: Path, name: str, expected: tuple[float, ...], errors: tuple[float, float]
    ) -> None:
        fitted = fit_public_1080ti(shared_data)
        (profiles,) = fitted.library.groups
        assert isinstance(profiles, GpuProfiles)
        row = fitted.library.names.tolist().index(name)
        watts = [getattr(profiles, field)[row] for field in ("p0_w", "gamma_w", "c_w")]
        assert watts == pytest.approx(expected[:3], abs=0.051)
        time_ms = [1000 * profiles.d_s[row], profiles.delta[row], 1000 * profiles.t0_s[row]]
        assert time_ms == pytest.approx(expected[3:], abs=0.00051)
        report = fitted.reports[row]
        assert 100 * report.time_mape == pytest.approx(errors[0], abs=0.0051)
        assert 100 * report.power_mape == pytest.approx(errors[1], abs=0.0051)

    def test_the_25_applications_of_the_a100(self, shared_data: Path) -> None:
        runs = public_a100(shared_data)
        fitted = fit(runs, kind="a100", default_core_mhz=1410.0)
        assert len(fitted.reports) == 25
        assert {report.points for report in fitted.reports} == {61}
        assert len(fitted.clocks.points) == 61
        assert {report.model for report in fitted.reports} == {"gpu-core-only", "table"}
        assert all(report.note for report in fitted.reports)
        assert fitted.notes == ()
        auto = fit(runs, kind="a100", default_core_mhz=1410.0, law="auto", weighting="relative")
        assert [report.model for report in auto.reports] == ["gpu-core-only"] * 25
        assert auto.clocks.law == PROPORTIONAL_LAW
        reduced = fit(runs, kind="a100", default_core_mhz=1410.0, model="gpu").reports
        assert {report.model for report in reduced} == {"gpu-core-only"}
        assert np.mean([report.time_mape for report in reduced]) < 0.02
        assert np.mean([report.power_mape for report in reduced]) < 0.03

    def test_the_20_applications_of_the_2070_super(self, shared_data: Path) -> None:
        path = shared_data / "dvfs" / "hkbu" / "gtx2070s-dvfs-real-Performance-Power.csv"
        fitted = fit(
            read_measurements(path, HKBU),
            kind="rtx2070s",
            default_core_mhz=1880.0,
            default_memory_mhz=6300.0,
            law="auto",
        )
        assert [report.model for report in fitted.reports] == ["gpu"] * 20
        assert fitted.notes == (
            "voltage law proportional: held-out power error 1.00 % (mei 1.07 %, fixed 1.13 %)",
        )
        for what, in_sample, left_out in (("time", 0.0075, 0.0084), ("power", 0.0075, 0.0100)):
            mean = np.mean([getattr(report, f"{what}_mape") for report in fitted.reports])
            held = np.mean([getattr(report, f"{what}_held_out") for report in fitted.reports])
            assert mean == pytest.approx(in_sample, abs=5e-5)
            assert held == pytest.approx(left_out, abs=5e-5)

    @pytest.mark.parametrize(
        ("file", "fitted", "of"), [("real", 20, 20), ("microbenchmark", 137, 138)]
    )
    def test_the_v100_where_time_rises_no_faster_than_1_over_clock(
        self, shared_data: Path, file: str, fitted: int, of: int
    ) -> None:
        runs = read_measurements(shared_data / "dvfs" / "v100" / f"v100-dvfs-{file}.csv", V100)
        found = fit(runs, kind="v100", default_core_mhz=1380.0, law="auto")
        assert len(found.reports) == of
        assert sum(report.model == "gpu-core-only" for report in found.reports) == fitted
        assert np.unique(found.clocks.core_mhz).tolist() == [802, 945, 1087, 1102, 1237, 1380]
        assert found.library.basis["v100"].core_mhz == (802, 945, 1087, 1102, 1237, 1380)
        assert found.notes[0].startswith("fitted over 802 to 1380 MHz: below, time rises faster")
        assert found.notes[1].startswith("voltage law proportional")
        whole = fit(runs, kind="v100", default_core_mhz=1380.0, clocks_mhz=(0.0, np.inf))
        assert all(report.model == "table" for report in whole.reports[:20])
        assert {report.points for report in whole.reports} == {10}

    @pytest.mark.parametrize(("card", "applications", "limits"), [("v100", 68, 7), ("a40", 53, 9)])
    def test_zeus_tables_are_kept_as_levels_of_the_power_limit(
        self, shared_data: Path, card: str, applications: int, limits: int
    ) -> None:
        runs = read_measurements(shared_data / "dvfs" / "zeus" / f"summary_power_{card}.csv", ZEUS)
        found = fit(runs, kind=card)
        assert isinstance(found.clocks, PowerLimits)
        assert len(found.library) == applications
        assert len(found.clocks.limit_w) == limits
        assert {report.model for report in found.reports} == {"table"}


def fit_public_1080ti(shared_data: Path) -> Fit:
    path = shared_data / "dvfs" / "hkbu" / "gtx1080ti-dvfs-real-Performance-Power.csv"
    return fit_1080ti(read_measurements(path, HKBU))


def public_a100(shared_data: Path) -> Measurements:
    paths = sorted((shared_data / "dvfs" / "a100").glob("GA100-dvfs-*-dcgm.csv"))
    columns = {"core_mhz": "sm_app_clock", "time_s": "run_time", "power_w": "power_usage"}
    return read_measurements(paths, columns)


def public(shared_data: Path, card: str) -> Fit:
    """Fit a card the way its built-in library was."""
    if card == "gtx1080ti":
        return fit_public_1080ti(shared_data)
    if card == "a100":
        runs = public_a100(shared_data)
        return fit(runs, kind=card, default_core_mhz=1410.0, model="gpu", weighting="relative")
    if card == "rtx2070s":
        path = shared_data / "dvfs" / "hkbu" / "gtx2070s-dvfs-real-Performance-Power.csv"
        clocks = {"default_core_mhz": 1880.0, "default_memory_mhz": 6300.0}
        runs = read_measurements(path, HKBU)
    else:
        path = shared_data / "dvfs" / "v100" / "v100-dvfs-real.csv"
        clocks, runs = {"default_core_mhz": 1380.0}, read_measurements(path, V100 | PLAIN)
    return fit(runs, kind=card, law="auto", weighting="relative", **clocks)


PLAIN = {"application": "benchmark"}


@pytest.mark.parametrize(
    ("card", "digits"), [("gtx1080ti", 1e-9), ("a100", 1e-9), ("rtx2070s", 1e-4), ("v100", 1e-4)]
)
def test_a_built_in_library_is_its_public_fit(shared_data: Path, card: str, digits: float) -> None:
    found, shipped = public(shared_data, card), built_in_library(card)
    assert found.library.names.tolist() == shipped.names.tolist()
    assert [*found.library.basis.values()] == [shipped.basis[card]]
    for field in ("p0_w", "gamma_w", "c_w", "d_s", "delta", "t0_s"):
        ours, theirs = getattr(found.library.groups[0], field), getattr(shipped.groups[0], field)
        assert ours == pytest.approx(theirs, rel=digits, abs=1e-12)
    for what in ("time", "power"):
        reports = [
            (f"{what}_mape", np.mean),
            (f"{what}_worst", np.max),
            (f"{what}_held_out", np.mean),
        ]
        mean, worst, held = (
            f"{100 * how([getattr(r, field) for r in found.reports]):.2g} %"
            for field, how in reports
        )
        assert f"{what} {mean} ({worst}; {held})" in shipped.source


def test_speeds_of_cards_are_those_of_shared_applications(shared_data: Path) -> None:
    """Medians over applications that two measurements share, by their class on the 1080 Ti."""
    old = built_in_library("gtx1080ti")
    gpu = old.groups[0]
    assert isinstance(gpu, GpuProfiles)
    whole_s = gpu.d_s + gpu.t0_s
    core = dict(zip(old.names, gpu.d_s * gpu.delta / whole_s, strict=True))
    took = dict(zip(old.names, whole_s, strict=True))
    for card in ("rtx2070s", "v100"):
        new = built_in_library(card)
        names = [
            {"matrixMulG": "matrixMulGlobal", "matrixMulS": "matrixMulShared"}.get(n, n)
            for n in new.names
        ]
        time_s, _ = new.at(np.arange(len(new)), card, np.ones((len(new), 3)))
        ratio = {n: took[n] / t for n, t in zip(names, time_s, strict=True) if n in took}
        for name, inside in (
            ("compute-bound", lambda c: c >= 2 / 3),
            ("memory-bound", lambda c: c < 1 / 3),
        ):
            found = np.median([r for n, r in ratio.items() if inside(core[n])])
            assert found == pytest.approx(SPEED[card][name], rel=0.03)
    rates = {}
    for what, column in (("dgemm", "flops"), ("stream", "bandwidth")):
        for chip in ("GA100", "GV100"):
            table = read_csv(shared_data / "dvfs" / "a100" / f"{chip}-dvfs-{what}-perf.csv")
            rates[what, chip] = table.floats(column)[-1]
    for what, name in (("dgemm", "compute-bound"), ("stream", "memory-bound")):
        ratio = rates[what, "GA100"] / rates[what, "GV100"]
        assert SPEED["a100"][name] / SPEED["v100"][name] == pytest.approx(ratio, rel=0.02)
    for card, speed in SPEED.items():
        half = 2 / (1 / speed["compute-bound"] + 1 / speed["memory-bound"])
        assert speed["mixed"] == pytest.approx(half, rel=0.01), card
