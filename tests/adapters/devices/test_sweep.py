"""`downclock measure` on fake GPUs: real processes, real kills, the real nvidia-ml-py."""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from downclock.adapters.devices.fakes.nvml import FakeGpus
from downclock.power.fit import fit
from downclock.power.measurements import read_measurements
from downclock.power.points import LAWS
from tests.adapters.devices.conftest import FREE, Node, until
from tests.cli.test_interrupts import interrupted

QUICK = "app quick 60 30 200 0.02 0.8 0.01 0 1 0"


def measure(node: Node, *more: str, command: tuple[str, ...] | None = None) -> list[str]:
    ran = command or (str(node.gpus.job), "quick")
    output = str(node.folder / "runs.csv")
    return node.words("measure", "-o", output, "--warm-up", "0", *more, "--", *ran)


def run(node: Node, words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=node.env(), capture_output=True, text=True, check=False)


def rows(node: Node) -> list[dict[str, str]]:
    with (node.folder / "runs.csv").open() as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def bench(node: Node) -> Node:
    node.gpus.configure(QUICK, "memory 1215 810")
    return node


def test_every_setting_is_run_as_often_as_asked_and_all_is_reset(bench: Node) -> None:
    words = measure(
        bench, "--core-mhz", "600,900", "--memory-mhz", "1215,810", "--repeats", "2", "--seed", "3"
    )
    ran = run(bench, words)
    assert ran.returncode == 0, ran.stderr
    seen = [(row["core_mhz"], row["memory_mhz"]) for row in rows(bench)]
    pairs = {("600", "1215"), ("600", "810"), ("900", "1215"), ("900", "810")}
    assert set(seen[:4]) == set(seen[4:]) == pairs  # a round, then another
    assert bench.locked == [FREE] * 4
    assert "fake-job: 8 runs; least energy at" in ran.stdout
    assert {row["source"] for row in rows(bench)} == {"counter"}
    set_to = [
        (name, high) for _, _, name, _, high in bench.gpus.log() if name.startswith("nvmlDeviceSet")
    ]
    cores = [str(high) for name, high in set_to if name == "nvmlDeviceSetGpuLockedClocks"]
    assert cores == [core for core, _ in seen]


def test_what_is_measured_is_what_the_gpu_did(bench: Node) -> None:
    """At 705 MHz, half the highest clock: 0.4 (0.8 / 0.5 + 0.2) + 0.1 s; see fake_nvml.c."""
    bench.gpus.configure("app quick 60 30 200 0.4 0.8 0.1 0 1 0")
    run(bench, measure(bench, "--core-mhz", "705", "--repeats", "1"))
    (row,) = rows(bench)
    assert float(row["time_s"]) == pytest.approx(0.4 * 1.8 + 0.1, rel=0.1)
    assert float(row["power_w"]) == pytest.approx(60 + 30 + 200 * 0.5**3, rel=0.1)
    assert float(row["energy_j"]) == pytest.approx(
        float(row["time_s"]) * float(row["power_w"]), rel=1e-4
    )


def test_runs_that_were_disturbed_are_told_of(bench: Node) -> None:
    """Every other run takes a third of a second longer."""
    odd = bench.folder / "odd"
    slow = f"rm {odd} 2>/dev/null && sleep 0.3 || touch {odd}; {bench.gpus.job} quick 20"
    ran = run(bench, measure(bench, "--core-mhz", "600", "--repeats", "2",
                             command=("sh", "-c", slow)))  # fmt: skip
    assert "runs at one setting differ by" in ran.stdout + ran.stderr


def test_without_a_counter_energy_is_the_trapezoid_of_power(bench: Node) -> None:
    bench.gpus.configure(
        "app quick 60 30 200 0.8 0.8 0.1 0 1 0", "fail nvmlDeviceGetTotalEnergyConsumption 3"
    )
    run(bench, measure(bench, "--core-mhz", "705", "--repeats", "1"))
    (row,) = rows(bench)
    assert row["source"] == "trapezoid"
    assert float(row["power_w"]) == pytest.approx(115.0, rel=0.15)


