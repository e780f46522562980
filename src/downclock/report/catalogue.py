"""The catalogue of policies as pages to read: a list of all, or one with its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from downclock.errors import InvalidInput, suggestion
from downclock.planners.catalog import CATALOG
from downclock.planners.default import DEFAULT
from downclock.report.tables import Page, Table

MEANING: Mapping[str, str] = {
    "rho": "seconds (0 or more) that an idle server stays awake before it sleeps; break-even: until"
    " idling has cost as much as waking would; never: it stays awake",
    "theta": "least part of its best run time that a task may be hurried to so that it fits on a"
    " processor that is awake (mei2021 Def. 2), above 0 and at most 1; 1: none is hurried",
    "dvfs": "on: each task at its clock of least energy; off: default clocks",
    "start": "what happens at time 0; batch: deadline-bound tasks first, each on a processor of its"
    " own (mei2021 Algorithm 2); stream: like any other time (Algorithm 5)",
    "group": "on: the processors used at time 0 are put into servers by the length of their work"
    " (mei2021 Algorithm 3); off: in order",
    "grid": "voltage step of a search over clocks (a ratio to the default voltage), as in mei2021's"
    " public code; 0: the exact optimum",
    "slack": "off: a grid length whose deadline binds is stretched to it; on: it ends when it ends"
    " (mei2021's published numbers); without a grid, nothing",
    "slot": "seconds; tasks start at multiples of it; 0: any time",
    "by": "what makes a processor full; end: when its last task ends; load: the part of its time"
    " that its tasks take; peak: the greatest, over its tasks, of work so far over deadline",
    "effort": "seconds of search, for a batch or spread over all events where tasks come later;"
    " counted in moves so that results repeat; 0: none beyond small problems",
    "scheme": "clock levels of the processors; static: those found at time 0 stay; dynamic: they"
    " follow arrivals and early completions",
    "rules": "reading of the paper's rules; safe: no job is late; safe-locked: the same where a"
    " clock cannot change while a job runs",
    "thr": "difference of loads (0 or more; 1 is a full processor) above which Load-Balancing"
    " moves jobs",
    "until": "what the energy is counted to; horizon: servers stay on for a fixed time; makespan:"
    " until the last job is done",
    "reserve": "part of the time to each deadline that plans leave free where they can, at least 0"
    " and below 1",
    "rule": "search: look for the best order; lpt, hlf, heft: one list schedule (longest task,"
    " highest level, earliest finish first)",
    "clocks": "optimal: clocks of least energy; single: one clock, unaware of static power;"
    " single-aware: one clock, aware of it (gerards section 6)",
    "seed": "whole number; the same seed gives the same plan",
    "objective": "what is to be least: cost, carbon, energy, or a sum such as 0.7cost+0.3carbon (of"
    " currency, kilograms, kilowatt hours)",
    "rounds": "most orders to try; where seconds do not end the search first, the plan depends on"
    " the seed only",
    "seconds": "most seconds of search",
}
"""What a parameter means, in which unit and which values, by its name."""

_OVERRUN = (
    "0 or more; accepted tasks are on time while no task needs more than 1 + reserve of its"
    " estimate and nothing fails; clocks are chosen for that, and what is not needed is given back"
    " when a task ends"
)

OWN_MEANING: Mapping[tuple[str, str], str] = {
    ("late", "reserve"): _OVERRUN,
    ("prompt", "reserve"): _OVERRUN,
    ("bin", "start"): "what a processor must have room for at time 0; end-time: the task ends in"
    " time; load: the load stays at most 1 (mei2021 Algorithm 6, line 6); peak: as end-time, but on"
    " the processor of least peak load (its public code); peak-prior: the same after tasks whose"
    " deadline binds, each on a processor of its own (that code online)",
    ("thrifty", "dvfs"): "on: clocks are chosen with time and place; off: default clocks, and only"
    " time and place are chosen",
    (
        "known",
        "effort",
    ): "about seconds of search, less for few tasks; counted in places tried so that"
    " results repeat; 0: jobs are placed one by one",
    ("graph", "effort"): "how long to search, as a factor; 1 is well below a second for 50 tasks",
}
"""Where a policy means something else by a name: (policy, parameter)."""


def meaning(policy: str, parameter: str) -> str:
    """Say what a parameter of a policy means."""
    return OWN_MEANING.get((policy, parameter), MEANING.get(parameter, ""))


def policies_page() -> Page:
    """The catalogue."""
    records = []
    for entry in CATALOG.values():
        defaults = ",".join(f"{key}={_value(value)}" for key, value in entry.defaults.items())
        records.append({"policy": entry.name, "summary": entry.summary, "parameters": defaults})
    rows = tuple(tuple(record.values()) for record in records)
    notes = (
        "Without one, plan tries all that apply and searches on from the best (known); simulate,"
        f" where jobs become known as they arrive, takes {DEFAULT}, or what can plan the problem.",
        "A spec is a name with parameters, such as edl:theta=0.9,rho=120.",
        "downclock policies NAME says what the parameters mean.",
    )
    return Page(
        (f"{len(rows)} policies",),
        (Table(("policy", "what it does", "parameters and defaults"), rows, text=(0, 1, 2)),),
        notes,
        {"default": {"plan": "known", "simulate": DEFAULT}, "policies": records},
        records,
    )


def policy_page(name: str) -> Page:
    """One policy: what it does, and the meaning, unit and default of each parameter."""
    if name not in CATALOG:
        rule = f"is not a policy{suggestion(name, list(CATALOG))}"
        raise InvalidInput(rule, field="policy", value=name)
    entry = CATALOG[name]
    records = [
        {"parameter": key, "default": _value(value), "meaning": meaning(name, key)}
        for key, value in entry.defaults.items()
    ]
    rows = tuple(tuple(record.values()) for record in records)
    table = Table(("parameter", "default", "meaning"), rows, text=(0, 1, 2))
    return Page(
        (f"{name}: {entry.summary}",),
        (table,) if rows else (),
        () if rows else ("It has no parameters.",),
        {"policy": name, "summary": entry.summary, "parameters": records},
        records,
        ("parameter", "default", "meaning"),
    )


def _value(default: Any) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    return f"{default:g}" if isinstance(default, float) else f"{default}"
