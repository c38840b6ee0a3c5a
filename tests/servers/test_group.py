"""Many servers: started together, failing alone, closed all of them."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
import holdfast.servers as package
from holdfast import (
    Backoff,
    Client,
    Handlers,
    RequestTimeout,
    StateError,
    TransportError,
    ValidationError,
)
from holdfast.agents import ServerTool
from holdfast.errors import ShutdownError
from holdfast.servers import Servers
from holdfast.testing import SILENCE, Peer, ServerRequest
from tests.rows import rows
from tests.servers.processes import DEAD, DEMO, GONE, HUNG, meeting


def peer(*tools: str) -> Peer:
    made = Peer()
    for name in tools or ("echo",):
        made.tool(name, description=f"Does {name}.")(lambda: "done")
    return made


def states(servers: Servers) -> dict[str, str]:
    return {status.name: status.state for status in servers.statuses}


# Side by side


class TwoTries(Backoff, frozen=True, kw_only=True):
    """A second attempt at once, and no third one while a test looks on."""

    def delay(self, failures: int, jitter: Iterator[float]) -> float:
        return self.first if failures == 1 else self.max


@pytest.mark.req("F3")
async def test_one_failing_server_fails_alone() -> None:
    # What hung is tried once more, after its pause. In the end none of them is starting anew.
    late = {
        "timeouts": holdfast.Timeouts(handshake=0.3),
        "grace": 0.05,
        "backoff": TwoTries(first=0.01, max=3600, jitter=0),
    }
    config = {"works": DEMO, "gone": GONE, "dead": DEAD, "hung": {"target": HUNG, **late}}
    async with Servers(config, backoff=Backoff(first=3600, max=3600)) as servers:
        opened = {status.name: status for status in await servers.open()}
        assert opened["works"].is_ready
        assert opened["works"].server is not None
        assert [opened[name].state for name in ("gone", "dead", "hung")] == ["backoff"] * 3
        errors = {name: str(status.error) for name, status in opened.items()}
        assert "command not found: 'no-such-command-at-all'" in errors["gone"]
        assert "exited with code 3" in errors["dead"]
        assert "out of paper" in errors["dead"]
        assert isinstance(opened["hung"].error, RequestTimeout)
        assert (await servers.call_tool("works.add", {"a": 1, "b": 2})).structured == {"sum": 3}


@pytest.mark.req("F3")
async def test_servers_are_started_at_the_same_time(tmp_path: Path) -> None:
    """Each of the two waits, before it answers, for the other to run."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with Servers({"a": meeting(pipe, "r"), "b": meeting(pipe, "w")}) as servers:
        assert [status.state for status in await servers.open()] == ["ready", "ready"]


@pytest.mark.req("F3")
async def test_a_start_that_timed_out_among_others_is_tried_once_more() -> None:
    slow, attempts = peer(), 0

    def initialize(incoming: ServerRequest) -> Any:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            return SILENCE
        info = {"name": "slow", "version": "1"}
        capabilities: dict[str, Any] = {"tools": {}}
        version = incoming.params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}

    slow.on("initialize", initialize)
    options = {
        "protocol": "2025-06-18",
        "timeouts": holdfast.Timeouts(handshake=0.2),
        "backoff": Backoff(first=0.01, jitter=0),
    }
    async with Servers({"slow": {"target": slow, **options}, "quick": peer()}) as servers:
        found = await servers.list_tools()
        assert not found.failures
        assert {tool.server for tool in found} == {"slow", "quick"}
    assert attempts == 2


@pytest.mark.req("F3")
async def test_lists_are_asked_for_at_the_same_time() -> None:
    barrier = asyncio.Barrier(3)
    peers = {name: peer() for name in "abc"}
    for one in peers.values():
        one.on("tools/list", _after(barrier.wait, {"tools": [{"name": "t", "inputSchema": {}}]}))
    async with Servers(peers) as servers:
        assert [tool.dotted for tool in await servers.list_tools()] == ["a.t", "b.t", "c.t"]


