"""Convert JSON Schemas for providers that read only a part of them.

Every change that loses information is recorded as a `Loss`. Schemas come from servers: depth and
expansion are bounded.
"""

# Three readers want three things of a server's schema, and none of them takes it as it is.
#
# root      Chat Completions and Messages read nearly all of JSON Schema, but want one object at
#           the top. There, references, ``allOf`` and alternatives are merged into the object.
#           Further down a reference to a definition stays, so that a tree stays a tree.
# expand    Frameworks resolve references themselves, each in its own way: one follows those that
#           double at every step until the memory is full, one raises for the whole list if one
#           leads nowhere. They get none: each is replaced by what it leads to. Where that would
#           never end, or unfold to thousands of schemas, any value is accepted.
# plain     Gemini, and OpenAI in strict mode, read a small part. They get a schema without
#           references, ``allOf``, ``oneOf`` and ``const``, from which theirs is made.
#
# In all three the result is valid in the newest dialect, whatever the server wrote: a malformed
# keyword is left out, what is no schema accepts any value, and older words become newer ones. What
# is left out makes the schema wider, never narrower: a model may then write arguments that the
# server refuses, with a reason that the model can read. The other way round it could not make a
# call that the tool would have taken.
#
# The work is bounded by the size of the schema. Unfolding is paid from a budget; a place that is
# referred to a thousand times is cleaned once; and all values of a keyword in ten thousand parts
# of ``allOf`` are joined at once.

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from holdfast._core.text import truncate
from holdfast.schema.explain import pointer
from holdfast.schema.types import BOUNDS, listed_types, merge, type_of, well_formed
from holdfast.schema.walk import (
    LISTED,
    NAMED,
    Budget,
    Part,
    Resolver,
    Schema,
    SchemaTooComplex,
    branches,
    properties,
    required,
    resolve,
    rewrite,
    tuple_items,
)

DEEPEST: Final = 48
"""Levels that are converted; a deeper schema accepts any value."""
MOST_NODES: Final = 10_000
"""Schemas that references may unfold to."""
MOST_PATTERNS: Final = 200
"""Patterns of one schema that are looked at; further ones are left out."""
LONGEST_PATTERN: Final = 1000

_SILENT: Final = frozenset(
    {"$schema", "$id", "$comment", "$anchor", "$vocabulary", "$defs", "definitions", "id"}
    | {"readOnly", "writeOnly", "deprecated", "discriminator", "$dynamicAnchor", "nullable"}
)
"""Keywords that do not constrain values, or that the conversion uses up."""
_ADDRESSES: Final = frozenset(
    {"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"}
)
"""Keywords that say where a schema is, and in which dialect. It is moved, and rewritten."""
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


def object_root(
    schema: Schema, report: Losses, *, plain: bool = False, expand: bool = False
) -> Schema:
    """Return the schema of the arguments as one object: no provider takes alternatives there.

    It is valid, whatever the server wrote: malformed keywords and references that lead nowhere are
    left out. ``expand`` replaces all other references by what they lead to, within bounds.
    ``plain`` rewrites it at every depth without ``$ref``, ``allOf``, ``oneOf`` and ``const``.
    """
    root: Schema = _Reading(schema, report, expand or plain, plain).node(schema)
    for key in ("anyOf", "oneOf"):
        if variants := [variant for variant in root.pop(key, ()) if isinstance(variant, dict)]:
            report.add("", key, "alternatives for the arguments as a whole; they become one object")
            root = _combined(root, variants)
    for key in ("enum", "const", "not", "if", "then", "else"):
        if root.pop(key, None) is not None:
            report.add("", key, "cannot be said of the arguments as a whole")
    return {**root, "type": "object", "properties": properties(root)}


def _either(former: Any, part: Any) -> Any:
    """Return a schema that takes what a former one (None: there is none) or another takes."""
    if former is None or former == part:
        return part
    if isinstance(former, dict) and isinstance(former.get("anyOf"), list):
        return {**former, "anyOf": [*former["anyOf"], part]}
    return {"anyOf": [former, part]}


