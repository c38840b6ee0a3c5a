"""The host before the relays: raw JSON-RPC of one era, which remembers all that it is sent."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any, Final

from benchmarks.relay_peers.links import Link, Message
from benchmarks.relay_peers.server import HANDSHAKE, META, STATELESS

CAPABILITIES: Final[Message] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {"listChanged": True},
    "experimental": {"vendor/host": {"level": 2}},
}
INFO: Final = {"name": "scripted-host", "version": "3.1"}
ANSWERS: Final[dict[str, Message]] = {
    "elicitation/create": {"action": "accept", "content": {"count": 3}},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "hello"},
        "model": "small-1",
        "stopReason": "endTurn",
    },
    "roots/list": {"roots": [{"uri": "file:///work", "name": "work"}]},
    "ping": {},
}


class Lost(Exception):  # noqa: N818
    """Something did not come through, or not as it was."""


class Host:
    """One connection to a relay, or to the server itself.

    Attributes:
        introduction: What the server said of itself.
        notifications: All that came, in order.
        asked: The questions that came, with their parameters.
    """

    def __init__(self, link: Link, era: str) -> None:
        self._link = link
        self.is_stateless = era == "stateless"
        self._numbers = itertools.count(1)
        self._pending: dict[Any, asyncio.Future[Message]] = {}
        self._news = asyncio.Event()
        self.introduction: Message = {}
        self.notifications: list[Message] = []
        self.asked: list[tuple[str, Message]] = []

    @property
    def is_lost(self) -> bool:
        return self._link.is_lost

    async def open(self) -> None:
        await self._link.open(self._take, self._lost)
        if self.is_stateless:
            answer = await self.request("server/discover")
            self.introduction = _result(answer)
            return
        params = {"protocolVersion": HANDSHAKE, "capabilities": CAPABILITIES, "clientInfo": INFO}
        answer = await self.request("initialize", params)
        self.introduction = _result(answer)
        self.notify("notifications/initialized")
        self._link.listen()

    async def close(self) -> None:
        await self._link.close()

    # What it sends

    def begin(self, method: str, params: Message | None = None, **meta: Any) -> int:
        """Send a request; return its id."""
        number = next(self._numbers)
        self._pending[number] = asyncio.get_running_loop().create_future()
        stamped = {**self._stamp(), **meta}
        body = {**(params or {}), **({"_meta": stamped} if stamped else {})}
        message: Message = {"jsonrpc": "2.0", "id": number, "method": method}
        self._link.send({**message, **({"params": body} if body else {})})
        return number

    def _stamp(self) -> Message:
        if not self.is_stateless:
            return {}
        return {
            META + "protocolVersion": STATELESS,
            META + "clientCapabilities": CAPABILITIES,
            META + "clientInfo": INFO,
        }

    async def outcome(self, number: int) -> Message:
        """Return the answer to a request."""
        return await self._pending[number]

    async def request(self, method: str, params: Message | None = None, **meta: Any) -> Message:
        """Return the answer to a request; in the stateless era, after all questions."""
        answer = await self.outcome(self.begin(method, params, **meta))
        while (result := answer.get("result", {})).get("resultType") == "input_required":
            requests = result.get("inputRequests", {})
            responses = {
                key: self._answer(question["method"], question.get("params") or {})
                for key, question in requests.items()
            }
            again = {
                **(params or {}),
                "inputResponses": responses,
                **({"requestState": result["requestState"]} if "requestState" in result else {}),
            }
            answer = await self.outcome(self.begin(method, again, **meta))
        return answer

    async def call(self, name: str, arguments: Message | None = None, **meta: Any) -> Any:
        """Return the value of a tool of the scripted server."""
        params = {"name": name, "arguments": arguments or {}}
        result = _result(await self.request("tools/call", params, **meta))
        try:
            return json.loads(result["content"][0]["text"])
        except (LookupError, TypeError, ValueError):
            raise Lost(f"{name} returned {_brief(result)}") from None

    async def result(self, method: str, params: Message | None = None, **meta: Any) -> Message:
        """Return the result of a request, without what belongs to an era."""
        result = _result(await self.request(method, params, **meta))
        ours = {key: value for key, value in result.items() if key not in _OF_ERA}
        kept = {k: v for k, v in result.get("_meta", {}).items() if not k.startswith(META)}
        return {**ours, **({"_meta": kept} if kept else {})}

    def notify(self, method: str, params: Message | None = None) -> None:
        message: Message = {"jsonrpc": "2.0", "method": method}
        self._link.send({**message, **({"params": params} if params else {})})

    def cancel(self, number: int) -> None:
        if not self._link.abort(number):
            self.notify("notifications/cancelled", {"requestId": number, "reason": "enough"})

    # What comes

    async def notified(self, method: str, since: int = 0, **fields: Any) -> Message:
        """Return the parameters of the first notification of a kind, when it has come."""
        while True:
            for message in self.notifications[since:]:
                params = message.get("params") or {}
                if message["method"] == method and fields.items() <= params.items():
                    return params
            self._news.clear()
            await self._news.wait()

    def _take(self, message: Message) -> None:
        method = message.get("method")
        if method is None:
            pending = self._pending.get(message.get("id"))
            if pending is not None and not pending.done():
                pending.set_result(message)
        elif "id" in message:
            body = self._answer(method, message.get("params") or {})
            self._link.send({"jsonrpc": "2.0", "id": message["id"], "result": body})
        else:
            self.notifications.append(message)
            self._news.set()

    def _answer(self, method: str, params: Message) -> Message:
        self.asked.append((method, {k: v for k, v in params.items() if k != "_meta"}))
        return ANSWERS.get(method, {})

    def _lost(self) -> None:
        for pending in self._pending.values():
            if not pending.done():
                pending.set_exception(Lost("the connection ended"))
                pending.exception()  # seen: nobody may wait for it


_OF_ERA: Final = ("resultType", "ttlMs", "cacheScope", "_meta")


def _result(answer: Message) -> Message:
    if "error" in answer:
        raise Lost(f"error {answer['error'].get('code')}: {answer['error'].get('message')}")
    result: Message = answer["result"]
    return result


def _brief(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 90 else f"{shown[:90]}…"
