"""``downclock show``: describe any file of ours."""

from __future__ import annotations

from pathlib import Path

from downclock.cli import options
from downclock.cli.session import blocks, width
from downclock.errors import InvalidInput


@options.command("show")
@options.problem_files("LIBRARY | CLUSTER | PROBLEM | CLUSTER JOBS | ... SCHEDULE")
@options.result_file
@options.form
def command(session: options.Session, source: options.Source) -> None:
    """Describe a problem, cluster, library or schedule.

    One file: a library, a cluster or a problem (builtin:NAME is a library that comes with
    Downclock). A schedule comes after the files of its problem and is drawn as a chart.

    Examples:
      downclock show library.json
      downclock show cluster.toml jobs.csv
      downclock show cluster.toml jobs.csv schedule.json
    """
    with session.working("reading"):
        page = _page(source)
    session.show(page)


def _page(source: options.Source) -> options.Page:
    from downclock.report.describe import problem_page, schedule_page
    from downclock.report.gantt import BLOCKS, LETTERS

    files = source.files
    if len(files) == 1:
        return _one_file(source, files[0])
    if len(files) == 2 and _kind_of(files[0]) == "cluster":
        return problem_page(source.load())
    problem, schedule = source.load_with_schedule()
    letters = BLOCKS if blocks() else LETTERS
    return schedule_page(problem, schedule, width=width(), letters=letters)


def _one_file(source: options.Source, path: str) -> options.Page:
    from downclock.power.library_file import BUILT_IN_PREFIX, is_built_in, read_library
    from downclock.problem.files.read_cluster import read_cluster
    from downclock.report.describe import cluster_page, library_page, problem_page

    if is_built_in(path):
        return library_page(read_library(path), path.removeprefix(BUILT_IN_PREFIX))
    kind = _kind_of(path)
    if kind == "cluster":
        library = None if source.library is None else read_library(source.library)
        return cluster_page(read_cluster(path, library))
    if kind == "library":
        return library_page(read_library(path), Path(path).stem)
    if kind == "problem":
        return problem_page(source.load())
    rule = f"holds a {kind}: give the files it belongs to before it (see downclock show --help)"
    raise InvalidInput(rule, source=path)


def _kind_of(path: str) -> str:
    """Tell what a file holds: by its suffix, or by what it says of itself."""
    from downclock.document import read_json
    from downclock.files import parsed_json
    from downclock.tabular import parquet_head

    suffix = Path(path).suffix.lower()
    if suffix == ".toml":
        return "cluster"
    head = parquet_head(path) if suffix in (".parquet", ".pq") else None
    if head is None and suffix in (".csv", ".parquet", ".pq", ".txt"):
        return "table of jobs, prices or a schedule"
    data = read_json(path).data if head is None else parsed_json(head, path)
    if isinstance(data, dict) and "kind" in data and "server" in data:
        return "cluster"
    known = ("problem", "library", "schedule", "tasks")
    format_ = data.get("format") if isinstance(data, dict) else None
    for name in known:
        if format_ == f"downclock-{name}/1":
            return name
    rule = f"is none of {', '.join(f'downclock-{name}/1' for name in known)}"
    raise InvalidInput(rule, source=path, field="format", value=format_)
