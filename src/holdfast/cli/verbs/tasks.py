"""``holdfast tasks``: calls that the server works on, asked for by id."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast.cli.exit_codes import Exit
from holdfast.cli.options import ServerCommand, folders
from holdfast.cli.progress import status
from holdfast.cli.render import table
from holdfast.cli.target import ServerTarget, server_options
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast import CallOptions, Client, ToolResult
    from holdfast.types import Task

LONG: Final = 86_400.0
"""Seconds for a whole task: at a terminal, Ctrl-C ends the wait before."""


@click.group(no_args_is_help=True)
def tasks() -> None:
    """Calls that became tasks: how they are doing, their results, their end.

    \b
    holdfast call builds.build target=all --detach
    holdfast tasks wait builds TASK_ID
    """


@tasks.command("get", cls=ServerCommand)
@click.argument("words", nargs=-1, metavar="[SERVER] TASK_ID")
@server_options
async def get(target: ServerTarget, words: tuple[str, ...]) -> int:
    """Ask once how a task is doing."""
    server, (task_id,) = target.take(words, "TASK_ID")
    async with target.client(server) as client:
        _show(target, [await client.get_task(task_id)])
    return Exit.OK


@tasks.command("list", cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]")
@server_options
async def list_(target: ServerTarget, server: tuple[str, ...]) -> int:
    """List the tasks that the server has for you, where it offers that."""
    async with target.client(target.only(server)) as client:
        _show(target, await client.list_tasks())
    return Exit.OK


@tasks.command("wait", cls=ServerCommand)
@click.argument("words", nargs=-1, metavar="[SERVER] TASK_ID")
@click.option("--total", type=float, default=LONG, help="Seconds; then the task is cancelled.")
@click.option(
    "--save", metavar="DIR", shell_complete=folders, help="Where pictures and other files go."
)
@click.option(
    "--budget", type=click.IntRange(1), metavar="N", help="Show N characters; the rest is saved."
)
@server_options
async def wait(
    target: ServerTarget,
    words: tuple[str, ...],
    total: float,
    save: str | None,
    budget: int | None,
) -> int:
    """Wait for the result of a task, whoever began it. Ctrl-C leaves the task running."""
    from holdfast.cli.verbs.call import show, within

    server, (task_id,) = target.take(words, "TASK_ID")
    async with target.client(server) as client:
        with status.over(task_id):
            waiting = asyncio.ensure_future(
                client.resume_task(task_id, total_timeout=total, on_task=told)
            )
            try:
                # Shielded: the end of this wait is not the end of the task.
                result = await asyncio.shield(waiting)
            except asyncio.CancelledError:
                waiting.add_done_callback(_seen)
                target.output.note(_resume(target, server, task_id))
                raise
            except HoldfastError as error:
                raise _advised(error, target, server) from None
    return show(target, within(result, budget, "result", save), "result", save)


@tasks.command("cancel", cls=ServerCommand)
@click.argument("words", nargs=-1, metavar="[SERVER] TASK_ID")
@server_options
async def cancel(target: ServerTarget, words: tuple[str, ...]) -> int:
    """Ask the server to cancel a task. It may complete all the same."""
    server, (task_id,) = target.take(words, "TASK_ID")
    async with target.client(server) as client:
        await client.cancel_task(task_id)
    target.output.note(f"The server was asked to cancel {task_id}.")
    return Exit.OK


def _show(target: ServerTarget, found: list[Task]) -> None:
    if target.output.json:
        target.output.value({"tasks": [one.raw for one in found]})
        return
    rows = [(one.task_id, one.status, one.status_message or "") for one in found]
    table(target.output, ("task", "status", "message"), rows)


def told(task: Task) -> None:
    """Show the state of a task in the status line."""
    status.say(f"{task.status}{': ' + task.status_message if task.status_message else ''}")


async def call_as_task(
    target: ServerTarget,
    client: Client,
    server: str | None,
    call: tuple[str, Mapping[str, Any]],
    *,
    as_task: bool,
    detach: bool,
) -> ToolResult | None:
    """Make a call, which may become a task; None if that was left running on the server.

    Ctrl-C leaves a task running too, and says how to go on.
    """
    options: CallOptions = {"on_task": told, "on_progress": status.update}
    if as_task or detach:
        options |= {"task": True, "total_timeout": LONG}
    running = client.start_tool(*call, **options)
    try:
        if not detach or await running.wait_task() is None:
            return await running
    except asyncio.CancelledError:
        if running.task is None:
            running.cancel()
        else:
            target.output.note(_resume(target, server, running.detach()))
        raise
    except HoldfastError as error:
        raise _advised(error, target, server) from None
    task_id = running.detach()
    if target.output.json:
        target.output.value({"taskId": task_id})
    else:
        target.output.text(task_id)
    target.output.note(_resume(target, server, task_id))
    return None


def _seen(waiting: asyncio.Future[Any]) -> None:
    """Take the error of a wait that was given up, so that nobody is warned of it."""
    if not waiting.cancelled():
        waiting.exception()


def _advised(error: HoldfastError, target: ServerTarget, server: str | None) -> HoldfastError:
    """Return the error of a task with the command that asks for it again."""
    if error.task_id is not None and error.hint:
        error.hint = f"{_wait(target, server, error.task_id)} asks for it again"
    return error


def _resume(target: ServerTarget, server: str | None, task_id: str) -> str:
    return f"The task goes on. Its result: {_wait(target, server, task_id)}"


def _wait(target: ServerTarget, server: str | None, task_id: str) -> str:
    """Return the command that waits for a task; it can be pasted, whatever the id is."""
    words = [server, task_id] if server is not None else [task_id]
    return f"holdfast tasks wait {shlex.join(words)} {target.reach()}".rstrip()
