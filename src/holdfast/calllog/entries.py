"""Read a call log: each call with its outcome.

Lines without ``_`` fields are calls as well, so that calls can be pasted, or written by hand.
A log may hold several runs, one after the other or at once: a number that comes again belongs
to the call with the same name and arguments.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import UNSET, Struct

from holdfast._core.files import RefusedFileError, read_bytes, reason
from holdfast._core.text import visible
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.calllog import results
from holdfast.calllog.sinks import read_sidecar
from holdfast.errors import ValidationError
from holdfast.schema.types import canonical

Source: TypeAlias = (
    "str | os.PathLike[str] | Iterable[str | bytes | Mapping[str, Any]] | RecordedLog"
)
"""A file, a text of lines, the lines themselves, or a log that was read already."""

MOST_BYTES: Final = 512 * 1024 * 1024
"""The longest log that is read."""
MOST_SHOWN: Final = 10
"""Bad lines that are named in one error."""
_FIELDS: Final = frozenset({"name", "arguments"})


class TaskEntry(Struct, frozen=True):
    """A task, as a log has it: its id, and its status when the call ended."""

    id: str
    status: str


class Entry(Struct, kw_only=True):
    """One call and, as far as it was recorded, its outcome."""

    name: str
    arguments: dict[str, Any]
    line: int
    """The line number in the log; the first line is 1."""
    seq: int | None = None
    asked: bool = True
    """False if only the line after the call is there."""
    recorded: bool = False
    """It is a line of a log, not a call written by hand: it is sent unchanged."""
    ok: bool | None = None
    """None: how it ended was not recorded."""
    result: Any = UNSET
    """``_result`` as it stands in the log."""
    error: str | None = None
    ms: int | float | None = None
    task: TaskEntry | None = None
    """The task that the call became."""

    def __str__(self) -> str:
        return f"'{visible(self.name, 120)}' (line {self.line})"


class LogProblem(Struct, frozen=True):
    """A line that cannot be read, and why."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


class RecordedLog(list[Entry]):
    """The calls of a log, in the order in which they began."""

    def __init__(
        self,
        entries: Sequence[Entry] = (),
        problems: Sequence[LogProblem] = (),
        *,
        label: str = "the log",
        base: Path | None = None,
        folders: Sequence[Path] = (),
    ) -> None:
        super().__init__(entries)
        self.problems: list[LogProblem] = list(problems)
        """The lines that could not be read."""
        self.label = label
        self._base = Path.cwd() if base is None else base
        self._folders = (self._base, *folders)

    def __repr__(self) -> str:
        return f"<RecordedLog {self.label}: {len(self)} calls>"

    def result(self, entry: Entry) -> dict[str, Any]:
        """Return the tool result of a successful call, as it goes over the wire.

        Raises:
            NotRecorded: The log does not have it.
        """
        return results.wire(
            entry.result, lambda shown: read_sidecar(shown, self._base, self._folders)
        )

    def value(self, entry: Entry) -> Any:
        """Return the same in its shortest form; UNSET for a result without content."""
        return results.short(self.result(entry))


def read_log(
    source: Source,
    *,
    sidecars: str | os.PathLike[str] | None = None,
    strict: bool = True,
) -> RecordedLog:
    """Read a log, or any calls as JSON lines.

    Args:
        source: A path, lines, or one string of lines (it begins with ``{`` or has several).
        sidecars: The folder of sidecars that are not below the log's own folder.
        strict: Raise for lines that cannot be read; otherwise they are in ``problems``. A line
            truncated by a crash is never an error.

    Raises:
        ValidationError: The log, or a line of it, cannot be read.
    """
    if isinstance(source, RecordedLog):
        return source
    label, base, lines = _open(source)
    reading = _Reading()
    for number, line in enumerate(lines, 1):
        reading.take(number, line)
    problems = reading.problems
    bad = [one for one in problems if not reading.broke_off(lines[one.line - 1])]
    if bad and strict:
        shown = "\n".join(f"  {one}" for one in bad[:MOST_SHOWN])
        more = f"\n  and {len(bad) - MOST_SHOWN} more" if len(bad) > MOST_SHOWN else ""
        raise ValidationError(f"{label} has lines that are no calls:\n{shown}{more}", data=bad)
    folders = () if sidecars is None else (Path(os.path.abspath(base / sidecars)),)
    return RecordedLog(reading.entries, problems, label=label, base=base, folders=folders)


