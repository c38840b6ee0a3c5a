"""``holdfast shell``: a prompt over one kept connection."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast._core.files import make_private_folder, open_for_append, xdg_folder
from holdfast._core.text import counted, visible, visible_lines
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast.cli import views
from holdfast.cli.arguments import parse, pick, read_file
from holdfast.cli.completers import SERVER
from holdfast.cli.elicitation import handlers
from holdfast.cli.output import Exit
from holdfast.cli.progress import status
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.cli.verbs.call import show
from holdfast.cli.verbs.resources import fill
from holdfast.errors import HoldfastError, RpcError, ValidationError

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


@click.command(cls=ServerVerb)
@SERVER
def shell(target: ServerTarget, server: tuple[str, ...]) -> int:
    """A prompt over one kept connection: tools are called by their names.

    Tab completes tools and parameters; Ctrl-C ends a call, Ctrl-D the shell. Lines may come
    through a pipe, too: the exit code is then that of the last line that failed.
    """
    from holdfast.sync.client import Client
    from holdfast.sync.portal import portal

    name = target.only(server)
    target.options["handlers"] = handlers()
    target.options.setdefault("when_down", "wait")
    with Client(portal().do(lambda: target.client(name)), portal()) as client:
        client.open()
        session = Session(target, client)
        target.keep(name, session.greet())
        status.end()
        with editing(session.suggestions):
            return session.run()


VERBS: Final = (
    *("call", "describe", "help", "ping", "prompt", "prompts"),
    *("read", "resources", "state", "tools"),
)


class Session:
    """The lines that a person enters at the prompt."""

    def __init__(self, target: ServerTarget, client: Client) -> None:
        self._target = target
        self._output = target.output
        self._client = client

    def greet(self) -> list[dict[str, Any]]:
        """A word of welcome, and the tools that there are."""
        info = self._client.server_info
        who = self._client.name if info is None else f"{info.name} {info.version}"
        found = self._known()
        self._output.note(f"{who}: {counted(len(found), 'tool')}. 'help' helps.")
        return found

    def run(self) -> int:
        """Until the end of the input. A person has seen what failed; a script is told."""
        failed = 0
        while True:
            try:
                line = ask(f"{visible_lines(self._client.name)}> ")
            except KeyboardInterrupt:
                print(file=sys.stderr)
                continue
            except EOFError:
                if sys.stdin.isatty():
                    print(file=sys.stderr)
                break
            if line.strip() in ("exit", "quit"):
                break
            failed = self._obey(line) or failed
        return Exit.OK if sys.stdin.isatty() else failed

    def _obey(self, line: str) -> int:
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            return self._output.complain(f"not understood: {error}", Exit.USAGE, "usage")
        try:
            return self._do(*words) if words else Exit.OK
        except HoldfastError as error:
            return self._output.fail(error)
        except KeyboardInterrupt:
            print(file=sys.stderr)
            told = "interrupted; the server was told to stop"
            return self._output.complain(told, Exit.INTERRUPTED, "interrupted")

    def _do(self, verb: str, *words: str) -> int:  # noqa: PLR0912  (a row for each verb)
        client, output = self._client, self._output
        match verb, words:
            case ("call" | "describe", ()):
                raise ValidationError(f"{verb}: which tool?")
            case ("read", ()):
                raise ValidationError("read: which resource?")
            case ("prompt", ()):
                raise ValidationError("prompt: which one?")
            case "call", (name, *rest):
                return self._call(name, rest)
            case "describe", names:
                found = [tool.raw for tool in client.list_tools()]
                for name in names:
                    views.tool(output, pick(found, name), name)
            case "read", uris:
                for uri in uris:
                    views.resource(output, client.read_resource(uri), uri, None)
            case "prompt", (name, *rest):
                result = client.get_prompt(name, fill(rest, None, name))
                views.prompt(output, result, name, None)
            case "tools", _:
                views.tools(output, [tool.raw for tool in client.list_tools()])
            case "resources", _:
                templates = client.list_resource_templates()
                views.resources(output, client.list_resources(), templates)
            case "prompts", _:
                views.prompts(output, client.list_prompts())
            case "ping", _:
                client.ping()
                output.result("it answers", "it answers")
            case "state", _:
                output.result(str(client.state), str(client.state))
            case "help", _:
                output.result(HELP, HELP)
            case _:
                return self._call(verb, words, VERBS)
        return Exit.OK

    def _known(self) -> list[dict[str, Any]]:
        """The tools; none of a server that has no tools."""
        try:
            return [tool.raw for tool in self._client.list_tools()]
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            return []

    def _call(self, name: str, words: Sequence[str], verbs: Iterable[str] = ()) -> int:
        known = self._client.tools.get(name)
        found = pick(self._known(), name, verbs) if known is None else known.raw
        schema = found.get("inputSchema")
        arguments = parse(words, schema if isinstance(schema, dict) else {}, read_file)
        with status.over(name):
            result = self._client.call_tool(name, arguments, on_progress=status.update)
        return show(self._target, result, name, None)

    # Completion

    def suggestions(self, line: str) -> list[str]:
        """Return the completions of the last word of a line."""
        *words, last = line.split(" ")
        words = [word for word in words if word]
        tools = self._client.tools
        if not words:
            return [one for one in (*VERBS, "exit", *tools) if one.startswith(last)]
        if words in (["call"], ["describe"]):
            return [one for one in tools if one.startswith(last)]
        name = words[1] if words[0] == "call" else words[0]
        if name not in tools:
            return []
        properties = tools[name].input_schema.get("properties")
        known = properties if isinstance(properties, dict) else {}
        used = {word.partition("=")[0].rstrip(":") for word in words}
        return [f"{one}=" for one in known if one.startswith(last) and one not in used]


# Reading lines


KEPT: Final = 1000
"""Lines of history."""

Suggest = Callable[[str], list[str]]


def ask(prompt: str) -> str:
    """One line. The prompt is for a person, so it never gets into a pipe."""
    if not sys.stdin.isatty():
        prompt = ""
    elif not sys.stdout.isatty():
        print(prompt, end="", file=sys.stderr, flush=True)
        prompt = ""
    return input(prompt)


@contextmanager
def editing(suggest: Suggest) -> Iterator[None]:
    """Tab asks ``suggest`` what the line may become; what is typed is kept for the next time."""
    if not sys.stdin.isatty() or find_spec("readline") is None:
        yield
        return
    import readline

    readline.set_completer(completer(suggest))
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
    history = history_file()
    try:
        readline.read_history_file(history)
    except OSError:
        pass
    before = readline.get_current_history_length()
    try:
        yield
    finally:
        readline.set_completer(None)
        new = readline.get_current_history_length() - before
        readline.set_history_length(KEPT)
        try:
            # Arguments may be secrets: nobody else reads them, from the first line on.
            make_private_folder(history.parent)
            os.close(open_for_append(history))
            history.chmod(0o600)
            readline.append_history_file(max(new, 0), history)
        except OSError:
            pass


def completer(suggest: Suggest) -> Callable[[str, int], str | None]:
    """As readline wants it: the ``state``-th word, or None after the last."""
    import readline

    found: list[str] = []

    def complete(_: str, state: int) -> str | None:
        if state == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            words = map(visible, suggest(line))
            found[:] = [one if one.endswith("=") else f"{one} " for one in words]
        return found[state] if state < len(found) else None

    return complete


def history_file() -> Path:
    """Return the file that keeps the lines of earlier shells."""
    return xdg_folder("state") / "holdfast" / "history"
