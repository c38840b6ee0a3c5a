"""Arguments that a server wants repeated in HTTP headers (``x-mcp-header``).

Only where there are headers: on other transports the annotations mean nothing. A tool whose
annotations are not allowed is left out of the list, as the specification demands.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Raw

from holdfast.boundary import Call
from holdfast.calls.handlers import ProgressHandler
from holdfast.calls.pipeline import Pipeline
from holdfast.eras import headers
from holdfast.errors import RpcError
from holdfast.types.tools import Tool

log = logging.getLogger("holdfast")

HEADER_MISMATCH: Final = -32020


class Mirrors:
    """What each tool wants repeated, as far as the list was seen."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._tools: dict[str, headers.Mirrors] = {}

    def learn(self, tools: list[Tool]) -> list[Tool]:
        """Note what the tools want; those that may not be used are left out."""
        self._tools.clear()
        if not self._pipeline.driver.engine.mirrors:
            return tools
        return [tool for tool in tools if self._allowed(tool)]

    def _allowed(self, tool: Tool) -> bool:
        if b"x-mcp-header" not in bytes(tool.input_schema_json):
            return True
        try:
            self._tools[tool.name] = headers.mirrors(tool.input_schema)
        except headers.BadMirror as error:
            log.warning("%s: left out the tool %r: %s", self._pipeline.name, tool.name, error)
            return False
        return True

    async def run(
        self,
        call: Call,
        arguments: Mapping[str, Any],
        on_progress: ProgressHandler | None,
        relist: Callable[[], Awaitable[object]],
    ) -> Raw:
        """A tool call, once more if the server's wishes turn out to have changed."""
        call.mirror = self._headers(call.about, arguments)
        try:
            return await self._pipeline.run(call, on_progress)
        except RpcError as error:
            if error.code != HEADER_MISMATCH or not self._pipeline.driver.engine.mirrors:
                raise
        # A mismatch is found before anything runs, so the call may be repeated.
        await relist()
        call.mirror = self._headers(call.about, arguments)
        return await self._pipeline.run(call, on_progress)

    def _headers(self, name: str, arguments: Mapping[str, Any]) -> dict[str, str] | None:
        wanted = self._tools.get(name)
        return None if wanted is None else headers.mirrored(wanted, arguments)
