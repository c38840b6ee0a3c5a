"""What a worker writes down about its calls: numbers, an audit file, spans."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import holdfast
from examples.service.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


class Metrics:
    """Counts Holdfast's events, and shows them in the text format that Prometheus reads."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._seconds: Counter[tuple[str, ...]] = Counter()

    def watch(self, client: holdfast.Client) -> None:
        subscribe = client.events.subscribe
        subscribe(lambda event: self._ended(event, "ok"), "request.stop")
        subscribe(lambda event: self._ended(event, event.reason), "request.exception")
        subscribe(self._moved, "connection.transition")
        subscribe(self._broke, "protocol.violation")

    def responded(self, path: str, status: int) -> None:
        self._counts["service_responses_total", f'path="{path}"', f'status="{status}"'] += 1

    def _ended(self, event: Any, outcome: str) -> None:
        labels = (f'client="{event.client}"', f'method="{event.method}"', f'outcome="{outcome}"')
        self._counts["mcp_requests_total", *labels] += 1
        self._seconds["mcp_request_seconds_total", *labels] += event.duration

    def _moved(self, event: Any) -> None:
        self._counts["mcp_states_total", f'client="{event.client}"', f'state="{event.new}"'] += 1

    def _broke(self, event: Any) -> None:
        labels = (f'client="{event.client}"', f'kind="{event.reason}"')
        self._counts["mcp_violations_total", *labels] += 1

    def lines(self) -> Iterator[str]:
        worker = f'worker="{os.getpid()}"'
        for (name, *labels), value in sorted((self._counts + self._seconds).items()):
            yield f"{name}{{{','.join([worker, *labels])}}} {value:.6g}\n"


class AuditFile:
    """A line for each tool call, secrets blacked out."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def write(self, record: holdfast.calls.AuditRecord) -> None:
        self._file.write(msgspec.json.encode(record) + b"\n")

    def close(self) -> None:
        self._file.close()


def tracer_provider(path: Path) -> TracerProvider:
    """Spans as JSON lines in a file; an exporter for your collector goes here instead."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    exporter = ConsoleSpanExporter(
        out=path.open("a", encoding="utf-8"),
        formatter=lambda span: span.to_json(indent=None) + "\n",
    )
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


class Watch:
    """All of it, for one worker."""

    def __init__(self, settings: Settings) -> None:
        settings.folder.mkdir(parents=True, exist_ok=True)
        worker = os.getpid()
        self.metrics = Metrics()
        self._audit = AuditFile(settings.folder / f"audit-{worker}.jsonl")
        self._spans: TracerProvider | None = None
        if settings.traces:
            self._spans = tracer_provider(settings.folder / f"spans-{worker}.jsonl")
        self.observability = holdfast.Observability(
            audit=self._audit.write,
            opentelemetry=self._spans is not None,
            tracer_provider=self._spans,
        )

    def close(self) -> None:
        self._audit.close()
        if self._spans is not None:
            self._spans.shutdown()
