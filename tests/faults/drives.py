"""How the client is used against a misbehaviour: one function a way, named in the catalogue."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import holdfast
from tests.faults.harness import (
    GRACE,
    Ending,
    Log,
    connect,
    ending,
    eventually,
    memory,
    no_leaks,
    peak_reset,
    quiet,
)
from tests.faults.rows import PATIENT, Fault, in_folder
from tests.skipping import skip

SLACK = 90.0
"""Seconds that a machine may be slow by."""
LONG_PAUSE = 30.0
"""Seconds before a client that is down starts its server again."""
GROWTH = 64 << 20
"""Bytes that a client may grow by, whatever a server sends."""

Drive = Callable[["Bench"], Awaitable[None]]


class Bench:
    """One misbehaviour, its folder and its log."""

    def __init__(self, fault: Fault, folder: Path) -> None:
        self.fault = in_folder(fault, folder)
        self.folder = folder
        self.log = Log(folder / "log")
        self.mended_log = Log(folder / "mended")
        self.pid = ""
        self.gate = asyncio.Event()
        """What a gated handler waits for."""

    def connect(self, *, lives: int | None = None, **options: Any) -> holdfast.Client:
        log = self.log if lives is None else self.mended_log
        argv = self.fault.argv(log=str(log.path), lives=lives)
        merged = overlay(self.fault.options, options)
        answering = merged.pop("handlers", None)
        if answering is None:
            return connect(argv, merged)
        holder: list[holdfast.Client] = []
        client = connect(argv, {**merged, "handlers": handlers(answering, holder, self.gate)})
        holder.append(client)
        return client

    async def call(self, client: holdfast.Client, tool: str = "fault", **more: Any) -> Ending:
        arguments = {"value": "x" * self.fault.size} if self.fault.size and tool == "fault" else {}
        more.setdefault("timeout", self.fault.patience)
        more.setdefault("arguments", arguments)
        return await ending(client.call_tool(tool, **more))

    def judge(self, end: Ending) -> None:
        """Compare with what the catalogue expects."""
        fault = self.fault
        assert any(end.fits(wanted) for wanted in fault.ends), f"{fault.ends} expected, got {end}"
        total = fault.options.get("timeouts", {}).get("total", 0.0)
        assert end.seconds < max(fault.patience, total) + SLACK, end
        if end.ok:
            if fault.value is not None and fault.drive in ("call", "progress"):
                assert fault.value in end.text, ascii(end.text)[:500]
            return
        assert end.error is not None
        for words in fault.says:
            assert words in str(end.error), f"{words!r} is not in {end.error!s}"
        if fault.exit_code is not None:
            assert getattr(end.error, "exit_code", None) == fault.exit_code, end
        assert len(str(end.error)) < 20_000 or fault.name == "error-long-message"

    async def echo(self, client: holdfast.Client, timeout: float = PATIENT) -> str:
        """The id of the process that answers; asked in the raw, whatever tools were listed."""
        params = {"name": "echo", "arguments": {}}
        end = await ending(client.request("tools/call", params, timeout=timeout))
        assert end.ok, f"a good call failed: {end}"
        return str(end.value["content"][0]["text"])

    async def begin(self, client: holdfast.Client) -> None:
        await client.open()
        self.pid = await self.echo(client)

    async def usable(self, client: holdfast.Client) -> None:
        """The client afterwards."""
        await AFTERWARDS[self.fault.after](self, client)

    async def close(self, client: holdfast.Client) -> None:
        """Close, in bounded time, leaving no child behind."""
        grace = float(self.fault.options.get("grace", GRACE))
        end = await ending(client.close())
        assert end.ok, end
        assert end.seconds < grace + SLACK, end
        assert client.state == "closed"
        later = await ending(client.close())
        assert later.value is False


def overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Options over options; policies field by field, those of the row winning."""
    merged = {**above, **below}
    for name in ("timeouts", "limits", "backoff"):
        if name in above:
            merged[name] = {**above[name], **below.get(name, {})}
    return merged


# Handlers of the server's questions.

SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "hm"}, "model": "none"}
ACCEPTED = {"action": "accept", "content": {}}


