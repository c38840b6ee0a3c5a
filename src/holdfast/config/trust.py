"""Approvals: a server of a project's own file is not used before its user has approved it.

An approval is bound to the file's path, the server's name and a hash over everything that decides
what runs, what is sent where and how results are treated: every setting whose row gives no reason
(`Setting.unbound`), the inputs, the content of the file of variables and of certificates in the
project, and the project's folder.

The hash is over the text before variables are expanded: authors of the file control the text, the
user controls the variables, and a new token needs no new approval. The program of a command is not
hashed: approving ``node server.js`` approves every later content of that file.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from holdfast._core.files import locked, make_private_folder, read_bytes, reason, write_atomic
from holdfast._core.text import join_words, visible
from holdfast.config import files
from holdfast.config.entry import (
    ServerEntry,
    definition,
    input_definition,
    is_safe_name,
    texts,
)
from holdfast.config.files import EnvFile, UnreadableFileError
from holdfast.config.resolution import project_contents, read_env_file
from holdfast.errors import StateError, TrustError

if TYPE_CHECKING:
    from holdfast.config.environment import ConfigEnvironment
    from holdfast.config.loading import Configuration

TrustVerdict = Literal["own", "trusted", "untrusted", "changed"]

_FORM: Final[Literal["holdfast trust 2"]] = "holdfast trust 2"
_MOST_SHOWN: Final = 5


class TrustStatus(Struct, frozen=True, kw_only=True):
    """The approval of an entry.

    ``own``: the user's own, or named by the user. ``trusted``: approved in this form.
    ``untrusted``: never approved. ``changed``: approved in another form.
    """

    verdict: TrustVerdict
    changes: tuple[str, ...] = ()
    """Differences from the approved entry, field by field."""
    problem: str | None = None
    """Why the approvals could not be read."""

    @property
    def ok(self) -> bool:
        """True if the entry may be used."""
        return self.verdict in ("own", "trusted")


# What may change between which steps
#
# A file is read, shown, approved, read again and used, by one process or by several, while a
# checkout, an editor or an attacker writes to it. Each step is bound to the one before (CWE-367):
#
#   shown → approved    `Approval.fingerprint` is over what was shown. `ApprovalStore.approve`
#                       computes it anew from what is there now, files that count by their content
#                       included, and refuses a difference.
#   approved → stored   all entries of one approval or none, under a lock between processes.
#   stored → used       `require` compares the fingerprint of the entry that is about to be used
#                       with the stored one. It is given the very bytes of the file of variables
#                       that the server will get: they are read once, in `admit`.
#
# What an approval does not cover, it says: the program behind the command, the values of variables,
# what an address answers. A hash of those would promise more than it keeps.
#
# The short hashes of the parts are kept only to name what has changed. They are too short to be
# evidence, and keep no content: a file of approvals must not be a list of secrets.


# What an approval is bound to


def bound_parts(entry: ServerEntry, env_file: EnvFile | None) -> dict[str, str]:
    """Return everything that an approval is bound to, by its place."""
    parts = {"kind": entry.kind, "folder": entry.source.workspace}
    parts.update((field, text) for row, field, text in texts(entry) if not row.unbound)
    if entry.env_file is not None:
        parts["envFile (content)"] = _digest(None if env_file is None else env_file.data)
    for name, content in project_contents(entry):
        parts[f"{name} (content)"] = _digest(content)
    for name, config_input in entry.inputs.items():
        parts[f"inputs.{name}"] = json.dumps(asdict(config_input))
    return parts


def fingerprint(parts: Mapping[str, str]) -> str:
    """Return the hash that an approval keeps."""
    text = json.dumps([_FORM, parts], sort_keys=True, separators=(",", ":"))
    return "sha256:" + _digest(text.encode())


def _digest(data: bytes | None) -> str:
    import hashlib

    return "none" if data is None else hashlib.sha256(data).hexdigest()


def _short(text: str) -> str:
    """Return enough to see that a field has changed, without keeping its content."""
    return _digest(text.encode("utf-8", "surrogatepass"))[:16]


# Judging


def require(entry: ServerEntry, env_file: EnvFile | None) -> None:
    """Raise TrustError unless the entry of a project's file may be used."""
    status = ApprovalStore(entry.source.environment).status(entry, env_file)
    if status.ok:
        return
    what = f"server {visible(entry.name)!r} of the project's {visible(entry.source.file)}"
    if status.verdict == "changed":
        what += f" has changed since it was approved ({', '.join(status.changes[:_MOST_SHOWN])})"
    else:
        what += " is not trusted: a project's file is not used before you approve it"
    trouble = "" if status.problem is None else f" ({status.problem})"
    users = next((lost.source for lost in entry.hides if lost.source.scope == "user"), None)
    hidden = "" if users is None else f". It hides your own of {visible(str(users))}"
    text = f"{what}{trouble}{hidden}. Approve: {approving(entry.name)}"
    raise TrustError(text, state="untrusted", data=status)


