"""The public API as type checkers see it. Never run: mypy and pyright read it, both strictly.

``assert_type`` pins what a user's editor will show. Lines that a checker must refuse carry an
ignore, and an ignore that is not needed is an error of its own: so misuse is pinned too.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, assert_type

import holdfast
from holdfast import errors, events, stores, sync, testing, types


class Sum(TypedDict):
    total: int


@dataclass
class Point:
    x: float
    y: float


# Ways to a client


def targets(peer: testing.Peer, own: holdfast.Stdio) -> None:
    assert_type(holdfast.connect("python server.py"), holdfast.Client)
    assert_type(holdfast.connect([sys.executable, "server.py"]), holdfast.Client)
    assert_type(holdfast.connect("https://example.org/mcp"), holdfast.Client)
    assert_type(holdfast.connect(peer), holdfast.Client)
    assert_type(holdfast.connect(own), holdfast.Client)
    assert_type(holdfast.connect(), holdfast.Client)
    assert_type(sync.connect("python server.py"), sync.Client)
    assert_type(holdfast.__version__, str)


def options() -> holdfast.Client:
    return holdfast.connect(
        "python server.py",
        name="files",
        protocol="2025-11-25",
        timeouts=holdfast.Timeouts(request=5, handshake=3, total=60, tools=10, probe=0.2),
        limits=holdfast.Limits(frame_bytes=1024, pages=3, rounds=2, mailbox=10),
        backoff=holdfast.Backoff(first=0.1, max=5, jitter=0, healthy_after=1, attempts=3),
        identity=holdfast.policies.Identity(
            name="me", version="1", title="Me", capabilities={"x": {}}
        ),
        handlers=holdfast.Handlers(),
        when_down="wait",
        replay="safe",
        tools=holdfast.ToolPolicy(
            timeouts={"slow.*": 300}, allow=["a"], deny=("b",), validate="always", results="raise"
        ),
        cache=holdfast.Cache(ttl=10, tools=60, mode="use", serve_stale=True, watch=True),
        observability=holdfast.Observability(audit=print, opentelemetry=True),
        log="calls.jsonl",
        lock=Path("mcp.lock"),
        env={"KEY": "value"},
        inherit_env=["PATH"],
        cwd=Path(),
        stderr="inherit",
        grace=1,
        shutdown_request=True,
        threads=None,
    )


def remote_options() -> holdfast.Client:
    return holdfast.connect(
        "https://example.org/mcp",
        headers={"Authorization": "Bearer x"},
        transport="streamable",
        ca="ca.pem",
        cert=("cert.pem", "key.pem"),
        proxy="http://proxy:3128",
        trust_env=True,
        connections=4,
    )


def stdio() -> None:
    server = holdfast.Stdio(
        "python server.py",
        env={"A": "b"},
        inherit_env=True,
        cwd=Path(),
        stderr=print,
        grace=0.5,
        shutdown_request=False,
        threads=True,
    )
    assert_type(server.command, tuple[str, ...])
    assert_type(server.name, str)
    assert_type(server.grace, float)


def http(pairs: list[tuple[str, str]]) -> None:
    server = holdfast.Http("https://example.com/mcp", headers=pairs, message_timeout=5, ca=Path())
    assert_type(server.name, str)
    holdfast.Http(base_url="https://example.com", headers=lambda: pairs)


# Contents: both ways of asking for the kind narrow it


def narrowing(result: holdfast.ToolResult) -> None:
    for part in result.content:
        if isinstance(part, types.TextContent):
            assert_type(part.text, str)
        elif isinstance(part, types.ImageContent | types.AudioContent):
            assert_type(part.bytes, bytes)
    for part in result.content:
        if part.type == "text":
            assert_type(part, types.TextContent)
        elif part.type == "image":
            assert_type(part, types.ImageContent)
        elif part.type == "audio":
            assert_type(part, types.AudioContent)
        elif part.type == "resource_link":
            assert_type(part, types.ResourceLink)
        elif part.type == "resource":
            assert_type(part, types.EmbeddedResource)
        else:
            assert_type(part, types.UnknownContent)


# The client's life


async def life(client: holdfast.Client) -> None:
    context: AbstractAsyncContextManager[holdfast.Client] = client
    async with context as entered:
        assert_type(entered, holdfast.Client)
    assert_type(await client.open(), holdfast.Client)
    await client.wait_ready(10)
    assert_type(await client.close(), bool)


def knowledge(client: holdfast.Client) -> None:
    assert_type(client.name, str)
    assert_type(client.state, holdfast.calls.State)
    assert_type(client.is_connected, bool)
    assert_type(client.server_info, types.Implementation | None)
    assert_type(client.server_capabilities, types.ServerCapabilities | None)
    assert_type(client.protocol_version, str | None)
    assert_type(client.instructions, str | None)
    assert_type(client.violations, dict[str, int])
    assert_type(client.tools, Mapping[str, holdfast.Tool])
    word: str = client.state
    way: Any = client.transport
    print(word, way, client.state is holdfast.calls.State.READY)


# Tools


async def tools(client: holdfast.Client) -> None:
    for tool in assert_type(
        await client.list_tools(cache="refresh"), holdfast.calls.Listing[holdfast.Tool]
    ):
        assert_type(tool.name, str)
        assert_type(tool.title, str | None)
        assert_type(tool.description, str | None)
        assert_type(tool.input_schema, dict[str, Any])
        assert_type(tool.output_schema, dict[str, Any] | None)
        assert_type(tool.annotations, types.ToolAnnotations | None)
        tool.timeout = 30
        tool.enabled = False
    assert_type(await client.available_tools(), bool)
    toolset = await client.toolset("anthropic", strict=True)
    assert_type(toolset, holdfast.agents.Toolset)
    assert_type(await client.perform(toolset, {"name": "add"}), holdfast.agents.ModelAnswer)
    pending = holdfast.calls.PendingCall("add", {}, {})
    assert_type(await client.resume(pending, {}, timeout=1), holdfast.ToolResult)
    for one in await client.model_tools():
        assert_type(await one.call({"a": 1}, timeout=2), holdfast.calls.Invocation)
    async for outcome in client.map("add", [{"a": 1}], concurrency=4, ordered=True):
        assert_type(outcome, holdfast.calls.RowOutcome)


async def calls(client: holdfast.Client) -> None:
    result = await client.call_tool(
        "add",
        {"a": 1},
        timeout=1,
        total_timeout=2,
        on_progress=progress,
        meta={"k": "v"},
    )
    assert_type(result, holdfast.ToolResult)
    options: holdfast.calls.CallOptions = {"timeout": 1}
    assert_type(await client.call_tool("add", **options), holdfast.ToolResult)
    assert_type(result.text, str)
    assert_type(result.is_error, bool)
    assert_type(result.content, list[types.Content])
    assert_type(result.has_structured, bool)
    assert_type(result.as_type(Sum), Sum)
    assert_type(result.as_type(Point), Point)
    assert_type(result.as_type(list[int]), list[int])
    assert_type(result.raise_for_error(), holdfast.ToolResult)
    structured: Any = result.structured
    print(structured)


async def calls_as_values(client: holdfast.Client) -> None:
    came = await client.invoke_tool("add", {"a": 1}, timeout=1)
    assert_type(came, holdfast.calls.Invocation)
    assert_type(came.success, bool)
    assert_type(came.error, str | None)
    assert_type(came.duration, float)
    assert_type(came.result, holdfast.ToolResult | None)
    assert_type(came.exception, holdfast.HoldfastError | None)
    assert_type(came.text, str)
    assert_type(came.kind, str | None)
    assert_type(came.outcome_unknown, bool)
    assert_type(came.retry_in, float | None)


async def calls_under_way(client: holdfast.Client) -> None:
    running = client.start_tool("add", {"a": 1})
    assert_type(running, holdfast.calls.RunningCall[holdfast.ToolResult])
    assert_type(running.done, bool)
    assert_type(running.cancel(), bool)
    assert_type(await running, holdfast.ToolResult)
    assert_type(running.task, types.Task | None)
    assert_type(await running.wait_task(), types.Task | None)
    assert_type(running.detach(), str)


async def tasks(client: holdfast.Client) -> None:
    kept: list[types.Task] = []
    called = await client.call_tool("add", {"a": 1}, task=True, on_task=kept.append)
    assert_type(called, holdfast.ToolResult)
    assert_type(await client.resume_task("id", total_timeout=60), holdfast.ToolResult)
    assert_type(await client.get_task("id"), types.Task)
    assert_type(await client.list_tasks(), holdfast.calls.Listing[types.Task])
    await client.cancel_task("id")


async def skills(client: holdfast.Client, servers: holdfast.Servers) -> None:
    def check(found: Sequence[types.Skill]) -> None: ...

    skill = await client.get_skill("skill://a/SKILL.md")
    assert_type(skill.files, dict[str, types.SkillResource])
    assert_type(await client.list_skills(), holdfast.calls.Listing[types.Skill])
    assert_type((await client.read_skill(skill, "guide.md")).data, bytes)
    assert_type(
        await client.list_directory("skill://a"), holdfast.calls.Listing[holdfast.types.Resource]
    )
    assert_type(client.guard_skills(check), Callable[[], None])
    assert_type(await servers.read_skill(skill), types.SkillFile)


async def progress(report: holdfast.Progress) -> None:
    assert_type(report.progress, int | float)
    assert_type(report.total, int | float | None)
    assert_type(report.message, str | None)


def guards(client: holdfast.Client) -> None:
    def check(tools: Sequence[holdfast.Tool], instructions: str | None) -> None:
        if not tools:
            raise holdfast.DriftError("no tools", data=instructions)

    assert_type(client.guard_tools(check), Callable[[], None])


def contents(result: holdfast.ToolResult) -> bytes | str | None:
    for content in result.content:
        if isinstance(content, types.TextContent):
            return content.text
        if isinstance(content, types.ImageContent):
            return content.data
    return None


# Resources, prompts, completion


async def resources(client: holdfast.Client) -> None:
    assert_type(await client.list_resources(), holdfast.calls.Listing[holdfast.types.Resource])
    assert_type(
        await client.list_resource_templates(),
        holdfast.calls.Listing[holdfast.types.ResourceTemplate],
    )
    read = await client.read_resource("file:///a", timeout=1, cache="bypass")
    assert_type(read, holdfast.ReadResult)
    assert_type(read.text, str)
    assert_type(read.stale, bool)
    await client.subscribe_resource("file:///a")
    await client.unsubscribe_resource("file:///a")


async def prompts(client: holdfast.Client) -> None:
    for prompt in assert_type(
        await client.list_prompts(), holdfast.calls.Listing[holdfast.types.Prompt]
    ):
        assert_type(prompt.arguments, list[types.PromptArgument] | None)
    got = await client.get_prompt("greet", {"who": "you"}, timeout=1)
    assert_type(got, holdfast.PromptResult)
    assert_type(got.messages, list[types.PromptMessage])
    found = await client.complete(types.PromptReference(name="greet"), "who", "y", {"a": "b"})
    assert_type(found.values, list[str])


# The rest of the protocol


async def rest(client: holdfast.Client) -> None:
    await client.ping(timeout=1)
    await client.set_log_level("info")
    await client.roots_changed()
    assert_type(await client.list_roots(), list[types.Root])
    answer: Any = await client.request("custom/method", {"a": 1}, timeout=1, total_timeout=2)
    sampled: Any = await client.create_message({"messages": [], "maxTokens": 1})
    print(answer, sampled)


def listening(client: holdfast.Client) -> None:
    def heard(notification: holdfast.calls.Notification) -> None:
        assert_type(notification.method, str)
        assert_type(notification.params, dict[str, Any])

    async def later(notification: holdfast.calls.Notification) -> None: ...

    def event(happened: events.RequestStop) -> None:
        assert_type(happened.duration, float)

    assert_type(client.on_notification(heard), Callable[[], None])
    assert_type(client.on_notification(later, "notifications/message"), Callable[[], None])
    assert_type(client.on_log(print), Callable[[], None])
    assert_type(client.on_progress(progress), Callable[[], None])
    assert_type(client.events.subscribe(event, "request.stop"), Callable[[], None])


# What an application lends


def handlers() -> holdfast.Handlers:
    async def sample(request: types.SamplingRequest) -> types.SamplingResult:
        text = types.TextContent(text=request.messages[0].text)
        return types.SamplingResult(role="assistant", content=text, model="m")

    def elicit(question: types.AnyElicitation) -> types.ElicitResult:
        if isinstance(question, types.FormElicitation):
            assert_type(question.fields, dict[str, dict[str, Any]])
            return types.ElicitResult(action="accept", content={})
        assert_type(question.url, str)
        return types.ElicitResult(action="decline")

    return holdfast.Handlers(
        sampling=sample,
        elicitation=elicit,
        roots=["file:///home", types.Root(uri="file:///tmp")],
        notification=print,
        progress=progress,
    )


class Shelf:
    """A store of one's own: no base class, only the methods."""

    async def get(self, key: str) -> bytes | None:
        return None

    async def put(self, key: str, data: bytes, ttl: float | None = None) -> None: ...

    async def delete(self, key: str) -> None: ...

    async def keys(self, prefix: str = "") -> list[str]:
        return []

    async def swap(
        self, key: str, old: bytes | None, new: bytes | None, ttl: float | None = None
    ) -> bool:
        return False

    @asynccontextmanager
    async def lock(self, name: str, ttl: float = 30) -> AsyncGenerator[int]:
        yield 1