def handlers(kind: str, holder: list[holdfast.Client], gate: asyncio.Event) -> holdfast.Handlers:
    """Handlers that are good, raise, block, wait, take long, answer nonsense or call back."""

    async def respond(result: Any) -> Any:
        if kind == "raising":
            raise ZeroDivisionError("the handler is broken")
        if kind == "blocking":
            await asyncio.Event().wait()
        if kind == "gated":
            await gate.wait()
        if kind == "long":
            skip(40.0)
        if kind == "calling":
            await holder[0].call_tool("echo")
        return object() if kind == "nonsense" else result

    async def sampling(*_: Any) -> Any:
        return await respond(SAMPLED)

    async def elicitation(*_: Any) -> Any:
        return await respond(ACCEPTED)

    return holdfast.Handlers(sampling=sampling, elicitation=elicitation)


# Afterwards.


async def after_same(bench: Bench, client: holdfast.Client) -> None:
    spawns = len(bench.log.spawns)
    assert await bench.echo(client) == bench.pid, "another process answers"
    assert len(bench.log.spawns) == spawns


async def after_restarted(bench: Bench, client: holdfast.Client) -> None:
    assert await bench.echo(client) != bench.pid, "the same process answers"


async def after_either(bench: Bench, client: holdfast.Client) -> None:
    """A call or two may still be lost with the old process."""
    for _ in range(3):
        end = await bench.call(client, "echo", timeout=PATIENT)
        if end.ok:
            return
    raise AssertionError(f"the client did not recover: {end}")


async def after_down(bench: Bench, client: holdfast.Client) -> None:
    end = await bench.call(client, "echo", timeout=0.1)
    assert end.seconds < 0.1 + SLACK, end


async def after_closed(bench: Bench, client: holdfast.Client) -> None:
    """Closing is the whole story."""


AFTERWARDS = {
    "same": after_same,
    "restarted": after_restarted,
    "either": after_either,
    "down": after_down,
    "closed": after_closed,
    "mended": after_same,
    "final": after_down,
}


# Connecting.


async def program(bench: Bench) -> None:
    """Not even a server: the first use fails, the next one too, and closing works."""
    bench.folder.joinpath("plain").write_text("just text\n")
    for name, text in {"orphan": "#!/no/such/interpreter\n", "gibberish": "\0\1\2\3"}.items():
        bench.folder.joinpath(name).write_text(text)
        bench.folder.joinpath(name).chmod(0o755)
    await fails_to_start(bench)


async def fails_to_start(bench: Bench) -> None:
    hasty = 0.2 if "handshake" in bench.fault.ends else PATIENT
    client = bench.connect(
        when_down="fail",
        backoff={"first": LONG_PAUSE, "max": LONG_PAUSE},
        timeouts={"handshake": hasty},
    )
    end = await ending(client.open())
    bench.judge(end)
    if end.ok:
        await connected(bench, client)
    else:
        again = await bench.call(client, "echo", timeout=5.0)
        assert not again.ok
        assert again.seconds < LONG_PAUSE, "a client that is down fails fast"
        assert end.error is not None
        assert end.error.message[-20:] in str(again.error), "the reason is kept"
    await bench.close(client)


async def connected(bench: Bench, client: holdfast.Client) -> None:
    fault = bench.fault
    assert client.state == "ready"
    assert client.is_connected
    if fault.agreed:
        assert client.protocol_version == fault.agreed
    if fault.spawns is not None:
        assert len(bench.log.spawns) == fault.spawns
    if fault.ends != ("ok",):
        await after_down(bench, client)
        return
    bench.pid = str(bench.log.spawns[-1])
    await after_same(bench, client)


async def start(bench: Bench) -> None:
    """As it is, and then mended from its second start on."""
    await fails_to_start(bench)
    if bench.fault.after != "mended":
        return
    hasty = 0.4 if "handshake" in bench.fault.ends else PATIENT
    async with bench.connect(lives=1, timeouts={"handshake": hasty}) as client:
        end = await bench.call(client, "echo", timeout=PATIENT)
        assert end.ok, f"a mended server is not used: {end}"
    assert len(bench.mended_log.spawns) >= 2 or "ok" in bench.fault.ends


