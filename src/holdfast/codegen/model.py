"""A registry of tools as namespaces, methods and types: all that is decided before any text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct

from holdfast._core.text import one_line
from holdfast.codegen import names
from holdfast.codegen.names import ROOT, ClassNames, quoted
from holdfast.codegen.schemas import MOST_PARTS as SCHEMA_PARTS
from holdfast.codegen.schemas import SchemaReader
from holdfast.codegen.types import ANY, NONE, Field, Kind, Record
from holdfast.lock.fingerprint import definition, registry_hash, schema_texts
from holdfast.schema.types import canonical
from holdfast.schema.walk import properties, required
from holdfast.types.tools import Tool

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


class Parameter(Struct, frozen=True):
    """A parameter of a method; ``name`` is Python's, ``field.wire`` the server's."""

    name: str
    field: Field


class Method(Struct, frozen=True):
    """A tool."""

    tool: str
    key: str
    name: str
    parameters: tuple[Parameter, ...]
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


class Model(Struct, frozen=True):
    """The model of a generated module; `emit.render` writes it."""

    spaces: tuple[Space, ...]
    records: tuple[Record, ...]
    schemas: Mapping[str, str]
    """Every tool's input schema, as canonical JSON text; also of tools that are hidden."""
    returns: Mapping[str, str]
    """The same of output schemas."""
    hash: str
    session: SessionTools | None = None
    opening: Kind | None = None
    """The arguments of the tool that opens a session."""
    reports: list[str] = []
    """The names and schemas that were renamed, omitted or truncated, and why."""
    taken: frozenset[str] = frozenset()
    """Names that no further type may have."""


def build(
    tools: Sequence[Tool],
    *,
    hide: Collection[str] = (),
    session: SessionTools | None = None,
) -> Model:
    """Return the model of some tools, in any order.

    Args:
        tools: The tools.
        hide: Tools (``"a.b"``) and namespaces (``"a.*"``) to leave out.
        session: Leave out its tools, and its parameter from every tool.
    """
    return _Builder(tools, hide, session).build()


