"""References within one schema document. What is elsewhere is never fetched."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote, urljoin

from holdfast.schema.budget import LIMITS, SchemaLimits, SchemaTooComplex
from holdfast.schema.walk import HOLDS, Schema, parts

DIALECTS: Final = ("http://json-schema.org/", "https://json-schema.org/")
"""The dialects' own schemas, which the validator has."""
_NAMES: Final = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})


def resolve(document: Any, reference: str) -> Any:
    """Return what a JSON pointer in a ``$ref`` leads to; None if to nothing in the document.

    A list's index may be any text here, and a number of any length.
    """
    if reference == "#":
        return document
    if not reference.startswith("#/"):
        return None
    found = document
    for step in unquote(reference[2:]).split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list) and key.isdecimal() and key.isascii() and len(key) < 9:
            found = found[int(key)] if int(key) < len(found) else None
        else:
            return None
    return found


class Resolver:
    """The named places of a document: embedded resources (``$id``) and anchors.

    JSON Schema 2020-12 Core, sections 8.2 (base URI, anchors) and 9.1.2 (initial base URI).
    """

    def __init__(self, root: Any, limits: SchemaLimits = LIMITS) -> None:
        self.root = root
        self.named: bool = False
        """A part of the document has a URI of its own."""
        self._bases: dict[int, str] = {}
        self._resources: dict[str, Any] = {"": root}
        self._anchors: dict[tuple[str, str], Schema] = {}
        self._dynamic: dict[str, list[Schema]] = {}
        self._index(root, "", limits)

    def _index(self, root: Any, base: str, limits: SchemaLimits) -> None:
        waiting: list[tuple[Any, str]] = [(root, base)]
        seen = 0
        while waiting:
            schema, base = waiting.pop()
            if not isinstance(schema, dict) or id(schema) in self._bases:
                continue
            if HOLDS.isdisjoint(schema) and _NAMES.isdisjoint(schema):
                continue
            seen += 1
            if seen > limits.nodes:
                raise SchemaTooComplex(f"it has more than {limits.nodes} parts")
            base = self._name(schema, base)
            self._bases[id(schema)] = base
            waiting += [(part.schema, base) for part in parts(schema)]

    def _name(self, schema: Schema, base: str) -> str:
        """Note the names of one schema; return the base URI of what is inside it."""
        for keyword in ("$id", "id"):
            own = schema.get(keyword)
            if isinstance(own, str):
                place, _, anchor = own.partition("#")
                if place:
                    base = _join(base, place)
                    self._resources[base] = schema
                    self.named = self.named or schema is not self.root
                if anchor:
                    self._anchors[base, anchor] = schema
        for keyword in ("$anchor", "$dynamicAnchor"):
            own = schema.get(keyword)
            if isinstance(own, str):
                self._anchors[base, own] = schema
                self.named = self.named or schema is not self.root
        dynamic = schema.get("$dynamicAnchor")
        if isinstance(dynamic, str):
            self._dynamic.setdefault(dynamic, []).append(schema)
        if schema.get("$recursiveAnchor") is True:
            self._dynamic.setdefault("", []).append(schema)
        return base

    def target(self, schema: Schema, reference: str) -> Any:
        """Return what a reference in ``schema`` leads to; None if to nothing in the document."""
        if not self.named and reference.startswith("#/"):
            return resolve(self.root, reference)
        base = self._bases.get(id(schema), "")
        place, _, fragment = reference.partition("#")
        where = _join(base, place) if place else base
        resource = self._resources.get(where)
        if resource is None and not where:
            resource = self.root
        if not fragment:
            return resource
        if fragment.startswith("/"):
            return resolve(resource, f"#{fragment}")
        return self._anchors.get((where, fragment))

    def adopt(self, target: Any, source: Schema) -> None:
        """Give what a pointer found outside every schema the base of the one that refers to it."""
        if isinstance(target, dict) and id(target) not in self._bases:
            self._index(target, self._bases.get(id(source), ""), LIMITS)

    def dynamic(self, reference: str) -> list[Schema]:
        """Return every schema that a ``$dynamicRef`` may lead to, depending on the way taken."""
        return self._dynamic.get(reference.rpartition("#")[2], [])


def _join(base: str, place: str) -> str:
    try:
        return urljoin(base, place)
    except ValueError:  # a malformed address, such as http://[
        return place
