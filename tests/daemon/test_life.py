"""The daemon as a process: started, found, stopped, killed; and the command line that uses it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import holdfast
from holdfast import Backoff, TransportError
from holdfast._core.transports.daemon_socket import (
    VARIABLE,
    Hello,
    Welcome,
    encode_line,
    require_private,
    socket_path,
)
from holdfast.cli.main import main
from holdfast.daemon import life
from holdfast.daemon import log as daemon_log
from holdfast.daemon.log import log_path, log_to_file
from tests.daemon.rig import SERVER, connected, is_alive, text, until, until_noted

COMMAND = [sys.executable, "-m", "holdfast"]


class Done(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Done]


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command line in this process."""

    def run(*words: str) -> Done:
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        capfd.readouterr()
        code = main(list(words))
        out, err = capfd.readouterr()
        return Done(code, out.strip(), " ".join(err.split()))

    return run


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home and a folder of its own; no daemon is left behind."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    yield tmp_path
    if os.path.exists(socket_path()):
        pid = daemon_pid()
        life.stop()
        wait_for_end(pid)


def wait_for_end(pid: int | None) -> None:
    while pid is not None and is_alive(pid):
        time.sleep(0.01)


def configure(home: Path, **settings: Any) -> None:
    """Configure the server ``browser`` for the command line."""
    path = home / "config" / "holdfast" / "mcp.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    entry = {"command": SERVER[0], "args": SERVER[1:], "holdfast": settings}
    path.write_text(json.dumps({"mcpServers": {"browser": entry}}))


def daemon_pid() -> int | None:
    try:
        welcome = asyncio.run(life.ask("status"))
    except TransportError:
        return None
    return None if welcome is None else welcome.pid


# Started, found, stopped


@pytest.mark.req("Y4")
def test_from_start_to_stop(cli: Cli) -> None:
    assert cli("daemon", "status").code == 1
    started = cli("daemon", "start", "--json")
    pid = started.value["pid"]
    assert started.value == {"pid": pid, "started": True}
    assert pid == daemon_pid()
    assert os.stat(socket_path()).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(socket_path())).st_mode & 0o777 == 0o700
    again = cli("daemon", "start")
    assert (again.code, again.out) == (0, f"Already running: the daemon, pid {pid}")
    status = cli("daemon", "status", "--json").value
    assert (status["pid"], status["compatible"], status["servers"]) == (pid, True, [])
    stopped = cli("daemon", "stop")
    assert (stopped.code, stopped.out) == (0, f"Stopped: pid {pid}")
    wait_for_end(pid)
    assert not os.path.exists(socket_path())
    assert cli("daemon", "stop").out == "No daemon runs."
    assert "asked to stop" in Path(log_path()).read_text()
    assert os.stat(log_path()).st_mode & 0o777 == 0o600


@pytest.mark.req("Y4")
def test_two_starts_at_once_make_one_daemon() -> None:
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(life.start())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {welcome.pid for welcome, _ in answers} == {daemon_pid()}
    assert sorted(is_new for _, is_new in answers) == [False, False, True]


@pytest.mark.req("Y4")
def test_a_start_while_it_stops_gives_a_new_one() -> None:
    first = life.start()[0].pid
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(socket_path())
    connection.sendall(encode_line(Hello(verb="stop")))
    welcome, is_new = life.start()
    while not is_new:  # it answered before it began to stop
        welcome, is_new = life.start()
    assert welcome.pid != first
    connection.close()


@pytest.mark.req("Y4")
def test_a_start_gives_up_where_others_end_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    with pytest.raises(TransportError, match="others begin and end all the time"):
        life.start()


@pytest.mark.req("Y4")
def test_a_daemon_that_was_killed_leaves_nothing_in_the_way(cli: Cli) -> None:
    first = life.start()[0].pid
    os.kill(first, signal.SIGKILL)
    wait_for_end(first)
    assert os.path.exists(socket_path())
    assert cli("daemon", "status").code == 1
    assert cli("daemon", "stop").out == "No daemon runs."
    welcome, is_new = life.start()
    assert is_new
    assert welcome.pid != first


