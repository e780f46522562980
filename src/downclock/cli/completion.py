"""``downclock completion``: the script that teaches a shell our words."""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  downclock completion bash > ~/.local/share/bash-completion/completions/downclock
  downclock completion zsh > ~/.zfunc/_downclock
  downclock completion fish > ~/.config/fish/completions/downclock.fish
"""


@click.command("completion", epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    group = ctx.find_root().command
    click.echo(kind(group, {}, "downclock", "_DOWNCLOCK_COMPLETE").source())
