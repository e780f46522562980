"""Read a trace of any format we know, found by its columns."""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo
from pathlib import Path

from downclock.errors import InvalidInput
from downclock.workloads.traces.alibaba import NODES, PODS
from downclock.workloads.traces.batsim import BATSIM, batsim_sheet
from downclock.workloads.traces.eagle import EAGLE
from downclock.workloads.traces.helios import HELIOS
from downclock.workloads.traces.json_jobs import JsonText
from downclock.workloads.traces.ledger import Ledger
from downclock.workloads.traces.mapped import read_mapping
from downclock.workloads.traces.philly import CHRONUS, PHILLY
from downclock.workloads.traces.rows import Sheet, csv_sheet, opened, parquet_sheet
from downclock.workloads.traces.sacct import SACCT, SACCT_JSON, sacct_sheet
from downclock.workloads.traces.slurm_records import RECORDS, are_records, records_sheet
from downclock.workloads.traces.swf import SWF, swf_sheet
from downclock.workloads.traces.trace import Format, Trace, collected

TABLES = (PHILLY, CHRONUS, PODS, EAGLE, HELIOS, SACCT)
"""Formats that are tables with a header; the first whose columns are there."""

FORMATS = {each.name: each for each in (*TABLES, SACCT_JSON, RECORDS, SWF, BATSIM)}
"""Every format by name."""


def read_trace(
    path: str | Path,
    *,
    format: str | None = None,
    mapping: str | Path | None = None,
    count: str | None = None,
    zone: tzinfo | None = None,
    strict: bool = False,
) -> Trace:
    """Read a trace.

    Args:
        path: the file; gzip is unpacked.
        format: a name of `FORMATS`; found by suffix and columns when not given.
        mapping: a mapping file (see `downclock.workloads.traces.mapped`) instead of a format.
        count: what counts as a job's processors: gpus, nodes or cpus; the first there is.
        zone: of stamps without an offset; UTC when not given.
        strict: the first malformed row is an error; else such rows are counted and named.

    Raises:
        InvalidInput: no such format, columns that are missing, or no job at all.
    """
    ledger = Ledger(path, strict)
    if mapping is not None:
        known, delimiter, own = read_mapping(mapping)
        sheet = _table(path, ledger, delimiter)
        return collected(sheet, known, ledger, count=count, zone=own or zone)
    sheet, known = _opened(path, ledger, format)
    trace = collected(sheet, known, ledger, count=count, zone=zone)
    return trace if sheet.began is None else _began(trace, sheet.began)


def is_node_list(path: str | Path) -> bool:
    """Tell whether a file is Alibaba's list of nodes, which are no jobs."""
    if _suffix(path) != ".csv":
        return False
    return csv_sheet(path, Ledger(path)).header == NODES


def _opened(path: str | Path, ledger: Ledger, format: str | None) -> tuple[Sheet, Format]:
    """Open a file by its format."""
    suffix = _suffix(path)
    if format == "swf" or (format is None and suffix == ".swf"):
        return swf_sheet(path, ledger), SWF
    if suffix == ".json":
        known = _json_format(path, format)
        return (batsim_sheet if known is BATSIM else sacct_sheet)(path, ledger), known
    sheet = _table(path, ledger)
    if format == RECORDS.name or (format is None and are_records(sheet)):
        return records_sheet(path, ledger), RECORDS
    return sheet, FORMATS[format] if format else _recognised(sheet, path)


def _table(path: str | Path, ledger: Ledger, delimiter: str | None = None) -> Sheet:
    if _suffix(path) in (".parquet", ".pq"):
        return parquet_sheet(path)
    return csv_sheet(path, ledger, delimiter)


def _suffix(path: str | Path) -> str:
    """The suffix in small letters, that of what is packed where it is."""
    name = Path(path).name.lower().removesuffix(".gz")
    return Path(name).suffix


def _recognised(sheet: Sheet, path: str | Path) -> Format:
    header = {name.lower() for name in sheet.header}
    for each in TABLES:
        if header >= {name.lower() for name in each.signature}:
            return each
    shown = ", ".join(sheet.header[:12])
    rule = (
        f"is no trace we know by its columns ({shown}){_nearest(header)}: name its --trace-format"
        f" ({', '.join(FORMATS)}), or say with --map which column is what"
    )
    raise InvalidInput(rule, source=path, line=1)


def _nearest(header: set[str]) -> str:
    """Name the format that lacks one column or two, and these."""
    if len(header) == 1 and "jobid " in min(header):
        return "; sacct parts its columns where it is asked with -P"
    missing = {
        each.name: [name for name in each.signature if name.lower() not in header]
        for each in TABLES
    }
    name = min(missing, key=lambda each: len(missing[each]))
    if len(missing[name]) > min(2, len(FORMATS[name].signature) - 1):
        return ""
    lacking = " and ".join(f"'{each}'" for each in missing[name])
    return f"; {name} would have {lacking} too"


def _json_format(path: str | Path, format: str | None) -> Format:
    """The format of a JSON file: as it is named, or by its members and its first job."""
    if format is not None:
        if FORMATS[format] not in (BATSIM, SACCT_JSON):
            raise InvalidInput(f"is JSON, and {format} is not", source=path)
        return FORMATS[format]
    with opened(path) as (stream, _):
        text = JsonText(stream)
        for name in text.members():
            first = next(text.elements(), None) if name == "jobs" else None
            if name in ("nb_res", "profiles") or (isinstance(first, dict) and "subtime" in first):
                return BATSIM
            if name == "jobs":
                break
    return SACCT_JSON


def _began(trace: Trace, unix_s: float) -> Trace:
    """Give a trace whose times count from a known moment its calendar."""
    times = ("submit_s", "start_s", "end_s", "deadline_s")
    return replace(trace, calendar=True, **{name: getattr(trace, name) + unix_s for name in times})
