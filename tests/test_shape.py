"""The shape of the code: functions stay short and take few parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import downclock

PACKAGE = Path(downclock.__file__).parent
PARAMETERS, P95, LONGEST = 10, 22, 45

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(text: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function):
            yield node


def parameters(function: Function) -> int:
    """Parameters of a function, the object or class of a method not counted."""
    a = function.args
    named = [*a.posonlyargs, *a.args, *a.kwonlyargs]
    stars = (a.vararg is not None) + (a.kwarg is not None)
    return len(named) + stars - (bool(named) and named[0].arg in ("self", "cls"))


def body_lines(function: Function) -> int:
    """Lines of a body, its docstring not counted."""
    body = function.body if ast.get_docstring(function) is None else function.body[1:]
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_what_is_counted() -> None:
    text = (
        "class A:\n    def f(self, a, /, b, *c, d=1, **e):\n"
        "        '''Two\n        lines.'''\n        x = 1\n\n        return x\n"
        "def g():\n    '''Nothing.'''\n"
    )
    g, f = functions(text)
    assert (parameters(f), body_lines(f)) == (5, 3)
    assert (parameters(g), body_lines(g)) == (0, 0)


def test_functions_take_at_most_ten_parameters() -> None:
    """Commands are read by typer from their parameters, so cli/ is exempt."""
    many = [
        f"{path.relative_to(PACKAGE)}: {function.name} has {parameters(function)}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "cli"
        for function in functions(path.read_text(encoding="utf-8"))
        if parameters(function) > PARAMETERS
    ]
    assert many == []


def test_bodies_are_short() -> None:
    lines = [
        (body_lines(function), f"{path.relative_to(PACKAGE)}: {function.name}")
        for path in sorted(PACKAGE.rglob("*.py"))
        for function in functions(path.read_text(encoding="utf-8"))
    ]
    assert len(lines) > 2000
    assert [name for count, name in lines if count > LONGEST] == []
    assert np.percentile([count for count, _ in lines], 95) <= P95
