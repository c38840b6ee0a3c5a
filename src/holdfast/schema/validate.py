"""Validate values against JSON Schema with jsonschema-rs, within bounds of time.

A schema is compiled once. 2020-12 is the default dialect; draft-04, -06, -07 and 2019-09 are
understood by their ``$schema``. References are followed inside the schema only; nothing is ever
fetched. Patterns run in linear time; one that needs more is left to the server, and so is
everything whose cost has no bound. ``format`` is not enforced.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from holdfast._core.text import truncate
from holdfast._core.wire import jsonrpc
from holdfast._core.wire.codes import UNENCODABLE
from holdfast.schema.annotations import without_defaulted
from holdfast.schema.cost import SchemaCost, pattern_units
from holdfast.schema.explain import describe
from holdfast.schema.faults import SchemaFault, Unusable
from holdfast.schema.walk import (
    IGNORED,
    NAMED,
    REFERENCES,
    STEPS,
    Budget,
    ExternalReference,
    SchemaTooComplex,
    branches,
)

if TYPE_CHECKING:
    from jsonschema_rs import Validator

MAX_BYTES: Final = 1024 * 1024
"""Bytes of a schema."""
LIGHT: Final = 20_000
"""Steps of a check that is done without looking at the value."""
EXPLAINED: Final = 10_000
"""Steps of a check whose faults are all explained, for each 200 bytes of the value: a fault may
cost a thousand times as much as finding that there is one, and shows the value."""
ARITHMETIC: Final = 10 * EXPLAINED
"""Steps of such a check if it can find few faults: fractions and patterns take many steps."""
SHOWN: Final = 48 * 1024
"""Bytes of a value of which a fault is shown: the validator copies the value, and writes it out,
even to name the first fault."""
MEASURED: Final = 25
"""Values that are counted in one unit of work."""
PATTERN_BYTES: Final = 64 * 1024
"""The size that a compiled pattern may have."""
CACHED_BYTES: Final = 16 * 1024 * 1024
"""Bytes of compiled schemas that are kept."""
ENTRY_BYTES: Final = 8 * 1024
"""Bytes that each of them takes besides its text."""


class Checker:
    """One compiled schema.

    Args:
        schema: The schema, as plain JSON.
        fills: The receiver fills in defaults, so a required property that has one may be missing.

    Raises:
        Unusable: It is no valid schema, or cannot be compiled within bounds.
    """

    def __init__(self, schema: Any, *, fills: bool = False) -> None:
        self._schema = schema
        self._relaxed = schema
        """As its receiver reads it."""
        self.skipped: tuple[str, ...] = ()
        """The patterns that are left to the server."""
        self._compiled: dict[tuple[int, bool], Validator] = {}
        self._budget = Budget()
        """Pays for compiling; each check may use what is left."""
        try:
            self._cost = SchemaCost(schema, self._budget)
            if fills:
                self._relaxed = without_defaulted(schema, self._budget)
            self.skipped = tuple(sorted(_unusable_patterns(self._cost.patterns, self._budget)))
            self._cost.price_patterns({*self.skipped})
            self._light = self._cost.once <= min(LIGHT, self._room)
            self._fits: Callable[[Any], bool] = self._validator(schema).is_valid
        except SchemaTooComplex as error:
            raise Unusable(str(error)) from None

    @cached_property
    def _room(self) -> int:
        """The steps that one check may take: half of them if the relaxed schema is checked too."""
        if self._relaxed is self._schema:
            return STEPS * self._budget.left
        return STEPS * (self._budget.left - self._cost.units // 2) // 2

    def faults(self, value: Any, text: bytes | Raw | None = None) -> tuple[SchemaFault, ...]:
        """Return what does not fit; nothing if all does.

        Args:
            value: What to check.
            text: The JSON that it was read from, or any longer text, if there is one.

        Raises:
            Unusable: It cannot be checked, or not within bounds.
        """
        try:
            if not self._light:
                return self._bounded(value, text)
            return () if self._fits(value) else self._explain(value, text, self._cost.once)
        except (SchemaTooComplex, RecursionError) as error:
            raise Unusable(str(error)) from None
        except ValueError as error:
            return self._retry(value, error)

    def _retry(self, value: Any, error: ValueError) -> tuple[SchemaFault, ...]:
        """Check dataclasses, dates and the like as the JSON that they are sent as."""
        try:
            plain = msgspec.json.decode(jsonrpc.encode(value))
        except UNENCODABLE:
            return ()  # it cannot be sent, which fails with a better message
        if plain == value:
            raise Unusable(str(error)) from None
        return self.faults(plain)

    def _bounded(self, value: Any, text: bytes | Raw | None) -> tuple[SchemaFault, ...]:
        """Return the faults of a value whose work has a bound; if need be, without patterns."""
        text = _encoded(value) if text is None else text
        if (steps := self._cost.rough_steps(text, self._room)) <= self._room:
            return (
                () if self._fits(value) else self._explain(value, text, self._exact(value, steps))
            )
        size = self._cost.measure(value, self._room)
        steps, matching = self._cost.steps(size)
        room = self._room - STEPS * (size.values // MEASURED)
        patterns = steps + matching <= room
        if not patterns:
            room -= STEPS * self._cost.units // 2  # it is compiled once more
        if steps > room:
            raise SchemaTooComplex("it would take too long to check")
        if self._validator(self._schema, patterns=patterns).is_valid(value):
            return ()
        return self._explain(value, text, steps + (matching if patterns else 0), patterns=patterns)

    def _exact(self, value: Any, rough: int) -> int:
        """Return the steps of a value as it is: its length alone says too much."""
        try:
            return min(rough, sum(self._cost.steps(self._cost.measure(value, self._room))))
        except SchemaTooComplex:
            return rough

    def _validator(self, schema: Any, *, patterns: bool = True) -> Validator:
        key = (id(schema), patterns)
        if key not in self._compiled:
            unused = {*self.skipped} if patterns else self._cost.patterns
            wider = _without(schema, unused)
            try:
                remaining = wider is not schema and SchemaCost(wider, Budget()).patterns
            except ExternalReference:
                raise SchemaTooComplex("it refers to what depends on a pattern") from None
            if not patterns and remaining:
                raise SchemaTooComplex("its patterns are where values are")
            self._compiled[key] = _compile(wider)
        return self._compiled[key]

    def _explain(
        self, value: Any, text: bytes | Raw | None, steps: int, *, patterns: bool = True
    ) -> tuple[SchemaFault, ...]:
        """Return the faults of what does not fit; none if it does with defaults filled in.

        Only the first is named, or none in detail, if finding all takes long: a check takes so
        many steps.
        """
        validator = self._validator(self._relaxed, patterns=patterns)
        if self._relaxed is not self._schema and validator.is_valid(value):
            return ()
        size = len(_encoded(value) if text is None else text)
        if size <= SHOWN and self._most_faults(value, steps) * (1 + size // 200) <= EXPLAINED:
            return describe(validator.iter_errors(value), self._relaxed)
        if self._cost.branches or size > SHOWN:
            return (SchemaFault("", "does not fit the schema (it is too large to say where)"),)
        from jsonschema_rs import ValidationError

        try:
            validator.validate(value)
        except ValidationError as error:
            return describe([error], self._relaxed)
        raise AssertionError("what is not valid has a fault")

    def _most_faults(self, value: Any, steps: int) -> int:
        """Return how many faults there are at most, where a check takes so many steps."""
        if not EXPLAINED < steps <= ARITHMETIC:
            return steps
        try:
            return min(steps, self._cost.faults(self._cost.measure(value, self._room)))
        except SchemaTooComplex:
            return steps


def _encoded(value: Any) -> bytes:
    try:
        return jsonrpc.encode(value)
    except UNENCODABLE:
        raise ValueError("it is not JSON") from None


class Checkers:
    """The compiled schemas that were needed so far, by their text; the oldest go first.

    Attack: a server may give its tools other schemas with each list, while a service runs.
    """

    def __init__(self) -> None:
        self._by_text: dict[tuple[bytes, bool], Checker | Unusable] = {}
        self._used = 0
        """Bytes taken."""

    def get(self, text: Raw, *, fills: bool = False) -> Checker:
        """Return the compiled schema.

        Raises:
            Unusable: It cannot be compiled.
        """
        key = (bytes(text), fills)
        checker = self._by_text.get(key)
        if checker is None:
            try:
                if len(text) > MAX_BYTES:
                    raise Unusable(f"it has more than {MAX_BYTES} bytes")
                checker = Checker(msgspec.json.decode(text), fills=fills)
            except Unusable as error:
                checker = Unusable(str(error))  # without the frames of this one
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                checker = Unusable(f"it cannot be read: {error}")
            self._by_text[key] = checker
            self._used += len(text) + ENTRY_BYTES
            while self._used > CACHED_BYTES:
                oldest = next(iter(self._by_text))
                del self._by_text[oldest]
                self._used -= len(oldest[0]) + ENTRY_BYTES
        if isinstance(checker, Unusable):
            raise Unusable(str(checker))
        return checker


class _Ignored:
    """A keyword that fits every value."""

    def __init__(self, *_: Any) -> None: ...

    def validate(self, _: Any) -> None: ...


def _compile(schema: Any) -> Validator:
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES)
    ignored: dict[str, type[Any]] = dict.fromkeys(IGNORED, _Ignored)
    try:
        return jsonschema_rs.validator_for(
            schema, pattern_options=options, keywords=ignored, validate_formats=False, offline=True
        )
    except (ValueError, RecursionError) as error:
        text = truncate(getattr(error, "message", str(error)), 300)
        why = f"it is not a valid schema: {text}"
        if "meta-schema" in text:
            dialect = str(schema.get("$schema") if isinstance(schema, dict) else None)
            supported = "2020-12, 2019-09, draft-07, draft-06 and draft-04 are"
            why = f"its dialect {truncate(dialect, 200)!r} is not supported ({supported})"
        elif "Retrieval is disabled" in text or "retriev" in text:
            why = f"it refers to another document, and none is ever fetched: {text}"
        raise Unusable(why) from None


def _unusable_patterns(patterns: set[str], budget: Budget) -> set[str]:
    """Return the patterns that are not linear, too large, or too many to compile in time."""
    share = Budget(budget.left // 4)
    unused = {*patterns}
    with suppress(SchemaTooComplex):
        for units, pattern in sorted((pattern_units(text), text) for text in patterns):
            share.spend(units)
            budget.spend(units)
            with suppress(Unusable):
                _compile({"pattern": pattern})
                unused.discard(pattern)
    return unused


_VALUES: Final = ("const", "enum", "default", "examples")
"""Keywords that hold values, which may look like schemas."""


def _without(schema: Any, patterns: set[str]) -> Any:
    """Return the schema without some patterns: all that fits it fits the result."""
    return _wider(schema, patterns)[0] if patterns else schema


def _wider(schema: Any, patterns: set[str]) -> tuple[Any, bool]:
    """Return a schema without some patterns, and whether more may fit it now.

    A reference may lead to one of the patterns. What must not fit (``not``), fit once (``oneOf``)
    or decides what else applies (``if``) cannot be wider, and is left out.
    """
    if isinstance(schema, list):
        pairs = [_wider(item, patterns) for item in schema]
        return [part for part, _ in pairs], any(is_wider for _, is_wider in pairs)
    if not isinstance(schema, dict):
        return schema, False
    keywords: dict[str, Any] = {}
    wider = {key for key in REFERENCES if key in schema}
    for key, value in schema.items():
        if key in _VALUES:
            keywords[key] = value
            continue
        if key in NAMED and isinstance(value, dict):
            parts = {name: _wider(part, patterns) for name, part in value.items()}
            keywords[key] = {name: part for name, (part, _) in parts.items()}
            is_wider = any(is_wider for _, is_wider in parts.values())
        else:
            keywords[key], is_wider = _wider(value, patterns)
        wider |= {key} if is_wider else set()
    unused = _drop_patterns(keywords, patterns)
    wider |= unused.keys()
    unused_words = {word for words in unused.values() for word in words} | _unsound(wider)
    if "oneOf" in wider:
        keywords["allOf"] = [*branches(keywords, "allOf"), {"anyOf": keywords["oneOf"]}]
    return {key: value for key, value in keywords.items() if key not in unused_words}, bool(wider)


def _drop_patterns(keywords: dict[str, Any], patterns: set[str]) -> dict[str, set[str]]:
    """Take patterns out of the keywords of a schema.

    Returns:
        The keywords that allow more by that, and those that have to go with each.
    """
    unused: dict[str, set[str]] = {}
    pattern, by_pattern = keywords.get("pattern"), keywords.get("patternProperties")
    if isinstance(pattern, str) and pattern in patterns:
        unused["pattern"] = {"pattern"}
    if isinstance(by_pattern, dict) and not patterns.isdisjoint(by_pattern):
        keywords["patternProperties"] = {
            regex: part for regex, part in by_pattern.items() if regex not in patterns
        }
        unused["patternProperties"] = {"additionalProperties"}
    return unused


def _unsound(wider: set[str]) -> set[str]:
    """Return the keywords that would refuse what fits, if some keywords allow more than before."""
    words = {"unevaluatedProperties", "unevaluatedItems"} if wider else set()
    words |= {"not", "oneOf"} & wider
    words |= {"if", "then", "else"} if "if" in wider else set()
    return words | ({"maxContains"} if "contains" in wider else set())
