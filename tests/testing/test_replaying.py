"""A suite recorded once runs without its server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.testing.suites import run, suite, try_out
from tests.testing.test_fixtures import SESSIONS, generated

pytest_plugins = ["pytester"]

pytestmark = pytest.mark.req("F4")

RECORD, REPLAY = "--mcp-record=tape", "--mcp-replay=tape"

WITHOUT = """
import os

@pytest.fixture(autouse=True)
def away(monkeypatch):
    def accept(self, line):
        raise AssertionError("the server is needed")
    if os.environ.get("REPLAYED"):
        monkeypatch.setattr(Peer, "accept", accept)
"""


def both(pytester: pytest.Pytester, source: str, **expected: Any) -> str:
    """Record a suite, and replay it where no server can be reached; the output of the latter."""
    try_out(pytester, WITHOUT + source, RECORD, **expected)
    return again(pytester, **expected)


def again(pytester: pytest.Pytester, *arguments: str, **expected: Any) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPLAYED", "1")
        found = run(pytester, REPLAY, *arguments)
    found.assert_outcomes(**expected)
    return found.stdout.str()


def test_every_kind_of_answer_comes_back(pytester: pytest.Pytester) -> None:
    source = """
@pytest.mark.parametrize("n", [1, 2])
async def test_it(mcp_client, n):
    client = mcp_client(server, name="mine")
    assert (await client.call_tool("add", {"a": n, "b": 2})).text == str(n + 2)
    assert (await client.call_tool("add", {"b": 2, "a": n})).text == str(n + 2)
    assert (await client.call_tool("fail")).is_error
    assert len((await client.call_tool("novel")).text) == 4000
    with pytest.raises(holdfast.ValidationError, match="mine: tools/call 'unheard of'"):
        await client.call_tool("unheard of")
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert tools["login"].input_schema["properties"]["pin"]["format"] == "password"
    assert client.server_info.name == "shop"
    with pytest.raises(holdfast.ValidationError):
        await client.call_tool("unheard of")

def test_sync(mcp_client_sync):
    one, other = mcp_client_sync(server), mcp_client_sync(server)
    assert one.call_tool("add", {"a": 1, "b": 1}).text == "2"
    assert other.call_tool("add", {"a": 2, "b": 2}).text == "4"
"""
    both(pytester, source, passed=3)


def test_secrets_that_were_blacked_out_still_match(pytester: pytest.Pytester) -> None:
    source = """
async def test_it(mcp_client):
    client = mcp_client(server)
    secrets = {"pin": "12-34", "password": "hunter2"}
    assert (await client.call_tool("login", secrets)).text == "welcome"
    assert (await client.call_tool("login", secrets)).text == "welcome"

async def test_by_a_policy(mcp_client):
    own = holdfast.Observability(redaction=holdfast.Redaction(keys=["a"]))
    client = mcp_client(server, observability=own)
    assert (await client.call_tool("add", {"a": 1, "b": 1})).text == "2"
"""
    both(pytester, source, passed=2)


def test_a_handle_finds_the_tools_that_it_was_made_for(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mcp_tools=generated())
    source = """
async def test_it(mcp_handle):
    mcp = mcp_handle(mcp_tools, "trip", target=browser)
    assert (await mcp.nav.goto(url="here")).text == "trip at here"

def test_sync(mcp_handle_sync):
    mcp = mcp_handle_sync(mcp_tools, "trip", target=browser)
    assert mcp.nav.goto(url="here").text == "trip at here"
"""
    both(pytester, SESSIONS + source, passed=2)


def test_targets_and_what_belongs_to_them_are_not_looked_at(pytester: pytest.Pytester) -> None:
    """Recorded in memory, replayed with the settings of a command that is not there."""
    source = """
@pytest.mark.mcp_target(**WHERE)
async def test_it(mcp_client):
    assert (await mcp_client().call_tool("add", {"a": 1, "b": 2})).text == "3"

def test_nowhere(mcp_client_sync):
    target = [] if os.environ.get("REPLAYED") else [server]
    assert mcp_client_sync(*target).call_tool("add", {"a": 1, "b": 2}).text == "3"
"""
    where = """
WHERE = {"target": server}
if os.environ.get("REPLAYED"):
    WHERE = {"target": "no-such-command", "cwd": "/nowhere", "env": {"A": "B"}, "grace": 1.0}
"""
    both(pytester, where + source, passed=2)


def test_tests_that_fail_fail_again_and_show_their_calls(pytester: pytest.Pytester) -> None:
    source = """
async def test_it(mcp_client):
    assert (await mcp_client(server).call_tool("add", {"a": 1, "b": 2})).text == "4"
