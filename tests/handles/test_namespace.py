"""Namespaces: methods by attribute and by the server's own names."""

from __future__ import annotations

import pytest

from holdfast.handles import Handle, Namespace, SyncHandle, SyncNamespace
from tests.handles.rig import Desk, Tools, handle


@pytest.fixture
def mcp() -> Tools:
    return handle(Desk())


@pytest.mark.req("H2")
async def test_a_method_is_an_attribute_and_an_item() -> None:
    async with handle(Desk()) as mcp:
        assert (await mcp.browser.run_file(path="a")).text == "p4n-test ran a"
        assert (await mcp.browser["run.file"](path="b")).text == "p4n-test ran b"
        assert (await mcp["browser"]["run.file"](path="c")).text == "p4n-test ran c"
        assert (await mcp["_root"]["health"]()).text == "well"


@pytest.mark.req("H2")
def test_a_namespace_knows_its_tools(mcp: Tools) -> None:
    assert list(mcp.browser) == ["run_test", "run.file"]
    assert repr(mcp.nav).startswith("<Nav of <Tools szkrabok new")


@pytest.mark.req("H2")
def test_an_unknown_name_is_told_with_those_there_are(mcp: Tools) -> None:
    with pytest.raises(KeyError, match=r"browser: there is no tool 'run'.*run_test, run\.file"):
        mcp.browser["run"]
    with pytest.raises(KeyError, match=r"no namespace 'tab' .there are: _root, browser, nav"):
        mcp["tab"]


@pytest.mark.req("H5")
def test_nothing_of_the_lifecycle_is_on_the_handle(mcp: Tools) -> None:
    assert not hasattr(mcp, "session_open")
    with pytest.raises(KeyError):
        mcp["session"]


@pytest.mark.req("H2")
@pytest.mark.parametrize("kind", [Namespace, SyncNamespace])
def test_a_namespace_leaves_all_public_names_to_the_server(kind: type) -> None:
    assert [name for name in dir(kind) if not name.startswith("_")] == []


@pytest.mark.req("H2")
@pytest.mark.parametrize("kind", [Handle, SyncHandle])
def test_the_names_that_a_handle_takes_for_itself_are_few_and_known(kind: type) -> None:
    """Generation keeps namespaces from having these; a new one needs a line there."""
    from holdfast.codegen.names import HANDLE_MEMBERS

    own = {name for name in dir(kind(Desk().peer)) if not name.startswith("_")}
    assert own == {
        "adapter", "call", "call_tool", "client", "close", "closed", "open", "registry", "session",
    }  # fmt: skip
    assert own <= set(HANDLE_MEMBERS)
