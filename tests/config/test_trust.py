"""A project's own file is data until its user has said yes to it."""

from __future__ import annotations

import json
import os
import shlex
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast import config as configuration
from holdfast.config import ServerEntry
from holdfast.config.trust import ApprovalStore, approving
from holdfast.errors import HoldfastError, StateError, TrustError
from tests.config.rig import World

pytestmark = pytest.mark.req("F3")

BASE: dict[str, Any] = {
    "command": "server",
    "args": ["one", "two"],
    "env": {"A": "${A:-1}", "B": "b"},
    "cwd": "sub",
    "envFile": "vars",
    "holdfast": {"allow": ["x"], "deny": ["y"], "lock": "l", "log": "calls", "inherit_env": ["C"]},
}
REMOTE: dict[str, Any] = {"url": "https://x/mcp", "headers": {"X-A": "${A:-1}"}}


def approve(entry: ServerEntry) -> None:
    ApprovalStore(entry.source.environment).approve({entry.name: entry}, {})


def revoke(entry: ServerEntry) -> bool:
    return ApprovalStore(entry.source.environment).revoke(entry)


def approved(world: World, raw: dict[str, Any]) -> ServerEntry:
    world.write("vars", "V=1\n")
    entry = world.entry(**raw)
    assert entry.trust().verdict == "untrusted"
    approve(entry)
    assert entry.trust().verdict == "trusted"
    return entry


def test_an_entry_of_a_project_is_refused_with_the_command_that_approves(world: World) -> None:
    entry = world.entry("my server", command="evil")
    with pytest.raises(TrustError) as caught:
        entry.connect()
    assert isinstance(caught.value, HoldfastError)
    text = str(caught.value)
    assert text.endswith("Approve: holdfast config trust 'my server'")
    assert str(world.project / ".mcp.json") in text


def test_the_command_that_approves_is_safe_to_paste(world: World) -> None:
    for name in ("$(rm -rf ~)", "-x", "a'b", "; ls"):
        words = shlex.split(approving(world.entry(name, command="a").name))
        assert words[:3] == ["holdfast", "config", "trust"]
        assert words[3:] == (["--", name] if name.startswith("-") else [name])


def changed(raw: dict[str, Any], **changes: Any) -> dict[str, Any]:
    own = {**raw.get("holdfast", {}), **changes.pop("holdfast", {})}
    return {**raw, **changes, **({"holdfast": own} if own else {})}


@pytest.mark.parametrize(
    ("base", "changes", "told"),
    [
        (BASE, {"command": "other"}, ["command is different"]),
        (BASE, {"args": ["one", "three"]}, ["args[1] is different"]),
        (BASE, {"args": ["one", "two", "three"]}, ["args[2] is new"]),
        (BASE, {"args": ["one"]}, ["args[1] is gone"]),
        (BASE, {"args": ["onetwo"]}, ["args[0] is different", "args[1] is gone"]),
        (BASE, {"env": {"A": "${A:-2}", "B": "b"}}, ["env.A is different"]),
        (BASE, {"env": {**BASE["env"], "LD_PRELOAD": "x"}}, ["env.LD_PRELOAD is new"]),
        (BASE, {"env": {"A": "${A:-1}", "C": "b"}}, ["env.B is gone", "env.C is new"]),
        (BASE, {"cwd": "elsewhere"}, ["cwd is different"]),
        (BASE, {"envFile": "other"}, ["envFile is different", "envFile (content) is different"]),
        (BASE, {"holdfast": {"allow": ["x", "z"]}}, ["allow[1] is new"]),
        (BASE, {"holdfast": {"deny": []}}, ["deny is new", "deny[0] is gone"]),
        (
            BASE,
            {"holdfast": {"lock": {"path": "l", "mode": "off"}}},
            ["lock is gone", "lock.mode is new", "lock.path is new"],
        ),
        (BASE, {"holdfast": {"log": "~/.bashrc"}}, ["log is different"]),
        (
            BASE,
            {"holdfast": {"inherit_env": True}},
            ["inherit_env is new", "inherit_env[0] is gone"],
        ),
        (REMOTE, {"url": "https://evil/mcp"}, ["url is different"]),
        (REMOTE, {"headers": {"X-A": "${B:-1}"}}, ["headers.X-A is different"]),
        (REMOTE, {"type": "sse"}, ["kind is different", "transport is new"]),
        (REMOTE, {"holdfast": {"proxy": "http://evil"}}, ["proxy is new"]),
        (REMOTE, {"holdfast": {"cert": "~/.ssh/id"}}, ["cert is new"]),
    ],
    ids=str,
)
def test_every_change_that_matters_needs_a_new_approval(
    world: World, base: dict[str, Any], changes: dict[str, Any], told: list[str]
) -> None:
    approved(world, base)
    entry = world.entry(**changed(base, **changes))
    found = entry.trust()
    assert found.verdict == "changed"
    assert list(found.changes) == told
    with pytest.raises(TrustError, match="has changed since it was approved"):
        entry.connect()


