"""Kernels: loops that are compiled where that pays, and run as they are where it does not.

Compiling all that a policy needs takes most of a minute, once on a machine; a problem of a few
hundred jobs is planned sooner without. So a kernel runs as plain Python until it pays to compile
it: when it was compiled before and the result is on disk; when a large problem was announced
(`expect`); when it has run plain for about as long as compiling it takes; or when it belongs to a
room that searches. Both ways give the same numbers. Without numba all run plain.

numba notices a change only in the file a kernel is in, not in the kernels it calls. So compiled
code is kept in a folder named by a hash of all sources that a kernel may call: those of its own
folder and of the folders that all kernels share.

numba counts who refers to an array wherever a column of a table is looked up, which takes most of
the time of kernels that do little else. A kernel that makes no arrays and is given none to keep
only borrows its caller's: there nothing is counted (`Kernel.borrows`).
"""

from __future__ import annotations

import dis
import hashlib
import importlib.util
import inspect
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, update_wrapper
from itertools import pairwise
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from downclock.kernels.records import Rows, in_columns

F = TypeVar("F", bound=Callable[..., Any])

os.environ.setdefault("NUMBA_OPT", "2")  # as fast as level 3 here, a tenth less to compile

PACKAGE = Path(__file__).resolve().parent.parent
SHARED = (PACKAGE / "kernels", PACKAGE / "power" / "kernels")
"""Folders whose kernels others may call."""

SEARCHES = (PACKAGE / "planners" / "chip" / "kernels", PACKAGE / "planners" / "slots" / "kernels")
"""Folders of searches: twenty tasks keep them busy for longer than compiling takes."""

LARGE = 2000
"""Tasks of a problem that is worth compiling for."""

PATIENCE_S = 4.0
"""CPU seconds that a kernel runs plain before it is compiled: about what that takes."""


@dataclass(slots=True)
class Meter:
    """What the kernels of this process have done so far, and who wants to hear of compiling.

    Attributes:
        largest: tasks of the largest problem that was announced.
        compiled_s: seconds of compiling, or of reading what was compiled before.
        names: kernels compiled, those read from disk excluded.
        kept: they are kept on disk.
        counts: all count references, as one that seemed to borrow makes arrays.
        listener: told before each which one, how many are done, and of about how many; and once
            all that were needed are done.
    """

    largest: int = 0
    compiled_s: float = 0.0
    names: list[str] = field(default_factory=list)
    kept: bool = True
    counts: bool = False
    listener: Callable[[str, int, int], None] | None = None


METER = Meter()

NUMBERS = {"inf", "nan", "int64", "uint64", "floor", "ceil", "sqrt", "exp", "log", "nextafter"}
"""What kernels ask of numpy without making arrays."""

METHODS = {"copy", "astype", "sum", "any", "all", "min", "max", "mean", "argmin", "argmax", "sort"}
"""Methods of arrays that make others, if only on the way."""

