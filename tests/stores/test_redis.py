"""Redis: what is down and for how long, leases, what it may forget, and what it is told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import holdfast
from holdfast.errors import ValidationError
from holdfast.stores import RedisStore, StoreError
from holdfast.stores.base import StoreUnreachable, Watcher
from holdfast.stores.redis import PATIENCE, REST
from holdfast.testing import Peer
from tests.redis_server import DURABLE, RedisServer, running_redis
from tests.rows import rows
from tests.skipping import skip

pytestmark = pytest.mark.req("S1")
LONG = 60.0
"""Seconds of patience where Redis does answer, on a machine that may be busy."""


class Notes(Watcher):
    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []

    def store_down(self, store: str, reason: str) -> None:
        self.all.append((store, reason))


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def server(shared_server: RedisServer) -> RedisServer:
    with shared_server.client() as client:
        client.flushall()
        client.script_flush()
    return shared_server


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    with running_redis(tmp_path / "redis", *DURABLE) as server:
        yield server


@pytest_asyncio.fixture
async def store(server: RedisServer) -> AsyncIterator[RedisStore]:
    store = RedisStore(server.url, patience=LONG)
    yield store
    await store.close()


# When it is down


def test_the_times_are_those_that_are_documented() -> None:
    assert (PATIENCE, REST) == (0.25, 5.0)


async def test_a_redis_that_is_not_there_is_told_once_and_left_alone() -> None:
    store, notes = RedisStore("redis://127.0.0.1:1/0", patience=LONG, rest=600), Notes()
    store.watch(notes)
    with pytest.raises(StoreUnreachable, match=r"redis://127\.0\.0\.1:1/0"):
        await store.get("a")
    assert store.is_down
    for attempt in (store.get("a"), store.put("a", b"x"), store.swap("a", None, b"x")):
        with pytest.raises(StoreUnreachable, match="is not asked for 600 s"):
            await attempt
    ((name, reason),) = notes.all
    assert (name, bool(reason)) == ("<RedisStore redis://127.0.0.1:1/0>", True)
    await store.close()


async def test_a_redis_that_does_not_answer_costs_the_patience_once(
    own_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    store, notes = RedisStore(own_server.url, patience=0.2, rest=0.5), Notes()
    patient = RedisStore(own_server.url, patience=LONG)
    store.watch(notes)
    await patient.put("a", b"x")
    own_server.freeze()
    try:
        # The first is not answered; the others wait no longer, or are not asked at all.
        outcomes = await asyncio.gather(
            *(store.get("a") for _ in range(40)), return_exceptions=True
        )
        assert {type(outcome) for outcome in outcomes} == {StoreUnreachable}
        while store.is_down:  # noqa: ASYNC110  (the clock ends it)
            await asyncio.sleep(0.01)
        with pytest.raises(StoreUnreachable, match=r"no answer within 0\.2 s|Timeout connecting"):
            await store.get("a")
    finally:
        own_server.thaw()
    assert len(notes.all) == 1, "one outage, however often it is asked in vain"
    await patient.get("a")  # it is awake
    data = None
    while data is None:
        try:
            data = await store.get("a")
        except StoreUnreachable:
            await asyncio.sleep(0.05)
    assert data == b"x"
    assert "answers again" in caplog.text
    assert caplog.text.count("is down, and not asked") == 1
    await store.close()
    await patient.close()


async def test_it_is_used_again_after_a_restart_with_what_was_kept(own_server: RedisServer) -> None:
    store = RedisStore(own_server.url, patience=LONG, rest=0.01)
    await store.put("a", b"kept")
    own_server.stop()
    with pytest.raises(StoreUnreachable):
        await store.get("a")
    own_server.start()
    while store.is_down:  # noqa: ASYNC110  (the clock ends it)
        await asyncio.sleep(0.01)
    assert await store.get("a") == b"kept"
    await store.close()


async def test_a_connection_that_redis_closed_while_it_rested_is_no_outage(
    own_server: RedisServer,
) -> None:
    store, notes = RedisStore(own_server.url, patience=LONG, rest=600), Notes()
    store.watch(notes)
    await asyncio.gather(*(store.put(f"{number}", b"x") for number in range(5)))
    own_server.stop()
    own_server.start()
    await asyncio.sleep(0.05)
    assert await asyncio.gather(*(store.get(f"{number}") for number in range(5))) == [b"x"] * 5
    assert not notes.all
    await store.close()


async def test_connections_that_the_network_has_lost_are_one_outage(server: RedisServer) -> None:
    """A firewall that forgot them swallows what is sent, and says nothing."""
    era, swallowed = [0], []
    forwarding: list[asyncio.Task[None] | None] = []

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begun = era[0]
        forwarding.append(asyncio.current_task())
        answers, commands = await asyncio.open_connection("127.0.0.1", server.port)

        async def pass_commands() -> None:
            while data := await reader.read(65536):
                if era[0] == begun:
                    commands.write(data)
                else:
                    swallowed.append(data)
            commands.close()

        async def pass_answers() -> None:
            while data := await answers.read(65536):
                writer.write(data)
            writer.close()

        with contextlib.suppress(ConnectionError):
            await asyncio.gather(pass_commands(), pass_answers())
            await asyncio.gather(commands.wait_closed(), writer.wait_closed())

    network = await asyncio.start_server(forward, "127.0.0.1", 0)
    url = f"redis://127.0.0.1:{network.sockets[0].getsockname()[1]}/0"
    store, data = RedisStore(url, patience=0.5, rest=0.01), None
    while data is None:
        with contextlib.suppress(StoreUnreachable):  # the machine is busy
            await asyncio.gather(*(store.put("a", b"x") for _ in range(8)))
            data = await store.get("a")
    era[0], data = 1, None
    while data is None:
        try:
            data = await store.get("a")
        except StoreUnreachable:
            await asyncio.sleep(0.02)
    assert len(swallowed) == 1
    await store.close()
    await asyncio.gather(*filter(None, forwarding))
    network.close()
    await network.wait_closed()


async def test_a_loop_that_was_blocked_is_no_outage(server: RedisServer) -> None:
    store = RedisStore(server.url, patience=LONG)
    await store.put("a", b"x")
    with server.client() as client:
        answered = gets(client)
        server.freeze()
        asking = asyncio.create_task(store.get("a"))
        for _ in range(20):  # it is sent
            await asyncio.sleep(0)
        server.thaw()
        while gets(client) == answered:
            pass
        client.ping()  # what Redis did before this has been sent
    skip(2 * LONG)  # the loop learns of the answer and of the end of the patience at once
    assert await asking == b"x"
    await store.close()


def gets(client: Any) -> int:
    """How often Redis was asked for an entry."""
    asked: dict[str, int] = client.info("commandstats").get("cmdstat_get", {"calls": 0})
    return asked["calls"]


async def test_an_error_of_redis_is_no_outage(store: RedisStore, server: RedisServer) -> None:
    with server.client() as client:
        client.rpush("holdfast:entry:a", "a list of somebody else's")
    with pytest.raises(StoreError, match="WRONGTYPE") as failure:
        await store.get("a")
    assert not isinstance(failure.value, StoreUnreachable)
    assert not store.is_down
    await store.put("b", b"x")


_WITHOUT_HIREDIS = """
import asyncio, sys
sys.modules["hiredis"] = None
from holdfast.stores import RedisStore
async def main():
    store = RedisStore(sys.argv[1], patience=60.0)
    await store.put("a", b"1")
    assert await store.swap("a", b"1", b"2")
    assert await store.get("a") == b"2"
    await store.close()
