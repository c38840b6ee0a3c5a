"""Python names for names on the wire.

The choice depends on the names alone, not on their order. Of several that would get one name, the
one that is spelt so keeps it, and the others get digits of a hash of their own spelling.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import Final

ROOT: Final = "_root"
"""The namespace of tools without a dot."""

LONGEST: Final = 64
LONGEST_SPACE: Final = 34
LONGEST_CLASS: Final = 56

HANDLE_MEMBERS: Final = frozenset(
    {
        *("adapter", "call", "call_tool", "client", "close", "closed", "connect", "drift"),
        *("log", "name", "open", "registry", "replay", "run", "session", "state", "tools"),
    }
)
"""The members of a handle; a namespace with such a name gets an underscore."""

HANDLE_OWN: Final = frozenset(
    {
        *("adapter", "call", "call_tool", "client", "close", "closed", "open", "registry"),
        *("session",),
    }
)
"""The public members of `holdfast.handles.Handle`, which no tool replaces."""

TYPE_NAMES: Final = frozenset({"bool", "dict", "float", "int", "list", "str", "tuple"})
"""Builtins that annotations use. In a class with a method of that name they are ``builtins.…``."""

MODULE_NAMES: Final = frozenset(
    {
        *("ADAPTER", "REGISTRY", "REGISTRY_HASH", "TARGET", "UNSET"),
        *("Any", "Final", "Literal", "Mapping", "NotRequired", "TypeAlias", "TypedDict", "Union"),
        *("Calls", "Drift", "Handle", "HandleResult", "Log", "Namespace", "ParameterSession"),
        *("Registry", "SessionAdapter", "SyncCalls", "SyncHandle", "SyncNamespace", "SyncTools"),
        *("Target", "Tools", "Unset", "annotations", "builtins", "connect", "connect_sync"),
    }
)
"""The names of a generated module, besides the types made from schemas."""

ATTRIBUTE_RESERVED: Final = MODULE_NAMES - {"annotations", "connect", "connect_sync"}
"""The names that an attribute must not have, because annotations beside it use them."""


def split(tool: str) -> tuple[str | None, str]:
    """Split a tool's name at the first dot; the namespace is None without one."""
    first, dot, rest = tool.partition(".")
    return (first, rest) if dot else (None, tool)


def method_names(keys: Iterable[str]) -> dict[str, str]:
    """Return a unique method name for each tool."""
    return _allot(keys, "tool", ATTRIBUTE_RESERVED)


def namespace_names(names: Iterable[str]) -> dict[str, str]:
    """Return a unique attribute name for each namespace."""
    return _allot(names, "ns", HANDLE_MEMBERS | ATTRIBUTE_RESERVED, LONGEST_SPACE)


def parameter_names(names: Iterable[str]) -> dict[str, str]:
    """Return a unique parameter name for each property."""
    return _allot(names, "arg", frozenset({"self"}), private=True)


def spare(name: str, taken: Collection[str]) -> str:
    """Return the name, with underscores added until it is unique."""
    while name in taken:
        name += "_"
    return name


def _allot(
    wires: Iterable[str],
    word: str,
    reserved: Collection[str],
    longest: int = LONGEST,
    *,
    private: bool = False,
) -> dict[str, str]:
    wanted: dict[str, list[str]] = {}
    for wire in sorted(set(wires)):
        name = _shortened(identifier(wire, word, private=private), wire, longest, "_")
        wanted.setdefault(f"{name}_" if name in reserved else name, []).append(wire)
    taken = set(wanted)
    found: dict[str, str] = {}
    for name, group in wanted.items():
        for wire in group:
            if wire == name or len(group) == 1:
                found[wire] = name
            else:
                found[wire] = _with_digits(name, wire, taken)
                taken.add(found[wire])
    return found


def _with_digits(name: str, wire: str, taken: Collection[str]) -> str:
    digits = sha256(wire.encode("utf-8", "surrogatepass")).hexdigest()
    for count in range(4, len(digits) + 1):
        if (found := f"{name}_{digits[:count]}") not in taken:
            return found
    raise AssertionError("two names with one digest")


def identifier(wire: str, word: str, *, private: bool = False) -> str:
    """Return the nearest identifier; ``word`` replaces what is missing.

    Only a parameter may begin with an underscore, and none with two (name mangling).
    """
    text = unicodedata.normalize("NFKC", wire)
    if not text.isidentifier():
        text = unicodedata.normalize("NFKC", _replaced(text))
    bare = text.lstrip("_")
    text = f"_{bare}" if private and wire.startswith("_") else bare
    if not text.isidentifier():
        text = f"{word}_{text}".rstrip("_")
    if not text.isidentifier():
        text = re.sub(r"\W+", "_", text, flags=re.ASCII)
    if keyword.iskeyword(text):
        text += "_"
    return text


def _replaced(text: str) -> str:
    """Replace runs of characters that no identifier has by one underscore."""
    kept = (char if f"a{char}".isidentifier() else "\0" for char in text)
    return re.sub("\0+", "_", "".join(kept)).rstrip("_")


def _shortened(name: str, wire: str, most: int, mark: str) -> str:
    if len(name) <= most:
        return name
    digits = sha256(wire.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{name[: most - 6 - len(mark)]}{mark}{digits}"


# Classes


def pascal(*parts: str) -> str:
    """Return ``NavWaitUntil`` for ``("nav", "wait_until")``, in ASCII."""
    words = [word for part in parts for word in re.findall(r"[A-Za-z0-9]+", part)]
    name = "".join(word[0].upper() + word[1:] for word in words) or "Unnamed"
    name = f"T{name}" if name[0].isdigit() else name
    return _shortened(name, "\0".join(parts), LONGEST_CLASS - 4, "")


class ClassNames:
    """Gives out the names of classes and aliases, each once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken: set[str] = {*MODULE_NAMES, *keyword.kwlist, *taken}

    def take(self, *parts: str) -> str:
        """Return an unused class name made of the parts, and reserve it."""
        name = base = pascal(*parts)
        number = 1
        while name in self.taken:
            number += 1
            name = f"{base}{number}"
        self.taken.add(name)
        return name

    def take_pair(self, *parts: str) -> str:
        """Return a class name that is free with ``Sync`` before it too, and reserve both."""
        name = base = pascal(*parts)[:LONGEST_SPACE]
        number = 1
        while name in self.taken or f"Sync{name}" in self.taken:
            number += 1
            name = f"{base}{number}"
        self.taken |= {name, f"Sync{name}"}
        return name
