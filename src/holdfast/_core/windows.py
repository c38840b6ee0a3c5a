"""What Windows has and Python does not reach: jobs, consoles, threads that wait.

Everything by ``ctypes``: the package needs no other to run there.

A job, and why the order matters
--------------------------------

A job is a set of processes that end together: whatever a process in it starts is in it as well,
and the end of the last handle to it ends them all. So a job is what a process group is elsewhere,
and the guard against orphans too: the handle is ours alone, and is closed when we die, however.

But a process is put into a job after it was created. One that runs by then may have started others,
and these are outside for ever: ``npx.cmd`` is ``cmd.exe``, which starts ``node`` in its first
milliseconds. So:

    create, suspended ──▶ into the job ──▶ resume
                     │               │
                     └── failed: end the process, which has not run

`Popen` closes the handle of the first thread, so the thread is found again in a snapshot of all
threads. A suspended process has one. ``tests/windows/job.c`` shows both orders under Wine: with
this one nothing survives, with the other one the grandchild does.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable, Hashable
from typing import Any, Final, cast

assert sys.platform == "win32"

CREATE_SUSPENDED: Final = 0x00000004
CREATE_NO_WINDOW: Final = 0x08000000

_KILL_ON_JOB_CLOSE: Final = 0x00002000
_BASIC_ACCOUNTING: Final = 1
_EXTENDED_LIMITS: Final = 9
_PROCESS_TERMINATE: Final = 0x0001
_PROCESS_SET_QUOTA: Final = 0x0100
_THREAD_TERMINATE: Final = 0x0001
_THREAD_SUSPEND_RESUME: Final = 0x0002
_SNAP_THREADS: Final = 0x00000004
_NO_HANDLE: Final = ctypes.c_void_p(-1).value
_KILLED: Final = 1
"""The exit code of what a job has ended."""


# The structures are written in sizes that do not depend on the compiler, so that their layout can
# be compared with that of Windows' own headers on any system.


class IoCounters(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_ulonglong) for name in "abcdef")


class BasicLimits(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", ctypes.c_uint32),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", ctypes.c_uint32),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", ctypes.c_uint32),
        ("SchedulingClass", ctypes.c_uint32),
    )


class ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("BasicLimitInformation", BasicLimits),
        ("IoInfo", IoCounters),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


class BasicAccounting(ctypes.Structure):
    _fields_ = (
        ("TotalUserTime", ctypes.c_int64),
        ("TotalKernelTime", ctypes.c_int64),
        ("ThisPeriodTotalUserTime", ctypes.c_int64),
        ("ThisPeriodTotalKernelTime", ctypes.c_int64),
        ("TotalPageFaultCount", ctypes.c_uint32),
        ("TotalProcesses", ctypes.c_uint32),
        ("ActiveProcesses", ctypes.c_uint32),
        ("TotalTerminatedProcesses", ctypes.c_uint32),
    )


class ThreadEntry(ctypes.Structure):
    _fields_ = (
        ("dwSize", ctypes.c_uint32),
        ("cntUsage", ctypes.c_uint32),
        ("th32ThreadID", ctypes.c_uint32),
        ("th32OwnerProcessID", ctypes.c_uint32),
        ("tpBasePri", ctypes.c_int32),
        ("tpDeltaPri", ctypes.c_int32),
        ("dwFlags", ctypes.c_uint32),
    )


_KERNEL: Final = ctypes.WinDLL("kernel32", use_last_error=True)
_HANDLE, _DWORD, _BOOL = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int32
_POINTER: Final = ctypes.c_void_p


def _function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    function = getattr(_KERNEL, name)
    function.restype = result
    function.argtypes = arguments
    return cast("Callable[..., Any]", function)


_create_job = _function("CreateJobObjectW", _HANDLE, _POINTER, ctypes.c_wchar_p)
_set_job = _function("SetInformationJobObject", _BOOL, _HANDLE, ctypes.c_int, _POINTER, _DWORD)
_ask_job = _function(
    "QueryInformationJobObject", _BOOL, _HANDLE, ctypes.c_int, _POINTER, _DWORD, _POINTER
)
_assign = _function("AssignProcessToJobObject", _BOOL, _HANDLE, _HANDLE)
_terminate_job = _function("TerminateJobObject", _BOOL, _HANDLE, ctypes.c_uint32)
_close = _function("CloseHandle", _BOOL, _HANDLE)
_open_process = _function("OpenProcess", _HANDLE, _DWORD, _BOOL, _DWORD)
_open_thread = _function("OpenThread", _HANDLE, _DWORD, _BOOL, _DWORD)
_resume_thread = _function("ResumeThread", _DWORD, _HANDLE)
_cancel_call = _function("CancelSynchronousIo", _BOOL, _HANDLE)
_snapshot = _function("CreateToolhelp32Snapshot", _HANDLE, _DWORD, _DWORD)
_first_thread = _function("Thread32First", _BOOL, _HANDLE, _POINTER)
_next_thread = _function("Thread32Next", _BOOL, _HANDLE, _POINTER)
_std_handle = _function("GetStdHandle", _HANDLE, _DWORD)
_get_console_mode = _function("GetConsoleMode", _BOOL, _HANDLE, _POINTER)
_set_console_mode = _function("SetConsoleMode", _BOOL, _HANDLE, _DWORD)


def _failed() -> OSError:
    return ctypes.WinError(ctypes.get_last_error())


# Processes


class Job:
    """A process that was started suspended, with all that it will start.

    Args:
        process: The process, which has not run yet; it does when this returns.

    Raises:
        OSError: It could not be put into a job; the process has been ended.
    """

    termination = ("the end of its job", "the end of its job")
    """What `terminate` and `kill` do, in words: there are no signals to ask politely with."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._job: int | None = None
        try:
            self._job = _new_job()
            _put_into_job(self._job, process.pid)
            _resume(process.pid)
        except OSError:
            process.kill()
            process.wait()
            self.release()
            raise

    def guard(self) -> None:
        """Do nothing: the job's last handle is ours, and ends with us."""

    def wait(self) -> None:
        self._process.wait()

    def exit_code(self) -> int | None:
        return self._process.poll()

    def reap(self) -> bool:
        return self._process.poll() is not None

    def activity(self) -> Hashable:
        facts = self._facts()
        return facts and (facts.TotalUserTime, facts.TotalKernelTime, facts.TotalProcesses)

    def terminate(self) -> None:
        self.kill()

    def kill(self) -> None:
        if self._job is not None:
            _terminate_job(self._job, _KILLED)

    def is_gone(self) -> bool:
        facts = self._facts()
        return facts is None or facts.ActiveProcesses == 0

    def _facts(self) -> BasicAccounting | None:
        facts = BasicAccounting()
        size = ctypes.sizeof(facts)
        if self._job is None:
            return None
        if not _ask_job(self._job, _BASIC_ACCOUNTING, ctypes.byref(facts), size, None):
            return None
        return facts

    def release(self) -> None:
        """Close the job, which ends what is left in it."""
        job, self._job = self._job, None
        if job is not None:
            _close(job)


