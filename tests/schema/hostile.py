"""A generator of schemas, and values for them, that were made to take long.

Each family is a rule with a size; the sizes grow until the schema is refused. `random_cases`
combines keywords without a rule. ``make hostile`` measures more of these and prints the slowest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from typing import Any, NamedTuple

import msgspec

Schema = dict[str, Any]
Wrap = Callable[[Any, int], Schema]

SIZES = (12, 60, 180, 600, 2000)


class Case(NamedTuple):
    name: str
    schema: Any
    value: Any
    json: bytes | None = None
    """The value as JSON, where encoding it takes long."""

    @property
    def text(self) -> bytes:
        return msgspec.json.encode(self.value) if self.json is None else self.json


def refer(name: object) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


# One level around another

WRAPS: dict[str, Wrap] = {
    "allOf": lambda inner, _: {"allOf": [inner, inner]},
    "anyOf": lambda inner, at: {"anyOf": [inner, {"properties": {f"a{at}": {}}}]},
    "anyOf2": lambda inner, _: {"anyOf": [inner, inner]},
    "oneOf": lambda inner, at: {"oneOf": [inner, {"required": [f"x{at}"]}]},
    "not": lambda inner, _: {"not": inner},
    "if": lambda inner, _: {"if": inner, "then": inner, "else": inner},
    "dependent": lambda inner, _: {"dependentSchemas": {"a": inner, "b": inner}},
    "properties": lambda inner, _: {"properties": {"a": inner, "b": inner}},
    "additional": lambda inner, _: {"additionalProperties": inner},
    "pattern": lambda inner, _: {"patternProperties": {"^a": inner, "a": inner}},
    "names": lambda inner, _: {"propertyNames": inner},
    "items": lambda inner, _: {"items": inner, "uniqueItems": True},
    "prefix": lambda inner, _: {"prefixItems": [inner, inner], "items": inner},
    "contains": lambda inner, _: {"contains": inner, "minContains": 0},
    "content": lambda inner, _: {"contentMediaType": "application/json", "contentSchema": inner},
}
COVERED: dict[str, Schema] = {
    "": {},
    "unevaluatedProperties": {"unevaluatedProperties": False},
    "unevaluatedProperties schema": {"unevaluatedProperties": {"type": "integer"}},
    "unevaluatedItems": {"unevaluatedItems": False},
}


def deep_value(depth: int) -> Any:
    value: Any = {"a": 1, "b": 2}
    for _ in range(depth):
        value = {"a": value, "b": [value]} if depth <= 12 else {"a": value}
    return value


VALUES: dict[str, Callable[[int], Any]] = {
    "flat": lambda size: {"a": 1, "b": 2, "c": 3},
    "deep": lambda size: deep_value(min(size, 40)),
    "wide": lambda size: {f"a{at}": at for at in range(20 * size)},
    "list": lambda size: [[at, {"a": at}] for at in range(20 * size)],
}


def nested() -> Iterator[Case]:
    """Applicators inside each other, written out, with and without ``unevaluated*``."""
    for (name, wrap), (cover, beside) in product(WRAPS.items(), COVERED.items()):
        for size, leaf in ((12, {"type": "object"}), (20, {"type": "object"}), (60, False)):
            if name in ("allOf", "anyOf2", "if", "dependent", "properties", "pattern", "prefix"):
                schema = shared(wrap, beside, leaf, size)
            else:
                schema = written(wrap, beside, leaf, size)
            for kind in ("flat", "deep"):
                yield Case(f"{name} × {size} {cover} {leaf} {kind}", schema, VALUES[kind](size))


def written(wrap: Wrap, beside: Schema, leaf: Any, size: int) -> Any:
    schema = leaf
    for at in range(size):
        schema = {**wrap(schema, at), **beside}
    return schema


def shared(wrap: Wrap, beside: Schema, leaf: Any, size: int) -> Schema:
    """The same with one definition for each level, which the one above refers to."""
    levels = {f"d{at}": {**wrap(refer(f"d{at + 1}"), at), **beside} for at in range(size)}
    return {"$defs": {**levels, f"d{size}": leaf}, **refer("d0")}


# Webs of references


def webs() -> Iterator[Case]:
    keywords = ("allOf", "anyOf", "oneOf")
    for keyword, size, (cover, beside) in product(
        keywords, (4, 10, 16, 20, 24, 60), COVERED.items()
    ):
        dense = {
            f"d{at}": {keyword: [refer(f"d{to}") for to in range(at)] or [{}], **beside}
            for at in range(size)
        }
        yield Case(f"dense {keyword} {size} {cover}", {"$defs": dense, **refer(f"d{size - 1}")}, {})
    for size, (cover, beside) in product((4, 12, 30), COVERED.items()):
        every = {f"p{to}": refer(f"d{to}") for to in range(size)}
        web = {f"d{at}": {"properties": every, **beside} for at in range(size)}
        value: Any = {}
        for at in range(40):
            value = {f"p{at % size}": value}
        yield Case(f"web {size} {cover}", {"$defs": web, **refer("d0")}, value)


def named() -> Iterator[Case]:
    """Many references times many anchors, identifiers, dynamic anchors."""
    for size in SIZES:
        numbers = range(size)
        anchors = {f"d{at}": {"$anchor": f"n{at}", "type": "string"} for at in numbers}
        uses: Schema = {f"p{at}": {"$ref": f"#n{at}"} for at in numbers}
        yield Case(f"anchors {size}", {"$defs": anchors, "properties": uses}, {"p1": 1})
        pointers: Schema = {f"p{at}": refer(f"d{at}") for at in numbers}
        yield Case(f"pointers {size}", {"$defs": anchors, "properties": pointers}, {"p1": 1})
        ids = {f"d{at}": {"$id": f"http://x/{at}", "type": "string"} for at in numbers}
        by_id: Schema = {f"p{at}": {"$ref": f"http://x/{at}"} for at in numbers}
        yield Case(f"ids {size}", {"$defs": ids, "properties": by_id}, {"p1": 1})
        dynamic = {f"d{at}": {"$dynamicAnchor": "n", "type": "object"} for at in numbers}
        by_name: Schema = {f"p{at}": {"$dynamicRef": "#n"} for at in numbers}
        yield Case(f"dynamic {size}", {"$defs": dynamic, "properties": by_name}, {"p1": {}})
        inward = {
            f"d{at}": {"$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}}
            for at in numbers
        }
        yield Case(f"dynamic tree {size}", {"$defs": inward, **refer("d0")}, deep_value(8))
        chain = {f"d{at}": refer(f"d{at + 1}") for at in numbers} | {f"d{size}": {}}
        yield Case(f"chain {size}", {"$defs": chain, **refer("d0")}, 1)
        again = {"properties": {f"p{at}": {"$ref": "#"} for at in numbers}}
        yield Case(f"root {size}", again, deep_value(10))
        far: Any = {"type": "string"}
        for _ in range(min(size, 80)):
            far = {"$defs": {"a": far}}
        long: Schema = {f"p{at}": {"$ref": "#" + "/$defs/a" * min(size, 80)} for at in numbers}
        yield Case(f"long pointers {size}", {**far, "properties": long}, {"p1": 1})


# Wide schemas, wide values


def wide() -> Iterator[Case]:
    for size in (60, 600, 2000):
        numbers = range(size)
        rows: dict[str, Schema] = {
            "allOf": {"allOf": [{"minProperties": at} for at in numbers]},
            "anyOf": {"anyOf": [{"required": [f"x{at}"]} for at in numbers]},
            "oneOf": {"oneOf": [{"required": [f"a{at}"]} for at in numbers]},
            "allOf properties": {"allOf": [{"properties": {f"a{at}": {}}} for at in numbers]},
            "covered": {
                "anyOf": [{"properties": {f"a{at}": {}}} for at in numbers],
                "unevaluatedProperties": False,
            },
            "covered items": {
                "anyOf": [{"prefixItems": [{"minimum": at}]} for at in numbers],
                "unevaluatedItems": False,
            },
            "patternProperties": {"patternProperties": {f"^a{at}": {} for at in numbers}},
            "dependentSchemas": {
                "dependentSchemas": {f"a{at}": {"required": ["a0"]} for at in numbers}
            },
            "dependentRequired": {"dependentRequired": {f"a{at}": ["a0"] for at in numbers}},
            "propertyNames": {"propertyNames": {"anyOf": [{"const": f"b{at}"} for at in numbers]}},
            "required": {"required": [f"a{at}" for at in numbers]},
            "enum": {"items": {"enum": [[0, [at]] for at in numbers]}},
            "enum long": {"items": {"enum": [[0] * 30 + [at] for at in range(size // 20 + 1)]}},
            "contains": {"contains": {"anyOf": [{"const": at} for at in numbers]}},
            "items": {"items": {"allOf": [{"type": "array"} for _ in numbers]}},
            "unique": {"uniqueItems": True, "items": {"uniqueItems": True}},
            "if": {"allOf": [{"if": {"required": [f"a{at}"]}, "then": False} for at in numbers]},
            "multipleOf": {"additionalProperties": {"multipleOf": 1e-300}},
            "patterns": {
                "propertyNames": {"anyOf": [{"pattern": f"(a?){{9}}{at}"} for at in numbers]}
            },
        }
        for name, schema in rows.items():
            for kind in ("wide", "list"):
                yield Case(f"wide {name} {size} {kind}", schema, VALUES[kind](min(size, 600)))


# Numbers, texts, patterns, depth

PATTERNS = (
    "^(a+)+$", "(x+x+)+y", "(a?){300}a{300}", "(?:a|aa|aaa|aaaa){1,300}c", "[ab]*a[ab]{400}",
    "(.*a){20}", r"\w{1,400}", r"\p{L}{1,90}", "(?i)é{1,300}", "^(?=(a+)+$)b", r"(a)\1", "(",
    "a{1,100000}", "((a{1,30}){1,30}){1,30}", "|".join(f"w{at}" for at in range(2000)),
)  # fmt: skip


def texts() -> Iterator[Case]:
    for pattern in PATTERNS:
        for size in (100, 10_000, 1_000_000):
            text = "a" * size + "b"
            yield Case(f"pattern {pattern[:20]} {size}", {"pattern": pattern}, text)
            yield Case(
                f"names {pattern[:20]} {size}", {"patternProperties": {pattern: False}}, {text: 1}
            )
    for size in SIZES:
        many = {f"p{at}": {"pattern": rf"(\w{{1,{at % 40 + 1}}}){{1,9}}{at}"} for at in range(size)}
        yield Case(f"patterns {size}", {"properties": many}, {"p1": "x"})
        lengths = {"allOf": [{"minLength": at} for at in range(size)]}
        yield Case(f"lengths {size}", lengths, "é" * 500_000)


def numbers() -> Iterator[Case]:
    limits = ("minimum", "maximum", "exclusiveMinimum", "multipleOf", "const")
    sizes = (5, 0.01, 1e-308, 5e-324, 1e308, 10**30, 10**4000 + 1)
    values = (1, 1.5, 1e308, 10**30, 10**4200)
    texts = [str(value).encode() + b"," for value in values]
    for (at, value), keyword, limit in product(enumerate(values), limits, sizes):
        name = f"{keyword} {limit:.3g} {value:.3g}" if limit < 1e300 and value < 1e300 else keyword
        for count in (1, 1000):
            text = b"[%b]" % (texts[at] * count)[:-1]
            yield Case(f"{name} × {count}", {"items": {keyword: limit}}, [value] * count, text)
    yield Case("unique integers", {"uniqueItems": True}, [10**4200 + at for at in range(200)])
    yield Case("unique integers 2", {"uniqueItems": True}, [10**25 + at for at in range(3000)])


def deep() -> Iterator[Case]:
    for size in (20, 60, 90, 180, 400):
        long: Any = {}
        copies: Any = {"enum": list(range(60 * min(size, 90)))}
        for _ in range(size):
            long = {"properties": {"x" * 5000: long}}
            copies = {"not": copies}
        yield Case(f"long names {size}", long, {})
        yield Case(f"copies {size}", copies, {})
    tree = {"properties": {"a": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}}
    both = {"allOf": [tree, tree, {"$ref": "#/$defs/x"}], "$defs": {"x": tree}}
    for size in (4, 12, 40):
        yield Case(f"tree {size}", tree, deep_value(size))
        yield Case(f"tree twice {size}", both, deep_value(size))


# Anything

_LEAVES: tuple[Any, ...] = (
    {}, True, False, {"type": "string"}, {"type": "object"}, {"type": "array"}, {"const": [0] * 50},
    {"enum": [[1, 2], {"a": 1}, "a"] * 20}, {"multipleOf": 0.1}, {"multipleOf": 1e-300},
    {"minimum": 10**40}, {"pattern": "(a+)+$"}, {"pattern": "[ab]*a[ab]{40}"}, {"minLength": 9},
    {"uniqueItems": True}, {"required": [f"a{at}" for at in range(30)]},
    {"dependentRequired": {f"a{at}": ["a0"] for at in range(30)}},
)  # fmt: skip
_KEYWORDS = (
    "allOf", "anyOf", "oneOf", "prefixItems", "properties", "patternProperties", "dependentSchemas",
    "not", "if", "then", "else", "items", "additionalProperties", "propertyNames", "contains",
    "unevaluatedProperties", "unevaluatedItems", "$ref", "$dynamicRef",
)  # fmt: skip


class _Maker:
    """Makes one schema of so many parts at most."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._left = chance.choice((30, 300, 2500))
        self._definitions = chance.choice((1, 3, 10, 40))
        self._width = chance.choice((2, 3, 10, 40, 300))

    def whole(self) -> Schema:
        levels = self._chance.choice((1, 2, 3, 4, 6))
        definitions: dict[str, Any] = {}
        for at in range(self._definitions):
            made = self.part(self._chance.choice((1, 2)))
            anchor = {"$dynamicAnchor": "n"} if self._chance.random() < 0.2 else {}
            definitions[f"d{at}"] = {**made, **anchor} if isinstance(made, dict) else made
        made = self.part(levels)
        return {**(made if isinstance(made, dict) else {}), "$defs": definitions}

    def part(self, levels: int) -> Any:
        self._left -= 1
        if self._left < 0 or levels == 0:
            return self._chance.choice(_LEAVES)
        keywords = self._chance.sample(_KEYWORDS, self._chance.choice((1, 1, 2, 3)))
        return {keyword: self.inside(keyword, levels - 1) for keyword in keywords}

    def inside(self, keyword: str, levels: int) -> Any:
        count = range(self._chance.choice((1, 2, self._width)))
        if keyword == "$ref":
            names = [f"#/$defs/d{at}" for at in range(self._definitions)]
            return self._chance.choice(["#", *names])
        if keyword == "$dynamicRef":
            return "#n"
        if keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
            return [self.part(levels) for _ in count]
        if keyword in ("properties", "patternProperties", "dependentSchemas"):
            return {f"a{at}": self.part(levels) for at in count}
        return self.part(levels)


