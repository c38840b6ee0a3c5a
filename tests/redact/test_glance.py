"""A glance at a text spares the search, and never hides a value from it."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast._core.redact.escapes import SearchBudget
from holdfast._core.redact.glance import is_bare
from tests.redact.wraps import WRAPS, index_of
from tests.thorough import THOROUGH

VALUE = "s3cr3t-Value-42"
WRAPPED = st.sampled_from(sorted(WRAPS)).map(lambda name: WRAPS[name](VALUE))
PIECES = st.one_of(
    st.sampled_from([VALUE, VALUE[:9], VALUE[-8:], VALUE[::-1], VALUE.upper(), " ", "-", '", "']),
    st.sampled_from(["...", "***", "[cut]", "(12 more)", "<b>", "=73", "%41", "&#65;", "^[[1m"]),
    WRAPPED,
    WRAPPED.map(lambda text: text[: len(text) // 2]),
    st.lists(st.integers(0, 255), max_size=9).map(json.dumps),
    st.just(json.dumps(list(VALUE.encode()))),
    st.text(st.characters(max_codepoint=0x17F), max_size=12),
)


@pytest.mark.req("T8")
@given(st.lists(PIECES, max_size=5).map("".join), st.booleans())
@example("s3c r3t " + VALUE[:9], False)
@example("115; 51; 99; 114; 51; 116; 45; 86; 97; 108; 117; 101; 45; 52; 50", False)
@pytest.mark.thorough
@settings(max_examples=600 if THOROUGH else 100, deadline=None)
def test_what_a_glance_passes_over_has_no_value_in_it(text: str, is_crowded: bool) -> None:
    index = index_of(VALUE, *(f"other-{number}-value" for number in range(99 * is_crowded)))
    assert index.spans(text) == (
        index.spans_in_layers(text, SearchBudget()) if len(text) >= 6 else []
    )


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "message",
    [
        '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}',
        '{"jsonrpc":"2.0","id":5,"result":{"resultType":"complete","content":[{"type":"text"}]}}',
        '{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}',
    ],
)
def test_ordinary_messages_are_bare(message: str) -> None:
    assert is_bare(message)
    assert is_bare(message)  # the second time by the words that are remembered
