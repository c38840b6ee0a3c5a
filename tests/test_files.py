"""Files are read within bounds, written whole, and never through somebody else's link."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from holdfast._core import files
from holdfast._core.files import RefusedFileError
from tests.rows import rows

posix = pytest.mark.skipif(os.name != "posix", reason="needs links and modes of POSIX")


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 10)
    assert files.read_bytes(path, 10) == b"x" * 10
    with pytest.raises(RefusedFileError, match="longer than 9 bytes"):
        files.read_bytes(path, 9)
    with pytest.raises(FileNotFoundError):
        files.read_bytes(tmp_path / "b", 9)


@posix
@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_what_is_not_a_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path = Path("/dev/zero")
    for links in (True, False):
        with pytest.raises(OSError, match=r"regular|directory"):
            files.read_bytes(path, 100, links=links)
    with pytest.raises(OSError, match=r"regular|directory|No such device"):
        os.close(files.open_for_append(path))


@posix
@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for use in (
        lambda: files.read_bytes(path, 9),
        lambda: files.read_bytes(path, 9, inside=tmp_path),
        lambda: files.read_bytes(path, 9, links=False),
        lambda: files.write_atomic(path, b""),
        lambda: files.open_for_append(path),
        lambda: files.open_folder(path, create=True),
        lambda: files.resolve_output(path),
    ):
        with pytest.raises(RefusedFileError, match="no file can have"):
            use()


def test_a_long_name_of_any_script_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("\u6f22" * 80)
    files.write_atomic(path, b"x")
    assert path.read_bytes() == b"x"


def test_a_link_may_not_lead_out_of_a_project(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("x")
    (inside / "a").write_text("a")
    (inside / "near").symlink_to("a")
    (inside / "far").symlink_to(outside / "secret")
    (inside / "way").symlink_to(outside)
    assert files.read_bytes(inside / "near", 9, inside=inside) == b"a"
    for name in ("far", "way/secret", "../out/secret"):
        with pytest.raises(RefusedFileError, match="leads out of the project"):
            files.read_bytes(inside / name, 9, inside=inside)


@posix
@pytest.mark.parametrize("place", ["file", "folder", "dangling"])
def test_no_link_is_followed_on_the_way(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("x")
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "file").symlink_to("real/a")
    (tmp_path / "dangling").symlink_to("real/new")
    name = {"file": "file", "folder": "folder/a", "dangling": "dangling"}[place]
    monkeypatch.chdir(tmp_path)
    for path in (name, str(tmp_path / name), f"./{name}", f"real/../{name}"):
        with pytest.raises(RefusedFileError, match="symbolic link"):
            files.read_bytes(path, 9, links=False)
        with pytest.raises(RefusedFileError, match="symbolic link"):
            files.open_for_append(path)
    assert (tmp_path / "real" / "a").read_text() == "x"
    assert not (tmp_path / "real" / "new").exists()


def test_a_plain_path_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("a", tmp_path / "a"):
        descriptor = files.open_for_append(path)
        os.write(descriptor, b"x")
        os.close(descriptor)
    assert files.read_bytes("./a", 9, links=False) == b"xx"
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


@posix
def test_a_second_name_of_another_file_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    os.link(tmp_path / "a", tmp_path / "b")
    with pytest.raises(RefusedFileError, match="hard link"):
        files.open_for_append(tmp_path / "b")


@posix
def test_a_file_that_others_may_write_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x")
    for mode in (0o602, 0o620):
        path.chmod(mode)
        with pytest.raises(RefusedFileError, match="chmod 600"):
            files.read_bytes(path, 9, owned=True)
    assert files.read_bytes(path, 9, owned="group") == b"x"
    path.chmod(0o600)
    assert files.read_bytes(path, 9, owned=True) == b"x"


@posix
def test_a_file_of_another_user_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("x")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(RefusedFileError, match="another user"):
        files.open_for_append(tmp_path / "a")


def test_a_file_is_replaced_whole_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a"
    files.write_atomic(path, b"one")
    path.chmod(0o640)
    files.write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        files.write_atomic(path, b"three", private=True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@posix
def test_a_private_file_is_private_from_its_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.touch(0o600)
    modes: list[int] = []
    chmod = os.chmod

    def watched(spare: str, mode: int) -> None:
        modes.append(stat.S_IMODE(os.stat(spare).st_mode))
        chmod(spare, mode)

    monkeypatch.setattr(os, "chmod", watched)
    files.write_atomic(path, b"secret")
    assert modes == [0o600]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        files.write_atomic(tmp_path / "folder", b"x")
    with pytest.raises(FileNotFoundError):
        files.write_atomic(tmp_path / "none" / "a", b"x")
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]


@posix
def test_a_written_file_replaces_a_link_and_not_its_target(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("x")
    (tmp_path / "link").symlink_to("target")
    files.write_atomic(tmp_path / "link", b"y")
    assert (tmp_path / "target").read_text() == "x"
    assert not (tmp_path / "link").is_symlink()


@posix
def test_no_file_takes_the_place_of_a_pipe_or_a_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for name in ("pipe", "link"):
        before = (tmp_path / name).lstat()
        with pytest.raises(RefusedFileError, match="is not a regular file"):
            files.write_atomic(tmp_path / name, b"x")
        assert os.path.samestat(before, (tmp_path / name).lstat())


@posix
def test_a_private_folder_is_for_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    files.make_private_folder(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    path.chmod(0o755)
    files.make_private_folder(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_base_folders_are_those_of_xdg(tmp_path: Path) -> None:
    assert files.xdg_folder("state", {}, tmp_path) == tmp_path / ".local" / "state"
    assert files.xdg_folder("cache", {"HOME": str(tmp_path)}) == tmp_path / ".cache"
    named = {"XDG_CONFIG_HOME": str(tmp_path / "c"), "XDG_DATA_HOME": "relative"}
    assert files.xdg_folder("config", named, tmp_path) == tmp_path / "c"
    assert files.xdg_folder("data", named, tmp_path) == tmp_path / ".local" / "share"


def test_two_holders_of_a_lock_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    order: list[str] = []
    held, done = threading.Event(), threading.Event()

    def first() -> None:
        with files.locked(path):
            held.set()
            done.wait(120)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    held.wait(120)
    with pytest.raises(TimeoutError, match="locked by another process"), files.locked(path, 0.0):
        order.append("never")
    done.set()
    with files.locked(path):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.parametrize("kind", ["file", "nowhere", "folder", "climb"])
def test_a_link_of_a_checkout_does_not_decide_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    checkout, outside = tmp_path / "checkout", tmp_path / "outside"
    checkout.mkdir()
    outside.mkdir()
    (outside / "there").write_text("mine", encoding="utf-8")
    (checkout / "file").symlink_to(outside / "there")
    (checkout / "nowhere").symlink_to(outside / "new")
    (checkout / "folder").symlink_to(outside)
    (checkout / "climb").symlink_to("../outside/new")
    monkeypatch.chdir(checkout)
    path = "folder/new" if kind == "folder" else kind
    for given in (path, checkout / path):
        with pytest.raises(files.RefusedFileError, match="leads out"):
            files.resolve_output(given)


def test_a_link_that_stays_in_its_folder_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    assert files.resolve_output(tmp_path / "link") == str(tmp_path / "real")
    (tmp_path / "folder").symlink_to(tmp_path)
    named = files.resolve_output(tmp_path / "folder" / "new")
    assert named == str(tmp_path / "new"), "the user named the folder"


# Windows


@pytest.mark.req("S5")
def test_a_file_that_is_open_elsewhere_is_replaced_when_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows refuses to replace a file that a reader or a virus scanner has open."""
    attempts = []
    replace = os.replace

    def busy_at_first(source: str, target: str) -> None:
        attempts.append(source)
        if len(attempts) < 4:
            raise PermissionError(13, "in use")
        replace(source, target)

    monkeypatch.setattr(os, "replace", busy_at_first)
    source, target = tmp_path / "new", tmp_path / "old"
    source.write_text("new")
    target.write_text("old")
    files.replace(str(source), str(target), "win32")
    assert target.read_text() == "new"
    assert len(attempts) == 4
    with pytest.raises(FileNotFoundError):
        files.replace(str(source), str(target), "win32")


