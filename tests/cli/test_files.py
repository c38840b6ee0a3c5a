"""Files: whole or not at all, and never over what is somebody else's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.cli.verbs.lock import MARK, renew
from holdfast.errors import ValidationError


def test_our_own_file_is_written_anew_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert renew(path, f"{MARK} 1") is True
    path.chmod(0o640)
    (tmp_path / "link").symlink_to(path)
    assert renew(tmp_path / "link", f"{MARK} 2") is True
    assert renew(path, f"{MARK} 2") is False
    assert path.read_text() == f"{MARK} 2"
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["a", "link"]


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    renew(tmp_path / "a", MARK)
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_somebody_elses_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xff mine")
    with pytest.raises(
        ValidationError, match="is not a module of holdfast codegen; nothing was written"
    ):
        renew(path, MARK)
    assert path.read_bytes() == b"\xff mine"


@pytest.mark.parametrize("place", ["missing/a", "file/a", "."])
def test_what_cannot_be_written_is_told(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValidationError, match=r"cannot be (read|written): "):
        renew(tmp_path / place, MARK)


def test_nothing_is_left_behind_by_what_failed(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        renew(tmp_path / "a", "\ud800")
    assert os.listdir(tmp_path) == []
