"""Decide which URLs may be asked or opened, build well-known ones, compare identifiers."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from socket import inet_aton, inet_ntoa
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

MAX_URL: Final = 2048
MAX_OPENED: Final = 16 * 1024
"""For a page to open: an authorization URL carries a request with it (CVE-2025-6514)."""

_URL = re.compile(r"https?://[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+", re.I)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._]+)(:[0-9]*)?")
_PORTS: Final = {"http": 80, "https": 443}
_NAT64: Final = IPv6Network("64:ff9b::/96")
_INTERNAL: Final = (IPv6Network("64:ff9b:1::/48"), IPv6Network("fec0::/10"))
"""Local NAT64 (RFC 8215), where the IPv4 address may be in several places, and site-local."""
_COMPATIBLE: Final = IPv6Network("::/96")
_SHARED: Final = IPv4Network("100.64.0.0/10")

Address = IPv4Address | IPv6Address


class BadUrl(ValueError):  # noqa: N818  (says what is wrong with it)
    """A URL that must not be used; the text says why and does not repeat it."""


def checked(url: object, *, insecure: bool = False, limit: int = MAX_URL) -> SplitResult:
    """Return a URL in its parts, or raise ``BadUrl``.

    It must be https, or http on loopback (specification, Communication Security), without
    user info, and of the characters of RFC 3986 alone: parsers disagree about all others.
    """
    if not isinstance(url, str) or len(url) > limit or not _URL.fullmatch(url):
        raise BadUrl("not an http or https URL")
    parts = _split(url)
    if "@" in parts.netloc:
        raise BadUrl("user information in a URL is not allowed")
    if not _AUTHORITY.fullmatch(parts.netloc):
        raise BadUrl("not a valid host")
    if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname or ""):
        raise BadUrl("http is allowed on loopback only; https is required")
    return parts


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise BadUrl("not a valid URL") from None
    return parts


def check_client_id_url(url: str, *, insecure: bool = False) -> None:
    """Raise ``BadUrl`` for a URL that cannot be a client id: https with a path (CIMD §3)."""
    parts = checked(url, insecure=insecure)
    if parts.scheme != "https" or parts.path in ("", "/") or parts.fragment or _dots(parts.path):
        raise BadUrl("a client metadata URL is https, with a path and without a fragment")


def is_loopback(host: str) -> bool:
    """Return whether a host names this machine by itself, without asking a resolver."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=128)
def origin(url: str) -> str:
    """Return scheme, host and port; a default port is left out."""
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{_authority(parts)}"


def _authority(parts: SplitResult) -> str:
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    default = _PORTS.get(parts.scheme.lower())
    return host if parts.port in (None, default) else f"{host}:{parts.port}"


def canonical(server: str) -> str:
    """Return a server's canonical URI: no query, no fragment, no slash added (RFC 8707 §2)."""
    parts = urlsplit(server)
    path = "" if parts.path == "/" else parts.path
    return f"{parts.scheme.lower()}://{_authority(parts)}{path}"


def resource_metadata_urls(server: str) -> list[str]:
    """Return where RFC 9728 §3.1 has the metadata of a server: below its path, then at the root."""
    base = origin(server) + "/.well-known/oauth-protected-resource"
    path = urlsplit(server).path.rstrip("/")
    return [base + path, base] if path else [base]


def server_metadata_urls(issuer: str) -> list[str]:
    """Return where an issuer's metadata may be (Authorization Server Metadata Discovery).

    An issuer with a path is never looked for at the root.
    """
    base, path = origin(issuer), urlsplit(issuer).path.rstrip("/")
    urls = [
        f"{base}/.well-known/oauth-authorization-server{path}",
        f"{base}/.well-known/openid-configuration{path}",
    ]
    return [*urls, f"{base}{path}/.well-known/openid-configuration"] if path else urls


def same_issuer(expected: str, claimed: object) -> bool:
    """Compare issuers as strings (RFC 8414 §3.3); the last slash of a bare origin may differ."""
    if not isinstance(claimed, str):
        return False
    if claimed == expected:
        return True
    bare = urlsplit(expected).path in ("", "/") and not urlsplit(expected).query
    return bare and claimed.removesuffix("/") == expected.removesuffix("/")


def covers(resource: object, server: str) -> bool:
    """Return whether a resource identifier names this server: same origin, same or parent path.

    RFC 9728 §3.3; whole path segments, so that ``/mcp`` does not cover ``/mcp-admin``.
    """
    try:
        parts, home = checked(resource, insecure=True), urlsplit(server)
    except BadUrl:
        return False
    if origin(str(resource)) != origin(server) or "#" in str(resource) or _dots(parts.path):
        return False
    if "?" in str(resource) and parts.query != home.query:
        return False
    whole, path = home.path.rstrip("/") + "/", parts.path.rstrip("/") + "/"
    return whole.startswith(path)


def _dots(path: str) -> bool:
    return any(part in (".", "..") for part in unquote(path).split("/"))


def network_of_name(host: str) -> str | None:
    """Return the kind of network that a host names without a resolver; None: it may be any.

    Resolvers read ``0x7f.1`` and ``2130706433`` as addresses too.
    """
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return "loopback"
    try:
        return network(name if ":" in name else inet_ntoa(inet_aton(name)))
    except (OSError, ValueError):
        return None


def network(text: str) -> str:
    """Return the kind of network an address belongs to; ``global`` is the public internet.

    Addresses that carry an IPv4 address inside (mapped, NAT64, 6to4, Teredo) count as that one:
    ``ipaddress`` calls some of them global.
    """
    address = _embedded(ip_address(text.partition("%")[0]))
    if address.is_loopback or address.is_unspecified:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    if (block := _internal_block(address)) is not None:
        return block
    if address.is_multicast or address.is_reserved:
        return "reserved"
    if address.is_global:
        return "global"
    return "private" if address.is_private else "reserved"


def _internal_block(address: Address) -> str | None:
    """Return the kind of network of the blocks that ``ipaddress`` does not know as internal."""
    if isinstance(address, IPv4Address):
        return "shared" if address in _SHARED else None
    return "private" if any(address in block for block in _INTERNAL) else None


def _embedded(address: Address) -> Address:
    if isinstance(address, IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address.teredo is not None:
        inner = address.teredo[1]
    compatible = address in _COMPATIBLE and int(address) > 1
    if inner is None and (compatible or address in _NAT64):
        inner = IPv4Address(int(address) & 0xFFFFFFFF)
    return address if inner is None else inner