@pytest.mark.req("S5")
@pytest.mark.parametrize(("platform", "wait"), [("win32", 0.0), ("linux", 60.0)])
def test_the_wait_for_a_file_that_is_open_has_an_end(
    monkeypatch: pytest.MonkeyPatch, platform: str, wait: float
) -> None:
    def busy(source: str, target: str) -> None:
        raise PermissionError(13, "in use")

    monkeypatch.setattr(os, "replace", busy)
    monkeypatch.setattr(files, "REPLACE_WAIT", wait)
    with pytest.raises(PermissionError):
        files.replace("a", "b", platform)


@pytest.mark.req("S5")
@rows(
    ("kind", "environ", "folder"),
    [
        ("config", {"APPDATA": "/u/Roaming"}, "/u/Roaming"),
        ("state", {"LOCALAPPDATA": "/u/Local"}, "/u/Local"),
        ("cache", {"USERPROFILE": "/u"}, "/u/AppData/Local"),
        ("config", {"USERPROFILE": "/u"}, "/u/AppData/Roaming"),
        ("data", {"XDG_DATA_HOME": "/x", "LOCALAPPDATA": "/u/Local"}, "/x"),
    ],
)
def test_the_folders_of_windows(kind: files.XdgKind, environ: dict[str, str], folder: str) -> None:
    assert files.xdg_path(kind, environ, platform="win32") == folder


@pytest.mark.req("S5")
def test_a_folder_is_locked_by_a_file_where_folders_have_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "project").mkdir()
    lock = files.folder_lock(tmp_path / "project")
    assert lock == files.folder_lock(str(tmp_path / "project" / ".." / "project"))
    assert lock != files.folder_lock(tmp_path)
    with files.locked(lock):
        descriptor = files.open_for_append(lock)
        assert not files.try_lock(descriptor)
        os.close(descriptor)
