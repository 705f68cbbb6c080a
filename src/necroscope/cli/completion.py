"""`necroscope completion`: the script that teaches a shell our commands and options."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    Examples:
      necroscope completion bash > /etc/bash_completion.d/necroscope
      source <(necroscope completion zsh)
    """
    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(
        completion(context.find_root().command, {}, "necroscope", "_NECROSCOPE_COMPLETE").source()
    )
