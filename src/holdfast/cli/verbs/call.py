"""``holdfast call``: a tool call from words to result; ``tasks``: calls that became tasks."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from holdfast._core.calls.handlers import Approver
from holdfast.cli.app import SAVE, option
from holdfast.cli.arguments import parse, whole
from holdfast.cli.completers import parameters, tools
from holdfast.cli.elicitation import TerminalQuestions
from holdfast.cli.output import Exit
from holdfast.cli.progress import status
from holdfast.cli.prompts import is_interactive
from holdfast.cli.sharing import hint_at_state
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.cli.views import Contents, table
from holdfast.errors import Hint, HoldfastError
from holdfast.policies import ToolPolicy
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast import Client, Handlers
    from holdfast._core.calls.call_values import RunningCall
    from holdfast._core.calls.options import CallOptions
    from holdfast.types import Task

LONG: Final = 86_400.0
"""Seconds for a whole task: at a terminal, Ctrl-C ends the wait earlier."""
GOES_ON: Final = "The task goes on. Its result:"

BUDGET = option("--budget N", "Show N characters; the rest is saved.", type=click.IntRange(1))


@click.command(cls=ServerVerb, context_settings={"ignore_unknown_options": True})
@click.argument("tool", shell_complete=tools)
@click.argument("words", nargs=-1, metavar="[NAME=VALUE]...", shell_complete=parameters)
@option("--args JSON", "The arguments as one JSON object.", name="text")
@SAVE
@option("--as-task", "Ask the server to run it as a task.")
@option("--once KEY", "Run it at most once under this key, over crashes and processes.", "key")
@option("--detach", "Leave the task running, and print its id.")
@BUDGET
@option("--approve", "Ask before a tool that may be destructive.")
async def call(
    target: ServerTarget,
    tool: str,
    words: tuple[str, ...],
    *,
    text: str | None,
    save: str | None,
    budget: int | None,
    approve: bool,
    as_task: bool,
    detach: bool,
    key: str | None,
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
    name, words = target.named(tool, words)
    asking = TerminalQuestions().handlers() if is_interactive() else None
    if asking is not None:
        target.options["handlers"] = asking
    async with target.client() as client:
        tools = await target.list_tools(client)
        schema = {} if tools is None else target.pick(tools, name).input_schema
        arguments = whole(text, "--args") if text is not None else {}
        arguments.update(parse(words, schema))
        policy = client._policy.tools
        if approve and policy.approve_of(name) in (None, "never"):
            await _approve_by_annotations(client, name, arguments, asking)
        options = _call_options(name, as_task=as_task or detach)
        options["once"] = key
        running = client.start_tool(name, arguments, on_task=_show_task, **options)
        result = await _outcome(target, running, detach)
        hint_at_state(target, client, tools)
    if result is None:
        return Exit.OK
    return show(target, result, name, save, budget or policy.budget_of(name))


async def _approve_by_annotations(
    client: Client, name: str, arguments: dict[str, Any], handlers: Handlers | None
) -> None:
    """Ask the person about a call, unless the tool's annotations call it harmless."""
    by_annotations = ToolPolicy(approve="annotations")
    approver = Approver(
        client.name, by_annotations, None if handlers is None else handlers.approval
    )
    await approver.ask(name, arguments, client.tools.get(name))


def _call_options(name: str, *, as_task: bool) -> CallOptions:
    options: CallOptions = {"on_progress": status.update} if status.begin(name) else {}
    if as_task:
        options |= {"task": True, "total_timeout": LONG}
    return options


# What Ctrl-C means depends on who does the work. A plain call lives as long as its connection: it
# is cancelled, and the server told so. A task lives on the server: the person who leaves wants the
# terminal back, not the work undone, so the task is left running and the command that asks for it
# again is printed. `tasks wait` shields its wait for the same reason; `tasks cancel` is the way to
# end one.


