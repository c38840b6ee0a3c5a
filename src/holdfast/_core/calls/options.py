"""The options of one call, in the one place that every face takes them from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict, TypeVar

from holdfast._core.calls.handlers import ProgressHandler
from holdfast.errors import ValidationError
from holdfast.types.lifecycle import Task


class CallOptions(TypedDict, total=False):
    """The options of one tool call.

    Attributes:
        timeout: Seconds without an answer, connecting and listing included. Progress starts it
            again, up to three times as long in all, or up to ``total_timeout``.
        total_timeout: Seconds for the whole call, progress or not.
        on_progress: Called with each `Progress` of this call, before its result is returned.
        meta: Entries for the ``_meta`` of the request.
        task: True lets the server answer with a task, which is then polled to its end:
            ``timeout`` holds for each poll, ``total_timeout`` for the whole. None: only where
            the tool can be called in no other way. False: never.
        once: The name of this one call, such as the number of an order. It runs at most once,
            over crashes, processes and machines: a second call with the same key and arguments
            gets the recorded outcome, and nothing is sent. See `holdfast.Ledger`.
        on_task: Called with the `Task` when there is one, and whenever it has changed: the place
            to store its id, with which `Client.resume_task` goes on in another process.
    """

    timeout: float | None
    total_timeout: float | None
    on_progress: ProgressHandler | None
    meta: Mapping[str, Any] | None
    task: bool | None
    once: str | None
    on_task: Callable[[Task], Any] | None


T = TypeVar("T")
NAMES: Final = frozenset(CallOptions.__annotations__)
_KINDS: Final[dict[str, tuple[Any, str]]] = {
    "on_progress": (Callable, "a function"),
    "meta": (Mapping, "a mapping"),
    "once": (str, "a string"),
    "task": (bool, "True, False or None"),
    "on_task": (Callable, "a function"),
}
"""The types of options; timeouts are checked by `seconds`."""


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse an option that does not exist, with the nearest one that does, or of a wrong type."""
    for name, value in options.items():
        if value is not None and name in _KINDS:
            require_type(name, value, *_KINDS[name])
        if name not in NAMES:
            from holdfast._core.text import close_matches

            near = close_matches(name, NAMES)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            text = f"there is no option {name!r} (there are: {', '.join(sorted(NAMES))}){hint}"
            raise TypeError(text)


def require_type(name: str, value: object, kind: Any = str, expected: str = "a string") -> None:
    """Refuse an argument of another type, by name and value."""
    if not isinstance(value, kind):
        raise ValidationError(f"{name}={value!r}: must be {expected}")


def require_toolset(toolset: T) -> T:
    """Refuse what is no toolset."""
    if not hasattr(toolset, "perform"):
        raise ValidationError(f"toolset={toolset!r}: must be a Toolset")
    return toolset
