"""Schemas in one form for comparison: references followed, alternatives as a list.

Schemas come from servers and may be any JSON. Whatever has no such form raises `Incomparable`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final

from holdfast._core.text import label, quote
from holdfast.schema.types import (
    Flat,
    by_type,
    mark,
    merge,
    type_of,
    types,
    values,
    well_formed,
    wordy,
)
from holdfast.schema.walk import REFERENCES, Budget, Resolver, SchemaTooComplex, rewrite

CHAIN: Final = 20
"""References, and schemas inside ``allOf`` or ``anyOf``, that are followed at one place."""
MOST_ALTERNATIVES: Final = 40

_IDENTIFIERS: Final = frozenset(
    {"$anchor", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "definitions"}
    | {"id", "$vocabulary"}
)
_INTO_DEFS: Final = re.compile(r"#/(\$defs|definitions)/[^/]+")
_PLAIN: Final = re.compile(
    r"#|#/(\$defs|definitions)/[^/]+|#((/properties/[^/]+)|/items)+|https?://[^#]*"
)


class Incomparable(Exception):  # noqa: N818  (an answer rather than an error)
    """A schema has no plain form; the text says why."""


class Document:
    """One whole schema, within which its references are resolved."""

    def __init__(self, root: Any, budget: Budget) -> None:
        self.root = root
        self._budget = budget
        self._resolver = Resolver(root)
        self._meanings: dict[int, tuple[Any, Any]] = {}
        found = list(references(root, budget))
        plain = not self._resolver.named
        self.plain: bool = plain and all(_PLAIN.fullmatch(one) for one in found)
        """Every reference leads to a schema at a usual place."""
        self.into_defs: bool = plain and all(_INTO_DEFS.fullmatch(one) for one in found)
        dialect = root.get("$schema") if isinstance(root, dict) else None
        self.dialect: str = dialect if isinstance(dialect, str) else ""
        self._alone = any(draft in self.dialect for draft in ("draft-07", "draft-06"))
        self._lists = self._alone or "2019-09" in self.dialect

    @property
    def definitions(self) -> Any:
        """The meaning of what references into ``$defs`` may lead to."""
        root = self.root if isinstance(self.root, dict) else {}
        return self.meaning({key: root[key] for key in ("$defs", "definitions") if key in root})

    def meaning(self, schema: Any) -> Any:
        """Return the schema without what no value is checked against, but for defaults."""
        if not isinstance(schema, dict):
            return schema
        known = self._meanings.get(id(schema))
        if known is None:
            self._budget.spend(1 + len(schema))
            bare = {
                key: value for key, value in schema.items() if key == "default" or not wordy(key)
            }
            found = rewrite(bare, lambda part: self.meaning(part.schema))
            # Stored with its schema, whose id would otherwise be free for another one.
            known = self._meanings[id(schema)] = (schema, found)
        return known[1]

    def flat(self, schema: Any, chain: int = CHAIN) -> Flat:
        """Return the keywords at one place, with references and ``allOf`` merged in."""
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        if not isinstance(schema, dict):
            raise Incomparable("it is not a schema")
        if chain == 0:
            raise SchemaTooComplex
        self._budget.spend(1 + len(schema))
        own = {key: value for key, value in schema.items() if key not in _IDENTIFIERS}
        for key in sorted(own):
            if not wordy(key) and not well_formed(key, own[key]):
                raise Incomparable(f"{label(key)} is malformed")
        if "prefixItems" in own if self._lists else isinstance(own.get("items"), list):
            raise Incomparable("tuples are written in another way in this dialect")
        found = [own, *(self.flat(part, chain - 1) for part in own.pop("allOf", ()))]
        if "$ref" in own:
            reference = own.pop("$ref")
            target = self._resolver.target(schema, reference)
            if target is None:
                raise Incomparable(f"it refers to {quote(reference)}")
            self._resolver.adopt(target, schema)
            if self._alone and not all(wordy(key) for key in own):
                raise Incomparable("there is more beside its reference")
            found.append(self.flat(target, chain - 1))
        return self._merge(found) if len(found) > 1 else own

    def _merge(self, schemas: list[Flat]) -> Flat:
        self._budget.spend(sum(map(len, schemas)))
        merged = merge(schemas)
        if merged.conflicts:
            raise Incomparable(f"{label(merged.conflicts[0])} applies twice")
        return merged.schema

    def alternatives(self, flat: Flat, chain: int = CHAIN) -> list[Flat]:
        """Return the ways to fit a schema; none at all: nothing fits."""
        keyword = "anyOf" if "anyOf" in flat else "oneOf"
        if keyword not in flat:
            return [] if flat.get("not") in ({}, True) else [flat]
        if chain == 0:
            raise SchemaTooComplex
        outer = {key: value for key, value in flat.items() if key != keyword and not wordy(key)}
        found: list[Flat] = []
        for part in flat[keyword]:
            merged = self._merge([outer, self.flat(part, chain - 1)])
            found += self.alternatives(merged, chain - 1)
            if len(found) > MOST_ALTERNATIVES:
                raise Incomparable(f"it has more than {MOST_ALTERNATIVES} alternatives")
        if keyword == "oneOf" and not all(_apart(*pair) for pair in combinations(found, 2)):
            raise Incomparable("its alternatives exclude each other")
        return [one for each in found for one in by_type(each)]


def references(root: Any, budget: Budget) -> Iterator[str]:
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


def _apart(one: Flat, other: Flat) -> bool:
    """Return whether no value can fit both."""
    mine, theirs = values(one), values(other)
    if mine is not None and theirs is not None:
        return not {mark(value) for value in mine} & {mark(value) for value in theirs}
    kinds = types(one) if mine is None else {type_of(value) for value in mine}
    return not kinds & (types(other) if theirs is None else {type_of(value) for value in theirs})