async def test_no_more_servers_start_at_once_than_allowed() -> None:
    under_way = most = 0

    async def count() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(20):
            await asyncio.sleep(0)
        under_way -= 1

    peers = {str(number): peer() for number in range(7)}
    for one in peers.values():
        one.on("tools/list", _after(count, {"tools": []}))
    async with Servers(peers, concurrency=3) as servers:
        await servers.list_tools()
    assert most == 3


def _after(wait: Callable[[], Any], answer: Any) -> Callable[[ServerRequest], Any]:
    async def handler(incoming: ServerRequest) -> Any:
        await wait()
        return answer

    return handler


@pytest.mark.req("F3")
async def test_a_server_that_dies_takes_nobody_along() -> None:
    async with Servers({"a": DEMO, "b": DEMO}) as servers:
        await servers.open()
        waiting = servers["b"].start_tool("sleep", {"seconds": 0.2})
        with pytest.raises(TransportError):
            await servers.call_tool("a.crash", {"code": 7})
        assert states(servers) == {"a": "backoff", "b": "ready"}
        failure = servers.status("a").failure
        assert failure is not None
        assert "exited with code 7" in str(failure)
        assert failure.time.tzinfo is not None
        assert (await waiting).text == "slept 0.2 s"
        with pytest.raises(StateError):
            await servers.call_tool("a.echo", {"text": "x"})
        # That it is down is not news: why it went down is kept.
        assert servers.status("a").failure == failure


# Lazy


@pytest.mark.req("F3")
async def test_nothing_starts_before_it_is_used() -> None:
    peers = {"a": peer(), "b": peer()}
    async with Servers(peers) as servers:
        assert states(servers) == {"a": "not started", "b": "not started"}
        assert servers["a"].name == "a"
        assert states(servers) == {"a": "not started", "b": "not started"}
        await servers.call_tool("a.echo")
        assert states(servers) == {"a": "ready", "b": "not started"}
    assert (peers["a"].connections, peers["b"].connections) == (1, 0)


@pytest.mark.req("F3")
async def test_a_disabled_server_is_neither_started_nor_missed() -> None:
    off = peer()
    async with Servers({"on": peer(), "off": {"target": off, "disabled": True}}) as servers:
        assert [status.name for status in await servers.open()] == ["on"]
        tools = await servers.list_tools()
        assert (len(tools), tools.failures) == (1, ())
        assert servers.status("off").state == "disabled"
        with pytest.raises(StateError, match="off: disabled"):
            await servers.call_tool("off.echo")
        (failure,) = (await servers.list_tools(["off"])).failures
        assert failure.server == "off"
    assert off.connections == 0


async def test_some_servers_can_be_started_by_name() -> None:
    async with Servers({"a": peer(), "b": peer()}) as servers:
        (status,) = await servers.open(["b"])
        assert (status.name, status.state) == ("b", "ready")
        assert servers.status("a").state == "not started"
        assert [tool.server for tool in await servers.list_tools("b")] == ["b"]


async def test_opening_can_have_a_time_limit() -> None:
    silent = peer()
    silent.on("initialize", lambda incoming: SILENCE)
    silent.on("server/discover", lambda incoming: SILENCE)
    async with Servers({"silent": silent}) as servers:
        (status,) = await servers.open(timeout=0.05)
        assert status.state in ("starting", "initializing")
        assert str(status.error) == "silent: not ready within 0.05 s"


@pytest.mark.req("F3", "R2")
async def test_hung_servers_delay_no_longer_than_the_time_given() -> None:
    """Without a time they are tried again one by one, after their pauses."""
    hung = {name: peer() for name in "ab"}
    for one in hung.values():
        one.on("initialize", lambda incoming: SILENCE)
        one.on("server/discover", lambda incoming: SILENCE)
    async with Servers(hung) as servers, asyncio.timeout(8):
        assert len((await servers.list_tools(timeout=0.05)).failures) == 2
        assert len((await servers.list_skills(timeout=0.05)).failures) == 2
        assert not any(status.is_ready for status in await servers.open(timeout=0.05))
    async with Servers(hung, timeout=0.05) as servers, asyncio.timeout(8):
        assert len((await servers.list_tools()).failures) == 2
        assert len((await servers.list_skills()).failures) == 2


