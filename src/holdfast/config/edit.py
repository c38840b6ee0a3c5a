"""Add, remove and import servers in the user's own file and the project's.

The rest of a file is preserved byte for byte. A file that changes during an edit is not written.
Servers that a user adds are approved at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast._core.files import locked, make_private_folder, reason, write_atomic
from holdfast._core.text import did_you_mean, visible
from holdfast.config import dialects, files
from holdfast.config.entry import (
    TYPES,
    ServerEntry,
    absolute,
    definition,
    given_settings,
    input_definition,
)
from holdfast.config.environment import ConfigEnvironment, EntrySource
from holdfast.config.files import JsonFile, UnreadableFileError
from holdfast.config.loading import gather, importable_files, named_file
from holdfast.config.settings import map_path
from holdfast.config.trust import Approval, ApprovalStore, preview_entry
from holdfast.errors import StateError, ValidationError

EditScope = Literal["user", "project"]


class ConfigEdit(Struct, frozen=True, kw_only=True):
    """The outcome of an edit."""

    file: str
    servers: tuple[str, ...] = ()
    """The servers that were added or removed."""
    skipped: Mapping[str, str] = {}
    """Servers that were left out, with the reason."""
    lost: tuple[str, ...] = ()
    """Fields of imported entries that have no effect here."""


def add(
    name: str,
    *,
    command: str | None = None,
    args: Iterable[str] = (),
    url: str | None = None,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    cwd: str | None = None,
    transport: Literal["auto", "streamable", "sse"] = "auto",
    settings: Mapping[str, Any] | None = None,
    scope: EditScope = "user",
    overwrite: bool = False,
    environment: ConfigEnvironment | None = None,
) -> ConfigEdit:
    """Add a server to the user's own file, or to the project's ``.mcp.json``.

    Args:
        name: The server's name.
        command: The program, and
        args: its arguments; or
        url: the address of a server.
        env: Variables for a command.
        headers: Headers for a URL.
        cwd: The folder that a command runs in.
        transport: The HTTP transport.
        settings: Holdfast's own settings, those below ``holdfast`` in a file.
        scope: ``"user"``, or ``"project"``: the repository's root, or the current folder. What
            is added to a project is approved at once: its user typed it.
        overwrite: Replace a server of this name.
        environment: Where to look for the files; by default those of this process.

    Returns:
        The file that was written.

    Raises:
        ValidationError: Something cannot be used, or the name is taken.
        StateError: The file cannot be written, or changed meanwhile.
    """
    environment = environment or ConfigEnvironment()
    if command is not None and url is not None:
        raise ValidationError("give a command or a URL, not both")
    raw = {
        "type": TYPES[transport] if url is not None else None,
        "command": command,
        "args": list(args),
        "env": dict(env or {}),
        "cwd": cwd,
        "url": url,
        "headers": dict(headers or {}),
        "holdfast": dict(settings or {}),
    }
    fields = {key: value for key, value in raw.items() if value not in (None, [], {})}
    source = _source(scope, environment)
    with _changing(source) as document:
        _put(document, name, fields, overwrite)
        # As it will be read; what could not be used is not written.
        typed = replace(source, dialect="mcpServers")
        entry = _usable_entry(name, {**document.content, "mcpServers": {name: fields}}, typed)
    # What was typed is approved, not what the file says by now (CWE-367).
    ApprovalStore(environment).approve({name: entry}, {})
    return ConfigEdit(file=source.file, servers=(name,))


def _usable_entry(name: str, content: Mapping[str, Any], source: EntrySource) -> ServerEntry:
    """Read the only entry of a document; raise the first fault of it."""
    entries, faults = dialects.read(content, source)
    for fault in (*faults, *(fault for entry in entries for fault in entry.errors)):
        place = "" if fault.field is None else f"{fault.field}: "
        raise ValidationError(f"server '{visible(name, 80)}': {place}{fault.message}")
    return entries[0]


def remove(
    name: str,
    *,
    scope: EditScope | None = None,
    environment: ConfigEnvironment | None = None,
) -> ConfigEdit:
    """Remove a server from the user's own file or the project's ``.mcp.json``.

    Args:
        name: The server.
        scope: Where; by default in the user's own file, or else in the project's.
        environment: As in `add`.

    Raises:
        ValidationError: There is no such server in these files.
        StateError: The file cannot be written, or changed meanwhile.
    """
    environment = environment or ConfigEnvironment()
    scopes: list[EditScope] = ["user", "project"] if environment.folders() else ["user"]
    sources = [_source(place, environment) for place in ([scope] if scope else scopes)]
    names: list[str] = []
    for source in sources:
        entries = gather([source], environment).servers
        if name in entries:
            with _changing(source) as document:
                document.change("mcpServers", name, None)
            if source.scope == "project":
                ApprovalStore(environment).revoke(entries[name])
            return ConfigEdit(file=source.file, servers=(name,))
        names += entries
    hint = did_you_mean(name, names)
    where = " or ".join(visible(source.file) for source in sources)
    raise ValidationError(f"no server '{visible(name, 80)}' in {where}{hint and '; '}{hint}")


class ImportPlan(Struct, frozen=True, kw_only=True):
    """The entries that an import would add, to be shown before it does."""

    entries: tuple[ServerEntry, ...]
    skipped: Mapping[str, str]
    overwrite: bool
    environment: ConfigEnvironment
    replaced: frozenset[str] = frozenset()
    """Names of servers that the user has already, and that are overwritten."""

    def previews(self) -> list[Approval]:
        """Return the entries for a person to read, as `carry_out` will write them."""
        previews = [preview_entry(entry, at_home(entry)) for entry in self.entries]
        return [
            replace(preview, cautions=(*preview.cautions, "it replaces your server of this name"))
            if preview.name in self.replaced
            else preview
            for preview in previews
        ]

    def carry_out(self) -> ConfigEdit:
        """Write the entries to the user's own file."""
        source = _source("user", self.environment)
        with _changing(source) as document:
            for entry in self.entries:
                _put(document, entry.name, definition(at_home(entry)), self.overwrite)
                _put_inputs(document, entry)
        return ConfigEdit(
            file=source.file,
            servers=tuple(entry.name for entry in self.entries),
            skipped=self.skipped,
            lost=tuple(str(problem) for entry in self.entries for problem in entry.problems),
        )


