"""Tools: what a server offers to do, and what came of doing it."""

from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from holdfast.errors import ToolError, ValidationError
from holdfast.types.base import Meta, Result, Wire, empty_list, encode
from holdfast.types.content import Content, Icon, joined_text

T = TypeVar("T")

MAX_LEVELS: Final = 200
"""Levels of JSON in a schema that is read."""
UNREADABLE: Final = "$unreadable"

_ANY_OBJECT: Final = Raw(b'{"type":"object"}')


def decode_schema(text: Raw | bytes) -> Any:
    """Return a schema as plain JSON; ``{"$unreadable": text}`` for one that cannot be read.

    Numbers such as 1e400, or nesting without end, make one tool unusable and nothing else.
    """
    raw = bytes(text)
    try:
        schema = msgspec.json.decode(raw)
        readable = raw.count(b"{") + raw.count(b"[") <= MAX_LEVELS or levels(schema) <= MAX_LEVELS
    except (ValueError, RecursionError):  # a DecodeError is a ValueError
        readable = False
    return schema if readable else {UNREADABLE: raw.decode("utf-8", "replace")}


def levels(value: Any, most: int = MAX_LEVELS) -> int:
    """Return how deep a JSON value is nested; of more than ``most`` levels, one more is counted."""
    count, level = 0, [value]
    while level and count <= most:
        count += 1
        level = [
            item
            for container in level
            if isinstance(container, (dict, list))
            for item in (container.values() if isinstance(container, dict) else container)
        ]
    return count


class ToolAnnotations(Wire, kw_only=True):
    """A server's hints on what a tool does. None: not said. Only hints, never a promise."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class ToolExecution(Wire, kw_only=True):
    """The execution options of a tool. ``task_support``: forbidden, optional or required."""

    task_support: str | None = None


class ToolSettings(Struct):
    """What a client keeps of a tool for itself: nothing of it comes from the wire or goes there."""

    enabled: bool = True
    """The client may call it."""
    timeout: float | None = None
    """Seconds without an answer; None: the client's timeouts apply."""
    is_set: bool = False
    """Set by the policy, or by the application."""
    input_schema: Any = UNSET
    """The schema of the arguments, once it is read."""
    output_schema: Any = UNSET
    """The schema of the structured result, once it is read."""
    secret_names: frozenset[str] | None | UnsetType = UNSET
    """The arguments that the schema declares secret, once they are looked for; None: maybe all."""

    def apply(self, enabled: bool, timeout: float | None) -> None:
        """Take what a policy says, unless it was set before."""
        if not self.is_set:
            self.enabled, self.timeout, self.is_set = enabled, timeout, True


class Tool(Meta, kw_only=True):
    """A tool, as its server describes it, and the client's own record of it.

    The schemas are kept as JSON text and read when `input_schema` or `output_schema` is
    first used, because a server may list a thousand tools of which three are called.
    ``timeout`` and ``enabled`` are the client's: they neither come from the wire nor go there.
    """

    name: str
    title: str | None = None
    description: str | None = None
    input_schema_json: Raw = field(name="inputSchema", default_factory=lambda: _ANY_OBJECT)
    output_schema_json: Raw | UnsetType = field(name="outputSchema", default=UNSET)
    annotations: ToolAnnotations | None = None
    icons: list[Icon] | None = None
    execution: ToolExecution | None = None

    def __repr__(self) -> str:
        from holdfast.types.display import signature

        return f"<Tool {signature(self)}>"

    @classmethod
    def make(
        cls,
        name: str,
        *,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: Any = None,
        **fields: Any,
    ) -> "Tool":
        """Return a tool made of plain schemas, for servers."""
        if input_schema is not None:
            fields["input_schema_json"] = Raw(encode(input_schema))
        if output_schema is not None:
            fields["output_schema_json"] = Raw(encode(output_schema))
        return cls(name=name, description=description, **fields)

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments; any object will do if the server gave none."""
        schema = self.settings.input_schema
        if schema is UNSET:
            schema = self.settings.input_schema = decode_schema(self.input_schema_json)
        readable = isinstance(schema, dict) and UNREADABLE not in schema
        return schema if readable else {"type": "object"}

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured result, if the server gave one."""
        if isinstance(self.output_schema_json, UnsetType):
            return None
        schema = self.settings.output_schema
        if schema is UNSET:
            schema = self.settings.output_schema = decode_schema(self.output_schema_json)
        return schema if isinstance(schema, dict) and UNREADABLE not in schema else None

    @property
    def settings(self) -> ToolSettings:
        """What the client keeps of it for itself."""
        # In __dict__, so never on the wire.
        settings: ToolSettings | None = self.__dict__.get("_settings")
        if settings is None:
            settings = self.__dict__["_settings"] = ToolSettings()
        return settings

    @property
    def mcp_name(self) -> str:
        """The name that the server knows the tool by."""
        return self.name

    @property
    def timeout(self) -> float | None:
        """The timeout of this tool in seconds; None: the client's timeouts apply."""
        return self.settings.timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self.settings.timeout, self.settings.is_set = seconds, True

    @property
    def enabled(self) -> bool:
        """True if the client may call this tool."""
        return self.settings.enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self.settings.enabled, self.settings.is_set = enabled, True


