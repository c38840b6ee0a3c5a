"""Writing a host's file: while the host writes too, through links, and killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.config.environment import ConfigEnvironment
from holdfast.config.hosts import HOSTS
from holdfast.errors import StateError, ValidationError
from holdfast.hosts.backups import MOST, Backups
from holdfast.hosts.document import HostFile
from holdfast.hosts.plan import FilePlan, plan_install, plan_uninstall
from holdfast.hosts.writing import ATTEMPTS, HostFiles, MakePlan, PlanChangedError
from tests.hosts.rig import head

pytestmark = pytest.mark.req("Y6")

OLD = b'{"n": 0, "mcpServers": {"a": {"command": "a"}}}\n'


class Desk:
    """A home with Cursor's file."""

    def __init__(self, root: Path) -> None:
        self.home = root
        self.file = root / ".cursor/mcp.json"
        self.file.parent.mkdir(parents=True)
        self.file.write_bytes(OLD)
        self.environment = ConfigEnvironment(start=root, environ={}, home=root)
        self.files = HostFiles(HOSTS["cursor"], self.environment, project=False)

    def install(self, make: MakePlan | None = None) -> FilePlan:
        make = make or make_plan
        seen = self.files.plan(str(self.file), make_plan)
        return self.files.write(seen, make).plan

    def uninstall(self) -> FilePlan:
        copies = [copy.data for copy in self.files.backups(str(self.file)).newest_first()]

        def make(file: HostFile) -> FilePlan:
            return plan_uninstall(file, (), copies)

        return self.files.write(self.files.plan(str(self.file), make), make).plan


def make_plan(file: HostFile) -> FilePlan:
    return plan_install(file, (), head)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home")


def test_a_file_is_written_and_restored(desk: Desk) -> None:
    desk.file.chmod(0o640)
    plan = desk.install()
    assert desk.file.read_bytes() == plan.after
    assert desk.file.stat().st_mode & 0o777 == 0o640
    backup = desk.files.backups(str(desk.file)).newest_first()[0]
    assert backup.data == OLD
    assert backup.path.stat().st_mode & 0o777 == 0o600
    assert backup.path.parent.stat().st_mode & 0o777 == 0o700
    desk.uninstall()
    assert desk.file.read_bytes() == OLD
    assert sorted(os.listdir(desk.file.parent)) == ["mcp.json"]


def test_a_host_that_wrote_something_else_keeps_it(desk: Desk) -> None:
    """Between the question and the answer, and once more between reading and writing."""
    calls = 0

    def make(file: HostFile) -> FilePlan:
        nonlocal calls
        calls += 1
        if calls <= 2:
            content = json.loads(desk.file.read_bytes())
            content["n"] = calls
            desk.file.write_text(json.dumps(content))
        return make_plan(file)

    desk.install(make)
    content = json.loads(desk.file.read_bytes())
    assert content["n"] == 2
    assert content["mcpServers"]["a"]["args"][-1] == "a"


def test_a_host_that_never_rests_is_named(desk: Desk) -> None:
    calls = 0

    def make(file: HostFile) -> FilePlan:
        nonlocal calls
        calls += 1
        desk.file.write_bytes(OLD + b" " * calls)
        return make_plan(file)

    with pytest.raises(StateError, match="Cursor wrote it 5 times meanwhile; close Cursor"):
        desk.install(make)
    assert calls == ATTEMPTS
    assert desk.file.read_bytes() == OLD + b" " * calls


def test_other_servers_than_shown_are_not_touched(desk: Desk) -> None:
    seen = desk.files.plan(str(desk.file), make_plan)
    other = OLD.replace(b'"command": "a"', b'"command": "evil"')
    desk.file.write_bytes(other)
    with pytest.raises(PlanChangedError):
        desk.files.write(seen, make_plan)
    assert desk.file.read_bytes() == other


def test_a_file_that_went_meanwhile_is_not_said_to_be_written(desk: Desk) -> None:
    seen = desk.files.plan(str(desk.file), make_plan)
    desk.file.unlink()
    with pytest.raises(PlanChangedError):
        desk.files.write(seen, make_plan)
    assert not desk.file.exists()


