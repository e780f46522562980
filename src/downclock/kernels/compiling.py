"""One decorator that compiles a kernel when numba is there and leaves it alone when not."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

os.environ.setdefault("NUMBA_OPT", "2")  # as fast as level 3 here, a tenth less to compile

_njit: Any = None
try:
    import numba

    _njit = numba.njit
except ImportError:
    pass


def compiled(function: F) -> F:
    """Compile to machine code on first call and keep the result on disk."""
    if _njit is None:
        return function
    kernel: F = _njit(cache=True, error_model="numpy")(function)
    return kernel


def inner(function: F) -> F:
    """Compile for other kernels only: without an entry from Python, in three quarters the time.

    Its plain twin is ``function.py_func`` (the function itself without numba).
    """
    if _njit is None:
        return function
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    kernel: F = _njit(cache=True, error_model="numpy", **options)(function)
    return kernel
