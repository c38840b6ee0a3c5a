"""Files: bounded reads, atomic writes, private folders, locks, no untrusted links.

A folder may be a cloned repository, or one where other users may write. A path inside it is
opened part by part and no symbolic link is followed, so that it cannot lead to another file between
the check and the use (CWE-59, CWE-367). Whatever is opened must be a regular file: a pipe would
block, a device would not end.

Everything raises `OSError`. What this module itself refuses is a `RefusedFileError`, whose
``strerror`` is one sentence without the path.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

TYPE_CHECKING = False  # importing pathlib and typing takes longer than reading a file
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Final, Literal, TypeAlias

StrPath: TypeAlias = "str | os.PathLike[str]"
Owned: TypeAlias = 'Literal[False, True, "group"]'

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
REPLACE_WAIT: Final = 2.0
"""Seconds for others to close a file that is to be replaced, on Windows."""

_CLOEXEC: Final = getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
# Do not block on a pipe without a writer; do not acquire a controlling terminal.
_CAREFUL: Final = _CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_BINARY: Final = getattr(os, "O_BINARY", 0)
_FOLDER: Final = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)
_BY_PARTS: Final = bool(_NOFOLLOW and os.open in os.supports_dir_fd)
_MOST_LINKS: Final = 40


class RefusedFileError(OSError):
    """A file that this module refuses to open; ``strerror`` says why."""

    def __init__(self, path: StrPath, why: str, number: int = errno.EINVAL) -> None:
        super().__init__(number, why, os.fspath(path))


def reason(error: OSError | ValueError) -> str:
    """Return why a file operation failed, without the path."""
    return getattr(error, "strerror", None) or str(error)


# Reading


def read_bytes(
    path: StrPath,
    limit: int,
    *,
    inside: StrPath | None = None,
    owned: Owned = False,
    links: bool = True,
) -> bytes:
    """Read a regular file of at most ``limit`` bytes.

    Args:
        path: The file. Links are followed, as the caller named it.
        limit: Most bytes; a longer file is refused.
        inside: Follow links only as long as they stay in this folder: a repository has no
            business with files that it did not bring.
        owned: Refuse a file that another user owns or may write; ``"group"``: the user's group may.
        links: False: follow no link on the way, and refuse a hard link as well: it is another file
            under a name that somebody chose.
    """
    _require_path(path)
    if inside is not None:
        os.lstat(path)  # raises FileNotFoundError if there is nothing
        path = _resolve_inside(path, inside)
    if inside is not None or not links:
        descriptor = open_without_links(path, os.O_RDONLY)
    else:
        descriptor = os.open(path, os.O_RDONLY | _CAREFUL | _BINARY)
    try:
        facts = _facts(path, descriptor, links, "read")
        if owned and sys.platform != "win32":
            _require_owner(path, facts, owned)
        data = bytearray()
        # The size may be wrong, or change during the read: what counts is what comes.
        while facts.st_size <= limit and len(data) <= limit:
            piece = os.read(descriptor, min(limit + 1 - len(data), 1 << 20))
            if not piece:
                return bytes(data)
            data += piece
    finally:
        os.close(descriptor)
    raise RefusedFileError(path, f"is longer than {_size_text(limit)}", errno.EFBIG)


def _size_text(size: int) -> str:
    if size >= 1 << 20:
        return f"{size >> 20} MiB"
    return f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} bytes"


def user_number() -> int:
    """Return the number of the user that this process acts as; 0 on Windows, as in its files."""
    if sys.platform == "win32":
        return 0
    return os.geteuid()


def _require_owner(path: StrPath, facts: os.stat_result, owned: Owned) -> None:
    """Refuse a file that another user owns or may write."""
    if facts.st_uid not in (user_number(), 0):
        raise RefusedFileError(path, "belongs to another user; not used")
    if facts.st_mode & (stat.S_IWOTH if owned == "group" else stat.S_IWGRP | stat.S_IWOTH):
        raise RefusedFileError(path, "can be written by other users; not used (chmod 600)")


def _facts(path: StrPath, descriptor: int, links: bool, use: str) -> os.stat_result:
    """Return the status of an open file; refuse all but regular files, and hard links."""
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        raise RefusedFileError(path, "is not a regular file")
    if not links and facts.st_nlink > 1:
        raise RefusedFileError(path, f"has a second name (a hard link); not {use}")
    return facts


def _resolve_inside(path: StrPath, folder: StrPath) -> str:
    real, root = os.path.realpath(path), os.path.realpath(folder)
    if not is_inside(real, root):
        raise RefusedFileError(path, "is a link that leads out of the project; not followed")
    return real


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path names a folder or something in it; nothing is looked up."""
    path, folder = os.path.normcase(path), os.path.normcase(folder)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


