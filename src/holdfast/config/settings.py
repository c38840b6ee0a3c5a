"""Holdfast's own settings of one server: what stands under ``"holdfast"`` in an entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from holdfast.errors import HoldfastError
from holdfast.policies import (
    Backoff,
    Limits,
    Replay,
    Results,
    Timeouts,
    ToolPolicy,
    Validate,
    WhenDown,
)

LockMode = Literal["block", "warn", "off"]


class LockSetting(Struct, frozen=True, kw_only=True):
    """A lock file, and what becomes of a server that does not fit it."""

    path: str
    mode: LockMode = "block"


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """None, or empty: as `holdfast.connect` has it by default."""

    timeouts: Timeouts | None = None
    tool_timeouts: dict[str, float] = {}
    backoff: Backoff | None = None
    limits: Limits | None = None
    protocol: str | None = None
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    validate: Validate | None = None
    results: Results | None = None
    when_down: WhenDown | None = None
    replay: Replay | None = None
    lock: LockSetting | None = None
    log: str | None = None
    inherit_env: tuple[str, ...] | bool = ()
    grace: float | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    proxy: str | None = None

    def tools(self) -> ToolPolicy | None:
        """The policy for tools; None if nothing is said about them."""
        said: dict[str, Any] = {
            "timeouts": self.tool_timeouts,
            "allow": self.allow,
            "deny": self.deny,
            "validate": self.validate,
            "results": self.results,
        }
        given = {name: value for name, value in said.items() if value not in (None, {}, ())}
        if self.allow is not None:
            given["allow"] = self.allow
        return ToolPolicy(**given) if given else None


_TYPES: Final[dict[str, Any]] = {
    "timeouts": Timeouts | float,
    "tool_timeouts": dict[str, float],
    "backoff": Backoff,
    "limits": Limits,
    "protocol": str,
    "allow": tuple[str, ...],
    "deny": tuple[str, ...],
    "validate": Validate,
    "results": Results,
    "when_down": WhenDown,
    "replay": Replay,
    "lock": LockSetting | str,
    "log": str,
    "inherit_env": tuple[str, ...] | bool,
    "grace": float,
    "ca": str,
    "cert": str,
    "key": str,
    "proxy": str,
}
SETTINGS: Final = tuple(_TYPES)


def read_one(name: str, value: Any) -> tuple[Any, list[str]]:
    """A setting's value, and the keys in it that mean nothing. Raises ValueError with the fault."""
    kind = _TYPES[name]
    try:
        found = msgspec.convert(value, type=kind)
        if name == "timeouts" and isinstance(found, float):
            found = Timeouts(request=found)
        if name == "lock" and isinstance(found, str):
            found = LockSetting(path=found)
        if name == "tool_timeouts":
            ToolPolicy(timeouts=found)
    except HoldfastError as error:
        raise ValueError(error.message) from None
    except msgspec.ValidationError as error:
        raise ValueError(str(error).partition(" - at ")[0].lower()) from None
    return found, _unknown(found, value)


def _unknown(found: Any, value: Any) -> list[str]:
    if not (isinstance(found, Struct) and isinstance(value, Mapping)):
        return []
    return [str(key) for key in value if key not in found.__struct_fields__]


def changed(settings: Settings) -> dict[str, Any]:
    """What was said, as plain values for a file; what was not said is left out."""
    return {
        name: _plain(getattr(settings, name))
        for name, default in zip(SETTINGS_FIELDS, SETTINGS_DEFAULTS, strict=True)
        if getattr(settings, name) != default
    }


def _plain(value: Any) -> Any:
    if isinstance(value, LockSetting) and value.mode == "block":
        return value.path
    if isinstance(value, Struct):
        default = type(value)() if not isinstance(value, LockSetting) else None
        return {
            name: getattr(value, name)
            for name in value.__struct_fields__
            if default is None or getattr(value, name) != getattr(default, name)
        }
    return list(value) if isinstance(value, tuple) else value


SETTINGS_FIELDS: Final = Settings.__struct_fields__
SETTINGS_DEFAULTS: Final = tuple(getattr(Settings(), name) for name in SETTINGS_FIELDS)
