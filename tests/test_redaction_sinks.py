"""The whole corpus goes through every place that writes something down: nothing gets out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import holdfast
from holdfast import Observability, Redaction, connect
from holdfast.cli.output import Output, show_stderr
from holdfast.errors import HoldfastError, RpcError, ToolError, TransportError
from holdfast.testing import Peer, RequestError
from tests.redaction_corpus import TEXTS


def of_cli(text: str) -> str:
    stream = io.StringIO()
    with redirect_stderr(stream):
        show_stderr(text)
        Output().fail(RpcError(text))
    return stream.getvalue()


SHOWN: dict[str, Callable[[str], str]] = {
    "str": lambda text: str(HoldfastError(text)),
    "repr": lambda text: repr(ToolError(text)),
    "stderr tail": lambda text: str(TransportError("gone", stderr_tail=text)),
    "command line": of_cli,
}


@pytest.mark.req("T8")
@pytest.mark.parametrize("sink", SHOWN)
def test_no_credential_is_shown(sink: str) -> None:
    for text, parts in TEXTS:
        shown = SHOWN[sink](text)
        assert not [part for part in parts if part in shown], (text, shown)


@pytest.mark.req("T8")
@pytest.mark.parametrize("fails", ["result", "error"])
async def test_no_credential_of_a_call_is_recorded(
    fails: str, caplog: pytest.LogCaptureFixture
) -> None:
    peer = Peer()

    @peer.tool("say")
    def say(text: str) -> str:
        if fails == "error":
            raise RequestError(-32050, text)
        raise RuntimeError(text)

    records: list[Any] = []
    lines: list[str] = []
    exporter = InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    seen = Observability(audit=records.append, opentelemetry=True, tracer_provider=tracers)
    caplog.set_level("DEBUG", logger="holdfast")
    async with connect(peer, log=lines.append, observability=seen) as client:
        for text, parts in TEXTS:
            records.clear()
            lines.clear()
            caplog.clear()
            exporter.clear()
            failure = ""
            for call in (
                client.call_tool("say", {"text": text}),
                client.read_resource(text),
                client.get_prompt(text),
            ):
                try:
                    await call
                except holdfast.HoldfastError as error:
                    failure += f"{error} {error!r}"
            spans = [span.to_json() for span in exporter.get_finished_spans()]
            assert spans
            kept = [lines, [str(one) for one in records], caplog.text, failure, spans]
            written = json.dumps(kept)
            assert not [part for part in parts if part in written], (text, written)


@pytest.mark.req("T8")
async def test_a_pattern_of_ones_own_is_hidden_in_the_status_of_a_span() -> None:
    peer = Peer()

    @peer.tool("say")
    def say() -> str:
        raise RequestError(-32050, "no order acme-4711")

    exporter = InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    own = Redaction(patterns=["acme-[0-9]+"])
    seen = Observability(opentelemetry=True, tracer_provider=tracers, redaction=own)
    async with connect(peer, observability=seen) as client:
        with pytest.raises(RpcError):
            await client.call_tool("say")
    assert "4711" not in "".join(span.to_json() for span in exporter.get_finished_spans())
