"""Compare two versions of a schema: does every value that fitted the old one fit the new one?

There is no general answer. Compared are types, enums, bounds, properties, items, alternatives of
different types and references. Anything else that differs is breaking: it "cannot be compared".
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from holdfast._core.text import join_words, label, quote, show_json
from holdfast.schema.normal import Document, Incomparable, references
from holdfast.schema.report import (
    ARGUMENTS,
    BOUNDS,
    RESULTS,
    SchemaDiff,
    Words,
    compare_bounds,
    compare_text,
    compare_texts,
    compare_values,
    listed_values,
    named,
    type_names,
)
from holdfast.schema.types import Flat, by_type, named_types, same, types, values, wordy
from holdfast.schema.walk import Budget, SchemaTooComplex, parts, tuple_items

DEEPEST: Final = 40
"""Levels of nested schemas that are compared."""
TOO_MUCH: Final = "cannot be compared: too large or too deep"

_DIALECTS: Final = ("2020-12", "2019-09", "draft-07", "draft-06")
"""Dialects that agree on the keywords compared here."""


def compare(before: Any, after: Any, budget: Budget, *, returns: bool = False) -> SchemaDiff:
    """Return the differences between two schemas of arguments, or of results (``returns``)."""
    found = SchemaDiff()
    if same(before, after):
        return found
    try:
        old, new = Document(before, budget), Document(after, budget)
        found = _Comparison(old, new, RESULTS if returns else ARGUMENTS, budget).whole()
    except (SchemaTooComplex, RecursionError):
        found.add(TOO_MUCH, "different")
    if not found.effects:
        found.add("written differently, to the same effect", "wording")
    return found


class _Comparison:
    """One comparison of two whole schemas."""

    def __init__(self, before: Document, after: Document, words: Words, budget: Budget) -> None:
        self._before = before
        self._after = after
        self._words = words
        self._budget = budget
        self._open: set[tuple[int, int]] = set()
        """The pairs under comparison: met again inside itself, a pair adds nothing new."""

    @cached_property
    def _shared(self) -> bool:
        """True if references lead to the same definitions on both sides."""
        local = self._before.into_defs and self._after.into_defs
        return local and same(self._before.definitions, self._after.definitions, self._budget)

    @cached_property
    def _back(self) -> _Comparison:
        """The same the other way round."""
        return _Comparison(self._after, self._before, self._words, self._budget)

    def whole(self) -> SchemaDiff:
        """Compare the whole schemas."""
        found = SchemaDiff()
        before, after = self._before, self._after
        if _dialect(before) != _dialect(after):
            text = f"$schema changed from {_dialect(before)} to {_dialect(after)}"
            found.add(f"cannot be compared: {text}", "different")
        meanings = before.meaning(before.root), after.meaning(after.root)
        if before.plain and after.plain and same(*meanings, self._budget):
            self._texts(before.root, after.root, found)
        else:
            found.include(self.pair(before.root, after.root))
        return found

    def pair(self, before: Any, after: Any) -> SchemaDiff:
        """Compare two schemas at the same place."""
        found = SchemaDiff()
        key = (id(before), id(after))
        if key in self._open:
            return found
        self._budget.spend()
        if len(self._open) >= DEEPEST:
            raise SchemaTooComplex
        meanings = self._before.meaning(before), self._after.meaning(after)
        if self._shared and same(*meanings, self._budget):
            self._texts(before, after, found)
            return found
        self._open.add(key)
        try:
            before, after = self._before.flat(before), self._after.flat(after)
            compare_texts(before, after, found)
            old, new = self._before.alternatives(before), self._after.alternatives(after)
            if len(old) == len(new) == 1:
                self._one(old[0], new[0], found)
            else:
                self._several(
                    [one for each in old for one in by_type(each)],
                    [one for each in new for one in by_type(each)],
                    found,
                )
        except Incomparable as why:
            found.add(f"cannot be compared: {why}", "different")
        finally:
            self._open.remove(key)
        return found

    def _texts(self, before: Any, after: Any, found: SchemaDiff) -> None:
        """Add the texts that differ in two schemas of the same meaning."""
        if not isinstance(before, dict) or not isinstance(after, dict):
            return
        compare_texts(before, after, found)
        others = {part.steps: part.schema for part in parts(after)}
        for part in sorted(parts(before), key=lambda part: str(part.steps)):
            inner = SchemaDiff()
            self._texts(part.schema, others.get(part.steps), inner)
            if part.keyword == "properties":
                place: tuple[str, ...] = (named(str(part.key)),)
            else:
                place = ("[]",) if part.place == "item" else ()
            found.include(inner, *place)

    # Alternatives

    def _several(self, old: list[Flat], new: list[Flat], found: SchemaDiff) -> None:
        lost, gained = [*old], [*new]
        for before in old:
            # Alternatives that are the only ones of their kind on both sides belong together.
            mine = [one for one in old if _kind(one) == _kind(before)]
            theirs = [one for one in new if _kind(one) == _kind(before)]
            if len(mine) == len(theirs) == 1:
                self._one(before, theirs[0], found)
                lost = [one for one in lost if one is not before]
                gained = [one for one in gained if one is not theirs[0]]
        lost = [one for one in lost if not self._covered(one, new)]
        gained = [one for one in gained if not self._back._covered(one, old)]
        if lost and not new:
            found.add("nothing is accepted any more", "narrower")
        elif lost and len(old) == 1:
            found.add(f"{self._words.only} {_summaries(new)}", "narrower")
        elif lost:
            found.add(f"{self._words.lost} {_summaries(lost)}", "narrower")
        if gained:
            found.add(f"{self._words.gained} {_summaries(gained)}", "wider")

    def _covered(self, one: Flat, others: list[Flat]) -> bool:
        """Return whether what fits one alternative certainly fits another."""
        for other in others:
            self._budget.spend()
            found = SchemaDiff()
            with suppress(Incomparable):
                self._one(one, other, found)
                if found.effects <= {"wider", "wording"}:
                    return True
        return False

    # One alternative

    def _one(self, before: Flat, after: Flat, found: SchemaDiff) -> None:
        if compare_values(before, after, self._words, found):
            compare_bounds(before, after, found)
            self._properties(before, after, found)
            self._items(before, after, found)
            self._rest(before, after, found)

    def _properties(self, before: Flat, after: Flat, found: SchemaDiff) -> None:
        old, new = before.get("properties", {}), after.get("properties", {})
        needed, needs = set(before.get("required", ())), set(after.get("required", ()))
        for name in sorted({*old, *new, *needed, *needs}):
            self._budget.spend()
            step, given = named(name), False
            with suppress(Incomparable):
                given = "default" in self._after.flat(new.get(name))
            if name not in old and name not in needed:
                self._new_property(name, before, after, given, found)
            elif name not in new and name not in needs:
                found.add("removed", "removed", step)
            else:
                if name in needed - needs:
                    found.add(self._words.optional, "wider", step)
                elif name in needs - needed:
                    self._add_need(self._words.needed, given, found, step)
                one, other = old.get(name, True), new.get(name, True)
                self._default(one, other, name in needed, found, step)
                found.include(self.pair(one, other), step)
        others, now = (
            before.get("additionalProperties", True),
            after.get("additionalProperties", True),
        )
        if _anything(others) and now is False:
            found.add("other names are no longer allowed", "narrower")
        elif others is False and _anything(now):
            found.add("other names are now allowed", "added")
        elif not (_anything(others) and _anything(now)):
            found.include(self.pair(others, now), "*")

    def _new_property(
        self, name: str, before: Flat, after: Flat, given: bool, found: SchemaDiff
    ) -> None:
        step, noun = named(name), self._words.noun
        if name not in after.get("required", ()):
            found.add(f"new optional {noun}", "added", step)
        elif self._words is RESULTS:
            found.add(f"new {noun}", "narrower", step)
        else:
            self._add_need(f"new required {noun}", given, found, step)
        others = before.get("additionalProperties")
        if others not in (None, True, False, {}):
            diff = self.pair(others, after.get("properties", {}).get(name, True))
            if diff.effects - {"wording"}:
                found.include(diff, step)

    def _add_need(self, text: str, given: bool, found: SchemaDiff, step: str) -> None:
        """A required parameter with a default may still be left out (`schema.annotations`)."""
        if given and self._words is ARGUMENTS:
            found.add(f"{text}, with a default", "added", step)
        else:
            found.add(text, "narrower", step)

    def _default(self, before: Any, after: Any, needed: bool, found: SchemaDiff, step: str) -> None:
        """Compare defaults: callers that left a parameter out relied on its default."""
        try:
            old, new = self._before.flat(before), self._after.flat(after)
        except Incomparable:
            return
        if needed or self._words is RESULTS or "default" not in old:
            compare_text("default", old, new, found, step)
        elif "default" not in new:
            text = f"left out, it no longer means {show_json(old['default'])}"
            found.add(text, "different", step)
        elif not same(old["default"], new["default"], self._budget):
            now, was = show_json(new["default"]), show_json(old["default"])
            found.add(f"left out, it now means {now}, not {was}", "different", step)

    def _items(self, before: Flat, after: Flat, found: SchemaDiff) -> None:
        (old, old_rest), (new, new_rest) = _tuple(before), _tuple(after)
        for at in range(max(len(old), len(new))):
            one = old[at] if at < len(old) else old_rest
            other = new[at] if at < len(new) else new_rest
            found.include(self.pair(one, other), f"[{at}]")
        if not (_anything(old_rest) and _anything(new_rest)):
            found.include(self.pair(old_rest, new_rest), "[]")

    def _rest(self, before: Flat, after: Flat, found: SchemaDiff) -> None:
        """Every other keyword has to be the same, and to mean the same, on both sides."""
        for key in sorted((before.keys() | after.keys()) - _COMPARED):
            if wordy(key):
                continue
            old, new = before.get(key), after.get(key)
            equal = key in before and key in after and same(old, new, self._budget)
            refers = not self._shared and any(references(old, self._budget))
            if not equal or refers or key in _DEPENDS_ON_ALL:
                found.add(f"cannot be compared: {label(key)}", "different")


_DEPENDS_ON_ALL: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_COMPARED: Final = frozenset(
    {*BOUNDS, "additionalItems", "additionalProperties", "const", "enum", "items"}
    | {"prefixItems", "properties", "required", "type", "uniqueItems"}
)


def _dialect(document: Document) -> str:
    usual = not document.dialect or any(name in document.dialect for name in _DIALECTS)
    return "a usual one" if usual else quote(document.dialect)


def _anything(schema: Any) -> bool:
    return schema is True or (isinstance(schema, dict) and all(wordy(key) for key in schema))


def _tuple(flat: Flat) -> tuple[list[Any], Any]:
    first, rest = tuple_items(flat)
    return first, True if rest is None else rest


def _kind(flat: Flat) -> str:
    return "values" if values(flat) is not None else " or ".join(named_types(types(flat)))


def _summaries(branches: list[Flat]) -> str:
    words = []
    for flat in branches:
        listed, title = values(flat), flat.get("title")
        named_so = f" {quote(title, 60)}" if isinstance(title, str) else ""
        words.append(
            f"{type_names(types(flat))}{named_so}" if listed is None else listed_values(listed)
        )
    return join_words(words)
