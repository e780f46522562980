"""Clusters from TOML: what is understood, and how each bad file is refused in one line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.power.library_file import write_library
from downclock.power.points import MEI_LAW, NARROW, PROPORTIONAL_LAW, ClockRange, ClockTable
from downclock.problem.files.read_cluster import read_cluster
from tests.generated import random_problem

GOOD = """\
applications = "builtin:gtx1080ti"
slot_s = 60

[[kind]]
name = "gtx1080ti"
idle_w = 37
interrupt = "pause"
clock = "locked"
interval = "narrow"

[[kind]]
name = "core"
core = [0.5, 1.2]

[[server]]
name = "big"
count = 2
zone = "north"
processors = [{ kind = "gtx1080ti", count = 3 }, { kind = "core" }]
host_w = 100.5
wake_j = 90
wake_s = 30
sleep_w = 5
initially = "on"

[[server]]
name = "small"
processors = [{ kind = "core", count = 4 }]
chip_wide = true
shared_w = 2
shared_w_per_clock = 0.5

[prices.north]
price_per_kwh = 0.25
"""

KIND = """\
[[kind]]
name = "k"
{clocks}

[[server]]
name = "s"
processors = [{{ kind = "k" }}]
"""


def written(folder: Path, text: str, name: str = "cluster.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(folder: Path, text: str, name: str = "cluster.toml") -> str:
    with pytest.raises(InvalidInput) as caught:
        read_cluster(written(folder, text, name))
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(folder) + "/", "")


def test_a_cluster_is_read_as_described(tmp_path: Path) -> None:
    cluster = read_cluster(written(tmp_path, GOOD))
    platform = cluster.platform
    assert platform.server_name.tolist() == ["big1", "big2", "small"]
    assert platform.kind.tolist() == [0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1]
    assert platform.chip.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8]
    assert platform.zones == ("north", "default")
    assert platform.slot_s == 60.0
    assert platform.initially_on.tolist() == [True, True, False]
    assert platform.host_w.tolist() == [100.5, 100.5, 0.0]
    assert platform.wake_s.tolist() == [30.0, 30.0, 0.0]
    assert platform.shared_w_per_clock[-1] == 0.5
    gpu, core = platform.kinds
    assert (gpu.clocks, gpu.idle_w, gpu.interrupt, gpu.clock) == (NARROW, 37.0, "pause", "locked")
    assert (core.clocks, core.idle_w, core.interrupt, core.clock) == (
        ClockRange(0.5, 1.2),
        *(0.0, "none", "free"),
    )
    assert cluster.library is not None
    assert "cfd" in cluster.library.names
    assert cluster.prices.zones == {"north": {"price": 0.25}}
    assert cluster.name == "cluster"


def test_the_same_structure_may_be_json(tmp_path: Path) -> None:
    import tomllib

    path = written(tmp_path, json.dumps(tomllib.loads(GOOD)), "cluster.json")
    assert read_cluster(path).platform.server_name.tolist() == ["big1", "big2", "small"]


def test_a_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read_cluster(path).platform.server_count == 3


def test_clock_ranges_follow_their_law(tmp_path: Path) -> None:
    text = KIND.format(clocks='core = [0.5, inf]\nmemory = 1\nvolt = [0.5, 1.2]\nlaw = "mei"')
    clocks = read_cluster(written(tmp_path, text)).platform.kinds[0].clocks
    assert clocks == ClockRange(0.5, np.inf, 1.0, 1.0, 0.5, 1.2, MEI_LAW)
    text = KIND.format(clocks="core = [0.5, 1]\nvolt = [0.5, 1]\nlaw = [0, 1, 0]")
    clocks = read_cluster(written(tmp_path, text)).platform.kinds[0].clocks
    assert clocks == ClockRange(0.5, 1.0, volt_min=0.5, law=PROPORTIONAL_LAW)


def test_enumerated_clocks_are_combined_or_paired(tmp_path: Path) -> None:
    text = KIND.format(
        clocks="core_mhz = [600, 1200]\nmemory_mhz = [800, 1000]\n"
        "default_core_mhz = 1200\ndefault_memory_mhz = 1000"
    )
    table = read_cluster(written(tmp_path, text)).platform.kinds[0].clocks
    assert isinstance(table, ClockTable)
    assert table.points[:, :2].tolist() == [[0.5, 0.8], [1.0, 0.8], [0.5, 1.0], [1.0, 1.0]]
    text = KIND.format(
        clocks="clock_pairs = [[405, 405], [5005, 1480]]\n"
        "default_core_mhz = 1480\ndefault_memory_mhz = 5005"
    )
    table = read_cluster(written(tmp_path, text)).platform.kinds[0].clocks
    assert isinstance(table, ClockTable)
    assert table.memory_mhz.tolist() == [405.0, 5005.0]
    assert table.core_mhz.tolist() == [405.0, 1480.0]


def test_one_memory_clock_is_its_own_default(tmp_path: Path) -> None:
    text = KIND.format(clocks="core_mhz = [210, 1410]\nmemory_mhz = 1215\ndefault_core_mhz = 1410")
    table = read_cluster(written(tmp_path, text)).platform.kinds[0].clocks
    assert isinstance(table, ClockTable)
    assert table.default_memory_mhz == 1215.0
    assert table.points[:, 1].tolist() == [1.0, 1.0]


def test_a_library_file_is_found_beside_the_cluster(tmp_path: Path) -> None:
    library = random_problem(3).library
    write_library(library, tmp_path / "apps.json")
    text = 'applications = "apps.json"\n' + KIND.format(clocks='interval = "wide"')
    found = read_cluster(written(tmp_path, text)).library
    assert found is not None
    assert found.names.tolist() == library.names.tolist()


def test_the_epoch_may_be_local_time(tmp_path: Path) -> None:
    body = KIND.format(clocks='interval = "wide"')
    text = f'epoch = 2024-06-10T00:00:00\ntimezone = "Europe/Berlin"\n{body}'
    assert read_cluster(written(tmp_path, text)).epoch == datetime(2024, 6, 9, 22, tzinfo=UTC)
    text = f"epoch = 2024-06-10T00:00:00+02:00\n{body}"
    assert read_cluster(written(tmp_path, text)).epoch == datetime(2024, 6, 9, 22, tzinfo=UTC)


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


BAD = {
    "not TOML": (
        changed("slot_s = 60", "slot_s = "),
        "cluster.toml line 2: is not TOML: Invalid value (column 10)",
    ),
    "unknown key": (
        changed("slot_s", "slots_s"),
        "cluster.toml line 2: slots_s is not a known key; did you mean 'slot_s'?",
    ),
    "unknown key of a kind": (
        changed("idle_w", "idle_watt"),
        "cluster.toml line 6, kind 'gtx1080ti': idle_watt is not a known key;"
        " did you mean 'idle_w'?",
    ),
    "wrong type": (
        changed("idle_w = 37", 'idle_w = "37 W"'),
        "cluster.toml line 6, kind 'gtx1080ti': idle_w='37 W' must be a number",
    ),
    "no name": (
        changed('name = "big"', 'name = " "'),
        "cluster.toml line 16, server ' ': name=' ' must not be empty",
    ),
    "negative power": (
        changed("host_w = 100.5", "host_w = -1"),
        "cluster.toml line 20, server 'big': host_w=-1.0 must be finite and not negative",
    ),
    "NaN": (
        changed("wake_s = 30", "wake_s = nan"),
        "cluster.toml line 22, server 'big': wake_s=nan must be finite and not negative",
    ),
    "a wake of endless power": (
        changed("wake_s = 30", "wake_s = 5e-324"),
        "cluster.toml line 22, server 'big': wake_s=5e-324 draws wake_j at more than 1e+09 W; 0 is"
        " a wake that takes no time",
    ),
    "unknown rule": (
        changed('interrupt = "pause"', 'interrupt = "stop"'),
        "cluster.toml line 7, kind 'gtx1080ti': interrupt='stop' must be one of"
        " none, pause, preempt, migrate",
    ),
    "unknown interval": (
        changed('"narrow"', '"tight"'),
        "cluster.toml line 9, kind 'gtx1080ti': interval='tight' must be one of"
        " wide, narrow, narrow-2017",
    ),
    "two ways of clocks": (
        changed("core = [0.5, 1.2]", 'core = [0.5, 1.2]\ninterval = "wide"'),
        "cluster.toml line 11, kind 'core': needs its clocks, given one way:"
        " interval, or core (ratios), or core_mhz as `nvidia-smi -q -d SUPPORTED_CLOCKS` prints"
        " them, or power_limit_w; they are known of the cards a100, gtx1080ti, rtx2070s, v100, cpu"
        " (card = ...)",
    ),
    "ends the wrong way round": (
        changed("core = [0.5, 1.2]", "core = [1.5, 1.2]"),
        "cluster.toml line 13, kind 'core': core=[1.5, 1.2] must be [least, greatest]",
    ),
    "three ends": (
        changed("core = [0.5, 1.2]", "core = [0.5, 1, 1.2]"),
        "cluster.toml line 13, kind 'core': core=[0.5, 1, 1.2] must be a list of 2 numbers",
    ),
    "unknown kind": (
        changed('[{ kind = "core", count = 4 }]', '[{ kind = "cores", count = 4 }]'),
        "cluster.toml line 26, server 'small': kind='cores' is not a kind of this platform"
        "; did you mean 'core'?",
    ),
    "no count": (
        changed("count = 2", "count = 0"),
        "cluster.toml line 17, server 'big': count=0 must be at least 1",
    ),
    "count beyond memory": (
        changed("count = 2", "count = 99999999999"),
        "cluster.toml line 15, server 'big': has more than 10000000 processors",
    ),
    "count of a fraction": (
        changed("count = 2", "count = 2.5"),
        "cluster.toml line 17, server 'big': count=2.5 must be a whole number",
    ),
    "name twice": (
        changed('name = "small"', 'name = "big1"'),
        "cluster.toml line 26, server 'big1': is the name of two servers",
    ),
    "kind twice": (
        changed('name = "core"', 'name = "gtx1080ti"'),
        "cluster.toml line 11, kind 'gtx1080ti': is defined twice",
    ),
    "nameless": (
        changed('name = "small"\n', ""),
        "cluster.toml line 26, server 2: needs the key 'name'",
    ),
    "prices of an unknown zone": (
        changed("[prices.north]", "[prices.nord]"),
        "cluster.toml line 33, prices: nord is not a known key; did you mean 'north'?",
    ),
    "unknown library": (
        changed("builtin:gtx1080ti", "builtin:gtx"),
        "cluster.toml line 1: applications='builtin:gtx' is not a built-in library;"
        " they are: a100, gtx1080ti, rtx2070s, v100. For a card without public measurements,"
        " measure yours (downclock fit), or plan with the archetypes of another"
        ' (card = "a100" in the kind)',
    ),
    "negative slot": (
        changed("slot_s = 60", "slot_s = -60"),
        "cluster.toml line 2: slot_s=-60.0 must be positive and finite",
    ),
    "no kinds": ("", "cluster.toml, the file: needs the key 'kind'"),
    "unknown time zone": (
        'timezone = "Mars/Olympus"\n' + GOOD,
        "cluster.toml line 1: timezone='Mars/Olympus' is not a time zone of the IANA database"
        " (such as 'Europe/Berlin')",
    ),
    "epoch without zone": (
        "epoch = 2024-06-10T00:00:00\n" + GOOD,
        "cluster.toml line 1: epoch='2024-06-10 00:00:00' has no UTC offset,"
        " and no time zone is given",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_a_bad_cluster_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(tmp_path, text) == message


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    text = changed("builtin:gtx1080ti", "apps.json")
    assert refusal(tmp_path, text) == "apps.json: no such file"


def test_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.toml").mkdir()
    with pytest.raises(InvalidInput, match=r"is a folder, not a file"):
        read_cluster(tmp_path / "cluster.toml")


def test_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.toml").write_bytes('# Rücksicht\nname = "a"\n'.encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"cluster\.toml line 1: is not UTF-8"):
        read_cluster(tmp_path / "cluster.toml")
