"""``holdfast shell``: a prompt with completion and history, over one kept connection."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from holdfast.cli.aim import Aim, aimed
from holdfast.cli.arguments import complaints, parse
from holdfast.cli.asking import handlers
from holdfast.cli.call import read_file, show
from holdfast.cli.contents import Contents
from holdfast.cli.listing import description
from holdfast.cli.output import harmless
from holdfast.cli.progress import Bar
from holdfast.cli.render import table
from holdfast.cli.seen import pick
from holdfast.cli.suggest import servers
from holdfast.errors import HoldfastError, ValidationError

if TYPE_CHECKING:
    from holdfast.sync import Client

HELP = """\
TOOL name=value …      call a tool (or: call TOOL …)
tools                  list the tools
describe TOOL          what a tool does and takes
resources, read URI    list resources, read one
prompts                list prompts
prompt NAME k=v …      get a prompt
ping                   see whether the server answers
state                  how the connection is
help, exit             this, and the end (Ctrl-D too)"""


@click.command()
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@aimed
def shell(aim: Aim, server: tuple[str, ...]) -> int:
    """A prompt over one kept connection: tools are called by their names.

    Tab completes tools and parameters; Ctrl-C ends a call, Ctrl-D the shell.
    """
    from holdfast.sync.client import Client
    from holdfast.sync.portal import portal

    name, rest = aim.take(server, "")
    if rest:
        raise click.UsageError(f"Not understood: {' '.join(rest)}")
    aim.options["handlers"] = handlers()
    aim.options.setdefault("when_down", "wait")
    with Client(portal().do(lambda: aim.client(name)), portal()) as client:
        client.open()
        session = Session(aim, client)
        session.greet()
        with editing(session.suggestions):
            return session.run()


class Session:
    """What a person says at the prompt, one line after the other."""

    def __init__(self, aim: Aim, client: Client) -> None:
        self._aim = aim
        self._client = client
        self._verbs: dict[str, Callable[[list[str]], Any]] = {
            "call": self._call,
            "describe": self._describe,
            "help": lambda _: aim.output.text(HELP),
            "ping": self._ping,
            "prompt": self._prompt,
            "prompts": self._prompts,
            "read": self._read,
            "resources": self._resources,
            "state": lambda _: aim.output.text(str(client.state)),
            "tools": self._tools,
        }

    def greet(self) -> None:
        info = self._client.server_info
        who = self._client.name if info is None else f"{info.name} {info.version}"
        count = len(self._definitions())
        self._aim.output.note(f"{who}: {count} tools. 'help' helps.")

    def run(self) -> int:
        """Until the end of the input. The exit code is that of the last line that failed."""
        code = 0
        while True:
            try:
                line = input(f"{self._client.name}> " if sys.stdin.isatty() else "")
            except EOFError:
                return code
            except KeyboardInterrupt:
                print(file=sys.stderr)
                continue
            try:
                words = shlex.split(line, comments=True)
                if words in (["exit"], ["quit"]):
                    return code
                code = self._do(words)
            except ValueError as error:
                self._aim.output.complain(f"not understood: {error}", 2)
                code = 2
            except HoldfastError as error:
                code = self._aim.output.fail(error)
            except KeyboardInterrupt:
                self._aim.output.note("interrupted; the server was told to stop")
                code = 130

    def _do(self, words: list[str]) -> int:
        if not words:
            return 0
        if words[0] in self._verbs:
            found = self._verbs[words[0]](words[1:])
            return found if isinstance(found, int) else 0
        return self._call(words)

    # Verbs

    def _definitions(self) -> list[dict[str, Any]]:
        return [tool.raw for tool in self._client.list_tools()]

    def _call(self, words: list[str]) -> int:
        if not words:
            raise ValidationError("call: which tool?")
        name, *rest = words
        known = self._client.tools.get(name)
        found = pick(self._definitions(), name) if known is None else known.raw
        schema = found.get("inputSchema")
        schema = schema if isinstance(schema, dict) else {}
        arguments = parse(rest, schema, read_file)
        wrong = complaints(arguments, schema)
        if wrong:
            raise ValidationError("\n  ".join([f"{name}: nothing was sent:", *wrong]))
        with Bar(name) as bar:
            result = self._client.call_tool(name, arguments, on_progress=bar.update)
        return show(self._aim, result, name, None)

    def _tools(self, words: list[str]) -> None:
        rows = [(one["name"], str(one.get("description") or "")) for one in self._definitions()]
        table(self._aim.output, ("tool", "what it does"), rows)

    def _describe(self, words: list[str]) -> None:
        for name in words:
            self._aim.output.text(description(pick(self._definitions(), name), name))

    def _ping(self, words: list[str]) -> None:
        self._client.ping()
        self._aim.output.text("it answers")

    def _resources(self, words: list[str]) -> None:
        found = self._client.list_resources()
        rows = [(one.uri, one.description or one.name) for one in found]
        table(self._aim.output, ("resource", "what it is"), rows)

    def _read(self, words: list[str]) -> None:
        for uri in words:
            found = self._client.read_resource(uri)
            Contents(self._aim.output, None, uri.rpartition("/")[2]).show(found.contents)

    def _prompts(self, words: list[str]) -> None:
        rows = [(one.name, one.description or "") for one in self._client.list_prompts()]
        table(self._aim.output, ("prompt", "what it is for"), rows)

    def _prompt(self, words: list[str]) -> None:
        if not words:
            raise ValidationError("prompt: which one?")
        name, *rest = words
        arguments = {key: value for key, _, value in (word.partition("=") for word in rest)}
        found = self._client.get_prompt(name, arguments)
        for message in found.messages:
            Contents(self._aim.output, None, name).show([msgspec.to_builtins(message.content)])

    # Completion

    def suggestions(self, line: str) -> list[str]:
        """What the word at the end of a line may become."""
        *words, last = line.split(" ")
        words = [word for word in words if word]
        tools = self._client.tools
        if not words:
            return [one for one in (*self._verbs, "exit", *tools) if one.startswith(last)]
        if words in (["call"], ["describe"]):
            return [one for one in tools if one.startswith(last)]
        name = words[1] if words[0] == "call" else words[0]
        if name not in tools:
            return []
        properties = tools[name].input_schema.get("properties")
        known = properties if isinstance(properties, dict) else {}
        used = {word.partition("=")[0].rstrip(":") for word in words}
        return [f"{one}=" for one in known if one.startswith(last) and one not in used]


# The line editor


@contextmanager
def editing(suggest: Callable[[str], list[str]]) -> Iterator[None]:
    """Completion and history, where there is a terminal and a line editor."""
    if not sys.stdin.isatty() or find_spec("readline") is None:
        yield
        return
    import readline

    found: list[str] = []

    def complete(_: str, state: int) -> str | None:
        if state == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            words = map(harmless, suggest(line))
            found[:] = [one if one.endswith("=") else f"{one} " for one in words]
        return found[state] if state < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
    history = _history()
    try:
        readline.read_history_file(history)
    except OSError:
        pass
    try:
        yield
    finally:
        readline.set_history_length(1000)
        try:
            history.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(history)
            history.chmod(0o600)
        except OSError:
            pass


def _history() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "holdfast" / "history"
