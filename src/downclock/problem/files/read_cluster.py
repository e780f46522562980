"""Read a cluster: a TOML file of processor kinds, servers and what belongs to them.

    applications = "builtin:gtx1080ti"      # or a library file, relative to this one, or a list
    reference = "gtx1080ti"                 # optional: the kind that jobs' run times are of
    archetype = "mixed"                     # optional: what jobs without an application are like
    epoch = 2024-06-10T00:00:00+02:00       # optional: the instant times count from
    timezone = "Europe/Berlin"              # optional: of times without an offset
    slot_s = 3600.0                         # optional: starts and ends fall on slots

    [[kind]]
    name = "gtx1080ti"
    card = "gtx1080ti"                      # optional: whose profiles and clocks it has
    speed = 1.0                             # optional: beside the reference kind, of such jobs
    power_w = 200.0                         # optional: busy at default clocks, of such jobs
    idle_w = 37.0
    interrupt = "none"                      # or pause, preempt, migrate
    clock = "free"                          # or locked
    interval = "wide"                       # clocks: see below

    [[server]]
    name = "gpu"
    count = 8
    processors = [{ kind = "gtx1080ti", count = 4 }]
    wake_j = 90.0

    [prices.default]
    price = "prices.csv"
    carbon_g_per_kwh = 380.0

Limits of the site are optional too:

    power_cap_w = 12000.0                   # of all servers together, at any time
    zone_power_cap_w = { north = 4000.0 }   # of the servers of a zone

    [[down]]                                # maintenance, or somebody else's reservation
    server = "gpu3"                         # a server, or the name of all that an entry describes
    from = 2024-06-10T18:00:00              # or from_s = 64800.0, in seconds after the epoch
    to = 2024-06-10T22:00:00                # or to_s

How the clocks of a kind are given is the text of `downclock.problem.files.read_clocks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from pathlib import Path

from downclock.document import Document, Fields, read_json, read_toml
from downclock.errors import InvalidInput, suggestion
from downclock.power.archetypes import CARDS, CLASSES, card_basis
from downclock.power.library import Library, merged
from downclock.power.library_file import is_built_in, read_library
from downclock.problem.calendar import epoch_of, zone_of
from downclock.problem.files.columns import known_suffix
from downclock.problem.files.read_clocks import CLOCK_KEYS, clocks_of
from downclock.problem.files.site import Site, SiteKind, refuse_odd
from downclock.problem.limits import Limits
from downclock.problem.platform import SERVER_QUANTITIES, Kind, Platform, ServerSpec
from downclock.problem.price import CURVES

MOST_PROCESSORS = 10_000_000
"""More of them in one entry are taken for a mistake: they would not fit in memory."""

KIND_KEYS = ("name", "card", "speed", "power_w", "idle_w", "interrupt", "clock", *CLOCK_KEYS)
SERVER_KEYS = (
    *("name", "count", "zone", "processors", "chip_wide", "initially"),
    *SERVER_QUANTITIES,
)
DOWN_KEYS = ("server", "from", "to", "from_s", "to_s")
PLATFORM_KEYS = ("slot_s", "kind", "server", "power_cap_w", "zone_power_cap_w", "down")
CLUSTER_KEYS = (
    *PLATFORM_KEYS,
    *("name", "applications", "reference", "archetype", "epoch", "timezone", "prices"),
)

CURVE_NUMBERS = {
    "price_per_kwh": "price",
    "carbon_g_per_kwh": "carbon",
    "price_per_kwh_forecast": "price_forecast",
    "carbon_g_per_kwh_forecast": "carbon_forecast",
}
"""Keys of a zone's prices that hold a constant, and the curve it is."""


@dataclass(frozen=True, slots=True)
class PriceSources:
    """Where a cluster's prices come from; they are read when the epoch is known.

    Attributes:
        file: one CSV for all zones, or None.
        zones: per zone, the file or the constant of each curve.
        currency: what prices are in, or None for what the files say.
    """

    file: Path | None = None
    zones: Mapping[str, Mapping[str, Path | float]] = field(default_factory=dict)
    currency: str | None = None

    def __bool__(self) -> bool:
        return self.file is not None or bool(self.zones)


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """What a cluster file holds, and the file itself.

    The platform's kinds took from ``library`` what they do not say themselves; `cluster_of` gives
    them with another library. ``site`` is what turns run times of jobs into work.
    """

    platform: Platform
    library: Library
    site: Site
    prices: PriceSources
    epoch: datetime | None
    timezone: tzinfo | None
    name: str
    document: Document


