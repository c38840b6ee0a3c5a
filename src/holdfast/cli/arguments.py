"""Arguments on the command line: ``name=value`` and other forms, converted by a tool's schema.

Pure but for `read_file`.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from math import isfinite
from pathlib import Path
from typing import Any

from holdfast._core.text import did_you_mean, visible
from holdfast.cli.progress import status
from holdfast.cli.prompts import interruptible
from holdfast.errors import ValidationError
from holdfast.schema.signature import resolve
from holdfast.schema.types import admitted_types, type_name
from holdfast.schema.walk import branches, properties

_OWN_OPTIONS = ("args", "json", "output", "save", "timeout", "verbose", "header", "protocol")


def suggestion(
    name: str,
    candidates: Iterable[str],
    none: str = "There are none at all.",
    also: Iterable[str] = (),
) -> str:
    """Return the known names that may be meant, or else some of those that there are."""
    names = list(candidates)
    if near := did_you_mean(name, [*names, *also], 3):
        return f"D{near[1:]}"
    ending = ", …" if len(names) > 20 else ""
    return f"There are: {', '.join(map(visible, names[:20]))}{ending}" if names else none


def read_file(name: str) -> str:
    """Return the text of a file, or of standard input for ``-``; Ctrl-C ends the wait for it."""
    try:
        with interruptible():
            if name == "-":
                with status.aside():
                    return sys.stdin.read()
            return Path(name).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise ValidationError(f"@{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValidationError(f"@{name}: is not text in UTF-8") from None


# A word of the command line has no type, and a tool's schema has. ``2`` is a number where the
# schema wants one and a text where it wants a text; where it allows both, the first of null,
# boolean, integer, number, list and object that the word reads as counts, and a text is what is
# left. What the schema does not know is passed on as text: the server, not this module, is the
# judge of it.


def parse(
    words: Iterable[str], schema: Any, read: Callable[[str], str] = read_file
) -> dict[str, Any]:
    """Return the arguments that words give; ``read`` returns the text of a file, or of ``-``.

    A word counts for more than what stands in the object from stdin.
    """
    base: dict[str, Any] = {}
    arguments: dict[str, Any] = {}
    rest = deque(words)
    while rest:
        word = rest.popleft()
        if word == "-":
            base = whole(read("-"), "stdin")
            continue
        if word.startswith("{"):
            base = {**base, **whole(word, "the arguments")}
            continue
        if word.startswith("--") and word != "--":
            word = _without_dashes(word[2:], rest, schema)
        _assign(arguments, word, schema, read)
    return {**base, **arguments}


def _assign(arguments: dict[str, Any], word: str, schema: Any, read: Callable[[str], str]) -> None:
    """Put the value of ``name=value``, ``name:=json`` or ``name=@file`` into the arguments."""
    key, sign, text = word.partition("=")
    if not sign or not key.strip(":"):
        raise ValidationError(
            f"{word!r} is no argument: write name=value, name:=json, name=@file, or - for JSON"
        )
    is_json = key.endswith(":")
    key = key[:-1] if is_json else key
    path, parameter = _find(key, schema)
    if text.startswith("@@") and not is_json:
        text = text[1:]
    elif text.startswith("@"):
        text = read(text[1:])
    value = _json(text, key) if is_json else coerce(text, parameter, key)
    _put(arguments, path, value, parameter)


def _without_dashes(option: str, rest: deque[str], schema: Mapping[str, Any]) -> str:
    """Return ``name value``, ``name=value`` or ``flag`` as ``name=value``.

    ``max-count`` is the parameter ``max_count``.
    """
    path, sign, text = option.partition("=")
    first, dot, rest_of_path = path.partition(".")
    parameter = _parameter_name(path, first, properties(schema))
    name = f"{parameter}{':' * first.endswith(':')}{dot}{rest_of_path}"
    if sign:
        return f"{name}={text}"
    is_flag = admitted_types(_find(name, schema)[1]) == {"boolean"}
    if rest and not rest[0].startswith("--") and (not is_flag or rest[0].lower() in _BOOLEANS):
        return f"{name}={rest.popleft()}"
    if is_flag:
        return f"{name}=true"
    raise ValidationError(f"--{name}: its value is missing")


def _parameter_name(path: str, first: str, parameters: Mapping[str, Any]) -> str:
    """Return the parameter that an option names; refuse a name that the tool does not take."""
    plain = first.rstrip(":")
    if not parameters or plain in parameters:
        return plain
    parameter = plain.replace("-", "_")
    if parameter in parameters:
        return parameter
    near = did_you_mean(f"--{first}", [f"--{name}" for name in (*parameters, *_OWN_OPTIONS)])
    hint = f": {near}" if near else f" (it takes: {', '.join(parameters)})"
    raise ValidationError(f"--{path} is no option, and no parameter of the tool{hint}")


def whole(text: str, where: str) -> dict[str, Any]:
    """Parse a JSON object of arguments."""
    value = _json(text, where)
    if not isinstance(value, dict):
        text = f"the arguments must be a JSON object, not {type_name(value)}"
        raise ValidationError(f"{where}: {text}")
    return value


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValidationError(f"{where}: not JSON: {error}") from None


def _find(key: str, schema: Mapping[str, Any]) -> tuple[list[str], Any]:
    """Return the path of a parameter, and its schema.

    ``a.b`` reaches into an object, unless a parameter has just that name.
    """
    parameters = properties(schema)
    is_path = key not in parameters and key.partition(".")[0] in parameters
    path = key.split(".") if is_path else [key]
    part: Any = schema
    for name in path:
        part = properties(resolve(part, schema)).get(name)
        if part is None:
            return path, {}
    return path, resolve(part, schema)


def _put(arguments: dict[str, Any], path: list[str], value: Any, schema: Any) -> None:
    """Set a value. The same name again makes a list, where the schema has one."""
    *folders, last = path
    for folder in folders:
        arguments = arguments.setdefault(folder, {})
        if not isinstance(arguments, dict):
            raise ValidationError(f"{'.'.join(path)}: {folder} is not an object")
    if last in arguments:
        if "array" not in admitted_types(schema):
            raise ValidationError(f"{'.'.join(path)} is given twice")
        value = [*arguments[last], *(value if isinstance(value, list) else [value])]
    arguments[last] = value


# Conversion by the schema


def _readings(text: str, kinds: Set[str]) -> Iterator[Any]:
    """Yield the values that a text is, read as each of the types that it fits."""
    for kind, (_, read) in _READERS.items():
        if kind in kinds:
            try:
                value = read(text)
            except (LookupError, ValueError):
                continue
            if not isinstance(value, float) or isfinite(value):
                yield value


def coerce(text: str, schema: Any, name: str) -> Any:
    """Convert a text to the first type of the schema that it fits; else to a string."""
    kinds = admitted_types(schema)
    readable = {*kinds, "integer"} if "number" in kinds else kinds  # 2 is sent as 2, not as 2.0
    for value in _readings(text, readable):
        return value
    if not kinds or "string" in kinds:
        return text
    if "array" in kinds:
        return [coerce(text, schema.get("items", {}), name)]
    if "null" in kinds and not text:
        return None
    wish = " or ".join(words for kind, (words, _) in _READERS.items() if kind in kinds) or "JSON"
    raise ValidationError(f"{name}={text!r}: must be {wish}")


_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def _container(text: str, start: str) -> Any:
    if not text.lstrip().startswith(start):
        raise ValueError
    return json.loads(text)


_READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "null": ("null", {"null": None}.__getitem__),
    "boolean": ("true or false", lambda text: _BOOLEANS[text.lower()]),
    "integer": ("a whole number", int),
    "number": ("a number", float),
    "array": ("a JSON list", lambda text: _container(text, "[")),
    "object": ("a JSON object", lambda text: _container(text, "{")),
}
"""By type: what it is called, and how it is read from a text."""


def describe(schema: Any) -> str:
    """Return the values that a schema allows, or their type, in a few words."""
    values = allowed_values(schema) if isinstance(schema, Mapping) else None
    if values is not None:
        return values
    kinds = sorted(admitted_types(schema))
    if kinds == ["array"]:
        inner = describe(schema.get("items", {}))
        return f"array of {inner}" if inner != "any" else "array"
    return " or ".join(kinds) or "any"


def allowed_values(schema: Mapping[str, Any]) -> str | None:
    """Return the values that a schema lists; None if it lists none."""
    if isinstance(schema.get("enum"), list):
        return "|".join(map(_bare_json, schema["enum"]))
    if "const" in schema:
        title = f" ({' '.join(str(schema['title']).split())})" if "title" in schema else ""
        return _bare_json(schema["const"]) + title
    choices = [*branches(schema, "oneOf"), *branches(schema, "anyOf")]
    if choices and all(isinstance(choice, Mapping) and "const" in choice for choice in choices):
        return "|".join(map(describe, choices))
    return None


def _bare_json(value: Any) -> str:
    """Return a value on one line; a string without its quotes, as it would be typed."""
    text = json.dumps(value, ensure_ascii=False)
    return text[1:-1] if isinstance(value, str) else text
