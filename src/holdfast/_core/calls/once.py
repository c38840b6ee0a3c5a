"""A call with a key: claimed before it is sent, settled when it has ended."""

# Where the ledger stands in a call
# ---------------------------------
#
# `Pipeline.call_tool` asks it in front of every attempt, after everything was checked and allowed:
# nothing may be claimed that is refused here. The claim is held over all attempts of one call
# (a login, a changed link, a task that the server insists on), so whatever the driver repeats by
# the rules of ``replay`` happens under one claim, as it would without it.
#
# It ends in one of three ways, and `ToolCall` knows which, as it does for ``outcome_unknown``:
#
# - the server answered, with a result or an error: recorded as the outcome;
# - no byte of any attempt had left, or the server said so: the key is free again;
# - neither: "unknown". The link was lost, the time was over, the caller was cancelled, the client
#   closed. The record says which, and keeps the id of the task if there is one.
#
# An answer of the server is recorded before the caller has it. If the ledger cannot be reached just
# then, the caller gets it all the same, since it is true; the record follows when the store is
# back, and until then others are told that it is under way, or unknown if this process ends.
#
# "sent" is noted late, if there is no answer by then: it tells people more about a crash and
# decides nothing, so a quick call does without that write.

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final
from uuid import NAMESPACE_URL, uuid5

from msgspec import UNSET, Raw, Struct

from holdfast import errors
from holdfast._core.boundary import WireId
from holdfast._core.ledger import texts
from holdfast._core.ledger.ledger import Claim, Ledger
from holdfast._core.ledger.record import LONGEST_KEY, Record
from holdfast.errors import HandshakeRefused, HoldfastError, RpcError, ValidationError
from holdfast.schema.types import listed_types
from holdfast.schema.walk import branches, resolve
from holdfast.stores.base import StoreError
from holdfast.types.base import decode
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast._core.calls.pipeline import Pipeline
    from holdfast._core.calls.tool_call import ToolCall
    from holdfast._core.calls.tools import ReadyTool

PARAMETERS: Final = ("idempotency_key", "idempotencyKey", "requestKey")
"""Parameters that a server uses to recognise a call that it has seen."""
MARK_AFTER: Final = 0.02
"""Seconds without an answer after which "sent" is noted."""
SETTLE_TIME: Final = 5.0
"""Seconds that the end of a call waits for the ledger."""
UUID_LENGTH: Final = 36
MOST_ALTERNATIVES: Final = 50
"""Schemas of one parameter that are looked at."""
BUSY: Final = -32023
"""The server refuses a call for now (draft SEP-3304): nothing of it has run."""


