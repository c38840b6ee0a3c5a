"""What a server asks of its client: a person's answer (elicitation), a model's words (sampling).

A form comes with a small JSON Schema, whose properties are its fields.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import Any, ClassVar, Final, TypeAlias

import msgspec
from msgspec import Raw, field

from holdfast.types.base import Meta, Wire, decode
from holdfast.types.content import Role, SamplingContent, joined_text
from holdfast.types.lifecycle import TaskMetadata
from holdfast.types.tools import Tool

FORM_FIELDS: Final = 1000
FORM_BYTES: Final = 1024 * 1024
"""Larger forms are refused: nobody fills them in, and reading them takes long."""

_KINDS: Final[dict[str, Any]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[str],
}


class Elicitation(Meta, kw_only=True):
    """The common fields of form and URL elicitation."""

    message: str
    task: TaskMetadata | None = None


class FormElicitation(Elicitation, kw_only=True):
    """A form to fill in. Servers of the older revisions do not name the mode."""

    requested_schema: dict[str, Any]
    mode: str = "form"

    @property
    def fields(self) -> dict[str, dict[str, Any]]:
        """The JSON Schema of each field, in the server's order."""
        declared = self.requested_schema.get("properties")
        properties = declared if isinstance(declared, dict) else {}
        return {
            name: schema if isinstance(schema, dict) else {} for name, schema in properties.items()
        }

    @property
    def response_type(self) -> type[msgspec.Struct]:
        """A type with the form's fields; a handler may return an instance of it."""
        required = set(self.required)
        in_order = sorted(self.fields.items(), key=lambda entry: entry[0] not in required)
        made: list[Any] = []
        for at, (name, schema) in enumerate(in_order):
            kind = _KINDS.get(str(schema.get("type")), Any)
            plain = name.isidentifier() and not iskeyword(name) and not name.startswith("_")
            attribute = name if plain else f"_field_{at}"
            optional = (attribute, kind | msgspec.UnsetType, msgspec.UNSET)
            made.append((attribute, kind) if name in required else optional)
        renamed = {entry[0]: name for entry, (name, _) in zip(made, in_order, strict=True)}
        return msgspec.defstruct("Form", made, rename=renamed)

    @property
    def required(self) -> list[str]:
        """The names of the fields that must be filled in."""
        names = self.requested_schema.get("required")
        if not isinstance(names, list):
            return []
        required = {name for name in names if isinstance(name, str)}
        return [name for name in self.fields if name in required]


class UrlElicitation(Elicitation, kw_only=True):
    """A page to visit; what is entered there is not seen by the client."""

    url: str
    mode: str = field(default_factory=lambda: "url")
    elicitation_id: str | None = None


AnyElicitation: TypeAlias = FormElicitation | UrlElicitation


class _Mode(Wire, kw_only=True):
    mode: str | None = None


def read_elicitation(raw: bytes | Raw) -> AnyElicitation:
    """Return the parameters of an elicitation as the type of their mode.

    Raises `msgspec.ValidationError` for a mode that this version does not know, and for a form of
    more than 1,000 fields or 1 MiB.
    """
    if len(raw) > FORM_BYTES:
        raise msgspec.ValidationError(f"a question of more than {FORM_BYTES} bytes")
    mode = decode(raw, _Mode).mode
    if mode == "url":
        return decode(raw, UrlElicitation)
    if mode in (None, "form"):
        form = decode(raw, FormElicitation)
        if len(form.fields) > FORM_FIELDS:
            text = f"a form of {len(form.fields)} fields, more than {FORM_FIELDS}"
            raise msgspec.ValidationError(text)
        return form
    raise msgspec.ValidationError(f"Invalid value {mode!r} - at `$.mode`")


class ElicitResult(Meta, kw_only=True):
    """The user's answer: ``action`` is ``accept``, ``decline`` or ``cancel``."""

    action: str
    content: dict[str, Any] | None = None


# Sampling


class ModelHint(Wire, kw_only=True):
    """A part of the name of a model that would do."""

    name: str | None = None


class ModelPreferences(Wire, kw_only=True):
    """The priorities in the choice of a model, each from 0 to 1."""

    hints: list[ModelHint] | None = None
    cost_priority: int | float | None = None
    speed_priority: int | float | None = None
    intelligence_priority: int | float | None = None


class ToolChoice(Wire, kw_only=True):
    """The model may (``auto``), must (``required``) or must not (``none``) use tools."""

    mode: str | None = None


class SamplingMessage(Meta, kw_only=True):
    """One message of the conversation; ``content`` is one content or a list of them."""

    role: Role
    content: SamplingContent | list[SamplingContent]

    @property
    def contents(self) -> list[SamplingContent]:
        """The contents as a list, whichever way they came."""
        return self.content if isinstance(self.content, list) else [self.content]

    @property
    def text(self) -> str:
        """All text contents, joined by newlines."""
        return joined_text(self.contents)


class SamplingRequest(Meta, kw_only=True):
    """A server's request to sample a model. ``include_context``: allServers, thisServer or none."""

    vital: ClassVar[frozenset[str]] = frozenset({"system_prompt", "tools", "tool_choice"})

    messages: list[SamplingMessage]
    max_tokens: int
    system_prompt: str | None = None
    model_preferences: ModelPreferences | None = None
    include_context: str | None = None
    temperature: int | float | None = None
    stop_sequences: list[str] | None = None
    metadata: dict[str, Any] | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    task: TaskMetadata | None = None


class SamplingResult(SamplingMessage, kw_only=True):
    """The model's message. ``stop_reason`` is ``endTurn``, ``stopSequence``, ``maxTokens``,
    ``toolUse`` or a word of the client's own."""

    model: str
    stop_reason: str | None = None
