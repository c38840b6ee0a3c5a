"""What the tests generate from: registries of real servers, and whatever else a server may say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import msgspec
from hypothesis import strategies as st

from holdfast.codegen import Generated, SessionTools, generate
from holdfast.types.tools import Tool

HERE: Final = Path(__file__).parent
DATA: Final = HERE / "data"
GOLDEN: Final = HERE / "golden"

COMMANDS: Final[dict[str, list[str]]] = {
    "everything": ["mcp-server-everything", "stdio"],
    "filesystem": ["mcp-server-filesystem", "."],
    "git": ["mcp-server-git"],
    "memory": ["mcp-server-memory"],
    "playwright": ["playwright-mcp", "--headless"],
    "sessions": ["node", "src/index.js"],
    "time": ["mcp-server-time"],
}
"""The registries in ``data``: what the servers listed, and how they are started."""
GOLDENS: Final = ("everything", "sessions")
"""Those whose modules are kept: with many kinds of schemas, and with sessions. All are checked."""

BREAKS: Final = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""All that some program takes for the end of a line."""

ATTACKS: Final = (
    '"""',
    "'''",
    '\\"""',
    '\\"',
    '\\\\"""',
    "\\",
    '"',
    "\\N{BULLET}",
    "\\x",
    "\\u12",
    '"""\nimport os\nos.abort()\n"""',
    "# type: ignore",
    "{0}{x!r}",
    "%s",
    "\u202e\u2066\u200b\ufeff\x00\x1b[31m",
    "\ud800",
    "𝒳",
)


def tool(name: str, **fields: Any) -> Tool:
    return Tool.make(name, **fields)


def recorded(name: str) -> list[Tool]:
    """The tools of a registry in ``data``."""
    found = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return [_tool(one) for one in found["tools"]]


def _tool(plain: dict[str, Any]) -> Tool:
    return msgspec.json.decode(msgspec.json.encode(plain), type=Tool)


def golden(name: str) -> Generated:
    """What is generated for a registry in ``data``."""
    words = COMMANDS[name]
    session = SessionTools() if name == "sessions" else None
    options = "--session sessionName " if session else ""
    command = f"holdfast codegen {options}--sync -o {name}.py -- {' '.join(words)}"
    return generate(recorded(name), command=command, target=words, sync=True, session=session)


# Whatever a server may say


def hostile() -> st.SearchStrategy[str]:
    """Text that would like to be something else."""
    part = st.one_of(
        st.sampled_from(ATTACKS), st.sampled_from(BREAKS), st.text(max_size=8), st.just("word ")
    )
    return st.lists(part, max_size=6).map("".join).map(_whole)


def _whole(text: str) -> str:
    """Halves of characters cannot come by the wire."""
    return text.encode("utf-8", "replace").decode()


WORDS: Final = (
    *("a", "b", "url", "list", "str", "dict", "int", "type", "class", "from", "self", "None"),
    *("Any", "Literal", "Unset", "UNSET", "Tools", "Root", "parallel", "timeout", "extra"),
    *("builtins", "open", "client", "_root", "__init__", "__x", "_call", "_NAME", "x-y", "x.y"),
    *("x_y", "1st", "", ".", "..", "a.", ".a", "größe", "名", "ﬁ", "a b", "A", "TypedDict"),
    *("l" * 50, "l" * 90, "result", "Result", "await", "é", "e\u0301", "float", "bool", "tuple"),
)


REFERENCES: Final = ("#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/x", "http://x/", "")


def names() -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(WORDS), st.sampled_from(WORDS), hostile())


def tool_names() -> st.SearchStrategy[str]:
    return st.one_of(names(), st.tuples(names(), names()).map(".".join))


def scalars() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(-1e9, 1e9), hostile()
    )


def schemas(*, sane: bool = False) -> st.SearchStrategy[Any]:
    """Schemas: mostly meant, sometimes nonsense."""
    junk = st.nothing() if sane else st.one_of(scalars(), st.just([]), st.just({}))
    return st.recursive(st.one_of(_leaves(), junk), _branches, max_leaves=12)


def _leaves() -> st.SearchStrategy[Any]:
    kinds = ["string", "integer", "number", "boolean", "null", "array", "object", "what"]
    return st.one_of(
        st.booleans(),
        st.sampled_from(kinds).map(lambda kind: {"type": kind}),
        st.lists(st.sampled_from(kinds), max_size=3).map(lambda some: {"type": some}),
        st.lists(scalars(), max_size=5).map(lambda values: {"enum": values}),
        scalars().map(lambda value: {"const": value}),
        st.sampled_from(REFERENCES).map(lambda where: {"$ref": where}),
    )


def _branches(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, max_size=3)
    shape = st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array", "string", ["object", "null"]]),
            "properties": st.dictionaries(names(), inner, max_size=4),
            "required": st.lists(names(), max_size=3),
            "additionalProperties": inner,
            "items": st.one_of(inner, several),
            "prefixItems": several,
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "$defs": st.fixed_dictionaries({"a": inner, "b": inner}),
            "description": hostile(),
            "default": scalars(),
            "format": hostile(),
            "minimum": st.integers(0, 9),
            "nullable": st.booleans(),
        },
    )
    return st.one_of(shape, shape, several.map(lambda some: {"anyOf": some}))


def objects() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of arguments."""
    return st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(names(), schemas(), max_size=5),
            "required": st.lists(names(), max_size=3),
            "additionalProperties": schemas(),
            "anyOf": st.lists(schemas(), max_size=2),
            "allOf": st.lists(schemas(), max_size=2),
            "$defs": st.fixed_dictionaries({"a": schemas(), "b": schemas()}),
        },
    )


def tools() -> st.SearchStrategy[Tool]:
    return st.builds(
        Tool.make,
        tool_names(),
        description=st.none() | hostile(),
        input_schema=objects(),
        output_schema=st.none() | schemas().filter(lambda schema: schema is not None),
        title=st.none() | hostile(),
    )


def registries() -> st.SearchStrategy[list[Tool]]:
    return st.lists(tools(), max_size=5)


if __name__ == "__main__":
    for name in GOLDENS:
        (GOLDEN / f"{name}.py").write_text(golden(name).source, encoding="utf-8")