def read_cluster(path: str | Path, library: Library | None = None) -> Cluster:
    """Read a cluster from TOML, or from JSON of the same structure.

    Args:
        path: ``.toml`` or ``.json``.
        library: applications to use instead of those the file names.

    Raises:
        InvalidInput: with file, line, object, key, value and rule.
    """
    suffix = known_suffix(path, (".toml", ".json"))
    return cluster_of(read_toml(path) if suffix == ".toml" else read_json(path), library)


def cluster_of(document: Document, library: Library | None = None) -> Cluster:
    """Make a cluster of what such a file holds; see `read_cluster`."""
    path = document.source
    top = document.fields(None, CLUSTER_KEYS)
    with top.blamed():
        zone = zone_of(top.text("timezone")) if "timezone" in top else None
        epoch = epoch_of(_stamp(top, "epoch"), zone) if "epoch" in top else None
    library = _for_kinds(top, _library(top, Path(path).parent) if library is None else library)
    platform = platform_of(top, library, epoch, zone)
    site, prices = _site(top, platform), _prices(top, platform, Path(path).parent)
    name = top.text("name", Path(path).stem)
    return Cluster(platform, library, site, prices, epoch, zone, name, document)


def platform_of(
    top: Fields, library: Library, epoch: datetime | None = None, zone: tzinfo | None = None
) -> Platform:
    """Read the platform from the keys of a table that are in `PLATFORM_KEYS`.

    Kinds take the voltage law and default clocks that they do not state from ``library``. Stamps
    of downtimes count from ``epoch``; those without an offset are local time of ``zone``.
    """
    kinds = tuple(_kind(fields, library) for fields in top.tables("kind", KIND_KEYS))
    specs = tuple(_server(fields) for fields in top.tables("server", SERVER_KEYS))
    with top.blamed():
        try:
            platform = Platform.build(kinds, specs, top.number("slot_s", None))
        except InvalidInput as error:
            raise _by_name(error, top) from None
    return replace(platform, limits=_limits(top, platform, epoch, zone))


def _limits(top: Fields, platform: Platform, epoch: datetime | None, zone: tzinfo | None) -> Limits:
    """Read power caps and downtimes."""
    caps = top.table("zone_power_cap_w", "zone_power_cap_w", platform.zones)
    zone_cap_w = [(name, caps.number(name)) for name in platform.zones if name in caps]
    tables = top.tables("down", DOWN_KEYS, "down") if "down" in top else []
    down = []
    for fields in tables:
        from_s, to_s = (_moment_s(fields, key, epoch, zone) for key in ("from", "to"))
        if from_s < to_s:  # what was before time 0 is over
            from_s, to_s = max(from_s, 0.0), max(to_s, 0.0)
        servers = _servers_called(fields, platform)
        if from_s == to_s == 0.0:
            continue
        with fields.blamed():
            Limits.of(down=[(0, from_s, to_s)])
        down += [(server, from_s, to_s) for server in servers]
    with top.blamed():
        return Limits.of(top.number("power_cap_w", None), zone_cap_w, down)


def _servers_called(fields: Fields, platform: Platform) -> list[int]:
    """Servers of a name: one, or all that an entry of the file describes."""
    name, names = fields.text("server"), list(platform.server_name)
    if name in names:
        return [names.index(name)]
    first = 0
    for spec in platform.specs:
        if spec.name == name:
            return list(range(first, first + spec.count))
        first += spec.count
    known = list(dict.fromkeys([*names, *(spec.name for spec in platform.specs)]))
    raise fields.complaint(f"is not a server of this cluster{suggestion(name, known)}", "server")


def _moment_s(fields: Fields, key: str, epoch: datetime | None, zone: tzinfo | None) -> float:
    """Read a time in seconds after the epoch, or as a stamp."""
    if f"{key}_s" in fields:
        seconds: float = fields.number(f"{key}_s")
        return seconds
    stamp = _stamp(fields, key)
    if epoch is None:
        rule = f"needs an 'epoch' in this file; '{key}_s' counts seconds without one"
        raise fields.complaint(rule, key)
    try:
        return (epoch_of(stamp, zone or epoch.tzinfo) - epoch).total_seconds()
    except InvalidInput as error:
        raise fields.complaint(error.rule, key) from None


def _by_name(error: InvalidInput, top: Fields) -> InvalidInput:
    """Return a complaint about a kind or server with its line."""
    for key, known in (("kind", KIND_KEYS), ("server", SERVER_KEYS)):
        for fields in reversed(top.tables(key, known)):
            line = top.document.find_line(fields.place) if error.item == fields.item else None
            if line is not None:
                return error.located(top.document.source, line)
    return error


def _stamp(fields: Fields, key: str) -> str | datetime:
    stamp = fields.raw(key)
    if not isinstance(stamp, str | datetime):
        raise fields.complaint("must be a date and time", key)
    return stamp


