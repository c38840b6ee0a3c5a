"""``holdfast doctor``: start a server step by step, and say what is wrong and what to do.

A step that fails ends the examination, because what follows would only fail for the same reason.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import UnsetType

from holdfast import errors
from holdfast._core.text import counted, truncate, visible, visible_lines
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast.cli.main import columns_of_terminal
from holdfast.cli.output import Exit, color, exit_for, explain, hanging_indent, write
from holdfast.cli.progress import status as status_line
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.cli.verbs.status import identity
from holdfast.errors import HoldfastError, RpcError
from holdfast.events import Event, ProtocolViolation

if TYPE_CHECKING:
    from holdfast import Client

SLOW_START: Final = 3.0
"""Seconds after which a start is called slow: many clients give up after ten."""

_MARKS: Final = {"ok": ("✓", "32"), "note": ("·", "2"), "warn": ("!", "33"), "bad": ("✗", "31")}
_STEP: Final = 12
"""Columns of a step's name."""
_PROBED: Final = (
    "words about a method or revision that it does not know are answers to our question for the "
    "newest revision, and no fault"
)
_OF_PROBE: Final = ("error without an id", "answer to an unknown request")
_ENDINGS: Final = {
    None: ("ok", "the connection closed", ""),
    "SIGKILL": (
        *("warn", "had to be killed (SIGKILL)"),
        "it ignores the end of its input and SIGTERM: it should stop at either",
    ),
    "SIGTERM": (
        *("warn", "needed SIGTERM after its input ended"),
        "a server should end when its input does",
    ),
}


@click.command(cls=ServerVerb, takes="")
async def doctor(target: ServerTarget) -> int:
    """Start a server step by step and say what is wrong, and what to do.

    Looks at the command, its environment, the start, what it writes where, the revisions it
    speaks, its capabilities, its tools' schemas, and how it ends.
    """
    if target.server is None and target.is_open:
        raise click.UsageError(f"Which server? {target.hint()} For all: holdfast status.")
    examination = Examination(target)
    code = Exit.CONNECT
    try:
        await examination.run()
    except HoldfastError as error:
        code = exit_for(error)
        # This is the command that other errors point to.
        hints = tuple(hint for hint in error.hints if hint.option)
        message = explain(error.again(hints=hints), with_path=True)
        examination.find("failure", "bad", message, advice(error, os.environ))
    findings = examination.findings
    bad = [finding["text"] for finding in findings if finding["verdict"] == "bad"]
    if target.output.json:
        target.output.value({"healthy": not bad, "findings": findings})
    else:
        status_line.end()
        examination.show()
    return target.output.verdict(bad[0], code, "doctor") if bad else Exit.OK


def _headline(findings: Sequence[Mapping[str, str]]) -> str:
    """Return the verdict: whether it works, or else the first problem and what to do about it."""
    bad = [finding for finding in findings if finding["verdict"] == "bad"]
    if bad:
        more = f" ({counted(len(bad), 'problem')} in all)" if len(bad) > 1 else ""
        words = next(iter(bad[0]["text"].splitlines()), "").partition("; PATH is ")[0]
        cure = f"\n→ {bad[0]['advice']}" if bad[0]["advice"] else ""
        return f"It does not work: {words}{more}{cure}"
    warned = sum(finding["verdict"] == "warn" for finding in findings)
    remark = f", with {counted(warned, 'thing')} worth a look" if warned else ""
    return f"It works{remark}."