def _combined(node: Schema, variants: list[Schema]) -> Schema:
    """Return one object that has the properties of all variants, and requires what all require."""
    combined = dict(properties(node))
    for variant in variants:
        for name, part in properties(variant).items():
            combined[name] = _either(combined.get(name), part)
    needs = [required(variant) for variant in variants]
    always = [name for name in combined if all(name in names for names in needs)]
    needed = list(dict.fromkeys([*required(node), *always]))
    return {**node, "properties": combined, **({"required": needed} if needed else {})}


class _Reading:
    """Reads a server's schema: drops malformed keywords and resolves references.

    Without ``expand``, it resolves those of the arguments as a whole only, and those that would
    lead nowhere afterwards.
    """

    def __init__(self, root: Schema, report: Losses, expand: bool, plain: bool) -> None:
        self._report = report
        self._plain = plain
        self._budget = Budget(MOST_NODES)
        self._patterns = MOST_PATTERNS
        # By identity: one large place may have a thousand references to it, each spelled anew.
        self._cleaned: dict[int, tuple[Schema, int]] = {}
        try:
            self._resolver: Resolver | None = Resolver(root)
            # The addresses of parts do not outlive the rewriting of what is around them.
            self._expand = expand or self._resolver.named
        except SchemaTooComplex:
            self._resolver, self._expand = None, expand
        self._root = root

    def node(
        self,
        node: Any,
        where: str = "",
        trail: tuple[str, ...] = (),
        level: int = 0,
        whole: bool = True,
    ) -> Any:
        """Return a schema. ``trail`` are the references followed to it."""
        if self._is_too_much(trail, level, resolved=whole or self._expand):
            self._report.add(where, "schema", "too large or too deep; any value is accepted")
            return {}
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            self._report.add(where, "schema", "is no schema; any value is accepted")
            return {}
        keywords, length = self._clean(node, where)
        if trail:
            self._budget.left -= length // 10

        def inner(part: Part) -> Any:
            same_value = whole and part.keyword in ("allOf", "anyOf", "oneOf")
            return self.node(
                part.schema, where + pointer(*part.steps), trail, level + 1, same_value
            )

        schema = rewrite(keywords, inner)
        reference = keywords.get("$ref")
        if reference is not None and not whole and self._may_stay(node, reference):
            return schema
        if whole or self._expand or reference is not None:
            schema = self._merged(schema, node, where, whole=whole, trail=trail, level=level)
        if self._plain and where and "oneOf" in schema:
            # No provider counts what fits.
            self._report.add(where, "oneOf", "may fit more than one of its alternatives")
            schema["anyOf"] = [*schema.get("anyOf", ()), *schema.pop("oneOf")]
        return schema

    def _is_too_much(self, trail: tuple[str, ...], level: int, *, resolved: bool) -> bool:
        if level >= DEEPEST or len(trail) > DEEPEST:
            return True
        return bool(resolved or trail) and not self._budget.afford()

    def _may_stay(self, node: Schema, reference: str) -> bool:
        """Return True for a reference to a definition, which is kept beside the arguments."""
        to_definition = reference == "#" or reference.startswith(("#/$defs/", "#/definitions/"))
        return to_definition and not self._expand and _is_schema(self._find(node, reference))

    def _find(self, node: Schema, reference: str) -> Any:
        if self._resolver is None:
            return resolve(self._root, reference)
        return self._resolver.target(node, reference)

    def _merged(
        self, schema: Schema, node: Schema, where: str, *, whole: bool, **place: Any
    ) -> Schema:
        """Return a schema with what it refers to, and its ``allOf``, merged into it."""
        schema = dict(schema)
        parts = [schema, *(part for part in schema.pop("allOf", ()) if isinstance(part, dict))]
        reference = schema.pop("$ref", None)
        if reference is not None:
            parts.insert(1, self._target(node, reference, where, whole=whole, **place))
        if len(parts) == 1:
            return schema
        if not self._plain and not whole and merge(parts).conflicts:
            return {"allOf": parts}
        return join(parts, where, self._report, plain=self._plain)

    def _clean(self, node: Schema, where: str) -> tuple[Schema, int]:
        """Return the keywords of a schema that are well-formed, and how much is in their values."""
        if id(node) in self._cleaned:
            return self._cleaned[id(node)]
        clean: Schema = {}
        for key, value in _in_2020_12(node).items():
            if not self._is_well_formed(key, value):
                self._report.add(where, key, "is not what it should be; it is left out")
            elif key in _ADDRESSES or (self._expand and key in ("$defs", "definitions")):
                continue
            elif self._plain and key == "const":
                clean["enum"] = [value]
            else:
                clean.setdefault(key, self._with_schemas(key, value, where))
        lists = sum(len(value) for value in clean.values() if isinstance(value, list))
        self._cleaned[id(node)] = (clean, len(clean) + lists)
        return self._cleaned[id(node)]

    def _is_well_formed(self, key: str, value: Any) -> bool:
        if not well_formed(key, value) or (key == "enum" and not value):
            return False
        if key == "pattern":
            return self._is_pattern(value)
        return key != "patternProperties" or all(map(self._is_pattern, value))

    def _is_pattern(self, pattern: str) -> bool:
        """Return True for a regular expression, as far as Python can tell."""
        self._patterns -= 1
        if self._patterns < 0 or len(pattern) > LONGEST_PATTERN:
            return False
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError):
            # Of other dialects than Python's.
            return r"\p" in pattern or r"\u" in pattern or "(?<" in pattern
        return True

    def _with_schemas(self, key: str, value: Any, where: str) -> Any:
        """Return the value of a keyword, with a schema wherever one has to be."""
        if key == "required":
            return list(dict.fromkeys(value))
        if key in LISTED:
            return [
                part if _is_schema(part) else self.node(part, where + pointer(key, at))
                for at, part in enumerate(value)
            ]
        if key not in NAMED:
            return value
        return {
            # Before 2019-09 a dependency may be a list of names.
            name: part
            if _is_schema(part) or (key == "dependencies" and well_formed("required", part))
            else self.node(part, where + pointer(key, name))
            for name, part in value.items()
        }

    def _target(
        self,
        node: Schema,
        reference: str,
        where: str,
        *,
        trail: tuple[str, ...],
        level: int,
        whole: bool,
    ) -> Schema:
        target = self._find(node, reference)
        if not isinstance(target, dict):
            self._report.add(where, "$ref", f"{reference} leads nowhere; any value is accepted")
            return {}
        if reference in trail:
            self._report.add(where, "$ref", f"{reference} leads back to itself; it is not followed")
            clean, _ = self._clean(target, where)
            return {"type": clean["type"]} if "type" in clean else {}
        schema: Schema = self.node(target, where, (*trail, reference), level, whole)
        return schema


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _in_2020_12(schema: Schema) -> Schema:
    """Return a schema of any dialect in the words of the newest."""
    words = dict(schema)
    for keyword in ("$dynamicRef", "$recursiveRef"):
        if keyword in words:
            words.setdefault("$ref", words.pop(keyword))
    if isinstance(words.get("items"), list):
        first, others = tuple_items(schema)
        del words["items"]
        words.pop("additionalItems", None)
        words.update({"prefixItems": first} if first else {})
        words.update({} if others is None else {"items": others})
    for bound in ("Minimum", "Maximum"):
        exclusive = f"exclusive{bound}"
        if words.get(exclusive) is True and bound.lower() in words:  # as in draft-04
            words[exclusive] = words.pop(bound.lower())
    return words


