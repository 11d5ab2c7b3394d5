"""spinney completion: names of commands and options on Tab."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script with which SHELL completes commands, options and files of spinney.

    \b
    bash: spinney completion bash > ~/.local/share/bash-completion/completions/spinney
    zsh:  spinney completion zsh > ~/.zfunc/_spinney     (with ~/.zfunc in fpath)
    fish: spinney completion fish > ~/.config/fish/completions/spinney.fish
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None  # noqa: S101 (click knows all three)
    click.echo(script(ctx.find_root().command, {}, "spinney", "_SPINNEY_COMPLETE").source())