asyncio.run(main())
"""


@pytest.mark.parametrize("options", ["", "?protocol=3"])
def test_hiredis_is_not_needed(server: RedisServer, options: str) -> None:
    """Celery and RQ bring redis-py without it, and its release 8 then wanted RESP 3 of us."""
    words = [sys.executable, "-c", _WITHOUT_HIREDIS, f"{server.url}{options}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "answer", ["MOVED 3999 10.0.0.2:6379", "ASK 3999 10.0.0.2:6379", "CLUSTERDOWN no such slot"]
)
async def test_a_node_of_a_cluster_says_what_is_wrong(answer: str) -> None:
    """It said "3999 10.0.0.2:6379"."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(4096):
            commands = data.count(b"SETINFO")
            writer.write(b"+OK\r\n" * commands or f"-{answer}\r\n".encode())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    store = RedisStore(f"redis://127.0.0.1:{port}", patience=60.0)
    with pytest.raises(StoreError, match="a Redis Cluster, which is not supported") as failure:
        await store.get("a")
    assert answer.partition(" ")[2] in str(failure.value)
    assert not store.is_down
    await store.close()
    server.close()


async def test_more_at_once_than_there_are_connections(store: RedisStore) -> None:
    await asyncio.gather(*(store.put(f"{number}", b"%d" % number) for number in range(300)))
    assert len(await store.keys()) == 300


