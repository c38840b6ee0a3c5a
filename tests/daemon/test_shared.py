"""The transport through the daemon: the contract, the choice, and what the daemon says."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast._core.boundary import Lost, Starting, Transport
from holdfast._core.transports import daemon_socket
from holdfast._core.transports.daemon_link import ServerLoss, marked_line
from holdfast._core.transports.daemon_socket import Hello, require_private, socket_path
from holdfast._core.transports.shared import Shared, project_of
from holdfast._core.transports.stdio import Stdio
from holdfast.daemon import life
from holdfast.errors import HandshakeTimeout, Hint, ShutdownError, TransportError, ValidationError
from holdfast.testing.contract import Probe, TransportContract
from tests.daemon.rig import listen, scripted, welcome
from tests.rows import rows

ECHO = [sys.executable, "-m", "holdfast.testing.echo_server"]
PEER = [sys.executable, "-m", "holdfast.demo.server"]


@pytest.mark.req("Y4", "V2")
class TestContract(TransportContract):
    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Transport]:
        async with scripted():
            yield Shared(Stdio(ECHO))


@pytest.mark.req("Y4", "V2")
class TestContractWithoutDaemon(TransportContract):
    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Transport]:
        shared = Shared(Stdio(ECHO, inherit_env=["PYTHONPATH"]))
        shared.fell_back = lambda sentence, is_absent: None
        yield shared


async def reports_of(shared: Shared, done: type) -> list[Any]:
    """What a link reports, until there is a report of some kind."""
    probe = Probe()
    link = probe.link = shared.open(TransportContract.generation, holdfast.Limits(), probe.report)
    await probe.until(lambda: probe.seen(done))
    link.close()
    return probe.reports


class Fallbacks:
    """The sentences of a transport that used its own server."""

    def __init__(self, shared: Shared) -> None:
        self.sentences: list[str] = []
        self.absent: list[bool] = []
        shared.fell_back = self.add

    def add(self, sentence: str, is_absent: bool) -> None:
        self.sentences.append(sentence)
        self.absent.append(is_absent)


async def fallback(seconds: str | None = None) -> Fallbacks:
    """What is said of a call that was made by a server of our own."""
    client = holdfast.connect(PEER, shared=True)
    fallbacks = Fallbacks(client.transport)
    if seconds is not None:
        os.environ[daemon_socket.VARIABLE] = seconds
    async with client:
        await client.call_tool("add", {"a": 1, "b": 2})
        assert client.transport.daemon is None
    return fallbacks


# The choice


@pytest.mark.req("Y4")
async def test_without_a_daemon_the_server_is_our_own() -> None:
    fallbacks = await fallback()
    assert fallbacks.absent == [True]
    assert fallbacks.sentences[0].endswith("a server of its own is started: no daemon runs")


@pytest.mark.req("Y4")
async def test_it_is_logged_when_nobody_else_wants_to_know(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "holdfast")
    async with holdfast.connect(PEER, shared=True) as client:
        await client.list_tools()
    monkeypatch.setenv(daemon_socket.VARIABLE, "0.05")
    with listen():
        async with holdfast.connect(PEER, shared=True) as client:
            await client.list_tools()
    levels = [record.levelno for record in caplog.records if "not shared" in record.message]
    assert levels == [logging.INFO, logging.WARNING]


@pytest.mark.req("Y4")
async def test_a_stale_socket_is_no_daemon() -> None:
    listen().close()  # as one leaves it that is killed
    assert os.path.exists(socket_path())
    assert (await fallback()).absent == [True]
    assert os.path.exists(socket_path()), "it is not ours to remove"


@pytest.mark.req("Y4")
async def test_a_daemon_that_hangs_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(daemon_socket.VARIABLE, "0.05")
    with listen():
        fallbacks = await fallback()
    assert fallbacks.sentences[0].endswith(
        f"the daemon (pid {os.getpid()}) did not answer within 0.05 s"
    )
    assert fallbacks.absent == [False]


@pytest.mark.req("Y4")
async def test_a_daemon_of_another_version_is_not_used() -> None:
    async def other(connection: socket.socket, hello: Hello) -> None:
        connection.sendall(welcome(holdfast="0123", version="9.9"))

    async with scripted(other):
        fallbacks = await fallback()
    text = f"the daemon (pid {os.getpid()}) runs holdfast 9.9: start it anew"
    assert fallbacks.sentences[0].endswith(text)


@pytest.mark.req("Y4")
@pytest.mark.parametrize("answer", [b"hello\n", b"{}\n", b"[" * 5000 + b"\n", b"\n"])
async def test_what_is_no_daemon_is_not_used(answer: bytes) -> None:
    async def odd(connection: socket.socket, hello: Hello) -> None:
        connection.sendall(answer)

    async with scripted(odd):
        fallbacks = await fallback()
    assert f"the daemon's socket cannot be used: {socket_path()}: " in fallbacks.sentences[0]


@pytest.mark.req("Y4")
@pytest.mark.parametrize("answer", [b"", b"{"])
async def test_one_that_hangs_up_has_ended(answer: bytes) -> None:
    async def ends(connection: socket.socket, hello: Hello) -> None:
        connection.sendall(answer)

    async with scripted(ends):
        fallbacks = await fallback()
        assert await life.ask("status") is None
    assert fallbacks.sentences[0].endswith("the daemon has just ended")


@pytest.mark.req("Y4")
async def test_what_the_system_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection's error has no file's name in it."""
    require_private(os.path.dirname(socket_path()), create=True)
    os.symlink("daemon.sock", socket_path())
    fallbacks = await fallback()
    place = f"{socket_path()}: Too many levels of symbolic links"
    assert fallbacks.sentences[0].endswith(place)