class Examination:
    """The steps, and what each has found."""

    def __init__(self, target: ServerTarget) -> None:
        self._target = target
        self._violations: list[ProtocolViolation] = []
        self.findings: list[dict[str, str]] = []
        """For each step: its verdict, what was found, and what to do about it."""

    def find(self, step: str, verdict: str, text: str, advice: str = "") -> None:
        """Keep a finding; the status line says which step was taken.

        What a server says of itself may repeat a secret, and findings are sent to its author.
        """
        from holdfast._core.redact.known import KNOWN

        finding = {"step": step, "verdict": verdict, "text": text, "advice": advice}
        self.findings.append(KNOWN.hide_in(finding))
        status_line.say(f"examining it: {step} done")

    def show(self) -> None:
        """Write the verdict, and every finding; at a terminal its lines hang below the step."""
        is_terminal = self._target.output.is_terminal
        columns = columns_of_terminal()
        headline = visible_lines(_headline(self.findings))
        write(f"{hanging_indent(headline, columns) if is_terminal else headline}\n\n")
        margin = " " * (_STEP + 3)
        for finding in self.findings:
            mark, colour = _MARKS[finding["verdict"]]
            lines = visible_lines(finding["text"]).splitlines() or [""]
            lines += [f"→ {visible_lines(finding['advice'])}"] if finding["advice"] else []
            if is_terminal:
                wrapped = (hanging_indent(line, columns, margin) for line in lines)
                lines = [line.removeprefix(margin) for line in wrapped]
            head = f"{color(mark, colour, sys.stdout)} {finding['step']:<{_STEP}} "
            write(head + f"\n{margin}".join(lines))

    async def run(self) -> None:
        """Take the steps, one after the other."""
        target = self._target
        stderr: list[str] = []
        if not target.verbose:
            target.options["stderr"] = stderr.append
        target.options["shared"] = False  # it is the start of a server that is looked at
        client = target.client()
        transport: Any = client.transport
        authorizer = transport.authorizer
        is_open = False

        def violated(event: Event) -> None:
            # Before it is open, it may be the answer to our question for the newest revision.
            assert isinstance(event, ProtocolViolation)
            if is_open or event.reason not in _OF_PROBE:
                self._violations.append(event)

        client.events.subscribe(violated, ProtocolViolation.name)
        self._before(transport)
        try:
            began = time.perf_counter()
            await client.open()
            is_open = True
            self._introduced(client, time.perf_counter() - began)
            await self._tools(client)
        except HoldfastError:
            if self._violations:
                self._pollution(client)
            if not is_open and not hasattr(transport, "command"):
                self.find("transport", "note", "HTTP")
            await self._refused_login(authorizer)
            raise
        finally:
            await client.close()
        self._pollution(client)
        if stderr:
            self._stderr(stderr, client)
        how = getattr(transport, "ended_by", None)
        self.find("ending", *_ENDINGS.get(how, ("ok", f"ended by itself at {how}", "")))
        from holdfast._core.eras.revisions import HANDSHAKE, STATELESS

        for newest in (STATELESS[0], HANDSHAKE[0]):
            await self._speaks(newest, client.protocol_version)

    async def _refused_login(self, authorizer: Any) -> None:
        """Follow the way from a refusal to the authorization server, if there was a refusal."""
        if getattr(authorizer, "refusal", None) is not None:
            for verdict, text in await discovery(authorizer):
                self.find("login", verdict, text)

    def _stderr(self, lines: list[str], client: Client) -> None:
        tail = "\n".join(line.rstrip() for line in lines[-10:])
        text = f"{len(lines)} line(s); the last of them:\n{tail}"
        is_probed = _era(client.protocol_version) == "handshake"
        self.find("stderr", "note", text, _PROBED if is_probed else "")

    def _before(self, transport: Any) -> None:
        """Say what is known without starting anything."""
        from holdfast._core.transports.environment import environment
        from holdfast._core.transports.launchers import uses_launcher
        from holdfast.config.views import EntryDisplay

        display = EntryDisplay()
        if not hasattr(transport, "command"):
            self.find("address", "note", display.url(str(transport.key[1])))
            return
        self.find("transport", "note", "stdio: messages through the command's stdin and stdout")
        program, *rest = transport.command
        launcher = uses_launcher(transport.command)
        env = environment(transport.env, transport.inherit_env, os.environ, launcher=launcher)
        if location := shutil.which(program, path=env.get("PATH")):
            name = os.path.basename(program)
            words = " ".join([name, *display.arguments(rest)])
            self.find("command", "ok", f"{words}\n{name} is {location}")
        if self._target.verbose or self._target.output.json:
            text = "\n".join(f"{key}={value}" for key, value in sorted(display.table(env).items()))
        else:
            text = environment_difference(env, os.environ)
        advice = "more is passed on with --env NAME or --inherit-env, or env in the configuration"
        self.find("environment", "note", text, advice)

    def _introduced(self, client: Client, seconds: float) -> None:
        """Say how it was opened, and what it says of itself."""
        transport: Any = client.transport
        command = getattr(transport, "command", None)
        if command is None:
            self.find("transport", "note", transport.speaks)
        login = None if transport.authorizer is None else transport.authorizer.login
        if login is not None:
            self._login(login)
        self._start(seconds, command or ())
        who = identity(client) or "a server without a name"
        self.find("greeting", "ok", f"{who}, protocol {client.protocol_version}")
        capabilities = client.server_capabilities
        names = sorted(capabilities.raw) if capabilities is not None else []
        self.find("capabilities", "note", ", ".join(names) or "none declared")
        if client.instructions:
            self.find("instructions", "note", f"{len(client.instructions)} characters for models")

    def _login(self, login: Any) -> None:
        who = f"as {login.subject} " if login.subject else ""
        scopes = f" for: {' '.join(login.granted)}" if login.granted else ""
        self.find("login", "ok", f"{who}at {login.issuer}{scopes}")

    def _start(self, seconds: float, command: Sequence[str]) -> None:
        """Say how long it took to answer."""
        from holdfast._core.transports.launchers import is_launcher

        if seconds < SLOW_START:
            self.find("start", "ok", f"answered after {seconds * 1000:.0f} ms")
            return
        advice = "some clients give up at 10 s: let it load less before it answers"
        if is_launcher(command):
            advice = "install it beforehand, not at each start; some clients give up at 10 s"
        self.find("start", "warn", f"answered after {seconds:.1f} s, which is slow", advice)

    async def _tools(self, client: Client) -> None:
        """List the tools, and compile their schemas."""
        from holdfast.schema.faults import Unusable
        from holdfast.schema.validate import Checkers

        try:
            listed = await self._target.list_tools(client)
        except RpcError as error:
            self.find("tools", "bad", f"cannot be listed: {error}")
            return
        if listed is None:
            self.find("tools", "note", "it has no tools")
            return
        self.find("tools", "ok", f"{len(listed)} listed")
        for tool in client.tools.values():
            schemas = {"input": tool.input_schema_json, "output": tool.output_schema_json}
            for kind, schema in schemas.items():
                try:
                    if not isinstance(schema, UnsetType):
                        Checkers().get(schema)
                except Unusable as error:
                    text = f"{tool.name}: the {kind} schema cannot be used: {error}"
                    self.find("schemas", "bad", text, "calls are sent unchecked")
            if not tool.description:
                self.find("schemas", "warn", f"{tool.name}: no description for models to go by")

    def _pollution(self, client: Client) -> None:
        if not self._violations:
            self.find("output", "ok", "nothing but messages of the protocol")
            return
        lines = [
            f"{violation.reason}: {truncate(violation.detail)}"
            for violation in self._violations[:5]
        ]
        advice = "a server must send nothing but messages of the protocol"
        if hasattr(client.transport, "command"):
            advice = "a stdio server must write only messages to stdout: send its logs to stderr"
        self.find("output", "warn", "\n".join(["what it should not send:", *lines]), advice)

    async def _speaks(self, newest: str, spoken: str | None) -> None:
        """Say whether a new connection can agree on the newest revision of an era."""
        era, target = _era(newest), self._target
        try:
            async with target.at(target.server, protocol=newest).client() as client:
                await client.open()
                self.find(era, "ok", f"speaks {client.protocol_version}")
        except (errors.ProtocolError, RpcError):
            is_older = _era(spoken) == era and spoken != newest
            remark = f"; {spoken}, which it speaks, is used" if is_older else ""
            self.find(era, "note", f"does not speak {newest}{remark}")
        except HoldfastError as error:
            self.find(era, "note", f"{newest} cannot be tried: {error.message}")


