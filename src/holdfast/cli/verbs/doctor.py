"""``holdfast doctor``: start a server step by step, and say what is wrong and what to do.

Each step gives findings; a step that fails ends the examination, because what follows
would only fail for the same reason.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal

import click

from holdfast._core.text import visible_lines
from holdfast.cli import advice
from holdfast.cli.completers import servers
from holdfast.cli.exit_codes import Exit, exit_for
from holdfast.cli.main import columns_of_terminal
from holdfast.cli.options import ServerCommand
from holdfast.cli.output import Output, as_said, wrap_words, write
from holdfast.cli.render import styled
from holdfast.cli.target import ServerTarget, server_options
from holdfast.cli.verbs.status import show_all
from holdfast.errors import HoldfastError, ProtocolError, RpcError
from holdfast.events import Event, ProtocolViolation

if TYPE_CHECKING:
    from holdfast import Client, Tool

SLOW_START: Final = 3.0
"""Seconds after which a start is called slow: many clients give up after ten."""

Verdict = Literal["ok", "note", "warn", "bad"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, how it looks, and what to do about it."""

    step: str
    verdict: Verdict
    text: str
    advice: str = ""


@click.command(cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@server_options
async def doctor(target: ServerTarget, server: tuple[str, ...]) -> int:
    """Start a server step by step and say what is wrong, and what to do.

    Looks at the command, its environment, the start, what it writes where, the revisions it
    speaks, its capabilities, its tools' schemas, and how it ends. Without a name: see 'status'.
    """
    if not server and target.is_open:
        return await show_all(target)
    name = target.only(server)
    findings: list[Finding] = []
    code = Exit.CONNECT
    try:
        async for finding in _examine(target, name):
            findings.append(finding)
            _show(target.output, finding)
    except HoldfastError as error:
        code = exit_for(error)
        told = as_said(str(error), with_path=True)
        findings.append(Finding("failure", "bad", told, advice.advice(error, os.environ)))
        _show(target.output, findings[-1])
    bad, summary = _summary(findings)
    if target.output.json:
        target.output.value({"healthy": not bad, "findings": [asdict(one) for one in findings]})
    else:
        target.output.text(f"\n{summary}")
    worst = next((one.text for one in findings if one.verdict == "bad"), None)
    return Exit.OK if worst is None else target.output.verdict(worst, code, "doctor")


def _summary(findings: list[Finding]) -> tuple[int, str]:
    bad = sum(finding.verdict == "bad" for finding in findings)
    warned = sum(finding.verdict == "warn" for finding in findings)
    if bad:
        return bad, f"{bad} problem{'s' * (bad > 1)} found."
    more = f", with {warned} thing{'s' * (warned > 1)} worth a look" if warned else ""
    return bad, f"It works{more}."


async def _examine(target: ServerTarget, name: str | None) -> AsyncIterator[Finding]:
    heard: list[str] = []
    target.stdio.setdefault("stderr", heard.append)
    client = target.client(name)
    is_stdio = getattr(client.transport, "command", None) is not None
    for finding in _before(client):
        yield finding
    violations: list[ProtocolViolation] = []
    is_open = False

    def violated(event: Event) -> None:
        if isinstance(event, ProtocolViolation) and not _is_ours(event, is_open):
            violations.append(event)

    client.events.subscribe(violated, ProtocolViolation.name)
    try:
        began = time.perf_counter()
        await client.open()
        is_open = True
        if not is_stdio:
            yield Finding("transport", "note", client.transport.speaks)
        for finding in _login(client):
            yield finding
        yield _started(time.perf_counter() - began, getattr(client.transport, "command", ()))
        for finding in _introduced(client):
            yield finding
        for finding in await _tools(target, name, client):
            yield finding
    except HoldfastError:
        if not (is_stdio or is_open):
            yield Finding("transport", "note", "HTTP")
        if violations:
            yield _pollution(violations, is_stdio)
        for finding in await _discovery(client):
            yield finding
        raise
    finally:
        await client.close()
    yield _pollution(violations, is_stdio)
    if heard:
        tail = "\n".join(line.rstrip() for line in heard[-10:])
        words = f"{len(heard)} line(s); the last of them:\n{tail}"
        yield Finding(
            "stderr",
            "note",
            words,
            _PROBED if _revision_era(client.protocol_version) == "handshake" else "",
        )
    yield _ended(client)
    for protocol, era in _eras():
        yield await _speaks(target, name, (protocol, era), client.protocol_version)


# How findings look

_MARKS: Final = {
    "ok": ("✓", "32"),
    "note": ("·", "2"),
    "warn": ("!", "33"),
    "bad": ("✗", "31"),
}
_STEP: Final = 12
"""Columns of a step's name."""


def _show(output: Output, finding: Finding) -> None:
    if output.json:
        return
    mark, colour = _MARKS[finding.verdict]
    lines = visible_lines(finding.text).splitlines() or [""]
    lines += [f"→ {visible_lines(finding.advice)}"] if finding.advice else []
    margin = " " * (_STEP + 3)
    if output.is_terminal:
        lines = [_hung(line, margin) for line in lines]
    text = f"{finding.step:<{_STEP}} " + f"\n{margin}".join(lines)
    write(f"{styled(mark, colour)} {text}\n".encode("utf-8", "backslashreplace"))


def _hung(line: str, margin: str) -> str:
    """Return a line that goes on below itself; a PATH is parted between its folders."""
    rest = margin + " " * (len(line) - len(line.lstrip()) + 2)
    after = ":" if line.startswith("PATH=") else "|"
    return wrap_words(line, columns_of_terminal(), margin, rest, after=after).removeprefix(margin)


# The steps


def _before(client: Client) -> Iterable[Finding]:
    """Return what is known without starting anything."""
    from holdfast.config.views import EntryDisplay

    transport = client.transport
    display = EntryDisplay()
    command = getattr(transport, "command", None)
    if command is None:
        yield Finding("address", "note", display.url(str(transport.key[1])))
        return
    yield Finding("transport", "note", "stdio: messages through the command's stdin and stdout")
    from holdfast._core.transports.spawn import environment

    env = environment(transport.env, transport.inherit_env, os.environ)
    found = shutil.which(command[0], path=env.get("PATH"))
    if found:
        told = " ".join([command[0], *display.arguments(command[0], command[1:])])
        yield Finding("command", "ok", f"{told}\n{command[0]} is {found}")
    text = "\n".join(f"{key}={value}" for key, value in sorted(display.table(env).items()))
    advice = "more is passed on with --env NAME or --inherit-env, or env in the configuration"
    yield Finding("environment", "note", text, advice)


def _login(client: Client) -> Iterable[Finding]:
    """Return who is logged in, if the server is used with a login."""
    authorizer = getattr(client.transport, "authorizer", None)
    login = None if authorizer is None else authorizer.login
    if login is not None:
        who = f"as {login.subject} " if login.subject else ""
        scopes = f" for: {' '.join(login.granted)}" if login.granted else ""
        yield Finding("login", "ok", f"{who}at {login.issuer}{scopes}")


async def _discovery(client: Client) -> list[Finding]:
    """Return how the authorization server is found, where the server has refused a request."""
    authorizer = getattr(client.transport, "authorizer", None)
    if authorizer is None or authorizer.refusal is None:
        return []
    from holdfast.cli.verbs.auth import discovery

    return [Finding("login", verdict, text) for verdict, text in await discovery(client)]


_PROBED: Final = (
    "words about a method or revision that it does not know are answers to our question for the "
    "newest revision, and no fault"
)
_OF_PROBE: Final = ("error without an id", "answer to an unknown request")


def _is_ours(event: ProtocolViolation, is_open: bool) -> bool:
    """Return whether a violation may be the answer to the question for the newest revision."""
    return not is_open and event.reason in _OF_PROBE


def _started(seconds: float, command: Sequence[str]) -> Finding:
    if seconds < SLOW_START:
        return Finding("start", "ok", f"answered after {seconds * 1000:.0f} ms")
    from holdfast._core.transports.launchers import is_launcher

    advice = "some clients give up at 10 s: let it load less before it answers"
    if is_launcher(command or ()):
        advice = "install it beforehand rather than at each start; some clients give up at 10 s"
    return Finding("start", "warn", f"answered after {seconds:.1f} s, which is slow", advice)


def _introduced(client: Client) -> Iterable[Finding]:
    info = client.server_info
    who = "a server without a name" if info is None else f"{info.name} {info.version}"
    yield Finding("greeting", "ok", f"{who}, protocol {client.protocol_version}")
    said = client.server_capabilities
    names = sorted(said.raw) if said is not None else []
    yield Finding("capabilities", "note", ", ".join(names) or "none declared")
    if client.instructions:
        yield Finding("instructions", "note", f"{len(client.instructions)} characters for models")


async def _tools(target: ServerTarget, name: str | None, client: Client) -> list[Finding]:
    from holdfast._core.wire.codes import METHOD_NOT_FOUND

    try:
        tools = await client.list_tools()
    except RpcError as error:
        if error.code == METHOD_NOT_FOUND:
            return [Finding("tools", "note", "it has no tools")]
        return [Finding("tools", "bad", f"cannot be listed: {error}")]
    target.keep(name, [tool.raw for tool in tools])
    found = [Finding("tools", "ok", f"{len(tools)} listed")]
    return found + [finding for tool in tools for finding in _tool(tool)]


def _tool(tool: Tool) -> Iterable[Finding]:
    from holdfast.schema.explain import Unusable
    from holdfast.schema.validate import Checkers

    for kind, schema in (("input", tool.input_schema_json), ("output", tool.output_schema_json)):
        if not isinstance(schema, bytes | bytearray | memoryview) and not hasattr(schema, "copy"):
            continue
        try:
            Checkers().get(schema)  # type: ignore[arg-type]
        except Unusable as error:
            advice = 'calls are refused, unless "validate" is "off" in the configuration'
            text = f"{tool.name}: the {kind} schema cannot be used: {error}"
            yield Finding("schemas", "bad", text, advice)
    if not tool.description:
        yield Finding("schemas", "warn", f"{tool.name}: no description for models to go by")


def _pollution(violations: list[ProtocolViolation], is_stdio: bool) -> Finding:
    if not violations:
        return Finding("output", "ok", "nothing but messages of the protocol")
    lines = [f"{one.reason}: {one.detail[:120]}" for one in violations[:5]]
    advice = "a server must send nothing but messages of the protocol"
    if is_stdio:
        advice = "a stdio server must write only messages to stdout: send its logs to stderr"
    return Finding("output", "warn", "\n".join(["what it should not send:", *lines]), advice)


def _ended(client: Client) -> Finding:
    how = getattr(client.transport, "ended_by", None)
    if how is None:
        return Finding("ending", "ok", "the connection closed")
    if how == "SIGKILL":
        advice = "it ignores the end of its input and SIGTERM: it should stop at either"
        return Finding("ending", "warn", "had to be killed (SIGKILL)", advice)
    if how == "SIGTERM":
        advice = "a server should end when its input does"
        return Finding("ending", "warn", "needed SIGTERM after its input ended", advice)
    return Finding("ending", "ok", f"ended by itself at {how}")


def _eras() -> list[tuple[str, str]]:
    from holdfast._core.eras.revisions import HANDSHAKE, STATELESS

    return [(STATELESS[0], "stateless"), (HANDSHAKE[0], "handshake")]


def _revision_era(revision: str | None) -> str:
    from holdfast._core.eras.revisions import STATELESS

    return "stateless" if revision in STATELESS else "handshake"


async def _speaks(
    target: ServerTarget, name: str | None, asked: tuple[str, str], spoken: str | None
) -> Finding:
    """Return whether a new connection can agree on the newest revision of an era."""
    protocol, era = asked
    kept = dict(target.options)
    target.options["protocol"] = protocol
    try:
        async with target.client(name) as client:
            await client.open()
            return Finding(era, "ok", f"speaks {client.protocol_version}")
    except (ProtocolError, RpcError):
        older = _revision_era(spoken) == era and spoken != protocol
        more = f"; {spoken}, which it speaks, is used" if older else ""
        return Finding(era, "note", f"does not speak {protocol}{more}")
    except HoldfastError as error:
        return Finding(era, "note", f"{protocol} cannot be tried: {error.message}")
    finally:
        target.options = kept
