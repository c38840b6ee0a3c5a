"""The parts of one client, put together: who knows whom is decided in this one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from holdfast._core.calls.cache import Kept
from holdfast._core.calls.cached import Reader
from holdfast._core.calls.handlers import Handlers
from holdfast._core.calls.pipeline import Pipeline
from holdfast._core.calls.subscriptions import Standing
from holdfast._core.calls.tools import Toolbox
from holdfast._core.eras.negotiation import Opening
from holdfast._core.observers.audit import Auditor
from holdfast.policies import Policy

TOOLS_CHANGED = "notifications/tools/list_changed"


class Assembly:
    """A pipeline, and what stands on it."""

    def __init__(
        self,
        name: str,
        transport: Any,
        policy: Policy,
        handlers: Handlers,
        opening: Opening | None,
    ) -> None:
        self.pipeline: Pipeline = Pipeline(name, transport, policy, handlers, opening)
        self.standing: Standing = Standing(self.pipeline)
        self._kept = Kept(policy.cache, *partition(transport, policy))
        self.reader: Reader = Reader(self.pipeline, self._kept)
        auditor = Auditor(name, policy)
        auditor.post = self._post
        self.toolbox: Toolbox = Toolbox(self.pipeline, self.reader, auditor)
        self.pipeline.reception.on_change = self._changed
        self.pipeline.reception.on_again = self._kept.invalidate
        self.pipeline.reception.on_down = self.toolbox.disconnected
        if policy.observability.opentelemetry:
            from holdfast._core.observers.otel import Spans

            self.pipeline.observation.tracer = Spans(self.pipeline, transport)

    def _changed(self, method: str, params: Raw | None) -> None:
        self._kept.noticed(method, params)
        if method == TOOLS_CHANGED:
            self.toolbox.forget()

    def _post(self, handler: Any, value: Any) -> None:
        self.pipeline.driver.mailbox.post(handler, value)


def partition(transport: Any, policy: Policy) -> tuple[str, Callable[[], str]]:
    """How a store tells this client's entries from others': the server, and whose they are.

    Public entries belong to the server; private ones to the context that the application
    names, and to the credentials of the moment. Where those may change with each request
    (``credentials()`` is None) and no context is named, nobody can tell whose an entry is,
    and it is not found again.
    """
    if policy.cache.store is None and transport.traits.credentials == "":
        return "", lambda: "own"
    from hashlib import sha256
    from secrets import token_hex

    def digest(*parts: object) -> str:
        return sha256(repr(parts).encode()).hexdigest()[:32]

    server = token_hex(16) if transport.key is None else digest(transport.key)
    whose = token_hex(16) if policy.cache.context is None else policy.cache.context

    def context() -> str:
        found = transport.traits.credentials
        if found is None and policy.cache.context is None:
            return token_hex(16)
        return digest(whose, found)

    return server, context
