"""Starts, finds and stops the daemon of this user."""

# How it is known whether a daemon runs
#
# By asking it. Nothing else can tell: a file with a process id outlives its process, and the id
# is given to another one; a socket's file outlives the socket. Daemons of other programs that
# trusted such files were restarted hundreds of times a day, or killed somebody else's process.
#
# Two daemons at once are kept apart by a lock of the system on a file next to the socket. It ends
# with the process that holds it, however that ends. Whoever has it may remove the socket that is
# there, because nobody can be listening at it, and binds its own before it says that it runs:
#
#   lock ──▶ does somebody answer? ──▶ unlink ──▶ bind, listen ──▶ say so ──▶ serve
#                                                                              │
#   unlock (the end of the process) ◀── end servers ◀── unlink, close ◀── stop ┘
#
# A start during a stop waits for the lock; so do two starts at once, of which the second finds the
# first one answering. The file with the lock is never removed: a lock on a file without a name
# would keep nobody out.

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Final

from holdfast._core.files import reason, try_lock
from holdfast._core.serve.loop import fast_loop
from holdfast._core.transports.daemon_socket import (
    UNIX_SOCKETS,
    Hello,
    Unavailable,
    Welcome,
    greet,
    require_private,
    socket_path,
)
from holdfast.daemon.log import LOG_NAME, log_path, log_to_file
from holdfast.daemon.server import IDLE, LINGER, Daemon
from holdfast.errors import StateError, TransportError

LOCK: Final = "daemon.lock"
LOCK_WAIT: Final = 15.0
"""Seconds that a start waits for a daemon that is about to end."""
STARTS: Final = 5
"""Tries, where each finds another daemon that ends at that moment."""
START_WAIT: Final = 30.0
END_WAIT: Final = 5.0
"""Seconds for the end of one that could not be started, or found another running."""
STOP_WAIT: Final = 30.0
"""Seconds for the whole of a stop: calls, servers, processes."""
QUEUE: Final = 1024
"""Clients that wait to be accepted."""


async def ask(verb: str) -> Welcome | None:
    """Return what the running daemon answers; None if none runs.

    Raises:
        TransportError: There is one, which does not answer or is not to be trusted.
    """
    hello = Hello(verb=verb)  # type: ignore[arg-type]
    try:
        connection, welcome, _ = await greet(hello)
    except Unavailable as error:
        if error.is_absent:
            return None
        raise TransportError(str(error)) from None
    connection.close()
    return welcome


# Starting


def start(*, idle: float = IDLE, linger: float = LINGER) -> tuple[Welcome, bool]:
    """Start the daemon in the background, unless one runs.

    Returns:
        What it answers, and whether it was started by this call.

    Raises:
        TransportError: It could not be started; the message says why.
    """
    for _ in range(STARTS):
        running = asyncio.run(ask("status"))
        if running is not None:
            return running, False
        started = _start_one(idle, linger)
        if started is not None:
            return started
    raise TransportError("the daemon could not be started: others begin and end all the time")


def _start_one(idle: float, linger: float) -> tuple[Welcome, bool] | None:
    """Start a daemon; return None if it found another one, which has ended since."""
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast.daemon", repr(idle), repr(linger)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd="/",
        start_new_session=True,
    )
    complaint = _until_closed(process)
    welcome = asyncio.run(ask("status"))
    if welcome is None or welcome.pid != process.pid:
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_WAIT)
    if welcome is None and not complaint and process.poll() == 0:
        return None
    if welcome is None:
        why = complaint or f"it exited with {process.poll()}; {LOG_NAME} may say why"
        raise TransportError(f"the daemon could not be started: {why}")
    # Whoever runs on until it has ended, as a notebook does, would keep it as a zombie.
    threading.Thread(target=process.wait, name="holdfast-daemon-end", daemon=True).start()
    return welcome, welcome.pid == process.pid


