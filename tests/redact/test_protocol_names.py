"""Names of the protocol do not make a message suspicious; what stands beside them still does."""

from __future__ import annotations

import pytest

from holdfast._core.redact.redactor import Redactor
from holdfast.policies import Redaction

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
