"""The agent: locks and measures the GPUs of a job that starts, resets them and spools when it ends.

Slurm waits for Prolog and Epilog, and a driver may take long to answer or hang. So `call` leaves
the work to a process of its own and waits for it only a moment; that process goes on when the job
runs already, and dies by itself when it takes much too long. Whatever it leaves behind stands in
`State`, and the next agent undoes it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

from downclock.adapters.devices.device import (
    Device,
    Setting,
    carry_out,
    nearest,
    number_or_none,
    undo,
)
from downclock.adapters.devices.process import (
    LONGEST_S,
    age_of_s,
    has_processes,
    own_start_s,
    slurmd_start_s,
    stat_of,
)
from downclock.adapters.devices.sampler import read_samples, start_sampler
from downclock.adapters.devices.slurm_job import (
    ASK_S,
    Begun,
    JobRecord,
    SlurmJob,
    ended_well,
    job_of,
    job_record,
    node_of,
    started_here,
)
from downclock.adapters.devices.spool import (
    NOT_SPOOLED,
    note_end,
    run_file,
    write,
    write_energy,
)
from downclock.adapters.devices.state import MEASURE, Record, State, this_boot
from downclock.errors import AdapterError, DownclockError

PATIENCE_S = 0.5
"""A job waits so long for its clocks, start of the programs not counted."""


CHECK_S = 600.0
"""Slurm is asked at most so often whether a job still runs that an agent may have forgotten."""

SETTLES_S = 5.0
"""What a slurmd had started before it died shows by so long after the next one started."""

LAUNCHES_S = 120.0
"""A slurmd launches a job within that of its Prolog's start: older ones it had launched."""


MODULE = "downclock.adapters.devices.agent"

Say: TypeAlias = Callable[[str], None]
"""Is told of what stands in the way."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where the agent keeps its records, spools energy to, and finds scontrol."""

    state: str = "/var/lib/downclock"
    spool: str = "/var/lib/downclock/spool"
    scontrol: str = "/usr/bin/scontrol"


def call(verb: str, site: Site, environment: Mapping[str, str]) -> str:
    """Do a job's Prolog or Epilog, waiting for it only a moment; return what it said."""
    job, state, born_s = job_of(environment), State.opened(site.state), own_start_s()
    begun = _announce(state, job, born_s) if verb == "prolog" else _withdraw(state, job, born_s)
    if begun is None:
        return ""
    words = [sys.executable, "-P", "-m", MODULE, verb, site.state, site.spool, site.scontrol,
             repr(born_s), json.dumps(begun), repr(slurmd_start_s())]  # fmt: skip
    worker = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(environment),
        start_new_session=True,  # Slurm kills the group of a Prolog that has ended
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    said = note_end(site.spool, job, begun, born_s) if verb == "epilog" else ""
    worker.stdin.close()
    heard, ended = _heard(worker.stdout.fileno(), PATIENCE_S)
    said += heard
    late = f"downclock agent: not done after {PATIENCE_S:g} s: goes on while the job does\n"
    return said if ended else said + late


def _announce(state: State, job: SlurmJob, begun_s: float) -> Begun | None:
    """Say that a job starts; None: there is nothing to do for it."""
    if not job.gpus:
        return None
    begun = Begun(job.attempt or 0, begun_s, job.attempt is not None)
    state.announced(job.job, begun.begun_s).write_text(str(begun.attempt) if begun.sure else "")
    return begun


def _withdraw(state: State, job: SlurmJob, ended_s: float) -> Begun | None:
    """Say that a job ended: a prolog that comes late finds nothing to do. Return its run.

    That is the last that had begun by then: an Epilog that is slow spares the next one, and what a
    machine without power left behind of one before hides none.
    """
    mine = [each for each in state.records() if each.job == job.job and not each.spooled]
    runs = [Begun(each.attempt, each.begun_s, True) for each in mine if each.begun_s <= ended_s]
    for path, begun_s in state.announcements(job.job):
        if begun_s <= ended_s:
            with suppress(OSError):
                told = path.read_text("ascii", "replace")
                sure = told.isdecimal()
                runs.append(Begun(int(told) if sure else job.attempt or 0, begun_s, sure))
            path.unlink(missing_ok=True)
    unknown = Begun(job.attempt or 0, ended_s, False) if job.gpus else None
    return max(runs, key=lambda run: run.begun_s, default=unknown)


