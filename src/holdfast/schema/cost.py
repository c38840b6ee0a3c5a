"""Upper bounds on the time that checking a value against a schema takes, once it is compiled.

The validator has no limit of time, so the work is counted before it is done: in steps of about
20 ns (compiling is counted by `compiling`, in units of about 2 µs). Counting is linear in the
size of the schema; where the value has to be looked at too, a `Budget` bounds it. The figures
were measured on jsonschema-rs with the schemas that ``tests/schema/hostile.py`` generates.

There are three bounds for checking, each for the schemas that the one before is no use for:

once        whatever the value: no part of the schema can apply to many values;
each        times the number of JSON values: the schema does not refer to itself, and
            ``unevaluated*`` does not have to find out what other subschemas have covered;
work        of one given value.
"""

from __future__ import annotations

from math import log2
from typing import Any, Final, NamedTuple

from holdfast.schema import compiling
from holdfast.schema.compiling import collects
from holdfast.schema.graph import LEAF, Graph, Node, ordered, patterns
from holdfast.schema.walk import (
    LIMITS,
    Budget,
    Schema,
    SchemaLimits,
    SchemaTooComplex,
    named,
)

BUDGET: Final = 1_000_000
"""Steps of one check: 20 ms."""
CHARACTER: Final = 300
"""Steps for one character under the worst pattern that is compiled."""
FRACTION: Final = 4_000
"""Steps of a ``multipleOf`` that is no integer: it is computed with fractions."""
UNIQUE: Final = 60
"""Steps for each value inside an array whose items must differ."""
FEW: Final = 15
"""Items of such an array that are compared pair by pair; more are hashed."""
NUMBER: Final = 100
"""Steps of comparing a number that is not an integer: it is done with fractions."""
TINY: Final = 2_000
"""Steps of comparing one with many digits behind the point."""
DIALECT: Final = 500
"""Steps for each value that is checked against the schema of a dialect."""
IGNORED: Final = ("contentMediaType", "contentEncoding")
"""Annotations since 2019-09; before that a validator may decode what they describe."""
CALLBACK: Final = 25
"""Steps of passing over one of those."""
DIGITS: Final = 19
"""Digits of the integers that are compared fast."""

_CAP: Final = 1 << 60
_REPEATS: Final = frozenset({"uniqueItems", "patternProperties"})
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COMPARES: Final = frozenset({*_BOUNDS, "multipleOf", "const", "enum", "uniqueItems"})


_CHEAP: Final = frozenset(
    {"type", "title", "description", "minimum", "maximum", "minLength", "maxLength"}
)
"""Keywords of a scalar, each checked in one step."""
_CHEAP_OBJECT: Final = frozenset(
    {"$schema", "type", "title", "description", "properties", "required", "additionalProperties"}
)
_CHEAP_PARTS: Final = 50


def is_cheap(schema: Any) -> bool:
    """Return whether a schema is an object of a few scalars, as those of most tools are.

    It can be compiled and checked without counting the work first.
    """
    if not (isinstance(schema, dict) and schema.keys() <= _CHEAP_OBJECT):
        return False
    own, needed = schema.get("properties", {}), schema.get("required", [])
    return (
        isinstance(own, dict)
        and isinstance(needed, list)
        and len(own) + len(needed) <= _CHEAP_PARTS
        and isinstance(schema.get("additionalProperties", True), bool)
        and all(
            isinstance(one, dict)
            and one.keys() <= _CHEAP
            and all(
                isinstance(word, str) or (isinstance(word, int) and word.bit_length() < 64)
                for word in one.values()
            )
            for one in own.values()
        )
    )


class Outline:
    """The bounds of one schema.

    Raises:
        SchemaTooComplex: It is too large or too deep, takes too long to compile, refers to itself
            in place, or to what is not in it.
    """

    def __init__(self, root: Any, limits: SchemaLimits = LIMITS) -> None:
        units = compiling.units(root, limits)
        if units > compiling.UNITS:
            raise SchemaTooComplex("it would take too long to compile")
        graph = Graph(root, limits)
        inner = [node for node in graph.nodes if not node.leaf]
        in_place = ordered(inner, lambda node: node.here)
        if in_place is None:
            raise SchemaTooComplex("it refers to itself without an end")
        if any(map(collects, inner)):
            units += compiling.expansion_units(inner)
        if units > compiling.UNITS:
            raise SchemaTooComplex("it would take too long to compile")
        self._top = graph.top
        self.patterns: set[str] = patterns(graph.nodes)
        self.branches: bool = any(
            "anyOf" in node.schema or "oneOf" in node.schema for node in inner
        )
        """It has alternatives, whose faults take long to explain."""
        self.compares: bool = any(not _COMPARES.isdisjoint(node.schema) for node in graph.nodes)
        """It compares numbers, which takes long if they have many digits."""
        self.skipped: frozenset[str] = frozenset()
        """Patterns that are not used."""
        order = ordered([graph.top], Node.all)
        self.bound: Bound | None = None
        """None: only `work` can tell."""
        if order is not None and not any(node.foreign or collects(node) for node in order):
            self.bound = _bound(order)

    def work(self, value: Any, budget: Budget | None = None) -> Work:
        """Return the steps of checking one value.

        Raises:
            SchemaTooComplex: There are too many, or counting them takes too long.
        """
        try:
            return _Count(budget or Budget(), self.skipped).of(self._top, value)
        except RecursionError:
            raise SchemaTooComplex("it is too deep to check") from None


