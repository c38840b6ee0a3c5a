"""Typed handles: a server's tools as methods, in a session, one call after the other.

handle      opening, calling and closing a handle, and the order of calls
sessions    sessions of the server, and adapters for them
drift       comparison with the tools that the handle was generated from
results     the methods of a namespace, what they return, and `UNSET`
sync        the same without ``await``
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._core.targets import Target
from holdfast._lazy import lazily
from holdfast.handles.drift import Drift, Registry
from holdfast.handles.handle import Handle, Log
from holdfast.handles.results import (
    UNSET,
    Calls,
    HandleResult,
    Namespace,
    StructuredList,
    StructuredObject,
    Unset,
)
from holdfast.handles.sessions import ParameterSession, SessionAdapter

if TYPE_CHECKING:
    from holdfast.handles.sync import SyncCalls, SyncHandle, SyncNamespace

__all__ = [
    "UNSET",
    "Calls",
    "Drift",
    "Handle",
    "HandleResult",
    "Log",
    "Namespace",
    "ParameterSession",
    "Registry",
    "SessionAdapter",
    "StructuredList",
    "StructuredObject",
    "SyncCalls",
    "SyncHandle",
    "SyncNamespace",
    "Target",
    "Unset",
]


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, {"sync": ("SyncCalls", "SyncHandle", "SyncNamespace")})
