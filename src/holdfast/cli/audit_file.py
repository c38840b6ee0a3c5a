"""A file with a line for each call of a tool: who, what, when, and how it ended."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from holdfast._core.files import open_for_append, reason
from holdfast.errors import ValidationError

if TYPE_CHECKING:
    from holdfast._core.observers.audit import AuditRecord


class AuditFile:
    """Appends records of calls to a file, as JSON lines. Secrets are hidden in them.

    Args:
        path: A file of this user; one that is not there is made, readable by nobody else.

    Raises:
        ValidationError: It cannot be written.
    """

    def __init__(self, path: str) -> None:
        try:
            self._descriptor = open_for_append(path)
        except (OSError, ValueError) as error:
            raise ValidationError(f"--audit {path}: {reason(error)}") from None
        self._path = path

    def __repr__(self) -> str:
        return f"<AuditFile {self._path}>"

    def __call__(self, record: AuditRecord) -> None:
        """Write one record."""
        os.write(self._descriptor, msgspec.json.encode(record) + b"\n")

    def close(self) -> None:
        os.close(self._descriptor)
