"""One client's connection to the server side."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast._core.server.incoming import SILENCE, Incoming
from holdfast._core.server.server import Server
from holdfast._core.wire.codes import RequestError
from tests.server.wire import Client, Wire


def make_server(**handlers: Any) -> Server:
    return Server("test", {name.replace("__", "/"): one for name, one in handlers.items()})


@pytest.fixture(params=[STATELESS[0], HANDSHAKE[0]])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_result_that_is_not_json_is_an_internal_error(version: str) -> None:
    client = Client(Wire(make_server(tools__list=lambda _: {"x": float("nan")})), version)
    error = client.error("tools/list")
    assert error["code"] == -32603
    assert "not JSON" in error["message"]


@pytest.mark.parametrize("waits", [False, True])
def test_a_handler_that_fails_is_an_internal_error(version: str, waits: bool) -> None:
    async def slow(incoming: Incoming) -> None:
        await incoming.sleep(0)
        raise KeyError("lost")

    def quick(incoming: Incoming) -> None:
        raise KeyError("lost")

    client = Client(Wire(make_server(tools__list=slow if waits else quick)), version)
    error = client.error("tools/list")
    assert error == {"code": -32603, "message": "internal error: KeyError('lost')"}


def test_a_handler_refuses_with_code_and_data(version: str) -> None:
    def refuse(incoming: Incoming) -> None:
        raise RequestError(-32050, "no", {"why": incoming.params["cursor"]})

    client = Client(Wire(make_server(tools__list=refuse)), version)
    error = client.error("tools/list", {"cursor": "c"})
    assert error == {"code": -32050, "message": "no", "data": {"why": "c"}}


def test_handlers_that_wait_take_turns(version: str) -> None:
    steps: list[str] = []

    async def walk(incoming: Incoming) -> dict[str, Any]:
        for number in range(3):
            steps.append(f"{incoming.id}.{number}")
            await incoming.sleep(0)
        return {}

    client = Client(Wire(make_server(tools__call=walk)), version)
    ids = [client.start("tools/call"), client.start("tools/call")]
    assert [client.wire.receive()["id"] for _ in ids] == ids
    assert steps == ["1.0", "2.0", "1.1", "2.1", "1.2", "2.2"]


@pytest.mark.parametrize("code", [-7, "odd", None])
def test_a_question_refused_raises_what_the_client_said(code: Any) -> None:
    seen: list[RequestError] = []

    async def ask(incoming: Incoming) -> dict[str, Any]:
        try:
            await incoming.session.ask("roots/list")
        except RequestError as error:
            seen.append(error)
        return {}

    client = Client(Wire(make_server(tools__call=ask)), HANDSHAKE[0])
    client.start("tools/call")
    question = client.wire.receive()
    client.wire.send(id=question["id"], error={"code": code, "message": "no", "data": [1]})
    assert client.wire.receive()["result"] == {}
    (error,) = seen
    expected = code if isinstance(code, int) else -32603
    assert (error.code, error.message, error.data) == (expected, "no", [1])


def test_closing_cancels_what_runs_and_withdraws_its_questions() -> None:
    ended: list[str] = []

    async def ask(incoming: Incoming) -> dict[str, Any]:
        try:
            await incoming.ask("roots/list", {})
        finally:
            ended.append("ask")
        return {}

    client = Client(Wire(make_server(tools__call=ask)), HANDSHAKE[0])
    client.start("tools/call")
    question = client.wire.receive()
    client.wire.session.close()
    (withdrawn,) = client.wire.rest()
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"] == {"requestId": question["id"]}
    assert ended == ["ask"]


def test_change_notifications_go_to_those_who_asked(version: str) -> None:
    server = make_server()
    server.capabilities = lambda: {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True},
    }
    client = Client(Wire(server), version)
    session = client.wire.session
    if client.is_stateless:
        wanted = {"toolsListChanged": True, "promptsListChanged": True}
        uris = {"resourceSubscriptions": ["x://a"]}
        client.start("subscriptions/listen", {"notifications": {**wanted, **uris}})
        agreed = client.wire.receive()["params"]["notifications"]
        assert agreed == {"toolsListChanged": True, **uris}
    else:
        client.result("resources/subscribe", {"uri": "x://a"})
    session.announce("notifications/tools/list_changed")
    for uri in ("x://a", "x://b"):
        session.announce("notifications/resources/updated", {"uri": uri})
    heard = [(one["method"], one["params"].get("uri")) for one in client.wire.rest()]
    assert heard == [
        ("notifications/tools/list_changed", None),
        ("notifications/resources/updated", "x://a"),
    ]


def test_an_override_is_called_in_any_era_and_before_initialize() -> None:
    server = make_server()
    server.overrides["anything"] = lambda incoming: {"stateless": incoming.stateless}
    server.overrides["nothing"] = lambda incoming: SILENCE
    wire = Wire(server)
    wire.send(id="a", method="nothing")
    wire.send(id="b", method="anything")
    assert wire.receive() == {"jsonrpc": "2.0", "id": "b", "result": {"stateless": False}}
    assert Client(wire, STATELESS[0]).result("anything")["stateless"] is True


def test_every_request_and_notification_is_heard(version: str) -> None:
    server, heard = make_server(), list[str]()
    server.heard = lambda incoming: heard.append(incoming.method)
    client = Client(Wire(server), version)
    client.error("no/such")
    client.wire.send(method="notifications/odd")
    assert heard[-2:] == ["no/such", "notifications/odd"]
