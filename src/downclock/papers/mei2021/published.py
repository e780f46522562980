"""Published numbers of mei2021, each with its place.

``authors.csv`` holds the data behind the figures, from the history of the authors' repository
(HKBU-HPML/GPU-DVFS-Job-Schedule, csvs/offline.csv, online.csv and turnon.csv): means over 10 sets,
energies in MW·min (printed as MJ), servers turned on = turn-on energy / 200 W·min. Its rows
``repeat`` are of a later state of offline.csv (commit f370e271): twenty sets drawn anew by the same
generator, without DVFS under the same rules. They are the whole highest load and, of the others,
what tells whether a rule with DVFS had changed: theta = 1, and 0.9 where l > 1.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

OFF = 0.0
"""Theta that stands for no DVFS."""

LOADS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)
SIZES = (1, 2, 4, 8, 16)
THETAS = (1.0, 0.95, 0.9, 0.85, 0.8)
RIVALS = ("edf-bf", "edf-wf", "lpt-ff")
"""Task set utilisations, pairs in a server, readjustment and rivals of EDL in the figures."""

REPEAT_SETS = 20
"""Sets behind the authors' repeat."""

TURN_ON = 200e-6
"""MW·min that turning a server on costs in the authors' files; the text says 90."""


class Setting(NamedTuple):
    """A row of the authors' files."""

    mode: str
    utilisation: float
    per_server: int
    algorithm: str = "edl"
    theta: float = OFF


class Numbers(NamedTuple):
    """Run and idle energy, servers turned on."""

    run: float
    idle: float
    servers: float

    @property
    def total(self) -> float:
        """Everything, turn-on energy as the files have it."""
        return self.run + self.idle + self.servers * TURN_ON


@cache
def authors() -> dict[Setting, Numbers]:
    """The authors' files: 448 offline rows, 40 online rows, 228 of their repeat."""
    text = files(__package__).joinpath("authors.csv").read_text(encoding="utf-8")
    found = {}
    for row in csv.DictReader(text.splitlines()):
        setting = Setting(
            row["mode"],
            float(row["utilisation"]),
            int(row["per_server"]),
            row["algorithm"],
            float(row["theta"]) if row["dvfs"] == "on" else OFF,
        )
        found[setting] = Numbers(float(row["run"]), float(row["idle"]), float(row["servers"]))
    return found


OVERHEAD_KW_MIN = (5.39, 120.62)
IDLE_KW_MIN = (33.64, 18440.0)
"""Turn-on and idle energy without DVFS, least and most (section 5.4.1; printed in KJ and MJ)."""

IDLE_ONLINE = {
    ("EDL without DVFS", OFF): 18.44,
    ("EDL-D theta=1", 1.0): 22.61,
    ("EDL-D theta=0.95", 0.95): 21.05,
    ("EDL-D theta=0.9", 0.9): 19.82,
}
"""Idle energy online at l = 16, in MW min (sections 5.4.2, 5.4.3)."""

SAVING = {
    "mean over U": 33.5,
    "upper limit, section 5.3.2": 36.4,
    "upper limit, section 5.4.3": 35.0,
}
"""Percent of run energy saved offline, and what it cannot exceed (sections 5.3.2, 5.4.3)."""

ABSTRACT = 35.0
"""Percent of energy saved at most: "we record 33-35 %" (abstract)."""

IDLE_LPT = 31.0
"""Idle energy of LPT-FF without DVFS, l = 16, U = 0.2, percent of the baseline (section 5.3.1)."""

EDL_BELOW_BF = 5.1
"""Percent less that EDL saves than EDF-BF at l = 16, U = 1.6 with DVFS (section 5.3.2)."""

IDENTICAL = 1.0
"""Servers apart that we take for "identical" (EDF-BF and EDF-WF with DVFS, section 5.3.2)."""

NEAR_LPT = 3.0
"""Percent that EDL saves less than LPT-FF at most where l <= 4 (section 5.3.3)."""

TOTALS = {
    ("bin", 1, 1.0): 80.03,
    ("edl", 1, 0.9): 80.24,
    ("edl", 16, 1.0): 102.49,
    ("edl", 16, 0.95): 100.94,
    ("edl", 16, 0.9): 99.73,
    ("bin", 16, 1.0): 85.27,
}
"""Totals online with DVFS by algorithm, pairs in a server and theta (sections 5.4.2, 5.4.3)."""

RUN_SAVING = 34.7
"""Percent of run energy saved online; the text takes 122.22 for 120.22 (section 5.4.2)."""

REDUCTION = (30.0, 33.0)
"""Percent of energy that online EDL saves with an appropriate theta (section 5.4.3)."""

SINGLE = {"wide": 36.4, "measured": 4.3}
"""Percent of energy saved on a single task, mean over applications (section 5.2, Fig. 4)."""

TABLE3 = {
    "t_hat": (25.83, 36.0, 35.44, 39.10, 30.86),
    "p_hat": (125.23, 176.31, 135.20, 141.39, 127.60),
}
"""Table 3: run times and powers of the five tasks."""

SHORTEST_J3_S = 25.83
"""Section 4.2: "the minimum execution time of J3 is 25.83"."""

TABLE3_MAPPINGS: dict[float, tuple[tuple[str, ...], ...]] = {
    0.9: (("J2", "J4"), ("J1", "J3", "J5")),
    1.0: (("J2",), ("J1", "J4"), ("J3", "J5")),
}
"""Section 4.2: tasks of each pair in the order the pairs are opened, by theta."""
