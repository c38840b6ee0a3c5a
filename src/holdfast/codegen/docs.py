"""Docstrings from schemas: the description, and the constraints that a type does not show."""

from __future__ import annotations

from typing import Any, Final

from holdfast._core.text import one_line
from holdfast.schema.types import canonical

LIMITS: Final = (
    ("format", "format {}"),
    ("pattern", "pattern {}"),
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
    ("minProperties", "at least {} keys"),
    ("maxProperties", "at most {} keys"),
    ("contentMediaType", "content {}"),
    ("contentEncoding", "encoding {}"),
)
LONGEST: Final = 120


def description(schema: Any) -> str:
    """Return the description of a schema, stripped; empty if it has none."""
    found = schema.get("description") if isinstance(schema, dict) else None
    return found.strip() if isinstance(found, str) else ""


def note(schema: Any) -> str:
    """The description, then limits and default, as one text."""
    if not isinstance(schema, dict):
        return ""
    said = description(schema)
    if said and said[-1] not in ".!?:;…":
        said += "."
    limits = _limits(schema)
    extras = [f"{limits[0].upper()}{limits[1:]}."] if limits else []
    if "default" in schema:
        extras.append(f"Default: {_json(schema['default'])}.")
    if schema.get("deprecated") is True:
        extras.append("Deprecated.")
    gap = "\n" if "\n" in said else " "
    return gap.join(part for part in (said, " ".join(extras)) if part)


def _limits(schema: dict[str, Any]) -> str:
    """Also those of the one alternative to null, which is how many say "optional"."""
    options = schema.get("anyOf")
    if isinstance(options, list):
        real = [one for one in options if isinstance(one, dict) and one.get("type") != "null"]
        if len(real) == 1:
            schema = {**real[0], **schema}
    found = [
        text.format(_short(schema[word]))
        for word, text in LIMITS
        if isinstance(schema.get(word), str | int | float) and not isinstance(schema[word], bool)
    ]
    if schema.get("uniqueItems") is True:
        found.append("no item twice")
    return ", ".join(found)


def _short(value: Any) -> str:
    return one_line(value, LONGEST) if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    try:
        text = canonical(value).decode()
    except (UnicodeError, RecursionError, OverflowError):
        text = ascii(value)
    return one_line(text, LONGEST)
