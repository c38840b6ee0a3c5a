"""Explain why a value does not fit a schema, to a person or a language model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from holdfast._core.text import did_you_mean, show_json, truncate

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

MOST: Final = 20
"""Most faults in one report."""
LONGEST: Final = 200
"""Characters of one value, or list of choices, that are shown."""
ALTERNATIVES: Final = 5


class Unusable(Exception):  # noqa: N818  (a finding, not a failure)
    """A schema, or a check, that cannot be carried out; the text says why."""


class Unbounded(Unusable):
    """It would take too long. Nothing is wrong with it otherwise: the server has to check."""


class SchemaFault(Struct, frozen=True):
    """One fault: where (a JSON pointer; empty for the whole), what is wrong, by which keyword."""

    path: str
    message: str
    keyword: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def describe(errors: Iterable[ValidationError], schema: Any) -> tuple[SchemaFault, ...]:
    """Return the faults in order, each once."""
    found: dict[SchemaFault, None] = {}
    for error in errors:
        fault = _fault(error, schema)
        if len(found) == MOST and fault not in found:
            return (*found, SchemaFault("", "and more", ""))
        found[fault] = None
    return tuple(found)


def lines(faults: Iterable[SchemaFault]) -> str:
    """Return faults as an indented list."""
    return "\n".join(f"  - {fault}" for fault in faults)


def pointer(*steps: object) -> str:
    """Return the JSON pointer of some steps (RFC 6901, section 3)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def _fault(error: ValidationError, schema: Any) -> SchemaFault:
    keyword = error.kind.name
    tell = _WORDS.get(keyword)
    owner = _at(schema, list(error.schema_path)[:-1])
    message = error.message if tell is None else tell(error, owner)
    return SchemaFault(pointer(*error.instance_path), truncate(message, 3 * LONGEST), keyword)


def _pattern(error: ValidationError, owner: Any) -> str:
    pattern = truncate(str(error.kind.as_dict().get("pattern")), LONGEST // 2)
    return f"must match the pattern {pattern}, not {_shown(error.instance)}"


def _required(error: ValidationError, owner: Any) -> str:
    name = error.kind.as_dict()["property"]
    properties = owner.get("properties", {}) if isinstance(owner, dict) else {}
    about = _wanted(properties.get(name)) if isinstance(properties, dict) else ""
    return f"{name!r} is required and missing" + (f"; it is {about}" if about else "")


def _unexpected(error: ValidationError, owner: Any) -> str:
    names = error.kind.as_dict().get("unexpected", [])
    properties = owner.get("properties", {}) if isinstance(owner, dict) else {}
    known = list(properties) if isinstance(properties, dict) else []
    shown = ", ".join(f"{name!r}{_meant(name, known)}" for name in names)
    takes = f"; there are: {', '.join(known)}" if known else ""
    return f"not known: {_short(shown)}{_short(takes)}"


def _type(error: ValidationError, owner: Any) -> str:
    wanted = " or ".join(error.kind.as_dict()["types"])
    return f"must be {wanted}, not {_KINDS.get(type(error.instance), '')}{_shown(error.instance)}"


def _enum(error: ValidationError, owner: Any) -> str:
    options = error.kind.as_dict()["options"]
    choices = ", ".join(_shown(option) for option in options)
    meant = _meant(error.instance, [one for one in options if isinstance(one, str)])
    return f"must be one of {_short(choices)}, not {_shown(error.instance)}{meant}"


def _constant(error: ValidationError, owner: Any) -> str:
    wanted = error.kind.as_dict()["expected_value"]
    return f"must be {_shown(wanted)}, not {_shown(error.instance)}"


def _alternatives(error: ValidationError, owner: Any) -> str:
    context = error.kind.as_dict().get("context") or []
    if error.kind.name == "oneOf" and any(not branch for branch in context):
        return f"fits more than one of the alternatives: {_shown(error.instance)}"
    wanted = [
        " and ".join(_relative(one, error) for one in branch[:3])
        for branch in context[:ALTERNATIVES]
        if branch
    ]
    more = ", …" if len(context) > ALTERNATIVES else ""
    tried = "; ".join(f"({number}) {text}" for number, text in enumerate(wanted, 1))
    return f"fits none of the alternatives: {tried}{more}" if wanted else error.message


def _relative(error: ValidationError, outer: ValidationError) -> str:
    """Return a fault inside an alternative, with its place relative to the outer fault."""
    fault = _fault(error, None)
    if error.kind.name in ("anyOf", "oneOf"):
        fault = SchemaFault(fault.path, "fits none of its alternatives")
    inner = fault.path.removeprefix(pointer(*outer.instance_path))
    return f"{inner.lstrip('/')}: {fault.message}" if inner else fault.message


_WORDS: Final[dict[str, Callable[[Any, Any], str]]] = {
    "required": _required,
    "additionalProperties": _unexpected,
    "unevaluatedProperties": _unexpected,
    "type": _type,
    "enum": _enum,
    "const": _constant,
    "pattern": _pattern,
    "anyOf": _alternatives,
    "oneOf": _alternatives,
    "falseSchema": lambda error, owner: (
        f"nothing is allowed here, not even {_shown(error.instance)}"
    ),
}


def _wanted(schema: Any) -> str:
    """Return the type, choices and description of a schema in a few words."""
    if not isinstance(schema, dict):
        return ""
    kind = schema.get("type")
    words = " or ".join(kind) if isinstance(kind, list) else str(kind or "")
    if isinstance(schema.get("enum"), list):
        words = "one of " + ", ".join(_shown(one) for one in schema["enum"])
    about = schema.get("description")
    if isinstance(about, str):
        words = f"{words} ({about})" if words else about
    return _short(words)


def _meant(name: Any, known: list[str]) -> str:
    hint = did_you_mean(name, known) if isinstance(name, str) else ""
    return hint and f" ({hint})"


_KINDS: Final = {str: "string ", int: "integer ", float: "number ", list: "array ", dict: "object "}


def _shown(value: Any) -> str:
    return show_json(value, LONGEST // 2)


def _short(text: str) -> str:
    return truncate(text, LONGEST)


def _at(schema: Any, path: list[str | int]) -> Any:
    """Return the part of a schema at a path; None if there is none."""
    for step in path:
        if isinstance(schema, dict):
            schema = schema.get(str(step))
        elif isinstance(schema, list) and isinstance(step, int) and step < len(schema):
            schema = schema[step]
        else:
            return None
    return schema