def test_what_does_not_matter_needs_none(world: World) -> None:
    approved(world, BASE)
    world.environ["A"] = "a new token"
    assert world.entry(**BASE, description="new", disabled=True).trust().verdict == "trusted"


def test_the_content_of_the_file_of_variables_counts(world: World) -> None:
    entry = approved(world, BASE)
    world.write("vars", "V=1\nLD_PRELOAD=evil\n")
    assert entry.trust().changes == ("envFile (content) is different",)
    (world.project / "vars").unlink()
    assert entry.trust().verdict == "changed"


def test_the_default_of_an_input_counts(world: World) -> None:
    def entry(default: str) -> ServerEntry:
        asked = {"id": "x", "type": "promptString", "default": default}
        server = {"command": "a", "args": ["${input:x}"]}
        world.write(".vscode/mcp.json", {"inputs": [asked], "servers": {"one": server}})
        return world.load()["one"]

    approve(entry("good"))
    assert entry("good").trust().ok
    assert entry("evil").trust().changes == ("inputs.x is different",)


@pytest.mark.parametrize(
    "change",
    [
        {"vars": "V=2\n"},
        {".mcp.json": {"mcpServers": {"one": {**BASE, "command": "evil"}}}},
        {".mcp.json": {"mcpServers": {"one": {**BASE, "args": ["one", "two", "evil"]}}}},
        {".mcp.json": {"mcpServers": {"one": {**BASE, "env": {"LD_PRELOAD": "evil"}}}}},
        {".mcp.json": {"mcpServers": {"one": REMOTE}}},
    ],
    ids=str,
)
@pytest.mark.parametrize("is_alone", [True, False])
def test_only_what_was_shown_is_approved(
    world: World, change: dict[str, Any], is_alone: bool
) -> None:
    world.write("vars", "V=1\n")
    world.servers(".mcp.json", one=BASE, other=REMOTE)
    seen = configuration.preview(world.load(), "one")
    for path, content in change.items():
        world.write(path, content)
    changed = world.load()
    with pytest.raises(StateError, match="'one' has changed since it was shown"):
        if is_alone:
            configuration.approve(changed, "one", seen=seen)
        else:
            configuration.approve_all(changed, changed.servers, seen={"one": seen})
    assert {entry.trust().verdict for entry in world.load()} == {"untrusted"}


def test_a_certificate_that_changed_after_it_was_shown_is_not_approved(world: World) -> None:
    raw = {**REMOTE, "holdfast": {"ca": "ca.pem"}}
    world.write("ca.pem", "one")
    world.servers(".mcp.json", one=raw)
    config = world.load()
    seen = configuration.preview(config, "one")
    world.write("ca.pem", "another")
    with pytest.raises(StateError, match="has changed since it was shown"):
        configuration.approve(config, "one", seen=seen)
    assert config["one"].trust().verdict == "untrusted"


def test_an_approval_is_for_one_file_and_one_name(world: World) -> None:
    approved(world, REMOTE)
    assert world.entry("two", **REMOTE).trust().verdict == "untrusted"
    (world.project / ".mcp.json").unlink()
    world.servers("mcp.json", one=REMOTE)
    assert world.load()["one"].trust().verdict == "untrusted"


def test_a_nearer_file_cannot_borrow_an_approval(world: World) -> None:
    approved(world, REMOTE)
    world.servers("below/.mcp.json", one=REMOTE)
    found = world.load(start=world.project / "below")
    assert found["one"].trust().verdict == "untrusted"


