from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from holdfast.schema.annotations import secret_names
from tests.rows import rows

SECRET = {"type": "string", "writeOnly": True}


def properties(**inner: Any) -> dict[str, Any]:
    return {"type": "object", "properties": inner}


@pytest.mark.req("T8")
@rows(
    "schema",
    [
        properties(word=SECRET, open={"type": "string"}),
        properties(word={"format": "password"}, open={}),
        properties(word={"anyOf": [{"type": "null"}, SECRET]}),
        properties(word={"$ref": "#/$defs/s"}) | {"$defs": {"s": SECRET}},
        properties(word={"$ref": "#s"}) | {"$defs": {"s": {"$anchor": "s", **SECRET}}},
        properties(a={"$ref": "#/definitions/A"}) | {"definitions": {"A": properties(word=SECRET)}},
        {"$ref": "#/$defs/T", "$defs": {"T": properties(word=SECRET)}},
        properties(a={"items": properties(word=SECRET)}),
        properties(a={"additionalProperties": properties(word=SECRET)}),
        properties(word={"items": SECRET}),
        properties(word={"prefixItems": [{}, SECRET]}),
        properties(word={"additionalProperties": SECRET}),
        properties(word={"patternProperties": {"^x": SECRET}}),
        {"if": {}, "then": properties(word=SECRET)},
        {"dependentSchemas": {"a": properties(word=SECRET)}},
        {"$defs": {"T": properties(word=SECRET, inner={"$ref": "#/$defs/T"})}, "$ref": "#/$defs/T"},
    ],
    ids=lambda schema: json.dumps(schema)[:60],
)
def test_a_property_is_secret_however_the_schema_says_so(schema: Any) -> None:
    assert secret_names(Raw(json.dumps(schema).encode())) == frozenset({"word"})


@pytest.mark.req("T8")
@rows(
    "text",
    [
        json.dumps(SECRET),
        json.dumps({"additionalProperties": SECRET}),
        json.dumps({"items": {"format": "password"}}),
        '{"properties":{"word":{"writeOnly":true},"n":{"maximum":1e400}}}',
        '{"properties":{"word":{"writeOnly":true},"n":{"maximum":' + "1" * 5000 + "}}}",
        '[{"writeOnly":true}]',
        json.dumps(properties(**{f"p{at}": {"title": "x", **SECRET} for at in range(6000)})),
    ],
    ids=lambda text: text[:60],
)
def test_all_may_be_secret_where_the_schema_cannot_tell(text: str) -> None:
    assert secret_names(Raw(text.encode())) is None


@pytest.mark.req("T8")
@rows("text", ["{}", "true", "[]", '{"maximum":1e400}', '{"default":{"writeOnly":true}}'])
def test_nothing_is_secret_without_a_hint(text: str) -> None:
    assert secret_names(Raw(text.encode())) == frozenset()
