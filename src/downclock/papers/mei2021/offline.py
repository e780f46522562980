"""Offline figures: 5 to 9. One batch at time 0, EDL against EDF-BF, EDF-WF and LPT-FF."""

from __future__ import annotations

from downclock.papers.mei.runs import MW_MIN, Case, Outcome, compared, outcome
from downclock.papers.mei2021 import PAPER, published
from downclock.papers.mei2021.published import OFF, OFFLINE
from downclock.papers.rows import Item, Row, Settings

SIZES = (2, 4, 8, 16)
UNIT = "MW min"
GRID = 0.05
"""Voltage step of the public code; it costs 0.23 % against the exact optimum."""

NO_ALGORITHM_3 = "published without Algorithm 3; with it pairs that end together share a server"
LATE = "the public code keeps the old length where its grid has no point in time, and is late"
READ_OFF = "read off a figure; no reading of the text gives it"


def edl(theta: float) -> str:
    """Spec of EDL as published: voltage grid, Algorithm 5 at time 0, no Algorithm 3.

    Theta 0 is no DVFS.
    """
    first = "dvfs=off" if theta == OFF else f"theta={theta:g},grid={GRID}"
    return f"edl:{first},start=stream"


def outcomes(settings: Settings, spec: str, utilisation: float, per_server: int) -> list[Outcome]:
    """One outcome per set."""
    return [
        outcome(Case("offline", seed, utilisation, per_server), spec) for seed in settings.seeds
    ]


def fig5(settings: Settings) -> list[Row]:
    """Run energy without and with DVFS at l = 1, and the saving."""
    rows, saving = [], []
    for u in _loads(settings):
        for name, theta in (("without DVFS", OFF), ("with DVFS", 1.0)):
            mine = [one.run_j / MW_MIN for one in outcomes(settings, edl(theta), u, 1)]
            value = OFFLINE[u, 16, theta][0]
            quantity = f"run energy {name}, U={u:g}"
            rows.append(compared(settings, (PAPER, "fig5"), quantity, value, mine, UNIT))
        pair = zip(
            outcomes(settings, edl(1.0), u, 1), outcomes(settings, edl(OFF), u, 1), strict=True
        )
        saving += [100.0 * (1.0 - on.run_j / off.run_j) for on, off in pair]
    why = "33.78 % is the unconstrained optimum of these tasks; deadlines cost 0.01 %, not 3 %"
    rows.append(
        compared(settings, (PAPER, "fig5"), "run energy saved", published.OFFLINE_SAVING, saving,
                 "%", why)
    )  # fmt: skip
    return rows


def fig6(settings: Settings) -> list[Row]:
    """Idle energy without DVFS, percent of the baseline."""
    rows = []
    for u in _extremes(settings):
        for size in _sizes(settings):
            run, idle, _ = OFFLINE[u, size, OFF]
            mine = [100.0 * o.idle_j / o.run_j for o in outcomes(settings, edl(OFF), u, size)]
            quantity = f"idle energy of EDL, U={u:g}, l={size}"
            value = 100.0 * idle / run
            rows.append(compared(settings, (PAPER, "fig6"), quantity, value, mine, "% of run"))
    mine = [
        100.0 * o.idle_j / o.run_j
        for o in outcomes(settings, "lpt-ff:dvfs=off,start=stream", 0.2, 16)
    ]
    why = "LPT-FF idles less than EDL here without Algorithm 3, the reverse of the text"
    quantity = "idle energy of LPT-FF, U=0.2, l=16"
    value = published.LPT_IDLE
    return [*rows, compared(settings, (PAPER, "fig6"), quantity, value, mine, "% of run", why)]