# Checking, whatever the value


class Bound(NamedTuple):
    """Steps of one check, at most."""

    once: int | None
    """Whatever the value; None if that depends on how many values there are."""
    each: int
    """For each JSON value."""
    patterns: int
    """The patterns that one text may be matched with."""


def _bound(order: list[Node]) -> Bound:
    """Find the most that is applied to one value.

    Of the schemas of properties, or of items, one applies to each value inside; those in
    ``allOf`` and the like add up.
    """
    once: dict[int, int] = {}
    at: dict[int, _Load] = {}
    inside: dict[int, _Load] = {}
    for node in order:
        key = id(node)
        if node.leaf:
            once[key], at[key], inside[key] = _most(node), _load(node), _NOTHING
            continue
        once[key] = min(_CAP, _most(node) + sum(once[id(one)] for one in node.all()))
        at[key] = _load(node).plus(*(at[id(one)] for one in (*node.here, *node.names)))
        apart = [at[id(one)] for one in node.apart()]
        apart += [inside[id(one)] for one in node.apart() if not one.leaf]
        besides = [at[id(one)].most(inside[id(one)]) for one in node.besides()]
        deeper = [inside[id(one)] for one in node.here]
        inside[key] = _NOTHING.most(*apart).plus(*besides, *deeper)
    repeats = any(map(_repeats, order))
    top = id(order[-1])
    load = at[top].most(inside[top])
    unique = sum(UNIQUE + FEW // 2 * NUMBER for node in order if "uniqueItems" in node.schema)
    each = min(_CAP, load.steps + (unique * load.steps if unique else 0))
    return Bound(None if repeats else once[top], each, load.patterns)


class _Load(NamedTuple):
    """Steps, and patterns, for one value."""

    steps: int
    patterns: int

    def plus(self, *others: _Load) -> _Load:
        """Return the sum."""
        steps = self.steps + sum(one.steps for one in others)
        return _Load(min(_CAP, steps), self.patterns + sum(one.patterns for one in others))

    def most(self, *others: _Load) -> _Load:
        """Return the maximum."""
        steps = max((one.steps for one in others), default=0)
        texts = max((one.patterns for one in others), default=0)
        return _Load(max(self.steps, steps), max(self.patterns, texts))


_NOTHING: Final = _Load(0, 0)


def _load(node: Node) -> _Load:
    schema = node.schema
    regexes = ("pattern" in schema) + len(named(schema, "patternProperties"))
    return _Load(1 + _own(node) + NUMBER * node.numbers, regexes)


def _most(node: Node) -> int:
    """Return the steps of one schema without its parts, whatever the value."""
    return _own(node) + TINY * node.numbers


def _repeats(node: Node) -> bool:
    """Return True if a schema is applied to each value inside another, however many there are."""
    named_ones = (*node.others, *node.property_besides, *node.names)
    return (
        bool(node.items or node.item_besides)
        or any(one is not LEAF for one in named_ones)
        or not _REPEATS.isdisjoint(node.schema)
    )


def _own(node: Node) -> int:
    """Return the steps of one schema without its parts; lists (``enum``) count whole."""
    if node.own is None:
        operands = _operands(node.schema)
        node.numbers = len(operands)
        node.own = _count_own(node.schema) + sum(map(_price, operands))
    return node.own


def _count_own(schema: Schema) -> int:
    total = 1
    for keyword, value in schema.items():
        if keyword in ("enum", "const"):
            total += _values(value, texts=True)
        elif keyword in IGNORED:
            total += CALLBACK
        elif isinstance(value, list):
            total += len(value)
        elif isinstance(value, dict) and keyword in ("dependentRequired", "dependencies"):
            total += sum(len(each) for each in value.values() if isinstance(each, list))
    if not isinstance(schema.get("multipleOf", 1), int):
        total += FRACTION
    return total


def _operands(schema: Schema) -> list[int | float]:
    """Return the numbers that a value is compared with by exact arithmetic."""
    found = [schema[word] for word in _BOUNDS if isinstance(schema.get(word), float)]
    if "multipleOf" in schema:
        found.append(1)
    if "const" in schema or "enum" in schema:
        found += _numbers([schema.get("const"), schema.get("enum")])
    return found


def _numbers(value: Any) -> list[int | float]:
    """Return all numbers inside a JSON value."""
    found: list[int | float] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
        elif isinstance(one, int | float):
            found.append(one)
    return found


def _price(number: int | float) -> int:
    """Return the steps of comparing a number."""
    if isinstance(number, int):
        return 5
    return TINY if 0 < abs(number) < 1e-20 else NUMBER


def _values(value: Any, *, plain: bool = False, texts: bool = False) -> int:
    """Return the number of JSON values in one, and of 256 characters if ``texts``.

    ``plain`` refuses integers of any length.
    """
    count, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        count += 1
        if isinstance(one, dict):
            waiting += one.values()
            count += sum(map(len, one)) // 256 if texts else 0
        elif isinstance(one, list | tuple):
            waiting += one
        elif texts and isinstance(one, str):
            count += len(one) // 256
        elif plain and isinstance(one, int) and one.bit_length() > 64:
            raise SchemaTooComplex("its integers are too large to compare")
    return count


# Checking one value


class Work(NamedTuple):
    """Steps of checking one value."""

    steps: int
    patterns: int
    """Those for patterns alone; not among ``steps``."""
    again: int = 0
    """Those of finding out once more what the schemas in place have covered."""


class _Count:
    """One count. A pair of schema and value that was counted is only added again."""

    def __init__(self, budget: Budget, skipped: frozenset[str]) -> None:
        self._budget = budget
        self._skipped = skipped
        self._known: dict[tuple[int, int], Work] = {}

    def of(self, node: Node, value: Any) -> Work:
        """Return the steps of checking a value against a node."""
        key = (id(node), id(value))
        known = self._known.get(key)
        if known is not None:
            return known
        self._budget.spend()
        schema = node.schema
        if node.foreign:
            return Work(DIALECT * self._size(value), 0)
        steps, texts, again = self._alone(node, value), 0, 0
        if isinstance(value, str) and self._matched(schema.get("pattern")):
            texts += CHARACTER * len(value)
        for one in node.here:
            found = self.of(one, value)
            steps, texts = steps + found.steps, texts + found.patterns
            again += found.steps + found.patterns + found.again
        for one, item in self._inside(node, value):
            found = self.of(one, item)
            steps, texts = steps + found.steps, texts + found.patterns
        if isinstance(value, dict):
            regexes = sum(map(self._matched, named(schema, "patternProperties")))
            texts += CHARACTER * regexes * sum(map(len, value)) if regexes else 0
        if isinstance(value, dict | list | tuple) and collects(node):
            steps += (again + len(node.properties) + 1) * (1 + len(value))
        if steps + texts > 1000 * BUDGET or steps > BUDGET:
            raise SchemaTooComplex("it would take too long to check")
        result = self._known[key] = Work(steps, texts, again)
        return result

    def _inside(self, node: Node, value: Any) -> list[tuple[Node, Any]]:
        """Return the pairs that are checked one level further down."""
        if node.leaf:
            return []
        if isinstance(value, dict):
            own, every = node.properties, (node.others, node.property_besides, node.names)
            self._budget.spend((len(own) + len(value) * sum(map(len, every))) // 4)
            pairs = [(one, value[name]) for name, one in own.items() if name in value]
            for one in node.others:
                pairs += [(one, item) for name, item in value.items() if name not in own]
            pairs += [(one, item) for one in node.property_besides for item in value.values()]
            return pairs + [(one, name) for one in node.names for name in value]
        if isinstance(value, list | tuple):
            placed, both = node.placed, (node.items, node.item_besides)
            self._budget.spend((len(placed) + len(value) * sum(map(len, both))) // 4)
            pairs = [(one, value[at]) for at, one in placed.items() if at < len(value)]
            for one in node.items:
                pairs += [(one, item) for at, item in enumerate(value) if at not in placed]
            return pairs + [(one, item) for one in node.item_besides for item in value]
        return []

    def _matched(self, pattern: Any) -> bool:
        return isinstance(pattern, str) and pattern not in self._skipped

    def _alone(self, node: Node, value: Any) -> int:
        """Return the steps of the keywords that look at the value itself."""
        schema, steps = node.schema, _own(node)
        if isinstance(value, dict | list | tuple):
            steps += len(value)
            if isinstance(value, list | tuple) and schema.get("uniqueItems") is True:
                steps += int(UNIQUE * self._size(value, plain=True) * (1 + log2(1 + len(value))))
                if len(value) <= FEW:
                    steps += FEW // 2 * sum(map(_price, _numbers(value)))
            steps += node.numbers * TINY
        elif isinstance(value, float):
            steps += NUMBER + node.numbers * _price(value)
        elif isinstance(value, int) and value.bit_length() > 64:
            steps += 600 * (1 + value.bit_length() // 256)
        if not isinstance(schema.get("multipleOf", 1), int) and (
            not isinstance(value, int | float) or -1e16 < value < 1e16
        ):
            steps -= FRACTION - FRACTION // 5
        return steps

    def _size(self, value: Any, *, plain: bool = False) -> int:
        """Return the number of JSON values; ``plain``: integers of any length are refused."""
        count = _values(value, plain=plain)
        self._budget.spend(count // 8)
        return count
