"""What the readers of all dialects share: from fields to an entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from holdfast.config.dialects.fields import Fields
from holdfast.config.entry import Manner, ServerEntry, Source
from holdfast.config.expansion import ExpansionError, Input, variables
from holdfast.config.problems import Problem, visible
from holdfast.config.settings import SETTINGS, Settings, read_one
from holdfast.policies import Timeouts

MOST_SERVERS: Final = 1000
LONGEST_NAME: Final = 128


class Reading(Struct, frozen=True, kw_only=True):
    """What a file says: its servers, and what is wrong with the file itself."""

    entries: tuple[ServerEntry, ...] = ()
    problems: tuple[Problem, ...] = ()


class Way(Struct, frozen=True, kw_only=True):
    """How an entry says its server is reached."""

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    env_file: str | None = None
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    transport: Manner = "auto"


def read_servers(
    servers: Any, source: Source, field: str, read: Callable[[str, Fields], ServerEntry]
) -> Reading:
    """Every entry of a table of servers; one that is no good leaves the others alone."""
    if servers is None:
        return Reading()
    if not isinstance(servers, Mapping):
        return Reading(problems=(_of_file(source, f"{field} must be an object of servers"),))
    if len(servers) > MOST_SERVERS:
        text = f"{field} has {len(servers):,} servers; {MOST_SERVERS:,} at most are read"
        return Reading(problems=(_of_file(source, text),))
    entries: list[ServerEntry] = []
    problems: list[Problem] = []
    for name, raw in servers.items():
        fault = _bad_name(name)
        if fault is None:
            entries.append(read(name, Fields(raw, source.file, name)))
        else:
            problems.append(_of_file(source, f"{field}: {fault}"))
    return Reading(entries=tuple(entries), problems=tuple(problems))


def _of_file(source: Source, message: str) -> Problem:
    return Problem(file=source.file, message=message)


def _bad_name(name: Any) -> str | None:
    if not isinstance(name, str):
        return "a server's name must be a string"
    shown = visible(name[:40])
    if not name.strip() or len(name) > LONGEST_NAME:
        return f"the name {shown!r} must have 1 to {LONGEST_NAME} characters"
    if visible(name) != name:
        # It would be printed, and pasted into a shell.
        return f"the name '{shown}' has characters in it that cannot be seen"
    return None


def entry(
    name: str,
    fields: Fields,
    source: Source,
    way: Way,
    *,
    settings: Mapping[str, Any] | None = None,
    disabled: bool = False,
    inputs: Mapping[str, Input] | None = None,
) -> ServerEntry:
    """The entry, with Holdfast's own settings over those of the dialect."""
    said = {**(settings or {}), **own_settings(fields)}
    fields.rest()
    made = ServerEntry(
        name=name,
        source=source,
        command=way.command,
        args=way.args,
        env=way.env,
        env_file=way.env_file,
        cwd=way.cwd,
        url=way.url,
        headers=way.headers,
        transport=way.transport,
        settings=Settings(**said),
        disabled=disabled,
        inputs=dict(_used(way, inputs or {})),
    )
    _check(made, fields)
    return _with_problems(made, fields.problems)


def _with_problems(made: ServerEntry, problems: list[Problem]) -> ServerEntry:
    from msgspec.structs import replace

    return replace(made, problems=tuple(problems)) if problems else made


def _used(way: Way, inputs: Mapping[str, Input]) -> Iterator[tuple[str, Input]]:
    """The inputs that this entry asks for; those of its neighbours are none of its business."""
    if not inputs:
        return
    parts = [way.command, way.env_file, way.cwd, way.url, *way.args]
    text = "\n".join([*filter(None, parts), *way.env.values(), *way.headers.values()])
    for name, asked in inputs.items():
        if f"${{input:{name}}}" in text:
            yield name, asked


def _check(made: ServerEntry, fields: Fields) -> None:
    from holdfast.config.entry import texts

    for field, text in texts(made):
        if "${" in text:
            try:
                variables(text)
            except ExpansionError as error:
                fields.fault(field, str(error))
        if "\0" in text:
            fields.fault(field, "must not have a zero character in it")
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            fields.fault(field, "must not have half a character in it")


def own_settings(fields: Fields) -> dict[str, Any]:
    """What stands under ``holdfast``."""
    own = fields.inner("holdfast")
    found: dict[str, Any] = {}
    if own is None:
        return found
    for name in SETTINGS:
        value = own.take(name)
        if value is None:
            continue
        try:
            found[name], unknown = read_one(name, value)
        except ValueError as error:
            own.fault(name, str(error))
            continue
        for key in unknown:
            own.fault(f"{name}.{key}", "is not known here", "warning")
    own.rest()
    return found


