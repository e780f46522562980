"""Measurement files: any layout by naming its columns; what is wrong is named with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.power.measurements import read_measurements

HEADER = "application,core_mhz,memory_mhz,time_s,power_w\n"


def written(folder: Path, text: str, name: str = "m.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_our_own_layout(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + "x,1800,5000,1.5,200\ny,900,4000,3,100\n")
    runs = read_measurements(path)
    assert runs.application.tolist() == ["x", "y"]
    assert runs.core_mhz.tolist() == [1800.0, 900.0]
    assert runs.memory_mhz.tolist() == [5000.0, 4000.0]
    assert runs.time_s.tolist() == [1.5, 3.0]
    assert runs.power_w.tolist() == [200.0, 100.0]


def test_milliseconds_and_no_memory_clock(tmp_path: Path) -> None:
    path = written(tmp_path, "application,core_mhz,time_ms,power_w\nx,1800,1500,200\n")
    runs = read_measurements(path)
    assert runs.time_s.tolist() == [1.5]
    assert np.isnan(runs.memory_mhz).all()


def test_foreign_columns_are_mapped(tmp_path: Path) -> None:
    path = written(tmp_path, ",appName,coreF,memF,time/ms,power/W\n0,x,1800,5000,1500,200\n")
    columns = {
        "application": "appName",
        "core_mhz": "coreF",
        "memory_mhz": "memF",
        "time_ms": "time/ms",
        "power_w": "power/W",
    }
    runs = read_measurements(path, columns)
    assert (runs.time_s[0], runs.power_w[0], runs.memory_mhz[0]) == (1.5, 200.0, 5000.0)


def test_an_application_may_be_told_by_several_columns(tmp_path: Path) -> None:
    path = written(tmp_path, "bench,arg,core_mhz,time_s,power_w\nx,1,900,1,50\nx,2,900,1,50\n")
    runs = read_measurements(path, {"application": "bench+arg"})
    assert runs.application.tolist() == ["x/1", "x/2"]
    with pytest.raises(InvalidInput, match="no column 'size'"):
        read_measurements(path, {"application": "bench+size"})


def test_power_limits_stand_where_clocks_would(tmp_path: Path) -> None:
    path = written(tmp_path, "application,power_limit_w,time_s,power_w\nx,100,2,99\n")
    runs = read_measurements(path)
    assert runs.power_limit_w.tolist() == [100.0]  # type: ignore[union-attr]
    assert np.isnan(runs.core_mhz).all()


@pytest.mark.parametrize(
    ("header", "columns", "expected"),
    [
        (
            "application,power_limit,time_s,power_w",
            {"core_mhz": "power_limit"},
            "column 'power_limit': is a power limit by its name, not a clock:"
            " write power_limit_w=power_limit",
        ),
        (
            "application,power_limit,time_s,power_w",
            {},
            "has no column of clocks; for power limits write power_limit_w=power_limit",
        ),
        (
            "application,power_limit_w,core_mhz,power_w,time_s",
            {},
            "column 'power_limit_w': cannot be fitted together with the clocks of column"
            " 'core_mhz'",
        ),
    ],
)
def test_a_power_limit_is_never_taken_for_a_clock(
    tmp_path: Path, header: str, columns: dict[str, str], expected: str
) -> None:
    path = written(tmp_path, f"{header}\nx" + ",100" * header.count(",") + "\n")
    with pytest.raises(InvalidInput) as caught:
        read_measurements(path, columns)
    assert str(caught.value).endswith(expected)


def test_several_files_are_one_set_that_remembers_its_files(tmp_path: Path) -> None:
    first = written(tmp_path, HEADER + "x,1800,5000,1.5,200\n", "a.csv")
    second = written(tmp_path, HEADER + "x,900,5000,3,100\ny,900,5000,3,100\n", "b.csv")
    runs = read_measurements([first, second])
    assert len(runs) == 3
    assert runs.source_of(np.array([2])) == str(second)
    assert runs.source_of(np.array([0, 1])) == f"{first}, {second}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEADER, ": holds no measurement, only a header"),
        (
            HEADER + "x,1800,5000,1.5,200\nx,900,5000,0,200\n",
            " line 3, application 'x': time_s=0.0 must be positive and finite",
        ),
        (
            HEADER + "x,1800,5000,1.5,-2\n",
            " line 2, application 'x': power_w=-2.0 must be positive and finite",
        ),
        (HEADER + "x,1800,5000,nan,2\n", " line 2: time_s='nan' must be a number"),
        (HEADER + "x,fast,5000,1,2\n", " line 2: core_mhz='fast' must be a number"),
        (
            HEADER + "x,1800,inf,1,2\n",
            " line 2, application 'x': memory_mhz=inf must be positive and finite",
        ),
        (HEADER + ",1800,5000,1,2\n", " line 2: application is empty"),
        (
            "application,core_mhz,power_w\nx,1,2\n",
            ": no column 'time_s'; there are: application, core_mhz, power_w",
        ),
    ],
)
def test_bad_rows_are_refused_with_file_line_and_field(
    tmp_path: Path, text: str, expected: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidInput) as caught:
        read_measurements(path)
    assert str(caught.value) == f"{path}{expected}"


def test_a_mapped_column_must_be_there(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + "x,1800,5000,1.5,200\n")
    with pytest.raises(InvalidInput, match="no column 'memF'; there are: application"):
        read_measurements(path, {"memory_mhz": "memF"})
    with pytest.raises(InvalidInput, match="column mapping 'clock': is not a measured field"):
        read_measurements(path, {"clock": "core_mhz"})
    with pytest.raises(InvalidInput, match="give time_s or time_ms, not both"):
        read_measurements(path, {"time_s": "time_s", "time_ms": "time_s"})
    with pytest.raises(InvalidInput, match="no measurements file given"):
        read_measurements([])
