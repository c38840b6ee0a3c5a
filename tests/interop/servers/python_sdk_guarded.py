"""A server built with the Python SDK (PyPI ``mcp``) that takes tokens of an authorization server.

Its own settings guard it: it publishes the resource metadata, refuses and challenges.
"""

# mypy: ignore-errors
# Its libraries are in its own virtual environment, not in ours.

from __future__ import annotations

import asyncio
import base64
import json
import sys
import urllib.error
import urllib.parse
import urllib.request

from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings

port, issuer, introspection, userinfo, scope = int(sys.argv[1]), *sys.argv[2:]


class Verifier(TokenVerifier):
    """Ask the authorization server about each token."""

    async def verify_token(self, token: str) -> AccessToken | None:
        scopes = await asyncio.to_thread(self.ask, token)
        return None if scopes is None else AccessToken(token=token, client_id="any", scopes=scopes)

    def ask(self, token: str) -> list[str] | None:
        if introspection:  # RFC 7662
            form = urllib.parse.urlencode({"token": token}).encode()
            pair = base64.b64encode(b"resource-server:resource-secret").decode()
            request = urllib.request.Request(introspection, form)
            request.add_header("Authorization", f"Basic {pair}")
            with urllib.request.urlopen(request) as answer:
                found = json.load(answer)
            return found.get("scope", "").split() if found["active"] else None
        request = urllib.request.Request(userinfo)
        request.add_header("Authorization", f"Bearer {token}")
        try:
            urllib.request.urlopen(request).close()
        except urllib.error.HTTPError:
            return None
        return [scope]


server = MCPServer(
    "guarded",
    token_verifier=Verifier(),
    auth=AuthSettings(
        issuer_url=issuer,
        resource_server_url=f"http://127.0.0.1:{port}/mcp",
        required_scopes=[scope],
        validate_token_resource=False,
    ),
)


@server.tool()
def hello() -> str:
    """Greet."""
    return "hello"


server.run(transport="streamable-http", host="127.0.0.1", port=port)
