"""Read configuration files within bounds, and edit them.

Files may come with a stranger's repository, and every command and completion reads them. So size,
depth and number of values are bounded, work is linear, and errors quote next to nothing.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct

from holdfast._core.files import RefusedFileError, read_bytes, reason
from holdfast._core.text import visible
from holdfast._core.yaml_reader import DEEPEST, YamlFault, read_yaml

PROJECT_BYTES: Final = 1 << 18
USER_BYTES: Final = 16 << 20
"""The longest file of the user's own: some products store their history in it."""
ENV_BYTES: Final = 1 << 16
"""The longest file of variables: an approval shows all of it."""
_NUMBER_BITS: Final = 1024
_KEY_PARTS: Final = 32


class ReadBudget(Struct, kw_only=True):
    """Bytes and values that may still be read of a project's files, all together."""

    bytes: int = 1 << 19
    values: int = 20_000
    slow_bytes: int = 1 << 16
    """The longest file of a format whose parser is slow: TOML and YAML."""


class UnreadableFileError(Exception):
    """A file that cannot be used; the text is one sentence without the path."""


class _DoubledKeyError(Exception):
    """An object of JSON has a key twice."""


def read(path: str, limit: int, *, inside: str | None = None, owned: bool = False) -> bytes | None:
    """Return the bytes of a regular file, ``limit`` at most; None if there is none.

    Links must not lead out of the folder ``inside``; ``owned`` refuses a file that other users own
    or can write.
    """
    try:
        return read_bytes(path, limit, inside=inside, owned="group" if owned else False)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise UnreadableFileError("is a link that leads nowhere") from None
        return None
    except RefusedFileError as error:
        raise UnreadableFileError(error.strerror) from None
    except OSError as error:
        raise UnreadableFileError(f"cannot be read: {reason(error).lower()}") from None


def parse(path: str, data: bytes, budget: ReadBudget | None = None) -> Mapping[str, Any]:
    """Return the object that a file holds, by the ending of its name.

    ``budget`` is what may be read, and reduced by what was; by default that of a file of the user's
    own.
    """
    text = _decode(data)
    budget = budget or ReadBudget(bytes=USER_BYTES, values=2_000_000, slow_bytes=1 << 20)
    budget.bytes -= len(data)
    if budget.bytes < 0:
        raise UnreadableFileError("is not read: the project's files are too long together")
    ending = os.path.splitext(path)[1].lower()
    if ending in (".toml", ".yaml", ".yml") and len(text) > budget.slow_bytes:
        raise UnreadableFileError(f"is longer than {budget.slow_bytes >> 10} KiB")
    try:
        value = _read_value(ending, text, budget)
    except YamlFault as error:
        raise UnreadableFileError(str(error)) from None
    except RecursionError:
        raise UnreadableFileError("is nested too deeply") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UnreadableFileError("must hold an object at its top")
    _check_bounds(value, budget)
    return value


def _read_value(ending: str, text: str, budget: ReadBudget) -> Any:
    """Read a text in the format of its file's ending; whatever is neither TOML nor YAML is JSON."""
    if ending == ".toml":
        return _toml(text)
    if ending in (".yaml", ".yml"):
        return read_yaml(text, budget.values)
    try:
        return _json(text)
    except _DoubledKeyError:
        raise UnreadableFileError(_doubled_key(_without_comments(text)[1])) from None


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFileError("is not text in UTF-8") from None
    if "\0" in text:
        raise UnreadableFileError("is not text: it has zero bytes in it")
    return text


def _check_bounds(value: Any, budget: ReadBudget) -> None:
    level: list[Any] = [value]
    most = budget.values
    for _ in range(DEEPEST):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif _is_too_large(item):
                raise UnreadableFileError("has a number in it that is too large")
            if len(below) > budget.values:
                raise UnreadableFileError(f"has more than {most:,} values in it")
        if not below:
            return
        budget.values -= len(below)
        level = below
    raise UnreadableFileError("is nested too deeply")


def _is_too_large(scalar: Any) -> bool:
    if isinstance(scalar, float):
        return not math.isfinite(scalar)
    # Hexadecimal digits of TOML and YAML: thousands of them cannot be printed.
    return isinstance(scalar, int) and scalar.bit_length() > _NUMBER_BITS


# JSON with comments and trailing commas


def _json(text: str) -> Any:
    try:
        return _JSON.decode(text) if text.strip() else None
    except ValueError:
        return _json_with_comments(text)


def _json_with_comments(text: str) -> Any:
    try:
        return _JSON.decode(_without_comments(text)[1])
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UnreadableFileError(f"is not JSON: {error.msg.lower()} ({where})") from None
    except ValueError as error:
        raise UnreadableFileError(f"is not JSON: {error}") from None