def approving(*names: str) -> str:
    """Return the command that approves servers; safe to paste, whatever their names are."""
    dashes = "-- " if any(name.startswith("-") for name in names) else ""
    return f"holdfast config trust {dashes}{shlex.join(names)}"


def _changes(before: Mapping[str, str], parts: Mapping[str, str]) -> Iterator[str]:
    after = {field: _short(text) for field, text in parts.items()}
    for field in sorted({*before, *after}):
        if before.get(field) != after.get(field):
            how = "new" if field not in before else "gone" if field not in after else "different"
            yield f"{visible(field, 120)} is {how}"


# Keeping


class _Approved(Struct, frozen=True, kw_only=True):
    hash: str
    parts: dict[str, str]
    """A short hash of each part."""


class _Approvals(Struct, kw_only=True):
    """The approvals of a user, by file and server."""

    form: Literal["holdfast trust 2"]
    approvals: dict[str, dict[str, _Approved]]


class ApprovalStore:
    """The approvals of one user. The file is read once, and again before each change."""

    def __init__(self, environment: ConfigEnvironment) -> None:
        self.path: Path = environment.state_home / "holdfast" / "trust.json"
        """The file that they are kept in: the user's, not the project's."""

    @cached_property
    def _kept(self) -> _Approvals:
        return self._read()

    def _read(self) -> _Approvals:
        try:
            data = read_bytes(self.path, files.USER_BYTES, owned=True)
            return msgspec.convert(files.parse(str(self.path), data), _Approvals)
        except FileNotFoundError:
            return _Approvals(form=_FORM, approvals={})
        except OSError as error:
            # Do not trust approvals that another user could have written.
            why = reason(error)
        except (msgspec.ValidationError, UnreadableFileError):
            why = "is not a file of approvals"
        raise UnreadableFileError(f"{visible(str(self.path))} {why}")

    def status(self, entry: ServerEntry, env_file: EnvFile | None = None) -> TrustStatus:
        """Return whether an entry is approved in its present form."""
        if entry.source.scope != "project":
            return TrustStatus(verdict="own")
        try:
            approved = self._kept.approvals.get(_key(entry), {}).get(entry.name)
        except UnreadableFileError as error:
            return TrustStatus(verdict="untrusted", problem=str(error))
        if approved is None:
            return TrustStatus(verdict="untrusted")
        parts = bound_parts(entry, env_file or read_env_file(entry))
        if approved.hash == fingerprint(parts):
            return TrustStatus(verdict="trusted")
        return TrustStatus(verdict="changed", changes=tuple(_changes(approved.parts, parts)))

    def approve(self, entries: Mapping[str, ServerEntry], seen: Mapping[str, str]) -> None:
        """Approve entries of project files, all or none.

        ``seen`` has fingerprints of what a person was shown. Nothing else is approved.
        """
        approved = {}
        for name, entry in entries.items():
            if entry.source.scope != "project":
                continue
            parts = bound_parts(entry, read_env_file(entry))
            if seen.get(name, fingerprint(parts)) != fingerprint(parts):
                raise StateError(f"server {visible(name)!r} has changed since it was shown")
            short = {field: _short(text) for field, text in parts.items()}
            approved[name] = _Approved(hash=fingerprint(parts), parts=short)
        if not approved:
            return
        with self._changing() as approvals:
            for name, approval in approved.items():
                approvals.setdefault(_key(entries[name]), {})[name] = approval

    def revoke(self, entry: ServerEntry) -> bool:
        """Take an approval back; False if there was none."""
        with self._changing() as approvals:
            servers = approvals.get(_key(entry), {})
            was_approved = servers.pop(entry.name, None) is not None
            if not servers:
                approvals.pop(_key(entry), None)
        return was_approved

    @contextmanager
    def _changing(self) -> Iterator[dict[str, dict[str, _Approved]]]:
        """Read, change and replace in one go; two at once take turns."""
        try:
            make_private_folder(self.path.parent)
            with locked(self.path.with_name("trust.lock")):
                stored = self._read()
                yield stored.approvals
                # Paths may be no text: this escapes what UTF-8 cannot hold.
                text = json.dumps(msgspec.to_builtins(stored), indent=1, sort_keys=True)
                write_atomic(self.path, f"{text}\n".encode(), private=True)
                self.__dict__.pop("_kept", None)
        except UnreadableFileError as error:
            raise StateError(f"cannot change the approvals: {error}") from None
        except OSError as error:
            where = visible(str(self.path))
            raise StateError(f"cannot change the approvals: {where}: {reason(error)}") from None


