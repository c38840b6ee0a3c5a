"""What a trace has beside messages: heads of HTTP responses, logins, faults of a schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast._core.serve.http import HttpServer
from holdfast.demo.server import make_server
from holdfast.testing import Peer
from holdfast.trace.format import Reading
from holdfast.view.index import Index
from tests.auth.world import world


def lines_of(path: Path, kind: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line.get("kind") == kind]


def index_of(path: Path) -> Index:
    reading, index = Reading(path.name), Index()
    for line in reading.lines(path.read_bytes().splitlines(keepends=True)):
        index.add(line)
    return index


@pytest.mark.req("W1")
async def test_the_heads_of_http_responses_are_lines_of_their_requests(tmp_path: Path) -> None:
    path, server = tmp_path / "run.jsonl", HttpServer(make_server("handshake"))
    port = await server.start()
    try:
        url = f"http://127.0.0.1:{port}/mcp"
        async with holdfast.connect(url, name="web", trace=path) as client:
            await client.call_tool("add", {"a": 1, "b": 2})
    finally:
        await server.close()
    responses = [line for line in lines_of(path, "http") if "method" in line]
    assert {line["method"] for line in responses} >= {"POST"}
    call = next(line for line in lines_of(path, "request") if line["method"] == "tools/call")
    (head,) = [line for line in responses if line.get("of") == call["id"]]
    assert head["status"] == 200
    names = {name.lower() for line in responses for name in line.get("headers", {})}
    assert "content-type" in names
    assert names <= {"content-type", "retry-after", "www-authenticate", "mcp-session-id"}
    rows = index_of(path).rows
    assert all(rows[row.of].kind == "request" for row in rows if row.kind == "http" and row.of >= 0)


@pytest.mark.req("W1")
async def test_a_login_is_in_the_trace_and_its_secrets_are_not(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    async with world() as here:
        async with here.connect(trace=path) as client:
            assert (await client.call_tool("hello")).text == "hello"
    steps = [line["why"] for line in lines_of(path, "login")]
    assert steps[0] == "credentials are needed"
    assert "there are credentials" in steps
    (refusal,) = [line for line in lines_of(path, "http") if line.get("status") == 401]
    assert any(name.lower() == "www-authenticate" for name in refusal["headers"])
    assert "SECRET" not in path.read_text(encoding="utf-8")


@pytest.mark.req("W1")
async def test_an_answer_that_does_not_fit_its_schema_is_marked_at_the_field(
    tmp_path: Path,
) -> None:
    path, peer = tmp_path / "run.jsonl", Peer()
    count = {"type": "object", "properties": {"count": {"type": "integer"}}}
    peer.tool("many", output_schema=count)(lambda: {"count": "3"})
    async with holdfast.connect(peer, name="git", trace=path) as client:
        await client.call_tool("many")
        await client.call_tool("many")
    faults = [line["faults"] for line in lines_of(path, "check")]
    assert [list(fault) for fault in faults] == [["/result/structuredContent/count"]] * 2
    calls = [row for row in index_of(path).rows if row.kind == "request" and row.name == "many"]
    assert len(calls) == 2
    assert all(row.faults and row.outcome == "ok" for row in calls)


@pytest.mark.req("W1")
async def test_an_argument_that_the_schema_calls_secret_is_not_in_the_trace(tmp_path: Path) -> None:
    path, peer = tmp_path / "run.jsonl", Peer()
    pin = {"type": "string", "writeOnly": True}
    schema = {"type": "object", "properties": {"door": pin}}
    peer.tool("unlock", input_schema=schema)(lambda door: f"{door} fits")
    async with holdfast.connect(peer, name="house", trace=path) as client:
        await client.list_tools()
        await client.call_tool("unlock", {"door": "sesame-4711-open"})
    assert "sesame-4711-open" not in path.read_text(encoding="utf-8")
    assert len(lines_of(path, "request")) >= 2
