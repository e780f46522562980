"""The library's file: a JSON document of applications and their profiles by processor kind.

    {"format": "downclock-library/1",
     "source": "where the numbers come from",
     "kinds": {"gtx1080ti": {"law": "mei", "default_core_mhz": 1800, "default_memory_mhz": 5000}},
     "applications": [
       {"name": "resnet50", "profiles": {
         "gtx1080ti": {"model": "gpu", "p0_w": 60, "gamma_w": 30, "c_w": 100,
                       "d_s": 4.0, "delta": 0.6, "t0_s": 0.2},
         "xeon": {"model": "cpu", "time_s": 9.0, "c1_w": 20, "alpha": 3, "static_w": 5},
         "a100": {"model": "table", "points": [
           {"core": 1.0, "memory": 1.0, "time_s": 2.0, "power_w": 250}]}}}]}

Fields are those of the profile classes: ``core`` and ``memory`` are ratios to the kind's default
clocks, and so is what the model's parameters multiply. ``source`` and ``kinds`` are optional, and
so is each field of a kind: the voltage law its gpu profiles were fitted with (``mei``,
``proportional``, ``fixed`` or ``[a0, a1, a2]``), the clocks of ratio 1, and the clocks at which
the profiles hold (``core_mhz``, ``memory_mhz``). A cluster's kind takes from there what it does not
say itself. A kind with a ``default_power_limit_w`` was measured at power limits: its profiles are
tables whose points have a ``power_limit_w`` instead of clocks.
"""

from __future__ import annotations

from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from downclock.document import Document, Fields, read_json
from downclock.errors import InvalidInput
from downclock.files import json_text, parsed_json, write_text_atomically
from downclock.power.library import KNOBS, Basis, Library
from downclock.power.points import LAWS, VoltageLaw, law_data
from downclock.power.profiles import CpuProfiles, GpuProfiles, MeasuredProfiles, Profiles
from downclock.quantities import require_quantity
from downclock.units import TOLERANCE, Floats

FORMAT = "downclock-library/1"

KEYS = ("format", "source", "kinds", "applications")
_APPLICATION = ("name", "profiles")
"""Keys of the document, and of an application."""

BUILT_IN = ("a100", "gtx1080ti", "rtx2070s", "v100")
"""Libraries that come with Downclock: our fits of public measurements, see their ``source``."""

BUILT_IN_PREFIX = "builtin:"
"""Names one of them where a file could stand."""

_CURVES: dict[str, type[GpuProfiles] | type[CpuProfiles]] = {"gpu": GpuProfiles, "cpu": CpuProfiles}

PARAMETERS = {model: tuple(spec.name for spec in fields(kind)) for model, kind in _CURVES.items()}
"""Fields of a profile entry, per model; a table has ``points`` instead."""

POINT = ("core", "memory", "time_s", "power_w")
"""Fields of a table's point."""

LIMIT_POINT = ("power_limit_w", "time_s", "power_w")
"""The same of a kind that was measured at power limits."""

DEFAULTS = ("default_core_mhz", "default_memory_mhz", "default_power_limit_w")
BASIS = ("law", *DEFAULTS, *KNOBS)
"""Fields of what a kind's profiles refer to, all optional: one number each, and lists."""

_Numbers: TypeAlias = tuple[tuple[float, ...], ...]
"""Of one profile: parameters of a curve, or a table's points."""


def read_library(path: str | Path) -> Library:
    """Read a library file, or the one that ``builtin:NAME`` names."""
    if is_built_in(path):
        return built_in_library(str(path).removeprefix(BUILT_IN_PREFIX))
    return library_of(read_json(path).fields(None, KEYS))


def write_library(library: Library, path: str | Path, source: str = "") -> None:
    """Write a library file as a whole; ``source`` replaces where its numbers come from."""
    document = library_document(library, source)
    lists = {"applications": document.pop("applications")}
    write_text_atomically(path, json_text(document, lists))


def is_built_in(path: str | Path) -> bool:
    """Tell whether this names a library that comes with Downclock instead of a file."""
    return str(path).startswith(BUILT_IN_PREFIX)


