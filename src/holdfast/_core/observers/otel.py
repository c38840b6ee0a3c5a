"""OpenTelemetry: client spans and metrics, by the semantic conventions for MCP.

The context travels in ``_meta`` (``traceparent``, ``tracestate``, ``baggage``), so that a
server's spans become children of ours. Imported only when it is switched on.
"""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from holdfast._core.boundary import Call, Moved
from holdfast._core.calls.pipeline import Pipeline
from holdfast._core.engine.state import State
from holdfast._core.observers.observer import reason
from holdfast.errors import HoldfastError, RpcError, ValidationError

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
TOOL_ERROR: Final = "tool_error"


class Spans:
    """Makes a span and a measurement of every request of one client."""

    def __init__(self, pipeline: Pipeline, transport: Any) -> None:
        policy = pipeline.policy.observability
        self._pipeline = pipeline
        self._tracer = trace.get_tracer("holdfast", tracer_provider=policy.tracer_provider)
        meter = metrics.get_meter("holdfast", meter_provider=policy.meter_provider)
        self.operations = meter.create_histogram(
            "mcp.client.operation.duration",
            unit="s",
            description="How long requests took, as the client saw it.",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )
        self._sessions = meter.create_histogram(
            "mcp.client.session.duration",
            unit="s",
            description="How long connections lasted, as the client saw it.",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )
        self._network = _network(transport.key)
        self._ready_since: float | None = None

    def begin(self, call: Call, correlation: str) -> RequestSpan:
        """Start a span, and have the request carry it."""
        name = f"{call.method} {call.about}" if call.method in _TARGETS else call.method
        known = self.common() | _about(call)
        span = self._tracer.start_span(
            name,
            kind=SpanKind.CLIENT,
            attributes={**known, **_resource(call), "holdfast.correlation_id": correlation},
        )
        carrier: dict[str, Any] = {}
        propagate.inject(carrier, trace.set_span_in_context(span))
        if carrier:
            call.meta = {**carrier, **(call.meta or {})}
        return RequestSpan(self, span, call, known)

    def common(self) -> dict[str, Any]:
        """What is the same for all requests of a connection."""
        driver = self._pipeline.started
        era = None if driver is None else driver.engine.era
        version = {} if era is None else {"mcp.protocol.version": era.version}
        return {**self._network, **version}

    def session(self) -> dict[str, Any]:
        driver = self._pipeline.started
        era = None if driver is None else driver.engine.era
        found = None if era is None else era.session
        return {} if found is None else {"mcp.session.id": found}

    def moved(self, moved: Moved) -> None:
        """Measure a connection from when it was ready to when it was not any more."""
        if moved.new == State.READY:
            self._ready_since = time.perf_counter()
        elif self._ready_since is not None:
            duration = time.perf_counter() - self._ready_since
            self._ready_since = None
            why = {} if moved.reason is None else {"error.type": moved.reason.kind}
            self._sessions.record(duration, {**self.common(), **why})


class RequestSpan:
    """One request, being traced."""

    def __init__(self, spans: Spans, span: trace.Span, call: Call, known: dict[str, Any]) -> None:
        self._spans = spans
        self._span = span
        self._call = call
        self._known = known
        self._began = time.perf_counter()

    def end(self, raw: Raw) -> None:
        failed = self._call.method == "tools/call" and _is_error(raw)
        if failed:
            self._span.set_status(Status(StatusCode.ERROR))
        self._finish({"error.type": TOOL_ERROR} if failed else {})

    def fail(self, error: BaseException) -> None:
        found = {"error.type": reason(error)}
        if isinstance(error, RpcError) and error.code is not None:
            found = {"error.type": str(error.code), "rpc.response.status_code": str(error.code)}
        told = error.message if isinstance(error, HoldfastError) else type(error).__name__
        self._span.set_status(Status(StatusCode.ERROR, told))
        self._finish(found)

    def _finish(self, ending: dict[str, Any]) -> None:
        duration = time.perf_counter() - self._began
        # Only now is it sure that there is a connection, and which.
        known = {**self._known, **self._spans.common(), **ending}
        sent = {} if self._call.wire_id is None else {"jsonrpc.request.id": str(self._call.wire_id)}
        self._span.set_attributes({**known, **self._spans.session(), **sent})
        self._span.end()
        self._spans.operations.record(duration, known)


_TARGETS: Final = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}


def _about(call: Call) -> dict[str, Any]:
    """What a request is about, in few enough words for a metric."""
    known = {"mcp.method.name": call.method}
    if call.method in _TARGETS:
        known[_TARGETS[call.method]] = call.about
    if call.method == "tools/call":
        known["gen_ai.operation.name"] = "execute_tool"
    return known


def _resource(call: Call) -> dict[str, Any]:
    uri = None if call.params is None else call.params.get("uri")
    return {"mcp.resource.uri": uri} if isinstance(uri, str) else {}


def _network(key: Any) -> dict[str, Any]:
    """How the server is reached, as far as the transport's key tells."""
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


class _Verdict(Struct):
    isError: bool = False  # noqa: N815


_verdict = msgspec.json.Decoder(_Verdict)


def _is_error(raw: Raw) -> bool:
    try:
        return _verdict.decode(raw).isError
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