def plan_import(
    products: Iterable[str] | None = None,
    *,
    names: Iterable[str] | None = None,
    overwrite: bool = False,
    environment: ConfigEnvironment | None = None,
) -> ImportPlan:
    """Return what `import_products` would do."""
    environment = environment or ConfigEnvironment()
    offered = gather(_chosen(products, environment), environment)
    only = list(offered.servers) if names is None else list(names)
    present = gather([_source("user", environment)], environment)
    entries: list[ServerEntry] = []
    skipped = {str(problem.file): problem.message for problem in offered.problems}
    for entry in (offered[name] for name in only):
        if entry.errors:
            skipped[entry.name] = str(entry.errors[0])
        elif entry.name in present and not overwrite:
            skipped[entry.name] = "a server of this name exists already"
        else:
            entries.append(entry)
        skipped |= _hidden_namesakes(entry)
    return ImportPlan(
        entries=tuple(entries),
        skipped=skipped,
        overwrite=overwrite,
        environment=environment,
        replaced=frozenset(entry.name for entry in entries if entry.name in present),
    )


def _hidden_namesakes(entry: ServerEntry) -> dict[str, str]:
    """Return why the entries that this one hides are skipped; its equals are not worth a word."""
    reason = f"{visible(str(entry.source))} has another of this name"
    return {
        f"{entry.name} of {hidden.source}": reason
        for hidden in entry.hides
        if definition(at_home(hidden)) != definition(at_home(entry))
    }


def import_products(
    products: Iterable[str] | None = None,
    *,
    names: Iterable[str] | None = None,
    overwrite: bool = False,
    environment: ConfigEnvironment | None = None,
) -> ConfigEdit:
    """Copy servers of other products to the user's own file, in one step.

    Args:
        products: Products by name (``"Cursor"``, ``"vscode"``), or paths of files; by default all
            that are found.
        names: Only these servers.
        overwrite: Replace servers of the same name instead of leaving them.
        environment: As in `add`.

    Raises:
        ValidationError: A product has no file here, or none of them has a server of a name.
        StateError: The file cannot be written, or changed meanwhile.
    """
    plan = plan_import(products, names=names, overwrite=overwrite, environment=environment)
    return plan.carry_out()


def _chosen(products: Iterable[str] | None, environment: ConfigEnvironment) -> list[EntrySource]:
    there = importable_files(environment)
    if products is None:
        return there
    sources: list[EntrySource] = []
    for product in products:
        sources += _files_of(product, there, environment)
    return sources


