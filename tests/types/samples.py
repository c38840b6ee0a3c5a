"""Examples of what a schema allows, made from its short form, always the same ones."""

from __future__ import annotations

from typing import Any

Schemas = dict[str, Any]

VARIANTS = 12
"""As many as the widest choice has members that matter: each of them is taken once."""

_PLAIN = {
    "string": "some text",
    "base64": "AAEC",
    "uri": "file:///there",
    "integer": 7,
    "number": 0.5,
    "boolean": True,
    "null": None,
    "any": {"deep": [1, None, "x"]},
}


def samples(schema: Any, schemas: Schemas) -> list[Any]:
    """The least that the schema allows, and the most, with every choice in turn."""
    found: list[Any] = []
    for full in (False, True):
        for pick in range(VARIANTS):
            sample = make(schema, schemas, full, pick)
            if sample not in found:
                found.append(sample)
    return found


def make(schema: Any, schemas: Schemas, full: bool, pick: int) -> Any:
    """One example. ``pick`` says which member of a choice to take."""
    if isinstance(schema, str):
        if schema.startswith("#JSON") and schema in ("#JSONValue", "#JSONObject", "#JSONArray"):
            return {"some": {"json": [1, None]}}
        if schema.startswith("#"):
            return make(schemas[schema[1:]], schemas, full, pick)
        return _PLAIN[schema]
    if isinstance(schema, list):
        return [make(schema[0], schemas, full, pick)] if full else []
    (word, rest), *_ = schema.items()
    if word == "const":
        return rest
    if word in ("enum", "any"):
        chosen = rest[pick % len(rest)]
        return chosen if word == "enum" else make(chosen, schemas, full, pick)
    if word == "map":
        return {"key": make(rest, schemas, full, pick)} if full else {}
    if word == "all":
        merged: dict[str, Any] = {}
        for part in rest:
            merged.update(make(part, schemas, full, pick))
        return merged
    return {
        name.rstrip("?"): make(part, schemas, full, pick)
        for name, part in rest.items()
        if full or not name.endswith("?")
    }


def fields_of(schema: Any, schemas: Schemas) -> dict[str, tuple[bool, Any]]:
    """The fields of an object: whether each is required, and its schema."""
    if isinstance(schema, str) and schema.startswith("#"):
        return fields_of(schemas[schema[1:]], schemas)
    if not isinstance(schema, dict):
        return {}
    found: dict[str, tuple[bool, Any]] = {}
    for part in schema.get("all", ()):
        found.update(fields_of(part, schemas))
    for name, part in schema.get("fields", {}).items():
        found[name.rstrip("?")] = (not name.endswith("?"), part)
    return found
