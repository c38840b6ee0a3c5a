"""Clients are closed on the loop of the test, whichever plugin runs that."""

from __future__ import annotations

import pytest

from tests.testing.suites import try_out

pytest_plugins = ["pytester"]

pytestmark = pytest.mark.req("F4")

KEPT = """
@pytest.fixture(autouse=True)
def kept():
    found = []
    yield found
    assert found and [str(one.state) for one in found] == ["closed"] * len(found)
    assert ENDS == ["session closed"] * ENDS.count("session closed")

ENDS = []
server.tool("session.open")(lambda sessionName: "opened")
server.tool("session.close")(lambda sessionName: ENDS.append("session closed") or "closed")
"""

RUNNERS = {
    "asyncio auto": ("auto", ""),
    "asyncio strict": ("strict", "@pytest.mark.asyncio"),
    "asyncio, a loop for the module": ("strict", "@pytest.mark.asyncio(loop_scope='module')"),
    "asyncio auto, a loop for the session": ("auto", "@pytest.mark.asyncio(loop_scope='session')"),
    "anyio": ("strict", "@pytest.mark.anyio"),
}
each_runner = pytest.mark.parametrize(("mode", "mark"), RUNNERS.values(), ids=[*RUNNERS])


@each_runner
def test_what_a_test_opens_is_closed(pytester: pytest.Pytester, mode: str, mark: str) -> None:
    source = f"""
{mark}
async def test_it(kept, mcp_client):
    client = mcp_client(server)
    kept.append(client)
    assert (await client.call_tool("add", {{"a": 1, "b": 2}})).text == "3"
"""
    try_out(pytester, KEPT + source, mode=mode, passed=1)


@each_runner
def test_and_when_the_test_fails(pytester: pytest.Pytester, mode: str, mark: str) -> None:
    source = f"""
{mark}
async def test_it(kept, mcp_client):
    kept.append(mcp_client(server))
    kept.append(mcp_client(server))
    await kept[0].open()
    await kept[1].open()
    assert False
"""
    try_out(pytester, KEPT + source, mode=mode, failed=1)


@each_runner
def test_a_session_is_closed_while_its_client_still_can(
    pytester: pytest.Pytester, mode: str, mark: str
) -> None:
    """By a plain fixture, which is set up before there is any loop."""
    source = f"""
from holdfast.handles import Handle, ParameterSession

@pytest.fixture
def mcp(mcp_handle, kept):
    handle = mcp_handle(Handle, "trip", target=server, adapter=ParameterSession())
    kept.append(handle.client)
    yield handle
    assert ENDS == []

@pytest.fixture(autouse=True)
def last():
    yield
    assert ENDS == ["session closed"]

{mark}
async def test_it(mcp):
    assert (await mcp.call("add", {{"a": 1, "b": 2}})).text == "3"
"""
    try_out(pytester, KEPT + source, mode=mode, passed=1)


@pytest.mark.parametrize(
    ("mode", "mark", "fixture"),
    [
        ("auto", "", "pytest.fixture"),
        ("strict", "@pytest.mark.asyncio", "pytest_asyncio.fixture"),
        (
            "strict",
            "@pytest.mark.asyncio(loop_scope='module')",
            "pytest_asyncio.fixture(loop_scope='module')",
        ),
        ("strict", "@pytest.mark.anyio", "pytest.fixture"),
    ],
)
def test_an_async_fixture_has_its_client_to_the_last_line(
    pytester: pytest.Pytester, mode: str, mark: str, fixture: str
) -> None:
    source = f"""
import pytest_asyncio

@{fixture}
async def client(mcp_client, kept):
    made = mcp_client(server)
    kept.append(made)
    await made.open()
    yield made
    assert (await made.call_tool("add", {{"a": 2, "b": 2}})).text == "4"

{mark}
async def test_it(client):
    assert (await client.call_tool("add", {{"a": 1, "b": 2}})).text == "3"
"""
    try_out(pytester, KEPT + source, mode=mode, passed=1)


def test_a_client_closed_by_the_test_is_left_alone(pytester: pytest.Pytester) -> None:
    source = """
async def test_it(kept, mcp_client):
    async with mcp_client(server) as client:
        kept.append(client)
        await client.ping()
"""
    try_out(pytester, KEPT + source, passed=1)


def test_a_test_with_a_loop_of_its_own(pytester: pytest.Pytester) -> None:
    """The loop that ends takes the connection with it; what was never opened is closed too."""
    source = """
def test_it(mcp_client):
    kept = []
    kept.append(mcp_client(server))
    kept.append(mcp_client(server))

    async def work():
        await kept[0].open()

    asyncio.run(work())
    GONE.extend(kept)

GONE = []

def test_after():
    assert [one.is_connected for one in GONE] == [False, False]
    assert GONE[1].state == "closed"
"""
    try_out(pytester, source, passed=2)


@pytest.mark.parametrize("where", ["here", "thread"])
def test_a_plugin_that_nobody_knows(pytester: pytest.Pytester, where: str) -> None:
    """Whatever runs the loop: as long as it is there, the client is closed on it."""
    pytester.makeconftest(
        """
import asyncio, pytest, threading

loop = asyncio.new_event_loop()
thread = threading.Thread(target=loop.run_forever)

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    work = pyfuncitem.obj(**{n: pyfuncitem.funcargs[n] for n in pyfuncitem._fixtureinfo.argnames})
    if HERE:
        loop.run_until_complete(work)
    else:
        if not thread.is_alive():
            thread.start()
        asyncio.run_coroutine_threadsafe(work, loop).result()
    return True

def pytest_unconfigure():
    if not HERE:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
    loop.close()
""".replace("HERE", str(where == "here"))
    )
    source = """
from holdfast.handles import Handle, ParameterSession

async def test_it(mcp_handle, kept):
    handle = mcp_handle(Handle, "trip", target=server, adapter=ParameterSession())
    kept.append(handle.client)
    await handle.open()

async def test_after(kept, mcp_client):
    kept.append(mcp_client(server))
    assert ENDS == ["session closed"]
"""
    try_out(pytester, KEPT + source, mode=None, passed=2)


def test_trio_is_refused(pytester: pytest.Pytester) -> None:
    source = """
@pytest.fixture
def anyio_backend():
    return "trio"

@pytest.mark.anyio
async def test_it(mcp_client):
    pass
"""
    out = try_out(pytester, source, mode="strict", errors=1)
    assert "Holdfast runs on asyncio, and this test on trio" in out
