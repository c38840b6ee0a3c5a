"""Write the protocol's schemas down in a short form of our own, one file per revision.

    python tests/types/data/make_data.py FOLDER

FOLDER holds ``<revision>.schema.json`` files. Each definition becomes one line:

    "string", "integer", "number", "boolean", "null", "any", "base64", "uri"
    "#Name"                         another definition
    {"const": x}  {"enum": [...]}
    [T]                             a list of T
    {"map": T}                      an object with any keys
    {"fields": {"a": T, "b?": T}}   an object; a question mark for what may be absent
    {"any": [T, ...]}  {"all": [T, ...]}
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def shorten(schema: dict[str, Any]) -> Any:
    """One schema in the short form."""
    for word in ("const", "enum"):
        if word in schema:
            return {word: schema[word]}
    if "$ref" in schema:
        return "#" + schema["$ref"].rpartition("/")[2]
    for word, short in (("anyOf", "any"), ("allOf", "all")):
        if word in schema:
            return {short: [shorten(part) for part in schema[word]]}
    return _shorten_type(schema)


def _shorten_type(schema: dict[str, Any]) -> Any:
    kind = schema.get("type")
    if kind is None:
        return "any"
    if isinstance(kind, list):
        return {"any": kind}
    if kind == "array":
        return [shorten(schema["items"])]
    if kind == "object":
        return _shorten_object(schema)
    formats = {"byte": "base64", "uri": "uri"}
    return formats.get(schema.get("format", ""), kind)


def _shorten_object(schema: dict[str, Any]) -> Any:
    properties = schema.get("properties")
    if properties is None:
        more = schema.get("additionalProperties")
        return {"map": shorten(more) if isinstance(more, dict) else "any"}
    required = set(schema.get("required", ()))
    fields = {
        name if name in required else name + "?": shorten(part)
        for name, part in sorted(properties.items())
    }
    return {"fields": fields}


def main(folder: Path) -> None:
    for path in sorted(folder.glob("*.schema.json")):
        schema = json.loads(path.read_text())
        found = schema.get("$defs") or schema["definitions"]
        lines = [
            f" {json.dumps(name)}: {json.dumps(shorten(found[name]))}" for name in sorted(found)
        ]
        target = HERE / (path.name.removesuffix(".schema.json") + ".json")
        target.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
