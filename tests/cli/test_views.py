"""What servers have, shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.cli.output import Output
from holdfast.cli.views import show_tool
from tests.cli import golden
from tests.cli.conftest import DEMO, Cli, Configure, Seen, stdio
from tests.cli.rig import puppet, tools

TOOL: dict[str, Any] = {
    "name": "git_log",
    "title": "Log",
    "description": "  Shows the commits.\n\nNewest first.  ",
    "inputSchema": {
        "type": "object",
        "properties": {
            "repo_path": {
                "type": "string",
                "description": "Where\n it is, as git knows it",
            },
            "max_count": {"$ref": "#/$defs/count", "default": 10},
            "order": {"enum": ["new", "old"]},
            "files": {"type": "array", "items": {"type": "string"}},
            "anything": True,
        },
        "required": ["repo_path", "files", 5],
        "$defs": {"count": {"type": "integer"}},
    },
    "annotations": {"readOnlyHint": True},
    "outputSchema": {"type": "object"},
}


@pytest.mark.req("F3")
@pytest.mark.parametrize("columns", [60, 120])
def test_a_tool_is_described_with_a_line_to_call_it(
    seen: Seen, configure: Configure, columns: int
) -> None:
    configure(git=stdio(puppet(tools=[TOOL])))
    golden.check(f"describe-{columns}", seen("describe", "git.git_log", columns=columns).lines)


@pytest.mark.req("N3")
@pytest.mark.parametrize("columns", [80, 120])
def test_a_server_is_described_in_short(seen: Seen, configure: Configure, columns: int) -> None:
    configure(demo=stdio(DEMO))
    golden.check(f"describe-demo-{columns}", seen("describe", "demo", columns=columns).lines)


@pytest.mark.parametrize("schema", [None, {}, [], {"properties": 5, "required": 5}, True])
def test_a_tool_that_takes_nothing_has_no_parameters(
    schema: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    show_tool(Output(), tools({"name": "x", "inputSchema": schema})[0], "holdfast call x")
    assert capfd.readouterr().out == "x()\n\nholdfast call x\n"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "required", "items", "enum", "$ref", "a"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON, JSON, JSON)
def test_whatever_a_server_says_of_a_tool_can_be_shown(
    capfd: pytest.CaptureFixture[str], one: Any, two: Any, three: Any
) -> None:
    tool = {"name": "x", "description": one, "annotations": two, "inputSchema": three}
    show_tool(Output(), tools(tool)[0], "holdfast call x")
    assert capfd.readouterr().out.startswith("x(")


@pytest.mark.req("N3")
@pytest.mark.parametrize(
    ("hints", "words"),
    [
        ({"readOnlyHint": True, "idempotentHint": True}, "read-only, idempotent"),
        ({"readOnlyHint": True, "destructiveHint": True}, "read-only"),
        ({"destructiveHint": True, "openWorldHint": True}, "destructive, reaching other systems"),
        ({"destructiveHint": False, "openWorldHint": False}, "not destructive, local"),
    ],
)
def test_what_a_tool_says_of_itself_is_in_words(
    cli: Cli, hints: dict[str, bool], words: str
) -> None:
    server = puppet(tools=[{"name": "x", "annotations": hints}])
    assert f"\nThe server calls it {words}.\n" in cli("describe", "x", "--", *server).out


@pytest.mark.req("F3")
def test_lists_for_a_person(seen: Seen) -> None:
    golden.check("resources-80", seen("resources", "--", *DEMO).lines)
    golden.check("prompts-80", seen("prompts", "--", *DEMO).lines)


@pytest.mark.req("F3")
def test_lists_for_a_program(cli: Cli) -> None:
    assert "demo://note/{name}\tA note written" in cli("resources", "--", *DEMO).out
    assert cli("prompts", "--", *DEMO).out.startswith("greeting\tname [style]\tAsks")
    found = cli("resources", "--json", "--", *DEMO).value
    assert found.keys() == {"resources", "resourceTemplates", "skills"}
    assert cli("prompts", "--json", "--", *DEMO).value["prompts"][1]["name"] == "tour"
    assert json.loads(cli("tools", "--json", "--", *DEMO).out)["tools"][0]["inputSchema"]


HIDDEN_TEXT = "\u200b\U000e0041\x1b[31m\u202e\x07\x00\ufeff"


@pytest.mark.req("N3")
@pytest.mark.parametrize("words", [["tools"], ["describe"], ["describe", "good"], ["doctor"]])
def test_text_about_a_server_hides_nothing_from_a_reader_of_a_pipe(
    cli: Cli, words: list[str]
) -> None:
    described = {"description": f"Reads.{HIDDEN_TEXT}", "inputSchema": {"type": "object"}}
    tools = [{"name": "good", **described}, {"name": f"odd{HIDDEN_TEXT}", **described}]
    said = cli(*words, "--", *puppet(tools=tools, instructions=f"Do.{HIDDEN_TEXT}"))
    assert not [char for char in HIDDEN_TEXT.replace("[31m", "") if char in said.out + said.err]


@pytest.mark.req("Y5")
@pytest.mark.parametrize(
    ("meta", "told"),
    [
        ({"ui": {"resourceUri": "ui://board"}}, "Its app is the resource ui://board."),
        ({"ui": {"resourceUri": "ui://b\x1b[2J", "visibility": ["model", "app"]}}, "ui://b"),
    ],
)
def test_the_app_of_a_tool_is_shown(cli: Cli, meta: dict[str, Any], told: str) -> None:
    server = puppet(tools=[{"name": "x", "inputSchema": {}, "_meta": meta}])
    assert told in cli("describe", "x", "--", *server).out


@pytest.mark.parametrize("meta", [None, 5, {}, {"ui": 5}, {"ui": {"resourceUri": 5}}])
def test_what_is_no_app_is_not_shown(cli: Cli, meta: Any) -> None:
    server = puppet(tools=[{"name": "x", "inputSchema": {}, "_meta": meta}])
    assert "app" not in cli("describe", "x", "--", *server).out.partition("holdfast call")[0]
