"""An authorization server and an MCP server on one loopback port, scripted by their tests."""

from __future__ import annotations

import asyncio
import json
import ssl
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import jwt
from aiohttp import web

import holdfast
from holdfast import Client, Handlers, OAuth
from holdfast.auth import LoginRequest
from holdfast.stores import MemoryStore

VERSION = "2025-11-25"
SECRETS = {"code", "code_verifier", "refresh_token", "client_secret", "client_assertion"} | {
    "assertion",
    "subject_token",
    "device_code",
}
FORM = "application/x-www-form-urlencoded"


class World:
    """Refresh tokens rotate; one that is used twice ends its whole family, as RFC 9700 has it."""

    def __init__(self) -> None:
        self.url = ""
        self.life = 3600.0
        self.scopes: tuple[str, ...] = ("read",)
        self.wanted: tuple[str, ...] = ()
        """Scopes that a call needs."""
        self.forbids: str | None = None
        """The challenge of a refusal for want of them, if it is not the usual one."""
        self.count: Counter[str] = Counter()
        self.seen: list[tuple[str, str | None]] = []
        """HTTP method and token of each request to the MCP server."""
        self.called: asyncio.Event = asyncio.Event()
        """Set with each of them."""
        self.tokens: dict[str, tuple[str, ...]] = {}
        self.refresh: set[str] = set()
        self.grace = False
        """A refresh token that was used may be used again."""
        self.used: set[str] = set()
        self.clients: set[str] = set()
        self.secrets: set[str] = set()
        self.broken: int | None = None
        """A status for the token endpoint to answer with instead."""
        self.odd: dict[str, Any] | None = None
        """What the token endpoint answers with instead."""
        self.echoes = False
        """The token endpoint refuses, and repeats what it was sent."""
        self.quotes: int | None = None
        """A status for calls to be refused with, in words that repeat the token."""
        self.retry_after = ""
        self.gate: asyncio.Event | None = None
        """Held open: the token endpoint waits for it."""
        self.refuses_all = False
        """Every token is refused."""
        self.prm = "/.well-known/oauth-protected-resource"
        """Where the resource metadata is; the challenge names it."""
        self.moves = False
        """The resource names another authorization server each time."""
        self.entered: asyncio.Event = asyncio.Event()
        self.hangs = ""
        """Requests to paths that begin so are not answered before ``unhang`` is set."""
        self.hanging: asyncio.Event = asyncio.Event()
        """Set when there is such a request."""
        self.unhang: asyncio.Event = asyncio.Event()
        self.revocation = 200
        """The status that revocations are answered with."""
        self.revocation_error: dict[str, Any] | None = None
        self.metadata: dict[str, Any] = {}
        self.redirects: list[str] = []
        """Where browsers were sent back to."""
        self.sent: list[tuple[str, dict[str, Any]]] = []
        """The path and the parameters of each request to the authorization server."""
        self.issuer: str | None = None
        """The issuer, if it is not at the address of the MCP server."""
        self.iss: str | None = ""
        """What answers name as their issuer; by default that one, None: nothing."""
        self.resource: dict[str, Any] = {}
        """Changes of the resource metadata."""
        self.registration: dict[str, Any] = {}
        """Changes of what registrations are answered with."""
        self.form_encoded = False
        """The token endpoint answers with a form."""
        self.challenge = ""
        """Parameters that the challenge begins with."""
        self.changes: dict[str, Any] = {}
        """Changes of token answers; None takes a field out."""
        self.basic: list[str] = []
        """Clients with their secrets, as they authenticated at the token endpoint."""
        self.certified: set[str] = set()
        """Paths that were asked for with a client certificate."""
        self.initialized: dict[str, Any] = {}
        self.sessions: dict[str, str] = {}
        """The user of each MCP session."""
        self.users: dict[str, str] = {}
        """The user of each code and token."""
        self.next_user = ""
        """Who logs in next; otherwise the user with the name of the account."""
        self.activated = False
        """The code of a device login was typed in."""
        self.dpop = False
        """Tokens are bound to a key, and every proof is checked."""
        self.nonce = "n1"
        self.keys: set[str] = set()
        self.proofs: set[str] = set()
        self.faults: list[str] = []
        """What was wrong with proofs, but for a nonce that is to be renewed."""
        self.names_users: bool = True
        """ID tokens are given."""

    def asked(self, path: str) -> list[dict[str, Any]]:
        """The parameters of each request to a path of the authorization server."""
        return [said for place, said in self.sent if place == path]

    async def refreshed(self, times: int) -> None:
        """Wait until tokens were refreshed so many times."""
        while self.count["refresh_token"] < times:
            self.entered.clear()
            await self.entered.wait()

    @web.middleware
    async def hang(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if self.hangs and request.path.startswith(self.hangs):
            self.hanging.set()
            await self.unhang.wait()
        response: web.StreamResponse = await handler(request)
        return response

    def make(self, kind: str) -> str:
        self.count[kind] += 1
        found = f"{kind}-SECRET-{self.count[kind]}"
        self.secrets.add(found)
        return found

    def unproven(self, request: web.Request, token: str | None = None) -> bool:
        """Check the proof of a request (RFC 9449 §4.3); return whether its nonce is another one."""
        text = request.headers["DPoP"]
        jwk = jwt.get_unverified_header(text)["jwk"]
        self.keys.add(json.dumps(jwk, sort_keys=True))
        key = jwt.PyJWK.from_dict(jwk, algorithm="ES256").key
        claims = jwt.decode(text, key, algorithms=["ES256"])
        digest = sha256((token or "").encode()).digest()
        bound = urlsafe_b64encode(digest).decode().rstrip("=") if token else None
        target = f"http://{request.host}{request.path}"
        wanted = {"htm": request.method, "htu": target, "ath": bound}
        self.faults += [name for name, value in wanted.items() if claims.get(name) != value]
        self.faults += ["jti"] if claims["jti"] in self.proofs else []
        self.proofs.add(claims["jti"])
        return bool(claims.get("nonce") != self.nonce_of(request))

    def nonce_of(self, request: web.Request) -> str:
        """Each origin has nonces of its own."""
        return f"{self.nonce}-{request.host}"

    # The authorization server

    async def describe_resource(self, request: web.Request) -> web.Response:
        if not request.path.startswith(self.prm):
            return web.Response(status=404)
        self.count["prm"] += 1
        where = f"{self.url}/{self.count['prm']}" if self.moves else self.issuer or self.url
        named = {"resource": f"{self.url}/mcp", "authorization_servers": [where]}
        return web.json_response({**named, **self.resource})

    async def describe_server(self, request: web.Request) -> web.Response:
        home = self.issuer or self.url
        return web.json_response(
            {
                "issuer": home + request.match_info.get("tenant", ""),
                "authorization_endpoint": f"{home}/authorize",
                "token_endpoint": f"{home}/token",
                "registration_endpoint": f"{home}/register",
                "revocation_endpoint": f"{home}/revoke",
                "device_authorization_endpoint": f"{home}/device",
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                **self.metadata,
            }
        )

    async def register(self, request: web.Request) -> web.Response:
        said = await request.json()
        self.sent.append((request.path, said))
        self.count["register"] += 1
        client = f"client-{self.count['register']}"
        self.clients.add(client)
        changes = dict(self.registration)
        status = changes.pop("status", 201)
        return web.json_response({**said, "client_id": client, **changes}, status=status)

    async def authorize(self, request: web.Request) -> web.Response:
        self.count["authorize"] += 1
        query = request.query
        self.sent.append((request.path, dict(query)))
        if self.count["register"] and query["client_id"] not in self.clients:
            return web.Response(status=400, text="<h1>unknown client</h1>")
        self.redirects.append(query["redirect_uri"])
        self.secrets |= {query["state"], query["code_challenge"]}
        code = self.make("code")
        self.users[code] = query.get("login_hint", "ada")
        iss = (self.issuer or self.url) if self.iss == "" else self.iss
        place = f"{query['redirect_uri']}?code={code}&state={query['state']}"
        place += "" if iss is None else f"&iss={iss}"
        self.scopes = tuple(query.get("scope", "").split())
        return web.Response(status=302, headers={"Location": place})

    async def token(self, request: web.Request) -> web.Response:
        form = await request.post()
        self.note_certificate(request)
        self.sent.append((request.path, {name: str(value) for name, value in form.items()}))
        grant = str(form["grant_type"])
        method, _, pair = request.headers.get("Authorization", "").partition(" ")
        self.basic += [b64decode(pair).decode()] if method == "Basic" else []
        self.count[grant] += 1
        self.secrets |= {str(form[name]) for name in ("code_verifier",) if name in form}
        self.entered.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.broken is not None:
            later = {"Retry-After": self.retry_after, "Date": "Sun, 06 Nov 1994 08:49:37 GMT"}
            later = later if self.retry_after else {}
            return web.json_response({"error": "busy"}, status=self.broken, headers=later)
        if self.dpop and self.unproven(request):
            again = {"DPoP-Nonce": self.nonce_of(request)}
            return web.json_response({"error": "use_dpop_nonce"}, status=400, headers=again)
        if self.echoes:
            self.secrets |= {str(form[name]) for name in form.keys() & SECRETS}
            said = " ".join([*(str(value) for value in form.values()), *self.basic])
            refusal = {"error": "invalid_request", "error_description": f"bad: {said}"}
            return web.json_response(refusal, status=400)
        if self.odd is not None:
            return web.json_response(self.odd)
        if "device_code" in form and not self.activated:
            return web.json_response({"error": "authorization_pending"}, status=400)
        if grant == "refresh_token":
            old = str(form["refresh_token"])
            if (old in self.used and not self.grace) or old not in self.refresh | self.used:
                self.refresh.clear()
                self.tokens.clear()
                return web.json_response({"error": "invalid_grant"}, status=400)
            self.refresh.discard(old)
            self.used.add(old)
        user = self.users.get(str(form.get("code") or form.get("refresh_token")), "ada")
        access, renewal = self.make("access"), self.make("refresh")
        self.users[access] = self.users[renewal] = user
        claims = b64encode(json.dumps({"sub": user}).encode()).decode().rstrip("=")
        self.tokens[access] = self.scopes
        self.refresh.add(renewal)
        found = {
            "access_token": access,
            "refresh_token": renewal,
            "token_type": "DPoP" if self.dpop else "Bearer",
            "expires_in": self.life,
            "id_token": f"e30.{claims}.e30" if self.names_users else None,
            **self.changes,
        }
        found = {name: value for name, value in found.items() if value is not None}
        if self.form_encoded:
            return web.Response(text=urlencode(found), content_type=FORM)
        return web.json_response(found)

    async def device(self, request: web.Request) -> web.Response:
        self.count["device"] += 1
        return web.json_response(
            {
                "device_code": self.make("device"),
                "user_code": "ABCD-EFGH",
                "verification_uri": f"{self.url}/activate",
                "interval": 0.01,
            }
        )

    async def activate(self, request: web.Request) -> web.Response:
        """The page where a person types the code in."""
        self.activated = request.query["user_code"] == "ABCD-EFGH"
        return web.Response(text="done")

    async def revoke(self, request: web.Request) -> web.Response:
        form = await request.post()
        self.count["revoked"] += 1
        if self.revocation != 200:
            return web.json_response(self.revocation_error, status=self.revocation)
        self.tokens.pop(str(form["token"]), None)
        self.refresh.discard(str(form["token"]))
        return web.Response()

    # The MCP server

    def note_certificate(self, request: web.Request) -> None:
        assert request.transport is not None
        if request.transport.get_extra_info("peercert"):
            self.certified.add(request.path)

    async def mcp(self, request: web.Request) -> web.StreamResponse:
        self.note_certificate(request)
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        token = given or None
        self.seen.append((request.method, token))
        self.called.set()
        if token is None or token not in self.tokens or self.refuses_all:
            challenge = f'Bearer {self.challenge}resource_metadata="{self.url}{self.prm}"'
            if self.dpop:
                challenge = challenge.replace("Bearer", "DPoP")
            return web.Response(status=401, headers={"WWW-Authenticate": challenge})
        if self.dpop and (scheme != "DPoP" or self.unproven(request, token)):
            again = {
                "WWW-Authenticate": 'DPoP error="use_dpop_nonce"',
                "DPoP-Nonce": self.nonce_of(request),
            }
            return web.Response(status=401, headers=again)
        if request.method == "GET":
            return web.Response(status=405)
        if request.method == "DELETE":
            return web.Response()
        user, session = self.users.get(token, "ada"), request.headers.get("Mcp-Session-Id", "")
        said = json.loads(await request.read())
        if said["method"] == "initialize":
            self.initialized = said["params"]
            session = f"session-{len(self.sessions)}"
            self.sessions[session] = user
        elif self.sessions.get(session, user) != user:
            # A session belongs to the user who began it (Session Hijacking).
            return web.Response(status=403)
        self.count[said["method"]] += 1
        if "id" not in said:
            return web.Response(status=202)
        if said["method"] == "tools/call" and self.quotes is not None:
            text = f"bad: {' '.join([token] * 40)}"
            challenge = f'Bearer error="invalid_token", error_description="{text}"'
            refusal = {"WWW-Authenticate": challenge}
            return web.Response(status=self.quotes, text=text, headers=refusal)
        missing = set(self.wanted) - set(self.tokens[token])
        if said["method"] == "tools/call" and missing:
            scope = " ".join(self.wanted)
            challenge = f'Bearer error="insufficient_scope", scope="{scope}"'
            challenge = challenge if self.forbids is None else self.forbids
            return web.Response(status=403, headers={"WWW-Authenticate": challenge})
        answers: dict[str, Any] = {
            "initialize": {
                "protocolVersion": VERSION,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "world", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": self.says(user)}]},
        }
        if said["method"] not in answers:
            error = {"code": -32601, "message": "no such method"}
            return web.json_response({"jsonrpc": "2.0", "id": said["id"], "error": error})
        found = {"jsonrpc": "2.0", "id": said["id"], "result": answers[said["method"]]}
        return web.json_response(found, headers={"Mcp-Session-Id": session})

    def says(self, user: str) -> str:
        return "hello" if user == "ada" else f"hello {user}"

    # The person

    async def person(self, request: LoginRequest) -> str:
        """Consent at once, and give back where the browser would go."""
        self.count["asked"] += 1
        who = "ada" if request.account == "default" else request.account
        url = f"{request.url}&login_hint={self.next_user or who}"
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, allow_redirects=False, ssl=False) as response,
        ):
            return response.headers["Location"]

    # Clients of it

    def connect(self, *, auth: Any = None, login: Any = None, **options: Any) -> Client:
        return holdfast.connect(
            f"{self.url}/mcp",
            auth=auth if auth is not None else OAuth(store=MemoryStore()),
            handlers=Handlers(login=login or self.person),
            protocol=VERSION,
            **options,
        )


@asynccontextmanager
async def world(tls: ssl.SSLContext | None = None) -> AsyncIterator[World]:
    found = World()
    app = web.Application(middlewares=[found.hang])
    prm = "/.well-known/oauth-protected-resource"
    app.router.add_get(prm, found.describe_resource)
    app.router.add_get(f"{prm}/mcp", found.describe_resource)
    app.router.add_get("/prm", found.describe_resource)
    metadata = "/.well-known/oauth-authorization-server"
    app.router.add_get(metadata + "{tenant:.*}", found.describe_server)
    app.router.add_post("/register", found.register)
    app.router.add_get("/authorize", found.authorize)
    app.router.add_post("/token", found.token)
    app.router.add_post("/revoke", found.revoke)
    app.router.add_post("/device", found.device)
    app.router.add_get("/activate", found.activate)
    app.router.add_route("*", "/mcp", found.mcp)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    found.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{port}"
    try:
        yield found
    finally:
        found.unhang.set()
        if found.gate is not None:
            found.gate.set()
        await runner.cleanup()


def parameters(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
