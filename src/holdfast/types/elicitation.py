"""Elicitation: a server asks its client's user for something.

A form comes with a small JSON Schema. It stays plain JSON in ``requested_schema``, as
validators want it; ``fields`` reads its properties into the types below, which is what
those who draw forms want.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, TypeAlias

import msgspec
from msgspec import Raw, field

from holdfast.types.base import Meta, Wire, decode, encode
from holdfast.types.tasks import TaskMetadata

ACTIONS: Final = ("accept", "cancel", "decline")
FORMATS: Final = ("date", "date-time", "email", "uri")


class FieldSchema(Wire, kw_only=True):
    """The common attributes of all form fields."""

    title: str | None = None
    description: str | None = None


class StringSchema(FieldSchema, tag_field="type", tag="string", kw_only=True):
    """Text. ``format`` is one of `FORMATS`."""

    type: ClassVar[str] = "string"

    min_length: int | None = None
    max_length: int | None = None
    format: str | None = None
    default: str | None = None


class NumberSchema(FieldSchema, kw_only=True):
    """A number; ``type`` is ``number`` or ``integer``."""

    type: str = field(default_factory=lambda: "number")
    minimum: int | float | None = None
    maximum: int | float | None = None
    default: int | float | None = None


class BooleanSchema(FieldSchema, tag_field="type", tag="boolean", kw_only=True):
    """Yes or no."""

    type: ClassVar[str] = "boolean"

    default: bool | None = None


class EnumSchema(FieldSchema, tag_field="type", tag="string", kw_only=True):
    """One of some values; ``enum_names``, an older form, gives the words to show for them."""

    type: ClassVar[str] = "string"

    enum: list[str]
    enum_names: list[str] | None = None
    default: str | None = None


class Option(Wire, kw_only=True):
    """A value and the words to show for it."""

    const: str
    title: str


class TitledEnumSchema(FieldSchema, tag_field="type", tag="string", kw_only=True):
    """One of some values that have titles."""

    type: ClassVar[str] = "string"

    one_of: list[Option]
    default: str | None = None


class EnumItems(Wire, tag_field="type", tag="string", kw_only=True):
    """The values that the items of a list may have."""

    enum: list[str]


class TitledItems(Wire, kw_only=True):
    """The same, with titles."""

    any_of: list[Option]


class MultiEnumSchema(FieldSchema, tag_field="type", tag="array", kw_only=True):
    """Some of some values."""

    type: ClassVar[str] = "array"

    items: EnumItems
    min_items: int | None = None
    max_items: int | None = None
    default: list[str] | None = None


class TitledMultiEnumSchema(FieldSchema, tag_field="type", tag="array", kw_only=True):
    """Some of some values that have titles."""

    type: ClassVar[str] = "array"

    items: TitledItems
    min_items: int | None = None
    max_items: int | None = None
    default: list[str] | None = None


class UnknownSchema(FieldSchema, kw_only=True):
    """A field of a kind that this version does not know; `raw` has all of it."""


PrimitiveSchema: TypeAlias = (
    StringSchema
    | NumberSchema
    | BooleanSchema
    | EnumSchema
    | TitledEnumSchema
    | MultiEnumSchema
    | TitledMultiEnumSchema
    | UnknownSchema
)


def read_field(schema: Any) -> PrimitiveSchema:
    """Return a form field's JSON Schema as one of the types above."""
    try:
        return decode(encode(schema), _kind_of(schema))
    except msgspec.ValidationError:
        return decode(encode(schema if isinstance(schema, dict) else {}), UnknownSchema)


def _kind_of(schema: Any) -> type[PrimitiveSchema]:
    named = schema.get("type") if isinstance(schema, dict) else None
    if named == "string" and "oneOf" in schema:
        return TitledEnumSchema
    if named == "string" and "enum" in schema:
        return EnumSchema
    if named == "array":
        items = schema.get("items")
        titled = isinstance(items, dict) and "anyOf" in items
        return TitledMultiEnumSchema if titled else MultiEnumSchema
    return _BY_TYPE.get(str(named), UnknownSchema)


_BY_TYPE: Final[dict[str, type[PrimitiveSchema]]] = {
    "string": StringSchema,
    "number": NumberSchema,
    "integer": NumberSchema,
    "boolean": BooleanSchema,
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
    def fields(self) -> dict[str, PrimitiveSchema]:
        """The fields of the form, in the server's order."""
        found = self.requested_schema.get("properties")
        properties = found if isinstance(found, dict) else {}
        return {name: read_field(schema) for name, schema in properties.items()}

    @property
    def required(self) -> list[str]:
        """The names of the fields that must be filled in."""
        found = self.requested_schema.get("required")
        return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


class UrlElicitation(Elicitation, kw_only=True):
    """A page to visit; what is entered there is not seen by the client."""

    url: str
    mode: str = field(default_factory=lambda: "url")
    elicitation_id: str | None = None


AnyElicitation: TypeAlias = FormElicitation | UrlElicitation


class _Mode(Wire, kw_only=True):
    mode: str | None = None


def read_elicitation(raw: bytes | Raw) -> AnyElicitation:
    """The parameters of an elicitation as the kind that their mode says.

    Raises `msgspec.ValidationError` for a mode that this version does not know.
    """
    mode = decode(raw, _Mode).mode
    if mode == "url":
        return decode(raw, UrlElicitation)
    if mode in (None, "form"):
        return decode(raw, FormElicitation)
    raise msgspec.ValidationError(f"Invalid value {mode!r} - at `$.mode`")


class ElicitResult(Meta, kw_only=True):
    """The user's answer: ``action`` is one of `ACTIONS`, ``content`` the form if accepted."""

    action: str
    content: dict[str, Any] | None = None


class ElicitationComplete(Meta, kw_only=True):
    """The news that the user has done what a URL elicitation asked for."""

    elicitation_id: str
