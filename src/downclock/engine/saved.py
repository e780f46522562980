"""States as bytes: arrays by name in one npz archive, no pickle, with a header that names them.

A state is made of arrays, numbers and tuples of them; its names are the path to each. Reading puts
the arrays into a state of the same make.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np

from downclock.errors import InvalidInput

VERSION = 6
T = TypeVar("T")


def flat(state: Any, path: str = "") -> dict[str, Any]:
    """Every array and number of a state, by path."""
    found: dict[str, Any] = {}
    for name, part in _parts(state):
        key = f"{path}{name}"
        if _parts(part):
            found |= flat(part, f"{key}/")
        elif part is not None:
            found[key] = np.asarray(part)
    return found


def rebuilt(like: T, columns: Mapping[str, Any], path: str = "") -> T:
    """A state like this one with the arrays of ``columns``."""
    parts: dict[str, Any] = {}
    for name, part in _parts(like):
        key = f"{path}{name}"
        if _parts(part):
            parts[name] = rebuilt(part, columns, f"{key}/")
        elif part is not None:
            if key not in columns:
                raise InvalidInput("is missing in the saved state", field=key)
            array = np.array(columns[key])
            parts[name] = array if isinstance(part, np.ndarray) else type(part)(array.item())
    if hasattr(like, "_replace"):
        made: T = like._replace(**parts)
        return made
    return replace(like, **parts)  # type: ignore[type-var]


def _parts(state: Any) -> list[tuple[str, Any]]:
    """Named parts of a state that has any."""
    if hasattr(state, "_fields"):
        return list(zip(state._fields, state, strict=True))
    if is_dataclass(state) and not isinstance(state, type):
        return [(spec.name, getattr(state, spec.name)) for spec in fields(state)]
    return []


def to_bytes(header: Mapping[str, Any], columns: Mapping[str, Any]) -> bytes:
    """Write arrays and a header."""
    out = io.BytesIO()
    text = json.dumps({"version": VERSION, **header})
    arrays: dict[str, Any] = {f"/{name}": np.asarray(column) for name, column in columns.items()}
    np.savez(out, header=np.frombuffer(text.encode(), np.uint8), **arrays)
    return out.getvalue()


def from_bytes(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `to_bytes` wrote.

    Raises:
        InvalidInput: the bytes are no such archive, or of another version.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
    except (ValueError, KeyError, OSError, EOFError, BadZipFile) as error:
        raise InvalidInput(f"is no saved state ({error})", item="state") from None
    if header.get("version") != VERSION:
        rule = f"must be {VERSION}"
        raise InvalidInput(rule, item="state", field="version", value=header.get("version"))
    return header, {name.removeprefix("/"): array for name, array in arrays.items()}
