"""The call log: calls written down, read back, sent again, served and compared.

log          `CallLog`: two lines a call, the intent and the result
  results    the lines, and results as they show them
  sinks      files, streams and functions that take lines; files for long results
entries      a log read back
replay       the calls of a log, or of a stored sequence, sent again
mock         a log as a server
compare      the differences between two calls, or two logs
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._lazy import lazily

if TYPE_CHECKING:
    from holdfast.calllog.log import CallLog as CallLog
    from holdfast.calllog.mock import MockServer as MockServer

__all__ = ["CallLog", "MockServer"]

_HOMES = {"log": ("CallLog",), "mock": ("MockServer",)}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
