"""Which URLs may be asked or opened; comparisons that must not be fooled."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.auth import urls
from tests.rows import rows


@pytest.mark.req("A30", "A19")
@rows(
    "url",
    [
        "http://as.example/token",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "ftp://as.example/",
        "--flag",
        "https://user:pass@as.example/",
        "https://as.example\\@evil.example/",
        "https://as.example/\n",
        "https://as.example/a b",
        "https://as.example/$(id)`x`",
        "https:///path",
        "https://",
        "https://exämple/",
        "https://as.example:x/",
        "https://as.example:99999/",
        "https://[::1",
        "http://0x7f.1/",
        "http://localhost.evil.example/",
        "https://a/" + "a" * 3000,
        None,
        7,
    ],
)
def test_a_url_that_must_not_be_used_is_refused(url: object) -> None:
    with pytest.raises(urls.BadUrl) as caught:
        urls.checked(url)
    assert "pass" not in str(caught.value)


def test_a_password_in_a_url_is_named_as_what_is_wrong() -> None:
    with pytest.raises(urls.BadUrl, match="user information"):
        urls.checked("https://user:pass@as.example/")


@pytest.mark.parametrize(
    "url",
    ["https://as.example/x?y=%20z", "http://localhost:1/", "http://127.9.9.9/", "http://[::1]:80/"],
)
def test_https_and_loopback_are_fine(url: str) -> None:
    assert urls.checked(url, limit=urls.MAX_OPENED).geturl() == url


def test_plain_http_is_allowed_where_the_user_says_so() -> None:
    assert urls.checked("http://as.example/", insecure=True).hostname == "as.example"


@pytest.mark.req("A3")
def test_resource_metadata_is_looked_for_below_the_path_then_at_the_root() -> None:
    root = "https://h.example/.well-known/oauth-protected-resource"
    assert urls.resource_metadata_urls("https://h.example:443/a/mcp?x=1") == [f"{root}/a/mcp", root]
    assert urls.resource_metadata_urls("https://h.example/") == [root]


@pytest.mark.req("A5")
def test_server_metadata_has_three_places_for_an_issuer_with_a_path_and_two_without() -> None:
    base = "https://as.example"
    assert urls.server_metadata_urls(f"{base}/t/1") == [
        f"{base}/.well-known/oauth-authorization-server/t/1",
        f"{base}/.well-known/openid-configuration/t/1",
        f"{base}/t/1/.well-known/openid-configuration",
    ]
    assert urls.server_metadata_urls(f"{base}/") == [
        f"{base}/.well-known/oauth-authorization-server",
        f"{base}/.well-known/openid-configuration",
    ]


@pytest.mark.req("A6", "B18")
@rows(
    ("expected", "found", "same"),
    [
        ("https://a.example", "https://a.example", True),
        ("https://a.example", "https://a.example/", True),
        ("https://a.example/", "https://a.example", True),
        ("https://a.example/t", "https://a.example/t/", False),
        ("https://a.example", "https://A.example", False),
        ("https://a.example", "https://a.example:443", False),
        ("https://a.example", "https://a.example//", False),
        ("https://a.example", "https://b.example", False),
        ("https://a.example", None, False),
    ],
)
def test_issuers_are_compared_as_strings_but_for_one_slash(
    expected: str, found: object, same: bool
) -> None:
    assert urls.same_issuer(expected, found) is same


@pytest.mark.req("A4")
@rows(
    ("resource", "fits"),
    [
        ("https://h.example/a/mcp", True),
        ("https://h.example/a/mcp/", True),
        ("https://h.example/a", True),
        ("https://h.example", True),
        ("HTTPS://H.example:443/a", True),
        ("https://h.example/a/mc", False),
        ("https://h.example/a/mcp/x", False),
        ("https://h.example/a/mcp/../mcp", False),
        ("https://h.example/%2e%2e/", False),
        ("https://h.example/a#x", False),
        ("https://h.example/a?x=1", False),
        ("http://h.example/a", False),
        ("https://h.example:444/a", False),
        ("https://h.example.evil/a", False),
        ("https://h.example@evil.example/", False),
        (None, False),
    ],
)
def test_a_resource_names_the_server_by_origin_and_whole_segments(
    resource: object, fits: bool
) -> None:
    assert urls.covers(resource, "https://h.example/a/mcp") is fits


@pytest.mark.req("A15")
@pytest.mark.parametrize(
    ("server", "canonical"),
    [
        ("HTTPS://H.Example:443/", "https://h.example"),
        ("https://h.example/A/mcp?key=SECRET#f", "https://h.example/A/mcp"),
        ("https://h.example:8443/mcp/", "https://h.example:8443/mcp/"),
    ],
)
def test_the_canonical_uri(server: str, canonical: str) -> None:
    assert urls.canonical(server) == canonical


@pytest.mark.req("A31")
@rows(
    ("address", "network"),
    [
        ("8.8.8.8", "global"),
        ("2606:4700::1111", "global"),
        ("127.0.0.1", "loopback"),
        ("0.0.0.0", "loopback"),
        ("::1", "loopback"),
        ("::", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::127.0.0.1", "loopback"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("fd00::1", "private"),
        ("::ffff:10.0.0.1", "private"),
        ("64:ff9b::10.0.0.1", "private"),
        ("64:ff9b:1::a00:1", "private"),
        ("2002:0a00:0001::", "private"),
        ("fec0::1", "private"),
        ("64:ff9b:1:a00:0:100:808:808", "private"),
        ("::ffff:0:10.0.0.1", "reserved"),
        ("169.254.169.254", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("::ffff:169.254.169.254", "link-local"),
        ("100.64.0.1", "shared"),
        ("240.0.0.1", "reserved"),
        ("224.0.0.1", "reserved"),
    ],
)
def test_addresses_are_told_apart_by_network(address: str, network: str) -> None:
    assert urls.network(address) == network


@pytest.mark.req("A31")
@given(st.ip_addresses(v=4))
def test_an_embedded_address_is_never_more_public_than_itself(
    address: ipaddress.IPv4Address,
) -> None:
    number = int(address)
    plain = urls.network(str(address))
    mapped = ipaddress.IPv6Address((0xFFFF << 32) | number)
    nat64 = ipaddress.IPv6Address((0x64FF9B << 96) | number)
    six_to_four = ipaddress.IPv6Address((0x2002 << 112) | (number << 80))
    assert {urls.network(str(one)) for one in (mapped, nat64, six_to_four)} == {plain}


@pytest.mark.req("A11")
@pytest.mark.parametrize(
    "url", ["http://localhost/c.json", "https://h.example", "https://h.example/", "https://h/a#b"]
)
def test_a_client_metadata_url_is_https_with_a_path(url: str) -> None:
    with pytest.raises(urls.BadUrl):
        urls.check_client_id_url(url)
