"""Fuzz the input formats: ``python -m tests.fuzz --count 50000 --seed 1``.

Inputs have consecutive seeds and take turns at the formats. A failure prints the command that
makes its input again: ``python -m tests.fuzz --only FORMAT --seed S`` (add ``--keep FOLDER`` for
its files).
"""

from __future__ import annotations

import argparse
import faulthandler
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.fuzz.formats import FORMATS, one_input
from tests.fuzz.judge import SPECS, Outcome

STUCK_S = 200
"""An input that takes longer (on the processor) ends the run; its folder stays, named after it."""


def main() -> int:
    """Run; the exit code says whether anything failed."""
    asked = _arguments()
    names = asked.only or list(FORMATS)
    count = asked.count or (1 if asked.only else 1000)
    total, shown = Counter[str](), Counter[str]()
    begun = time.monotonic()
    faulthandler.register(signal.SIGPROF, chain=True)
    for k in range(count):
        name, seed = names[k % len(names)], asked.seed + k // len(names)
        signal.setitimer(signal.ITIMER_PROF, STUCK_S)
        specs = None if asked.policies is None else Random(seed).sample(SPECS, asked.policies)
        outcome = _tried(name, seed, asked.keep, specs)
        total.update(inputs=1, accepted=int(outcome.accepted), planned=outcome.planned)
        total.update(failures=int(bool(outcome.failures)))
        if outcome.failures:
            _show(name, seed, outcome, shown, whole=count == 1)
        if (k + 1) % 1000 == 0 or k + 1 == count:
            _say(total, time.monotonic() - begun)
    if count == 1 and outcome.refused is not None:
        print(f"refused: {outcome.refused}")
    for what, times in shown.most_common():
        print(f"{times:6d} x {what}")
    return 1 if total["failures"] else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, help="inputs [1000; 1 with --only]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first input [0]")
    parser.add_argument("--only", choices=list(FORMATS), nargs="+", help="formats, in turn")
    parser.add_argument("--policies", type=int, help="so many, drawn, plan an input [all]")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the files there")
    return parser.parse_args()


def _tried(name: str, seed: int, keep: Path | None, specs: list[str] | None) -> Outcome:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        return one_input(name, seed, keep, specs)
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-{seed}-") as folder:
        return one_input(name, seed, Path(folder), specs)


def _show(name: str, seed: int, outcome: Outcome, shown: Counter[str], *, whole: bool) -> None:
    for failure in outcome.failures:
        shown[_kind(failure)] += 1
        if whole or shown[_kind(failure)] <= 3:
            print(f"--only {name} --seed {seed}: {failure}")
    if whole:
        print("\n".join(outcome.traces))


def _kind(failure: str) -> str:
    """The failure without the numbers that differ from input to input."""
    return ": ".join(failure.split(": ")[:3])


def _say(total: Counter[str], seconds: float) -> None:
    print(
        f"{total['inputs']} inputs, {total['accepted']} accepted, {total['planned']} plans,"
        f" {total['failures']} failed, {seconds:.0f} s",
        flush=True,
    )


sys.exit(main())
