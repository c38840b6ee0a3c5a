"""``holdfast completion``: the script that a shell needs for Tab."""

from __future__ import annotations

import os

import click
from click.shell_completion import BashComplete, get_completion_class

from holdfast.cli.output import write

VARIABLE = "_HOLDFAST_COMPLETE"

STAY = r"""
    # After "server.", "name=" and "folder/" the word goes on: no space.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[.=/] ]]; then
        compopt -o nospace
    fi

    # A choice with a space in it stays one word, unless it stands in quotes already.
    if [[ ${COMP_WORDS[COMP_CWORD]} != [\"\']* ]]; then
        local at
        for at in "${!COMPREPLY[@]}"; do
            printf -v "COMPREPLY[at]" %%q "${COMPREPLY[at]}"
        done
    fi

    return 0
"""


class Bash(BashComplete):
    """As click has it, but for the spaces: after half a word, and within one."""

    source_template = BashComplete.source_template.replace("\n    return 0\n", STAY)


@click.command()
@click.argument(
    "shell", type=click.Choice(["bash", "zsh", "fish"]), required=False, metavar="[SHELL]"
)
def completion(shell: str | None) -> None:
    """Shell completion for servers, tools and parameters; starts no server.

    \b
    bash:  eval "$(holdfast completion bash)"      in ~/.bashrc
    zsh:   eval "$(holdfast completion zsh)"       in ~/.zshrc
    fish:  holdfast completion fish | source       in ~/.config/fish/config.fish
    """
    from holdfast.cli.app import root

    shell = shell or os.path.basename(os.environ.get("SHELL", ""))
    kind = Bash if shell == "bash" else get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"No completion for the shell {shell!r}: name bash, zsh or fish.")
    write(kind(root, {}, "holdfast", VARIABLE).source().encode() + b"\n")
