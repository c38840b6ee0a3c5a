"""Tools that are gone and tools that are new: which of them are the same under another name?

A guess, made the same way every time: first those whose definition is the same word for word,
then those whose names, descriptions and parameters are nearly the same. Definitions that say
next to nothing are alike by chance, so for these the names must be as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from holdfast.lock.fingerprint import canonical

Definitions: TypeAlias = Mapping[str, Mapping[str, Any]]

ALIKE: Final = 0.8
"""How much of the description and the parameters has to be the same."""
NAMES_ALIKE: Final = 0.4
"""How much of the names, where the definitions differ."""
MOST_PAIRS: Final = 10_000
"""Pairs that are looked at. A server that renames more than a hundred tools is another server."""
_LONGEST: Final = 4_000


def find(removed: Definitions, added: Definitions, fields: Iterable[str]) -> dict[str, str]:
    """The new name of each tool that has one, by its old name."""
    if not removed or not added:
        return {}
    relevant = sorted({*fields} - {"name", "title"})
    old = {name: _profile(name, tool, relevant) for name, tool in removed.items()}
    new = {name: _profile(name, tool, relevant) for name, tool in added.items()}
    scores = [*_twins(old, new), *_neighbours(old, new)]
    found: dict[str, str] = {}
    taken: set[str] = set()
    for _, before, after in sorted(scores, key=lambda one: (-one[0], one[1], one[2])):
        if before not in found and after not in taken:
            found[before] = after
            taken.add(after)
    return found


class _Profile(NamedTuple):
    """What a tool is recognised by."""

    text: bytes | None
    letters: Counter[str]
    words: Counter[str]
    parameters: Counter[str]


_Score: TypeAlias = tuple[float, str, str]


def _profile(name: str, tool: Mapping[str, Any], fields: list[str]) -> _Profile:
    about = tool.get("description") if "description" in fields else None
    words = about[:_LONGEST].lower().split() if isinstance(about, str) else []
    schema = tool.get("inputSchema") if "inputSchema" in fields else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    parameters = list(properties)[:_LONGEST] if isinstance(properties, dict) else []
    body = {field: tool[field] for field in fields if field in tool}
    return _Profile(_text(body), _letters(name), Counter(words), Counter(parameters))


def _text(body: dict[str, Any]) -> bytes | None:
    try:
        return canonical(body)
    except (RecursionError, TypeError, ValueError, OverflowError):
        return None


def _letters(name: str) -> Counter[str]:
    """A name by its pairs of letters, whatever stands between words."""
    bare = "".join(char for char in name[:200].lower() if char.isalnum())
    return Counter(bare[at : at + 2] for at in range(max(1, len(bare) - 1)))


def _twins(old: dict[str, _Profile], new: dict[str, _Profile]) -> Iterable[_Score]:
    """The same word for word, so found without looking at each pair."""
    by_text: dict[bytes | None, list[str]] = {}
    for name, profile in new.items():
        by_text.setdefault(profile.text, []).append(name)
    left = MOST_PAIRS
    for name, profile in old.items():
        telling = bool(profile.words or profile.parameters)
        for other in by_text.get(profile.text, ()) if profile.text is not None else ():
            left -= 1
            if left < 0:
                return
            likeness = _likeness(profile.letters, new[other].letters)
            if telling or likeness >= ALIKE:
                yield 2 + likeness, name, other


def _neighbours(old: dict[str, _Profile], new: dict[str, _Profile]) -> Iterable[_Score]:
    if len(old) * len(new) > MOST_PAIRS:
        return
    for name, profile in old.items():
        for other, candidate in new.items():
            likeness = _likeness(profile.letters, candidate.letters)
            if likeness < NAMES_ALIKE:
                continue
            content = _content(profile, candidate)
            if content is not None and content >= ALIKE:
                yield (likeness + content) / 2, name, other


def _content(one: _Profile, other: _Profile) -> float | None:
    """How alike two definitions are in what both could say; None if neither says anything."""
    scores = [
        _likeness(mine, yours)
        for mine, yours in ((one.words, other.words), (one.parameters, other.parameters))
        if mine or yours
    ]
    return sum(scores) / len(scores) if scores else None


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    """From 0, nothing in common, to 1, the same."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0
