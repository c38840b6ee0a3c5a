"""A registry of tools as namespaces, methods and types: all that is decided before any text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct

from holdfast._core.text import one_line, quote
from holdfast.codegen import names
from holdfast.codegen.names import ROOT, ClassNames
from holdfast.codegen.schemas import ANY, NONE, Field, Kind, RecordType, SchemaReader
from holdfast.codegen.schemas import MOST_PARTS as SCHEMA_PARTS
from holdfast.lock.fingerprint import definition, registry_hash, schema_texts
from holdfast.schema.types import canonical
from holdfast.schema.walk import properties, required
from holdfast.types.tools import Tool, ToolAnnotations

OPEN_ARGUMENTS: Final = "OpenArguments"
MOST_PARTS: Final = 300_000
"""Of all schemas together; a thousand tools have some ten thousands."""


@dataclass(frozen=True, slots=True)
class SessionTools:
    """A server that keeps sessions by name: the parameter, and the tools that open and close."""

    key: str = "sessionName"
    open_tool: str | None = "session.open"
    close_tool: str | None = "session.close"

    @property
    def hidden(self) -> tuple[str, ...]:
        """The lifecycle is the adapter's: both tools, and the namespace that they share."""
        tools = [tool for tool in (self.open_tool, self.close_tool) if tool]
        spaces = {names.split(tool)[0] for tool in tools}
        shared = [f"{space}.*" for space in spaces if space is not None and len(spaces) == 1]
        return (*tools, *shared)


class Method(Struct, frozen=True):
    """A tool."""

    tool: str
    key: str
    name: str
    parameters: dict[str, Field]
    """By their names in Python; ``Field.wire`` is the server's."""
    extra: Kind | None
    """The kind of further arguments, if the tool takes any."""
    result: Kind | None
    """The kind of the structured result, if the tool has one."""
    wrapped: bool
    """The result is wrapped as ``{"result": …}``; the kind is that of what is inside."""
    description: str
    hints: tuple[str, ...]


class Space(Struct, frozen=True):
    """A namespace."""

    wire: str
    attribute: str
    class_name: str
    methods: tuple[Method, ...]
    mixin: str | None = None
    """The class of the methods that the handle has itself; of the root namespace only."""
    hidden: frozenset[str] = frozenset()
    """Methods that the handle does not have itself: their names mean something else there."""


