"""The guard kills what we leave behind, and only that."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from holdfast._core.transports.orphans import Guard


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "600"], start_new_session=True)


@pytest.mark.req("L8")
def test_what_is_still_watched_is_killed_when_we_end() -> None:
    guard, ours, other = Guard(), sleeper(), sleeper()
    guard.watch(ours.pid)
    guard.watch(other.pid)
    guard.forget(other.pid)
    guard.stop()
    assert ours.wait(10) == -signal.SIGKILL
    assert other.poll() is None
    other.kill()
    other.wait()


@pytest.mark.req("L8")
def test_a_guard_that_was_killed_is_replaced() -> None:
    guard, ours = Guard(), sleeper()
    guard.watch(ours.pid)
    assert guard._shell is not None
    first = guard._shell
    first.kill()
    first.wait()
    guard.watch(ours.pid)
    guard.watch(ours.pid)
    assert guard._shell is not None
    assert guard._shell.pid != first.pid
    guard.stop()
    assert ours.wait(10) == -signal.SIGKILL


@pytest.mark.req("L8")
def test_nothing_is_started_only_to_forget() -> None:
    guard = Guard()
    guard.forget(1)
    guard.stop()
    assert guard._shell is None


@pytest.mark.req("L8")
def test_a_forked_child_leaves_the_guard_to_its_parent() -> None:
    guard, ours = Guard(), sleeper()
    guard.watch(ours.pid)
    if (child := os.fork()) == 0:
        os._exit(0 if guard._shell is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ours.poll() is None
    guard.stop()
    assert ours.wait(10) == -signal.SIGKILL
