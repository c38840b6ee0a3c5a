"""Freshness, scope and invalidation, without a client: the clock is a number."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json

from holdfast._core.calls.cache import (
    CHANGES,
    MOST_URIS,
    READ,
    CacheEntry,
    ResponseCache,
    ResponseVersion,
)
from holdfast.policies import Cache
from holdfast.stores import MemoryStore, SqliteStore, Store, StoreError
from tests.rows import rows

LIST = "tools/list"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Rig:
    """One client's cache, by hand."""

    def __init__(
        self, policy: Cache | None = None, clock: Clock | None = None, context: str = "me"
    ) -> None:
        self.clock = clock or Clock()
        self.context = context
        self.cache = ResponseCache(
            policy or Cache(), "server", lambda: self.context, clock=self.clock
        )

    async def ask(self, method: str = LIST, params: Any = None) -> ResponseVersion:
        version = await self.cache.version(method, params)
        assert version is not None
        return version

    async def keep(
        self,
        method: str = LIST,
        params: Any = None,
        version: ResponseVersion | None = None,
        **hints: Any,
    ) -> CacheEntry | None:
        version = version or await self.cache.version(method, params)
        return await self.cache.put(method, params, Raw(json.encode(hints)), version)

    async def fresh(self, method: str = LIST, params: Any = None) -> bool:
        entry = await self.cache.find(method, params)
        return entry is not None and self.cache.is_fresh(method, params, entry)


@pytest.mark.req("C1")
async def test_the_servers_ttl_rules() -> None:
    rig = Rig(Cache(ttl=5))
    await rig.keep(ttlMs=2000)
    rig.clock.now += 1.999
    assert await rig.fresh()
    rig.clock.now += 0.001
    assert not await rig.fresh()


@pytest.mark.req("C1")
async def test_where_the_server_says_nothing_the_default_does() -> None:
    rig = Rig(Cache(ttl=5))
    await rig.keep()
    rig.clock.now += 4.9
    assert await rig.fresh()
    rig.clock.now += 0.1
    assert not await rig.fresh()


@pytest.mark.req("C1")
@rows(
    ("method", "setting"),
    [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resources"),
        ("resources/read", "reads"),
    ],
)
async def test_each_kind_can_have_its_own_default(method: str, setting: str) -> None:
    rig = Rig(Cache(**{setting: 5}))  # type: ignore[arg-type]
    await rig.keep(method)
    assert await rig.fresh(method)
    other = LIST if method != LIST else READ
    assert await rig.keep(other) is None


@pytest.mark.req("C1")
@rows("ttl", [0, -1, -5.5, "60", True, [1]])
async def test_a_ttl_of_nothing_or_nonsense_is_not_kept(ttl: Any) -> None:
    assert await Rig(Cache(ttl=60)).keep(ttlMs=ttl) is None


@pytest.mark.req("C1")
async def test_without_any_ttl_nothing_is_kept() -> None:
    assert await Rig().keep() is None


@pytest.mark.req("C1")
async def test_no_ttl_is_longer_than_the_longest() -> None:
    rig = Rig(Cache(max_ttl=60))
    await rig.keep(ttlMs=int("9" * 400))
    rig.clock.now += 60
    assert not await rig.fresh()


@pytest.mark.req("C1")
async def test_other_parameters_are_another_entry() -> None:
    rig = Rig()
    await rig.keep(READ, {"uri": "a"}, ttlMs=1000)
    assert not await rig.fresh(READ, {"uri": "b"})
    await rig.keep(LIST, {"cursor": ""}, ttlMs=1000)
    assert not await rig.fresh(LIST)


@pytest.mark.req("C1")
async def test_a_clock_that_was_set_back_makes_nothing_live_longer() -> None:
    rig = Rig()
    await rig.keep(ttlMs=1000)
    rig.clock.now -= 500
    assert not await rig.fresh()


# Scope


@pytest.mark.req("C4")
async def test_public_entries_are_everybodys_and_private_ones_are_not() -> None:
    store, clock = MemoryStore(), Clock()
    mine = Rig(Cache(store=store), clock, "me")
    yours = Rig(Cache(store=store), clock, "you")
    await mine.keep(LIST, ttlMs=1000, cacheScope="public")
    await mine.keep(READ, {"uri": "a"}, ttlMs=1000, cacheScope="private")
    assert await yours.fresh(LIST)
    assert not await yours.fresh(READ, {"uri": "a"})
    assert await mine.fresh(READ, {"uri": "a"})


@pytest.mark.req("C4")
@rows("scope", [None, "PUBLIC", "shared", 5, ["public"]])
async def test_what_is_not_said_to_be_public_is_private(scope: Any) -> None:
    store, clock = MemoryStore(), Clock()
    mine = Rig(Cache(store=store), clock, "me")
    hints = {} if scope is None else {"cacheScope": scope}
    await mine.keep(ttlMs=1000, **hints)
    assert await mine.fresh()
    assert not await Rig(Cache(store=store), clock, "you").fresh()