async def test_a_cancelled_command_leaves_the_next_one_its_own_answer(store: RedisStore) -> None:
    await store.put("a", b"1")
    await store.put("b", b"2")
    for steps in range(15):
        asking = asyncio.create_task(store.get("a"))
        for _ in range(steps):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert await store.get("b") == b"2"


async def test_a_redis_that_forgot_the_scripts_is_told_them_again(
    store: RedisStore, server: RedisServer
) -> None:
    assert await store.swap("a", None, b"1")
    with server.client() as client:
        client.script_flush()
    assert await store.swap("a", b"1", b"2")


# Leases


async def test_numbers_grow_though_redis_forgot_them(
    store: RedisStore, server: RedisServer
) -> None:
    async with store.lock("a") as first:
        pass
    with server.client() as client:
        client.flushall()
    async with store.lock("a") as second:
        pass
    assert second > first


async def test_a_lease_is_renewed_while_it_is_held(store: RedisStore, server: RedisServer) -> None:
    with server.client() as client:
        async with store.lock("a", ttl=900):
            client.pexpire("holdfast:lock:a", 500_000)
            await asyncio.sleep(0)  # the renewal has begun to wait
            skip(300)
            while client.pttl("holdfast:lock:a") <= 500_000:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert client.exists("holdfast:lock:a") == 0


async def test_a_lease_that_was_taken_over_is_told_and_not_given_back(
    store: RedisStore, server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    told = asyncio.Event()

    def notice(record: logging.LogRecord) -> bool:
        told.set()
        return True

    caplog.handler.addFilter(notice)
    with server.client() as client:
        async with store.lock("a", ttl=0.3):
            client.set("holdfast:lock:a", "another owner")
            await told.wait()
        assert client.get("holdfast:lock:a") == b"another owner"
    assert "the lock 'a' was taken over after 0.3 s" in caplog.text


async def test_a_holder_ends_in_peace_though_the_lock_cannot_be_given_back(
    own_server: RedisServer,
) -> None:
    store = RedisStore(own_server.url, patience=LONG, rest=0.01)
    async with store.lock("a"):
        own_server.stop()
    own_server.start()
    await store.close()


async def test_a_lock_that_could_not_be_given_back_is_free_when_redis_is_back(
    own_server: RedisServer,
) -> None:
    """A minute without it would be a minute in which no worker can renew a login."""
    store, other = (RedisStore(own_server.url, patience=LONG, rest=0.01) for _ in range(2))
    async with store.lock("a", ttl=1000):
        own_server.stop()
    own_server.start()
    async with asyncio.timeout(LONG), other.lock("a", ttl=1000):
        pass
    await store.close()
    await other.close()


# What it may forget


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (DURABLE, None),
        (("--appendonly", "yes"), "appendfsync is not always"),
        (("--appendonly", "no"), "appendonly is off"),
        (("--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"), "maxmemory-policy"),
        ((*DURABLE, "--maxmemory-policy", "volatile-lru"), None),
    ],
)
async def test_whether_entries_may_be_lost(
    tmp_path: Path, options: tuple[str, ...], reason: str | None
) -> None:
    with running_redis(tmp_path, *options) as server:
        store = RedisStore(server.url, patience=LONG)
        found = await store.may_forget()
        await store.close()
    assert (found is None) if reason is None else (found is not None and reason in found)


# What it is told


async def test_keys_of_two_prefixes_do_not_meet(store: RedisStore, server: RedisServer) -> None:
    other = RedisStore(server.url, prefix="other[*]:", patience=LONG)
    await store.put("a", b"1")
    await other.put("a", b"2")
    assert (await store.get("a"), await store.keys()) == (b"1", ["a"])
    assert (await other.get("a"), await other.keys()) == (b"2", ["a"])
    await other.close()