def _key(entry: ServerEntry) -> str:
    # Where paths have no case (Windows) neither has the key.
    return os.path.normcase(os.path.realpath(entry.source.file))


# Approving


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
    return preview_entry(config[name])


def preview_entry(entry: ServerEntry, written: ServerEntry | None = None) -> Approval:
    """Return everything about an entry, for a person to read; ``written``: as it will be written.

    Nothing is redacted or cut. In the argument of a shell, ``password=$(…)`` is a command.
    """
    env_file = read_env_file(entry)
    status = ApprovalStore(entry.source.environment).status(entry, env_file)
    parts = bound_parts(entry, env_file)
    fields = {**definition(written or entry), **_implied_fields(entry)}
    contents = {field: text for field, text in parts.items() if field.endswith(" (content)")}
    fields |= {field: f"sha256:{digest}" for field, digest in contents.items()}
    if env_file is not None:
        fields["envFile (content)"] = env_file.fault or env_file.variables
    return Approval(
        name=entry.name,
        file=visible(str(entry.source)),
        verdict=status.verdict,
        changes=status.changes,
        definition=_visible(fields),
        variables=tuple(dict.fromkeys(visible(used.name, 120) for _, used in entry.variables)),
        cautions=tuple(dict.fromkeys(_cautions(entry, env_file))),
        fingerprint=fingerprint(parts),
    )


def _implied_fields(entry: ServerEntry) -> dict[str, Any]:
    """Return what counts for an entry, though it does not stand in it."""
    fields: dict[str, Any] = {}
    if entry.url is None and entry.cwd is None and entry.source.scope == "project":
        fields["cwd (the project's folder)"] = entry.source.workspace
    if entry.inputs:
        fields["inputs"] = [
            input_definition(config_input) for config_input in entry.inputs.values()
        ]
    return fields


