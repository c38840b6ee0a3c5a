"""``holdfast call``: a tool call from words to result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from holdfast._core.calls.handlers import Approver
from holdfast._core.text import close_matches
from holdfast.cli.arguments import parse, read_file, whole
from holdfast.cli.completers import parameters, tools
from holdfast.cli.contents import Contents, SaveFolder
from holdfast.cli.elicitation import handlers
from holdfast.cli.exit_codes import Exit
from holdfast.cli.find_tool import pick, seen_with
from holdfast.cli.options import ServerCommand, folders
from holdfast.cli.progress import status
from holdfast.cli.target import ServerTarget, known, server_options
from holdfast.cli.verbs.tasks import call_as_task
from holdfast.errors import ValidationError
from holdfast.policies import ToolPolicy
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast import Client


@click.command(cls=ServerCommand, context_settings={"ignore_unknown_options": True})
@click.argument("tool", shell_complete=tools)
@click.argument("words", nargs=-1, metavar="[NAME=VALUE]...", shell_complete=parameters)
@click.option("--args", "text", metavar="JSON", help="The arguments as one JSON object.")
@click.option(
    "--save", metavar="DIR", shell_complete=folders, help="Where pictures and other files go."
)
@click.option("--as-task", is_flag=True, help="Let the server make a task of it.")
@click.option("--detach", is_flag=True, help="Leave the task running, and print its id.")
@click.option(
    "--budget", type=click.IntRange(1), metavar="N", help="Show N characters; the rest is saved."
)
@click.option("--approve", is_flag=True, help="Ask before a tool that may be destructive.")
@server_options
async def call(
    target: ServerTarget,
    tool: str,
    words: tuple[str, ...],
    *,
    text: str | None,
    save: str | None,
    budget: int | None,
    approve: bool,
    **task: bool,
) -> int:
    """Call a tool.

    \b
    name=value    by the tool's schema: a number where it wants a number
    name:=json    JSON as it stands
    name=@file    the text of a file (@@ for a value that begins with @)
    --name value  the same as name=value, unless it is an option of holdfast
    {"name": 1}   a JSON object
    a.b=value     into an object; the same name again: into a list
    -             a JSON object from standard input

    \b
    holdfast call git.git_log repo_path=. max_count=5
    holdfast call https://example.org/mcp add --a 2 --b 3
    holdfast call add a=2 b=3 -- python server.py
    """
    server, name, words = target.named(tool, words)
    target.options["handlers"] = handlers()
    async with target.client(server) as client:
        schema = await _schema(target, server, client, name)
        arguments = whole(text, "--args") if text is not None else {}
        arguments.update(parse(words, schema, read_file))
        policy = client._policy.tools
        if approve and policy.approve_of(name) in (None, "never"):
            asking = Approver(client.name, ToolPolicy(approve="annotations"), handlers().approval)
            await asking.ask(name, arguments, client.tools.get(name))
        with status.over(name):
            made = (name, arguments)
            result = await call_as_task(target, client, server, made, **task)
    if result is None:
        return Exit.OK
    return show(target, within(result, budget or policy.budget_of(name), name, save), name, save)


async def _schema(
    target: ServerTarget, server: str | None, client: Client, tool: str
) -> dict[str, Any]:
    """Return the input schema of a tool; empty if the server has no list."""
    found = await known(target.list_tools(server, client))
    if found is None:
        return {}
    names = [one["name"] for one in found]
    if not target.given and tool not in names and not close_matches(tool, names, 1):
        others = seen_with(target.configuration.servers, tool)
        if others:
            where = f"{server} has" if server else "There is"
            raise ValidationError(
                f"{where} no tool {tool!r}. Did you mean {' or '.join(map(repr, others))}?"
            )
    schema = pick(found, tool).get("inputSchema")
    return schema if isinstance(schema, dict) else {}


def within(result: ToolResult, budget: int | None, name: str, save: str | None) -> ToolResult:
    """Return a result that is too long as its head and tail; the whole goes to a file."""
    if budget is None:
        return result
    from holdfast.agents.budget import cut, shorten, whole_text

    text = whole_text(result)
    if len(text) <= budget:
        return result
    path = SaveFolder(save, name).add(text.encode("utf-8", "surrogatepass"), ".txt")
    return shorten(result, cut(text, budget, lambda at: f"{path}, from character {at}"))


def show(target: ServerTarget, result: ToolResult, name: str, save: str | None) -> int:
    """Write the result to stdout, or a tool's failure to stderr."""
    if target.output.json:
        target.output.value(result.raw)
    elif not result.is_error and (result.content or not result.has_structured):
        Contents(target.output, save, name).show(result.content)
    elif not result.is_error:
        target.output.value(msgspec.to_builtins(result.structured))
    if not result.is_error:
        return Exit.OK
    reason = result.text or "The tool failed and gave no reason."
    target.output.complain(f"{name}: {reason}", Exit.TOOL, {"kind": "tool"})
    return Exit.TOOL
