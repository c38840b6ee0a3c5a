"""YAML within bounds, and the core schema of YAML 1.2; see tests/config for the rest."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core.yaml_reader import YamlFault, read_yaml
from tests.rows import rows


@rows(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("2026-01-02", "2026-01-02"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("0b11", "0b11"),
        ("017", 17),
        ("0o17", 15),
        ("0x1F", 31),
        ("1.50", 1.5),
        ("1e3", 1000.0),
        (".inf", ".inf"),
        ("true", True),
        ("'true'", "true"),
        ("~", None),
        ("", None),
        ("<<", "<<"),
    ],
)
def test_the_core_schema_leaves_words_of_yaml_1_1_as_text(text: str, value: Any) -> None:
    found = read_yaml(f"x: {text}")["x"]
    assert (found, type(found)) == (value, type(value))


def test_keys_are_text_in_the_core_schema() -> None:
    assert read_yaml("1: a\nno: b\nnull: c") == {"1": "a", "no": "b", "null": "c"}
    with pytest.raises(YamlFault, match="twice"):
        read_yaml("no: 1\n'no': 2")


@rows(
    ("text", "why"),
    [
        ("a: &x [1]\nb: *x", "alias"),
        ("[" * 200, "nested too deeply"),
        ("a: [", "is not YAML"),
        ("a: !!python/object:os.system {}", "is not YAML"),
        ("a: " + "9" * 5000, "is not YAML"),
        ("? [1]\n: 2", "not a string"),
    ],
)
def test_hostile_text_is_refused(text: str, why: str) -> None:
    with pytest.raises(YamlFault, match=why):
        read_yaml(text)
