"""Tools of many servers in one list."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast import Tool, TransportError
from holdfast.agents.listing import Partial, ServerTool
from holdfast.servers.member import Failure


def test_a_tool_knows_how_it_is_called() -> None:
    one = ServerTool("git", Tool.make("log.all", description="Shows."), "git__log_all_1")
    assert (one.dotted, one.description) == ("git.log.all", "Shows.")
    assert repr(one) == "<ServerTool git.log.all>"
    assert ServerTool("", Tool.make("search_tools"), "search_tools").dotted == "search_tools"


def test_a_list_tells_whether_it_is_all() -> None:
    assert Partial([1, 2]) == [1, 2]
    assert Partial([1]).complete
    failure = Failure(server="a", error=TransportError("x"), time=datetime.now(UTC))
    assert not Partial([1], [failure]).complete
