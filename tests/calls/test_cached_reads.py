"""Lists and resources through the cache, against a scripted server."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import holdfast
from holdfast import Backoff, Cache, Handlers, Timeouts
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS, VERSIONS
from holdfast.stores import MemoryStore
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from tests.rows import rows

URI = "mem://note"
SOON = Timeouts(request=5)
QUICK = Backoff(first=0.001, max=0.001)


class Notes(Peer):
    """One resource whose text tells how often it was read; one tool."""

    def __init__(self, *, versions: Any = VERSIONS, **hints: Any) -> None:
        super().__init__(versions=versions)
        self.hints = hints
        self.resource(URI, "")
        self.on("resources/read", self.read)
        self.on("resources/list", self.list)

        @self.tool()
        def sync_repository() -> str:
            return "done"

        @self.tool()
        def other() -> str:
            return "done"

    def read(self, incoming: ServerRequest) -> Any:
        text = f"reading {self.reads}"
        return {"contents": [{"uri": incoming.params["uri"], "text": text}], **self.hints}

    def list(self, incoming: ServerRequest) -> Any:
        return {
            "resources": [{"uri": URI, "name": f"n{self.count('resources/list')}"}]
        } | self.hints

    def count(self, method: str) -> int:
        return sum(one.method == method for one in self.received)

    @property
    def reads(self) -> int:
        return self.count("resources/read")


@pytest.fixture
async def notes() -> Notes:
    return Notes(ttlMs=60_000, cacheScope="private")


@pytest.fixture
async def client(notes: Notes) -> AsyncIterator[holdfast.Client]:
    async with holdfast.connect(notes, timeouts=SOON) as client:
        yield client


async def text(client: holdfast.Client, uri: str = URI, **options: Any) -> str:
    return (await client.read_resource(uri, **options)).text


async def until(done: Callable[[], bool]) -> None:
    while not done():  # noqa: ASYNC110  (a condition of the client, not of the test)
        await asyncio.sleep(0)


@pytest.mark.req("C1")
async def test_what_is_fresh_is_not_asked_for_again(client: holdfast.Client, notes: Notes) -> None:
    assert await text(client) == await text(client) == "reading 1"
    assert await text(client, "mem://else") == "reading 2"
    assert notes.reads == 2


@pytest.mark.req("C1")
async def test_without_a_ttl_everything_is_asked_for() -> None:
    notes = Notes()
    async with holdfast.connect(notes, timeouts=SOON) as client:
        assert await text(client) != await text(client)
        await client.list_resources()
        await client.list_resources()
    assert notes.count("resources/list") == 2


@pytest.mark.req("C1")
async def test_a_default_ttl_of_ones_own() -> None:
    notes = Notes(versions=HANDSHAKE)
    async with holdfast.connect(notes, timeouts=SOON, cache=Cache(reads=60)) as client:
        assert await text(client) == await text(client)


@pytest.mark.req("C2")
async def test_a_call_can_refresh_or_bypass(client: holdfast.Client) -> None:
    assert await text(client) == "reading 1"
    assert await text(client, cache="bypass") == "reading 2"
    assert await text(client) == "reading 1"
    assert await text(client, cache="refresh") == "reading 3"
    assert await text(client, cache="use") == "reading 3"
    with pytest.raises(holdfast.ValidationError, match="cache='no': must be"):
        await text(client, cache="no")


@pytest.mark.req("C2")
async def test_the_cache_can_be_off_for_a_client(notes: Notes) -> None:
    async with holdfast.connect(notes, timeouts=SOON, cache=Cache(mode="bypass")) as client:
        assert await text(client) != await text(client)


@pytest.mark.req("C2")
@pytest.mark.parametrize("versions", [HANDSHAKE, STATELESS])
async def test_news_from_the_server_invalidates(versions: Any) -> None:
    notes = Notes(versions=versions, ttlMs=60_000)
    heard = asyncio.Event()
    async with holdfast.connect(notes, timeouts=SOON) as client:
        client.on_notification(lambda _: heard.set())
        await text(client)
        await client.list_resources()
        notes.notify("notifications/resources/updated", {"uri": URI})
        notes.notify("notifications/resources/list_changed")
        await heard.wait()
        assert await text(client) == "reading 2"
        (listed,) = await client.list_resources()
        assert listed.name == "n2"


@pytest.mark.req("C2")
async def test_a_handler_of_the_news_finds_nothing_old(
    client: holdfast.Client, notes: Notes
) -> None:
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def again(_: Any) -> None:
        found.set_result(await text(client))

    client.on_notification(again, "notifications/resources/updated")
    await text(client)
    notes.notify("notifications/resources/updated", {"uri": URI})
    assert await found == "reading 2"


@pytest.mark.req("C2")
async def test_a_sync_tool_named_by_the_user_invalidates_everything(notes: Notes) -> None:
    policy = Cache(invalidate_on={"sync_repository"})
    async with holdfast.connect(notes, timeouts=SOON, cache=policy) as client:
        assert await text(client) == "reading 1"
        await client.call_tool("other")
        assert await text(client) == "reading 1"
        await client.call_tool("sync_repository")
        assert await text(client) == "reading 2"


@pytest.mark.req("C2")
async def test_a_sync_tool_that_fails_may_have_run(notes: Notes) -> None:
    notes.on("tools/call", lambda _: SILENCE)
    policy = Cache(invalidate_on={"sync_repository"})
    async with holdfast.connect(notes, timeouts=SOON, cache=policy) as client:
        await text(client)
        with pytest.raises(holdfast.RequestTimeout):
            await client.call_tool("sync_repository", timeout=0.01)
        assert await text(client) == "reading 2"


@pytest.mark.req("C2")
async def test_a_server_that_was_away_is_asked_again(notes: Notes) -> None:
    async with holdfast.connect(notes, timeouts=SOON, backoff=QUICK) as client:
        assert await text(client) == "reading 1"
        notes.hang_up()
        await until(lambda: not client.is_connected)
        await client.wait_ready(5)
        assert await text(client) == "reading 2"


@pytest.mark.req("C2")
async def test_list_changes_are_subscribed_to_where_that_is_asked_for() -> None:
    notes = Notes(versions=STATELESS, ttlMs=60_000)
    async with holdfast.connect(notes, timeouts=SOON, cache=Cache(watch=True)) as client:
        await client.list_resources()
        asked = await notes.expect("subscriptions/listen")
        assert asked.params["notifications"]["resourcesListChanged"] is True


# One request for all who want it


@pytest.mark.req("C1")
async def test_ten_readers_at_once_make_one_request(notes: Notes) -> None:
    gate = asyncio.Event()

    async def slow(incoming: ServerRequest) -> Any:
        await gate.wait()
        return notes.read(incoming)

    notes.on("resources/read", slow)
    async with holdfast.connect(notes, timeouts=SOON) as client:
        readers = [asyncio.create_task(text(client)) for _ in range(10)]
        await notes.expect("resources/read")
        gate.set()
        assert set(await asyncio.gather(*readers)) == {"reading 1"}
    assert notes.reads == 1


@pytest.mark.req("C1")
async def test_a_request_outlives_its_first_caller_if_others_wait(
    notes: Notes,
) -> None:
    gate = asyncio.Event()

    async def slow(incoming: ServerRequest) -> Any:
        await gate.wait()
        return notes.read(incoming)

    notes.on("resources/read", slow)
    async with holdfast.connect(notes, timeouts=SOON) as client:
        leader = asyncio.create_task(text(client))
        await notes.expect("resources/read")
        followers = [asyncio.create_task(text(client)) for _ in range(3)]
        await asyncio.sleep(0)
        leader.cancel()
        await asyncio.wait([leader])
        gate.set()
        assert set(await asyncio.gather(*followers)) == {"reading 1"}
    assert leader.cancelled()
    assert notes.reads == 1


@pytest.mark.req("C1")
async def test_readers_of_a_failed_request_all_hear_it() -> None:
    notes = Notes()
    gate = asyncio.Event()

    async def refuse(_: ServerRequest) -> Any:
        await gate.wait()
        raise RequestError(-32000, "no")

    notes.on("resources/read", refuse)
    async with holdfast.connect(notes, timeouts=SOON) as client:
        readers = [asyncio.create_task(text(client)) for _ in range(3)]
        await notes.expect("resources/read")
        gate.set()
        found = await asyncio.gather(*readers, return_exceptions=True)
    assert {type(one) for one in found} == {holdfast.RpcError}
    assert len({id(one) for one in found}) == 3
    assert notes.reads == 1


@pytest.mark.req("C1", "C2")
async def test_who_reads_after_a_tool_call_never_gets_an_answer_from_before_it() -> None:
    notes = Notes()
    answers: list[ServerRequest] = []

    def later(incoming: ServerRequest) -> Any:
        answers.append(incoming)
        return SILENCE

    notes.on("resources/read", later)
    async with holdfast.connect(notes, timeouts=SOON) as client:
        before = asyncio.create_task(text(client))
        await notes.expect("resources/read")
        await client.call_tool("other")
        after = asyncio.create_task(text(client))
        await until(lambda: len(answers) == 2)
        for name, incoming in zip(("old", "new"), answers, strict=True):
            content = {"uri": URI, "text": name}
            notes.respond(incoming, {"resultType": "complete", "contents": [content]})
        assert (await before, await after) == ("old", "new")


@pytest.mark.req("C2")
async def test_who_reads_after_the_news_does_not_wait_for_an_older_request(notes: Notes) -> None:
    notes.on("resources/read", lambda _: SILENCE)
    async with holdfast.connect(notes, timeouts=SOON) as client:
        before = asyncio.create_task(text(client))
        await notes.expect("resources/read")
        heard = asyncio.Event()
        client.on_notification(lambda _: heard.set())
        notes.notify("notifications/resources/updated", {"uri": URI})
        await heard.wait()
        after = asyncio.create_task(text(client))
        await notes.expect("resources/read", 2)
        before.cancel()
        after.cancel()


# Never kept


@pytest.mark.req("C1")
async def test_what_came_out_of_questions_is_never_kept() -> None:
    notes = Notes(versions=STATELESS, ttlMs=60_000, cacheScope="public")

    def ask(incoming: ServerRequest) -> Any:
        if "inputResponses" in incoming.params:
            return notes.read(incoming)
        question = {"method": "roots/list", "params": {}}
        return {"resultType": "input_required", "inputRequests": {"q": question}}

    notes.on("resources/read", ask)
    handlers = Handlers(roots=["file:///home"])
    async with holdfast.connect(notes, timeouts=SOON, handlers=handlers) as client:
        assert await text(client) == "reading 2"
        assert await text(client) == "reading 4"


@pytest.mark.req("C1")
async def test_an_error_is_never_kept(client: holdfast.Client, notes: Notes) -> None:
    def refuse(_: ServerRequest) -> Any:
        raise RequestError(-32602, "no such resource")

    notes.on("resources/read", refuse)
    with pytest.raises(holdfast.errors.ResourceNotFoundError):
        await text(client)
    notes.on("resources/read", notes.read)
    assert await text(client) == "reading 2"


async def test_a_closed_client_serves_nothing(client: holdfast.Client) -> None:
    await text(client)
    await client.close()
    with pytest.raises(holdfast.errors.ShutdownError):
        await text(client)


# Stale


@pytest.mark.req("C3")
async def test_stale_answers_are_served_and_marked_when_the_server_is_down() -> None:
    notes = Notes()
    down = Backoff(first=60, max=60)
    policy = Cache(serve_stale=True)
    async with holdfast.connect(notes, timeouts=SOON, backoff=down, cache=policy) as client:
        result = await client.read_resource(URI)
        listed = await client.list_resources()
        assert not result.stale
        assert not listed.stale
        notes.hang_up()
        again = await client.read_resource(URI)
        assert again.text == result.text
        assert again.stale
        assert (await client.list_resources()).stale
        with pytest.raises(holdfast.StateError):
            await client.read_resource("mem://never-read")


@pytest.mark.req("C3")
async def test_without_leave_nothing_stale_is_served() -> None:
    notes = Notes(ttlMs=1)
    down = Backoff(first=60, max=60)
    async with holdfast.connect(notes, timeouts=SOON, backoff=down) as client:
        await text(client)
        await asyncio.to_thread(time.sleep, 0.002)  # the entry's life, by the clock on the wall
        notes.hang_up()
        with pytest.raises((holdfast.StateError, holdfast.TransportError)):
            await text(client)


@pytest.mark.req("C3")
async def test_what_the_server_itself_refuses_is_not_answered_from_the_cache() -> None:
    notes = Notes()

    def refuse(_: ServerRequest) -> Any:
        raise RequestError(-32000, "gone")

    async with holdfast.connect(notes, timeouts=SOON, cache=Cache(serve_stale=True)) as client:
        await text(client)
        notes.on("resources/read", refuse)
        with pytest.raises(holdfast.RpcError):
            await text(client)


@pytest.mark.req("C1")
async def test_what_is_fresh_is_served_while_the_server_is_down(notes: Notes) -> None:
    down = Backoff(first=60, max=60)
    async with holdfast.connect(notes, timeouts=SOON, backoff=down) as client:
        await text(client)
        notes.hang_up()
        result = await client.read_resource(URI)
        assert not result.stale


# Pages


def paged(notes: Notes, ttls: dict[str | None, int]) -> None:
    """Three pages, each with a life of its own; items tell how often lists were served."""
    following = {None: "2", "2": "3", "3": None}

    def page(incoming: ServerRequest) -> Any:
        cursor = incoming.params.get("cursor")
        name = f"{cursor or 1}.{notes.count('prompts/list')}"
        found: dict[str, Any] = {"prompts": [{"name": name}], "ttlMs": ttls[cursor]}
        return found | ({"nextCursor": following[cursor]} if following[cursor] else {})

    notes.on("prompts/list", page)


async def prompts(client: holdfast.Client) -> list[str]:
    return [prompt.name for prompt in await client.list_prompts()]


@pytest.mark.req("C1")
async def test_each_page_is_kept_for_itself() -> None:
    notes = Notes()
    paged(notes, {None: 60_000, "2": 0, "3": 60_000})
    async with holdfast.connect(notes, timeouts=SOON) as client:
        assert await prompts(client) == ["1.1", "2.2", "3.3"]
        assert await prompts(client) == ["1.1", "2.4", "3.3"]


@pytest.mark.req("C1")
async def test_a_cursor_that_is_gone_makes_the_list_begin_anew() -> None:
    notes = Notes()
    paged(notes, {None: 60_000, "2": 0, "3": 0})
    async with holdfast.connect(notes, timeouts=SOON) as client:
        assert await prompts(client) == ["1.1", "2.2", "3.3"]

        def other(incoming: ServerRequest) -> Any:
            if "cursor" in incoming.params:
                raise RequestError(-32602, "unknown cursor")
            return {"prompts": [{"name": "all"}]}

        notes.on("prompts/list", other)
        assert await prompts(client) == ["all"]


@pytest.mark.req("C1")
async def test_a_cursor_that_was_never_good_is_the_servers_error() -> None:
    notes = Notes()

    def broken(incoming: ServerRequest) -> Any:
        if "cursor" in incoming.params:
            raise RequestError(-32602, "unknown cursor")
        return {"prompts": [], "nextCursor": "2"}

    notes.on("prompts/list", broken)
    async with holdfast.connect(notes, timeouts=SOON) as client:
        with pytest.raises(holdfast.RpcError, match="unknown cursor"):
            await client.list_prompts()
    assert notes.count("prompts/list") == 2


# Stores


@pytest.mark.req("C4")
async def test_public_answers_of_a_shared_store_need_no_server() -> None:
    store = MemoryStore()
    command = [sys.executable, "-m", "holdfast.demo.server"]
    async with holdfast.connect(command, cache=Cache(store=store)) as client:
        first = await client.list_tools()
    async with holdfast.connect(command, cache=Cache(store=store)) as client:
        again = await client.list_tools()
        assert client.state == "new"
    assert [tool.name for tool in again] == [tool.name for tool in first]
    other = [*command, "--other"]
    client = holdfast.connect(other, cache=Cache(store=store))
    assert await client._cached.cache.find("tools/list", None) is None
    await client.close()


@pytest.mark.req("C4")
@pytest.mark.parametrize(("scope", "shared"), [("public", True), ("private", False)])
async def test_private_answers_never_cross_a_context(scope: str, shared: bool) -> None:
    store = MemoryStore()
    notes = Notes(ttlMs=60_000, cacheScope=scope)
    found = []
    for context in ("me", "you", "me", None):
        client = holdfast.connect(notes, timeouts=SOON, cache=Cache(store=store, context=context))
        client._cached.cache._server = "the same server"  # memory has no name for its servers
        found.append(await text(client))
        await client.close()
    assert (len(set(found)) == 1) is shared
    assert found[0] == found[2]
    if not shared:
        assert len(set(found)) == 3


class Failing(MemoryStore):
    """A store that fails in one of its functions, in one of many ways."""

    def __init__(self, where: str, how: BaseException | None) -> None:
        super().__init__()
        self._where, self._how = where, how

    async def _fail(self, where: str) -> None:
        if where == self._where:
            if self._how is None:
                await asyncio.Event().wait()
            else:
                raise self._how

    async def get(self, key: str) -> bytes | None:
        await self._fail("get")
        return await super().get(key)

    async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
        await self._fail("put")
        await super().put(key, data, ttl)


class Odd(BaseException):
    pass


@pytest.mark.req("C4", "R2")
@pytest.mark.parametrize("where", ["get", "put"])
@pytest.mark.parametrize(
    "how", [OSError("down"), asyncio.CancelledError(), TimeoutError(), Odd(), None], ids=repr
)
async def test_whatever_a_store_does_it_costs_no_call(
    where: str, how: BaseException | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast._core.calls.cache.PATIENCE", 0.01)
    notes = Notes(ttlMs=60_000)
    async with holdfast.connect(
        notes, timeouts=SOON, cache=Cache(store=Failing(where, how))
    ) as client:
        assert await text(client)
        await client.list_tools()


@pytest.mark.req("C4", "R3")
async def test_a_store_that_does_not_answer_takes_no_more_than_the_time_of_the_call() -> None:
    store = Failing("get", None)
    async with holdfast.connect(Notes(ttlMs=60_000), cache=Cache(store=store)) as client:
        with pytest.raises(TimeoutError):
            await client.list_tools(timeout=0.02)


@pytest.mark.req("C4")
@rows("found", ["text", 7, b"", b"[]", b"[[],0,1e12]\n\xff{", b"[[],0,1e12]\n[]", b"\xff\n{}"])
async def test_what_a_store_cannot_have_been_given_counts_as_nothing(found: Any) -> None:
    class Garbled(MemoryStore):
        async def get(self, key: str) -> Any:
            return found

    async with holdfast.connect(Notes(ttlMs=60_000), cache=Cache(store=Garbled())) as client:
        assert await text(client)
        await client.list_tools()