def _without_comments(text: str) -> tuple[str, str]:
    """Return the text without comments, and also without trailing commas.

    Spaces take their place: every other character keeps its position.
    """
    text = _COMMENTS.sub(lambda match: match[1] or re.sub(r"[^\n]", " ", match[0]), text)
    return text, _COMMAS.sub(lambda match: match[1] or " ", text)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; a key twice shows one thing to one reader, another to the next."""
    content = dict(pairs)
    if len(content) != len(pairs):
        raise _DoubledKeyError
    return content


def _doubled_key(text: str) -> str:
    """Return the sentence for a text in which `_distinct` found a key twice."""
    objects: list[set[str]] = []
    for token in _KEYS.finditer(text):
        if token[0] == "{":
            objects.append(set())
        elif token[0] == "}":
            objects.pop()
        elif token["key"]:
            key = json.loads(token["key"])
            if key in objects[-1]:
                line = text.count("\n", 0, token.start()) + 1
                return f"has the key '{visible(key, 80)}' twice in one object (line {line})"
            objects[-1].add(key)
    raise AssertionError("no key is there twice")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


_JSON: Final = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_no_constant)

_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?(?:"|\Z)'
_COMMENT: Final = r"//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
# Every alternative takes what it began to the end of the text if it is never closed: failing
# and starting over at each quote would take hours on a hostile megabyte.
_COMMENTS: Final = re.compile(f"({_STRING})|{_COMMENT}", re.S)
_KEYS: Final = re.compile(rf"(?P<key>{_STRING})\s*+:|{_STRING}|[{{}}]", re.S)
_COMMAS: Final = re.compile(rf"({_STRING})|,(?=\s*+[}}\]])", re.S)


# TOML

_TOML_TOKENS: Final = re.compile(
    r"'''(?:[^']|'(?!''))*+(?:'''|\Z)"
    r'|"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\Z)'
    r"|'[^'\n]*+'?|\"(?:[^\"\\\n]|\\.)*+\"?|#[^\n]*+",
    re.S,
)
_LONG_KEY: Final = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{_KEY_PARTS}}}")


def _toml(text: str) -> Any:
    import tomllib

    # The time of `tomllib` grows with the square of a key's parts.
    if _LONG_KEY.search(_TOML_TOKENS.sub("s", text)):
        raise UnreadableFileError(f"has a key of more than {_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except ValueError as error:
        message = visible(str(error), 200)
        raise UnreadableFileError(f"is not TOML: {message[:1].lower()}{message[1:]}") from None


# Files of environment variables

_LINE: Final = re.compile(
    r"(?:export[ \t]++)?(?P<name>[A-Za-z_][A-Za-z0-9_.]*+)[ \t]*+=[ \t]*+(?P<value>.*)", re.S
)
_QUOTED: Final = re.compile(r"'([^']*+)'|\"((?:[^\"\\]|\\.)*+)\"", re.S)
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


class EnvFile(Struct, frozen=True, kw_only=True):
    """A file of variables (``.env``), read once: the same bytes are approved and used."""

    path: str
    data: bytes | None = None
    variables: dict[str, str] = {}
    fault: str | None = None
    """Why it cannot be used."""


def read_env(path: str, inside: str | None) -> EnvFile:
    """Read a file of variables; ``inside`` as in `read`."""
    data = None
    try:
        data = read(path, ENV_BYTES, inside=inside)
        if data is None:
            return EnvFile(path=path, fault="does not exist")
        return EnvFile(path=path, data=data, variables=parse_env(_decode(data)))
    except UnreadableFileError as error:
        return EnvFile(path=path, data=data, fault=str(error))


def parse_env(text: str) -> dict[str, str]:
    r"""Return the variables of ``NAME=value`` lines; ``#`` begins a comment, quotes are removed.

    Double quotes know ``\n``, ``\t``, ``\"`` and ``\\``. Nothing is expanded. Only ``\n`` ends a
    line: other separators would show one line and set two.
    """
    variables: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip(" \t\r")
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise UnreadableFileError(f"line {number} is not NAME=value")
        value = match["value"]
        quoted = _QUOTED.match(value)
        if quoted is None:
            value = re.split(r"[ \t]#", value, maxsplit=1)[0].strip(" \t")
        elif quoted[1] is not None:
            value = quoted[1]
        else:
            value = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), quoted[2])
        variables[match["name"]] = value
    return variables


# Editing JSON: the rest of a file is preserved, comments and indentation included
#
# The user's file is the user's: a parser that writes it anew would lose comments, order and layout.
# So one member is cut out or put in as text, at offsets that come from decoding it piece by piece
# with comments blanked out (which keeps every position). That is easy to get wrong, so nobody has
# to believe it: the result is parsed, compared with the object that the edit should give, and
# written only if they are equal.

_GAP: Final = re.compile(r"[\s,:]*+")


class JsonMember(NamedTuple):
    """A member of an object, by offsets in the text: key, value, the comma behind it (or -1)."""

    key: str
    start: int
    value: int
    end: int
    comma: int


class JsonText:
    """A JSON text with comments and trailing commas, to find the places of its values in."""

    def __init__(self, text: str) -> None:
        self._with_commas, self.plain = _without_comments(text)

    @property
    def top(self) -> int:
        """Where the document's object begins; -1 if there is none."""
        return self.plain.find("{")

    def members(self, start: int) -> tuple[list[JsonMember], int]:
        """Return the members of the object that begins at an offset, and where it ends."""
        members: list[JsonMember] = []
        plain = self.plain
        at = _skip_gap(plain, start + 1)
        while plain[at] != "}":
            key, end = _JSON.raw_decode(plain, at)
            value = _skip_gap(plain, end)
            _, end = _JSON.raw_decode(plain, value)
            after = _skip_gap(plain, end)
            comma = self._with_commas.find(",", end, after)
            members.append(JsonMember(key, at, value, end, comma))
            at = after
        return members, at

    def items(self, start: int) -> list[tuple[int, int]]:
        """Return where the items of the list that begins at an offset begin and end."""
        items: list[tuple[int, int]] = []
        at = _skip_gap(self.plain, start + 1)
        while self.plain[at] != "]":
            _, end = _JSON.raw_decode(self.plain, at)
            items.append((at, end))
            at = _skip_gap(self.plain, end)
        return items


