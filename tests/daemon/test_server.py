"""The daemon with real servers: who shares what, what passes, and when things end."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import (
    Backoff,
    Handlers,
    HoldfastError,
    Limits,
    ProtocolError,
    Timeouts,
    TransportError,
)
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast._core.transports import daemon_socket
from holdfast._core.transports.daemon_socket import Definition, Hello, encode_line, socket_path
from holdfast.daemon import life
from holdfast.daemon import server as daemon_server
from holdfast.daemon.shared_server import differences, sharing_key
from holdfast.relay.sharing import RELAYED
from tests.daemon.rig import SERVER, connected, is_alive, listen, running, text, until, until_noted
from tests.skipping import skip

QUICK = {"backoff": Backoff(first=0.01, max=0.02), "when_down": "wait"}


async def gone(pid: str) -> None:
    """Wait for the end of a process."""
    await until(lambda: not is_alive(pid))


# One server for many


@pytest.mark.req("Y4")
async def test_two_clients_act_on_one_server() -> None:
    async with running() as daemon:
        async with connected() as first, connected() as second:
            assert await text(first, "page_note", text="a") == "a"
            assert await text(second, "page_note", text="b") == "a b"
            assert await text(first, "pid") == await text(second, "pid")
            assert first.transport.daemon == os.getpid()
            assert daemon.status()["clients"] == 2
        async with connected() as later:
            assert await text(later, "notes") == "a b"
        assert [server["clients"] for server in daemon.status()["servers"]] == [0]


@pytest.mark.req("Y4")
async def test_many_clients_at_once_start_one_server() -> None:
    async def pid() -> str:
        async with connected() as client:
            return await text(client, "pid")

    async with running() as daemon:
        assert len(set(await asyncio.gather(*(pid() for _ in range(20))))) == 1
        assert len(daemon.status()["servers"]) == 1


@pytest.mark.req("Y4")
@pytest.mark.parametrize(
    "other",
    [
        {"env": {"TOKEN": "two"}},
        {"env": {"TOKEN": "one", "MORE": "x"}},
        {"inherit_env": ["ACCOUNT"]},
        {"cwd": "/"},
        {"protocol": HANDSHAKE[1]},
        {"limits": Limits(frame_bytes=1000_000)},
    ],
    ids=str,
)
async def test_what_differs_is_not_shared(
    other: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCOUNT", "mine")
    options: dict[str, Any] = {"env": {"TOKEN": "one"}}
    async with (
        running(),
        connected(**options) as first,
        connected(**{**options, **other}) as second,
    ):
        assert await text(first, "page_note", text="a") == "a"
        assert await text(second, "notes") == ""


@pytest.mark.req("Y4")
async def test_a_relay_and_a_client_share_a_server_and_each_has_its_own_limits() -> None:
    """What is too long for one of them costs that one its link, and the other nothing."""
    async with (
        running() as daemon,
        connected() as client,
        connected(limits=Limits(**RELAYED)) as relay,
    ):
        size = Limits().frame_bytes
        assert await text(client, "page_note", text="a") == "a"
        assert len(await text(relay, "large", size=size)) == size
        with pytest.raises(ProtocolError, match="a message of more than"):
            await text(client, "large", size=size)
        assert await text(relay, "notes") == "a"
        assert len(daemon.status()["servers"]) == 1


@pytest.mark.req("Y4")
async def test_two_identities_never_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as daemon:
        pids = set()
        for account in ("ann", "bob"):
            monkeypatch.setenv("ACCOUNT", account)
            async with connected(inherit_env=["ACCOUNT"]) as client:
                assert await text(client, "env", name="ACCOUNT") == account
                pids.add(await text(client, "pid"))
        assert len(pids) == 2
        apart = [server["apart"] for server in daemon.status()["servers"]]
        assert apart == [[], ["ACCOUNT"]]


@pytest.mark.req("Y4")
async def test_two_projects_never_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running():
        pids = []
        for folder in ("one", "one/below", "two"):
            (tmp_path / folder / ".git").mkdir(parents=True) if "/" not in folder else None
            (tmp_path / folder).mkdir(exist_ok=True)
            monkeypatch.chdir(tmp_path / folder)
            async with connected(cwd="/") as client:
                pids.append(await text(client, "pid"))
        assert pids[0] == pids[1] != pids[2]


@pytest.mark.req("Y4")
async def test_a_client_that_wants_its_own_server_has_it() -> None:
    async with running() as daemon, connected() as shared:
        async with holdfast.connect(SERVER, shared=False) as own:
            assert await text(own, "pid") != await text(shared, "pid")
        assert daemon.status()["clients"] == 1


def definition(**fields: Any) -> Definition:
    whole = {"name": "n", "command": ("x",), "cwd": "/", "project": "/p", "environ": {"A": "1"}}
    return Definition(**{**whole, **fields})


@pytest.mark.req("Y4")
def test_the_key_is_made_of_all_that_a_server_sees() -> None:
    key = sharing_key(definition())
    assert key == sharing_key(definition(name="another name"))
    terminal = {"TERM": "dumb", "SHLVL": "3", "_": "/bin/x", "SSH_TTY": "/dev/pts/7"}
    assert key == sharing_key(definition(environ={"A": "1", **terminal}))
    others: list[dict[str, Any]] = [
        {"command": ("x", "y")},
        {"cwd": "/c"},
        {"project": "/q"},
        {"environ": {"A": "2"}},
        {"environ": {"A": "1", "B": ""}},
        {"environ": {"A": "1", "TMUX_PANE": "%1"}},
        {"environ": {"A": "1", "SSH_AUTH_SOCK": "/x"}},
        {"protocol": STATELESS[0]},
        {"grace": 9.0},
        {"shutdown_request": True},
        {"inherit_env": ("A",)},
        {"env": {"A": "1"}},
    ]
    keys = {sharing_key(definition(**other)) for other in others}
    assert len(keys | {key}) == len(others) + 1
    for other in others[1:]:
        assert differences(definition(), definition(**other)), other
    assert differences(definition(), definition(environ={"A": "1", **terminal}, name="b")) == []
    assert "secret-value" not in sharing_key(definition(environ={"A": "secret-value"}))


@pytest.mark.req("Y4")
async def test_the_server_has_the_environment_of_its_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LANG", "of the daemon")
    monkeypatch.setenv("LOGNAME", "of the daemon")
    async with running(), connected(cwd=str(tmp_path)) as client:
        environ = {"PATH": os.environ["PATH"], "LANG": "of the client"}
        monkeypatch.setattr(client.transport._server, "environment", lambda: environ)
        assert await text(client, "env", name="LANG") == "of the client"
        assert await text(client, "env", name="LOGNAME") == ""
        assert await text(client, "cwd") == str(tmp_path)


# What a client sees is what it sees directly


@pytest.mark.req("Y4")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_shared_server_looks_as_it_is(era: str) -> None:
    async with holdfast.connect([*SERVER, era]) as direct:
        await direct.open()
        async with running(), connected(era) as shared:
            await shared.open()
            assert shared.server_info == direct.server_info
            assert shared.protocol_version == direct.protocol_version
            assert shared.server_capabilities == direct.server_capabilities
            assert shared.instructions == direct.instructions
            assert [t.name for t in await shared.list_tools()] == [
                t.name for t in await direct.list_tools()
            ]
            if era == "handshake":
                await shared.ping()


@pytest.mark.req("Y4")
@pytest.mark.parametrize("eras", [("handshake", "stateless"), ("stateless", "handshake")])
async def test_a_server_that_comes_back_in_the_other_era_looks_as_it_is(
    eras: tuple[str, str], tmp_path: Path
) -> None:
    era = tmp_path / "era"
    era.write_text(eras[0])
    versions = {"handshake": HANDSHAKE[1], "stateless": STATELESS[0]}
    async with (
        running(),
        connected(f"@{era}", **QUICK) as client,
        connected(f"@{era}", **QUICK) as other,
    ):
        pids = [await text(client, "pid"), await text(other, "pid")]
        assert client.protocol_version == other.protocol_version == versions[eras[0]]
        era.write_text(eras[1])
        with pytest.raises(TransportError):
            await client.call_tool("die")
        pids += [await text(client, "pid"), await text(other, "pid")]
        assert client.protocol_version == other.protocol_version == versions[eras[1]]
        assert [pids[0] == pids[1], pids[2] == pids[3], pids[1] == pids[2]] == [True, True, False]


@pytest.mark.req("Y4")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_question_goes_to_the_client_whose_call_it_belongs_to(era: str) -> None:
    def answering(name: str) -> Handlers:
        return Handlers(elicitation=lambda question: {"name": name})

    async with running(), connected(era, handlers=answering("ann")) as ann:
        async with connected(era, handlers=answering("bob")) as bob:
            assert [await text(ann, "ask"), await text(bob, "ask")] == ["ann", "bob"]


@pytest.mark.req("Y4")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_progress_and_updates_arrive_where_they_are_wanted(era: str) -> None:
    updates: dict[str, list[str]] = {"first": [], "second": []}
    async with running(), connected(era) as first, connected(era) as second:
        first.on_notification(lambda news: updates["first"].append(news.method))
        second.on_notification(lambda news: updates["second"].append(news.method))
        await first.subscribe_resource("test://one")
        steps: list[float] = []
        await first.call_tool("count", on_progress=lambda progress: steps.append(progress.progress))
        assert steps == [0, 1, 2]
        await second.call_tool("update")
        await until(lambda: updates["first"])
        assert updates["first"] == ["notifications/resources/updated"]
        assert updates["second"] == []


@pytest.mark.req("Y4", "R4")
@pytest.mark.parametrize("leaves", [False, True], ids=["cancelled", "left"])
async def test_a_call_is_cancelled_at_the_server(leaves: bool) -> None:
    async with running(), connected() as watcher:
        async with connected() as caller:
            call = asyncio.create_task(caller.call_tool("wait"))
            await until_noted(watcher, "began")
            if not leaves:
                call.cancel()
        with pytest.raises((asyncio.CancelledError, HoldfastError)):
            await call
        await until_noted(watcher, "cancelled")


@pytest.mark.req("Y4")
async def test_the_stderr_of_the_server_arrives_where_it_is_wanted() -> None:
    lines: list[str] = []
    async with running(), connected(stderr=lines.append) as curious, connected() as other:
        await curious.open()
        await other.call_tool("complain", {"text": "ahoy"})
        await until(lambda: lines)
        assert lines == ["ahoy"]


@pytest.mark.req("Y4", "R3", "R5")
async def test_a_death_ends_the_calls_of_all_and_the_next_ones_work() -> None:
    async with running(), connected(**QUICK) as first, connected(**QUICK) as second:
        states: list[str] = []
        second.events.subscribe(lambda event: states.append(event.new), "connection.transition")
        before = await text(second, "pid")
        waiting = asyncio.create_task(second.call_tool("wait"))
        await until_noted(first, "began")
        for call in (first.call_tool("die"), waiting):
            with pytest.raises(TransportError, match="exited with code 3") as caught:
                await call
            assert caught.value.outcome_unknown
            assert caught.value.exit_code == 3
        assert await text(first, "pid") == await text(second, "pid") != before
        assert states == ["starting", "initializing", "ready", "backoff", *states[:3]]


@pytest.mark.req("Y4", "R3")
async def test_a_server_that_cannot_start_is_an_error_with_its_words() -> None:
    async with running() as daemon, connected(env={"BROKEN": "1"}) as client:
        with pytest.raises(TransportError) as caught:
            await client.open()
        assert caught.value.exit_code == 1
        assert "it cannot start" in caught.value.stderr_tail
        assert daemon.status()["servers"] == []


@pytest.mark.req("Y4")
async def test_a_program_that_is_not_there_is_an_error_with_its_hint() -> None:
    async with running(), holdfast.connect(["no-such-program"], shared=True) as client:
        with pytest.raises(TransportError, match="command not found: 'no-such-program'") as caught:
            await client.open()
        assert any(hint.option == "env.PATH" for hint in caught.value.hints)


@pytest.mark.req("Y4", "R6")
async def test_a_server_that_hangs_at_the_start_is_ended_with_its_last_client() -> None:
    async with running() as daemon:
        command = ["sh", "-c", "echo $$ >&2; exec sleep 1000"]
        pids: list[str] = []
        times = {"timeouts": Timeouts(handshake=60), "startup": 0.0}
        client = holdfast.connect(command, shared=True, stderr=pids.append, **times)  # type: ignore[arg-type]
        async with client:
            opening = asyncio.create_task(client.open())
            await until(lambda: pids)
            skip(61)
            with pytest.raises(HoldfastError, match="could not be reached within"):
                await opening
        await until(lambda: not daemon.status()["servers"])
        await gone(pids[0])


# When things end


@pytest.mark.req("Y4")
async def test_a_server_ends_when_nobody_has_used_it_for_long() -> None:
    async with running(idle=600) as daemon:
        async with connected() as client:
            pid = await text(client, "pid")
            skip(10_000)
            await asyncio.sleep(0)
            assert await text(client, "pid") == pid, "never under a client, however idle"
        await until(lambda: not daemon.status()["clients"])
        skip(599)
        await asyncio.sleep(0.01)
        assert daemon.status()["servers"]
        skip(2)
        await until(lambda: not daemon.status()["servers"])
        await gone(pid)


@pytest.mark.req("Y4")
async def test_the_daemon_ends_some_time_after_its_last_server() -> None:
    daemon = daemon_server.Daemon(listen(), idle=600, linger=1800)
    serving = asyncio.create_task(daemon.run(lambda: os.unlink(socket_path())))
    async with connected() as client:
        await client.open()
        skip(10_000)
        await asyncio.sleep(0.01)
    await until(lambda: not daemon.status()["clients"])
    skip(601)
    await until(lambda: not (daemon.status()["servers"] or daemon._ending))
    skip(1700)
    await asyncio.sleep(0.01)
    assert not serving.done()
    skip(101)
    await serving
    assert not os.path.exists(socket_path())


@pytest.mark.req("Y4")
async def test_a_stop_lets_calls_finish_for_a_while_and_tells_the_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(daemon_server, "STOP_WAIT", 0.05)
    async with running() as daemon:
        async with connected(**QUICK) as client:
            client.transport.fell_back = lambda sentence, is_absent: None
            pid = await text(client, "pid")
            call = asyncio.create_task(client.call_tool("wait"))
            async with connected() as watcher:
                await until_noted(watcher, "began")
            daemon.stop()
            with pytest.raises(TransportError, match="the daemon was stopped") as caught:
                await call
            assert caught.value.outcome_unknown
            assert await text(client, "pid") != pid, "its own server, by itself"
        await gone(pid)


@pytest.mark.req("Y4")
async def test_nothing_is_left_of_ten_servers() -> None:
    async with running():
        pids = []
        for number in range(10):
            async with connected(env={"N": str(number)}) as client:
                pids.append(await text(client, "pid"))
        assert all(map(is_alive, pids))
    assert not any(map(is_alive, pids))


# Strangers, and the odd


async def say(line: bytes) -> bytes:
    """What the daemon answers to a first line."""
    reader, writer = await asyncio.open_unix_connection(socket_path())
    writer.write(line)
    answer = b""
    with suppress(ConnectionError):  # it closes on what it has not read
        while piece := await reader.read(1000):
            answer += piece
    writer.close()
    return answer


@pytest.mark.req("Y4")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\n", b"not understood"),
        (b"GET / HTTP/1.1\r\n\r\n", b"not understood"),
        (b"[" * 100_000 + b"\n", b"not understood"),
        (b'{"holdfast":"0000","verb":"join"}\n', b"another version"),
        (encode_line(Hello()), b"no server was asked for"),
        (encode_line(Hello(definition=definition(command=()))), b"command"),
    ],
)
async def test_a_client_that_is_not_understood_is_told(line: bytes, reason: bytes) -> None:
    async with running() as daemon:
        answer = await say(line)
        assert reason in answer
        assert b'"pid":' in answer
        assert daemon.status()["servers"] == []


@pytest.mark.req("Y4")
async def test_a_client_that_says_nothing_is_dropped() -> None:
    async with running() as daemon:
        reader, writer = await asyncio.open_unix_connection(socket_path())
        await until(lambda: daemon._connections)
        skip(daemon_server.HELLO_WAIT)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


@pytest.mark.req("Y4")
async def test_a_first_line_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_server, "LONGEST_HELLO", 100_000)
    async with running():
        assert b"longer than 100000 bytes" in await say(b"x" * 100_001)


@pytest.mark.req("Y4")
async def test_another_users_process_is_not_listened_to(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running() as daemon:
        monkeypatch.setattr(daemon_socket, "peer", lambda connection: (os.geteuid() + 1, 1))
        assert await say(encode_line(Hello(verb="status"))) == b""
        assert "another user was refused" in caplog.text
        assert daemon.status()["clients"] == 0


@pytest.mark.req("Y4")
async def test_too_many_are_sent_to_their_own_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_server, "MOST_SERVERS", 1)
    sentences: list[str] = []
    async with running(), connected() as first, connected(env={"X": "1"}) as second:
        second.transport.fell_back = lambda sentence, is_absent: sentences.append(sentence)
        assert await text(first, "pid") != await text(second, "pid")
    assert sentences[0].endswith("refused: it runs 1 servers already")


@pytest.mark.req("Y4")
async def test_without_descriptors_clients_are_sent_to_their_own_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before they are welcome: after it they would lose the link, and come back again and again."""
    sentences: list[str] = []
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with running(), connected() as client:
        client.transport.fell_back = lambda sentence, is_absent: sentences.append(sentence)
        monkeypatch.setattr(daemon_server, "SPARE", 256)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
        try:
            assert await text(client, "pid")
            assert await life.ask("status") is not None
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert sentences[0].endswith("refused: it has too few descriptors left (ulimit -n)")