def _visible(value: Any) -> Any:
    """Return a value with the unseen characters of all its texts escaped."""
    if isinstance(value, dict):
        return {visible(name): _visible(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_visible(item) for item in value]
    return visible(value) if isinstance(value, str) else value


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
    previews = {name: (seen or {}).get(name) or preview(config, name) for name in entries}
    store = ApprovalStore(config.environment)
    store.approve(entries, {name: approval.fingerprint for name, approval in previews.items()})
    return tuple(replace(approval, approved=True) for approval in previews.values())


def revoke(config: Configuration, name: str) -> bool:
    """Take the approval back; False if there was none."""
    return ApprovalStore(config.environment).revoke(config[name])


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


def _cautions(entry: ServerEntry, env_file: EnvFile | None) -> Iterator[str]:
    """Yield the warnings to show with an approval."""
    yield from _cautions_of_code(entry, env_file)
    yield from _cautions_of_url(entry.url or "")
    yield from _cautions_of_settings(entry.settings)
    yield from _cautions_of_values(entry)
    yield from _cautions_of_texts(entry)


def _cautions_of_code(entry: ServerEntry, env_file: EnvFile | None) -> Iterator[str]:
    """Yield in how many ways the entry decides which code runs."""
    in_file = {} if env_file is None else env_file.variables
    for variable in filter(_LOADS_CODE.match, entry.env):
        yield f"env.{visible(variable)} can change which code runs"
    for variable in filter(_LOADS_CODE.match, in_file):
        yield f"{variable} in the envFile can change which code runs"
    command = entry.command or ""
    program = re.split(r"[/\\]", command)[-1].lower()
    if program in _SHELLS:
        yield "the command is a shell: what it runs is in the arguments"
    if _INTERPRETERS.match(program) and any(map(_INLINE.match, entry.args)):
        yield "the arguments have code in them that is run"
    if "/" in command and not command.startswith(("/", "~", "${")):
        yield "the command is a file of the project: approving it approves what that file becomes"


def _cautions_of_url(url: str) -> Iterator[str]:
    try:
        authority = urlsplit(url).netloc
    except ValueError:
        authority = ""
    if "@" in authority:
        host = visible(authority.rpartition("@")[2], 100)
        yield f"the URL has a user name in it; the server is {host}"
    if url.lower().startswith("http://"):
        yield "the URL is not encrypted"
    if url.startswith("${") or "${" in authority:
        yield "which server is reached depends on a variable"


def _cautions_of_settings(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, caution in _RISKY_SETTINGS.items():
        if name in settings:
            yield caution
    for (name, value), caution in _RISKY_VALUES.items():
        if settings.get(name) == value:
            yield caution


_RISKY_SETTINGS: Final = {
    "log": "calls are written to a file that this entry names",
    "proxy": "all requests go through a proxy that this entry names",
    "ca": "this entry decides which certificates are trusted",
}
_RISKY_VALUES: Final = {
    ("inherit_env", True): "the server gets your whole environment, secrets too",
    ("replay", "safe"): "calls that claim to be without side effects are sent again",
    ("validate", "off"): "checks are switched off: validate",
    ("results", "off"): "checks are switched off: results",
}


def _cautions_of_values(entry: ServerEntry) -> Iterator[str]:
    """Yield which values of the user's the server gets, and which the entry brings along."""
    variables = [variable for _, variable in entry.variables if variable.kind != "place"]
    if names := dict.fromkeys(visible(variable.name, 80) for variable in variables):
        yield f"the server is given the values of: {join_words(list(names), 20)}"
    for name, config_input in entry.inputs.items():
        if config_input.default:
            default = visible(config_input.default, 200)
            yield f"without an answer the input {visible(name, 80)!r} is: {default}"


def _cautions_of_texts(entry: ServerEntry) -> Iterator[str]:
    """Yield texts that do not read as what they are: lookalike letters, very long ones."""
    if not is_safe_name(entry.name):
        yield "the name needs quotes in a shell"
    for field, text in (("name", entry.name), *((field, text) for _, field, text in texts(entry))):
        if not text.isascii() and field in ("name", "command", "url"):
            letters = sorted({letter for letter in text if not letter.isascii()})
            codes = join_words([f"U+{ord(letter):04X}" for letter in letters], 5)
            yield f"the {field} has letters outside ASCII, which may look like others: {codes}"
        if len(text) > _LONG or _GAP.search(text):
            yield f"{visible(field, 80)} is {len(text):,} characters long: read it to its end"
