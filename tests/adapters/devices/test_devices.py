"""Devices of every maker behind one interface, and what `downclock devices` says of them."""

from __future__ import annotations

import csv
import json
import os
import socketserver
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from downclock.adapters.devices import amd, cpu, machine
from downclock.adapters.devices.cpu import cpu_packages
from downclock.adapters.devices.device import (
    Device,
    DeviceError,
    Setting,
    carry_out,
    nearest,
    ranges_of,
    undo,
)
from downclock.adapters.devices.fakes.nvml import FakeGpus
from tests.adapters.devices.conftest import FREE, Node, until
from tests.conftest import ROOT


def devices(gpus: FakeGpus | None, *more: str) -> subprocess.CompletedProcess[str]:
    seen = gpus.environment if gpus is not None else {}
    environment = {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "160", **seen}
    words = [sys.executable, "-m", "downclock", "devices", *more]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def test_devices_shows_what_there_is_and_sets_nothing(gpus: FakeGpus) -> None:
    gpus.configure("gpus 2", "memory 1215 810")
    ran = devices(gpus)
    assert ran.returncode == 0, ran.stderr
    assert "2 devices on this machine" in ran.stdout
    (row,) = [line for line in ran.stdout.splitlines() if line.startswith(" gpu1")]
    for words in ("Fake A100", "81, 210 to 1410 MHz", "810, 1215 MHz", "400 W (100 to 400)", "yes"):
        assert words in row
    told = json.loads(devices(gpus, "--format", "json").stdout)["devices"][0]
    assert told["core_clocks_mhz"] == list(range(210, 1411, 15))
    assert (told["power_w"], told["energy_counter"]) == (45.0, True)
    assert gpus.log() == []


def test_a_lost_gpu_is_shown_beside_the_others(gpus: FakeGpus) -> None:
    gpus.configure("gpus 2", "fail * 15 1", "fail nvmlDeviceGetTotalEnergyConsumption 3")
    ran = devices(gpus)
    assert ran.returncode == 0
    assert "does not answer" in ran.stdout
    assert ran.stdout.count("the GPU is lost (it no longer answers on the bus)") == 1
    assert "Fake A100" in ran.stdout


def test_a_machine_without_a_driver_says_so() -> None:
    ran = devices(None)
    if "there is no NVIDIA driver on this machine" not in ran.stdout:
        pytest.skip("this machine has GPUs")
    assert ran.returncode == 0
    assert ran.stderr == ""


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(amd, "amd_gpus", list)
    _, notes = machine.devices("/nowhere")
    assert notes == [
        "asking NVIDIA GPUs needs the package 'nvidia-ml-py': pip install 'downclock[nvidia]'"
    ]


class _Zeusd(BaseHTTPRequestHandler):
    """Takes what zeusd takes, and keeps it."""

    asked: ClassVar[list[tuple[str, dict[str, list[str]]]]] = []
    status: ClassVar[int] = 200

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        self.asked.append((url.path, parse_qs(url.query)))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b'{"errors": {"0": "no"}}' if self.status != 200 else b"{}")

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def zeusd(tmp_path: Path):
    """A server at a Unix socket that takes what zeusd takes."""
    path = str(tmp_path / "zeusd.sock")
    handler = type("Handler", (_Zeusd,), {"asked": [], "status": 200})
    server = socketserver.ThreadingUnixStreamServer(path, handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield SimpleNamespace(path=path, handler=handler)
    server.shutdown()
    server.server_close()


NO_PERMISSION = tuple(
    f"fail nvmlDevice{verb} 4"
    for verb in (
        "SetGpuLockedClocks",
        "ResetGpuLockedClocks",
        "ResetMemoryLockedClocks",
        "SetPowerManagementLimit",
    )
)


def test_where_we_may_not_set_zeusd_does(node: Node, zeusd: Any) -> None:
    node.gpus.configure(*NO_PERMISSION)
    node.job(7, "downclock core_mhz=900")
    served = Node(node.folder, node.gpus, {"ZEUSD_SOCK_PATH": zeusd.path})
    served.agent("prolog", 7, "2")
    until(lambda: len(zeusd.handler.asked) >= 1)
    assert zeusd.handler.asked == [
        (
            "/gpu/set_gpu_locked_clocks",
            {
                "gpu_ids": ["2"],
                "block": ["true"],
                "min_clock_mhz": ["900"],
                "max_clock_mhz": ["900"],
            },
        )
    ]
    until(lambda: not list(node.state.glob("job-*")))
    served.agent("epilog", 7, "2")
    until(lambda: not list(node.state.glob("gpu-*")))
    assert [path for path, _ in zeusd.handler.asked[1:]] == [
        "/gpu/reset_gpu_locked_clocks",
        "/gpu/reset_mem_locked_clocks",
    ]
    (gpu,) = node.spooled(7)["gpus"]
    assert (gpu["set"], gpu["core_mhz"]) == (True, 900)


def test_zeusd_that_refuses_or_is_silent_is_one_line(node: Node, zeusd: Any) -> None:
    node.gpus.configure(*NO_PERMISSION, "app any 60 30 200 0.02 0.8 0.01 0 1 0")
    zeusd.handler.status = 403
    words = node.words("measure", "-o", str(node.folder / "r.csv"), "--core-mhz", "600")
    words += ["--", str(node.gpus.job), "any"]
    for path, said in (
        (zeusd.path, "gpu0: setting core clocks: zeusd refused it (403:"),
        (str(node.folder), f"failed: zeusd at {node.folder} does not answer"),
    ):
        environment = {**node.env(), "ZEUSD_SOCK_PATH": path}
        ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1), ran.stderr
        assert said in ran.stderr


