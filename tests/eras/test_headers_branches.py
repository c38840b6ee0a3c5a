"""Schemas in which annotated and other parts stand side by side."""

from __future__ import annotations

import pytest

from holdfast._core.eras.headers import BadParamHeader, header_paths


@pytest.mark.req("X2")
def test_parts_without_annotations_do_not_hide_the_annotated_ones() -> None:
    schema = {
        "type": "object",
        "$defs": {"point": {"type": "array", "items": {"type": "number"}}},
        "anyOf": [{"required": ["region"]}, {"required": ["place"]}],
        "properties": {
            "place": {"$ref": "#/$defs/point"},
            "region": {"type": "string", "x-mcp-header": "Region"},
        },
    }
    assert header_paths(schema) == {"Region": ("region",)}


@pytest.mark.req("X2")
def test_an_annotation_in_a_definition_is_refused_after_parts_that_have_none() -> None:
    schema = {
        "properties": {"plain": {"type": "string"}},
        "$defs": {
            "fine": {"type": "string"},
            "bad": {"type": "string", "x-mcp-header": "Region"},
        },
    }
    with pytest.raises(BadParamHeader, match="not on a plain property"):
        header_paths(schema)
