"""Contents: what tools return, prompts say and messages carry.

A content of a kind that this version does not know is an `UnknownContent`; so is one of a
known kind that lacks what the kind needs. Neither hides its neighbours.
"""

import binascii
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, field

from holdfast.types.base import Meta, Wire, empty_list

Bytes: TypeAlias = bytes

Role: TypeAlias = str
"""``assistant`` or ``user``; others are read as they come."""


class Annotations(Wire, kw_only=True):
    """Hints of a server on who an object is for and how much it matters (0 to 1)."""

    audience: list[Role] | None = None
    priority: int | float | None = None
    last_modified: str | None = None


class Icon(Wire, kw_only=True):
    """A picture to show for something. ``theme`` is ``dark`` or ``light``."""

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: str | None = None


class ResourceContents(Meta, kw_only=True):
    """The common fields of resource contents."""

    keeps_unknown: ClassVar[bool] = True

    uri: str
    mime_type: str | None = None


class TextResourceContents(ResourceContents, kw_only=True):
    """A resource, or a part of one, as text."""

    text: str


class BlobResourceContents(ResourceContents, kw_only=True):
    """A resource, or a part of one, as bytes; ``blob`` is their base64."""

    blob: str

    def __repr__(self) -> str:
        from holdfast.types.display import text

        return text(self)

    @property
    def bytes(self) -> Bytes:
        """The decoded bytes. Raises ValueError if ``blob`` is not base64."""
        return decode_base64(self.blob, f"resource {self.uri}")


class EitherContents(ResourceContents, kw_only=True):
    """Resource contents while being read: the two kinds differ only in which field they have."""

    text: str | None = None
    blob: str | None = None

    def __post_init__(self) -> None:
        if self.text is None and self.blob is None:
            raise ValueError("Object missing required field `text` or `blob`")

    def settle(self) -> "AnyResourceContents":
        """Return the kind that the fields say; text wins if a server sends both."""
        common: Any = {"uri": self.uri, "mime_type": self.mime_type, "meta": self.meta}
        if self.text is not None:
            return TextResourceContents(**common, text=self.text)
        assert self.blob is not None
        return BlobResourceContents(**common, blob=self.blob)


if TYPE_CHECKING:
    AnyResourceContents: TypeAlias = "TextResourceContents | BlobResourceContents | UnknownContent"
else:
    AnyResourceContents = EitherContents  # as with the unions of contents below


class ContentBlock(Meta, tag_field="type", kw_only=True):
    """The base of all contents; ``type`` is the kind's name on the wire."""

    keeps_unknown: ClassVar[bool] = True
    type: ClassVar[str]


class TextContent(ContentBlock, tag="text", kw_only=True):
    """Text."""

    type: ClassVar[Literal["text"]] = "text"

    text: str
    annotations: Annotations | None = None


class MediaContent(ContentBlock, kw_only=True):
    """The base of pictures and sound; ``data`` is base64."""

    data: str
    mime_type: str
    annotations: Annotations | None = None

    def __repr__(self) -> str:
        from holdfast.types.display import text

        return text(self)

    @property
    def bytes(self) -> Bytes:
        """The decoded bytes. Raises ValueError if ``data`` is not base64."""
        return decode_base64(self.data, f"{self.type} content")


class ImageContent(MediaContent, tag="image", kw_only=True):
    """A picture."""

    type: ClassVar[Literal["image"]] = "image"


class AudioContent(MediaContent, tag="audio", kw_only=True):
    """Sound."""

    type: ClassVar[Literal["audio"]] = "audio"


class ResourceLink(ContentBlock, tag="resource_link", kw_only=True):
    """A resource that may be read, named but not included."""

    type: ClassVar[Literal["resource_link"]] = "resource_link"

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: list[Icon] | None = None
    annotations: Annotations | None = None


class EmbeddedResource(ContentBlock, tag="resource", kw_only=True):
    """A resource with its contents."""

    type: ClassVar[Literal["resource"]] = "resource"

    resource: AnyResourceContents
    annotations: Annotations | None = None

    def __post_init__(self) -> None:
        if isinstance(self.resource, EitherContents):
            self.resource = self.resource.settle()


class ToolUseContent(ContentBlock, tag="tool_use", kw_only=True):
    """A model's request to call a tool, in a sampled message."""

    type: ClassVar[Literal["tool_use"]] = "tool_use"

    id: str
    name: str
    input: dict[str, Any]


class ToolResultContent(ContentBlock, tag="tool_result", kw_only=True):
    """The result of a tool call, in a message to a model."""

    type: ClassVar[Literal["tool_result"]] = "tool_result"

    tool_use_id: str
    content: "list[Content]" = field(default_factory=empty_list)
    is_error: bool = False
    structured_content: Any = UNSET


class UnknownContent(dict[str, Any]):
    """A content that could not be read as any known kind: the JSON object as it came.

    ``raw`` is that same JSON (a server may send something that is no object: then the
    mapping is empty), ``reason`` why it was not understood. ``type`` is always ``"unknown"``,
    also for a malformed content of a known kind, so that ``part.type == "text"`` proves that
    there is a text; what it calls itself is ``get("type")``.
    """

    type: ClassVar[Literal["unknown"]] = "unknown"

    raw: Any
    reason: str

    def __init__(self, raw: Any, reason: str = "") -> None:
        super().__init__(raw if isinstance(raw, dict) else {})
        self.raw = raw
        self.reason = reason

    @property
    def extra(self) -> dict[str, Any]:
        """All fields: none of them is known."""
        return dict(self)

    def __repr__(self) -> str:
        return f"UnknownContent({dict.__repr__(self)})"


# The reader is built from these unions. It knows tagged kinds only: what else a field may
# hold comes from the lenient reading, so the unions for people to check against are wider.
if TYPE_CHECKING:
    Content: TypeAlias = (
        TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | UnknownContent
    )
    SamplingContent: TypeAlias = (
        TextContent
        | ImageContent
        | AudioContent
        | ToolUseContent
        | ToolResultContent
        | UnknownContent
    )
else:
    Content = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
    SamplingContent = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent


def joined_text(contents: list[Any]) -> str:
    """Return all text contents, joined by newlines."""
    texts = (TextContent, TextResourceContents)
    if len(contents) == 1 and isinstance(contents[0], texts):
        return contents[0].text
    return "\n".join(item.text for item in contents if isinstance(item, texts))


def decode_base64(data: str, what: str) -> Bytes:
    """Decode base64; raise ValueError with ``what`` in its message if it is malformed."""
    try:
        return binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        pass
    try:
        # Line breaks are common (MIME has them); any other character is an error.
        return binascii.a2b_base64("".join(data.split()), strict_mode=True)
    except ValueError as error:
        raise ValueError(f"The data of {what} is not valid base64: {error}") from None