async def once(client: holdfast.Client) -> None:
    ledger = holdfast.Ledger(stores.MemoryStore(), by="name", lease=5, outcome_bytes=10)
    try:
        await client.call_tool("charge", {}, once="order-4711")
    except holdfast.OutcomeUnknown as error:
        record = await ledger.settle("order-4711", ran=True, result=str(error))
        assert_type(record.state, Literal["intended", "sent", "done", "failed", "unknown"])
    await ledger.forget(older_than=86_400)
    holdfast.connect("python server.py", ledger=ledger)


def all_stores() -> list[stores.Store]:
    kinds: list[stores.Store] = [
        Shelf(),
        stores.MemoryStore(entries=10, bytes=1024),
        stores.FileStore("folder"),
        stores.SqliteStore("entries.db"),
        stores.RedisStore("redis://localhost", prefix="mine:", login_key=b"k" * 32),
    ]
    holdfast.Cache(store=kinds[0], context="me")
    return kinds


def audits() -> holdfast.Observability:
    def audit(record: holdfast.calls.AuditRecord) -> None:
        assert_type(record.tool, str)
        assert_type(record.outcome, str)
        assert_type(record.duration, float)
        assert_type(record.error, str | None)

    secret = holdfast.policies.Redaction(keys=["badge"], patterns=[r"\d{16}"], schema=False)
    return holdfast.Observability(audit=audit, redaction=secret)


