"""Upper bounds on the time that a schema takes: compiling it, and checking a value against it."""

# Servers write the schemas, and for results the values too. Twenty lines of ``$ref`` of which each
# refers twice to the next one are a million steps; forty never end. The validator has no limit of
# time, cannot be interrupted and holds the interpreter, so the work is bounded before it is done.
# All of it is paid from one `Budget`: reading and compiling a schema takes a unit for each of its
# parts, checking a unit for each `STEPS` steps of the validator, which take about 20 ns. The
# figures were measured on jsonschema-rs with the schemas of ``tests/schema/hostile.py``.
#
# There are two bounds for checking, and the first one that is low enough is used:
#
# once    The steps of one check whatever the value. It exists if no part of the schema can apply
#         to many values, and none is a pattern: an object of named properties, however nested.
#         Such a value need not even be looked at before it is checked.
#
# each    The most steps that add up on *one* JSON value. A value of n values then takes at most
#         n times as many. Most schemas of lists and maps are bounded by this.
#
# What adds up on one value? Call the schemas that apply to the same value (``allOf``, ``$ref``, …)
# *in place*. In-place references must not lead back to where they came from, so their steps are a
# sum over a graph without cycles. The load of a value inside of another one follows:
#
#     at(schema)      = own steps + the sum of at(part) for each part in place
#     inside(schema)  = for properties and for items apart:
#                         the largest load of those of which one applies (by name, by number)
#                       + the load of each that always applies (``contains``, patterns, names)
#                       + the sum of inside(part) for each part in place
#     load(schema)    = max(at, inside)
#
# Properties and items are kept apart because no value has both: the schema of any JSON at all,
# which recurs through both, applies once to each value, and not twice for each level.
#
# Without recursion the equations are solved in one round, parts first. With it they are solved
# round by round, from inside = 0: after k rounds they hold for values that are k + 1 levels deep.
# If a schema recurs once for each level, as a tree does, nothing changes after a few rounds, and
# the bound holds at every depth. If it recurs twice, as an expression does whose four operators
# have a ``left`` each, the load grows with each round, and there is a bound for shallow values
# only. The invariant is that a round is never less than the truth for its depth: within a round
# the parts in place come first, so that no sum is taken of figures of an earlier round.
#
# ``unevaluatedProperties`` has to find out for each property what the schemas in place have
# covered, and evaluates them again for that: the check takes as many times longer as the widest
# object has properties. If such a schema were inside of another one, or had references in place,
# that would have to be counted along each way; there, it is left to the server.
#
# Refused: to count each pair of schema and value. It is exact, and it was the hardest code of the
# project: of 418 schemas of 21 servers none needed it, and what it refuses later than these
# bounds do are deep values of ambiguous recursive schemas. A bound may be too high; it must never
# be too low.

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from math import log2
from typing import Any, Final, NamedTuple

from msgspec import Raw

from holdfast.schema import walk
from holdfast.schema.graph import LEAF, Graph, Node, ordered
from holdfast.schema.walk import REFERENCES, Budget, SchemaTooComplex, named

CHARACTER: Final = 300
"""Steps for one character under the worst pattern that is compiled."""
FRACTION: Final = 800
"""Steps of a ``multipleOf`` that is no integer; five times as many for a long number."""
UNIQUE: Final = 60
"""Steps for each value inside an array whose items must differ."""
FEW: Final = 15
"""Items of such an array that are compared pair by pair; more are hashed."""
NUMBER: Final = 100
"""Steps of comparing a number that is not an integer: it is done with fractions."""
TINY: Final = 2_000
"""Steps of comparing one with many digits."""
DIALECT: Final = 500
"""Steps for each value that is checked against the schema of a dialect."""
CALLBACK: Final = 25
"""Steps of passing over an ignored keyword."""
CAP: Final = 1 << 60
"""More than any budget: there is no bound."""
ROUNDS: Final = 16
"""Levels of a value for which a recursive schema is followed, if each adds to the load."""
MOST_VALUES: Final = 20_000
"""JSON values that are counted."""

_COMPILE: Final = "it would take too long to compile"
_CHECK: Final = "it would take too long to check"
_UNEVALUATED: Final = "what is left unevaluated would take too long to find"
_COUNTED: Final = re.compile(r"\{(\d{1,4})(?:,(\d{1,4}))?")
_REPEATS: Final = frozenset({"uniqueItems", "patternProperties"})
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COMPARES: Final = frozenset({*_BOUNDS, "multipleOf", "const", "enum"})
_LONG_NUMBER: Final = re.compile(rb"\d{16}|\d[eE][-+]?\d\d")
"""A number of many digits, in JSON."""


