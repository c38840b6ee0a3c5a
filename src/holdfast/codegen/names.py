"""Python names for names on the wire, literals for values, and the layout of both.

The choice depends on the names alone, not on their order. Of several that would get one name, the
one that is spelt so keeps it, and the others get digits of a hash of their own spelling.
"""

# Why are the names independent of the order? A server may list its tools in another order each
# time, and a module that is generated again must not rename methods that code calls. If two tools
# were numbered as they come, ``read_file`` and ``read_file_2`` could change places. So each name
# is made of its own spelling alone: whoever is spelt like the name has it, all others that would
# collide get digits of a hash of their spelling, and keep them when further tools come or go.
#
# Attack: everything here is text of a server that becomes source code. An identifier consists of
# characters that identifiers have and people see; two that look the same to Python (it normalizes
# by NFKC) are the same here; texts become literals that `repr` writes, in which no character is
# invisible, and no text ends the literal or the line that it stands in.

from __future__ import annotations

import keyword
import re
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Final

from holdfast._core.text import has_unseen, one_line, show_json, split_lines, visible
from holdfast.schema.types import BOUNDS, is_number
from holdfast.schema.walk import branches

ROOT: Final = "_root"
"""The namespace of tools without a dot."""

LONGEST: Final = 64
"""Characters of a name in Python."""

HANDLE_OWN: Final = frozenset(
    {"adapter", "call", "call_tool", "client", "close", "closed", "open", "registry", "session"}
)
"""The public members of `holdfast.handles.Handle`, which no tool replaces."""

HANDLE_MEMBERS: Final = HANDLE_OWN | {
    *("connect", "drift", "log", "name", "replay", "run", "state", "tools")
}
"""The members of a handle; a namespace with such a name gets an underscore."""

TYPE_NAMES: Final = frozenset({"bool", "dict", "float", "int", "list", "str", "tuple"})
"""Builtins that annotations use. In a class with a method of that name they are ``builtins.…``."""

FROM_TYPING: Final = ("Any", "Final", "Literal", "NotRequired", "TypeAlias", "TypedDict", "Union")
FROM_HANDLES: Final = (
    *("UNSET", "Calls", "Drift", "Handle", "HandleResult", "Log", "Namespace", "ParameterSession"),
    *("Registry", "SessionAdapter", "SyncCalls", "SyncHandle", "SyncNamespace", "Target", "Unset"),
)
MODULE_NAMES: Final = frozenset({*FROM_TYPING, *FROM_HANDLES}) | {
    *("ADAPTER", "Mapping", "REGISTRY", "REGISTRY_HASH", "TARGET", "SyncTools", "Tools"),
    *("annotations", "builtins", "connect", "connect_sync"),
}
"""The names of a generated module, besides the types made from schemas."""

ATTRIBUTE_RESERVED: Final = MODULE_NAMES - {"annotations", "connect", "connect_sync"}
"""The names that an attribute must not have, because annotations beside it use them."""


def split(tool: str) -> tuple[str | None, str]:
    """Split a tool's name at the first dot; the namespace is None without one."""
    first, dot, rest = tool.partition(".")
    return (first, rest) if dot else (None, tool)


def spare(name: str, taken: Collection[str]) -> str:
    """Return the name, with underscores added until it is unique."""
    while name in taken:
        name += "_"
    return name


def _allot(
    wires: Iterable[str], word: str, reserved: Collection[str], *, private: bool = False
) -> dict[str, str]:
    by_name: dict[str, list[str]] = {}
    for wire in sorted(set(wires)):
        name = _shortened(identifier(wire, word, private=private), wire, "_")
        by_name.setdefault(f"{name}_" if name in reserved else name, []).append(wire)
    taken = set(by_name)
    allotted: dict[str, str] = {}
    for name, group in by_name.items():
        for wire in group:
            unique, count, digits = name, 4, _digits(wire)
            while wire != name and len(group) > 1 and unique in taken:
                unique, count = f"{name}_{digits[:count]}", count + 1
            allotted[wire] = unique
            taken.add(unique)
    return allotted