class ResultNotes(Struct, frozen=True, kw_only=True):
    """What a client notes of a result: nothing of it comes from the wire or goes there."""

    pending: Any = None
    """The `PendingCall`, if the server answered with questions that are the caller's."""
    full: "ToolResult | None" = None
    """The whole result, if this one was cut to a budget."""
    faults: tuple[Any, ...] = ()
    """Where the structured result does not match the tool's schema, if checked."""


_NO_NOTES: Final = ResultNotes()


class ToolResult(Result, kw_only=True):
    """The result of a tool call. ``is_error`` is True if the tool ran and failed."""

    content: list[Content] = field(default_factory=empty_list)
    structured_content: Any = UNSET
    is_error: bool = False

    def __repr__(self) -> str:
        from holdfast.types.display import text

        return text(self)

    @property
    def structured(self) -> Any:
        """The structured result, any JSON value; None if there is none (see `has_structured`)."""
        return None if self.structured_content is UNSET else self.structured_content

    @property
    def has_structured(self) -> bool:
        """True if the result has structured content, null included."""
        return self.structured_content is not UNSET

    @property
    def text(self) -> str:
        """All text contents, joined by newlines."""
        return joined_text(self.content)

    # Underscored, because a public name would hide the server's key of that name in the results
    # of a handle; in __dict__, so neither on the wire nor compared.

    @property
    def _notes(self) -> ResultNotes:
        """What the client notes of it."""
        notes: ResultNotes = self.__dict__.get("_result_notes", _NO_NOTES)
        return notes

    @_notes.setter
    def _notes(self, notes: ResultNotes) -> None:
        self.__dict__["_result_notes"] = notes

    @property
    def pending(self) -> Any:
        """The `PendingCall` of a call whose questions are its caller's to answer; else None."""
        return self._notes.pending

    @property
    def full(self) -> "ToolResult":
        """The whole result, where this is one that was cut to a budget; otherwise itself."""
        return self if self._notes.full is None else self._notes.full

    @property
    def faults(self) -> tuple[Any, ...]:
        """Return where the structured result does not match the tool's schema, if checked."""
        return self._notes.faults

    def as_type(self, kind: type[T]) -> T:
        """The structured result as a dataclass, TypedDict, msgspec struct or pydantic model.

        Without a structured result, the text is read as JSON. Servers that can return only
        objects wrap other values as ``{"result": …}``: that is taken off where it has to be.
        """
        self.raise_for_error()
        name = getattr(kind, "__name__", str(kind))
        try:
            value = self.structured if self.has_structured else msgspec.json.decode(self.text)
        except msgspec.DecodeError:
            text = f"as_type({name}): the result is neither structured nor JSON"
            raise ValidationError(text, data=self) from None
        try:
            return _read(value, kind)
        except (msgspec.ValidationError, ValueError, TypeError) as error:
            if isinstance(value, dict) and value.keys() == {"result"}:
                with suppress(msgspec.ValidationError, ValueError, TypeError):
                    return _read(value["result"], kind)
            raise ValidationError(f"as_type({name}): {error}", data=self) from error

    def raise_for_error(self) -> "ToolResult":
        """Return this result; raise `ToolError` with the tool's text if it is an error."""
        if not self.is_error:
            return self
        raise ToolError(self.text or "The tool failed and gave no reason.", data=self)


def _read(value: Any, kind: type[T]) -> T:
    """Pydantic's models read themselves; all other types are msgspec's to read."""
    validate = getattr(kind, "model_validate", None)
    return validate(value) if callable(validate) else msgspec.convert(value, kind)