def _new_job() -> int:
    job: int | None = _create_job(None, None)
    if not job:
        raise _failed()
    limits = ExtendedLimits()
    limits.BasicLimitInformation.LimitFlags = _KILL_ON_JOB_CLOSE
    if not _set_job(job, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)):
        error = _failed()
        _close(job)
        raise error
    return job


def _put_into_job(job: int, pid: int) -> None:
    # The id cannot be another's by now: Popen holds a handle of the process.
    handle = _open_process(_PROCESS_SET_QUOTA | _PROCESS_TERMINATE, False, pid)
    if not handle:
        raise _failed()
    try:
        if not _assign(job, handle):
            raise _failed()
    finally:
        _close(handle)


def _resume(pid: int) -> None:
    """Resume the threads of a suspended process: it has one."""
    snapshot = _snapshot(_SNAP_THREADS, 0)
    if snapshot == _NO_HANDLE:
        raise _failed()
    try:
        threads = _threads_of(pid, snapshot)
    finally:
        _close(snapshot)
    resumed = 0
    for thread in threads:
        handle = _open_thread(_THREAD_SUSPEND_RESUME, False, thread)
        if handle:
            resumed += _resume_thread(handle) not in (0, 0xFFFFFFFF)
            _close(handle)
    if not resumed:
        raise OSError("no thread of the new process could be resumed")


def _threads_of(pid: int, snapshot: int) -> list[int]:
    entry = ThreadEntry()
    entry.dwSize = ctypes.sizeof(entry)
    threads = []
    more = _first_thread(snapshot, ctypes.byref(entry))
    while more:
        if entry.th32OwnerProcessID == pid:
            threads.append(entry.th32ThreadID)
        more = _next_thread(snapshot, ctypes.byref(entry))
    return threads


def cancel_blocking_call(native_id: int) -> None:
    """End the read or write that a thread is in; nothing happens if it is in none."""
    handle = _open_thread(_THREAD_TERMINATE, False, native_id)
    if handle:
        _cancel_call(handle)
        _close(handle)


# Consoles

_STDOUT: Final = 0xFFFFFFF5
_STDERR: Final = 0xFFFFFFF4
_VIRTUAL_TERMINAL: Final = 0x0004


def enable_virtual_terminal() -> bool:
    """Have the console understand escape sequences; return whether one of ours does."""
    enabled = False
    for number in (_STDOUT, _STDERR):
        mode = ctypes.c_uint32()
        handle = _std_handle(number)
        if _get_console_mode(handle, ctypes.byref(mode)):
            enabled |= bool(_set_console_mode(handle, mode.value | _VIRTUAL_TERMINAL))
    return enabled
