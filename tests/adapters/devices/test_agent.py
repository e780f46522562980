"""The agent as Slurm calls it: real processes, the real nvidia-ml-py, fake GPUs."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pytest

from downclock.adapters.devices import agent, process
from downclock.adapters.devices.slurm_job import started_here
from downclock.adapters.devices.state import Record, State
from tests.adapters.devices.conftest import FREE, PLAN, RECORD, SHOWN, Node, begun, until


def test_a_job_runs_at_its_clocks_and_they_are_reset(node: Node) -> None:
    node.job(7, PLAN)
    assert node.agent("prolog", 7, "1,2").returncode == 0
    until(lambda: begun(node))
    assert [core for core, _, _ in node.locked] == [0, 1005, 1005, 0]
    records = [json.loads(path.read_text()) for path in node.state.glob("gpu-*.json")]
    node.run("1,2")
    assert node.agent("epilog", 7, "1,2").returncode == 0
    until(lambda: not list(node.state.glob("gpu-*")))
    assert node.locked == [FREE] * 4
    told = node.spooled(7)
    assert (told["job"], told["node"], told["user"], told["job_name"]) == (
        "7",
        "n1",
        "ann",
        "train",
    )
    assert told["source"] == "counter"
    assert [gpu["index"] for gpu in told["gpus"]] == [1, 2]
    assert {(g["core_mhz"], g["memory_mhz"], g["set"], g["why"]) for g in told["gpus"]} == {
        (1005, 1215, True, "")
    }
    meters_j = sum(gpu.energy_j for gpu in node.gpus.read()[1:3])
    used_j = meters_j - sum(record["counter_j"] for record in records)
    assert told["energy_j"] == pytest.approx(used_j, rel=0.01)
    assert told["started_s"] < told["ended_s"]


def test_the_default_gpus_are_those_cuda_sees(node: Node) -> None:
    node.job(7, PLAN)
    visible = Node(node.folder, node.gpus, {"CUDA_VISIBLE_DEVICES": "3"})
    visible.agent("prolog", 7)
    until(lambda: begun(node))
    assert [core for core, _, _ in node.locked] == [0, 0, 0, 1005]


def test_a_job_without_a_plan_is_measured_and_not_set(node: Node) -> None:
    node.job(7, "downclock=off")
    node.agent("prolog", 7, "0")
    node.agent("epilog", 7, "0")
    (gpu,) = node.ended(7)["gpus"]
    assert (gpu["set"], gpu["core_mhz"], gpu["why"]) == (False, None, "not planned")
    assert gpu["energy_j"] > 0.0
    assert node.gpus.log() == []


def test_a_clock_the_gpu_does_not_have_becomes_the_next_faster_one(node: Node) -> None:
    node.job(7, "downclock core_mhz=1001")
    node.agent("prolog", 7, "0")
    until(lambda: begun(node))
    assert node.locked[0][0] == 1005


def test_a_power_limit_is_set_only_downwards_and_goes_back(node: Node) -> None:
    node.gpus.configure("limit 100 400")
    node.job(6, "downclock power_limit_w=250")
    node.agent("prolog", 6, "0")
    until(lambda: begun(node))
    assert node.locked[0] == (0, 0, 250.0)
    node.job(7, "downclock power_limit_w=390")
    node.agent("prolog", 7, "0")  # the epilog of job 6 never came: its limit goes back first
    until(lambda: begun(node))
    assert node.locked[0] == (0, 0, 390.0)
    node.agent("epilog", 7, "0")
    until(lambda: not list(node.state.glob("gpu-*")))
    assert node.locked[0] == FREE
    assert {path.name for path in (node.state / "spool").iterdir()} == {
        "6-n1-0.json",
        "7-n1-0.json",
    }


FAILURES = {
    "fail nvmlDeviceSetGpuLockedClocks 4": "gpu0: setting core clocks needs root, or zeusd running",
    "fail nvmlDeviceSetGpuLockedClocks 3 1": "setting core clocks is not supported by this GPU",
    "fail nvmlDeviceSetGpuLockedClocks 13": "is not known to this driver, which is too old",
    "fail nvmlDeviceSetGpuLockedClocks 15 1": "gpu1: the GPU is lost",
    "fail nvmlDeviceSetGpuLockedClocks 999 1": "gpu1: setting core clocks was refused",
}


@pytest.mark.parametrize("failure", FAILURES)
def test_where_one_gpu_cannot_be_set_none_is_and_the_job_runs(node: Node, failure: str) -> None:
    node.gpus.configure(failure)
    node.job(7, PLAN)
    ran = node.agent("prolog", 7, "0,1")
    assert ran.returncode == 0
    until(lambda: begun(node))
    assert node.locked == [FREE] * 4
    node.gpus.configure()
    node.agent("epilog", 7, "0,1")
    told = node.ended(7)
    assert [gpu["set"] for gpu in told["gpus"]] == [False, False]
    assert all(FAILURES[failure] in gpu["why"] for gpu in told["gpus"])
    assert told["energy_j"] > 0.0


NOTHING_TO_ASK = {
    "fail nvmlInitWithFlags 9": "NVIDIA GPUs: the NVIDIA driver is not loaded",
    "fail nvmlInitWithFlags 12": "NVIDIA GPUs: there is no NVIDIA driver on this machine",
    "fail * 15 0": "gpu0: the GPU is lost (it no longer answers on the bus): reboot the machine",
}


def test_clocks_are_reset_and_set_where_nothing_can_be_spooled(node: Node) -> None:
    (node.folder / "state").mkdir(mode=0o755)
    (node.state / "spool").write_text("a file, no folder")
    node.job(7, PLAN)
    node.agent("prolog", 7, "1")
    until(lambda: begun(node))
    assert node.locked[1][0] == 1005
    ran = node.agent("epilog", 7, "1")
    assert (ran.returncode, "its end could not be spooled" in ran.stderr) == (0, True)
    until(lambda: not list(node.state.glob("gpu-*")))
    assert node.locked == [FREE] * 4
    for job in (8, 9):  # the epilog of job 8 never came
        node.job(job, PLAN)
        node.agent("prolog", job, "1")
        until(lambda: begun(node))
        assert node.locked[1][0] == 1005
    recovered = node.agent("recover", 0, "", "--all")
    assert (recovered.returncode, "its energy could not be spooled" in recovered.stderr) == (
        0,
        True,
    )
    assert node.locked == [FREE] * 4


def test_clocks_are_reset_where_the_spool_hangs_and_energy_is_told_when_it_is_back(
    node: Node,
) -> None:
    node.job(7, PLAN)
    node.agent("prolog", 7, "1")
    until(lambda: begun(node))
    node.job(7, PLAN, state="COMPLETED")
    spool = node.state / "spool"
    spool.mkdir()
    hangs = spool / "7-n1-0.json"
    os.mkfifo(hangs)  # whoever opens it waits for ever
    epilog = subprocess.Popen(node.words("agent", "epilog"), env=node.env(7, "1"))
    try:
        until(lambda: node.locked == [FREE] * 4)
        assert epilog.poll() is None
    except AssertionError:
        epilog.kill()
        raise

    def told() -> object:
        with suppress(OSError):  # whoever waits reads nothing
            os.close(os.open(hangs, os.O_WRONLY | os.O_NONBLOCK))
        return [path for path in spool.glob("7-n1-0-*.json") if '"set": true' in path.read_text()]

    until(told)
    assert epilog.wait(30) == 0
    (path,) = spool.glob("7-n1-0-*.json")
    row = json.loads(path.read_text())
    assert (row["by"], row["gpus"][0]["core_mhz"]) == ("epilog", 1005)
    assert row["energy_j"] > 0.0


def test_recover_resets_before_it_looks_into_the_spool(node: Node) -> None:
    node.job(7, PLAN)
    node.agent("prolog", 7, "1")
    until(lambda: begun(node))
    node.job(7, PLAN, state="COMPLETED")
    hangs = (
        "import time\nfrom downclock.adapters.devices import agent\n"
        "agent._forget_unfinished = lambda _: time.sleep(60)\n"
        f"agent.recover(agent.Site({str(node.state)!r}, {str(node.state / 'spool')!r},"
        f" {str(node.folder / 'slurm' / 'scontrol')!r}), print)"
    )
    recover = subprocess.Popen([sys.executable, "-c", hangs], env=node.env())
    try:
        until(lambda: node.locked == [FREE] * 4)
    finally:
        recover.kill()
        recover.wait()


@pytest.mark.parametrize("failure", NOTHING_TO_ASK)
def test_a_job_on_broken_gpus_starts_with_one_line_that_says_so(node: Node, failure: str) -> None:
    node.gpus.configure(failure)
    node.job(7, PLAN)
    ran = node.agent("prolog", 7, "0")
    assert ran.returncode == 0
    if "goes on" not in ran.stderr:  # a slow machine did not wait for it
        assert NOTHING_TO_ASK[failure] in ran.stderr
        assert "Traceback" not in ran.stderr
    assert node.agent("epilog", 7, "0").returncode == 0


def test_a_driver_that_hangs_does_not_keep_the_job(node: Node) -> None:
    """Eight seconds of silence: the prolog is back in a moment; clocks are set after all."""
    node.job(7, PLAN)
    node.agent("prolog", 1, "")  # programs are in memory; it has no GPUs
    assert begun(node)
    node.gpus.configure("delay nvmlInitWithFlags 8000")
    begun_s = time.monotonic()
    ran = node.agent("prolog", 7, "0")
    assert time.monotonic() - begun_s < 6.0  # `python -m benchmarks.agent` measures how long
    assert (ran.returncode, "goes on while the job does" in ran.stderr) == (0, True)
    until(lambda: begun(node))
    assert node.locked[0][0] == 1005


def test_a_job_does_not_wait_while_others_are_looked_after() -> None:
    slow = (
        "import time\nfrom downclock.adapters.devices import agent\n"
        "agent.prolog = lambda *_: None\nagent.check_others = lambda *_: time.sleep(20)\n"
        "agent.main(['prolog', '', '', '', '0', '[0, 0, true]', '0'])"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", slow], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert worker.stdout is not None
    try:
        assert agent._heard(worker.stdout.fileno(), 15.0) == ("", True)
        assert worker.poll() is None
    finally:
        worker.kill()
        worker.stdout.close()
        worker.wait()


def test_a_prolog_that_comes_after_its_epilog_sets_nothing(node: Node) -> None:
    node.job(7, PLAN)
    node.gpus.configure("delay nvmlInitWithFlags 1500")
    (node.folder / "slurm" / "scontrol").write_text(
        "#!/bin/sh\nsleep 2\nexec cat $(dirname $0)/$4\n"
    )
    node.agent("prolog", 7, "0")  # waits for Slurm
    node.agent("epilog", 7, "0")
    time.sleep(5.0)
    node.gpus.configure()
    assert node.gpus.log() == []
    assert not list(node.state.glob("gpu-*"))


def test_an_epilog_that_comes_while_its_prolog_works_tells_of_one_run(node: Node) -> None:
    """Counters that take long are read between the look at the announcement and the record."""
    node.job(7, PLAN)
    node.gpus.configure("delay nvmlDeviceGetTotalEnergyConsumption 1500")
    node.agent("prolog", 7, "0")
    node.job(7, PLAN, state="COMPLETING")
    node.agent("epilog", 7, "0")
    until(lambda: node.ended(7)["completed"])
    assert [path.name for path in (node.state / "spool").iterdir()] == ["7-n1-0.json"]
    assert node.spooled(7)["energy_j"] > 0.0
    assert node.locked == [FREE] * 4


def test_an_epilog_that_takes_long_leaves_the_next_attempt_alone(node: Node) -> None:
    state, job = State.opened(node.state), agent.job_of(node.env(7, "0"))
    node.job(7, PLAN)
    node.agent("prolog", 7, "0")
    until(lambda: begun(node))
    first = agent._withdraw(state, job, time.time())
    node.job(7, PLAN.replace("1005", "705"), restarts=1)
    node.agent("prolog", 7, "0")
    until(lambda: begun(node))
    assert first is not None
    _worker(node, "epilog", 7, "0", first).wait(30)
    assert node.locked[0][0] == 705
    assert [record.attempt for record in state.records()] == [1]
    node.job(7, PLAN, state="COMPLETING", restarts=1)
    node.agent("epilog", 7, "0")
    until(lambda: not list(node.state.glob("gpu-*")))
    assert node.locked == [FREE] * 4
    assert [len(node.spooled(7, attempt)["gpus"]) for attempt in (0, 1)] == [1, 1]


def test_an_announcement_of_a_run_without_an_epilog_hides_no_later_run(node: Node) -> None:
    """A machine lost its power while a prolog worked; the job was requeued and came back."""
    node.job(7, PLAN)
    _announced(node, 7, "0")
    node.job(7, PLAN, restarts=1)
    last = _announced(node, 7, "0")
    _worker(node, "prolog", 7, "0", last).wait(30)
    assert node.locked[0][0] == 1005
    node.job(7, PLAN, state="COMPLETING", restarts=1)
    node.agent("epilog", 7, "0")
    until(lambda: not list(node.state.glob("gpu-*")))
    assert node.locked == [FREE] * 4
    assert begun(node)
    assert node.spooled(7, 1)["begun_s"] == last.begun_s


def test_a_record_of_old_began_when_its_counter_was_read(node: Node) -> None:
    node.job(7, PLAN)
    node.agent("prolog", 7, "0")
    until(lambda: begun(node))
    (path,) = node.state.glob("gpu-*.json")
    record = json.loads(path.read_text())
    del record["begun_s"]
    path.write_text(json.dumps(record))
    node.job(7, PLAN, state="COMPLETING")
    node.agent("epilog", 7, "0")
    told = node.ended(7)
    assert (told["begun_s"], told["started_s"]) == (record["started_s"],) * 2


def test_a_prolog_that_takes_long_is_not_taken_for_that_of_the_next_attempt(node: Node) -> None:
    state, job = State.opened(node.state), agent.job_of(node.env(7, "0"))
    node.job(7, PLAN)
    first = _announced(node, 7, "0")
    agent._withdraw(state, job, time.time())
    second = _announced(node, 7, "0")
    _worker(node, "prolog", 7, "0", first).wait(30)
    assert not state.records()
    _worker(node, "prolog", 7, "0", second).wait(30)
    assert node.locked[0][0] == 1005


def test_without_a_counter_power_is_sampled(node: Node) -> None:
    node.gpus.configure("fail nvmlDeviceGetTotalEnergyConsumption 3")
    node.job(7, PLAN)
    node.agent("prolog", 7, "0")
    (samples,) = _eventually(lambda: list(node.state.glob("gpu-*.samples")))
    until(lambda: samples.read_text().strip() != "")
    before_j = node.gpus.read()[0].energy_j
    node.run("0", scale=1.0)
    node.agent("epilog", 7, "0")
    until(lambda: not list(node.state.glob("gpu-*")))
    told = node.spooled(7)
    assert told["source"] == "trapezoid"
    used_j = node.gpus.read()[0].energy_j - before_j
    assert told["energy_j"] == pytest.approx(used_j, rel=0.25)  # half a second between samples
    assert node.locked == [FREE] * 4


def _eventually(found):
    until(found)
    return found()


def test_recover_resets_what_an_ended_job_left_and_spares_a_running_one(node: Node) -> None:
    node.job(7, PLAN)
    node.job(8, PLAN)
    node.agent("prolog", 7, "0")
    node.agent("prolog", 8, "1")
    until(lambda: begun(node))
    node.job(7, PLAN, state="COMPLETED")
    ran = node.agent("recover")
    assert ran.returncode == 0, ran.stderr
    assert [core for core, _, _ in node.locked] == [0, 1005, 0, 0]
    assert node.spooled(7)["gpus"][0]["core_mhz"] == 1005
    assert node.spooled(7)["by"] == "recover"
    node.job(8, PLAN, restarts=1)  # requeued: the attempt that was locked is over
    node.agent("recover")
    assert node.locked == [FREE] * 4
    assert node.spooled(8)["attempt"] == 0


def test_recover_resets_where_nobody_can_say_whether_the_job_runs(node: Node) -> None:
    node.job(7, PLAN)
    node.agent("prolog", 7, "0")
    until(lambda: begun(node))
    (node.folder / "slurm" / "down").touch()
    assert node.agent("recover").returncode == 0
    assert node.locked == [FREE] * 4
    node.agent("epilog", 7, "0")  # its energy is still told
    assert "nobody could say" in node.ended(7)["gpus"][0]["why"]


def test_recover_all_resets_running_jobs_too(node: Node) -> None:
    node.job(7, PLAN)
    node.agent("prolog", 7, "0,1,2,3")
    until(lambda: begun(node))
    assert node.agent("recover", 0, "", "--all").returncode == 0
    assert node.locked == [FREE] * 4


def test_recover_tells_what_it_could_not_reset_and_does_it_later(node: Node) -> None:
    node.job(7, PLAN)
    node.agent("prolog", 7, "0,1")
    until(lambda: begun(node))
    node.gpus.configure("fail nvmlDeviceResetGpuLockedClocks 15 1")
    ran = node.agent("recover", 0, "", "--all")
    assert ran.returncode == 1
    assert "gpu1: the GPU is lost" in ran.stderr
    assert [core for core, _, _ in node.locked] == [0, 1005, 0, 0]
    node.gpus.configure()
    assert node.agent("recover").returncode == 0
    assert node.locked == [FREE] * 4


def test_a_record_that_was_damaged_still_resets_its_gpu(node: Node) -> None:
    node.job(7, PLAN)
    node.agent("prolog", 7, "0")
    until(lambda: begun(node))
    (record,) = node.state.glob("gpu-*.json")
    whole = record.read_text()
    record.write_text(whole[: len(whole) // 2])
    assert node.agent("recover").returncode == 0
    assert node.locked[0] == FREE


def test_of_any_damaged_record_the_device_is_known_and_to_be_reset(tmp_path: Path) -> None:
    state = State.opened(tmp_path / "state")
    whole = asdict(Record("GPU-1", 0, "7", core_mhz=900, before_w=300.0))
    texts = ["", "[]", "null", "{", "\0", '{"uuid": 3}', json.dumps({**whole, "more": 1})]
    texts += [json.dumps({**whole, k: b}) for k in whole if k != "spooled" for b in ([], {"a": 1})]
    for text in texts:
        (state.folder / "gpu-GPU-1.json").write_text(text)
        (record,) = state.records()
        assert (record.uuid, record.locked) == ("GPU-1", True), text
        assert (record.core_mhz == 900) == ('"more"' in text)
        state.keep(record)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_prolog_that_is_stopped_resets_what_it_had_set(node: Node, name: str) -> None:
    node.job(7, PLAN)
    node.gpus.configure("delay nvmlDeviceSetGpuLockedClocks 400")
    worker = _worker(node, "prolog", 7, "0,1,2,3")
    until(lambda: len(node.gpus.log()) >= 2)
    worker.send_signal(getattr(signal, name))
    worker.wait(20)
    assert node.locked == [FREE] * 4


def _announced(node: Node, job: int, gpus: str) -> agent.Begun:
    """A run that `call` has announced."""
    asked = agent.job_of(node.env(job, gpus))
    found = agent._announce(State.opened(node.state), asked, time.time())
    assert found is not None
    return found


def _worker(
    node: Node, verb: str, job: int, gpus: str, run: agent.Begun | None = None
) -> subprocess.Popen[bytes]:
    """The process that does the work, without the one that waits for it."""
    run = run or _announced(node, job, gpus)
    where = [str(node.state), str(node.state / "spool"), str(node.folder / "slurm" / "scontrol")]
    words = [sys.executable, "-m", agent.MODULE, verb, *where, repr(time.time()), json.dumps(run)]
    words.append("0.0")
    return subprocess.Popen(words, env=node.env(job, gpus), stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_killed_at_any_moment_nothing_stays_locked(node: Node) -> None:
    """kill -9 at 25 random moments of prolog and epilog (seed 15), then recover."""
    chance = random.Random(15)
    seen_locked = 0
    for job in range(1, 26):
        node.job(job, PLAN)
        if job % 2:  # an epilog dies
            _worker(node, "prolog", job, "0,1,2,3").wait(30)
        worker = _worker(node, "epilog" if job % 2 else "prolog", job, "0,1,2,3")
        _kill_within_its_work(worker, node, chance)
        seen_locked += any(core for core, _, _ in node.locked)
        node.job(job, PLAN, state="FAILED")
        assert node.agent("recover").returncode == 0
        assert node.locked == [FREE] * 4
        assert not list(node.state.glob("gpu-*"))
    assert seen_locked >= 3  # kills that left something to do


def _kill_within_its_work(worker: subprocess.Popen[bytes], node: Node, chance) -> None:
    """Programs start at different speeds: wait until this one holds the lock, then a moment."""
    held = os.open(node.state / "agent.lock", os.O_RDWR | os.O_CREAT)
    import fcntl

    def at_work() -> bool:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(held, fcntl.LOCK_UN)
        return worker.poll() is not None

    until(at_work)
    os.close(held)
    time.sleep(chance.uniform(0.0, 0.25))
    worker.kill()
    worker.wait(20)


def test_a_folder_that_others_may_write_is_refused_and_the_job_starts(node: Node) -> None:
    node.state.mkdir()
    node.state.chmod(0o777)
    ran = node.agent("prolog", 7, "0")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "others may write it" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert node.agent("recover").returncode == 2


def test_outside_of_slurm_it_says_what_it_is_for(node: Node) -> None:
    outside = Node(node.folder, node.gpus, {"SLURM_JOB_ID": ""})
    ran = outside.agent("prolog")
    assert ran.returncode == 0
    assert ran.stderr == (
        "downclock agent: SLURM_JOB_ID='' is not a job: this command is for Slurm's Prolog and"
        " Epilog\n"
    )


def test_nothing_on_the_agents_path_imports_numpy_or_asks_a_shell() -> None:
    script = (
        "import sys; import downclock.adapters.devices.agent, downclock.adapters.devices.machine,"
        " downclock.adapters.devices.nvml, downclock.adapters.devices.amd, downclock.cli.agent;"
        " print({'numpy', 'scipy', 'rich', 'pyarrow'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"
    folder = Path(__file__).parents[3] / "src/downclock/adapters/devices"
    assert not [path for path in folder.rglob("*.py") if "shell=True" in path.read_text()]


def test_energy_across_a_restart_of_the_machine_is_not_made_up(node: Node) -> None:
    node.job(7, PLAN)
    node.agent("prolog", 7, "0")
    until(lambda: begun(node))
    (path,) = node.state.glob("gpu-*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "boot": "another"}))
    node.job(7, PLAN, state="NODE_FAIL")
    assert node.agent("recover").returncode == 0
    told = node.spooled(7)
    assert (told["energy_j"], told["gpus"][0]["why"]) == (
        None,
        "the machine was restarted meanwhile",
    )
    assert node.locked == [FREE] * 4


def test_a_job_that_ended_unseen_is_reset_by_a_later_job_on_other_gpus(node: Node) -> None:
    node.job(7, PLAN)
    node.agent("prolog", 7, "0")
    until(lambda: begun(node))
    node.job(7, PLAN, state="COMPLETED")  # its epilog was killed, eleven minutes ago
    (path,) = node.state.glob("gpu-*.json")
    os.utime(path, (time.time() - 660, time.time() - 660))
    node.job(8, PLAN)
    node.agent("prolog", 8, "3")
    until(lambda: node.locked[0] == FREE)
    assert node.locked[3][0] == 1005
    until((node.state / "spool" / "7-n1-0.json").exists)


def test_eight_jobs_that_start_at_once_are_all_set(node: Node) -> None:
    node.gpus.configure("gpus 8")
    for job in range(8):
        node.job(job, f"downclock core_mhz={600 + 15 * job}")
    ran = [
        subprocess.Popen(
            node.words("agent", "prolog"), env=node.env(job, str(job)), stderr=subprocess.DEVNULL
        )
        for job in range(8)
    ]
    assert [each.wait(60) for each in ran] == [0] * 8
    until(lambda: begun(node))
    assert [gpu.core_mhz for gpu in node.gpus.read(8)] == [600 + 15 * job for job in range(8)]


def test_recover_deletes_what_dead_agents_left_half_written(node: Node) -> None:
    (node.state / "spool").mkdir(parents=True)
    old = [node.state / "job-7", node.state / ".gpu-a.json.0a.tmp"]
    old += [node.state / "spool" / ".7-n1-0.json.0a.tmp"]
    for path in (*old, node.state / "job-8"):
        path.touch()
    for path in old:
        os.utime(path, (1.0, 1.0))
    assert node.agent("recover").returncode == 0
    assert {path.name for path in node.state.rglob("*")} == {"agent.lock", "job-8", "spool"}


@pytest.mark.parametrize(
    ("case", "again"),
    [
        ("lost", True),
        ("announced", True),
        ("known to Slurm only", True),
        ("not planned by us", False),
        ("of this slurmd", False),
        ("of long ago", False),
        ("its slurmd is just here", False),
        ("it began", False),
        ("launched anew", False),
        ("elsewhere", False),
        ("ended", False),
        ("has processes", False),
    ],
)
def test_a_job_that_a_slurmd_died_over_is_requeued(tmp_path: Path, case: str, again: bool) -> None:
    """Its Prolog began before the slurmd of now, and Slurm takes it for running here ever since."""
    begun_s = round(time.time()) - 60.0
    slurmd_s = begun_s - 5.0 if case == "of this slurmd" else begun_s + 20.0
    slurmd_s = time.time() if case == "its slurmd is just here" else slurmd_s
    if case == "of long ago":
        begun_s -= 300.0
    start_s = begun_s + 30.0 if case == "launched anew" else begun_s
    host = "n2" if case == "elsewhere" else "n1"
    shown = "COMPLETED" if case == "ended" else "RUNNING"
    comment = "x" if case == "not planned by us" else "downclock core_mhz=600"
    record = RECORD.format(job=7, name="a", comment=comment, **{**SHOWN, "state": shown})
    record = record.replace(" NodeList=n1", f" StartTime={start_s:.0f} EndTime=0 BatchHost={host}")
    asked = tmp_path / "asked"
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f"#!/bin/sh\necho $* >>{asked}\ncat <<'E'\n{record}E\n")
    scontrol.chmod(0o755)
    squeue = tmp_path / "squeue"
    squeue.write_text(f"#!/bin/sh\necho 7 {begun_s - 1.0:.0f}; echo '8 unknown'\n")
    squeue.chmod(0o755)
    state = State.opened(tmp_path / "state")
    started = started_here(str(scontrol), "n1") if case == "known to Slurm only" else {}
    if case == "announced":
        state.announced("7", begun_s).touch()
    elif not started:
        state.keep(Record("GPU-1", 0, "7", "n1", begun_s=begun_s))
    (tmp_path / "once").mkdir()
    if case == "it began":
        (tmp_path / "once" / "7.begun").touch()
    sleeps = ["bash", "-c", "exec -a 'slurmstepd: [7.batch]' sleep 60"]
    step = subprocess.Popen(sleeps) if case == "has processes" else None
    until(lambda: step is None or process.has_processes("7"))
    try:
        site = agent.Site(str(state.folder), str(tmp_path), str(scontrol))
        agent.requeue_lost(site, "n1", slurmd_s, lambda text: None, started)
    finally:
        if step is not None:
            step.kill()
            step.wait()
    assert ("requeue 7" in (asked.read_text() if asked.exists() else "")) == again
