"""Arguments that a server wants repeated in HTTP headers (``x-mcp-header``).

Only where there are headers: on other transports the annotations mean nothing. A tool whose
annotations are not allowed is left out of the list, as the specification demands.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from holdfast._core.boundary import Call
from holdfast._core.calls.pipeline import Pipeline
from holdfast._core.eras import headers
from holdfast.errors import RpcError
from holdfast.types.tools import Tool

log: logging.Logger = logging.getLogger("holdfast")

HEADER_MISMATCH: Final = -32020


class ParamHeaders:
    """What each tool wants repeated, as far as the list was seen."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._tools: dict[str, headers.HeaderPaths] = {}

    def learn(self, tools: list[Tool]) -> list[Tool]:
        """Note what the tools want; those that may not be used are left out."""
        self._tools.clear()
        if not self._pipeline.driver.engine.param_headers:
            return tools
        return [tool for tool in tools if self._allowed(tool)]

    def _allowed(self, tool: Tool) -> bool:
        if b"x-mcp-header" not in bytes(tool.input_schema_json):
            return True
        try:
            self._tools[tool.name] = headers.header_paths(tool.input_schema)
        except headers.BadParamHeader as error:
            log.warning("%s: left out the tool %r: %s", self._pipeline.name, tool.name, error)
            return False
        return True

    def add(self, call: Call, arguments: Mapping[str, Any]) -> None:
        """Have a call repeat what its tool wants repeated."""
        if self._tools:
            wanted = self._tools.get(call.about)
            call.param_headers = (
                None if wanted is None else headers.param_headers(wanted, arguments)
            )

    def mismatched(self, error: RpcError) -> bool:
        """The server's wishes turn out to have changed. That is found before anything runs."""
        return error.code == HEADER_MISMATCH and self._pipeline.driver.engine.param_headers
