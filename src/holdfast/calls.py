"""What calls take and give, beyond their results.

    from holdfast.calls import CallOptions, RunningCall

`Handlers` is in `holdfast` too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._lazy import lazily

# fmt: off
# isort: off
if TYPE_CHECKING:
    from holdfast._core.bulk.outcomes import RowOutcome
    from holdfast._core.calls.cached_reads import Listing
    from holdfast._core.calls.call_values import RunningCall
    from holdfast._core.calls.handlers import ApprovalRequest, Handlers, Notification
    from holdfast._core.calls.invocation import Invocation
    from holdfast._core.calls.options import CallOptions
    from holdfast._core.calls.pending import PendingCall
    from holdfast._core.engine.state import State
    from holdfast._core.observers.audit import AuditRecord
    from holdfast.schema.faults import SchemaFault

__all__ = [
    "ApprovalRequest", "AuditRecord", "CallOptions", "Handlers", "Invocation", "Listing",
    "Notification", "PendingCall", "RowOutcome", "RunningCall", "SchemaFault", "State",
]

_HOMES = {
    "_core.bulk.outcomes": ("RowOutcome",),
    "_core.calls.cached_reads": ("Listing",),
    "_core.calls.call_values": ("RunningCall",),
    "_core.calls.handlers": ("ApprovalRequest", "Handlers", "Notification"),
    "_core.calls.invocation": ("Invocation",),
    "_core.calls.options": ("CallOptions",),
    "_core.calls.pending": ("PendingCall",),
    "_core.engine.state": ("State",),
    "_core.observers.audit": ("AuditRecord",),
    "schema.faults": ("SchemaFault",),
}
# isort: on
# fmt: on

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES, root="holdfast")
