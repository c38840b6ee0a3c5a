"""Starting, watching and ending a real server process."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import shlex
import sys
import time
import traceback
from pathlib import Path

import pytest

import holdfast
from holdfast import Limits, Stdio, Timeouts, TransportError, ValidationError
from tests.rows import rows

DEMO = [sys.executable, "-m", "holdfast.demo.server"]
ONCE = holdfast.Backoff(first=60, max=60)


def script(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "server.py"
    path.write_text(text)
    return [sys.executable, str(path)]


async def failure(target: object, **options: object) -> TransportError:
    """How connecting to a target fails."""
    async with holdfast.connect(target, backoff=ONCE, **options) as client:  # type: ignore[arg-type]
        with pytest.raises(TransportError) as caught:
            await client.list_tools()
    return caught.value


# Starting


@pytest.mark.req("L2", "X1")
async def test_a_server_is_started_listed_and_called() -> None:
    async with holdfast.connect(DEMO) as client:
        names = [tool.name for tool in await client.list_tools()]
        assert "echo" in names
        assert (await client.call_tool("echo", {"text": "ahoy ü"})).text == "ahoy ü"


@pytest.mark.req("E2")
async def test_a_missing_command_is_named() -> None:
    error = await failure("no-such-command-at-all --flag")
    assert "command not found: 'no-such-command-at-all'" in str(error)
    assert "PATH" in str(error)


@pytest.mark.req("N3", "E2")
async def test_a_missing_command_is_one_error_that_shows_the_path_once() -> None:
    error = await failure("no-such-command-at-all")
    text = "".join(traceback.format_exception(error))
    assert "direct cause" not in text
    assert text.count("PATH") == 1
    assert text.count("command not found") == 1


NOT_MCP = [
    ("echo hello there", "hello there"),
    ("sh -c 'echo usage: x [-h]; exit 2'", "usage: x [-h]"),
    ("sh -c 'printf no-newline'", "no-newline"),
    ("sh -c 'echo; echo one; echo two'", "one two"),
    ("env -i HERE=1 /usr/bin/env", "HERE=1"),
]


@pytest.mark.req("E2")
@pytest.mark.parametrize(("command", "printed"), NOT_MCP)
async def test_a_program_that_is_no_server_is_shown_by_what_it_prints(
    command: str, printed: str
) -> None:
    error = await failure(command)
    assert f"it does not look like an MCP server: it printed '{printed}'" in error.message
    program = shlex.split(command)[0]
    assert f"run: holdfast doctor -- {program} …" in str(error)


@pytest.mark.req("E2")
@pytest.mark.parametrize("command", ["true", "sh -c 'echo broken >&2; exit 3'"])
async def test_a_program_that_prints_nothing_points_to_doctor_too(command: str) -> None:
    error = await failure(command)
    assert "MCP" not in error.message
    assert "holdfast doctor" in str(error)


@pytest.mark.req("E2")
async def test_what_a_server_prints_between_its_messages_does_not_make_it_none() -> None:
    code = """print('a banner'); print('{"jsonrpc":"2.0","method":"x"}')"""
    error = await failure([sys.executable, "-c", code])
    assert "MCP" not in error.message


@pytest.mark.req("E2")
async def test_the_end_of_stderr_begins_after_the_handshake(tmp_path: Path) -> None:
    """Servers on the Python SDK 1 write a page about a probe that they do not know."""
    command = script(tmp_path, VERBOSE)
    async with holdfast.connect(command, backoff=ONCE) as client:
        with pytest.raises(TransportError) as caught:
            await client.request("die")
    assert caught.value.stderr_tail == "dying of this"
    async with holdfast.connect(command, backoff=ONCE, env={"DIE": "early"}) as client:
        with pytest.raises(TransportError) as caught:
            await client.open()
    assert "a page about initialize" in caught.value.stderr_tail


VERBOSE = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "die":
        sys.exit("dying of this")
    if "id" not in message:
        continue
    print("a page about", message["method"], "\\n" * 10, "x" * 5000, file=sys.stderr, flush=True)
    answer = {"error": {"code": -32601, "message": "no"}}
    if message["method"] == "initialize":
        if os.environ.get("DIE"):
            print("a page about initialize", file=sys.stderr, flush=True)
            sys.exit(1)
        info = {"name": "v", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}
        answer = {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


@pytest.mark.req("E2")
async def test_a_missing_path_is_named(tmp_path: Path) -> None:
    error = await failure([str(tmp_path / "nowhere")])
    assert "does not exist" in str(error)


@pytest.mark.req("E2")
async def test_a_directory_is_no_program(tmp_path: Path) -> None:
    assert "is a directory" in str(await failure([str(tmp_path)]))


@pytest.mark.req("E2")
async def test_a_file_that_is_not_executable_is_named(tmp_path: Path) -> None:
    path = tmp_path / "plain"
    path.write_text("hello")
    assert "is not executable" in str(await failure([str(path)]))


@pytest.mark.req("E2")
async def test_a_script_without_an_interpreter_is_told(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    assert "interpreter" in str(await failure([str(path)]))
    path.write_bytes(b"\x00\x01\x02")
    assert "not a program" in str(await failure([str(path)]))


@pytest.mark.req("E2")
async def test_a_missing_working_directory_is_named(tmp_path: Path) -> None:
    error = await failure(DEMO, cwd=str(tmp_path / "gone"))
    assert "working directory" in str(error)


@pytest.mark.req("E2")
async def test_a_server_that_ends_at_once_shows_code_and_last_words(tmp_path: Path) -> None:
    text = "import sys; print('no token set', file=sys.stderr); sys.exit(3)"
    error = await failure(script(tmp_path, text))
    assert error.exit_code == 3
    assert error.stderr_tail == "no token set"
    assert "exited with code 3" in str(error)
    assert "no token set" in str(error)


@pytest.mark.req("E2")
async def test_a_server_killed_by_a_signal_is_told_so(tmp_path: Path) -> None:
    error = await failure(script(tmp_path, "import os; os.kill(os.getpid(), 11)"))
    assert error.exit_code == -11
    assert "SIGSEGV" in str(error)


@pytest.mark.req("X1")
@pytest.mark.parametrize("command", ["", "   ", [], [""]])
async def test_an_empty_command_is_refused(command: object) -> None:
    with pytest.raises(ValidationError, match="no program"):
        Stdio(command)  # type: ignore[arg-type]


@pytest.mark.req("X1")
async def test_an_unbalanced_quote_is_refused() -> None:
    with pytest.raises(ValidationError, match="quotation"):
        Stdio("python 'server.py")


@pytest.mark.req("L8")
def test_a_server_has_two_seconds_to_end_unless_set() -> None:
    assert Stdio("x").grace == 2.0
    assert Stdio("x", grace=0.1).grace == 0.1
    assert Stdio("x", grace=10**400).grace == math.inf, "more than a float can hold"


@pytest.mark.req("X1")
async def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValidationError, match="grace=-1"):
        Stdio("x", grace=-1)
    with pytest.raises(ValidationError, match=r"env\['A'\]=5"):
        Stdio("x", env={"A": 5})  # type: ignore[dict-item]


@pytest.mark.req("X1")
@rows(
    ("options", "words"),
    [
        ({"args": "--flag"}, r"args='--flag'.*list of words"),
        ({"args": [5]}, r"args=\[5\]"),
        ({"env": 5}, r"env=5"),
        ({"inherit_env": "PATH"}, r"inherit_env='PATH'.*list of names"),
        ({"inherit_env": 5}, r"inherit_env=5"),
        ({"cwd": 5}, r"cwd=5"),
        ({"stderr": "loud"}, r"stderr='loud'"),
        ({"grace": "2"}, r"grace='2'"),
        ({"grace": True}, r"grace=True"),
        ({"startup": float("nan")}, r"startup=nan"),
        ({"shutdown_request": 1}, r"shutdown_request=1"),
    ],
)
def test_an_option_of_the_wrong_type_is_refused_by_name_and_value(
    options: dict[str, object], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        Stdio("x", **options)  # type: ignore[arg-type]


# Launchers


def launcher(tmp_path: Path, text: str) -> str:
    """A program with the name of a launcher."""
    path = tmp_path / "npx"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.req("N1")
async def test_a_launcher_gets_its_time_before_the_handshake_counts(tmp_path: Path) -> None:
    """It works longer than the handshake may take, is not ended, and shows that it works."""
    release = tmp_path / "release"
    os.mkfifo(release)
    demo = shlex.join(DEMO)
    command = [launcher(tmp_path, f"read x < {release}\nexec {demo}"), "-y", "server"]
    seen: asyncio.Queue[float] = asyncio.Queue()
    times = Timeouts(handshake=4, request=4)
    client = holdfast.connect(command, timeouts=times, backoff=ONCE)
    client.events.subscribe(lambda event: seen.put_nowait(event.elapsed), "server.starting")
    async with client:
        call = asyncio.create_task(client.call_tool("echo", {"text": "at last"}))
        elapsed = [await seen.get()]
        while elapsed[-1] < 4.5:
            elapsed.append(await seen.get())
        await asyncio.to_thread(release.write_text, "go")
        assert (await call).text == "at last"
    assert elapsed == sorted(set(elapsed))


@pytest.mark.req("N1", "L6")
async def test_a_launcher_that_never_ends_is_given_up(tmp_path: Path) -> None:
    command = [launcher(tmp_path, "exec sleep 600"), "server"]
    server = Stdio(command, startup=0.1, grace=0.1)
    async with holdfast.connect(server, timeouts=Timeouts(handshake=0.2), backoff=ONCE) as client:
        with pytest.raises(holdfast.errors.HandshakeTimeout, match="300 ms"):
            await client.list_tools()


@pytest.mark.req("N1")
async def test_a_launcher_that_fails_is_reported_at_once(tmp_path: Path) -> None:
    command = [launcher(tmp_path, "echo 'no such package' >&2; exit 1"), "server"]
    error = await failure(command)
    assert error.exit_code == 1
    assert "no such package" in (error.stderr_tail or "")


@pytest.mark.req("N1")
@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="there is no /proc")
async def test_a_command_whose_children_are_busy_gets_time_too(tmp_path: Path) -> None:
    seen = asyncio.Event()
    spin = f"{sys.executable} -c 'while True: pass'"
    server = Stdio(["sh", "-c", f"{spin}; true"], grace=0.1)
    client = holdfast.connect(server, timeouts=Timeouts(handshake=60), backoff=ONCE)
    client.events.subscribe(lambda _: seen.set(), "server.starting")
    async with client:
        opening = asyncio.create_task(client.open())
        await seen.wait()
        opening.cancel()


@pytest.mark.req("N1", "L6")
async def test_a_silent_command_that_is_alive_gets_longer_than_the_handshake(
    tmp_path: Path,
) -> None:
    release = tmp_path / "release"
    os.mkfifo(release)
    command = ["sh", "-c", f"read x < {release}; exec {shlex.join(DEMO)}"]
    seen: asyncio.Queue[float] = asyncio.Queue()
    client = holdfast.connect(command, timeouts=Timeouts(handshake=5), backoff=ONCE)
    client.events.subscribe(lambda event: seen.put_nowait(event.elapsed), "server.starting")
    async with client:
        call = asyncio.create_task(client.call_tool("echo", {"text": "at last"}, timeout=60))
        while await seen.get() < 5:
            pass
        await asyncio.to_thread(release.write_text, "go")
        assert (await call).text == "at last"


# What the server gets

SHOW = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        if message["method"] == "show":
            result = {"env": dict(os.environ), "cwd": os.getcwd()}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


async def shown(tmp_path: Path, **options: object) -> dict[str, object]:
    command = script(tmp_path, SHOW)
    async with holdfast.connect(command, **options) as client:  # type: ignore[arg-type]
        found: dict[str, object] = await client.request("show")
        return found


@pytest.mark.req("X1")
async def test_the_environment_is_minimal_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "x")
    monkeypatch.setenv("OLD_BASH", "() { :; }")
    env = (await shown(tmp_path))["env"]
    assert isinstance(env, dict)
    assert "PATH" in env
    assert "MY_SECRET" not in env


@pytest.mark.req("X1")
async def test_the_environment_can_be_inherited_by_name_or_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "x")
    monkeypatch.setenv("OTHER", "y")
    monkeypatch.setenv("OLD_BASH", "() { :; }")
    named = (await shown(tmp_path, inherit_env=["MY_SECRET"], env={"EXTRA": "1"}))["env"]
    assert isinstance(named, dict)
    assert (named["MY_SECRET"], named["EXTRA"]) == ("x", "1")
    assert "OTHER" not in named
    whole = (await shown(tmp_path, inherit_env=True))["env"]
    assert isinstance(whole, dict)
    assert whole["OTHER"] == "y"
    assert "OLD_BASH" not in whole


@pytest.mark.req("X1")
async def test_the_working_directory_is_set(tmp_path: Path) -> None:
    where = tmp_path / "here"
    where.mkdir()
    assert (await shown(tmp_path, cwd=where))["cwd"] == str(where)


# stderr


@pytest.mark.req("X1")
async def test_stderr_goes_to_a_callback_line_by_line() -> None:
    lines: list[str] = []
    async with holdfast.connect(DEMO, stderr=lines.append, backoff=ONCE) as client:
        with pytest.raises(TransportError):
            await client.call_tool("crash", {})
    assert any("crashing" in line for line in lines)


@pytest.mark.req("X1")
async def test_stderr_goes_to_a_logger(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with holdfast.connect(DEMO, stderr=logging.getLogger("my"), backoff=ONCE) as client:
        with pytest.raises(TransportError):
            await client.call_tool("crash", {})
    assert "crashing" in caplog.text


@pytest.mark.req("X1")
async def test_a_failing_stderr_callback_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    def boom(line: str) -> None:
        raise RuntimeError("boom")

    async with holdfast.connect(DEMO, stderr=boom, backoff=ONCE) as client:
        with pytest.raises(TransportError):
            await client.call_tool("crash", {})
    assert "stderr callback failed" in caplog.text


@pytest.mark.req("X1")
async def test_stderr_can_be_left_alone(capfd: pytest.CaptureFixture[str]) -> None:
    async with holdfast.connect(DEMO, stderr="inherit", backoff=ONCE) as client:
        with pytest.raises(TransportError) as caught:
            await client.call_tool("crash", {})
    assert caught.value.stderr_tail == ""
    assert "crashing" in capfd.readouterr().err


# Back-pressure


@pytest.mark.req("R7", "R2")
async def test_a_deaf_server_gives_backpressure_within_the_deadline(tmp_path: Path) -> None:
    deaf = SHOW.replace("for line in sys.stdin:", "for line in [sys.stdin.readline()]:")
    command = script(tmp_path, deaf + "import time; time.sleep(600)")
    limits = Limits(backlog_bytes=100_000)
    times = Timeouts(request=0.3)
    async with holdfast.connect(command, limits=limits, timeouts=times, grace=0.1) as client:
        await client.open()
        calls = [client.call_tool("x", {"data": "y" * 30_000}) for _ in range(20)]
        results = await asyncio.gather(*calls, return_exceptions=True)
    kinds = {result.kind for result in results if isinstance(result, holdfast.HoldfastError)}
    assert kinds == {"timeout", "backpressure"}


# Loops


@pytest.mark.req("X1")
def test_it_works_on_uvloop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> str:
        async with holdfast.connect(DEMO) as client:
            results = await asyncio.gather(
                *(client.call_tool("echo", {"text": str(number)}) for number in range(200))
            )
            big = await client.call_tool("echo", {"text": "x" * 3_000_000})
            assert len(big.text) == 3_000_000
            return results[-1].text

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(main()) == "199"


@pytest.mark.req("X1")
def test_it_works_where_the_kernel_has_no_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")

    async def main() -> None:
        async with holdfast.connect(DEMO, backoff=holdfast.Backoff(first=0.01)) as client:
            with pytest.raises(TransportError, match="exited with code 7"):
                await client.call_tool("crash", {"code": 7})
            await client.wait_ready(20)
            assert (await client.call_tool("echo", {"text": "back"})).text == "back"

    asyncio.run(main())


@pytest.mark.req("L8")
async def test_the_shutdown_request_is_sent_where_the_option_asks_for_it(tmp_path: Path) -> None:
    marker = tmp_path / "asked"
    text = SHOW + f"    if message['method'] == 'shutdown': open({str(marker)!r}, 'w').close()\n"
    command = script(tmp_path, text)
    async with holdfast.connect(command, shutdown_request=True) as client:
        await client.open()
    assert marker.exists()


@pytest.mark.req("L8")
@pytest.mark.parametrize("polite", [True, False])
def test_what_a_server_leaves_in_its_group_ends_with_the_client(
    tmp_path: Path, polite: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One child ends at SIGTERM, the other has to be killed; the server itself is gone by then."""
    on_term = f"echo > {tmp_path}/told; exit" if polite else ""
    child = f"trap '{on_term}' TERM; echo $$ > {tmp_path}/child; sleep 600 & wait; wait"
    quiet = "stdin=-3, stdout=-3, stderr=-3"
    start = f"import subprocess\nsubprocess.Popen(['sh', '-c', {child!r}], {quiet})\n"
    wait = f"while not os.path.exists({str(tmp_path / 'child')!r}): pass\n"
    transport = Stdio(script(tmp_path, start + "import os\n" + wait + SHOW))
    if polite:
        monkeypatch.setattr("holdfast._core.transports.process.GROUP_WAIT", 20.0)

    async def main() -> None:
        async with holdfast.connect(transport) as client:
            await client.open()

    asyncio.run(main())
    assert transport.ended_by == "the end of its input"
    assert _gone(int((tmp_path / "child").read_text()))
    assert (tmp_path / "told").exists() is polite


def _gone(pid: int) -> bool:
    """Return True once a process has ended; a zombie has, though nobody may wait for it."""
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False
