"""Explain why a value does not fit a schema, to a person or a language model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from holdfast._core.text import did_you_mean, show_json, truncate
from holdfast.schema.faults import SchemaFault

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

MOST: Final = 20
"""Most faults in one report."""
LONGEST: Final = 200
"""Characters of one value, or list of choices, that are shown."""
ALTERNATIVES: Final = 5


def describe(errors: Iterable[ValidationError], schema: Any) -> tuple[SchemaFault, ...]:
    """Return the faults in order, each once."""
    faults: dict[SchemaFault, None] = {}
    for error in errors:
        fault = _fault(error, schema)
        if len(faults) == MOST and fault not in faults:
            return (*faults, SchemaFault("", "and more", ""))
        faults[fault] = None
    return tuple(faults)


def pointer(*steps: object) -> str:
    """Return the JSON pointer of some steps (RFC 6901, section 3)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def _fault(error: ValidationError, schema: Any) -> SchemaFault:
    from holdfast.schema.walk import properties, resolve

    place = pointer(*list(error.schema_path)[:-1]).replace("%", "%25")
    owner = resolve(schema, f"#{place}")
    message = truncate(_message(error, properties(owner)), 3 * LONGEST)
    return SchemaFault(pointer(*error.instance_path), message, error.kind.name)


def _message(error: ValidationError, properties: dict[str, Any]) -> str:
    details, value = error.kind.as_dict(), show_json(error.instance)
    match error.kind.name:
        case "required":
            about = _wanted(properties.get(details["property"]))
            text = f"{details['property']!r} is required and missing"
            return f"{text}; it is {about}" if about else text
        case "additionalProperties" | "unevaluatedProperties":
            takes_names, names = [*properties], details.get("unexpected", [])
            unexpected = ", ".join(f"{name!r}{_meant(name, takes_names)}" for name in names)
            takes = f"; there are: {', '.join(takes_names)}" if takes_names else ""
            return f"not known: {truncate(unexpected, LONGEST)}{truncate(takes, LONGEST)}"
        case "type":
            kind = _KINDS.get(type(error.instance), "")
            return f"must be {' or '.join(details['types'])}, not {kind}{value}"
        case "enum":
            choices = truncate(", ".join(map(show_json, details["options"])), LONGEST)
            texts = [choice for choice in details["options"] if isinstance(choice, str)]
            return f"must be one of {choices}, not {value}{_meant(error.instance, texts)}"
        case "const":
            return f"must be {show_json(details['expected_value'])}, not {value}"
        case "pattern":
            pattern = truncate(str(details.get("pattern")), LONGEST // 2)
            return f"must match the pattern {pattern}, not {value}"
        case "anyOf" | "oneOf":
            return _alternatives(error, details.get("context") or [])
        case "falseSchema":
            return f"nothing is allowed here, not even {value}"
    return error.message


def _reason(error: ValidationError, outer: str) -> str:
    """Return why a value does not fit one alternative, at its place below ``outer``."""
    fault = _fault(error, None)
    nested = error.kind.name in ("anyOf", "oneOf")
    text = "fits none of its alternatives" if nested else fault.message
    inner = fault.path.removeprefix(outer).lstrip("/")
    return f"{inner}: {text}" if inner else text


def _alternatives(error: ValidationError, context: list[list[ValidationError]]) -> str:
    if error.kind.name == "oneOf" and any(not branch for branch in context):
        return f"fits more than one of the alternatives: {show_json(error.instance)}"
    outer = pointer(*error.instance_path)
    reasons = [
        " and ".join(_reason(inner_error, outer) for inner_error in branch[:3])
        for branch in context[:ALTERNATIVES]
        if branch
    ]
    ellipsis = ", …" if len(context) > ALTERNATIVES else ""
    tried = "; ".join(f"({number}) {text}" for number, text in enumerate(reasons, 1))
    return f"fits none of the alternatives: {tried}{ellipsis}" if reasons else error.message


def _wanted(schema: Any) -> str:
    """Return the type, choices and description of a schema in a few words."""
    if not isinstance(schema, dict):
        return ""
    kind = schema.get("type")
    words = " or ".join(kind) if isinstance(kind, list) else str(kind or "")
    if isinstance(schema.get("enum"), list):
        words = "one of " + ", ".join(map(show_json, schema["enum"]))
    about = schema.get("description")
    if isinstance(about, str):
        words = f"{words} ({about})" if words else about
    return truncate(words, LONGEST)


def _meant(name: Any, candidates: list[str]) -> str:
    hint = did_you_mean(name, candidates) if isinstance(name, str) else ""
    return hint and f" ({hint})"


_KINDS: Final = {str: "string ", int: "integer ", float: "number ", list: "array ", dict: "object "}
