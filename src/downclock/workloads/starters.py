"""Files to start from: the example day of the demo, and a cluster of one's own to fill in."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from downclock.errors import InvalidInput
from downclock.files import write_bytes_atomically

FILES = ("cluster.toml", "jobs.csv", "prices.csv")
"""Of every starter."""


def starter(name: str) -> dict[str, bytes]:
    """Return the files of ``gpu-day`` (the example) or ``init`` (to fill in) by name."""
    folder = resources.files("downclock").joinpath("data", name)
    if not folder.is_dir():
        # In a checkout the example is not in the package: a wheel takes it from there.
        folder = Path(__file__).parents[3] / "examples" / name
    return {file: folder.joinpath(file).read_bytes() for file in FILES}


def write_starter(folder: str | Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, made where it is missing; none that differs is overwritten."""
    folder = Path(folder)
    for name, content in files.items():
        path = folder / name
        if path.exists() and (not path.is_file() or path.read_bytes() != content):
            raise InvalidInput("is there already: name another folder", source=path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot be made: {error.strerror}", source=folder) from None
    for name, content in files.items():
        write_bytes_atomically(folder / name, content)
