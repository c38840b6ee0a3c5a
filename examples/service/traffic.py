"""The callers of the service, and what each of their requests came to."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import aiohttp

Kind: TypeAlias = Literal["item", "stock", "order", "find"]
Outcome: TypeAlias = Literal["ok", "refused", "unknown", "hung", "broken"]

ROUND: Final[tuple[Kind, ...]] = ("item", "stock", "order", "item", "find")
"""What one caller does, over and over."""
SECRET: Final = "tok-never-to-be-seen"


@dataclass(frozen=True)
class Record:
    """One request.

    ``ok``: done. ``refused``: the service says that it did not run. ``unknown``: it may have.
    ``hung``: no answer while anybody would wait. ``broken``: an answer that nobody meant.
    """

    kind: Kind
    operation: str
    outcome: Outcome
    began: float
    ended: float
    status: int = 0
    worker: str = ""
    stale: bool = False
    detail: str = ""


@dataclass
class Traffic:
    """All callers. Each has one request at a time under way, on a connection of its own."""

    url: str
    callers: int
    patience: float
    """Seconds after which a request counts as hung."""
    records: list[Record] = field(default_factory=list)
    _streaks: Counter[int] = field(default_factory=Counter)
    _stopped: bool = False
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        # A new connection for each request: the kernel deals them out among the workers.
        connector = aiohttp.TCPConnector(force_close=True, limit=0)
        async with aiohttp.ClientSession(
            self.url, connector=connector, timeout=aiohttp.ClientTimeout(total=self.patience)
        ) as http:
            async with asyncio.TaskGroup() as group:
                for number in range(self.callers):
                    group.create_task(self._call(http, number))

    def stop(self) -> None:
        self._stopped = True

    async def steady(self, rounds: int, patience: float) -> bool:
        """Wait until every caller has had so many rounds in a row go well, from now on."""
        self._streaks.clear()
        try:
            async with asyncio.timeout(patience):
                while not self._is_steady(rounds):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _is_steady(self, rounds: int) -> bool:
        wanted = rounds * len(ROUND)
        return all(self._streaks[number] >= wanted for number in range(self.callers))

    async def _call(self, http: aiohttp.ClientSession, number: int) -> None:
        operation = ""
        while True:
            for step, kind in enumerate(ROUND):
                if self._stopped:
                    return
                if kind == "order":
                    operation = uuid.uuid4().hex
                record = await self._request(http, kind, operation, number + step)
                self.records.append(record)
                good = record.outcome == "ok"
                self._streaks[number] = self._streaks[number] + 1 if good else 0
                self._news.set()
                if not good:
                    await asyncio.sleep(0.02)

    async def _request(
        self, http: aiohttp.ClientSession, kind: Kind, operation: str, number: int
    ) -> Record:
        method, path, body = _wish(kind, operation, f"item-{number % 5 + 1}")
        began = time.monotonic()

        def record(outcome: Outcome, **more: Any) -> Record:
            named = operation if kind in ("order", "find") else ""
            return Record(kind, named, outcome, began, time.monotonic(), **more)

        try:
            async with http.request(method, path, json=body) as response:
                said = await response.json(content_type=None)
                worker = response.headers.get("X-Worker", "")
        except TimeoutError:
            return record("hung", detail=f"{method} {path}")
        except (aiohttp.ClientError, ValueError) as error:
            return record("broken", detail=f"{method} {path}: {error!r}")
        outcome = judge(response.status, said)
        return record(
            outcome,
            status=response.status,
            worker=worker,
            stale=bool(said.get("stale")),
            detail="" if outcome == "ok" else f"{response.status} {said.get('message', said)}",
        )


def _wish(kind: Kind, operation: str, item: str) -> tuple[str, str, Any]:
    if kind == "order":
        order = {"operation": operation, "item": item, "quantity": 1, "card_token": SECRET}
        return "POST", "/order", order
    place = f"/order/{operation}" if kind == "find" else f"/{kind}/{item}"
    return "GET", place, None


def judge(status: int, said: Any) -> Outcome:
    """What an answer of the service means to its caller."""
    if status in (200, 201):
        return "ok"
    if status in (502, 503, 504) and isinstance(said, dict) and "outcome_unknown" in said:
        return "unknown" if said["outcome_unknown"] else "refused"
    return "broken"
