"""OpenTelemetry: spans and metrics by the conventions for MCP, and the context in ``_meta``."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import holdfast
from holdfast import Backoff, Observability, Timeouts
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast._core.observers.otel import network
from holdfast.testing import SILENCE, Peer, RequestError

SOON = Timeouts(request=5)


class Bench:
    """A peer, and everything that was traced and measured."""

    def __init__(self, versions: Any = STATELESS) -> None:
        self.peer = Peer(versions=versions)
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider(metric_readers=[self.reader])

        @self.peer.tool()
        def greet() -> str:
            return "hello"

        @self.peer.tool()
        def fail() -> str:
            raise ValueError("no luck")

        @self.peer.tool()
        def silent() -> Any:
            return SILENCE

        @self.peer.tool()
        def refuse() -> Any:
            raise RequestError(-32603, "broken inside")

        self.peer.resource("mem://a", "text")

        @self.peer.prompt()
        def poem() -> str:
            return "roses"

    def connect(self, target: Any = None, **options: Any) -> holdfast.Client:
        policy = Observability(
            opentelemetry=True, tracer_provider=self.tracers, meter_provider=self.meters
        )
        return holdfast.connect(target or self.peer, timeouts=SOON, observability=policy, **options)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def measured(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture(params=[STATELESS, HANDSHAKE], ids=["stateless", "handshake"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(request.param)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.req("M2")
async def test_a_tool_call_is_a_client_span(bench: Bench) -> None:
    async with bench.connect() as client:
        await client.open()
        await client.call_tool("greet")
        version = client.protocol_version
    span = bench.spans[-1]
    assert [one.name for one in bench.spans] == ["tools/list", span.name]
    assert (span.name, span.kind) == ("tools/call greet", SpanKind.CLIENT)
    assert span.status.status_code is StatusCode.UNSET
    found = attributes(span)
    assert found.pop("holdfast.correlation_id")
    assert found == {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "greet",
        "gen_ai.operation.name": "execute_tool",
        "mcp.protocol.version": version,
        "jsonrpc.request.id": str(bench.peer.received[-1].id),
    }


@pytest.mark.req("M2")
async def test_prompts_resources_and_the_rest_have_their_names(bench: Bench) -> None:
    async with bench.connect() as client:
        await client.get_prompt("poem")
        await client.read_resource("mem://a")
        await client.list_tools()
    named = {span.name: attributes(span) for span in bench.spans}
    assert named["prompts/get poem"]["gen_ai.prompt.name"] == "poem"
    assert named["resources/read"]["mcp.resource.uri"] == "mem://a"
    assert "gen_ai.operation.name" not in named["tools/list"]


@pytest.mark.req("M2")
async def test_the_context_travels_in_meta(bench: Bench) -> None:
    tracer = bench.tracers.get_tracer("test")
    async with bench.connect() as client:
        await client.open()
        with tracer.start_as_current_span("outer") as outer:
            token = context.attach(baggage.set_baggage("user", "alice"))
            await client.call_tool("greet", meta={"mine": 1})
            context.detach(token)
    sent = await bench.peer.expect("tools/call")
    inner = next(span for span in bench.spans if span.name == "tools/call greet")
    assert inner.context is not None
    assert inner.parent is not None
    assert inner.parent.span_id == outer.get_span_context().span_id
    trace_id, span_id = inner.context.trace_id, inner.context.span_id
    assert sent.meta["traceparent"].startswith(f"00-{trace_id:032x}-{span_id:016x}-")
    assert sent.meta["baggage"] == "user=alice"
    assert sent.meta["mine"] == 1


@pytest.mark.req("M2")
async def test_failures_are_marked_by_their_kind(bench: Bench) -> None:
    async with bench.connect() as client:
        await client.call_tool("fail")
        with pytest.raises(holdfast.RpcError):
            await client.call_tool("refuse")
        with pytest.raises(holdfast.RequestTimeout):
            await client.call_tool("silent", timeout=0.01)
        task = asyncio.create_task(client.call_tool("silent"))
        await bench.peer.expect("tools/call", 4)
        task.cancel()
        await asyncio.wait([task])
    failed = [span for span in bench.spans if span.name != "tools/list"]
    assert {span.status.status_code for span in failed} == {StatusCode.ERROR}
    kinds = [attributes(span)["error.type"] for span in failed]
    assert kinds == ["tool_error", "-32603", "timeout", "cancelled"]
    assert attributes(failed[1])["rpc.response.status_code"] == "-32603"
    assert "broken inside" in str(failed[1].status.description)


@pytest.mark.req("M2")
async def test_operations_and_sessions_are_measured(bench: Bench) -> None:
    down = Backoff(first=0.001, max=0.001)
    began = time.perf_counter()
    async with bench.connect(backoff=down) as client:
        await client.call_tool("greet")
        await client.call_tool("greet")
        await client.call_tool("fail")
        bench.peer.hang_up()
        while client.is_connected:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await client.wait_ready(5)
    passed = time.perf_counter() - began
    operations = bench.measured("mcp.client.operation.duration")
    assert 0 < sum(point.sum for point in operations) <= passed, "one after the other, in seconds"
    counts = {
        (point.attributes["gen_ai.tool.name"], point.attributes.get("error.type")): point.count
        for point in operations
        if point.attributes["mcp.method.name"] == "tools/call"
    }
    assert counts == {("greet", None): 2, ("fail", "tool_error"): 1}
    assert all("mcp.resource.uri" not in point.attributes for point in operations)
    assert operations[0].explicit_bounds[0] == 0.01
    sessions = bench.measured("mcp.client.session.duration")
    ends = {point.attributes.get("error.type"): point.count for point in sessions}
    assert ends == {"transport": 1, None: 1}
    assert 0 < sum(point.sum for point in sessions) <= passed


@pytest.mark.req("M2")
async def test_stdio_is_a_pipe() -> None:
    bench = Bench()
    async with bench.connect([sys.executable, "-m", "holdfast.demo.server"]) as client:
        await client.call_tool("echo", {"text": "x"})
    assert attributes(bench.spans[0])["network.transport"] == "pipe"


@pytest.mark.req("M2")
@pytest.mark.parametrize(
    ("url", "address", "port"),
    [
        ("https://example.com/mcp", "example.com", 443),
        ("http://127.0.0.1:8080/", "127.0.0.1", 8080),
        ("http://host/mcp", "host", 80),
    ],
)
def test_a_url_is_told_by_host_and_port(url: str, address: str, port: int) -> None:
    found = network(("http", url))
    assert (found["network.transport"], found["network.protocol.name"]) == ("tcp", "http")
    assert (found["server.address"], found["server.port"]) == (address, port)


@pytest.mark.req("M2")
async def test_a_traceparent_of_the_callers_own_is_kept(bench: Bench) -> None:
    own = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
    async with bench.connect() as client:
        await client.call_tool("greet", meta={"traceparent": own})
    assert (await bench.peer.expect("tools/call")).meta["traceparent"] == own


@pytest.mark.req("M2")
async def test_it_is_off_unless_it_is_asked_for(bench: Bench) -> None:
    tracer = bench.tracers.get_tracer("test")
    async with holdfast.connect(bench.peer, timeouts=SOON) as client:
        with tracer.start_as_current_span("outer"):
            await client.call_tool("greet")
    assert "traceparent" not in (await bench.peer.expect("tools/call")).meta
    assert [span.name for span in bench.spans] == ["outer"]
    assert trace.get_current_span() is trace.INVALID_SPAN


@pytest.mark.req("M2")
def test_it_is_loaded_only_when_it_is_asked_for() -> None:
    code = (
        "import asyncio, sys, holdfast\n"
        "from holdfast.testing import Peer\n"
        "holdfast.connect(Peer()); print('opentelemetry' in sys.modules)\n"
        "sys.modules['opentelemetry'] = None\n"
        "try: holdfast.connect(Peer(), observability=holdfast.Observability(opentelemetry=True))\n"
        "except holdfast.ValidationError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == "False"
    assert "holdfast[otel]" in second


@pytest.mark.req("M2", "T8")
async def test_a_processor_that_fails_is_logged_without_the_arguments(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            raise RuntimeError("no exporter")

    bench = Bench()
    bench.tracers.add_span_processor(Failing())
    bench.peer.tool("login")(lambda **_: "in")
    async with bench.connect() as client:
        assert (await client.call_tool("login", {"phrase": "open sesame"})).text == "in"
    assert "an observer failed" in caplog.text
    assert "no exporter" in caplog.text
    assert "sesame" not in caplog.text
