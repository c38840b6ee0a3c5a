"""Configuration files as plain values: read with care, parsed with patience for comments.

A file may come with somebody else's repository. So it is read only if it is a regular file of
bounded size (a pipe would block, a device would not end), and whatever is wrong with it is told
in one sentence that quotes nothing of its content.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from typing import Any, Final

MOST_BYTES: Final = 1024 * 1024
"""The longest project file that is read."""
MOST_BYTES_OWN: Final = 16 * 1024 * 1024
"""The longest file of the user's own: some products keep their history in theirs."""


class UnreadableError(Exception):
    """Why a file cannot be used, in one sentence."""


def read(path: str, *, limit: int = MOST_BYTES, inside: str | None = None) -> bytes | None:
    """The bytes of a file; None if there is none.

    With ``inside`` a link must not lead out of that folder: a repository has no business with
    files that it did not bring.
    """
    try:
        if inside is not None and os.path.lexists(path):
            _check_inside(path, inside)
        descriptor = os.open(path, os.O_RDONLY | _CAREFUL)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise UnreadableError("is a link that leads nowhere") from None
        return None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot be read: {_why(error)}") from None
    try:
        return _bounded(descriptor, limit)
    except OSError as error:
        raise UnreadableError(f"cannot be read: {_why(error)}") from None
    finally:
        os.close(descriptor)


_CAREFUL: Final = (
    getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
)


def _check_inside(path: str, folder: str) -> None:
    real, root = os.path.realpath(path), os.path.realpath(folder)
    if real != path and os.path.commonpath([real, root]) != root:
        raise UnreadableError("is a link that leads out of the project; not followed")


def _bounded(descriptor: int, limit: int) -> bytes:
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        raise UnreadableError("is not a regular file")
    data = bytearray()
    # The size may be a lie, or change while it is read: what counts is what comes.
    while facts.st_size <= limit and len(data) <= limit:
        more = os.read(descriptor, limit + 1 - len(data))
        if not more:
            return bytes(data)
        data += more
    raise UnreadableError(f"is longer than {limit // 1024:,} KiB")


def _why(error: Exception) -> str:
    text: str | None = getattr(error, "strerror", None)
    return (text or str(error)).lower()


def parse(path: str, data: bytes) -> Mapping[str, Any]:
    """The table or object that a file holds, by the file's ending."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableError("is not text in UTF-8") from None
    if "\0" in text:
        raise UnreadableError("is not text: it has zero bytes in it")
    ending = os.path.splitext(path)[1].lower()
    try:
        value = _PARSERS.get(ending, _json)(text)
    except RecursionError:
        raise UnreadableError("is nested too deeply") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UnreadableError("must hold an object at its top")
    return value


# JSON, as people write it


def _json(text: str) -> Any:
    if not text.strip():
        return None
    try:
        return _strict(text)
    except json.JSONDecodeError:
        pass
    except ValueError as error:
        raise UnreadableError(f"is not JSON: {error}") from None
    try:
        return _strict(_plain(text))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UnreadableError(f"is not JSON: {error.msg.lower()} ({where})") from None
    except ValueError as error:
        raise UnreadableError(f"is not JSON: {error}") from None


def _strict(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a key that is there twice shows one thing to one reader, another to the next."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise UnreadableError(f"has the key {twice[:80]!r} twice in one object")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?(?:"|\Z)'
_COMMENT = r"//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
# Every alternative takes what it began to the end of the text if it is never closed: failing
# and starting over at each quote would take hours on a hostile megabyte.
_COMMENTS: Final = re.compile(f"({_STRING})|{_COMMENT}", re.S)
_COMMAS: Final = re.compile(rf"({_STRING})|,(?=\s*+[}}\]])", re.S)


def _plain(text: str) -> str:
    """Without comments and trailing commas, and with every line where it was."""
    text = _COMMENTS.sub(_blank, text)
    return _COMMAS.sub(lambda match: match[1] or " ", text)


def _blank(match: re.Match[str]) -> str:
    return match[1] or re.sub(r"[^\n]", " ", match[0])


# The others


def _toml(text: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableError(f"is not TOML: {_lower(str(error))}") from None
    except ValueError as error:
        raise UnreadableError(f"is not TOML: {error}") from None


def _yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise UnreadableError("is YAML, which needs PyYAML: install holdfast[yaml]") from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
        raise UnreadableError(f"is not YAML{where}") from None
    except ValueError as error:
        raise UnreadableError(f"is not YAML: {error}") from None


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    ".toml": _toml,
    ".yaml": _yaml,
    ".yml": _yaml,
}