def test_uninstalling_after_the_host_wrote_keeps_what_it_wrote(desk: Desk) -> None:
    desk.install()
    content = json.loads(desk.file.read_bytes())
    desk.file.write_text(json.dumps({**content, "n": 7}, indent=4))
    desk.uninstall()
    expected = {"n": 7, "mcpServers": {"a": {"command": "a"}}}
    assert json.loads(desk.file.read_bytes()) == expected


def test_a_link_stays_a_link(desk: Desk) -> None:
    real = desk.home / "dotfiles/cursor.json"
    real.parent.mkdir()
    desk.file.rename(real)
    desk.file.symlink_to("../dotfiles/cursor.json")
    desk.install()
    assert desk.file.is_symlink()
    assert b"serve" in real.read_bytes()
    desk.uninstall()
    assert real.read_bytes() == OLD


def test_a_read_only_file_is_left(desk: Desk) -> None:
    desk.file.chmod(0o444)
    with pytest.raises(StateError, match="is read-only; nothing was written"):
        desk.install()
    assert desk.file.read_bytes() == OLD


def test_a_file_that_others_may_write_is_refused(desk: Desk) -> None:
    desk.file.chmod(0o666)
    with pytest.raises(ValidationError, match="can be written by other users"):
        desk.install()


def test_a_broken_file_is_left_with_its_place(desk: Desk) -> None:
    desk.file.write_bytes(b'{"mcpServers": {\n  "a": }}')
    with pytest.raises(ValidationError, match=r"mcp\.json is not JSON: .*line 2, column 8"):
        desk.install()
    assert desk.file.read_bytes() == b'{"mcpServers": {\n  "a": }}'


def test_a_project_s_link_is_not_followed(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "home")
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / ".cursor").mkdir()
    environment = ConfigEnvironment(start=project, environ={}, home=desk.home)
    files = HostFiles(HOSTS["cursor"], environment, project=True)
    path = project / ".cursor/mcp.json"
    path.symlink_to(desk.file)
    with pytest.raises(ValidationError, match="leads out of the project"):
        files.plan(str(path), make_plan)
    path.unlink()
    (project / "own.json").write_bytes(OLD)
    path.symlink_to("../own.json")
    with pytest.raises(StateError, match="symbolic link"):
        files.write(files.plan(str(path), make_plan), make_plan)


def test_few_copies_are_kept(desk: Desk) -> None:
    backups = Backups("cursor", str(desk.file), desk.environment)
    for number in range(MOST + 3):
        backups.save(b"%d" % number)
        backups.save(b"%d" % number)
    data = [copy.data for copy in backups.newest_first()]
    assert data == [b"%d" % number for number in range(MOST + 2, 2, -1)]
    assert backups.save(None).name.endswith(".absent")
    assert backups.newest_first()[0].data is None


KILLED = """
import sys
from pathlib import Path
from tests.hosts.test_writing import Desk, make_plan, OLD
desk = Desk.__new__(Desk)
root = Path(sys.argv[1])
from holdfast.config.environment import ConfigEnvironment
from holdfast.config.hosts import HOSTS
from holdfast.hosts.writing import HostFiles
desk.home, desk.file = root, root / ".cursor/mcp.json"
desk.environment = ConfigEnvironment(start=root, environ={}, home=root)
desk.files = HostFiles(HOSTS["cursor"], desk.environment, project=False)
print("ready", flush=True)
while True:
    desk.install()
    desk.uninstall()
"""


@pytest.mark.hang(400)
def test_killed_at_any_moment_it_leaves_the_old_file_or_the_new(desk: Desk) -> None:
    new = desk.files.plan(str(desk.file), make_plan).after
    for delay in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(desk.home)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.003 + 0.0031 * delay)  # any moment will do: nothing waits for it
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        assert desk.file.read_bytes() in (OLD, new)
        copies = desk.files.backups(str(desk.file)).newest_first()
        assert {copy.data for copy in copies} <= {OLD, new}
    desk.install()
    desk.uninstall()
    assert desk.file.read_bytes() == OLD
