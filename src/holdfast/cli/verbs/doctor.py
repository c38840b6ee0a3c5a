"""``holdfast doctor``: start a server step by step, and say what is wrong and what to do.

Each step gives findings; a step that fails ends the examination, because what follows
would only fail for the same reason.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from holdfast._core.text import counted, visible_lines
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast.cli.main import columns_of_terminal
from holdfast.cli.output import Exit, Output, as_said, exit_for, hang, paint, write
from holdfast.cli.target import ServerTarget, ServerVerb, known
from holdfast.cli.verbs.status import identity, show_all
from holdfast.errors import (
    AuthError,
    HandshakeTimeout,
    HoldfastError,
    ProtocolError,
    RpcError,
    StateError,
    TransportError,
    ValidationError,
)
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


@click.command(cls=ServerVerb, takes="", or_all=True)
async def doctor(target: ServerTarget) -> int:
    """Start a server step by step and say what is wrong, and what to do.

    Looks at the command, its environment, the start, what it writes where, the revisions it
    speaks, its capabilities, its tools' schemas, and how it ends. Without a name: see 'status'.
    """
    if target.server is None and target.is_open:
        return await show_all(target)
    findings: list[Finding] = []
    code = Exit.CONNECT
    try:
        async for finding in _examine(target):
            findings.append(finding)
            _show(target.output, finding)
    except HoldfastError as error:
        code = exit_for(error)
        told = as_said(str(error), with_path=True)
        findings.append(Finding("failure", "bad", told, advice(error, os.environ)))
        _show(target.output, findings[-1])
    bad = [one.text for one in findings if one.verdict == "bad"]
    warned = sum(one.verdict == "warn" for one in findings)
    if target.output.json:
        target.output.value({"healthy": not bad, "findings": [asdict(one) for one in findings]})
    elif bad:
        target.output.text(f"\n{counted(len(bad), 'problem')} found.")
    else:
        more = f", with {counted(warned, 'thing')} worth a look" if warned else ""
        target.output.text(f"\nIt works{more}.")
    return target.output.verdict(bad[0], code, "doctor") if bad else Exit.OK


async def _examine(target: ServerTarget) -> AsyncIterator[Finding]:
    heard: list[str] = []
    if not target.verbose:
        target.options["stderr"] = heard.append
    client = target.client()
    command = getattr(client.transport, "command", None)
    authorizer = getattr(client.transport, "authorizer", None)
    for finding in _before(client):
        yield finding
    violations: list[ProtocolViolation] = []
    is_open = False

    def violated(event: Event) -> None:
        # Before it is open, it may be the answer to our question for the newest revision.
        assert isinstance(event, ProtocolViolation)
        if is_open or event.reason not in _OF_PROBE:
            violations.append(event)

    client.events.subscribe(violated, ProtocolViolation.name)
    try:
        began = time.perf_counter()
        await client.open()
        is_open = True
        for finding in _introduced(client, time.perf_counter() - began):
            yield finding
        for finding in await _tools(target, client):
            yield finding
    except HoldfastError:
        if command is None and not is_open:
            yield Finding("transport", "note", "HTTP")
        if violations:
            yield _pollution(violations, command)
        if authorizer is not None and authorizer.refusal is not None:
            from holdfast.cli.verbs.auth import discovery

            for verdict, text in await discovery(client):
                yield Finding("login", verdict, text)
        raise
    finally:
        await client.close()
    yield _pollution(violations, command)
    if heard:
        tail = "\n".join(line.rstrip() for line in heard[-10:])
        words = f"{len(heard)} line(s); the last of them:\n{tail}"
        is_probed = _era(client.protocol_version) == "handshake"
        yield Finding("stderr", "note", words, _PROBED if is_probed else "")
    yield _ended(client)
    from holdfast._core.eras.revisions import HANDSHAKE, STATELESS

    for newest in (STATELESS[0], HANDSHAKE[0]):
        yield await _speaks(target, newest, client.protocol_version)


# How findings look

_MARKS: Final = {"ok": ("✓", "32"), "note": ("·", "2"), "warn": ("!", "33"), "bad": ("✗", "31")}
_STEP: Final = 12
"""Columns of a step's name."""