def join(schemas: list[Schema], where: str, report: Losses, *, plain: bool = True) -> Schema:
    """Return one schema for values that fit all of these; in texts, the first one counts."""
    merged = merge(schemas)
    for keyword in merged.conflicts:
        report.add(where, keyword, "two demands on one value that cannot be stated in one schema")
    by_name = properties(merged.schema) if plain else {}
    for name, part in by_name.items():
        if isinstance(part, dict) and "allOf" in part:  # it is a property of several of them
            parts = [several for several in part["allOf"] if isinstance(several, dict)]
            by_name[name] = join(parts, where + pointer("properties", name), report)
    return merged.schema


def _safe_key(name: str, allowed: str, taken: set[str]) -> str:
    safe = _ODD.sub("_", name)[:64] or "_"
    if not re.fullmatch(allowed, safe):
        safe = ("_" + safe)[:64]
    if safe in taken:
        digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        safe = f"{safe[:55]}_{digest}"
    return safe


def safe_keys(schema: Schema, allowed: str, report: Losses) -> tuple[Schema, dict[str, str]]:
    """Rename parameters whose names the provider refuses: all that do not match ``allowed``.

    Returns:
        The schema, and the names that parameters really have by those that they are given.
    """
    by_name = properties(schema)
    taken = {name for name in by_name if re.fullmatch(allowed, name)}
    renamed: dict[str, str] = {}
    for name in by_name:
        if name in taken:
            continue
        safe = _safe_key(name, allowed, taken)
        taken.add(safe)
        renamed[name] = safe
        report.add(pointer("properties", name), name, f"is called {safe!r}, and called back")
    if not renamed:
        return schema, {}
    copy = {renamed.get(name, name): part for name, part in by_name.items()}
    needed = [renamed.get(name, name) for name in required(schema)]
    back = {safe: name for name, safe in renamed.items()}
    return {**schema, "properties": copy, **({"required": needed} if needed else {})}, back