class _Builder:
    def __init__(
        self, tools: Sequence[Tool], hide: Collection[str], session: SessionTools | None
    ) -> None:
        self.reports: list[str] = []
        self.records: list[Record] = []
        self.parts_left = MOST_PARTS
        self.tools = self._unique(tools)
        self.session = session
        self.hide = frozenset((*hide, *(session.hidden if session else ())))
        self.strip = frozenset(() if session is None else (session.key,))

    def build(self) -> Model:
        """Return the model."""
        spaces: dict[str | None, list[str]] = {}
        for name in self.tools:
            space, key = names.split(name)
            if name not in self.hide and (space is None or f"{space}.*" not in self.hide):
                spaces.setdefault(space, []).append(key)
        attributes = names.namespace_names(space for space in spaces if space is not None)
        methods = {space: names.method_names(keys) for space, keys in spaces.items()}
        known = {name for found in methods.values() for name in found.values()}
        self.classes = ClassNames([*known, *attributes.values(), OPEN_ARGUMENTS])
        self.reserved = frozenset({*names.HANDLE_OWN, *attributes.values()})
        made = [
            self._space(space, ROOT if space is None else attributes[space], methods[space])
            for space in sorted(spaces, key=lambda space: (space is not None, space or ""))
        ]
        opening = self._opening()
        keys = {one.wire for record in self.records for one in record.fields}
        schemas, returns = schema_texts(self.tools.values())
        return Model(
            spaces=tuple(made),
            records=tuple(sorted(self.records, key=lambda record: record.name)),
            schemas=schemas,
            returns=returns,
            hash=registry_hash(self.tools.values()),
            session=self.session,
            opening=opening,
            reports=self.reports,
            taken=frozenset(self.classes.taken | keys),
        )

    def _unique(self, tools: Iterable[Tool]) -> dict[str, Tool]:
        """Return the tools by name, sorted; of two with one name the choice ignores their order."""
        found: dict[str, Tool] = {}
        for tool in sorted(tools, key=lambda tool: tool.name):
            if tool.name not in found:
                found[tool.name] = tool
                continue
            self._report(tool.name, "is listed more than once; only one of them is used")
            found[tool.name] = min(
                found[tool.name], tool, key=lambda one: canonical(definition(one))
            )
        return found

    # Namespaces and methods

    def _space(self, space: str | None, attribute: str, methods: Mapping[str, str]) -> Space:
        words = () if space is None else (space,)
        class_name = self.classes.take(*(words or ("root",)), pair=True)
        mixin = self.classes.take("root", "tools", pair=True) if space is None else None
        if space is not None and attribute != space:
            self._say(f"namespace {quoted(space)} is called {attribute}")
        prefix = "" if space is None else f"{space}."
        made = [
            self._method(self.tools[prefix + key], words, attribute, key, name)
            for key, name in sorted(methods.items())
        ]
        # "_root" is where tools without a dot are: a namespace that is called so is "_root.".
        wire = ROOT if space is None else f"{space}." if space == ROOT else space
        hidden = self.reserved & {one.name for one in made} if space is None else frozenset()
        return Space(wire, attribute, class_name, tuple(made), mixin, hidden)

    def _method(
        self, tool: Tool, words: tuple[str, ...], attribute: str, key: str, name: str
    ) -> Method:
        if name != key:
            shown = name if not words and name not in self.reserved else f"{attribute}.{name}"
            self._report(tool.name, f"is called {shown}")
        path = (*words, name)
        fields, extra = self._arguments(tool, path)
        result, wrapped = self._result(tool, (*path, "result"))
        called = names.parameter_names(one.wire for one in fields)
        for wire, parameter in called.items():
            if wire != parameter:
                self._report(tool.name, f"parameter {quoted(wire)} is called {parameter}")
        title = tool.title or (tool.annotations.title if tool.annotations else None)
        return Method(
            tool=tool.name,
            key=key,
            name=name,
            parameters=tuple(Parameter(called[one.wire], one) for one in fields),
            extra=extra,
            result=result,
            wrapped=wrapped,
            description=tool.description or title or "",
            hints=_hints(tool),
        )

    def _arguments(
        self, tool: Tool, path: tuple[str, ...]
    ) -> tuple[tuple[Field, ...], Kind | None]:
        """Return the parameters besides the session's name, and the kind of further ones."""
        reader = self._reader(definition(tool)["inputSchema"], path)
        fields, extra = reader.arguments()
        self._keep(tool.name, reader)
        return tuple(one for one in fields if one.wire not in self.strip), extra

    def _result(self, tool: Tool, path: tuple[str, ...]) -> tuple[Kind | None, bool]:
        """Return the kind of the result, and whether it is wrapped as ``{"result": …}``.

        It is None also where the schema says nothing: the whole result says more than Any.
        """
        schema = definition(tool).get("outputSchema")
        own = properties(schema)
        wrapped = [*own] == ["result"] and "result" in required(schema)
        wrapped = wrapped and own["result"] is not None
        if not isinstance(schema, dict):
            return None, wrapped
        reader = self._reader(schema, path)
        kind = reader.kind(own["result"] if wrapped else schema, path)
        self._keep(tool.name, reader)
        return None if kind in (ANY, NONE) else kind, wrapped

    def _opening(self) -> Kind | None:
        """Return the type of the arguments that open a session, besides its name."""
        tool = self.session and self.session.open_tool and self.tools.get(self.session.open_tool)
        if not tool:
            return None
        kept, extra = self._arguments(tool, (OPEN_ARGUMENTS,))
        if not kept or extra is not None or any(not one.wire for one in kept):
            return None
        text = f"What ``{one_line(tool.name)}`` takes, besides the session's name."
        self.records.append(Record(OPEN_ARGUMENTS, kept, text))
        return Kind(OPEN_ARGUMENTS)

    def _reader(self, schema: Any, path: tuple[str, ...]) -> SchemaReader:
        return SchemaReader(schema, self.classes, path, max(0, min(SCHEMA_PARTS, self.parts_left)))

    def _keep(self, tool: str, reader: SchemaReader) -> None:
        self.parts_left -= reader.parts
        self.records += reader.records
        if reader.cut:
            self._report(tool, "has a schema too deep or too large; parts of it are Any")

    def _report(self, tool: str, text: str) -> None:
        self._say(f"tool {quoted(tool)} {text}")

    def _say(self, text: str) -> None:
        if text not in self.reports:
            self.reports.append(text)


def _hints(tool: Tool) -> tuple[str, ...]:
    """Return the tool's annotations as sentences."""
    said = tool.annotations
    if said is None:
        return ()
    if said.read_only_hint:
        found = ["read-only"]
    else:
        found = ["destructive"] if said.destructive_hint else []
        found += ["not destructive"] if said.destructive_hint is False else []
        found += ["idempotent"] if said.idempotent_hint else []
    found += ["reaches out of the server's own world"] if said.open_world_hint else []
    return tuple(found)