class Model:
    """The model of a generated module; `emit.ModuleWriter` writes it.

    The tools may be in any order; the options are those of `holdfast.codegen.generate`.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        hide: Collection[str] = (),
        session: SessionTools | None = None,
    ) -> None:
        self.session = session
        self.reports: dict[str, None] = {}
        """The names and schemas that were renamed, omitted or truncated, and why."""
        self._parts_left = MOST_PARTS
        self._tools: dict[str, Tool] = {}
        for tool in sorted(tools, key=lambda tool: (tool.name, canonical(definition(tool)))):
            if self._tools.setdefault(tool.name, tool) is not tool:
                self._report(tool, "is listed more than once; only one of them is used")
        self.schemas, self.returns = schema_texts(self._tools.values())
        """Every tool's input and output schema, as canonical JSON; also of hidden tools."""
        self.hash: str = registry_hash(self._tools.values())
        spaces: dict[str | None, list[str]] = {}
        hidden = {*hide, *(session.hidden if session else ())}
        for name in self._tools:
            space, key = names.split(name)
            if name not in hidden and (space is None or f"{space}.*" not in hidden):
                spaces.setdefault(space, []).append(key)
        attributes = names.namespace_names(space for space in spaces if space is not None)
        methods = {space: names.method_names(keys) for space, keys in spaces.items()}
        taken = {name for by_tool in methods.values() for name in by_tool.values()}
        self._classes = ClassNames([*taken, *attributes.values(), OPEN_ARGUMENTS])
        self._reserved = frozenset({*names.HANDLE_OWN, *attributes.values()})
        self.records: list[RecordType] = []
        self.spaces: list[Space] = [
            self._space(space, ROOT if space is None else attributes[space], methods[space])
            for space in sorted(spaces, key=lambda space: (space is not None, space or ""))
        ]
        self.opening: Kind | None = self._opening()
        """The arguments of the tool that opens a session."""
        self.records.sort(key=lambda record: record.name)
        keys = {field.wire for record in self.records for field in record.fields}
        self.taken: set[str] = self._classes.taken | keys
        """Names that no further type may have."""

    def _space(self, space: str | None, attribute: str, methods: Mapping[str, str]) -> Space:
        words = () if space is None else (space,)
        class_name = self._classes.take(*(words or ("root",)), pair=True)
        mixin = self._classes.take("root", "tools", pair=True) if space is None else None
        if space is not None and attribute != space:
            self.reports[f"namespace {quote(space)} is called {attribute}"] = None
        prefix = "" if space is None else f"{space}."
        made = [
            self._method(self._tools[prefix + key], words, attribute, key, name)
            for key, name in sorted(methods.items())
        ]
        hidden = self._reserved & {method.name for method in made} if space is None else frozenset()
        return Space(_wire_name(space), attribute, class_name, tuple(made), mixin, hidden)

    def _method(
        self, tool: Tool, words: tuple[str, ...], attribute: str, key: str, name: str
    ) -> Method:
        if name != key:
            label = name if not words and name not in self._reserved else f"{attribute}.{name}"
            self._report(tool, f"is called {label}")
        path = (*words, name)
        fields, extra = self._arguments(tool, path)
        result, wrapped = self._result(tool, (*path, "result"))
        called = names.parameter_names(field.wire for field in fields)
        for wire, parameter in called.items():
            if wire != parameter:
                self._report(tool, f"parameter {quote(wire)} is called {parameter}")
        return Method(
            tool=tool.name,
            key=key,
            name=name,
            parameters={called[field.wire]: field for field in fields},
            extra=extra,
            result=result,
            wrapped=wrapped,
            description=_description(tool),
            hints=_hints(tool),
        )

    def _arguments(
        self, tool: Tool, path: tuple[str, ...]
    ) -> tuple[tuple[Field, ...], Kind | None]:
        """Return the parameters besides the session's name, and the kind of further ones."""
        with self._reading(tool, definition(tool)["inputSchema"], path) as reader:
            fields, extra = reader.arguments()
        strip = None if self.session is None else self.session.key
        return tuple(field for field in fields if field.wire != strip), extra

    def _result(self, tool: Tool, path: tuple[str, ...]) -> tuple[Kind | None, bool]:
        """Return the kind of the result, and whether it is wrapped as ``{"result": …}``.

        It is None also where the schema says nothing: the whole result says more than Any.
        """
        schema = definition(tool).get("outputSchema")
        by_name = properties(schema)
        wrapped = [*by_name] == ["result"] and "result" in required(schema)
        wrapped = wrapped and by_name["result"] is not None
        if not isinstance(schema, dict):
            return None, wrapped
        with self._reading(tool, schema, path) as reader:
            kind = reader.kind(by_name["result"] if wrapped else schema, path)
        return None if kind in (ANY, NONE) else kind, wrapped

    def _opening(self) -> Kind | None:
        """Return the type of the arguments that open a session, besides its name."""
        tool = self.session and self.session.open_tool and self._tools.get(self.session.open_tool)
        if not tool:
            return None
        arguments, extra = self._arguments(tool, (OPEN_ARGUMENTS,))
        if not arguments or extra is not None or any(not field.wire for field in arguments):
            return None
        text = f"What ``{one_line(tool.name)}`` takes, besides the session's name."
        self.records.append(RecordType(OPEN_ARGUMENTS, arguments, text))
        return Kind(OPEN_ARGUMENTS)

    @contextmanager
    def _reading(self, tool: Tool, schema: Any, path: tuple[str, ...]) -> Iterator[SchemaReader]:
        most = max(0, min(SCHEMA_PARTS, self._parts_left))
        reader = SchemaReader(schema, self._classes, path, most)
        yield reader
        self._parts_left -= most - reader.budget.left
        self.records += reader.records
        if reader.cut:
            self._report(tool, "has a schema too deep or too large; parts of it are Any")

    def _report(self, tool: Tool, text: str) -> None:
        self.reports[f"tool {quote(tool.name)} {text}"] = None


def _hints(tool: Tool) -> tuple[str, ...]:
    """Return the tool's annotations as sentences."""
    annotations = tool.annotations or ToolAnnotations()
    writes = not annotations.read_only_hint
    hints = {
        "read-only": annotations.read_only_hint,
        "destructive": writes and annotations.destructive_hint,
        "not destructive": writes and annotations.destructive_hint is False,
        "idempotent": writes and annotations.idempotent_hint,
        "reaches out of the server's own world": annotations.open_world_hint,
    }
    return tuple(text for text, holds in hints.items() if holds)


def _wire_name(space: str | None) -> str:
    if space is None:
        return ROOT
    # "_root" is where tools without a dot are: a namespace that is called so is "_root.".
    return f"{space}." if space == ROOT else space


def _description(tool: Tool) -> str:
    title = tool.title or (tool.annotations.title if tool.annotations else None)
    return tool.description or title or ""
