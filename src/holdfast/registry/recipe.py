"""From an entry of a registry to an entry of the configuration: the command, and what it asks for.

The registry verifies who owns a name. It does not verify what the entry says, and its publisher may
want more than to be run: another package than the one that is shown, options for the launcher, a
variable that changes every program, the user's own variables in a header. No shell is involved, but
on Windows ``npx`` is a script of one. So nothing is repaired or escaped; what does not have the
plain form is refused, with the field and the reason:

    identifier    the name of a package, never a URL, a path, a range or an option
    version       exact: no "latest", no range, no tag that moves
    launcher      ours (npx, uvx, docker), with the few options of it that only pass things on
    arguments     a flag has the form of one; fixed values have no shell syntax, no ``${…}``
    variables     names of variables; none that changes how programs are loaded
    URLs          https, without a user; the host is shown
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from holdfast._core.text import has_unseen, visible
from holdfast.errors import ValidationError
from holdfast.registry.entries import (
    MOST_PACKAGES,
    Input,
    Package,
    RegistryListing,
    RegistryTransport,
)

Kind = Literal["npm", "pypi", "oci", "remote"]
KINDS: Final[tuple[Kind, ...]] = ("npm", "pypi", "oci", "remote")
LONGEST: Final = 2000
"""Characters of one value that a publisher sets."""
MOST_INPUTS: Final = 50

_PACKAGES: Final = {
    "npm": re.compile(r"(?:@[a-z0-9][a-z0-9._~-]*/)?[A-Za-z0-9][A-Za-z0-9._~-]*"),
    "pypi": re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"),
    "oci": re.compile(
        r"(?:[a-z0-9][a-z0-9.-]*(?::\d+)?/)?[a-z0-9][a-z0-9._/-]*"
        r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]*)?(?:@sha256:[a-f0-9]{64})?"
    ),
}
_VERSION: Final = re.compile(r"v?\d[0-9A-Za-z.+_!-]{0,127}")
_WILDCARD: Final = re.compile(r"(?:^|\.)[xX*](?:\.|$)")
_HOSTS: Final = {"npm": "npmjs", "pypi": "pypi"}
"""The name in the host of the public package registry: the launcher asks the one that its user has
set up, which is this or a mirror of it, and so cannot have a package of elsewhere."""
_PASSED_ON: Final = {
    "npm": ("-y", "--yes", "-q", "--quiet"),
    "pypi": ("-q", "--quiet"),
    "oci": (
        *("-i", "--interactive", "--rm", "--init", "-e", "--env", "-v", "--volume", "--mount"),
        *("-p", "--publish", "--name", "--network", "--platform", "--pull", "-w", "--workdir"),
    ),
}
"""Options of launchers that an entry may set; all are shown. Others change what is run, or open the
machine to it (``--privileged``, ``--registry``, ``--call``)."""
_ALWAYS: Final = ("-i", "--interactive", "--rm", "-y", "--yes")
_FLAG: Final = re.compile(r"--?[A-Za-z][A-Za-z0-9_.-]*")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER: Final = re.compile(r"[A-Za-z0-9-]+")
_EXPANSION: Final = re.compile(r"\$[({A-Za-z_]")
_SHELL: Final = re.compile(rf"[;&|<>`\"'^%\\!*?]|{_EXPANSION.pattern}")
_IN_COMMAND: Final = ("runtimeArguments", "packageArguments")
_LOADERS: Final = re.compile(
    r"(?i)(?:LD_|DYLD_|NODE_|PYTHON|BASH_|NPM_|PIP_|UV_|DOCKER_|GIT_|RUBY|PERL|JAVA_|DOTNET_).*"
    r"|PATH|ENV|IFS|HOME|SHELL|EDITOR|PAGER|(?:HTTPS?|ALL|NO)_PROXY|SSL_CERT_(?:FILE|DIR)|HOLDFAST_.*"
)
"""Variables that change how programs are found, loaded or connected."""
_BRACES: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.-]*)\}")


class UserInput(Struct, frozen=True, kw_only=True):
    """A value that the user gives."""

    name: str
    """What it is called: a variable, a flag, a header, a part of a URL."""
    description: str = ""
    is_required: bool = False
    is_secret: bool = False
    default: str | None = None
    choices: tuple[str, ...] = ()


Piece = str | UserInput
Word = tuple[Piece, ...]
"""A word of a command, a value or a URL: texts and what is asked for, in order."""


class Recipe(Struct, frozen=True, kw_only=True):
    """How a server is started or reached."""

    kind: Kind
    source: str
    """The package or the host, with its version, as it is shown."""
    command: tuple[Word, ...] = ()
    url: Word = ()
    transport: Literal["auto", "streamable", "sse"] = "auto"
    env: dict[str, Word] = {}
    headers: dict[str, Word] = {}

    def questions(self) -> list[UserInput]:
        """Return what the user is asked for, each once."""
        words = (*self.command, self.url, *self.env.values(), *self.headers.values())
        pieces = (piece for word in words for piece in word if isinstance(piece, UserInput))
        return list({piece.name: piece for piece in pieces}.values())


class RefusedEntryError(ValidationError):
    """An entry that is not used."""


def refuse(field: str, why: str, value: str = "") -> RefusedEntryError:
    """Return the error for a field of an entry."""
    text = f" {visible(value, 80)!r}" if value else ""
    return RefusedEntryError(f"{field}{text} {why}; not added")


def recipes(
    listing: RegistryListing, only: str | None = None
) -> Iterator[Recipe | RefusedEntryError]:
    """Yield how a server can be started, in the entry's order; refusals with their reasons."""
    makers: list[Callable[[], Recipe]] = [
        partial(from_package, package)
        for package in listing.packages[:MOST_PACKAGES]
        if only in (None, package.registry_type)
    ]
    if only in (None, "remote"):
        makers += [partial(from_remote, remote) for remote in listing.remotes[:MOST_PACKAGES]]
    for make in makers:
        try:
            yield make()
        except RefusedEntryError as error:
            yield error