def _open(source: Any) -> tuple[str, Path, list[Any]]:
    """Return what to call a source, the folder that its paths start at, and its lines."""
    here = Path.cwd()
    if isinstance(source, str) and (source.lstrip().startswith("{") or "\n" in source):
        return "the log", here, list(io.StringIO(source))
    if not isinstance(source, str | os.PathLike):
        return "the log", here, list(source)
    path = Path(source)
    folder = path.absolute().parent
    try:
        # A link is followed inside its own folder only: a project's may not lead out of it.
        text = read_bytes(path, MOST_BYTES, inside=folder).decode("utf-8-sig")
    except RefusedFileError as error:
        raise ValidationError(f"{path} {error.strerror}") from None
    except OSError as error:
        raise ValidationError(f"{path} cannot be read: {reason(error)}") from None
    except UnicodeDecodeError as error:
        raise ValidationError(f"{path} is not UTF-8: {error.reason} at {error.start}") from None
    return str(path), Path(os.path.abspath(path)).parent, list(io.StringIO(text))


class _Reading:
    """The lines read so far; those after a call find those before it."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.problems: list[LogProblem] = []
        self._open: dict[tuple[int | None, bytes], list[Entry]] = {}

    def take(self, number: int, line: str | bytes | Mapping[str, Any]) -> None:
        """Read one line."""
        found: Any = None
        if isinstance(line, Mapping):
            found = dict(line)
        elif not line.strip():
            return
        try:
            if found is None:
                found = results.decode(line)  # type: ignore[arg-type]
            why = _fault(found)
        except MALFORMED as error:
            why = f"not JSON: {error}"
        if why:
            self.problems.append(LogProblem(number, why))
            return
        key = found.get("_seq"), canonical([found["name"], found["arguments"]])
        waiting = self._open.setdefault(key, [])
        after = found.get("_phase") == "after"
        if after and waiting:
            # The newest: an older one with the same number is of a run that broke off.
            entry = waiting.pop()
        else:
            entry = Entry(
                name=found["name"],
                arguments=found["arguments"],
                line=number,
                seq=found.get("_seq"),
                asked=not after,
                recorded="_phase" in found,
            )
            self.entries.append(entry)
            if entry.recorded and not after:
                waiting.append(entry)
        if after:
            _end(entry, found)

    def broke_off(self, line: Any) -> bool:
        """Return True if the line was truncated by a crash. In a sequence it is an error."""
        if not isinstance(line, str) or not any(entry.recorded for entry in self.entries):
            return False
        return line.startswith("{") and not line.rstrip().endswith("}")


def _end(entry: Entry, found: dict[str, Any]) -> None:
    """Fill in how a call ended."""
    entry.ok = found["_ok"]
    entry.result = found.get("_result", UNSET)
    error, ms, task = found.get("_error"), found.get("_ms"), found.get("_task")
    entry.error = None if error is None else str(error)
    entry.ms = ms if isinstance(ms, int | float) else None
    if isinstance(task, dict):
        entry.task = TaskEntry(str(task.get("id", "")), str(task.get("status", "")))


def _fault(found: Any) -> str:
    """Return why a line is no call; nothing if it is one. Arguments that are left out are empty."""
    if not isinstance(found, dict):
        return "not an object"
    if found.get("arguments") is None:
        found["arguments"] = {}
    for key in found:
        if key not in _FIELDS and not key.startswith("_"):
            return f"unknown field {visible(key, 40)!r}: a call has name and arguments"
    if not isinstance(found.get("name"), str):
        return '"name" must be a string'
    if not isinstance(found["arguments"], dict):
        return '"arguments" must be an object'
    if found.get("_phase", "before") not in ("before", "after"):
        return '"_phase" must be "before" or "after"'
    if type(found.get("_seq", 0)) is not int:
        return '"_seq" must be a number'
    if found.get("_phase") == "after" and not isinstance(found.get("_ok"), bool):
        return '"_ok" must be true or false'
    return ""