# Calls


@pytest.mark.req("F3")
@rows(
    ("name", "found"),
    [
        ("a.t", ("a", "t")),
        ("a.t.u", ("a", "t.u")),
        ("a.b.t", ("a.b", "t")),
        ("a.b.t.u", ("a.b", "t.u")),
        ("a.bb.t", ("a", "bb.t")),
        ("a.b.", ("a", "b.")),
        ("a..t", ("a", ".t")),
        ("d.e.f.t", ("d.e.f", "t")),
    ],
)
def test_the_longest_server_that_fits_is_meant(name: str, found: tuple[str, str]) -> None:
    assert Servers({"a": peer(), "a.b": peer(), "d.e.f": peer()}).resolve(name) == found


@rows("name", ["", ".", "a", "a.", "x.t", ".t", "d.e.t"])
def test_a_name_without_a_server_is_refused(name: str) -> None:
    servers = Servers({"a": peer(), "d.e.f": peer()})
    with pytest.raises(ValidationError, match=r"called as server\.tool, the servers are a, d"):
        servers.resolve(name)


async def test_what_could_have_been_meant_is_named() -> None:
    async with Servers({"git": peer("git_log"), "time": peer("now")}) as servers:
        with pytest.raises(ValidationError, match=r"Did you mean 'git.git_log'\?"):
            servers.resolve("gti.git_log")
        await servers.list_tools()
        with pytest.raises(ValidationError, match=r"Did you mean 'git.git_log'\?"):
            servers.resolve("git_log")
        with pytest.raises(ValidationError, match=r"no server 'tmie'. Did you mean 'time'\?"):
            servers["tmie"]
        with pytest.raises(ValidationError, match=r"Did you mean 'git_log'\?"):
            await servers.call_tool("git.git_lgo")
        with pytest.raises(ValidationError, match="no server 'tmie'"):
            await servers.list_tools(["tmie"])


async def test_a_call_passes_its_options_on() -> None:
    steps: list[float] = []
    async with Servers({"demo": DEMO}) as servers:
        result = await servers.call_tool(
            "demo.countdown", {"steps": 3}, on_progress=lambda step: steps.append(step.progress)
        )
        assert (result.is_error, steps) == (False, [1, 2, 3])
        with pytest.raises(RequestTimeout):
            await servers.call_tool("demo.sleep", {"seconds": 60}, timeout=0.05)


# All tools


@pytest.mark.req("F3")
async def test_a_list_tells_of_those_that_gave_none() -> None:
    slow, refused = peer(), peer()
    slow.on("tools/list", lambda incoming: SILENCE)
    refused.on("tools/list", {"tools": "none"})
    config = {"a": peer("x", "y"), "slow": slow, "refused": refused, "gone": GONE}
    async with Servers(config, timeout=60) as servers:
        tools = await servers.list_tools()
        assert [tool.dotted for tool in tools] == ["a.x", "a.y"]
        assert not tools.complete
        failures = {failure.server: str(failure) for failure in tools.failures}
        assert failures["slow"] == "slow: no list of tools within 60 s"
        assert "command not found" in failures["gone"]
        assert failures.keys() == {"slow", "refused", "gone"}
        assert servers.status("a").tools == 2
        assert servers.status("slow").tools is None


@pytest.mark.req("F3")
async def test_tools_have_names_for_models() -> None:
    async with Servers({"a": peer("x", "y.z"), "a__b": peer("x")}) as servers:
        tools = await servers.list_tools()
        assert all(isinstance(tool, ServerTool) for tool in tools)
        for tool in tools:
            assert servers.model_names.resolve(tool.name) == (tool.server, tool.tool.name)
        assert tools[0].name == "a__x"


