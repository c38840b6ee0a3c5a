"""Serve a call log: answer calls as they were recorded.

    async with holdfast.connect(MockServer("calls.jsonl")) as client:
        await client.call_tool("session.open", {"sessionName": "a"})

Calls are found by name and arguments; repeated ones are answered in the order of the log. A call
that was not recorded is refused, with the nearest one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from secrets import token_hex
from typing import Any, BinaryIO, Final, TypeAlias

from msgspec import Raw, Struct, field

from holdfast._core.eras.revisions import TASKS
from holdfast._core.redact.redactor import Redactor
from holdfast._core.serve.memory import ServerEnd, accept
from holdfast._core.serve.stdio import serve
from holdfast._core.server.request import Handler, ServerRequest, error_result
from holdfast._core.server.server import Server
from holdfast._core.server.tasks import TaskCancelled, TaskTable
from holdfast._core.text import close_matches
from holdfast._core.wire import jsonrpc
from holdfast._core.wire.codes import INTERNAL_ERROR, INVALID_PARAMS, RequestError
from holdfast.calllog.compare import (
    Differing,
    brief,
    describe,
    differences,
    has_hidden,
    normal_arguments,
)
from holdfast.calllog.entries import Entry, RecordedLog, Source, read_log
from holdfast.calllog.results import NotRecorded
from holdfast.lock.fingerprint import definition
from holdfast.policies import Redaction
from holdfast.schema.annotations import secret_names
from holdfast.schema.types import canonical
from holdfast.types.tools import Tool

Definitions: TypeAlias = "Iterable[Tool | Mapping[str, Any]] | Mapping[str, Mapping[str, Any]]"
"""Tools as they were listed: from a client, or from a lock file."""

_RPC_ERROR: Final = re.compile(r"the server answered with error (-?[0-9]{1,9}): (.*)", re.S)
_EPOCH: Final = "1970-01-01T00:00:00Z"
"""The time of every task: a log has durations only."""


class RecordedCall(Struct):
    """All calls of one tool with the same arguments, and how many of them were made again."""

    arguments: Any
    answers: list[Entry] = field(default_factory=list)
    served: int = 0

    def differences(self, arguments: Any) -> list[Differing]:
        return list(differences(self.arguments, arguments, hidden=True))


class MockServer:
    """Serves a log, in memory (as a target of ``connect``) or over stdio.

    Args:
        log: The call log: a path, or its lines.
        tools: The definitions to list; by default made of the names and arguments in the log.
        name: The name of the server.
        instructions: Text for the model.
        redaction: The redaction that the log was written with.
    """

    def __init__(
        self,
        log: Source,
        *,
        tools: Definitions | None = None,
        name: str = "recorded",
        instructions: str | None = None,
        redaction: Redaction | None = None,
    ) -> None:
        self.name = name
        self.log: RecordedLog = read_log(log)
        self._redactor = Redactor(redaction or Redaction())
        self._tools = _derived(self.log) if tools is None else _by_name(tools)
        self._calls: dict[str, dict[bytes, RecordedCall]] = {}
        """By name, and by arguments."""
        self._served: set[int] = set()
        for entry in self.log:
            arguments = self._normal(entry.name, entry.arguments)
            recorded = self._calls.setdefault(entry.name, {})
            recorded.setdefault(canonical(arguments), RecordedCall(arguments)).answers.append(entry)
        self._recorded = {entry.task.id: entry for entry in self.log if entry.task is not None}
        capabilities: dict[str, Any] = {"tools": {}}
        if self._recorded:
            core: dict[str, Any] = {"requests": {"tools": {"call": {}}}, "cancel": {}, "list": {}}
            capabilities |= {"tasks": core, "extensions": {TASKS: {}}}
        self._tasks = TaskTable(
            self._call_tool, set(), new_id=lambda: token_hex(16), now=lambda: _EPOCH
        )
        self.server: Server = Server(
            name,
            {
                "tools/list": lambda request: {"tools": list(self._tools.values())},
                **{
                    name: self._of_task(handler) for name, handler in self._tasks.handlers().items()
                },
                "tools/call": self._call_tool,
            },
            capabilities=capabilities.copy,
            instructions=instructions,
        )
        self.server.verbatim = True

    def __repr__(self) -> str:
        return f"<MockServer {self.name}: {len(self.log)} calls of {self.log.label}>"

    @property
    def unused(self) -> list[Entry]:
        """Return the recorded calls that no client has made yet."""
        return [entry for entry in self.log if entry.line not in self._served]

    def accept(self, line: ServerEnd) -> Callable[[bytes], None]:
        """Begin a connection; return the function that takes its frames."""
        return accept(self.server, line).feed

    async def serve_stdio(
        self, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None
    ) -> None:
        """Serve on standard input and output until the input ends or the output is closed."""
        await serve(self.server, stdin, stdout)

    def missed(self, message: str) -> None:
        """Called with each call that was not recorded; for subclasses."""

    # Methods

    def _call_tool(self, request: ServerRequest) -> dict[str, Any]:
        name, arguments = request.params.get("name"), request.params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise RequestError(INVALID_PARAMS, "a call has a name and arguments")
        try:
            entry = self._find(name, arguments)
        except RequestError as error:
            self.missed(error.message)
            raise
        self._served.add(entry.line)
        if entry.task is not None and request.era.takes_task(request.params):
            return self._begin_task(request, entry)
        return self._outcome(entry)

    def _of_task(self, handler: Handler) -> Handler:
        """Return the handler of a request about a task, which may be one of the log alone."""

        def handle(request: ServerRequest) -> Any:
            task_id = str(request.params.get("taskId"))
            entry = self._recorded.get(task_id)
            if entry is not None and not self._tasks.knows(task_id):
                self._served.add(entry.line)
                self._begin_task(request, entry)
            return handler(request)

        return handle

    def _begin_task(self, request: ServerRequest, entry: Entry) -> dict[str, Any]:
        assert entry.task is not None
        outcome = partial(self._outcome, entry, task=True)
        return self._tasks.begin(request, lambda _: outcome(), entry.task.id)

    # What was recorded

    def _normal(self, name: str, arguments: Mapping[str, Any]) -> Any:
        schema = Raw(jsonrpc.encode(self._tools.get(name, {}).get("inputSchema")))
        return normal_arguments(arguments, self._redactor, secret_names(schema))

    def _find(self, name: str, arguments: dict[str, Any]) -> Entry:
        """Return the next answer to a call; redacted values that were recorded fit any."""
        recorded, normal_form = self._calls.get(name), self._normal(name, arguments)
        if recorded is None:
            near = close_matches(name, self._calls, 3)
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            text = f"no call of {name!r} was recorded{hint}"
            raise RequestError(INVALID_PARAMS, text, {"near": near})
        call = recorded.get(canonical(normal_form)) or min(
            recorded.values(), key=lambda candidate: len(candidate.differences(normal_form))
        )
        line, count = call.answers[0].line, len(call.answers)
        if differing := call.differences(normal_form):
            text = (
                f"{name!r} was not recorded with these arguments: {brief(normal_form)}; "
                f"nearest is line {line}: {describe(differing)}"
            )
            raise RequestError(INVALID_PARAMS, text, {"line": line})
        if call.served >= count:
            times = "once" if count == 1 else f"{count} times"
            text = f"{name!r} was recorded {times} with these arguments, and now it came again"
            raise RequestError(INVALID_PARAMS, text, {"line": call.answers[-1].line})
        call.served += 1
        return call.answers[call.served - 1]

    def _outcome(self, entry: Entry, *, task: bool = False) -> dict[str, Any]:
        if task and entry.task is not None and entry.task.status == "cancelled":
            raise TaskCancelled
        if entry.ok is None:
            raise RequestError(INTERNAL_ERROR, f"{entry}: how it ended was not recorded")
        if entry.ok:
            try:
                return self.log.result(entry)
            except NotRecorded as error:
                raise RequestError(INTERNAL_ERROR, f"{entry}: {error}") from None
        text = entry.error or ""
        refused = _RPC_ERROR.fullmatch(text)
        if refused is not None:
            raise RequestError(int(refused[1]), refused[2])
        return error_result(text)


_TYPES: Final = {str: "string", bool: "boolean", int: "number", float: "number", list: "array"}


def _by_name(tools: Definitions) -> dict[str, dict[str, Any]]:
    """Return definitions as a server lists them."""
    listed = tools.values() if isinstance(tools, Mapping) else tools
    plain = [definition(tool) if isinstance(tool, Tool) else dict(tool) for tool in listed]
    for tool in plain:
        tool.pop("fingerprint", None)
    return {tool["name"]: tool for tool in plain}


def _derived(log: RecordedLog) -> dict[str, dict[str, Any]]:
    """Return tool definitions made of the names and arguments in a log."""
    seen: dict[str, dict[str, set[str]]] = {}
    for entry in log:
        arguments = seen.setdefault(entry.name, {})
        for name, value in entry.arguments.items():
            kind = "null" if value is None else _TYPES.get(type(value), "object")
            # A redacted value may have had any type.
            arguments.setdefault(name, set()).add("" if has_hidden(value) else kind)
    tasks = {entry.name for entry in log if entry.task is not None}
    definitions: dict[str, dict[str, Any]] = {}
    for name, arguments in seen.items():
        typed = {
            argument: {} if "" in kinds else {"type": sorted(kinds)}
            for argument, kinds in arguments.items()
        }
        definitions[name] = {"name": name, "inputSchema": {"type": "object", "properties": typed}}
        if name in tasks:
            definitions[name]["execution"] = {"taskSupport": "optional"}
    return definitions
