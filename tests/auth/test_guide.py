"""The guide to errors of logins quotes messages that exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.rows import rows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/login.md").read_text(encoding="utf-8")
QUOTED = [found[1] for line in PAGE.splitlines() if (found := re.match(r"\| `([^`]+)` \|", line))]
SOURCES = " ".join(
    re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8"))
    for folder in ("_core/auth", "_core/calls")
    for path in sorted((ROOT / "src/holdfast" / folder).glob("*.py"))
)


def test_there_are_messages() -> None:
    assert len(QUOTED) > 15


@rows("words", QUOTED)
def test_a_quoted_message_is_in_the_code(words: str) -> None:
    assert words in SOURCES