class OnceCall(Struct, eq=False):
    """The key of one call, and what it holds of the ledger."""

    key: str
    arguments: Mapping[str, Any]
    """The arguments as the caller gave them."""
    ledger: Ledger
    claim: Claim | None = None
    """The claim, from the first attempt on, as long as it is held."""
    _mark: asyncio.TimerHandle | None = None
    _marking: asyncio.Task[None] | None = None

    def fill(self, call: ToolCall, tool: ReadyTool) -> None:
        """Give the key to a parameter of the tool that is meant for it."""
        schema = None if tool.tool is None else tool.tool.input_schema
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if not isinstance(properties, dict):
            return
        named = call.pipeline.requester.policy.tools.idempotency_of(call.name)
        for name in (named,) if named is not None else PARAMETERS:
            if name in properties and call.arguments.get(name) is None:
                value = self._value(_alternatives(properties[name], schema))
                if value is not None:
                    call.arguments = {**call.arguments, name: value}
                    call.params = {**call.params, "arguments": call.arguments}
                return

    def _value(self, schemas: list[dict[str, Any]]) -> str | None:
        """Return the key as the parameter wants it; None if that takes no text."""
        lengths = [schema.get("maxLength") for schema in schemas]
        longest = min((size for size in lengths if isinstance(size, int)), default=LONGEST_KEY)
        is_too_long = UUID_LENGTH <= longest < len(self.key)
        if is_too_long or any(schema.get("format") == "uuid" for schema in schemas):
            return str(uuid5(NAMESPACE_URL, f"holdfast:once:{self.key}"))
        types = [name for schema in schemas for name in listed_types(schema)]
        return self.key if not types or "string" in types else None

    async def send(self, call: ToolCall, tool: ReadyTool) -> tuple[Raw, ToolResult]:
        """Make an attempt under the claim; or return what is recorded, and send nothing."""
        if self.claim is None:
            # Until there is an attempt of its own, what it ends with is about another's.
            call.is_another = True
            claim = await self._claim(call, tool)
            if not claim.is_held:
                return self._recorded(call, claim.record)
            self.claim = claim
            if claim.record.task_id is not None:
                return await self._take_up(call, claim.record.task_id)
            call.is_another = False
        raw, result = await call.attempt(tool)
        if call.task is not None:
            await self._note_task(call)
        elif call.is_pending:
            pending = pending_digest(result)
            await self._settle(note="the server asked its caller", pending=pending)
        else:
            await self._settle(ran=True, result=raw)
        return raw, result

    async def _claim(self, call: ToolCall, tool: ReadyTool) -> Claim:
        requester = call.pipeline.requester
        closed = texts.shut(texts.about(requester.name, call.name, self.key))
        async with requester.waits.until_closed(closed):
            return await self.ledger.claim(
                self.key,
                tool=call.name,
                arguments=self.arguments,
                server=requester.name,
                scope=self._scope(call.pipeline),
                pending=None if call.answers is None else _answered(call.answers),
                until=_waits_until(call, tool),
            )

    def _scope(self, pipeline: Pipeline) -> str:
        if pipeline.key_scope is None:
            requester = pipeline.requester
            pipeline.key_scope = KeyScope(requester.name, requester.opener.transport)
        return pipeline.key_scope.of(self.ledger)

    def _recorded(self, call: ToolCall, record: Record) -> tuple[Raw, ToolResult]:
        outcome, about = record.outcome, texts.about(record.server, record.tool, record.key)
        assert outcome is not None
        if outcome.result is not UNSET:
            return outcome.result, decode(outcome.result, ToolResult)
        if outcome.error is None:
            raise texts.too_large(about, record)
        raise recorded_error(outcome.error)

    async def _take_up(self, call: ToolCall, task_id: str) -> tuple[Raw, ToolResult]:
        """Follow the task that an earlier owner of the key left."""
        tasks = call.pipeline.tasks
        await tasks.require(call.time())
        call.view = call.view or tasks.view(call.options)
        raw, result = await tasks.take_up(task_id, call.name, call.time(), call.view)
        await self._settle(ran=True, result=raw)
        return raw, result

    async def _note_task(self, call: ToolCall) -> None:
        """Note the id of a task before it is followed: a crash must not lose it."""
        task_id = getattr(getattr(call.task, "task", None), "task_id", None)
        if self.claim is not None and task_id is not None:
            await self._end_mark()
            with suppress(StoreError):
                await self.ledger.sent(self.claim, task_id)

    async def finish_task(self, raw: Raw) -> None:
        """Note the result of the task that was followed."""
        await self._settle(ran=True, result=raw)

    def watch(self, on_sent: Callable[[WireId], None] | None) -> Callable[[WireId], None]:
        """Return a callback that notes, after a while without an answer, that it was sent."""

        def sent(wire_id: WireId) -> None:
            if self._mark is None and self.claim is not None:
                loop = asyncio.get_running_loop()
                self._mark = loop.call_later(MARK_AFTER, self._begin_mark)
            if on_sent is not None:
                on_sent(wire_id)

        return sent

    def _begin_mark(self) -> None:
        self._marking = asyncio.create_task(self._note_sent())

    async def _note_sent(self) -> None:
        if self.claim is not None:
            with suppress(StoreError):
                await self.ledger.sent(self.claim)

    async def _end_mark(self) -> None:
        """Let a write that is under way come to its end: two must not cross."""
        if self._mark is not None:
            self._mark.cancel()
        if self._marking is not None:
            await asyncio.wait((self._marking,))
            self._marking = None

    async def release(self, call: ToolCall) -> None:
        """Give the key back before a login: whose key it is may be another one's after it."""
        if not call.may_have_run:
            await self._settle(ran=False, note="a login is needed")

    async def fail(self, call: ToolCall, error: BaseException) -> None:
        """Note how a call ended that has no result."""
        if self.claim is None:
            return
        if isinstance(error, HoldfastError) and _is_answer(call, error):
            await self._settle(ran=False, error=error)
        elif may_have_run(call, error):
            await self._settle(note=_reason(error))
        else:
            await self._settle(ran=False, note=_reason(error))

    async def _settle(self, **facts: Any) -> None:
        """Note how the call ended, for at most `SETTLE_TIME`.

        What the server said is known, whoever is cancelled meanwhile, so it is noted in any case:
        a record that is left open would have others wait for as long as this process lives.
        """
        claim, self.claim = self.claim, None
        if claim is None:
            return
        try:
            async with asyncio.timeout(SETTLE_TIME):
                await self._end_mark()
                await self.ledger.settle(claim, **facts)
        except (TimeoutError, asyncio.CancelledError) as error:
            if claim.is_held:  # a mark was being written, and the ledger was not told yet
                settling = asyncio.create_task(self._settle_later(claim, facts))
                _SETTLING.add(settling)
                settling.add_done_callback(_SETTLING.discard)
            if isinstance(error, asyncio.CancelledError):
                raise

    async def _settle_later(self, claim: Claim, facts: dict[str, Any]) -> None:
        await self._end_mark()
        await self.ledger.settle(claim, **facts)


_SETTLING: Final[set[asyncio.Task[None]]] = set()
"""Ends that are being noted; a loop holds its tasks by weak references."""


