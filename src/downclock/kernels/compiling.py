"""One decorator that compiles a kernel when numba is there and leaves it alone when not.

numba notices a change only in the file a kernel is in, not in the kernels it calls. So compiled
code is kept in a folder named by a hash of all sources that a kernel may call: those of its own
folder and of the folders that all kernels share.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

os.environ.setdefault("NUMBA_OPT", "2")  # as fast as level 3 here, a tenth less to compile


def _found() -> Any:
    try:
        import numba
    except ImportError:
        return None
    return numba


_numba = _found()

PACKAGE = Path(__file__).resolve().parent.parent
SHARED = (PACKAGE / "kernels", PACKAGE / "power" / "kernels")
"""Folders whose kernels others may call."""


def is_compiled() -> bool:
    """Tell whether kernels are compiled here."""
    return _numba is not None and not _numba.config.DISABLE_JIT


def compiled(function: F) -> F:
    """Compile to machine code on first call and keep the result on disk."""
    return _jitted(function)


def inner(function: F) -> F:
    """Compile for other kernels only: without an entry from Python, in three quarters the time.

    Its plain twin is ``function.py_func`` (the function itself without numba).
    """
    return _jitted(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _jitted(function: F, **options: bool) -> F:
    if _numba is None:
        return function
    folder = kept_in(Path(function.__code__.co_filename).resolve().parent)
    before = _numba.config.CACHE_DIR
    _numba.config.CACHE_DIR = before or str(folder or "")
    try:
        kernel: F = _numba.njit(cache=folder is not None, error_model="numpy", **options)(function)
    finally:
        _numba.config.CACHE_DIR = before
    return kernel


@cache
def kept_in(folder: Path) -> Path | None:
    """Where compiled kernels of a folder are kept; None: nowhere may be written.

    Beside the sources; where those belong to somebody else, in the user's cache.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    name = f"kernels-{_fingerprint(folder)}"
    for place in (folder / "__pycache__" / name, home / "downclock" / name):
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):
                return place
        except OSError:
            continue
    return None


def _fingerprint(folder: Path) -> str:
    """Hash of every source that a kernel of the folder may call."""
    digest = hashlib.sha256()
    for place in dict.fromkeys((*SHARED, folder)):
        for path in sorted(place.glob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
