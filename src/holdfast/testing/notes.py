"""Notes of a test's calls, for the report of its failure.

They are lines of a call log, so they can be pasted back as calls; only the last are retained.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from holdfast._core.observers.observer import End, ObservedCall
from holdfast.calllog.log import CallLog
from holdfast.policies import Redaction

MOST_LINES: Final = 200
MOST_CHARACTERS: Final = 64 * 1024
LONGEST_LINE: Final = 4 * 1024


class Notes:
    """The last lines of one client's log, within a bound."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._characters = 0
        self._dropped = 0
        # Synchronous clients write from another thread than the one that makes reports.
        self._lock = threading.Lock()

    def take(self, line: str) -> None:
        """Add a line, truncated if it is too long."""
        if len(line) > LONGEST_LINE:
            line = f"{line[: LONGEST_LINE - 1]}…"
        with self._lock:
            self._lines.append(line)
            self._characters += len(line)
            while len(self._lines) > MOST_LINES or self._characters > MOST_CHARACTERS:
                self._characters -= len(self._lines.popleft())
                self._dropped += 1

    def __str__(self) -> str:
        with self._lock:
            left_out = [f"({self._dropped} earlier lines left out)"] if self._dropped else []
            return "\n".join([*left_out, *self._lines])


class NotesLog(CallLog):
    """A call log in memory, and other logs of the same calls."""

    def __init__(self, redaction: Redaction, others: Sequence[CallLog] = ()) -> None:
        self.notes: Notes = Notes()
        self._others = others
        super().__init__(self.notes.take, redaction=redaction)

    def begin(self, call: ObservedCall) -> End | None:
        """Note the start of a request; return the function that notes its end."""
        found = [super().begin(call), *(other.begin(call) for other in self._others)]
        ends = [end for end in found if end is not None]

        def end() -> None:
            for one in ends:
                one()

        return end

    def close(self) -> None:
        """Close the other observers and this one."""
        for other in self._others:
            other.close()
        super().close()