def misfits(error: holdfast.ValidationError) -> list[str]:
    faults: list[holdfast.calls.SchemaFault] = list(error.data)
    return [f"{fault.path}: {fault.message} ({fault.keyword})" for fault in faults]


# More than one server, and more than one run


async def helpers() -> None:
    log = holdfast.calllog.CallLog("calls.jsonl", sidecars="texts")
    lock = holdfast.lock.Lock("mcp.lock", mode="warn", server="files")
    holdfast.connect("python server.py", log=log, lock=lock)
    assert_type(holdfast.connect(holdfast.calllog.MockServer("calls.jsonl")), holdfast.Client)
    async with holdfast.Servers({"files": "python server.py"}) as servers:
        try:
            assert_type(servers["files"], holdfast.Client)
        except holdfast.errors.TrustError as error:
            kinds(error)


# Errors: one tree, whose branches tell whose doing it was


def kinds(error: holdfast.HoldfastError) -> None:
    assert_type(error.kind, str)
    assert_type(error.message, str)
    assert_type(error.code, int | None)
    assert_type(error.outcome_unknown, bool)


async def failures(client: holdfast.Client) -> None:
    try:
        await client.ping()
    except holdfast.errors.HandshakeTimeout as late:
        timeout: TimeoutError = late
        print(timeout, late.outcome_unknown)
    except holdfast.RequestTimeout as late:
        assert_type(late.outcome_unknown, bool)
    except holdfast.TransportError as lost:
        assert_type(lost.exit_code, int | None)
        assert_type(lost.stderr_tail, str)
    except (holdfast.errors.ResourceNotFoundError, holdfast.errors.HandshakeRefused) as missing:
        refusal: holdfast.RpcError = missing
        print(refusal)
    except holdfast.errors.CancelledCallError as cancelled:
        state: holdfast.StateError = cancelled
        assert_type(state.retry_in, float | None)
    except (holdfast.ProtocolError, holdfast.errors.ShutdownError, holdfast.ToolError) as error:
        kinds(error)
    except (holdfast.errors.BackpressureError, holdfast.AuthError, errors.HoldfastError) as error:
        kinds(error)