"""
    out = both(pytester, source, failed=1)
    assert "assert '3' == '4'" in out
    assert "- MCP calls -" in out
    assert "MCP replay" not in out


def test_a_test_without_a_recording_fails_and_says_how_to_make_one(
    pytester: pytest.Pytester,
) -> None:
    pytester.mkdir("tape")
    source = """
@pytest.mark.parametrize("n", ["a b"])
async def test_it(mcp_client, n):
    with pytest.raises(Exception):
        mcp_client(server)

def test_needs_none(mcp_client):
    pass
"""
    out = try_out(pytester, source, REPLAY, failed=1, passed=1)
    assert "there is no recording of this test" in out
    assert "record it with: pytest --mcp-record tape 'test_it.py::test_it[a b]'" in out


def test_one_client_more_than_recorded_is_a_failure(pytester: pytest.Pytester) -> None:
    source = """
def test_it(mcp_client_sync):
    mcp_client_sync(server).call_tool("add", {"a": 1, "b": 2})
    if os.environ.get("REPLAYED"):
        mcp_client_sync(server)
"""
    try_out(pytester, WITHOUT + source, RECORD, passed=1)
    out = again(pytester, failed=1)
    assert "this test had 1 client when it was recorded, and now makes one more" in out


def test_an_unrecorded_call_fails_the_test_that_makes_it(pytester: pytest.Pytester) -> None:
    source = """
async def test_it(mcp_client):
    assert (await mcp_client(server).call_tool("add", {"a": N, "b": 2})).text

N = 5 if os.environ.get("REPLAYED") else 1
"""
    try_out(pytester, WITHOUT + source, RECORD, passed=1)
    out = again(pytester, failed=1)
    assert "- MCP replay -" in out
    assert "'add' was not recorded with these arguments" in out
    assert "recorded 1, now 5" in out
    assert "record it with: pytest --mcp-record tape test_it.py::test_it" in out


@pytest.mark.parametrize(
    "call",
    [
        'call_tool("add", {"a": 9, "b": 9})',
        'call_tool("novel")',
        "list_prompts()",
        'read_resource("memo://today")',
    ],
)
def test_and_also_the_test_that_takes_the_refusal_for_its_error(
    pytester: pytest.Pytester, call: str
) -> None:
    source = f"""
async def test_it(mcp_client):
    client = mcp_client(server)
    await client.call_tool("add", {{"a": 1, "b": 1}})
    if os.environ.get("REPLAYED"):
        with pytest.raises(holdfast.HoldfastError):
            await client.{call}
"""
    try_out(pytester, WITHOUT + source, RECORD, passed=1)
    out = again(pytester, passed=1, errors=1)
    assert "not in the recording of this test:" in out


def test_many_unrecorded_calls_are_told_in_few_lines(pytester: pytest.Pytester) -> None:
    source = """
def test_it(mcp_client_sync):
    client = mcp_client_sync(server)
    for n in range(14 if os.environ.get("REPLAYED") else 0):
        with pytest.raises(holdfast.RpcError):
            client.call_tool("add", {"a": n, "b": n})
"""
    try_out(pytester, WITHOUT + source, RECORD, passed=1)
    assert "and 4 more" in again(pytester, passed=1, errors=1)


def test_what_is_not_used_does_no_harm(pytester: pytest.Pytester) -> None:
    source = """
def test_it(mcp_client_sync):
    client = mcp_client_sync(server)
    if not os.environ.get("REPLAYED"):
        client.call_tool("add", {"a": 1, "b": 2})
        mcp_client_sync(server).ping()

def test_other(mcp_client_sync):
    mcp_client_sync(server).ping()
"""
    try_out(pytester, WITHOUT + source, RECORD, passed=2)
    again(pytester, "test_it.py::test_it", passed=1)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"version": 2}, "is of version 2, and only 1 is understood"),
        ({"clients": 1}, "cannot be read"),
        ({"clients": [{"client": "a", "tools": "../../../etc/passwd"}]}, "names no tools"),
    ],
)
def test_a_recording_that_cannot_be_understood_is_a_failure(
    pytester: pytest.Pytester, change: dict[str, object], text: str
) -> None:
    source = "def test_it(mcp_client_sync): mcp_client_sync(server).ping()"
    suite(pytester, source)
    run(pytester, RECORD).assert_outcomes(passed=1)
    (path,) = Path(pytester.path).glob("tape/*/recording.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert text in again(pytester, failed=1)


def test_a_client_that_cannot_be_made_counts_neither_then_nor_now(
    pytester: pytest.Pytester,
) -> None:
    source = """
def test_it(mcp_client_sync):
    with pytest.raises(holdfast.ValidationError, match="gadget"):
        mcp_client_sync(server, gadget=1)
    assert mcp_client_sync(server).call_tool("add", {"a": 1, "b": 2}).text == "3"

def test_asks_for_none(mcp_client_sync):
    pass
"""
    both(pytester, source, passed=2)
