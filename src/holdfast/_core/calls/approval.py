"""Approval of a tool call, before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from holdfast._core.callbacks import ends_task
from holdfast._core.calls.handlers import ApprovalHandler, in_thread, is_async
from holdfast.errors import ApprovalError
from holdfast.policies import ToolPolicy
from holdfast.types.tools import Tool

_NOBODY: Final = "pass holdfast.Handlers(approval=…) to be asked"


class ApprovalRequest(Struct, frozen=True):
    """A tool call that waits for approval.

    Attributes:
        server: The server's name.
        tool: The tool's name.
        arguments: What it would be called with.
        definition: The tool as its server describes it; None if it was not listed.
    """

    server: str
    tool: str
    arguments: Mapping[str, Any]
    definition: Tool | None = None

    @property
    def destructive(self) -> bool:
        """True unless the server says that the tool only reads, or does no harm.

        Specification, "Tool annotations": what is not said is destructive.
        """
        hints = None if self.definition is None else self.definition.annotations
        if hints is None:
            return True
        return not hints.read_only_hint and hints.destructive_hint is not False


class Approver:
    """Approves calls, by the policy and the handlers of a client."""

    def __init__(self, server: str, policy: ToolPolicy, handler: ApprovalHandler | None) -> None:
        self._server = server
        self._policy = policy
        self._handler = handler
        self.wanted: bool = policy.approve is not None

    async def ask(self, name: str, arguments: Mapping[str, Any], tool: Tool | None) -> None:
        """Return if the call may be sent.

        Raises:
            ApprovalError: It may not; nothing was sent.
        """
        request = ApprovalRequest(self._server, name, arguments, tool)
        ask: Any = self._policy.approve_of(name)
        if ask in (None, "never") or (ask == "annotations" and not request.destructive):
            return
        if isinstance(ask, str):
            ask = self._handler
            if ask is None:
                raise self._refusal(name, "it needs approval, and nobody can be asked", _NOBODY)
        try:
            verdict = await (ask if is_async(ask) else in_thread(ask))(request)
        except BaseException as error:
            if ends_task(error):
                raise
            text = f"asking for approval failed: {type(error).__name__}: {error}"
            raise self._refusal(name, text) from error
        if verdict is not True:
            why = f"not approved: {verdict}" if isinstance(verdict, str) else "not approved"
            raise self._refusal(name, why)

    def _refusal(self, name: str, why: str, hint: str = "") -> ApprovalError:
        text = f"{self._server}: tools/call {name!r}: {why}; nothing was sent"
        return ApprovalError(text, hint=hint)
