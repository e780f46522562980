"""Limits of a site in files: power caps and downtimes, read, refused and written back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.problem.files.read_cluster import read_cluster
from downclock.problem.files.read_problem import read_problem
from downclock.problem.files.write_problem import write_problem
from downclock.problem.limits import Limits
from tests.generated import random_problem

CLUSTER = """\
epoch = 2024-06-10T00:00:00+02:00
power_cap_w = 12000
zone_power_cap_w = { north = 4000 }
applications = "builtin:gtx1080ti"

[[kind]]
name = "gtx1080ti"

[[server]]
name = "gpu"
count = 3
zone = "north"
processors = [{ kind = "gtx1080ti", count = 4 }]

[[server]]
name = "old"
processors = [{ kind = "gtx1080ti", count = 2 }]

[[down]]
server = "gpu2"
from = 2024-06-10T18:00:00
to = "2024-06-10T22:00:00+02:00"

[[down]]
server = "gpu"
from_s = 3600
to_s = 7200
"""


def read(tmp_path: Path, text: str) -> Limits:
    path = tmp_path / "cluster.toml"
    path.write_text(text, encoding="utf-8")
    return read_cluster(path).platform.limits


def test_caps_and_downtimes_are_read(tmp_path: Path) -> None:
    """A stamp without an offset is local time; the name of an entry stands for its servers."""
    limits = read(tmp_path, CLUSTER)
    assert limits.power_cap_w == 12000.0
    assert limits.zone_cap_w == (("north", 4000.0),)
    assert limits.server.tolist() == [0, 1, 1, 2]
    assert limits.from_s.tolist() == [3600.0, 3600.0, 18 * 3600.0, 3600.0]
    assert limits.to_s.tolist() == [7200.0, 7200.0, 22 * 3600.0, 7200.0]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("power_cap_w = 12000", "power_cap_w = -1", "power_cap_w"),
        ("power_cap_w = 12000", 'power_cap_w = "much"', "number"),
        ("{ north = 4000 }", "{ nord = 4000 }", "north"),
        ('server = "gpu2"', 'server = "gpu7"', "is not a server of this cluster"),
        ('server = "gpu2"', 'server = "zz"', "there are: gpu, gpu1, gpu2, gpu3, old$"),
        ("from_s = 3600", "from_s = 9000", "must begin at 0 or later, and end after that"),
        ("to_s = 7200", "to_s = 1e13", r"3600 to 1e\+13 s' must .* end after that and by 1e\+12 s"),
        ("to_s = 7200\n", "until_s = 7200\n", "until_s"),
        ("epoch = 2024-06-10T00:00:00+02:00\n", "", "needs an 'epoch'"),
        ("from = 2024-06-10T18:00:00", "from = 18", "must be a date and time"),
    ],
)
def test_bad_limits_are_refused_by_name(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        read(tmp_path, CLUSTER.replace(old, new))
    assert "cluster.toml" in str(refused.value)


def test_downtimes_that_touch_are_one() -> None:
    limits = Limits.of(down=[(1, 5.0, 9.0), (0, 1.0, 2.0), (1, 8.0, 12.0), (1, 20.0, 21.0)])
    assert limits.server.tolist() == [0, 1, 1]
    assert limits.to_s.tolist() == [2.0, 12.0, 21.0]
    assert limits
    assert not Limits()


def test_limits_of_servers_and_zones_that_are_not_there_are_refused() -> None:
    platform = random_problem(1).platform
    with pytest.raises(InvalidInput, match="servers"):
        replace(platform, limits=Limits.of(down=[(99, 0.0, 1.0)]))
    with pytest.raises(InvalidInput, match="zone"):
        replace(platform, limits=Limits.of(zone_cap_w=[("nowhere", 10.0)]))


def test_a_problem_file_keeps_its_limits(tmp_path: Path) -> None:
    problem = random_problem(3)
    platform = problem.platform
    limits = Limits.of(5000.5, [(platform.zones[0], 1234.5)], [(0, 0.1, 7.3), (0, 9.0, 10.0)])
    path = tmp_path / "problem.json"
    write_problem(replace(problem, platform=replace(platform, limits=limits)), path)
    again = read_problem(path).platform.limits
    assert again.power_cap_w == limits.power_cap_w
    assert again.zone_cap_w == limits.zone_cap_w
    for name in ("server", "from_s", "to_s"):
        assert np.array_equal(getattr(again, name), getattr(limits, name))
