"""What a registry becomes, before it is text."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.codegen.model import Model, SessionTools
from holdfast.codegen.schemas import ANY, Kind
from holdfast.lock.fingerprint import registry_hash
from holdfast.types.tools import Tool, ToolAnnotations
from tests.codegen.material import recorded, registries, tool
from tests.rows import rows

SESSION = {"type": "object", "properties": {"sessionName": {"type": "string"}, "url": {}}}


def contents(model: Model) -> list[object]:
    """All that a module is written from."""
    facts = [model.spaces, model.records, model.schemas, model.returns, model.hash]
    return [*facts, model.opening, model.reports, model.taken]


def calls(model: Model) -> dict[str, str]:
    """Every tool, and how it is called."""
    return {
        method.tool: f"{space.attribute}.{method.name}"
        for space in model.spaces
        for method in space.methods
    }


@pytest.mark.req("H2")
def test_tools_are_sorted_into_namespaces() -> None:
    names = ["nav.goto", "browser.run_test", "browser.run.file", "health"]
    model = Model([tool(name) for name in names])
    assert calls(model) == {
        "health": "_root.health",
        "browser.run.file": "browser.run_file",
        "browser.run_test": "browser.run_test",
        "nav.goto": "nav.goto",
    }
    assert [space.wire for space in model.spaces] == ["_root", "browser", "nav"]
    assert [method.key for method in model.spaces[1].methods] == ["run.file", "run_test"]


@pytest.mark.req("H2")
def test_a_namespace_that_is_called_root_is_another_one() -> None:
    model = Model([tool("x"), tool("_root.x")])
    assert calls(model) == {"x": "_root.x", "_root.x": "root.x"}
    assert len({space.wire for space in model.spaces}) == 2


@pytest.mark.req("H2")
def test_what_was_renamed_is_reported() -> None:
    schema = {"type": "object", "properties": {"from": {}, "to": {}}}
    model = Model([tool("browser.run.file", input_schema=schema), tool("client.ping")])
    assert [*model.reports] == [
        'tool "browser.run.file" is called browser.run_file',
        'tool "browser.run.file" parameter "from" is called from_',
        'namespace "client" is called client_',
    ]


def test_a_report_shows_what_cannot_be_seen() -> None:
    reports = [*Model([tool("a\x1b[31m\u202e"), tool("b\n"), tool("b\\n")]).reports]
    assert reports[0] == 'tool "a\\x1b[31m\\u202e" is called a_31m'
    assert [one.partition(" is")[0] for one in reports[1:]] == [r'tool "b\n"', r'tool "b\\n"']


@pytest.mark.req("H1")
def test_a_tool_listed_twice_is_used_once_whatever_the_order() -> None:
    one, two = tool("a", description="one"), tool("a", description="two")
    first, second = Model([one, two]), Model([two, one])
    assert contents(first) == contents(second)
    assert first.spaces[0].methods[0].description == "one"
    assert [*first.reports] == ['tool "a" is listed more than once; only one of them is used']


DOUBLING: Any = {
    "properties": {"a": {"$ref": "#/$defs/d0"}},
    "$defs": {
        f"d{number}": {"anyOf": [{"allOf": [{"$ref": f"#/$defs/d{number + 1}"}]}] * 2}
        for number in range(60)
    },
}
"""Each definition refers to the next one twice: a few lines that stand for millions."""


def test_a_schema_without_end_is_reported() -> None:
    (report,) = Model([tool("a", input_schema=DOUBLING)]).reports
    assert report == 'tool "a" has a schema too deep or too large; parts of it are Any'


def test_many_schemas_without_end_have_one_end_together() -> None:
    """Each schema is small, and stands for as much as one may."""
    tools = [tool(f"a{number:03}", input_schema=DOUBLING) for number in range(150)]
    model = Model([*tools, tool("z", input_schema={"properties": {"a": {"type": "string"}}})])
    assert len(model.reports) == 151
    last = model.spaces[0].methods[-1]
    assert (last.parameters, last.extra) == ({}, ANY)


# Sessions


@pytest.mark.req("H1", "H5")
def test_the_session_is_left_to_the_adapter() -> None:
    names = ["session.open", "session.close", "session.list", "nav.goto", "health"]
    model = Model([tool(name, input_schema=SESSION) for name in names], session=SessionTools())
    assert calls(model).keys() == {"nav.goto", "health"}
    for space in model.spaces:
        for method in space.methods:
            assert [*method.parameters] == ["url"]
    assert model.schemas.keys() == set(names)
    assert model.opening == Kind("OpenArguments")
    (record,) = model.records
    assert [field.wire for field in record.fields] == ["url"]


@rows(
    ("session", "hidden"),
    [
        (SessionTools(), {"session.open", "session.close", "session.*"}),
        (SessionTools("id", "open", "close"), {"open", "close"}),
        (SessionTools("id", "a.open", "b.close"), {"a.open", "b.close"}),
        (SessionTools("id", "a.open", None), {"a.open", "a.*"}),
        (SessionTools("id", None, None), set()),
    ],
)
def test_what_a_session_hides(session: SessionTools, hidden: set[str]) -> None:
    assert set(session.hidden) == hidden


@pytest.mark.parametrize("names", [["nav.goto"], ["session.open", "nav.goto"]])
def test_an_opening_that_takes_nothing_has_no_type(names: list[str]) -> None:
    assert Model([tool(name) for name in names], session=SessionTools()).opening is None


def test_tools_and_namespaces_can_be_hidden() -> None:
    names = ["a.x", "a.y", "b.x", "c"]
    tools = [tool(name, input_schema=SESSION) for name in names]
    model = Model(tools, hide=["a.*", "c"])
    assert calls(model) == {"b.x": "b.x"}
    assert model.schemas.keys() == set(names)


# Results and words


@pytest.mark.req("H3")
def test_an_output_schema_is_the_type_of_the_result() -> None:
    output = {"type": "object", "properties": {"passed": {"type": "integer"}}}
    model = Model([tool("a.b", output_schema=output), tool("a.c")])
    typed, untyped = model.spaces[0].methods
    assert typed.result == Kind("ABResult")
    assert untyped.result is None


@pytest.mark.parametrize("output", [{}, {"type": "null"}, {"$ref": "#"}])
def test_an_output_schema_that_says_nothing_is_none(output: dict[str, object]) -> None:
    assert Model([tool("a", output_schema=output)]).spaces[0].methods[0].result is None


@rows(
    ("annotations", "hints"),
    [
        (None, ()),
        (ToolAnnotations(), ()),
        (ToolAnnotations(read_only_hint=True, destructive_hint=True), ("read-only",)),
        (ToolAnnotations(destructive_hint=True), ("destructive",)),
        (
            ToolAnnotations(destructive_hint=False, idempotent_hint=True),
            ("not destructive", "idempotent"),
        ),
        (ToolAnnotations(open_world_hint=True), ("reaches out of the server's own world",)),
    ],
)
def test_hints_are_put_in_words(annotations: ToolAnnotations | None, hints: object) -> None:
    model = Model([tool("a", annotations=annotations)])
    assert model.spaces[0].methods[0].hints == hints


def test_a_title_stands_in_for_a_missing_description() -> None:
    assert Model([tool("a", title="Does")]).spaces[0].methods[0].description == "Does"


# The same tools, the same model


@pytest.mark.req("H1", "H4")
def test_the_hash_is_the_registry_s() -> None:
    tools = recorded("everything")
    assert Model(tools).hash == registry_hash(tools)


@pytest.mark.req("H1")
@settings(max_examples=15)
@given(registries(), st.randoms(use_true_random=False))
def test_the_order_of_tools_and_keys_does_not_matter(
    tools: list[Tool], chance: random.Random
) -> None:
    shuffled = [_shuffled(one, chance) for one in tools]
    chance.shuffle(shuffled)
    assert contents(Model(shuffled)) == contents(Model(tools))


def _shuffled(one: Tool, chance: random.Random) -> Tool:
    return Tool.make(
        one.name,
        description=one.description,
        title=one.title,
        input_schema=_mixed(one.input_schema, chance),
        output_schema=_mixed(one.output_schema, chance),
    )


def _mixed(value: Any, chance: random.Random) -> Any:
    """The same JSON with its keys in another order."""
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: _mixed(value[key], chance) for key in keys}
    if isinstance(value, list):
        return [_mixed(one, chance) for one in value]
    return value
