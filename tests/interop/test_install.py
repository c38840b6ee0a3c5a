"""The installer: once for each set of pins, one at a time, with a clear word when it cannot."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.interop.install import Broken, NotHere, install, run, verdict

NETWORK = [
    "npm error code ENOTFOUND",
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)'",
    "npm error network request failed, reason: connect ECONNREFUSED 127.0.0.1:9",
]


class Fake:
    """Takes note of the commands, and makes the folder that they would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands: list[Sequence[str]] = []

    def __call__(self, command: Sequence[str]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.commands.append(command)


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path / "one")


def test_what_is_installed_is_used_again(tmp_path: Path, fake: Fake) -> None:
    first = install("pypi", "one", ["a==1"], tmp_path, fake)
    assert fake.commands[-1][-1] == "a==1"
    count = len(fake.commands)
    assert install("pypi", "one", ["a==1"], tmp_path, fake) == first
    assert len(fake.commands) == count


def test_other_pins_are_installed_anew(tmp_path: Path, fake: Fake) -> None:
    folder = install("pypi", "one", ["a==1"], tmp_path, fake)
    (folder / "old").touch()
    install("pypi", "one", ["a==2"], tmp_path, fake)
    assert fake.commands[-1][-1] == "a==2"
    assert not (folder / "old").exists()


def test_half_an_installation_is_not_used(tmp_path: Path, fake: Fake) -> None:
    def fail(command: Sequence[str]) -> None:
        fake(command)
        raise Broken("half done")

    with pytest.raises(Broken):
        install("pypi", "one", ["a==1"], tmp_path, fail)
    count = len(fake.commands)
    install("pypi", "one", ["a==1"], tmp_path, fake)
    assert len(fake.commands) > count


def test_two_at_once_install_once(tmp_path: Path, fake: Fake) -> None:
    threads = [
        threading.Thread(target=install, args=("pypi", "one", ["a==1"], tmp_path, fake))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([one for one in fake.commands if one[-1] == "a==1"]) == 1


def test_a_machine_without_node_is_told_so(
    tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotHere, match="node is not installed"):
        install("npm", "one", ["a@1"], tmp_path, fake)
    assert fake.commands == []


@pytest.mark.parametrize("line", NETWORK)
def test_a_network_that_is_down_is_told_apart(line: str) -> None:
    found = verdict(["pip"], f"something\n{line}\nERROR: No matching distribution found for a\n")
    assert isinstance(found, NotHere)
    assert "cannot be reached" in str(found)


def test_a_version_that_does_not_exist_is_a_fault() -> None:
    found = verdict(["pip", "install"], "ERROR: No matching distribution found for a==1\n")
    assert isinstance(found, Broken)
    assert "pip install" in str(found)


def test_a_command_that_fails_shows_its_last_words() -> None:
    with pytest.raises(Broken, match="last words"):
        run(["sh", "-c", "echo last words >&2; exit 3"])
