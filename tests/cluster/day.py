"""A day in minutes: jobs with deadlines on a real Slurm with fake GPUs, planned, run and judged.

    python -m tests.cluster.day --jobs 200 --kills 50 --race

Jobs come over time, as others do; their GPUs are faked at the level of device files and of the NVML
library, which knows how fast and how hungry each application is. With ``--kills`` the watch, the
controller, a slurmd and agents are killed at random moments; with ``--race`` the same jobs are run
again at full speed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import numpy as np

from downclock.adapters.devices.fakes.nvml import FakeGpus
from downclock.adapters.slurm.learn import _at, _grouped, learn
from downclock.adapters.slurm.log import DECIDED, MOMENT, Log
from downclock.adapters.slurm.observed import Job
from downclock.adapters.slurm.read import observe
from downclock.adapters.slurm.site import read_site
from downclock.adapters.slurm.spool import Measured, read_spool
from downclock.adapters.slurm.words import RAN, our_part
from tests.cluster.loopback import Loopback, wait_for
from tests.conftest import ROOT

NODES, GPUS = 8, 4
IDLE_W = 45.0
LIVES_S, LOOKS_S = 12.0, 9.0
"""A controller lives for so long before it is killed, at any moment: it saves every 5 s. A watch
looks at the cluster for so long, however long a busy machine takes to start it: so that some of
what it starts is saved."""

REQUEUED = 2
"""Exit code of a job whose script slurmd of 22.05 purged while it was launching it, which happens
where a node is busy ("Purging vestigial job script"): Slurm is told to requeue such a job."""

ONCE = ROOT / "src" / "downclock" / "adapters" / "slurm" / "once.sh"

LAW = (0.5, 0.0, 0.5)
APPS = {  # p0, gamma, c; d, delta, t0: a unit is a second at the highest clocks
    "dense": (60.0, 30.0, 230.0, 0.95, 0.9, 0.05),
    "both": (60.0, 40.0, 180.0, 0.95, 0.6, 0.05),
    "sparse": (60.0, 60.0, 140.0, 0.95, 0.3, 0.05),
}

CLUSTER = """\
applications = "library.json"

[[kind]]
name = "a100"
idle_w = {idle_w}
core_mhz = [{clocks}]
memory_mhz = [1215, 810]
default_core_mhz = 1410
default_memory_mhz = 1215

[[server]]
name = "node"
count = {nodes}
processors = [{{ kind = "a100", count = {gpus} }}]
wake_j = 200.0
wake_s = 8.0
"""

SITE = """\
cluster = "cluster.toml"
policy = "{policy}"
spool = "../energy"
interval_s = 0.5
overhead_s = {overhead_s}
reserve = 0.25
grace_s = 30.0
sleep = {sleep}
"""

HOOK = """\
#!{shell}
# Slurm's {verb}: the agent, with this node's own GPUs; whatever happens, the job goes on.
export PATH=/usr/bin:/bin SLURM_CONF={folder}/slurm.conf PYTHONPATH={source}
export LD_LIBRARY_PATH={library} FAKE_NVML={folder}/gpus/$SLURMD_NODENAME
timeout 30 {python} -P -m downclock agent {verb} --scontrol {scontrol} --spool {folder}/energy \\
  --state {folder}/agent/$SLURMD_NODENAME >>{folder}/log/{verb}.out 2>&1