method_names = partial(_allot, word="tool", reserved=ATTRIBUTE_RESERVED)
namespace_names = partial(_allot, word="ns", reserved=HANDLE_MEMBERS | ATTRIBUTE_RESERVED)
parameter_names = partial(_allot, word="arg", reserved=frozenset({"self"}), private=True)
"""A unique name in Python for each name on the wire."""


def _digits(wire: str) -> str:
    return sha256(wire.encode("utf-8", "surrogatepass")).hexdigest()


def _underscored(text: str) -> str:
    """Put one underscore for a run of characters that no identifier has, or nobody sees."""
    good = (
        character if f"a{character}".isidentifier() and not has_unseen(character) else "\0"
        for character in text
    )
    return unicodedata.normalize("NFKC", re.sub("\0+", "_", "".join(good)).rstrip("_"))


def identifier(wire: str, word: str, *, private: bool = False) -> str:
    """Return the nearest identifier; it begins with ``word`` if it has no letter to begin with.

    Only a parameter may begin with an underscore, and none with two (name mangling).
    """
    text = unicodedata.normalize("NFKC", wire)
    if not text.isidentifier() or has_unseen(text):
        text = _underscored(text)
    bare = text.lstrip("_")
    text = f"_{bare}" if private and wire.startswith("_") else bare
    if not text.isidentifier():
        text = f"{word}_{text}".rstrip("_")
    if not text.isidentifier():
        text = re.sub(r"\W+", "_", text, flags=re.ASCII)
    if keyword.iskeyword(text):
        text += "_"
    return text


def _shortened(name: str, wire: str, mark: str = "") -> str:
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 6 - len(mark)]}{mark}{_digits(wire)[:6]}"


def pascal(*parts: str) -> str:
    """Return ``NavWaitUntil`` for ``("nav", "wait_until")``, in ASCII."""
    words = [word for part in parts for word in re.findall(r"[A-Za-z0-9]+", part)]
    name = "".join(word[0].upper() + word[1:] for word in words) or "Unnamed"
    name = f"T{name}" if name[0].isdigit() else name
    return _shortened(name, "\0".join(parts))


class ClassNames:
    """Gives out the names of classes and aliases, each once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken: set[str] = {*MODULE_NAMES, *keyword.kwlist, *taken}

    def take(self, *parts: str, pair: bool = False) -> str:
        """Return an unused class name made of the parts, and reserve it.

        A ``pair`` has ``Sync`` before it for the other one.
        """
        name = base = pascal(*parts)
        number = 1
        while name in self.taken or (pair and f"Sync{name}" in self.taken):
            number += 1
            name = f"{base}{number}"
        self.taken |= {name, f"Sync{name}"} if pair else {name}
        return name


COLUMNS: Final = 88
INDENT: Final = "    "
MOST_CHARACTERS: Final = 4000
"""Of one description; the rest is cut."""

QUOTES: Final = '"""'


