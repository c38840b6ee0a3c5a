"""Whatever a server says, the code is the same: only strings differ."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast._core.text import has_unseen
from holdfast.codegen import generate
from tests.codegen.material import ATTACKS, hostile, tool


def skeleton(source: str) -> str:
    """The code without the contents of its strings, and without docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = "…"
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def registry(say: Any) -> str:
    """A module in which ``say()`` is said wherever a server may say something."""
    schema = {
        "type": "object",
        "description": say(),
        "title": say(),
        "properties": {
            "url": {
                "type": "string",
                "description": say(),
                "default": say(),
                "format": say(),
                "pattern": say(),
            },
            "options": {
                "type": "object",
                "description": say(),
                "properties": {"a": {"type": "string", "description": say(), "examples": [say()]}},
            },
        },
        "required": ["url"],
    }
    tools = [
        tool("nav.goto", description=say(), title=say(), input_schema=schema, output_schema=schema),
        tool("health", description=say()),
    ]
    command, stamp = say(), say()
    return generate(tools, command=command, stamp=f"at {stamp}", sync=True).source


HARMLESS = registry(lambda: "word")


@pytest.mark.req("H1")
@settings(max_examples=25)
@given(st.data())
def test_descriptions_change_nothing_but_strings(data: st.DataObject) -> None:
    source = registry(lambda: data.draw(hostile()))
    assert skeleton(source) == skeleton(HARMLESS)
    assert all(char == "\n" or not has_unseen(char) for char in source)
    source.encode("utf-8")


@pytest.mark.req("H1")
@pytest.mark.parametrize("attack", [one for one in ATTACKS if "\ud800" not in one])
def test_every_known_attack_changes_nothing_but_strings(attack: str) -> None:
    assert skeleton(registry(lambda: attack)) == skeleton(HARMLESS)
    assert skeleton(registry(lambda: f"x\n{attack}\\")) == skeleton(HARMLESS)


@pytest.mark.req("H1")
@given(hostile(), hostile(), hostile())
def test_names_and_values_are_strings_too(name: str, key: str, value: str) -> None:
    """A name cannot make code: each becomes an identifier, and its text stays in strings."""
    schema = {"type": "object", "properties": {key: {"enum": [value, "b"]}}, "required": [key]}
    source = generate([tool(name, input_schema=schema, output_schema=schema)]).source
    tree = ast.parse(source)
    allowed = ast.Import | ast.ImportFrom | ast.ClassDef | ast.FunctionDef | ast.AnnAssign
    for statement in tree.body:
        assert isinstance(statement, allowed | ast.Assign) or _is_text(statement)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            origin = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            assert origin in {
                "__future__",
                "builtins",
                "collections.abc",
                "typing",
                "holdfast",
                "holdfast.handles",
            }


def test_the_skeleton_sees_what_would_be_code() -> None:
    assert skeleton("x = 'a'") == skeleton("'''doc'''\nx = 'b'")
    assert skeleton("x = 'a'") != skeleton("x = 'a'\nimport os")
