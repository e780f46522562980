"""A disposable real Slurm on loopback: munge, a controller and a slurmd for each node.

Everything lives in one folder and nothing in /etc. GPUs are faked at the level of device files.
Daemons run in the foreground as our children, so that a test can kill any of them and start it
again. Where DOWNCLOCK_SLURM_ROOT names the root of another system, its Slurm is used; what that
starts (jobs, Prolog, Epilog) runs on this system all the same.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "squeue", "scontrol", "sinfo", "sbatch", "scancel", "munged")
ROOT = os.environ.get("DOWNCLOCK_SLURM_ROOT", "")


def missing() -> str:
    """Say why no such cluster can be started here; empty: it can."""
    path = ":".join(f"{ROOT}{folder}" for folder in _path().split(":"))
    absent = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if absent:
        return f"Slurm is not installed ({', '.join(absent)} missing)"
    return "" if os.geteuid() == 0 else "a Slurm of several nodes on one machine needs root"


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def wait_for(what: Callable[[], bool], seconds: float, text: str) -> None:
    """Wait until something is so.

    Raises:
        TimeoutError: it is not after that many seconds.
    """
    until = time.monotonic() + seconds
    while not what():
        if time.monotonic() > until:
            raise TimeoutError(f"after {seconds:g} s: {text}")
        time.sleep(0.05)


class Loopback:
    """One cluster.

    Args:
        folder: where all of it is kept.
        nodes, gpus: how many nodes, and GPUs of each.
        settings: further lines of slurm.conf.
        typed: GPUs have a type; a controller of 22.05 that is killed loses count of such.
        sleeps: power saving works: a sleeping node has no slurmd.
        environment: of the daemons, and so of what they start.
    """

    def __init__(
        self,
        folder: Path,
        nodes: int,
        gpus: int,
        *,
        settings: str = "",
        typed: bool = True,
        sleeps: bool = False,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.folder, self.gpus, self.sleeps = folder, gpus, sleeps
        self.gpu, self.type = ("gpu:a100", " Type=a100") if typed else ("gpu", "")
        self.nodes = [f"node{k + 1}" for k in range(nodes)]
        self.environment = {
            **os.environ,
            "PATH": f"{folder}/bin:{_path()}" if ROOT else _path(),
            "SLURM_CONF": str(folder / "slurm.conf"),
            **(environment or {}),
        }
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.mounts: list[Path] = []
        for name in ("state", "log", "spool", "run", "dev", "hooks"):
            (folder / name).mkdir(parents=True)
        self.shell = "/bin/bash"
        if ROOT:
            self._other_root()
        said = self.run("slurmctld", "-V").split()[-1].split(".")
        self.version = (int(said[0]), int(said[1]))
        self._configure(settings)

    def _other_root(self) -> None:
        """Have the commands of another system on our path, and its daemons in our folder."""
        (self.folder / "bin").mkdir()
        for name in PROGRAMS:
            file = self.folder / "bin" / name
            file.write_text(f'#!/bin/sh\nPATH={_path()} exec chroot {ROOT} {name} "$@"\n')
            file.chmod(0o755)
        self.shell = str(self.folder / "bin" / "here")
        Path(self.shell).write_text(
            f'#!/bin/sh\nexec chroot /proc/{os.getpid()}/root /bin/bash "$@"\n'
        )
        Path(self.shell).chmod(0o755)

    # --- its life ----------------------------------------------------------------------------

    def __enter__(self) -> Loopback:
        for folder in (self.folder, "/proc", "/dev") if ROOT else ():
            there = Path(f"{ROOT}{folder}")
            there.mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", folder, there], check=True)
            self.mounts.append(there)
        self.start("munged")
        wait_for((self.folder / "run/munge.sock").exists, 10, "munge has no socket")
        self.start("slurmctld")
        for node in self.nodes:
            self.start(node)
        wait_for(lambda: self.states() == {"IDLE"}, 60, f"nodes are {self.states()}")
        return self

    def __exit__(self, *_: object) -> None:
        self._cancel()
        for name in [name for name in self.daemons if name != "munged"]:
            self.kill(name, signal.SIGTERM)
        for file in (self.folder / "run").glob("slurmd-*.pid"):
            self._kill_file(file, signal.SIGKILL)
        self.kill("munged", signal.SIGTERM)
        for there in reversed(self.mounts):
            subprocess.run(["umount", "--lazy", there], check=False)

    def start(self, name: str) -> None:
        """Start munge, the controller or the slurmd of a node; again where it was killed."""
        run, log = self.folder / "run", self.folder / "log"
        words = {
            "munged": [
                *("munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key"),
                *(f"--socket={run}/munge.sock", f"--pid-file={run}/munged.pid"),
                *(f"--log-file={log}/munged.log", f"--seed-file={run}/munged.seed"),
            ],
            "slurmctld": ["slurmctld", "-D"],
        }.get(name, ["slurmd", "-D", "-N", name])
        self.start_program(name, words)

    def start_program(self, name: str, words: list[str]) -> None:
        """Start any program as one of the cluster's."""
        with (self.folder / "log" / f"{name}.out").open("ab") as out:
            self.daemons[name] = subprocess.Popen(
                words, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """End a daemon and wait for it; one that goes on is killed."""
        daemon = self.daemons.pop(name, None)
        if daemon is None:
            return
        daemon.send_signal(number)
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait(10)

    def _kill_file(self, file: Path, number: int) -> None:
        try:
            os.kill(int(file.read_text()), number)
        except (ValueError, ProcessLookupError, FileNotFoundError):
            return

    def _cancel(self) -> None:
        """End all jobs first: their slurmstepd would outlive the cluster."""
        try:
            self.run("scancel", "-Q", "--state=PENDING")
            self.run("scancel", "-Q", "--state=RUNNING")
            wait_for(lambda: not self.run("squeue", "-h", "-t", "R,CG,S"), 8, "jobs go on")
        except (OSError, subprocess.SubprocessError):
            return

    # --- its commands ------------------------------------------------------------------------

    def run(
        self,
        *words: str | bytes,
        timeout: float = 60.0,
        more: dict[str, str] | None = None,
    ) -> str:
        """Run a command and return what it prints.

        Raises:
            OSError: it failed, with what it said.
        """
        environment = {**self.environment, **(more or {})}
        done = subprocess.run(
            words, env=environment, capture_output=True, timeout=timeout, check=False
        )
        if done.returncode:
            raise OSError(f"{words!r}: {done.stderr.decode('utf-8', 'replace')}")
        return done.stdout.decode("utf-8", "replace").strip()

    def submit(self, *words: str | bytes, script: str = "sleep 1") -> str:
        """Submit a job of some lines of shell and return its number."""
        name = self.folder / "run" / f"job-{time.monotonic_ns()}.sh"
        name.write_text(f"#!{self.shell}\n{script}\n", encoding="utf-8")
        said = self.run("sbatch", "--parsable", "-o", "/dev/null", *words, str(name))
        name.unlink()
        return said.splitlines()[-1].split(";")[0]

    def states(self) -> set[str]:
        """States of all nodes, without the marks of power saving."""
        try:
            lines = self.run("sinfo", "-h", "-N", "-o", "%T").upper().splitlines()
        except (OSError, subprocess.SubprocessError):
            return set()
        return {line.rstrip("*~#!%$@^-+") for line in lines}

    def job(self, number: str, key: str) -> str:
        """A field of the job's record that holds no blanks."""
        words = self.run("scontrol", "show", "job", "-o", number).split()
        return next((word.split("=", 1)[1] for word in words if word.startswith(f"{key}=")), "")

    # --- its files ---------------------------------------------------------------------------

    def _configure(self, settings: str) -> None:
        folder, port = self.folder, _free_ports(len(self.nodes) + 1)
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o600)
        cgroups = "cgroup/v1" if self.version < (23, 11) else "disabled"
        (folder / "cgroup.conf").write_text(f"CgroupPlugin={cgroups}\n")
        nodes, gres = [], []
        for k, node in enumerate(self.nodes):
            (folder / "spool" / node).mkdir()
            for gpu in range(self.gpus):
                device = folder / "dev" / f"{node}_gpu{gpu}"
                os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # a clone of /dev/null
            nodes.append(
                f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port + 1 + k}"
                f" CPUs=16 Boards=1 SocketsPerBoard=1 CoresPerSocket=16 ThreadsPerCore=1"
                f" RealMemory=16000 Gres={self.gpu}:{self.gpus} State=UNKNOWN"
            )
            files = f"{folder}/dev/{node}_gpu[0-{self.gpus - 1}]"
            gres.append(f"NodeName={node} Name=gpu{self.type} File={files}")
        (folder / "gres.conf").write_text("\n".join(gres) + "\n")
        power = _POWER.format(folder=folder) if self.sleeps else ""
        if self.sleeps:
            self._hooks()
        partition = "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
        text = _CONF.format(folder=folder, port=port)
        lines = [text, power, settings, *nodes, partition]
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n")

    def _hooks(self) -> None:
        """Programs that put nodes to sleep and wake them; each says when it was called."""
        for name, text in (("suspend", _SUSPEND), ("resume", _RESUME)):
            file = self.folder / "hooks" / name
            file.write_text(text.format(folder=self.folder, path=_path()))
            file.chmod(0o755)

    def power_log(self) -> list[tuple[float, str, str]]:
        """When which nodes were put to sleep (SUSPEND) and woken (RESUME)."""
        file = self.folder / "log" / "power.log"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(float(at), what, nodes) for at, what, nodes in map(str.split, lines)]


