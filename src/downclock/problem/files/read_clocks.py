"""Read the clocks of a kind of processor from its table in a cluster file.

They are given one of four ways, or not at all where the library knows them (``core_mhz`` of a
kind there):

- ``interval``: one of the papers (wide, narrow, narrow-2017).
- Ranges of ratios to the default clock: ``core = [0.5, 1.2]``, ``memory``, ``volt``. Without
  ``volt`` the voltage is what the law says at each core clock.
- Enumerated clocks: ``core_mhz`` and ``memory_mhz`` (every combination), or
  ``clock_pairs = [[memory, core], ...]``; ratios refer to ``default_core_mhz`` and
  ``default_memory_mhz``.
- Power limits: ``power_limit_w``; ratios refer to ``default_power_limit_w``.

``law`` says which voltage a core clock needs: mei, proportional, fixed, or ``[a0, a1, a2]`` of
V = a0 + a1 f + a2 f². A kind that states no law or default clocks takes those its profiles in the
library refer to. Where neither says the law although the power of an application depends on the
voltage, the file is refused: a guess would be wrong by tens of watts.
"""

from __future__ import annotations

import numpy as np

from downclock.document import Fields
from downclock.power.archetypes import CARDS
from downclock.power.library import Basis, Library
from downclock.power.library_file import law_of
from downclock.power.points import (
    CORE,
    FIXED_VOLTAGE,
    INTERVALS,
    LAWS,
    ClockRange,
    Clocks,
    ClockTable,
    PowerLimits,
    VoltageLaw,
    clock_pairs,
)
from downclock.units import TOLERANCE, Floats

_RANGES = ("core", "memory", "volt", "law")
_TABLE = ("core_mhz", "memory_mhz", "clock_pairs", "default_core_mhz", "default_memory_mhz")
_LIMITS = ("power_limit_w", "default_power_limit_w")
CLOCK_KEYS = ("interval", *_RANGES, *_TABLE, *_LIMITS)
"""Keys of a kind that are about its clocks."""


def clocks_of(fields: Fields, library: Library) -> Clocks:
    """Return a kind's clocks; what the table leaves open comes from the library."""
    kind = fields.text("name")
    basis = library.basis_of(kind)
    way = _way(fields, basis)
    if way == "interval":
        interval = fields.choice("interval", tuple(INTERVALS))
        if "law" in fields:
            raise fields.complaint("belongs to the interval and cannot be given with it", "law")
        if basis.law not in (None, INTERVALS[interval].law):
            rule = "has another voltage law than the library's profiles of this kind"
            raise fields.complaint(rule, "interval")
        return INTERVALS[interval]
    if way == "power_limit_w":
        return _limits(fields, basis)
    law = law_of(fields) if "law" in fields else basis.law
    clocks = _range(fields, law) if way == "core" else _table(fields, law, basis)
    if law is None and library.needs_voltage(kind) and _varies(clocks):
        rule = (
            "needs a voltage law: its applications draw power by voltage, and neither the kind"
            f' nor the library says which they were fitted with; add law = "mei" ({_choices()})'
        )
        raise fields.whole_complaint(rule)
    return clocks


def _way(fields: Fields, basis: Basis) -> str:
    """Return how the clocks are given: one way, that of the profiles."""
    ways = {
        "interval": ("interval",),
        "core": _RANGES,
        "core_mhz": _TABLE,
        "power_limit_w": _LIMITS,
    }
    given = [way for way, keys in ways.items() if any(k in fields for k in keys if k != "law")]
    known = [way for way in ("core_mhz", "power_limit_w") if getattr(basis, way)]
    if len(given) > 1 or not (given or known):
        cards = ", ".join(CARDS)
        rule = (
            "needs its clocks, given one way: interval, or core (ratios), or core_mhz as"
            " `nvidia-smi -q -d SUPPORTED_CLOCKS` prints them, or power_limit_w; they are known of"
            f" the cards {cards} (card = ...)"
        )
        raise fields.whole_complaint(rule)
    way = given[0] if given else known[0]
    by_limit = basis.default_power_limit_w is not None
    if (way == "power_limit_w") != by_limit and (by_limit or basis.default_core_mhz is not None):
        knob = "power limits" if by_limit else "clocks"
        rule = f"has profiles that were measured at {knob}: give those"
        raise fields.whole_complaint(rule)
    return way


def _limits(fields: Fields, basis: Basis) -> PowerLimits:
    known = basis.power_limit_w and "power_limit_w" not in fields
    limits = np.array(basis.power_limit_w) if known else _list(fields, "power_limit_w")
    default_w = _default(fields, "default_power_limit_w", basis.default_power_limit_w)
    if default_w is None:
        default_w = float(limits.max())
    return PowerLimits(limits, default_w)


