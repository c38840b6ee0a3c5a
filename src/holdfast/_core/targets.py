"""The targets that ``connect`` accepts, and the transport for each.

The kind of a target is decided here, once: a URL, a command, a script or a server in memory.
A configuration entry, whose kind is known, builds `Http` or `Stdio` directly.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard

from holdfast.errors import Hint, ValidationError

if TYPE_CHECKING:
    from holdfast._core.boundary import Transport
    from holdfast._core.transports.memory import MemoryServer, ServerObject

VARIABLE: Final = "MCP_SERVER_URL"

Target: TypeAlias = (
    "str | os.PathLike[str] | Iterable[str] | Transport | MemoryServer | ServerObject | None"
)

SCRIPTS: Final[dict[str, tuple[str, ...]]] = {
    ".py": (sys.executable,),
    ".js": ("node",),
    ".cjs": ("node",),
    ".mjs": ("node",),
    ".ts": ("node",),
    ".mts": ("node",),
    ".sh": ("sh",),
    ".jar": ("java", "-jar"),
}
"""The program that runs a script, by the suffix of its name."""

_URL_OPTIONS: Final = ("url", "base_url")
_MOST_FOLDERS: Final = 64
_NO_SCHEME: Final = r"(?i)(localhost|(\[[0-9a-f:]+\]|[\w.-]+):\d+)(/|$)"


def transport_for(
    target: Target, options: Mapping[str, Any], environment: Mapping[str, str]
) -> Transport:
    """Build the transport for a target of any kind.

    Args:
        target: A URL, a command, a script, a server in memory, or a transport. None: the
            option ``url`` or ``base_url``, else the variable `VARIABLE`.
        options: Options of the transport; those of the other kind are refused.
        environment: Where to look for `VARIABLE`.

    Raises:
        ValidationError: The target is of no known kind, or an option does not fit it.
    """
    options = dict(options)
    if target is None and not any(options.get(name) for name in _URL_OPTIONS):
        target = _target_from(environment)
    if target is None or _is_address(target, options):
        from holdfast._core.transports.http import Http

        url = options.pop("url", None) if target is None else target.strip()
        return Http(url, **_fitting(options, Http, target or url or options.get("base_url")))
    if isinstance(target, str | os.PathLike | list | tuple):
        return _stdio(target, options)
    if options:
        names = ", ".join(sorted(options))
        raise ValidationError(f"{names}: only for a command or a URL; {target!r} has its own")
    return _object_transport(target)


def _is_address(target: Target, options: Mapping[str, Any]) -> TypeGuard[str]:
    return isinstance(target, str) and (_is_url(target) or "base_url" in options)


def _target_from(environment: Mapping[str, str]) -> str:
    target = environment.get(VARIABLE)
    if not target:
        raise ValidationError(f"no target: give a command or a URL, or set {VARIABLE}")
    return target


def _object_transport(target: object) -> Transport:
    """Return the transport that an object is, or the one to a server in memory."""
    if hasattr(target, "open") and hasattr(target, "key"):
        return target  # type: ignore[return-value]
    from holdfast._core.transports.memory import Memory, SdkServer, lowlevel_server

    if hasattr(target, "accept"):
        return Memory(target)  # type: ignore[arg-type]
    if lowlevel_server(target) is not None:
        return Memory(SdkServer(target))
    raise ValidationError(
        f"target of type {type(target).__name__}: give a command (string or list), a path, a URL, "
        f"holdfast.Stdio, holdfast.Http, holdfast.testing.Peer, or nothing and set {VARIABLE}"
    )


def _is_url(target: str) -> bool:
    """Tell a URL from a command line; refuse a URL without a usable scheme."""
    first = target.strip().partition(" ")[0]
    if first.lower().startswith(("http:", "https:")):
        return True
    if "://" in first:
        raise ValidationError(f"target {target!r}: a URL begins with http:// or https://")
    if re.match(_NO_SCHEME, first) and not (os.path.exists(first) or _on_path(first)):
        raise ValidationError(f"target {target!r}: for a URL, write http:// or https:// before it")
    return False


def _stdio(target: str | os.PathLike[str] | Iterable[str], options: dict[str, Any]) -> Transport:
    from holdfast._core.transports.stdio import Stdio

    fitting = _fitting(options, Stdio, target)
    if isinstance(target, os.PathLike):
        target = _file_command(os.fspath(target))
    elif isinstance(target, str) and "args" not in options:
        target = _script_command(target) or target
    return Stdio(target, **fitting)


def _file_command(path: str) -> list[str]:
    """Return the command for a file: by its suffix, else the file itself."""
    interpreter = SCRIPTS.get(os.path.splitext(path)[1].lower())
    if interpreter is not None:
        return [*interpreter, path]
    return [path if os.path.dirname(path) else os.path.join(os.curdir, path)]


def _script_command(line: str) -> list[str] | None:
    """Return the command for a line that begins with a script instead of a program.

    A file without the suffix of a script never takes the place of a program on the PATH.
    """
    from holdfast._core.command_line import split_words

    try:
        words = [line] if os.path.isfile(line) else split_words(line)
    except ValueError:
        return None
    if not words or os.path.splitext(words[0])[1].lower() not in SCRIPTS or _on_path(words[0]):
        return None
    return _file_command(words[0]) + words[1:]


def _on_path(word: str) -> bool:
    from shutil import which

    return not os.path.dirname(word) and which(word) is not None


def is_bare_word(text: str) -> bool:
    """Return whether a text may be a server's name: no path, no URL, no command line."""
    separators = (os.sep, os.altsep or os.sep, "://")
    return text.split() == [text] and not any(separator in text for separator in separators)


def near_names(servers: Iterable[str], word: str, path: str) -> tuple[Hint, ...]:
    """Suggest what a word that is no program may have meant: a configured server, or a program."""
    from holdfast._core.text import close_matches

    programs: dict[str, None] = {}
    for folder in path.split(os.pathsep)[:_MOST_FOLDERS]:
        with suppress(OSError):
            programs.update(dict.fromkeys(os.listdir(folder or os.curdir)))
    near = [f"the configured server {name!r}" for name in close_matches(word, servers, 2)]
    near += [f"the program {name!r}" for name in close_matches(word, programs, 2, 0.75)]
    return (Hint("", f"did you mean {' or '.join(near)}?"),) if near else ()


def _fitting(options: dict[str, Any], kind: type, target: object) -> dict[str, Any]:
    """Return the options, or refuse those that this kind of target does not have."""
    if not options:
        return options
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    parameters = inspect.signature(kind).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind is keyword_only]
    for name in options:
        if name not in names:
            fitting = ", ".join(names)
            raise ValidationError(f"{name}=…: not an option for {target!r} (it takes {fitting})")
    return options
