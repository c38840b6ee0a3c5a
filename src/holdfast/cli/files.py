"""Files that a command writes: whole or not at all, and never over what is somebody else's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from holdfast._core.files import read_bytes, reason, resolve_output, write_atomic
from holdfast.errors import ValidationError

MOST_BYTES: Final = 64 * 1024 * 1024


def create(path: Path, text: str) -> None:
    """Create a file, and its folder; one that is there already stays as it is."""
    try:
        os.makedirs(resolve_output(path.parent), exist_ok=True)
    except OSError as error:
        raise ValidationError(f"{path.parent}: cannot be made: {reason(error)}") from None
    try:
        write_atomic(path, text.encode(), exclusive=True)
    except FileExistsError:
        raise ValidationError(f"{path} is there already; nothing was written") from None
    except OSError as error:
        raise ValidationError(f"{path}: cannot be written: {reason(error)}") from None


def renew(path: Path, text: str, is_ours: Callable[[str], bool], what: str) -> bool:
    """Write a file anew that is ``what``; return False if it had the same text already."""
    before = read_if_there(path)
    if before == text:
        return False
    if before is not None and not is_ours(before):
        raise ValidationError(f"{path} is not {what}; nothing was written")
    try:
        write_atomic(resolve_output(path), text.encode())
    except OSError as error:
        raise ValidationError(f"{path}: cannot be written: {reason(error)}") from None
    return True


def read_if_there(path: Path) -> str | None:
    """Return the text of a regular file; None if there is none."""
    try:
        return read_bytes(path, MOST_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValidationError(f"{path}: cannot be read: {reason(error)}") from None
