"""Convert JSON Schemas for providers that read only a part of them.

Every change that loses information is recorded as a `Loss`. Schemas come from servers: depth and
expansion are bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from holdfast._core.text import truncate
from holdfast.schema.explain import pointer
from holdfast.schema.types import BOUNDS, merge, type_of, well_formed
from holdfast.schema.walk import (
    HOLDS,
    LISTED,
    NAMED,
    REFERENCES,
    Budget,
    Schema,
    branches,
    properties,
    required,
    resolve,
    tuple_items,
)

DEEPEST: Final = 48
"""Levels that are converted; a deeper schema accepts any value."""
MOST_NODES: Final = 10_000
"""Schemas that references may unfold to."""

_SILENT: Final = frozenset(
    {"$schema", "$id", "$comment", "$anchor", "$vocabulary", "$defs", "definitions", "id"}
    | {"readOnly", "writeOnly", "deprecated", "discriminator", "$dynamicAnchor", "nullable"}
)
"""Keywords that do not constrain values, or that the conversion uses up."""
_SINGLE: Final = HOLDS - NAMED - LISTED - {*REFERENCES}
"""Keywords that hold one schema."""
_ODD: Final = re.compile("[^a-zA-Z0-9_]")


class Loss(Struct, frozen=True):
    """Information that a definition leaves out, or has in another form.

    ``where`` is the place in the schema, ``keyword`` what stood there.
    """

    where: str
    keyword: str
    text: str

    def __str__(self) -> str:
        return f"{self.where or '/'}: {self.keyword}: {self.text}"


class Losses(dict[Loss, None]):
    """The losses so far, each of them once."""

    def add(self, where: str, keyword: str, text: str) -> None:
        """Add a loss."""
        self[Loss(where, keyword, text)] = None


# The arguments as a whole


def object_root(schema: Schema, report: Losses, *, plain: bool = False) -> Schema:
    """Return the schema of the arguments as one object: no provider takes alternatives there.

    Malformed keywords are left out. ``plain`` rewrites it at every depth without ``$ref``,
    ``allOf``, ``oneOf`` and ``const``.
    """
    root: Schema = _Reading(schema, report, plain).node(schema)
    for key in ("anyOf", "oneOf"):
        if variants := [one for one in root.pop(key, ()) if isinstance(one, dict)]:
            report.add("", key, "alternatives for the arguments as a whole; they become one object")
            root = _combined(root, variants)
    for key in ("enum", "const", "not", "if", "then", "else"):
        if root.pop(key, None) is not None:
            report.add("", key, "cannot be said of the arguments as a whole")
    return {**root, "type": "object", "properties": properties(root)}


def _combined(node: Schema, variants: list[Schema]) -> Schema:
    """Return one object that has the properties of all variants, and requires what all require."""
    found = dict(properties(node))
    for variant in variants:
        for name, one in properties(variant).items():
            known = found.get(name)
            if known is None or known == one:
                found[name] = one
            elif isinstance(known, dict) and isinstance(known.get("anyOf"), list):
                found[name] = {**known, "anyOf": [*known["anyOf"], one]}
            else:
                found[name] = {"anyOf": [known, one]}
    named = [required(one) for one in variants]
    always = [name for name in found if all(name in one for one in named)]
    needed = list(dict.fromkeys([*required(node), *always]))
    return {**node, "properties": found, **({"required": needed} if needed else {})}


class _Reading:
    """Reads a server's schema: drops malformed keywords and resolves references.

    Without ``plain``, it resolves those of the arguments as a whole only.
    """

    def __init__(self, root: Schema, report: Losses, plain: bool) -> None:
        self._root = root
        self._report = report
        self._plain = plain
        self._budget = Budget(MOST_NODES)
        # By identity: one large place may have a thousand references to it, each spelled anew.
        self._known: dict[int, tuple[Schema, int]] = {}

    def node(
        self,
        node: Any,
        where: str = "",
        trail: tuple[str, ...] = (),
        level: int = 0,
        whole: bool = True,
    ) -> Any:
        """Return a schema. ``trail`` are the references followed to it."""
        resolved = whole or self._plain
        deep = level >= DEEPEST or len(trail) > DEEPEST
        if deep or ((resolved or trail) and not self._budget.afford()):
            self._report.add(where, "schema", "too large or too deep; any value is accepted")
            return {}
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            self._report.add(where, "schema", "is no schema; any value is accepted")
            return {}
        keywords, length = self._well_formed(node, where)
        if trail:
            self._budget.left -= length // 10
        found: Schema = {}
        for key, value in keywords.items():
            same = whole and key in ("allOf", "anyOf", "oneOf")
            inner = partial(self.node, trail=trail, level=level + 1, whole=same)
            found[key] = _converted(key, value, where, inner)
        if not resolved:
            return found
        parts = [found, *(one for one in found.pop("allOf", ()) if isinstance(one, dict))]
        reference = found.pop("$ref", None)
        if reference is not None:
            parts.insert(1, self._target(reference, where, trail, level, whole))
        if len(parts) > 1:
            found = join(parts, where, self._report, plain=self._plain)
        if self._plain and where and "oneOf" in found:
            # No provider counts what fits.
            self._report.add(where, "oneOf", "may fit more than one of its alternatives")
            found["anyOf"] = [*found.get("anyOf", ()), *found.pop("oneOf")]
        return found

    def _well_formed(self, node: Schema, where: str) -> tuple[Schema, int]:
        """Return the keywords of a schema that are well-formed, and how much is in their values."""
        if id(node) in self._known:
            return self._known[id(node)]
        found: Schema = {}
        for key, value in node.items():
            if not well_formed(key, value) or (key == "enum" and not value):
                self._report.add(where, key, "is not what it should be; it is left out")
            elif not self._plain:
                found[key] = value
            elif key == "const":
                found["enum"] = [value]
            elif key not in ("$defs", "definitions"):
                found.setdefault(key, value)
        lists = sum(len(value) for value in found.values() if isinstance(value, list))
        self._known[id(node)] = (found, len(found) + lists)
        return self._known[id(node)]

    def _target(
        self, reference: str, where: str, trail: tuple[str, ...], level: int, whole: bool
    ) -> Schema:
        target = resolve(self._root, reference)
        if not isinstance(target, dict):
            self._report.add(where, "$ref", f"{reference} leads nowhere; any value is accepted")
            return {}
        if reference in trail:
            self._report.add(where, "$ref", f"{reference} leads back to itself; it is not followed")
            clean, _ = self._well_formed(target, where)
            return {"type": clean["type"]} if "type" in clean else {}
        found: Schema = self.node(target, where, (*trail, reference), level, whole)
        return found


def _converted(key: str, value: Any, where: str, inner: Callable[[Any, str], Any]) -> Any:
    """Return the value of a keyword with ``inner(schema, its place)`` for the schemas in it."""
    if key in NAMED:
        # Before 2019-09 a dependency may be a list of names.
        return {
            name: one
            if key == "dependencies" and isinstance(one, list)
            else inner(one, where + pointer(key, name))
            for name, one in value.items()
        }
    if isinstance(value, list) and (key in LISTED or key == "items"):
        return [inner(one, where + pointer(key, at)) for at, one in enumerate(value)]
    return inner(value, where + pointer(key)) if key in _SINGLE else value


def join(schemas: list[Schema], where: str, report: Losses, *, plain: bool = True) -> Schema:
    """Return one schema for values that fit all of these; in texts, the first one counts."""
    merged = merge(schemas)
    for keyword in merged.conflicts:
        report.add(where, keyword, "two demands on one value that cannot be stated in one schema")
    named = properties(merged.schema) if plain else {}
    for name, one in named.items():
        if isinstance(one, dict) and "allOf" in one:  # it is a property of two of them
            both = [part for part in one["allOf"] if isinstance(part, dict)]
            named[name] = join(both, where + pointer("properties", name), report)
    return merged.schema


def safe_keys(schema: Schema, allowed: str, report: Losses) -> tuple[Schema, dict[str, str]]:
    """Rename parameters whose names the provider refuses: all that do not match ``allowed``.

    Returns:
        The schema, and the names that parameters really have by those that they are given.
    """
    own = properties(schema)
    taken = {name for name in own if re.fullmatch(allowed, name)}
    renamed: dict[str, str] = {}
    for name in own:
        if name in taken:
            continue
        safe = _ODD.sub("_", name)[:64] or "_"
        if not re.fullmatch(allowed, safe):
            safe = ("_" + safe)[:64]
        if safe in taken:
            digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            safe = f"{safe[:55]}_{digest}"
        taken.add(safe)
        renamed[name] = safe
        report.add(pointer("properties", name), name, f"is called {safe!r}, and called back")
    if not renamed:
        return schema, {}
    copy = {renamed.get(name, name): one for name, one in own.items()}
    needed = [renamed.get(name, name) for name in required(schema)]
    back = {safe: name for name, safe in renamed.items()}
    return {**schema, "properties": copy, **({"required": needed} if needed else {})}, back


# Types


def types_of(node: Schema) -> list[str]:
    """Return the types that a schema names, in order."""
    kind = node.get("type")
    return [one for one in (kind if isinstance(kind, list) else [kind]) if isinstance(one, str)]


def inferred_types(node: Schema) -> list[str]:
    """Return the types that a schema names, or those its keywords imply."""
    named = types_of(node)
    if named:
        return named
    if isinstance(node.get("enum"), list):
        kinds = map(type_of, node["enum"])
        return list(dict.fromkeys("number" if kind == "fraction" else kind for kind in kinds))
    return next(([kind] for kind, words in _HINTS.items() if words & node.keys()), [])


_HINTS: Final[dict[str, frozenset[str]]] = {
    "object": frozenset({"properties", "required", "additionalProperties", "minProperties"}),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}),
    "string": frozenset({"pattern", "minLength", "maxLength", "format"}),
    "number": frozenset({"minimum", "maximum", "multipleOf", "exclusiveMinimum"}),
}


def accepts_null(node: Any) -> bool:
    """Return True if null fits, as far as a plain schema itself shows."""
    if not isinstance(node, dict):
        return node is True
    if None in node.get("enum", ()) or node.get("nullable") is True:
        return True
    if "anyOf" in node:
        return any(map(accepts_null, branches(node, "anyOf")))
    kinds = types_of(node)
    return "null" in kinds if kinds else not (node.keys() - {"title", "description", "default"})


def restore(value: Any, schema: Any) -> Any:
    """Return a model's arguments as the tool takes them.

    Objects that came as JSON text are read, and nulls that stand for what was left out are
    taken out. ``schema`` is the tool's own, plain: a null that it takes is kept.
    """
    nodes = [*_alternatives(schema)]
    kinds = {kind for node in nodes for kind in inferred_types(node)}
    if isinstance(value, str) and "object" in kinds and "string" not in kinds:
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            return value
        value = read if isinstance(read, dict) else value
    if isinstance(value, list):
        listed = [tuple_items(node) for node in nodes]
        return [
            restore(one, {"anyOf": [some[at] if at < len(some) else rest for some, rest in listed]})
            for at, one in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    nodes = [node for node in nodes if _may_be_for(value, node)] or nodes
    needed = {name for node in nodes for name in required(node)}
    found = {}
    for key, one in value.items():
        known = [properties(node)[key] for node in nodes if key in properties(node)]
        may_be_null = key in needed or not known or any(map(accepts_null, known))
        if one is not None or may_be_null:
            found[key] = restore(one, {"anyOf": known})
    return found


def _may_be_for(value: Schema, node: Schema) -> bool:
    """Return True if an object fits an alternative by its keys, its nulls and its choices."""
    own, needed = properties(node), required(node)
    return value.keys() <= own.keys() and all(
        key not in needed or accepts_null(own[key])
        if one is None
        else one in (branches(own[key], "enum") or [one])
        for key, one in value.items()
    )


def _alternatives(schema: Any) -> Iterator[Schema]:
    """Return a schema, and all its alternatives."""
    if isinstance(schema, dict):
        yield schema
        for choice in branches(schema, "anyOf"):
            yield from _alternatives(choice)


# Keywords


_STATED: Final = frozenset({*BOUNDS, "default", "enum", "examples", "format", "pattern"}) | {
    *("uniqueItems", "minContains", "maxContains")
}
"""Keywords that a description can state."""


def sieve(node: Schema, where: str, report: Losses, fits: Callable[[str, Any], bool]) -> Schema:
    """Return a schema with the keywords that fit the provider.

    Others are stated in its description if a model can make use of them there.
    """
    kept: Schema = {}
    notes: list[str] = []
    for key, value in node.items():
        if fits(key, value):
            kept[key] = value
        elif key in _STATED:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            notes.append(f"{'one of' if key == 'enum' else key}: {truncate(text, 200)}")
            report.add(where, key, "is stated in the description only")
        elif key not in _SILENT:
            report.add(where, key, "the provider does not take it; it is left out")
    if notes:
        text = "; ".join(notes)
        kept["description"] = f"{kept['description']} ({text})" if kept.get("description") else text
    return kept
