"""``holdfast completion``: the script that a shell needs for Tab, printed or installed."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from holdfast._core.files import xdg_folder
from holdfast.cli.elicitation import confirm, is_interactive
from holdfast.cli.options import output_option
from holdfast.cli.output import Output, read_if_there, write, write_file

VARIABLE = "_HOLDFAST_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
MARK = "# holdfast: shell completion"

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


# Choices after which the word goes on are offered apart, without a space at their end.
ZSH: tuple[tuple[str, str], ...] = (
    ("\n", "\n(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"),
    ("    local -a completions\n", "    local -a completions open open_with_descriptions\n"),
    (
        '            if [[ "$descr" == "_" ]]; then\n',
        """\
            if [[ "$key" == *[.=/] && "$descr" == "_" ]]; then
                open+=("$key")
            elif [[ "$key" == *[.=/] ]]; then
                open_with_descriptions+=("$key":"$descr")
            elif [[ "$descr" == "_" ]]; then
""",
    ),
    (
        "        _describe -V unsorted completions_with_descriptions -U\n    fi\n",
        """\
        _describe -V unsorted completions_with_descriptions -U
    fi

    if [ -n "$open_with_descriptions" ]; then
        _describe -V unsorted open_with_descriptions -U -S ''
    fi

    if [ -n "$open" ]; then
        compadd -U -S '' -V unsorted -a open
    fi
""",
    ),
)


class Zsh(ZshComplete):
    """As click has it, but for the spaces, and where no completion was set up yet."""

    source_template = ZshComplete.source_template
    for _before, _after in ZSH:
        source_template = source_template.replace(_before, _after, 1)


class Fish(FishComplete):
    """As click has it, but for choices and descriptions with a comma in them."""

    source_template = FishComplete.source_template.replace('split ","', 'split --max 1 ","')


@click.command()
@click.argument("words", nargs=-1, metavar="[install] [SHELL]")
@click.option("-y", "--yes", is_flag=True, help="Install without being asked.")
@output_option
def completion(words: tuple[str, ...], yes: bool, output: Output) -> None:
    """Shell completion for servers, tools and parameters; starts no server.

    \b
    holdfast completion install        for your shell, in its start file
    holdfast completion install zsh    for another one
    holdfast completion bash           print the script
    """
    install = words[:1] == ("install",)
    rest = words[1:] if install else words
    if len(rest) > 1:
        raise click.UsageError(f"Not understood: {' '.join(rest[1:])}.")
    shell = rest[0] if rest else os.path.basename(os.environ.get("SHELL", ""))
    if shell not in SHELLS:
        raise click.UsageError(f"No completion for the shell {shell!r}: name bash, zsh or fish.")
    if not install:
        write(script(shell).encode())
        return
    home = Path.home()
    if shell == "fish":  # which reads such files by itself
        path, start = xdg_folder("config") / "fish" / "completions" / "holdfast.fish", None
    else:
        path = xdg_folder("data") / "holdfast" / f"completion.{shell}"
        folder = Path(os.environ.get("ZDOTDIR") or home) if shell == "zsh" else home
        start = folder / f".{shell}rc"
    before = "" if start is None else read_if_there(start) or ""
    is_new = start is not None and MARK not in before
    if not yes and not output.json and is_interactive():
        also = f"\nto be read by a new line in {start}" if is_new else ""
        output.note(f"The script goes to {path}{also}.")
        if not confirm("Install it?"):
            raise click.Abort
    write_file(path, script(shell), _made)
    if start is not None and is_new:
        gap = "" if not before or before.endswith("\n") else "\n"
        quoted = shlex.quote(str(path))
        line = f"{MARK}\n[ -r {quoted} ] && . {quoted}\n"
        write_file(start, f"{before}{gap}{line}", _made)
    if output.json:
        output.value({"shell": shell, "script": str(path), "start": start and str(start)})
    output.note(f"Completion for {shell} is installed: {path}. It works in new shells.")


def script(shell: str) -> str:
    """Return what a shell has to read."""
    from holdfast.cli.app import root

    kind = {"bash": Bash, "zsh": Zsh, "fish": Fish}[shell]
    return f"{kind(root, {}, 'holdfast', VARIABLE).source()}\n"


def _made(path: Path) -> str:
    """Return where a file of the user's own leads; make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.path.realpath(path)