def _heard(pipe: int, for_s: float) -> tuple[str, bool]:
    """Return what comes out of a pipe within a time, and whether it was closed."""
    said, end_s = b"", time.monotonic() + for_s
    while (left_s := end_s - time.monotonic()) > 0.0:
        if select.select([pipe], [], [], left_s)[0]:
            some = os.read(pipe, 65536)
            if not some:
                return said.decode("utf-8", "replace"), True
            said += some
    return said.decode("utf-8", "replace"), False


def prolog(site: Site, environment: Mapping[str, str], say: Say, begun: Begun) -> None:
    """Lock the clocks of a job's GPUs as its record asks, and read their meters."""
    job, state = job_of(environment), State.opened(site.state)
    asked, gpus = job_record(site.scontrol, job.job), _present(say)
    named = [gpu for gpu in gpus.values() if {str(gpu.index), gpu.uuid} & set(job.gpus)]
    mine = {gpu.uuid: gpu for gpu in named if gpu.label.startswith("gpu")}
    if len(mine) < len(job.gpus):
        say(f"job {job.job}: of its GPUs {', '.join(job.gpus)} {len(mine)} were found")
    announced = state.announced(job.job, begun.begun_s)
    with state.held():
        if announced.exists():
            left = [r for r in state.records() if r.uuid in mine or r.job == job.job]
            if any(record.job == MEASURE and _running(site, state, record) for record in left):
                say(f"job {job.job}: a sweep of downclock measure has its GPUs: left alone")
            else:
                _end(site, state, left, gpus, say)
                first = _first_record(job, asked, begun)
                _begin(state, first, asked, list(mine.values()), say)
            announced.unlink(missing_ok=True)


def _begin(state: State, first: Record, asked: JobRecord, mine: Sequence[Device], say: Say) -> None:
    """Keep a record of each GPU, set what is asked, and see that all are measured."""
    setting, why = asked.asked()
    begun = [
        replace(first, uuid=gpu.uuid, index=gpu.index, started_s=time.time(), why=why,
                counter_j=number_or_none(gpu.energy_j))
        for gpu in mine
    ]  # fmt: skip
    for record in begun:
        state.keep(record)
    if setting:
        _set_all(state, list(zip(mine, begun, strict=True)), setting, say)
    start_sampler(state, [record.uuid for record in begun if record.counter_j is None])


def _first_record(job: SlurmJob, asked: JobRecord, begun: Begun) -> Record:
    """What is the same for all GPUs of a run."""
    whose = (job.job, job.node, asked.attempt, job.user, asked.name)
    return Record("", -1, *whose, begun_s=begun.begun_s, boot=this_boot())


def _set_all(
    state: State, pairs: Sequence[tuple[Device, Record]], setting: Setting, say: Say
) -> None:
    """Set all GPUs of a job, or none: a record is kept before, and all is undone on any failure."""
    kept: list[tuple[Device, Record]] = []
    try:
        for gpu, record in pairs:
            chosen, before_w = nearest(gpu, setting), None
            if chosen.power_limit_w is not None:
                before_w = gpu.power_limit_w()  # an owner may lower the site's limit, not raise it
                chosen = replace(chosen, power_limit_w=min(chosen.power_limit_w, before_w))
            kept.append((gpu, _with(record, chosen, before_w)))
            state.keep(kept[-1][1])
            carry_out(gpu, chosen)
    except BaseException as error:
        why = str(error) if isinstance(error, DownclockError) else f"stopped ({error!r})"
        for gpu, record in kept:
            with suppress(DownclockError):
                undo(gpu, record.before_w, record.ranges)
                state.keep(replace(_with(record, Setting(), None), why=why))
        for _, record in pairs[len(kept) :]:
            state.keep(replace(record, why=why))
        if not isinstance(error, DownclockError):
            raise
        say(f"clocks are left as they are: {why}")


def _with(record: Record, setting: Setting, before_w: float | None) -> Record:
    return replace(record, **asdict(setting), before_w=before_w)


