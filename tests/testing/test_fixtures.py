"""What a test is handed out: clients and handles of both kinds, closed whatever happens."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.codegen import SessionTools, generate
from holdfast.types.tools import Tool
from tests.testing.suites import run, suite, try_out

pytest_plugins = ["pytester"]

pytestmark = pytest.mark.req("F4")

TEXT = {"type": "string"}


def generated(*, sync: bool = True, target: str | None = None) -> str:
    """A module for a server that keeps sessions."""
    names = {"type": "object", "properties": {"sessionName": TEXT}, "required": ["sessionName"]}
    page = {"type": "object", "properties": {"sessionName": TEXT, "url": TEXT}}
    tools = [
        Tool.make("session.open", input_schema=names),
        Tool.make("session.close", input_schema=names),
        Tool.make("nav.goto", input_schema=page),
    ]
    return generate(tools, sync=sync, target=target, session=SessionTools()).source


SESSIONS = """
import mcp_tools
from holdfast.handles import Handle, SyncHandle

STORY = []
browser = Peer("browser")
text = {"type": "string"}
names = {"type": "object", "properties": {"sessionName": text}, "required": ["sessionName"]}
page = {"type": "object", "properties": {"sessionName": text, "url": text}}

@browser.tool("session.open", input_schema=names)
def open_it(sessionName):
    STORY.append(f"open {sessionName}")
    return "opened"

@browser.tool("session.close", input_schema=names)
def close_it(sessionName):
    STORY.append(f"close {sessionName}")
    if sessionName == "crashed":
        raise OSError("the browser is gone")
    return "closed"

@browser.tool("nav.goto", input_schema=page)
def goto(sessionName, url):
    return f"{sessionName} at {url}"
"""


def handles(pytester: pytest.Pytester, source: str, *arguments: str, **expected: Any) -> str:
    pytester.makepyfile(mcp_tools=generated())
    return try_out(pytester, SESSIONS + source, *arguments, **expected)


def test_a_handle_of_a_module_and_of_its_class(pytester: pytest.Pytester) -> None:
    source = """
KEPT = []

@pytest.mark.mcp_target(browser)
@pytest.mark.parametrize("kind", [mcp_tools, mcp_tools.Tools], ids=["module", "class"])
async def test_it(mcp_handle, kind):
    mcp = mcp_handle(kind, "trip")
    assert type(mcp) is mcp_tools.Tools
    assert STORY == []
    assert (await mcp.nav.goto(url="here")).text == "trip at here"
    KEPT.append(mcp)

@pytest.fixture(autouse=True)
def story():
    STORY.clear()
    yield
    assert STORY == ["open trip", "close trip"]
    assert KEPT[-1].closed and KEPT[-1].client.state == "closed"
"""
    handles(pytester, source, passed=2)


def test_and_without_await(pytester: pytest.Pytester) -> None:
    source = """
KEPT = []

@pytest.mark.parametrize("kind", [mcp_tools, mcp_tools.SyncTools], ids=["module", "class"])
def test_it(mcp_handle_sync, kind):
    mcp = mcp_handle_sync(kind, "trip", target=browser)
    assert type(mcp) is mcp_tools.SyncTools
    assert mcp.nav.goto(url="here").text == "trip at here"
    KEPT.append(mcp)
    assert False

@pytest.fixture(autouse=True)
def story():
    STORY.clear()
    yield
    assert STORY == ["open trip", "close trip"]
    assert KEPT[-1].closed and KEPT[-1].client.state == "closed"
"""
    handles(pytester, source, failed=2)


def test_a_module_s_own_target_comes_before_the_suite_s(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mcp_tools=generated(target="of-the-module"))
    source = """
import mcp_tools

def test_it(mcp_handle, mcp_client):
    assert mcp_client().name == "of-the-suite"
    assert mcp_handle(mcp_tools).client.name == "of-the-module"
    assert mcp_handle(mcp_tools.Tools).client.name == "of-the-module"
    assert mcp_handle(mcp_tools, target="mine").client.name == "mine"