class ValueSize(NamedTuple):
    """What the time of a check depends on, of one value."""

    values: int
    """JSON values in it, names included; a number of many digits counts as many."""
    characters: int
    """Those of all texts and names."""
    depth: int
    width: int
    """Values of the largest object or array."""
    fractions: bool
    """It has a number that is no integer."""
    long: bool
    """It has a number of many digits."""


def measure(value: Any, most: int = MOST_VALUES) -> ValueSize:
    """Return the size of a value, level by level.

    Raises:
        SchemaTooComplex: It consists of more than ``most`` values.
        ValueError: It is not made of JSON's types.
    """
    values = characters = depth = width = 0
    fractions = long = False
    level = [value]
    while level:
        depth += 1
        values += len(level)
        if values > most:
            raise SchemaTooComplex(_CHECK)
        following: list[Any] = []
        for item in level:
            if isinstance(item, str):
                characters += len(item)
            elif isinstance(item, dict):
                values += len(item)
                width = max(width, len(item))
                characters += sum(map(len, item))
                following += item.values()
            elif isinstance(item, list | tuple):
                width = max(width, len(item))
                following += item
            elif isinstance(item, int):
                if item.bit_length() > 50:
                    long = True
                    values += 600 * (1 + item.bit_length() // 256)
            elif isinstance(item, float):
                fractions = True
                long = long or (item != 0 and not 1e-20 < abs(item) < 1e16)
            elif item is not None:
                raise ValueError("it is not JSON")
        level = following
    return ValueSize(values, characters, depth, width, fractions, long)


class SchemaCost:
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
        # Each after the schemas that it has in place.
        order = ordered([*graph.nodes, LEAF], lambda node: node.here)
        if order is None:
            raise SchemaTooComplex("it refers to itself without an end")
        self._again = _evaluated_again(order)
        if self._again:
            budget.spend(2 * self.units, _COMPILE)
            self.units *= 3
        self.patterns: set[str] = _patterns(order)
        self.branches: bool = _has_alternatives(order)
        """It has alternatives, whose faults take long to explain."""
        parts_first = ordered([graph.top], Node.all)
        self.once: int = CAP
        """Steps of one check, whatever the value."""
        if parts_first is not None and not self._again:
            self.once = _once(parts_first)
        rounds = ROUNDS if parts_first is None else 1
        self._equations = equations = _Equations(graph.top, parts_first or order, rounds, budget)
        self._steps = equations.solve(_steps)
        compares = any(not _COMPARES.isdisjoint(node.schema) for node in order)
        self._long_steps = equations.solve(_long_steps) if compares else self._steps
        self._uniques = equations.solve(_uniques)
        self._matching = _Load([0], settled=True)

    def price_patterns(self, skipped: Collection[str]) -> None:
        """Count the patterns from now on, but for those that are not compiled."""
        if self.patterns:
            self._matching = self._equations.solve(lambda node: _matching(node, skipped))

    def rough_steps(self, text: bytes | Raw, room: int) -> int:
        """Return the most steps, patterns included, of checking a value that has this JSON.

        No JSON value takes less than two bytes of its text, separators included. It is `CAP` if
        there is no ``room`` for so many, or more has to be known than the length.
        """
        if self._again or self._uniques.final:
            return CAP
        values = len(text) // 2 + 1
        matching = self._matching.final * len(text)
        steps = self._steps.final * values + matching
        if steps > room:
            return CAP
        if self._steps != self._long_steps and _LONG_NUMBER.search(memoryview(text)):
            steps = self._long_steps.final * 16 * values + matching  # hundreds of digits, perhaps
        return steps

    def measure(self, value: Any, room: int) -> ValueSize:
        """Return the size of a value; give up when there are more values than steps for them."""
        # What consists of more than one value has two levels at least.
        return measure(value, min(MOST_VALUES, 1 + room // self._steps.at(2)))

    def steps(self, size: ValueSize) -> tuple[int, int]:
        """Return the most steps of checking a value of some size: without patterns, and of these.

        Raises:
            SchemaTooComplex: There is no bound for values that are nested so deep.
        """
        depth = size.depth
        steps = (self._long_steps if size.long else self._steps).at(depth) * size.values
        if arrays := self._uniques.at(depth):
            price = int(UNIQUE * (1 + log2(1 + size.width)))
            price += FEW // 2 * (TINY if size.long else NUMBER if size.fractions else 5)
            # What is inside of an array that is inside of another is compared for each.
            steps += arrays * depth * (size.values * price + size.characters // 16)
        matching = self._matching.at(depth) * size.characters
        repeated = 1 + self._again * (1 + size.width)
        return min(self.once, steps * repeated), matching * repeated

    def faults(self, size: ValueSize) -> int:
        """Return the most faults that a value of some size can have; few take many steps to find.

        Raises:
            SchemaTooComplex: There is no bound, or finding it would take too long.
        """
        repeated = 1 + self._again * (1 + size.width)
        return self._equations.solve(_keywords).at(size.depth) * size.values * repeated


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


def _has_alternatives(order: list[Node]) -> bool:
    return any("anyOf" in node.schema or "oneOf" in node.schema for node in order if not node.leaf)


def _evaluated_again(order: list[Node]) -> int:
    """Return how deep the schemas are nested in place that ``unevaluated*`` evaluates again.

    Raises:
        SchemaTooComplex: There are references among them, or others that have ``unevaluated*``.
    """
    deepest = 0
    for node in order:
        if not node.collects:
            continue
        if any(keyword in node.schema for keyword in REFERENCES):
            raise SchemaTooComplex(_UNEVALUATED)
        deepest = max(deepest, _depth_in_place(node))
    return deepest


def _depth_in_place(node: Node) -> int:
    seen: set[Node] = set()
    level, depth = [*node.here, *node.items.every], 0
    while level:
        depth += 1
        seen.update(level)
        for part in level:
            if part.collects or any(keyword in part.schema for keyword in REFERENCES):
                raise SchemaTooComplex(_UNEVALUATED)
        level = [inner for part in level for inner in part.all() if inner not in seen]
    return depth


def _patterns(nodes: list[Node]) -> set[str]:
    patterns: set[str] = set()
    for node in nodes:
        if isinstance(pattern := node.schema.get("pattern"), str):
            patterns.add(pattern)
        patterns.update(named(node.schema, "patternProperties"))
    return patterns


def pattern_units(pattern: str) -> int:
    """Return the units of compiling one regular expression, alone and in its schema."""
    counted = sum(int(high or low) for low, high in _COUNTED.findall(pattern[:4096]))
    return 40 + len(pattern) // 2 + min(counted, 4_000)


# Checking


def _once(order: list[Node]) -> int:
    """Return the steps whatever the value; `CAP` if a part can apply to many, or is a pattern."""
    once: dict[Node, int] = {}
    for node in order:
        # Applied to each value inside another, however many there are.
        of_all = (*node.properties.others, *node.properties.every, *node.names)
        repeats = any(part is not LEAF for part in of_all) or node.items.others or node.items.every
        if repeats or node.foreign or "pattern" in node.schema:
            return CAP
        if not _REPEATS.isdisjoint(node.schema):
            return CAP
        once[node] = min(CAP, _own_steps(node, long=True) + sum(once[part] for part in node.all()))
    return once[order[-1]]


class _Load(NamedTuple):
    """The most that adds up on one value, by the depth of the value as a whole."""

    rounds: list[int]
    settled: bool
    """The last one holds for all that is deeper, too."""

    @property
    def final(self) -> int:
        """The load whatever the depth."""
        return self.rounds[-1] if self.settled else CAP

    def at(self, depth: int) -> int:
        """Return the load for values that are nested so deep.

        Raises:
            SchemaTooComplex: There is no bound.
        """
        if depth > len(self.rounds) and not self.settled:
            raise SchemaTooComplex(_CHECK)
        return self.rounds[min(depth, len(self.rounds)) - 1]


class _Equations:
    """The equations at the head of this file, for one schema."""

    def __init__(self, top: Node, order: list[Node], rounds: int, budget: Budget) -> None:
        self._top = top
        self._rounds = rounds
        self._order = order
        self._inner = [
            (
                node,
                [*node.properties.by_key.values(), *node.properties.others],
                [*node.properties.every, *node.names],
                [*node.items.by_key.values(), *node.items.others],
                node.items.every,
            )
            for node in order
            if not node.leaf
        ]
        self._budget = budget
        self._units = len(order) // 4 + sum(len(node.all()) for node, *_ in self._inner) // 4

    def solve(self, weight: Callable[[Node], int]) -> _Load:
        """Return what adds up on one value, round by round; ``weight`` is that of one schema."""
        at: dict[Node, int] = {}
        for node in self._order:
            at[node] = min(CAP, weight(node) + sum([at[part] for part in node.here]))
        if not any(at.values()):
            return _Load([0], settled=True)
        properties = dict.fromkeys(at, 0)
        items = dict.fromkeys(at, 0)
        load = {**at}
        rounds = [at[self._top]]
        for _ in range(self._rounds):
            self._budget.spend(self._units, _CHECK)
            changed = False
            for node, some_properties, all_properties, some_items, all_items in self._inner:
                before = properties[node], items[node]
                properties[node] = _inside(some_properties, all_properties, load)
                items[node] = _inside(some_items, all_items, load)
                for part in node.here:
                    properties[node] += properties[part]
                    items[node] += items[part]
                after = properties[node], items[node]
                if before != after:
                    changed = True
                    load[node] = min(CAP, max(at[node], *after))
            if not changed:
                return _Load(rounds, settled=True)
            rounds.append(load[self._top])
        return _Load(rounds, settled=self._rounds == 1)


def _inside(apart: list[Node], every: list[Node], load: dict[Node, int]) -> int:
    """Return what adds up on a value to which one of these applies, and each of those."""
    largest = max([load[node] for node in apart]) if apart else 0
    return largest + sum([load[node] for node in every]) if every else largest


def _steps(node: Node) -> int:
    return 1 + _own_steps(node, long=False)


def _keywords(node: Node) -> int:
    """Return the most faults of one value; each choice that one of them shows counts, too."""
    if node.foreign:
        return DIALECT
    schema = node.schema
    total = 1 + sum(len(value) if isinstance(value, list) else 1 for value in schema.values())
    total += sum(_scan(schema[word])[0] for word in ("enum", "const") if word in schema)
    for word in ("dependentRequired", "dependencies"):
        if isinstance(names := schema.get(word), dict):
            total += sum(len(each) for each in names.values() if isinstance(each, list))
    return total


def _long_steps(node: Node) -> int:
    return 1 + _own_steps(node, long=True)


def _matching(node: Node, skipped: Collection[str]) -> int:
    """Return the steps of all patterns for one character."""
    patterns = [*named(node.schema, "patternProperties")]
    if isinstance(pattern := node.schema.get("pattern"), str):
        patterns.append(pattern)
    return sum(_character_steps(pattern) for pattern in patterns if pattern not in skipped)


def _character_steps(pattern: str) -> int:
    """Return the steps of one pattern for one character: it may be in all its states at once."""
    states = len(pattern) // 2
    for low, high in _COUNTED.findall(pattern[:4096]):
        states = min(CHARACTER, states) * max(1, int(high or low))
    return min(CHARACTER, 4 + states)


def _uniques(node: Node) -> int:
    return int("uniqueItems" in node.schema)


def _own_steps(node: Node, *, long: bool) -> int:
    """Return the steps of one schema without its parts; lists (``enum``) count whole."""
    if node.foreign:
        return DIALECT
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
            total += 0 if isinstance(value, int) else FRACTION * (5 if long else 1)
        elif keyword in walk.IGNORED:
            total += CALLBACK
        elif isinstance(value, list):
            total += len(value)
        elif isinstance(value, dict) and keyword in ("dependentRequired", "dependencies"):
            total += sum(len(names) for names in value.values() if isinstance(names, list))
    total += len(operands) * (TINY if long else NUMBER)
    return total + sum(map(_price, operands))


def _scan(value: Any) -> tuple[int, list[int | float], int]:
    """Return the number of values in one, their numbers, and the characters of names and texts."""
    count, characters, waiting = 1, 0, [value]
    numbers: list[int | float] = []
    while waiting:
        item = waiting.pop()
        if isinstance(item, int | float):
            numbers.append(item)
        elif isinstance(item, dict | list):
            count += len(item)
            waiting += item.values() if isinstance(item, dict) else item
            characters += sum(map(len, item)) if isinstance(item, dict) else 0
        elif isinstance(item, str):
            characters += len(item)
    return count, numbers, characters


def _price(number: int | float) -> int:
    """Return the steps of comparing with a number."""
    if isinstance(number, int):
        return 5
    return TINY if 0 < abs(number) < 1e-20 else NUMBER