# Opening without links


def open_without_links(path: StrPath, flags: int, mode: int = PRIVATE_FILE) -> int:
    """Open a path part by part, following no symbolic link; return the descriptor.

    A relative path starts at the current folder. Links that only the system administrator can have
    made (``/tmp`` on macOS) are followed.
    """
    _require_path(path)
    flags |= _CAREFUL | _BINARY
    if not _BY_PARTS:
        _refuse_links(path)
        return os.open(path, flags, mode)
    with _parent(path) as (folder, name):
        return _open_part(path, folder, name, flags, mode)


def open_for_append(path: StrPath, *, create: bool = True) -> int:
    """Open a regular file of this user for appending, or create a private one.

    Refused are links, hard links to a file of another name, files of other users, pipes and
    devices: in a prepared folder, each of them would redirect the write.
    """
    try:
        create_it = os.O_CREAT if create else 0
        descriptor = open_without_links(path, os.O_WRONLY | os.O_APPEND | create_it)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a pipe without a reader, or a socket
            raise RefusedFileError(path, "is not a regular file") from None
        raise
    try:
        facts = _facts(path, descriptor, False, "written")
        if facts.st_uid != user_number():
            raise RefusedFileError(path, "belongs to another user; not written")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def why_not_appendable(path: StrPath) -> str | None:
    """Return why a file can never be appended to, without making it; None if it may work."""
    target = os.path.abspath(os.fspath(path))
    folder = os.path.dirname(target)
    if not os.fspath(path):
        return "an empty path"
    if not os.path.isdir(folder):
        return f"there is no folder {folder}"
    if not os.access(folder, os.W_OK) and not os.path.lexists(target):
        return "may not be written"
    try:
        os.close(open_for_append(target, create=False))
    except FileNotFoundError:
        return None
    except OSError as error:
        return reason(error)
    return None


def open_folder(path: StrPath, *, create: bool = False) -> int:
    """Open a folder part by part, following no link; ``create`` a private one if there is none."""
    _require_path(path)
    if create:
        with _parent(path) as (folder, name), suppress(FileExistsError):
            os.mkdir(name, PRIVATE_FOLDER, dir_fd=folder)
    return open_without_links(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))


def create_file(folder: int, name: str) -> int:
    """Create a private file in an open folder; raise `FileExistsError` if there is anything."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _CLOEXEC
    return os.open(name, flags, PRIVATE_FILE, dir_fd=folder)


@contextmanager
def _parent(path: StrPath) -> Iterator[tuple[int, str]]:
    """Open the folder of a path part by part; yield its descriptor and the last part."""
    text = os.fspath(path)
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if not parts or parts[-1] == ".." or text.endswith("/"):
        raise RefusedFileError(path, "is not the path of a file", errno.EISDIR)
    folder = os.open("/" if text.startswith("/") else ".", _FOLDER | _CLOEXEC)
    links, todo = 0, parts[-2::-1]
    try:
        while todo:
            name = todo.pop()
            target = _system_link(folder, name)
            if target is not None and links < _MOST_LINKS:
                links += 1
                todo += [part for part in target.split("/") if part not in ("", ".")][::-1]
                name = "/" if target.startswith("/") else "."
            below = _open_part(path, folder, name, _FOLDER | _CLOEXEC)
            os.close(folder)
            folder = below
        yield folder, parts[-1]
    finally:
        os.close(folder)


def _system_link(folder: int, name: str) -> str | None:
    """Return the target of a link that is the system's: in the root folder, or made by root."""
    facts = os.lstat(name, dir_fd=folder) if name != ".." else None
    if facts is None or not stat.S_ISLNK(facts.st_mode) or facts.st_uid != 0:
        return None
    top = os.path.samestat(os.fstat(folder), os.stat("/"))
    return os.readlink(name, dir_fd=folder) if top or user_number() != 0 else None


