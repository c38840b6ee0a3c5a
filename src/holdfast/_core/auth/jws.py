"""Sign DPoP proofs and client assertions with ``cryptography``, from ``holdfast[auth]``."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, Final
from urllib.parse import urlsplit

from holdfast.errors import AuthError, ValidationError

ASSERTION_LIFE: Final = 300
_CURVES: Final = {"ES256": ("P-256", 32), "ES384": ("P-384", 48), "ES512": ("P-521", 66)}


def new_key() -> str:
    """Return a new ES256 key as PEM."""
    ec = _library("asymmetric.ec")
    serialization = _library("serialization")
    key = ec.generate_private_key(ec.SECP256R1())
    pem: bytes = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return pem.decode("ascii")


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
    parts = urlsplit(url)
    claims: dict[str, Any] = {
        "jti": token_urlsafe(16),
        "htm": method,
        "htu": f"{parts.scheme}://{parts.netloc}{parts.path or '/'}",
        "iat": int(now),
    }
    if token is not None:
        claims["ath"] = _b64(sha256(token.encode("ascii")).digest())
    if nonce is not None:
        claims["nonce"] = nonce
    header = {"typ": "dpop+jwt", "alg": "ES256", "jwk": _public(key)}
    return _sign(header, claims, key, "ES256")


def assertion(
    key: str,
    claims: Mapping[str, str],
    *,
    algorithm: str,
    key_id: str | None,
    now: float,
) -> str:
    """Return a signed assertion (RFC 7523 §3), valid for five minutes."""
    header = {"typ": "JWT", "alg": algorithm}
    if key_id is not None:
        header["kid"] = key_id
    times = {"iat": int(now), "exp": int(now) + ASSERTION_LIFE, "jti": token_urlsafe(16)}
    return _sign(header, {**claims, **times}, key, algorithm)


def _sign(header: Mapping[str, Any], claims: Mapping[str, Any], key: str, algorithm: str) -> str:
    text = f"{_b64(_json(header))}.{_b64(_json(claims))}".encode("ascii")
    return f"{text.decode('ascii')}.{_b64(_signature(_load(key), algorithm, text))}"


def _signature(key: Any, algorithm: str, data: bytes) -> bytes:
    hashes = _library("hashes")
    sizes = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
    digest = sizes[algorithm[2:]]() if algorithm[2:] in sizes else None
    found: bytes
    if algorithm in _CURVES and hasattr(key, "curve"):
        ec, utils = _library("asymmetric.ec"), _library("asymmetric.utils")
        r, s = utils.decode_dss_signature(key.sign(data, ec.ECDSA(digest)))
        size = _CURVES[algorithm][1]
        return int(r).to_bytes(size, "big") + int(s).to_bytes(size, "big")
    padding = _library("asymmetric.padding")
    if algorithm[:2] == "RS" and digest is not None and hasattr(key, "private_numbers"):
        found = key.sign(data, padding.PKCS1v15(), digest)
    elif algorithm[:2] == "PS" and digest is not None and hasattr(key, "private_numbers"):
        pss = padding.PSS(padding.MGF1(digest), digest.digest_size)
        found = key.sign(data, pss, digest)
    elif algorithm == "EdDSA" and not hasattr(key, "private_numbers"):
        found = key.sign(data)
    else:
        raise ValidationError(f"algorithm={algorithm!r}: does not fit the private key")
    return found


@lru_cache(maxsize=64)
def _load(key: str) -> Any:
    serialization = _library("serialization")
    try:
        return serialization.load_pem_private_key(key.encode(), password=None)
    except (ValueError, TypeError):
        # The text of the library's error is not repeated: it may quote the key.
        raise ValidationError("private_key: not an unencrypted private key in PEM") from None


@lru_cache(maxsize=64)
def _public(key: str) -> dict[str, str]:
    numbers = _load(key).public_key().public_numbers()
    return {
        "kty": "EC",
        "crv": "P-256",
        "x": _b64(numbers.x.to_bytes(32, "big")),
        "y": _b64(numbers.y.to_bytes(32, "big")),
    }


def _library(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(f"cryptography.hazmat.primitives.{name}")
    except ImportError:
        raise AuthError(
            "signing needs the package cryptography: pip install 'holdfast[auth]'"
        ) from None


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