@pytest.mark.req("Y4")
async def test_a_refusal_is_said() -> None:
    async def refuse(connection: socket.socket, hello: Hello) -> None:
        connection.sendall(welcome(refused="it is stopping"))

    async with scripted(refuse):
        fallbacks = await fallback()
    assert fallbacks.sentences[0].endswith("refused: it is stopping")


@pytest.mark.req("Y4")
async def test_nothing_is_told_to_another_users_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_socket, "peer", lambda connection: (os.geteuid() + 1, 1))
    async with scripted() as heard:
        fallbacks = await fallback()
    assert "another user's process listens at" in fallbacks.sentences[0]
    assert heard == []


@pytest.mark.req("Y4")
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
async def test_a_folder_that_others_may_enter_is_not_used(mode: int) -> None:
    async with scripted() as heard:
        os.chmod(os.path.dirname(socket_path()), mode)
        fallbacks = await fallback()
        os.chmod(os.path.dirname(socket_path()), 0o700)
    assert "is open to other users; not used" in fallbacks.sentences[0]
    assert heard == []


@pytest.mark.req("Y4")
async def test_a_link_in_place_of_the_folder_is_not_used(tmp_path: Path) -> None:
    folder = os.path.dirname(socket_path())
    async with scripted() as heard:
        os.rename(folder, tmp_path / "elsewhere")
        os.symlink(tmp_path / "elsewhere", folder)
        fallbacks = await fallback()
    assert "is not a folder" in fallbacks.sentences[0]
    assert heard == []


@pytest.mark.req("Y4")
async def test_variables_that_are_no_text_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", os.fsdecode(b"C\xff"))
    async with scripted() as heard:
        fallbacks = await fallback()
    assert "bytes in it that are no text" in fallbacks.sentences[0]
    assert heard == []


@pytest.mark.req("Y4")
async def test_a_program_that_is_missing_is_missing_without_a_daemon_too() -> None:
    client = holdfast.connect(["no-such-program-here"], shared=True)
    Fallbacks(client.transport)
    async with client:
        with pytest.raises(TransportError, match="command not found"):
            await client.open()


@pytest.mark.req("Y4")
async def test_a_client_can_be_closed_while_the_daemon_hangs() -> None:
    with listen():
        client = holdfast.connect(PEER, shared=True)
        fallbacks = Fallbacks(client.transport)
        opening = asyncio.create_task(client.open())
        await asyncio.sleep(0)  # which begins it
        assert await client.close()
        with pytest.raises(ShutdownError):
            await opening
    assert fallbacks.sentences == []


