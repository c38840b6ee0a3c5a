"""The values of a negotiation, and the memory of openings."""

from __future__ import annotations

import pytest
from msgspec import Raw

from holdfast._core.eras import conversation
from holdfast._core.eras.conversation import Facts
from tests.rows import rows


@pytest.mark.req("L2")
def test_the_server_is_described_by_what_can_be_read_of_its_answer() -> None:
    facts = Facts("x", Raw(b'{"name":"s","version":"1"}'), Raw(b'{"tools":{}}'))
    assert facts.server_info is not None
    assert facts.server_info.name == "s"
    assert facts.server_capabilities.tools is not None
    assert Facts("x").server_info is None
    broken = Facts("x", Raw(b'{"name":7}'), Raw(b"[]"))
    assert broken.server_info is None
    assert broken.server_capabilities.tools is None


@pytest.mark.req("L2")
@rows(
    ("declared", "offered"),
    [
        (b'{"tools":{}}', True),
        (b'{"logging":{"n":1e400},"tools":{"listChanged":"yes"}}', True),
        (b'{"tools":null}', False),
        (b'{"tools":true}', False),
        (b"{}", False),
        (b"[]", False),
        (b'{"\xff":1}', False),
    ],
)
def test_a_capability_counts_whatever_else_cannot_be_read(declared: bytes, offered: bool) -> None:
    assert Facts("x", None, Raw(declared)).offers("tools") is offered


@pytest.mark.req("L3")
def test_openings_are_remembered_by_the_key_of_the_server_and_forgotten() -> None:
    conversation.remember("key", "discover")
    assert conversation.recall("key") == "discover"
    conversation.remember("key", None)
    assert conversation.recall("key") is None
    conversation.remember(None, "discover")
    assert conversation.recall(None) is None


@pytest.mark.req("L3", "R9")
def test_the_memory_of_openings_is_bounded() -> None:
    for number in range(conversation.MOST_SERVERS + 1):
        conversation.remember(number, "initialize")
    assert conversation.recall(0) is None
    assert conversation.recall(conversation.MOST_SERVERS) == "initialize"
