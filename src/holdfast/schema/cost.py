"""How much work it would be to check a value against a schema, found out before doing it.

A server writes its schemas, and the results that are checked against them, so both may be
hostile: references that double at every step, alternatives inside alternatives, patterns
over megabytes. The validator itself has no limit of time. So the work is counted first, in
steps of about 20 ns: exactly enough for references that go in a circle, and from above for
everything else. What cannot be counted within bounds is not done.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

DEEPEST: Final = 200
"""Levels of JSON in a schema."""
LARGEST: Final = 50_000
"""Values in a schema."""
BUDGET: Final = 50_000_000
"""Steps in one check: about a second at the very worst."""
LOOKS: Final = 100_000
"""Times that a part of the schema is held against a part of the value while counting."""
CHARACTER: Final = 300
"""Steps for one character under the worst pattern that is allowed."""

_ONE: Final = ("not", "if", "then", "else")
_MANY: Final = ("allOf", "anyOf", "oneOf")
_NAMED: Final = ("dependentSchemas", "dependencies")
_EACH_PROPERTY: Final = ("unevaluatedProperties", "propertyNames")
_EACH_ITEM: Final = ("additionalItems", "contains", "unevaluatedItems")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_FAMILIAR: Final = ("http://json-schema.org/", "https://json-schema.org/")


class TooMuch(Exception):  # noqa: N818  (a finding, not a failure)
    """The work, or the schema itself, is past its bounds; says which."""


class Weight(NamedTuple):
    """What one value can cost at most: steps for each part of it, patterns for each character."""

    steps: int
    patterns: int


class Outline:
    """A schema looked over once: its size, its patterns, where its references lead."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.patterns: set[str] = set()
        self.branches: bool = False
        """It has alternatives, whose faults are costly to tell."""
        self._names: dict[str, list[Any]] = {}
        self._look_over()
        self._weights: dict[int, Weight] = {}
        self.weight: Weight | None = self._weigh()
        """None if references go in a circle."""

    def _look_over(self) -> None:
        count = 0
        level = [self.root]
        for _ in range(DEEPEST):
            following: list[Any] = []
            for value in level:
                count += 1
                if isinstance(value, dict):
                    self._note(value)
                    following += value.values()
                elif isinstance(value, list):
                    following += value
            if count + len(following) > LARGEST:
                raise TooMuch(f"it has more than {LARGEST} parts")
            if not following:
                return
            level = following
        raise TooMuch(f"it is more than {DEEPEST} levels deep")

    def _note(self, schema: dict[str, Any]) -> None:
        for keyword in ("$id", "id", "$anchor", "$dynamicAnchor"):
            name = schema.get(keyword)
            if isinstance(name, str):
                self._names.setdefault(name.rstrip("#"), []).append(schema)
        if isinstance(schema.get("pattern"), str):
            self.patterns.add(schema["pattern"])
        if isinstance(schema.get("patternProperties"), dict):
            self.patterns.update(schema["patternProperties"])
        self.branches = self.branches or "anyOf" in schema or "oneOf" in schema

    # References

    def targets(self, schema: dict[str, Any]) -> Iterator[Any]:
        """What the references of a schema lead to."""
        for keyword in _REFERENCES:
            reference = schema.get(keyword)
            if isinstance(reference, str):
                yield from self._find(reference)

    def _find(self, reference: str) -> list[Any]:
        place, _, fragment = reference.partition("#")
        if place.startswith(_FAMILIAR) and place not in self._names:
            return []  # the dialects' own schemas, which the validator has
        owners = self._owners(place)
        found = owners[:1]
        if fragment.startswith("/"):
            from holdfast.types.pointers import resolve  # and with it urllib

            hits = (resolve(owner, f"#{fragment}") for owner in owners)
            found = [hit for hit in hits if hit is not None]
        elif fragment:
            found = self._names.get(fragment, [])
        if not found:
            shown = repr(reference[:200])
            raise TooMuch(f"it refers to {shown}, which is not in it, and nothing is ever fetched")
        return found

    def _owners(self, place: str) -> list[Any]:
        """The schemas that a reference may be relative to. One too many does no harm.

        Identifiers may be written relative to each other: they are told by how they end.
        """
        last = place.rpartition("/")[2]
        named = [
            schema
            for name, owners in self._names.items()
            if not place or name.rpartition("/")[2] == last
            for schema in owners
        ]
        return named if place else [self.root, *named]

    # Weight: references followed, whatever the value

    def _weigh(self) -> Weight | None:
        try:
            return self._weight(self.root, set())
        except RecursionError:
            return None

    def _weight(self, schema: Any, open_: set[int]) -> Weight | None:
        if not isinstance(schema, dict):
            return Weight(1, 0)
        key = id(schema)
        known = self._weights.get(key)
        if known is not None:
            return known
        if key in open_:
            return None
        open_.add(key)
        steps, patterns = _own(schema), _patterns(schema)
        for part in (*_parts(schema), *self.targets(schema)):
            weight = self._weight(part, open_)
            if weight is None:
                return None
            steps, patterns = steps + weight.steps, patterns + weight.patterns
        open_.discard(key)
        self._weights[key] = total = Weight(steps, patterns)
        return total

    # Work: what one value costs

    def work(self, value: Any) -> int:
        """The steps that checking this very value takes at most; raises `TooMuch`."""
        try:
            return _Work(self).steps(self.root, value)
        except RecursionError:
            raise TooMuch("it is too deep to check") from None


