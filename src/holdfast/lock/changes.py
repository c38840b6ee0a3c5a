"""Compare two sets of tools, from the view of code written for the first one.

breaking    code written before may fail now, or a tool does more than it said: a tool is gone
            now, arguments that were fine are refused, results lack what they had, a
            promise of safety was taken back. Also whatever cannot be proven safe.
safe        code written before still works: a new tool, a new optional parameter, a value
            more to choose from, a field more in the result.
wording     only texts changed: titles, descriptions, instructions, examples. It breaks
            no code, but models act on it.
"""

# What is compared is the view of those who rely on the tools: code that was written for them, and
# a person who has read their descriptions. For arguments a schema that takes less is breaking, for
# results one that gives more: the same difference has the opposite effect on the two sides.
#
# Attack: a server that wants a change to be overlooked makes the comparison too expensive, or the
# list of changes too long to read. Hence all comparisons of one report share a budget, what is
# beyond it counts as breaking, and a list that is cut says how much is missing and keeps its worst
# entries first.

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from holdfast._core.text import counted, label
from holdfast.schema import diff
from holdfast.schema.report import (
    ARGUMENT_IMPACTS,
    IMPACTS,
    RESULT_IMPACTS,
    Impact,
    SchemaChange,
    SchemaDiff,
    where,
    worst,
)
from holdfast.schema.types import same
from holdfast.schema.walk import MAX_WORK, Budget

HINTS: Final = {
    "readOnlyHint": (True, "says that it only reads"),
    "destructiveHint": (False, "says that it destroys nothing"),
    "idempotentHint": (True, "says that repeating it does no harm"),
    "openWorldHint": (False, "says that it stays within its own domain"),
}
"""The value of each that promises something, and what it promises."""


ALL: Final = ("title", "description", "inputSchema", "outputSchema", "annotations")
"""The fields of a definition that are compared."""

EFFORT: Final = 4 * MAX_WORK
"""Steps for one schema, and ten times as many for all of them."""
MOST_CHANGES: Final = 50
MOST_DETAILS: Final = 20
"""What is shown of a long list. All of it counts."""

Kind: TypeAlias = Literal["added", "removed", "changed"]
Definition: TypeAlias = Mapping[str, Any]
Definitions: TypeAlias = Mapping[str, Definition]


class ToolChange(Struct, frozen=True):
    """The change of one tool, or of the server's instructions."""

    kind: Kind
    name: str
    impact: Impact = "breaking"
    details: tuple[str, ...] = ()
    """What differs, where: ``url: now required``."""
    impacts: tuple[Impact, ...] = ()
    """What each of these alone would be."""
    subject: Literal["tool", "skill", "instructions"] = "tool"

    def __str__(self) -> str:
        name = _SUBJECTS[self.subject].format(label(self.name))
        lines = [f"{_MARKS[self.kind]} {name}: {self.kind} ({self.impact})"]
        impacts = self.impacts or (self.impact,) * len(self.details)
        for detail, impact in list(zip(self.details, impacts, strict=True))[:MOST_DETAILS]:
            lines.append(f"    {impact + ':':<10}{detail}")
        if len(self.details) > MOST_DETAILS:
            lines.append(f"    … and {len(self.details) - MOST_DETAILS} more differences")
        return "\n".join(lines)


_MARKS: Final[dict[Kind, str]] = {"added": "+", "removed": "-", "changed": "~"}
_SUBJECTS: Final = {"tool": "{}", "skill": "skill {}", "instructions": "the server's instructions"}


