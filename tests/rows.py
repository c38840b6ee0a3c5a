"""A table of rows as one test: it tries every row, and lists all that fail.

``@rows("word, is_plain", TABLE)`` stands where ``pytest.mark.parametrize`` would. A test costs some
milliseconds, in every process that collects it, whatever it does: what takes none itself is a row.
A row has no fixtures, so that rows share nothing.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Ids = Callable[[Any], object] | Iterable[object] | None


def rows(
    names: str | Sequence[str], table: Iterable[Any], *, ids: Ids = None
) -> Callable[[Callable[..., Any]], Callable[[], Any]]:
    """Give each row of a table to a test, as ``pytest.mark.parametrize`` does."""
    words = [word.strip() for word in names.split(",")] if isinstance(names, str) else list(names)
    cases = [tuple(row) if len(words) > 1 else (row,) for row in table]
    labels = _labels(cases, ids)

    def decorate(test: Callable[..., Any]) -> Callable[[], Any]:
        if set(inspect.signature(test).parameters) != set(words):
            raise TypeError(f"{test.__name__}: a row has no fixtures, and gives {', '.join(words)}")

        def run() -> None:
            failures = _Failures(len(cases))
            for label, case in zip(labels, cases, strict=True):
                with failures.of(label):
                    test(**dict(zip(words, case, strict=True)))
            failures.tell()

        async def run_async() -> None:
            failures = _Failures(len(cases))
            for label, case in zip(labels, cases, strict=True):
                with failures.of(label):
                    await test(**dict(zip(words, case, strict=True)))
            failures.tell()

        made = run_async if inspect.iscoroutinefunction(test) else run
        functools.update_wrapper(made, test)
        del made.__wrapped__  # type: ignore[union-attr]  # pytest would ask it for its arguments
        return made

    return decorate


def _labels(cases: list[tuple[Any, ...]], ids: Ids) -> list[str]:
    if callable(ids):
        return ["-".join(str(ids(value)) for value in case) for case in cases]
    if ids is not None:
        return [str(label) for label in ids]
    return [", ".join(f"{value!r:.200}" for value in case) for case in cases]


class _Failures:
    """The rows that failed, and how."""

    def __init__(self, tried: int) -> None:
        self._tried = tried
        self._label = ""
        self._texts: list[str] = []

    def of(self, label: str) -> _Failures:
        from holdfast._core.redact.known import KNOWN

        # As before every test: a secret of one row would be hidden in the texts of the next.
        KNOWN.forget()
        self._label = label
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, Exception | pytest.fail.Exception):
            return False
        story = "".join(traceback.format_exception(error))
        self._texts.append(f"{self._label}\n{story}")
        return True

    def tell(self) -> None:
        assert self._tried, "a table without rows"
        if self._texts:
            count = f"{len(self._texts)} of {self._tried} rows failed"
            pytest.fail("\n\n".join([count, *self._texts]), pytrace=False)