def built_in_library(name: str) -> Library:
    """Return a library that comes with Downclock, such as ``gtx1080ti``."""
    if name not in BUILT_IN:
        rule = (
            f"is not a built-in library; they are: {', '.join(BUILT_IN)}. For a card without public"
            " measurements, measure yours (downclock fit), or plan with the archetypes of another"
            ' (card = "a100" in the kind)'
        )
        raise InvalidInput(rule, value=name)
    text = resources.files("downclock").joinpath("data", f"{name}.json").read_text("utf-8")
    source = f"built-in library {name}"
    return library_of_document(parsed_json(text, source), source)


def library_document(library: Library, source: str = "") -> dict[str, Any]:
    """Return the library as the plain structure of its file."""
    limits = [library.basis_of(kind).default_power_limit_w for kind in library.kinds]
    applications = []
    for a, name in enumerate(library.names):
        profiles = {
            kind: _entry(library.groups[library.group[a, k]], int(library.row[a, k]), limits[k])
            for k, kind in enumerate(library.kinds)
            if library.group[a, k] >= 0
        }
        applications.append({"name": name, "profiles": profiles})
    kinds = {kind: _basis_data(basis) for kind, basis in library.basis.items()}
    head = {"format": FORMAT, "source": source or library.source}
    return {**head, **({"kinds": kinds} if kinds else {}), "applications": applications}


def library_of_document(document: Any, source: str | Path) -> Library:
    """Return the library of such a structure; complaints name ``source``."""
    return library_of(Document(source, document).fields(None, KEYS))


def library_of(top: Fields) -> Library:
    """Return the library of a document, or of a part of one.

    Raises:
        InvalidInput: with file, line, object, key, value and rule.
    """
    top.choice("format", (FORMAT,))
    basis = {kind: _basis(fields) for kind, fields in top.named("kinds", "kind", BASIS).items()}
    names: list[str] = []
    places: dict[tuple[int, str], tuple[int, int]] = {}
    by_model: dict[str, list[tuple[Fields, _Numbers]]] = {}
    for a, application in enumerate(top.tables("applications", _APPLICATION, "application")):
        names.append(application.text("name"))
        if not names[a]:
            raise application.complaint("must not be empty", "name")
        for kind, entry in application.named("profiles", f"{application.item}, kind", None).items():
            model, numbers = _profile(entry, basis.get(kind, Basis()).default_power_limit_w)
            rows = by_model.setdefault(model, [])
            places[a, kind] = list(by_model).index(model), len(rows)
            rows.append((entry, numbers))
    kinds = tuple(dict.fromkeys(kind for _, kind in places))
    group = np.full((len(names), len(kinds)), -1, dtype=np.int64)
    number = np.zeros_like(group)
    for (a, kind), place in places.items():
        group[a, kinds.index(kind)], number[a, kinds.index(kind)] = place
    groups = tuple(_group(model, rows) for model, rows in by_model.items())
    told = np.array(names, dtype=object)
    with top.blamed():
        return Library(told, kinds, groups, group, number, basis, top.text("source", ""))


def _entry(profiles: Profiles, row: int, limit_w: float | None) -> dict[str, Any]:
    if isinstance(profiles, MeasuredProfiles):
        inside = slice(profiles.offset[row], profiles.offset[row + 1])
        columns = [getattr(profiles, name)[inside].tolist() for name in POINT]
        names: tuple[str, ...] = POINT
        if limit_w is not None:
            # Rounded, because a limit comes back from its ratio: 150 and not 150.00000000000003.
            watts = [float(f"{ratio * limit_w:.12g}") for ratio in columns[0]]
            names, columns = LIMIT_POINT, [watts, *columns[2:]]
        points = [dict(zip(names, point, strict=True)) for point in zip(*columns, strict=True)]
        return {"model": "table", "points": points}
    values = {name: float(getattr(profiles, name)[row]) for name in PARAMETERS[profiles.model]}
    return {"model": profiles.model, **values}


