"""Lists of tools, resources, templates and prompts, and the methods that serve them."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from holdfast._core.eras.serving import Json
from holdfast._core.server.lifecycle import not_found, uri_of
from holdfast._core.server.request import Handler, ServerRequest
from holdfast._core.wire.codes import INVALID_PARAMS, RequestError

Run: TypeAlias = Callable[[ServerRequest, Json], Any]
"""Takes a request and its arguments; returns a result, or an awaitable of one."""


class Offered(NamedTuple):
    """A tool, a prompt or a resource: its definition as it is listed, and what runs or reads it."""

    definition: Json
    run: Run


class Catalog:
    """The offers of a server; change the dictionaries at any time.

    Args:
        page_size: The number of items on a page of a list; None for all.
    """

    def __init__(self, page_size: int | None = None) -> None:
        self.page_size = page_size
        self.tools: dict[str, Offered] = {}
        self.resources: dict[str, Offered] = {}
        self.templates: list[Json] = []
        self.prompts: dict[str, Offered] = {}
        self.skills: dict[str, Json] = {}
        self.skill_files: dict[str, Offered] = {}
        """Read like resources, and not listed among them."""

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers of the methods that lists and their items have."""
        return {
            "tools/list": self.list_tools,
            "tools/call": self.call_tool,
            "resources/list": lambda request: self._list(request, "resources", self.resources),
            "resources/templates/list": lambda request: self._page(
                request, "resourceTemplates", self.templates
            ),
            "resources/read": self.read_resource,
            "prompts/list": lambda request: self._list(request, "prompts", self.prompts),
            "prompts/get": lambda request: _run(request, self.prompts, "prompt"),
            "skills/list": lambda request: self._page(
                request, "skills", list(self.skills.values())
            ),
            "skills/get": self.get_skill,
            "completion/complete": lambda request: {"completion": {"values": []}},
        }

    def list_tools(self, request: ServerRequest) -> Json:
        return self._list(request, "tools", self.tools)

    def call_tool(self, request: ServerRequest) -> Any:
        """Run the tool that a request names."""
        return _run(request, self.tools, "tool")

    def read_resource(self, request: ServerRequest) -> Any:
        uri = uri_of(request)
        offered = self.resources.get(uri) or self.skill_files.get(uri)
        if offered is None:
            raise not_found(request, uri)
        return offered.run(request, {})

    def get_skill(self, request: ServerRequest) -> Json:
        uri = uri_of(request)
        if uri not in self.skills:
            raise not_found(request, uri)
        return {"skill": self.skills[uri]}

    def add_skill(
        self, directory: str, files: Mapping[str, str | bytes], frontmatter: Json
    ) -> Json:
        """Offer a skill with the digests of its files; return its entry."""
        from hashlib import sha256

        listed = []
        for path, content in files.items():
            self.skill_files[f"{directory}/{path}"] = resource(f"{directory}/{path}", content)
            data = content.encode() if isinstance(content, str) else content
            digest = f"sha256:{sha256(data).hexdigest()}"
            listed.append({"uri": f"{directory}/{path}", "digest": digest, "size": len(data)})
        uri = f"{directory}/SKILL.md"
        entry: Json = {"uri": uri, "frontmatter": frontmatter, "resources": listed}
        self.skills[uri] = entry
        return entry

    def _list(self, request: ServerRequest, key: str, offered: Mapping[str, Offered]) -> Json:
        return self._page(request, key, [offer.definition for offer in offered.values()])

    def _page(self, request: ServerRequest, key: str, items: Sequence[Json]) -> Json:
        cursor, start = request.params.get("cursor"), 0
        if cursor is not None:
            cursors = [f"from-{position}" for position in range(1, len(items))]
            if cursor not in cursors:
                raise RequestError(INVALID_PARAMS, f"unknown cursor: {cursor!r}")
            start = cursors.index(cursor) + 1
        end = start + (self.page_size or len(items))
        next_page = {"nextCursor": f"from-{end}"} if end < len(items) else {}
        return {key: list(items[start:end]), **next_page}


def _run(request: ServerRequest, offered: dict[str, Offered], kind: str) -> Any:
    name, arguments = request.params.get("name"), request.params.get("arguments", {})
    if not isinstance(name, str) or name not in offered:
        raise RequestError(INVALID_PARAMS, f"unknown {kind}: {name!r}")
    if not isinstance(arguments, dict):
        raise RequestError(INVALID_PARAMS, "arguments must be an object")
    return offered[name].run(request, arguments)


def resource(
    uri: str, content: str | bytes, *, hints: Json | None = None, **fields: str
) -> Offered:
    """Return a resource with fixed contents; ``fields`` are those of its definition."""
    listed = {"uri": uri, **({"mimeType": fields["mimeType"]} if "mimeType" in fields else {})}
    if isinstance(content, str):
        body = {"text": content}
    else:
        body = {"blob": b2a_base64(content, newline=False).decode()}
    result = {"contents": [{**listed, **body}], **(hints or {})}
    return Offered({"name": uri, **listed, **fields}, lambda request, arguments: result)


def user_message(content: str, description: str | None = None) -> Json:
    """Return a prompt of one message of the user."""
    described = {} if description is None else {"description": description}
    message = {"role": "user", "content": {"type": "text", "text": content}}
    return {**described, "messages": [message]}
