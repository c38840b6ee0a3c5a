"""Show a plan as a diff: the lines of the file that change, without secrets."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from holdfast._core.redact.redactor import HIDDEN, redact_text
from holdfast._core.text import hide, visible
from holdfast.config.views import EntryDisplay
from holdfast.hosts.document import HostDocument
from holdfast.hosts.plan import FilePlan

LONGEST_LINE: Final = 400
MOST_LINES: Final = 20_000
"""Lines that are compared; a longer part of a file is shown by the commands instead."""


def diff_lines(plan: FilePlan) -> list[str]:
    """Return a plan as lines: those that go with ``-``, those that come with ``+``.

    Only lines that change are shown: the others are not ours, and may hold secrets. A file of one
    line, or whose lines are too long for that, is shown by the commands of its servers.
    """
    path = visible(plan.file.path)
    before, secrets = _shown(plan, plan.file.data)
    after, secrets_after = _shown(plan, plan.after)
    changed = list(_changed(before, after))
    is_one_line = len(before) == len(after) == 1
    is_long = len(changed) > MOST_LINES or any(len(line) > LONGEST_LINE for line in changed)
    if is_one_line or is_long:
        changed = list(_commands(plan))
    head = ["--- (no file)" if plan.file.data is None else f"--- {path}"]
    head.append("+++ (no file)" if plan.after is None else f"+++ {path}")
    secrets |= secrets_after
    return head + [visible(redact_text(hide(line, secrets))) for line in changed]


def _shown(plan: FilePlan, data: bytes | None) -> tuple[list[str], set[str]]:
    """Return the lines of a file without values, and the secrets that are in its commands."""
    if data is None:
        return [], set()
    document = HostDocument(plan.file._replace(data=data))
    # Not by every character that ends a line somewhere: the file's author would make the lines.
    text = document.without_values().replace("\r\n", "\n").removesuffix("\n")
    return text.split("\n"), set(_hidden_words(document))


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many lines are the same at the beginning."""
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _changed(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the lines that differ, in order, each hunk behind its place."""
    start = _common(before, after)
    before, after = before[start:], after[start:]
    end = _common(before[::-1], after[::-1])
    before, after = before[: len(before) - end], after[: len(after) - end]
    if len(before) + len(after) > MOST_LINES:
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, old, old_end, new, new_end in matcher.get_opcodes():
        if tag != "equal":
            yield f"@@ line {start + old + 1} @@"
            yield from (f"-{line}" for line in before[old:old_end])
            yield from (f"+{line}" for line in after[new:new_end])


def _commands(plan: FilePlan) -> Iterator[str]:
    """Yield the commands before and after."""
    for change in plan.changes:
        yield f"@@ {change.label} @@"
        for sign, words in (("-", change.before), ("+", change.after)):
            if words:
                yield sign + command_line(words)


def command_line(words: Sequence[str]) -> str:
    """Return a command on one line, without its secrets."""
    import shlex

    return shlex.join(EntryDisplay().arguments(list(words)))


def _hidden_words(document: HostDocument) -> Iterator[str]:
    """Yield the arguments of servers that are secrets (``--token VALUE``)."""
    display = EntryDisplay()
    for server in document.servers():
        words = zip(server.words, display.arguments(list(server.words)), strict=True)
        yield from (word for word, text in words if HIDDEN in text)
