"""The plugin as a suite sees it: fixtures, markers, settings, reports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from tests.testing.suites import run, suite, try_out

pytest_plugins = ["pytester"]

pytestmark = pytest.mark.req("F4")

SRC = Path(holdfast.__file__).parents[1]
DEMO = f"{sys.executable} -m holdfast.demo.server"


def calls_in(report: str, title: str = "MCP calls") -> list[dict[str, object]]:
    """The lines of a section of a report."""
    _, _, rest = report.partition(f" {title} ")
    lines = rest.splitlines()[1:]
    found = []
    for line in lines:
        if not line.startswith("{"):
            break
        found.append(json.loads(line))
    return found


# To those who do not use it


def test_loading_it_loads_nothing_else() -> None:
    probe = (
        f"import sys; sys.path.insert(0, {str(SRC)!r}); import pytest; before = set(sys.modules);"
        "import holdfast.testing.plugin; print(*sorted(set(sys.modules) - before))"
    )
    found = subprocess.run(
        [sys.executable, "-I", "-c", probe], capture_output=True, text=True, check=True
    )
    assert set(found.stdout.split()) == {
        "holdfast",
        "holdfast._lazy",
        "holdfast.testing",
        "holdfast.testing.plugin",
    }


def test_a_suite_without_mcp_does_not_notice(pytester: pytest.Pytester) -> None:
    suite(pytester, "")
    pytester.makepyfile("def test_it(): pass\ndef test_fails(): assert False")
    found = run(pytester, "-W", "error", "--strict-markers", "--strict-config")
    found.assert_outcomes(passed=1, failed=1)
    assert "MCP" not in found.stdout.str()
    assert "warning" not in found.stdout.str()


def test_its_markers_fixtures_and_options_are_listed(pytester: pytest.Pytester) -> None:
    suite(pytester, "")
    listed = run(pytester, "--markers").stdout.str()
    assert "@pytest.mark.mcp_target(target, **options):" in listed
    assert "@pytest.mark.mcp_log(path, **options):" in listed
    listed = run(pytester, "--fixtures").stdout.str()
    for name in ("mcp_client", "mcp_client_sync", "mcp_handle", "mcp_handle_sync"):
        assert f"\n{name} -- " in listed
    assert "_mcp" not in listed
    listed = run(pytester, "--help").stdout.str()
    for name in ("--mcp-record=DIR", "--mcp-replay=DIR", "mcp_target (string):"):
        assert name in listed


# Where it leads


def test_a_target_in_the_call_comes_first(pytester: pytest.Pytester) -> None:
    source = """
@pytest.mark.mcp_target(["no-such-command"])
async def test_it(mcp_client):
    client = mcp_client(server, name="mine")
    assert client.name == "mine"
    await client.ping()
    await mcp_client(target=server).ping()
"""
    try_out(pytester, source, more="mcp_target = no-such-command", passed=1)


def test_then_the_nearest_marker_and_its_options(pytester: pytest.Pytester) -> None:
    source = """
pytestmark = pytest.mark.mcp_target("no-such-command")

@pytest.mark.mcp_target(server, name="marked", when_down="wait")
async def test_it(mcp_client):
    assert mcp_client().name == "marked"
    assert mcp_client(name="mine").name == "mine"
    assert mcp_client(Peer("other")).name == "other"
    await mcp_client().ping()

@pytest.mark.parametrize("n", [
    pytest.param(1, marks=pytest.mark.mcp_target(Peer("one"))),
    pytest.param(2, marks=pytest.mark.mcp_target(target=Peer("two"))),
])
async def test_each(mcp_client, n):
    assert mcp_client().name == ["one", "two"][n - 1]
"""
    try_out(pytester, source, more="mcp_target = no-such-command", passed=3)


def test_then_the_configuration_whose_commands_run_beside_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makefile(".py", server="from holdfast.demo.server import main; main([])")
    suite(
        pytester,
        """
async def test_it(mcp_client):
    assert (await mcp_client().call_tool("add", {"a": 1, "b": 2})).structured == {"sum": 3}

def test_sync(mcp_client_sync):
    client = mcp_client_sync(name="mine")
    assert client.call_tool("add", {"a": 1, "b": 2}).structured == {"sum": 3}
""",
        more=f"mcp_target = {sys.executable} server.py",
    )
    elsewhere = pytester.mkdir("elsewhere")
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("PYTHONPATH", str(SRC))
    found = run(pytester, "--rootdir=..", "-c", "../tox.ini", "../test_it.py")
    found.assert_outcomes(passed=2)


def test_then_the_environment(pytester: pytest.Pytester) -> None:
    source = f"""
async def test_it(mcp_client, monkeypatch):
    monkeypatch.setenv("MCP_SERVER_URL", "http://127.0.0.1:9/mcp")
    assert "127.0.0.1" in repr(mcp_client().transport)
    monkeypatch.setenv("MCP_SERVER_URL", {DEMO!r})
    await mcp_client().ping()