def _show(output: Output, finding: Finding) -> None:
    """Show a finding: at a terminal its lines hang, and a PATH is parted between its folders."""
    if output.json:
        return
    mark, colour = _MARKS[finding.verdict]
    lines = visible_lines(finding.text).splitlines() or [""]
    lines += [f"→ {visible_lines(finding.advice)}"] if finding.advice else []
    margin = " " * (_STEP + 3)
    for at, line in enumerate(lines):
        after = ":" if line.startswith("PATH=") else "|"
        hung = f"{margin}{line}"
        if output.is_terminal:
            hung = hang(line, columns_of_terminal(), margin, after=after)
        lines[at] = hung
    head = f"{paint(mark, colour, sys.stdout)} {finding.step:<{_STEP}} "
    write(head + "\n".join(lines).removeprefix(margin))


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


_PROBED: Final = (
    "words about a method or revision that it does not know are answers to our question for the "
    "newest revision, and no fault"
)
_OF_PROBE: Final = ("error without an id", "answer to an unknown request")


def _introduced(client: Client, seconds: float) -> Iterable[Finding]:
    """Return how it was opened, and what it says of itself."""
    from holdfast._core.transports.launchers import is_launcher

    command = getattr(client.transport, "command", None)
    if command is None:
        yield Finding("transport", "note", client.transport.speaks)
    login = getattr(getattr(client.transport, "authorizer", None), "login", None)
    if login is not None:
        who = f"as {login.subject} " if login.subject else ""
        scopes = f" for: {' '.join(login.granted)}" if login.granted else ""
        yield Finding("login", "ok", f"{who}at {login.issuer}{scopes}")
    if seconds < SLOW_START:
        yield Finding("start", "ok", f"answered after {seconds * 1000:.0f} ms")
    else:
        advice = "some clients give up at 10 s: let it load less before it answers"
        if is_launcher(command or ()):
            advice = "install it beforehand rather than at each start; some clients give up at 10 s"
        yield Finding("start", "warn", f"answered after {seconds:.1f} s, which is slow", advice)
    who = identity(client) or "a server without a name"
    yield Finding("greeting", "ok", f"{who}, protocol {client.protocol_version}")
    said = client.server_capabilities
    names = sorted(said.raw) if said is not None else []
    yield Finding("capabilities", "note", ", ".join(names) or "none declared")
    if client.instructions:
        yield Finding("instructions", "note", f"{len(client.instructions)} characters for models")


async def _tools(target: ServerTarget, client: Client) -> list[Finding]:
    try:
        tools = await known(client.list_tools())
    except RpcError as error:
        return [Finding("tools", "bad", f"cannot be listed: {error}")]
    if tools is None:
        return [Finding("tools", "note", "it has no tools")]
    target.keep([tool.raw for tool in tools])
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


def _pollution(violations: list[ProtocolViolation], command: Any) -> Finding:
    if not violations:
        return Finding("output", "ok", "nothing but messages of the protocol")
    lines = [f"{one.reason}: {one.detail[:120]}" for one in violations[:5]]
    advice = "a server must send nothing but messages of the protocol"
    if command is not None:
        advice = "a stdio server must write only messages to stdout: send its logs to stderr"
    return Finding("output", "warn", "\n".join(["what it should not send:", *lines]), advice)


def _ended(client: Client) -> Finding:
    match getattr(client.transport, "ended_by", None):
        case None:
            return Finding("ending", "ok", "the connection closed")
        case "SIGKILL":
            advice = "it ignores the end of its input and SIGTERM: it should stop at either"
            return Finding("ending", "warn", "had to be killed (SIGKILL)", advice)
        case "SIGTERM":
            advice = "a server should end when its input does"
            return Finding("ending", "warn", "needed SIGTERM after its input ended", advice)
        case how:
            return Finding("ending", "ok", f"ended by itself at {how}")


def _era(revision: str | None) -> str:
    from holdfast._core.eras.revisions import STATELESS

    return "stateless" if revision in STATELESS else "handshake"


