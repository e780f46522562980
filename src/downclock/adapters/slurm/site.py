"""The site file: which cluster Slurm runs, which jobs are planned, and what is known of them.

cluster = "cluster.toml"            # kinds, servers and applications, as for downclock plan
nodes = ["gpu[01-08]"]              # optional: Slurm's names of the servers, in their order
policy = "late"                     # any online policy; see downclock policies
log = "/var/lib/downclock-plan/slurm.db"  # what was seen and decided; made by the first run
spool = "/var/spool/downclock"      # energy that was measured; the agent writes it
partitions = ["gpu"]                # optional: jobs of others are not touched
take = "held"                       # held: held jobs with a deadline; tagged: only those whose
                                    # comment has a word such as downclock=plan
deadline = "slurm"                  # --deadline of the job; or a factor: submitted + factor
deadline_factor = 3.0               # x time limit where the job states none
run_factor = 1.0                    # run time at default clocks, as a part of the time limit
stated_runs = true                  # false: a run time that a comment states is not heeded
reserve = 0.1                       # jobs may take so much longer than estimated
overhead_s = 10.0                   # to start and to end a job
grace_s = 120.0                     # a job that Slurm does not start for so long is given back
interval_s = 5.0                    # Slurm is asked so often
sleep = false                       # put nodes to sleep by Slurm's power saving
forgotten = "hold"                  # or cancel, run: a job that completed, and that a controller
                                    # that was killed would run again
identify = "user+name"              # or name, script: what learnt applications are called
learned = "learned.json"            # optional: the library that downclock slurm learn writes

[[application]]                     # the first that fits names the application
job_name = "train-*"
user = "ann"
application = "resnet50"

[types]                             # GPU types of gres.conf where kinds are called otherwise
nvidia_a100 = "a100"
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from downclock.adapters.devices.device import Setting
from downclock.adapters.settings import setting_at
from downclock.adapters.slurm.observed import Job
from downclock.document import Document, Fields, read_toml
from downclock.engine.policy import Policy
from downclock.errors import InvalidInput
from downclock.planners.catalog import CATALOG, policy, with_parameter
from downclock.power.archetypes import CLASSES
from downclock.power.library_file import read_library
from downclock.power.points import PowerLimits
from downclock.problem.files.read_cluster import Cluster, read_cluster
from downclock.quantities import require_quantity
from downclock.tabular import read_csv
from downclock.units import Floats
from downclock.workloads.traces.hosts import hosts_of

_TEXTS = ("cluster", "policy", "log", "spool", "take", "deadline", "identify", "learned",
          "forgotten")  # fmt: skip
_NUMBERS = {"deadline_factor": 3.0, "run_factor": 1.0, "reserve": 0.1, "overhead_s": 10.0,
            "grace_s": 120.0, "interval_s": 5.0}  # fmt: skip
KEYS = (*_TEXTS, *_NUMBERS, "nodes", "partitions", "sleep", "stated_runs", "application", "types")
RULE = ("job_name", "user", "script", "application")


@dataclass(frozen=True, slots=True)
class Rule:
    """Which jobs are of an application: patterns of their name, owner and script's hash."""

    application: str
    job_name: str = "*"
    user: str = "*"
    script: str = "*"

    def fits(self, job: Job, script: str) -> bool:
        """Tell whether a job is meant."""
        pairs = ((job.name, self.job_name), (job.user, self.user), (script, self.script))
        return all(fnmatchcase(text, pattern) for text, pattern in pairs)


@dataclass(frozen=True, slots=True, eq=False)
class SlurmSite:
    """A site file that was read; its fields are its keys.

    Attributes:
        nodes: Slurm's name of each server of the platform.
        kind_of: kind of each GPU type.
        spread: learnt applications, and how much longer than estimated their jobs may take.
        unlearnt: the library that ``learned`` names and that is not there yet; None: it is.
        fingerprint: of everything that decides: plans of another one are not gone on with.
    """

    source: Path
    cluster: Cluster
    policy: str
    log: Path
    spool: Path
    nodes: tuple[str, ...]
    partitions: tuple[str, ...]
    take: str
    deadline: str
    identify: str
    forgotten: str
    rules: tuple[Rule, ...]
    kind_of: Mapping[str, str]
    sleep: bool
    stated_runs: bool
    deadline_factor: float
    run_factor: float
    reserve: float
    overhead_s: float
    grace_s: float
    interval_s: float
    spread: Mapping[str, float] = field(default_factory=dict)
    unlearnt: Path | None = None
    fingerprint: str = ""

    def make_policy(self) -> Policy:
        """The policy, with the site's reserve where it takes one."""
        name = self.policy.partition(":")[0]
        keeps = name in CATALOG and "reserve" in CATALOG[name].defaults
        spec = self.policy
        if keeps and "reserve=" not in spec and self.reserve:
            spec = with_parameter(spec, "reserve", f"{self.reserve:g}")
        made = policy(spec)
        if hasattr(made, "tuned"):
            raise InvalidInput("plans what is known beforehand, and jobs are not", field="policy",
                               value=self.policy, source=self.source)  # fmt: skip
        return made

    @property
    def widening(self) -> float:
        """What estimates are multiplied with where the policy keeps no reserve itself."""
        name = self.policy.partition(":")[0]
        return 1.0 if "reserve" in CATALOG[name].defaults else 1.0 + self.reserve

    @property
    def unreserved(self) -> float:
        """What is left of the reserve, as a factor, where estimates may have it in them."""
        return (1.0 + self.reserve) / self.widening

    def setting(self, kind: int, point: Sequence[float] | Floats) -> Setting:
        """What is set on GPUs of a kind at a point."""
        return setting_at(self.cluster.platform.kinds[kind].clocks, point)