MOST_NAMES: Final = 12


def environment_difference(env: Mapping[str, str], yours: Mapping[str, str]) -> str:
    """Return how the server's environment differs from that of this process: names alone."""
    kinds = {
        "set for it": [name for name in env if name not in yours],
        "different": [name for name in env if name in yours and env[name] != yours[name]],
        "not passed on": [name for name in yours if name not in env],
    }
    lines = [f"{len(env)} variables; -v shows them"]
    for words, names in kinds.items():
        if names:
            cut = [*sorted(names)[:MOST_NAMES], *["…"] * (len(names) > MOST_NAMES)]
            lines.append(f"{words}: {', '.join(map(visible, cut))}")
    return "\n".join(lines)


def _era(revision: str | None) -> str:
    from holdfast._core.eras.revisions import STATELESS

    return "stateless" if revision in STATELESS else "handshake"


async def discovery(authorizer: Any) -> list[tuple[str, str]]:
    """Return each step from a refusal to the authorization server: its verdict and its text."""
    steps: list[tuple[str, str]] = []

    def watch(ask: Any, answer: Any) -> None:
        document = answer.document() if getattr(answer, "status", 0) == 200 else None
        if document is not None:
            names = ("resource", "authorization_servers", "scopes_supported", "issuer")
            facts = {name: document[name] for name in names if name in document}
            text = json.dumps(facts, ensure_ascii=False)[1:-1] or "a document"
            steps.append(("ok", f"{ask.url}\n{truncate(text, 300)}"))
        else:
            status = getattr(answer, "status", None)
            text = f"HTTP status {status}" if status else answer.reason
            steps.append(("note" if status == 404 else "warn", f"{ask.url}\n{text}"))

    try:
        need = await authorizer.discover(watch)
    except HoldfastError as error:
        return [*steps, ("bad", error.message)]
    facts = _login_facts(need)
    return [*steps, ("note", "\n".join(f"{name}: {value}" for name, value in facts.items()))]


