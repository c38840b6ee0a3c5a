"""The commands that ``holdfast cli`` writes: one for each tool, with options from its schema.

Names and descriptions are a server's. They become subcommands, options and help; never code, never
an option of ours: those stand before the subcommand, a tool's after it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

import click

from holdfast._core.files import make_private_folder, reason, write_atomic, xdg_folder
from holdfast._core.text import has_unseen, one_line, visible, visible_lines
from holdfast.cli.arguments import coerce
from holdfast.cli.main import columns_of_terminal
from holdfast.cli.output import Exit, Output, write
from holdfast.errors import HoldfastError, ValidationError
from holdfast.lock.lockfile import LockedServer, read
from holdfast.schema.signature import resolve
from holdfast.schema.types import admitted_types
from holdfast.schema.walk import properties, required

HELP: Final = ["-h", "--help"]
SHELLS: Final = ("bash", "zsh", "fish")
LONGEST_HELP: Final = 2000
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def main(kind: str, target: list[str], lock: str, words: list[str] | None = None) -> int:
    """Run the command of a generated file; return the exit code.

    Args:
        kind: ``"name"``, ``"url"`` or ``"command"``.
        target: The server.
        lock: Its lock file, with this server alone.
        words: The command line; by default that of the process.
    """
    output = Output()
    try:
        path = _stored(lock)
        ((name, server),) = read(path).servers.items()
    except (HoldfastError, ValueError) as error:
        return output.complain(f"the lock in this file cannot be used: {error}", Exit.USAGE, "lock")
    program = os.path.basename(sys.argv[0])
    group = _Tools(name, server, _Way(kind, target, path))
    settings: Any = {"max_content_width": columns_of_terminal(), "help_option_names": HELP}
    try:
        code: Any = group.main(words, program, standalone_mode=False, **settings)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return Exit.USAGE
    except click.ClickException as error:
        return output.complain(visible_lines(error.format_message()), Exit.USAGE, "usage")
    except HoldfastError as error:
        return output.fail(error)
    except click.Abort:
        return output.complain("interrupted", Exit.INTERRUPTED, "interrupted")
    return code if isinstance(code, int) else Exit.OK


def _stored(lock: str) -> str:
    """Return the path of the lock in a private folder: what is called is checked against it."""
    data = lock.encode()
    folder = xdg_folder("cache") / "holdfast" / "commands"
    path = folder / f"{sha256(data).hexdigest()}.lock"
    try:
        make_private_folder(folder)
        if not path.exists() or path.read_bytes() != data:
            write_atomic(path, data, private=True)
    except OSError as error:
        raise ValidationError(f"{path}: cannot be written: {reason(error)}") from None
    return str(path)


class _Way:
    """The words of ``holdfast call`` that lead to the server."""

    def __init__(self, kind: str, target: list[str], lock: str) -> None:
        self._kind, self._target, self._lock = kind, target, lock

    def words(self, tool: str, arguments: dict[str, Any], options: list[str]) -> list[str]:
        """Return the words that call a tool."""
        name = f"{self._target[0]}.{tool}" if self._kind == "name" else tool
        if name.startswith("-"):  # a server's words would be read as options of ours
            raise ValidationError(
                f"tool '{visible(tool, 80)}': a name that begins with a dash can be called only of "
                "a server that is configured by name"
            )
        words = ["call", name, f"--args={json.dumps(arguments)}", f"--lock={self._lock}", *options]
        if self._kind == "url":
            return [*words, f"--url={self._target[0]}"]
        return [*words, "--", *self._target] if self._kind == "command" else words


class _Tools(click.Group):
    """All tools of a server."""

    def __init__(self, name: str, server: LockedServer, way: _Way) -> None:
        text = one_line(server.instructions or "", LONGEST_HELP)
        super().__init__(
            "tools",
            help=f"The tools of {visible(name, 80)}. {text}",
            params=_own_options(),
            invoke_without_command=True,
            callback=_completion,
        )
        names = _words_for(server.definitions, "tool")
        for tool, word in names.items():
            self.add_command(_command(word, tool, server.definitions[tool], way))


def _own_options() -> list[click.Parameter]:
    return [
        click.Option(["--json"], is_flag=True, help="The result as JSON."),
        click.Option(["--timeout"], type=float, metavar="SECONDS", help="The time of one request."),
        click.Option(["-v", "--verbose"], is_flag=True, help="Show the server's stderr."),
        click.Option(
            ["--completion"], type=click.Choice(SHELLS), help="Print completion for a shell."
        ),
    ]


def _completion(completion: str | None, **options: Any) -> int:
    """Print the completion of a shell, or the help if no tool is named."""
    context = click.get_current_context()
    if completion is not None:
        from click.shell_completion import get_completion_class

        program = context.find_root().info_name or "tool"
        variable = "_" + re.sub(r"\W", "_", program).upper() + "_COMPLETE"
        shell = get_completion_class(completion)
        assert shell is not None
        write(shell(context.command, {}, program, variable).source())
    elif context.invoked_subcommand is None:
        print(context.get_help())
    return Exit.OK


# Tools as commands


def _words_for(names: Iterable[str], what: str) -> dict[str, str]:
    """Return a word to type for each name: itself if it is one, or what is left of it, numbered."""
    words: dict[str, str] = {}
    taken = {"help"}
    for number, name in enumerate(names, 1):
        word = name if _WORD.fullmatch(name) else re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
        word = word if word and word.lower() not in taken else f"{what}-{number}"
        taken.add(word.lower())
        words[name] = word
    return words


def _command(word: str, tool: str, definition: Mapping[str, Any], way: _Way) -> click.Command:
    """Return the command of a tool."""
    schema = definition.get("inputSchema") or {}
    needed = required(schema)
    parts = {name: resolve(part, schema) for name, part in properties(schema).items()}
    words = _words_for((name.replace("_", "-") for name in parts), "option")
    options = dict(zip(parts, words.values(), strict=True)) if len(words) == len(parts) else {}
    if not options:  # ``a_b`` and ``a-b`` are two parameters
        options = _words_for(parts, "option")
    params: list[click.Parameter] = [
        _option(f"p{number}", options[name], name, part, name in needed)
        for number, (name, part) in enumerate(parts.items())
    ]

    def call(**values: Any) -> int:
        from holdfast.cli.app import run

        # By name: the values come in the order in which they were typed.
        typed = {name: values[f"p{number}"] for number, name in enumerate(parts)}
        arguments = {
            name: _value(name, parts[name], value)
            for name, value in typed.items()
            if value is not None and value != ()
        }
        return run(way.words(tool, arguments, _chosen()))

    described = definition.get("description") or ""
    text = one_line(described if isinstance(described, str) else "", LONGEST_HELP)
    return click.Command(word, callback=call, params=params, help=text or f"Call {visible(tool)}.")


def _chosen() -> list[str]:
    """Return our own options as they were given, as words."""
    context = click.get_current_context().parent
    values = {} if context is None else context.params
    words = ["--json"] if values.get("json") else []
    words += ["--verbose"] if values.get("verbose") else []
    return words if values.get("timeout") is None else [*words, f"--timeout={values['timeout']:g}"]


def _option(
    variable: str, word: str, name: str, part: dict[str, Any], is_required: bool
) -> click.Option:
    """Return the option of a parameter."""
    described = part.get("description")
    text = one_line(described if isinstance(described, str) else "", LONGEST_HELP)
    if word.replace("-", "_") != name.replace("-", "_"):
        text = f"{text} ({visible(name, 80)})".strip()
    kinds = admitted_types(part)
    settings: dict[str, Any] = {"help": text, "required": is_required, "default": None}
    if kinds == {"boolean"}:
        return click.Option([f"--{word}/--no-{word}", variable], **settings)
    choices = part.get("enum")
    if isinstance(choices, list) and choices and all(map(_is_plain, choices)):
        settings["type"] = click.Choice(choices)
    elif kinds == {"array"}:
        settings |= {"multiple": True, "metavar": "VALUE"}
    else:
        settings["metavar"] = "|".join(sorted(kinds)).upper()[:40] if kinds else "VALUE"
    return click.Option([f"--{word}", variable], **settings)


def _is_plain(choice: Any) -> bool:
    return isinstance(choice, str) and bool(choice) and not has_unseen(choice)


def _value(name: str, part: dict[str, Any], value: Any) -> Any:
    """Return the value of an option, converted by the schema."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, tuple):
        return coerce(value, part, name)
    items: Any = part.get("items", {})
    if len(value) == 1 and value[0].lstrip().startswith("["):
        return coerce(value[0], part, name)
    return [coerce(item, items if isinstance(items, dict) else {}, name) for item in value]