def test_a_sweep_of_power_limits_goes_back_to_the_limit_there_was(bench: Node) -> None:
    ran = run(bench, measure(bench, "--power-limit-w", "150-300", "--points", "4"))
    assert ran.returncode == 0, ran.stderr
    assert {row["power_limit_w"] for row in rows(bench)} == {"150", "200", "250", "300"}
    assert "core_mhz" not in rows(bench)[0]
    assert bench.locked == [FREE] * 4
    assert bench.gpus.log()[-1][2:] == ("nvmlDeviceSetPowerManagementLimit", 400000, 400000)
    read_measurements(bench.folder / "runs.csv")


def test_several_gpus_are_set_alike_and_their_energies_added(bench: Node) -> None:
    words = measure(bench, "--device", "gpu1,gpu2", "--core-mhz", "600", "--repeats", "1")
    assert run(bench, words).returncode == 0
    assert {gpu for _, gpu, *_ in bench.gpus.log()} == {1, 2}
    assert rows(bench)[0]["device"] == "gpu1+gpu2"
    assert float(rows(bench)[0]["power_w"]) == pytest.approx(90.0, rel=0.02)  # both idle


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_sweep_resets_ends_its_command_and_goes_on(bench: Node, number: int) -> None:
    bench.gpus.configure("app quick 60 30 200 0.3 0.8 0.01 0 1 0")
    words = measure(bench, "--core-mhz", "600,705,900", "--repeats", "2")
    killed = subprocess.Popen(words, env=bench.env(), stdout=subprocess.DEVNULL)
    until(lambda: (bench.folder / "runs.csv").exists() and len(rows(bench)) >= 2)
    until(lambda: any(gpu.busy for gpu in bench.gpus.read()))
    killed.send_signal(number)
    killed.wait(20)
    until(lambda: not list(bench.state.glob("gpu-*")))
    assert bench.locked == [FREE] * 4
    before = rows(bench)
    assert 2 <= len(before) < 6
    ran = run(bench, words)
    assert ran.returncode == 0, ran.stderr
    assert rows(bench)[: len(before)] == before
    assert sorted(row["core_mhz"] for row in rows(bench)) == sorted(["600", "705", "900"] * 2)
    again = run(bench, words)
    assert (again.returncode, len(rows(bench))) == (0, 6)


def test_where_the_guardian_was_killed_too_the_next_one_resets(bench: Node) -> None:
    bench.gpus.configure("app quick 60 30 200 3 0.8 0.01 0 1 0")
    killed = subprocess.Popen(measure(bench, "--core-mhz", "600"), env=bench.env())
    until(lambda: any(gpu.busy for gpu in bench.gpus.read()))
    os.kill(killed.pid, signal.SIGSTOP)  # so that it does not hear of its children's ends
    tasks = Path(f"/proc/{killed.pid}/task")
    until(lambda: all(") T " in (each / "stat").read_text() for each in tasks.iterdir()))
    children = " ".join((each / "children").read_text() for each in tasks.iterdir())
    for child in children.split():
        os.kill(int(child), signal.SIGKILL)
    killed.kill()
    killed.wait(20)
    assert bench.locked[0][0] == 600
    assert bench.agent("recover").returncode == 0
    assert bench.locked == [FREE] * 4


