"""Compare two versions of a schema: does every value that fitted the old one fit the new one?

There is no general answer. Compared are types, enums, bounds, properties, items, alternatives of
different types and references. Anything else that differs is breaking: it "cannot be compared".
"""

# Does every value that fits one schema fit another? For JSON Schema as a whole the question cannot
# be decided, so the comparison is built to err on one side: equal parts are equal, a few keywords
# are understood, and all else that differs "cannot be compared" and counts as breaking. Each rule
# has to hold for every value, in both directions; a rule that is right for most schemas is none.
#
# Both schemas are brought into a flat form first: references and ``allOf`` merged in where that is
# exact, texts left out, a list of types taken apart into alternatives. Alternatives are compared
# only if no value can fit two of them, because then each has at most one counterpart.

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final

from holdfast._core.text import join_words, label, quote, show_json
from holdfast.schema.report import Effect, Place, SchemaDiff, step
from holdfast.schema.types import (
    BOUNDS,
    is_number,
    json_key,
    merge,
    same,
    type_names,
    type_of,
    types,
    values,
    well_formed,
    wordy,
)
from holdfast.schema.walk import REFERENCES, Budget, Resolver, Schema, SchemaTooComplex, rewrite

DEEPEST: Final = 40
"""Levels of nested schemas that are compared."""
CHAIN: Final = 20
"""References, and schemas inside ``allOf`` or ``anyOf``, that are followed at one place."""
MOST_ALTERNATIVES: Final = 40
TOO_MUCH: Final = "cannot be compared: too large or too deep"


def compare(before: Any, after: Any, budget: Budget, *, returns: bool = False) -> SchemaDiff:
    """Return the differences between two schemas of arguments, or of results (``returns``)."""
    differences = SchemaDiff()
    if same(before, after):
        return differences
    try:
        _Comparison(before, after, budget, returns, differences).whole()
        differences.compare_texts(before, after, budget)
    except (SchemaTooComplex, RecursionError):
        differences.add(TOO_MUCH, "different")
    if not differences.effects:
        differences.add("written differently, to the same effect", "wording")
    return differences


# Documents


class Incomparable(Exception):  # noqa: N818  (an answer rather than an error)
    """A schema has no plain form; the text says why."""


_IDENTIFIERS: Final = frozenset(
    {"$anchor", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "definitions"}
    | {"id", "$vocabulary"}
)
_INTO_DEFS: Final = re.compile(r"#/(\$defs|definitions)/[^/]+")
_DIALECTS: Final = ("2020-12", "2019-09", "draft-07", "draft-06")
"""Dialects that agree on the keywords compared here."""


