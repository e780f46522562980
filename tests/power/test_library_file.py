"""A library survives its file; a file that is no library is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.power.library import Basis, Library, merged
from downclock.power.library_file import (
    BUILT_IN,
    FORMAT,
    built_in_library,
    library_document,
    library_of_document,
    read_library,
    write_library,
)
from downclock.power.points import LAWS, VoltageLaw
from downclock.power.profiles import CpuProfiles, GpuProfiles, MeasuredProfiles
from tests.problem.files.schemas import schema

GPU = {"model": "gpu", "p0_w": 60, "gamma_w": 30, "c_w": 100, "d_s": 4, "delta": 0.6, "t0_s": 0.2}
CPU = {"model": "cpu", "time_s": 9.0, "c1_w": 20, "alpha": 3, "static_w": 5}
POINT = {"core": 1.0, "memory": 1.0, "time_s": 2.0, "power_w": 250}
TABLE = {"model": "table", "points": [POINT, {**POINT, "core": 0.5, "time_s": 4.0}]}


def document(**profiles: Any) -> dict[str, Any]:
    return {"format": FORMAT, "applications": [{"name": "x", "profiles": profiles}]}


def written(folder: Path, content: Any) -> Path:
    path = folder / "lib.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def mixed_library() -> Library:
    """Two applications, three kinds, all three models, one gap."""
    groups = (
        GpuProfiles(*np.array([[60, 61], [30, 31], [0.1, 101], [4, 5], [1 / 3, 0.7], [0.2, 0]])),
        CpuProfiles(*np.array([[9.0], [20.0], [3.0], [5.0]])),
        MeasuredProfiles(
            np.array([0, 2, 3]),
            np.array([1.0, 0.5, 1.0]),
            np.ones(3),
            np.array([2.0, 4.0, 3.0]),
            np.array([250.0, 120.0, 200.0]),
        ),
    )
    group = np.array([[0, 1, 2], [2, -1, 0]])
    row = np.array([[1, 0, 0], [1, 0, 0]])
    basis = {
        "g": Basis(LAWS["mei"], 1800.0, 5000.0),
        "c": Basis(VoltageLaw(0.5, 0.5, 0.0)),
        "m": Basis(None, None, 800.0),
    }
    names = np.array(["a", "ü"], dtype=object)
    return Library(names, ("g", "c", "m"), groups, group, row, basis)


def test_a_library_comes_back_bit_for_bit(tmp_path: Path) -> None:
    library = mixed_library()
    write_library(library, tmp_path / "lib.json", source="made up")
    again = read_library(tmp_path / "lib.json")
    assert library_document(again) == library_document(library, "made up")
    assert again.source == "made up"
    assert again.kinds == library.kinds
    assert again.basis == library.basis
    assert (again.group >= 0).tolist() == (library.group >= 0).tolist()
    points = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    for kind in library.kinds:
        ours = library.at(np.array([0, 1]), kind, points)
        theirs = again.at(np.array([0, 1]), kind, points)
        np.testing.assert_array_equal(ours, theirs)


def test_the_file_follows_its_schema_and_names_its_source(tmp_path: Path) -> None:
    write_library(mixed_library(), tmp_path / "lib.json", source="made up")
    stored = json.loads((tmp_path / "lib.json").read_text())
    jsonschema.validate(stored, schema("library"))
    assert stored["source"] == "made up"
    assert [entry["name"] for entry in stored["applications"]] == ["a", "ü"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document(g={**GPU, "c_w": -1}), schema("library"))


def test_power_limits_come_back_as_watts(tmp_path: Path) -> None:
    points = [
        {"power_limit_w": 100.0, "time_s": 2.0, "power_w": 98.0},
        {"power_limit_w": 150.0, "time_s": 1.0, "power_w": 148.0},
    ]
    kinds = {"a40": {"default_power_limit_w": 300, "power_limit_w": [100, 150]}}
    stored = {**document(a40={"model": "table", "points": points}), "kinds": kinds}
    library = read_library(written(tmp_path, stored))
    assert library.basis["a40"].power_limit_w == (100.0, 150.0)
    time, _ = library.at(np.array([0]), "a40", np.array([[0.5, 1.0, 1.0]]))
    assert time.tolist() == [1.0]
    again = library_document(library)
    assert again["applications"][0]["profiles"]["a40"]["points"] == points
    jsonschema.validate(again, schema("library"))


def test_a_power_limit_however_small_is_written_as_more_than_none(tmp_path: Path) -> None:
    points = [{"power_limit_w": 8.0840474516e-11, "time_s": 2.0, "power_w": 98.0}]
    kinds = {"a40": {"default_power_limit_w": 300, "power_limit_w": [100]}}
    stored = {**document(a40={"model": "table", "points": points}), "kinds": kinds}
    again = library_document(read_library(written(tmp_path, stored)))
    assert again["applications"][0]["profiles"]["a40"]["points"] == points


def test_libraries_are_merged_by_application_and_kind(tmp_path: Path) -> None:
    first = library_of_document({**document(g=GPU), "source": "one"}, "a")
    second = library_of_document({**document(c=CPU), "source": "two"}, "b")
    both = merged([first, second])
    assert (both.names.tolist(), both.kinds, both.source) == (["x"], ("g", "c"), "one; two")
    profiles = library_document(both)["applications"][0]["profiles"]
    assert (profiles["g"], profiles["c"]) == (GPU, CPU)
    with pytest.raises(InvalidInput, match="'x': has a profile for kind 'g' in two libraries"):
        merged([first, both])
    other = {**document(g=GPU), "kinds": {"g": {"law": "mei"}}}
    other["applications"][0]["name"] = "y"
    with pytest.raises(InvalidInput, match="kind 'g': law differs between two libraries"):
        merged([first, library_of_document(other, "c")])


def test_an_empty_library_is_one(tmp_path: Path) -> None:
    empty = read_library(written(tmp_path, {"format": FORMAT, "applications": []}))
    assert len(empty) == 0
    write_library(empty, tmp_path / "again.json")
    assert len(read_library(tmp_path / "again.json")) == 0


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", " line 1: is not JSON: Expecting value (column 1)"),
        ('{"format":\n oops}', " line 2: is not JSON: Expecting value (column 2)"),
        ('{"a": 1, "a": 2}', ", key 'a': is given twice in one object"),
        ([], " line 1: must be a table of keys and values"),
        ({"format": FORMAT}, " line 1, the file: needs the key 'applications'"),
        ({"format": "v0", "applications": []}, f" line 1: format='v0' must be one of {FORMAT}"),
        (
            {"format": FORMAT, "applications": {}},
            " line 1: applications={} must be a list of tables",
        ),
        ({**document(g=GPU), "kinds": []}, " line 1: kinds=[] must be a table of keys and values"),
        (
            {**document(g=GPU), "kinds": {"g": 1}},
            " line 1, kind 'g': g must be a table of keys and values",
        ),
        (
            {**document(g=GPU), "kinds": {"g": {"law": "ohm"}}},
            " line 1, kind 'g': law='ohm' must be one of mei, proportional, fixed, or [a0, a1, a2]",
        ),
        (
            {**document(g=GPU), "kinds": {"g": {"law": [1, "a", 2]}}},
            " line 1, kind 'g': law='a' must be a number",
        ),
        (
            {**document(g=GPU), "kinds": {"g": {"default_core_mhz": 0}}},
            " line 1, kind 'g': default_core_mhz=0.0 must be positive and finite",
        ),
        (
            {**document(g=GPU), "kinds": {"g": {"core_mhz": 5}}},
            " line 1, kind 'g': core_mhz=5 must be a list of numbers",
        ),
        (
            {**document(g=GPU), "kinds": {"g": {"clock": 5}}},
            " line 1, kind 'g': clock is not a known key; there are: core_mhz, default_core_mhz,"
            " default_memory_mhz, default_power_limit_w, law, memory_mhz, power_limit_w",
        ),
        (
            {**document(g=GPU), "kinds": {"g": {"law": "mei", "default_power_limit_w": 300}}},
            " line 1, kind 'g': default_power_limit_w=300 cannot be given with clocks or a voltage"
            " law: a kind has one knob",
        ),
        (
            {**document(g=GPU), "kinds": {"g": {"default_power_limit_w": 300}}},
            " line 1, application 'x', kind 'g': model='gpu' is for clocks; a kind that was"
            " measured at power limits has tables",
        ),
        (
            {**document(t=TABLE), "kinds": {"t": {"default_power_limit_w": 300}}},
            " line 1, application 'x', kind 't', point 1: core is not a known key;"
            " there are: power_limit_w, power_w, time_s",
        ),
        (
            {"format": FORMAT, "applications": [{"name": 3, "profiles": {}}]},
            " line 1, application 1: name=3 must be text",
        ),
        (
            {"format": FORMAT, "applications": [{"name": "x", "profiles": 5}]},
            " line 1, application 'x': profiles=5 must be a table of keys and values",
        ),
        (
            {"format": FORMAT, "applications": [{"name": "x", "profiles": {}}] * 2},
            " line 1, application 'x': is defined twice",
        ),
        (
            document(g={**GPU, "model": "tpu"}),
            " line 1, application 'x', kind 'g': model='tpu' must be one of gpu, cpu, table",
        ),
        (document(g=7), " line 1, application 'x', kind 'g': g must be a table of keys and values"),
        (
            document(g={**GPU, "c_w": -1}),
            " line 1, application 'x', kind 'g': c_w=-1.0 must be finite and not negative",
        ),
        (
            document(g={**GPU, "c_w": float("nan")}),
            " line 1, application 'x', kind 'g': c_w=nan must be finite and not negative",
        ),
        (
            document(g={**GPU, "c_w": "1"}),
            " line 1, application 'x', kind 'g': c_w='1' must be a number",
        ),
        (
            document(g={**GPU, "c_w": True}),
            " line 1, application 'x', kind 'g': c_w=True must be a number",
        ),
        (
            document(g={**GPU, "delta": 1.5}),
            " line 1, application 'x', kind 'g': delta=1.5 must be at most 1",
        ),
        (
            document(g={**GPU, "d_s": 0, "t0_s": 0}),
            " line 1, application 'x', kind 'g': d_s + t0_s must be positive",
        ),
        (
            document(g={**GPU, "watts": 1}),
            " line 1, application 'x', kind 'g': watts is not a known key; "
            "there are: c_w, d_s, delta, gamma_w, model, p0_w, t0_s",
        ),
        (
            document(c={k: v for k, v in CPU.items() if k != "alpha"}),
            " line 1, application 'x', kind 'c': needs the key 'alpha'",
        ),
        (
            document(c={**CPU, "alpha": 0.5}),
            " line 1, application 'x', kind 'c': alpha=0.5 must be at least 1 and at most 10",
        ),
        (
            document(g=GPU, t={"model": "table", "points": []}),
            " line 1, application 'x', kind 't': points=[] must be a list of points",
        ),
        (
            document(g=TABLE, t={"model": "table", "points": [{**POINT, "power_w": 0}]}),
            " line 1, application 'x', kind 't': power_w=0.0 must be positive and finite",
        ),
        (
            document(t={"model": "table", "points": [POINT, POINT]}),
            " line 1, application 'x', kind 't': points has one pair of clocks twice",
        ),
        (
            document(
                t={
                    "model": "table",
                    "points": [
                        POINT,
                        {**POINT, "memory": POINT["memory"] / 2},
                        {**POINT, "core": np.nextafter(POINT["core"], 2.0)},
                    ],
                }
            ),
            " line 1, application 'x', kind 't': points has one pair of clocks twice",
        ),
    ],
)
def test_what_is_no_library_is_refused_with_its_place(
    tmp_path: Path, content: Any, expected: str
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InvalidInput) as caught:
        read_library(path)
    assert str(caught.value) == f"{path}{expected}"


@pytest.mark.parametrize("content", ["[" * 100_000, f'{{"a": {"9" * 5000}}}'])
def test_hostile_json_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(InvalidInput, match="is not JSON"):
        read_library(written(tmp_path, content))


def test_infinite_clocks_are_refused_without_a_warning(tmp_path: Path) -> None:
    points = [{**POINT, "core": -np.inf}, {**POINT, "core": -np.inf, "memory": 2.0}]
    with pytest.raises(InvalidInput, match="core=-inf must be positive and finite"):
        read_library(written(tmp_path, document(t={"model": "table", "points": points})))


def test_a_number_beyond_floats_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"c_w=1000.* must be a number"):
        read_library(written(tmp_path, document(g={**GPU, "c_w": 10**400})))


@pytest.mark.parametrize(
    ("name", "applications"), [("gtx1080ti", 30), ("a100", 25), ("rtx2070s", 20), ("v100", 20)]
)
def test_built_in_libraries_hold_fitted_parameters_only(name: str, applications: int) -> None:
    library = built_in_library(name)
    assert len(library) == applications
    assert library.kinds == (name,)
    assert [type(group) for group in library.groups] == [GpuProfiles]
    jsonschema.validate(library_document(library), schema("library"))
    time, power = library.at(np.arange(applications), name, np.ones((applications, 3)))
    assert np.all((time > 0.0) & (power > 0.0))


def test_black_scholes_of_the_built_in_1080_ti() -> None:
    # At default clocks 1.582 ms and 54.7 + 181.6 + 5.2 W (independent fit of the same data).
    library = built_in_library("gtx1080ti")
    row = library.names.tolist().index("BlackScholes")
    time, power = library.at(np.array([row]), "gtx1080ti", np.ones((1, 3)))
    assert 1000 * time[0] == pytest.approx(1.582, abs=0.0005)
    assert power[0] == pytest.approx(241.5, abs=0.15)


def test_an_unknown_built_in_library_lists_the_known() -> None:
    with pytest.raises(InvalidInput, match=f"they are: {', '.join(BUILT_IN)}"):
        built_in_library("h100")


def test_a_built_in_library_may_stand_where_a_file_could() -> None:
    named, made = read_library("builtin:a100"), built_in_library("a100")
    assert named.names.tolist() == made.names.tolist()
    with pytest.raises(InvalidInput, match=r"a101.*is not a built-in library; they are: a100"):
        read_library("builtin:a101")
