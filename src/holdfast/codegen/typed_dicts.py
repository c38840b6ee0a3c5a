"""Records as TypedDicts."""

from __future__ import annotations

import keyword
from collections.abc import Collection

from holdfast.codegen.ir import Field, Kind, Record
from holdfast.codegen.literals import docstring, literal, paragraphs, width
from holdfast.codegen.names import MODULE_NAMES, TYPE_NAMES, pascal
from holdfast.codegen.print_types import COLUMNS, INDENT, Typist, exploded

NOT_REQUIRED = len("NotRequired[]")


def render(record: Record, typist: Typist, classes: Collection[str]) -> str:
    """A class where the keys can be its attributes, else the same by a call."""
    typist.used.add("TypedDict")
    if all(_is_attribute(field, record, typist, classes) for field in record.fields):
        return _class(record, typist)
    return _call(record, typist)


def described(fields: Collection[tuple[str, str]], room: int) -> list[str]:
    """Names and what is said of each, one below the other."""
    lines: list[str] = []
    for name, note in fields:
        first, *rest = paragraphs(f"{name}: {note}", room - 2 * len(INDENT))
        lines += [f"{INDENT}{first}", *(f"{INDENT}{INDENT}{line}".rstrip() for line in rest)]
    return lines


def _is_attribute(field: Field, record: Record, typist: Typist, classes: Collection[str]) -> bool:
    """Return True if the key can be an attribute: a short identifier that is not reserved."""
    key = field.wire
    if not key.isascii() or not key.isidentifier() or keyword.iskeyword(key):
        return False
    if key.startswith("__") or key in TYPE_NAMES or key in MODULE_NAMES or key in classes:
        return False
    room = _room(key)
    longest_alias = len(pascal(record.name, key)) + 4
    return longest_alias <= room or width(typist.inline(field.kind)) <= room


def _room(key: str) -> int:
    return COLUMNS - len(INDENT) - len(key) - 2 - NOT_REQUIRED


def _class(record: Record, typist: Typist) -> str:
    partial = not any(field.required for field in record.fields)
    lines = [f"class {record.name}(TypedDict{', total=False' if partial else ''}):"]
    if text := docstring(_words(record), INDENT):
        lines += [*text, ""]
    for field in record.fields:
        kind = typist.fit(field.kind, _room(field.wire), (record.name, field.wire))
        lines.append(f"{INDENT}{field.wire}: {_mark(kind, field.required or partial, typist)}")
    return "\n".join(lines)


def _call(record: Record, typist: Typist) -> str:
    """Types are strings here, because nothing that comes later in the module is known yet."""
    items: list[str] = []
    for field in record.fields:
        kind = _mark(_unquoted(field.kind, record, field.wire, typist), field.required, typist)
        items.append(f"{literal(field.wire)}: {literal(kind)}")
    body = exploded("{", items, "}", INDENT).lstrip()
    return exploded(f"{record.name} = TypedDict(", [literal(record.name), body], ")")


def _unquoted(kind: Kind, record: Record, key: str, typist: Typist) -> str:
    """A type without quotes in it: choices get a name."""
    text = typist.inline(kind)
    return typist.fit(kind, -1, (record.name, key)) if "Literal[" in text else text


def _mark(text: str, required: bool, typist: Typist) -> str:
    if required:
        return text
    typist.used.add("NotRequired")
    return f"NotRequired[{text}]"


def _words(record: Record) -> list[str]:
    room = COLUMNS - len(INDENT)
    lines = paragraphs(record.note, room)
    notes = [(field.wire, field.note) for field in record.fields if field.note]
    if not notes:
        return lines
    return [*(lines or ["An object."]), "", "Keys:", *described(notes, room)]
