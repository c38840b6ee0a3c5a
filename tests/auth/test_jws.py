"""Proofs and assertions, checked by another library."""

from __future__ import annotations

import base64
from hashlib import sha256
from typing import Any

import jwt
import pytest

from holdfast._core.auth import jws
from holdfast._core.auth.credentials import Registration
from holdfast.errors import ValidationError


def decoded(token: str, **options: Any) -> dict[str, Any]:
    header = jwt.get_unverified_header(token)
    key = jwt.PyJWK.from_dict(header["jwk"], algorithm="ES256").key
    found: dict[str, Any] = jwt.decode(
        token, key, algorithms=["ES256"], options={"verify_iat": False}, **options
    )
    return found


@pytest.mark.req("A36")
def test_a_proof_is_bound_to_method_url_token_and_nonce() -> None:
    key = jws.new_key()
    token = jws.proof(
        key,
        method="POST",
        url="https://h.example/mcp?x=1#y",
        now=1000.9,
        nonce="n",
        token="TOKEN",
    )
    header = jwt.get_unverified_header(token)
    assert (header["typ"], header["alg"]) == ("dpop+jwt", "ES256")
    assert set(header["jwk"]) == {"kty", "crv", "x", "y"}
    hashed = base64.urlsafe_b64encode(sha256(b"TOKEN").digest()).rstrip(b"=").decode()
    claims = decoded(token)
    assert len(claims.pop("jti")) >= 22
    assert claims == {
        "htm": "POST",
        "htu": "https://h.example/mcp",
        "iat": 1000,
        "nonce": "n",
        "ath": hashed,
    }


@pytest.mark.req("A36")
def test_a_proof_for_a_token_request_has_no_token_hash() -> None:
    token = jws.proof(jws.new_key(), method="POST", url="https://as/token", now=1)
    assert set(decoded(token)) == {"jti", "htm", "htu", "iat"}


def _pem(key: Any) -> str:
    from cryptography.hazmat.primitives import serialization as s

    pem: bytes = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
    return pem.decode()


def _keys() -> list[tuple[str, Any]]:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    return [
        ("ES256", ec.generate_private_key(ec.SECP256R1())),
        ("RS256", rsa.generate_private_key(65537, 2048)),
        ("EdDSA", ed25519.Ed25519PrivateKey.generate()),
    ]


def signer(key: str, algorithm: str = "ES256", key_id: str | None = None) -> Registration:
    return Registration(client_id="me", private_key=key, algorithm=algorithm, key_id=key_id)


@pytest.mark.req("A33")
@pytest.mark.parametrize(("algorithm", "key"), _keys(), ids=lambda one: str(one)[:6])
def test_an_assertion_is_valid_for_five_minutes(algorithm: str, key: Any) -> None:
    claims = {"iss": "me", "sub": "me", "aud": "https://as"}
    token = jws.assertion(signer(_pem(key), algorithm, "k"), "https://as", now=1000)
    found = jwt.decode(
        token,
        key.public_key(),
        algorithms=[algorithm],
        audience="https://as",
        options={"verify_exp": False, "verify_iat": False},
    )
    assert len(found.pop("jti")) >= 22
    assert found == {**claims, "iat": 1000, "exp": 1300}
    assert jwt.get_unverified_header(token)["kid"] == "k"


@pytest.mark.req("B20")
@pytest.mark.parametrize("key", ["KEY-SECRET", "", "-----BEGIN PRIVATE KEY-----\nKEY-SECRET"])
def test_a_key_that_cannot_be_read_is_not_quoted(key: str) -> None:
    with pytest.raises(ValidationError) as caught:
        jws.assertion(signer(key), "https://as", now=1)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_algorithm_that_does_not_fit_the_key_is_refused() -> None:
    with pytest.raises(ValidationError, match="does not fit"):
        jws.assertion(signer(jws.new_key(), "EdDSA"), "https://as", now=1)
