"""A server on the Python SDK (PyPI ``mcp``, 1 and 2) with its own routes for authorization.

``create_auth_routes`` reads the requests and checks clients, scopes and PKCE; what it hands on is
kept here in dictionaries. Whoever asks is logged in at once.
"""

# mypy: ignore-errors
# Its libraries are in its own virtual environment, not in ours.

from __future__ import annotations

import secrets
import sys
import time

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

port, life = int(sys.argv[2]), int(sys.argv[3])
home = f"http://127.0.0.1:{port}"


class Provider(OAuthAuthorizationServerProvider):
    """Clients, codes and tokens by their names; refresh tokens rotate."""

    def __init__(self) -> None:
        self.codes, self.access, self.refresh = {}, {}, {}
        self.clients = {
            "given": OAuthClientInformationFull(
                client_id="given",
                client_secret="given-secret",
                redirect_uris=[sys.argv[5]],
                token_endpoint_auth_method="client_secret_post",
                scope="read write",
            )
        }

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = secrets.token_hex(20)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refresh[refresh_token.token]
        return self.issue(client, scopes or refresh_token.scopes, f"{home}/mcp")

    async def load_access_token(self, token):
        access = self.access.get(token)
        return None if access is None or access.expires_at < time.time() else access

    async def revoke_token(self, token):
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def issue(self, client, scopes, resource):
        facts = {"client_id": client.client_id, "scopes": scopes}
        access, refresh = secrets.token_hex(20), secrets.token_hex(20)
        expiry = int(time.time() + life)
        self.access[access] = AccessToken(
            token=access, expires_at=expiry, resource=resource, **facts
        )
        self.refresh[refresh] = RefreshToken(token=refresh, **facts)
        return OAuthToken(
            access_token=access,
            expires_in=life,
            refresh_token=refresh,
            scope=" ".join(scopes),
        )


provider = Provider()
settings = AuthSettings(
    issuer_url=home,
    resource_server_url=f"{home}/mcp",
    required_scopes=["read"],
    client_registration_options=ClientRegistrationOptions(
        enabled=True, valid_scopes=["read", "write"], default_scopes=["write"]
    ),
    revocation_options=RevocationOptions(enabled=True),
)
try:
    from mcp.server import MCPServer

    server = MCPServer("guarded", auth_server_provider=provider, auth=settings)
    options = {"host": "127.0.0.1", "port": port}
except ImportError:
    from mcp.server.fastmcp import FastMCP

    server = FastMCP("guarded", auth_server_provider=provider, auth=settings, port=port)
    options = {}


@server.tool()
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


server.run(transport="streamable-http", **options)