def find_members(text: str, start: int) -> tuple[list[JsonMember], int]:
    """Return the members of the object that begins at an offset, and where it ends."""
    return JsonText(text).members(start)


def _skip_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    assert gap is not None
    return gap.end()


def set_member(text: str, start: int, key: str, value: Any, depth: int = 1) -> str:
    """Return the text with a member of the object at an offset added or replaced."""
    members, end = find_members(text, start)
    newline = "\r\n" if "\r\n" in text else "\n"
    indented = re.search(r"\n([ \t]+)\S", text)
    unit = "  " if indented is None else indented[1]
    flat = bool(members) and "\n" not in text.strip()
    line = " " if flat else newline + unit * depth
    written = json.dumps(value, ensure_ascii=False, indent=None if flat else unit)
    written = written.replace("\n", line)
    for member in members:
        if member.key == key:
            return text[: member.value] + written + text[member.end :]
    added = f"{line}{json.dumps(key, ensure_ascii=False)}: {written}"
    if members:
        return f"{text[: members[-1].end]},{added}{text[members[-1].end :]}"
    rest = text[start + 1 : end]
    tail = "" if "\n" in rest else newline + unit * (depth - 1)
    return text[: start + 1] + added + rest + tail + text[end:]


def drop_member(text: str, start: int, key: str) -> str:
    """Return the text without a member of the object at an offset, and its line if it is alone."""
    members, _ = find_members(text, start)
    place = next(number for number, member in enumerate(members) if member.key == key)
    member, comma = members[place], members[place].comma
    end = member.end if comma < 0 else comma + 1
    alone = re.compile(r"[ \t]*\r?\n").match(text, end)
    line = text.rfind("\n", 0, member.start) + 1
    if alone is not None and line and not text[line : member.start].strip(" \t"):
        after = text[:line] + text[alone.end() :]
    else:
        after = text[: member.start] + text[end:]
    if comma < 0 and place:
        # The last one takes the comma before it along.
        before = members[place - 1].comma
        after = after[:before] + after[before + 1 :]
    return after


class JsonFile:
    """A file with a JSON object, to edit. Every edit is checked by reading it again.

    Raises UnreadableFileError.
    """

    def __init__(self, data: bytes | None) -> None:
        self.content: Mapping[str, Any] = {} if data is None else parse("x.json", data)
        text = (data or b"").decode("utf-8-sig")
        self._text = text if text.strip() else "{\n}\n"

    @property
    def data(self) -> bytes:
        """The bytes to write."""
        return self._text.encode()

    def change(self, parent: str, key: str, value: Any) -> None:
        """Set a member of an object in the document, or of itself (""); None: remove it."""
        inner = self.content.get(parent) if parent else self.content
        if inner is None:
            parent, key, value, inner = "", parent, {key: value}, self.content
        if not isinstance(inner, dict):
            raise UnreadableFileError(f"must hold an object under {parent}")
        start = self._start_of(parent)
        after = {name: member for name, member in inner.items() if name != key}
        if value is None:
            text = drop_member(self._text, start, key)
        else:
            text = set_member(self._text, start, key, value, 2 if parent else 1)
            after[key] = value
        content = {**self.content, parent: after} if parent else after
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise UnreadableFileError("cannot hold half a character") from None
        if parse("x.json", data) != content:
            raise UnreadableFileError("cannot be edited safely; edit it by hand")
        self._text, self.content = text, content

    def _start_of(self, parent: str) -> int:
        """Return where an object begins in the text: that of a key, or the whole document ("")."""
        start = _without_comments(self._text)[1].index("{")
        if not parent:
            return start
        members, _ = find_members(self._text, start)
        return next(member.value for member in members if member.key == parent)
