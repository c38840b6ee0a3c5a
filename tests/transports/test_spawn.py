"""How the end of a server is put into words."""

from __future__ import annotations

import pytest

from holdfast._core.transports.spawn import ending
from tests.rows import rows


@pytest.mark.req("E2")
@rows(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (127, "exited with code 127"),
        (-9, "was killed by SIGKILL"),
        (-70, "was killed by signal 70"),
        (None, "is still running"),
        (0xC0000005, "exited with code 0xC0000005 (access violation)"),
        (0x80000003, "exited with code 0x80000003"),
    ],
)
def test_an_end_is_put_into_words(code: int | None, words: str) -> None:
    assert ending(code) == words
