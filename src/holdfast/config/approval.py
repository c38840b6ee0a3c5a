"""Approve a server of a project's file: its whole definition, and cautions about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from holdfast._core.text import join_words, visible
from holdfast.config import trust
from holdfast.config.dialects.common import is_safe_name
from holdfast.config.edit import definition, input_definition
from holdfast.config.entry import ServerEntry, texts, used_variables
from holdfast.config.files import EnvFile
from holdfast.config.loading import Configuration
from holdfast.config.resolution import read_env_file
from holdfast.config.settings import map_texts
from holdfast.config.trust import ApprovalStore, TrustVerdict


class Approval(Struct, frozen=True, kw_only=True):
    """Everything that an approval is bound to, for a person to read.

    ``definition`` is the text of the file, secrets, inputs and file of variables included, with
    unseen characters escaped: what is hidden cannot be approved.
    """

    name: str
    file: str
    verdict: TrustVerdict
    changes: tuple[str, ...]
    definition: dict[str, Any]
    variables: tuple[str, ...]
    cautions: tuple[str, ...]
    """Points that deserve a second look."""
    fingerprint: str
    approved: bool = False


def preview(config: Configuration, name: str) -> Approval:
    """Return what `approve` would approve, for a person to read first."""
    return _approval(config[name])


def approve(config: Configuration, name: str, *, seen: Approval | None = None) -> Approval:
    """Approve a server of a project's file.

    Args:
        config: The configuration that has it.
        name: The server.
        seen: A `preview`: only what was seen is approved.

    Raises:
        StateError: The entry has changed since it was seen.
    """
    return approve_all(config, [name], seen={} if seen is None else {name: seen})[0]


def approve_all(
    config: Configuration,
    names: Iterable[str] | None = None,
    *,
    seen: Mapping[str, Approval] | None = None,
) -> tuple[Approval, ...]:
    """Approve several servers at once, all or none; without names every one that needs it."""
    if names is None:
        names = [entry.name for entry in config if not entry.trust().ok]
    entries = {name: config[name] for name in names}
    shown = {name: (seen or {}).get(name) or _approval(one) for name, one in entries.items()}
    store = ApprovalStore(config.environment)
    store.approve(entries, {name: one.fingerprint for name, one in shown.items()})
    return tuple(replace(one, approved=True) for one in shown.values())


def revoke(config: Configuration, name: str) -> bool:
    """Take the approval back; False if there was none."""
    return ApprovalStore(config.environment).revoke(config[name])


def _approval(entry: ServerEntry) -> Approval:
    env_file = read_env_file(entry)
    status = ApprovalStore(entry.source.environment).status(entry, env_file)
    parts = trust.bound_parts(entry, env_file)
    return Approval(
        name=entry.name,
        file=visible(entry.source.file),
        verdict=status.verdict,
        changes=status.changes,
        definition=map_texts(_bound_definition(entry, env_file, parts), visible),
        variables=tuple(dict.fromkeys(visible(one.name, 120) for _, one in used_variables(entry))),
        cautions=cautions(entry, env_file),
        fingerprint=trust.fingerprint(parts),
    )


def _bound_definition(
    entry: ServerEntry, env_file: EnvFile | None, parts: Mapping[str, str]
) -> dict[str, Any]:
    found = definition(entry)
    if entry.url is None and entry.cwd is None and entry.source.scope == "project":
        found["cwd (the project's folder)"] = entry.source.workspace
    if entry.inputs:
        found["inputs"] = [input_definition(asked) for asked in entry.inputs.values()]
    found |= {name: f"sha256:{one}" for name, one in parts.items() if name.endswith(" (content)")}
    if env_file is not None:
        try:
            found["envFile (content)"] = env_file.variables()
        except ValueError as error:
            found["envFile (content)"] = f"{error}"
    return found


# Cautions

_LOADS_CODE: Final = re.compile(
    r"LD_|DYLD_|(?:\w*_)?PATH\Z|PYTHON|NODE_|BASH_ENV\Z|ENV\Z|PERL5|RUBY|_?JAVA_|JDK_JAVA|CLASSPATH"
    r"|GIT_|SHELL\Z|IFS\Z|npm_config_|UV_|PIP_|BUN_|DENO_|GEM_|CARGO_|RUST|LUA_|PHP|GO(?:FLAGS|ENV)"
    r"|DOTNET_|COR_|CORECLR_|ELECTRON_|OPENSSL_|GLIBC_|GCONV_|ZDOTDIR|PROMPT_COMMAND|PS4|HOME\Z|XDG_"
    r"|EDITOR\Z|VISUAL\Z|PAGER\Z|BROWSER\Z|\w*_ASKPASS\Z|ERL_|R_|COREPACK_|YARN_|DOCKER_HOST",
    re.I,
)
_SHELLS: Final = frozenset(
    {"sh", "bash", "dash", "zsh", "fish", "ksh", "env", "eval", "xargs", "busybox"}
    | {"cmd", "cmd.exe", "powershell", "pwsh", "sudo", "doas"}
)
_INLINE: Final = re.compile(r"-[cepr]|-ne|--eval|--print|-command", re.I)
_INTERPRETERS: Final = re.compile(r"(?:python|node|deno|bun|perl|ruby|php|lua|osascript)[\d.]*\Z")
_LONG: Final = 500
_GAP: Final = re.compile(r"\s{20}")


def cautions(entry: ServerEntry, env_file: EnvFile | None) -> tuple[str, ...]:
    """Return the warnings to show with an approval."""
    found = [*_of_code(entry, env_file), *_of_url(entry), *_of_settings(entry)]
    found += [*_of_variables(entry), *_of_text(entry)]
    return tuple(dict.fromkeys(found))


def _of_code(entry: ServerEntry, env_file: EnvFile | None) -> Iterator[str]:
    for where in _code_variables(entry, env_file):
        yield f"{where} can change which code runs"
    command = entry.command or ""
    program = re.split(r"[/\\]", command)[-1].lower()
    if program in _SHELLS:
        yield "the command is a shell: what it runs stands in the arguments"
    elif _INTERPRETERS.match(program) and any(_INLINE.match(one) for one in entry.args):
        yield "the arguments have code in them that is run"
    if "/" in command and not command.startswith(("/", "~", "${")):
        yield "the command is a file of the project: approving it approves what that file becomes"


def _code_variables(entry: ServerEntry, env_file: EnvFile | None) -> list[str]:
    names = [f"env.{visible(name)}" for name in entry.env if _LOADS_CODE.match(name)]
    try:
        in_file = {} if env_file is None or env_file.data is None else env_file.variables()
    except ValueError:
        in_file = {}
    return [*names, *(f"{name} in the envFile" for name in in_file if _LOADS_CODE.match(name))]


def _of_url(entry: ServerEntry) -> Iterator[str]:
    if entry.url is None:
        return
    if entry.url.lower().startswith("http://"):
        yield "the URL is not encrypted"
    try:
        parts = urlsplit(entry.url)
    except ValueError:
        return
    if "@" in parts.netloc:
        host = visible(parts.netloc.rpartition("@")[2], 100)
        yield f"the URL has a user name in it; the server is {host}"
    if entry.url.startswith("${") or "${" in parts.netloc:
        yield "which server is reached depends on a variable"


def _of_settings(entry: ServerEntry) -> Iterator[str]:
    settings = entry.settings
    if settings.get("inherit_env") is True:
        yield "the server gets your whole environment, secrets too"
    if "log" in settings:
        yield "calls are written to a file that the project names"
    if "proxy" in settings:
        yield "all requests go through a proxy that the project names"
    if "ca" in settings:
        yield "the project decides which certificates are trusted"
    if settings.get("replay") == "safe":
        yield "calls that claim to be without side effects are sent again"
    off = [name for name in ("validate", "results") if settings.get(name) == "off"]
    if off:
        yield f"checks are switched off: {', '.join(off)}"


def _of_variables(entry: ServerEntry) -> Iterator[str]:
    sent = dict.fromkeys(
        visible(one.name, 80) for _, one in used_variables(entry) if one.kind != "place"
    )
    if sent:
        yield f"the server is given the values of: {join_words(list(sent), 20)}"
    for name, asked in entry.inputs.items():
        if asked.default:
            shown = visible(asked.default, 200)
            yield f"without an answer the input {visible(name, 80)!r} is: {shown}"


def _of_text(entry: ServerEntry) -> Iterator[str]:
    odd = [("name", entry.name), *((field, text) for _, field, text in texts(entry))]
    for field, text in odd:
        letters = {letter for letter in text if not letter.isascii()} if not text.isascii() else ()
        if letters and field in ("name", "command", "url"):
            codes = join_words([f"U+{ord(one):04X}" for one in sorted(letters)], 5)
            yield f"the {field} has letters outside ASCII, which may look like others: {codes}"
        if len(text) > _LONG or _GAP.search(text):
            yield f"{visible(field, 80)} is {len(text):,} characters long: read it to its end"
    if not is_safe_name(entry.name):
        yield "the name needs quotes in a shell"