async def _speaks(target: ServerTarget, newest: str, spoken: str | None) -> Finding:
    """Return whether a new connection can agree on the newest revision of an era."""
    era = _era(newest)
    try:
        async with target.at(target.server, protocol=newest).client() as client:
            await client.open()
            return Finding(era, "ok", f"speaks {client.protocol_version}")
    except (ProtocolError, RpcError):
        is_older = _era(spoken) == era and spoken != newest
        more = f"; {spoken}, which it speaks, is used" if is_older else ""
        return Finding(era, "note", f"does not speak {newest}{more}")
    except HoldfastError as error:
        return Finding(era, "note", f"{newest} cannot be tried: {error.message}")


# What to do about a failure


_NAME: Final = r"\b([A-Z][A-Z0-9]*_[A-Z0-9_]*|[A-Z0-9]*(?:TOKEN|KEY|SECRET|PASSWORD))\b"
_MISSING_VARIABLE: Final = (
    r"KeyError: '([A-Z][A-Z0-9_]{2,})'",
    rf"(?i){_NAME}[^\n]{{0,60}}\b(?:required|missing|not set|not defined|must be set|undefined"
    r"|unset)\b",
    rf"\b(?:required|missing|not set|set|provide|define)\b[^\n]{{0,60}}?{_NAME}",
)

_BY_TEXT: Final = {
    r"command not found": "check the spelling, install it, or give its full path",
    r"permission denied|not executable": "make it executable (chmod +x), or start it through its "
    "interpreter",
    r"it is a directory": "name the program in it, not the folder",
    r"no such file or directory": "a path does not exist: check the command, its arguments, --cwd",
    r"ModuleNotFoundError|No module named": "the package is not installed for that interpreter",
    r"Cannot find module|ERR_MODULE_NOT_FOUND": "the package is not installed: npm install it",
    r"EADDRINUSE|address already in use": "another process has its port: stop that one first",
    r"ENOTFOUND|getaddrinfo|Name or service not known": "the name cannot be resolved: check it",
    r"connection refused": "nothing listens there: is the server running, is the port right?",
    r"certificate|CERTIFICATE_VERIFY_FAILED": "the certificate is not trusted: name your own with "
    "ca in the configuration",
    r"npm (error|ERR)|404 Not Found - GET": "npm could not install it: check the package's name",
    r"\b(404|405)\b|Not Found": "there is no MCP endpoint at this path: is it /mcp, /sse, another?",
    r"answered with text/html|gave no answer in its response": "this is no MCP endpoint: is it at "
    "another path, such as /mcp or /sse?",
    r"HTTP status 5\d\d": "the server, or a proxy before it, failed: see its log, try again",
    r"usage:|unrecognized arguments|unknown option": "the server does not take these arguments",
}


def missing_variable(text: str) -> str | None:
    """Return the environment variable that a server misses, if its words name one."""
    found = (re.search(one, text) for one in _MISSING_VARIABLE)
    return next((one[1] for one in found if one), None)


def advice(error: HoldfastError, environ: Mapping[str, str]) -> str:
    """Return what to try; empty where nothing better is known than the error itself."""
    if isinstance(error, ValidationError | StateError):
        return ""
    if isinstance(error, AuthError):
        return "it wants credentials: give --header 'Authorization: Bearer …'"
    variable = missing_variable(getattr(error, "stderr_tail", "") or "")
    if variable is not None and variable in environ:
        return f"{variable} is set here and not passed on: --env {variable}"
    if variable is not None:
        return f"it misses a variable: --env {variable}=…, or env in the configuration"
    if isinstance(error, RpcError) and error.code == METHOD_NOT_FOUND:
        return "it does not seem to speak MCP: is it the right program, with the right arguments?"
    for pattern, cure in _BY_TEXT.items():
        if re.search(pattern, str(error), re.I):
            return cure
    if isinstance(error, HandshakeTimeout):
        return "give it longer with --timeout; see with --verbose what it does meanwhile"
    if isinstance(error, TransportError) and error.exit_code is not None:
        return "it ended by itself: start the command by hand, and see what it says"
    return ""
