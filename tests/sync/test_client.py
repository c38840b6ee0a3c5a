"""The synchronous client: the same verbs, over real servers, threads, signals and forks."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Handlers, StateError, ToolResult, ValidationError
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast.errors import CancelledCallError
from holdfast.sync import Client, RunningCall, Servers, connect
from holdfast.sync.portal import Portal
from holdfast.testing import SILENCE, Peer
from tests.rows import rows

DEMO = [sys.executable, "-m", "holdfast.demo.server"]


def script(text: str, *arguments: str) -> subprocess.Popen[str]:
    # A fork beside a thread is warned of by newer Pythons, and is what some of these are about.
    command = [
        sys.executable,
        "-W",
        "ignore:This process:DeprecationWarning",
        "-c",
        text,
        *arguments,
    ]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# The same verbs


def public(kind: type) -> dict[str, Any]:
    return {name: one for name, one in vars(kind).items() if not name.startswith("_")}


@pytest.mark.req("F2")
def test_it_has_the_verbs_of_the_asynchronous_client_and_no_others() -> None:
    assert list(public(Client)) == list(public(holdfast.Client))


@pytest.mark.req("F2")
@rows("name", list(public(holdfast.Client)))
def test_a_verb_has_the_same_signature_and_the_same_words(name: str) -> None:
    ours, theirs = vars(Client)[name], vars(holdfast.Client)[name]
    assert type(ours) is type(theirs)
    if isinstance(ours, property):
        ours, theirs = ours.fget, theirs.fget
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert inspect.getdoc(ours) == inspect.getdoc(theirs)
    assert not inspect.iscoroutinefunction(ours)


@pytest.mark.req("F2")
def test_connect_has_the_same_parameters() -> None:
    ours, theirs = inspect.signature(connect), inspect.signature(holdfast.connect)
    assert ours.parameters == theirs.parameters


@pytest.mark.req("F2")
def test_handlers_of_a_wrong_type_are_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="handlers=5"):
        connect(DEMO, handlers=5)  # type: ignore[arg-type]
    with Servers({"demo": DEMO}, handlers=5) as servers:
        assert "handlers=5" in str(servers.list_tools().failures[0])


@pytest.mark.parametrize("verb", ["on_log", "on_notification"])
def test_a_handler_that_is_no_function_is_refused(verb: str) -> None:
    with connect(Peer()) as client:
        add: Any = getattr(client, verb)
        with pytest.raises(ValidationError, match="handler='x': must be a function"):
            add("x")
        with pytest.raises(ValidationError, match="handler=None: must be a function"):
            add(handler=None)
        with pytest.raises(TypeError, match="'handler'"):
            add()


# Used


@pytest.mark.req("F2")
def test_a_script_calls_a_tool() -> None:
    with connect(DEMO) as client:
        assert client.call_tool("add", {"a": 2, "b": 3}).structured == {"sum": 5}
        assert client.is_connected
        assert "echo" in [tool.name for tool in client.list_tools()]
    assert client.state == "closed"


@pytest.mark.req("F2")
def test_closing_twice_says_who_closed() -> None:
    client = connect(DEMO).open()
    assert client.close()
    assert not client.close()


@pytest.mark.req("F2")
async def test_it_works_where_a_loop_is_running() -> None:
    assert asyncio.get_running_loop().is_running()
    with connect(DEMO) as client:
        assert client.call_tool("echo", {"text": "hello"}).text == "hello"


@pytest.mark.req("F2")
def test_threads_share_one_client() -> None:
    with connect(DEMO) as client, ThreadPoolExecutor(8) as pool:

        def add(number: int) -> Any:
            return client.call_tool("add", {"a": number, "b": 1}).structured["sum"]

        assert list(pool.map(add, range(100))) == list(range(1, 101))


@pytest.mark.req("F2")
def test_all_clients_share_one_thread() -> None:
    with connect(DEMO) as one, connect(DEMO) as other:
        one.ping()
        other.ping()
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("holdfast-sync") == 1


@pytest.mark.req("F2")
def test_errors_are_those_of_the_asynchronous_client() -> None:
    with connect("no-such-command-anywhere") as client:
        with pytest.raises(holdfast.TransportError, match="no-such-command-anywhere"):
            client.ping()


@pytest.mark.req("F2")
def test_a_closed_client_refuses() -> None:
    client = connect(DEMO)
    client.close()
    with pytest.raises(holdfast.HoldfastError):
        client.ping()


def test_progress_is_heard_before_the_result() -> None:
    heard: list[float] = []
    with connect(DEMO) as client:

        def hear(one: holdfast.Progress) -> None:
            heard.append(one.progress)

        client.call_tool("countdown", {"steps": 3}, on_progress=hear)
        assert heard == [1, 2, 3]


def test_a_handler_may_block_and_call_the_client() -> None:
    answers: list[str] = []

    def ask(request: Any) -> dict[str, Any]:
        answers.append(client.call_tool("echo", {"text": "from a handler"}).text)
        return {"action": "accept", "content": {"name": "Ada"}}

    with connect(DEMO, handlers=Handlers(elicitation=ask)) as client:
        assert "Ada" in client.call_tool("ask_name").text
    assert answers == ["from a handler"]


@pytest.mark.req("N3")
@pytest.mark.parametrize("protocol", [STATELESS[0], HANDSHAKE[0]])
def test_callbacks_run_in_the_context_of_their_call(protocol: str) -> None:
    cell: ContextVar[str] = ContextVar("cell", default="none")
    heard: list[str] = []

    def ask(_: Any) -> dict[str, Any]:
        heard.append(cell.get())
        return {"action": "accept", "content": {"name": "Ada"}}

    def hear(_: holdfast.Progress) -> None:
        heard.append(cell.get())

    with connect(DEMO, handlers=Handlers(elicitation=ask), protocol=protocol) as client:
        for number in ("one", "two"):
            cell.set(number)
            client.call_tool("ask_name")
            client.call_tool("countdown", {"steps": 1}, on_progress=hear)
    assert heard == ["one", "one", "two", "two"]


def test_a_notification_handler_may_call_the_client() -> None:
    peer = Peer()

    @peer.tool()
    def change() -> str:
        peer.notify("notifications/tools/list_changed")
        return "changed"

    heard: list[int] = []
    done = threading.Event()
    with connect(peer) as client:

        def on_change(_: holdfast.calls.Notification) -> None:
            heard.append(len(client.list_tools()))
            done.set()

        client.on_notification(on_change, "notifications/tools/list_changed")
        client.call_tool("change")
        assert done.wait(120)
    assert heard == [1]


@pytest.mark.parametrize("own", [True, False])
def test_a_notification_handler_of_many_servers_may_call_them(own: bool) -> None:
    peer = Peer()

    @peer.tool()
    def change() -> str:
        peer.notify("notifications/tools/list_changed")
        return "changed"

    heard: list[int] = []
    done = threading.Event()

    def on_change(_: holdfast.calls.Notification) -> None:
        try:
            heard.append(len(servers["one"].list_tools()))
        finally:
            done.set()

    options: dict[str, Any] = {"handlers": Handlers(notification=on_change)}
    one, shared = ({"target": peer, **options}, {}) if own else (peer, options)
    with Servers({"one": one}, **shared) as servers:
        servers.call_tool("one.change")
        assert done.wait(120)
    assert heard == [1]


def test_calling_from_the_loops_own_thread_is_refused_and_does_not_hang() -> None:
    raised: list[BaseException] = []

    def on_progress(_: holdfast.Progress) -> None:
        try:
            client.ping()
        except StateError as error:
            raised.append(error)

    with connect(DEMO) as client:
        client.call_tool("countdown", {"steps": 1}, on_progress=on_progress)
    assert "thread of your own" in str(raised[0])


# Calls under way


def test_a_running_call_is_waited_for() -> None:
    with connect(DEMO) as client:
        running: RunningCall[ToolResult] = client.start_tool("echo", {"text": "later"})
        assert running.result().text == "later"
        assert running.done


def test_a_running_call_outlives_a_wait_and_can_be_cancelled() -> None:
    with connect(DEMO) as client:
        running: Any = client.start_tool("sleep", {"seconds": 600})
        with pytest.raises(TimeoutError):
            running.result(timeout=0.01)
        assert not running.done
        assert running.cancel()
        with pytest.raises(CancelledCallError):
            running.result()
        assert not running.cancel()
        assert "RunningCall" in repr(running)


# Ctrl-C

INTERRUPTED = """
import sys, threading, os, signal
import holdfast.sync
from holdfast.testing import SILENCE, Peer
peer = Peer()
arrived = threading.Event()
cancelled = threading.Event()
def call(incoming):
    arrived.set()
    return SILENCE
