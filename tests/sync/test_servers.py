"""Many servers without a loop: the same verbs."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest

import holdfast
from holdfast.sync import Client, Servers

DEMO = [sys.executable, "-m", "holdfast.demo.server"]


def public(kind: type) -> dict[str, Any]:
    return {name: one for name, one in vars(kind).items() if not name.startswith("_")}


@pytest.mark.req("F2", "F3")
def test_it_has_the_verbs_of_the_asynchronous_one() -> None:
    assert list(public(Servers)) == list(public(holdfast.Servers))
    for name, ours in public(Servers).items():
        theirs = public(holdfast.Servers)[name]
        if isinstance(ours, property):
            continue
        assert inspect.signature(ours) == inspect.signature(theirs), name


@pytest.mark.req("F2", "F3")
def test_servers_are_used_without_a_loop() -> None:
    with Servers({"demo": DEMO, "gone": ["no-such-command-anywhere"]}) as servers:
        assert [status.is_ready for status in servers.open()] == [True, False]
        assert servers.call_tool("demo.echo", {"text": "hello"}).text == "hello"
        assert isinstance(servers["demo"], Client)
        assert servers["demo"].call_tool("add", {"a": 1, "b": 2}).structured == {"sum": 3}
        assert "demo" in servers
        assert list(servers) == ["demo", "gone"]
        assert len(servers) == 2
        found = servers.list_tools()
        assert not found.complete
        assert "2, 1 ready" in repr(servers)
