"""How long ``downclock --help`` takes beside ``python -c "import numpy"``: at most 3 times.

Run ``python -m benchmarks.startup``; the least of several runs of each, alternating, in user plus
system time and in wall-clock time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

RUNS = 11

CASES = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "python -c 'import numpy'": [sys.executable, "-c", "import numpy"],
    "python -c 'import downclock'": [sys.executable, "-c", "import downclock"],
    "downclock --help": [sys.executable, "-m", "downclock", "--help"],
    "downclock plan --help": [sys.executable, "-m", "downclock", "plan", "--help"],
}


def seconds(command: list[str]) -> tuple[float, float]:
    """Return (processor time, wall-clock time) of one run."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, end = os.times(), time.perf_counter()
    busy = after.children_user - before.children_user
    return busy + after.children_system - before.children_system, end - start


def main() -> None:
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in CASES}
    for _ in range(RUNS):
        for name, command in CASES.items():
            runs[name].append(seconds(command))
    least = {name: tuple(map(min, zip(*times, strict=True))) for name, times in runs.items()}
    numpy_cpu, numpy_wall = least["python -c 'import numpy'"]
    print(f"{'command':<30} {'CPU':>9} {'of numpy':>9} {'wall':>9} {'of numpy':>9}")
    for name, (cpu, wall) in least.items():
        print(
            f"{name:<30} {cpu * 1e3:6.0f} ms {cpu / numpy_cpu:8.2f}x {wall * 1e3:6.0f} ms"
            f" {wall / numpy_wall:8.2f}x"
        )
    ratio = least["downclock --help"][0] / numpy_cpu
    print(f"downclock --help / import numpy: {ratio:.2f} (limit 3)")


if __name__ == "__main__":
    main()
