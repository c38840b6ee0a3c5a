"""The socket of the daemon: where it is, who may be at its other end, and the first line each way.

A client says in one line which server it wants; the daemon answers in one line who it is. After
that come the messages of MCP, a line each. A line of the daemon that begins with ``!`` is about the
connection itself: no JSON text begins so, and therefore no server can send one.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from holdfast._core.files import (
    RefusedFileError,
    make_private_folder,
    reason,
    user_number,
    xdg_path,
)
from holdfast._version import __version__
from holdfast.policies import Limits

PATIENCE: Final = 1.0
"""Seconds for a daemon to answer before a client starts a server of its own."""
VARIABLE: Final = "HOLDFAST_DAEMON_TIMEOUT"
"""The variable for other seconds."""
NAME: Final = "daemon.sock"
UNIX_SOCKETS: Final[int] = getattr(socket, "AF_UNIX", -1)
"""The family of sockets; Python has it on POSIX alone."""
LONGEST_PATH: Final = 103
"""Bytes of a socket's path: 107 on Linux, and this on macOS."""
LONGEST_HELLO: Final = 8 * 1024 * 1024
"""Bytes of the first line: an environment may be large."""
MARK: Final = b"!"
_REVISION: Final = 1
"""Another number for each change of what the two say to each other."""
FINGERPRINT: Final = sha256(f"{__version__} {_REVISION}".encode()).hexdigest()[:16]
"""Equal for a client and a daemon that understand each other."""


class Definition(Struct, frozen=True, kw_only=True):
    """A server as a client wants it started. It has secrets in it, and is shown nowhere."""

    name: str
    command: tuple[str, ...]
    cwd: str
    project: str
    environ: dict[str, str]
    """The whole environment of the server."""
    env: dict[str, str] = {}
    """The part that the client was given: it counts as secret."""
    inherit_env: tuple[str, ...] | bool = ()
    grace: float = 2.0
    startup: float = 120.0
    shutdown_request: bool = False
    protocol: str | None = None
    limits: Limits = Limits()

    def __repr__(self) -> str:
        return f"<Definition {self.name}>"


class Hello(Struct, frozen=True, kw_only=True):
    """The first line of a client."""

    holdfast: str = FINGERPRINT
    verb: Literal["join", "status", "stop"] = "join"
    definition: Definition | None = None
    capabilities: dict[str, Any] = {}
    """What the client can be asked."""
    stderr: bool = False
    """It wants the lines that the server writes to its stderr."""


class Welcome(Struct, frozen=True, kw_only=True):
    """The first line of the daemon."""

    holdfast: str
    pid: int
    version: str = ""
    refused: str = ""
    """Why it does not serve this client; empty: it does."""
    status: dict[str, Any] = {}


class Unavailable(Exception):  # noqa: N818  (a finding: the client goes on without the daemon)
    """There is no daemon that could be used.

    Args:
        reason: Why, as the end of a sentence.
        is_absent: True if none runs, which is no surprise.
    """

    def __init__(self, reason: str, *, is_absent: bool = False) -> None:
        super().__init__(reason)
        self.is_absent = is_absent


# Where it is


def socket_path(environ: Mapping[str, str] | None = None) -> str:
    """Return the path of this user's socket; nothing is created.

    In ``$XDG_RUNTIME_DIR``, or where the system has that folder if a program was started without
    the variable; else in the state folder. A path too long for a socket is replaced by one in
    ``/tmp``, which is as private: its folder must be this user's.
    """
    environ = os.environ if environ is None else environ
    folder = os.path.join(_runtime_folder(environ), "holdfast")
    path = os.path.join(folder, NAME)
    if len(os.fsencode(path)) > LONGEST_PATH:
        digest = sha256(os.fsencode(folder)).hexdigest()[:16]
        path = os.path.join("/tmp", f"holdfast-{user_number()}-{digest}", NAME)
    return path


