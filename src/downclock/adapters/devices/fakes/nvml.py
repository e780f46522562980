"""A fake libnvidia-ml.so.1: compiled, put before the real one, told what to be, and read.

    gpus = FakeGpus.built(folder)
    gpus.configure("gpus 2", "fail nvmlDeviceSetGpuLockedClocks 4")
    subprocess.run([...], env={**os.environ, **gpus.environment})
    gpus.read()[0].core_mhz

``fake_nvml.c`` says what may be configured. Needs gcc.
"""

from __future__ import annotations

import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from downclock.files import write_text_atomically

SOURCE = Path(__file__).with_name("fake_nvml.c")
_HEAD, _GPU = struct.Struct("<II"), struct.Struct("<IIIIIiIIddd")


@dataclass(frozen=True, slots=True)
class FakeGpu:
    """What one GPU is set to: locked clocks (0: not locked), power limit, its meter."""

    core_mhz: int
    memory_mhz: int
    power_limit_w: float
    busy: bool
    energy_j: float

    @property
    def locked(self) -> bool:
        """A clock is locked."""
        return bool(self.core_mhz or self.memory_mhz)


@dataclass(frozen=True, slots=True)
class FakeGpus:
    """Fake GPUs whose library and job lie in ``library``, and whose state in ``state``."""

    library: Path
    state: Path

    @classmethod
    def built(cls, folder: Path) -> FakeGpus:
        """Compile the library and the job into ``folder``; their state is there too."""
        shared = ["-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"]
        for name, how in (("libnvidia-ml.so.1", shared), ("fake-job", ["-DFAKE_JOB"])):
            words = ["gcc", "-O2", *how, str(SOURCE), "-o", str(folder / name), "-lpthread"]
            subprocess.run(words, check=True)
        return cls(folder, folder / "state")

    def beside(self, name: str) -> FakeGpus:
        """Other GPUs (of another node) with the same library."""
        return FakeGpus(self.library, self.state.with_name(name))

    @property
    def job(self) -> Path:
        """The program that keeps GPUs busy: ``fake-job APPLICATION [SCALE [GPU,GPU...]]``."""
        return self.library / "fake-job"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to see these GPUs."""
        return {"LD_LIBRARY_PATH": str(self.library), "FAKE_NVML": str(self.state)}

    def configure(self, *lines: str) -> None:
        """Say what the GPUs are and what fails, from now on."""
        write_text_atomically(f"{self.state}.conf", "".join(f"{line}\n" for line in lines))

    def read(self, count: int = 4) -> list[FakeGpu]:
        """Return what GPUs are set to now, without settling their meters; none were asked: none."""
        data = self.state.read_bytes() if self.state.exists() else b""
        count = min(count, max(len(data) - _HEAD.size, 0) // _GPU.size)
        rows = [_GPU.unpack_from(data, _HEAD.size + k * _GPU.size) for k in range(count)]
        return [
            FakeGpu(high, memory_high, cap_mw / 1e3, bool(runner), energy_mj / 1e3)
            for _, high, _, memory_high, cap_mw, runner, _, _, energy_mj, _, _ in rows
        ]

    def log(self) -> list[tuple[float, int, str, int, int]]:
        """Return every call that set something: when (epoch), GPU, function, low, high."""
        path = Path(f"{self.state}.log")
        lines = path.read_text().splitlines() if path.exists() else []
        words = [line.split() for line in lines]
        return [
            (float(t), int(gpu), name, int(low), int(high)) for t, gpu, name, low, high in words
        ]
