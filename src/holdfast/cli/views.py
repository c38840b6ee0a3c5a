"""What servers have, and give, as a person or a pipe is shown it; as JSON, as it came."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast._core.text import visible_lines
from holdfast.cli.arguments import describe
from holdfast.cli.exit_codes import Exit
from holdfast.cli.output import Output
from holdfast.cli.progress import cells
from holdfast.cli.render import blocks, first_line, heading, prose, table
from holdfast.schema.signature import example, fields, signature

if TYPE_CHECKING:
    from holdfast.cli.fleet import Offer, ServerHealth
    from holdfast.types.resources import (
        Prompt,
        PromptResult,
        ReadResult,
        Resource,
        ResourceTemplate,
    )

Definition = Mapping[str, Any]


def tools(output: Output, found: Sequence[Definition], prefix: str = "") -> None:
    """Show tools as signatures; ``prefix`` is the server's name and a dot, in a longer list."""
    if output.json:
        output.value({"tools": found})
        return
    if output.is_terminal:
        blocks([(f"{prefix}{_signature(one)}", _words(one)) for one in found], "No tools.")
    elif found:
        output.text(tool_lines(found, prefix))


def tool_lines(found: Iterable[Definition], prefix: str = "") -> str:
    """Return tools for a pipe: signature, tab and the first line of the description."""
    rows = [f"{first_line(prefix + _signature(one))}\t{first_line(_words(one))}" for one in found]
    return "".join(f"{visible_lines(row)}\n" for row in rows)


def grouped(output: Output, found: Sequence[ServerHealth]) -> int:
    """Show the tools of several servers, and which of the servers cannot be used."""
    if output.json:
        facts = [{"name": one.name, "state": one.state, "tools": one.tools} for one in found]
        output.value({"servers": facts})
    bad = [one for one in found if one.exit]
    for one in found:
        if output.json or one.state != "ready":
            continue
        if output.is_terminal:
            heading(one.name)
        tools(output, one.tools or (), "" if output.is_terminal else f"{one.name}.")
    for one in bad:
        output.note(f"{one.name}: {one.state}: {first_line(one.remedy)}")
    if not bad:
        return Exit.OK
    return output.verdict(f"{bad[0].name}: {bad[0].state}: {bad[0].reason}", bad[0].exit, "status")


def overview(output: Output, found: Offer) -> None:
    """Show a server in short: who it is, and everything that it offers."""
    if output.json:
        output.value(found)
        return
    who = found.server or "a server without a name"
    lines = [f"{found.name}: {who}, protocol {found.protocol}"]
    if found.instructions:
        lines.append(f"\n{_flat(found.instructions.strip())}")
    sections: tuple[tuple[str, Sequence[Definition] | None, Callable[[Definition], str]], ...] = (
        ("Tools", found.tools, _signature),
        ("Resources", found.resources, lambda one: str(one.get("uri"))),
        ("Templates", found.templates, lambda one: str(one.get("uriTemplate"))),
        ("Prompts", found.prompts, lambda one: str(one.get("name"))),
    )
    prose(output, "\n".join(lines))
    for title, rows, called in sections:
        if rows and output.is_terminal:
            output.text("")
            heading(title)
            blocks([(called(one), _words(one)) for one in rows], "")
        elif rows:
            told = [f"  {first_line(called(one))}  {first_line(_words(one))}" for one in rows]
            output.text("\n".join([f"\n{title}:", *told]))


def _signature(one: Definition) -> str:
    return signature(str(one["name"]), one.get("inputSchema"))


def _flat(text: str) -> str:
    """Return a server's text without tabs, which mean something to `prose`."""
    return text.expandtabs(4)


def _words(one: Definition) -> str:
    return str(one.get("description") or one.get("title") or "")


def tool(output: Output, definition: Definition, called: str, server: str = "") -> None:
    """One of them, with a line to call it: ``called``, its parameters, ``server``."""
    if output.json:
        output.value(definition)
    else:
        prose(output, description(definition, called, server))


def resources(
    output: Output, found: Sequence[Resource], templates: Sequence[ResourceTemplate]
) -> None:
    """Show a list of resources, or templates."""
    if output.json:
        raw = {"resources": [one.raw for one in found]}
        output.value({**raw, "resourceTemplates": [one.raw for one in templates]})
        return
    rows = [(one.uri, one.description or one.title or one.name) for one in found]
    rows += [(one.uri_template, one.description or one.title or one.name) for one in templates]
    table(output, ("resource", "what it is"), rows)


def resource(output: Output, found: ReadResult, uri: str, save: str | None) -> None:
    """Show the contents of a resource."""
    from holdfast.cli.contents import Contents

    if output.json:
        output.value(found.raw)
        return
    stem = uri.rstrip("/").rpartition("/")[2]
    Contents(output, save, stem.rpartition(".")[0] or stem).show(found.contents)


def prompts(output: Output, found: Sequence[Prompt]) -> None:
    """Show a list of prompts."""
    if output.json:
        output.value({"prompts": [one.raw for one in found]})
        return
    rows = []
    for one in found:
        names = [a.name if a.required else f"[{a.name}]" for a in one.arguments or ()]
        rows.append((one.name, " ".join(names), one.description or one.title or ""))
    table(output, ("prompt", "arguments", "what it is for"), rows)


def prompt(output: Output, found: PromptResult, name: str, save: str | None) -> None:
    """Show the messages of a prompt."""
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
    """Return a tool as text for `prose`: its words, parameters, and a line to call it with."""
    parts = [_flat(str(definition["name"]))]
    if definition.get("title"):
        parts[0] += f": {definition['title']}"
    if definition.get("description"):
        parts.append(_flat(str(definition["description"]).strip()))
    schema = definition.get("inputSchema")
    schema = schema if isinstance(schema, Mapping) else {}
    parts.append(_parameters(schema))
    hints = definition.get("annotations")
    if isinstance(hints, Mapping) and hints:
        said = ", ".join(f"{key} {json.dumps(value)}" for key, value in hints.items())
        parts.append(f"The server says: {said}")
    if definition.get("outputSchema") is not None:
        parts.append("Gives structured results: see --json for their schema.")
    parts.append(_app(definition.get("_meta")))
    parts.append(f"{called}{example(schema)}{server}")
    return "\n\n".join(part for part in parts if part)


def _app(meta: Any) -> str:
    """Return what MCP Apps (SEP-1865) says of a tool: its page, and that it is for pages alone."""
    ui = meta.get("ui") if isinstance(meta, Mapping) else None
    if not isinstance(ui, Mapping):
        return ""
    uri, seen = ui.get("resourceUri"), ui.get("visibility")
    told = [f"Its app is the resource {_flat(uri)}."] if isinstance(uri, str) else []
    if isinstance(seen, list | str) and "model" not in seen:
        told.append("It is for applications, and is not offered to models.")
    return " ".join(told)


def _parameters(schema: Definition) -> str:
    found = list(fields(schema, schema))
    if not found:
        return "Takes no parameters."
    width = min(24, max(cells(path) for path, _, _ in found))
    lines = ["Parameters:"]
    for path, part, needed in found:
        facts = [describe(part)] + ([] if needed else ["optional"])
        if "default" in part:
            facts.append(f"default {json.dumps(part['default'], ensure_ascii=False)}")
        words = " ".join(str(part.get("description") or "").split())
        told = f"{', '.join(facts)}{'  ' + words if words else ''}"
        lines.append(f"  {_flat(path)}{' ' * (width - cells(path))}\t{_flat(told)}")
    return "\n".join(lines)