def _files_of(
    product: str, there: list[EntrySource], environment: ConfigEnvironment
) -> list[EntrySource]:
    """Return the files of a product, or the file of this path; refuse if none of them exists."""
    files_of = [source for source in there if _is_called(source.product, product)]
    files_of = files_of or [named_file(product, environment)]
    if any(os.path.exists(source.file) for source in files_of):
        return files_of
    if files_of[0].product:
        places = visible(", ".join(source.file for source in files_of))
        raise ValidationError(f"{files_of[0].product} has no file here: {places}")
    names = list(dict.fromkeys(source.product for source in there))
    hint = did_you_mean(product, names) or f"known: {', '.join(names)}"
    raise ValidationError(f"no product or file {visible(product, 80)!r}: {hint}")


def _is_called(product: str, word: str) -> bool:
    """Return whether a word means a product: ``vscode``, ``lm-studio``, ``claude``."""
    name, typed = ("".join(filter(str.isalnum, text.lower())) for text in (product, word))
    return name == typed or (len(typed) > 2 and name.startswith(typed))


# Files


def _source(scope: EditScope, environment: ConfigEnvironment) -> EntrySource:
    """Return the file that is edited: the user's own, or the project's."""
    root = str(environment.workspace())
    user_file = f"{environment.config_home}/holdfast/mcp.json"
    file = user_file if scope == "user" else f"{root}/.mcp.json"
    if scope == "project" and not environment.folders():
        raise ValidationError("the home folder is not a project; use the user's own file")
    return EntrySource(file=file, scope=scope, workspace=root, environment=environment)


@contextmanager
def _changing(source: EntrySource) -> Iterator[JsonFile]:
    """Read, edit and replace a file; writers take turns, and a change by others is refused."""
    state = source.environment.state_home / "holdfast"
    path = source.file
    try:
        make_private_folder(state)
        with locked(state / "config.lock"):
            # The user's own file may be a link (dotfiles); one in a project is a stranger's.
            is_own = source.scope == "user"
            target = Path(os.path.realpath(path) if is_own else path)
            limit = files.USER_BYTES if is_own else files.PROJECT_BYTES
            before = files.read(str(target), limit)
            document = JsonFile(before)
            yield document
            if document.data == (before or JsonFile(None).data):
                return
            if files.read(str(target), limit) != before:
                raise StateError(f"{visible(path)} was changed meanwhile; nothing was written")
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_symlink():
                raise StateError(f"{visible(path)} is a symbolic link; nothing was written")
            write_atomic(target, document.data, private=is_own and before is None)
    except UnreadableFileError as error:
        raise ValidationError(f"{visible(path)} {error}") from None
    except OSError as error:
        raise StateError(f"{visible(path)}: cannot be written: {reason(error)}") from None


def _put(document: JsonFile, name: str, value: dict[str, Any], overwrite: bool) -> None:
    there = document.content.get("mcpServers")
    if isinstance(there, dict) and name in there and not overwrite:
        raise UnreadableFileError(f"has a server '{visible(name, 80)}' already")
    document.change("mcpServers", name, value)


def _put_inputs(document: JsonFile, entry: ServerEntry) -> None:
    """Add the inputs that an entry asks for, but those of an id that the file has already."""
    inputs = document.content.get("inputs")
    listed = inputs if isinstance(inputs, list) else []
    ids = [item.get("id") for item in listed if isinstance(item, dict)]
    new = [input_definition(item) for name, item in entry.inputs.items() if name not in ids]
    if new:
        document.change("", "inputs", [*listed, *new])


def at_home(entry: ServerEntry) -> ServerEntry:
    """Return the entry with absolute paths, for a file that lies elsewhere."""
    source = entry.source

    def move(path: str) -> str:
        if path.startswith("${"):
            return path
        return absolute(path, source.base, str(source.environment.home))

    moved = {row.name: map_path(value, move) for row, value in given_settings(entry) if row.path}
    if entry.cwd is None and entry.command and "/" in entry.command:
        # From another folder it would run whatever has this name there.
        moved["command"] = move(entry.command)
    own_settings = {name: moved.pop(name) for name in list(moved) if name in entry.settings}
    return replace(entry, settings={**entry.settings, **own_settings}, **moved)
