"""call --detach and tasks: a task is left, asked for and ended from other processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast._core.eras.revisions import HANDSHAKE, MISSING_CAPABILITY, STATELESS, TASKS
from holdfast._core.server.request import ServerRequest
from holdfast.testing import RequestError
from tests.cli.conftest import Cli
from tests.cli.rig import puppet, told, wait_for
from tests.cli.shop import Shop
from tests.cli.terminal import PATIENCE, interruptible

pytestmark = pytest.mark.req("K1")


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop() as found:
        yield found


def test_a_task_is_detached_and_waited_for(cli: Cli, shop: Shop) -> None:
    done = cli("call", "build", "target=all", "--detach", "--url", shop.url)
    task_id = done.out.strip()
    assert done.code == 0
    assert f"holdfast tasks wait {task_id} --url {shop.url}" in done.err
    assert "working" in cli("tasks", "get", task_id, "--url", shop.url).out
    shop.release.set()
    done = cli("tasks", "wait", task_id, "--url", shop.url)
    assert (done.code, done.out) == (0, "built all\n")
    found = cli("tasks", "get", task_id, "--url", shop.url, "--json").value
    assert found["tasks"][0]["status"] == "completed"
    cut = cli("tasks", "wait", task_id, "--budget", "4", "--url", shop.url).out
    assert "of 9 characters left out here; the rest: " in cut
    assert shop.runs == 1


def test_a_task_is_cancelled(cli: Cli, shop: Shop) -> None:
    task_id = cli("call", "build", "target=all", "--detach", "--json", "--url", shop.url).value
    done = cli("tasks", "cancel", task_id["taskId"], "--url", shop.url)
    assert (done.code, "asked to cancel" in done.err) == (0, True)
    done = cli("tasks", "wait", task_id["taskId"], "--url", shop.url)
    assert done.code != 0
    assert "was cancelled" in done.err


def test_a_call_as_a_task_shows_its_result(cli: Cli, shop: Shop) -> None:
    shop.release.set()
    done = cli("call", "build", "target=all", "--as-task", "--url", shop.url)
    assert (done.code, done.out) == (0, "built all\n")
    assert [one for one in shop.peer.received if one.method == "tasks/get"]


def test_a_task_that_the_server_does_not_know_is_an_error(cli: Cli, shop: Shop) -> None:
    done = cli("tasks", "wait", "no-such-task", "--url", shop.url)
    assert done.code != 0
    assert "Task not found" in done.err


def test_the_error_of_a_task_says_how_to_ask_for_it_again(cli: Cli, shop: Shop) -> None:
    task_id = cli("call", "build", "target=all", "--detach", "--url", shop.url).out.strip()
    done = cli("tasks", "wait", task_id, "--total", "0.2", "--url", shop.url)
    assert done.code == 4
    assert f"holdfast tasks wait {task_id} --url {shop.url} asks for it again" in done.err
    assert "client." not in done.err


def test_a_task_is_looked_at_in_the_core_form(cli: Cli) -> None:
    with Shop((HANDSHAKE[0],)) as shop:
        task_id = cli("call", "build", "target=all", "--detach", "--url", shop.url).out.strip()
        assert task_id in cli("tasks", "get", task_id, "--url", shop.url).out
        shop.release.set()
        assert cli("tasks", "wait", task_id, "--url", shop.url).out == "built all\n"


CALLER = """
import asyncio, sys, holdfast

async def main():
    client = holdfast.connect(sys.argv[1])
    note = lambda task: print(task.task_id, flush=True)
    await client.call_tool("build", {"target": "all"}, task=True, on_task=note)

asyncio.run(main())
"""


@pytest.mark.parametrize("versions", [STATELESS, HANDSHAKE[:1]])
async def test_a_killed_caller_loses_nothing(versions: tuple[str, ...]) -> None:
    with Shop(versions) as shop:
        caller = subprocess.Popen(
            [sys.executable, "-c", CALLER, shop.url], stdout=subprocess.PIPE, text=True
        )
        assert caller.stdout is not None
        task_id = caller.stdout.readline().strip()
        caller.send_signal(signal.SIGKILL)
        caller.communicate()
        shop.release.set()
        async with holdfast.connect(shop.url) as client:
            assert (await client.resume_task(task_id)).text == "built all"
            assert (await client.resume_task(task_id)).text == "built all"
        assert shop.runs == 1


@pytest.mark.parametrize(("support", "option"), [("optional", ["--as-task"]), ("required", [])])
def test_ctrl_c_leaves_the_task_and_says_how_to_go_on(
    cli: Cli, support: str, option: list[str]
) -> None:
    with Shop(support=support) as shop:
        interrupt(shop, cli, option)


def test_ctrl_c_leaves_a_task_that_the_server_insisted_on(cli: Cli) -> None:
    """In the extension no tool says that it must be a task: a plain call is refused."""
    with Shop(STATELESS) as shop:
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        make = shop.peer._server.handlers["tools/call"]

        def insist(incoming: ServerRequest) -> Any:
            if not incoming.era.takes_task(incoming.params):
                raise RequestError(MISSING_CAPABILITY, "a task is needed", needed)
            return make(incoming)

        shop.peer.on("tools/call", insist)
        interrupt(shop, cli, [])


def interrupt(shop: Shop, cli: Cli, option: list[str]) -> None:
    words = ["call", "build", "target=all", *option, "--url", shop.url]
    task_id = interrupted(shop, words)
    shop.release.set()
    assert cli("tasks", "wait", task_id, "--url", shop.url).out == "built all\n"
    assert not received(shop, "tasks/cancel")


def interrupted(shop: Shop, words: list[str]) -> str:
    """The task of a command that Ctrl-C ended while it asked for the task's state."""
    count = len(received(shop, "tasks/get"))
    caller = subprocess.Popen(
        interruptible([sys.executable, "-m", "holdfast", *words]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while len(received(shop, "tasks/get")) == count:
        assert caller.poll() is None
    caller.send_signal(signal.SIGINT)
    _, stderr = caller.communicate()
    assert caller.returncode == 130
    assert "The task goes on. Its result: holdfast tasks wait " in stderr
    return stderr.partition("holdfast tasks wait ")[2].split()[0]


def received(shop: Shop, method: str) -> list[Any]:
    return [message for message in shop.peer.received if message.method == method]


@pytest.mark.parametrize("versions", [STATELESS, HANDSHAKE[:1]])
def test_ctrl_c_at_a_wait_leaves_the_task(cli: Cli, versions: tuple[str, ...]) -> None:
    with Shop(versions) as shop:
        words = ["--url", shop.url]
        task_id = cli("call", "build", "target=all", "--detach", *words).out.strip()
        assert interrupted(shop, ["tasks", "wait", task_id, *words]) == task_id
        assert not received(shop, "tasks/cancel")
        assert "working" in cli("tasks", "get", task_id, *words).out
        shop.release.set()
        assert cli("tasks", "wait", task_id, *words).out == "built all\n"
        assert shop.runs == 1


def test_ctrl_c_cancels_a_call_that_is_no_task(home: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    words = ["call", "echo", "--", *puppet(held=["echo"], journal=str(journal))]
    command = interruptible([sys.executable, "-m", "holdfast", *words])
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as caller:
        wait_for(journal, "tools/call")
        caller.send_signal(signal.SIGINT)
        assert caller.wait(PATIENCE) == 130
    assert told(journal, "notifications/cancelled")