def _waits_until(call: ToolCall, tool: ReadyTool) -> float:
    """Return how long it waits for another with its key: as long as for a server that is silent."""
    deadline, options = call.time(), call.options
    if options.get("timeout") is None:
        if options.get("total_timeout") is not None:
            return deadline.until
        if tool.settings.timeout is not None:
            return deadline.since + tool.settings.timeout
    return min(deadline.since + deadline.idle, deadline.until)


def _alternatives(schema: Any, root: Any) -> list[dict[str, Any]]:
    """Return the schema of a parameter, with its branches and what these refer to."""
    schemas = [schema]
    for part in schemas:  # which grows, also by a reference that leads back
        if len(schemas) > MOST_ALTERNATIVES:
            break
        for keyword in ("anyOf", "oneOf", "allOf"):
            schemas += branches(part, keyword)
        reference = part.get("$ref") if isinstance(part, dict) else None
        if isinstance(reference, str):
            schemas.append(resolve(root, reference))
    return [part for part in schemas if isinstance(part, dict)]


def _is_answer(call: ToolCall, error: HoldfastError) -> bool:
    """Return True for an error that the server answered this very call with."""
    refused = isinstance(error, HandshakeRefused) or error.code == BUSY
    is_out = call.request is not None or call.is_another
    return isinstance(error, RpcError) and is_out and not refused and not error.outcome_unknown


def _reason(error: BaseException) -> str:
    """Return why a call ended, for its record."""
    if isinstance(error, asyncio.CancelledError):
        return "its caller was cancelled"
    return error.redacted if isinstance(error, HoldfastError) else type(error).__name__


def may_have_run(call: ToolCall, error: BaseException) -> bool:
    """Return whether a call that ended with an error may have had an effect."""
    if isinstance(error, HoldfastError):
        return error.outcome_unknown
    cause = error.__cause__
    if isinstance(cause, HoldfastError):
        return cause.outcome_unknown
    return call.request is not None


def recorded_error(facts: dict[str, Any]) -> HoldfastError:
    """Return an error as it was recorded."""
    kind = getattr(errors, str(facts.get("type")), RpcError)
    if not (isinstance(kind, type) and issubclass(kind, RpcError)):
        kind = RpcError
    code = facts.get("code")
    return kind(
        str(facts.get("message", "")),
        code=code if isinstance(code, int) else None,
        data=facts.get("data"),
        server_message=str(facts.get("server_message", "")),
    )


def pending_digest(result: ToolResult) -> str:
    """Return a digest of what goes back to the server with the answers."""
    pending = result.pending
    state = "" if pending is None else pending.request_state or ""
    keys = () if pending is None else sorted(pending.questions)
    return sha256(repr((state, keys)).encode()).hexdigest()


def _answered(answers: dict[str, Any]) -> str:
    """Return the digest of the questions that some answers are for."""
    state = answers.get("requestState")
    text = bytes(state).decode() if isinstance(state, Raw) else ""
    return sha256(repr((text, sorted(answers.get("inputResponses", {})))).encode()).hexdigest()


class KeyScope:
    """What tells the keys of one client's server and account from those of others."""

    def __init__(self, name: str, transport: Any) -> None:
        self._name = name
        self._transport = transport
        self._server: Hashable = transport.key or getattr(transport, "instance", token_hex(16))
        """How the server is reached; one that is an object of this process is itself."""
        self._last: tuple[object, str] = ((), "")
        """The last digest, and what it was made of: that of a whole environment takes longer than
        a write to Redis."""

    def of(self, ledger: Ledger) -> str:
        """Return the scope of keys in a ledger."""
        authorizer = self._transport.authorizer
        account: tuple[Any, ...] = ()
        if authorizer is not None:
            account = (authorizer.account,)
        if ledger.by == "name":
            return _digest("name", self._name, account)
        headers = getattr(self._transport, "headers", None)
        if callable(headers):
            text = "the headers are a function, so nobody knows whose key this is"
            hint = errors.Hint("", "Ledger(by='name') tells servers apart by their names")
            raise ValidationError(f"{self._name}: once: {text}; {texts.NOT_SENT}", hints=(hint,))
        if authorizer is not None and (login := authorizer.login) is not None:
            account = (*account, login.issuer, login.subject)
        parts = ("definition", self._server, sorted(headers.items()) if headers else [], account)
        if self._last[0] != parts:
            self._last = (parts, _digest(*parts))
        return self._last[1]


def _digest(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:32]


def once_call(key: str, arguments: Mapping[str, Any], ledger: Ledger | None) -> OnceCall:
    """Return the state of a call with a key; the user's own ledger without another."""
    texts.check_key(key)
    return OnceCall(key, arguments, ledger if ledger is not None else default_ledger())


_DEFAULT: Final[list[Ledger]] = []


def default_ledger() -> Ledger:
    """Return the ledger of this user, which all clients of the process share."""
    if not _DEFAULT:
        _DEFAULT.append(Ledger())
    return _DEFAULT[0]