@pytest.mark.req("Y4")
async def test_the_log_has_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "holdfast")
    async with running(), connected(env={"API_KEY": "s3cr3t-0f-m1ne"}) as client:
        await client.call_tool("complain", {"text": "key s3cr3t-0f-m1ne refused"})
        with pytest.raises(TransportError):
            await client.call_tool("die")
    assert "stderr: key" in caplog.text
    assert "s3cr3t-0f-m1ne" not in caplog.text


@pytest.mark.req("Y4")
async def test_a_client_that_does_not_read_holds_up_nobody() -> None:
    async with running() as daemon, connected() as client:
        await client.open()
        (server,) = daemon._servers.values()
        slow = socket.socket(socket.AF_UNIX)
        slow.connect(socket_path())
        hello = client.transport.hello(Limits())
        slow.sendall(encode_line(Hello(definition=hello.definition, stderr=True)))
        await until(lambda: server.clients >= 2)
        for _ in range(200):
            await client.call_tool("complain", {"text": "x" * 8000})
        assert await text(client, "pid")
        slow.close()


@pytest.mark.req("Y4")
async def test_a_forgotten_descriptor_is_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as daemon:
        accept = daemon._listener.accept

        class Full:
            def __getattr__(self, name: str) -> Any:
                return getattr(listener, name)

            def accept(self) -> Any:
                monkeypatch.setattr(daemon, "_listener", listener)
                raise OSError(24, "Too many open files")

        listener = daemon._listener
        monkeypatch.setattr(daemon, "_listener", Full())
        async with connected() as client:
            assert await text(client, "pid")
        assert accept is not None


@pytest.mark.req("Y4")
async def test_a_signal_to_the_server_alone_is_seen_by_all() -> None:
    async with running(), connected(**QUICK) as first, connected(**QUICK) as second:
        pid = int(await text(first, "pid"))
        os.kill(pid, signal.SIGKILL)
        await gone(str(pid))
        assert await text(second, "pid") == await text(first, "pid")
