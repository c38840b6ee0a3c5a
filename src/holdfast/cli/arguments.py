"""Arguments for a tool, from words: ``k=v`` by the tool's schema, ``k:=json``, ``k=@file``.

Pure but for `read_file`, which is handed to `parse`.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast._core.text import did_you_mean
from holdfast.errors import ValidationError
from holdfast.schema.signature import resolve, type_of, types
from holdfast.schema.walk import properties

Read = Callable[[str], str]


def parse(words: Iterable[str], schema: Mapping[str, Any], read: Read) -> dict[str, Any]:
    """Return the arguments that words give; ``read`` returns the text of a file, or of ``-``.

    A word counts for more than what stands in the object from stdin.
    """
    base: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for word in _without_dashes(words, schema):
        if word == "-":
            base = whole(read("-"), "stdin")
            continue
        if word.startswith("{"):
            base = {**base, **whole(word, "the arguments")}
            continue
        key, value = _one(word, schema, read)
        _put(found, _path(key, schema), value, _schema_at(schema, _path(key, schema)))
    return {**base, **found}


def _without_dashes(words: Iterable[str], schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words, with ``--name value`` and ``--name=value`` as ``name=value``."""
    rest = deque(words)
    while rest:
        word = rest.popleft()
        if not word.startswith("--") or word == "--":
            yield word
            continue
        name, sign, text = word[2:].partition("=")
        name = _parameter(name, schema)
        if not sign:
            text = _value_after(name, rest, schema)
        yield f"{name}={text}"


def _parameter(name: str, schema: Mapping[str, Any]) -> str:
    """Return the parameter that an option means; ``--max-count`` is ``max_count``."""
    known = properties(schema)
    first, dot, more = name.partition(".")
    for spelling in (first.rstrip(":"), first.rstrip(":").replace("-", "_")):
        if not known or spelling in known:
            return f"{spelling}{':' * first.endswith(':')}{dot}{more}"
    hint = did_you_mean(f"--{first}", [f"--{one}" for one in (*known, *_OWN_OPTIONS)])
    raise ValidationError(
        f"--{name} is no option, and no parameter of the tool"
        + (f": {hint}" if hint else f" (it takes: {', '.join(known)})")
    )


def _value_after(name: str, rest: deque[str], schema: Mapping[str, Any]) -> str:
    is_flag = types(_schema_at(schema, _path(name, schema))) == {"boolean"}
    if rest and not rest[0].startswith("--") and (not is_flag or _read_boolean(rest[0])[0]):
        return rest.popleft()
    if is_flag:
        return "true"
    raise ValidationError(f"--{name}: its value is missing")


_OWN_OPTIONS = ("args", "json", "output", "save", "timeout", "verbose", "header", "protocol")


def whole(text: str, where: str) -> dict[str, Any]:
    """Parse a JSON object of arguments."""
    value = _json(text, where)
    if not isinstance(value, dict):
        raise ValidationError(f"{where}: the arguments must be a JSON object, not {type_of(value)}")
    return value


def _one(word: str, schema: Mapping[str, Any], read: Read) -> tuple[str, Any]:
    key, sign, text = word.partition("=")
    if not sign or not key.strip(":"):
        raise ValidationError(
            f"{word!r} is no argument: write name=value, name:=json, name=@file, or - for JSON"
        )
    if key.endswith(":"):
        key = key[:-1]
        return key, _json(read(text[1:]) if text.startswith("@") else text, key)
    wanted = _schema_at(schema, _path(key, schema))
    if text.startswith("@@"):
        return key, coerce(text[1:], wanted, key)
    if text.startswith("@"):
        return key, coerce(read(text[1:]), wanted, key)
    return key, coerce(text, wanted, key)


def _path(key: str, schema: Mapping[str, Any]) -> list[str]:
    """Split ``a.b``, which reaches into an object unless a parameter has just that name."""
    own = properties(schema)
    if "." not in key or key in own:
        return [key]
    first = key.partition(".")[0]
    return key.split(".") if first in own else [key]


def _schema_at(schema: Mapping[str, Any], path: list[str]) -> Any:
    found: Any = schema
    for key in path:
        found = properties(resolve(found, schema)).get(key)
        if found is None:
            return {}
    return resolve(found, schema)


def _put(found: dict[str, Any], path: list[str], value: Any, schema: Any) -> None:
    """Set a value. The same name again makes a list, where the schema has one."""
    *folders, last = path
    for folder in folders:
        found = found.setdefault(folder, {})
        if not isinstance(found, dict):
            raise ValidationError(f"{'.'.join(path)}: {folder} is not an object")
    if last in found:
        if "array" not in types(schema):
            raise ValidationError(f"{'.'.join(path)} is given twice")
        value = [*found[last], *(value if isinstance(value, list) else [value])]
    found[last] = value


# A text as the schema would have it


def coerce(text: str, schema: Any, name: str) -> Any:
    """Convert a text to the first type of the schema that it fits; else to a string."""
    wanted = types(schema)
    for kind, read in _READERS.items():
        if kind in wanted:
            ok, value = read(text)
            if ok:
                return value
    if not wanted or "string" in wanted:
        return text
    if "array" in wanted:
        return [coerce(text, _items(schema), name)]
    if "null" in wanted and not text:
        return None
    raise ValidationError(f"{name}={text!r}: must be {_wish(wanted)}")


def _items(schema: Any) -> Any:
    return schema.get("items", {}) if isinstance(schema, Mapping) else {}


def _read_null(text: str) -> tuple[bool, Any]:
    return text == "null", None


def _read_boolean(text: str) -> tuple[bool, Any]:
    told = {"true": True, "yes": True, "on": True, "1": True}
    told |= {"false": False, "no": False, "off": False, "0": False}
    return text.lower() in told, told.get(text.lower())


def _read_integer(text: str) -> tuple[bool, Any]:
    try:
        return True, int(text)
    except ValueError:
        return False, None


def _read_number(text: str) -> tuple[bool, Any]:
    try:
        value = float(text)
    except ValueError:
        return False, None
    finite = value - value == 0
    return finite, int(value) if finite and value == int(value) and "." not in text else value


def _read_json(kind: type) -> Callable[[str], tuple[bool, Any]]:
    def read(text: str) -> tuple[bool, Any]:
        try:
            value = json.loads(text)
        except ValueError:
            return False, None
        return isinstance(value, kind), value

    return read


_READERS: dict[str, Callable[[str], tuple[bool, Any]]] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "integer": _read_integer,
    "number": _read_number,
    "array": _read_json(list),
    "object": _read_json(dict),
}

_WISHES = {
    "null": "null",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a JSON list",
    "object": "a JSON object",
}


def _wish(wanted: Iterable[str]) -> str:
    return " or ".join(_WISHES[kind] for kind in _WISHES if kind in wanted) or "JSON"


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValidationError(f"{where}: not JSON: {error}") from None


def read_file(name: str) -> str:
    """Return the text of a file, or of standard input for ``-``."""
    try:
        if name == "-":
            return sys.stdin.read()
        return Path(name).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise ValidationError(f"@{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValidationError(f"@{name}: is not text in UTF-8") from None


def describe(schema: Any) -> str:
    """Return what a parameter may be, in a word or two."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("enum"), list):
            return "|".join(json.dumps(one).strip('"') for one in schema["enum"])
        if "const" in schema:
            return json.dumps(schema["const"])
    kinds = sorted(types(schema))
    if kinds == ["array"]:
        inner = describe(_items(schema))
        return f"array of {inner}" if inner != "any" else "array"
    return " or ".join(kinds) or "any"
