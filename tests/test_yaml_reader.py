"""YAML within bounds, and the core schema of YAML 1.2."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import pytest

from holdfast._core.yaml_reader import YamlFault, read_yaml


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: 1\na: 2", "has the key 'a' twice in one object"),
        ("a: &x [1]\nb: *x", "has an alias (*name) in it, which is not read"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "has an alias (*name) in it, which is not read"),
        ("[" * 200, "is nested too deeply"),
        ("a: [" + "1," * 30_000 + "1]", "has more than 20,000 values in it"),
        ("a: [", "is not YAML (line 2, column 1)"),
        ("a: !!python/object/apply:os.system [ls]", "is not YAML (line 1, column 4)"),
        ("? [1]\n: 2", "has a key in it that is not a string"),
    ],
    ids=["twice", "alias", "merge", "deep", "long", "open", "code", "list as key"],
)
def test_hostile_text_is_refused(text: str, why: str) -> None:
    with pytest.raises(YamlFault) as caught:
        read_yaml(text)
    assert str(caught.value) == why


def test_a_number_of_absurd_length_is_refused() -> None:
    with pytest.raises(YamlFault, match="is not YAML"):
        read_yaml("a: " + "9" * 5000)


@pytest.mark.req("E2")
def test_without_pyyaml_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "yaml", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(YamlFault, match=r"needs PyYAML: install holdfast\[yaml\]"):
        read_yaml("a: 1")
