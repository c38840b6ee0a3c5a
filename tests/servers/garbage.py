"""Schemas as a careless or hostile server may send them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

KEYWORDS = (
    *("type", "properties", "required", "items", "enum", "const", "anyOf", "oneOf", "allOf"),
    *("not", "$ref", "$defs", "definitions", "additionalProperties", "patternProperties"),
    *("format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minLength", "maxItems", "prefixItems", "default", "title", "description", "nullable"),
    *("if", "then", "examples", "uniqueItems", "x-odd"),
)
TYPES = ("string", "integer", "number", "boolean", "array", "object", "null", "odd")

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        (*TYPES, "", "#", "#/$defs/a", "#/properties/a", "#/x-odd", "(?=x)", "date-time")
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=5),
        st.dictionaries(st.sampled_from(("a", "b", "a b", "é")), inner, max_size=3),
        st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={"properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2)},
        ),
        st.fixed_dictionaries({"type": st.just("array")}, optional={"items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, max_size=3)}),
    ),
    max_leaves=20,
)
schemas: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.dictionaries(st.sampled_from(KEYWORDS), values, max_size=6),
    st.fixed_dictionaries(
        {
            "type": st.just("object"),
            "properties": st.dictionaries(st.sampled_from(("a", "b", "a b")), values, max_size=3),
        },
        optional={"required": values, "$defs": st.dictionaries(st.just("a"), values)},
    ),
)