def sysfs(root: Path) -> None:
    """Two packages of two cores each, the first without RAPL."""
    cpus = root / "sys/devices/system/cpu"
    for core in range(4):
        topology = cpus / f"cpu{core}/topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{core // 2}\n")
        policy = cpus / f"cpufreq/policy{core}"
        policy.mkdir(parents=True)
        for name, text in {
            "related_cpus": f"{core}",
            "cpuinfo_min_freq": "800000",
            "cpuinfo_max_freq": "3100000",
            "scaling_min_freq": "800000",
            "scaling_max_freq": "3100000",
            "scaling_cur_freq": f"{1000000 * (core + 1)}",
        }.items():
            (policy / name).write_text(text + "\n")
    for number, name in enumerate(("package-1", "psys")):
        domain = root / f"sys/class/powercap/intel-rapl:{number}"
        domain.mkdir(parents=True)
        (domain / "name").write_text(name + "\n")
        (domain / "energy_uj").write_text("5000000\n")
        (domain / "max_energy_range_uj").write_text("262143328850\n")


def test_cpus_are_locked_and_reset_over_sysfs(tmp_path: Path) -> None:
    sysfs(tmp_path)
    first, second = cpu_packages(str(tmp_path))
    assert (first.label, second.label, first.rapl, len(second.policies)) == (
        "cpu0",
        "cpu1",
        (),
        2,
    )
    clocks = second.clock_pairs()[0][1]
    assert (clocks[0], clocks[-1], len(clocks)) == (3100, 800, 24)
    assert second.clocks_mhz() == (3500, None)
    setting = nearest(second, Setting(core_mhz=1950))
    assert setting == Setting(core_mhz=2000)
    carry_out(second, setting)

    def limits(core: int) -> list[str]:
        policy = tmp_path / f"sys/devices/system/cpu/cpufreq/policy{core}"
        return [(policy / f"scaling_{end}_freq").read_text().strip() for end in ("min", "max")]

    assert [limits(core) for core in range(4)] == [["800000", "3100000"]] * 2 + [
        ["2000000", "2000000"]
    ] * 2
    undo(second, None)
    assert limits(2) == limits(3) == ["800000", "3100000"]
    with pytest.raises(DeviceError, match="cpu0: it has no energy counter"):
        first.energy_j()
    with pytest.raises(DeviceError, match="power limits of CPUs are not set from here"):
        carry_out(second, Setting(power_limit_w=50.0))


def test_a_rapl_counter_that_starts_again_at_0_goes_on(tmp_path: Path) -> None:
    sysfs(tmp_path)
    package = cpu_packages(str(tmp_path))[1]
    meter = tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj"
    meter.write_text("262143000000\n")
    before = package.energy_j()
    meter.write_text("671150\n")
    assert package.energy_j() - before == pytest.approx(1.0, abs=1e-6)
    meter.write_text("1671150\n")
    assert package.energy_j() - before == pytest.approx(2.0, abs=1e-6)


def test_the_dies_of_a_package_are_summed_each_with_its_own_turns(tmp_path: Path) -> None:
    sysfs(tmp_path)
    domains = [tmp_path / f"sys/class/powercap/intel-rapl:{number}" for number in range(2)]
    for die, domain in enumerate(domains):
        (domain / "name").write_text(f"package-0-die-{die}\n")
    package = cpu_packages(str(tmp_path))[0]
    assert package.rapl == tuple(domains)
    before_j = package.energy_j()
    assert before_j == pytest.approx(10.0)
    (domains[0] / "energy_uj").write_text("6000000\n")
    (domains[1] / "energy_uj").write_text("1000000\n")  # its counter began again
    assert package.energy_j() - before_j == pytest.approx(1.0 + 262143.328850 - 4.0)


