"""From an entry to a client: may it be used, and what do its variables hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from holdfast.config import files
from holdfast.config.entry import Manner, ServerEntry, absolute
from holdfast.config.envfile import EnvFile
from holdfast.config.expansion import Expander, ExpansionError, Prompt
from holdfast.config.files import UnreadableError
from holdfast.config.problems import Problem, visible
from holdfast.config.settings import LockSetting, Settings
from holdfast.errors import StateError, ValidationError

if TYPE_CHECKING:
    from holdfast.client import Client


class Resolved(Struct, frozen=True, kw_only=True):
    """An entry that is ready: its strings are final, its paths absolute."""

    name: str
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    transport: Manner = "auto"
    settings: Settings = Settings()

    def __repr__(self) -> str:
        return f"<Resolved {self.name}>"

    @property
    def target(self) -> str | list[str]:
        """What `holdfast.connect` takes first."""
        return list(self.command) if self.url is None else self.url

    def options(self) -> dict[str, Any]:
        """What `holdfast.connect` takes besides; only what the configuration says."""
        settings = self.settings
        policies = {
            "timeouts": settings.timeouts,
            "backoff": settings.backoff,
            "limits": settings.limits,
            "tools": settings.tools(),
            "protocol": settings.protocol,
            "when_down": settings.when_down,
            "replay": settings.replay,
            "lock": _lock(settings.lock),
            "log": settings.log,
        }
        own = self._command_options() if self.url is None else self._url_options()
        said = {name: value for name, value in (policies | own).items() if value is not None}
        return {"name": self.name, **said}

    def _command_options(self) -> dict[str, Any]:
        settings = self.settings
        return {
            "env": self.env or None,
            "cwd": self.cwd,
            "inherit_env": settings.inherit_env or None,
            "grace": settings.grace,
        }

    def _url_options(self) -> dict[str, Any]:
        settings = self.settings
        key = settings.key
        return {
            "headers": self.headers or None,
            "transport": None if self.transport == "auto" else self.transport,
            "ca": settings.ca,
            "cert": settings.cert if key is None else (settings.cert, key),
            "proxy": settings.proxy,
        }


def _lock(lock: LockSetting | None) -> Any:
    if lock is None or lock.mode == "block":
        return None if lock is None else lock.path
    from holdfast.lock.guard import Lock

    return Lock(lock.path, mode=lock.mode)


def admit(
    entry: ServerEntry, environ: Mapping[str, str] | None = None, *, prompt: Prompt | None = None
) -> Resolved:
    """A resolved entry, if it is sound, switched on and trusted; in this order, then expanded.

    What is checked is what is used: the entry is not read again, and its file of variables is
    read once for both.
    """
    from holdfast.config import trust

    if entry.errors:
        # A warning may be the reason: a misspelt field leaves another one missing.
        raise _refusal(sorted(entry.problems, key=lambda problem: problem.level))
    if entry.disabled:
        name = visible(entry.name)
        raise StateError(f"server {name!r} is disabled in {visible(entry.source.file)}")
    variables = read_env_file(entry, environ)
    trust.require(entry, variables)
    return _Resolution(entry, environ, prompt).result(variables)


def client_for(resolved: Resolved, overrides: Mapping[str, Any]) -> Client:
    from holdfast._connect import connect

    return connect(resolved.target, **{**resolved.options(), **overrides})


def resolve(
    entry: ServerEntry, environ: Mapping[str, str] | None = None, *, prompt: Prompt | None = None
) -> Resolved:
    return _Resolution(entry, environ, prompt).result(read_env_file(entry, environ))


def read_env_file(entry: ServerEntry, environ: Mapping[str, str] | None = None) -> EnvFile | None:
    """The file of variables that an entry names, as it is now; None if it names none."""
    if entry.env_file is None:
        return None
    path = _Resolution(entry, environ, None).path("envFile", entry.env_file)
    if path is None:
        return EnvFile(path=entry.env_file, fault="cannot be found")
    try:
        data = files.read(path)
    except UnreadableError as error:
        return EnvFile(path=path, fault=str(error))
    return EnvFile(path=path, data=data, fault=None if data is not None else "does not exist")


class _Resolution:
    """One walk over an entry; every fault is kept, so that all can be mended at once."""

    def __init__(
        self, entry: ServerEntry, environ: Mapping[str, str] | None, prompt: Prompt | None
    ) -> None:
        source = entry.source
        self._entry = entry
        self._home = str(source.around.home)
        self._faults: list[Problem] = []
        self._expander = Expander(
            source.around.environ if environ is None else environ,
            workspace=source.workspace,
            home=self._home,
            inputs=entry.inputs,
            prompt=prompt,
        )

    def result(self, env_file: EnvFile | None) -> Resolved:
        entry = self._entry
        variables = self._env_file(env_file) | self._named("env", entry.env)
        found = Resolved(
            name=entry.name,
            command=self._command(),
            env=variables if entry.url is None else {},
            cwd=self._cwd(),
            url=None if entry.url is None else self.text("url", entry.url),
            headers=self._named("headers", entry.headers),
            transport=entry.transport,
            settings=self._settings(entry.settings),
        )
        if self._faults:
            raise _refusal(self._faults)
        return found

    def text(self, field: str, text: str) -> str:
        try:
            return self._expander.expand(text)
        except ExpansionError as error:
            self._faults.append(_problem(self._entry, field, str(error)))
            return ""

    def path(self, field: str, text: str | None) -> str | None:
        if text is None:
            return None
        before = len(self._faults)
        path = self.text(field, text)
        if len(self._faults) > before:
            return None
        return absolute(path, self._entry.source.base, self._home)

    def _command(self) -> tuple[str, ...]:
        if self._entry.command is None:
            return ()
        program = self.text("command", self._entry.command)
        if program.startswith("~/"):
            program = self._home + program[1:]
        return (program, *self._numbered("args", self._entry.args))

    def _cwd(self) -> str | None:
        if self._entry.url is not None:
            return None
        if self._entry.cwd is None:
            # A project's commands are written as seen from its folder, wherever we are in it.
            source = self._entry.source
            return source.workspace if source.scope == "project" else None
        return self.path("cwd", self._entry.cwd)

    def _env_file(self, file: EnvFile | None) -> dict[str, str]:
        if file is None or self.path("envFile", self._entry.env_file) is None:
            return {}
        try:
            return file.variables()
        except ValueError as error:
            fault = f"{visible(file.path)} {error}"
            self._faults.append(_problem(self._entry, "envFile", fault))
            return {}

    def _settings(self, said: Settings) -> Settings:
        from msgspec.structs import replace

        lock = said.lock
        inherited = said.inherit_env
        path = None if lock is None else self.path("lock", lock.path)
        return replace(
            said,
            protocol=None if said.protocol is None else self.text("protocol", said.protocol),
            allow=None if said.allow is None else self._numbered("allow", said.allow),
            deny=self._numbered("deny", said.deny),
            lock=None if lock is None or path is None else replace(lock, path=path),
            log=self.path("log", said.log),
            inherit_env=inherited
            if isinstance(inherited, bool)
            else self._numbered("inherit_env", inherited),
            ca=self.path("ca", said.ca),
            cert=self.path("cert", said.cert),
            key=self.path("key", said.key),
            proxy=None if said.proxy is None else self.text("proxy", said.proxy),
        )

    def _numbered(self, field: str, values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.text(f"{field}[{place}]", text) for place, text in enumerate(values))

    def _named(self, field: str, values: Mapping[str, str]) -> dict[str, str]:
        return {name: self.text(f"{field}.{name}", text) for name, text in values.items()}


def _problem(entry: ServerEntry, field: str, message: str) -> Problem:
    return Problem(file=entry.source.file, server=entry.name, field=field, message=message)


def _refusal(problems: list[Problem] | tuple[Problem, ...]) -> ValidationError:
    """One error for all faults; ``data`` has them one by one."""
    return ValidationError("\n".join(str(problem) for problem in problems), data=tuple(problems))
