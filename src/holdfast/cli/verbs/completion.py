"""``holdfast completion``: the script that a shell needs for Tab, printed or installed."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from holdfast._core.files import xdg_folder
from holdfast.cli.app import YES, output_option
from holdfast.cli.output import Output, read_if_there, write, write_file
from holdfast.cli.prompts import confirm, is_interactive

VARIABLE = "_HOLDFAST_COMPLETE"
MARK = "# holdfast: shell completion"

CHANGES: dict[str, tuple[tuple[str, str], ...]] = {
    "bash": (
        ("bash_complete $1)", "bash_complete $1 2>/dev/null)"),
        (
            "\n    return 0\n",
            r"""
    # After "server.", "name=" and "folder/" the word goes on: no space.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[.=/] ]]; then
        compopt -o nospace
    fi

    # A choice with a space in it stays one word, unless it stands in quotes already.
    if [[ ${COMP_WORDS[COMP_CWORD]} != [\"\']* ]]; then
        local at
        for at in "${!COMPREPLY[@]}"; do
            printf -v "COMPREPLY[at]" %q "${COMPREPLY[at]}"
        done
    fi

    return 0
""",
        ),
    ),
    # Choices after which the word goes on are offered apart, without a space at their end.
    "zsh": (
        ("zsh_complete holdfast)", "zsh_complete holdfast 2>/dev/null)"),
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
    ),
    # Choices and descriptions may have a comma in them.
    "fish": (
        (
            "COMP_CWORD=(commandline -t) holdfast)",
            "COMP_CWORD=(commandline -t) holdfast 2>/dev/null)",
        ),
        ('split ","', 'split --max 1 ","'),
    ),
}
"""What is different from click's own scripts: spaces after half a word, and within one; and no
errors in the line that a person is typing, such as that of a Python that Ctrl-C stops early."""


@click.command()
@click.argument("words", nargs=-1, metavar="[install] [SHELL]")
@YES
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
    if shell not in CHANGES:
        raise click.UsageError(f"No completion for the shell {shell!r}: name bash, zsh or fish.")
    if not install:
        write(script(shell).encode())
        return
    _install(shell, yes, output)


def _install(shell: str, yes: bool, output: Output) -> None:
    """Write the script, and the line that reads it; ask before, at a terminal."""
    path, start = _files(shell)
    before = _text_of(start)
    is_new = start is not None and MARK not in before
    if not yes and not output.json and is_interactive():
        also = f"\nto be read by a new line in {start}" if is_new else ""
        _ask_to_install(f"The script goes to {path}{also}.", output)
    write_file(path, script(shell), is_own=True)
    if start is not None and is_new:
        write_file(start, _with_start_line(before, path), is_own=True)
    facts = {"shell": shell, "script": str(path), "start": start and str(start)}
    output.done(facts, f"Completion for {shell} is installed: {path}. It works in new shells.")


def _text_of(start: Path | None) -> str:
    return "" if start is None else read_if_there(start) or ""


def _ask_to_install(plan: str, output: Output) -> None:
    output.note(plan)
    if not confirm("Install it?"):
        raise click.Abort


def _with_start_line(before: str, path: Path) -> str:
    """Return the text of a start file with the lines that read the script."""
    gap = "" if not before or before.endswith("\n") else "\n"
    quoted = shlex.quote(str(path))
    return f"{before}{gap}{MARK}\n[ -r {quoted} ] && . {quoted}\n"


def _files(shell: str) -> tuple[Path, Path | None]:
    """Return the file of the script, and the start file that has to read it, if any."""
    if shell == "fish":  # which reads such files by itself
        return xdg_folder("config") / "fish" / "completions" / "holdfast.fish", None
    folder = os.environ.get("ZDOTDIR") if shell == "zsh" else None
    start = Path(folder or Path.home()) / f".{shell}rc"
    return xdg_folder("data") / "holdfast" / f"completion.{shell}", start


def script(shell: str) -> str:
    """Return what a shell has to read."""
    from click.shell_completion import get_completion_class

    from holdfast.cli.app import root

    kind = get_completion_class(shell)
    assert kind is not None
    text = kind(root, {}, "holdfast", VARIABLE).source()
    for before, after in CHANGES[shell]:
        text = text.replace(before, after, 1)
    return f"{text}\n"
