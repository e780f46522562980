"""The command ``downclock`` and its subcommands, each loaded when it is asked for."""

from __future__ import annotations

import importlib
from typing import Any

import click

from downclock.errors import suggestion

COMMANDS = {
    "demo": "Plan an example day, by energy and by price, and draw it.",
    "init": "Write a cluster, jobs and prices to start from.",
    "plan": "Plan jobs on a cluster and show what the plan costs.",
    "verify": "Judge a schedule: list every rule it breaks.",
    "account": "Bill a schedule: energy, money, CO2.",
    "fit": "Fit job profiles to measurements.",
    "devices": "Show this machine's GPUs and CPUs and what may be set.",
    "measure": "Run a command at many clocks, for fit.",
    "agent": "Lock, measure and reset the GPUs of a Slurm job.",
    "generate": "Draw a task set of the papers.",
    "convert": "Turn a trace of a cluster, or a task graph, into a problem.",
    "whatif": "Say what a trace would have cost otherwise, on one page.",
    "show": "Describe a problem, cluster, library or schedule.",
    "report": "Write a schedule as one HTML page.",
    "compare": "Compare policies on one problem or many.",
    "simulate": "Simulate a plan: run times vary, jobs and machines fail.",
    "sweep": "Run problems × policies × seeds × parameters, and compare.",
    "explain": "Say why a task has its clock, its processor and its start.",
    "papers": "Run the papers' experiments beside the published numbers.",
    "export": "Write a plan as commands of sbatch, scontrol or nvidia-smi.",
    "slurm": "Let a Slurm carry plans out on its waiting jobs.",
    "policies": "List the policies and their parameters.",
    "compile": "Compile the hot loops now, so that no first plan waits.",
    "completion": "Print the completion script of a shell.",
}
"""Every command and its line in the help; the module of the same name holds it."""

EPILOG = """\b
Example:
  downclock plan cluster.toml jobs.csv --output schedule.json

\b
Exit codes:
  0    fine
  1    the answer is no (verify: invalid; plan: all jobs rejected)
  2    bad input; standard error says which, and the rule
  3    internal error; please report it
  130  interrupted
"""


class Commands(click.Group):
    """A group that imports a command only to run it, so that help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"downclock.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; one that is not there is refused with the one that was meant."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            rule = f"No such command '{args[0]}'{suggestion(args[0], list(COMMANDS))}"
            raise click.UsageError(rule, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete a command's name without importing any."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        named = [name for name in COMMANDS if name.startswith(incomplete)]
        return [CompletionItem(name, help=COMMANDS[name]) for name in named]


@click.group(
    cls=Commands,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--debug",
    is_flag=True,
    envvar="DOWNCLOCK_DEBUG",
    help="Show where an error happened (or DOWNCLOCK_DEBUG=1).",
)
@click.version_option(
    package_name="downclock", message="downclock %(version)s", help="Show the version."
)
@click.pass_context
def app(ctx: click.Context, debug: bool) -> None:
    """Plan jobs so that they finish on time on the fewest joules."""
    ctx.obj.debug = debug
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
