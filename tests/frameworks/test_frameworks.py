"""Agents of real frameworks, with scripted models, while their server is killed twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.frameworks.running import PINS, latest, report
from tests.frameworks.server import NAMES, ODD, TOOLS
from tests.interop.install import NotHere

pytestmark = pytest.mark.hang(600)

FRAMEWORKS = sorted(PINS)


def of(name: str) -> dict[str, Any]:
    try:
        found = report(name)
    except NotHere as reason:
        pytest.skip(str(reason))
    return found


@pytest.mark.req("Y5")
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_run_finishes_and_each_effect_happens_once(name: str) -> None:
    found = of(name)
    ended = found["holdfast"]
    assert ended["finished"], ended
    assert ended["steps"] == [1, 2, 3, 4, 5]
    assert any("may have run" in one for one in ended["read"])
    latest(name).write_text(json.dumps({key: found[key] for key in ("holdfast", "native")}))


@pytest.mark.req("Y5")
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_framework_s_own_client_does_not_finish(name: str) -> None:
    ended = of(name)["native"]
    assert not ended["finished"]
    assert ended["steps"] == [1, 2]


@pytest.mark.req("Y5")
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_cancelling_a_run_cancels_the_call_on_the_server(name: str) -> None:
    assert of(name)["cancelled"] is True


@pytest.mark.req("Y5")
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_many_servers_are_taken_too(name: str) -> None:
    assert "a__recorded" in of(name)["many"] or of(name)["many"] == "{'steps': []}"


@pytest.mark.req("Y5")
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_three_lines_of_its_page_work(name: str) -> None:
    assert '"steps"' in of(name)["snippet"]


@pytest.mark.req("Y5")
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_parameters_may_be_called_what_the_framework_calls_its_own(name: str) -> None:
    assert json.loads(of(name)["named"]) == dict.fromkeys(NAMES, "here")


@pytest.mark.req("Y5", "T8")
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_no_tool_costs_the_framework_the_others(name: str) -> None:
    assert set(of(name)["odd"]) == {tool["name"] for tool in (*TOOLS, *ODD)}


@pytest.mark.req("Y5")
def test_langchain_gets_its_own_values() -> None:
    found = of("langchain")
    (block,) = found["picture"]["content"]
    assert (block["type"], block["mime_type"]) == ("image", "image/png")
    assert found["recorded"]["artifact"]["structured_content"] == {"steps": [1, 2, 3, 4, 5]}
    failed = found["refuse"]
    assert (failed["content"], failed["status"]) == ("not today", "error")
    assert failed["tool_call_id"] == "1"
    assert found["plain"] == "not today"
    assert (found["sync"]["content"], found["sync"]["status"]) == ("not today", "error")
    assert found["sync"]["tool_call_id"] == "1"
    facts = found["record"]["artifact"]
    assert (facts["kind"], facts["outcome_unknown"], facts["retry_in"]) == (
        "validation",
        False,
        None,
    )
    assert found["schema"]["required"] == ["step"]


@pytest.mark.req("Y5")
def test_openai_agents_gets_its_own_values() -> None:
    found = of("openai_agents")
    assert found["picture"]["output"]["image_url"].startswith("data:image/png;base64,")
    assert found["recorded"]["result"]["structuredContent"] == {"steps": [1, 2, 3, 4, 5]}
    assert found["refuse"]["output"] == {"type": "text", "text": "not today"}
    assert found["refuse"]["custom"]["holdfast"]["kind"] == "tool"
    assert found["record"]["custom"]["holdfast"]["kind"] == "validation"
    assert found["annotations"]["readOnlyHint"] is True


@pytest.mark.req("Y5")
def test_pydantic_ai_gets_its_own_values() -> None:
    found = of("pydantic_ai")
    assert found["picture"]["type"] == "BinaryContent"
    assert found["recorded"]["type"] == "dict"
    assert found["recorded"]["metadata"] == {"structured_content": {"steps": [1, 2, 3, 4, 5]}}
    assert (found["refuse"]["outcome"], found["refuse"]["content"]) == ("failed", "not today")
    assert found["record"]["outcome"] == "retried"
    assert found["failures"] == [["tool", False, None]]
    assert '"recorded"' in found["tested"]
    assert found["id"] == "ledger"


@pytest.mark.req("D6")
@pytest.mark.parametrize(
    ("name", "kind", "newest"),
    [
        ("langchain", "mcp.FastMCP", "2025-11-25"),
        ("openai_agents", "mcp.MCPServer", "2026-07-28"),
        ("fastmcp", "fastmcp.FastMCP", "2026-07-28"),
    ],
)
def test_a_server_object_is_served_in_process(name: str, kind: str, newest: str) -> None:
    try:
        found = report(name, "in_process")
    except NotHere as reason:
        pytest.skip(str(reason))
    texts = ["0", "1", "2", "3", "4"]
    assert found[kind] == [[one, ["add"], "3", texts] for one in (newest, "2025-06-18")]