async def test_what_a_handler_raises_is_one_server_s_trouble() -> None:
    def headers() -> dict[str, str]:
        raise LookupError("no token")

    config = {"a": peer(), "b": {"target": "http://127.0.0.1:9/mcp", "headers": headers}}
    async with Servers(config) as servers:
        tools = await servers.list_tools()
        assert [tool.server for tool in tools] == ["a"]
        (failure,) = tools.failures
        assert failure.server == "b"
        assert "no token" in str(failure)


async def test_a_mistake_in_one_server_s_options_is_its_own() -> None:
    async with Servers({"a": peer(), "odd": {"target": peer(), "timeouts": "fast"}}) as servers:
        tools = await servers.list_tools()
        assert [tool.server for tool in tools] == ["a"]
        (failure,) = tools.failures
        assert str(failure).startswith("odd: timeouts='fast': must be a holdfast.Timeouts")


async def test_tools_that_may_not_be_called_are_not_listed() -> None:
    config = {"a": {"target": peer("x", "y"), "tools": holdfast.ToolPolicy(deny=["y"])}}
    async with Servers(config) as servers:
        assert [tool.dotted for tool in await servers.list_tools()] == ["a.x"]


async def test_a_tool_listed_twice_is_there_once() -> None:
    twice = peer()
    entry = {"name": "t", "inputSchema": {}}
    twice.on("tools/list", {"tools": [{**entry, "title": "first"}, entry]})
    async with Servers({"a": twice}) as servers:
        (tool,) = await servers.list_tools()
        assert tool.tool.title == "first"


@pytest.mark.req("F3")
async def test_tools_are_found_by_keywords() -> None:
    async with Servers({"demo": DEMO, "gone": GONE}) as servers:
        hits = await servers.search("count the words of a text", limit=2)
        assert hits[0].tool.dotted == "demo.word_count"
        assert len(hits) == 2
        assert [failure.server for failure in hits.failures] == ["gone"]
        index = servers._index
        assert (await servers.search("add numbers"))[0].tool.dotted == "demo.add"
        assert servers._index is index, "nothing had changed"


@pytest.mark.req("F3")
async def test_a_search_knows_the_tools_of_now() -> None:
    growing = peer("add")
    async with Servers({"one": growing}) as servers:
        assert not await servers.search("sail")
        growing.tool("sail", description="Set sail.")(lambda: "done")
        assert [hit.tool.dotted for hit in await servers.search("sail")] == ["one.sail"]


@pytest.mark.req("F3")
async def test_a_server_that_is_named_twice_is_asked_once() -> None:
    async with Servers({"one": peer()}) as servers:
        assert len(await servers.list_tools(["one", "one"])) == 1


# The end


@pytest.mark.req("F3")
async def test_all_are_closed_whatever_they_are_doing() -> None:
    config = {"ready": DEMO, "gone": GONE, "hung": {"target": HUNG, "grace": 0.05}, "new": DEMO}
    servers = Servers(config, backoff=Backoff(first=60))
    await servers.open(["ready", "gone"])
    opening = asyncio.create_task(servers.open(["hung"]))
    await asyncio.sleep(0)
    sleeping = servers["ready"].start_tool("sleep", {"seconds": 60})
    await servers["ready"].ping()
    assert await servers.close() is True
    assert set(states(servers).values()) == {"closed"}
    with pytest.raises(ShutdownError):
        await sleeping
    (status,) = await opening
    assert status.state == "closed"
    assert await servers.close() is False
    for name in config:
        with pytest.raises((ShutdownError, StateError)):
            await servers.call_tool(f"{name}.echo", {"text": "x"})


async def test_servers_are_closed_at_the_same_time() -> None:
    async with Servers({"a": DEMO, "b": DEMO}) as servers:
        await servers.open()
        first, _ = await asyncio.gather(servers.close(), servers.close())
        assert first is True
    assert set(states(servers).values()) == {"closed"}


