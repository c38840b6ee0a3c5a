"""The same tools give the same digits; other tools give others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.lock.fingerprint import definition, fingerprint, registry_hash
from holdfast.schema.types import canonical
from holdfast.types import Tool
from holdfast.types.tools import ToolAnnotations

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=5,
)
SCHEMAS = st.dictionaries(st.text(max_size=3), JSON, max_size=2)
TOOLS = st.dictionaries(st.text(min_size=1, max_size=3), SCHEMAS, max_size=3)


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@pytest.mark.req("H4")
@given(TOOLS)
def test_neither_order_counts(schemas: dict[str, dict[str, Any]]) -> None:
    tools = [Tool.make(name, input_schema=schema) for name, schema in schemas.items()]
    others = [Tool.make(name, input_schema=reordered(schemas[name])) for name in reversed(schemas)]
    assert registry_hash(tools) == registry_hash(others)


@pytest.mark.req("H4")
@given(TOOLS, TOOLS)
def test_other_tools_have_another_hash(one: dict[str, Any], other: dict[str, Any]) -> None:
    hashes = [
        registry_hash([Tool.make(name, input_schema=schema) for name, schema in tools.items()])
        for tools in (one, other)
    ]
    assert (hashes[0] == hashes[1]) == (canonical(one) == canonical(other))


@pytest.mark.req("H4")
def test_the_hash_is_twelve_digits_over_names_and_input_schemas() -> None:
    tool = Tool.make("nav.goto", input_schema={"type": "object"})
    found = registry_hash([tool])
    assert len(found) == 12
    assert int(found, 16) >= 0
    described = Tool.make("nav.goto", description="goes", input_schema={"type": "object"})
    assert registry_hash([described]) == found
    assert registry_hash([Tool.make("nav.go", input_schema={"type": "object"})]) != found
    assert registry_hash([]) != found


@pytest.mark.req("H8")
def test_a_definition_has_what_was_said_and_nothing_else() -> None:
    assert definition(Tool.make("a")) == {"name": "a", "inputSchema": {"type": "object"}}
    whole = Tool.make(
        "a",
        title="A",
        description="does",
        input_schema={"type": "object"},
        output_schema={"type": "string"},
        annotations=ToolAnnotations(read_only_hint=True),
    )
    assert definition(whole) == {
        "name": "a",
        "title": "A",
        "description": "does",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "string"},
        "annotations": {"readOnlyHint": True},
    }


@pytest.mark.req("H8")
def test_a_fingerprint_names_its_algorithm() -> None:
    assert fingerprint({"b": 1, "a": 2}) == fingerprint({"a": 2, "b": 1})
    assert fingerprint({}).startswith("sha256:")