def epilog(
    site: Site, environment: Mapping[str, str], say: Say, ended_s: float, begun: Begun
) -> None:
    """Reset the GPUs of a job and spool its energy, and whether Slurm says that it completed.

    A controller that is killed may forget that: it is asked at once, the spool does not forget.
    """
    from concurrent.futures import ThreadPoolExecutor

    job, state = job_of(environment), State.opened(site.state)
    asked = ThreadPoolExecutor(1).submit(job_record, site.scontrol, job.job)
    # Drivers may be slow: they are asked before others are kept from their work.
    known = any(each.job == job.job for each in state.records())
    gpus = _present(say) if known else None
    with state.held():
        mine = [record for record in state.records() if record.job == job.job]
        records = [record for record in mine if record.begun_s <= begun.begun_s]
        if records:
            _end(site, state, records, _present(say) if gpus is None else gpus, say, ended_s)
    _until_noted()
    path = run_file(site.spool, job, begun.attempt, begun.begun_s)
    completed = ended_well(job, asked.result(), begun.known)
    if completed is not None and path.exists():
        write(path, {**json.loads(path.read_text()), "completed": completed})


def recover(site: Site, say: Say, *, everything: bool = False) -> list[Record]:
    """Reset what agents left behind that did not live to do it; return what could not be reset.

    Args:
        site: where things are.
        say: told of what stands in the way.
        everything: also GPUs of jobs that still run.
    """
    state = State.opened(site.state)
    with state.held():
        running = {r.uuid: not everything and _running(site, state, r) for r in state.records()}
        over = [record for record in state.records() if running[record.uuid] is False]
        unknown = [record for record in state.records() if running[record.uuid] is None]
        gpus = _present(say) if over or unknown else {}
        for record in unknown:  # full speed harms no job, and an Epilog may still want its energy
            if _reset(record, gpus.get(record.uuid), say):
                why = "reset by recover: nobody could say whether the job runs"
                state.keep(replace(_with(record, Setting(), None), why=why))
        _end(site, state, over, gpus, say)
        _forget_unfinished(site)
        kept = [record for record in state.records() if running[record.uuid] is not True]
        return [record for record in kept if record.locked]


def _running(site: Site, state: State, record: Record) -> bool | None:
    """Tell whether somebody else is still to reset this; None where nobody can say."""
    if record.job == MEASURE:
        try:
            with state.held(MEASURE, wait=False):
                return False
        except AdapterError:
            return True
    if not record.job or record.spooled:
        return False
    asked = job_record(site.scontrol, record.job)
    return asked.running and asked.attempt == record.attempt


def check_others(site: Site, say: Say) -> None:
    """Reset GPUs of jobs that ended without us, where nobody asked after them for a while."""
    state = State.opened(site.state)
    with state.held():
        old = [record for record in state.records() if state.unasked(record, CHECK_S)]
        ended = [record for record in old if _running(site, state, record) is False]
        if ended:
            _end(site, state, ended, _present(say), say)


def requeue_lost(
    site: Site,
    node: str,
    slurmd_s: float,
    say: Say,
    started: Mapping[str, float] = MappingProxyType({}),
) -> None:
    """Requeue jobs that a slurmd was launching when it died: Slurm finds that out much later.

    Their Prolog began shortly before the slurmd that is here now, and none of their processes is.
    ``started`` are times by which Slurm has jobs begin here: a Prolog may have died before it wrote
    its own down.
    """
    state = State.opened(site.state)
    if time.time() < slurmd_s + SETTLES_S:
        return
    runs = {record.job: record.begun_s for record in state.records() if not record.spooled}
    runs = {job: begun_s for job, begun_s in runs.items() if job.isdecimal()}
    for job, begun_s in {**started, **runs, **state.announced_jobs()}.items():
        known = [Path(site.spool) / "once" / f"{job}.{word}" for word in ("begun", "ended")]
        just = slurmd_s - LAUNCHES_S < begun_s < slurmd_s
        if not just or any(word.exists() for word in known) or has_processes(job):
            continue
        record = job_record(site.scontrol, job)
        if record.is_planned and record.launched(node, begun_s):
            say(f"job {job}: its slurmd died before it was launched: requeued")
            words = [site.scontrol, "requeue", job]
            subprocess.run(words, stdin=subprocess.DEVNULL, timeout=ASK_S, check=False)