async def test_a_closer_that_is_cancelled_leaves_nothing_open() -> None:
    servers = Servers({"hung": {"target": HUNG, "grace": 0.05}, "demo": DEMO})
    await servers.open(timeout=5, servers=["demo"])
    closing = asyncio.create_task(servers.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await servers.close()
    assert set(states(servers).values()) == {"closed"}


async def test_an_error_inside_closes_all() -> None:
    with pytest.raises(KeyError):
        async with Servers({"a": peer()}) as servers:
            await servers.open()
            raise KeyError("mine")
    assert states(servers) == {"a": "closed"}


class Stubborn(Client):
    """Ends, and then fails."""

    async def close(self) -> bool:
        await super().close()
        raise OSError(f"{self.name} did not end")


def stubborn(name: str) -> Client:
    plain = holdfast.connect(peer())
    return Stubborn(plain.transport, plain._policy, Handlers(), name=name)


@pytest.mark.req("F3")
async def test_an_end_that_fails_is_reported_after_all_have_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    servers = Servers({"a": stubborn("a"), "b": peer(), "c": stubborn("c")})
    await servers.open()
    with pytest.raises(OSError, match="a did not end"):
        await servers.close()
    assert set(states(servers).values()) == {"closed"}
    assert "c did not end" in caplog.text, "only one can be raised"
    with pytest.raises(OSError, match="a did not end"):
        async with Servers({"a": stubborn("a")}) as again:
            await again.open()


def test_every_public_name_can_be_had() -> None:
    assert all(getattr(package, name).__name__ == name for name in package.__all__)
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = package.Nonsense  # type: ignore[attr-defined]


async def test_it_looks_like_what_it_holds() -> None:
    servers = Servers({"a": peer(), "b": peer()})
    assert (list(servers), len(servers), "a" in servers, "c" in servers) == (
        ["a", "b"],
        2,
        True,
        False,
    )
    assert repr(servers) == "<Servers 2, 0 ready>"
    wrong: Any
    for wrong in (0, 1.5, True, "2"):  # with half a place free, there would be no limit
        with pytest.raises(
            ValidationError, match=rf"Servers\(concurrency={wrong!r}\): must be a wh"
        ):
            Servers({}, concurrency=wrong)
    with pytest.raises(ValidationError, match=r"Servers\(timeout=True\): must be a number"):
        Servers({}, timeout=True)
    assert await Servers({}).open() == []
    assert await Servers({}).close() is False


@pytest.mark.req("K2")
async def test_skills_of_all_servers_are_listed_and_read_where_they_come_from() -> None:
    one, other = Peer(), Peer()
    for made, text in ((one, "kind"), (other, "stern")):
        main = f"---\nname: refunds\ndescription: {text}\n---\n"
        made.skill("skill://refunds", {"SKILL.md": main})
    async with Servers({"one": one, "other": other, "plain": peer(), "gone": GONE}) as servers:
        found = await servers.list_skills()
        assert [(skill.server, skill.name) for skill in found] == [
            ("one", "refunds"),
            ("other", "refunds"),
        ]
        assert [failure.server for failure in found.failures] == ["gone"]
        read = await servers.read_skill(found[1])
        assert (read.server, "stern" in read.text) == ("other", True)


@pytest.mark.req("T5")
@rows(
    ("verb", "arguments"),
    [
        (verb, arguments)
        for wrong in (7, b"bytes", {"a": 1}, object())
        for verb, arguments in [
            ("call_tool", {"name": wrong}),
            ("status", {"name": wrong}),
            ("list_tools", {"servers": [wrong]}),
            ("search", {"query": wrong}),
            ("read_skill", {"skill": wrong}),
            ("perform", {"toolset": wrong, "call": {}}),
            ("toolset", {"shape": wrong}),
            ("finder", {"shape": wrong}),
        ]
    ]
    + [("search", {"limit": "5", "query": "text"})]
    + [("open", {"servers": 7}), ("list_skills", {"servers": object()})],
)
async def test_an_argument_of_the_wrong_type_is_refused_by_name(
    verb: str, arguments: dict[str, Any]
) -> None:
    async with Servers({"one": peer()}) as servers:
        with pytest.raises(ValidationError, match=f"{next(iter(arguments))[:5]}.* must be "):
            made = getattr(servers, verb)(**arguments)
            if inspect.isawaitable(made):
                await made