def test_a_user_s_own_entry_needs_no_approval(world: World) -> None:
    world.own(one={"command": "a"})
    entry = world.load()["one"]
    assert entry.trust().verdict == "own"
    approve(entry)
    assert not ApprovalStore(world.around()).path.exists()


def test_approvals_are_kept_for_nobody_else_to_read(world: World) -> None:
    world.environ["XDG_STATE_HOME"] = str(world.root / "state")
    approved(world, {"command": "a", "env": {"TOKEN": "hunter2"}})
    path = world.root / "state/holdfast/trust.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert "hunter2" not in path.read_text()
    assert sorted(file.name for file in path.parent.iterdir()) == ["trust.json", "trust.lock"]


def test_an_approval_can_be_taken_back(world: World) -> None:
    entry = approved(world, REMOTE)
    assert revoke(entry)
    assert entry.trust().verdict == "untrusted"
    assert json.loads(ApprovalStore(world.around()).path.read_text())["approvals"] == {}
    assert not revoke(entry)


def test_an_approval_holds_for_the_file_by_whatever_path_it_is_reached(world: World) -> None:
    approved(world, REMOTE)
    link = world.home / "link"
    link.symlink_to(world.project)
    assert world.load(link / ".mcp.json")["one"].trust().ok
    assert world.load(start=link)["one"].trust().ok


def test_a_store_knows_what_it_approved_itself(world: World) -> None:
    entry = world.entry(**REMOTE)
    store = ApprovalStore(entry.source.environment)
    assert not store.status(entry).ok
    store.approve({entry.name: entry}, {})
    assert store.status(entry).ok


@pytest.mark.parametrize(
    "content",
    [
        b"\x00",
        b"[]",
        b"{",
        b"{}",
        b'{"form": "other", "approvals": {}}',
    ],
)
def test_approvals_that_cannot_be_read_approve_nothing(world: World, content: bytes) -> None:
    entry = approved(world, REMOTE)
    ApprovalStore(world.around()).path.write_bytes(content)
    found = entry.trust()
    assert found.verdict == "untrusted"
    assert found.problem
    with pytest.raises(TrustError):
        entry.connect()
    with pytest.raises(StateError, match="cannot change the approvals"):
        approve(entry)


def test_approvals_of_the_wrong_shape_approve_nothing(world: World) -> None:
    entry = approved(world, REMOTE)
    path = ApprovalStore(world.around()).path
    document = json.loads(path.read_text())
    file = str(world.project / ".mcp.json")
    oddities: list[Any] = [5, [], {file: {"one": {"hash": 5}}}, {file: 5}]
    for odd in oddities:
        path.write_text(json.dumps({**document, "approvals": odd}))
        assert entry.trust().verdict == "untrusted"


def test_approvals_that_others_can_write_are_not_used(world: World) -> None:
    entry = approved(world, REMOTE)
    os.chmod(ApprovalStore(world.around()).path, 0o666)
    found = entry.trust()
    assert not found.ok
    assert "can be written by other users" in (found.problem or "")


def test_a_path_that_is_no_text_is_approved_like_any_other(world: World) -> None:
    odd = os.fsdecode(os.fsencode(world.project) + b"/\xff")
    os.makedirs(odd)
    server = {"command": "a", "holdfast": {"budget": {"\ud800": 5}}}
    world.servers(f"{odd}/.mcp.json", one=server)
    other = approved(world, REMOTE)
    for _ in range(2):
        config = world.load(start=Path(odd))
        configuration.approve(config, "one")
        assert world.load(start=Path(odd))["one"].trust().ok
    assert other.trust().ok


def test_approvals_at_once_are_all_kept(world: World) -> None:
    names = [f"s{number}" for number in range(16)]
    world.servers(".mcp.json", **{name: {"command": name} for name in names})
    config = world.load()
    threads = [
        threading.Thread(target=configuration.approve, args=(config, name)) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(entry.trust().ok for entry in world.load())
    assert configuration.revoke(config, "s3")
    assert [entry.name for entry in world.load() if not entry.trust().ok] == ["s3"]