def _runtime_folder(environ: Mapping[str, str]) -> str:
    for folder in (environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{user_number()}"):
        with suppress(OSError, ValueError):
            if os.path.isabs(folder) and os.stat(folder).st_uid == user_number():
                return folder
    return os.path.join(xdg_path("state", environ), "holdfast", "run")


def require_private(folder: str, *, create: bool = False) -> None:
    """Refuse a folder that is not this user's alone: whoever may write in it could replace us.

    Raises:
        OSError: It is not there, or cannot be used.
    """
    if create:
        make_private_folder(folder)
    facts = os.lstat(folder)
    if not stat.S_ISDIR(facts.st_mode):
        raise RefusedFileError(folder, "is not a folder")
    if facts.st_uid != user_number():
        raise RefusedFileError(folder, "belongs to another user; not used")
    if stat.S_IMODE(facts.st_mode) & 0o077:
        raise RefusedFileError(folder, "is open to other users; not used (chmod 700)")


# Who is there


def peer(connection: socket.socket) -> tuple[int, int | None]:
    """Return the user and, where the system tells, the process at the other end.

    Raises:
        OSError: The system does not tell who it is.
    """
    if sys.platform == "linux":
        size = struct.calcsize("3i")
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        pid, uid, _ = struct.unpack("3i", credentials)
        return uid, pid
    if sys.platform == "darwin":
        # sys/un.h: SOL_LOCAL 0, LOCAL_PEERCRED 1 (struct xucred: version, uid, …), LOCAL_PEERPID 2.
        _, uid = struct.unpack_from("Ii", connection.getsockopt(0, 1, 76))
        (pid,) = struct.unpack("i", connection.getsockopt(0, 2, 4))
        return uid, pid
    raise OSError("this system does not tell whose process is at the other end of a socket")


def is_ours(connection: socket.socket) -> bool:
    """Return whether the process at the other end is this user's, and not even root's."""
    with suppress(OSError):
        return peer(connection)[0] == user_number()
    return False


# The first lines

_hello: Final = msgspec.json.Decoder(Hello)
_welcome: Final = msgspec.json.Decoder(Welcome)


def encode_line(message: Struct) -> bytes:
    """Return a first line. Raises UnicodeEncodeError for bytes that are no text."""
    return msgspec.json.encode(message) + b"\n"


def decode_hello(line: bytes) -> Hello:
    """Return what a client says. Raises ValueError."""
    try:
        return _hello.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"the first line is not understood: {error}") from None


async def read_line(connection: socket.socket, limit: int) -> tuple[bytes, bytes]:
    """Return the first line that comes, and what came behind it. Raises ValueError, EOFError."""
    loop = asyncio.get_running_loop()
    data = bytearray()
    while True:
        piece = await loop.sock_recv(connection, 64 * 1024)
        if not piece:
            raise EOFError("the other end hung up")
        data += piece
        if b"\n" in piece:
            line, _, rest = bytes(data).partition(b"\n")
            return line, rest
        if len(data) > limit:
            raise ValueError(f"the first line is longer than {limit} bytes")


def patience() -> float:
    """Return the seconds for a daemon to answer."""
    try:
        seconds = float(os.environ[VARIABLE])
        return seconds if 0 < seconds < float("inf") else PATIENCE
    except (KeyError, ValueError):
        return PATIENCE


async def greet(hello: Hello) -> tuple[socket.socket, Welcome, bytes]:
    """Connect to the daemon; return the connection, its answer, and what came behind that.

    Raises:
        Unavailable: There is none, it is not to be trusted, or does not answer in time.
    """
    if os.name != "posix":
        raise Unavailable("there is no daemon on this system", is_absent=True)
    try:
        line = encode_line(hello)
    except UnicodeEncodeError:
        raise Unavailable("the definition of the server has bytes in it that are no text") from None
    seconds = patience()
    connection = socket.socket(UNIX_SOCKETS, socket.SOCK_STREAM)
    connection.setblocking(False)
    path = socket_path()
    try:
        async with asyncio.timeout(seconds):
            await _connect(connection, path)
            await asyncio.get_running_loop().sock_sendall(connection, line)
            answer, rest = await read_line(connection, LONGEST_HELLO)
            return connection, _welcome.decode(answer), rest
    except BaseException as error:
        process = _process_at(connection)
        connection.close()
        if isinstance(error, TimeoutError):
            text = f"the daemon{process} did not answer within {seconds:g} s"
            raise Unavailable(text) from None
        if isinstance(error, ConnectionResetError | BrokenPipeError | EOFError):
            # It ended before it took this connection from the queue, or before it answered.
            raise Unavailable("the daemon has just ended", is_absent=True) from None
        if isinstance(error, OSError | ValueError):
            raise Unavailable(f"the daemon's socket cannot be used: {_why(error, path)}") from None
        raise


def _process_at(connection: socket.socket) -> str:
    """Return which process listens, as far as the system tells: nobody but its user ends it."""
    with suppress(OSError):
        if pid := peer(connection)[1]:
            return f" (pid {pid})"
    return ""


def _why(error: OSError | ValueError, path: str) -> str:
    if isinstance(error, RefusedFileError):
        return f"{error.filename} {error.strerror}"
    return f"{path}: {reason(error) if isinstance(error, OSError) else error}"


async def _connect(connection: socket.socket, path: str) -> None:
    try:
        require_private(os.path.dirname(path))
        # Nothing tells when there is a place in the queue of those who connect.
        while not _is_connected(connection, path):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    except (FileNotFoundError, ConnectionRefusedError):
        # A socket that nobody listens at is what a killed daemon leaves behind.
        raise Unavailable("no daemon runs", is_absent=True) from None
    if not is_ours(connection):
        raise Unavailable(f"another user's process listens at {path}")


def _is_connected(connection: socket.socket, path: str) -> bool:
    """Connect; return False if too many others are about to."""
    try:
        connection.connect(path)
    except BlockingIOError:
        return False
    return True
