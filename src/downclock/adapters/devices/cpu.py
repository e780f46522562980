"""CPU packages over sysfs: energy by RAPL, clocks by cpufreq."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from downclock.adapters.devices.device import ClockPairs, DeviceError

STEP_MHZ = 100
"""Between clocks where the driver takes any."""

_PACKAGE = re.compile(r"package-(\d+)(?:-die-\d+)?")
"""Names of RAPL domains: a package, or one of its dies."""

_RANGE = re.compile(r"(\S+)=(\d+)-(\d+)")


@dataclass(slots=True)
class CpuPackage:
    """One package: its RAPL domains (one a die), if any, and the cpufreq policies of its cores.

    The counter starts again at 0 after ``max_energy_range_uj``: what was read last is kept, and one
    turn between two readings is noticed (about every 20 minutes at 200 W).
    """

    index: int
    name: str
    rapl: tuple[Path, ...]
    policies: tuple[Path, ...]
    _read_uj: dict[Path, int] = field(default_factory=dict, repr=False)
    _turned_uj: int = field(default=0, repr=False)

    @property
    def label(self) -> str:
        """``cpu0``."""
        return f"cpu{self.index}"

    @property
    def uuid(self) -> str:
        """A package has no better name than its number."""
        return f"cpu-package-{self.index}"

    @property
    def setter(self) -> str:
        """Root, where its clocks may be written."""
        writable = [os.access(path / "scaling_max_freq", os.W_OK) for path in self.policies]
        return "root" if writable and all(writable) else ""

    def clock_pairs(self) -> ClockPairs:
        """Clocks that all cores have."""
        path = self._policy()
        listed = path / "scaling_available_frequencies"
        if listed.exists():
            clocks = {self._whole(listed, khz) // 1000 for khz in self._read(listed).split()}
        else:
            low, high = (khz // 1000 for khz in self._ends(path, "cpuinfo"))
            clocks = {*range(low, high, STEP_MHZ), high}
        return ((None, tuple(sorted(clocks, reverse=True))),)

    def clocks_mhz(self) -> tuple[int, int | None]:
        """Mean clock of the cores now."""
        self._policy()
        clocks = [self._number(path / "scaling_cur_freq") for path in self.policies]
        return round(sum(clocks) / len(clocks) / 1000), None

    def lock_clocks(self, core_mhz: int | None, memory_mhz: int | None) -> None:
        """Fix the clock of all cores until it is reset."""
        self._policy()
        for path in self.policies if core_mhz is not None else ():
            self._let(path, 1000 * (core_mhz or 0), 1000 * (core_mhz or 0))

    def reset_clocks(self) -> None:
        """Let the governor choose in the whole range again."""
        for path in self.policies:
            self._let(path, *self._ends(path, "cpuinfo"))

    def clock_ranges(self) -> str:
        """What each policy lets its cores have: ``policy0=800000-2400000``, in kHz."""
        ends = [(path.name, *self._ends(path, "scaling")) for path in self.policies]
        return " ".join(f"{name}={low}-{high}" for name, low, high in ends)

    def restore_ranges(self, ranges: str) -> None:
        """Let the governor choose in these ranges again; in all of it where none is told."""
        told = {name: (int(low), int(high)) for name, low, high in _RANGE.findall(ranges)}
        self.reset_clocks()
        for path in self.policies:
            if path.name in told:
                self._let(path, *told[path.name])

    def _ends(self, policy: Path, what: str) -> tuple[int, int]:
        """The least and the greatest clock that it could have, or has by its limits, in kHz."""
        return self._number(policy / f"{what}_min_freq"), self._number(policy / f"{what}_max_freq")

    def _let(self, policy: Path, low_khz: int, high_khz: int) -> None:
        # The lower end first: at no moment is it above the upper one.
        self._write(policy / "scaling_min_freq", self._number(policy / "cpuinfo_min_freq"))
        self._write(policy / "scaling_max_freq", high_khz)
        self._write(policy / "scaling_min_freq", low_khz)

    def power_limits_w(self) -> tuple[float, float]:
        """None that we set."""
        raise DeviceError(self.label, "unsupported", "power limits of CPUs are not set from here")

    def power_limit_w(self) -> float:
        """None that we set."""
        return self.power_limits_w()[1]

    def set_power_limit(self, limit_w: float) -> None:
        """Refuse."""
        self.power_limits_w()

    def power_w(self) -> float:
        """Refuse: RAPL counts energy."""
        raise DeviceError(self.label, "unsupported", "it has an energy counter, no power meter")

    def energy_j(self) -> float:
        """Energy by RAPL, also beyond a turn of its counter."""
        if not self.rapl:
            raise DeviceError(self.label, "unsupported", "it has no energy counter (RAPL) here")
        for die in self.rapl:
            now_uj = self._number(die / "energy_uj")
            if now_uj < self._read_uj.get(die, now_uj):
                self._turned_uj += self._number(die / "max_energy_range_uj")
            self._read_uj[die] = now_uj
        return (self._turned_uj + sum(self._read_uj.values())) / 1e6

    def _policy(self) -> Path:
        if not self.policies:
            raise DeviceError(self.label, "unsupported", "its clocks cannot be set (no cpufreq)")
        return self.policies[0]

    def _number(self, path: Path) -> int:
        return self._whole(path, self._read(path))

    def _whole(self, path: Path, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise DeviceError(self.label, "refused", f"{path}: is no number: {text!r}") from None

    def _read(self, path: Path) -> str:
        try:
            return path.read_text().strip()
        except PermissionError:
            raise DeviceError(self.label, "permission", f"reading {path} needs root") from None
        except OSError as error:
            raise DeviceError(self.label, "refused", f"{path}: {error.strerror}") from None

    def _write(self, path: Path, value: int) -> None:
        try:
            path.write_text(str(value))
        except PermissionError:
            raise DeviceError(self.label, "permission", "setting clocks needs root") from None
        except OSError as error:
            raise DeviceError(self.label, "refused", f"{path}: {error.strerror}") from None


def cpu_packages(root: str = "/") -> list[CpuPackage]:
    """Return the packages that have a counter or settable clocks.

    Args:
        root: the folder under which ``sys`` lies.
    """
    cpus = Path(root) / "sys/devices/system/cpu"
    rapl: dict[int, list[Path]] = {}
    for path in sorted(Path(root).glob("sys/class/powercap/intel-rapl:*")):
        if found := _PACKAGE.fullmatch(_text(path / "name")):
            rapl.setdefault(int(found[1]), []).append(path)
    policies: dict[int, list[Path]] = {}
    for path in sorted(cpus.glob("cpufreq/policy*")):
        first = _text(path / "related_cpus").split()[:1]
        package = _text(cpus / f"cpu{first[0]}/topology/physical_package_id") if first else ""
        policies.setdefault(int(package) if package.isdecimal() else 0, []).append(path)
    name = _model(Path(root) / "proc/cpuinfo")
    return [
        CpuPackage(package, name, tuple(rapl.get(package, ())), tuple(policies.get(package, ())))
        for package in sorted({*rapl, *policies})
    ]


def _model(path: Path) -> str:
    named = (line for line in _text(path).splitlines() if line.startswith("model name"))
    return next(named, "").partition(":")[2].strip() or "CPU"


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
