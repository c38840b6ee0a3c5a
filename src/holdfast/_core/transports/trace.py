"""Traces: each message as it leaves and arrives, with the time, without secrets.

`TracedTransport` passes every message to a function, and `line` makes it one line of text: for
``--trace`` on stderr, and for whatever else shows or stores messages.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable
from typing import Any, Final

from holdfast._core import boundary as b
from holdfast._core.redact import default_redactor
from holdfast._core.text import visible_json
from holdfast.policies import Limits

MOST: Final = 4000
"""Characters of a message that are shown."""

Write = Callable[[str, float, bytes], None]


def line(arrow: str, seconds: float, frame: bytes) -> str:
    """Return a message as one line: arrow, seconds since the start, JSON without secrets."""
    try:
        value: Any = default_redactor().value(json.loads(frame))
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = json.dumps(default_redactor().text(frame.decode("utf-8", "replace")))
    cut = f"… ({len(text):,} characters)" if len(text) > MOST else ""
    return f"{arrow} {seconds:8.3f}  {visible_json(text[:MOST])}{cut}"


class TracedTransport:
    """A transport that passes every message of the one inside it to ``write``.

    ``write`` gets an arrow (``→`` to the server, ``←`` from it), seconds, and the message.
    All the rest is that of the transport inside.
    """

    name: str
    key: Hashable | None
    traits: b.Traits

    def __init__(self, inner: b.Transport, write: Write) -> None:
        self._inner = inner
        self._write = write
        self._began = time.perf_counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open(
        self,
        generation: b.Generation,
        limits: Limits,
        report: Callable[[b.Report], None],
        variant: str | None = None,
    ) -> b.Link:
        def heard(one: b.Report) -> None:
            if isinstance(one, b.Delivered):
                for frame in [one.data] if one.whole else one.data.splitlines():
                    self.note("←", frame)
            report(one)

        return _TracedLink(self._inner.open(generation, limits, heard, variant), self)

    def note(self, arrow: str, frame: bytes) -> None:
        if frame.strip():
            self._write(arrow, time.perf_counter() - self._began, frame)


class _TracedLink:
    """A link whose frames are written down before they are sent."""

    def __init__(self, inner: b.Link, transport: TracedTransport) -> None:
        self._inner = inner
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def send(
        self, frame: bytes, wire_id: b.WireId | None, options: b.StreamOptions | None = None
    ) -> bool:
        taken = self._inner.send(frame, wire_id, options)
        if taken:
            self._transport.note("→", frame)
        return taken