# Packages


def from_package(package: Package) -> Recipe:
    """Return how a package is started. Raises RefusedEntryError."""
    kind = next((kind for kind in KINDS[:3] if kind == package.registry_type), None)
    if kind is None:
        why = f"is not one of {', '.join(KINDS[:3])}"
        raise refuse("registryType", why, package.registry_type or "none")
    if package.transport.type != "stdio":
        raise refuse("transport", "of a package must be stdio", package.transport.type)
    _check_package(kind, package)
    env = dict(_variables(package.environment_variables))
    options = _runtime(kind, package.runtime_arguments)
    source = _image(package) if kind == "oci" else f"{package.identifier}@{package.version}"
    # The name of a variable alone: docker takes its value from its own environment.
    passed: list[Word] = [(word,) for name in env for word in ("-e", name)]
    start: dict[str, list[Word]] = {
        "npm": [("npx",), ("-y",), *options],
        "pypi": [("uvx",), *options],
        "oci": [("docker",), ("run",), ("-i",), ("--rm",), *options, *passed],
    }
    arguments = _arguments("packageArguments", package.package_arguments)
    command = (*start[kind], (source,), *arguments)
    return Recipe(kind=kind, source=source, command=command, env=env)


def _image(package: Package) -> str:
    image = package.identifier
    is_bare = "@" not in image and ":" not in image.rpartition("/")[2]
    return f"{image}:{package.version}" if is_bare else image


def _check_package(kind: str, package: Package) -> None:
    """Refuse an identifier, a version or a source that does not say exactly what will run."""
    identifier = package.identifier
    if len(identifier) > LONGEST or not _PACKAGES[kind].fullmatch(identifier):
        raise refuse("identifier", f"is not the name of a package of {kind}", identifier)
    if kind == "oci":
        _check_image(identifier, package.version)
    elif not is_exact(package.version):
        raise refuse("version", "is not exact", package.version or "none")
    base = package.registry_base_url
    if base and kind in _HOSTS and _HOSTS[kind] not in _labels(base)[-2:-1]:
        raise refuse("registryBaseUrl", f"is not that of {kind}: npx and uvx ask another", base)


def _check_image(identifier: str, version: str) -> None:
    """Refuse an image without a digest whose tag, or version, is not exact."""
    tag = identifier.rpartition("/")[2].partition(":")[2]
    if "@sha256:" in identifier:
        return
    if tag and not is_exact(tag):
        raise refuse("identifier", "has a tag that is not exact", identifier)
    if not is_exact(tag or version):
        raise refuse("version", "is not exact", version or "none")


def _labels(url: str) -> list[str]:
    try:
        return (urlsplit(url).hostname or "").split(".")
    except ValueError:
        return []


def is_exact(version: str) -> bool:
    """Return whether this is one version: no range, no tag that moves."""
    return _VERSION.fullmatch(version) is not None and _WILDCARD.search(version) is None


def _runtime(kind: str, arguments: Sequence[Input]) -> list[Word]:
    """Return the options of a launcher, but those that are set anyway."""
    options: list[Word] = []
    for argument, word in zip(arguments, _arguments("runtimeArguments", arguments), strict=True):
        text = _beginning(word)
        flag = argument.name or text.partition("=")[0]
        if kind == "oci" and options and not flag.startswith("-"):
            options.append(word)  # the value of the option before it
        elif flag not in _PASSED_ON[kind]:
            raise refuse("runtimeArguments", "is not an option that an entry may set", flag)
        elif flag not in _ALWAYS:
            options.append(word)
    return options


def _beginning(word: Word) -> str:
    return word[0] if word and isinstance(word[0], str) else ""


