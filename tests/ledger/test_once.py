"""Calls with a key, through the client: what is sent, what is recorded, what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest
import pytest_asyncio

import holdfast
from holdfast import (
    Ledger,
    OutcomeUnknown,
    RequestTimeout,
    RpcError,
    StateError,
    Timeouts,
    ToolPolicy,
    ValidationError,
)
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast._core.ledger.owner import lease_key
from holdfast.cli.output import advice_for
from holdfast.errors import CancelledCallError, ShutdownError
from holdfast.stores import MemoryStore, SqliteStore
from holdfast.stores.base import StoreUnreachable
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest

pytestmark = pytest.mark.req("S2")


class Shop:
    """A server that counts what it runs."""

    def __init__(self, **options: Any) -> None:
        self.runs: list[dict[str, Any]] = []
        self.peer = Peer(**options)

        @self.peer.tool()
        def charge(**arguments: Any) -> Any:
            self.runs.append(arguments)
            return {"receipt": len(self.runs)}

        @self.peer.tool()
        def refuse(**arguments: Any) -> Any:
            self.runs.append(arguments)
            raise RuntimeError("the card was declined")

        @self.peer.tool()
        def silent(**arguments: Any) -> Any:
            self.runs.append(arguments)
            return SILENCE


class Shaky(MemoryStore):
    """A store that fails where it is told to."""

    down = False
    swaps_down: Callable[[bytes | None, bytes | None], bool] | None = None
    after = False
    """It fails after it has done what it was asked."""

    async def get(self, key: str) -> bytes | None:
        if self.down:
            raise StoreUnreachable("the store does not answer")
        return await super().get(key)

    async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
        if self.down:
            raise StoreUnreachable("the store does not answer")
        await super().put(key, data, ttl)

    async def swap(
        self, key: str, old: bytes | None, new: bytes | None, ttl: float | None = None
    ) -> bool:
        fails = self.down or (self.swaps_down is not None and self.swaps_down(old, new))
        if fails and not self.after:
            raise StoreUnreachable("the store does not answer")
        done = await super().swap(key, old, new, ttl)
        if fails:
            raise StoreUnreachable("the store does not answer")
        return done


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def store() -> Shaky:
    return Shaky()


@pytest_asyncio.fixture
async def client(shop: Shop, store: Shaky) -> AsyncIterator[holdfast.Client]:
    async with holdfast.connect(shop.peer, ledger=Ledger(store), name="shop") as client:
        yield client


def state(store: MemoryStore, key: str) -> Any:
    """Return the record of a key as it is stored."""
    (data,) = [data for place, data in store._lasting.items() if place.startswith(f"once\n{key}\n")]
    return json.loads(data)


# The same key again


async def test_a_key_runs_once_and_its_result_is_recorded(
    client: holdfast.Client, shop: Shop
) -> None:
    first = await client.call_tool("charge", {"cents": 5}, once="order-1")
    second = await client.call_tool("charge", {"cents": 5}, once="order-1")
    assert first.structured == second.structured == {"receipt": 1}
    assert first.raw == second.raw
    assert len(shop.runs) == 1
    await client.call_tool("charge", {"cents": 5}, once="order-2")
    await client.call_tool("charge", {"cents": 5})
    assert len(shop.runs) == 3


async def test_a_tools_own_failure_is_its_outcome(client: holdfast.Client, shop: Shop) -> None:
    for _ in range(2):
        result = await client.call_tool("refuse", {}, once="order-1")
        assert result.is_error
        assert "declined" in result.text
    assert len(shop.runs) == 1


async def test_an_error_of_the_server_is_its_outcome(client: holdfast.Client, shop: Shop) -> None:
    asked = 0

    def answer(request: ServerRequest) -> Any:
        nonlocal asked
        asked += 1
        raise RequestError(-32000, "locked", {"until": "noon"})

    shop.peer.on("tools/call", answer)
    errors = []
    for _ in range(2):
        with pytest.raises(RpcError) as failure:
            await client.call_tool("charge", {}, once="order-1")
        errors.append(failure.value)
    first, second = errors
    assert (first.code, first.data, first.server_message) == (-32000, {"until": "noon"}, "locked")
    assert (second.code, second.data, second.server_message) == (
        -32000,
        {"until": "noon"},
        "locked",
    )
    assert second.message == first.message
    assert second.outcome_unknown is False
    assert asked == 1


async def test_a_server_that_is_busy_leaves_the_key_free(
    client: holdfast.Client, shop: Shop
) -> None:
    busy = True

    def answer(request: ServerRequest) -> Any:
        if busy:
            raise RequestError(-32023, "later")
        return {"content": [{"type": "text", "text": "done"}]}

    shop.peer.on("tools/call", answer)
    with pytest.raises(holdfast.HoldfastError):
        await client.call_tool("charge", {}, once="order-1", timeout=5)
    busy = False
    assert (await client.call_tool("charge", {}, once="order-1")).text == "done"


async def test_another_call_under_the_same_key_is_refused(
    client: holdfast.Client, shop: Shop
) -> None:
    await client.call_tool("charge", {"cents": 5}, once="order-1")
    with pytest.raises(ValidationError, match=r"with other arguments.*nothing was sent"):
        await client.call_tool("charge", {"cents": 6}, once="order-1")
    with pytest.raises(ValidationError, match=r"a call of 'charge'.*nothing was sent"):
        await client.call_tool("refuse", {"cents": 5}, once="order-1")
    assert len(shop.runs) == 1


@pytest.mark.parametrize("key", ["", "  ", "x" * 201, "a\nb", "a\0", "a\u202eb"])
async def test_a_key_that_is_none(client: holdfast.Client, shop: Shop, key: str) -> None:
    with pytest.raises(ValidationError, match="must be a text of 1 to 200 characters"):
        await client.call_tool("charge", {}, once=key)
    assert not shop.runs


@pytest.mark.parametrize("key", [7, b"x", ["x"]])
async def test_a_key_of_another_type(client: holdfast.Client, key: Any) -> None:
    with pytest.raises(ValidationError, match="once="):
        await client.call_tool("charge", {}, once=key)


async def test_many_at_once_are_one(client: holdfast.Client, shop: Shop) -> None:
    results = await asyncio.gather(
        *(client.call_tool("charge", {"cents": 5}, once="order-1") for _ in range(20))
    )
    assert {result.structured["receipt"] for result in results} == {1}
    assert len(shop.runs) == 1


# What did not run is free again


async def test_what_was_not_sent_is_free_again(store: Shaky) -> None:
    ledger = Ledger(store)
    async with holdfast.connect("/no/such/program", ledger=ledger, name="shop") as client:
        with pytest.raises(holdfast.HoldfastError) as failure:
            await client.call_tool("charge", {}, once="order-1")
        assert failure.value.outcome_unknown is False
    assert not [place for place in store._lasting if place.startswith("once\n")]


async def test_a_cancelled_call_that_was_sent_is_unknown(
    client: holdfast.Client, shop: Shop, store: Shaky
) -> None:
    task = asyncio.create_task(client.call_tool("silent", {}, once="order-1"))
    await shop.peer.expect("tools/call")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert state(store, "order-1")["state"] == "unknown"
    with pytest.raises(OutcomeUnknown, match="not sent again") as failure:
        await client.call_tool("silent", {}, once="order-1")
    assert failure.value.outcome_unknown
    assert failure.value.kind == "unknown"
    assert failure.value.data["tool"] == "silent"
    assert len(shop.runs) == 1


async def test_a_started_call_that_is_cancelled_is_unknown(
    client: holdfast.Client, shop: Shop, store: Shaky
) -> None:
    running = client.start_tool("silent", {}, once="order-1")
    await shop.peer.expect("tools/call")
    running.cancel()
    with pytest.raises(CancelledCallError):
        await running
    assert state(store, "order-1")["state"] == "unknown"


async def test_a_call_that_timed_out_is_unknown_and_says_why(
    client: holdfast.Client, shop: Shop, store: Shaky
) -> None:
    with pytest.raises(RequestTimeout):
        await client.call_tool("silent", {}, once="order-1", timeout=1)
    with pytest.raises(OutcomeUnknown, match="no answer within 1 s"):
        await client.call_tool("silent", {}, once="order-1", timeout=1)
    assert len(shop.runs) == 1


async def test_a_client_that_is_closed_leaves_it_unknown(shop: Shop, store: Shaky) -> None:
    client = holdfast.connect(shop.peer, ledger=Ledger(store), name="shop")
    task = asyncio.create_task(client.call_tool("silent", {}, once="order-1"))
    await shop.peer.expect("tools/call")
    await client.close()
    with pytest.raises(ShutdownError):
        await task
    assert state(store, "order-1")["state"] == "unknown"


async def test_sent_is_noted_while_there_is_no_answer(
    client: holdfast.Client, shop: Shop, store: Shaky
) -> None:
    task = asyncio.create_task(client.call_tool("silent", {}, once="order-1"))
    await shop.peer.expect("tools/call")
    assert state(store, "order-1")["state"] == "intended"
    await asyncio.sleep(0.1)
    assert state(store, "order-1")["state"] == "sent"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# Owners


@pytest.mark.parametrize(
    ("policies", "options"),
    [
        ({}, {"total_timeout": 0.1}),
        ({}, {"timeout": 0.1}),
        ({}, {"timeout": 0.1, "total_timeout": 600}),
        ({"timeouts": Timeouts(request=0.1)}, {}),
        ({"tools": ToolPolicy(timeouts={"charge": 0.1})}, {}),
    ],
)
async def test_a_living_owner_is_waited_for_within_the_calls_time(
    shop: Shop, store: Shaky, policies: Any, options: Any
) -> None:
    release = asyncio.Event()

    async def slow(request: ServerRequest) -> Any:
        shop.runs.append({})
        await release.wait()
        return {"content": [{"type": "text", "text": "done"}]}

    shop.peer.on("tools/call", slow)
    async with (
        holdfast.connect(shop.peer, ledger=Ledger(store, by="name"), name="shop") as one,
        holdfast.connect(Shop().peer, ledger=Ledger(store, by="name"), name="shop") as two,
        holdfast.connect(
            Shop().peer, ledger=Ledger(store, by="name"), name="shop", **policies
        ) as hasty,
    ):
        first = asyncio.create_task(one.call_tool("charge", {}, once="order-1"))
        await shop.peer.expect("tools/call")
        with pytest.raises(RequestTimeout, match="is under way") as failure:
            await hasty.call_tool("charge", {}, once="order-1", **options)
        assert failure.value.outcome_unknown
        patient = asyncio.create_task(hasty.call_tool("charge", {}, once="order-1", timeout=600))
        await asyncio.sleep(0.05)
        await hasty.close()
        with pytest.raises(ShutdownError, match="another call with this key may have run"):
            await patient
        second = asyncio.create_task(two.call_tool("charge", {}, once="order-1"))
        await asyncio.sleep(0.05)
        release.set()
        assert (await first).text == (await second).text == "done"
    assert len(shop.runs) == 1


@pytest.mark.parametrize("present", ["intended", "sent"])
async def test_what_a_dead_owner_left_is_unknown(
    client: holdfast.Client, shop: Shop, store: Shaky, present: str
) -> None:
    await client.call_tool("charge", {}, once="order-1")
    (place,) = [place for place in store._lasting if place.startswith("once\n")]
    left = json.loads(store._lasting[place])
    left.update(state=present, owner="somebody@elsewhere:7", host="elsewhere (process 7)")
    del left["outcome"]
    store._lasting[place] = json.dumps(left).encode()
    effect = "it was sent" if present == "sent" else "it may have been sent"
    with pytest.raises(OutcomeUnknown, match=f"by elsewhere .process 7.*{effect}") as failure:
        await client.call_tool("charge", {}, once="order-1")
    assert "ledger.settle('order-1', ran=…)" in str(failure.value)
    await store.put(lease_key("somebody@elsewhere:7"), b"1", 600)
    with pytest.raises(RequestTimeout, match="is under way"):
        await client.call_tool("charge", {}, once="order-1", total_timeout=0.1)
    assert len(shop.runs) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the process table says so on Linux alone")
async def test_an_owner_that_was_killed_and_not_reaped_is_dead(
    client: holdfast.Client, store: Shaky
) -> None:
    """Its number is still there: others waited for the end of its lease."""
    await client.call_tool("charge", {}, once="order-1")
    (place,) = [place for place in store._lasting if place.startswith("once\n")]
    left = json.loads(store._lasting[place])
    owner, _, _ = left["owner"].rpartition(":")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        left.update(state="sent", owner=f"{owner}:{process.pid}")
        del left["outcome"]
        store._lasting[place] = json.dumps(left).encode()
        await store.put(lease_key(left["owner"]), b"1", 600)
        with pytest.raises(RequestTimeout, match="is under way"):
            await client.call_tool("charge", {}, once="order-1", total_timeout=0.1)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(OutcomeUnknown):
            await client.call_tool("charge", {}, once="order-1")


async def test_a_record_that_cannot_be_read_is_never_run_over(
    client: holdfast.Client, shop: Shop, store: Shaky
) -> None:
    await client.call_tool("charge", {}, once="order-1")
    (place,) = [place for place in store._lasting if place.startswith("once\n")]
    store._lasting[place] = b"\x00garbage"
    with pytest.raises(OutcomeUnknown, match="its record cannot be read") as failure:
        await client.call_tool("charge", {}, once="order-1")
    assert len(shop.runs) == 1
    # What cannot be read cannot be settled.
    assert "ledger.forget('order-1') frees the key" in str(failure.value)
    assert advice_for(failure.value.hints[0]).startswith("holdfast once forget order-1 frees")
    assert await Ledger(store).forget("order-1") == 1


async def test_the_clocks_of_machines_are_not_compared(
    client: holdfast.Client, shop: Shop, store: Shaky
) -> None:
    await client.call_tool("charge", {}, once="order-1")
    (place,) = [place for place in store._lasting if place.startswith("once\n")]
    for time in (0.0, 1e12):
        left = json.loads(store._lasting[place])
        left.update(begun=time, changed=time)
        store._lasting[place] = json.dumps(left).encode()
        assert (await client.call_tool("charge", {}, once="order-1")).structured == {"receipt": 1}
    assert len(shop.runs) == 1


# The store fails


async def test_without_the_ledger_nothing_is_sent(
    client: holdfast.Client, shop: Shop, store: Shaky
) -> None:
    await client.list_tools()
    store.down = True
    with pytest.raises(
        StateError, match=r"the ledger cannot be reached.*nothing was sent"
    ) as failure:
        await client.call_tool("charge", {}, once="order-1")
    assert failure.value.outcome_unknown is False
    assert not shop.runs
    await client.call_tool("charge", {})
    assert len(shop.runs) == 1
    store.down = False
    await client.call_tool("charge", {}, once="order-1")
    assert len(shop.runs) == 2


async def test_a_ledger_that_is_slow_costs_a_call_no_more_than_its_time(
    shop: Shop, store: Shaky
) -> None:
    """SQLite waits for seconds for a file that is locked."""

    async def hang(*arguments: Any) -> None:
        await asyncio.Event().wait()

    async with holdfast.connect(shop.peer, ledger=Ledger(store), name="shop") as client:
        await client.list_tools()
        store.put = hang  # type: ignore[method-assign,assignment]
        with pytest.raises(StateError, match=r"did not answer within the time of the call; nothin"):
            await client.call_tool("charge", {}, once="order-1", timeout=0.05)
        del store.put
        await client.call_tool("charge", {}, once="order-1")
    assert len(shop.runs) == 1


async def test_a_claim_that_was_written_though_nobody_heard_is_freed(
    client: holdfast.Client, shop: Shop, store: Shaky
) -> None:
    store.swaps_down, store.after = lambda old, new: old is None, True
    with pytest.raises(StateError, match="cannot be reached"):
        await client.call_tool("charge", {}, once="order-1")
    assert state(store, "order-1")["state"] == "intended"
    store.swaps_down = None
    assert (await client.call_tool("charge", {}, once="order-1")).structured == {"receipt": 1}
    assert len(shop.runs) == 1


@pytest.mark.parametrize("after", [False, True])
async def test_an_outcome_that_could_not_be_written_is_returned_and_written_later(
    client: holdfast.Client, shop: Shop, store: Shaky, after: bool
) -> None:
    store.swaps_down, store.after = lambda old, new: b'"done"' in (new or b""), after
    result = await client.call_tool("charge", {}, once="order-1")
    assert result.structured == {"receipt": 1}
    store.swaps_down = None
    assert (await client.call_tool("charge", {}, once="order-1")).structured == {"receipt": 1}
    assert len(shop.runs) == 1
    assert state(store, "order-1")["state"] == "done"


async def test_a_store_without_swaps_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"with swap\(\)"):
        Ledger(object())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options", [{"by": "url"}, {"lease": 0}, {"lease": "1"}, {"outcome_bytes": -1}]
)
def test_options_that_cannot_work(options: Any) -> None:
    with pytest.raises(ValidationError, match=f"Ledger\\({next(iter(options))}="):
        Ledger(MemoryStore(), **options)


def test_what_is_no_ledger() -> None:
    with pytest.raises(ValidationError, match=r"ledger=.*must be a holdfast\.Ledger"):
        holdfast.connect(Peer(), ledger=MemoryStore())  # type: ignore[arg-type]


# Outcomes


async def test_an_outcome_that_is_too_large_is_not_invented(shop: Shop, store: Shaky) -> None:
    ledger = Ledger(store, outcome_bytes=10)
    async with holdfast.connect(shop.peer, ledger=ledger, name="shop") as client:
        result = await client.call_tool("charge", {}, once="order-1")
        assert result.structured == {"receipt": 1}
        with pytest.raises(OutcomeUnknown, match=r"it ran, and its outcome of \d+ bytes was not"):
            await client.call_tool("charge", {}, once="order-1")
    assert len(shop.runs) == 1


async def test_outcomes_are_redacted_only_if_that_is_asked_for(store: Shaky) -> None:
    peer = Peer()

    @peer.tool()
    def secret() -> Any:
        return {"password": "hunter2-hunter2"}

    for redact, stored in ((False, True), (True, False)):
        ledger = Ledger(store, redact=redact)
        async with holdfast.connect(peer, ledger=ledger, name="shop") as client:
            key = f"order-{redact}"
            result = await client.call_tool("secret", {}, once=key)
            assert result.structured == {"password": "hunter2-hunter2"}
            assert ("hunter2" in json.dumps(state(store, key))) is stored


# Scopes


async def test_keys_of_two_servers_do_not_meet(store: Shaky, tmp_path: Path) -> None:
    from holdfast._core.calls.once import KeyScope

    def scope_of(name: str, transport: Any, ledger: Ledger) -> str:
        return KeyScope(name, transport).of(ledger)

    ledger, named = Ledger(store), Ledger(store, by="name")
    definitions = [
        holdfast.Stdio("python a.py"),
        holdfast.Stdio("python b.py"),
        holdfast.Stdio("python a.py", env={"API_KEY": "of ada"}),
        holdfast.Stdio("python a.py", cwd=tmp_path),
        holdfast.Http("https://a.example/mcp"),
        holdfast.Http("https://b.example/mcp"),
        holdfast.Http("https://a.example/mcp", headers={"Authorization": "Bearer of-ada"}),
        holdfast.Http("https://a.example/mcp", auth=holdfast.OAuth(account="ada")),
        holdfast.Http("https://a.example/mcp", auth=holdfast.OAuth(account="bob")),
    ]
    scopes = {scope_of("same name", transport, ledger) for transport in definitions}
    assert len(scopes) == len(definitions)
    assert scope_of("x", definitions[0], ledger) == scope_of(
        "y", holdfast.Stdio("python a.py"), ledger
    )
    assert len({scope_of("a", transport, named) for transport in definitions[:6]}) == 2
    assert scope_of("a", definitions[0], named) != scope_of("b", definitions[0], named)
    changing = holdfast.Http("https://a.example/mcp", headers=lambda: {"X": "1"})
    with pytest.raises(ValidationError, match="nobody knows whose key this is"):
        scope_of("a", changing, ledger)
    assert scope_of("a", changing, named)


async def test_clients_of_one_server_object_share_its_keys(store: Shaky) -> None:
    ledger, shop = Ledger(store), Shop()
    for _ in range(2):
        async with holdfast.connect(shop.peer, ledger=ledger) as client:
            await client.call_tool("charge", {}, once="order-1")
    assert len(shop.runs) == 1


async def test_two_servers_in_memory_do_not_meet(store: Shaky) -> None:
    ledger, shops = Ledger(store), [Shop(), Shop()]
    for shop in shops:
        async with holdfast.connect(shop.peer, ledger=ledger, name="same") as client:
            await client.call_tool("charge", {}, once="order-1")
    assert [len(shop.runs) for shop in shops] == [1, 1]


# Parameters for the key


@pytest.mark.parametrize("name", ["idempotency_key", "idempotencyKey", "requestKey"])
async def test_a_parameter_for_the_key_is_filled(store: Shaky, name: str) -> None:
    peer, calls = Peer(), []

    @peer.tool(
        input_schema={
            "type": "object",
            "properties": {name: {"type": "string"}, "cents": {"type": "integer"}},
            "required": [name],
        }
    )
    def charge(**arguments: Any) -> Any:
        calls.append(arguments)
        return "ok"

    async with holdfast.connect(peer, ledger=Ledger(store), name="shop") as client:
        await client.call_tool("charge", {"cents": 5}, once="order-1")
        await client.call_tool("charge", {"cents": 5, name: "mine"}, once="order-2")
        await client.call_tool("charge", {"cents": 5}, once="order-1")
        with pytest.raises(ValidationError):
            await client.call_tool("charge", {"cents": 5})
    assert calls == [{"cents": 5, name: "order-1"}, {"cents": 5, name: "mine"}]


LONG_KEY = "workflow/run/" + "1" * 33
TEXT_OR_NULL: Any = {"anyOf": [{"type": "string"}, {"type": "null"}]}
UUID_OR_NULL: Any = {"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]}


@pytest.mark.parametrize(
    ("schema", "given", "sent"),
    [
        (TEXT_OR_NULL, {}, LONG_KEY),
        (TEXT_OR_NULL, {"requestKey": None}, LONG_KEY),
        (UUID_OR_NULL, {}, "uuid"),
        ({"$ref": "#/$defs/Key"}, {}, "uuid"),
        ({"allOf": [{"$ref": "#/$defs/Key"}]}, {}, "uuid"),
        ({"$ref": "#/$defs/Loop"}, {}, LONG_KEY),
        (True, {}, LONG_KEY),
        ({"type": "string", "maxLength": 46}, {}, LONG_KEY),
        ({"anyOf": [{"type": "string", "maxLength": 45}, {"type": "null"}]}, {}, "uuid"),
        ({"type": "integer"}, {}, None),
        ({"type": "integer"}, {"requestKey": 7}, 7),
    ],
)
async def test_a_parameter_gets_what_its_schema_takes(
    store: Shaky, schema: Any, given: dict[str, Any], sent: object
) -> None:
    peer, calls = Peer(), []
    definitions = {"Key": {"type": "string", "format": "uuid"}, "Loop": {"$ref": "#/$defs/Loop"}}
    root = {"type": "object", "properties": {"requestKey": schema}, "$defs": definitions}

    @peer.tool(input_schema=root)
    def charge(**arguments: Any) -> Any:
        calls.append(arguments.get("requestKey"))
        return "ok"

    async with holdfast.connect(peer, ledger=Ledger(store), name="shop") as client:
        await client.call_tool("charge", given, once=LONG_KEY)
    assert calls == [
        str(uuid5(NAMESPACE_URL, f"holdfast:once:{LONG_KEY}")) if sent == "uuid" else sent
    ]


@pytest.mark.parametrize("value", [object(), "\ud800"])
async def test_arguments_that_are_no_json_are_refused(client: holdfast.Client, value: Any) -> None:
    with pytest.raises(ValidationError, match=r"cannot be written as JSON.*nothing was sent"):
        await client.call_tool("charge", {"a": value}, once="order-1")


async def test_a_parameter_named_by_the_policy_is_filled(store: Shaky) -> None:
    peer, calls = Peer(), []
    properties = {"dedupe": {"type": "string", "format": "uuid"}, "requestKey": {"type": "string"}}

    @peer.tool(input_schema={"type": "object", "properties": properties})
    def charge(**arguments: Any) -> Any:
        calls.append(arguments)
        return "ok"

    tools = ToolPolicy(idempotency={"char*": "dedupe"})
    async with holdfast.connect(peer, ledger=Ledger(store), name="shop", tools=tools) as client:
        await client.call_tool("charge", {}, once="order-1")
    (arguments,) = calls
    assert list(arguments) == ["dedupe"]
    assert len(arguments["dedupe"]) == 36


# By hand


async def test_a_person_settles_what_nobody_could_know(
    client: holdfast.Client, shop: Shop, store: Shaky
) -> None:
    ledger = Ledger(store)
    for key in ("ran", "text", "dict", "not-run"):
        with pytest.raises(RequestTimeout):
            await client.call_tool("silent", {}, once=key, timeout=0.1)
    await ledger.settle("ran", ran=True)
    await ledger.settle("text", ran=True, result="receipt 7")
    await ledger.settle("dict", ran=True, result={"receipt": 7})
    await ledger.settle("not-run", ran=False, note="asked the bank")
    assert (await client.call_tool("silent", {}, once="ran")).content == []
    assert (await client.call_tool("silent", {}, once="text")).text == "receipt 7"
    assert (await client.call_tool("silent", {}, once="dict")).structured == {"receipt": 7}
    before = len(shop.runs)
    with pytest.raises(RequestTimeout):
        await client.call_tool("silent", {}, once="not-run", timeout=0.1)
    assert len(shop.runs) == before + 1
    for key in ("ran", "never there"):
        with pytest.raises(ValidationError):
            await ledger.settle(key, ran=False)
    with pytest.raises(ValidationError, match="has no result"):
        await ledger.settle("not-run", ran=False, result="x")
    with pytest.raises(ValidationError, match="ran must be"):
        await ledger.settle("not-run")


async def test_what_a_living_owner_works_on_is_neither_settled_nor_forgotten(
    client: holdfast.Client, shop: Shop, store: Shaky
) -> None:
    task = asyncio.create_task(client.call_tool("silent", {}, once="order-1"))
    await shop.peer.expect("tools/call")
    with pytest.raises(StateError, match="is working on it"):
        await Ledger(store).settle("order-1", ran=False)
    with pytest.raises(StateError, match=r"forget\('order-1'\): .* is working on it"):
        await Ledger(store).forget("order-1")
    assert await Ledger(store).get("order-1") is not None
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Forgetful(MemoryStore):
    async def may_forget(self) -> str | None:
        return "it is a sieve"


@pytest.mark.parametrize("verb", ["settle", "forget"])
async def test_a_person_decides_in_any_store_and_leaves_no_lease(shop: Shop, verb: str) -> None:
    store = Forgetful()
    async with holdfast.connect(shop.peer, ledger=Ledger(store, may_forget=True)) as client:
        await client.call_tool("charge", {}, once="order-1")
    (place,) = [place for place in store._lasting if place.startswith("once\n")]
    left = json.loads(store._lasting[place])
    left.update(state="sent", owner="somebody@elsewhere:7")
    del left["outcome"]
    store._lasting[place] = json.dumps(left).encode()
    leases = await store.keys("once-owner ")
    ledger = Ledger(store)
    if verb == "settle":
        assert (await ledger.settle("order-1", ran=False)).is_free
    else:
        assert await ledger.forget("order-1") == 1
    assert await store.keys("once-owner ") == leases


async def test_records_are_shown_and_forgotten(
    client: holdfast.Client, shop: Shop, store: Shaky
) -> None:
    ledger = Ledger(store)
    await client.call_tool("charge", {}, once="a")
    await client.call_tool("charge", {}, once="b")
    with pytest.raises(RequestTimeout):
        await client.call_tool("silent", {}, once="c", timeout=0.1)
    record = await ledger.get("a")
    assert record is not None
    assert (record.server, record.tool, record.state) == ("shop", "charge", "done")
    assert await ledger.get("d") is None
    assert [record.key for record in await ledger.records()] == ["c", "b", "a"]
    assert await ledger.forget("a") == 1
    assert await ledger.forget("a") == 0
    assert await ledger.forget(older_than=3600) == 0
    assert await ledger.forget(older_than=-1) == 1, "what is unknown is kept"
    assert [record.key for record in await ledger.records()] == ["c"]
    await client.call_tool("charge", {}, once="a")
    assert len(shop.runs) == 4
    with pytest.raises(ValidationError, match="give a key, or older_than"):
        await ledger.forget()


async def test_a_key_that_two_servers_have_needs_the_servers_name(store: Shaky) -> None:
    ledger = Ledger(store)
    for name in ("shop", "bank"):
        async with holdfast.connect(Shop().peer, ledger=ledger, name=name) as client:
            await client.call_tool("charge", {}, once="order-1")
    with pytest.raises(ValidationError, match="bank, shop; say which server"):
        await ledger.get("order-1")
    record = await ledger.get("order-1", server="bank")
    assert record is not None
    assert await ledger.forget("order-1", server="bank") == 1


# The default, and every face


async def test_the_default_is_a_private_file_of_the_user(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast._core.calls import once

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(once, "_DEFAULT", [])
    async with holdfast.connect(shop.peer) as client:
        await client.call_tool("charge", {}, once="order-1")
        await client.call_tool("charge", {}, once="order-1")
    path = tmp_path / "holdfast" / "ledger.db"
    assert path.stat().st_mode & 0o077 == 0
    assert len(shop.runs) == 1
    default = once.default_ledger().store
    assert isinstance(default, SqliteStore)
    default.close()


async def test_every_face_takes_a_key(shop: Shop, store: Shaky) -> None:
    ledger = Ledger(store)
    async with holdfast.connect(shop.peer, ledger=ledger, name="shop") as client:
        await client.start_tool("charge", {}, once="order-1")
        invocation = await client.invoke_tool("charge", {}, once="order-1")
        assert invocation.success
        handle = holdfast.handles.Handle(client)
        await handle.call_tool("charge", {}, once="order-1")
    assert len(shop.runs) == 1


def test_the_face_without_await_takes_a_key(store: Shaky) -> None:
    shop = Shop()
    with holdfast.sync.connect(shop.peer, ledger=Ledger(store), name="shop") as client:
        for _ in range(2):
            assert client.call_tool("charge", {}, once="order-1").structured == {"receipt": 1}
    assert len(shop.runs) == 1


@pytest.mark.parametrize("versions", [STATELESS, HANDSHAKE], ids=["stateless", "handshake"])
async def test_both_kinds_of_revisions(versions: tuple[str, ...], store: Shaky) -> None:
    shop = Shop(versions=versions)
    async with holdfast.connect(shop.peer, ledger=Ledger(store), name="shop") as client:
        for _ in range(2):
            await client.call_tool("charge", {}, once="order-1")
    assert len(shop.runs) == 1


# Tasks and questions


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
async def test_a_task_is_taken_up_again_by_the_id_that_was_recorded(
    store: Shaky, version: str
) -> None:
    from tests.calls.test_tasks import Worker

    worker = Worker(version)
    worker.script = [{"status": "working"}]
    ledger = Ledger(store, by="name")
    async with holdfast.connect(worker, ledger=ledger, name="worker") as client:
        task = asyncio.create_task(client.call_tool("work", {}, once="order-1", task=True))
        await worker.expect("tasks/get")
        left = state(store, "order-1")
        assert (left["state"], left["task_id"]) == ("sent", "t-1")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    # As a process leaves it that was killed.
    (place,) = [place for place in store._lasting if place.startswith("once\n")]
    left.update(owner="somebody@elsewhere:7")
    store._lasting[place] = json.dumps(left).encode()
    worker.script = [{"status": "completed", "result": {"content": []}}]
    calls = worker.count("tools/call")
    async with holdfast.connect(worker, ledger=ledger, name="worker") as client:
        for _ in range(2):
            assert not (await client.call_tool("work", {}, once="order-1", task=True)).is_error
    assert worker.count("tools/call") == calls
    assert state(store, "order-1")["state"] == "done"


async def test_a_task_that_the_server_has_lost_is_unknown(store: Shaky) -> None:
    from tests.calls.test_tasks import Worker

    worker = Worker()
    worker.script = [{"status": "working"}]
    ledger = Ledger(store, by="name")
    async with holdfast.connect(worker, ledger=ledger, name="worker") as client:
        task = asyncio.create_task(client.call_tool("work", {}, once="order-1", task=True))
        await worker.expect("tasks/get")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        def gone(request: ServerRequest) -> Any:
            raise RequestError(-32602, "no such task")

        worker.on("tasks/get", gone)
        calls = worker.count("tools/call")
        with pytest.raises(holdfast.HoldfastError) as failure:
            await client.call_tool("work", {}, once="order-1", task=True)
        assert failure.value.outcome_unknown
    assert worker.count("tools/call") == calls


async def test_a_call_with_questions_goes_on_with_its_answers(store: Shaky) -> None:
    peer, asked = Peer(versions=STATELESS), 0
    question = {
        "method": "elicitation/create",
        "params": {"message": "sure?", "requestedSchema": {"type": "object", "properties": {}}},
    }

    def answer(request: ServerRequest) -> Any:
        nonlocal asked
        asked += 1
        if "inputResponses" in request.params:
            return {"content": [{"type": "text", "text": "done"}]}
        requests = {"q": question}
        return {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}

    peer.tool(name="ask")(lambda: "x")
    peer.on("tools/call", answer)
    handlers = holdfast.Handlers(elicitation="return")
    ledger = Ledger(store, by="name")
    async with holdfast.connect(peer, ledger=ledger, name="shop", handlers=handlers) as client:
        result = await client.call_tool("ask", {}, once="order-1")
        assert result.pending is not None
        with pytest.raises(OutcomeUnknown, match="the server asked its caller"):
            await client.call_tool("ask", {}, once="order-1")
        answers = {"q": {"action": "accept", "content": {}}}
        for _ in range(2):
            final = await client.resume(result.pending, answers, once="order-1")
            assert final.text == "done"
    assert asked == 2