# Without a loop


def blocking() -> None:
    client = sync.connect("python server.py", timeouts=holdfast.Timeouts(request=5))
    context: AbstractContextManager[sync.Client] = client
    with context as entered:
        assert_type(entered, sync.Client)
    assert_type(client.list_tools(), holdfast.calls.Listing[holdfast.Tool])
    assert_type(client.call_tool("add", {"a": 1}, timeout=1), holdfast.ToolResult)
    assert_type(client.start_tool("add"), sync.RunningCall[holdfast.ToolResult])
    assert_type(client.start_tool("add").result(), holdfast.ToolResult)
    for outcome in client.map("add", [{"a": 1}]):
        assert_type(outcome, holdfast.calls.RowOutcome)
    assert_type(client.start_tool("add", task=True).wait_task(), types.Task | None)
    assert_type(client.resume_task("id"), holdfast.ToolResult)
    assert_type(client.list_skills(), holdfast.calls.Listing[types.Skill])
    assert_type(client.read_resource("file:///a"), holdfast.ReadResult)
    assert_type(client.get_prompt("greet"), holdfast.PromptResult)
    assert_type(client.state, holdfast.calls.State)
    assert_type(client.close(), bool)


# For tests


async def scripted() -> None:
    peer = testing.Peer("peer", versions=["2025-11-25"], instructions="Be kind.")

    @peer.tool(description="Adds.")
    def add(a: int, b: int) -> str:
        return str(a + b)

    def refuse(incoming: testing.ServerRequest) -> Any:
        raise testing.RequestError(-32000, incoming.method)

    peer.on("resources/read", refuse)
    peer.on("ping", testing.SILENCE)
    peer.resource("file:///a", b"bytes")
    assert_type(await peer.expect("tools/call"), testing.ServerRequest)
    assert_type(peer.received, list[testing.ServerRequest])
    print(add)