def _until_closed(process: subprocess.Popen[bytes]) -> str:
    """Return what a daemon complains of until it serves, which closes its stderr."""
    assert process.stderr is not None
    until, complaint = time.monotonic() + START_WAIT, b""
    with process.stderr as pipe:
        while True:
            rest = until - time.monotonic()
            if rest <= 0 or not select.select([pipe], [], [], rest)[0]:
                text = f"the daemon (pid {process.pid}) is slow to start: see {LOG_NAME}"
                raise TransportError(text)
            data = os.read(pipe.fileno(), 4096)
            if not data:
                return complaint.decode(errors="replace").strip()[-2000:]
            complaint = (complaint + data)[-8000:]


def run(*, idle: float = IDLE, linger: float = LINGER, detached: bool = False) -> bool:
    """Be the daemon, until it is stopped or has nothing to do.

    Args:
        idle: Seconds that a server runs on without a client.
        linger: Seconds that the daemon runs on without a server.
        detached: Nobody looks at its output: the log goes to a file alone.

    Returns:
        False if another one runs already.

    Raises:
        TransportError: The socket cannot be had.
    """
    path = socket_path()
    try:
        require_private(os.path.dirname(path), create=True)
        lock = os.open(
            os.path.join(os.path.dirname(path), LOCK),
            os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0),
            0o600,
        )
    except OSError as error:
        place = error.filename or os.path.dirname(path)
        raise TransportError(f"{place} cannot be used: {reason(error)}") from None
    try:
        if not _is_locked(lock) or asyncio.run(ask("status")) is not None:
            return False
        _open_log(is_shown=not detached)
        listener = _listen(path)
        if detached:
            _close_stderr()
        with asyncio.Runner(loop_factory=fast_loop()) as runner:
            runner.run(_serve(listener, path, idle=idle, linger=linger))
    finally:
        os.close(lock)
    return True


def _is_locked(lock: int) -> bool:
    """Take the lock; return False if a daemon that answers has it.

    Raises:
        TransportError: The one that has it neither answers nor ends.
    """
    until = time.monotonic() + LOCK_WAIT
    while not try_lock(lock):
        with suppress(TransportError):
            welcome = asyncio.run(ask("status"))
            if welcome is not None:
                return False
        if time.monotonic() > until:
            raise TransportError("another daemon holds the lock, and neither answers nor ends")
        time.sleep(0.05)
    return True


def _open_log(*, is_shown: bool) -> None:
    try:
        log_to_file(is_shown=is_shown)
    except OSError as error:
        raise TransportError(f"{log_path()} cannot be written: {reason(error)}") from None


def _listen(path: str) -> socket.socket:
    """Return a socket that this user alone can connect to."""
    listener = socket.socket(UNIX_SOCKETS, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        with suppress(FileNotFoundError):
            os.unlink(path)
        listener.bind(path)
    except OSError as error:
        listener.close()
        raise TransportError(f"{path} cannot be bound: {reason(error)}") from None
    finally:
        os.umask(mask)
    listener.listen(QUEUE)
    return listener


def _close_stderr() -> None:
    """Say to whoever started us that we serve."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)


async def _serve(listener: socket.socket, path: str, *, idle: float, linger: float) -> None:
    daemon = Daemon(listener, idle=idle, linger=linger)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.stop)
    await daemon.run(lambda: os.unlink(path))


# Stopping


def stop() -> Welcome | None:
    """Stop the daemon, and wait for its end.

    Returns:
        What it answered, with the servers that it had; None if none runs.

    Raises:
        TransportError: It does not answer. It is not killed: others may be using it.
        StateError: It is stopping, but has not ended in time.
    """
    return asyncio.run(_stop())


async def _stop() -> Welcome | None:
    try:
        connection, welcome, _ = await greet(Hello(verb="stop"))
    except Unavailable as error:
        if error.is_absent:
            return None
        raise TransportError(str(error)) from None
    loop = asyncio.get_running_loop()
    with connection, suppress(ConnectionError):
        try:
            async with asyncio.timeout(STOP_WAIT):
                # The end of the connection is the end of the process.
                while await loop.sock_recv(connection, 4096):
                    pass
        except TimeoutError:
            text = f"the daemon (pid {welcome.pid}) is stopping, but has not ended yet"
            raise StateError(text) from None
    return welcome