class Document:
    """One whole schema without its texts, within which its references are resolved."""

    def __init__(self, schema: Any, budget: Budget) -> None:
        self._budget = budget
        self.root = root = self._without_texts(schema)
        self._resolver = Resolver(root)
        self.into_defs: bool = not self._resolver.named and all(
            _INTO_DEFS.fullmatch(reference) for reference in _references(root, budget)
        )
        """Every reference leads to a definition, where no text was left out."""
        keywords = root if isinstance(root, dict) else {}
        self.definitions: Schema = {key: keywords[key] for key in _IDENTIFIERS & keywords.keys()}
        dialect = str(keywords.get("$schema", ""))
        self.dialect: str = "" if any(name in dialect for name in _DIALECTS) else dialect

    def _without_texts(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        self._budget.spend(1 + len(schema))
        keywords = {
            key: value for key, value in schema.items() if key == "default" or not wordy(key)
        }
        return rewrite(keywords, lambda part: self._without_texts(part.schema))

    def flat(self, schema: Any, chain: int = CHAIN) -> Schema:
        """Return the keywords at one place, with references and ``allOf`` merged in."""
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        if not isinstance(schema, dict):
            raise Incomparable("it is not a schema")
        if chain == 0:
            raise SchemaTooComplex
        self._budget.spend(1 + len(schema))
        keywords = _comparable_keywords(schema)
        reference = keywords.pop("$ref", None)
        if reference is None:
            inner = keywords.pop("allOf", ())
            return self._merge([keywords, *(self.flat(part, chain - 1) for part in inner)])
        if keywords.keys() - {"default"}:  # counts in some dialects only
            raise Incomparable("there is more beside its reference")
        target = self._resolver.target(schema, reference)
        if target is None:
            raise Incomparable(f"it refers to {quote(reference)}")
        self._resolver.adopt(target, schema)
        return {**self.flat(target, chain - 1), **keywords}

    def _merge(self, schemas: list[Schema]) -> Schema:
        if len(schemas) == 1:
            return schemas[0]
        self._budget.spend(sum(map(len, schemas)))
        merged = merge(schemas)
        if merged.conflicts:
            raise Incomparable(f"{label(merged.conflicts[0])} applies twice")
        return merged.schema

    def alternatives(self, flat: Schema, chain: int = CHAIN) -> list[Schema]:
        """Return the ways to fit a schema; none at all: nothing fits."""
        keyword = "anyOf" if "anyOf" in flat else "oneOf"
        if keyword not in flat:
            return [] if flat.get("not") in ({}, True) else [flat]
        if chain == 0:
            raise SchemaTooComplex
        outer = {key: value for key, value in flat.items() if key not in (keyword, "default")}
        options = self._options(outer, flat[keyword], chain - 1)
        if keyword == "oneOf" and not all(_apart(*pair) for pair in combinations(options, 2)):
            raise Incomparable("its alternatives exclude each other")
        return options

    def _options(self, outer: Schema, branches: list[Any], chain: int) -> list[Schema]:
        """Return the ways to fit any of the branches, each together with what is around them."""
        options: list[Schema] = []
        for branch in branches:
            merged = self._merge([outer, self.flat(branch, chain)])
            options += self.alternatives(merged, chain)
            if len(options) > MOST_ALTERNATIVES:
                raise Incomparable(f"it has more than {MOST_ALTERNATIVES} alternatives")
        return options

    def default(self, schema: Any) -> Schema:
        """Return the default of a property under its keyword; empty if it has none."""
        try:
            flat = self.flat(schema)
        except Incomparable:
            return {}
        return {"default": flat["default"]} if "default" in flat else {}


def _references(root: Any, budget: Budget) -> Iterator[str]:
    """Return every reference in a JSON value."""
    waiting = [root]
    while waiting:
        part = waiting.pop()
        budget.spend()
        if isinstance(part, dict):
            yield from (str(part[key]) for key in REFERENCES if key in part)
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _apart(first: Schema, second: Schema) -> bool:
    """Return whether no value can fit both."""
    mine, theirs = values(first), values(second)
    if mine is not None and theirs is not None:
        return len(_outside(mine, second)) == len(mine)
    kinds = types(first) if mine is None else {type_of(value) for value in mine}
    return not kinds & (types(second) if theirs is None else {type_of(value) for value in theirs})


def _outside(listed: list[Any], flat: Schema) -> list[Any]:
    """Return the values of a list that a schema does not allow by its own list or types."""
    others = values(flat)
    if others is None:
        kinds = types(flat)
        return [choice for choice in listed if type_of(choice) not in kinds]
    marks = {json_key(choice) for choice in others}
    return [choice for choice in listed if json_key(choice) not in marks]


# The comparison


_DEMANDS: Final[dict[str, str]] = {
    **BOUNDS,
    "pattern": "has to match the pattern {}",
    "format": "has to have the format {}",
    "uniqueItems": "has to have items that differ from each other",
}
_COMPARED: Final = frozenset(
    {*_DEMANDS, "additionalProperties", "const", "default", "enum", "items", "properties"}
    | {"required", "type"}
)
_DEPENDS_ON_ALL: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})