exit 0
"""


@dataclass(frozen=True)
class Wanted:
    """A job to submit: when, what, how long at full speed, on how many GPUs, by when."""

    at_s: float
    application: str
    run_s: float
    gpus: int
    deadline_s: float

    @property
    def race_j(self) -> float:
        """Least energy at full speed: its time at the highest clocks, and no more."""
        p0, gamma, c, *_ = APPS[self.application]
        volt = sum(LAW)
        return self.gpus * self.run_s * (p0 + gamma + c * volt * volt)


def drawn(count: int, seed: int, over_s: float, slack_s: float = 180.0) -> list[Wanted]:
    """Jobs by a seed: nine of ten on one GPU, the others on two; some have a third of the slack."""
    draw = random.Random(seed)
    jobs = []
    for _ in range(count):
        run_s = draw.uniform(6.0, 12.0)
        spare_s = draw.uniform(slack_s / 3.0, slack_s)
        gpus = 2 if draw.random() < 0.1 else 1
        name = draw.choice(list(APPS))
        jobs.append(Wanted(draw.uniform(0.0, over_s), name, run_s, gpus, round(run_s + spare_s)))
    return sorted(jobs, key=lambda job: job.at_s)


@dataclass
class Day:
    """A cluster with agents, and jobs that run there.

    Attributes:
        numbers, sent_s: Slurm's numbers of the jobs, in the order of submission, and when that was.
        names: of the jobs, by number: a controller that is killed may give a number twice.
        killed: what was killed, and when.
        _cut, _slurmds: jobs whose agents were killed, and when slurmds were, of which nodes.
    """

    folder: Path
    wanted: list[Wanted]
    policy: str = "late"
    sleeps: bool = False
    kills: int = 0
    seed: int = 1
    numbers: list[str] = field(default_factory=list)
    sent_s: dict[str, float] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    killed: list[str] = field(default_factory=list)
    _cut: set[str] = field(default_factory=set)
    _slurmds: list[tuple[float, str]] = field(default_factory=list)
    _starts: int = 0
    _looks_s: float | None = None

    def run(self, longest_s: float) -> Day:
        """Submit all jobs at their times, and wait until all have ended."""
        self._prepare()
        with self.cluster:
            self._watch()
            self.began_s = self._booted_s = time.time()
            try:
                self._submit(self._moments_of_kills())
                wait_for(self._over, longest_s, "jobs are left")
                wait_for(lambda: not self._agents(), 60.0, "agents go on")
            finally:
                self._stop()
            self.jobs = observe(lambda words: self.cluster.run(*words)).jobs
            self.records = self.cluster.run("scontrol", "show", "job", "-od")
            self.status = self.cluster.run(*self._words("status", "--format", "json"))
            for node in self.cluster.nodes:
                self._recover(node)
        self.took_s = time.time() - self.began_s
        return self

    # --- what came of it -----------------------------------------------------------------------

    def job(self, number: str) -> Job:
        """What Slurm says of a job at the end."""
        return self.jobs[int(number)]

    @property
    def measured(self) -> list[Measured]:
        """What the agents measured."""
        return read_spool(self.folder / "energy")

    def accepted(self) -> set[str]:
        """Numbers of the jobs whose deadline was accepted."""
        log = Log(self.folder / "site" / "downclock.db", dry=True)
        names: dict[str, str] = {}
        keys: set[str] = set()
        refused: set[str] = set()  # and planned all the same, for later than asked
        for _, _, kind, entry in log.rows():
            if kind == MOMENT:
                names |= {task["key"]: task["name"] for task in entry["told"]}
            elif kind == DECIDED:
                told = {*entry.get("accept", ()), *(row[0] for row in entry.get("place", ()))}
                keys |= told - refused
                refused |= {row[0] for row in entry.get("reject", ())} - keys
        found = {names[key] for key in keys}
        return {number for number in self.numbers if self.names[number] in found}

    def late(self) -> list[str]:
        """Accepted jobs that ended after their deadline: in whole seconds, and some machine is left
        all day."""
        accepted, found = self.accepted(), []
        for number, wanted in zip(self.numbers, self.wanted, strict=True):
            late_s = self._end_s(number) - self.sent_s[number] - wanted.deadline_s
            if number in accepted and late_s > 1.0:
                found.append(f"{number} by {late_s:.0f} s")
        return found

    def _end_s(self, number: str) -> float:
        """When a job ended, by Slurm; by itself where Slurm has forgotten."""
        job = self.job(number)
        if "COMPLETED" in job.states:
            return job.end_s
        return min((end_s for _, end_s in self.runs(number)), default=float("inf"))

    def runs(self, number: str) -> list[tuple[float, float]]:
        """Starts and ends of a job, as it wrote them itself; infinite: it was ended."""
        name, ends = self.names[number], {}
        for word, process, at_s in self._written("done"):
            ends[word, process] = float(at_s)
        begun = [(word, process, float(at_s)) for word, process, at_s, *_ in self._written("ran")]
        return sorted(
            (at_s, ends.get((word, process), float("inf")))
            for word, process, at_s in begun
            if word == name
        )

    def _written(self, file: str) -> list[list[str]]:
        path = self.folder / file
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def twice(self) -> list[str]:
        """Jobs whose script began more than once."""
        return [number for number in self.numbers if len(self.runs(number)) > 1]

    def held(self) -> list[str]:
        """Jobs that ran to their end, which Slurm has forgotten: they are kept from running."""
        return [number for number in self.numbers if _ran(self.job(number).comment)]

    def broken(self) -> dict[str, list[str]]:
        """What must not be: jobs not done, late or begun twice, and clocks still locked."""
        lost = [self._told(n) for n in self.numbers if self._end_s(n) == math.inf]
        all_of_it = {
            "lost": lost,
            "late": self.late(),
            "twice": self.twice(),
            "locked": self.locked(),
        }
        return {what: found for what, found in all_of_it.items() if found}

    def _told(self, number: str) -> str:
        """A job as Slurm shows it at the end, its runs, and what nodes said of it."""
        job, runs = self.job(number), self.runs(number)
        said = [path.read_text() for path in (self.folder / "energy").glob(f"{number}-*.json")]
        return f"{number} {sorted(job.states)} {job.reason} {job.comment} {runs} {said}"

    def locked(self) -> list[str]:
        """GPUs whose clocks are still locked, and records that agents keep of any."""
        found = []
        for node in self.cluster.nodes:
            if (self.folder / "gpus" / node).exists():
                gpus = FakeGpus(self.library, self.folder / "gpus" / node).read(GPUS)
                found += [f"{node}/{k}" for k, gpu in enumerate(gpus) if gpu.locked]
        return found

    def planned_clocks(self, number: str) -> dict[str, int]:
        """Clocks in a job's comment."""
        words = self.job(number).comment.partition(" | ")[0].split()[1:]
        pairs = dict(word.split("=", 1) for word in words if "=" in word)
        return {key: int(pairs[key]) for key in ("core_mhz", "memory_mhz") if key in pairs}

    def off_device(self) -> dict[str, bool]:
        """Whether each job ran at its planned clocks and they were reset, by the fake driver alone.

        Jobs say themselves on which GPUs and until when they ran, Slurm says from when. Those that
        did not run to their end in one go are left out.
        """
        calls = {
            node: FakeGpus(self.library, self.folder / "gpus" / node).log()
            for node in self.cluster.nodes
        }
        places = {word: (node, gpus) for word, _, _, node, gpus in self._written("ran")}
        found = {}
        for number in self.numbers:
            runs, since_s = self.runs(number), self.job(number).start_s - 1.0  # in whole seconds
            if len(runs) == 1 and since_s < runs[0][0] < runs[0][1] < math.inf:
                node, gpus = places[self.names[number]]
                span, plan = (since_s, runs[0][1]), self.planned_clocks(number)
                of_gpu = [
                    [each for each in calls[node] if each[1] == int(k)] for k in gpus.split(",")
                ]
                found[number] = all(set_and_reset(each, span, plan) for each in of_gpu)
        return found

    def uncut(self) -> set[str]:
        """Jobs none of whose agents, nor its node's slurmd while it was there, was killed."""
        found = set()
        for number in self.numbers:
            job = self.job(number)
            spans = [(at_s, node) for at_s, node in self._slurmds if node in job.nodes]
            if number not in self._cut and not any(
                job.start_s - 1.0 <= at_s <= job.end_s + 1.0 for at_s, _ in spans
            ):
                found.add(number)
        return found

    # --- its parts -----------------------------------------------------------------------------

    def _prepare(self) -> None:
        folder = self.folder
        self.library = folder / "lib"
        for name in ("lib", "gpus", "agent", "energy"):
            (folder / name).mkdir(parents=True)
        FakeGpus.built(self.library)
        hooks = {verb: folder / f"{verb}.sh" for verb in ("prolog", "epilog")}
        settings = (
            f"Prolog={hooks['prolog']}\nEpilog={hooks['epilog']}\n"
            f"PrologEpilogTimeout=60\nRequeueExit={REQUEUED}\n"
        )
        settings += self._once() if self.kills else "PrologFlags=Alloc"
        self.cluster = Loopback(
            folder, NODES, GPUS, settings=settings, sleeps=self.sleeps, typed=False
        )
        scontrol = shutil.which("scontrol", path=self.cluster.environment["PATH"])
        for verb, file in hooks.items():
            file.write_text(HOOK.format(verb=verb, folder=folder, shell=self.cluster.shell,
                                        source=ROOT / "src", library=self.library,
                                        python=sys.executable, scontrol=scontrol))  # fmt: skip
            file.chmod(0o755)
        lines = [f"app {name} {' '.join(map(str, (*app, *LAW)))}" for name, app in APPS.items()]
        for node in self.cluster.nodes:
            FakeGpus(self.library, folder / "gpus" / node).configure(
                f"gpus {GPUS}", "core 210 1410 15", "memory 1215 810", f"idle {IDLE_W}", *lines
            )
        self._site()

    def _once(self) -> str:
        """Have scripts run once, and return the settings for that."""
        words, file = self.folder / "energy" / "once", self.folder / "once.sh"
        words.mkdir(mode=0o777)
        words.chmod(0o1777)
        text = ONCE.read_text().replace("/var/lib/downclock/spool/once", str(words))
        file.write_text(text)
        file.chmod(0o755)
        return f"TaskProlog={file}\nTaskEpilog={file}"

    def _site(self) -> None:
        folder = self.folder / "site"
        folder.mkdir()
        clocks = ", ".join(str(mhz) for mhz in range(510, 1411, 60))
        text = CLUSTER.format(idle_w=IDLE_W, clocks=clocks, nodes=NODES, gpus=GPUS)
        (folder / "cluster.toml").write_text(text)
        names = ("p0_w", "gamma_w", "c_w", "d_s", "delta", "t0_s")
        profiles = [
            {
                "name": name,
                "profiles": {"a100": {"model": "gpu", **dict(zip(names, app, strict=True))}},
            }
            for name, app in APPS.items()
        ]
        basis = {"law": list(LAW), "default_core_mhz": 1410, "default_memory_mhz": 1215}
        library = {
            "format": "downclock-library/1",
            "kinds": {"a100": basis},
            "applications": profiles,
        }
        (folder / "library.json").write_text(json.dumps(library))
        sleep = "true" if self.sleeps else "false"
        (folder / "site.toml").write_text(
            SITE.format(policy=self.policy, sleep=sleep, overhead_s=22.0 if self.kills else 8.0)
        )

    def _words(self, verb: str, *more: str) -> list[str]:
        site = str(self.folder / "site" / "site.toml")
        return [sys.executable, "-m", "downclock", "slurm", verb, site, *more]

    def _watch(self) -> None:
        self._starts, self._looks_s = self._watches(), None
        self.cluster.start_program("watch", self._words("watch"))

    def _until_watched(self) -> None:
        """Wait until the watch has looked at the cluster for a while."""
        wait_for(lambda: self._watches() > self._starts, 60.0, "the watch does not start")
        self._looks_s = self._looks_s or time.time()
        time.sleep(max(self._looks_s + LOOKS_S - time.time(), 0.0))

    def _watches(self) -> int:
        """How often a watch has said that it looks at the cluster."""
        file = self.folder / "log" / "watch.out"
        return file.read_text("utf-8", "replace").count("watching Slurm") if file.exists() else 0

    def _stop(self) -> None:
        self.cluster.kill("watch", signal.SIGINT)

    def _recover(self, node: str, *more: str) -> None:
        """What a node does when it boots."""
        gpus = FakeGpus(self.library, self.folder / "gpus" / node)
        scontrol = shutil.which("scontrol", path=self.cluster.environment["PATH"]) or ""
        words = ["agent", "recover", "--state", str(self.folder / "agent" / node), *more]
        where = ["--spool", str(self.folder / "energy"), "--scontrol", scontrol]
        named = {**gpus.environment, "SLURMD_NODENAME": node}
        self.cluster.run(sys.executable, "-m", "downclock", *words, *where, more=named)

    def _over(self) -> bool:
        try:
            return all(map(_ran, self.cluster.run("squeue", "-h", "-o", "%k").splitlines()))
        except (OSError, RuntimeError, ValueError):
            return False

    def _submit(self, moments: list[float]) -> None:
        for wanted in self.wanted:
            self._kill_until(moments, wanted.at_s)
            time.sleep(max(self.began_s + wanted.at_s - time.time(), 0.0))
            self.numbers.append(self._sent(wanted, f"{len(self.numbers)}.0"))
        self._kill_until(moments, float("inf"))

    def _send_again(self) -> None:
        """Submit jobs again that a killed controller took and forgot, as people do."""
        wait_for(lambda: bool(self.cluster.states()), 30.0, "the controller does not answer")
        known = {*self.cluster.run("squeue", "-h", "-t", "all", "-o", "%j").splitlines()}
        for k, number in enumerate(self.numbers):
            name, _, count = self.names[number].partition(".")
            if f"{name}.{count}" not in known:
                self.numbers[k] = self._sent(self.wanted[k], f"{name}.{int(count) + 1}")

    def _sent(self, wanted: Wanted, name: str) -> str:
        """Submit a job; a controller that is away is asked again, as people do."""
        tag = f"app:{wanted.application},run:{wanted.run_s:.2f}s,deadline:+{wanted.deadline_s:.0f}s"
        fake = FakeGpus(self.library, self.folder / "gpus" / "$SLURMD_NODENAME")
        script = (
            f"export LD_LIBRARY_PATH={self.library} FAKE_NVML={fake.state}\n"
            f"echo {name} $$ $(date +%s.%N) $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"
            f" >> {self.folder}/ran\n"
            f"{fake.job} {wanted.application} {wanted.run_s:.3f} || exit 1\n"
            f"echo {name} $$ $(date +%s.%N) >> {self.folder}/done"
        )
        for _ in range(30):
            try:
                number = self.cluster.submit(
                    "-H", f"--gres=gpu:{wanted.gpus}", "-t", "5", f"--comment=downclock={tag}",
                    "-J", name, script=script,
                )  # fmt: skip
                self.sent_s[number], self.names[number] = time.time(), name
                return number
            except OSError:
                time.sleep(1.0)
        raise TimeoutError("the controller does not take jobs")

    # --- kills ---------------------------------------------------------------------------------

    def _moments_of_kills(self) -> list[float]:
        draw = random.Random(self.seed)
        last_s = self.wanted[-1].at_s + 30.0
        return sorted(draw.uniform(5.0, last_s) for _ in range(self.kills))

    def _kill_until(self, moments: list[float], at_s: float) -> None:
        while moments and moments[0] <= at_s:
            time.sleep(max(self.began_s + moments.pop(0) - time.time(), 0.0))
            self._kill(len(self.killed))

    def _kill(self, k: int) -> None:
        """Kill one after the other, and start again what would be started again."""
        what = ("watch", "slurmctld", random.Random(k).choice(self.cluster.nodes), "agent")[k % 4]
        agents = self._any_agent() if what == "agent" else []
        for number in agents:
            self._cut |= _job_of(number)
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        if agents:
            what = f"{len(agents)} agents"
        else:
            what = "watch" if what == "agent" else what
            self._kill_daemon(what)
        self.killed.append(f"{what} at {time.time() - self.began_s:.0f} s")

    def _kill_daemon(self, what: str) -> None:
        if what in ("slurmctld", "watch"):
            self._until_watched()
        if what == "slurmctld":
            time.sleep(max(self._booted_s + LIVES_S - time.time(), 0.0))
        self.cluster.kill(what)
        self._slurmds += [(time.time(), what)] if what in self.cluster.nodes else []
        if what == "watch":
            return self._watch()
        time.sleep(0.5)
        self.cluster.start(what)
        if what != "slurmctld":
            return self._after_start(what)
        self._send_again()
        self._booted_s = time.time()

    def _after_start(self, node: str) -> None:
        """Do what the guide's unit does where a slurmd was started."""
        slurmd = self.cluster.daemons[node]

        def recover() -> None:
            for later_s in (6.0, 15.0, 30.0):
                time.sleep(later_s)
                if slurmd.poll() is None:
                    with suppress(OSError, subprocess.TimeoutExpired):
                        self._recover(node, "--slurmd", str(slurmd.pid))

        Thread(target=recover, daemon=True).start()

    def _agents(self) -> list[int]:
        """Agents at work."""
        mine, found = os.fsencode(str(self.folder / "agent")), []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                try:
                    words = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if mine in words and not words.startswith(b"timeout"):
                    found.append(int(entry.name))
        return found

    def _any_agent(self) -> list[int]:
        """Agents at work, waiting a moment for one."""
        for _ in range(100):
            found = self._agents()
            if found:
                return found
            time.sleep(0.05)
        return []


