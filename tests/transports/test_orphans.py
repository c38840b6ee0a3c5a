"""The guard kills what we leave behind, and only that."""

from __future__ import annotations

import gc
import os
import signal
import subprocess

import pytest

from holdfast._core.transports import orphans
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
    assert ours.wait(60) == -signal.SIGKILL
    assert other.poll() is None
    other.kill()
    other.wait()


@pytest.mark.req("L8")
def test_a_guard_that_is_slow_to_end_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "END_WAIT", 0.01)
    guard, ours = Guard(), sleeper()
    guard.watch(ours.pid)
    assert guard._shell is not None
    shell = guard._shell.pid
    os.kill(shell, signal.SIGSTOP)
    guard.stop()
    gc.collect()  # a warning that it still runs would be an error here
    os.kill(shell, signal.SIGCONT)
    assert ours.wait(60) == -signal.SIGKILL
    os.waitpid(shell, 0)


@pytest.mark.req("L8")
def test_a_guard_that_was_killed_is_replaced() -> None:
    guard, ours, later = Guard(), sleeper(), sleeper()
    guard.watch(ours.pid)
    assert guard._shell is not None
    first = guard._shell
    first.kill()
    first.wait()
    guard.watch(later.pid)
    guard.watch(later.pid)
    assert guard._shell is not None
    assert guard._shell.pid != first.pid
    guard.stop()
    assert ours.wait(60) == -signal.SIGKILL
    assert later.wait(60) == -signal.SIGKILL


@pytest.mark.req("L8")
def test_the_list_is_a_file_where_the_kernel_has_none_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    guard, ours = Guard(), sleeper()
    guard.watch(ours.pid)
    guard.stop()
    assert ours.wait(60) == -signal.SIGKILL


@pytest.mark.req("L8")
def test_the_place_of_a_server_that_ended_is_used_again() -> None:
    guard, servers = Guard(), [sleeper() for _ in range(3)]
    for one in servers:
        guard.watch(one.pid)
    guard.forget(servers[1].pid)
    later = sleeper()
    guard.watch(later.pid)
    assert sorted(guard._slots.values()) == [0, 1, 2]
    guard.stop()
    for one in (servers[0], servers[2], later):
        assert one.wait(60) == -signal.SIGKILL
    assert servers[1].poll() is None
    servers[1].kill()
    servers[1].wait()


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
    assert ours.wait(60) == -signal.SIGKILL
