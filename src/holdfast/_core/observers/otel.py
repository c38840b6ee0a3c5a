"""OpenTelemetry: client spans and metrics, by the semantic conventions for MCP.

The context travels in ``_meta`` (``traceparent``, ``tracestate``, ``baggage``), so that a
server's spans become children of ours. Imported only when it is switched on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from holdfast._core.boundary import Moved, WireId
from holdfast._core.engine.state import State
from holdfast._core.eras.base import Era
from holdfast._core.observers.observer import TOOL_CALL, ObservedCall, Observer, reason
from holdfast._core.redact.redactor import Redactor
from holdfast.errors import HoldfastError, RpcError, ValidationError
from holdfast.policies import Observability

try:
    from opentelemetry import metrics, propagate, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
except ImportError as missing:
    text = (
        "Observability(opentelemetry=True): OpenTelemetry is not installed; install holdfast[otel]"
    )
    raise ValidationError(text) from missing

BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Seconds, as the conventions advise."""


class _Request(Struct):
    """A request between its begin and its end."""

    span: trace.Span
    common: dict[str, Any]
    """What was known of the connection when it began."""
    measured: dict[str, Any]
    """The attributes that the metric has as well."""
    wire_id: WireId | None = None

    def sent(self, wire_id: WireId) -> None:
        """Note the id of the request; of several, the last."""
        self.wire_id = wire_id


class OpenTelemetry(Observer):
    """Makes a span and a measurement of every request of one client."""

    def __init__(
        self, policy: Observability, network: dict[str, Any], link: Callable[[], Era | None]
    ) -> None:
        self._era = link
        self._redactor = Redactor(policy.redaction)
        self._tracer = trace.get_tracer("holdfast", tracer_provider=policy.tracer_provider)
        meter = metrics.get_meter("holdfast", meter_provider=policy.meter_provider)
        self._operations = meter.create_histogram(
            "mcp.client.operation.duration",
            unit="s",
            description="Duration of requests, as the client sees it.",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )
        self._sessions = meter.create_histogram(
            "mcp.client.session.duration",
            unit="s",
            description="Duration of connections, as the client sees it.",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )
        self._network = network
        self._connected = network
        """The same, with the revision of the protocol."""
        self._ready_since: float | None = None

    def begin(self, call: ObservedCall) -> _Request | None:
        """Start a span, and have the request carry it."""
        if call.refused:
            return None
        method, about = call.method, self._redactor.name(call.about)
        common, target = self._common(), _TARGETS.get(method)
        measured = {**common, "mcp.method.name": method}
        if target is not None:
            measured[target] = about
        if method == TOOL_CALL:
            measured["gen_ai.operation.name"] = "execute_tool"
        attributes = {**measured, "holdfast.correlation_id": call.correlation_id}
        if call.params is not None and "uri" in call.params:
            attributes["mcp.resource.uri"] = about
        name = method if target is None else f"{method} {about}"
        span = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)
        meta = dict(call.meta)
        propagate.inject(meta, trace.set_span_in_context(span))
        call.meta = meta
        request = _Request(span, common, measured)
        call.sent = request.sent
        return request

    def moved(self, moved: Moved) -> None:
        """Measure a connection from when it was ready to when it was not any more."""
        if moved.new == State.READY:
            self._ready_since = time.perf_counter()
        elif self._ready_since is not None:
            duration = time.perf_counter() - self._ready_since
            self._ready_since = None
            why = {} if moved.reason is None else {"error.type": moved.reason.kind}
            self._sessions.record(duration, {**self._common(), **why})

    # What is not known when a span begins: whether there is a connection, and to which revision of
    # the protocol. A call may open one, or find another after a restart. So these attributes are
    # taken again at the end; the metric has the same ones as the span: they are joined by them.

    def end(self, call: ObservedCall, state: _Request) -> None:
        """End the span, and measure the request."""
        error, span, attributes = call.error, state.span, {}
        if error is not None:
            text = str(error) if isinstance(error, HoldfastError) else type(error).__name__
            span.set_status(Status(StatusCode.ERROR, self._redactor.text(text)))
            attributes["error.type"] = reason(error)
            if isinstance(error, RpcError) and error.code is not None:
                attributes["error.type"] = attributes["rpc.response.status_code"] = str(error.code)
        elif call.result is not None and call.result.is_error:
            span.set_status(Status(StatusCode.ERROR))
            attributes["error.type"] = "tool_error"
        now, era = self._common(), self._era()
        if now is not state.common:
            # Only now is it certain that there is a connection, and which.
            attributes.update(now)
        measured = {**state.measured, **attributes} if attributes else state.measured
        if era is not None and era.session is not None:
            attributes["mcp.session.id"] = era.session
        if state.wire_id is not None:
            attributes["jsonrpc.request.id"] = str(state.wire_id)
        span.set_attributes(attributes)
        span.end()
        self._operations.record(call.duration, measured)

    def _common(self) -> dict[str, Any]:
        """Return what is the same for all requests of a connection."""
        era = self._era()
        if era is not None and era.version != self._connected.get("mcp.protocol.version"):
            self._connected = {**self._network, "mcp.protocol.version": era.version}
        return self._network if era is None else self._connected


_TARGETS: Final = {TOOL_CALL: "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}


def network(key: Any) -> dict[str, Any]:
    """Return the network attributes that the transport's key gives."""
    kind, *rest = key if isinstance(key, tuple) else (None,)
    if kind == "stdio":
        return {"network.transport": "pipe"}
    if kind != "http":
        return {}
    from urllib.parse import urlsplit

    url = urlsplit(str(rest[0]))
    port = url.port or (443 if url.scheme == "https" else 80)
    return {
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "server.address": url.hostname or "",
        "server.port": port,
    }
