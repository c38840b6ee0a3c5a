"""What a server is given, and how its end is put into words."""

from __future__ import annotations

import pytest

from holdfast._core.transports.spawn import PASSED_ENVIRONMENT, ending, environment

OURS = {"PATH": "/bin", "HOME": "/home/me", "TOKEN": "t", "FUNCTION": "() { :; }"}


@pytest.mark.req("X1")
def test_only_the_basics_are_passed_by_default() -> None:
    assert environment({}, (), OURS) == {"HOME": "/home/me", "PATH": "/bin"}
    assert "SSH_AUTH_SOCK" not in environment({}, (), {"SSH_AUTH_SOCK": "x"})


@pytest.mark.req("X1", "N1")
def test_what_launchers_need_to_download_is_passed_by_default() -> None:
    ours = {name.replace("*", "CACHE"): "x" for name in PASSED_ENVIRONMENT}
    assert environment({}, (), ours) == ours
    secrets = {"UV_PUBLISH_TOKEN": "x", "NPM_TOKEN": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    assert environment({}, (), secrets) == {}


@pytest.mark.req("X1")
def test_more_is_passed_by_name() -> None:
    found = environment({"EXTRA": "1"}, ["TOKEN", "UNSET"], OURS)
    assert found == {"HOME": "/home/me", "PATH": "/bin", "TOKEN": "t", "EXTRA": "1"}


@pytest.mark.req("X1")
def test_all_is_passed_on_request_but_shell_functions() -> None:
    assert environment({"HOME": "/"}, True, OURS) == {"PATH": "/bin", "HOME": "/", "TOKEN": "t"}


@pytest.mark.req("X1")
def test_nothing_is_inherited_by_false() -> None:
    assert "TOKEN" not in environment({}, False, OURS)


@pytest.mark.req("E2")
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (127, "exited with code 127"),
        (-9, "was killed by SIGKILL"),
        (-70, "was killed by signal 70"),
        (None, "is still running"),
    ],
)
def test_an_end_is_put_into_words(code: int | None, words: str) -> None:
    assert ending(code) == words
