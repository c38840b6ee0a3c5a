"""Upper bounds on the time that a schema takes: compiling it, and checking a value against it.

The validator has no limit of time, so the work is counted before it is done. All of it is paid
from one `Budget`: reading and compiling a schema takes a unit for each of its parts, counting a
unit for each pair of schema and value, checking a unit for each `STEPS` steps of the validator,
which take about 20 ns. The figures were measured on jsonschema-rs with the schemas that
``tests/schema/hostile.py`` generates.

There are three bounds for checking; the first one that exists is used:

once        whatever the value: no part of the schema can apply to many values, and no pattern;
each        times the number of JSON values: the schema does not refer to itself, and
            ``unevaluated*`` does not have to find out what other subschemas have covered;
work        of one given value.
"""

from __future__ import annotations

import re
from math import log2
from typing import Any, Final, NamedTuple

from holdfast.schema import walk
from holdfast.schema.graph import LEAF, Graph, Node, ordered
from holdfast.schema.walk import REFERENCES, STEPS, Budget, SchemaTooComplex, named

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
CALLBACK: Final = 25
"""Steps of passing over an ignored keyword."""
CAP: Final = 1 << 60
"""More than any budget: there is no bound."""

_COMPILE: Final = "it would take too long to compile"
_CHECK: Final = "it would take too long to check"
_COUNTED: Final = re.compile(r"\{(\d{1,4})(?:,(\d{1,4}))?")
_REPEATS: Final = frozenset({"uniqueItems", "patternProperties"})
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COMPARES: Final = frozenset({*_BOUNDS, "multipleOf", "const", "enum", "uniqueItems"})


class Outline:
    """The bounds of one schema.

    Raises:
        SchemaTooComplex: It is too large or too deep, takes too long to compile, refers to itself
            in place, or to what is not in it.
    """

    def __init__(self, root: Any, budget: Budget) -> None:
        self.units: int = _units(root)
        """Units of reading and compiling it."""
        budget.spend(self.units, _COMPILE)
        graph = Graph(root)
        inner = [node for node in graph.nodes if not node.leaf]
        if ordered(inner, lambda node: node.here) is None:
            raise SchemaTooComplex("it refers to itself without an end")
        if any(node.collects for node in inner):
            expansion = _expansion_units(inner)
            self.units += expansion
            budget.spend(expansion, _COMPILE)
        self._top = graph.top
        self.patterns: set[str] = set()
        for node in graph.nodes:
            if isinstance(node.schema.get("pattern"), str):
                self.patterns.add(node.schema["pattern"])
            self.patterns.update(named(node.schema, "patternProperties"))
        self.branches: bool = any(
            "anyOf" in node.schema or "oneOf" in node.schema for node in inner
        )
        """It has alternatives, whose faults take long to explain."""
        self.compares: bool = any(not _COMPARES.isdisjoint(node.schema) for node in graph.nodes)
        """It compares numbers, which takes long if they have many digits."""
        self.skipped: frozenset[str] = frozenset()
        """Patterns that are not used."""
        self.once = self.each = CAP
        """Steps of one check, whatever the value, and for each two bytes of JSON."""
        order = ordered([graph.top], Node.all)
        if order is not None and not any(node.foreign or node.collects for node in order):
            self.once, self.each = _bound(order)

    def work(self, value: Any, budget: Budget) -> Work:
        """Return the steps of checking one value.

        Raises:
            SchemaTooComplex: There are too many, or counting them takes too long.
        """
        try:
            return _Count(budget, self.skipped).of(self._top, value)
        except RecursionError:
            raise SchemaTooComplex("it is too deep to check") from None


# Compiling


