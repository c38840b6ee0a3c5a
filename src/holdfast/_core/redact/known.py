"""The secrets that this process holds, so that none of them is shown.

Whatever holds a secret (a transport with its variables and headers, a login, a call with a secret
argument) announces it here by `hold`. Every place that shows text searches for all of them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from threading import RLock
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

if TYPE_CHECKING:
    from holdfast._core.redact.needles import NeedleIndex

# Why one register for the whole process, and not one for each client?
#
# A secret leaves by ways that no client sees: an error that was raised by one client, wrapped by
# the application, and logged an hour later; a line of the log; a span; the `repr` of a transport
# that never was connected; the error of an authorization server that repeats the secret of a
# client which another account uses. An error that carried its client's redactor would be pickled,
# copied (`again`), chained and shown without it, and each new sink would have to be told. With one
# register a sink needs nothing but the text, and a value that is secret for one client is secret
# in the errors of all of them.
#
# What it must not do is cost anything while calls succeed. So announcing a secret is an append to
# a queue: neither are the values judged, nor are their encodings made, nor are the modules for
# that imported, before the first text is searched. `settle` does it then, once for each value.
#
# Lifetime. A hold ends with its owner, by a weak reference: there is no `close` that could be
# forgotten. But errors outlive their clients: a traceback may have been cleared, a record waits in
# a queue, the sidecar of a call log is written by a thread after the call. So the values of owners
# that are gone stay known for a while, the last `PAST` of them; older ones are forgotten, and the
# register of a service with a million short-lived clients stays small. Tokens are renewed: the old
# one is a value of a login that is gone, and an error that repeats it finds it here.
#
# Threads. The callback of a weak reference runs wherever the collector happens to run, also inside
# of `settle`, so it must not wait for a lock: it appends to a deque, which is atomic, as `hold`
# does. The lock can be taken twice by one thread, for the collector may also run a finalizer that
# logs, and the log's filter settles. Only `settle` and `note` change the index, under the lock;
# searches read snapshots of it. Every search settles first: a value that was announced before a
# text is shown is found in it. So a search waits, too, while another thread reads what arrived.

PAST: Final = 1024
"""Holds that stay known after their owners are gone."""
MOST_WAITING: Final = 256
"""Holds that wait to be read: reading keeps the values alone, not the arguments of a call."""

Values = Callable[[], Iterable[str]]


def secrets_of(kind: str, *things: Any) -> Values:
    """Return a function that reads the secrets of things, by ``given.of_…`` of that kind.

    By name: `given` loads when the first text is searched, not when the first client is made.
    """

    def read() -> Iterable[str]:
        from holdfast._core.redact import given

        secrets: Iterable[str] = getattr(given, f"of_{kind}")(*things)
        return (secret for secret in secrets if not given.is_ordinary_word(secret))

    return read


class _Hold(ref[Any]):
    """Some secrets and, weakly, what holds them; ``read`` must not refer to the owner."""

    __slots__ = ("read", "values")

    read: Values
    values: frozenset[str]


class Holder:
    """An owner for values that belong to nothing else, such as the headers that a function gave."""

    __slots__ = ("__weakref__",)


class UnreadSecrets:
    """Stands for the index while a secret cannot be read: nothing is shown.

    A process that has used up its descriptors cannot load the modules that read it, and that is
    when errors are shown.
    """

    longest: Final = 0

    def __init__(self, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or type(error).__name__
        self._text = f"(not shown: it cannot be searched for secrets: {reason})"

    def hide(self, text: str) -> str:
        return self._text if text else text

    def hide_in(self, value: Any) -> Any:
        return value if value is None or isinstance(value, bool | int | float) else self._text

    def spans(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]

    def may_have_part(self, text: str) -> bool:
        return True


class KnownSecrets:
    """A register of secrets, each known as long as its owner lives, and for a while after."""

    def __init__(self) -> None:
        self._arrived: deque[_Hold] = deque()
        self._ended: deque[ref[Any]] = deque()
        self._holds: dict[int, _Hold] = {}
        self._past: deque[frozenset[str]] = deque()
        self._is_settling = False
        self._lock = RLock()
        self._index: NeedleIndex | None = None
        self._logs_are_filtered = False
        self.version: int = 0
        """Another one whenever other secrets are known."""

    def hold(self, owner: object, read: Values) -> None:
        """Know what ``read`` returns while ``owner`` lives; it is called once, when needed."""
        held = _Hold(owner, self._ended.append)
        held.read = read
        self._arrived.append(held)
        if not self._logs_are_filtered:
            self._filter_logs()
        if len(self._arrived) > MOST_WAITING:
            self.settle()

    def held(self, read: Values) -> Holder:
        """Know what ``read`` returns as long as the holder that is returned is kept."""
        holder = Holder()
        self.hold(holder, read)
        return holder

    def note(self, *values: str) -> None:
        """Know values that nothing holds, such as a token that a function returned."""
        with self._lock:
            self._retire(self._added(values))
        if not self._logs_are_filtered:
            self._filter_logs()

    def forget(self) -> None:
        """Forget all secrets: for tests, each of which has its own."""
        with self._lock:
            self._arrived.clear()
            self._ended.clear()
            self._holds.clear()
            self._past.clear()
            self._index = None
            self.version += 1

    def hide(self, text: str) -> str:
        """Return a text without the known secrets, however they are wrapped."""
        index = self.settle()
        return text if index is None else index.hide(text)

    def reveals(self, text: str) -> bool:
        """Return True if a text has a known secret in it."""
        index = self.settle()
        return index is not None and bool(index.spans(text))

    def hide_in(self, value: Any) -> Any:
        """Return a value without known secrets; the same object if there are none in it."""
        index = self.settle()
        return value if index is None else index.hide_in(value)

    @property
    def longest(self) -> int:
        """The characters that the longest secret may take, escaped."""
        index = self.settle()
        return 0 if index is None else index.longest

    def settle(self) -> NeedleIndex | UnreadSecrets | None:
        """Bring the index up to date; return it, or None if nothing is known."""
        if self._arrived or self._ended or self._is_settling:
            with self._lock:
                self._is_settling = True
                try:
                    self._read_arrived()
                except (OSError, ImportError) as error:
                    self.version += 1  # what is hidden now may be shown later
                    return UnreadSecrets(error)
                finally:
                    self._is_settling = False
        return self._index or None

    def _read_arrived(self) -> None:
        while self._arrived:
            held = self._arrived.popleft()
            try:
                held.values = self._added(held.read())
            except BaseException:
                # Without descriptors no module can be loaded: the secret is not forgotten for that.
                self._arrived.appendleft(held)
                raise
            if held.values:
                self._holds[id(held)] = held
        while self._ended:
            ended = self._holds.pop(id(self._ended.popleft()), None)
            if ended is not None:
                self._retire(ended.values)

    def _added(self, values: Iterable[str]) -> frozenset[str]:
        secrets = frozenset(values)
        if secrets and self._index is None:
            from holdfast._core.redact.needles import NeedleIndex

            self._index = NeedleIndex()
        if self._index is not None:
            for secret in secrets:
                self._index.add(secret)
        self.version += bool(secrets)
        return secrets

    def _retire(self, values: frozenset[str]) -> None:
        self._past.append(values)
        if len(self._past) > PAST and self._index is not None:
            for secret in self._past.popleft():
                self._index.discard(secret)

    def _filter_logs(self) -> None:
        self._logs_are_filtered = True
        for name in ("holdfast", "holdfast.audit"):
            logging.getLogger(name).addFilter(self._hide_in_record)

    def _hide_in_record(self, record: logging.LogRecord) -> bool:
        """Hide known secrets in a record of our logs; a filter of the standard library."""
        try:
            message = record.getMessage()
        except Exception:
            return True  # a handler reports what is wrong with the arguments
        hidden = self.hide(message)
        if hidden != message:
            record.msg, record.args = hidden, ()
        if record.exc_info and not record.exc_text:
            trace = logging.Formatter().formatException(record.exc_info)
            hidden = self.hide(trace)
            if hidden != trace:
                # Formatters take the text where there is one.
                record.exc_text = hidden
        return True


KNOWN: Final = KnownSecrets()
"""The register of this process."""