def _free_ports(count: int) -> int:
    """The first of several ports in a row that nobody listens on; others look elsewhere."""
    for first in range(20817 + os.getpid() % 97 * 40, 32000, count + 7):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise OSError("no free ports")


_CONF = """\
ClusterName=loopback
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.sock,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=3600
MaxJobCount=100000
KillWait=2
SlurmdTimeout=15
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
"""

_POWER = """\
SuspendProgram={folder}/hooks/suspend
ResumeProgram={folder}/hooks/resume
SuspendTime=86400
SuspendTimeout=3
ResumeTimeout=30
SuspendRate=0
ResumeRate=0
"""

_SUSPEND = """\
#!/bin/bash
export PATH={path} SLURM_CONF={folder}/slurm.conf
echo "$(date +%s.%N) SUSPEND $1" >> {folder}/log/power.log
for n in $(scontrol show hostnames "$1"); do kill "$(cat {folder}/run/slurmd-$n.pid)"; done
"""

_RESUME = """\
#!/bin/bash
# The controller hands down closed files and blocked signals: a slurmd needs both repaired.
export PATH={path} SLURM_CONF={folder}/slurm.conf
exec </dev/null >>{folder}/log/resume.out 2>&1
echo "$(date +%s.%N) RESUME $1" >> {folder}/log/power.log
for n in $(scontrol show hostnames "$1"); do
  python3 -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_SETMASK, [])
os.execvp(sys.argv[1], sys.argv[1:])' slurmd -N "$n" -b
done
"""
