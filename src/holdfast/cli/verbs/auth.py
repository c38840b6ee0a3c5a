"""``holdfast login``, ``logout`` and ``auth``: who is logged in where."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Literal

import click

from holdfast.cli.options import option, output_option
from holdfast.cli.output import Output
from holdfast.cli.progress import status as status_line
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.cli.views import table
from holdfast.errors import AuthError, HoldfastError

Verdict = Literal["ok", "note", "warn", "bad"]
ACCOUNT = option("--account NAME", "Which login, of several.")


@click.command(cls=ServerVerb, takes="")
@ACCOUNT
@option("--scope SCOPE...", "Ask for this scope and no others.", name="scopes")
@option("--no-browser", "Print the address instead of opening it.")
@option("--device", "Log in by a code, on any device.")
@option("--port PORT", "Where the browser comes back to.", type=int)
@option("--client-id ID", "A client that you registered yourself.")
@option("--fresh", "Register anew, and log in again.")
async def login(
    target: ServerTarget, *, no_browser: bool, port: int | None, fresh: bool, **options: Any
) -> None:
    """Log in to a server; other commands use the login and renew it."""
    if no_browser:
        os.environ["HOLDFAST_NO_BROWSER"] = "1"
    if options["client_id"]:
        options["client_secret"] = os.environ.get("MCP_CLIENT_SECRET")
    if port is not None:
        options["redirect_uri"] = f"http://127.0.0.1:{port}/callback"
    elif told := os.environ.get("MCP_OAUTH_CALLBACK_PORT"):  # as other clients are told
        options["redirect_uri"] = f"http://localhost:{told}/callback"
    async with _client(target, options) as client:
        await client.login(fresh=fresh)
        found = client.transport.authorizer.login
    who = f" as {found.subject}" if found.subject else ""
    target.output.done(_row(found), f"You are logged in to {found.server}{who}.")


@click.command(cls=ServerVerb, takes="")
@ACCOUNT
async def logout(target: ServerTarget, account: str | None) -> None:
    """Revoke and delete the login to a server."""
    async with _client(target, {"account": account}) as client:
        found = await client.logout()
    told = "You are logged out." if found else "There was no login."
    target.output.done({"logged_out": found}, told)


def _client(target: ServerTarget, given: dict[str, Any]) -> Any:
    """A client with these settings over those that its configuration has."""
    from holdfast import OAuth

    target.is_login = True
    client = target.client()
    status_line.end()  # a login has words of its own
    authorizer = getattr(client.transport, "authorizer", None)
    if authorizer is None or not isinstance(authorizer.options, OAuth):
        raise AuthError(f"{client.name}: there is no login for this kind of server")
    authorizer.allow_login(**{name: value for name, value in given.items() if value})
    return client


async def discovery(client: Any) -> list[tuple[Verdict, str]]:
    """Return each step from a refusal to the authorization server: its verdict and its text."""
    authorizer = client.transport.authorizer
    found: list[tuple[Verdict, str]] = []

    def watch(ask: Any, answer: Any) -> None:
        document = answer.document() if getattr(answer, "status", 0) == 200 else None
        if document is not None:
            said = {name: document[name] for name in _SAID if name in document}
            text = json.dumps(said, ensure_ascii=False)[1:-1] or "a document"
            found.append(("ok", f"{ask.url}\n{text[:300]}"))
        else:
            status = getattr(answer, "status", None)
            text = f"HTTP status {status}" if status else answer.reason
            found.append(("note" if status == 404 else "warn", f"{ask.url}\n{text}"))

    try:
        need = await authorizer.discover(watch)
    except HoldfastError as error:
        return [*found, ("bad", error.message)]
    server = need.server
    ways = ["metadata documents"] if server.takes_documents else []
    ways += ["dynamic"] if server.registration_endpoint is not None else []
    facts = {
        "authorization server": server.issuer + (" (assumed)" if server.assumed else ""),
        "resource": need.resource or "not sent",
        "scopes": " ".join(need.scopes or ()) or "none named",
        "registration": ", ".join(ways) or "by hand: give --client-id",
        "PKCE": ", ".join(server.pkce_methods or ()) or "not advertised",
        "device login": "yes" if server.device_authorization_endpoint else "no",
        "DPoP": "yes" if need.dpop else "no",
    }
    return [*found, ("note", "\n".join(f"{name}: {value}" for name, value in facts.items()))]


_SAID = ("resource", "authorization_servers", "scopes_supported", "issuer")


@click.group()
def auth() -> None:
    """Show who is logged in where, and the document that describes this client."""


@auth.command()
@output_option
def status(output: Output) -> None:
    """The stored logins, without their secrets."""
    import asyncio

    from holdfast._core.auth.credentials import Login, decode
    from holdfast._core.auth.store import default_store

    async def stored() -> list[Login | None]:
        store = default_store()
        keys = [key for key in await store.keys() if key.startswith("login-")]
        return [decode(await store.read(key), Login) for key in keys]

    found = (_row(one) for one in asyncio.run(stored()) if one)
    rows = sorted(found, key=lambda row: row["server"])
    if not rows and not output.json:
        output.note("Nobody is logged in. Log in: holdfast login SERVER.")
        return
    shown = [
        (row["server"], row["account"], row["who"] or "", row["state"], " ".join(row["scopes"]))
        for row in rows
    ]
    table(output, rows, ("server", "account", "who", "until", "scopes"), shown, "")


def _row(login: Any) -> dict[str, Any]:
    if login.refresh_token is not None:
        until = "renewed when due"
    elif login.expires_at is None:
        until = "not said"
    elif login.expires_at <= time.time():
        until = "expired"
    else:
        until = time.strftime("%Y-%m-%d %H:%M", time.localtime(login.expires_at))
    return {
        "server": login.server,
        "account": login.account,
        "who": login.subject,
        "issuer": login.issuer,
        "scopes": list(login.granted),
        "expires_at": login.expires_at,
        "renewable": login.refresh_token is not None,
        "state": until,
    }


@auth.command("client-metadata")
@click.argument("url")
@option("--name NAME", "The client's name.", default="Holdfast", show_default=True)
@output_option
def client_metadata(url: str, name: str, output: Output) -> None:
    """The client metadata document to host at URL (give it as client_metadata_url)."""
    from holdfast import OAuth
    from holdfast._core.auth.login import client_metadata as metadata

    redirects = [f"http://{host}/callback" for host in ("127.0.0.1", "localhost")]
    document = {
        "client_id": url,
        **metadata(OAuth(client_metadata_url=url), redirects[0], None),
        "client_name": name,
        "redirect_uris": redirects,
        "token_endpoint_auth_method": "none",
    }
    output.result(document, json.dumps(document, indent=2))