def after_start(site: Site, slurmd: int, say: Say) -> None:
    """Requeue what the one before a slurmd of this process number was launching when it died."""
    with suppress(OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        node, slurmd_s = node_of(os.environ), time.time() - age_of_s(stat_of(str(slurmd)))
        requeue_lost(site, node, slurmd_s, say, started_here(site.scontrol, node))


def _end(
    site: Site,
    state: State,
    records: Sequence[Record],
    gpus: Mapping[str, Device],
    say: Say,
    ended_s: float | None = None,
) -> None:
    """Read meters, reset, spool, forget; what cannot be reset is remembered for the next agent."""
    measured = [_measured(state, record, gpus.get(record.uuid)) for record in records]
    stuck = {record.uuid for record in records if not _reset(record, gpus.get(record.uuid), say)}
    if ended_s is not None:
        _until_noted()
    jobs: dict[tuple[str, int, float], list[tuple[Record, tuple[float | None, str]]]] = {}
    for record, energy in zip(records, measured, strict=True):
        if not record.spooled and record.job != MEASURE:
            run = (record.job, record.attempt, record.begun_s)
            jobs.setdefault(run, []).append((record, energy))
    for rows in jobs.values():
        try:
            write_energy(site.spool, rows, ended_s)
        except NOT_SPOOLED as error:  # a GPU that was reset is free, whoever hears of its energy
            say(f"job {rows[0][0].job}: its energy could not be spooled: {error}")
    for record in records:
        if record.uuid in stuck:
            state.keep(replace(record, spooled=True))
        else:
            state.forget(record)


def _reset(record: Record, gpu: Device | None, say: Say) -> bool:
    """Reset a GPU that was set; tell whether it is done."""
    if not record.locked:
        return True
    if gpu is None:
        say(f"gpu{record.index}: is not there ({record.uuid}): its clocks could not be reset")
        return False
    try:
        undo(gpu, record.before_w, record.ranges)
    except DownclockError as error:
        say(f"{error}; its clocks may still be locked")
        return False
    return True


def _measured(state: State, record: Record, gpu: Device | None) -> tuple[float | None, str]:
    """Return the joules since the record, None where nobody knows, and what to know of them."""
    if record.boot != this_boot():
        return None, "the machine was restarted meanwhile"
    if record.counter_j is None:
        return read_samples(state.samples(record.uuid), gpu)
    try:
        if gpu is None:
            return None, "the GPU is gone"
        used_j = gpu.energy_j() - record.counter_j
    except DownclockError as error:
        return None, str(error)
    return (used_j, "") if used_j >= 0.0 else (None, "the energy counter was reset meanwhile")


def _until_noted() -> None:
    """Wait until `call` has noted the end or is gone: our input is closed.

    What was measured is written after that; GPUs are reset before, as a spool may hang for ever.
    """
    os.read(0, 1)


def _forget_unfinished(site: Site) -> None:
    """Delete announcements and half-written files of agents that are dead by now."""
    state, spool = Path(site.state), Path(site.spool)
    for path in (*state.glob("job-*"), *state.glob(".gpu-*.tmp"), *spool.glob(".*-*.tmp")):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > 2 * LONGEST_S:
                path.unlink()


def _present(say: Say) -> dict[str, Device]:
    """Return the devices that answer, by UUID."""
    from downclock.adapters.devices.machine import devices

    present: dict[str, Device] = {}
    found, notes = devices()
    for note in notes:
        say(note)
    for device in found:
        try:
            present[device.uuid] = device
        except DownclockError as error:
            say(str(error))
    return present


def _stop(number: int, _: Any) -> NoReturn:
    raise SystemExit(128 + number)


def main(arguments: Sequence[str]) -> int:
    """Work for `call`: the verb and where things are; what goes wrong is said, and no failure."""
    verb, site, begun = arguments[0], Site(*arguments[1:4]), Begun(*json.loads(arguments[5]))
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # Slurm may start programs with some blocked
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # A prolog that is stopped resets what it has set; an epilog is about to do just that.
        signal.signal(number, _stop if verb == "prolog" else signal.SIG_IGN)
    signal.alarm(LONGEST_S)
    try:
        if verb == "prolog":
            prolog(site, os.environ, _say, begun)
        else:
            epilog(site, os.environ, _say, float(arguments[4]), begun)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for file in (1, 2):  # one pipe: the job need not wait any longer for either
            os.dup2(nowhere, file)
        check_others(site, _say)
        requeue_lost(site, job_of(os.environ).node, float(arguments[6]), _say)
    except (DownclockError, OSError, subprocess.TimeoutExpired) as error:
        _say(str(error))
    return 0


def _say(text: str) -> None:
    with suppress(OSError):
        os.write(1, f"downclock agent: {text}\n".encode("utf-8", "replace"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