def _login_facts(need: Any) -> dict[str, str]:
    """Return what a login at the server that was discovered would be like."""
    server = need.login.auth_server
    return {
        "authorization server": server.issuer + (" (assumed)" if server.assumed else ""),
        "resource": need.login.resource or "not sent",
        "scopes": " ".join(need.login.requested_scopes) or "none named",
        "registration": _registration(server),
        "PKCE": ", ".join(server.pkce_methods or ()) or "not advertised",
        "device login": "yes" if server.device_authorization_endpoint else "no",
        "DPoP": "yes" if need.dpop else "no",
    }


def _registration(server: Any) -> str:
    ways = ["metadata documents"] if server.takes_documents else []
    ways += ["dynamic"] if server.registration_endpoint is not None else []
    return ", ".join(ways) or "by hand: give --client-id"


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
    matches = (re.search(match, text) for match in _MISSING_VARIABLE)
    return next((match[1] for match in matches if match), None)


def _advice_on_variable(error: HoldfastError, environ: Mapping[str, str]) -> str:
    variable = missing_variable(getattr(error, "stderr_tail", "") or "")
    if variable is None:
        return ""
    if variable in environ:
        return f"{variable} is set here and not passed on: --env {variable}"
    return f"it misses a variable: --env {variable}=…, or env in the configuration"


def _cure_by_text(message: str) -> str:
    cures = (cure for pattern, cure in _BY_TEXT.items() if re.search(pattern, message, re.I))
    return next(cures, "")


def advice(error: HoldfastError, environ: Mapping[str, str]) -> str:
    """Return what to try; empty where nothing better is known than the error itself."""
    if isinstance(error, errors.ValidationError | errors.StateError):
        return ""
    if isinstance(error, errors.AuthError):
        return "it wants credentials: give --header 'Authorization: Bearer …'"
    if text := _advice_on_variable(error, environ):
        return text
    if isinstance(error, RpcError) and error.code == METHOD_NOT_FOUND:
        return "it does not seem to speak MCP: is it the right program, with the right arguments?"
    if cure := _cure_by_text(str(error)):
        return cure
    if isinstance(error, errors.HandshakeTimeout):
        return "give it longer with --timeout; see with --verbose what it does meanwhile"
    if isinstance(error, errors.TransportError) and error.exit_code is not None:
        return "it ended by itself: start the command by hand, and see what it says"
    return ""