"""
    try_out(pytester, source, passed=1)


def test_without_any_it_says_where_one_could_stand(pytester: pytest.Pytester) -> None:
    out = try_out(pytester, "def test_it(mcp_client_sync): mcp_client_sync()", failed=1)
    for place in ("in the call", "@pytest.mark.mcp_target(…)", "mcp_target in", "MCP_SERVER_URL"):
        assert place in out


@pytest.mark.parametrize("marker", ["mcp_target()", "mcp_target(1, 2)", "mcp_target(1, target=2)"])
def test_a_marker_that_says_nothing_clear_is_refused(
    pytester: pytest.Pytester, marker: str
) -> None:
    source = f"@pytest.mark.{marker}\ndef test_it(mcp_client_sync): mcp_client_sync()"
    out = try_out(pytester, source, failed=1)
    assert "mcp_target(target, **options) takes one target" in out


# The report


def test_a_test_that_fails_shows_its_calls(pytester: pytest.Pytester) -> None:
    source = """
async def test_it(mcp_client):
    client = mcp_client(server)
    await client.call_tool("add", {"a": 1, "b": 2})
    await client.call_tool("login", {"password": "hunter2"})
    assert (await client.call_tool("fail")).text == ""

async def test_passes(mcp_client):
    await mcp_client(server).call_tool("add", {"a": 7, "b": 7})
"""
    out = try_out(pytester, source, "-rA", failed=1, passed=1)
    calls = calls_in(out)
    assert [(line["name"], line["_phase"]) for line in calls] == [
        (name, phase) for name in ("add", "login", "fail") for phase in ("before", "after")
    ]
    assert calls[1]["_result"] == 3
    assert calls[2]["arguments"] == {"password": "[redacted]"}
    assert calls[5]["_error"] == "OSError: out of rope"
    assert out.count("MCP calls") == 1


def test_each_client_has_a_section_of_its_own(pytester: pytest.Pytester) -> None:
    source = """
def test_it(mcp_client_sync):
    one, idle, two = mcp_client_sync(server), mcp_client_sync(server), mcp_client_sync(Peer("b"))
    one.call_tool("add", {"a": 1, "b": 2})
    two.call_tool("nothing")
"""
    out = try_out(pytester, source, failed=1)
    assert [line["name"] for line in calls_in(out, "MCP calls 1: shop")] == ["add", "add"]
    assert [line["name"] for line in calls_in(out, "MCP calls 3: b")] == ["nothing", "nothing"]
    assert "MCP calls 2" not in out


def test_a_setup_and_a_teardown_that_fail_show_them_too(pytester: pytest.Pytester) -> None:
    source = """
@pytest.fixture
async def early(mcp_client):
    await mcp_client(server).call_tool("add", {"a": 1, "b": 1})
    assert False

@pytest.fixture
async def late(mcp_client):
    client = mcp_client(server)
    yield client
    await client.call_tool("add", {"a": 2, "b": 2})
    assert False

async def test_early(early): pass
async def test_late(late): pass
"""
    out = try_out(pytester, source, errors=2, passed=1)
    assert out.count("MCP calls") == 2


def test_a_long_report_is_cut(pytester: pytest.Pytester) -> None:
    source = """
async def test_it(mcp_client):
    client = mcp_client(server)
    for n in range(150):
        await client.call_tool("add", {"a": n, "b": 0})
    assert False
"""
    out = try_out(pytester, source, failed=1)
    assert "(100 earlier lines left out)" in out
    assert '"arguments":{"a":149,"b":0}' in out


# Logs


def test_a_marker_has_the_calls_written_to_a_file(pytester: pytest.Pytester) -> None:
    source = """
@pytest.mark.mcp_log("logs/calls.jsonl", sidecars=True)
async def test_it(mcp_client, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    mine = []
    client = mcp_client(server, log=mine.append)
    await client.call_tool("novel")
    assert len(mine) == 2
    await mcp_client(server).call_tool("add", {"a": 0, "b": 0})

@pytest.mark.mcp_log(path="logs/calls.jsonl")
def test_more(mcp_client_sync):
    mcp_client_sync(server).call_tool("add", {"a": 1, "b": 2})
"""
    try_out(pytester, source, passed=2)
    folder = Path(pytester.path) / "logs"
    lines = [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]
    assert [(line["name"], line["_seq"]) for line in lines] == [
        *[("novel", 1)] * 2,
        *[("add", 2)] * 2,
        *[("add", 1)] * 2,
    ]
    assert (folder / ".mcp-log" / "1-novel.txt").read_text().startswith("chapter")


def test_a_log_without_a_path_is_refused(pytester: pytest.Pytester) -> None:
    source = "@pytest.mark.mcp_log\ndef test_it(mcp_client_sync): mcp_client_sync(server)"
    assert "mcp_log(path, **options) takes one path" in try_out(pytester, source, failed=1)


# Options


def test_recording_and_replaying_at_once_is_refused(pytester: pytest.Pytester) -> None:
    suite(pytester, "")
    pytester.mkdir("a")
    found = run(pytester, "--mcp-record=a", "--mcp-replay=a")
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    assert "do not go together" in found.stderr.str()


def test_replaying_from_nowhere_is_refused(pytester: pytest.Pytester) -> None:
    suite(pytester, "")
    found = run(pytester, "--mcp-replay=nowhere")
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    assert "--mcp-replay nowhere: there is no such folder" in found.stderr.str()