def _basis_data(basis: Basis) -> dict[str, Any]:
    law = {} if basis.law is None else {"law": law_data(basis.law)}
    defaults = {name: getattr(basis, name) for name in DEFAULTS}
    settings = {name: list(getattr(basis, name)) for name in KNOBS}
    return law | {name: value for name, value in (defaults | settings).items() if value}


def _basis(fields: Fields) -> Basis:
    law = law_of(fields) if "law" in fields else None
    known: dict[str, Any] = {name: fields.number(name) for name in DEFAULTS if name in fields}
    known |= {name: tuple(fields.numbers(name)) for name in KNOBS if name in fields}
    with fields.blamed():
        for name, value in known.items():
            if value == ():
                raise InvalidInput("must not be empty", field=name)
            require_quantity(name, np.array(value), positive=True)
    if "default_power_limit_w" in fields and ("default_core_mhz" in fields or law is not None):
        rule = "cannot be given with clocks or a voltage law: a kind has one knob"
        raise fields.complaint(rule, "default_power_limit_w")
    return Basis(law, **known)


def law_of(fields: Fields) -> VoltageLaw:
    """Read the key ``law``: a name, or three numbers."""
    law = fields.raw("law")
    if isinstance(law, list):
        with fields.blamed():
            return VoltageLaw(*fields.numbers("law", length=3))
    if not isinstance(law, str) or law not in LAWS:
        raise fields.complaint(f"must be one of {', '.join(LAWS)}, or [a0, a1, a2]", "law")
    return LAWS[law]


def _profile(entry: Fields, limit_w: float | None) -> tuple[str, _Numbers]:
    """Return a profile's model and numbers, checked for shape and type."""
    model = entry.choice("model", (*PARAMETERS, "table"))
    entry.only(("model", *PARAMETERS.get(model, ("points",))))
    if model == "table":
        names = POINT if limit_w is None else LIMIT_POINT
        points = entry.tables("points", names, f"{entry.item}, point")
        numbers = tuple(_point(point, names, limit_w) for point in points)
        if not numbers:
            raise entry.complaint("must be a list of points", "points")
        if _has_twins(np.array([point[:2] for point in numbers])):
            raise entry.complaint("has one pair of clocks twice", "points", ...)
        return model, numbers
    if limit_w is not None:
        rule = "is for clocks; a kind that was measured at power limits has tables"
        raise entry.complaint(rule, "model")
    return model, (tuple(entry.number(name) for name in PARAMETERS[model]),)


def _has_twins(clocks: Floats) -> bool:
    """Tell whether two pairs of clocks (n, 2) are the same but for rounding."""
    core, memory = clocks[np.argsort(clocks[:, 0], kind="stable")].T
    with np.errstate(invalid="ignore"):  # infinite ones are refused by what they are
        group = np.cumsum(np.diff(core, prepend=core[0]) > TOLERANCE)
        order = np.lexsort((memory, group))
        near = np.diff(memory[order]) <= TOLERANCE
    return bool(np.any(near & (np.diff(group[order]) == 0)))


def _point(point: Fields, names: tuple[str, ...], limit_w: float | None) -> tuple[float, ...]:
    """Return (core, memory, time_s, power_w); a power limit stands where the core clock does."""
    numbers = tuple(point.number(name) for name in names)
    return numbers if limit_w is None else (numbers[0] / limit_w, 1.0, *numbers[1:])


def _group(model: str, rows: list[tuple[Fields, _Numbers]]) -> Profiles:
    """Return the profiles of one model; what they refuse is blamed on its entry."""
    try:
        if model != "table":
            return _CURVES[model](*np.array([parameters for _, (parameters,) in rows]).T)
        offset = np.concatenate([[0], np.cumsum([len(points) for _, points in rows])])
        return MeasuredProfiles(offset, *np.concatenate([points for _, points in rows]).T)
    except InvalidInput as error:
        with rows[error.row or 0][0].blamed():
            raise InvalidInput(error.rule, field=error.field, value=error.value) from None
