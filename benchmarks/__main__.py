"""Run every benchmark, or those named: ``python -m benchmarks startup frontier``."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def main(names: list[str]) -> None:
    known = [
        m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_")
    ]
    for name in names or known:
        if name not in known:
            sys.exit(f"error: no benchmark '{name}'; there are: {', '.join(known)}")
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"== {name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
        if hasattr(module, "main"):
            sys.argv = [name]  # some take arguments of their own when they run alone
            module.main()
        print(flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