# What must be refused


async def misuse(client: holdfast.Client) -> None:
    holdfast.connect(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    holdfast.connect("x", when_down="maybe")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    holdfast.connect("x", no_such_option=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    holdfast.Timeouts(5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    holdfast.Timeouts().request = 5  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    client.state = holdfast.calls.State.READY  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    await client.call_tool("add", ["a"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await client.list_tools(cache="always")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    print(client.call_tool("add").text)  # type: ignore[attr-defined]  # pyright: ignore
    with client:  # type: ignore[attr-defined]  # pyright: ignore
        pass


# Logins


async def logins(client: holdfast.Client, blocking: sync.Client) -> None:
    async def log_in(request: holdfast.auth.LoginRequest) -> str | None:
        assert_type(request.url, str)
        assert_type(request.check(request.url), str)
        return await holdfast.auth.browser_login(request)

    handlers = holdfast.Handlers(login=log_in)
    store: stores.Store = stores.FileStore("logins")
    own = holdfast.OAuth(scopes="read", account="work", store=store)
    memory = holdfast.OAuth(store=stores.MemoryStore(), dpop=True, pkce="assume")
    for auth in ("auto", "oauth", None, own, memory, holdfast.Bearer("token")):
        holdfast.connect("https://example.org/mcp", auth=auth, handlers=handlers)
    holdfast.connect("https://example.org/mcp", auth=own)
    holdfast.connect(
        "https://example.org/mcp",
        auth=holdfast.auth.ClientCredentials(client_id="me", client_secret="secret"),
    )
    holdfast.auth.WorkloadIdentity(client_id="me", token=Path("token"))
    holdfast.auth.EnterpriseManaged(
        idp_client_id="me", id_token="token", client_id="me", idp_issuer="https://example.org"
    )
    assert_type(await client.login(fresh=True), None)
    assert_type(await client.logout(), bool)
    assert_type(blocking.logout(), bool)


def refused(error: holdfast.AuthError) -> None:
    match error:
        case holdfast.errors.LoginRequired():
            assert_type(error.command, str)
        case (
            holdfast.errors.LoginPending()
            | holdfast.errors.LoginFailed()
            | holdfast.errors.ScopeError()
        ):
            assert_type(error.outcome_unknown, bool)
        case holdfast.errors.DiscoveryError() | holdfast.errors.GrantError():
            assert_type(error.message, str)
        case _:
            assert_type(error.kind, str)


def approved(request: holdfast.calls.ApprovalRequest, error: holdfast.errors.ApprovalError) -> bool:
    assert_type(request.tool, str)
    assert_type(request.definition, holdfast.Tool | None)
    assert_type(error.outcome_unknown, bool)
    return not request.destructive