def _arguments(field: str, arguments: Sequence[Input]) -> Iterator[Word]:
    """Yield the words of arguments: ``--flag=value``, ``--flag``, or the value alone."""
    _check_count(field, arguments)
    for argument in arguments:
        label = argument.name or argument.value_hint or "an argument"
        if argument.type != "named":
            yield _value(field, argument, label)
            continue
        if not _FLAG.fullmatch(argument.name):
            raise refuse(field, "is not a flag", argument.name or "none")
        is_switch = argument.value is None and argument.default is None
        if is_switch and not argument.is_required:
            yield (argument.name,)
        else:
            yield (f"{argument.name}=", *_value(field, argument, label))


# Values


def _variables(inputs: Sequence[Input]) -> Iterator[tuple[str, Word]]:
    field = "environmentVariables"
    _check_count(field, inputs)
    for item in inputs:
        if not _VARIABLE.fullmatch(item.name):
            raise refuse(field, "is not the name of a variable", item.name or "none")
        if _LOADERS.fullmatch(item.name):
            raise refuse(field, "changes how programs are loaded or connected", item.name)
        yield item.name, _value(field, item, item.name)


def _check_count(field: str, inputs: Sequence[Input]) -> None:
    if len(inputs) > MOST_INPUTS:
        raise refuse(field, f"has more than {MOST_INPUTS} entries")


def _value(field: str, item: Input, label: str) -> Word:
    """Return the value of an input: as the publisher sets it, or what is asked for."""
    if item.value is None:
        return (_question(field, item, label),)
    return tuple(_pieces(field, item.value, item.variables))


def _pieces(field: str, text: str, variables: dict[str, Input]) -> Iterator[Piece]:
    """Yield a text with ``{name}`` replaced by what is asked for."""
    for number, part in enumerate(_BRACES.split(_plain(field, text))):
        if number % 2 == 0:
            if part:
                yield part
        elif part in variables and variables[part].value is not None:
            yield _plain(field, variables[part].value or "")
        elif part in variables:
            yield _question(field, variables[part], part)
        else:
            yield f"{{{part}}}"


def _question(field: str, item: Input, label: str) -> UserInput:
    default = None if item.default is None else _plain(field, item.default)
    return UserInput(
        name=_plain(field, label),
        description=item.description[:LONGEST],
        is_required=item.is_required,
        is_secret=item.is_secret,
        default=default,
        choices=tuple(_plain(field, choice) for choice in item.choices[:MOST_INPUTS]),
    )


def _plain(field: str, text: str) -> str:
    """Return a text of the publisher's; refuse what is more than text somewhere."""
    if len(text) > LONGEST:
        raise refuse(field, f"has a value longer than {LONGEST:,} characters", text[:40])
    if has_unseen(text):
        raise refuse(field, "has characters in it that cannot be seen", text)
    if (_SHELL if field in _IN_COMMAND else _EXPANSION).search(text):
        # ``${TOKEN}`` in a header would send the user's variable to the publisher.
        raise refuse(field, "has shell syntax in it", text)
    return text


# Servers behind URLs


_WAYS: Final[dict[str, Literal["auto", "streamable", "sse"]]] = {
    "streamable-http": "streamable",
    "http": "auto",
    "sse": "sse",
}


def from_remote(remote: RegistryTransport) -> Recipe:
    """Return how a server behind a URL is reached. Raises RefusedEntryError."""
    if remote.type not in _WAYS:
        raise refuse("remotes", f"is not one of {', '.join(_WAYS)}", remote.type)
    host = _check_url(remote.url)
    return Recipe(
        kind="remote",
        source=host,
        url=tuple(_pieces("url", remote.url, remote.variables)),
        transport=_WAYS[remote.type],
        headers=dict(_headers(remote.headers)),
    )


def _headers(headers: Sequence[Input]) -> Iterator[tuple[str, Word]]:
    _check_count("headers", headers)
    for header in headers:
        if not _HEADER.fullmatch(header.name) or header.name.lower() in ("host", "origin"):
            raise refuse("headers", "is not a header that an entry may set", header.name or "none")
        yield header.name, _value("headers", header, header.name)


def _check_url(url: str) -> str:
    """Return the host of a URL; refuse one that does not say where it leads."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise refuse("url", "is not a URL", url) from None
    if not is_encrypted(parts.scheme, host):
        raise refuse("url", "must begin with https://", url)
    if not host or "{" in host or "@" in parts.netloc or has_unseen(url):
        raise refuse("url", "does not name its host plainly", url)
    return host if port is None else f"{host}:{port}"


def is_encrypted(scheme: str, host: str) -> bool:
    """Return whether nobody else reads along: https, or a program on this machine."""
    is_loopback = host in ("127.0.0.1", "localhost", "::1")
    return scheme == "https" or (scheme == "http" and is_loopback)
