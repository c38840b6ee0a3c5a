"""A person on Windows runs the tests that can run there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.posix import is_left_out, posix_part
from tests.rules.source import PROJECT

TESTS = PROJECT / "tests"


@pytest.mark.req("S5")
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("test_forsaken.py", "os.kill"),
        ("test_files.py", "os.mkfifo"),
        ("soak/test_soak.py", "/proc/"),
        ("wire/test_jsonrpc.py", None),
        ("transports/test_windows_command.py", None),
    ],
)
def test_a_file_that_needs_posix_is_left_out_on_windows_alone(name: str, part: str | None) -> None:
    path = TESTS / name
    assert (posix_part(path) is None) is (part is None)
    assert part is None or part in path.read_text(encoding="utf-8")
    assert is_left_out(path, "win32") is (part is not None)
    assert not is_left_out(path, "linux")


def test_most_of_the_suite_is_not_left_out() -> None:
    files = list(TESTS.rglob("test_*.py"))
    left_out = [path for path in files if is_left_out(path, "win32")]
    assert 0 < len(left_out) < len(files) / 3


def test_only_tests_are_left_out(tmp_path: Path) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text("import fcntl\n", encoding="utf-8")
    assert posix_part(helper) == "import fcntl"
    assert not is_left_out(helper, "win32")