class _Comparison:
    """One comparison of two documents."""

    def __init__(
        self, before: Any, after: Any, budget: Budget, returns: bool, differences: SchemaDiff
    ) -> None:
        self._before = old = Document(before, budget)
        self._after = new = Document(after, budget)
        self._budget = budget
        self._returns = returns
        self._found = differences
        self._open: set[tuple[int, int]] = set()
        """The pairs under comparison: met again inside itself, a pair adds nothing new."""
        self._shared: bool = (
            old.into_defs and new.into_defs and same(old.definitions, new.definitions, budget)
        )
        """References lead to the same definitions on both sides."""

    def whole(self) -> None:
        """Compare the whole documents."""
        if self._before.dialect != self._after.dialect:
            self._found.add("cannot be compared: $schema", "different")
        self._pair(self._before.root, self._after.root, ())

    def _equal(self, first: Any, second: Any) -> bool:
        """Return whether two parts are written the same, and mean the same."""
        if not same(first, second, self._budget):
            return False
        return self._shared or not any(_references(first, self._budget))

    def _pair(self, before: Any, after: Any, place: Place) -> None:
        """Compare two schemas at the same place."""
        key = (id(before), id(after))
        self._budget.spend()
        if key in self._open or self._equal(before, after):
            return
        if len(self._open) >= DEEPEST:
            raise SchemaTooComplex
        self._open.add(key)
        try:
            old = self._before.alternatives(self._before.flat(before))
            new = self._after.alternatives(self._after.flat(after))
            if len(old) == len(new) == 1:
                self._one(old[0], new[0], place)
            else:
                self._several(old, new, place)
        except Incomparable as why:
            self._found.add(f"cannot be compared: {why}", "different", place)
        finally:
            self._open.remove(key)

    def _several(self, before: list[Schema], after: list[Schema], place: Place) -> None:
        """Compare alternatives; those that are the only ones of their type belong together."""
        old, new = _by_type(before), _by_type(after)
        lost: list[Schema] = []
        gained: list[Schema] = []
        for kind in sorted({*old, *new}):
            mine, theirs = old.get(kind, []), new.get(kind, [])
            if len(mine) == len(theirs) == 1:
                self._one(mine[0], theirs[0], place)
            else:
                lost += [
                    option for option in mine if not any(self._equal(option, it) for it in theirs)
                ]
                gained += [
                    option for option in theirs if not any(self._equal(it, option) for it in mine)
                ]
        if lost and ({} in before or not after):
            text = f"changed from {_summaries(before)} to {_summaries(after)}"
            self._found.add(text, "narrower", place)
        elif lost and {} not in after:
            self._found.add(f"no longer allows {_summaries(lost)}", "narrower", place)
        if gained and {} not in before:
            self._found.add(f"now allows {_summaries(gained)}", "wider", place)

    def _one(self, before: Schema, after: Schema, place: Place) -> None:
        """Compare two schemas without alternatives."""
        if not self._values(before, after, place):
            return
        self._bounds(before, after, place)
        self._properties(before, after, place)
        self._pair(before.get("items", True), after.get("items", True), (*place, "[]"))
        for key in sorted((before.keys() | after.keys()) - _COMPARED):
            # Every other keyword has to be the same, and to mean the same, on both sides.
            equal = key in before and key in after and self._equal(before[key], after[key])
            if not equal or key in _DEPENDS_ON_ALL:
                self._found.add(f"cannot be compared: {label(key)}", "different", place)

    def _values(self, before: Schema, after: Schema, place: Place) -> bool:
        """Compare types and enums; return False if nothing is left that both would allow."""
        old, new = values(before), values(after)
        lost: Any
        gained: Any
        if old is not None and new is not None:
            lost, gained = _outside(old, after), _outside(new, before)
            self._enums(lost, gained, place)
            return len(lost) < len(old)
        if old is not None:
            lost, gained = _outside(old, after), True
            common = len(lost) < len(old)
        elif new is not None:
            lost, gained = True, _outside(new, before)
            common = len(gained) < len(new)
        else:
            kinds, now = types(before), types(after)
            lost, gained, common = kinds - now, now - kinds, bool(kinds & now)
        if lost or gained:
            effect: Effect = "wider" if not lost else "different" if gained else "narrower"
            text = f"changed from {_summaries([before])} to {_summaries([after])}"
            self._found.add(text, effect, place)
        return common

    def _enums(self, lost: list[Any], gained: list[Any], place: Place) -> None:
        if lost:
            self._found.add(f"no longer allows {_listed(lost)}", "narrower", place)
        if gained:
            self._found.add(f"now allows {_listed(gained)}", "wider", place)

    def _bounds(self, before: Schema, after: Schema, place: Place) -> None:
        """Compare lengths, ranges, patterns and formats."""
        for key, text in _DEMANDS.items():
            # `uniqueItems: false` says nothing.
            old, new = (
                None if flat.get(key) is False else flat.get(key) for flat in (before, after)
            )
            if old == new:
                continue
            effect: Effect = "different"
            change = f"now {text.format(show_json(new))}, was {show_json(old)}"
            if old is None:
                effect, change = "narrower", f"now {text.format(show_json(new))}"
            elif new is None:
                effect, change = "wider", f"no longer {text.format(show_json(old))}"
            elif key not in ("format", "multipleOf", "pattern"):
                effect = "narrower" if (new > old) == ("min" in key.lower()) else "wider"
            self._found.add(change, effect, place)

    def _properties(self, before: Schema, after: Schema, place: Place) -> None:
        old, new = before.get("properties", {}), after.get("properties", {})
        needed, needs = self._demanded(self._before, before), self._demanded(self._after, after)
        others = before.get("additionalProperties", True)
        others_now = after.get("additionalProperties", True)
        for name in sorted({*old, *new, *needed, *needs}):
            self._budget.spend()
            at = (*place, step(name))
            old_part, new_part = old.get(name, True), new.get(name, True)
            if name not in old and name not in needed:
                self._new_property(others, new_part, at, required=name in needs)
            elif name not in new and name not in needs:
                self._found.add("removed", "removed", at)
            else:
                if name in needed - needs:
                    self._found.add("no longer required", "wider", at)
                elif name in needs - needed:
                    self._found.add("now required", "narrower", at)
                self._default(old_part, new_part, at)
                self._pair(old_part, new_part, at)
        self._other_names(others, others_now, place)

    def _new_property(self, others: Any, part: Any, place: Place, *, required: bool) -> None:
        """Add a property that only ``additionalProperties`` (``others``) allowed before."""
        noun = "field" if self._returns else "parameter"
        if required:
            self._found.add(f"new required {noun}", "narrower", place)
        else:
            self._found.add(f"new optional {noun}", "added", place)
        if isinstance(others, dict) and others:
            self._pair(others, part, place)

    def _other_names(self, before: Any, after: Any, place: Place) -> None:
        if before in (True, {}) and after is False:
            self._found.add("other names are no longer allowed", "narrower", place)
        elif before is False and after in (True, {}):
            self._found.add("other names are now allowed", "added", place)
        else:
            self._pair(before, after, (*place, "*"))

    def _demanded(self, document: Document, flat: Schema) -> set[str]:
        """Return the required names. A parameter with a default may be left out nevertheless."""
        needed, by_name = {*flat.get("required", ())}, flat.get("properties", {})
        if self._returns:
            return needed
        return {name for name in needed if not document.default(by_name.get(name, True))}

    def _default(self, before: Any, after: Any, place: Place) -> None:
        """Compare defaults: callers that left a parameter out relied on its default."""
        old, new = self._before.default(before), self._after.default(after)
        if self._returns or not old:
            self._found.compare_text("default", old, new, place)
        elif not same(old, new, self._budget):
            now = f"now means {show_json(new['default'])}, not" if new else "no longer means"
            text = f"left out, it {now} {show_json(old['default'])}"
            self._found.add(text, "different", place)