def _library(top: Fields, folder: Path) -> Library:
    """Read the library or libraries that the file names."""
    named = top.raw("applications", [])
    names = [named] if isinstance(named, str) else named
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise top.complaint("must be a library or a list of them", "applications")
    libraries = [Library.empty()]
    for name in names:
        if not is_built_in(name):
            libraries.append(read_library(folder / name))
            continue
        try:
            libraries.append(read_library(name))
        except InvalidInput as error:
            raise top.complaint(error.rule, "applications", name) from None
    with top.blamed():
        return merged(libraries[1:] or libraries)


def _for_kinds(top: Fields, library: Library) -> Library:
    """Give each kind the profiles of its card, or at least what is known of its clocks."""
    for fields in top.tables("kind", KIND_KEYS):
        kind = fields.text("name")
        card = fields.text("card", kind)
        if kind not in library.kinds and card in library.kinds:
            library = library.called(kind, card)
        elif kind not in library.kinds and kind not in library.basis and card in CARDS:
            library = replace(library, basis={**library.basis, kind: card_basis(card)})
        elif "card" in fields and card not in (*library.kinds, *CARDS):
            known = list(dict.fromkeys([*library.kinds, *CARDS]))
            rule = (
                "is neither a kind of the library nor a card with public measurements: measure some"
                " jobs there (downclock fit), or plan with the archetypes of another card:"
                f" one of {', '.join(known)}"
            )
            raise fields.complaint(rule, "card")
    return library


def _site(top: Fields, platform: Platform) -> Site:
    """Read what turns a run time into work: reference, archetype, and each kind's card."""
    tables = top.tables("kind", KIND_KEYS)
    kinds = []
    for fields, kind in zip(tables, platform.kinds, strict=True):
        numbers = {key: fields.number(key, None) for key in ("speed", "power_w")}
        for key, value in numbers.items():
            if value is not None:
                with fields.blamed():
                    refuse_odd(key, value)
        card, tells_idle = fields.text("card", kind.name), "idle_w" in fields
        kinds.append(SiteKind(kind, card, **numbers, tells_idle=tells_idle))
    names = tuple(kind.name for kind in platform.kinds)
    reference = top.choice("reference", names, names[0])
    archetype = top.choice("archetype", tuple(CLASSES), "mixed")
    tells_hosts = any("host_w" in fields for fields in top.tables("server", SERVER_KEYS))
    return Site(tuple(kinds), reference, archetype, "reference" not in top, tells_hosts)


def _kind(fields: Fields, library: Library) -> Kind:
    with fields.blamed():
        name, clocks = fields.text("name"), clocks_of(fields, library)
        rules = fields.raw("interrupt", "none"), fields.raw("clock", "free")
        return Kind(name, clocks, fields.number("idle_w", 0.0), *rules)


def _server(fields: Fields) -> ServerSpec:
    entries = fields.tables("processors", ("kind", "count"), f"{fields.item}, processors")
    processors = tuple((entry.text("kind"), entry.integer("count", 1)) for entry in entries)
    count = fields.integer("count", 1)
    if count * sum(each for _, each in processors) > MOST_PROCESSORS:
        raise fields.whole_complaint(f"has more than {MOST_PROCESSORS} processors")
    initially = fields.choice("initially", ("on", "asleep"), "asleep")
    with fields.blamed():
        name, zone = fields.text("name"), fields.text("zone", "default")
        chip_wide, on = fields.flag("chip_wide", False), initially == "on"
        told = {key: fields.number(key, 0.0) for key in SERVER_QUANTITIES}
        return ServerSpec(name, processors, count, zone, chip_wide, initially_on=on, **told)


def _prices(top: Fields, platform: Platform, folder: Path) -> PriceSources:
    if "prices" not in top:
        return PriceSources()
    known = ("file", "currency", *platform.zones)
    fields = top.table("prices", "prices", known)
    zones = {zone: _zone(fields, zone, folder) for zone in platform.zones if zone in fields}
    file = fields.text("file", None)
    if file is not None and zones:
        raise fields.complaint("cannot be given with prices of single zones", "file")
    return PriceSources(
        None if file is None else folder / file, zones, fields.text("currency", None)
    )


def _zone(prices: Fields, zone: str, folder: Path) -> dict[str, Path | float]:
    fields = prices.table(zone, f"prices of zone '{zone}'", (*CURVES, *CURVE_NUMBERS))
    sources: dict[str, Path | float] = {
        key: folder / fields.text(key) for key in CURVES if key in fields
    }
    for key, curve in CURVE_NUMBERS.items():
        if key in fields:
            if curve in sources:
                raise fields.complaint(f"cannot be given with '{curve}'", key)
            sources[curve] = fields.number(key)
    return sources