async def crashloop(bench: Bench) -> None:
    """A server that never lives long is not started over and over."""
    backoff = {"first": 0.05, "max": 5.0, "healthy_after": 10.0}
    client = bench.connect(backoff=backoff)
    until = asyncio.get_running_loop().time() + 0.7
    while asyncio.get_running_loop().time() < until or len(bench.log.spawns) < 2:
        bench.judge(await bench.call(client, "echo", timeout=0.3))
    await bench.close(client)
    assert len(bench.log.spawns) <= bench.fault.count, "started again too often"


# Calling.


async def call(bench: Bench) -> None:
    """One call meets the fault; then the client is used again."""
    async with bench.connect() as client:
        await bench.begin(client)
        end = await bench.call(client)
        bench.judge(end)
        await bench.usable(client)
        if end.kind == "timeout" and bench.fault.after == "same":
            told_once(bench)
        if bench.fault.junk:
            assert sum(client.violations.values()) >= 1, "junk is counted"
        await bench.close(client)


def told_once(bench: Bench) -> None:
    """A request that timed out is cancelled at the server, once."""
    identifier = bench.log.faults()[0]["id"]
    told = bench.log.messages("notifications/cancelled")
    # On a slow machine the list of the tools is late as well, and a request of its own.
    listed = {message["id"] for message in bench.log.messages("tools/list")}
    cancelled = [note["params"]["requestId"] for note in told]
    assert [request for request in cancelled if request not in listed] == [identifier]


async def refused(bench: Bench) -> None:
    """The server's error arrives with its data intact."""
    async with bench.connect() as client:
        await bench.begin(client)
        end = await bench.call(client)
        bench.judge(end)
        assert end.error is not None
        assert end.error.data == {"deep": [1, {"x": None}]}
        await bench.usable(client)


async def many(bench: Bench) -> None:
    """Many calls at once, each with its own answer."""
    async with bench.connect() as client:
        await bench.begin(client)
        numbers = range(bench.fault.count)
        calls = [bench.call(client, arguments={"value": str(n)}) for n in numbers]
        ends = await asyncio.gather(*calls)
        for number, end in zip(numbers, ends, strict=True):
            bench.judge(end)
            assert not end.ok or end.text == str(number)
        await bench.usable(client)
        await bench.close(client)


async def halves(bench: Bench) -> None:
    """Every other call is answered: those end well, the others time out."""
    async with bench.connect() as client:
        await bench.begin(client)
        calls = [asyncio.ensure_future(bench.call(client)) for _ in range(bench.fault.count)]
        half = bench.fault.count // 2
        await eventually(lambda: sum(call.done() for call in calls) == half, "the answers")
        skip(bench.fault.patience)
        ends = await asyncio.gather(*calls)
        kinds = [end.kind for end in ends]
        assert kinds.count("ok") == kinds.count("timeout") == half, kinds
        await bench.usable(client)
        told = bench.log.messages("notifications/cancelled")
        assert len(told) == len({note["params"]["requestId"] for note in told}) == half


async def bounded_memory(bench: Bench) -> None:
    peak_reset()
    before = memory("VmRSS")
    await call(bench)
    grown = memory("VmHWM") - before
    assert grown < GROWTH, f"grew by {grown >> 20} MiB"


async def noticed(bench: Bench) -> None:
    """A flood of notifications has a handler that hangs, and an answer behind it."""
    seen: list[object] = []

    async def handler(*notification: object) -> None:
        seen.append(notification)
        await bench.gate.wait()

    peak_reset()
    before = memory("VmRSS")
    async with bench.connect(limits={"mailbox": 100}) as client:
        await bench.begin(client)
        client.on_notification(handler)
        end = await bench.call(client)
        bench.judge(end)
        bench.gate.set()
        await bench.usable(client)
        await eventually(lambda: len(seen) > 100, "the notifications that were kept")
        await bench.close(client)
    assert len(seen) <= 110, "what waits for a handler is bounded"
    assert memory("VmHWM") - before < GROWTH