# What the daemon is told


@pytest.mark.req("Y4")
async def test_the_daemon_is_told_what_the_server_would_be_started_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "project" / "src")
    monkeypatch.setenv("NAMED", "by name")
    monkeypatch.setenv("UNNAMED", "never")
    stdio = Stdio(["server", "-x"], env={"TOKEN": "t"}, inherit_env=["NAMED"], cwd="below", grace=3)
    async with scripted() as heard:
        shared = Shared(stdio)
        shared.capabilities = lambda: {"roots": {}}
        await reports_of(shared, holdfast._core.boundary.Opened)
    (hello,) = heard
    assert hello.definition is not None
    assert hello.definition.command == ("server", "-x")
    assert hello.definition.cwd == str(tmp_path / "project" / "src" / "below")
    assert hello.definition.project == str(tmp_path / "project")
    assert hello.definition.environ == stdio.environment()
    assert hello.definition.environ["NAMED"] == "by name"
    assert hello.definition.environ["TOKEN"] == "t"
    assert "UNNAMED" not in hello.definition.environ
    assert hello.definition.grace == 3
    assert hello.capabilities == {"roots": {}}
    assert not hello.stderr
    assert "t" not in repr(hello.definition).removeprefix("<Definition")


def test_a_folder_without_a_repository_is_a_project_of_its_own(tmp_path: Path) -> None:
    assert project_of(str(tmp_path)) == str(tmp_path)


@pytest.mark.req("Y4")
def test_a_repository_of_the_home_folder_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its settings are kept there: two folders below it are two projects still."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (".git", "one", "two/.git", "two/src"):
        (tmp_path / name).mkdir(parents=True)
    assert project_of(str(tmp_path / "one")) == str(tmp_path / "one")
    assert project_of(str(tmp_path / "two" / "src")) == str(tmp_path / "two")


# What the daemon says


@pytest.mark.req("Y4", "R3")
async def test_how_the_server_ended_is_passed_on() -> None:
    hint = Hint("env.PATH", "is '/bin'")
    error = TransportError("it exited", exit_code=7, stderr_tail="at the end", hints=(hint,))

    async def lose(connection: socket.socket, hello: Hello) -> None:
        connection.sendall(welcome() + b"!ready\n" + marked_line("lost", ServerLoss.of(error)))

    async with scripted(lose):
        reports = await reports_of(Shared(Stdio(ECHO)), Lost)
    lost = next(report.error for report in reports if isinstance(report, Lost))
    assert type(lost) is TransportError
    assert (lost.message, lost.exit_code) == ("it exited", 7)
    assert (lost.stderr_tail, lost.hints) == ("at the end", (hint,))


def test_an_error_is_of_the_same_type_on_the_other_side() -> None:
    assert type(ServerLoss.of(HandshakeTimeout("late")).error()) is HandshakeTimeout
    assert type(ServerLoss(type="SystemExit", message="").error()) is TransportError
    assert type(ServerLoss(type="Hint", message="").error()) is TransportError


@pytest.mark.req("Y4")
async def test_a_start_that_takes_long_is_passed_on() -> None:
    async def start(connection: socket.socket, hello: Hello) -> None:
        line = b'!starting {"elapsed":1.5,"again":1,"busy":true}\n'
        connection.sendall(welcome() + line + b"!ready\n")

    async with scripted(start):
        reports = await reports_of(Shared(Stdio(ECHO)), Lost)
    assert reports[0] == Starting(TransportContract.generation, 1.5, 1, True)


@pytest.mark.req("Y4")
@pytest.mark.parametrize("line", [b"!what\n", b"!lost\n", b"!starting {}\n", b"!stderr 7\n"])
async def test_a_line_that_is_not_understood_ends_the_link(line: bytes) -> None:
    async def odd(connection: socket.socket, hello: Hello) -> None:
        connection.sendall(welcome() + line)

    async with scripted(odd):
        reports = await reports_of(Shared(Stdio(ECHO)), Lost)
    lost = next(report.error for report in reports if isinstance(report, Lost))
    assert "is not understood" in lost.message


