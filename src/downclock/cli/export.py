"""``downclock export``: a plan as commands to read first."""

from __future__ import annotations

import click

from downclock.cli import options


@options.command("export")
@options.problem_files("CLUSTER JOBS SCHEDULE | PROBLEM SCHEDULE")
@click.option(
    "--to",
    "target",
    type=click.Choice(["sbatch", "scontrol", "nvidia-smi", "csv"]),
    required=True,
    help="What to write.",
)
@click.option(
    "--script",
    default="{task}.sh",
    show_default=True,
    metavar="NAME",
    help="The file that sbatch runs; {task} is the task's name.",
)
@options.result_file
def command(session: options.Session, source: options.Source, target: str, script: str) -> None:
    """Write a plan as commands, without an agent.

    sbatch submits each job with its node, start and clock; scontrol changes waiting jobs of these
    names; nvidia-smi sets and resets the clocks, by time and server; csv is for your own tools.
    Nothing is run.

    Examples:
      downclock export cluster.toml jobs.csv schedule.json --to sbatch --script jobs/{task}.sh
      downclock export cluster.toml jobs.csv schedule.json --to nvidia-smi -o clocks.sh
    """
    from downclock.adapters.export import exported

    with session.working("reading"):
        text = exported(*source.load_with_schedule(), target, script)
    session.show(text)
