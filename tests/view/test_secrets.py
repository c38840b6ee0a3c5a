"""Secrets are in no part of a trace, and so in nothing that is made of it."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from pathlib import Path
from typing import Any, Literal

import pytest

from holdfast import connect
from holdfast._core.boundary import Generation, WireId
from holdfast._core.redact.known import KNOWN
from holdfast._core.redact.redactor import default_redactor
from holdfast._core.tap import TraceEvent
from holdfast._core.transports.http_client import HttpNote
from holdfast.testing import Peer
from holdfast.trace.format import Reading
from holdfast.trace.lines import LineMaker
from holdfast.trace.writer import TraceFile
from holdfast.view.exports import FORMS, Recording
from holdfast.view.page import build_page
from holdfast.view.questions import PageQuestion
from holdfast.view.workbench import Workbench
from tests.redact.corpus import TEXTS, VALUES
from tests.view.sample import from_dense

SHORTEST = 7
"""Characters of a secret that ordinary words do not have by chance."""
LARGE = "x" * 70_000
CORPUS = [*TEXTS, *((json.dumps(value), parts) for value, parts in VALUES)]
# What is a secret in one text may stand openly in another.
SECRETS = sorted(
    {
        part
        for _, parts in CORPUS
        for part in parts
        if len(part) >= SHORTEST
        and all(
            any(part in other for other in others) or part not in text for text, others in CORPUS
        )
    }
)


@pytest.mark.req("T8", "W3")
async def test_forms_of_a_live_page_show_no_known_secret() -> None:
    peer, secret = Peer(), "hunter2abc"
    holder = KNOWN.held(lambda: [secret])
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": secret}}}

    @peer.tool("say", description=f"says {secret}", input_schema=schema)
    def say() -> str:
        return ""

    async with connect(peer, name="house") as client:
        shown = await Workbench([client]).tools("house")
    future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
    question = PageQuestion(1, "house", "form", f"which {secret}?", future, schema)
    assert [tool["name"] for tool in shown["tools"]] == ["say"]
    assert "hunter2" not in f"{shown} {question.shown()}"
    del holder


def messages() -> list[tuple[Literal["→", "←"], Any]]:
    """Return messages that have each secret where a server or a caller could put it."""
    rows: list[tuple[Literal["→", "←"], Any]] = []
    for number, (text, _) in enumerate(TEXTS, 1):
        call = {"name": "say", "arguments": {"words": text}}
        content = [{"type": "text", "text": text}]
        rows += [
            ("→", {"id": number, "method": "tools/call", "params": call}),
            ("←", {"method": "notifications/message", "params": {"data": text}}),
            ("←", {"id": number, "result": {"content": content, "isError": True}}),
        ]
    for number, (value, _) in enumerate(VALUES, 10_000):
        call = {"name": "say", "arguments": {"value": value}}
        rows += [
            ("→", {"id": number, "method": "tools/call", "params": call}),
            ("←", {"id": number, "error": {"code": -1, "message": "no", "data": value}}),
        ]
    return [*rows, *large_messages()]


def large_messages() -> list[tuple[Literal["→", "←"], Any]]:
    """Return messages above 64 KiB that have all of them, some before and some behind the cut."""
    rows: list[tuple[Literal["→", "←"], Any]] = []
    for start in range(0, max(len(TEXTS), len(VALUES)), 40):
        texts = [text for text, _ in TEXTS[start : start + 40]]
        values = [value for value, _ in VALUES[start : start + 40]]
        call = {"name": "say", "arguments": {"words": texts, "values": values, "pad": LARGE}}
        content = [
            {"type": "text", "text": text} for text in (LARGE, *texts, *map(json.dumps, values))
        ]
        around = [{"type": "text", "text": f"{LARGE}\n{text}\n{LARGE}"} for text in texts[::10]]
        result = {
            "content": content,
            "structuredContent": {"deep": [values]},
            "_meta": {"x": texts},
        }
        error = {"code": -1, "message": "no", "data": [texts, LARGE, values]}
        rows += [
            ("→", {"id": 50_000 + start, "method": "tools/call", "params": call}),
            ("←", {"id": 50_000 + start, "result": result}),
            ("←", {"id": 60_000 + start, "error": error}),
        ]
        if around:
            rows.append(("←", {"id": 70_000 + start, "result": {"content": around}}))
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trace of all of them, and its sidecars."""
    folder = tmp_path_factory.mktemp("secrets")
    trace = TraceFile(folder / "run.jsonl", sidecars=True)
    tap, stderr = trace.tap("git"), trace.stderr("git")
    for direction, body in messages():
        frame = json.dumps(body).encode()
        tap(TraceEvent(1.0, "message", Generation(1), direction, frame))
    for text, _ in TEXTS:
        tap(TraceEvent(1.0, "message", Generation(1), "←", text.encode()))
        if "\n" not in text:
            stderr(text)
    trace.close()
    return folder


def parts_of(page: str) -> str:
    """Return what is packed in a page."""
    packed = re.findall(r'<script type="text/plain"[^>]*>([^<]*)</script>', page)
    return "".join(gzip.decompress(from_dense(text)).decode("utf-8", "replace") for text in packed)


def leaks(text: str) -> list[str]:
    """Return the secrets that are in a text, as they are or as JSON writes them."""
    return [secret for secret in SECRETS if secret in text or json.dumps(secret)[1:-1] in text]


@pytest.mark.req("W1")
def test_no_secret_is_in_a_trace_or_beside_it(folder: Path) -> None:
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert len(files) == 1 + len(large_messages())
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert len(text) > 50_000
        assert leaks(text) == [], file.name
    assert len(SECRETS) > 60


@pytest.mark.req("W1")
def test_no_known_secret_is_in_an_id_or_a_place_that_a_server_chose() -> None:
    secret = "hunter2abc"
    holder = KNOWN.held(lambda: [secret])
    maker = LineMaker("git", default_redactor())
    answer = json.dumps({"jsonrpc": "2.0", "id": secret, "result": {}}).encode()
    note = HttpNote("http", "POST", 400, (("content-type", secret),), secret, answer)
    faults = ((f"/{secret}", f"{secret} is no number"),)
    check = TraceEvent(1.0, "checked", Generation(1), wire_id=WireId(7), faults=faults)
    lines = [maker.http(note, 1.0), maker.event(check, 0.0), maker.stderr(secret, 1.0)]
    assert [line and line["kind"] for line in lines] == ["http", "check", "stderr"]
    assert secret not in f"{lines}"
    del holder


@pytest.mark.req("W2")
def test_no_secret_is_in_a_page_or_an_export(folder: Path) -> None:
    rows = (folder / "run.jsonl").read_bytes().splitlines(keepends=True)
    reading = Reading("run.jsonl")
    page = build_page(reading, reading.lines(rows))
    packed = parts_of(page)
    assert "notifications/message" in packed
    assert leaks(page + packed) == []
    for name, export in FORMS.items():
        reading = Reading("run.jsonl")
        text = json.dumps(export(Recording(reading, reading.lines(rows))))
        assert "tools/call" in text
        assert leaks(text) == [], name
