"""Files in and out: whole files, with one-line complaints, and writes that happen or do not."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from downclock.errors import InvalidInput

_BOM = b"\xef\xbb\xbf"

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape of half a character: two make one, a lone one is no text."""


def read_bytes(path: str | Path) -> bytes:
    """Return the file's bytes, or raise `InvalidInput` saying why they cannot be had."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidInput(_reason(error, "read"), source=path) from None


def read_text(path: str | Path) -> str:
    """Return the file's text: UTF-8, with or without a byte order mark, single line feeds."""
    return decoded(read_bytes(path), path).replace("\r\n", "\n").replace("\r", "\n")


def decoded(data: bytes, source: str | Path) -> str:
    """Return ``data`` as text without its byte order mark; refuse what is not UTF-8."""
    try:
        return data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + len(data) - len(data.removeprefix(_BOM))
        rule = f"is not UTF-8 text (byte 0x{data[at]:02x} at offset {at})"
        raise InvalidInput(rule, source=source, line=data.count(b"\n", 0, at) + 1) from None


def parsed_json(text: str, source: str | Path) -> Any:
    """Return the value of a JSON text; a key given twice is refused."""
    try:
        value = JSON.decode(text)
        if _HALF.search(text):
            _refuse_halves(value, "the file")
        return value
    except json.JSONDecodeError as error:
        rule = f"is not JSON: {error.msg} (column {error.colno})"
        raise InvalidInput(rule, source=source, line=error.lineno) from None
    except InvalidInput as error:
        raise error.located(source) from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is not JSON we can read: {error}", source=source) from None


def _refuse_halves(value: Any, field: str) -> None:
    """Refuse text with half a character, which no file could hold; ``field`` is where it is."""
    if isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            rule = "holds half a character (a lone surrogate)"
            raise InvalidInput(rule, field=field, value=value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            _refuse_halves(key, f"a key of {field}")
            _refuse_halves(inner, key)
    elif isinstance(value, list):
        for inner in value:
            _refuse_halves(inner, field)


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object, unless it has a key twice: JSON would silently keep the last."""
    table = dict(pairs)
    if len(table) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InvalidInput("is given twice in one object", item=f"key '{twice}'")
    return table


JSON = json.JSONDecoder(object_pairs_hook=_distinct_keys)
"""Reads JSON; a key given twice is refused."""


def json_text(head: Mapping[str, Any], lists: Mapping[str, Iterable[Any]]) -> str:
    """Return a JSON object: the head's keys, then lists with one element a line."""
    encode = json.JSONEncoder(allow_nan=False).encode
    parts = [f"  {encode(key)}: {encode(value)}" for key, value in head.items()]
    for key, elements in lists.items():
        texts = ",\n".join("    " + encode(each) for each in elements)
        body = f"[\n{texts}\n  ]" if texts else "[]"
        parts.append(f"  {encode(key)}: {body}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def csv_text(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV under these names, in their order."""
    import csv
    import io

    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def write_text_atomically(path: str | Path, text: str) -> None:
    """Write ``text`` as UTF-8 as it is; see `write_bytes_atomically`."""
    write_bytes_atomically(path, text.encode("utf-8"))


def write_bytes_atomically(path: str | Path, data: bytes) -> None:
    """Replace the file as a whole: readers see the old content or the new, never a part.

    The data go to a temporary file in the same folder, which takes the place of the old one at
    the end; on any failure the old file stays and the temporary one goes. A symbolic link keeps
    pointing at the file it names. A device or pipe is written to directly.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(data)
        else:
            _replace(target, data)
    except (OSError, ValueError) as error:
        raise InvalidInput(_reason(error, "written"), source=path) from None


def _replace(target: Path, data: bytes) -> None:
    if target.is_dir():
        raise IsADirectoryError
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.tmp")
    try:
        # Opened with 0o666 and not by tempfile, so that the user's umask decides who may read it.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as stream:
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o7777)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _reason(error: OSError | ValueError, verb: str) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file" if verb == "read" else "its folder does not exist"
    if isinstance(error, IsADirectoryError):
        return "is a folder, not a file"
    if isinstance(error, PermissionError):
        return f"may not be {verb} (no permission)"
    detail = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"cannot be {verb}: {detail}"