def _any_value(chance: Random) -> Any:
    size = chance.choice((3, 30, 300, 3000, 30_000))
    numbers = range(size)
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: {f"a{at}": at for at in numbers},
        lambda: [[at, {"a0": at}] for at in numbers],
        lambda: {f"a{at}": {f"a{to}": [to] for to in range(10)} for at in range(size // 10)},
        lambda: [(1, "aaaa", 1.5, [1], {"a0": 1})[at % 5] for at in numbers],
        lambda: deep_value(min(size, 40)),
        lambda: "a" * size * 10,
        lambda: [10**25 + at for at in numbers],
    )
    return chance.choice(kinds)()


def random_cases(seed: int, count: int) -> Iterator[Case]:
    for at in range(count):
        chance = Random(f"{seed}-{at}")
        yield Case(f"random {seed}-{at}", _Maker(chance).whole(), _any_value(chance))


# References that change their meaning on the way


def dynamic() -> Iterator[Case]:
    """``$dynamicRef`` and ``$recursiveRef``, whose targets depend on the way taken."""
    for size, (cover, beside) in product(SIZES, COVERED.items()):
        inward: Schema = {"properties": {"a": {"$dynamicRef": "#n"}}, **beside}
        extended: Schema = {
            f"d{at}": {"$id": f"e{at}", "$dynamicAnchor": "n", "$ref": f"e{at + 1}", **beside}
            for at in range(min(size, 600))
        }
        extended[f"d{len(extended)}"] = {
            "$id": f"e{len(extended)}", "$dynamicAnchor": "n", **inward
        }  # fmt: skip
        top: Schema = {"$id": "http://x/", "$ref": "e0", "$defs": extended}
        yield Case(f"extended {size} {cover}", top, deep_value(20))
        many: Schema = {f"d{at}": {"$dynamicAnchor": "n", **inward} for at in range(size)}
        joined = {"allOf": [{"$dynamicRef": "#n"}] * min(size, 60), "$defs": many, **beside}
        yield Case(f"joined dynamic {size} {cover}", joined, deep_value(12))
        old = {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "$recursiveAnchor": True,
            "anyOf": [{"properties": {"a": {"$recursiveRef": "#"}}} for _ in range(size)],
            **beside,
        }
        yield Case(f"recursive {size} {cover}", old, deep_value(12))


def based() -> Iterator[Case]:
    """Identifiers inside identifiers: each moves the base of the references under it."""
    for size in SIZES:
        depth = min(size, 90)
        inner: Schema = {"$id": "end", "$anchor": "end", "type": "string"}
        for at in range(depth):
            inner = {"$id": f"p{at}/", "$anchor": "a", "$defs": {"x": inner}}
        uses: Schema = {f"u{at}": {"$ref": "../" * (at % 40) + "end"} for at in range(size)}
        yield Case(f"nested ids {size}", {**inner, "properties": uses}, {"u0": 1})
        long = "/".join(["a"] * size)
        ids: Schema = {f"d{at}": {"$id": f"{long}/{at}", "$anchor": "z"} for at in range(size)}
        refs: Schema = {f"p{at}": {"$ref": f"{long}/../a/{at}#z"} for at in range(size)}
        base = "http://x/y"
        yield Case(f"long ids {size}", {"$id": base, "$defs": ids, "properties": refs}, {"p1": 1})
        same: Schema = {f"d{at}": {"$id": f"x{at}", "$ref": "#"} for at in range(size)}
        yield Case(f"own roots {size}", {"$id": base, "$defs": same, "$ref": "x0"}, {})
        odd = {f"k{at}": {"pattern": f"[ab]{{{at}}}c", "type": "string"} for at in range(size)}
        far: Schema = {f"p{at}": {"$ref": f"#/x-odd/k{at}"} for at in range(size)}
        yield Case(f"odd places {size}", {"x-odd": odd, "properties": far}, {"p1": "a" * 100})


def chains() -> Iterator[Case]:
    """References through ``allOf`` and the like, each level with parts of its own."""
    for size, keyword in product((12, 95, 180), ("allOf", "oneOf", "not")):
        for cover, beside in COVERED.items():
            levels: Schema = {}
            for at in range(size):
                onward: Any = refer(f"d{at + 1}")
                onward = [onward] if keyword.endswith("Of") else onward
                levels[f"d{at}"] = {keyword: onward, "properties": {f"a{at}": {"minimum": 3}}}
            schema = {"$defs": {**levels, f"d{size}": {}}, **refer("d0"), **beside}
            for kind in ("flat", "wide"):
                value = VALUES[kind](min(size, 180))
                yield Case(f"chain {keyword} {size} {cover} {kind}", schema, value)


# Names, choices, items and texts, each of many or of long ones


def names() -> Iterator[Case]:
    """``propertyNames`` times ``patternProperties`` times the names of a value."""
    for rules, count, length in product((1, 30, 300), (10, 300, 3000), (5, 200)):
        schema = {
            "propertyNames": {"allOf": [{"pattern": f"[ab]{{{at % 9}}}"} for at in range(rules)]},
            "patternProperties": {f"a[ab]{{{at}}}": {"minimum": 0} for at in range(rules)},
            "additionalProperties": {"maximum": 10},
        }
        value = {"ab" * length + str(at): at for at in range(count)}
        yield Case(f"names {rules} {count} {length}", schema, value)
        yield Case(f"names in items {rules} {count} {length}", {"items": schema}, [value])


def choices() -> Iterator[Case]:
    """Constants that differ in the last character, one of which is given many times."""
    for length, count in product((4, 1_000, 10_000), (3, 60, 1_000)):
        texts = ["x" * length + f"{at:05}" for at in range(min(count, 900_000 // (length + 8)))]
        rows: dict[str, tuple[Schema, Any]] = {
            "enum": ({"enum": texts}, texts[-1]),
            "mixed": ({"enum": [0, {}, *texts]}, texts[-1]),
            "lists": ({"enum": [[one] for one in texts]}, [texts[-1]]),
            "names": ({"enum": [{one: 1} for one in texts]}, {texts[-1]: 1}),
            "anyOf": ({"anyOf": [{"const": one} for one in texts]}, texts[-1]),
            "oneOf": ({"oneOf": [{"const": one} for one in texts]}, texts[-1]),
            "not": ({"not": {"enum": texts}}, texts[-1][:-1] + "z"),
            "fractions": ({"enum": [at + 0.5 for at in range(count)]}, count - 0.5),
            "tiny": ({"not": {"enum": [at + 0.5 for at in range(count)]}}, 5e-324),
            "bounds": ({"allOf": [{"maximum": at + 0.5} for at in range(count)]}, 5e-324),
        }
        for name, (schema, value) in rows.items():
            text = msgspec.json.encode(value)
            many = min(4_000_000 // len(text), 20_000) + 1
            whole = b"[" + b",".join([text] * many) + b"]"
            case = Case(f"{name} {length} × {count}", {"items": schema}, [value] * many, whole)
            yield case
            yield case._replace(name=f"one {case.name}", schema=schema, value=value, json=text)


def items() -> Iterator[Case]:
    """``uniqueItems`` and ``contains``, inside each other and on items that are almost equal."""
    for count, size in ((14, 1), (14, 1000), (300, 30), (3000, 1)):
        values: dict[str, Any] = {
            "numbers": [[*([0] * size), at] for at in range(count)],
            "texts": [["a" * size + str(at)] for at in range(count)],
            "objects": [{**{f"k{to}": to for to in range(size)}, "k0": at} for at in range(count)],
            "names": [{"a" * size + str(at): 1} for at in range(count)],
            "fractions": [[at + 0.5] * size for at in range(count)],
            "tiny": [[5e-324 * at] * min(size, 14) for at in range(count)],
        }
        schemas: dict[str, Schema] = {
            "unique": {"uniqueItems": True},
            "unique twice": {"uniqueItems": True, "items": {"uniqueItems": True}},
            "contains": {"contains": {"contains": {"const": 0}}, "minContains": count},
            "at most": {"contains": {"type": "array"}, "minContains": 0, "maxContains": count - 1},
            "covered": {"contains": {"type": "array"}, "unevaluatedItems": {"type": "object"}},
        }
        for (kind, value), (name, schema) in product(values.items(), schemas.items()):
            yield Case(f"{name} {kind} {count} × {size}", schema, value)
        many = {"allOf": [{"contains": {"const": at}, "minContains": 0} for at in range(300)]}
        yield Case(f"many {count} × {size}", many, values["objects"])


DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def contents() -> Iterator[Case]:
    """Texts that hold JSON or base64, which draft-07 lets a validator decode."""
    kinds = ({"contentMediaType": "application/json"}, {"contentEncoding": "base64"})
    for size, kind in product((1_000, 100_000, 4_000_000), kinds):
        text = "[0" + ",0" * (size // 2 - 1) + "]" if "contentMediaType" in kind else "A" * size
        for count in (1, 20, 300):
            schema = {"$schema": DRAFT_7, "allOf": [dict(kind) for _ in range(count)]}
            yield Case(f"{kind} {size} × {count}", schema, text)
        short = [text[:1000]] * (size // 1000)
        yield Case(f"items {kind} {size}", {"$schema": DRAFT_7, "items": kind}, short)


# Values that are far larger than what is said about them


def large() -> Iterator[Case]:
    schemas: list[Schema] = [
        {"type": "string"}, {"properties": {"a": {"type": "string", "maxItems": 3}}},
        {"additionalProperties": {"type": "null"}}, {"unevaluatedProperties": False},
        {"properties": {"a": {"enum": [1]}}}, {"maxProperties": 0}, {"not": {}},
        {"properties": {"a": {"uniqueItems": True}}},
    ]  # fmt: skip
    values: list[Any] = [
        {"a": list(range(200_000))},
        {"a": [{"b": at} for at in range(50_000)]},
        {f"k{at}": at for at in range(100_000)},
        {"a": "é" * 1_000_000},
        {"a": [10**4000 + at for at in range(50)]},
    ]
    for (at, value), schema in product(enumerate(values), schemas):
        yield Case(f"large {at} {schema}", schema, value)


FAMILIES: tuple[Callable[[], Iterator[Case]], ...] = (
    nested, webs, named, wide, texts, numbers, deep, large, dynamic, based, chains, names, choices,
    items, contents,
)  # fmt: skip
