"""The folder for long results: safe names, private files, bounds."""

from __future__ import annotations

import logging
import os
import stat
import threading
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.calllog.results import NotRecorded
from holdfast.calllog.sinks import MOST_WAITING, Sidecars, _files, read_sidecar, safe_name
from holdfast.errors import ValidationError


def sidecars(folder: Path, most_bytes: int = 10_000, most_files: int = 100) -> Sidecars:
    return Sidecars(".mcp-log", str(folder), most_bytes, most_files)


def keep(cars: Sidecars, seq: int, tool: str, text: str, ending: str = ".txt") -> str | None:
    found = cars.keep(seq, tool, ending, len(text), lambda: text)
    cars.close()
    return found


@pytest.mark.req("G2")
def test_a_sidecar_is_named_by_number_and_tool(tmp_path: Path) -> None:
    cars = sidecars(tmp_path / "log")
    assert keep(cars, 4, "browser.snapshot", "x→y") == ".mcp-log/4-browser.snapshot.txt"
    path = tmp_path / "log" / "4-browser.snapshot.txt"
    assert path.read_text(encoding="utf-8") == "x→y"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.req("G2")
@pytest.mark.parametrize(
    ("tool", "safe"),
    [
        ("../../etc/passwd", ".._.._etc_passwd"),
        ("a/b\\c:d", "a_b_c_d"),
        ("nul\0byte", "nul_byte"),
        ("..", ".."),
        ("", "tool"),
        ("π", "_"),
        ("x" * 500, "x" * 80),
        ("new\nline \x1b[31m", "new_line_31m"),
    ],
)
def test_hostile_names_are_made_safe(tmp_path: Path, tool: str, safe: str) -> None:
    assert keep(sidecars(tmp_path / "log"), 1, tool, "text") == f".mcp-log/1-{safe}.txt"
    assert [path.name for path in (tmp_path / "log").iterdir()] == [f"1-{safe}.txt"]
    assert os.listdir(tmp_path) == ["log"]


@given(st.text())
def test_no_name_leaves_the_folder(tool: str) -> None:
    name = f"7-{safe_name(tool)}.txt"
    assert os.path.basename(name) == name
    assert name.isascii()
    assert len(name) < 100


@pytest.mark.req("G2")
def test_a_second_run_does_not_overwrite_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    assert keep(sidecars(folder), 1, "t", "first") == ".mcp-log/1-t.txt"
    second = sidecars(folder)
    assert keep(second, 1, "t", "second") == ".mcp-log/1-t~2.txt"
    assert keep(second, 2, "t", "third") == ".mcp-log/2-t~2.txt"
    assert (folder / "1-t.txt").read_text() == "first"


def test_the_folder_has_at_most_so_many_files(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "2024-report.txt").write_text("not a sidecar")
    (folder / "2024-report.txt").chmod(0o644)
    cars = sidecars(folder, most_files=3)
    for seq in range(1, 7):
        keep(cars, seq, "t", "x")
        os.utime(folder / f"{seq}-t.txt", ns=(seq, seq))
    assert sorted(os.listdir(folder)) == ["2024-report.txt", "4-t.txt", "5-t.txt", "6-t.txt"]


def test_the_folder_has_at_most_so_many_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    cars = sidecars(folder, most_bytes=1000)
    for seq in range(1, 5):
        keep(cars, seq, "t", "x" * 400)
        os.utime(folder / f"{seq}-t.txt", ns=(seq, seq))
    assert sorted(os.listdir(folder)) == ["3-t.txt", "4-t.txt"]
    assert keep(cars, 5, "t", "x" * 1001) is None


def test_files_that_another_process_removes_meanwhile_are_passed_over(tmp_path: Path) -> None:
    for seq in range(5):
        (tmp_path / f"{seq}-t.txt").write_text("x")
        (tmp_path / f"{seq}-t.txt").chmod(0o600)
    folder = os.open(tmp_path, os.O_RDONLY)
    files = _files(folder)
    first = next(files)
    for path in tmp_path.iterdir():
        path.unlink()
    assert [first, *files] == [first]
    os.close(folder)


def test_bounds_of_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="at least 1"):
        sidecars(tmp_path, most_files=0)