@pytest.mark.req("Y4")
async def test_messages_before_and_behind_a_line_of_the_daemon_arrive() -> None:
    async def mix(connection: socket.socket, hello: Hello) -> None:
        lines = [b"!ready", b'{"n":1}', b'!stderr "x"', b'{"n":2}', b'{"n":"\\n!lost"}', b""]
        connection.sendall(welcome() + b"\n".join(lines))

    lines: list[str] = []
    async with scripted(mix) as heard:
        reports = await reports_of(Shared(Stdio(ECHO, stderr=lines.append)), Lost)
    data = b"".join(getattr(report, "data", b"") for report in reports)
    assert data == b'{"n":1}\n{"n":2}\n{"n":"\\n!lost"}\n'
    assert lines == ["x"]
    assert heard[0].stderr


# Where it is


@pytest.mark.req("Y4")
def test_the_socket_is_in_the_runtime_folder(runtime: Path) -> None:
    assert socket_path() == str(runtime / "holdfast" / "daemon.sock")


@pytest.mark.req("Y4")
def test_a_path_too_long_for_a_socket_is_replaced(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    path = socket_path({"XDG_RUNTIME_DIR": str(deep)})
    assert path.startswith(f"/tmp/holdfast-{os.geteuid()}-")
    assert path == socket_path({"XDG_RUNTIME_DIR": str(deep)})
    other = tmp_path / ("e" * 100)
    other.mkdir()
    assert path != socket_path({"XDG_RUNTIME_DIR": str(other)})
    assert len(path) < daemon_socket.LONGEST_PATH


@pytest.mark.req("Y4")
@rows("folder", [None, "", "relative", "/proc/1/nowhere", "/\0"])
def test_without_a_runtime_folder_it_is_in_the_state_folder(folder: str | None) -> None:
    environ = {"XDG_STATE_HOME": "/s"} | ({} if folder is None else {"XDG_RUNTIME_DIR": folder})
    usual = f"/run/user/{os.geteuid()}"
    expected = usual if os.path.isdir(usual) else "/s/holdfast/run"
    assert socket_path(environ) == f"{expected}/holdfast/daemon.sock"


@pytest.mark.req("Y4")
def test_the_user_at_the_other_end_is_told_by_the_system() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert daemon_socket.peer(ours) == (os.geteuid(), os.getpid())
        assert daemon_socket.is_ours(theirs)


# Its place among the options


@pytest.mark.req("Y4")
@pytest.mark.parametrize("value", ["yes", 1, "auto"])
def test_shared_is_true_or_false(value: Any) -> None:
    with pytest.raises(ValidationError, match=r"shared=.*must be True or False"):
        holdfast.connect(PEER, shared=value)


@pytest.mark.req("Y4")
def test_a_server_behind_a_url_is_reached_as_ever() -> None:
    client = holdfast.connect("https://example.org/mcp", shared=True)
    assert isinstance(client.transport, holdfast.Http)


@pytest.mark.req("Y4")
def test_what_is_known_of_a_server_is_the_same() -> None:
    direct, shared = holdfast.connect(PEER), holdfast.connect(PEER, shared=True)
    assert shared.name == direct.name
    assert shared.transport.command == direct.transport.command
    assert shared.transport.key == direct.transport.key
    assert not hasattr(shared.transport, "_nothing")


@pytest.mark.req("Y4")
def test_loading_the_library_does_not_load_any_of_it() -> None:
    code = (
        "import sys, holdfast; holdfast.connect(['x']); "
        "print([n for n in sys.modules if 'shared' in n or 'daemon' in n])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_credentials_of_macos_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Connection:
        def getsockopt(self, level: int, name: int, size: int) -> bytes:
            assert level == 0
            answers = {1: struct.pack("Iih", 0, 501, 1).ljust(size, b"\0"), 2: struct.pack("i", 42)}
            return answers[name]

    monkeypatch.setattr(sys, "platform", "darwin")
    assert daemon_socket.peer(Connection()) == (501, 42)  # type: ignore[arg-type]
