"""Names of the protocol do not make a message suspicious; what stands beside them still does."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from holdfast._core.redact.known import KnownSecrets
from holdfast._core.redact.redactor import Redactor
from holdfast.policies import Redaction
from tests.redact.wraps import WRAPS

PLAIN = b'{"method":"tools/call","params":{"_meta":{"progressToken":3},"structuredContent":{}}}'


@pytest.mark.req("W1")
def test_an_ordinary_message_of_the_protocol_is_plain() -> None:
    redactor = Redactor(Redaction())
    assert redactor.is_plain(PLAIN)
    assert not redactor.is_plain(b'{"progressToken":"abcdefghijklmnop12345"}')
    assert not redactor.is_plain(b'{"token":"abc"}')
    assert not redactor.is_plain(b"progressToken=hunter2")


@pytest.mark.req("W1")
def test_a_name_that_the_policy_hides_is_not_plain() -> None:
    assert not Redactor(Redaction(keys=("progressToken",))).is_plain(PLAIN)


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "message",
    [
        b'{"token":"abc"}',
        b"[" * 64 + b"]" * 64,
        b'{"a":"%s"}' % (b"x y " * 200),
        b'{"a":"hunter2abc"}',
    ],
    ids=["name", "depth", "length", "known value"],
)
def test_messages_are_plain_together_if_each_of_them_is(message: bytes) -> None:
    known = KnownSecrets()
    known.note("hunter2abc")
    redactor = Redactor(Redaction(), known)
    assert redactor.are_plain([PLAIN, PLAIN]) == [True, True]
    assert not redactor.is_plain(message)
    assert redactor.are_plain([PLAIN, message, PLAIN]) == [True, False, True]


@pytest.mark.req("T8")
@pytest.mark.parametrize("more", [0, 300], ids=["few", "many"])
@pytest.mark.parametrize(
    "text", ["it: hunter2ab", "nter2abc!", "H u n t e r 2 a", "#$%&/(7a)", "<b>h</b>u<i>nter2a"]
)
def test_a_text_that_was_cut_in_a_secret_is_not_plain(text: str, more: int) -> None:
    known = KnownSecrets()
    known.note("hunter2abc!", "#$%&/(7a)=?", *(f"other-secret-{number}" for number in range(more)))
    redactor = Redactor(Redaction(), known)
    value = {"result": {"content": [{"type": "text", "text": text}], "isError": False}}
    message = json.dumps(value).encode()
    assert "[redacted]" in str(redactor.value(value))
    assert not redactor.is_plain(message)
    assert redactor.are_plain([PLAIN, message, PLAIN]) == [True, False, True]


@pytest.mark.req("T8")
@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_what_is_plain_has_nothing_that_would_be_hidden(wrap: Callable[[str], str]) -> None:
    secret, known = "blue-harbor7lantern", KnownSecrets()
    known.note(secret)
    redactor = Redactor(Redaction(), known)
    for part in (secret, secret[:14], secret[-14:]):
        value = {"id": 1, "result": {"content": [{"text": wrap(part)}], "isError": False}}
        assert redactor.value(value) == value or not redactor.is_plain(json.dumps(value).encode())


@pytest.mark.req("T8")
def test_a_part_that_came_before_does_not_vouch_for_what_stands_beside_it() -> None:
    redactor = Redactor(Redaction(), KnownSecrets())
    messages = [b'{"a":1,"b":"x","c":2}', b'{"a":1,"password":"x","c":2}', b'{"a":1,"b":"--x"}']
    for _ in range(4):  # parts are remembered when they come again
        assert redactor.are_plain(messages * 20) == [True, False, False] * 20
        assert redactor.are_plain(messages[:1] * 20) == [True] * 20