@pytest.mark.parametrize("what", ["folder", "file"])
def test_nothing_is_written_through_a_link(
    tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path / "log"
    if what == "folder":
        folder.symlink_to(elsewhere)
        assert keep(sidecars(folder), 1, "t", "x") is None
        assert any("a result was lost" in one.getMessage() for one in caplog.records)
    else:
        folder.mkdir()
        (folder / "1-t.txt").symlink_to(elsewhere / "target")
        assert keep(sidecars(folder), 1, "t", "x") == ".mcp-log/1-t~2.txt"
    assert os.listdir(elsewhere) == []


def test_a_folder_that_cannot_be_made_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cars = sidecars(tmp_path / "none" / "log")
    assert [keep(cars, seq, "t", "x") for seq in (1, 2)] == [None, None]
    assert len([one for one in caplog.records if one.levelno == logging.WARNING]) == 1


def test_a_text_that_cannot_be_made_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cars = sidecars(tmp_path / "log")

    def fail() -> str:
        raise RuntimeError("no text")

    assert cars.keep(1, "t", ".txt", 5, fail) is not None
    cars.close()
    assert "no text" in caplog.records[-1].getMessage()


def test_the_caller_does_not_wait_for_the_writing(tmp_path: Path) -> None:
    cars, go = sidecars(tmp_path / "log"), threading.Event()

    def make() -> str:
        assert go.wait(120)
        return "late"

    cars.keep(1, "t", ".txt", 4, make)
    assert (tmp_path / "log" / "1-t.txt").read_text() == ""
    go.set()
    cars.close()
    assert (tmp_path / "log" / "1-t.txt").read_text() == "late"


def test_one_large_result_alone_is_not_waited_for_either(tmp_path: Path) -> None:
    cars, go = sidecars(tmp_path / "log", most_bytes=4 * MOST_WAITING), threading.Event()

    def late() -> str:
        assert go.wait(120)
        return "late"

    cars.keep(1, "t", ".txt", 2 * MOST_WAITING, late)
    go.set()
    cars.close()
    assert (tmp_path / "log" / "1-t.txt").read_text() == "late"


def test_where_too_much_waits_the_caller_writes(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    cars, go = sidecars(folder, most_bytes=4 * MOST_WAITING), threading.Event()

    def late() -> str:
        assert go.wait(120)
        return "late"

    cars.keep(1, "t", ".txt", MOST_WAITING, late)
    cars.keep(2, "t", ".txt", 10, lambda: "at once")
    assert (folder / "2-t.txt").read_text() == "at once"
    go.set()
    cars.close()


# Reading


def test_a_log_does_not_decide_which_files_are_read(tmp_path: Path) -> None:
    base = tmp_path / "here"
    (base / ".mcp-log").mkdir(parents=True)
    (base / ".mcp-log" / "1-t.txt").write_text("fine")
    (tmp_path / "1-secret.txt").write_text("secret")
    (base / "2-link.txt").symlink_to(tmp_path / "1-secret.txt")
    os.mkfifo(base / "3-pipe.txt")
    assert read_sidecar(".mcp-log/1-t.txt", base, (base,)) == "fine"
    for path in ("../1-secret.txt", str(tmp_path / "1-secret.txt")):
        with pytest.raises(NotRecorded, match="outside"):
            read_sidecar(path, base, (base,))
    for path in ("2-link.txt", "4-none.txt", "5-nul\0.txt"):
        with pytest.raises(NotRecorded, match="cannot be read"):
            read_sidecar(path, base, (base,))
    with pytest.raises(NotRecorded, match="not a regular file"):
        read_sidecar("3-pipe.txt", base, (base,))
    assert read_sidecar("../1-secret.txt", base, (base, tmp_path)) == "secret"


def looks(folder: Path, most: int) -> int:
    """Return how many files were looked at while twice the most files were kept."""
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code is _files.__code__

    cars = sidecars(folder, 10_000_000, most)
    threading.setprofile(note)
    try:
        for number in range(2 * most):
            keep(cars, number, "tool", "x")
    finally:
        threading.setprofile(None)
    assert most * 7 // 8 <= len(os.listdir(folder)) <= most
    return count


def test_a_full_folder_is_not_searched_for_each_file(tmp_path: Path) -> None:
    few, many = looks(tmp_path / "few", 40), looks(tmp_path / "many", 160)
    assert few > 40
    assert many < 6 * few