class _Work:
    """One count. A pair that was counted is not counted again, only added again."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._known: dict[tuple[int, int], int] = {}
        self._looks = 0

    def steps(self, schema: Any, value: Any) -> int:
        self._looks += 1
        if self._looks > LOOKS:
            raise TooMuch("it would take too long to check")
        if not isinstance(schema, dict):
            return 1
        key = (id(schema), id(value))
        known = self._known.get(key)
        if known is not None:
            return known
        self._known[key] = 0  # met again while it is open: a circle, which is walked once
        total = _own(schema) + self._here(schema, value) + self._below(schema, value)
        if total > BUDGET:
            raise TooMuch("it would take too long to check")
        self._known[key] = total
        return total

    def _here(self, schema: dict[str, Any], value: Any) -> int:
        """What applies to the value itself."""
        total = 0
        if isinstance(value, str) and "pattern" in schema:
            total += CHARACTER * len(value)
        for part in (*_in_place(schema), *self._outline.targets(schema)):
            total += self.steps(part, value)
        return total

    def _below(self, schema: dict[str, Any], value: Any) -> int:
        if isinstance(value, dict):
            return sum(self._property(schema, name, item) for name, item in value.items())
        if isinstance(value, list | tuple):
            parts = [part for key in _EACH_ITEM if (part := schema.get(key)) is not None]
            return sum(self._item(schema, parts, at, item) for at, item in enumerate(value))
        return 0

    def _property(self, schema: dict[str, Any], name: Any, item: Any) -> int:
        total = 1
        properties = _object(schema, "properties")
        if name in properties:
            total += self.steps(properties[name], item)
        elif "additionalProperties" in schema:
            total += self.steps(schema["additionalProperties"], item)
        for part in _object(schema, "patternProperties").values():
            total += CHARACTER * len(str(name)) + self.steps(part, item)
        if "unevaluatedProperties" in schema:
            total += self.steps(schema["unevaluatedProperties"], item)
        if "propertyNames" in schema:
            total += self.steps(schema["propertyNames"], name)
        return total

    def _item(self, schema: dict[str, Any], parts: list[Any], at: int, item: Any) -> int:
        total = 1 + sum(self.steps(part, item) for part in parts)
        items = schema.get("items")
        placed = items if isinstance(items, list) else schema.get("prefixItems")
        if isinstance(placed, list) and at < len(placed):
            total += self.steps(placed[at], item)
        if items is not None and not isinstance(items, list):
            total += self.steps(items, item)
        return total


def _own(schema: dict[str, Any]) -> int:
    """The steps of one schema without its parts: lists (``enum``, ``required``) count whole."""
    total = 1
    for value in schema.values():
        if isinstance(value, list):
            total += len(value)
        elif isinstance(value, dict):
            total += sum(len(each) for each in value.values() if isinstance(each, list))
    return total


def _patterns(schema: dict[str, Any]) -> int:
    return ("pattern" in schema) + len(_object(schema, "patternProperties"))


def _in_place(schema: dict[str, Any]) -> Iterator[Any]:
    """The parts that apply to the same value."""
    for keyword in _ONE:
        if keyword in schema:
            yield schema[keyword]
    for keyword in _MANY:
        branches = schema.get(keyword)
        if isinstance(branches, list):
            yield from branches
    for keyword in _NAMED:
        yield from _object(schema, keyword).values()


def _parts(schema: dict[str, Any]) -> Iterator[Any]:
    """All parts: those for the same value, and those for what is inside it."""
    yield from _in_place(schema)
    for keyword in ("properties", "patternProperties"):
        yield from _object(schema, keyword).values()
    for keyword in ("additionalProperties", "items", *_EACH_PROPERTY, *_EACH_ITEM):
        part = schema.get(keyword)
        if isinstance(part, dict):
            yield part
    for keyword in ("items", "prefixItems"):
        placed = schema.get(keyword)
        if isinstance(placed, list):
            yield from placed


def _object(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    found = schema.get(keyword)
    return found if isinstance(found, dict) else {}