ALONE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""What numba need not make for a kernel that Python never calls."""


def expect(tasks: int) -> None:
    """Announce that a problem of so many tasks is there; large ones are worth compiling for."""
    METER.largest = max(METER.largest, tasks)


class Kernel:
    """A loop over arrays that can be compiled.

    Attributes:
        py_func: the function as it is written.
        folder: the folder it is in.
        plain_s: CPU seconds that it ran plain.
    """

    def __init__(
        self, function: Callable[..., Any], *, entry: bool, options: dict[str, bool] | None = None
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.folder = Path(function.__code__.co_filename).resolve().parent
        self.name = function.__qualname__
        self.plain_s = 0.0
        self._entry, self._options = entry, options or {}
        self._fast: Callable[..., Any] | None = None
        _KNOWN.append(self)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run it, the way that pays."""
        if self._fast is not None:
            return self._fast(*args, **named)
        if self._entry and self._pays():
            return self._first(*args, **named)
        start = time.thread_time()
        opened: dict[int, Rows] = {}
        try:
            with np.errstate(all="ignore"):  # as compiled code does
                return self.plain(*(in_columns(each, opened) for each in args), **named)
        finally:
            for table in opened.values():
                table.close()
            self.plain_s += time.thread_time() - start

    def _first(self, *args: Any, **named: Any) -> Any:
        """Read it from disk or compile it, and run it."""
        args = inspect.signature(self.py_func).bind(*args, **named).args
        start = time.perf_counter()
        try:
            self._make_ready(args)
        except OSError:  # the folder cannot be written after all: it is full, or gone
            METER.kept = False
            self._make_ready_anew(args)
        except _numba().core.errors.NumbaError:
            if METER.counts:
                raise
            METER.counts = True  # one makes an array that it does not name, so all count
            self._make_ready_anew(args)
        METER.compiled_s += time.perf_counter() - start
        if METER.listener is not None:
            METER.listener(self.name, len(METER.names), len(METER.names))
        self._fast = self._dispatcher
        return self._dispatcher(*args)

    def _make_ready(self, args: tuple[Any, ...]) -> None:
        self._dispatcher.compile(tuple(map(_numba().typeof, args)))

    def _make_ready_anew(self, args: tuple[Any, ...]) -> None:
        for kernel in _KNOWN:
            kernel.__dict__.pop("_dispatcher", None)
        self._make_ready(args)

    def __reduce__(self) -> str:
        return self.name

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """The function among plain ones: what it calls is plain, too, and found as quickly."""
        written = self.py_func
        scope = _plain_scope(written.__globals__)
        return FunctionType(written.__code__, scope, written.__name__, written.__defaults__)

    @property
    def _numba_type_(self) -> Any:
        """What numba takes it for where another kernel calls it."""
        return self._dispatcher._numba_type_

    @property
    def _gives_numbers(self) -> bool:
        """Tell whether it returns numbers only, by its annotation."""
        words = re.findall(r"\w+", str(self.py_func.__annotations__.get("return")))
        return set(words) <= {"None", "bool", "int", "float", "tuple"}

    @cached_property
    def borrows(self) -> bool:
        """Tell whether it only borrows arrays: it makes none, and gets none from what it calls."""
        code, scope = self.py_func.__code__, self.py_func.__globals__
        steps = [*dis.get_instructions(code)]
        asked = {b.argval for a, b in pairwise(steps) if a.argval == "np"}
        methods = {a.argval for a in steps if a.opname in ("LOAD_METHOD", "LOAD_ATTR")}
        called = [scope[name] for name in code.co_names if isinstance(scope.get(name), Kernel)]
        makes = not asked <= NUMBERS or METHODS & methods
        return not makes and all(each._gives_numbers for each in (self, *called))

    @cached_property
    def _dispatcher(self) -> Any:
        numba = _numba()
        folder = kept_in(self.folder) if METER.kept else None
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = before or str(folder or "")
        options = {
            "error_model": "numpy",
            "nogil": True,
            "_nrt": METER.counts or not self.borrows,
            **self._options,
        }
        try:
            jit = numba.njit(cache=folder is not None, **options)
            return _once_for_all_numbers(jit(self.py_func))
        finally:
            numba.config.CACHE_DIR = before

    @property
    def is_ready(self) -> bool:
        """Tell whether it runs compiled without waiting: it was compiled before."""
        return available() and (self._fast is not None or self._is_kept)

    def _pays(self) -> bool:
        if not available():
            return False
        awaited = METER.largest >= LARGE or self.plain_s > PATIENCE_S
        return awaited or self.folder in SEARCHES or self._is_kept

    @cached_property
    def _is_kept(self) -> bool:
        """Tell whether it was compiled before and kept on disk."""
        place = os.environ.get("NUMBA_CACHE_DIR") or kept_in(self.folder)
        code = self.py_func.__code__
        name = f"{Path(code.co_filename).stem}.{self.name}-{code.co_firstlineno}.py*.nbi"
        return place is not None and any(Path(place).glob(f"*/{name}"))


_KNOWN: list[Kernel] = []
_PLAIN: dict[str, dict[str, Any]] = {}


def compiled(function: F) -> F:
    """Make a kernel that Python may call."""
    return cast(F, Kernel(function, entry=True))


def inner(function: F) -> F:
    """Make a kernel for other kernels only: it compiles in three quarters the time."""
    return cast(F, Kernel(function, entry=False, options=ALONE))


def inlined(function: F) -> F:
    """Make a step of other kernels, written out where it is called.

    A call hands on every column of every table, a hundred words: more work than a short step.
    """
    return cast(F, Kernel(function, entry=False, options={**ALONE, "forceinline": True}))


@cache
def available() -> bool:
    """Tell whether there is a compiler, and it may be used."""
    forbidden = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return not forbidden and importlib.util.find_spec("numba") is not None


@contextmanager
def at_once() -> Iterator[None]:
    """Compile every kernel that is called meanwhile."""
    before, METER.largest = METER.largest, LARGE
    try:
        yield
    finally:
        METER.largest = before


def _plain_scope(scope: dict[str, Any]) -> dict[str, Any]:
    """Return the names of a module with plain functions in the place of kernels."""
    name = scope["__name__"]
    if name not in _PLAIN:
        _PLAIN[name] = dict(scope)
        kernels = {key: value for key, value in scope.items() if isinstance(value, Kernel)}
        _PLAIN[name].update({key: kernel.plain for key, kernel in kernels.items()})
    return _PLAIN[name]


@cache
def _numba() -> Any:
    """Import numba, and hear of what it compiles."""
    import numba
    from numba.core import event

    class Heard(event.Listener):
        def on_start(self, event: Any) -> None:
            METER.names.append(event.data["dispatcher"].py_func.__name__)
            if METER.listener is not None:
                METER.listener(METER.names[-1], len(METER.names) - 1, _likely())

        def on_end(self, event: Any) -> None:
            """Nothing: only starts are told."""

    event.register("numba:compile", Heard())  # type: ignore[no-untyped-call]
    return numba


def _once_for_all_numbers(dispatcher: Any) -> Any:
    """Let a kernel be compiled by types alone: numba makes a copy for each constant it is given.

    Constants are handed on to what a kernel calls, so two of five loops were such copies.
    """
    unliteral, ask = _numba().types.unliteral, dispatcher.get_call_template

    def asked(args: Any, named: Any) -> Any:
        return ask(tuple(map(unliteral, args)), {k: unliteral(v) for k, v in named.items()})

    dispatcher.get_call_template = asked
    return dispatcher


def _likely() -> int:
    """About how many kernels will be compiled: those of the folders in use."""
    used = {kernel.folder for kernel in _KNOWN if "_dispatcher" in kernel.__dict__}
    return max(len(METER.names), sum(kernel.folder in used for kernel in _KNOWN))


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
