"""Echo servers repeat every secret in every wrapping: none of them gets into anything shown."""

from __future__ import annotations

import json
import logging
import pickle
import sys
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import holdfast
from holdfast import Backoff, Bearer, Http, Observability, Stdio
from holdfast._core.boundary import Call
from holdfast._core.redact.known import KNOWN
from holdfast._core.tap import TraceEvent, watcher
from holdfast._core.text import HIDDEN
from holdfast.calllog.log import CallLog
from holdfast.cli.message_lines import MessageLines
from holdfast.errors import HoldfastError
from holdfast.testing import Peer, RequestError
from holdfast.trace.writer import TraceFile
from tests.http.rogue import Modern, Reply, Request
from tests.redact.wraps import ENCODINGS, ESCAPES, PLACES, SECRETS, WRAPS
from tests.thorough import one_in

SERVER = Path(__file__).with_name("echo_server.py")
ARGUMENT = "arg-Secret/99"
FLAG = "flag-Secret/77"
HOWS = ("result", "tool_error", "error", "stderr", "notification", "junk", "death")
WITH_CODED = ("error", "junk")
CASES = [
    *((wrap, "alone") for wrap in ESCAPES),
    *(("JSON", place) for place in PLACES),
    *(("base64 of JSON", place) for place in PLACES),
]
"""Every wrapping, and every place; all of both together are searched in test_needles.py."""
CODED = [(wrap, "alone") for wrap in ENCODINGS]
CASES_OF = {
    **{how: list(one_in(4, CASES, place=place)) for place, how in enumerate(HOWS)},
    **{how: list(one_in(4, [*CASES, *CODED], place=place)) for place, how in enumerate(WITH_CODED)},
    "death": CASES[:6],
}
"""What is tried in each way: in short, each case in one way or two."""