async def _outcome(
    target: ServerTarget, running: RunningCall[ToolResult], detach: bool
) -> ToolResult | None:
    """Return the result of a call; None if it was detached.

    A server may insist on a task. Ctrl-C leaves that running, and cancels any other call.
    """
    try:
        if not detach or await running.wait_task() is None:
            return await running
    except asyncio.CancelledError:
        if running.task is None:
            running.cancel()
        else:
            target.output.note(f"{GOES_ON} {_wait_command(target, running.detach())}")
        raise
    except HoldfastError as error:
        raise _advised(error, target) from None
    task_id = running.detach()
    target.output.result({"taskId": task_id}, task_id)
    target.output.note(f"{GOES_ON} {_wait_command(target, task_id)}")
    return None


def show(
    target: ServerTarget, result: ToolResult, name: str, save: str | None, budget: int | None = None
) -> int:
    """Write the result to stdout, or a tool's failure to stderr.

    A result longer than the budget is truncated, and written to a file as a whole.
    """
    output = target.output
    contents = Contents(output, save, name)
    if budget is not None:
        from holdfast.agents.budget import cut, shorten, whole_text

        text = whole_text(result)
        if len(text) > budget:
            path = contents.add(text.encode("utf-8", "surrogatepass"), ".txt")
            excerpt = cut(text, budget, lambda at: f"{path}, from character {at}")
            result = shorten(result, excerpt)
    if output.json:
        output.value(result.raw)
    elif not result.is_error and (result.content or not result.has_structured):
        contents.show(result.content)
    elif not result.is_error:
        output.value(msgspec.to_builtins(result.structured))
    if not result.is_error:
        return Exit.OK
    reason = result.text or "The tool failed and gave no reason."
    return output.complain(f"{name}: {reason}", Exit.TOOL, "tool")


# Tasks


@click.group(no_args_is_help=True)
def tasks() -> None:
    """Calls that became tasks: their state, result and cancellation.

    \b
    holdfast call builds.build target=all --detach
    holdfast tasks wait builds TASK_ID
    """


@tasks.command("get", cls=ServerVerb, takes="TASK_ID")
async def get(target: ServerTarget, task_id: str) -> None:
    """Show the state of a task."""
    async with target.client() as client:
        task = await client.get_task(task_id)
    row = (task.task_id, task.status, task.status_message or "")
    table(target.output, {"tasks": [task.raw]}, ("task", "status", "message"), [row], "")


@tasks.command("wait", cls=ServerVerb, takes="TASK_ID")
@option("--total SECONDS", "Cancel the task after this time.", type=float, default=LONG)
@SAVE
@BUDGET
async def wait(
    target: ServerTarget, task_id: str, total: float, save: str | None, budget: int | None
) -> int:
    """Wait for the result of a task. Ctrl-C leaves the task running."""
    async with target.client() as client:
        status.begin(task_id)
        following = client.resume_task(task_id, total_timeout=total, on_task=_show_task)
        waiting = asyncio.ensure_future(following)
        try:
            # Shielded: cancelling this wait must not cancel the task.
            result = await asyncio.shield(waiting)
        except asyncio.CancelledError:
            # Retrieve its error, which asyncio would report as never retrieved.
            waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
            target.output.note(f"{GOES_ON} {_wait_command(target, task_id)}")
            raise
        except HoldfastError as error:
            raise _advised(error, target) from None
    return show(target, result, "result", save, budget)


@tasks.command("cancel", cls=ServerVerb, takes="TASK_ID")
async def cancel(target: ServerTarget, task_id: str) -> None:
    """Ask the server to cancel a task. It may complete all the same."""
    async with target.client() as client:
        await client.cancel_task(task_id)
    target.output.note(f"The server was asked to cancel {task_id}.")


def _show_task(task: Task) -> None:
    """Show the state of a task in the status line."""
    status.say(f"{task.status}{': ' + task.status_message if task.status_message else ''}")


def _advised(error: HoldfastError, target: ServerTarget) -> HoldfastError:
    """Return the error of a task with the command that asks for it again."""
    if error.task_id is None or not error.hints:
        return error
    command = f"{_wait_command(target, error.task_id)} asks for it again"
    return error.again(hints=(Hint("", command),))


def _wait_command(target: ServerTarget, task_id: str) -> str:
    """Return the command that waits for a task; it can be pasted, whatever the id is."""
    words = [target.server, task_id] if target.server is not None else [task_id]
    return f"holdfast tasks wait {shlex.join(words)} {target.server_arguments()}".rstrip()
