"""The whole corpus goes through every place that writes something down: nothing gets out."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import holdfast
from holdfast import Observability, connect
from holdfast.cli.output import Output, show_stderr
from holdfast.errors import LONGEST, Hint, HoldfastError, RpcError, ToolError, TransportError
from holdfast.policies import Redaction
from holdfast.testing import Peer, RequestError
from tests.redact.corpus import TEXTS


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
        raise RequestError(-32050, "no order acme-sesame")

    exporter = InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    own = Redaction(patterns=["acme-[a-z]+"])
    seen = Observability(opentelemetry=True, tracer_provider=tracers, redaction=own)
    async with connect(peer, observability=seen) as client:
        with pytest.raises(RpcError):
            await client.call_tool("say")
    assert "sesame" not in "".join(span.to_json() for span in exporter.get_finished_spans())


@pytest.mark.req("T8")
@pytest.mark.parametrize("fails", ["result", "error"])
async def test_a_failure_of_any_length_is_recorded_in_a_moment(fails: str) -> None:
    said = "?key=" * 800_000
    peer = Peer()

    @peer.tool("say")
    def say() -> str:
        if fails == "error":
            raise RequestError(-32050, said)
        raise RuntimeError(said)

    records: list[Any] = []
    lines: list[str] = []
    seen = Observability(audit=records.append)
    async with connect(peer, log=lines.append, observability=seen) as client:
        began = time.process_time()
        with pytest.raises(HoldfastError) as raised:
            (await client.call_tool("say")).raise_for_error()
        shown = f"{raised.value} {raised.value!r}"
    # To search the whole takes many seconds, which every other call would wait for.
    assert time.process_time() - began < 4
    assert len(raised.value.message) > len(said)
    assert max(map(len, [shown, *lines, str(records)])) < 50_000


def test_a_secret_across_the_end_of_what_is_shown_is_hidden() -> None:
    said = "x " * (LONGEST // 2 - 4) + "token=" + "hunter2" * 20
    assert "hunter" not in str(RpcError(said, hints=(Hint("", "try again"),)))
    assert str(RpcError(said, hints=(Hint("", "try again"),))).endswith("…; try again")
