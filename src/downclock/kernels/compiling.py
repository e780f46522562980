"""One decorator that compiles a kernel when numba is there and leaves it alone when not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

try:
    from numba import njit as _njit
except ImportError:
    _njit = None


def compiled(function: F) -> F:
    """Compile to machine code on first call and keep the result on disk."""
    if _njit is None:
        return function
    kernel: F = _njit(cache=True, error_model="numpy")(function)
    return kernel