async def test_a_password_is_in_no_text(server: RedisServer) -> None:
    url = server.url.replace("//", "//user:s3cr3t%2Fp4ss@")
    store = RedisStore(url, patience=LONG)
    with pytest.raises(StoreError) as failure:
        await store.get("a")
    for text in (repr(store), str(failure.value)):
        assert "s3cr3t" not in text
    await store.close()


@rows(
    ("url", "fault"),
    [
        *((url, "must begin with redis://") for url in ("", "localhost:6379", "http://x", 7, None)),
        ("redis://[", "host or port that is none"),
        ("redis://localhost:99999", "host or port that is none"),
        ("redis://:s3cr3t/x@localhost", "host or port that is none"),
        ("redis://localhost/jobs", "must end with the number of a database"),
        ("redis://localhost/0/1", "must end with the number of a database"),
        ("unix://", "must have the path of a socket"),
        ("redis://localhost?colour=red", "option of the URL: .*colour"),
        ("redis://localhost?socket_timeout=soon", "option of the URL: .*socket_timeout"),
    ],
)
def test_a_url_that_is_none(url: str, fault: str) -> None:
    with pytest.raises(ValidationError, match=fault) as failure:
        RedisStore(url)
    assert "s3cr3t" not in str(failure.value)


async def test_options_of_a_url_do_not_change_what_comes_back(server: RedisServer) -> None:
    url = server.url.replace("redis:", "valkey:") + "?decode_responses=true&protocol=3"
    store = RedisStore(url, patience=LONG)
    await store.put("options", b"\xff")
    assert await store.get("options") == b"\xff"
    assert "options" in await store.keys()
    await store.close()


@rows("key", [b"short", "c2hvcnQ=", "ä" * 32, "", 7, "x" * 44])
def test_a_key_that_is_none(key: str) -> None:
    with pytest.raises(ValidationError, match=r"login_key=…\): must be 32 bytes") as failure:
        RedisStore("redis://localhost", login_key=key)
    assert "short" not in str(failure.value)


@pytest.mark.parametrize(
    "key", [b"k" * 32, "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s", "_-" * 21 + "8"]
)
def test_a_key_of_32_bytes(key: str | bytes) -> None:
    assert len(RedisStore("redis://localhost", login_key=key).login_key or b"") == 32


@pytest.mark.parametrize("option", ["patience", "rest"])
@pytest.mark.parametrize("value", [0, -1, "1", None, float("nan")])
def test_seconds_that_are_none(option: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=f"{option}="):
        RedisStore("redis://localhost", **{option: value})


def test_without_the_extra_it_says_so() -> None:
    program = """
import sys
sys.modules["redis"] = None
import holdfast
try:
    holdfast.stores.RedisStore("redis://localhost")
except holdfast.ValidationError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "RedisStore needs: pip install 'holdfast[redis]'"


async def test_a_client_tells_that_a_store_of_its_is_down_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The store is to say that it is down, not the cache that it waited: on any machine.
    monkeypatch.setattr("holdfast._core.calls.cache.PATIENCE", LONG)
    store = RedisStore("redis://127.0.0.1:1/0", patience=LONG, rest=600)
    peer, events = Peer(), list[Any]()
    peer.tool(name="add")(lambda: "ok")
    cache, ledger = holdfast.Cache(ttl=60, store=store), holdfast.Ledger(store)
    async with holdfast.connect(peer, name="shop", cache=cache, ledger=ledger) as client:
        client.events.subscribe(events.append, "store.down")
        for _ in range(2):
            assert len(await client.list_tools()) == 1
            assert (await client.call_tool("add")).text == "ok"
            with pytest.raises(holdfast.StateError, match="the ledger cannot be reached"):
                await client.call_tool("add", once="order-1")
    ((event),) = events
    assert (event.client, event.store) == ("shop", "<RedisStore redis://127.0.0.1:1/0>")
    assert event.reason
    assert caplog.text.count("127.0.0.1:1") >= 1
    assert "Traceback" not in caplog.text
    await store.close()