@pytest.mark.req("C4")
async def test_new_credentials_are_another_context() -> None:
    rig = Rig()
    await rig.keep(ttlMs=1000)
    rig.context = "somebody else"
    assert not await rig.fresh()


# Invalidation


@pytest.mark.req("C2")
@pytest.mark.parametrize("notification", CHANGES)
async def test_a_list_change_invalidates_its_lists_with_all_pages(notification: str) -> None:
    rig = Rig(Cache(ttl=60))
    methods = {method for changed in CHANGES.values() for method in changed}
    for method in (*methods, READ):
        await rig.keep(method)
        await rig.keep(method, {"cursor": "2"})
    rig.clock.now += 1
    rig.cache.noticed(notification, None)
    for method in (*methods, READ):
        gone = method in CHANGES[notification]
        assert await rig.fresh(method) is not gone
        assert await rig.fresh(method, {"cursor": "2"}) is not gone


@pytest.mark.req("C2")
async def test_an_update_invalidates_the_resource_and_what_it_is_in() -> None:
    rig = Rig(Cache(ttl=60))
    uris = ["file:///a/b/c", "file:///a/b", "file:///a/", "file:///a/b/x", "file:///other"]
    for uri in uris:
        await rig.keep(READ, {"uri": uri})
    rig.clock.now += 1
    rig.cache.noticed("notifications/resources/updated", Raw(b'{"uri":"file:///a/b/c"}'))
    fresh = [uri for uri in uris if await rig.fresh(READ, {"uri": uri})]
    assert fresh == ["file:///a/b/x", "file:///other"]


@pytest.mark.req("C2")
@rows(
    "params",
    [
        None,
        Raw(b"{}"),
        Raw(b'{"uri":5}'),
        Raw(b"[]"),
        Raw(json.encode({"uri": "x:" + "/a" * 30})),
        Raw(json.encode({"uri": "x:" + "a" * 3000})),
    ],
)
async def test_an_update_of_nobody_knows_what_invalidates_all_resources(params: Any) -> None:
    rig = Rig(Cache(ttl=60))
    await rig.keep(READ, {"uri": "a"})
    rig.cache.noticed("notifications/resources/updated", params)
    assert not await rig.fresh(READ, {"uri": "a"})


@pytest.mark.req("C2")
async def test_an_answer_on_its_way_when_the_news_comes_is_not_fresh() -> None:
    rig = Rig(Cache(ttl=60))
    version = await rig.ask()
    rig.cache.noticed("notifications/tools/list_changed", None)
    await rig.keep(version=version)
    assert not await rig.fresh()


@pytest.mark.req("C2")
async def test_what_is_asked_after_the_news_is_fresh_within_the_same_tick_of_the_clock() -> None:
    rig = Rig(Cache(ttl=60))
    rig.cache.noticed("notifications/tools/list_changed", None)
    await rig.keep()
    assert await rig.fresh()


async def test_a_flood_of_updates_is_bounded() -> None:
    rig = Rig(Cache(ttl=60))
    await rig.keep(READ, {"uri": "x:a"})
    for number in range(MOST_URIS + 1):
        rig.clock.now += 0.001
        rig.cache.noticed("notifications/resources/updated", Raw(b'{"uri":"x:%d"}' % number))
    assert len(rig.cache._updated) <= MOST_URIS
    assert not await rig.fresh(READ, {"uri": "x:a"})
    assert not await rig.fresh(READ, {"uri": "x:7"})


def test_a_uri_of_many_parts_is_bounded() -> None:
    rig = Rig()
    params = Raw(json.encode({"uri": "x:" + "/a" * 100_000}))
    rig.cache.noticed("notifications/resources/updated", params)
    assert not rig.cache._updated


@pytest.mark.req("C1")
async def test_hints_nested_too_deeply_cost_no_answer() -> None:
    deep = b'{"tools":[],"ttlMs":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    rig = Rig(Cache(ttl=60))
    assert await rig.cache.put(LIST, None, Raw(deep), await rig.ask()) is not None


# A store that fails


class Broken(MemoryStore):
    down, uses = True, 0

    async def get(self, key: str) -> bytes | None:
        self.uses += 1
        if self.down:
            raise ConnectionError(key)
        return await super().get(key)

    async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
        self.uses += 1
        if self.down:
            raise ConnectionError(key)
        await super().put(key, data, ttl)


@pytest.mark.req("C4")
async def test_a_store_that_fails_costs_an_entry_and_no_more() -> None:
    rig = Rig(Cache(ttl=60, store=Broken()))
    assert await rig.keep() is None
    assert await rig.cache.find(LIST, None) is None