def _job_of(process: int) -> set[str]:
    """The job whose Prolog or Epilog a process is, or belongs to; empty: of none."""
    with suppress(OSError):
        words = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        return {each[13:].decode() for each in words if each.startswith(b"SLURM_JOB_ID=")}
    return set()


def set_and_reset(
    calls: list[tuple[float, int, str, int, int]], span: tuple[float, float], plan: dict[str, int]
) -> bool:
    """Tell whether a GPU's clocks were locked as planned when a job ended, and next were reset.

    ``calls`` are those of one GPU, in their order; ``span`` is the job's. Only locks count that
    were set meanwhile, so none that another job left behind.
    """
    for key, part in (("core_mhz", "Gpu"), ("memory_mhz", "Memory")):
        mine = [each for each in calls if each[2].endswith(f"{part}LockedClocks")]
        last = [each[2:] for each in mine if span[0] <= each[0] <= span[1]][-1:]
        after = [each[2:] for each in mine if each[0] > span[1]][:1]
        mhz = plan.get(key)
        if last != [(f"nvmlDeviceSet{part}LockedClocks", mhz, mhz)]:
            return False
        if after != [(f"nvmlDeviceReset{part}LockedClocks", 0, 0)]:
            return False
    return True


def _ran(comment: str) -> bool:
    """Tell whether a job is held because it has run."""
    return RAN in our_part(comment).split()