def fig7(settings: Settings) -> list[Row]:
    """Servers at l = 1."""
    rows = []
    for name, value in published.SERVERS_L1.items():
        mine = [float(o.servers) for o in outcomes(settings, _streamed(name), 1.6, 1)]
        quantity = f"servers of {name} with DVFS, U=1.6"
        rows.append(compared(settings, (PAPER, "fig7"), quantity, value, mine, "servers", READ_OFF))
    for u in _extremes(settings):
        mine = [float(o.servers) for o in outcomes(settings, edl(OFF), u, 1)]
        value = OFFLINE[u, 1, OFF][2]
        quantity = f"servers of edl without DVFS, U={u:g}"
        rows.append(compared(settings, (PAPER, "fig7"), quantity, value, mine, "servers"))
    return rows


def fig8(settings: Settings) -> list[Row]:
    """Saving against the baseline (no DVFS, l = 1) at U = 1.6, without and with Algorithm 3."""
    rows = []
    for size in _sizes(settings):
        run, idle, servers = OFFLINE[1.6, size, 1.0]
        total = run + idle + servers * 90e-6
        base = OFFLINE[1.6, 16, OFF][0]
        rows.append(_saving_row(settings, "edl", size, 100.0 * (1.0 - total / base), edl(1.0), ""))
    for name, value in published.SAVING_L16.items():
        rows.append(_saving_row(settings, name, 16, value, _streamed(name), READ_OFF))
    run, idle, servers = OFFLINE[1.6, 16, 1.0]
    value = 100.0 * (1.0 - (run + idle + servers * 90e-6) / OFFLINE[1.6, 16, OFF][0])
    rows.append(_saving_row(settings, "edl with Algorithm 3", 16, value, "edl", NO_ALGORITHM_3))
    for name, value in published.SAVING_L16.items():
        rows.append(
            _saving_row(settings, f"{name} with Algorithm 3", 16, value, name, NO_ALGORITHM_3)
        )
    return rows


def fig9(settings: Settings) -> list[Row]:
    """Readjustment: idle energy, servers and run energy by theta at U = 1.6."""
    rows = []
    for size in _sizes(settings):
        for theta in (1.0, 0.9, 0.7, 0.5):
            run, idle, servers = OFFLINE[1.6, size, theta]
            found = outcomes(settings, edl(theta), 1.6, size)
            where = f"l={size}, theta={theta:g}"
            for name, value, mine, unit in (
                ("run energy", run, [o.run_j / MW_MIN for o in found], UNIT),
                ("idle energy", idle, [o.idle_j / MW_MIN for o in found], UNIT),
                ("servers", servers, [float(o.servers) for o in found], "servers"),
            ):
                why = LATE if theta < 1.0 else ""
                quantity = f"{name}, {where}"
                rows.append(compared(settings, (PAPER, "fig9"), quantity, value, mine, unit, why))
    return rows


def _saving_row(settings: Settings, name: str, size: int, value: float, spec: str, why: str) -> Row:
    base = outcomes(settings, edl(OFF), 1.6, 1)
    found = outcomes(settings, spec, 1.6, size)
    mine = [100.0 * (1.0 - o.total_j / b.run_j) for o, b in zip(found, base, strict=True)]
    return compared(settings, (PAPER, "fig8"), f"saving of {name}, l={size}", value, mine, "%", why)


def _streamed(name: str) -> str:
    return f"{name}:grid={GRID},start=stream"


def _loads(settings: Settings) -> tuple[float, ...]:
    return (1.6,) if settings.quick else (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)


def _extremes(settings: Settings) -> tuple[float, ...]:
    return (0.2,) if settings.quick else (0.2, 1.6)


def _sizes(settings: Settings) -> tuple[int, ...]:
    return (16,) if settings.quick else SIZES


ITEMS = (
    Item("fig5", "Offline: run energy without and with DVFS", fig5),
    Item("fig6", "Offline: idle energy without DVFS", fig6),
    Item("fig7", "Offline: servers at one pair each", fig7),
    Item("fig8", "Offline: savings of the algorithms, with and without Algorithm 3", fig8),
    Item("fig9", "Offline: theta-readjustment", fig9),
)
