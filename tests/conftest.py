"""What holds for every test: it ends, it is not skipped when all must run, its cases repeat."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import inspect
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

from tests.posix import is_left_out
from tests.skipping import SkippingLoop
from tests.thorough import THOROUGH, is_only_thorough

# No test reads or writes the logins of whoever runs it.
os.environ["HOLDFAST_AUTH_STORE"] = "memory"

# Whoever starts the tests in the background has them, and their children, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REQUIRE_ALL = os.environ.get("HOLDFAST_REQUIRE_ALL") == "1"

# Property tests

settings.register_profile(
    "default", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if REQUIRE_ALL or os.environ.get("CI") else "default")

# Each worker begins with other files: what one has compiled, the others read

WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    if isinstance(collector, pytest.Dir):
        start = len(report.result) * WORKER // WORKERS
        report.result = report.result[start:] + report.result[:start]
    return report


# What takes long is begun first: nobody waits for it at the end


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not THOROUGH and (whole := [item for item in items if is_only_thorough(item)]):
        config.hook.pytest_deselected(items=whole)
        items[:] = [item for item in items if not is_only_thorough(item)]
    if WORKERS > 1:
        items.sort(key=lambda item: item.path)  # the same order for every worker
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection() -> None:
    # What is collected stays: to look through it for garbage takes a quarter of the time.
    gc.disable()


def pytest_collection_finish() -> None:
    # The garbage collector would look through thousands of tests each time that one asks for it.
    gc.collect()
    gc.freeze()
    gc.enable()


# On Windows, what needs POSIX is left out: some of it could not even be imported


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if is_left_out(collection_path, sys.platform) else None


def pytest_report_header() -> str | None:
    if sys.platform != "win32":
        return None
    files = [path for path in Path(__file__).parent.rglob("*.py") if is_left_out(path, "win32")]
    return f"{len(files)} files are left out, for they need POSIX: tests/posix.py says why"


# No deadline passes because the machine is slow


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"skipping": SkippingLoop}


# No skips where everything must run (HOLDFAST_REQUIRE_ALL=1)


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not (REQUIRE_ALL and report.skipped) or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"HOLDFAST_REQUIRE_ALL=1 allows no skips, and this one was: {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


# Each test has its own secrets


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    """Undo what a command with ``--verbose`` does to the log of the process."""
    logger = logging.getLogger("holdfast")
    level, handlers = logger.level, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests() -> None:
    """Forget what earlier tests gave as secrets: it would be hidden in the texts of this one."""
    from holdfast._core.redact.known import KNOWN

    KNOWN.forget()


# A hung test fails and shows where it stands

HANG_SECONDS = 240.0
"""Long: a machine that others use as well is slow, and not every slow test hangs."""
HANG_REPEAT = 1.0
"""The alarm rings again: a task of the test may have swallowed the first one."""
LAST_RESORT = 60.0
"""Past the alarm by so much, Python itself is stuck in a C call: dump the stacks and exit."""

_real_stderr = pytest.StashKey[int]()
_hung = pytest.StashKey[bool]()


class HungTest(BaseException):
    """Nobody's Exception: neither the code under test nor hypothesis may catch it and go on."""


class StillHungTest(SystemExit):
    """The second ring. uvloop lets nothing but this through; hypothesis would retry it, though."""


@contextmanager
def hang_guard(
    item: pytest.Item, failure: Callable[[str], BaseException] = pytest.fail.Exception
) -> Iterator[None]:
    """Fail what takes longer than the test's ``hang(seconds)``; one phase of a test at a time."""
    marker = item.get_closest_marker("hang")
    seconds = float(marker.args[0]) if marker else HANG_SECONDS
    if item.config.getoption("usepdb") or not _can_ring():
        yield
        return

    first = True

    def ring(_signal: int, frame: FrameType | None) -> None:
        nonlocal first
        fail, first = (failure if first else StillHungTest), False
        item.stash[_hung] = True
        raise fail(f"still running after {seconds:g} s\n\n{where_everything_stands(frame)}")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, HANG_REPEAT)
    faulthandler.dump_traceback_later(
        seconds + LAST_RESORT, exit=True, file=item.config.stash[_real_stderr]
    )
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


def _can_ring() -> bool:
    on_main = threading.current_thread() is threading.main_thread()
    return on_main and hasattr(signal, "setitimer")


def where_everything_stands(frame: FrameType | None) -> str:
    """The stacks of all threads, and of the tasks of the loop that runs here."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames() | {threading.get_ident(): frame}
    parts = [
        f"thread {names.get(ident, ident)}\n{''.join(traceback.format_stack(stack))}"
        for ident, stack in frames.items()
        if stack is not None
    ]
    loop = asyncio._get_running_loop()
    parts += [
        f"task {task.get_name()}\n{''.join(_awaits(task.get_coro()))}"
        for task in (asyncio.all_tasks(loop) if loop else ())
    ]
    return "\n".join(parts)


def _awaits(waiting: object) -> Iterator[str]:
    """The frames of a suspended coroutine, from the outermost await to the innermost."""
    while waiting is not None:
        if type(waiting).__name__.startswith("async_generator_a"):  # asend() hides its generator
            waiting = next(filter(inspect.isasyncgen, gc.get_referents(waiting)), None)
        frame = _first(waiting, "cr_frame", "ag_frame", "gi_frame")
        if isinstance(frame, FrameType):
            yield from traceback.format_stack(frame, limit=1)
        waiting = _first(waiting, "cr_await", "ag_await", "gi_yieldfrom")


def _first(owner: object, *names: str) -> object:
    return next((value for name in names if (value := getattr(owner, name, None))), None)


def pytest_configure(config: pytest.Config) -> None:
    # Output is not captured yet: this is the stderr that a person or a CI log sees.
    config.stash[_real_stderr] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[_real_stderr])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    with hang_guard(item):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    with hang_guard(item, HungTest):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    _sweep(item)
    with hang_guard(item):
        return (yield)


def _sweep(item: pytest.Item) -> None:
    """Finalise now what a hung test left open: its warnings are not its neighbour's."""
    if item.stash.get(_hung, False):
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            sys.__dict__.pop(name, None)
        gc.collect()