def timeouts(**spans: float | None) -> dict[str, Any]:
    """The timeouts that a dialect gives; the cap of a whole call makes room for them."""
    given = {name: span for name, span in spans.items() if span is not None}
    if not given:
        return {}
    most = max(given.get("tools", 0.0), given.get("request", 0.0), Timeouts().total)
    return {"timeouts": Timeouts(**given, total=most)}


# Command or URL, as nearly all dialects of JSON write it

_MANNERS: Final[dict[str, Manner]] = {
    "http": "auto",
    "streamable": "streamable",
    "streamable-http": "streamable",
    "streamable_http": "streamable",
    "streamablehttp": "streamable",
    "sse": "sse",
}
_LOCAL: Final = ("stdio", "local")


def way(fields: Fields, url: str | None, *, hint: Manner = "auto") -> Way:
    """The way to a server by ``type``, ``command`` or a URL that the dialect has found."""
    kind = fields.text("type", "transport")
    program, arguments = _command(fields)
    if kind is not None and kind.lower() not in (*_MANNERS, *_LOCAL):
        fields.fault("type", f"{visible(kind[:40])!r} is not supported (stdio, http or sse)")
        return Way()
    remote = url is not None if kind is None else kind.lower() in _MANNERS
    if kind is None and url is not None and program is not None:
        fields.fault("type", "there is both a command and a URL; say which is meant")
        return Way()
    if remote and url is None and fields.take("url") is None:
        fields.fault("url", "is missing")
    if not remote and program is None and fields.take("command") is None:
        missing = "is missing" if kind is not None else "is missing, and so is a URL"
        fields.fault("command", missing)
    if remote:
        manner = hint if kind is None else _MANNERS[kind.lower()]
        return remote_way(fields, url, manner, fields.table("headers"))
    if url is not None:
        fields.fault("url", "has no effect here", "warning")
    return local_way(fields, program, arguments)


def _command(fields: Fields) -> tuple[str | None, tuple[str, ...]]:
    """The program and its arguments; some write both as one list."""
    if isinstance(fields.take("command"), list):
        words = fields.texts("command")
        program, *more = words or ("",)
        if words is not None and not program:
            fields.fault("command", "must not be empty")
        return program or None, (*more, *(fields.texts("args") or ()))
    return fields.text("command"), fields.texts("args") or ()


def local_way(fields: Fields, program: str | None, arguments: tuple[str, ...]) -> Way:
    env = fields.table("env")
    for name in env:
        if not name or "=" in name or "\0" in name:
            fields.fault(f"env.{visible(name)}", "is no name for a variable")
    if program is not None and not arguments and len(program.split()) > 1:
        text = "has a space in it; arguments belong in args, one by one"
        fields.fault("command", text, "warning")
    fields.without_effect(("headers",))
    return Way(
        command=program,
        args=arguments,
        env=env,
        env_file=fields.text("envFile", "env_file"),
        cwd=fields.text("cwd"),
    )


def remote_way(fields: Fields, url: str | None, manner: Manner, headers: dict[str, str]) -> Way:
    if url is not None and not url.lower().startswith(("http://", "https://", "${")):
        fields.fault("url", "must begin with http:// or https://")
    for name, value in headers.items():
        if not name or not name.isascii() or any(c in "\r\n: \t\0" for c in name):
            fields.fault(f"headers.{visible(name)}", "is no name for a header")
        if "\r" in value or "\n" in value:
            fields.fault(f"headers.{visible(name)}", "must be one line")
    fields.without_effect(("command", "args", "env", "envFile", "cwd"))
    return Way(url=url, headers=headers, transport=manner)


def inputs_of(document: Mapping[str, Any]) -> dict[str, Input]:
    """What the file asks its user for, by id. One that is malformed is not there."""
    found = {}
    listed = document.get("inputs")
    for raw in listed if isinstance(listed, list) else ():
        if isinstance(raw, Mapping) and isinstance(raw.get("id"), str):
            made = _input(raw)
            found[made.id] = made
    return found


def _input(raw: Mapping[str, Any]) -> Input:
    default, options = raw.get("default"), raw.get("options")
    return Input(
        id=raw["id"],
        type=_text(raw.get("type")) or "promptString",
        description=_text(raw.get("description")),
        default=default if isinstance(default, str) else None,
        password=raw.get("password") is True,
        options=tuple(filter(None, map(_option, options if isinstance(options, list) else ()))),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _option(value: Any) -> str:
    """An option is a string, or an object with its value and a label."""
    return _text(value.get("value")) if isinstance(value, Mapping) else _text(value)
