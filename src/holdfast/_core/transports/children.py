"""Start the process of a server, as this system does it."""

from __future__ import annotations

import os
import sys

from holdfast._core.transports.child import ChildListener, ChildProcess
from holdfast._core.transports.spawn import SpawnRequest, spawn

if sys.platform == "win32":
    import subprocess

    from holdfast._core.transports.spawn import Spawned, not_started, pipes
    from holdfast._core.transports.windows_command import command_line, find_program
    from holdfast._core.windows import CREATE_NO_WINDOW, CREATE_SUSPENDED, Job

    def spawn_in_job(request: SpawnRequest) -> tuple[Spawned, Job]:
        """Start a server with pipes and no window, in a job of its own."""
        with pipes(request.inherit_stderr) as (theirs, ours):
            try:
                file, line = _command_line(request)
                process = subprocess.Popen(
                    line,
                    executable=file,
                    stdin=theirs[0],
                    stdout=theirs[1],
                    stderr=theirs[2] if len(theirs) > 2 else None,
                    env=request.env,
                    cwd=request.cwd,
                    creationflags=CREATE_SUSPENDED | CREATE_NO_WINDOW,
                )
                job = Job(process)
            except (OSError, ValueError) as error:
                raise not_started(error, request) from None
        return Spawned(process.pid, *ours), job

    def _command_line(request: SpawnRequest) -> tuple[str, str]:
        program, *arguments = request.command
        # A dictionary of ours: on Windows the names of variables have no case.
        env = {name.upper(): value for name, value in request.env.items()}
        path, pathext = env.get("PATH", ""), env.get("PATHEXT", "")
        if os.path.dirname(program) and request.cwd is not None:
            program = os.path.join(request.cwd, program)
        file = find_program(program, path, pathext, os.path.isfile)
        if file is None:
            raise FileNotFoundError(program)
        # Not %ComSpec%: a variable must not decide what reads the quoting.
        root = os.environ.get("SYSTEMROOT", r"C:\Windows")
        return command_line(file, arguments, os.path.join(root, "System32", "cmd.exe"))


def start_child(
    request: SpawnRequest, listener: ChildListener, backlog: int, threads: bool | None = None
) -> ChildProcess:
    """Start a server; ``threads`` has its pipes read and written by threads.

    By default that is so on Windows, where no event loop can wait for a pipe that was not made for
    it, and elsewhere if the environment variable ``HOLDFAST_STDIO_THREADS`` says so.
    """
    if sys.platform == "win32":
        from holdfast._core.transports.portable_child import PortableChild

        process, job = spawn_in_job(request)
        return PortableChild(process, job, listener, backlog)
    else:
        if threads is None:
            threads = os.environ.get("HOLDFAST_STDIO_THREADS") == "1"
        process = spawn(request)
        if not threads:
            from holdfast._core.transports.posix_child import PosixChild

            return PosixChild(process, listener, backlog)
        from holdfast._core.transports.portable_child import PortableChild
        from holdfast._core.transports.process_group import ProcessGroup

        return PortableChild(process, ProcessGroup(process.pid), listener, backlog)
