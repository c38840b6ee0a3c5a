"""Logins as other products configure them."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import OAuth
from holdfast.config import dialects
from holdfast.config.entry import ServerEntry
from tests.config.rig import source
from tests.rows import rows

URL = {"url": "https://mcp.example/mcp"}
KEYS = {"vscode": "servers", "codex": "mcp_servers"}


def read(dialect: str, **fields: Any) -> ServerEntry:
    document = {KEYS.get(dialect, "mcpServers"): {"one": {**URL, **fields}}}
    return dialects.read(document, source(dialect=dialect))[0][0]


def options(entry: ServerEntry) -> OAuth:
    authorizer = entry.connect().transport.authorizer
    assert authorizer is not None
    assert isinstance(authorizer.options, OAuth)
    return authorizer.options


@pytest.mark.req("A10")
@rows(
    ("dialect", "fields", "wanted"),
    [
        (
            "mcpServers",
            {"oauth": {"clientId": "me", "callbackPort": 8080, "scopes": "a b"}},
            {
                "client_id": "me",
                "redirect_uri": "http://localhost:8080/callback",
                "scopes": ("a", "b"),
            },
        ),
        (
            "mcpServers",
            {"auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "s", "scopes": ["a"]}},
            {"client_id": "me", "client_secret": "s", "scopes": ("a",)},
        ),
        ("mcpServers", {"auth": "oauth"}, {"client_id": None}),
        (
            "mcpServers",
            {"oauth": {"clientId": "me", "scope": "a", "redirectUri": "http://127.0.0.1:1/x"}},
            {"scopes": ("a",), "redirect_uri": "http://127.0.0.1:1/x"},
        ),
        (
            "mcpServers",
            {"auth": "oauth", "oauthRedirectUrl": "http://127.0.0.1:1/x"},
            {"redirect_uri": "http://127.0.0.1:1/x"},
        ),
        ("vscode", {"oauth": {"clientId": "me"}}, {"client_id": "me"}),
        (
            "gemini",
            {"oauth": {"enabled": True, "clientId": "me", "clientSecret": "s", "scopes": ["a"]}},
            {"client_id": "me", "client_secret": "s", "scopes": ("a",)},
        ),
        (
            "codex",
            {
                "oauth": {
                    "client_id": "me",
                    "callback_port": 8080,
                    "authorization_server_issuer": "https://as.example",
                },
                "scopes": ["a", "b"],
                "oauth_resource": "https://api.example",
            },
            {
                "client_id": "me",
                "issuer": "https://as.example",
                "resource": "https://api.example",
                "scopes": ("a", "b"),
                "redirect_uri": "http://127.0.0.1:8080/callback",
            },
        ),
        (
            "mcpServers",
            {"oauth": {"clientId": "me", "authServerMetadataUrl": "https://as.example/x.json"}},
            {"metadata_url": "https://as.example/x.json"},
        ),
        (
            "gemini",
            {
                "oauth": {
                    "authorizationUrl": "https://as.example/a",
                    "tokenUrl": "https://as.example/t",
                }
            },
            {
                "endpoints": {
                    "authorization_endpoint": "https://as.example/a",
                    "token_endpoint": "https://as.example/t",
                }
            },
        ),
        (
            "mcpServers",
            {"holdfast": {"oauth": {"client_id": "me", "account": "work"}}},
            {"client_id": "me", "account": "work"},
        ),
    ],
)
def test_the_keys_of_a_product_become_options(
    dialect: str, fields: dict[str, Any], wanted: dict[str, Any]
) -> None:
    entry = read(dialect, **fields)
    assert entry.problems == ()
    found = options(entry)
    assert {name: getattr(found, name) for name in wanted} == wanted
    assert not found.interactive


@pytest.mark.parametrize("fields", [{"oauth": False}, {"oauth": {"enabled": False}}])
def test_a_login_can_be_switched_off(fields: dict[str, Any]) -> None:
    assert read("mcpServers", **fields).connect().transport.authorizer is None


@pytest.mark.req("A1")
def test_a_token_in_a_url_is_refused() -> None:
    entry = read("gemini", oauth={"clientId": "me", "tokenParamName": "token"})
    assert any("never sent in a URL" in problem.message for problem in entry.errors)


@rows(
    ("dialect", "field", "fields"),
    [
        ("mcpServers", "oauth.audiences", {"oauth": {"clientId": "me", "audiences": ["x"]}}),
        ("mcpServers", "headersHelper", {"headersHelper": "print-headers"}),
        ("codex", "http_headers_helper", {"http_headers_helper": "print-headers"}),
        ("gemini", "authProviderType", {"authProviderType": "google_credentials"}),
        ("codex", "auth", {"auth": "chatgpt"}),
        ("codex", "auth", {"auth": "ema_auth"}),
        ("mcpServers", "auth", {"auth": "bearer"}),
        ("mcpServers", "tokenCacheDir", {"tokenCacheDir": "/tmp/x"}),
    ],
)
def test_what_cannot_be_honoured_is_warned_about(
    dialect: str, field: str, fields: dict[str, Any]
) -> None:
    (problem,) = read(dialect, **fields).problems
    assert (problem.level, problem.field) == ("warning", field)


def codex(**top: Any) -> dict[str, ServerEntry]:
    servers = {"web": URL, "own": {**URL, "oauth": {"callback_port": 1}}, "cmd": {"command": "a"}}
    found, _ = dialects.read({"mcp_servers": servers, **top}, source(dialect="codex"))
    return {entry.name: entry for entry in found}


@pytest.mark.req("A10")
def test_the_callback_of_all_codex_servers_is_used_where_none_has_its_own() -> None:
    found = codex(mcp_oauth_callback_port=8080)
    assert options(found["web"]).redirect_uri == "http://127.0.0.1:8080/callback"
    assert options(found["own"]).redirect_uri == "http://127.0.0.1:1/callback"
    assert not any(entry.problems for entry in found.values())
    url = "http://127.0.0.1:2/cb"
    assert options(codex(mcp_oauth_callback_url=url)["web"]).redirect_uri == url


@pytest.mark.parametrize("key", ["mcp_oauth_credentials_store", "mcp_enterprise_managed_auth"])
def test_what_codex_says_of_all_logins_and_cannot_be_honoured_is_warned_about(key: str) -> None:
    found = codex(**{key: "file"})
    (problem,) = found["web"].problems
    assert (problem.level, problem.field) == ("warning", key)
    assert found["cmd"].problems == ()


@rows("port", [0, -1, 70000, "x", True])
def test_a_port_that_is_none_is_an_error(port: Any) -> None:
    assert read("mcpServers", oauth={"callbackPort": port}).errors


def test_a_key_of_ours_that_is_not_known_is_an_error() -> None:
    assert read("mcpServers", holdfast={"oauth": {"clientId": "me"}}).errors


def test_a_secret_may_come_from_a_variable() -> None:
    entry = read("mcpServers", oauth={"clientId": "me", "clientSecret": "${SECRET:-s}"})
    authorizer = entry.connect().transport.authorizer
    assert authorizer is not None
    assert authorizer.options.client_secret == "s"