def read_site(path: str | Path) -> SlurmSite:
    """Read a site file.

    Raises:
        InvalidInput: with file, line, key, value and rule.
    """
    document = read_toml(path)
    top, folder = document.fields(None, KEYS), Path(path).parent
    learned = folder / top.text("learned") if "learned" in top else None
    library = None if learned is None or not learned.exists() else read_library(learned)
    cluster = read_cluster(folder / top.text("cluster"), library)
    _require_settable(top, cluster)
    with top.blamed():
        numbers = {key: float(top.number(key, value)) for key, value in _NUMBERS.items()}
        for key, value in numbers.items():
            require_quantity(key, value, positive=key not in ("reserve", "overhead_s"))
    spread = _spread(learned) if library is not None and learned is not None else {}
    site = SlurmSite(
        source=Path(path),
        cluster=cluster,
        policy=top.text("policy", "late"),
        log=folder / top.text("log", "downclock.db"),
        spool=folder / top.text("spool", "spool"),
        nodes=_nodes(top, cluster),
        partitions=tuple(_texts(top, "partitions")),
        take=top.choice("take", ("held", "tagged"), "held"),
        deadline=top.choice("deadline", ("slurm", "factor"), "slurm"),
        identify=top.choice("identify", ("name", "user+name", "script"), "user+name"),
        forgotten=top.choice("forgotten", ("hold", "cancel", "run"), "hold"),
        rules=_rules(top, cluster),
        kind_of=_types(top, cluster),
        sleep=top.flag("sleep", False),
        stated_runs=top.flag("stated_runs", True),
        **numbers,
        spread=spread,
        unlearnt=learned if library is None else None,
        fingerprint=_fingerprint(document, cluster, spread),
    )
    with top.blamed():
        site.make_policy()
    return site


def _require_settable(top: Fields, cluster: Cluster) -> None:
    """Refuse clocks that are only ratios: nobody could set them."""
    for kind in cluster.platform.kinds:
        if not isinstance(kind.clocks, PowerLimits) and kind.clocks.default_mhz is None:
            rule = f"has kind '{kind.name}' whose clocks are ratios: give core_mhz, or a library"
            raise top.complaint(rule, "cluster")


def _nodes(top: Fields, cluster: Cluster) -> tuple[str, ...]:
    servers = [str(name) for name in cluster.platform.server_name]
    if "nodes" not in top:
        return tuple(servers)
    names = [name for text in _texts(top, "nodes") for name in hosts_of(text)]
    if len(names) != len(servers) or len(set(names)) != len(names):
        rule = f"must name each of the cluster's {len(servers)} servers once, in their order"
        raise top.complaint(rule, "nodes")
    return tuple(names)


def _texts(top: Fields, key: str) -> list[str]:
    words = top.raw(key, [])
    if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
        raise top.complaint("must be a list of texts", key)
    return words


def _rules(top: Fields, cluster: Cluster) -> tuple[Rule, ...]:
    if "application" not in top:
        return ()
    known = [*map(str, cluster.library.names), *CLASSES]
    rules = []
    for table in top.tables("application", RULE):
        name = table.text("application")
        if name not in known:
            raise table.complaint("is neither in the library nor an archetype", "application")
        rules.append(Rule(name, **{key: table.text(key, "*") for key in RULE[:-1]}))
    return tuple(rules)


def _types(top: Fields, cluster: Cluster) -> dict[str, str]:
    kinds = {kind.name: kind.name for kind in cluster.platform.kinds}
    listed = top.raw("types", {})
    named = tuple(listed) if isinstance(listed, dict) else ()
    table = top.table("types", "types", named)
    for name in named:
        kinds[name] = table.choice(name, tuple(kind.name for kind in cluster.platform.kinds))
    return kinds


def _spread(learned: Path) -> dict[str, float]:
    """How much longer jobs of learnt applications may take: the file that learn writes beside."""
    file = learned.with_suffix(".csv")
    if not file.exists():
        return {}
    table = read_csv(file)
    table.require(["application", "widen"])
    pairs = zip(table.text("application"), table.floats("widen"), strict=True)
    spread: dict[str, float] = {}
    for name, widen in pairs:  # a row for each kind: nobody knows yet which of them it will be
        spread[str(name)] = max(spread.get(str(name), 1.0), float(widen))
    return spread


def _price_files(cluster: Cluster) -> list[str]:
    """Contents of the files that prices come from; one that is not there is missed later."""
    named = [value for zone in cluster.prices.zones.values() for value in zone.values()]
    files = [file for file in (cluster.prices.file, *named) if isinstance(file, Path)]
    return [file.read_text("utf-8", "replace") for file in files if file.is_file()]


def _fingerprint(document: Document, cluster: Cluster, spread: Mapping[str, float]) -> str:
    from downclock import __version__
    from downclock.power.library_file import library_document

    told = "" if cluster.document is None else repr(cluster.document.data)
    parts = (
        __version__,
        repr(document.data),
        told,
        repr(library_document(cluster.library)),
        repr(spread),
        *_price_files(cluster),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
