"""Which tools of a server hosts may list and call: allow and deny lists, and lock files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Raw

from holdfast._core.eras.serving import Json
from holdfast._core.server.request import ServerRequest
from holdfast._core.wire.codes import INTERNAL_ERROR, INVALID_PARAMS, RequestError
from holdfast._core.wire.jsonrpc import MALFORMED, encode
from holdfast.errors import HoldfastError
from holdfast.policies import ToolPolicy
from holdfast.relay.envelope import fields_of, item_name, items_of

if TYPE_CHECKING:
    from holdfast.client import Client


class ToolRules:
    """The rules for the tools of one client's server.

    Args:
        client: Its policy and its guards apply.
        tools: The names that hosts may see and call besides.
    """

    def __init__(self, client: Client, tools: ToolPolicy) -> None:
        self._client = client
        self._policies = client._policy.tools, tools
        self._is_restricted = any(
            policy.allow is not None or policy.deny for policy in self._policies
        )

    def __repr__(self) -> str:
        return f"<ToolRules {self._policies!r}>"

    @property
    def are_there(self) -> bool:
        """True if there is any rule."""
        return self._is_restricted or self._client._tools.guarded

    async def check_list(self) -> None:
        """Refuse a list of tools that a lock file refuses."""
        table = self._client._tools
        if table.guarded:
            await table.list(None, self._client._requester.deadline("tools/list"))

    async def check_call(self, request: ServerRequest) -> Json:
        """Refuse a call that a lock file or a policy refuses; return options of `forward`."""
        name = request.get("name") if self.are_there or self._wants_headers else None
        if not isinstance(name, str):
            if self.are_there:
                # In some languages a list of one name finds what that name does.
                raise RequestError(INVALID_PARAMS, "name must be a string")
            return {}
        if not self._enables(name):
            raise self._client._tools.disabled(name)
        return await self._sending(request, name)

    async def _sending(self, request: ServerRequest, name: str) -> Json:
        """Return options of `forward` for a call.

        A call that a guard has seen is sent on the connection that it saw; a server of the
        stateless era gets the arguments in headers that its tool wants there.
        """
        table = self._client._tools
        if not (table.guarded or self._wants_headers):
            return {}
        try:
            tool = await table.find(name, self._client._requester.deadline("tools/call"))
        except HoldfastError:
            if table.guarded:
                raise
            return {}  # the server says itself what is wrong
        arguments = request.get("arguments")
        if tool.headers is None or not isinstance(arguments, dict):
            return {"epoch": tool.epoch}
        return {"epoch": tool.epoch, "param_headers": tool.headers(arguments)}

    @property
    def _wants_headers(self) -> bool:
        driver = self._client._requester.opener.started
        return driver is not None and driver.engine.param_headers

    def _enables(self, name: str) -> bool:
        return all(policy.enables(name) for policy in self._policies)

    def enabled(self, result: Raw) -> Raw:
        """Return a page of tools without those that may not be called."""
        if not self._is_restricted:
            return result
        try:
            fields: dict[str, Any] = dict(fields_of.decode(result))
            tools = items_of.decode(fields.get("tools", Raw(b"[]")))
            enabled = [tool for tool in tools if self._enables(item_name(tool))]
        except MALFORMED as error:
            raise RequestError(INTERNAL_ERROR, f"the list of tools is malformed: {error}") from None
        return Raw(encode({**fields, "tools": enabled}))