def _units(root: Any) -> int:
    """Return the units of all JSON values in a schema, wherever they stand."""
    count = values = 0
    level: list[tuple[Any, int, int]] = [(root, 0, 0)]
    for _ in range(2 * walk.MAX_DEPTH):
        following: list[tuple[Any, int, int]] = []
        for value, copies, path in level:
            # The validator keeps a copy of what is under ``not``, and a pointer to each part.
            count += 1 + copies // 8 + path // 400
            if isinstance(value, dict):
                count += 2 + 8 * any(isinstance(value.get(word), str) for word in ("$id", "id"))
                for keyword in REFERENCES:
                    if isinstance(reference := value.get(keyword), str):
                        count += 6 + 3 * reference.count("/") // 2 + len(reference) // 64
                for key, item in value.items():
                    following.append((item, copies + (key == "not"), path + len(key)))
            elif isinstance(value, list):
                following += [(item, copies, path + 2) for item in value]
            elif isinstance(value, int) and value.bit_length() > 64:
                count += value.bit_length()
        values += len(level)
        if values + len(following) > walk.MAX_NODES:
            raise SchemaTooComplex(f"it has more than {walk.MAX_NODES} parts")
        if not following:
            return count
        level = following
    raise SchemaTooComplex(f"it is more than {2 * walk.MAX_DEPTH} levels deep")


def _expansion_units(inner: list[Node]) -> int:
    """Return the units of ``unevaluated*``, for which every way in place is followed anew."""
    # ``contains`` and all inside it are compiled again too.
    contains = {node: node.items.every for node in inner if "unevaluatedItems" in node.schema}
    order = ordered(inner, lambda node: [*node.here, *contains.get(node, [])])
    if order is None:
        raise SchemaTooComplex(_COMPILE)
    ways: dict[Node, int] = {}
    units = 0
    for node in order:
        refers = 8 * any(keyword in node.schema for keyword in REFERENCES)
        total = 1 + refers + len(node.schema) // 8 + len(node.properties.by_key) // 4
        total += sum(ways[one] for one in node.here)
        total += 2 * sum(ways[one] for one in contains.get(node, []))
        ways[node] = min(CAP, total)
        if node.collects:
            units += ways[node]
    return units


def pattern_units(pattern: str) -> int:
    """Return the units of compiling one regular expression, alone and in its schema."""
    counted = sum(int(high or low) for low, high in _COUNTED.findall(pattern[:4096]))
    return 40 + len(pattern) // 2 + min(counted, 4_000)


# Checking, whatever the value