def cancel(incoming):
    cancelled.set()
    return SILENCE
peer.on("tools/call", call)
peer.on("notifications/cancelled", cancel)
def interrupt():
    arrived.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
client = holdfast.sync.connect(peer)
try:
    client.call_tool("anything")
except KeyboardInterrupt:
    print("interrupted", cancelled.wait(120), client.state)
"""


@pytest.mark.req("F2")
def test_ctrl_c_ends_the_call_at_once_and_cancels_it_on_the_server() -> None:
    with script(INTERRUPTED) as process:
        output, errors = process.communicate()
    assert output.split() == ["interrupted", "True", "ready"]
    assert errors == ""


@pytest.mark.req("F2")
@pytest.mark.parametrize("sent", [True, False], ids=["after", "before"])
def test_an_interrupt_between_two_steps_loses_nothing(
    sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt comes just as the call is handed to the loop: it runs, or it does not."""
    peer = Peer()
    cancelled = threading.Event()
    peer.on("tools/call", lambda _: SILENCE)

    def cancel(_: object) -> Any:
        cancelled.set()
        return SILENCE

    peer.on("notifications/cancelled", cancel)
    with connect(peer) as client:
        client.ping()
        loop = client._portal._loop
        hand_over = loop.call_soon_threadsafe

        def interrupted(*arguments: Any, **options: Any) -> None:
            monkeypatch.undo()
            if sent:
                hand_over(*arguments, **options)
            raise KeyboardInterrupt

        monkeypatch.setattr(loop, "call_soon_threadsafe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.call_tool("anything")
        client.ping()
        called = [one.method for one in peer.received].count("tools/call")
        assert called == 0 or cancelled.wait(120)
        assert called in (0, int(sent))


# The end of the program


@pytest.mark.req("F2")
def test_a_program_that_forgets_to_close_ends_quietly_and_leaves_nothing() -> None:
    text = """
import sys, holdfast.sync
client = holdfast.sync.connect(sys.argv[1:])
client.call_tool("note", {"name": "x", "text": "y"})
print("done")
"""
    mark = f"mark-{os.getpid()}-{id(text)}"
    server = (
        "import runpy, sys; sys.argv.pop(); "
        "runpy.run_module('holdfast.demo.server', run_name='__main__', alter_sys=True)"
    )
    with script(text, sys.executable, "-c", server, mark) as process:
        output, errors = process.communicate()
    assert process.returncode == 0
    assert (output, errors) == ("done\n", "")
    assert not _processes_with(mark)


@pytest.mark.req("F2")
def test_ctrl_c_at_the_end_of_a_program_is_no_trap() -> None:
    text = """
import os, signal, sys, holdfast.sync
client = holdfast.sync.connect(sys.argv[1:])
client.ping()
os.kill(os.getpid(), signal.SIGINT)
"""
    with script(text, *DEMO) as process:
        _, errors = process.communicate()
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in errors


def _processes_with(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in entry.read_bytes():
                found.append(entry.parent.name)
        except OSError:
            continue
    return found


# Forks

FORKED = """
import os, sys, holdfast.sync
from holdfast import StateError
client = holdfast.sync.connect(sys.argv[1:])
client.ping()
child = os.fork()
if child == 0:
    try:
        client.ping()
    except StateError as error:
        print("child:", "forked" in str(error), flush=True)
    with holdfast.sync.connect(sys.argv[1:]) as own:
        print("own:", own.call_tool("echo", {"text": "fine"}).text, flush=True)
    sys.exit(0)
os.waitpid(child, 0)
print("parent:", client.call_tool("echo", {"text": "still here"}).text)
"""


@pytest.mark.req("F2")
def test_a_forks_child_is_told_and_can_make_its_own() -> None:
    with script(FORKED, *DEMO) as process:
        output, errors = process.communicate()
    assert output.splitlines() == ["child: True", "own: fine", "parent: still here"]
    assert process.returncode == 0, errors


@pytest.mark.req("F2")
def test_a_forks_child_leaves_its_parents_with_in_peace() -> None:
    text = """
import os, sys, holdfast.sync
from holdfast.handles import SyncHandle
with holdfast.sync.connect(sys.argv[1:]) as client, SyncHandle(sys.argv[1:]) as mcp:
    client.ping()
    child = os.fork()
    if child == 0:
        print("child:", client.close(), mcp.close(), flush=True)
        sys.exit(7)
    print("child ended with", os.waitpid(child, 0)[1] >> 8)
    client.ping()
    mcp.call("echo", {"text": "still here"})
"""
    with script(text, *DEMO) as process:
        output, errors = process.communicate()
    assert output.splitlines() == ["child: False False", "child ended with 7"], errors
    assert (process.returncode, errors) == (0, "")


def test_the_peer_hears_a_sync_client_like_any_other() -> None:
    peer = Peer()
    peer.on("tools/call", lambda incoming: SILENCE)
    with connect(peer, timeouts=holdfast.Timeouts(request=0.05)) as client:
        with pytest.raises(holdfast.RequestTimeout):
            client.call_tool("anything")


@pytest.mark.req("F2")
def test_an_end_that_fails_with_the_program_is_logged_and_the_others_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended = []

    class Closable:
        def __init__(self, fails: bool) -> None:
            self.fails = fails

        async def close(self) -> None:
            if self.fails:
                raise OSError("it did not end")
            ended.append(self)

    loop = Portal()
    closables = [Closable(True), Closable(False), Closable(True)]
    loop.closables.update(closables)
    loop.stop()
    assert len(ended) == 1
    assert caplog.text.count("it did not end") == 2