def test_ctrl_c_is_heard_and_resets(bench: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.gpus.configure("app quick 60 30 200 1.2 0.8 0.01 0 1 0")
    for key, value in bench.env().items():
        monkeypatch.setenv(key, value)
    words = measure(bench, "--core-mhz", "600")[1:]
    begun_s = time.monotonic()
    code, seen = interrupted(words, b"fake-job at 600 MHz core (1 of 3", paints=2)
    assert (code, time.monotonic() - begun_s < 30.0) == (130, True), seen
    assert f"interrupted; saved: {bench.folder / 'runs.csv'}" in seen
    assert len(rows(bench)) == 1
    until(lambda: not list(bench.state.glob("gpu-*")))
    assert bench.locked == [FREE] * 4
    until(lambda: not bench.gpus.read()[0].busy or _settled(bench.gpus))


def _settled(gpus: FakeGpus) -> bool:
    """A job that was killed is noticed by the next call."""
    words = [sys.executable, "-m", "downclock", "devices", "-q"]
    subprocess.run(words, env={**os.environ, **gpus.environment}, check=True)
    return not gpus.read()[0].busy


REFUSED = {
    "its command is not there": (("--core-mhz", "600"), ("/no/such/program",), "cannot be run"),
    "its command fails": (
        ("--core-mhz", "600"),
        ("sh", "-c", "echo first; echo out of memory >&2; exit 3"),
        "ended with code 3 at 600 MHz core (out of memory); runs before it are kept",
    ),
    "no such device": (("--device", "gpu7"), None, "device='gpu7' is not a device here; there are"),
    "both knobs": (("--core-mhz", "600", "--power-limit-w", "200"), None, "not both"),
    "no number": (("--core-mhz", "fast"), None, "'fast' is not a list such as"),
    "turned range": (("--core-mhz", "900-600"), None, "'900-600' is not a list such as"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_measured_is_one_line_and_all_is_reset(bench: Node, case: str) -> None:
    more, command, said = REFUSED[case]
    ran = run(bench, measure(bench, *more, command=command))
    assert ran.returncode == 2
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert not bench.gpus.state.exists() or bench.locked == [FREE] * 4
    assert not list(bench.state.glob("gpu-*"))


BROKEN = {
    "fail nvmlDeviceSetGpuLockedClocks 4": "gpu0: setting core clocks needs root, or zeusd running",
    "fail nvmlDeviceSetGpuLockedClocks 3": "gpu0: setting core clocks is not supported by this GPU",
    "fail nvmlInitWithFlags 9": "the NVIDIA driver is not loaded",
    "fail * 15 0": "gpu0: the GPU is lost",
}


@pytest.mark.parametrize("failure", BROKEN)
def test_gpus_that_refuse_are_one_line(bench: Node, failure: str) -> None:
    bench.gpus.configure(QUICK, failure)
    ran = run(bench, measure(bench, "--core-mhz", "600"))
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    assert ran.stderr.startswith("error: ")
    assert BROKEN[failure] in ran.stderr


def test_another_command_under_the_same_name_is_refused(bench: Node) -> None:
    run(bench, measure(bench, "--core-mhz", "600", "--repeats", "1"))
    other = (str(bench.gpus.job), "quick", "2")
    ran = run(bench, measure(bench, "--core-mhz", "600", command=other))
    assert ran.returncode == 2
    assert "was measured there with another command: name another --application" in ran.stderr
    named = measure(
        bench, "--core-mhz", "600", "--application", "b", "--repeats", "1", command=other
    )
    assert run(bench, named).returncode == 0
    assert [row["application"] for row in rows(bench)] == ["fake-job", "b"]
    (bench.folder / "runs.csv").write_text("mine,yours\n1,2\n")
    ran = run(bench, measure(bench, "--core-mhz", "600"))
    assert "is there and is not a sweep like this one" in ran.stderr
    assert (bench.folder / "runs.csv").read_text() == "mine,yours\n1,2\n"


def test_two_sweeps_at_once_do_not_set_the_same_gpus(bench: Node) -> None:
    bench.gpus.configure("app quick 60 30 200 3 0.8 0.01 0 1 0")
    first = subprocess.Popen(
        measure(bench, "--core-mhz", "600"), env=bench.env(), stderr=subprocess.DEVNULL
    )
    until(lambda: any(gpu.busy for gpu in bench.gpus.read()))
    ran = run(bench, measure(bench, "--core-mhz", "900"))
    first.terminate()
    first.wait(20)
    assert (ran.returncode, "another measure is at work" in ran.stderr) == (2, True)


SLEEPER = ("sh", "-c", 'touch "$0"; sleep 60')


def test_a_gpu_that_a_job_has_is_not_measured(bench: Node) -> None:
    bench.job(7, "downclock core_mhz=1005")
    assert bench.agent("prolog", 7, "1").returncode == 0
    until(lambda: not list(bench.state.glob("job-*")))
    held = (bench.locked, [path.read_text() for path in bench.state.glob("gpu-*.json")])
    ran = run(bench, measure(bench, "--device", "gpu1", "--core-mhz", "600"))
    assert ran.returncode == 2
    assert "gpu1: job 7 has it" in ran.stderr
    assert (bench.locked, [path.read_text() for path in bench.state.glob("gpu-*.json")]) == held
    other = run(bench, measure(bench, "--device", "gpu2", "--core-mhz", "600", "--repeats", "1"))
    assert other.returncode == 0, other.stderr
    bench.agent("epilog", 7, "1")
    until((bench.state / "spool" / "7-n1-0.json").exists)
    assert bench.spooled(7)["energy_j"] > 0.0


def test_a_job_that_starts_in_a_sweep_does_not_take_its_record(bench: Node) -> None:
    there = bench.folder / "there"
    words = measure(bench, "--core-mhz", "600", command=(*SLEEPER, str(there)))
    sweep = subprocess.Popen(words, env=bench.env(), stderr=subprocess.DEVNULL)
    try:
        until(there.exists)
        kept = [path.read_text() for path in bench.state.glob("gpu-*.json")]
        bench.job(7, "downclock core_mhz=1005")
        said = bench.agent("prolog", 7, "0,1")
        until(lambda: not list(bench.state.glob("job-*")))
        assert "a sweep of downclock measure has its GPUs" in said.stdout + said.stderr
        assert [path.read_text() for path in bench.state.glob("gpu-*.json")] == kept
        assert [core for core, _, _ in bench.locked] == [600, 0, 0, 0]
    finally:
        sweep.kill()
        sweep.wait()
    until(lambda: bench.locked == [FREE] * 4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_measure_and_fit_recover_the_hidden_law_within_2_percent(bench: Node, seed: int) -> None:
    """The law is drawn; time and power of the fit are right at all clocks, measured or not.

    A busy machine starts a run and hears of its end some 20 ms late in all, so runs are of 2 s, as
    `measure` advises.
    """
    chance = random.Random(seed)
    p0, gamma, c = chance.uniform(30, 90), chance.uniform(10, 60), chance.uniform(100, 250)
    d, delta, t0 = chance.uniform(1.2, 1.6), chance.uniform(0.4, 0.9), chance.uniform(0.1, 0.2)
    name = chance.choice(["mei", "proportional"])
    law = LAWS[name]
    terms = f"{law.a0:.9g} {law.a1:.9g} {law.a2:.9g}"
    bench.gpus.configure(
        f"app quick {p0} {gamma} {c} {d} {delta} {t0} {terms}", "memory 1215 810", "limit 100 500"
    )
    words = measure(
        bench,
        "--core-mhz",
        "570-1410",
        "--points",
        "5",
        "--memory-mhz",
        "810,1215",
        "--repeats",
        "2",
    )
    assert run(bench, words).returncode == 0
    fitted = fit(
        read_measurements(bench.folder / "runs.csv"),
        kind="fake",
        default_core_mhz=1410,
        default_memory_mhz=1215,
        law="auto",
    )
    core, memory = (
        grid.ravel() for grid in np.meshgrid(np.arange(570, 1411, 15) / 1410, [2 / 3, 1])
    )
    volt = law.min_volt(core)
    profiles: Any = fitted.library.groups[0]
    points = np.column_stack([core, memory, fitted.clocks.volt(core)])
    time_s, power_w = profiles.at(np.zeros(core.size, dtype=np.int64), points)
    true_s = d * (delta / core + (1 - delta) / memory) + t0
    true_w = p0 + gamma * memory + c * volt**2 * core
    errors = [np.abs(time_s / true_s - 1), np.abs(power_w / true_w - 1)]
    print(*(f"{each.mean():.2%} (worst {each.max():.2%})" for each in errors), name, seed)
    assert max(each.mean() for each in errors) < 0.02