def test_a_file_of_the_kernel_that_is_no_number_is_one_line(tmp_path: Path) -> None:
    sysfs(tmp_path)
    package = cpu_packages(str(tmp_path))[1]
    (tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj").write_text("<none>\n")
    with pytest.raises(DeviceError, match="energy_uj: is no number: '<none>'"):
        package.energy_j()


def test_cpus_that_cannot_be_read_leave_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(root: str) -> list[Device]:
        raise ValueError("what is this")

    monkeypatch.setattr(machine, "gpus", lambda: ["a GPU"])
    monkeypatch.setattr(cpu, "cpu_packages", broken)
    assert machine.devices() == (["a GPU"], ["CPUs: what is this"])


def test_a_sites_own_range_of_clocks_comes_back(tmp_path: Path) -> None:
    sysfs(tmp_path)
    package = cpu_packages(str(tmp_path))[1]
    folder = tmp_path / "sys/devices/system/cpu/cpufreq"
    (folder / "policy2/scaling_max_freq").write_text("2400000\n")
    (folder / "policy3/scaling_min_freq").write_text("1200000\n")

    def limits() -> list[list[str]]:
        ends = ("scaling_min_freq", "scaling_max_freq")
        return [
            [(folder / p / e).read_text().strip() for e in ends] for p in ("policy2", "policy3")
        ]

    site = [["800000", "2400000"], ["1200000", "3100000"]]
    ranges = ranges_of(package)
    carry_out(package, Setting(core_mhz=1000))
    assert limits() == [["1000000", "1000000"]] * 2
    undo(package, None, ranges)
    assert limits() == site


def test_sysfs_that_refuses_is_one_line(tmp_path: Path) -> None:
    sysfs(tmp_path)
    package = cpu_packages(str(tmp_path))[1]
    (tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj").unlink()
    with pytest.raises(DeviceError, match=r"cpu1: .*energy_uj: No such file"):
        package.energy_j()
    limit = tmp_path / "sys/devices/system/cpu/cpufreq/policy2/scaling_min_freq"
    limit.unlink()
    limit.mkdir()
    with pytest.raises(DeviceError, match=r"cpu1: .*scaling_min_freq: Is a directory"):
        package.lock_clocks(2000, None)


IN_ITS_OWN_SYS = """\
set -e
mount -t tmpfs none /sys/devices/system/cpu
mkdir -p /sys/class/powercap 2>/dev/null || mount -t tmpfs none /sys/class
mkdir -p /sys/class/powercap
mountpoint -q /sys/class || mount -t tmpfs none /sys/class/powercap
cp -r "$1"/sys/devices/system/cpu/. /sys/devices/system/cpu/
cp -r "$1"/sys/class/powercap/. /sys/class/powercap/
exec "$2" -m downclock measure --device cpu1 --core-mhz 1000,2000 --repeats 1 --warm-up 0 \
  --application spin -o "$1/runs.csv" -- sh -c \
  'echo $(cat /sys/devices/system/cpu/cpufreq/policy3/scaling_max_freq) >> "$0"
   meter=/sys/class/powercap/intel-rapl:0/energy_uj
   sleep 0.2; echo $(($(cat $meter) + 4000000)) > $meter' "$1/clocks"
"""


def test_a_sweep_of_cpu_clocks_at_the_real_paths(tmp_path: Path) -> None:
    """In a mount namespace of its own, with files over the kernel's: unshare -m, tmpfs."""
    words = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /sys/devices/system/cpu"]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("mounts need root (unshare -m)")
    sysfs(tmp_path)
    environment = {**os.environ, "DOWNCLOCK_STATE": str(tmp_path / "state")}
    environment |= {"PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run(
        ["unshare", "-m", "sh", "-c", IN_ITS_OWN_SYS, "sh", str(tmp_path), sys.executable],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert sorted((tmp_path / "clocks").read_text().split()) == ["1000000", "2000000"]
    with (tmp_path / "runs.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert sorted(row["core_mhz"] for row in rows) == ["1000", "2000"]
    assert {row["energy_j"] for row in rows} == {"4.000000"}
    assert not list((tmp_path / "state").glob("gpu-*"))


class _AmdError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.err_code = code


class _Amd:
    """What amdsmi 7 answers: hertz, microwatts, counts of 15.3 microjoules."""

    AmdSmiException = _AmdError
    AmdSmiClkType = SimpleNamespace(GFX="gfx", MEM="mem")
    AmdSmiDevPerfLevel = SimpleNamespace(AUTO="auto")

    def __init__(self) -> None:
        self.cap_uw, self.done, self.code = 300_000_000, [], 0

    def _do(self, *what: Any) -> None:
        if self.code:
            raise _AmdError(self.code)
        self.done.append(what)

    def amdsmi_init(self) -> None: ...

    def amdsmi_get_processor_handles(self) -> list[str]:
        return ["card"]

    def amdsmi_get_gpu_device_uuid(self, handle: str) -> str:
        return f"{handle}-1"

    def amdsmi_get_gpu_asic_info(self, handle: str) -> dict[str, str]:
        return {"market_name": "Instinct"}

    def amdsmi_get_clk_freq(self, handle: str, kind: str) -> dict[str, Any]:
        return {"frequency": [500_000_000, 2_100_000_000, 1_300_000_000]}

    def amdsmi_get_clock_info(self, handle: str, kind: str) -> dict[str, Any]:
        return {"clk": 500 if kind == "gfx" else "N/A"}

    def amdsmi_set_gpu_clk_range(self, handle: str, low: int, high: int, kind: str) -> None:
        self._do("range", low, high, kind)

    def amdsmi_set_gpu_perf_level(self, handle: str, level: str) -> None:
        self._do("level", level)

    def amdsmi_get_power_cap_info(self, handle: str) -> dict[str, int]:
        return {
            "power_cap": self.cap_uw,
            "min_power_cap": 100_000_000,
            "max_power_cap": 500_000_000,
        }

    def amdsmi_set_power_cap(self, handle: str, sensor: int, cap_uw: int) -> None:
        self._do("cap", sensor, cap_uw)

    def amdsmi_get_power_info(self, handle: str) -> dict[str, Any]:
        return {"current_socket_power": "N/A", "average_socket_power": 87}

    def amdsmi_get_energy_count(self, handle: str) -> dict[str, Any]:
        return {"energy_accumulator": 1_000_000, "counter_resolution": 15.3, "timestamp": 0}


def test_amd_gpus_answer_in_the_same_units(monkeypatch: pytest.MonkeyPatch) -> None:
    smi = _Amd()
    monkeypatch.setitem(sys.modules, "amdsmi", smi)  # type: ignore[arg-type]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    (gpu,) = amd.amd_gpus()
    assert (gpu.label, gpu.uuid, gpu.name) == ("gpu0", "card-1", "Instinct")
    assert gpu.clock_pairs() == ((None, (2100, 1300, 500)),)
    assert gpu.clocks_mhz() == (500, None)
    assert (gpu.power_w(), gpu.energy_j()) == (87.0, pytest.approx(15.3))
    assert (gpu.power_limit_w(), gpu.power_limits_w()) == (300.0, (100.0, 500.0))
    carry_out(gpu, nearest(gpu, Setting(core_mhz=1200, memory_mhz=900)))
    undo(gpu, 300.0)
    assert smi.done == [
        ("range", 1300, 1300, "gfx"),
        ("level", "auto"),
        ("cap", 0, 300_000_000),
    ]
    for code, said in (
        (10, "needs root"),
        (2, "is not supported by this GPU"),
        (99, "was refused"),
    ):
        smi.code = code
        with pytest.raises(DeviceError, match=f"gpu0: setting core clocks {said}"):
            gpu.lock_clocks(1300, None)


def test_amdsmi_without_its_library_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its import raises KeyError."""
    broken = SimpleNamespace(amdsmi_init=lambda: {}["libamd_smi.so"])
    monkeypatch.setitem(sys.modules, "amdsmi", broken)  # type: ignore[arg-type]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    assert amd.amd_gpus() == []


def test_a_card_with_one_memory_clock_is_not_asked_to_lock_it(node: Node) -> None:
    node.gpus.configure("memory 1215", "fail nvmlDeviceSetMemoryLockedClocks 3")
    node.job(7, "downclock core_mhz=900 memory_mhz=1215")
    node.agent("prolog", 7, "0")
    until(lambda: not list(node.state.glob("job-*")))
    assert node.locked == [(900, 0, 400.0), FREE, FREE, FREE]


def test_a_driver_too_old_to_reset_memory_clocks_resets_the_core(node: Node) -> None:
    node.gpus.configure("fail nvmlDeviceResetMemoryLockedClocks 13")
    node.job(7, "downclock core_mhz=900")
    node.agent("prolog", 7, "0")
    until(lambda: not list(node.state.glob("job-*")))
    node.agent("epilog", 7, "0")
    until(lambda: not list(node.state.glob("gpu-*")))
    assert node.locked == [FREE] * 4


def test_memory_clocks_that_do_not_reset_do_not_keep_the_core_locked(node: Node) -> None:
    node.gpus.configure("fail nvmlDeviceResetMemoryLockedClocks 999", "memory 1215 810")
    node.job(7, "downclock core_mhz=900 memory_mhz=810")
    node.agent("prolog", 7, "0")
    until(lambda: not list(node.state.glob("job-*")))
    assert node.locked[0] == (900, 810, 400.0)
    node.agent("epilog", 7, "0")
    until((node.state / "spool" / "7-n1-0.json").exists)
    until(lambda: node.locked[0] == (0, 810, 400.0))
    node.gpus.configure("memory 1215 810")
    assert node.agent("recover").returncode == 0
    assert node.locked[0] == FREE
