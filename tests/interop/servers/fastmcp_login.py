"""A server built with FastMCP (PyPI ``fastmcp``, 2 to 4) that is an authorization server as well.

``memory``: FastMCP's in-memory provider. ``proxy``: its OAuth proxy before the authorization server
at ``UPSTREAM``, which asks for a consent of its own.
"""

# mypy: ignore-errors
# Its libraries are in its own virtual environment, not in ours.

from __future__ import annotations

import asyncio
import base64
import json
import sys
import urllib.parse
import urllib.request

from fastmcp import FastMCP
from fastmcp.server.auth import AccessToken, OAuthProxy, TokenVerifier
from fastmcp.server.auth.auth import ClientRegistrationOptions, RevocationOptions
from fastmcp.server.auth.providers import in_memory
from mcp.shared.auth import OAuthClientInformationFull

kind, port, life, upstream = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
home = f"http://127.0.0.1:{port}"
in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = life


class Introspection(TokenVerifier):
    """Ask the upstream server about each of its tokens (RFC 7662)."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return await asyncio.to_thread(self.ask, token)

    def ask(self, token: str) -> AccessToken | None:
        form = urllib.parse.urlencode({"token": token}).encode()
        pair = base64.b64encode(b"resource-server:resource-secret").decode()
        request = urllib.request.Request(f"{upstream}/token/introspection", form)
        request.add_header("Authorization", f"Basic {pair}")
        with urllib.request.urlopen(request) as answer:
            claims = json.load(answer)
        if not claims["active"]:
            return None
        return AccessToken(token=token, client_id="proxy", scopes=["read"])


if kind == "memory":
    provider = in_memory.InMemoryOAuthProvider(
        base_url=home,
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["read", "write"]
        ),
        revocation_options=RevocationOptions(enabled=True),
        required_scopes=["read"],
    )
    provider.clients["given"] = OAuthClientInformationFull(
        client_id="given",
        client_secret="given-secret",
        redirect_uris=[sys.argv[5]],
        token_endpoint_auth_method="client_secret_post",
        scope="read write",
    )
else:
    provider = OAuthProxy(
        upstream_authorization_endpoint=f"{upstream}/auth",
        upstream_token_endpoint=f"{upstream}/token",
        upstream_client_id="proxy",
        upstream_client_secret="proxy-secret",
        token_verifier=Introspection(required_scopes=["read"]),
        base_url=home,
        jwt_signing_key="a key of the test, long enough to sign with",
        valid_scopes=["read"],
        extra_authorize_params={"resource": f"{home}/mcp"},
        extra_token_params={"resource": f"{home}/mcp"},
    )

server = FastMCP("guarded", auth=provider)


@server.tool
def hello() -> str:
    """Greet."""
    return "hello"


@server.custom_route("/forget", methods=["POST"])
async def forget(request):
    """Forget every client that registered itself, as after a restart without a database."""
    from starlette.responses import PlainTextResponse

    for name in provider.clients.keys() - {"given"}:
        del provider.clients[name]
    return PlainTextResponse("forgotten")


server.run("http", host="127.0.0.1", port=port, show_banner=False)
