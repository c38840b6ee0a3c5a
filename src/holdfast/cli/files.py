"""Files that are written whole or not at all, and never over what is somebody else's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import ValidationError


def create(path: Path, text: str) -> None:
    """A new file, and its folder; one that is there already stays as it is."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValidationError(f"{path.parent}: cannot be made: {error.strerror}") from None
    with _beside(path, text) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise ValidationError(f"{path} is there already; nothing was written") from None
        os.unlink(temporary)


def renew(path: Path, text: str, is_ours: Callable[[str], bool], what: str) -> bool:
    """Write a file anew that is ``what``; False if it said the same already."""
    before = _read(path)
    if before == text:
        return False
    if before is not None and not is_ours(before):
        raise ValidationError(f"{path} is not {what}; nothing was written")
    target = Path(os.path.realpath(path))
    with _beside(target, text) as temporary:
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    return True


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValidationError(f"{path}: cannot be read: {error.strerror}") from None


def _mode(path: Path) -> int:
    """That of the file as it is, or of any new one."""
    if path.exists():
        return path.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def _beside(path: Path, text: str) -> Iterator[str]:
    """The text in a file next to its place; gone again unless it is put there."""
    from tempfile import mkstemp

    try:
        descriptor, temporary = mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            yield temporary
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise ValidationError(f"{path}: cannot be written: {error.strerror}") from None