def _open_part(path: StrPath, folder: int, name: str, flags: int, mode: int = 0) -> int:
    """Open one part of a path in an open folder; refuse a link in words."""
    try:
        return os.open(name, flags | _NOFOLLOW, mode, dir_fd=folder)
    except OSError as error:
        # Linux says ELOOP, FreeBSD EMLINK; with O_DIRECTORY a link is ENOTDIR.
        may_be_link = error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR)
        if may_be_link and stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
            raise RefusedFileError(path, _link_text(name, path), errno.ELOOP) from None
        raise


def _link_text(name: str, path: StrPath) -> str:
    whole = os.path.basename(os.fspath(path)) == name
    what = "is a symbolic link" if whole else f"leads through a symbolic link ({name})"
    return f"{what}; not followed: give the path that it leads to"


def _refuse_links(path: StrPath) -> None:
    """Refuse links and junctions by looking first, on systems that cannot open part by part."""
    from pathlib import Path

    whole = Path(path)
    for part in (whole, *whole.parents):
        if os.path.islink(part) or getattr(os.path, "isjunction", os.path.islink)(part):
            raise RefusedFileError(path, _link_text(part.name, path), errno.ELOOP)


def _require_path(path: StrPath) -> None:
    """Refuse what no file can be named, which the system reports in other ways than `OSError`."""
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise RefusedFileError(path, "has a character in its name that no file can have")


# Writing


def write_atomic(path: StrPath, data: bytes, *, private: bool = False) -> None:
    """Write a file whole or not at all, and durably: file and folder are synced.

    Args:
        path: The file; its folder must be there. If it is a link, the link is replaced.
        data: The content.
        private: Make it readable for nobody else; otherwise the permissions of a file that is
            replaced stay, and a new one has the usual ones.

    Raises:
        RefusedFileError: There is a pipe or a device of this name: a file would take its place.
        OSError: It cannot be written.
    """
    import secrets  # slow to load, and most commands only read

    _require_path(path)
    target = os.path.abspath(path)
    if is_pipe_or_device(target):
        raise RefusedFileError(path, "is not a regular file")
    folder, name = os.path.split(target)
    spare = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _CLOEXEC | _BINARY
    is_kept = not private and os.path.isfile(target) and not os.path.islink(target)
    # Who opens it before it has the permissions of the old one reads on after that.
    descriptor = os.open(spare, flags, PRIVATE_FILE if private or is_kept else 0o666)
    try:
        with open(descriptor, "wb") as file:
            if is_kept:
                os.chmod(spare, stat.S_IMODE(os.stat(target).st_mode) & 0o777)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        replace(spare, target)
        if sys.platform != "win32":
            # The rename has to last through a power cut, where the system can.
            with suppress(OSError):
                descriptor = os.open(folder, os.O_RDONLY | _CLOEXEC)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
    except OSError as error:
        if error.filename is None:  # of a write, the system names no file
            error.filename = target
        raise
    finally:
        with suppress(FileNotFoundError):
            os.unlink(spare)


