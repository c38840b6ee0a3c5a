"""Which alternative of a schema became which, and what to call one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from itertools import combinations
from typing import Any, TypeAlias

from holdfast._core.text import join_words, label, quote, show_json
from holdfast.schema.types import Flat, mark, named_types, type_of, types, values

Matched: TypeAlias = tuple[list[tuple[Flat, Flat]], list[Flat], list[Flat]]
"""Those that belong together, those that are gone, those that are new."""


def match(old: list[Flat], new: list[Flat], alike: Callable[[Flat, Flat], bool]) -> Matched:
    """Pair what is alike; then what bears the same name; then what alone is of its kind."""
    pairs: list[tuple[Flat, Flat]] = []
    new = list(new)
    lost: list[Flat] = []
    for before in old:
        twin = next((one for one in new if kind(one) == kind(before) and alike(before, one)), None)
        if twin is None:
            lost.append(before)
        else:
            pairs.append((before, twin))
            new = [one for one in new if one is not twin]
    for name in (_tag, kind):
        found = list(_namesakes(lost, new, name))
        pairs += found
        lost = [one for one in lost if all(one is not before for before, _ in found)]
        new = [one for one in new if all(one is not after for _, after in found)]
    return pairs, lost, new


def _namesakes(
    old: list[Flat], new: list[Flat], name: Callable[[Flat], Hashable]
) -> Iterator[tuple[Flat, Flat]]:
    """Those that share a name which nobody else has on either side."""
    before, after = _grouped(old, name), _grouped(new, name)
    for shared in before:
        if shared is not None and len(before[shared]) == len(after.get(shared, ())) == 1:
            yield before[shared][0], after[shared][0]


def _grouped(branches: list[Flat], name: Callable[[Flat], Hashable]) -> dict[Hashable, list[Flat]]:
    groups: dict[Hashable, list[Flat]] = defaultdict(list)
    for one in branches:
        groups[name(one)].append(one)
    return groups


def kind(flat: Flat) -> str:
    """What an alternative is about: its type, or that it lists its values."""
    if values(flat) is not None:
        return "values"
    return " or ".join(named_types(types(flat)))


def _tag(flat: Flat) -> Hashable:
    """What tells an alternative from others of its kind: a constant in it, or its title."""
    for name, marks in sorted(_constants(flat).items()):
        if len(marks) == 1:
            return (name, next(iter(marks)))
    title = flat.get("title")
    return (kind(flat), title) if isinstance(title, str) else None


def _constants(flat: Flat) -> dict[str, set[Hashable]]:
    """The properties that can only have certain values, and which."""
    found = {}
    for name, schema in flat.get("properties", {}).items():
        if isinstance(schema, dict) and ("const" in schema or isinstance(schema.get("enum"), list)):
            listed = [schema["const"]] if "const" in schema else schema["enum"]
            found[name] = {mark(value) for value in listed}
    return found


def disjoint(branches: list[Flat]) -> bool:
    """Whether no value can fit two of these."""
    return all(_apart(one, other) for one, other in combinations(branches, 2))


def _apart(one: Flat, other: Flat) -> bool:
    if not _kinds(one) & _kinds(other):
        return True
    mine, yours = values(one), values(other)
    if mine is not None and yours is not None:
        return not {mark(value) for value in mine} & {mark(value) for value in yours}
    ours, theirs = _constants(one), _constants(other)
    needed = {*one.get("required", ())} & {*other.get("required", ())}
    objects = _kinds(one) == _kinds(other) == {"object"}
    return objects and any(
        not ours[name] & theirs[name] for name in needed & ours.keys() & theirs.keys()
    )


def _kinds(flat: Flat) -> frozenset[str]:
    listed = values(flat)
    return types(flat) if listed is None else frozenset(type_of(value) for value in listed)


def summary(flat: Flat) -> str:
    """An alternative in a few words."""
    listed = values(flat)
    if listed is not None:
        return join_words([show_json(value, 60) for value in listed]) or "nothing"
    words = _names(flat)
    title = flat.get("title")
    if isinstance(title, str):
        return f"{words} {quote(title, 60)}"
    for name, schema in sorted(flat.get("properties", {}).items()):
        if isinstance(schema, dict) and "const" in schema:
            return f"{words} with {label(name)} {show_json(schema['const'], 60)}"
    return words


def _names(flat: Flat) -> str:
    names: list[Any] = named_types(types(flat))
    return "anything else" if len(names) == 6 else " or ".join(names)