@pytest.mark.mcp_target("of-the-marker")
def test_marked(mcp_handle):
    assert mcp_handle(mcp_tools).client.name == "of-the-marker"
"""
    try_out(pytester, source, more="mcp_target = of-the-suite", passed=2)


def test_a_handle_over_a_client_that_is_there_already(pytester: pytest.Pytester) -> None:
    source = """
async def test_it(mcp_client, mcp_handle):
    client = mcp_client(browser)
    mcp = mcp_handle(mcp_tools, "trip", target=client)
    assert mcp.client is client
    assert (await mcp.nav.goto(url="here")).text == "trip at here"

def test_sync(mcp_client_sync, mcp_handle_sync):
    assert STORY == ["open trip", "close trip"]
    mcp = mcp_handle_sync(mcp_tools, "trip", target=mcp_client_sync(browser))
    assert mcp.nav.goto(url="here").text == "trip at here"

def test_after():
    assert STORY == ["open trip", "close trip"] * 2
"""
    handles(pytester, source, passed=3)


def test_one_that_does_not_close_well_does_not_keep_the_others_open(
    pytester: pytest.Pytester,
) -> None:
    source = """
KEPT = []

async def test_it(mcp_client, mcp_handle):
    KEPT.append(mcp_client(server))
    KEPT.append(mcp_handle(mcp_tools, "crashed", target=browser).client)
    KEPT.append(mcp_handle(mcp_tools, "trip", target=browser).client)
    for one in KEPT:
        await one.open()
    handles = [mcp_handle(mcp_tools, name, target=browser) for name in ("crashed", "trip")]
    for mcp in handles:
        await mcp.open()
        KEPT.append(mcp.client)

def test_after():
    assert [str(one.state) for one in KEPT] == ["closed"] * 5
    assert STORY == ["open crashed", "open trip", "close trip", "close crashed"]
"""
    out = handles(pytester, source, passed=2, errors=1)
    assert "the browser is gone" in out


def test_several_that_do_not_close_well_are_all_told(pytester: pytest.Pytester) -> None:
    source = """
def test_it(mcp_handle_sync):
    for _ in range(2):
        mcp_handle_sync(mcp_tools, "crashed", target=browser).open()
"""
    out = handles(pytester, source, passed=1, errors=1)
    assert "several MCP clients failed to close (2 sub-exceptions)" in out


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("mcp_handle_sync(mcp_tools.Tools)", "Tools is no SyncHandle; use mcp_handle for it"),
        ("mcp_handle(SyncHandle)", "SyncHandle is no Handle; use mcp_handle_sync for it"),
        ("mcp_handle(int)", "int is no Handle"),
        ("mcp_handle(json)", "json is no generated module: it has no connect()"),
        ("mcp_handle_sync(plain)", "it has no connect_sync(); generate it with --sync"),
        ("mcp_client(browser, headers={})", "headers: only for a command"),
    ],
)
def test_what_cannot_be_made_is_refused(pytester: pytest.Pytester, call: str, text: str) -> None:
    pytester.makepyfile(mcp_tools=generated(), plain=generated(sync=False))
    suite(
        pytester,
        f"{SESSIONS}\nimport plain\ndef test_it(mcp_client, mcp_handle, mcp_handle_sync): {call}",
    )
    found = run(pytester)
    found.assert_outcomes(failed=1)
    assert text in found.stdout.str()


def test_a_class_of_one_s_own(pytester: pytest.Pytester) -> None:
    source = """
class Mine(Handle):
    pass

async def test_it(mcp_handle):
    mcp = mcp_handle(Mine, target=server)
    assert type(mcp) is Mine
    assert (await mcp.call("add", {"a": 1, "b": 2})).text == "3"
"""
    handles(pytester, source, passed=1)


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
