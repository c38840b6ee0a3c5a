"""Sign DPoP proofs and client assertions with ``cryptography``, from ``holdfast[auth]``."""

from __future__ import annotations

import base64
import importlib
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from holdfast._core.auth.credentials import Registration
from holdfast.errors import AuthError, ValidationError

ASSERTION_LIFE: Final = 300


def new_key() -> str:
    """Return a new ES256 key as PEM."""
    ec, serialization = _library("asymmetric.ec"), _library("serialization")
    kind, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    key = ec.generate_private_key(ec.SECP256R1())
    return str(key.private_bytes(kind, form, serialization.NoEncryption()), "ascii")


def proof(
    key: str,
    *,
    method: str,
    url: str,
    now: float,
    nonce: str | None = None,
    token: str | None = None,
) -> str:
    """Return a DPoP proof (RFC 9449 §4.2): for one method and one URL without its query."""
    claims = {"jti": token_urlsafe(16), "htm": method, "htu": _target(url), "iat": int(now)}
    if token is not None:
        claims["ath"] = digest(token)
    if nonce is not None:
        claims["nonce"] = nonce
    return _signed(_proof_header(key), claims, key, "ES256")


def assertion(client: Registration, audience: str, now: float) -> str:
    """Return a signed assertion of who a client is (RFC 7523 §3), valid for five minutes."""
    assert client.private_key is not None
    key_id = {} if client.key_id is None else {"kid": client.key_id}
    claims = {
        **{"iss": client.client_id, "sub": client.client_id, "aud": audience},
        **{"iat": int(now), "exp": int(now) + ASSERTION_LIFE, "jti": token_urlsafe(16)},
    }
    header = _part({"typ": "JWT", "alg": client.algorithm, **key_id})
    return _signed(header, claims, client.private_key, client.algorithm)


def _signed(header: str, claims: Mapping[str, Any], key: str, algorithm: str) -> str:
    text = f"{header}.{_part(claims)}"
    return f"{text}.{_b64(_signer(key, algorithm)(text.encode('ascii')))}"


@lru_cache(maxsize=64)
def _signer(pem: str, algorithm: str) -> Callable[[bytes], bytes]:
    """Return the function that signs by an algorithm (RFC 7518 §3, RFC 8037 §3.1)."""
    key, sha = _load(pem), _library("hashes").SHA256()
    ec, rsa, ed25519 = (_library(f"asymmetric.{name}") for name in ("ec", "rsa", "ed25519"))
    sign: Callable[[bytes], bytes] | None = None
    if algorithm == "ES256" and isinstance(getattr(key, "curve", None), ec.SECP256R1):
        split, method = _library("asymmetric.utils").decode_dss_signature, ec.ECDSA(sha)

        def sign(data: bytes) -> bytes:
            return b"".join(half.to_bytes(32, "big") for half in split(key.sign(data, method)))

    elif algorithm == "RS256" and isinstance(key, rsa.RSAPrivateKey):
        padding = _library("asymmetric.padding").PKCS1v15()
        sign = partial(key.sign, padding=padding, algorithm=sha)
    elif algorithm == "EdDSA" and isinstance(key, ed25519.Ed25519PrivateKey):
        sign = key.sign
    if sign is None:
        text = "is not ES256, RS256 or EdDSA, or does not fit the private key"
        raise ValidationError(f"algorithm={algorithm!r}: {text}")
    return sign


@lru_cache(maxsize=64)
def _load(pem: str) -> Any:
    try:
        return _library("serialization").load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError):
        # The text of the library's error is not repeated: it may quote the key.
        raise ValidationError("private_key: not an unencrypted private key in PEM") from None


@lru_cache(maxsize=64)
def _proof_header(pem: str) -> str:
    numbers = _load(pem).public_key().public_numbers()
    point = {name: _b64(getattr(numbers, name).to_bytes(32, "big")) for name in ("x", "y")}
    jwk = {"kty": "EC", "crv": "P-256", **point}
    return _part({"typ": "dpop+jwt", "alg": "ES256", "jwk": jwk})


@lru_cache(maxsize=64)
def _target(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path or '/'}"


@lru_cache(maxsize=64)
def digest(text: str) -> str:
    """Return the hash that a proof has of its token, and S256 of a verifier (RFC 7636 §4.2)."""
    return _b64(sha256(text.encode("ascii")).digest())


@lru_cache(maxsize=16)
def _library(name: str) -> Any:
    try:
        return importlib.import_module(f"cryptography.hazmat.primitives.{name}")
    except ImportError:
        text = "signing needs the package cryptography: pip install 'holdfast[auth]'"
        raise AuthError(text) from None


def _part(value: Mapping[str, Any]) -> str:
    return _b64(msgspec.json.encode(value))


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