def _choices() -> str:
    return f"or {', '.join(name for name in LAWS if name != 'mei')}, [a0, a1, a2]"


def _varies(clocks: Clocks) -> bool:
    """Tell whether a core clock other than the default is allowed: there voltage matters."""
    cores = np.array([clocks.low[CORE], clocks.high[CORE]])
    return bool(np.any(np.abs(cores - 1.0) > TOLERANCE))


def _range(fields: Fields, law: VoltageLaw | None) -> ClockRange:
    core, memory = _ends(fields, "core"), _ends(fields, "memory", 1.0)
    if "volt" in fields and law is None:
        rule = f'needs the law it is for: add law = "mei" ({_choices()})'
        raise fields.complaint(rule, "volt")
    law = FIXED_VOLTAGE if law is None else law
    volt = _ends(fields, "volt") if "volt" in fields else _volts(fields, core, law)
    return ClockRange(*core, *memory, *volt, law)


def _volts(fields: Fields, core: tuple[float, float], law: VoltageLaw) -> tuple[float, float]:
    """Return the least and greatest voltage that the law asks for in a range of core clocks."""
    if law == FIXED_VOLTAGE:
        return 1.0, 1.0
    if not np.isfinite(core[1]):
        raise fields.complaint("must be finite where no volt = [least, greatest] limits it", "core")
    low, high = law.min_volt(np.maximum(core, law.slowest)).tolist()
    return low, high


def _ends(fields: Fields, key: str, *default: float) -> tuple[float, float]:
    """Return [least, greatest] of a key; a single number is both."""
    if not isinstance(fields.raw(key, *default), list):
        value = fields.number(key, *default)
        return value, value
    low, high = fields.numbers(key, length=2)
    if low > high:
        raise fields.complaint("must be [least, greatest]", key)
    return low, high


def _table(fields: Fields, law: VoltageLaw | None, basis: Basis) -> ClockTable:
    """Enumerated clocks: pairs as they are, or every combination of two lists."""
    default_memory = _default(fields, "default_memory_mhz", basis.default_memory_mhz)
    if "clock_pairs" in fields:
        if "core_mhz" in fields or "memory_mhz" in fields:
            raise fields.complaint("cannot be given with core_mhz or memory_mhz", "clock_pairs")
        memory, core = _pairs(fields)
    else:
        known = basis.core_mhz and "core_mhz" not in fields
        cores = np.array(basis.core_mhz) if known else _list(fields, "core_mhz")
        memories = np.array([default_memory or 1.0])
        if "memory_mhz" in fields:
            memories = _list(fields, "memory_mhz")
        elif known and basis.memory_mhz:
            memories = np.array(basis.memory_mhz)
        core, memory = clock_pairs(cores, memories)
    only = np.unique(memory).tolist()
    if default_memory is None:
        default_memory = fields.number("default_memory_mhz", *(only if len(only) == 1 else ()))
    default_core = _default(fields, "default_core_mhz", basis.default_core_mhz)
    if default_core is None:
        default_core = fields.number("default_core_mhz")
    return ClockTable(
        core, memory, default_core, default_memory, FIXED_VOLTAGE if law is None else law
    )


def _default(fields: Fields, key: str, fitted_mhz: float | None) -> float | None:
    """Return the clock of ratio 1: the kind's, which must be that of the library's profiles."""
    mhz: float | None = fields.number(key, fitted_mhz)
    if mhz is not None and fitted_mhz is not None and abs(mhz / fitted_mhz - 1.0) > TOLERANCE:
        unit = "W" if key.endswith("_w") else "MHz"
        rule = f"is not what the library's profiles of this kind refer to, {fitted_mhz:g} {unit}"
        raise fields.complaint(rule, key)
    return mhz


def _pairs(fields: Fields) -> tuple[Floats, ...]:
    pairs = fields.raw("clock_pairs")
    good = isinstance(pairs, list) and all(isinstance(p, list) and len(p) == 2 for p in pairs)
    if not good or not pairs:
        raise fields.complaint("must be a list of [memory MHz, core MHz]", "clock_pairs")
    memory, core = zip(*pairs, strict=True)
    return tuple(np.array([fields.as_float("clock_pairs", x) for x in xs]) for xs in (memory, core))


def _list(fields: Fields, key: str) -> Floats:
    value = fields.raw(key)
    if value == []:
        raise fields.complaint("must name at least one", key)
    return np.array(fields.numbers(key) if isinstance(value, list) else [fields.number(key)])
