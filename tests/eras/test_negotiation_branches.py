"""A server that refuses the revision it then lists: once it is believed, twice it is not."""

from __future__ import annotations

import pytest

from holdfast._core.eras.revisions import UNSUPPORTED_VERSION
from tests.eras.test_negotiation import (
    LEGACY,
    MODERN,
    Talk,
    discovered,
    initialized,
    plan,
    supported,
)

pytestmark = pytest.mark.req("L3")


def refused(*versions: str) -> Talk:
    return Talk(plan()).discover_refused(UNSUPPORTED_VERSION, supported(*versions))


def test_a_list_with_our_revision_in_it_is_taken_at_its_word() -> None:
    talk = refused(MODERN, LEGACY)
    assert talk.said == ["server/discover", "server/discover"]
    assert talk.patience is None
    assert talk.discover(discovered(MODERN)).agreed_on(MODERN)


def test_a_second_refusal_with_the_same_list_leads_to_its_handshake_revision() -> None:
    talk = refused(MODERN, LEGACY)
    talk.discover_refused(UNSUPPORTED_VERSION, supported(MODERN, LEGACY))
    assert talk.said == ["server/discover", "server/discover", "initialize"]
    assert talk.initialize(initialized(LEGACY)).agreed_on(LEGACY)


def test_a_second_refusal_that_names_nothing_else_is_the_end() -> None:
    talk = refused(MODERN)
    talk.discover_refused(UNSUPPORTED_VERSION, supported(MODERN))
    assert MODERN in talk.failed(final=True)


def test_a_second_answer_of_another_kind_falls_back() -> None:
    talk = refused(MODERN).discover_refused(-32601)
    assert talk.said[-1] == "initialize"
    assert talk.initialize(initialized(LEGACY)).agreed_on(LEGACY)
