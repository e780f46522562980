"""The catalogue: every policy by name, with the papers' names as entries.

A spec is a name with parameters, such as ``edl`` or ``edl:theta=0.9,rho=120``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from downclock.errors import InvalidInput
from downclock.policies.interface import Policy
from downclock.policies.lengths import LeastEnergy, OneClock
from downclock.policies.listing import ListPolicy
from downclock.policies.static_cap import StaticCap


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the catalogue."""

    name: str
    summary: str
    make: Callable[..., Policy]
    defaults: dict[str, Any]


def _edl(theta: float, rho: float | str, dvfs: bool, start: str) -> Policy:
    """EDL of mei2021: Algorithms 2 and 3 at time 0 (``start=batch``), else 5 throughout."""
    batch = start == "batch"
    return ListPolicy(
        "edl",
        theta=theta,
        patience=_patience(rho),
        lengths=_lengths(dvfs),
        group=batch,
        prior_alone=batch,
    )


def _rival(name: str, **parts: Any) -> Callable[..., Policy]:
    """EDF-BF, EDF-WF and LPT-FF of mei2021 section 5.3."""

    def make(rho: float | str, dvfs: bool, group: bool) -> Policy:
        return ListPolicy(
            name,
            patience=_patience(rho),
            lengths=_lengths(dvfs),
            group=group,
            prior_alone=True,
            **parts,
        )

    return make


def _bin(rho: float | str, dvfs: bool, start: str) -> Policy:
    """Algorithm 6 of mei2021: worst fit at time 0, then first fit."""
    return ListPolicy(
        "bin",
        fit="first",
        first_fit="worst" if start == "end-time" else "lightest",
        patience=_patience(rho),
        lengths=_lengths(dvfs),
        group=False,
    )


def _race(rho: float | str) -> Policy:
    return ListPolicy("race", lengths=OneClock(), patience=_patience(rho))


def _static_cap(rho: float | str) -> Policy:
    return StaticCap(replace(_as_list(_race(rho)), name="static-cap"))


def _as_list(policy: Policy) -> ListPolicy:
    assert isinstance(policy, ListPolicy)
    return policy


def _lengths(dvfs: bool) -> LeastEnergy | OneClock:
    return LeastEnergy() if dvfs else OneClock()


def _patience(rho: float | str) -> Any:
    return rho if isinstance(rho, str) else float(rho)


CATALOG: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("race", "default clocks, earliest deadline, soonest free", _race, {"rho": 0.0}),
        Entry(
            "static-cap", "the best single clock for all, in hindsight", _static_cap, {"rho": 0.0}
        ),
        Entry(
            "edl",
            "EDL theta-readjustment (mei2021, mei2017)",
            _edl,
            {"theta": 1.0, "rho": 0.0, "dvfs": True, "start": "batch"},
        ),
        Entry(
            "edf-bf",
            "earliest deadline, best fit (mei2021)",
            _rival("edf-bf", fit="best"),
            {"rho": 0.0, "dvfs": True, "group": True},
        ),
        Entry(
            "edf-wf",
            "earliest deadline, worst fit (mei2021)",
            _rival("edf-wf", fit="worst"),
            {"rho": 0.0, "dvfs": True, "group": True},
        ),
        Entry(
            "lpt-ff",
            "longest task, first fit (mei2021)",
            _rival("lpt-ff", order="longest", fit="first"),
            {"rho": 0.0, "dvfs": True, "group": True},
        ),
        Entry(
            "bin",
            "bin packing: worst fit at time 0, then first fit (mei2021 Algorithm 6)",
            _bin,
            {"rho": 0.0, "dvfs": True, "start": "end-time"},
        ),
    )
}


def policy(spec: str) -> Policy:
    """Make a policy from its spec."""
    name, _, text = spec.partition(":")
    if name not in CATALOG:
        raise InvalidInput(f"is not a policy ({', '.join(CATALOG)})", field="policy", value=name)
    entry = CATALOG[name]
    given = dict(_parameter(entry, part) for part in text.split(",") if part)
    return entry.make(**{**entry.defaults, **given})


def _parameter(entry: Entry, part: str) -> tuple[str, Any]:
    key, equals, text = part.partition("=")
    if key not in entry.defaults or not equals:
        known = ", ".join(entry.defaults) or "none"
        rule = f"is not a parameter of this policy ({known})"
        raise InvalidInput(rule, item=f"policy '{entry.name}'", field=key, value=text)
    default = entry.defaults[key]
    if isinstance(default, bool):
        if text not in ("on", "off"):
            raise InvalidInput(
                "must be on or off", item=f"policy '{entry.name}'", field=key, value=text
            )
        return key, text == "on"
    try:
        return key, float(text)
    except ValueError:
        return key, text
