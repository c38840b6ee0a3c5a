"""Shared by all readers: names, numbers of servers, and a file of the wrong shape."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.config import dialects
from tests.config.rig import source
from tests.rows import rows

TOPS = {
    "mcpServers": "mcpServers",
    "vscode": "servers",
    "codex": "mcp_servers",
    "gemini": "mcpServers",
    "goose": "extensions",
}


@rows(("dialect", "top"), TOPS.items())
def test_servers_must_be_an_object(dialect: str, top: str) -> None:
    _, problems = dialects.read({top: ["a"]}, source(dialect=dialect))
    assert [str(problem) for problem in problems] == [
        f"/f.json: {top} must be an object of servers"
    ]


@rows("dialect", TOPS)
def test_a_file_without_servers_has_none(dialect: str) -> None:
    assert dialects.read({"theme": "dark"}, source(dialect=dialect)) == ([], [])


def test_the_number_of_servers_is_bounded() -> None:
    servers = {str(number): {"command": "a"} for number in range(1001)}
    _, (problem,) = dialects.read({"mcpServers": servers}, source())
    assert "1,001 servers; at most 1,000" in problem.message


@rows("name", ["", "  ", "x" * 129, "a\x1b[2Jb", "a\nb", "a\u202eb"])
def test_a_name_that_cannot_be_shown_is_refused_and_the_others_stay(name: str) -> None:
    servers = {name: {"command": "a"}, "good": {"command": "b"}}
    entries, (problem,) = dialects.read({"mcpServers": servers}, source())
    assert [entry.name for entry in entries] == ["good"]
    assert str(problem).isprintable()
    assert "\u202e" not in str(problem)


def _odd() -> st.SearchStrategy[Any]:
    plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    texts = st.sampled_from(["${A}", "${A:-b}", "${", "${input:x}", "https://x", "stdio", "sse"])
    return st.recursive(
        plain | texts,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=6,
    )


FIELDS = [
    "type",
    "command",
    "args",
    "env",
    "url",
    "httpUrl",
    "headers",
    "cwd",
    "envFile",
    "timeout",
    "holdfast",
    "cmd",
    "uri",
    "envs",
    "env_vars",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "enabled",
    "disabled",
    "includeTools",
    "config",
]


@pytest.mark.parametrize(("dialect", "top"), TOPS.items())
@settings(max_examples=40)
@given(data=st.data())
def test_no_document_breaks_a_reader(dialect: str, top: str, data: st.DataObject) -> None:
    server = st.dictionaries(st.sampled_from(FIELDS), _odd(), max_size=6) | _odd()
    servers = st.dictionaries(st.text(max_size=5), server, max_size=3) | _odd()
    document = {top: data.draw(servers), "inputs": data.draw(_odd()), "mcp": data.draw(_odd())}
    entries, _ = dialects.read(document, source(dialect=dialect))
    for entry in entries:
        assert entry.errors or entry.command is not None or entry.url is not None
