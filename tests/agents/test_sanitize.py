"""Schemas that are none: what is wrong is left out and told, the rest is kept."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.agents.schemas import DEEPEST, Losses, sound


@pytest.mark.parametrize(
    ("schema", "kept", "lost"),
    [
        ({"type": "strnig"}, {}, ["type"]),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}, []),
        ({"required": True}, {}, ["required"]),
        ({"enum": []}, {}, ["enum"]),
        ({"minimum": "1", "maximum": 2.5}, {"maximum": 2.5}, ["minimum"]),
        ({"minLength": -1, "maxLength": 3}, {"maxLength": 3}, ["minLength"]),
        ({"properties": {"a": 5}}, {"properties": {"a": {}}}, ["schema"]),
        ({"properties": {"a": True}}, {"properties": {"a": True}}, []),
        ({"items": 5}, {"items": {}}, ["schema"]),
        ({"anyOf": {}}, {}, ["anyOf"]),
        ({"x-vendor": 5, "default": []}, {"x-vendor": 5, "default": []}, []),
    ],
)
def test_what_is_wrong_is_left_out(schema: Any, kept: Any, lost: list[str]) -> None:
    report = Losses()
    assert sound(schema, report) == kept
    assert [loss.keyword for loss in report] == lost


def test_a_deep_schema_is_cut() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5 * DEEPEST):
        schema = {"items": schema}
    report = Losses()
    assert str(sound(schema, report)).count("items") == DEEPEST
    assert "too deep" in report[0].text


def test_an_integer_of_any_length_is_a_number() -> None:
    """A float cannot hold it, which must not end the conversion."""
    schema = {"type": "integer", "maximum": 10**400}
    assert sound(schema, Losses()) == schema