@pytest.mark.req("Y4")
def test_sigterm_stops_it() -> None:
    pid = life.start()[0].pid
    os.kill(pid, signal.SIGTERM)
    wait_for_end(pid)
    assert not os.path.exists(socket_path())


@pytest.mark.req("Y4")
def test_no_zombie_is_left_in_a_process_that_runs_on() -> None:
    pid = life.start()[0].pid
    life.stop()
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.01)


@pytest.mark.req("Y4")
def test_a_daemon_that_hangs_is_not_killed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = life.start()[0].pid
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setenv(VARIABLE, "0.2")
    try:
        for verb in ("start", "status", "stop"):
            done = cli("daemon", verb)
            assert done.code == 3
            assert f"the daemon (pid {pid}) did not answer within 0.2 s" in done.err
        done = cli("call", "pid", "--", *SERVER)
        assert done.code == 0
        assert "a server of its own is started" in done.err
        assert is_alive(pid)
    finally:
        os.kill(pid, signal.SIGCONT)
    monkeypatch.setenv(VARIABLE, "60")
    assert life.start() == (life.start()[0], False)


@pytest.mark.req("Y4")
def test_a_folder_that_cannot_be_used_is_named(cli: Cli, runtime: Path) -> None:
    (runtime / "holdfast").write_text("a file")
    done = cli("daemon", "start")
    assert done.code == 3
    assert "cannot be used" in done.err
    assert str(runtime) in done.err.replace(" ", "")


@pytest.mark.req("Y4")
def test_what_is_in_the_way_is_named(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder at the socket's place; a log that cannot be written; a folder for everybody."""
    os.makedirs(socket_path(), 0o700)
    os.chmod(os.path.dirname(socket_path()), 0o700)
    done = cli("daemon", "start")
    assert (done.code, f"{socket_path()} cannot be bound" in done.err) == (3, True), done.err
    os.rmdir(socket_path())
    os.chmod(os.path.dirname(socket_path()), 0o755)
    for verb in ("start", "status", "stop"):
        done = cli("daemon", verb)
        place = os.path.dirname(socket_path())
        assert done.code == 3
        assert f"{place} is open to other users; not used (chmod 700)" in done.err
        assert "Errno" not in done.err
    os.chmod(os.path.dirname(socket_path()), 0o700)
    (home / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "file"))
    done = cli("daemon", "start")
    assert (done.code, f"{log_path()} cannot be written" in done.err) == (3, True), done.err
    assert "Traceback" not in done.err
    assert cli("daemon", "run").code == 3