async def storm(bench: Bench) -> None:
    """However often the tools change, they are not listed again each time."""
    async with bench.connect() as client:
        await bench.begin(client)
        await client.list_tools()
        bench.judge(await bench.call(client))
        await client.list_tools()
        await bench.usable(client)
    assert len(bench.log.messages("tools/list")) < 20


async def flooded(bench: Bench) -> None:
    """Calls are answered in the middle of an endless flood."""
    async with bench.connect() as client:
        await bench.begin(client)
        bench.judge(await bench.call(client))
        for _ in range(3):
            await bench.usable(client)
        await bench.close(client)


async def progress(bench: Bench) -> None:
    """A call with a progress callback; what reaches it is well formed."""
    seen: list[holdfast.Progress] = []
    async with bench.connect() as client:
        await bench.begin(client)
        end = await bench.call(client, on_progress=seen.append)
        bench.judge(end)
        await bench.usable(client)
        await bench.close(client)
    for item in seen:
        assert isinstance(item.progress, int | float)
        assert item.total is None or isinstance(item.total, int | float)
        assert item.message is None or isinstance(item.message, str)
    if "flood" in bench.fault.name:
        values = [item.progress for item in seen]
        assert values == sorted(values)
        assert values


async def stumble(bench: Bench) -> None:
    """The server is lost after the outcome: the next calls notice, one soon succeeds."""
    async with bench.connect() as client:
        await bench.begin(client)
        bench.judge(await bench.call(client))
        await after_either(bench, client)
        await after_restarted(bench, client)
        await bench.close(client)


async def haunted(bench: Bench) -> None:
    """What comes on the pipe of a dead server answers nothing."""
    async with bench.connect() as client:
        await bench.begin(client)
        bench.judge(await bench.call(client))
        for _ in range(30):
            answered = await bench.echo(client)
            assert answered != bench.pid
            assert answered.isdigit(), answered
        await bench.close(client)


async def unanswered(bench: Bench) -> None:
    """A question in an era without questions is not answered."""
    async with bench.connect() as client:
        await bench.begin(client)
        bench.judge(await bench.call(client))
        await bench.usable(client)
        await bench.close(client)
    assert bench.log.messages(None) == []


async def orphaned(bench: Bench) -> None:
    """The answer to a dead server's question does not go to its successor."""
    async with bench.connect() as client:
        await bench.begin(client)
        bench.judge(await bench.call(client))
        await bench.usable(client)
        bench.gate.set()
        for _ in range(3):
            await bench.echo(client)
        await bench.close(client)
    assert bench.log.messages(None) == []


async def rounds(bench: Bench) -> None:
    """The stateless era's rounds: how many there are, and what is echoed."""
    async with bench.connect() as client:
        await bench.begin(client)
        end = await bench.call(client)
        bench.judge(end)
        await bench.usable(client)
        await bench.close(client)
    asked = bench.log.faults()
    assert len(asked) == bench.fault.count if end.ok else len(asked) <= bench.fault.count
    assert len({message["id"] for message in asked}) == len(asked)
    if bench.fault.value is not None:
        assert asked[1]["params"]["requestState"] == json.loads(bench.fault.value)
        assert "requestState" not in asked[0]["params"]


async def listing(bench: Bench) -> None:
    async with bench.connect(timeouts={"request": bench.fault.patience}) as client:
        await bench.begin(client)
        end = await ending(client.list_tools())
        bench.judge(end)
        if end.ok:
            names = [tool.name for tool in end.value]
            count = bench.fault.count
            assert len(names) == count if count >= 0 else {"tool-1", "tool-2"} <= set(names), names
        await bench.usable(client)
        await bench.close(client)


async def subscribe(bench: Bench) -> None:
    async with bench.connect(timeouts={"request": bench.fault.patience}) as client:
        await bench.begin(client)
        bench.judge(await ending(client.subscribe_resource("test://one")))
        await bench.usable(client)
        await bench.close(client)


async def read(bench: Bench) -> None:
    async with bench.connect() as client:
        await bench.begin(client)
        bench.judge(await ending(client.read_resource("test://one")))
        await bench.usable(client)


