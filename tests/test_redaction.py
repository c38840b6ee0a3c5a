"""Secrets are blacked out by name, by look and by the schema's word."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.redaction import HIDDEN, Redactor
from holdfast.policies import SECRETS, Redaction

redactor = Redactor(Redaction())


SECRET = """
password Password user_password apiKey API_KEY x-api-key X-Api-Key access_token accessToken
Authorization clientSecret client.secret AWSSecretKey sessionId PIN otp private_key
"""
OPEN = "max_tokens author pinned path query monkey keyboard sessionName opinion user secretary"


@pytest.mark.req("T8")
@pytest.mark.parametrize("name", SECRET.split())
def test_a_field_is_secret_by_its_name(name: str) -> None:
    assert redactor.value({name: "hunter2"}) == {name: HIDDEN}


@pytest.mark.req("T8")
@pytest.mark.parametrize("name", OPEN.split())
def test_other_names_are_not(name: str) -> None:
    assert redactor.value({name: "x"}) == {name: "x"}


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "secret",
    [
        "Bearer abcdef0123456789",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0abc.c2lnbmF0dXJl",
        "sk-" + "live-0123456789abcdefghij",
        "ghp_0123456789abcdefghij",
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-0123456789-abc",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_text_is_searched_for_what_looks_secret(secret: str) -> None:
    found = redactor.value({"note": f"use {secret} please", "list": [secret]})
    assert secret not in str(found)
    assert found["note"].startswith("use ")
    assert found["note"].endswith(" please")


@pytest.mark.req("T8")
def test_the_password_in_a_url_is_secret() -> None:
    found = redactor.text("postgres://me:hunter2@host/db")
    assert "hunter2" not in found
    assert found.endswith("@host/db")


@pytest.mark.req("T8")
def test_secrets_lie_at_any_depth() -> None:
    value = {"a": [{"b": {"token": {"raw": "x"}}}]}
    assert redactor.value(value) == {"a": [{"b": {"token": HIDDEN}}]}


@pytest.mark.req("T8")
@pytest.mark.parametrize("hint", [{"writeOnly": True}, {"format": "password"}])
def test_a_schema_can_say_what_is_secret(hint: Any) -> None:
    schema = {
        "properties": {
            "word": {"type": "string", **hint},
            "list": {"items": {"properties": {"inner": hint}}},
            "either": {"anyOf": [{"type": "null"}, hint]},
            "open": {"type": "string"},
        }
    }
    value = {"word": "x", "list": [{"inner": "x"}], "either": "x", "open": "x"}
    hidden = {"word": HIDDEN, "list": [{"inner": HIDDEN}], "either": HIDDEN, "open": "x"}
    assert redactor.value(value, schema) == hidden
    assert Redactor(Redaction(schema=False)).value(value, schema) == value


@pytest.mark.req("T8")
def test_names_and_patterns_can_be_ones_own() -> None:
    own = Redactor(Redaction(keys=["badge number"], patterns=[r"ID\d+"]))
    assert own.value({"badgeNumber": 5, "text": "see ID77", "password": "x"}) == {
        "badgeNumber": HIDDEN,
        "text": f"see {HIDDEN}",
        "password": "x",
    }


@pytest.mark.req("T8")
def test_redaction_can_be_off() -> None:
    assert Redactor(Redaction(on=False)).value({"password": "x"}) == {"password": "x"}


@pytest.mark.req("T8")
def test_what_cannot_be_looked_into_is_hidden_whole() -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    assert "x" not in str(redactor.value(deep))
    assert redactor.value({"a": object()}) == HIDDEN
    assert redactor.value([deep] * 2)


class Login(msgspec.Struct):
    user: str
    password: str


@pytest.mark.req("T8")
def test_objects_are_looked_into() -> None:
    assert redactor.value(Login("me", "x")) == {"user": "me", "password": HIDDEN}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", *SECRETS[:6], "userToken"]), inner, max_size=4)
    ),
    max_leaves=15,
)
CANARY = "CANARY-7f3a"


def planted(value: Any, secret: bool = False) -> Any:
    """Every text below a secret name replaced by the canary."""
    if isinstance(value, dict):
        return {
            key: planted(item, secret or redactor.is_secret(key)) for key, item in value.items()
        }
    if isinstance(value, list):
        return [planted(item, secret) for item in value]
    return CANARY if secret else value


@pytest.mark.req("T8")
@given(VALUES)
def test_no_secret_value_survives_and_nothing_else_is_lost(value: Any) -> None:
    before = planted(value)
    copy = msgspec.json.decode(msgspec.json.encode(before))
    found = redactor.value(before)
    assert CANARY not in msgspec.json.encode(found).decode()
    assert before == copy, "what was given is not changed"
    assert redactor.value(found) == found, "once is enough"
    if CANARY not in str(before):
        assert _shape(found) == _shape(before)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _shape(item)
            for key, item in value.items()
            if item != HIDDEN and not redactor.is_secret(key)
        }
    return [_shape(item) for item in value] if isinstance(value, list) else value


@pytest.mark.req("T8")
@given(st.text(), st.text(alphabet="abcXYZ0189_-", min_size=20, max_size=40))
def test_a_credential_in_any_text_is_hidden(around: str, secret: str) -> None:
    assert secret not in redactor.text(f"{around} Bearer {secret} {around}") or secret in around