@pytest.mark.req("Y4")
def test_a_daemon_of_another_version_is_said_to_be_of_no_use(cli: Cli) -> None:
    pid = life.start()[0].pid
    command = [
        *(sys.executable, "-c"),
        "import holdfast._version as version, sys; version.__version__ = '99.0'\n"
        "from holdfast.cli.main import main; sys.exit(main(['daemon', 'start']))",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"Already running: the daemon, pid {pid}\n"
    assert "It is not used" in done.stderr
    assert "stop it, and start it anew" in done.stderr


@pytest.mark.req("Y4")
def test_it_ends_by_itself() -> None:
    command = [*COMMAND, "daemon", "run", "--idle", "0.05", "--linger", "0.05"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "nothing to do" in done.stderr


@pytest.mark.req("Y4")
def test_it_is_started_with_the_times_that_were_asked_for(cli: Cli) -> None:
    pid = cli("daemon", "start", "--json", "--idle", "70", "--linger", "80").value["pid"]
    assert Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-3:-1] == [b"70.0", b"80.0"]
    assert "keeps the times that it was started with" in cli("daemon", "start", "--idle", "9").err
    assert cli("daemon", "start").err == ""


@pytest.mark.parametrize("seconds", ["nan", "0", "-1", "soon"])
def test_a_time_that_is_none_is_refused(cli: Cli, seconds: str) -> None:
    for verb, option in (("start", "--idle"), ("run", "--linger")):
        done = cli("daemon", verb, option, seconds)
        assert (done.code, f"Invalid value for '{option}'" in done.err) == (2, True)


@pytest.mark.req("Y4")
def test_it_runs_in_the_foreground_for_a_supervisor() -> None:
    process = subprocess.Popen([*COMMAND, "daemon", "run"], stderr=subprocess.PIPE, text=True)
    while daemon_pid() is None:
        time.sleep(0.01)
    assert not life.run()
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 0
    assert process.stderr is not None
    process.stderr.close()


# Killed


@pytest.mark.req("Y4", "R3")
async def test_a_call_in_a_daemon_that_is_killed_ends_once_and_the_next_works() -> None:
    pid = (await asyncio.to_thread(life.start))[0].pid
    options: dict[str, Any] = {"backoff": Backoff(first=0.01), "when_down": "wait"}
    async with connected(**options) as client:
        client.transport.fell_back = lambda sentence, is_absent: None
        server = await text(client, "pid")
        call = asyncio.create_task(client.call_tool("wait"))
        async with connected() as watcher:
            await until_noted(watcher, "began")
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(TransportError, match=f"the daemon .pid {pid}. ended") as caught:
                await call
        assert caught.value.outcome_unknown
        assert await text(client, "pid") != server
        assert client.transport.daemon is None
        await until(lambda: not is_alive(server))  # its servers end with it


@pytest.mark.req("Y4")
async def test_a_fork_of_a_client_leaves_the_connection_alone() -> None:
    await asyncio.to_thread(life.start)
    async with connected() as client:
        before = await text(client, "pid")
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        assert await text(client, "pid") == before


@pytest.mark.req("Y4")
@pytest.mark.skipif(os.geteuid() != 0, reason="another user's process needs root to be started")
def test_a_process_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a folder that everybody may enter: the socket itself must refuse.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        life.start()
        for place in (folder, os.path.dirname(socket_path()), socket_path()):
            os.chmod(place, 0o777)
        code = f"""
import os, socket
os.setgid(65534); os.setuid(65534)
connection = socket.socket(socket.AF_UNIX)
connection.connect({socket_path()!r})
try:
    connection.sendall({encode_line(Hello(verb="stop"))!r})
    print(connection.recv(1000))
except (BrokenPipeError, ConnectionResetError):  # it was closed before all was sent, or read
    print(b"")
"""
        done = subprocess.run(
            [sys._base_executable, "-c", code],  # type: ignore[attr-defined]
            capture_output=True,
            text=True,
            check=False,
            env={},
        )
        for place in (folder, os.path.dirname(socket_path())):
            os.chmod(place, 0o700)
        assert done.stdout.strip() == "b''", done.stderr
        assert "a process of another user was refused" in Path(log_path()).read_text()
        pid = daemon_pid()
        assert pid is not None, "it was not stopped by a stranger"
        life.stop()
        wait_for_end(pid)


# The command line


@pytest.mark.req("Y4", "C2")
def test_two_calls_act_on_one_server(cli: Cli, home: Path) -> None:
    configure(home)
    life.start()
    assert cli("call", "browser.page_note", "text=a").out == "a"
    command = [*COMMAND, "call", "browser.page_note", "text=b", "-v"]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "shared, by the daemon" in second.stderr
    assert (second.returncode, second.stdout) == (0, "a b\n"), second.stderr
    status = cli("daemon", "status", "--json").value
    assert [server["name"] for server in status["servers"]] == ["browser"]
    # The client has ended; the daemon may read so after it was asked.
    while status["servers"][0]["clients"]:
        status = cli("daemon", "status", "--json").value
    assert "browser\tready\t0\t0\t" in cli("daemon", "status").out


@pytest.mark.req("Y4")
def test_a_server_that_is_configured_apart_is_not_shared(cli: Cli, home: Path) -> None:
    configure(home, shared=False)
    life.start()
    assert cli("call", "browser.page_note", "text=a").out == "a"
    assert cli("call", "browser.page_note", "text=b").out == "b"


@pytest.mark.req("Y4")
def test_a_start_that_found_one_at_its_end_starts_anew() -> None:
    """The new process leaves it to the one that answers, which then ends."""
    require_private(os.path.dirname(socket_path()), create=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(socket_path())
    listener.listen()

    def answer_the_second() -> None:
        first, _ = listener.accept()
        first.recv(1, socket.MSG_PEEK)
        first.close()  # with something unread: a reset, as of one that has just ended
        second, _ = listener.accept()
        second.recv(65536)
        second.sendall(encode_line(Welcome(holdfast="it", pid=1)))
        os.unlink(socket_path())
        listener.close()
        second.close()

    thread = threading.Thread(target=answer_the_second)
    thread.start()
    welcome, is_new = life.start()
    thread.join()
    assert is_new
    assert welcome.pid == daemon_pid()


@pytest.mark.req("Y4")
def test_configured_to_be_shared_it_is_shared_by_programs(cli: Cli, home: Path) -> None:
    configure(home, shared=True)
    life.start()
    with holdfast.sync.connect("browser") as client, holdfast.sync.Servers() as servers:
        assert client.call_tool("page_note", {"text": "a"}).text == "a"
        assert servers["browser"].call_tool("page_note", {"text": "b"}).text == "a b"
    assert cli("call", "browser.notes").out == "a b"


@pytest.mark.req("Y4")
def test_asked_for_and_missing_it_is_said(cli: Cli, home: Path) -> None:
    configure(home, shared=True)
    done = cli("call", "browser.page_note", "text=a")
    assert done.out == "a"
    assert "no daemon runs" in done.err


@pytest.mark.req("Y4")
def test_the_second_call_to_a_server_with_state_gets_a_hint(cli: Cli, home: Path) -> None:
    configure(home)
    assert cli("call", "browser.page_note", "text=a").err == ""
    hinted = cli("call", "browser.page_note", "text=b").err
    assert "'holdfast daemon start' keeps servers running" in hinted
    assert cli("call", "browser.page_note", "text=c").err == "", "once in a while"
    assert cli("call", "add", "a=1", "b=2", "--", *COMMAND[:2], "holdfast.demo.server").err == ""


@pytest.mark.req("Y4")
def test_a_shared_server_gets_no_hint(cli: Cli, home: Path) -> None:
    configure(home)
    life.start()
    assert [cli("call", "browser.page_note", "text=a").err for _ in range(2)] == ["", ""]


@pytest.mark.req("Y4")
def test_serve_goes_through_the_daemon(cli: Cli, home: Path) -> None:
    configure(home)
    life.start()
    cli("call", "browser.page_note", "text=a")
    with holdfast.sync.connect([*COMMAND, "serve", "browser"], inherit_env=True) as host:
        assert host.call_tool("notes").text == "a"


@pytest.mark.req("Y4")
def test_doctor_starts_a_server_of_its_own(cli: Cli, home: Path) -> None:
    configure(home)
    life.start()
    assert cli("doctor", "browser").code == 0
    assert cli("daemon", "status", "--json").value["servers"] == []


# The log


@pytest.mark.req("Y4")
def test_the_log_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_log, "MOST_BYTES", 20_000)
    log_to_file()
    logger = logging.getLogger("holdfast")
    try:
        for _ in range(50):
            logger.info("%s", "x" * 10_000)
        sizes = [path.stat().st_size for path in Path(log_path()).parent.iterdir()]
        assert len(sizes) == 2
        assert max(sizes) <= 20_000
        assert "x" * 3000 not in Path(log_path()).read_text()
    finally:
        for handler in logger.handlers:
            handler.close()
        logger.propagate = True


@pytest.mark.req("Y4")
def test_a_name_that_ends_something_says_that_there_is_something() -> None:
    from holdfast.cli.sharing import keeps_state

    for name in ("browser_close", "closePage", "session.close", "disconnect", "end_session"):
        assert keeps_state(["x", name]), name
    for name in ("close_issue", "close_pull_request", "read_page", "open_session", "stop"):
        assert not keeps_state([name]), name