# Types


def inferred_types(node: Schema) -> list[str]:
    """Return the types that a schema names, or those its keywords imply."""
    if listed := listed_types(node):
        return listed
    if isinstance(node.get("enum"), list):
        return type_names_in_order(node["enum"])
    return next(([kind] for kind, words in _HINTS.items() if words & node.keys()), [])


def type_names_in_order(values: list[Any]) -> list[str]:
    """Return the types of some values, each once."""
    kinds = map(type_of, values)
    return list(dict.fromkeys("number" if kind == "fraction" else kind for kind in kinds))


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
    kinds = listed_types(node)
    return "null" in kinds if kinds else not (node.keys() - {"title", "description", "default"})


def restore(value: Any, schema: Any) -> Any:
    """Return a model's arguments as the tool takes them.

    Objects that came as JSON text are read, and nulls that stand for what was left out are
    taken out. ``schema`` is the tool's own, plain: a null that it takes is kept.
    """
    nodes = [*_alternatives(schema)]
    if isinstance(value, str):
        value = _object_in_text(value, nodes)
    if isinstance(value, list):
        return _restored_items(value, nodes)
    if not isinstance(value, dict):
        return value
    nodes = [node for node in nodes if _may_be_for(value, node)] or nodes
    needed = {name for node in nodes for name in required(node)}
    restored = {}
    for key, item in value.items():
        parts = [properties(node)[key] for node in nodes if key in properties(node)]
        may_be_null = key in needed or not parts or any(map(accepts_null, parts))
        if item is not None or may_be_null:
            restored[key] = restore(item, {"anyOf": parts})
    return restored


def _object_in_text(text: str, nodes: list[Schema]) -> Any:
    """Return the object that a text is the JSON of, if there has to be an object."""
    kinds = {kind for node in nodes for kind in inferred_types(node)}
    if "object" not in kinds or "string" in kinds:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def _restored_items(items: list[Any], nodes: list[Schema]) -> list[Any]:
    lists = [tuple_items(node) for node in nodes]
    return [
        restore(item, {"anyOf": [first[at] if at < len(first) else rest for first, rest in lists]})
        for at, item in enumerate(items)
    ]


def _may_be_for(value: Schema, node: Schema) -> bool:
    """Return True if an object fits an alternative by its keys, its nulls and its choices."""
    by_name, needed = properties(node), required(node)
    return value.keys() <= by_name.keys() and all(
        key not in needed or accepts_null(by_name[key])
        if item is None
        else item in (branches(by_name[key], "enum") or [item])
        for key, item in value.items()
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


def keep_supported(
    node: Schema, where: str, report: Losses, supports: Callable[[str, Any], bool]
) -> Schema:
    """Return a schema with the keywords that the provider supports.

    Others are stated in its description if a model can make use of them there.
    """
    supported: Schema = {}
    notes: list[str] = []
    for key, value in node.items():
        if supports(key, value):
            supported[key] = value
        elif key in _STATED:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            notes.append(f"{'one of' if key == 'enum' else key}: {truncate(text, 200)}")
            report.add(where, key, "is stated in the description only")
        elif key not in _SILENT:
            report.add(where, key, "the provider does not take it; it is left out")
    if notes:
        text, description = "; ".join(notes), supported.get("description")
        supported["description"] = f"{description} ({text})" if description else text
    return supported