# Writing.


async def crowd(bench: Bench) -> None:
    """Many calls to a server that does not read: all end in time, and memory is bounded."""
    fault = bench.fault
    async with bench.connect() as client:
        await bench.begin(client)
        first = asyncio.ensure_future(bench.call(client, arguments={}, timeout=fault.timeout))
        await eventually(bench.log.faults, "the server to hang")
        value = filler(fault)
        peak_reset()
        before = memory("VmRSS")
        calls = [bench.call(client, "echo", arguments=value) for _ in range(fault.count)]
        ends = [await first, *await asyncio.gather(*calls)]
        for end in ends:
            bench.judge(end)
        if fault.count > 1 and fault.count * fault.size > 8 << 20:
            assert "backpressure" in {end.kind for end in ends}, "the backlog is bounded"
        assert memory("VmHWM") - before < GROWTH
        await bench.usable(client)
        await bench.close(client)


async def released(bench: Bench) -> None:
    """Calls to a server that pauses all succeed when it goes on."""
    fault = bench.fault
    async with bench.connect() as client:
        await bench.begin(client)
        first = asyncio.ensure_future(bench.call(client, arguments={}))
        await eventually(lambda: bench.log.events("waiting"), "the server to pause")
        values = [f"{n}".rjust(fault.size, "x") for n in range(fault.count)]
        tasks = [
            asyncio.ensure_future(bench.call(client, "echo", arguments={"value": value}))
            for value in values
        ]
        await asyncio.sleep(0)
        bench.folder.joinpath("release").touch()
        bench.judge(await first)
        for value, end in zip(values, await asyncio.gather(*tasks), strict=True):
            assert end.ok, end
            assert end.text == value
        await bench.usable(client)


async def resumed(bench: Bench) -> None:
    """What timed out half written is written out, so that the stream stays whole."""
    fault = bench.fault
    async with bench.connect() as client:
        await bench.begin(client)
        first = asyncio.ensure_future(bench.call(client, arguments={}, timeout=PATIENT))
        await eventually(lambda: bench.log.events("waiting"), "the server to pause")
        calls = (bench.call(client, "echo", arguments=filler(fault)) for _ in range(fault.count))
        for end in await asyncio.gather(*calls):
            bench.judge(end)
        bench.folder.joinpath("release").touch()
        end = await first
        assert end.ok, end
        await bench.usable(client)
        await bench.close(client)


def filler(fault: Fault) -> dict[str, str]:
    return {"value": "x" * fault.size}


# Ending.


async def teardown(bench: Bench) -> None:
    fault = bench.fault
    async with bench.connect() as client:
        await bench.begin(client)
        calls = []
        if any(rule.startswith("fault") for rule in fault.rules):
            calls = [asyncio.ensure_future(bench.call(client)) for _ in range(fault.count)]
            await eventually(bench.log.faults, "a call to arrive")
        await bench.close(client)
        for end in await asyncio.gather(*calls):
            assert end.kind in ("shutdown", "backpressure"), end
    assert not os.path.exists(f"/proc/{bench.pid}")
    assert (bench.folder / "marker").exists() == (fault.value == "marker")


DRIVES: dict[str, Drive] = {
    "program": program,
    "start": start,
    "crashloop": crashloop,
    "call": call,
    "refused": refused,
    "many": many,
    "halves": halves,
    "bounded_memory": bounded_memory,
    "noticed": noticed,
    "storm": storm,
    "flooded": flooded,
    "progress": progress,
    "stumble": stumble,
    "haunted": haunted,
    "unanswered": unanswered,
    "orphaned": orphaned,
    "rounds": rounds,
    "list": listing,
    "subscribe": subscribe,
    "read": read,
    "crowd": crowd,
    "released": released,
    "resumed": resumed,
    "teardown": teardown,
}


async def drive(fault: Fault, folder: Path) -> None:
    """Use the client against one misbehaviour, and look for what it leaves behind."""
    bench = Bench(fault, folder)
    async with no_leaks(bench.log, bench.mended_log):
        with quiet():
            await DRIVES[fault.drive](bench)