def _bound(order: list[Node]) -> tuple[int, int]:
    """Find the steps whatever the value, and the most that is applied to one value.

    Of the schemas of properties, or of items, one applies to each value inside; those in
    ``allOf`` and the like add up. A text of so many characters counts as half as many values.
    """
    once: dict[Node, int] = {}
    at: dict[Node, int] = {}
    inside: dict[Node, int] = {}
    unique, repeats = 0, False
    for node in order:
        schema = node.schema
        own = _own(node)
        regexes = ("pattern" in schema) + len(named(schema, "patternProperties"))
        load = 1 + own + NUMBER * node.numbers + 2 * CHARACTER * regexes
        most = CAP if regexes else own + TINY * node.numbers
        unique += "uniqueItems" in schema
        repeats = repeats or not _REPEATS.isdisjoint(schema)
        if node.leaf:
            once[node], at[node], inside[node] = most, load, 0
            continue
        once[node] = min(CAP, most + sum(once[one] for one in node.all()))
        at[node] = min(CAP, load + sum(at[one] for one in (*node.here, *node.names)))
        apart = [max(at[one], inside[one]) for one in node.apart]
        deeper = sum(max(at[one], inside[one]) for one in node.every)
        deeper += sum(inside[one] for one in node.here)
        inside[node] = min(CAP, max(apart, default=0) + deeper)
        # Applied to each value inside another, however many there are.
        of_all = (*node.properties.others, *node.properties.every, *node.names)
        repeats = repeats or any(one is not LEAF for one in of_all)
        repeats = repeats or bool(node.items.others or node.items.every)
    top = order[-1]
    each = max(at[top], inside[top]) * (1 + unique * (UNIQUE + FEW // 2 * NUMBER))
    return CAP if repeats else once[top], min(CAP, each)


def _own(node: Node) -> int:
    """Return the steps of one schema without its parts; lists (``enum``) count whole."""
    if node.own is None:
        schema = node.schema
        total = 1
        # The numbers that a value is compared with by exact arithmetic.
        operands = [schema[word] for word in _BOUNDS if isinstance(schema.get(word), float)]
        for keyword, value in schema.items():
            if keyword in ("enum", "const"):
                count, numbers, characters = _scan(value)
                total += count + characters // 256
                operands += numbers
            elif keyword == "multipleOf":
                operands.append(1)
                total += 0 if isinstance(value, int) else FRACTION
            elif keyword in walk.IGNORED:
                total += CALLBACK
            elif isinstance(value, list):
                total += len(value)
            elif isinstance(value, dict) and keyword in ("dependentRequired", "dependencies"):
                total += sum(len(each) for each in value.values() if isinstance(each, list))
        node.numbers = len(operands)
        node.own = total + sum(map(_price, operands))
    return node.own


def _scan(value: Any, most: int = CAP) -> tuple[int, list[int | float], int]:
    """Return the number of values in one, their numbers, and the characters of names and texts.

    Raises:
        SchemaTooComplex: There are more than ``most`` values.
    """
    count, characters, waiting = 1, 0, [value]
    numbers: list[int | float] = []
    while waiting:
        one = waiting.pop()
        if isinstance(one, int | float):
            numbers.append(one)
        elif isinstance(one, dict | list | tuple):
            count += len(one)
            if count > most:
                raise SchemaTooComplex(_CHECK)
            waiting += one.values() if isinstance(one, dict) else one
            characters += sum(map(len, one)) if isinstance(one, dict) else 0
        elif isinstance(one, str):
            characters += len(one)
    return count, numbers, characters


def _price(number: int | float) -> int:
    """Return the steps of comparing a number."""
    if isinstance(number, int):
        return 5
    return TINY if 0 < abs(number) < 1e-20 else NUMBER


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
        self._most = STEPS * budget.left
        self._known: dict[tuple[int, int], Work] = {}

    def of(self, node: Node, value: Any) -> Work:
        """Return the steps of checking a value against a node."""
        key = (id(node), id(value))
        known = self._known.get(key)
        if known is not None:
            return known
        self._budget.spend(1, _CHECK)
        schema = node.schema
        if node.foreign:
            return Work(DIALECT * self._scan(value)[0], 0)
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
        if isinstance(value, dict | list | tuple) and node.collects:
            steps += (again + len(node.properties.by_key) + 1) * (1 + len(value))
        if steps > self._most or texts > CAP:
            raise SchemaTooComplex(_CHECK)
        result = self._known[key] = Work(steps, texts, again)
        return result

    def _inside(self, node: Node, value: Any) -> list[tuple[Node, Any]]:
        """Return the pairs that are checked one level further down."""
        if node.leaf or not isinstance(value, dict | list | tuple):
            return []
        is_object = isinstance(value, dict)
        by_key, others, every = node.properties if is_object else node.items
        keys, names = (value, node.names) if is_object else (range(len(value)), [])
        width = len(value) * (len(others) + len(every) + len(names))
        self._budget.spend((len(by_key) + width) // 4, _CHECK)
        pairs = [(one, value[key]) for key, one in by_key.items() if key in keys]
        pairs += [(one, value[key]) for one in others for key in keys if key not in by_key]
        pairs += [(one, value[key]) for one in every for key in keys]
        return pairs + [(one, name) for one in names for name in keys]

    def _matched(self, pattern: Any) -> bool:
        return isinstance(pattern, str) and pattern not in self._skipped

    def _alone(self, node: Node, value: Any) -> int:
        """Return the steps of the keywords that look at the value itself."""
        schema, steps = node.schema, _own(node)
        if isinstance(value, dict | list | tuple):
            steps += len(value)
            if isinstance(value, list | tuple) and schema.get("uniqueItems") is True:
                count, numbers = self._scan(value)
                if [one for one in numbers if type(one) is int and abs(one) >> 64]:
                    raise SchemaTooComplex("its integers are too large to compare")
                steps += int(UNIQUE * count * (1 + log2(1 + len(value))))
                if len(value) <= FEW:
                    steps += FEW // 2 * sum(map(_price, numbers))
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

    def _scan(self, value: Any) -> tuple[int, list[int | float]]:
        count, numbers, _ = _scan(value, 8 * self._budget.left)
        self._budget.spend(count // 8, _CHECK)
        return count, numbers
