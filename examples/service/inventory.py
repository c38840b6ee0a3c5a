"""The stdio server: what there is to buy. Each worker's client starts one of its own.

    python -m examples.service.inventory

It reads only, so a lost call may be sent again: its tool says so in its annotations.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

from examples.service.protocol import Json, Offer, Refused, Session, Tool, respond

ITEMS: Final[dict[str, Json]] = {
    f"item-{number}": {"id": f"item-{number}", "name": name, "price": 100 * number, "stock": 7}
    for number, name in enumerate(("anchor", "buoy", "cleat", "dinghy", "ensign"), 1)
}
PREFIX: Final = "inventory://item/"
WORK: Final = 0.005
"""Seconds that a look into the store room takes, so that some calls are under way at any time."""


async def stock(arguments: Json) -> Json:
    await asyncio.sleep(WORK)
    found = ITEMS.get(arguments["item"])
    if found is None:
        raise Refused(f"there is no {arguments['item']}")
    return {"item": found["id"], "stock": found["stock"]}


def read(uri: str) -> str | None:
    found = ITEMS.get(uri.removeprefix(PREFIX)) if uri.startswith(PREFIX) else None
    return None if found is None else json.dumps(found)


OFFER: Final = Offer(
    name="inventory",
    instructions=f"Items are resources ({PREFIX}ID). `stock` counts what is there now.",
    tools=(
        Tool(
            name="stock",
            description="How many of an item are there now.",
            parameters={"item": {"type": "string", "description": "The item's id"}},
            returns={"item": {"type": "string"}, "stock": {"type": "integer", "minimum": 0}},
            annotations={"readOnlyHint": True, "openWorldHint": False},
            run=stock,
        ),
    ),
    read=read,
)


async def serve() -> None:
    """Answer each line of stdin; calls that take time do not hold up the next."""
    session = Session(OFFER)
    running: set[asyncio.Task[None]] = set()
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        task = asyncio.create_task(_reply(session, json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)


async def _reply(session: Session, message: Any) -> None:
    answer = await respond(session, message)
    if answer is not None:
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(serve())
