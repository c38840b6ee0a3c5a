"""Convert JSON Schemas for providers that read only a part of them.

Every change that loses information is recorded as a `Loss`. Schemas come from servers: depth and
expansion are bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from holdfast._core.text import truncate
from holdfast.schema import walk
from holdfast.schema.explain import pointer
from holdfast.schema.types import merge, type_of, well_formed
from holdfast.schema.walk import (
    HOLDS,
    LISTED,
    NAMED,
    REFERENCES,
    Budget,
    Part,
    Schema,
    branches,
    properties,
    required,
    resolve,
)

DEEPEST: Final = 48
"""Levels that are converted; what is deeper says nothing any more."""
MOST_NODES: Final = 10_000
"""Schemas that references may unfold to."""

SILENT: Final = frozenset(
    {"$schema", "$id", "$comment", "$anchor", "$vocabulary", "$defs", "definitions", "id"}
    | {"readOnly", "writeOnly", "deprecated", "discriminator", "$dynamicAnchor", "nullable"}
)
"""Say nothing about which values are good, or are used up by the conversion."""

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


class Losses(list[Loss]):
    """The losses so far."""

    def __init__(self) -> None:
        super().__init__()
        self._known: set[Loss] = set()

    def add(self, where: str, keyword: str, text: str) -> None:
        """Add a loss, unless it is there."""
        loss = Loss(where, keyword, text)
        if loss not in self._known:
            self._known.add(loss)
            self.append(loss)


def below(where: str, *steps: object) -> str:
    """Return the JSON pointer of a place further down."""
    return where + pointer(*steps)


def rewrite(node: Schema, change: Callable[[Any, str], Any], where: str = "") -> Schema:
    """Return a copy with every schema directly inside replaced by ``change(schema, its place)``.

    ``additionalProperties: false`` and the like stay as they are.
    """

    def changed(part: Part) -> Any:
        if isinstance(part.schema, bool) and part.key is None:
            return part.schema
        return change(part.schema, below(where, *part.steps))

    return walk.rewrite(node, changed)


# References


class References:
    """The targets of the references of a schema, made sound.

    A reference may lead to any place, such as ``#/components/…``, where `sound` finds no schemas.
    """

    def __init__(self, root: Schema, report: Losses) -> None:
        self._root = root
        self._report = report
        # By identity: one large place may have a thousand references to it, each spelled anew.
        self._known: dict[int, Any] = {}

    def target(self, reference: str) -> Any:
        """Return a schema; None if the reference leads to nothing in the document."""
        found = resolve(self._root, reference)
        if not isinstance(found, dict):
            return found
        if id(found) not in self._known:
            where = reference.removeprefix("#")
            self._known[id(found)] = _sound(found, where, self._report, DEEPEST)
        return self._known[id(found)]


class Expansion:
    """Replaces references by what they lead to."""

    def __init__(self, root: Schema, report: Losses) -> None:
        self._root = root
        self._references = References(root, report)
        self._report = report
        self._budget = Budget(MOST_NODES)

    def run(self) -> Schema:
        """Return the expanded schema."""
        found = self._expand(self._root, "", ())
        return found if isinstance(found, dict) else {}

    def _expand(self, node: Any, where: str, trail: tuple[str, ...]) -> Any:
        if not isinstance(node, dict):
            return node
        deep = where.count("/") > 2 * DEEPEST or len(trail) > DEEPEST
        if deep or not self._budget.afford():
            self._report.add(where, "schema", "too large or too deep; any value is accepted")
            return {}
        reference = node.get("$ref")
        if isinstance(reference, str):
            return self._follow(node, reference, where, trail)
        bare = {key: value for key, value in node.items() if key not in ("$defs", "definitions")}
        return rewrite(bare, lambda one, place: self._expand(one, place, trail), where)

    def _follow(self, node: Schema, reference: str, where: str, trail: tuple[str, ...]) -> Any:
        beside = {key: value for key, value in node.items() if key != "$ref"}
        target = self._references.target(reference)
        if reference in trail:
            self._report.add(where, "$ref", f"{reference} leads back to itself; it is not followed")
            kind = target.get("type") if isinstance(target, dict) else None
            return {**({"type": kind} if kind is not None else {}), **_words(beside)}
        if not isinstance(target, dict):
            self._report.add(where, "$ref", f"{reference} leads nowhere; any value is accepted")
            return _words(beside)
        found = self._expand(target, where, (*trail, reference))
        extra = self._expand(beside, where, trail)
        return join([extra, found], where, self._report) if extra else found


def _words(node: Schema) -> Schema:
    return {key: node[key] for key in ("title", "description") if key in node}


# Merging


def join(schemas: list[Schema], where: str, report: Losses) -> Schema:
    """Return one schema for values that fit all of these; in texts, the first one counts."""
    merged = merge(schemas)
    for keyword in merged.conflicts:
        report.add(where, keyword, "two demands on one value that cannot be stated in one schema")
    return merged.schema


def without_all_of(node: Schema, where: str, report: Losses) -> Schema:
    """Return a schema with its ``allOf`` merged in."""
    parts = node.get("allOf")
    if not isinstance(parts, list):
        return node
    found = [{key: value for key, value in node.items() if key != "allOf"}]
    for index, part in enumerate(parts):
        if isinstance(part, dict):
            found.append(without_all_of(part, below(where, "allOf", index), report))
    return join(found, where, report)


def without_one_of(node: Schema, where: str, report: Losses) -> Schema:
    """Return a schema with its ``oneOf`` among its ``anyOf``: no provider counts what fits."""
    if "oneOf" not in node:
        return node
    report.add(where, "oneOf", "may fit more than one of its alternatives")
    choices = [*node.get("anyOf", ()), *node["oneOf"]]
    return {**{key: value for key, value in node.items() if key != "oneOf"}, "anyOf": choices}


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
    """Return True if null fits, as far as the schema itself shows."""
    if not isinstance(node, dict):
        return node is True
    if None in node.get("enum", ()) or node.get("nullable") is True:
        return True
    for key in ("anyOf", "oneOf"):
        if isinstance(node.get(key), list):
            return any(accepts_null(one) for one in node[key])
    kinds = types_of(node)
    return "null" in kinds if kinds else not (node.keys() - {"title", "description", "default"})


# Words


_LABELS: Final = {"enum": "one of"}


def tell(node: Schema, notes: Mapping[str, Any]) -> Schema:
    """Return a schema with notes added to its description."""
    if not notes:
        return node
    text = "; ".join(f"{_LABELS.get(key, key)}: {_short(one)}" for key, one in notes.items())
    before = node.get("description")
    return {**node, "description": f"{before} ({text})" if before else text}


def sieve(
    node: Schema,
    where: str,
    report: Losses,
    *,
    fits: Callable[[str, Any], bool],
    told: frozenset[str],
    lost: str,
) -> Schema:
    """Return a schema with the keywords that fit.

    Of the others, those in ``told`` are stated in its description, and the rest is lost, for the
    reason ``lost``.
    """
    kept: Schema = {}
    notes: dict[str, Any] = {}
    for key, value in node.items():
        if fits(key, value):
            kept[key] = value
        elif key in told:
            notes[key] = value
            report.add(where, key, "is stated in the description only")
        elif key not in SILENT:
            report.add(where, key, lost)
    return tell(kept, notes)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return truncate(text, 200)


# The arguments as a whole


def object_root(schema: Schema, report: Losses) -> Schema:
    """Return the schema of the arguments as one object: no provider takes alternatives there."""
    root: Any = schema
    references = References(schema, report)
    for _ in range(DEEPEST):
        if not isinstance(root.get("$ref"), str):
            break
        target = references.target(root["$ref"])
        if not isinstance(target, dict) or target is root:
            break
        beside = {key: value for key, value in root.items() if key != "$ref"}
        root = {**beside, **target} if "$defs" not in target else {**target, **beside}
    flat = without_all_of(_inlined(root, references, "allOf"), "", report)
    for key in ("anyOf", "oneOf"):
        flat = _without_variants(_inlined(flat, references, key), key, report)
    for key in ("enum", "const", "not", "if", "then", "else"):
        if flat.pop(key, None) is not None:
            report.add("", key, "cannot be said of the arguments as a whole")
    flat.pop("$ref", None)
    return {**flat, "type": "object", "properties": properties(flat)}


def _inlined(node: Schema, references: References, key: str) -> Schema:
    """Return a copy with the references among its alternatives resolved."""
    found = []
    for part in branches(node, key):
        if isinstance(part, dict):
            reference = part.get("$ref")
            target = references.target(reference) if isinstance(reference, str) else part
            found.append(target if isinstance(target, dict) else {})
    return {**node, key: found} if isinstance(node.get(key), list) else dict(node)


def _without_variants(node: Schema, key: str, report: Losses) -> Schema:
    variants = node.pop(key, None)
    if not variants:
        return node
    report.add("", key, "alternatives for the arguments as a whole; they become one object")
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
        report.add(below("", "properties", name), name, f"is called {safe!r}, and called back")
    if not renamed:
        return schema, {}
    copy = {renamed.get(name, name): one for name, one in own.items()}
    needed = [renamed.get(name, name) for name in required(schema)]
    back = {safe: name for name, safe in renamed.items()}
    return {**schema, "properties": copy, **({"required": needed} if needed else {})}, back


# Malformed schemas


_SINGLE: Final = HOLDS - NAMED - LISTED - {*REFERENCES}


def sound(schema: Schema, report: Losses) -> Schema:
    """Return the schema without what is not a part of any schema."""
    found: Schema = _sound(schema, "", report, DEEPEST)
    return found


def _sound(node: Any, where: str, report: Losses, levels: int) -> Any:
    if isinstance(node, bool):
        return node
    if not isinstance(node, dict):
        report.add(where, "schema", "is no schema; any value is accepted")
        return {}
    if not levels:
        report.add(where, "schema", "too deep; any value is accepted")
        return {}
    kept: Schema = {}
    for key, value in node.items():
        if well_formed(key, value) and (key != "enum" or value):
            kept[key] = _only_schemas(key, value, where, report)
        else:
            report.add(where, key, "is not what it should be; it is left out")
    return rewrite(kept, lambda one, at: _sound(one, at, report, levels - 1), where)


def _only_schemas(key: str, value: Any, where: str, report: Losses) -> Any:
    """Return the value of a keyword with something in every place of a schema that is one."""

    def checked(one: Any, *steps: object) -> Any:
        if isinstance(one, dict | bool) or (key == "dependencies" and isinstance(one, list)):
            return one
        report.add(below(where, key, *steps), "schema", "is no schema; any value is accepted")
        return {}

    if key in NAMED and isinstance(value, dict):
        return {name: checked(one, name) for name, one in value.items()}
    if (key in LISTED or key == "items") and isinstance(value, list):
        return [checked(one, at) for at, one in enumerate(value)]
    return checked(value) if key in _SINGLE else value