def is_pipe_or_device(path: StrPath) -> bool:
    """Return whether something is there that is neither a file nor a folder, as ``/dev/stdout``."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def replace(source: str, target: str, platform: str = sys.platform) -> None:
    """Rename a file over another.

    On Windows that fails as long as somebody has the other one open (a reader, an indexer, a virus
    scanner), which is over in a moment: it is tried again for `REPLACE_WAIT`.
    """
    until = time.monotonic() + REPLACE_WAIT
    while True:
        try:
            os.replace(source, target)
            return
        except PermissionError:
            if platform != "win32" or time.monotonic() >= until:
                raise
        time.sleep(0.01)


def resolve_output(path: StrPath) -> str:
    """Return where a path that a user gave for writing leads.

    Links are followed as long as they stay in the current folder, or in the path's own if that is
    elsewhere: one that came with a repository must not decide which file is written (CWE-59).
    """
    _require_path(path)
    whole = os.path.abspath(path)
    here = os.getcwd()
    inside = is_inside(whole, here)
    return _resolve_inside(whole, here if inside else os.path.dirname(whole))


# Folders


def make_private_folder(path: StrPath) -> None:
    """Create a private folder, and those above it; refuse the folder of another user."""
    os.makedirs(path, PRIVATE_FOLDER, exist_ok=True)
    facts = os.stat(path)
    if sys.platform == "win32":
        return
    if facts.st_uid != user_number():
        raise RefusedFileError(path, "belongs to another user; not used")
    if stat.S_IMODE(facts.st_mode) & 0o077:
        os.chmod(path, PRIVATE_FOLDER)


_XDG: Final = {
    "config": ("XDG_CONFIG_HOME", ".config"),
    "state": ("XDG_STATE_HOME", ".local/state"),
    "cache": ("XDG_CACHE_HOME", ".cache"),
    "data": ("XDG_DATA_HOME", ".local/share"),
}
XdgKind: TypeAlias = 'Literal["config", "state", "cache", "data"]'


def xdg_folder(
    kind: XdgKind, environ: Mapping[str, str] | None = None, home: StrPath | None = None
) -> Path:
    """Return a base folder of the XDG Base Directory Specification.

    A variable that holds a relative path is ignored, as the specification demands.
    """
    from pathlib import Path

    return Path(xdg_path(kind, environ, home))


def xdg_path(
    kind: XdgKind,
    environ: Mapping[str, str] | None = None,
    home: StrPath | None = None,
    platform: str = sys.platform,
) -> str:
    """Return the same as text; on Windows the folders that it has for this, if none is set."""
    environ = os.environ if environ is None else environ
    variable, default = _XDG[kind]
    folder = environ.get(variable, "")
    if os.path.isabs(folder):
        return folder
    if platform == "win32":
        variable, default = (
            ("APPDATA", "Roaming") if kind == "config" else ("LOCALAPPDATA", "Local")
        )
        folder = environ.get(variable, "")
        profile = home or environ.get("USERPROFILE") or os.path.expanduser("~")
        return folder or os.path.join(profile, "AppData", default)
    return os.path.join(home or environ.get("HOME") or os.path.expanduser("~"), default)


# Locks


@contextmanager
def locked(path: StrPath, timeout: float = 10.0, *, folder: bool = False) -> Iterator[None]:
    """Hold an advisory lock on a file that is created, and stays, or on a folder.

    Raises `TimeoutError` after a while.
    """
    if folder and sys.platform == "win32":
        path, folder = folder_lock(path), False
    descriptor = os.open(path, os.O_RDONLY) if folder else open_for_append(path)
    try:
        until = time.monotonic() + timeout
        while not try_lock(descriptor):
            if time.monotonic() >= until:
                raise TimeoutError(errno.ETIMEDOUT, "is locked by another process", str(path))
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)  # which unlocks


def folder_lock(path: StrPath) -> str:
    """Return the file that stands for a folder, where folders have no locks."""
    from hashlib import sha256

    locks = os.path.join(xdg_path("state"), "holdfast", "locks")
    make_private_folder(locks)
    name = os.path.normcase(os.path.realpath(path)).encode("utf-8", "surrogatepass")
    return os.path.join(locks, f"{sha256(name).hexdigest()[:32]}.lock")


def try_lock(descriptor: int) -> bool:
    """Lock an open file unless it is locked already; closing the descriptor unlocks it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Any other error: the file system has no locks, so do not wait.
        return error.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
    return True
