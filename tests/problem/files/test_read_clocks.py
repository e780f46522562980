"""Clocks take their voltage law from the library, or the file is refused; never a guess."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.power.fit import fit
from downclock.power.library_file import built_in_library, read_library, write_library
from downclock.power.measurements import Measurements
from downclock.power.points import LAWS, MEI_LAW, ClockRange, Clocks, ClockTable, PowerLimits
from downclock.power.profiles import GpuProfiles
from downclock.problem.files.files import load_problem
from downclock.problem.files.read_cluster import read_cluster
from downclock.problem.files.read_problem import read_problem
from downclock.problem.files.write_problem import write_problem

GPU = {"model": "gpu", "p0_w": 60, "gamma_w": 0, "c_w": 100, "d_s": 4, "delta": 1, "t0_s": 0}
CPU = {"model": "cpu", "time_s": 9.0, "c1_w": 20, "alpha": 3, "static_w": 5}
TABLE = {"model": "table", "points": [{"core": 1, "memory": 1, "time_s": 2, "power_w": 250}]}
MHZ = "core_mhz = [500, 1000]\ndefault_core_mhz = 1000"


def library(folder: Path, profile: dict[str, Any], **basis: Any) -> None:
    """Write library.json with one application on kind ``k``."""
    document: dict[str, Any] = {
        "format": "downclock-library/1",
        "applications": [{"name": "x", "profiles": {"k": profile}}],
    }
    if basis:
        document["kinds"] = {"k": basis}
    (folder / "library.json").write_text(json.dumps(document))


def cluster(folder: Path, clocks: str) -> Path:
    path = folder / "cluster.toml"
    path.write_text(
        f'applications = "library.json"\n[[kind]]\nname = "k"\n{clocks}\n'
        '[[server]]\nname = "s"\nprocessors = [{ kind = "k" }]\n'
    )
    return path


def clocks_of(folder: Path, clocks: str) -> Any:
    return read_cluster(cluster(folder, clocks)).platform.kinds[0].clocks


@pytest.mark.parametrize("law", LAWS)
def test_enumerated_clocks_take_the_librarys_law(tmp_path: Path, law: str) -> None:
    library(tmp_path, GPU, law=law)
    clocks = clocks_of(tmp_path, MHZ)
    assert clocks.law == LAWS[law]
    # V(0.5): 1 - 1 + 0.5 (mei), 0.5 (V = f), 1 (fixed).
    assert clocks.points[0, 2] == {"mei": 0.5, "proportional": 0.5, "fixed": 1.0}[law]


def test_what_the_kind_states_comes_first(tmp_path: Path) -> None:
    library(tmp_path, GPU, law="proportional")
    assert clocks_of(tmp_path, MHZ + '\nlaw = "fixed"').law == LAWS["fixed"]


def test_a_range_without_volt_follows_the_law_to_its_ends(tmp_path: Path) -> None:
    library(tmp_path, GPU, law="mei")
    assert clocks_of(tmp_path, "core = [0.5, 1.0]") == ClockRange(
        0.5, 1.0, volt_min=0.5, volt_max=1.0, law=MEI_LAW
    )


@pytest.mark.parametrize("clocks", [MHZ, "core = [0.5, 1.0]", "core = 0.8"])
def test_without_any_law_a_voltage_that_matters_is_not_guessed(tmp_path: Path, clocks: str) -> None:
    library(tmp_path, GPU)
    with pytest.raises(InvalidInput, match=r"line 2, kind 'k': needs a voltage law.*add law = "):
        clocks_of(tmp_path, clocks)


@pytest.mark.parametrize("profile", [CPU, TABLE, {**GPU, "c_w": 0}])
def test_where_voltage_does_not_matter_no_law_is_asked_for(
    tmp_path: Path, profile: dict[str, Any]
) -> None:
    library(tmp_path, profile)
    assert clocks_of(tmp_path, MHZ).law == LAWS["fixed"]


def test_at_the_default_clock_alone_no_law_is_asked_for(tmp_path: Path) -> None:
    library(tmp_path, GPU)
    assert clocks_of(tmp_path, "core = 1.0").default.tolist() == [1.0, 1.0, 1.0]


def test_voltages_without_a_law_are_refused(tmp_path: Path) -> None:
    library(tmp_path, CPU)
    with pytest.raises(InvalidInput, match=r"line 5, kind 'k': volt=\[0.5, 1\] needs the law"):
        clocks_of(tmp_path, "core = [0.5, 1]\nvolt = [0.5, 1]")


def test_default_clocks_come_from_the_library_and_must_agree_with_it(tmp_path: Path) -> None:
    library(tmp_path, GPU, law="mei", default_core_mhz=1000, default_memory_mhz=800)
    clocks = clocks_of(tmp_path, "core_mhz = [500, 1000]\nmemory_mhz = 400")
    assert clocks.points[:, :2].tolist() == [[0.5, 0.5], [1.0, 0.5]]
    assert clocks_of(tmp_path, "core_mhz = 500").points[:, :2].tolist() == [[0.5, 1.0]]
    with pytest.raises(InvalidInput, match=r"default_core_mhz=900 is not what .* 1000 MHz"):
        clocks_of(tmp_path, "core_mhz = [450, 900]\ndefault_core_mhz = 900")


def test_a_stated_default_memory_clock_is_the_only_one_where_none_are_listed(
    tmp_path: Path,
) -> None:
    library(tmp_path, CPU)
    clocks = clocks_of(tmp_path, MHZ + "\ndefault_memory_mhz = 5000")
    assert clocks.points[:, 1].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("law", ["[1.5, -1.0, 0.0]", "[-1.0, 1.0, 0.0]"])
def test_a_law_that_falls_or_is_negative_is_refused(tmp_path: Path, law: str) -> None:
    library(tmp_path, GPU)
    with pytest.raises(InvalidInput, match=r"line 6, kind 'k': law must be positive"):
        clocks_of(tmp_path, MHZ + f"\nlaw = {law}")


def test_another_library_brings_its_own_law(tmp_path: Path) -> None:
    library(tmp_path, GPU, law="proportional")
    other = read_library(tmp_path / "library.json")
    library(tmp_path, GPU)
    (tmp_path / "jobs.csv").write_text("application,deadline_s\nx,100\n")
    path = cluster(tmp_path, MHZ)
    problem = load_problem(path, tmp_path / "jobs.csv", library=other)
    assert problem.platform.kinds[0].clocks.law == LAWS["proportional"]
    already_read = read_cluster(path, other)
    mei = read_library("builtin:gtx1080ti")
    (tmp_path / "jobs.csv").write_text("application,deadline_s\ncfd,100\n")
    problem = load_problem(already_read, tmp_path / "jobs.csv", library=mei)
    assert problem.platform.kinds[0].clocks.law == LAWS["fixed"]  # no profile for kind k there


def test_a_problem_file_keeps_law_and_default_clocks(tmp_path: Path) -> None:
    library(tmp_path, GPU, law=[0.5, 0.5, 0.0], default_core_mhz=1000)
    (tmp_path / "jobs.csv").write_text("application,deadline_s\nx,100\n")
    problem = load_problem(cluster(tmp_path, "core_mhz = [500, 1000]"), tmp_path / "jobs.csv")
    write_problem(problem, tmp_path / "problem.json")
    again = read_problem(tmp_path / "problem.json")
    assert again.library.basis == problem.library.basis
    assert again.platform.kinds[0].clocks.points.tolist() == [[0.5, 1.0, 0.75], [1.0, 1.0, 1.0]]


def test_the_built_in_libraries_state_their_law() -> None:
    for name in ("a100", "gtx1080ti"):
        assert built_in_library(name).basis[name].law == MEI_LAW


def test_a_fitted_card_draws_on_its_real_clocks_what_was_measured(tmp_path: Path) -> None:
    """Power of a perfect card at 1000 of 1500 MHz comes back through files to 1e-9."""
    core = np.array([500.0, 750.0, 1000.0, 1250.0, 1500.0])
    table = ClockTable(core, 1.0, 1500.0, 1.0, MEI_LAW)
    time, power = GpuProfiles(50.0, 0.0, 100.0, 6.0, 1.0, 1.0).at(
        np.zeros(5, dtype=np.int64), table.points
    )
    names = np.full(5, "x", dtype=object)
    runs = Measurements(names, core, np.full(5, np.nan), time, power)
    fitted = fit(runs, kind="k", default_core_mhz=1500.0)
    write_library(fitted.library, tmp_path / "library.json")
    (tmp_path / "jobs.csv").write_text("application,deadline_s\nx,100\n")
    problem = load_problem(
        cluster(tmp_path, "core_mhz = [500, 750, 1000, 1250, 1500]"), tmp_path / "jobs.csv"
    )
    points = problem.platform.kinds[0].clocks.points  # type: ignore[union-attr]
    zeros = np.zeros(5, dtype=np.int64)
    np.testing.assert_allclose(problem.at(zeros, zeros, points)[1], power, rtol=1e-9)


def test_a_card_with_public_measurements_knows_its_clocks(tmp_path: Path) -> None:
    for card, pairs, low, high in (
        ("a100", 61, 510, 1410),
        ("v100", 6, 802, 1380),
        ("rtx2070s", 20, 1680, 2080),
        ("gtx1080ti", 20, 1600, 2000),
    ):
        clocks = kind_clocks(tmp_path, f'name = "{card}"')
        assert isinstance(clocks, ClockTable)
        assert (len(clocks.points), clocks.core_mhz.min(), clocks.core_mhz.max()) == (
            pairs,
            low,
            high,
        )
        other = kind_clocks(tmp_path, f'name = "node"\ncard = "{card}"\ncore_mhz = [{high}]')
        assert isinstance(other, ClockTable)
        assert other.law == clocks.law
        assert other.default_core_mhz == clocks.default_core_mhz


def test_power_limits_are_a_knob_of_their_own(tmp_path: Path) -> None:
    limits = kind_clocks(tmp_path, 'name = "a40"\npower_limit_w = [100, 150, 300]')
    assert isinstance(limits, PowerLimits)
    assert limits.points[:, 0] == pytest.approx([1 / 3, 1 / 2, 1])
    assert limits.default.tolist() == [1.0, 1.0, 1.0]
    lower = kind_clocks(tmp_path, 'name = "a40"\npower_limit_w = 100\ndefault_power_limit_w = 200')
    assert lower.default[0] == 0.5


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ('name = "h100"', "they are known of the cards a100, gtx1080ti, rtx2070s, v100, cpu"),
        ('name = "x"\ncard = "a10"', "card='a10' is neither a kind of the library nor a card"),
        ('name = "x"\ncard = "a10"', "measure some jobs there (downclock fit), or plan with the"),
        ('name = "a100"\npower_limit_w = [100]', "has profiles that were measured at clocks"),
        ('name = "k"\npower_limit_w = [0]', "power_limit_w=0.0 must be positive"),
        ('name = "k"\npower_limit_w = [1]\ncore_mhz = [900]', "needs its clocks, given one way"),
        ('name = "k"\ndefault_core_mhz = 900', "needs the key 'core_mhz'"),
    ],
)
def test_clocks_nobody_knows_are_refused(tmp_path: Path, kind: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        kind_clocks(tmp_path, kind)
    assert message in str(caught.value)


def kind_clocks(folder: Path, kind: str) -> Clocks:
    name = kind.split('"')[1]
    server = f'[[server]]\nname = "s"\nprocessors = [{{ kind = "{name}" }}]\n'
    (folder / "cluster.toml").write_text(f"[[kind]]\n{kind}\n{server}", "utf-8")
    return read_cluster(folder / "cluster.toml").platform.kinds[0].clocks


@pytest.mark.parametrize("key", ["core_mhz", "memory_mhz"])
def test_an_empty_list_of_clocks_is_named(tmp_path: Path, key: str) -> None:
    library(tmp_path, GPU, law="mei")
    others = "default_core_mhz = 1000" + ("" if key == "core_mhz" else "\ncore_mhz = [500, 1000]")
    with pytest.raises(InvalidInput, match=rf"{key}=\[\] must name at least one"):
        clocks_of(tmp_path, f"{key} = []\n{others}")
