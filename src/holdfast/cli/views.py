"""What servers have, and give, as a person or a pipe is shown it; as JSON, as it came."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.cli.arguments import describe, resolve
from holdfast.cli.output import Output
from holdfast.cli.render import table

if TYPE_CHECKING:
    from holdfast.types.prompts import Prompt, PromptResult
    from holdfast.types.resources import ReadResult, Resource, ResourceTemplate

Definition = Mapping[str, Any]


def tools(output: Output, found: Sequence[Definition]) -> None:
    if output.json:
        output.value({"tools": found})
        return
    rows = [(one["name"], str(one.get("description") or one.get("title") or "")) for one in found]
    table(output, ("tool", "what it does"), rows)


def tool(output: Output, definition: Definition, called: str, server: str = "") -> None:
    """One of them, with a line to call it: ``called``, its parameters, ``server``."""
    if output.json:
        output.value(definition)
    else:
        output.text(description(definition, called, server))


def resources(
    output: Output, found: Sequence[Resource], templates: Sequence[ResourceTemplate]
) -> None:
    if output.json:
        raw = {"resources": [one.raw for one in found]}
        output.value({**raw, "resourceTemplates": [one.raw for one in templates]})
        return
    rows = [(one.uri, one.description or one.title or one.name) for one in found]
    rows += [(one.uri_template, one.description or one.title or one.name) for one in templates]
    table(output, ("resource", "what it is"), rows)


def resource(output: Output, found: ReadResult, uri: str, save: str | None) -> None:
    from holdfast.cli.contents import Contents

    if output.json:
        output.value(found.raw)
        return
    stem = uri.rstrip("/").rpartition("/")[2]
    Contents(output, save, stem.rpartition(".")[0] or stem).show(found.contents)


def prompts(output: Output, found: Sequence[Prompt]) -> None:
    if output.json:
        output.value({"prompts": [one.raw for one in found]})
        return
    rows = []
    for one in found:
        names = [a.name if a.required else f"[{a.name}]" for a in one.arguments or ()]
        rows.append((one.name, " ".join(names), one.description or one.title or ""))
    table(output, ("prompt", "arguments", "what it is for"), rows)


def prompt(output: Output, found: PromptResult, name: str, save: str | None) -> None:
    from holdfast.cli.contents import Contents

    if output.json:
        output.value(found.raw)
        return
    contents = Contents(output, save, name)
    for message in found.messages:
        if len(found.messages) > 1:
            output.text(f"[{message.role}]")
        contents.show([message.content])


# One tool, described


def description(definition: Definition, called: str, server: str = "") -> str:
    """A tool as text: its words, its parameters, and a line to call it with."""
    parts = [str(definition["name"])]
    if definition.get("title"):
        parts[0] += f": {definition['title']}"
    if definition.get("description"):
        parts.append(str(definition["description"]).strip())
    schema = definition.get("inputSchema")
    schema = schema if isinstance(schema, Mapping) else {}
    parts.append(_parameters(schema))
    hints = definition.get("annotations")
    if isinstance(hints, Mapping) and hints:
        said = ", ".join(f"{key} {json.dumps(value)}" for key, value in hints.items())
        parts.append(f"The server says: {said}")
    if definition.get("outputSchema") is not None:
        parts.append("Gives structured results: see --output json for their schema.")
    parts.append(f"{called}{_example(schema)}{server}")
    return "\n\n".join(part for part in parts if part)


def _parameters(schema: Definition) -> str:
    properties = _properties(schema)
    if not properties:
        return "Takes no parameters."
    required = _required(schema)
    width = min(24, max(len(name) for name in properties))
    lines = ["Parameters:"]
    for name, part in properties.items():
        part = resolve(part, schema)
        facts = [describe(part)] + ([] if name in required else ["optional"])
        if "default" in part:
            facts.append(f"default {json.dumps(part['default'])}")
        words = " ".join(str(part.get("description") or "").split())
        lines.append(f"  {name:<{width}}  {', '.join(facts)}{'  ' + words if words else ''}")
    return "\n".join(lines)


def _example(schema: Definition) -> str:
    known = _properties(schema)
    kinds = {name: describe(resolve(known.get(name), schema)) for name in _required(schema)}
    return "".join(f" {name}={kind.upper().replace(' ', '-')}" for name, kind in kinds.items())


def _properties(schema: Definition) -> Definition:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _required(schema: Definition) -> list[str]:
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