def foretold(day: Day) -> dict[str, tuple[int, float, float]]:
    """What the first half of the measured jobs says of the second, by application.

    Returns how many there were, and the mean relative errors of their times and energies.
    """
    site, measured = read_site(day.folder / "site" / "site.toml"), day.measured
    log = Log(site.log, dry=True)
    half = len(measured) // 2
    library, _ = learn(site, log, measured[:half])
    found = {}
    for (name, _, kind), runs in _grouped(site, log, measured[half:]).items():
        time_s, power_w = _at(site, library, name, kind, runs)
        times = np.abs(runs.time_s / time_s - 1.0)
        energies = np.abs(runs.time_s * runs.power_w / (time_s * power_w) - 1.0)
        found[name] = (times.size, float(times.mean()), float(energies.mean()))
    log.close()
    return found


def report(day: Day, title: str) -> float:
    """Print what came of a day; return the energy of its jobs."""
    done = len(day.numbers) - len(day.broken().get("lost", ()))
    total_j = sum(each.energy_j for each in day.measured)
    exact = [_as_planned(day, each) for each in day.measured]
    print(f"{title}: {done} of {len(day.numbers)} jobs done in {day.took_s:.0f} s")
    print(f"  accepted {len(day.accepted() & set(day.numbers))}, late {day.late()}")
    print(f"  measured {len(day.measured)}, energy {total_j:.0f} J, clocks as planned"
          f" {sum(exact)} of {len(exact)}")  # fmt: skip
    told, uncut = day.off_device(), day.uncut()
    kept = {number: as_planned for number, as_planned in told.items() if number in uncut}
    print(f"  clocks off the device as planned, and reset: {sum(told.values())} of {len(told)} jobs"
          f" that ran once, {sum(kept.values())} of {len(kept)} that no kill cut;"
          f" not {[number for number in told if not told[number]]}")  # fmt: skip
    print(f"  begun twice: {day.twice()}, kept from running again: {day.held()}")
    for name, (count, times, energies) in foretold(day).items():
        print(f"  foretold of {name}: {count} jobs, time {times:.2%}, energy {energies:.2%}")
    print(f"  locked at the end: {day.locked()}; killed: {len(day.killed)} {day.killed}")
    return total_j


