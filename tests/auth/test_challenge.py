"""WWW-Authenticate, as servers write it and as attackers would."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast._core.auth.credentials import split_scope
from holdfast._core.auth.flow import (
    MAX_HEADER,
    Challenge,
    parse,
    read_challenge,
)
from tests.rows import rows

PRM = "https://mcp.example/.well-known/oauth-protected-resource"


@pytest.mark.req("A2")
@rows(
    "headers",
    [
        [f'Bearer resource_metadata="{PRM}", scope="a b", error="invalid_token"'],
        [f'bearer  SCOPE = "a b" ,error=invalid_token,resource_metadata="{PRM}"'],
        [
            'Basic realm="x, Bearer scope=\\"no\\""',
            f'Bearer error="invalid_token", scope="a b", resource_metadata={PRM}',
        ],
        [
            f'Negotiate abc==, Bearer resource_metadata="{PRM}",scope="a b",error=invalid_token, '
            'Digest nonce="n"'
        ],
        [
            f'Bearer error="invalid_token", DPoP algs="ES256", resource_metadata="{PRM}"',
            'Bearer scope="a b"',
        ],
        [f', ,Bearer ,scope="\\a b",, error="invalid\\_token", resource_metadata="{PRM}", ,'],
    ],
)
def test_a_challenge_is_read_however_it_is_written(headers: list[str]) -> None:
    found = read_challenge(headers)
    assert found.resource_metadata == PRM
    assert found.scope == ("a", "b")
    assert found.error == "invalid_token"
    assert "bearer" in found.schemes


@pytest.mark.req("A2")
def test_a_dpop_challenge_counts_like_a_bearer_one() -> None:
    found = read_challenge([f'DPoP error="use_dpop_nonce", resource_metadata="{PRM}"'])
    assert found == Challenge(frozenset({"dpop"}), PRM, None, "use_dpop_nonce", None)


@rows(
    "header",
    ["", "Bearer", 'Bearer scope="open', "=x", 'Basic scope="a"', '"', "Bearer =,=,", 'x="' * 50],
)
def test_what_cannot_be_read_is_skipped(header: str) -> None:
    assert read_challenge([header]).scope is None


def test_an_open_quote_does_not_take_long() -> None:
    assert parse(['Bearer a="' + '\\"' * 100_000]) == [("bearer", {})]


def test_many_challenges_do_not_take_long() -> None:
    assert len(parse(["a ," * 2600] * 100)) <= MAX_HEADER // 3 + 1


@settings(max_examples=50)
@given(st.lists(st.text(max_size=200), max_size=4))
def test_nothing_makes_the_parser_fail(headers: list[str]) -> None:
    read_challenge(headers)


_token = st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True)
_value = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(_token, st.dictionaries(_token, _value, min_size=1, max_size=3)), max_size=4)
)
def test_what_is_written_is_what_is_read(challenges: list[tuple[str, dict[str, str]]]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    header = ", ".join(
        f"{scheme} " + ", ".join(f"{name}={quoted(value)}" for name, value in params.items())
        for scheme, params in challenges
    )
    assert parse([header]) == challenges


def test_scopes_are_split_once_each_and_without_what_is_none() -> None:
    assert split_scope('b  a b "x" c\\d é') == ("b", "a")
    assert len(split_scope(" ".join(map(str, range(1000))))) == 200