def _by_type(alternatives: list[Schema]) -> dict[str, list[Schema]]:
    """Return alternatives by their type; an integer is a number, and choices are one list."""
    by_type: dict[str, list[Schema]] = {}
    choices: list[Any] = []
    for flat in alternatives:
        listed = values(flat)
        if listed is not None and flat.keys() <= {"const", "default", "enum", "type"}:
            choices += listed
        elif "type" not in flat:
            by_type.setdefault("any type", []).append(flat)
        else:
            for name in type_names(types(flat)):
                kind = "number" if name == "integer" else name
                by_type.setdefault(kind, []).append({**flat, "type": name})
    if choices:
        names = {"number" if is_number(choice) else type_of(choice) for choice in choices}
        by_type.setdefault(" or ".join(sorted(names)), []).append({"enum": choices})
    return by_type


def _listed(choices: list[Any]) -> str:
    return join_words([show_json(value, 60) for value in choices]) or "nothing"


def _summaries(alternatives: list[Schema]) -> str:
    """Return types, or choices, as text."""
    words = []
    for flat in alternatives:
        listed, names = values(flat), type_names(types(flat))
        text = "any type" if len(names) == 6 else " or ".join(names)
        if listed is not None:
            text = _listed(listed)
        elif by_name := flat.get("properties"):
            text = f"{text} of {join_words([*map(label, by_name)])}"
        words.append(text)
    return join_words(words) or "nothing"


def _comparable_keywords(schema: Schema) -> Schema:
    keywords = {key: value for key, value in schema.items() if key not in _IDENTIFIERS}
    for key in sorted(keywords):
        if not well_formed(key, keywords[key]):
            raise Incomparable(f"{label(key)} is malformed")
    if isinstance(keywords.get("items"), list):
        raise Incomparable("tuples are written in another way since 2020-12")
    return keywords
