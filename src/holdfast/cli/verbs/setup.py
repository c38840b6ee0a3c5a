"""Setting up: ``add``, ``remove``, ``import`` and approve servers; log in to them; ``demo``."""

from __future__ import annotations

import os
import shlex
import time
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from holdfast.cli import app
from holdfast.cli.app import CONFIG, REGISTRY, YES, option, output_option, pairs
from holdfast.cli.approvals import ask_approval
from holdfast.cli.completers import servers as suggest_servers
from holdfast.cli.output import Output
from holdfast.cli.progress import status as status_line
from holdfast.cli.target import ServerTarget, ServerVerb, is_url
from holdfast.cli.views import outline, table
from holdfast.errors import AuthError, TrustError

if TYPE_CHECKING:
    from holdfast.config import Approval, ConfigEdit, Configuration

PROJECT = option("--project", "The project's .mcp.json, not your own configuration.")
OVERWRITE = option("--overwrite", "Replace servers of the same name.")


@click.command(cls=app.ServerCommand)
@click.argument("name")
@click.argument("words", nargs=-1, metavar="[URL]")
@PROJECT
@OVERWRITE
@option("-y --yes", "Add a server of the registry without a question.")
@REGISTRY
@option("--as NAME", "The name for a server of the registry; by default its last part.", "alias")
@option("--kind KIND", "npm, pypi, oci or remote, if the registry has several.")
@option("--env K[=V]...", "A variable; without a value, ${K} is written.")
@app.CWD
@app.HEADER
@app.TRANSPORT
@output_option
def add(name: str, words: tuple[str, ...], output: Output, **options: Any) -> int | None:
    """Add a server to your configuration. What you type yourself needs no approval.

    A full name is looked up in the registry of MCP servers: its publisher, its exact version, the
    command and the variables that it wants are shown, and asked about.

    \b
    holdfast add git -- uvx mcp-server-git
    holdfast add io.github.owner/name
    holdfast add docs https://example.org/mcp --header 'X-Team: ${TEAM}'
    """
    from holdfast.config import add as write

    command: list[str] = click.get_current_context().obj.command or []
    if not command and not words:
        from holdfast.cli.registry import add_from_registry

        return add_from_registry(name, output, {**options, "env": variables(options["env"])})
    if command and words:
        raise click.UsageError("Give a URL, or a command after --, and nothing else.")
    if words:
        _check_url(name, words)
    done = write(
        name,
        command=next(iter(command), None),
        args=command[1:],
        url=next(iter(words), None),
        env=variables(options["env"]),
        headers=pairs("--header", options["header"], ":"),
        cwd=options["cwd"],
        transport=options["transport"] or "auto",
        scope="project" if options["project"] else "user",
        overwrite=options["overwrite"],
    )
    _report(output, done, "added to", f"\nTry it: holdfast tools {shlex.quote(name)}")
    return None


def variables(texts: tuple[str, ...]) -> dict[str, str]:
    """Return what ``--env`` says; without a value, a reference to the variable of that name."""
    return pairs("--env", tuple(text if "=" in text else f"{text}=${{{text}}}" for text in texts))


def _check_url(name: str, words: tuple[str, ...]) -> None:
    """Refuse words before ``--`` that are not one URL; most likely they are a command."""
    if len(words) == 1 and is_url(words[0]):
        return
    if "://" in words[0]:
        raise click.UsageError(f"{words[0]!r}: a URL begins with http:// or https://.")
    raise click.UsageError(f"Write: holdfast add {name} -- {shlex.join(words)}")


def _report(output: Output, done: ConfigEdit, how: str, advice: str = "") -> None:
    if output.json:
        output.value(done)
        return
    if done.servers:
        output.note(f"{', '.join(done.servers)}: {how} {done.file}{advice}")
    for name, why in done.skipped.items():
        output.note(f"{name}: left out: {why}")
    for lost in done.lost:
        output.note(f"lost: {lost}")


@click.command()
@click.argument("name", shell_complete=suggest_servers)
@PROJECT
@output_option
def remove(name: str, project: bool, output: Output) -> None:
    """Remove a server from your configuration, or else from the project's .mcp.json."""
    from holdfast.config import remove as take_out

    _report(output, take_out(name, scope="project" if project else None), "removed from")


@click.command("import")
@click.argument("products", nargs=-1, metavar="[PRODUCT_OR_FILE]...", shell_complete=app.files)
@option("--only NAME...", "Only this server.")
@OVERWRITE
@YES
@output_option
def import_(
    products: tuple[str, ...], only: tuple[str, ...], overwrite: bool, yes: bool, output: Output
) -> None:
    """Copy the servers of other products to your configuration, in one step.

    Without a name: of every product that is found here.

    \b
    holdfast import
    holdfast import cursor
    holdfast import other/mcp.json --only git
    """
    from holdfast.config.edit import plan_import

    plan = plan_import(products or None, names=only or None, overwrite=overwrite)
    if plan.entries and not yes:
        options = [*(f"--only={name}" for name in only), *["--overwrite"] * overwrite]
        command = shlex.join(["holdfast", "import", *products, *options, "--yes"])
        count = len(plan.entries)
        question = f"Import {'it' if count == 1 else f'these {count}'}?"
        if not ask_approval(output, plan.previews(), question, command):
            raise TrustError("nothing was imported")
    done = plan.carry_out()
    if not done.servers and not done.skipped:
        output.note("Nothing to import was found.")
    _report(output, done, "imported to")


# Approvals


@click.group(cls=app.SubVerbs)
def config() -> None:
    """Explain and trust configured servers; 'holdfast servers' lists them."""


