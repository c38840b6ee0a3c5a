"""Checking values against JSON Schema, with jsonschema-rs, within bounds.

A schema is compiled once and kept. 2020-12 is the default dialect; draft-04, -06, -07 and
2019-09 are understood by their ``$schema``. References are followed inside the schema only;
nothing is ever fetched. Patterns run in linear time; one that needs more is left to the
server. ``format`` is not enforced.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from holdfast._core.wire import jsonrpc
from holdfast._core.wire.codes import UNENCODABLE
from holdfast.schema import cost
from holdfast.schema.cost import Outline, TooMuch
from holdfast.schema.explain import SchemaFault, Unusable, describe

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

log: logging.Logger = logging.getLogger("holdfast")

LARGEST: Final = 1024 * 1024
"""Bytes of a schema."""
LIGHT: Final = 1000
"""Steps of a schema that no arguments can make long."""
TELLABLE: Final = 5000
"""Steps of a check whose faults are all told: each may cost a thousand times as much."""
PATTERN_BYTES: Final = 256 * 1024
"""The size that a compiled pattern may have."""
PATTERN_SECONDS: Final = 0.25
"""Time for trying many patterns; those after that are not used."""
FEW: Final = 20
KEPT: Final = 2000
"""Compiled schemas that are kept."""


class Checker:
    """One compiled schema."""

    def __init__(self, schema: Any) -> None:
        self._outline = _outline(schema)
        self._schema = schema
        self._unused = _unusable_patterns(self._outline)
        self._validator = _compile(_without(schema, self._unused))
        self._plain: Validator | None = None
        weight = self._outline.weight
        self._light = weight is not None and weight.steps <= LIGHT and not weight.patterns
        self._fits: Callable[[Any], bool] = self._validator.is_valid

    def faults(self, value: Any, size: int | None = None) -> tuple[SchemaFault, ...]:
        """What does not fit; nothing if all does. ``size``: of the value as JSON, if known.

        Raises `Unusable` if the value cannot be checked within bounds.
        """
        try:
            if self._light and (size is None or size < cost.BUDGET // LIGHT):
                return () if self._fits(value) else self._tell(self._validator, value)
            validator = self._affordable(value, size)
            return () if validator.is_valid(value) else self._tell(validator, value)
        except (TooMuch, RecursionError) as error:
            raise Unusable(str(error)) from None
        except ValueError as error:
            return self._retry(value, error)

    def _retry(self, value: Any, error: ValueError) -> tuple[SchemaFault, ...]:
        """Dataclasses, dates and the like are sent as JSON: check what they are sent as."""
        try:
            plain = msgspec.json.decode(jsonrpc.encode(value))
        except UNENCODABLE:
            return ()  # it cannot be sent, and whoever sends it says so better
        if plain == value:
            raise Unusable(str(error)) from None
        return self.faults(plain)

    def _affordable(self, value: Any, size: int | None) -> Validator:
        """The validator to use: without patterns if there is too much text for them."""
        size = len(jsonrpc.encode(value)) if size is None else size
        weight = self._outline.weight
        if weight is None:
            self._outline.work(value)
            return self._validator
        steps = weight.steps * (size // 2 + 1)
        if steps > cost.BUDGET:
            steps = self._outline.work(value)
        if steps + cost.CHARACTER * weight.patterns * size > cost.BUDGET:
            return self._without_patterns()
        return self._validator

    def _without_patterns(self) -> Validator:
        if self._plain is None:
            self._plain = _compile(_without(self._schema, self._outline.patterns))
        return self._plain

    def _tell(self, validator: Validator, value: Any) -> tuple[SchemaFault, ...]:
        """The faults; only the first, or none in detail, if finding all would take long."""
        try:
            affordable = self._outline.work(value) <= TELLABLE
        except TooMuch:
            affordable = False
        if affordable:
            return describe(validator.iter_errors(value), self._schema)
        if self._outline.branches:
            return (SchemaFault("", "does not fit the schema (it is too large to say where)"),)
        return describe([_first_error(validator, value)], self._schema)


def _first_error(validator: Validator, value: Any) -> ValidationError:
    from jsonschema_rs import ValidationError

    try:
        validator.validate(value)
    except ValidationError as error:
        return error
    raise AssertionError("what is not valid has a fault")


class Checkers:
    """All schemas that were needed so far, by their text."""

    def __init__(self) -> None:
        self._known: dict[bytes, Checker | str] = {}

    def get(self, text: Raw) -> Checker:
        """The compiled schema; raises `Unusable` for one that cannot be compiled."""
        key = bytes(text)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            found = self._known[key] = _make(key)
        if isinstance(found, str):
            raise Unusable(found)
        return found


def _make(text: bytes) -> Checker | str:
    """The compiled schema, or why there is none."""
    if len(text) > LARGEST:
        return f"it has more than {LARGEST} bytes"
    try:
        return Checker(msgspec.json.decode(text))
    except Unusable as error:
        return str(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"it cannot be read: {error}"


def _outline(schema: Any) -> Outline:
    try:
        return Outline(schema)
    except TooMuch as error:
        raise Unusable(str(error)) from None


def _compile(schema: Any) -> Validator:
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES)
    try:
        return jsonschema_rs.validator_for(
            schema, pattern_options=options, validate_formats=False, offline=True
        )
    except ValueError as error:
        raise Unusable(_why(schema, error)) from None


def _why(schema: Any, error: ValueError) -> str:
    text = getattr(error, "message", str(error))
    if "meta-schema" in text:
        dialect = schema.get("$schema") if isinstance(schema, dict) else None
        return (
            f"its dialect {str(dialect)[:200]!r} is not supported (2020-12, 2019-09, draft-07, "
            "draft-06 and draft-04 are)"
        )
    if "Retrieval is disabled" in text or "retriev" in text:
        return f"it refers to another document, and none is ever fetched: {text[:300]}"
    return f"it is not a valid schema: {text[:300]}"


# Patterns


def _unusable_patterns(outline: Outline) -> set[str]:
    """The patterns that the linear engine does not take: they look around, or are too large."""
    patterns = sorted(outline.patterns)
    if not patterns or (len(patterns) <= FEW and _takes(patterns)):
        return set()
    until = time.monotonic() + PATTERN_SECONDS
    unused = {one for one in patterns if time.monotonic() > until or not _takes([one])}
    if unused:
        log.debug("patterns that are left to the server: %s", sorted(unused)[:10])
    return unused


def _takes(patterns: list[str]) -> bool:
    try:
        _compile({"allOf": [{"pattern": one} for one in patterns]})
    except Unusable:
        return False
    return True


def _without(schema: Any, patterns: set[str]) -> Any:
    """The schema without some patterns, and without what depends on them."""
    if not patterns:
        return schema
    if isinstance(schema, list):
        return [_without(item, patterns) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _without(value, patterns) for key, value in schema.items()}
    pattern = kept.get("pattern")
    if isinstance(pattern, str) and pattern in patterns:
        del kept["pattern"]
    named = kept.get("patternProperties")
    if isinstance(named, dict) and not patterns.isdisjoint(named):
        kept["patternProperties"] = {k: v for k, v in named.items() if k not in patterns}
        kept.pop("additionalProperties", None)
        kept.pop("unevaluatedProperties", None)
    return kept
