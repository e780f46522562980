"""The documentation does what it says: its Python runs, its commands run, its samples are real.

``python -m tests.test_docs`` writes the samples anew.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner

from downclock.cli import main
from downclock.cli.app import COMMANDS, app
from downclock.cli.session import Session
from downclock.planners.catalog import CATALOG, Entry
from downclock.power import library_file
from downclock.problem import price
from downclock.problem.files import read_cluster, read_prices, read_tasks
from downclock.report.catalogue import meaning, policy_page
from downclock.schedule import files as schedule_files
from tests.conftest import ROOT

PAGES = ["README.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md")))]
COMMAND_PAGES = ["README.md", "docs/index.md", "docs/tutorial.md", "docs/guides"]
REFERENCE = ROOT / "docs" / "reference" / "cli.md"
POLICIES = ROOT / "docs" / "reference" / "policies.md"
GRAPHS = ROOT / "docs" / "guides" / "task-graphs.md"


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def our_pages() -> list[str]:
    return [page for page in PAGES if page.startswith(tuple(COMMAND_PAGES))]


def commands(page: str) -> Iterator[list[str]]:
    """Commands of a page in order; lines that end in a backslash go on."""
    for block in blocks((ROOT / page).read_text(), "console"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ downclock "):
                yield line.removeprefix("$ downclock ").split()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like a checkout, to write into."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", our_pages())
def test_every_command_on_the_page_runs(page, folder, capsys):
    files = re.findall(
        r"^`(\S+)`:\n\n```(?:csv|toml)\n(.*?)^```$",
        (ROOT / page).read_text(),
        re.MULTILINE | re.DOTALL,
    )
    for name, text in files:
        (folder / name).write_text(text)
    for arguments in commands(page):
        assert main(arguments) == 0, (arguments, capsys.readouterr().err)


@pytest.mark.parametrize("page", our_pages())
def test_every_python_block_on_the_page_runs(page, folder, monkeypatch):
    monkeypatch.setattr("downclock.planners.catalog.CATALOG", dict(CATALOG))
    scope: dict[str, object] = {}
    for block in blocks((ROOT / page).read_text(), "python"):
        exec(compile(block, page, "exec"), scope)


def test_the_readme_needs_at_most_ten_lines_from_files_to_a_verified_bill():
    (block,) = blocks((ROOT / "README.md").read_text(), "python")
    lines = [line for line in block.splitlines() if line.strip()]
    assert len(lines) <= 10
    for name in ("load_problem", "plan(", "verify", "account"):
        assert name in block


def test_the_readmes_sample_is_what_the_demo_prints():
    samples = blocks((ROOT / "README.md").read_text(), "text")
    assert [_timeless(sample) for sample in samples] == [_timeless(page) for page in demo()]


def test_the_samples_of_task_graphs_are_what_the_commands_print(folder):
    page = GRAPHS.read_text()
    for shown, printed in zip(blocks(page, "text"), blocks(with_plans(page), "text"), strict=True):
        assert _timeless(shown) == _timeless(printed)


def test_the_readmes_words_on_money_are_those_of_its_sample():
    """0.68 EUR instead of 1.32, 5 % more energy than by energy, 15 % less CO2."""
    energy, cheap = (table(sample) for sample in blocks((ROOT / "README.md").read_text(), "text"))
    assert cheap["money"][:2] == pytest.approx([0.68, 1.32], abs=0.0051)
    assert cheap["money"][0] / cheap["money"][1] == pytest.approx(0.5, abs=0.03)
    assert cheap["total energy"][0] / energy["total energy"][0] == pytest.approx(1.05, abs=0.005)
    assert cheap["CO2"][0] / energy["CO2"][0] == pytest.approx(0.85, abs=0.006)


def test_the_readmes_picture_shows_the_plan_and_the_numbers_of_its_sample():
    """`python -m benchmarks.readme_picture` draws it; a picture of another plan is no help."""
    sample = blocks((ROOT / "README.md").read_text(), "text")[0]
    picture = (ROOT / "docs" / "images" / "example-day.svg").read_text()
    rows = dict(re.findall(r"^ (\S.*?) {2,}(.*)$", sample, re.MULTILINE))
    for name in ("total energy", "saved by the plan", "lower bound"):
        for number in re.split(r" {2,}", rows[name].strip()):
            assert number in picture, (name, number)
    assert "the plan of known" in picture
    for page in ("README.md", "docs/index.md"):
        (words,) = re.findall(
            r"!\[([^]]*)\]\(\S*images/example-day\.svg\)", (ROOT / page).read_text()
        )
        assert "planned by known" in words, page


def test_the_reference_shows_the_help_of_every_command():
    assert REFERENCE.read_text() == with_help(REFERENCE.read_text())


def test_the_reference_explains_every_parameter_of_the_catalogue():
    assert POLICIES.read_text() == with_policies(POLICIES.read_text())
    for name, entry in CATALOG.items():
        for parameter in entry.defaults:
            assert meaning(name, parameter), f"{name}: {parameter}"


def test_the_reference_of_files_names_every_key_and_column():
    text = (ROOT / "docs" / "reference" / "files.md").read_text()
    words = {word.strip("[]") for word in re.findall(r"`([^`\n]+)`", text)}
    keys = {
        *(key for key in read_cluster.CLUSTER_KEYS if key != "prices"),
        *(*read_cluster.KIND_KEYS, *read_cluster.SERVER_KEYS, *price.CURVES),
        *(*read_tasks.COLUMNS, *read_prices.TIME_COLUMNS, *schedule_files.COLUMNS),
        *(*library_file.BASIS, *library_file.POINT, *sum(library_file.PARAMETERS.values(), ())),
    }
    assert keys - words == set()


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page):
    here = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (here / target).exists(), f"{page}: {target}"


def table(sample: str) -> dict[str, list[float]]:
    """The numbers of each row of a sample; megajoules, money, kilograms."""
    rows = re.findall(r"^ (\S.*?) {2,}(.*)$", sample, re.MULTILINE)
    return {
        name: [float(n) for n in re.findall(r"([\d.]+) (?:MJ|EUR|kg)", row)] for name, row in rows
    }


def demo() -> list[str]:
    """What `make demo` prints where nothing was compiled: the plan by energy, that by price."""
    plain = mock.patch("downclock.kernels.compiling.available", return_value=False)
    with tempfile.TemporaryDirectory() as folder, plain:
        first, second = _output(["demo", folder]).split("jobs: ")[1:]
    return [f"jobs: {first}", f"jobs: {second}"]


def with_help(page: str) -> str:
    """Return the reference page with the help of every command as it is now."""
    for name in ("", *COMMANDS):
        text = _output([name, "--help"] if name else ["--help"])
        start = f"<!-- help {name or 'downclock'} -->\n"
        pattern = re.escape(start) + r"```text\n.*?^```$"
        page, replaced = re.subn(
            pattern, lambda _, s=start, t=text: f"{s}```text\n{t}```", page, flags=re.M | re.S
        )
        assert replaced == 1, f"no place for the help of {name}"
    return page


def with_plans(page: str) -> str:
    """Return a guide with what each of its commands prints now, where it shows a sample."""
    pattern = r"^```console\n\$ downclock ([^`]*?)```\n\n```text\n(.*?)^```$"

    def printed(match: re.Match[str]) -> str:
        text = _output(match[1].replace("\\\n", " ").split())
        return match[0].removesuffix(match[2] + "```") + text + "```"

    return re.sub(pattern, printed, page, flags=re.M | re.S)


def with_policies(page: str) -> str:
    """Return the page of policies with the catalogue as it is now."""
    head, _, _ = page.partition("<!-- catalogue -->")
    return head + "<!-- catalogue -->\n" + "\n".join(map(_policy, CATALOG.values())) + "\n"


def _policy(entry: Entry) -> str:
    rows = "".join(
        f"| `{row['parameter']}` | `{row['default']}` | {row['meaning']} |\n"
        for row in policy_page(entry.name).records
    )
    table = f"| Parameter | Default | Meaning |\n|---|---|---|\n{rows}"
    return (
        f"\n## {entry.name}\n\n{entry.summary}.\n\n{table if rows else 'No parameters.'}".rstrip()
    )


def _output(arguments: list[str]) -> str:
    runner = CliRunner(env={"COLUMNS": "100"})
    ran = runner.invoke(app, arguments, prog_name="downclock", obj=Session())
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def _timeless(text: str) -> str:
    """The text without the time that planning took, and without the line ends it moves."""
    first, _, rest = text.partition("\n\n")
    return re.sub(r" in [\d.e-]+ s;", " in _ s;", first.replace("\n", " ")) + "\n\n" + rest


def write_samples() -> None:
    """Bring the samples in README and reference up to date."""
    readme = ROOT / "README.md"
    pattern = re.compile(r"^```text\n.*?^```$", re.M | re.S)
    pages = iter(demo())
    readme.write_text(pattern.sub(lambda _: f"```text\n{next(pages)}```", readme.read_text()))
    REFERENCE.write_text(with_help(REFERENCE.read_text()))
    POLICIES.write_text(with_policies(POLICIES.read_text()))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copytree(ROOT / "examples", "examples")
        GRAPHS.write_text(with_plans(GRAPHS.read_text()))


if __name__ == "__main__":
    sys.exit(write_samples())