@config.command(short_help="everything about one server")
@click.argument("name", shell_complete=suggest_servers)
@CONFIG
@output_option
def explain(name: str, config: str | None, output: Output) -> None:
    """Everything about one server: where it comes from, its variables, whether it may run."""
    from holdfast.config import explain as explained
    from holdfast.config import load

    explanation = explained(load(config), name)
    output.result(explanation, "\n".join(outline(to_builtins(explanation))))


@config.command(short_help="approve servers of a project's own file")
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=suggest_servers)
@option("--all", "Every server that needs an approval.", name="everything")
@YES
@CONFIG
@output_option
def trust(
    names: tuple[str, ...], everything: bool, yes: bool, config: str | None, output: Output
) -> None:
    """Approve servers of a project's own file, as they stand now.

    The approval holds until its command, arguments, environment, URL or files change.
    """
    from holdfast.config import approve_all, load, preview

    configuration = load(config)
    if everything == bool(names):
        raise click.UsageError("Name the servers, or give --all.")
    if everything:
        names = _untrusted_names(configuration)
    previews = {name: preview(configuration, name) for name in names}
    pending = {
        name: approval
        for name, approval in previews.items()
        if approval.verdict in ("untrusted", "changed")
    }
    for name in previews.keys() - pending.keys():
        is_own = previews[name].verdict == "own"
        output.note(f"{name}: {'is your own' if is_own else 'is trusted already'}.")
    if pending and not yes:
        _ask_about(pending, output)
    for approval in approve_all(configuration, list(pending), seen=pending):
        previews[approval.name] = approval
        output.note(f"{approval.name}: approved, as {approval.file} has it now.")
    if not previews:
        output.note("Nothing needs an approval.")
    if output.json:
        values = list(previews.values())
        output.value(values[0] if len(values) == 1 and not everything else values)


def _untrusted_names(configuration: Configuration) -> tuple[str, ...]:
    return tuple(entry.name for entry in configuration if not entry.errors and not entry.trust().ok)


def _ask_about(pending: dict[str, Approval], output: Output) -> None:
    """Show what is to be approved, and raise an error unless the person agrees."""
    from holdfast.config.trust import approving

    question = "Approve it?" if len(pending) == 1 else f"Approve these {len(pending)}?"
    command = approving(*pending).replace("trust", "trust --yes", 1)
    if not ask_approval(output, list(pending.values()), question, command):
        raise TrustError(f"{', '.join(pending)}: not approved")


@config.command(short_help="take an approval back")
@click.argument("name", shell_complete=suggest_servers)
@CONFIG
@output_option
def untrust(name: str, config: str | None, output: Output) -> None:
    """Take an approval back."""
    from holdfast.config import load, revoke

    done = revoke(load(config), name)
    note = f"{name}: {'no longer approved' if done else 'was not approved'}."
    output.done({"name": name, "changed": done}, note)


@click.command()
@option("-v --verbose", "Show the client's log as well.")
def demo(verbose: bool) -> int:
    """See a client connect, list, call, and survive the death of its server."""
    from holdfast.demo.story import main

    return main(verbose=verbose)


# Logins

ACCOUNT = option("--account NAME", "Which login, of several.")


@click.command(cls=ServerVerb, takes="")
@ACCOUNT
@option("--scope SCOPE...", "Request this scope and no others.", name="scopes")
@option("--no-browser", "Print the address instead of opening it.")
@option("--device", "Log in with a code, on any device.")
@option("--port PORT", "The port of the redirect URI on this machine.", type=int)
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
    elif callback_port := os.environ.get("MCP_OAUTH_CALLBACK_PORT"):  # other clients read it too
        options["redirect_uri"] = f"http://localhost:{callback_port}/callback"
    async with _client(target, options) as client:
        await client.login(fresh=fresh)
        stored = client.transport.authorizer.login
    who = f" as {stored.subject}" if stored.subject else ""
    target.output.done(_row(stored), f"You are logged in to {stored.server}{who}.")


@click.command(cls=ServerVerb, takes="")
@ACCOUNT
async def logout(target: ServerTarget, account: str | None) -> None:
    """Revoke and delete the login to a server."""
    async with _client(target, {"account": account}) as client:
        is_revoked = await client.logout()
    note = "You are logged out." if is_revoked else "There was no login."
    target.output.done({"logged_out": is_revoked}, note)


def _client(target: ServerTarget, overrides: dict[str, Any]) -> Any:
    """Return a client whose login settings override those of its configuration."""
    from holdfast import OAuth

    target.is_login = True
    client = target.client()
    status_line.end()  # a login prints its own lines
    authorizer = client.transport.authorizer
    if authorizer is None or not isinstance(authorizer.options, OAuth):
        raise AuthError(f"{client.name}: there is no login for this kind of server")
    authorizer.allow_login(**{name: value for name, value in overrides.items() if value})
    return client


@click.group(cls=app.SubVerbs)
def auth() -> None:
    """Show who is logged in where."""


@auth.command(short_help="the stored logins, without their secrets")
@output_option
def status(output: Output) -> None:
    """The stored logins, without their secrets."""
    import asyncio

    from holdfast._core.auth.credentials import Login, decode
    from holdfast._core.auth.logins import Logins, default_store

    async def stored() -> list[Login | None]:
        logins = Logins(default_store())
        return [decode(await logins.read(key), Login) for key in await logins.keys()]

    logins = (_row(login) for login in asyncio.run(stored()) if login)
    rows = sorted(logins, key=lambda row: row["server"])
    if not rows and not output.json:
        output.note("Nobody is logged in. Log in: holdfast login SERVER.")
        return
    columns = ("server", "account", "who", "state")
    cells_of_rows = [
        [*(row[name] or "" for name in columns), " ".join(row["scopes"])] for row in rows
    ]
    table(output, rows, (*columns, "scopes"), cells_of_rows, "")


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
