"""The Streamable HTTP server: where orders are written down. One process, shared by all workers.

    python -m examples.service.ledger --port 8001 --database ledger.sqlite

It has no defence against being told twice: whatever runs is one more row. That is the point. A
client that repeats a write shows in the book as an operation with two executions.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.service.protocol import (
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    Json,
    Offer,
    Stateless,
    Tool,
    respond,
)

WORK: Final = 0.05
"""Seconds before a row is written and again before the answer: a kill may fall into either."""

STATUS: Final = {METHOD_NOT_FOUND: 404, UNSUPPORTED_VERSION: 400}
"""The HTTP status of an error, where the specification wants one."""

TABLE: Final = """
CREATE TABLE IF NOT EXISTS executions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    operation TEXT NOT NULL, item TEXT NOT NULL, quantity INTEGER NOT NULL, process INTEGER NOT NULL
)
"""


class Book:
    """The rows, in SQLite: they outlive a process that is killed."""

    def __init__(self, path: str | Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None, timeout=30)
        # The system keeps what a killed process has written; only a power cut needs more.
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute(TABLE)
        self._database.execute("CREATE INDEX IF NOT EXISTS by_operation ON executions (operation)")

    def close(self) -> None:
        self._database.close()

    def add(self, operation: str, item: str, quantity: int) -> int:
        row = (operation, item, quantity, os.getpid())
        done = self._database.execute(
            "INSERT INTO executions (operation, item, quantity, process) VALUES (?, ?, ?, ?)", row
        )
        return done.lastrowid or 0

    def executions(self, operation: str) -> int:
        query = "SELECT count(*) FROM executions WHERE operation = ?"
        found: tuple[int] = self._database.execute(query, (operation,)).fetchone()
        return found[0]

    def count(self) -> dict[str, int]:
        """How often each operation was executed."""
        query = "SELECT operation, count(*) FROM executions GROUP BY operation"
        return dict(self._database.execute(query).fetchall())


def offer(book: Book) -> Offer:
    async def record_order(arguments: Json) -> Json:
        await asyncio.sleep(WORK)
        number = book.add(arguments["operation"], arguments["item"], arguments["quantity"])
        await asyncio.sleep(WORK)
        return {"operation": arguments["operation"], "number": number}

    async def find_order(arguments: Json) -> Json:
        operation = arguments["operation"]
        return {"operation": operation, "executions": book.executions(operation)}

    operation = {"type": "string", "minLength": 1, "description": "The caller's id of the order"}
    return Offer(
        name="ledger",
        instructions="Writes orders down. Nothing is ever changed or removed.",
        tools=(
            Tool(
                name="record_order",
                description="Write an order down. Telling it twice writes it down twice.",
                parameters={
                    "operation": operation,
                    "item": {"type": "string"},
                    "quantity": {"type": "integer", "minimum": 1},
                    "card_token": {"type": "string", "writeOnly": True},
                },
                returns={"operation": {"type": "string"}, "number": {"type": "integer"}},
                annotations={
                    "readOnlyHint": False,
                    "destructiveHint": False,
                    "idempotentHint": False,
                },
                run=record_order,
            ),
            Tool(
                name="find_order",
                description="How often an order was written down.",
                parameters={"operation": operation},
                returns={"operation": {"type": "string"}, "executions": {"type": "integer"}},
                annotations={"readOnlyHint": True},
                run=find_order,
            ),
        ),
    )


def app(book: Book) -> Starlette:
    server = Stateless(offer(book))

    async def endpoint(request: Request) -> Response:
        # The specification: a page in a browser must not reach a server on this machine.
        if "origin" in request.headers:
            return Response(status_code=403)
        answer = await respond(server, await request.json())
        if answer is None:
            return Response(status_code=202)
        code = answer.get("error", {}).get("code")
        return JSONResponse(answer, status_code=STATUS.get(code, 200))

    return Starlette(routes=[Route("/mcp", endpoint, methods=["POST"])])


def main() -> None:
    parser = argparse.ArgumentParser(description="An MCP server that writes orders down.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--database", default="ledger.sqlite")
    chosen = parser.parse_args()
    book = Book(chosen.database)
    uvicorn.run(app(book), host="127.0.0.1", port=chosen.port, log_level="warning")
    book.close()


if __name__ == "__main__":
    main()
