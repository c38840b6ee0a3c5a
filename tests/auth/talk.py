"""Conversations played from a script: no socket, no clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from holdfast._core.auth.credentials import AuthServer, Login, Registration
from holdfast._core.auth.flow import Challenge, Refusal, RefusedRequest
from holdfast._core.auth.login import LoginAttempt
from holdfast._core.auth.options import OAuth
from holdfast._core.auth.steps import (
    Ask,
    Conversation,
    Fetched,
    Listen,
    Read,
    Sign,
    Unreachable,
    Visit,
)

T = TypeVar("T")

SERVER = "https://mcp.example/mcp"
ISSUER = "https://as.example"
METADATA = f"{ISSUER}/.well-known/oauth-authorization-server"
PRM = "https://mcp.example/.well-known/oauth-protected-resource/mcp"
REDIRECT = "http://127.0.0.1:4000/callback"

AS_DOCUMENT: dict[str, Any] = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "registration_endpoint": f"{ISSUER}/register",
    "code_challenge_methods_supported": ["S256"],
}
PRM_DOCUMENT: dict[str, Any] = {"resource": SERVER, "authorization_servers": [ISSUER]}
TOKENS: dict[str, Any] = {
    "access_token": "ACCESS-SECRET",
    "token_type": "bearer",
    "expires_in": 3600,
    "refresh_token": "REFRESH-SECRET",
}


def ok(document: Any, status: int = 200) -> Fetched:
    return Fetched(status, json.dumps(document).encode())


Script = Mapping[str, Any]


class Play:
    """Answers steps from a table of URLs; what is not in it is 404. Keeps what was asked."""

    def __init__(self, script: Script, **others: Any) -> None:
        self.script = dict(script)
        self.others = others
        self.steps: list[Any] = []

    def run(self, conversation: Conversation[T]) -> T:
        answer: Any = None
        while True:
            try:
                step = conversation.send(answer)
            except StopIteration as done:
                value: T = done.value
                return value
            self.steps.append(step)
            answer = self.reply(step)

    def reply(self, step: Any) -> Any:
        match step:
            case Ask():
                found = self.script.get(step.url.partition("?")[0], Fetched(404))
                if isinstance(found, list):
                    found = found.pop(0)
                return ok(found) if isinstance(found, dict) else found
            case Listen():
                return self.others.get("redirect", step.preferred or REDIRECT)
            case Visit(user_code=None):
                given: Callable[[Visit], Mapping[str, str]] = self.others["browse"]
                return given(step)
            case Read(key, kind):
                logins: list[Login] = self.others.get("logins", [])
                login = next((one for one in logins if one.key == key), None)
                return self.others.get("registration") if kind is Registration else login
            case Sign():
                return f"SIGNED BY {step.client.client_id} FOR {step.audience}"
        return None

    @property
    def urls(self) -> list[str]:
        return [step.url for step in self.steps if isinstance(step, Ask)]

    def form(self, url: str) -> dict[str, str]:
        """The last form that was sent to a URL."""
        asks = [step for step in self.steps if isinstance(step, Ask) and step.url == url]
        return dict(asks[-1].form or {})


def unreachable() -> Unreachable:
    return Unreachable("cannot connect")


def refused_request(**changes: Any) -> RefusedRequest:
    settings: dict[str, Any] = {
        "server": SERVER,
        "account": "default",
        "options": OAuth(),
        "now": 1000.0,
    }
    refused: dict[str, Any] = {"challenge": Challenge(frozenset({"bearer"}))}
    refused |= {
        name: changes.pop(name)
        for name in ("challenge", "status", "version_header", "operation")
        if name in changes
    }
    return RefusedRequest(refusal=Refusal(**refused), **{**settings, **changes})


def server(**changes: Any) -> AuthServer:
    settings: dict[str, Any] = {
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/authorize",
        "token_endpoint": f"{ISSUER}/token",
        "registration_endpoint": f"{ISSUER}/register",
        "pkce_methods": ("S256",),
    }
    return AuthServer(**{**settings, **changes})


def draft(
    found: AuthServer | None = None, scopes: tuple[str, ...] = (), dpop_key: str | None = None
) -> Login:
    at, bound = found or server(), dpop_key
    return Login(
        server=SERVER,
        account="default",
        auth_server=at,
        resource=SERVER,
        requested_scopes=scopes,
        dpop_key=bound,
    )


def attempt(found: AuthServer | None = None, **changes: Any) -> LoginAttempt:
    options = changes.pop("options", OAuth(client_id="me"))
    settings: dict[str, Any] = {
        "options": options,
        "now": 1000.0,
        "login": draft(found, changes.pop("scopes", ()), changes.pop("dpop_key", None)),
        "verifier": "VERIFIER-SECRET",
        "state": "STATE-SECRET",
    }
    return LoginAttempt(**{**settings, **changes})


def stored_login(**changes: Any) -> Login:
    settings: dict[str, Any] = {
        "auth_server": server(),
        "resource": SERVER,
        "account": "default",
        "server": SERVER,
        "client": client(),
        "access_token": "OLD",
        "refresh_token": "REFRESH",
        "issued_at": 0.0,
        "expires_at": 5000.0,
        "granted": ("a",),
        "requested_scopes": ("a",),
    }
    return Login(**{**settings, **changes})


def client(**changes: Any) -> Registration:
    return Registration(**{"client_id": "me", **changes})
