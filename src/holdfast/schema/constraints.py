"""What a schema asks of a single value: its type, its choices, its bounds, its form."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from holdfast._core.text import difference, join_words, quote, show_json
from holdfast.schema.report import Effect, Findings
from holdfast.schema.types import Flat, mark, named_types, type_of, types, values


class Words(NamedTuple):
    """The same change is told in other words of what is sent and of what comes back."""

    lost: str
    gained: str
    only: str


ARGUMENTS: Final = Words("no longer accepts", "now accepts", "now accepts only")
RESULTS: Final = Words("can no longer be", "can now be", "can now only be")

HANDLED: Final = frozenset(
    {
        "const",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "type",
        "uniqueItems",
    }
)
"""The keywords that are compared here."""


def compare(before: Flat, after: Flat, words: Words, found: Findings) -> bool:
    """Add what differs; False if there is nothing left that both would allow."""
    if not _compare_kinds(before, after, words, found):
        return False
    for key, (text, sign) in _COUNTS.items():
        _compare_bounds(_count(before, key), _count(after, key), sign, text, found)
    for sign in (1, -1):
        _compare_bounds(_edge(before, sign), _edge(after, sign), sign, "{}", found)
    _compare_steps(before.get("multipleOf"), after.get("multipleOf"), found)
    for key, text in _FORMS.items():
        _compare_forms(key, text, before.get(key), after.get(key), found)
    _compare_unique(before, after, found)
    return True


# Types and choices


def _compare_kinds(before: Flat, after: Flat, words: Words, found: Findings) -> bool:
    old, new = _choices(before, after), _choices(after, before)
    if old is not None and new is not None:
        return _compare_choices(old, new, words, found)
    if old is not None:
        return _free_choices(old, after, words, found)
    if new is not None:
        return _bind_choices(types(before), new, words, found)
    return _compare_types(types(before), types(after), words, found)


def _choices(flat: Flat, other: Flat) -> list[Any] | None:
    """The values that may fit, if they are few: those of a boolean are, next to a choice."""
    listed = values(flat)
    if listed is None and "type" in flat and values(other) is not None:
        kinds = types(flat)
        if kinds <= {"boolean", "null"}:
            return [value for value in (False, True, None) if type_of(value) in kinds]
    return listed


def _compare_choices(old: list[Any], new: list[Any], words: Words, found: Findings) -> bool:
    before, after = {mark(value) for value in old}, {mark(value) for value in new}
    lost = [value for value in old if mark(value) not in after]
    gained = [value for value in new if mark(value) not in before]
    if lost:
        found.add(f"{words.lost} {_shown(lost)}", "narrower")
    if gained:
        found.add(f"{words.gained} {_shown(gained)}", "wider")
    return len(lost) < len(old)


def _free_choices(old: list[Any], after: Flat, words: Words, found: Findings) -> bool:
    kinds = types(after)
    lost = [value for value in old if type_of(value) not in kinds]
    if lost:
        found.add(f"{words.lost} {_shown(lost)}", "narrower")
    found.add(f"{words.gained} {_any_of(kinds)}, not only {_shown(old)}", "wider")
    return len(lost) < len(old)


def _bind_choices(kinds: frozenset[str], new: list[Any], words: Words, found: Findings) -> bool:
    found.add(f"{words.only} {_shown(new)}", "narrower")
    gained = [value for value in new if type_of(value) not in kinds]
    if gained:
        found.add(f"{words.gained} {_shown(gained)}", "wider")
    return len(gained) < len(new)


def _compare_types(old: frozenset[str], new: frozenset[str], words: Words, found: Findings) -> bool:
    lost, gained = old - new, new - old
    if lost and gained:
        found.add(f"type changed from {_type_words(old)} to {_type_words(new)}", "different")
    elif lost:
        found.add(f"{words.lost} {_lost_words(lost, new)}", "narrower")
    elif gained:
        found.add(f"{words.gained} {_lost_words(gained, old)}", "wider")
    return bool(old & new)


def _type_words(kinds: frozenset[str]) -> str:
    names = named_types(kinds)
    return "any type" if len(names) == 6 else " or ".join(names)


def _lost_words(kinds: frozenset[str], others: frozenset[str]) -> str:
    """A number that is no integer has no name in JSON schema."""
    names = named_types(kinds)
    if "fraction" in kinds and "integer" in others:
        names = ["fractions" if name == "number" else name for name in names]
    return " or ".join(names)


def _any_of(kinds: frozenset[str]) -> str:
    return "anything" if len(kinds) == 7 else f"any {_type_words(kinds)}"


def _shown(choices: list[Any]) -> str:
    return join_words([show_json(value, 60) for value in choices]) if choices else "nothing"


# Bounds: a value, and whether it is itself outside


class Bound(NamedTuple):
    value: Any
    excluded: bool = False


_COUNTS: Final[dict[str, tuple[str, int]]] = {
    "minLength": ("{} characters", 1),
    "maxLength": ("{} characters", -1),
    "minItems": ("{} items", 1),
    "maxItems": ("{} items", -1),
    "minProperties": ("{} properties", 1),
    "maxProperties": ("{} properties", -1),
}
_EDGES: Final = {1: ("minimum", "exclusiveMinimum"), -1: ("maximum", "exclusiveMaximum")}


def _count(flat: Flat, key: str) -> Bound | None:
    value = flat.get(key)
    return None if value is None or (key.startswith("min") and value <= 0) else Bound(value)


def _edge(flat: Flat, sign: int) -> Bound | None:
    """The lowest number (sign 1) or the highest one (-1)."""
    inclusive, exclusive = (flat.get(key) for key in _EDGES[sign])
    found = [] if inclusive is None else [Bound(inclusive)]
    if exclusive is not None:
        whole = isinstance(exclusive, int) and "fraction" not in types(flat)
        found.append(Bound(exclusive + sign) if whole else Bound(exclusive, True))
    return max(found, key=lambda bound: (sign * bound.value, bound.excluded), default=None)


def _compare_bounds(
    old: Bound | None, new: Bound | None, sign: int, text: str, found: Findings
) -> None:
    if old == new:
        return
    if old is not None and new is not None:
        tighter = (sign * new.value, new.excluded) > (sign * old.value, old.excluded)
        words = f"now {_bound_words(new, sign, text)}, was {show_json(old.value)}"
        found.add(words, "narrower" if tighter else "wider")
    elif new is not None:
        found.add(f"now {_bound_words(new, sign, text)}", "narrower")
    elif old is not None:
        found.add(f"no longer {_bound_words(old, sign, text)}", "wider")


def _bound_words(bound: Bound, sign: int, text: str) -> str:
    if bound.excluded:
        words = "more than" if sign > 0 else "less than"
    else:
        words = "at least" if sign > 0 else "at most"
    return f"{words} {text.format(show_json(bound.value))}"


def _compare_steps(old: Any, new: Any, found: Findings) -> None:
    if old == new:
        return
    if old is None:
        found.add(f"now a multiple of {show_json(new)}", "narrower")
    elif new is None:
        found.add(f"no longer a multiple of {show_json(old)}", "wider")
    else:
        text = f"now a multiple of {show_json(new)}, was of {show_json(old)}"
        found.add(text, _step_effect(old, new))


def _step_effect(old: Any, new: Any) -> Effect:
    if isinstance(old, int) and isinstance(new, int):
        if old % new == 0:
            return "wider"
        if new % old == 0:
            return "narrower"
    return "different"


# Forms

_FORMS: Final = {"pattern": "match the pattern", "format": "have the format"}


def _compare_forms(key: str, text: str, old: Any, new: Any, found: Findings) -> None:
    if old == new:
        return
    if old is None:
        found.add(f"must now {text} {quote(new)}", "narrower")
    elif new is None:
        found.add(f"no longer has to {text} {quote(old)}", "wider")
    else:
        found.add(f"{key} changed: {difference(old, new)}", "different")


def _compare_unique(before: Flat, after: Flat, found: Findings) -> None:
    old, new = before.get("uniqueItems", False), after.get("uniqueItems", False)
    if new and not old:
        found.add("its items must now differ from each other", "narrower")
    elif old and not new:
        found.add("its items no longer have to differ from each other", "wider")
