"""The marker for an omitted argument: not None, which can be sent."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Literal


class Unset(Enum):
    """The type of `UNSET`, which is its only value."""

    UNSET = "UNSET"

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""Left out: the argument is not sent, and the server's own default holds."""


def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were given."""
    return {name: value for name, value in arguments.items() if value is not UNSET}
