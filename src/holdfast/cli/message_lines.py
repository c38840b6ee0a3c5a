"""The messages of ``--trace`` as lines that a person reads: one head line each.

    →   0.412  tools/call git_log  max_count=5 repo_path=.  · #3 · 133 B
    ←   0.461  tools/call git_log  ok  · #3 · 49 ms · 2.1 kB

Bodies follow with ``--trace=full`` alone. Everything is redacted and escaped before it is shown.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from holdfast._core.redact.redactor import default_redactor
from holdfast._core.tap import TraceEvent
from holdfast._core.text import visible, visible_json
from holdfast.cli.progress import cells

GREEN, RED, YELLOW, CYAN, DIM = "32", "31", "33", "36", "2"
MOST_WORDS: Final = 100
"""Characters of the arguments of a call that a head line has."""
MOST_BODY: Final = 4000
"""Characters of a body that are shown."""
_MOST_OPEN: Final = 10_000
_RELATED: Final = ("notifications/cancelled", "notifications/progress")
_PARTS: Final = frozenset({"method", "result", "error"})
"""What has none of them is no message."""
_LISTS: Final = ("tools", "resources", "resourceTemplates", "prompts", "skills")

Paint = Callable[[str, str], str]
"""Colours a text by an SGR code, or not."""


class MessageLines:
    """Makes the lines of one connection; it remembers requests, to name their answers."""

    def __init__(self, paint: Paint, *, full: bool = False, columns: int | None = None) -> None:
        self._paint = paint
        self._full = full
        self._columns = columns
        """The width of the terminal, which a head line is cut to; None in a pipe."""
        self._zero: float | None = None
        self._open: OrderedDict[tuple[str, Any], tuple[str, float]] = OrderedDict()
        """What was asked under an id, and when, by the direction of the request."""

    def lines(self, event: TraceEvent) -> list[str]:
        """Return the lines of an event; none for those that are not shown."""
        self._zero = event.at if self._zero is None else self._zero
        seconds = event.at - self._zero
        if event.kind == "state":
            why = "" if event.error is None else f": {self._safe(event.error.message)}"
            code = RED if event.new == "backoff" else DIM
            return [self._paint(f"~ {seconds:8.3f}  {event.old} → {event.new}{why}", code)]
        if event.kind != "message" or event.frame is None or event.direction is None:
            return []
        return self._message(event.direction, seconds, event.frame)

    def _message(self, arrow: str, seconds: float, frame: bytes) -> list[str]:
        try:
            message = json.loads(frame)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict) or message.keys().isdisjoint(_PARTS):
            # A secret may go on behind what is shown.
            text = self._safe(frame[: 100 * MOST_WORDS].decode("utf-8", "replace"))
            head = f"{arrow} {seconds:8.3f}  junk  {text}  · {_size(len(frame))}"
            return [self._paint(head, YELLOW)]
        message = default_redactor().value(message)
        what, facts, code = self._head(arrow, seconds, message)
        wire_id = message.get("id")
        facts = [*([] if wire_id is None else [f"#{visible(str(wire_id), 40)}"]), *facts]
        tail = f"  · {' · '.join([*facts, _size(len(frame))])}"
        head = f"{arrow} {seconds:8.3f}  "
        if self._columns is not None:
            what = shorten(what, max(12, self._columns - 1 - len(head) - len(tail)))
        head = self._paint(head, CYAN if arrow == "→" else GREEN)
        lines = [f"{head}{self._paint(what, code) if code else what}{self._paint(tail, DIM)}"]
        return [*lines, *self._body(message)] if self._full else lines

    def _head(
        self, arrow: str, seconds: float, message: dict[str, Any]
    ) -> tuple[str, list[str], str]:
        """Return what a message is, more facts, and a colour if it deserves one."""
        method, wire_id = message.get("method"), message.get("id")
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if isinstance(method, str):
            what = self._subject(method, params)
            if wire_id is not None and isinstance(wire_id, int | str):
                self._open[arrow, wire_id] = (what, seconds)
                if len(self._open) > _MOST_OPEN:
                    self._open.popitem(last=False)
            about = params.get("requestId", params.get("progressToken"))
            is_related = method in _RELATED and isinstance(about, int | str)
            facts = [f"of #{visible(str(about), 40)}"] if is_related else []
            return f"{what}  {self._words(method, params)}".rstrip(), facts, ""
        key = ("←" if arrow == "→" else "→", wire_id)
        what, since = self._open.pop(key, ("answer to no request", None))
        took = [] if since is None else [_span(seconds - since)]
        outcome, code = _outcome(message)
        return f"{what}  {self._safe(outcome)}", took, code

    def _subject(self, method: str, params: dict[str, Any]) -> str:
        name = params.get("name") if method in ("tools/call", "prompts/get") else params.get("uri")
        return self._safe(f"{method} {name}" if isinstance(name, str) else method)

    def _words(self, method: str, params: dict[str, Any]) -> str:
        arguments = params.get("arguments")
        if isinstance(arguments, dict):
            words = " ".join(f"{key}={_word(value)}" for key, value in arguments.items())
        elif method == "notifications/progress":
            words = f"{params.get('progress')} of {params.get('total', '?')}"
        else:
            words = str(params.get("reason") or params.get("data") or params.get("message") or "")
        return self._safe(words)

    def _body(self, message: dict[str, Any]) -> list[str]:
        text = visible_json(json.dumps(message, ensure_ascii=False, indent=2))
        cut = f"… ({len(text):,} characters)" if len(text) > MOST_BODY else ""
        return [f"            {line}" for line in f"{text[:MOST_BODY]}{cut}".splitlines()]

    def _safe(self, text: str) -> str:
        return visible(default_redactor().beginning(text, MOST_WORDS), MOST_WORDS * 2)


def shorten(text: str, columns: int) -> str:
    """Return text that is no wider than so many columns."""
    if cells(text) <= columns:
        return text
    while text and cells(text) >= columns:
        text = text[:-1]
    return f"{text}…"


def _outcome(message: dict[str, Any]) -> tuple[str, str]:
    error, result = message.get("error"), message.get("result")
    if isinstance(error, dict):
        return f"error {error.get('code')}: {error.get('message')}", RED
    if not isinstance(result, dict):
        return "ok", ""
    if result.get("isError") is True:
        return f"the tool failed: {_first_text(result.get('content'))}", RED
    for name in _LISTS:
        if isinstance(items := result.get(name), list):
            return f"{len(items)} {name if len(items) != 1 else name[:-1]}", ""
    if isinstance(asked := result.get("inputRequests"), dict):
        return f"asks {len(asked)} question{'' if len(asked) == 1 else 's'}", YELLOW
    return "ok", ""


def _first_text(content: Any) -> Any:
    first = content[0] if isinstance(content, list) and content else {}
    return first.get("text", "") if isinstance(first, dict) else ""


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _size(count: int) -> str:
    return f"{count} B" if count < 1000 else f"{count / 1000:.1f} kB"


def _span(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
