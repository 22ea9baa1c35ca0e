"""`heed completion`: print a shell script that completes heed's commands and options.

click computes the completions; the shell calls it through `_HEED_COMPLETE`.
"""

import click
from click.shell_completion import get_completion_class

from heed.cli.command import command
from heed.cli.terminal import echo

EXAMPLES = """
heed completion bash >> ~/.bashrc
heed completion zsh >> ~/.zshrc
heed completion fish > ~/.config/fish/completions/heed.fish
"""


@command("completion", "Print a completion script for a shell.", examples=EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes heed's commands and flags in SHELL."""
    complete = get_completion_class(shell)
    assert complete is not None, "click knows these three"
    echo(complete(ctx.find_root().command, {}, "heed", "_HEED_COMPLETE").source())