def literal(text: str) -> str:
    """Return a string literal, in the quotes that need fewer escapes."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    body = visible(text.replace("\\", "\\\\"))
    return f"{quote}{body.replace(quote, chr(92) + quote)}{quote}"


def paragraphs(text: str, room: int) -> list[str]:
    """Return the lines of a description, dedented and wrapped."""
    if len(text) > MOST_CHARACTERS:
        text = text[:MOST_CHARACTERS] + " …"
    lines = [line.rstrip() for line in split_lines(text.strip())]
    if lines == [""]:
        return []
    rest = textwrap.dedent("\n".join(lines[1:])).split("\n") if lines[1:] else []
    wrapped: list[str] = []
    for line in (lines[0].lstrip(), *rest):
        if len(line) <= room:
            # At most one empty line in a row.
            wrapped += [line] if line or (wrapped and wrapped[-1]) else []
        else:
            wrapped += _wrap_indented(line, room)
    return wrapped


def _wrap_indented(line: str, room: int) -> list[str]:
    """Wrap a line, every row indented as the first; one indented by half the room is not."""
    inset = line[: len(line) - len(line.lstrip())]
    if len(inset) > room // 2:
        inset, line = "", line.lstrip()
    return textwrap.wrap(
        line, room, subsequent_indent=inset, break_long_words=False, break_on_hyphens=False
    )


def bracketed(head: str, items: Sequence[str], tail: str, indent: str = "") -> str:
    """Return items between brackets, on one line if they fit."""
    line = f"{indent}{head}{', '.join(items)}{tail}"
    return line if len(line) <= COLUMNS else exploded(head, items, tail, indent)


def exploded(head: str, items: Sequence[str], tail: str, indent: str = "") -> str:
    """Return items one to a line, each with a comma."""
    lines = "".join(f"{indent}{INDENT}{item},\n" for item in items)
    return f"{indent}{head}\n{lines}{indent}{tail}"


def described(fields: Collection[tuple[str, str]], room: int) -> list[str]:
    """Return names and their notes, one below the other."""
    lines: list[str] = []
    for name, note in fields:
        first, *rest = paragraphs(f"{name}: {note}", room - 2 * len(INDENT))
        lines += [f"{INDENT}{first}", *(f"{INDENT}{INDENT}{line}".rstrip() for line in rest)]
    return lines


def docstring(lines: list[str], indent: str) -> list[str]:
    """Return the lines of a docstring; none if there is no text."""
    escaped = [line.replace("\\", "\\\\").replace(QUOTES, '\\"\\"\\"') for line in lines]
    while escaped and not escaped[-1].strip():
        escaped.pop()
    if not escaped:
        return []
    if escaped[0].startswith('"'):
        escaped[0] = "\\" + escaped[0]
    if len(escaped) > 1:
        body = [f"{indent}{line}".rstrip() for line in escaped[1:]]
        return [f"{indent}{QUOTES}{escaped[0]}", *body, f"{indent}{QUOTES}"]
    text = escaped[0]
    before = text[:-1]
    if text.endswith('"') and (len(before) - len(before.rstrip("\\"))) % 2 == 0:
        text = before + '\\"'
    return [f"{indent}{QUOTES}{text}{QUOTES}"]


LIMITS: Final = {
    "format": "format {}",
    "pattern": "pattern {}",
    **BOUNDS,
    "contentMediaType": "content {}",
    "contentEncoding": "encoding {}",
}
LONGEST_LINE: Final = 120


def description(schema: Any) -> str:
    """Return the description of a schema, stripped; empty if it has none."""
    text = schema.get("description") if isinstance(schema, dict) else None
    return text.strip() if isinstance(text, str) else ""


def note(schema: Any) -> str:
    """Return the description, then limits and default, as one text."""
    if not isinstance(schema, dict):
        return ""
    sentence = description(schema)
    if sentence and sentence[-1] not in ".!?:;…":
        sentence += "."
    limits = ", ".join(_limits(schema))
    extras = [f"{limits[0].upper()}{limits[1:]}."] if limits else []
    if "default" in schema:
        extras.append(f"Default: {show_json(schema['default'], LONGEST_LINE)}.")
    if schema.get("deprecated") is True:
        extras.append("Deprecated.")
    gap = "\n" if "\n" in sentence else " "
    return gap.join(part for part in (sentence, " ".join(extras)) if part)


def _limits(schema: dict[str, Any]) -> Iterator[str]:
    """Return the limits in words, also those of the one alternative to null."""
    options = branches(schema, "anyOf")
    real = [
        option for option in options if isinstance(option, dict) and option.get("type") != "null"
    ]
    if len(real) == 1:
        schema = {**real[0], **schema}
    for word, text in LIMITS.items():
        value = schema.get(word)
        if isinstance(value, str):
            yield text.format(one_line(value, LONGEST_LINE))
        elif is_number(value):
            yield text.format(show_json(value, LONGEST_LINE))
    if schema.get("uniqueItems") is True:
        yield "no item twice"