@pytest.mark.req("C4")
async def test_a_store_that_failed_is_left_alone_for_a_while_and_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Broken()
    rig = Rig(Cache(ttl=60, store=store))
    for _ in range(5):
        await rig.keep()
        assert await rig.cache.find(LIST, None) is None
    assert store.uses == 1
    assert len([record for record in caplog.records if "store failed" in record.message]) == 1
    store.down = False
    rig.cache._down_until = 0.0  # the time is over
    await rig.keep()
    assert await rig.fresh()


@pytest.mark.req("C4")
@pytest.mark.parametrize(
    ("failure", "reason"),
    [(StoreError("the disk is full"), "the disk is full"), (None, "no answer within 0.25 s")],
    ids=["fails", "hangs"],
)
async def test_a_store_that_fails_as_stores_do_is_one_line_of_the_log(
    failure: StoreError | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Bad(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            if failure is not None:
                raise failure
            await asyncio.get_running_loop().create_future()
            return None

    rig = Rig(Cache(ttl=60, store=Bad()))
    assert await rig.cache.find(LIST, None) is None
    (record,) = [record for record in caplog.records if "store failed" in record.message]
    assert record.message.endswith(f": {reason}")
    assert record.exc_info is None


# Clients that share a store


def pair(store: Store, **policy: Any) -> tuple[Rig, Rig]:
    """Two clients of one server; the clock of the second is an hour behind."""
    late = Clock()
    late.now -= 3600
    cache = Cache(ttl=60, store=store, **policy)
    return Rig(cache), Rig(cache, late)


@pytest.fixture(params=["memory", "sqlite"])
def shared_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
    else:
        store = SqliteStore(tmp_path / "cache.db")
        yield store
        store.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stores of these tests answer, however busy the machine is."""
    monkeypatch.setattr("holdfast._core.calls.cache.PATIENCE", 60.0)


@pytest.mark.usefixtures("patient")
@pytest.mark.req("C2", "C4")
@pytest.mark.parametrize(
    ("method", "params", "news", "about"),
    [
        (LIST, None, "notifications/tools/list_changed", None),
        (LIST, {"cursor": "2"}, "notifications/tools/list_changed", None),
        (READ, {"uri": "f:///a/b"}, "notifications/resources/updated", b'{"uri":"f:///a/b"}'),
        (READ, {"uri": "f:///a"}, "notifications/resources/updated", b'{"uri":"f:///a/b"}'),
        (READ, {"uri": "f:///a"}, "notifications/resources/updated", b"{}"),
    ],
)
async def test_what_one_client_hears_invalidates_for_all(
    shared_store: Store, method: str, params: Any, news: str, about: bytes | None
) -> None:
    here, there = pair(shared_store)
    there.clock.now = here.clock.now
    await here.keep(method, params)
    assert await there.fresh(method, params)
    here.cache.noticed(news, None if about is None else Raw(about))
    assert here.cache._publishing is not None
    await here.cache._publishing
    assert not await there.fresh(method, params)
    await there.keep(method, params)
    assert await here.fresh(method, params)


@pytest.mark.usefixtures("patient")
@pytest.mark.req("C2", "C4")
async def test_a_response_on_its_way_to_another_client_is_stale_after_the_news(
    shared_store: Store,
) -> None:
    here, there = pair(shared_store)
    version = await there.ask()
    here.cache.noticed("notifications/tools/list_changed", None)
    assert not await here.fresh()
    await there.keep(version=version)
    there.clock.now = here.clock.now
    assert not await here.fresh()
    assert not await there.fresh()


@pytest.mark.usefixtures("patient")
@pytest.mark.req("C2", "C4")
async def test_other_resources_of_a_shared_store_stay_fresh(shared_store: Store) -> None:
    here, there = pair(shared_store)
    there.clock.now = here.clock.now
    await here.keep(READ, {"uri": "f:///a"})
    await here.keep(READ, {"uri": "f:///b"})
    here.cache.noticed("notifications/resources/updated", Raw(b'{"uri":"f:///b"}'))
    assert await here.fresh(READ, {"uri": "f:///a"})
    assert await there.fresh(READ, {"uri": "f:///a"})
    assert not await there.fresh(READ, {"uri": "f:///b"})


@pytest.mark.req("C2", "C4")
async def test_news_that_could_not_be_written_are_written_before_the_store_is_used_again() -> None:
    store = Broken()
    store.down = False
    here, there = pair(store)
    there.clock.now = here.clock.now
    await here.keep()
    store.down = True
    here.cache.noticed("notifications/tools/list_changed", None)
    assert not await here.fresh()
    store.down, here.cache._down_until = False, 0.0
    assert not await here.fresh()
    assert not await there.fresh()


@pytest.mark.req("C2", "C4")
async def test_news_during_the_writing_of_earlier_ones_are_not_lost() -> None:
    gate = asyncio.Event()

    class Slow(MemoryStore):
        async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
            await super().put(key, data, ttl)
            if "version" in key and not gate.is_set():
                await gate.wait()

    store = Slow()
    gate.set()
    here, there = pair(store)
    there.clock.now = here.clock.now
    await here.keep()
    gate.clear()
    here.cache.noticed("notifications/tools/list_changed", None)
    for _ in range(3):
        await asyncio.sleep(0)
    await there.keep()  # after the first change, with its token
    here.cache.noticed("notifications/tools/list_changed", None)
    gate.set()
    assert here.cache._publishing is not None
    await here.cache._publishing  # and nobody looks meanwhile
    assert not await there.fresh()
    assert not await here.fresh()


@pytest.mark.req("C2", "C4")
async def test_a_store_that_loses_the_versions_makes_entries_stale() -> None:
    store = MemoryStore()
    here, _ = pair(store)
    await here.keep()
    for key in await store.keys():
        if "version" in key:
            await store.delete(key)
    assert not await here.fresh()


@pytest.mark.req("C4")
async def test_an_entry_of_a_store_is_decoded_once() -> None:
    here, there = pair(MemoryStore())
    await here.keep()
    first = await there.cache.find(LIST, None)
    assert first is not None
    first.memo = "decoded"
    assert await there.cache.find(LIST, None) is first
    await here.keep(text="another")
    again = await there.cache.find(LIST, None)
    assert again is not None
    assert again.memo is None


@pytest.mark.req("C4")
async def test_what_is_served_when_stale_outlives_its_time_in_a_store() -> None:
    clock = Clock()
    rig = Rig(Cache(ttl=5, serve_stale=True, store=MemoryStore(clock=clock)), clock)
    await rig.keep()
    clock.now += 6
    assert await rig.cache.find(LIST, None) is not None
    assert not await rig.fresh()


# Properties

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from("ab")),
        st.tuples(
            st.just("answer"),
            st.sampled_from("ab"),
            st.sampled_from(["public", "private", None]),
            st.sampled_from([None, 0, -1, 500, 2000, 60_000]),
        ),
        st.tuples(st.just("changed")),
        st.tuples(st.just("updated"), st.sampled_from("ab")),
        st.tuples(st.just("wait"), st.floats(0, 3)),
        st.tuples(st.just("become"), st.sampled_from(["me", "you"])),
        st.tuples(st.just("look"), st.sampled_from("ab")),
    ),
    max_size=40,
)


@pytest.mark.req("C1", "C2", "C4")
@given(STEPS, st.booleans())
def test_nothing_is_served_past_its_ttl_across_scopes_or_after_its_invalidation(
    steps: list[tuple[Any, ...]], stored: bool
) -> None:
    rig = Rig(Cache(ttl=1, store=MemoryStore() if stored else None))
    asked: dict[str, tuple[int, ResponseVersion]] = {}
    invalid: dict[str, int] = {"a": -1, "b": -1}
    count = 0
    told: list[tuple[str, str | None, str, int, float]] = []
    """uri, scope, context, asked, expires of everything that was kept."""

    async def step(what: str, *details: Any) -> None:
        nonlocal count
        now = rig.clock.now
        count += 1
        match what:
            case "ask":
                asked[details[0]] = (count, await rig.ask(READ, {"uri": details[0]}))
            case "answer" if details[0] in asked:
                uri, scope, ttl = details
                hints = {"cacheScope": scope, "ttlMs": ttl}
                given_ = {key: value for key, value in hints.items() if value is not None}
                await rig.keep(READ, {"uri": uri}, asked[uri][1], text=len(told), **given_)
                life = 1.0 if ttl is None else max(0, ttl) / 1000
                told.append((uri, scope, rig.context, asked[uri][0], now + life))
            case "changed":
                rig.cache.invalidate()
                invalid.update(dict.fromkeys(invalid, count))
            case "updated":
                rig.cache.noticed(
                    "notifications/resources/updated", Raw(json.encode({"uri": details[0]}))
                )
                invalid[details[0]] = count
            case "wait":
                rig.clock.now += details[0]
            case "become":
                rig.context = details[0]
            case "look":
                await look(details[0])

    async def look(uri: str) -> None:
        entry = await rig.cache.find(READ, {"uri": uri})
        if entry is None or not rig.cache.is_fresh(READ, {"uri": uri}, entry):
            return
        of, scope, context, when, expires = told[json.decode(entry.raw)["text"]]
        assert of == uri
        assert rig.clock.now < expires
        assert scope == "public" or context == rig.context
        assert when > invalid[uri]

    async def run() -> None:
        for one in steps:
            await step(*one)

    asyncio.run(run())
