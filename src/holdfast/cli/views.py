"""What servers have, and give, as a person or a pipe is shown it; as JSON, as it came.

Where a person looks, tables are drawn with rich; a program reads tab-separated lines.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast._core.text import visible_lines
from holdfast.cli.arguments import describe
from holdfast.cli.main import columns_of_terminal
from holdfast.cli.output import Output, has_colour, wrap_words, write
from holdfast.cli.progress import cells, status
from holdfast.schema.signature import example, fields, signature

if TYPE_CHECKING:
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
        blocks([(f"{prefix}{signature_of(one)}", words_of(one)) for one in found], "No tools.")
    elif found:
        output.text(tool_lines(found, prefix))


def tool_lines(found: Iterable[Definition], prefix: str = "") -> str:
    """Return tools for a pipe: signature, tab and the first line of the description."""
    rows = [(first_line(prefix + signature_of(one)), first_line(words_of(one))) for one in found]
    return "".join(visible_lines(f"{name}\t{words}\n") for name, words in rows)


def signature_of(one: Definition) -> str:
    """Return a tool's signature."""
    return signature(str(one["name"]), one.get("inputSchema"))


def flat(text: str) -> str:
    """Return a server's text without tabs, which mean something to `prose`."""
    return text.expandtabs(4)


def words_of(one: Definition) -> str:
    """Return the words that a server has for one of its things."""
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
    raw = {"resources": [one.raw for one in found]}
    raw["resourceTemplates"] = [one.raw for one in templates]
    rows = [(one.uri, one.description or one.title or one.name) for one in found]
    rows += [(one.uri_template, one.description or one.title or one.name) for one in templates]
    table(output, raw, ("resource", "what it is"), rows)


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
    rows = []
    for one in found:
        names = [a.name if a.required else f"[{a.name}]" for a in one.arguments or ()]
        rows.append((one.name, " ".join(names), one.description or one.title or ""))
    raw = {"prompts": [one.raw for one in found]}
    table(output, raw, ("prompt", "arguments", "what it is for"), rows)


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
    parts = [flat(str(definition["name"]))]
    if definition.get("title"):
        parts[0] += f": {definition['title']}"
    if definition.get("description"):
        parts.append(flat(str(definition["description"]).strip()))
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
    told = [f"Its app is the resource {flat(uri)}."] if isinstance(uri, str) else []
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
        lines.append(f"  {flat(path)}{' ' * (width - cells(path))}\t{flat(told)}")
    return "\n".join(lines)


# Tables and prose

_READABLE = 14
"""Columns of the window that each part of a table should have, before names are folded."""


def table(
    output: Output,
    value: Any,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    paths: bool = False,
) -> None:
    """One row a thing, or its value as JSON. The last column may be long: it wraps; or paths."""
    if output.json:
        output.value(value)
        return
    cut = [[first_line(cell) for cell in row] for row in rows]
    if not output.is_terminal:
        for row in cut:
            output.text("\t".join(row))
        return
    if not cut:
        output.text(f"No {columns[0]}s.")
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    drawn = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    texts = [[Text(visible_lines(cell)) for cell in row] for row in cut]
    for at, column in enumerate(columns):
        lengths = [row[at].cell_len for row in texts]
        width = None
        if at == 0:
            width = _whole([len(column), *lengths], len(columns), console.width)
        elif paths and at == len(columns) - 1:  # paths have no words to wrap at
            width = _whole(lengths, len(columns), console.width)
        drawn.add_column(column, overflow="fold", width=width, style="" if at else "bold")
    for row_of_texts in texts:
        drawn.add_row(*row_of_texts)
    with status.aside():
        console.print(drawn)


def first_line(text: str | None) -> str:
    """Return the first line of a text, without tabs, for a table."""
    lines = (text or "").strip().splitlines()
    return " ".join(lines[0].split()) if lines else ""


def _whole(names: Sequence[int], columns: int, window: int) -> int | None:
    """Return room for whole names, which can be copied; None where too few would profit."""
    room = min(window * 2 // 3, window - _READABLE * (columns - 1))
    whole = max((name for name in names if name <= room), default=0)
    return whole if whole and (whole == max(names) or whole * 2 >= room) else None


def prose(output: Output, text: str) -> None:
    """Show text that is ours: at a terminal its lines wrap whole words, with hanging indents.

    A tab is two spaces, and the place below which a line goes on. A command stays on one line, so
    that it can be copied.
    """
    if not output.is_terminal:
        output.text(text.replace("\t", "  "))
        return
    columns = columns_of_terminal()
    lines = []
    for line in text.splitlines():
        head, tab, rest = line.partition("\t")
        hang = cells(head) + 2 if tab else len(line) - len(line.lstrip())
        line = f"{head}  {rest}" if tab else line
        if not line.startswith("holdfast "):
            line = wrap_words(line, columns, rest=" " * min(hang, columns // 2))
        lines.append(line)
    output.text("\n".join(lines))


_REST = " " * 4


def heading(text: str) -> None:
    """Draw a title on the terminal."""
    write(styled(visible_lines(first_line(text)), "1;4"))


def blocks(rows: Sequence[tuple[str, str]], empty: str = "") -> None:
    """Draw rows on the terminal: a line that is bold up to its bracket, and words below it.

    A signature is broken between parameters, and within one that fills a line.
    """
    columns = max(columns_of_terminal(), len(_REST) + 10)
    room = columns - len(_REST) - 1
    lines = [] if rows else [empty]
    for first, words in rows:
        parts = visible_lines(first_line(first)).split(", ")
        tied = (one.replace(" ", "\x01") if len(one) < room else one for one in parts)
        title = wrap_words(", ".join(tied), columns, rest=_REST)
        name, bracket, rest = title.replace("\x01", " ").partition("(")
        lines.append(f"{styled(name, '1')}{bracket}{rest}")
        if words.strip():
            text = wrap_words(visible_lines(first_line(words)), columns, _REST, _REST)
            lines += [styled(line, "2") for line in text.splitlines()]
    write("\n".join(lines))


def styled(text: str, style: str) -> str:
    """Return text for stdout, in colour where that is wanted."""
    return f"\x1b[{style}m{text}\x1b[0m" if has_colour(sys.stdout) else text