class Sinks:
    """Everything that a client writes down or shows, in one text."""

    def __init__(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        self.shown: list[str] = []
        self.errors: list[BaseException] = []
        self.sizes: dict[Path, int] = {}
        self.folder = folder
        self.caplog = caplog
        self.exporter = InMemorySpanExporter()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.observability = Observability(
            audit=lambda record: self.shown.append(repr(record)),
            opentelemetry=True,
            tracer_provider=tracers,
        )
        self.log = CallLog(folder / "calls.jsonl", threshold=500, sidecars=True)
        self.trace = TraceFile(folder / "trace.jsonl", sidecars=True)
        self.trace_tap = self.trace.tap("echo")
        self.messages = MessageLines(lambda text, code: text, full=True)
        caplog.set_level(logging.DEBUG)

    def tap(self, event: TraceEvent) -> None:
        self.trace_tap(event)
        self.shown += self.messages.lines(event)
        self.shown.append(f"{event.error} {event.error!r}")

    def add_error(self, error: BaseException) -> None:
        """Add an error, and those that caused it: each once, whoever is told of it."""
        reason: BaseException | None = error
        while reason is not None and all(reason is not other for other in self.errors):
            self.errors.append(reason)
            reason = reason.__cause__

    def read_error(self, error: BaseException) -> list[str]:
        """Return whatever can be read of an error."""
        shown = ["".join(traceback.format_exception(error)), str(error), repr(error)]
        shown.append(repr(error.args))
        if isinstance(error, HoldfastError):
            fields = ("message", "data", "server_message", "stderr_tail", "redacted", "hints")
            shown += [repr(getattr(error, name, None)) for name in fields]
            shown.append(repr(pickle.loads(pickle.dumps(error)).__dict__))
        return shown

    def add_event(self, event: Any) -> None:
        self.shown.append(repr(event))
        if isinstance(getattr(event, "error", None), BaseException):
            self.add_error(event.error)

    def clear(self) -> None:
        """Forget what was shown until now; files stay as they are."""
        self.caplog.clear()
        self.exporter.clear()
        self.shown.clear()
        self.errors.clear()

    def new_text(self, path: Path) -> str:
        """Return what was written to a file since it was read last."""
        text = path.read_text()
        size, self.sizes[path] = self.sizes.get(path, 0), len(text)
        return text[size:]

    def text(self) -> str:
        self.log.close()
        self.trace.flush()
        files = [self.new_text(path) for path in self.folder.rglob("*") if path.is_file()]
        records = [logging.Formatter().format(record) for record in self.caplog.records]
        spans = [span.to_json() for span in self.exporter.get_finished_spans()]
        assert files, "the call log"
        assert spans, "OpenTelemetry"
        # Read in the end: on its way to the caller an error may be told more.
        errors = [text for error in self.errors for text in self.read_error(error)]
        return "\n".join([*self.shown, *errors, *files, *records, *spans])


def leaked(text: str, secrets: list[str], wrapping: str) -> list[str]:
    """Return the secrets that a text has, plain or as the server wrapped them."""
    forms = [(secret, WRAPS[wrapping](secret)) for secret in secrets]
    # The JSON of the sinks themselves escapes once more.
    spelled = [
        {secret, wrapped, json.dumps(wrapped)[1:-1], repr(wrapped)[1:-1]}
        for secret, wrapped in forms
    ]
    return [
        secret
        for secret, forms in zip(secrets, spelled, strict=True)
        if any(form in text for form in forms)
    ]


@pytest.mark.req("T8")
@pytest.mark.thorough
@pytest.mark.parametrize("how", HOWS)
async def test_no_secret_of_a_command_is_shown(
    how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sinks = Sinks(tmp_path, caplog)
    env = {f"ECHO_{number}": secret for number, secret in enumerate(SECRETS.values())}
    command = [sys.executable, str(SERVER), "--token", FLAG]
    secrets = [*SECRETS.values(), ARGUMENT, FLAG]
    logger = logging.getLogger("the.application")
    target = Stdio(command, env=env, stderr=logger, grace=0.1)
    client = holdfast.connect(
        target,
        observability=sinks.observability,
        log=sinks.log,
        backoff=Backoff(first=0.01, max=0.01),
        when_down="wait",
    )
    client._attach_tap(watcher(sinks.tap))
    client.events.subscribe(sinks.add_event)
    failures = []
    async with client:
        for wrapping, place in CASES_OF[how]:
            sinks.clear()
            arguments = {"wrap": wrapping, "place": place, "how": how, "text": ARGUMENT}
            try:
                (await client.call_tool("echo", arguments)).raise_for_error()
            except HoldfastError as error:
                sinks.add_error(error)
            sinks.shown += [repr(client), repr(target), repr(client.transport)]
            text = sinks.text()
            failures += [(wrapping, place, secret) for secret in leaked(text, secrets, wrapping)]
    assert not failures, failures


@pytest.mark.req("T8")
@pytest.mark.thorough
@pytest.mark.parametrize("by", ["password", "token"])
async def test_no_secret_of_a_url_is_shown(
    by: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sinks = Sinks(tmp_path, caplog)
    bearer, header, query, password = "tok-Bearer/11", "head-Value/22", "quer-Value/33", "pw-Url/44"
    path = "8f3a1b9c7d2e4f6071a2b3c4"
    secrets = [bearer, header, query, password, path, ARGUMENT]
    said = {"text": "", "how": ""}

    async def respond(request: Request, reply: Reply) -> None:
        how, text = said["how"], said["text"]
        if how == "body":
            await reply.body(text.encode(), 400, "text/plain")
        elif how == "refused":
            await reply.body(text.encode(), 403, "text/html")
        elif how == "wrong type":
            await reply.body(text.encode(), 200, "text/html")
        elif how == "broken":
            await reply.body(b'{"jsonrpc": "2.0", ' + text.encode(), 200)
        else:
            error = {"code": -32050, "message": text, "data": [text]}
            await reply.json({"jsonrpc": "2.0", "id": request.id, "error": error})

    async with Modern() as server:
        server.on["tools/call"] = respond
        server.path = f"/s/{path}/mcp?api_key={query}"
        url, auth = server.url, Bearer(bearer) if by == "token" else None
        if by == "password":
            url = url.replace("://", f"://me:{quote(password, safe='')}@")
            secrets.remove(bearer)
        else:
            secrets.remove(password)
        target = Http(url, headers={"X-Thing": header}, auth=auth, trust_env=False)
        options = {"observability": sinks.observability, "log": sinks.log}
        failures = []
        async with holdfast.connect(target, **options) as client:  # type: ignore[arg-type]
            client.events.subscribe(sinks.add_event)
            hows = ("body", "refused", "wrong type", "broken", "error")
            coded = one_in(4, CODED, place=len(by))
            for number, (wrapping, place) in enumerate([*CASES, *coded]):
                each = one_in(len(hows), hows, place=number)
                for how in each if wrapping in ESCAPES else hows[:1]:
                    sinks.clear()
                    lines = [
                        PLACES[place].replace("{}", WRAPS[wrapping](value)) for value in secrets
                    ]
                    said.update(how=how, text="\n".join(lines))
                    with pytest.raises(HoldfastError) as raised:
                        await client.call_tool("echo", {"password": ARGUMENT})
                    sinks.add_error(raised.value)
                    sinks.shown += [repr(client), repr(target)]
                    text = sinks.text()
                    assert place == "in a long line" or "[redacted]" in str(raised.value)
                    failures += [
                        (wrapping, place, how, secret) for secret in leaked(text, secrets, wrapping)
                    ]
    assert not failures, failures


@pytest.mark.req("T8")
async def test_the_token_that_a_function_gave_before_is_hidden_too() -> None:
    tokens = iter(["first-Token/1", "second-Token/2", "third-Token/3"])

    async def respond(request: Request, reply: Reply) -> None:
        text = "no: first-Token/1 second-Token/2 third-Token/3"
        await reply.body(text.encode(), 400, "text/plain")

    given = {"Authorization": "Bearer none-Token/0"}

    def headers() -> dict[str, str]:
        given["Authorization"] = f"Bearer {next(tokens, 'third-Token/3')}"
        return given

    async with Modern() as server:
        server.on["tools/call"] = respond
        async with holdfast.connect(server.url, headers=headers) as client:
            with pytest.raises(HoldfastError) as raised:
                await client.call_tool("echo", {})
    assert "Token/1" not in str(raised.value)
    assert "[redacted]" in str(raised.value)


@pytest.mark.req("T8")
async def test_a_secret_argument_is_hidden_while_nobody_watches_the_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    command = [sys.executable, str(SERVER)]
    target = Stdio(command, stderr=logging.getLogger("the.application"), grace=0.1)
    caplog.set_level(logging.INFO)
    by_schema, by_name, forwarded = "by-Schema/11", "by-Name/22", "forwarded-Value/33"
    arguments = {"wrap": "plain", "place": "alone", "text": by_schema, "password": by_name}
    async with holdfast.connect(target) as client:
        for how in ("junk", "stderr"):
            await client.call_tool("echo", {**arguments, "how": how})
        arguments = {**arguments, "how": "junk", "text": "", "password": forwarded}
        params = {"name": "echo", "arguments": msgspec.Raw(msgspec.json.encode(arguments))}
        await client._requester.forward(Call("tools/call", params, about="echo"))
    assert HIDDEN in caplog.text
    assert not [text for text in (by_schema, by_name, forwarded) if text in caplog.text]


@pytest.mark.req("T8")
async def test_a_secret_argument_is_hidden_in_the_error_that_repeats_it() -> None:
    peer = Peer()

    @peer.tool("say")
    def say(password: str, text: str) -> str:
        if text == "result":
            raise RuntimeError(f"wrong: {password}")
        raise RequestError(-32050, f"wrong: {password}", {"was": password, "not": text})

    async with holdfast.connect(peer) as client:
        with pytest.raises(HoldfastError) as raised:
            await client.call_tool("say", {"password": ARGUMENT, "text": "some text"})
        error: Any = raised.value
        assert ARGUMENT not in f"{error} {error!r} {error.message} {error.data} {error.args}"
        assert error.data == {"was": "[redacted]", "not": "some text"}
        result = await client.call_tool("say", {"password": ARGUMENT, "text": "result"})
        assert ARGUMENT in result.text, "what a tool returns is the caller's"
        with pytest.raises(HoldfastError) as raised:
            result.raise_for_error()
        assert ARGUMENT not in f"{raised.value} {raised.value.message}"
        with pytest.raises(HoldfastError) as raised:
            await client.get_prompt("none", {"api_key": ARGUMENT, "x": f"is {ARGUMENT}"})
        assert ARGUMENT not in str(raised.value)


@pytest.mark.req("T8")
async def test_a_secret_at_the_end_of_what_is_quoted_is_hidden(
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = "kQ7vTz2mXp9LbRw4"
    holder = KNOWN.held(lambda: [secret])
    peer = Peer()
    for size in range(170, 200):
        reference = {"$ref": f"#/{'x' * size}/{secret}"}

        @peer.tool(f"tool{size}", input_schema={"type": "object", "properties": {"a": reference}})
        def tool() -> str:
            return ""

    async with holdfast.connect(peer) as client:
        await client.list_tools()
        for size in range(170, 200):
            await client.call_tool(f"tool{size}", {"a": 1})
    assert len(caplog.messages) >= 30
    assert not [text for text in caplog.messages if any(secret[:n] in text for n in range(6, 17))]
    del holder
