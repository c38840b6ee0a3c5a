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
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, field

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
    has_request: bool = True
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


class RecordedLog(list[Entry]):
    """The calls of a log, in the order in which they began."""

    def __init__(
        self, entries: Iterable[Entry], label: str, base: Path, folders: Sequence[Path] = ()
    ) -> None:
        super().__init__(entries)
        self.label = label
        self._base = base
        self._folders = (base, *folders)

    def __repr__(self) -> str:
        return f"<RecordedLog {self.label}: {len(self)} calls>"

    def result(self, entry: Entry) -> dict[str, Any]:
        """Return the tool result of a successful call, as it goes over the wire.

        Raises:
            NotRecorded: The log does not have it.
        """
        return results.wire(
            entry.result, lambda place: read_sidecar(place, self._base, self._folders)
        )

    def value(self, entry: Entry) -> Any:
        """Return the same in its shortest form; UNSET for a result without content."""
        return results.short(self.result(entry))


def read_log(source: Source, *, sidecars: str | os.PathLike[str] | None = None) -> RecordedLog:
    """Read a log, or any calls as JSON lines. A line truncated by a crash is skipped.

    Args:
        source: A path, lines, or one string of lines (it begins with ``{`` or has several).
        sidecars: The folder of sidecars that are not below the log's own folder.

    Raises:
        ValidationError: The log, or a line of it, cannot be read.
    """
    if isinstance(source, RecordedLog):
        return source
    label, base, lines = _open(source)
    reading = _Reading()
    faults = [
        (f"line {number}: {fault}", line)
        for number, line in enumerate(lines, 1)
        if (fault := reading.take(number, line))
    ]
    if any(entry.recorded for entry in reading.entries):  # in a sequence it is an error
        faults = [(why, line) for why, line in faults if not _broke_off(line)]
    if faults:
        raise _no_calls(label, [why for why, _ in faults])
    folders = () if sidecars is None else (Path(os.path.abspath(base / sidecars)),)
    return RecordedLog(reading.entries, label, base, folders)


def _no_calls(label: str, faults: list[str]) -> ValidationError:
    listing = "\n".join(f"  {why}" for why in faults[:MOST_SHOWN])
    rest = f"\n  and {len(faults) - MOST_SHOWN} more" if len(faults) > MOST_SHOWN else ""
    return ValidationError(f"{label} has lines that are no calls:\n{listing}{rest}", data=faults)


def _broke_off(line: Any) -> bool:
    """Return True if the line was truncated by a crash."""
    return isinstance(line, str) and line.startswith("{") and not line.rstrip().endswith("}")


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


class _Line(Struct):
    """The fields of a line that have a meaning here; their types are checked."""

    name: str
    arguments: dict[str, Any] | None = None
    phase: Literal["before", "after"] | None = field(name="_phase", default=None)
    seq: int | None = field(name="_seq", default=None)
    ok: bool | None = field(name="_ok", default=None)
    result: Any = field(name="_result", default=UNSET)
    error: Any = field(name="_error", default=None)
    ms: Any = field(name="_ms", default=None)
    task: Any = field(name="_task", default=None)


class _Reading:
    """The lines read so far; those after a call find those before it."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._open: dict[tuple[int | None, bytes], list[Entry]] = {}

    def take(self, number: int, line: str | bytes | Mapping[str, Any]) -> str:
        """Read one line; return what is wrong with it, if anything is."""
        if not isinstance(line, Mapping) and not line.strip():
            return ""
        try:
            fields = _read_line(line)
        except msgspec.ValidationError as error:
            return str(error)
        except MALFORMED as error:
            return f"not JSON: {error}"
        entry = self._entry(number, fields)
        if fields.phase == "after":
            _take_outcome(entry, fields)
        return ""

    def _entry(self, number: int, fields: _Line) -> Entry:
        """Return the entry that a line belongs to, a new one if it begins a call."""
        arguments, after = fields.arguments or {}, fields.phase == "after"
        waiting = self._open.setdefault((fields.seq, canonical([fields.name, arguments])), [])
        if after and waiting:
            # The newest: an older one with the same number is of a run that broke off.
            return waiting.pop()
        entry = Entry(
            name=fields.name,
            arguments=arguments,
            line=number,
            seq=fields.seq,
            has_request=not after,
            recorded=fields.phase is not None,
        )
        self.entries.append(entry)
        if fields.phase == "before":
            waiting.append(entry)
        return entry


def _take_outcome(entry: Entry, fields: _Line) -> None:
    entry.ok, entry.result = fields.ok, fields.result
    entry.error = None if fields.error is None else str(fields.error)
    entry.ms = fields.ms if isinstance(fields.ms, int | float) else None
    if isinstance(fields.task, dict):
        entry.task = TaskEntry(*(str(fields.task.get(fact, "")) for fact in ("id", "status")))


def _read_line(line: str | bytes | Mapping[str, Any]) -> _Line:
    """Return the fields of a line, or raise what is wrong with it."""
    if not isinstance(line, Mapping):
        line = results.decode(line if isinstance(line, str) else line.decode())
    for key in line if isinstance(line, dict) else ():
        if key not in ("name", "arguments") and not key.startswith("_"):
            text = f"unknown field {visible(key, 40)!r}: a call has name and arguments"
            raise msgspec.ValidationError(text)
    fields = msgspec.convert(line, _Line)
    if fields.phase == "after" and fields.ok is None:
        raise msgspec.ValidationError('"_ok" must be true or false')
    return fields
