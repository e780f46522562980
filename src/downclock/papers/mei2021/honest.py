"""The same day with parameters as measured: what DVFS is worth without shrunk powers."""

from __future__ import annotations

from downclock.papers.data import absent, data
from downclock.papers.mei.runs import MW_MIN, RHO, Outcome, outcome_of
from downclock.papers.mei2021 import PAPER
from downclock.papers.mei2021.single_task import measured_a100
from downclock.papers.rows import Item, Row, Settings, estimate, not_run, ours_only
from downclock.power.library import Library
from downclock.power.library_file import built_in_library
from downclock.power.points import NARROW, WIDE, Clocks
from downclock.workloads import mei


def honest(settings: Settings) -> list[Row]:
    """Online day with the fitted 1080 Ti library, unshrunk, and with measured A100 tables."""
    pascal = built_in_library("gtx1080ti")
    cases: list[tuple[str, Library, Clocks]] = [
        ("1080 Ti as fitted, wide interval", pascal, WIDE),
        ("1080 Ti as fitted, narrow interval", pascal, NARROW),
    ]
    folder = data("dvfs", "a100")
    if folder is not None:
        ampere = measured_a100(folder)
        cases.append(("A100 as measured", ampere.library, ampere.clocks))
    rows, where = [], (PAPER, "honest")
    for name, library, clocks in cases:
        found = [_day(seed, library, clocks) for seed in settings.seeds]
        saving = estimate([100.0 * (1.0 - on.run_j / off.run_j) for on, off in found])
        rows.append(ours_only(where, f"run energy saved, {name}", saving, "%"))
        total = estimate([on.total_j / MW_MIN for on, _ in found])
        rows.append(ours_only(where, f"total of EDL-D theta=0.9, l=16, {name}", total, "MW min"))
    if folder is None:
        saved = "run energy saved, A100 as measured"
        rows.append(not_run(where, saved, None, "%", absent("dvfs/a100")))
    return rows


def _day(seed: int, library: Library, clocks: Clocks) -> tuple[Outcome, Outcome]:
    """The same day with and without DVFS."""
    cluster = mei.Cluster(pairs=4096, turn_on_per="server", clocks=clocks)
    problem = mei.online(seed, library=library, cluster=cluster)
    on = outcome_of(problem, f"edl:theta=0.9,rho={RHO},start=stream")
    return on, outcome_of(problem, f"edl:dvfs=off,rho={RHO},start=stream")


ITEMS = (Item("honest", "Online with the parameters of real cards", honest),)
