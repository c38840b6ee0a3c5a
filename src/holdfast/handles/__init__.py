"""Typed handles: a server's tools as methods, in a session, one call after the other.

handle      the handle itself: opening, calling, closing
namespace   the tools of one namespace
queue       the order of the calls
session     one session over many connections
adapters    how sessions are opened, closed and named
drift       comparison with the tools that the handle was generated from
results     what methods return
single_flight  work that many wait for and that is done once
unset       arguments that were left out
sync        the same without ``await``
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._core.lazy import lazily
from holdfast._core.targets import Target
from holdfast.handles.adapters import ParameterSession, SessionAdapter
from holdfast.handles.drift import Drift, Registry
from holdfast.handles.handle import Handle, Log
from holdfast.handles.namespace import Calls, Namespace
from holdfast.handles.results import HandleResult, StructuredList, StructuredObject
from holdfast.handles.unset import UNSET, Unset

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