def _as_planned(day: Day, each: Measured) -> bool:
    planned = day.planned_clocks(str(each.job))
    found = {"core_mhz": each.core_mhz, "memory_mhz": each.memory_mhz}
    return {key: value for key, value in found.items() if value is not None} == planned


def main() -> int:
    """Run a day, and print it."""
    options = argparse.ArgumentParser()
    options.add_argument("--jobs", type=int, default=200)
    options.add_argument("--over", type=float, default=150.0, help="seconds in which they come")
    options.add_argument("--slack", type=float, default=180.0, help="most seconds of slack")
    options.add_argument("--kills", type=int, default=0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--race", action="store_true", help="the same jobs at full speed too")
    options.add_argument("--sleep", action="store_true", help="nodes sleep and wake")
    given = options.parse_args()
    wanted = drawn(given.jobs, given.seed, given.over, given.slack)
    how = {"sleeps": given.sleep, "kills": given.kills, "seed": given.seed}
    folder = Path(tempfile.mkdtemp(prefix="dcd"))
    day = Day(folder / "late", wanted, **how).run(900.0)
    used_j = report(day, "late")
    least_j = sum(job.race_j for job in wanted)
    print(
        f"  beside {least_j:.0f} J at full speed by the law: {100 * (1 - used_j / least_j):.1f} %"
    )
    if given.race:
        race = Day(folder / "race", wanted, policy="race", **how).run(900.0)
        race_j = report(race, "race")
        print(f"  late used {100 * (1 - used_j / race_j):.1f} % less than race")
    print(f"{folder}: broken {day.broken()}")
    return 1 if day.broken() else 0


if __name__ == "__main__":
    sys.exit(main())