class Changes(Struct, frozen=True):
    """All changes, the worst first. False if there are none; as text, several lines."""

    items: tuple[ToolChange, ...] = ()

    @property
    def impact(self) -> Impact | None:
        """That of the worst change; None if nothing changed."""
        return worst(change.impact for change in self.items)

    @property
    def breaking(self) -> bool:
        """True if a change may break callers."""
        return self.impact == "breaking"

    @property
    def summary(self) -> str:
        """``3 changes: 1 breaking, 2 wording``"""
        if not self.items:
            return "no changes"
        counts = [
            (sum(change.impact == impact for change in self.items), impact) for impact in IMPACTS
        ]
        listed = ", ".join(f"{count} {impact}" for count, impact in counts if count)
        return f"{counted(len(self.items), 'change')}: {listed}"

    def __bool__(self) -> bool:
        return bool(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[ToolChange]:
        return iter(self.items)

    def __str__(self) -> str:
        lines = [self.summary, *map(str, self.items[:MOST_CHANGES])]
        if len(self.items) > MOST_CHANGES:
            lines.append(f"… and {len(self.items) - MOST_CHANGES} more changes")
        return "\n".join(lines)


def compare(
    before: Definitions,
    after: Definitions,
    *,
    fields: Collection[str] = ALL,
    instructions: tuple[str | None, str | None] | None = None,
    skills: tuple[Definitions, Definitions] = ({}, {}),
) -> Changes:
    """Compare two sets of definitions, both keyed by name.

    Args:
        before: The definitions before.
        after: The definitions after.
        fields: The fields that count.
        instructions: The server's instructions, before and after.
        skills: Its skills, before and after, keyed by URI.
    """
    budget = Budget(10 * EFFORT)
    common = before.keys() & after.keys()
    changes = [
        *_skills(*skills),
        *(_changed(name, before[name], after[name], fields, budget) for name in common),
        *(ToolChange("removed", name) for name in before.keys() - after.keys()),
    ]
    changes += [_added(name, after[name]) for name in after.keys() - before.keys()]
    if instructions is not None and instructions[0] != instructions[1]:
        changes.append(_changed_instructions(*instructions))
    changed = [change for change in changes if change is not None]
    changed.sort(
        key=lambda change: (IMPACTS.index(change.impact), change.subject == "tool", change.name)
    )
    return Changes(tuple(changed))


def _added(name: str, definition: Definition) -> ToolChange:
    real_name = definition.get("name", name)
    if real_name == name:
        return ToolChange("added", name, "safe")
    # A second tool of one name takes calls meant for the first.
    twice = f"the name {label(str(real_name))} now stands for different tools"
    return ToolChange("added", name, "breaking", (twice,), ("breaking",))


def _changed_instructions(before: str | None, after: str | None) -> ToolChange:
    name, texts = "instructions", SchemaDiff()
    old, new = ({} if text is None else {name: text} for text in (before, after))
    texts.compare_text(name, old, new)
    details = tuple(change.text for change in texts.changes)
    return ToolChange("changed", name, "wording", details, subject="instructions")


def _skills(before: Definitions, after: Definitions) -> Iterator[ToolChange]:
    """A model acts on a skill's texts, and nothing proves that a new text is safe."""
    for uri in before.keys() | after.keys():
        old, new = before.get(uri), after.get(uri)
        if old is None:
            yield ToolChange("added", uri, "safe", subject="skill")
        elif new is None:
            yield ToolChange("removed", uri, "breaking", subject="skill")
        elif not same(old, new):
            details = (*_replaced("frontmatter", old, new), *_replaced("resources", old, new))
            yield ToolChange("changed", uri, "breaking", details, subject="skill")


def _replaced(part: str, before: Definition, after: Definition) -> Iterator[str]:
    """Return the texts or files of a skill that are not the same."""
    old, new = before.get(part), after.get(part)
    if not isinstance(old, dict) or not isinstance(new, dict):
        yield from () if same(old, new) else (f"{part}: replaced",)
        return
    for key in sorted(old.keys() | new.keys()):
        if not same(old.get(key), new.get(key)):
            verb = "removed" if key not in new else "changed" if key in old else "added"
            yield f"{'frontmatter.' if part == 'frontmatter' else ''}{label(key)}: {verb}"


_ROOTS: Final = {
    "inputSchema": ("arguments",),
    "outputSchema": ("result", "result"),
    "annotations": ("annotations",),
}
"""What the top of a field is called, in the place of a change."""


def _placed(field: str, change: SchemaChange) -> str:
    """Return the text of a change, after the place in its field where it is."""
    place = where(change.place, *_ROOTS.get(field, ("",)))
    return f"{place}: {change.text}" if place else change.text


def _changed(
    name: str, before: Definition, after: Definition, fields: Collection[str], budget: Budget
) -> ToolChange | None:
    """Return the change of one tool; None if it is the same."""
    details: list[tuple[str, Impact]] = []
    impacts: set[Impact] = set()
    for field in ALL:
        if field not in fields or same(before.get(field), after.get(field)):
            continue
        differences = _compare_field(field, before, after, budget)
        table = RESULT_IMPACTS if field == "outputSchema" else ARGUMENT_IMPACTS
        details += [
            (_placed(field, change), table[change.effect]) for change in differences.changes
        ]
        impacts |= {table[effect] for effect in differences.effects}
    impact = worst(impacts)
    if impact is None:
        return None
    details.sort(key=lambda detail: IMPACTS.index(detail[1]))
    texts = tuple(text for text, _ in details)
    return ToolChange("changed", name, impact, texts, tuple(grade for _, grade in details))


def _compare_field(
    field: str, before: Definition, after: Definition, remaining: Budget
) -> SchemaDiff:
    old, new, differences = before.get(field), after.get(field), SchemaDiff()
    returns = field == "outputSchema"
    if field == "annotations":
        _compare_annotations(old, new, differences)
    elif returns and old is None:
        differences.add("is now described", "added")
    elif returns and new is None:
        differences.add("is no longer described", "different")
    elif returns or field == "inputSchema":
        budget = Budget(min(EFFORT, remaining.left))
        remaining.left -= budget.left
        differences = diff.compare(old, new, budget, returns=returns)
        remaining.left += max(0, budget.left)
    else:
        differences.compare_text(field, before, after)
    return differences


def _by_hint(annotations: Any) -> Mapping[str, Any]:
    if isinstance(annotations, Mapping):
        return annotations
    return {} if annotations is None else {"(malformed)": annotations}


def _compare_annotations(before: Any, after: Any, differences: SchemaDiff) -> None:
    """Add what became of the annotations of a tool; None: it had none."""
    old, new = _by_hint(before), _by_hint(after)
    for name in sorted(old.keys() | new.keys()):
        old_hint, new_hint = old.get(name), new.get(name)
        promise, promised = HINTS.get(name, (None, ""))
        if same(old_hint, new_hint) and (name in old) == (name in new):
            continue
        if promise is not None and old_hint is promise:
            differences.add(f"no longer {promised} ({name})", "different")
        elif promise is not None and new_hint is promise:
            differences.add(f"now {promised} ({name}); only its word for it", "added")
        elif name == "destructiveHint" and new_hint is True:
            differences.add(f"now says that it may destroy things ({name})", "different")
        else:
            differences.compare_text(name, old, new)
