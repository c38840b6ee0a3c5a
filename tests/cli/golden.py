"""Screens as they should look, in files to be read and reviewed.

``HOLDFAST_GOLDEN=write`` makes the tests write them anew, and pass; look at the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check(name: str, lines: list[str]) -> None:
    """Compare a screen with its file, to the letter."""
    text = "".join(f"{line}\n" for line in lines)
    path = FOLDER / f"{name}.txt"
    if os.environ.get("HOLDFAST_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), (
        f"{path.name} is not what is shown now; HOLDFAST_GOLDEN=write writes it anew"
    )
