"""Two versions of a schema compared: what fitted the old one, does it fit the new one?

JSON schema has no general answer. This one is right where schemas are plain: types, choices,
bounds, properties, items, alternatives that can be told apart, references within the schema.
Everywhere else it errs on one side: what cannot be told to be safe is called different.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

from holdfast._core.text import difference, join_words, label, quote, show_json
from holdfast.schema import constraints
from holdfast.schema.budget import Budget, TooMuch
from holdfast.schema.constraints import ARGUMENTS, RESULTS, Words
from holdfast.schema.diff_unions import disjoint, match, summary
from holdfast.schema.normal import Document
from holdfast.schema.report import Findings, Report, named
from holdfast.schema.types import Flat, same, wordy
from holdfast.schema.walk import REFERENCES

DEEPEST: Final = 40
"""Levels of schemas inside schemas that are compared."""
TOO_MUCH: Final = "too large or too deep to compare, so it cannot be told to be safe"

OVERLAP: Final = "its alternatives exclude each other, so this cannot be told to be safe"

_NOTHING: Final = Report()

_DIALECTS: Final = ("2020-12", "2019-09", "draft-07", "draft-06")
"""Dialects that do not differ in what is compared here."""


def compare(before: Any, after: Any, budget: Budget, *, returns: bool = False) -> Report:
    """What differs between two schemas of arguments, or of results (``returns``)."""
    if same(before, after):
        return _NOTHING
    found = Findings()
    try:
        old, new = Document(before, budget), Document(after, budget)
        found.include(_Comparison(old, new, RESULTS if returns else ARGUMENTS, budget).whole())
    except (TooMuch, RecursionError):
        found.add(TOO_MUCH, "different")
    report = found.report()
    if not report.effects:
        found.add("written differently, to the same effect", "wording")
    return found.report()


class _Comparison:
    """One comparison of two whole schemas."""

    def __init__(self, before: Document, after: Document, words: Words, budget: Budget) -> None:
        self._before = before
        self._after = after
        self._words = words
        self._budget = budget
        self._known: dict[tuple[int, int], tuple[Report, Any, Any]] = {}
        self._depth = 0
        self._plain = not (before.refers or after.refers)

    def whole(self) -> Report:
        found = Findings()
        old, new = _dialect(self._before.root), _dialect(self._after.root)
        if old != new:
            found.add(f"$schema changed from {old} to {new}", "different")
        found.include(self.pair(self._before.root, self._after.root))
        return found.report()

    def pair(self, before: Any, after: Any) -> Report:
        """Two schemas at the same place. Met again inside itself, a pair adds nothing new."""
        key = (id(before), id(after))
        known = self._known.get(key)
        if known is not None:
            return known[0]
        self._budget.spend()
        if self._plain and same(before, after, self._budget):
            return _NOTHING
        if self._depth >= DEEPEST:
            raise TooMuch
        # Held with their report: the id of a schema that is gone could become another's.
        self._known[key] = (_NOTHING, before, after)
        self._depth += 1
        report = self._pair(self._before.flat(before), self._after.flat(after))
        self._depth -= 1
        self._known[key] = (report, before, after)
        return report

    def _pair(self, before: Flat, after: Flat) -> Report:
        found = Findings()
        old, exclusion = self._before.alternatives(before)
        new, now = self._after.alternatives(after)
        if len(old) == len(new) == 1:
            self._one(old[0], new[0], found)
        else:
            alike = self._several(old, new, found) and exclusion == now != "some"
            overlap = any(
                excluded != "none" and not disjoint(branches)
                for branches, excluded in ((old, exclusion), (new, now))
            )
            if overlap and not alike:
                found.add(OVERLAP, "different")
        _compare_wording(before, after, found)
        return found.report()

    # Alternatives

    def _several(self, old: list[Flat], new: list[Flat], found: Findings) -> bool:
        """Compare alternatives; True if each has its like on the other side."""
        pairs, lost, gained = match(old, new, lambda b, a: self._single(b, a).alike)
        for before, after in pairs:
            found.include(self._single(before, after))
            _compare_wording(before, after, found)
        alike = not lost and not gained and found.report().alike
        self._back._depth = self._depth
        lost = [one for one in lost if not self._covered(one, new)]
        gained = [one for one in gained if not self._back._covered(one, old)]
        if lost and not new:
            found.add("nothing is accepted any more", "narrower")
        elif any("type" not in one for one in lost) and len(old) == 1:
            found.add(f"{self._words.only} {_summaries(new)}", "narrower")
        elif lost:
            found.add(f"{self._words.lost} {_summaries(lost)}", "narrower")
        if gained:
            found.add(f"{self._words.gained} {_summaries(gained)}", "wider")
        return alike

    def _covered(self, one: Flat, others: list[Flat]) -> bool:
        """Whether what fits one alternative fits another of the other side as a whole."""
        return any(self._single(one, other).harmless for other in others)

    def _single(self, before: Flat, after: Flat) -> Report:
        self._budget.spend()
        if self._depth >= DEEPEST:
            raise TooMuch
        found = Findings()
        self._one(before, after, found)
        return found.report()

    @cached_property
    def _back(self) -> _Comparison:
        """The same the other way round."""
        return _Comparison(self._after, self._before, self._words, self._budget)

    # One alternative

    def _one(self, before: Flat, after: Flat, found: Findings) -> None:
        if constraints.compare(before, after, self._words, found):
            self._references(before, after, found)
            self._properties(before, after, found)
            self._other_properties(before, after, found)
            self._items(before, after, found)
            self._rest(before, after, found)

    def _references(self, before: Flat, after: Flat, found: Findings) -> None:
        for key in REFERENCES:
            old, new = before.get(key), after.get(key)
            if old is None and new is None:
                continue
            if not self._elsewhere(key, old, new):
                shown = show_json(new if isinstance(new, str) else old)
                found.add(f"refers to {shown}, so it cannot be told to be safe", "different")

    def _elsewhere(self, key: str, old: Any, new: Any) -> bool:
        """Whether both refer to the same thing that is not in either of the schemas."""
        if key != "$ref" or not isinstance(old, str) or old != new:
            return False
        inside = self._before.named or self._after.named
        return not inside and (not old.startswith("#") or old.startswith("#/"))

    def _properties(self, before: Flat, after: Flat, found: Findings) -> None:
        old, new = before.get("properties", {}), after.get("properties", {})
        needed, needs = set(before.get("required", ())), set(after.get("required", ()))
        for name in sorted({*old, *new, *needed, *needs}):
            self._budget.spend()
            step = named(name)
            if name not in old and name not in needed:
                self._new_property(name, before, after, found)
            elif name not in new and name not in needs:
                found.add("removed", "removed", step)
            else:
                if (name in needed) != (name in needs):
                    _compare_need(name in needs, self._words, found, step)
                one, other = old.get(name, True), new.get(name, True)
                self._default(one, other, name in needed, found, step)
                found.include(self.pair(one, other), step)

    def _new_property(self, name: str, before: Flat, after: Flat, found: Findings) -> None:
        step, needed = named(name), name in after.get("required", ())
        noun = "field" if self._words is RESULTS else "parameter"
        if needed:
            found.add(f"new {'' if noun == 'field' else 'required '}{noun}", "narrower", step)
        else:
            found.add(f"new optional {noun}", "added", step)
        others = before.get("additionalProperties")
        if isinstance(others, dict) and others:
            report = self.pair(others, after.get("properties", {}).get(name, True))
            if not report.alike:
                found.include(report, step)

    def _default(self, before: Any, after: Any, needed: bool, found: Findings, step: str) -> None:
        """Whoever left a parameter out meant what stands for it."""
        old, new = self._before.flat(before), self._after.flat(after)
        if needed or self._words is RESULTS or "default" not in old:
            compare_texts("default", old, new, found, step)
        elif "default" not in new:
            text = f"left out, it no longer means {show_json(old['default'])}"
            found.add(text, "different", step)
        elif not same(old["default"], new["default"], self._budget):
            now, was = show_json(new["default"]), show_json(old["default"])
            found.add(f"left out, it now means {now}, not {was}", "different", step)

    def _other_properties(self, before: Flat, after: Flat, found: Findings) -> None:
        old, new = before.get("additionalProperties", True), after.get("additionalProperties", True)
        if _anything(old) and new is False:
            found.add("other names are no longer allowed", "narrower")
        elif old is False and _anything(new):
            found.add("other names are now allowed", "added")
        elif not (_anything(old) and _anything(new)):
            found.include(self.pair(old, new), "*")

    def _items(self, before: Flat, after: Flat, found: Findings) -> None:
        (old, old_rest), (new, new_rest) = _tuple(before), _tuple(after)
        for at in range(max(len(old), len(new))):
            one = old[at] if at < len(old) else old_rest
            other = new[at] if at < len(new) else new_rest
            found.include(self.pair(one, other), f"[{at}]")
        if not (_anything(old_rest) and _anything(new_rest)):
            found.include(self.pair(old_rest, new_rest), "[]")

    # Everything else

    def _rest(self, before: Flat, after: Flat, found: Findings) -> None:
        for key in sorted((before.keys() | after.keys()) - _HANDLED):
            if wordy(key):
                continue
            if key not in before or key not in after:
                _compare_presence(key, key not in before, found)
                continue
            old, new = before[key], after[key]
            if key in _PARTS:
                self._parts(key, _PARTS[key](old), _PARTS[key](new), found)
            elif not same(old, new, self._budget):
                found.add(f"{label(key)} changed", "different")

    def _parts(self, key: str, old: dict[str, Any], new: dict[str, Any], found: Findings) -> None:
        """Schemas under a keyword, held against those of the same name or number."""
        if old.keys() != new.keys():
            found.add(f"{key} changed", "different")
            return
        for name in sorted(old):
            report = self.pair(old[name], new[name])
            if key in _MONOTONE:
                found.include(report)
            elif not report.alike:
                found.add(f"{key} changed", "different")


def _dialect(root: Any) -> str:
    named = root.get("$schema") if isinstance(root, dict) else None
    if not isinstance(named, str) or any(name in named for name in _DIALECTS):
        return "a usual one"
    return quote(named)


def _anything(schema: Any) -> bool:
    return schema is True or (isinstance(schema, dict) and all(wordy(key) for key in schema))


def _summaries(branches: list[Flat]) -> str:
    return join_words([summary(one) for one in branches])


def _compare_need(needed: bool, words: Words, found: Findings, step: str) -> None:
    if words is RESULTS:
        text = "now always there" if needed else "may now be missing"
    else:
        text = "now required" if needed else "no longer required"
    found.add(text, "narrower" if needed else "wider", step)


def _compare_wording(before: Flat, after: Flat, found: Findings) -> None:
    """A default is more than wording, and told where it counts."""
    keys = {key for key in before.keys() | after.keys() if wordy(key)} - {"default"}
    for key in sorted(keys):
        compare_texts(key, before, after, found)


def compare_texts(
    key: str, before: Mapping[str, Any], after: Mapping[str, Any], found: Findings, *place: str
) -> None:
    """What became of a text, or of whatever else stands under a key that only tells."""
    old, new, shown = before.get(key), after.get(key), label(key)
    if (key in before) == (key in after) and same(old, new):
        return
    if isinstance(old, str) and isinstance(new, str):
        found.add(f"{shown} changed: {difference(old, new)}", "wording", *place)
    elif key not in before:
        found.add(f"new {shown}: {show_json(new)}", "wording", *place)
    elif key not in after:
        found.add(f"{shown} removed, was {show_json(old)}", "wording", *place)
    else:
        text = f"{shown} changed: {show_json(old)} → {show_json(new)}"
        found.add(text, "wording", *place)


def _compare_presence(key: str, new: bool, found: Findings) -> None:
    text = f"{'new' if new else 'removed'} condition: {label(key)}"
    if key in _ASSERTS:
        found.add(text, "narrower" if new else "wider")
    else:
        found.add(text, "different")


def _tuple(flat: Flat) -> tuple[list[Any], Any]:
    """The schemas of the first items, and that of all others, in the old and the new notation."""
    items = flat.get("items", True)
    if isinstance(items, list):
        return items, flat.get("additionalItems", True)
    return flat.get("prefixItems", []), items


def _whole(value: Any) -> dict[str, Any]:
    return {"": value}


def _numbered(value: Any) -> dict[str, Any]:
    return {f"{at:05}": part for at, part in enumerate(value)} if isinstance(value, list) else {}


def _by_name(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"": value}


_PARTS: Final[dict[str, Callable[[Any], dict[str, Any]]]] = {
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _numbered),
    **dict.fromkeys(("dependentSchemas", "patternProperties"), _by_name),
    **dict.fromkeys(
        ("contains", "else", "if", "not", "propertyNames", "then"),
        _whole,
    ),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), _whole),
}
"""Keywords with schemas in them: how to take these out."""

_MONOTONE: Final = frozenset(_PARTS) - {"contains", "if", "not", "oneOf"}
"""If what is inside allows more, so does the whole."""

_ASSERTS: Final = frozenset(
    {
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "contains"),
        *("propertyNames", "dependentSchemas", "dependentRequired", "dependencies"),
    }
)
"""Keywords that can only take away from what fits."""

_HANDLED: Final = constraints.HANDLED | {
    *REFERENCES,
    "additionalItems",
    "additionalProperties",
    "items",
    "prefixItems",
    "properties",
    "required",
}
