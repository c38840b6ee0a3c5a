"""Files of all hosts: Holdfast put before their servers, and taken out again to the byte."""

from __future__ import annotations

import json

import pytest

from holdfast.config.files import parse
from holdfast.config.hosts import HOSTS
from tests.hosts.rig import HEAD, installed, servers, uninstalled
from tests.hosts.samples import SAMPLES, Sample
from tests.rows import rows
from tests.thorough import THOROUGH

pytestmark = pytest.mark.req("Y6")

EVERY = rows("sample", SAMPLES.values(), ids=SAMPLES)
MANY = 20
"""Servers in a file for which one at a time takes seconds."""
SHORT = {
    name: sample
    for name, sample in SAMPLES.items()
    if THOROUGH or sample.data.count(b"command") <= MANY
}


def test_every_host_has_a_sample() -> None:
    assert len(SAMPLES) >= 40
    assert {sample.host for sample in SAMPLES.values()} == set(HOSTS)


@EVERY
def test_a_file_comes_back_to_the_byte(sample: Sample) -> None:
    plan = installed(sample.host, sample.file, sample.data)
    assert plan.changes
    assert plan.after != sample.data
    back = uninstalled(sample.host, sample.file, plan.after, backups=[b"{}", sample.data, b"x"])
    assert back.after == sample.data


@EVERY
def test_without_a_backup_the_servers_come_back(sample: Sample) -> None:
    plan = installed(sample.host, sample.file, sample.data)
    back = uninstalled(sample.host, sample.file, plan.after)
    assert back.after is not None
    assert (back.after == sample.data) == sample.is_exact
    before = servers(sample.host, sample.file, sample.data)
    assert servers(sample.host, sample.file, back.after) == before


@EVERY
def test_servers_go_through_holdfast_and_keep_all_else(sample: Sample) -> None:
    before = servers(sample.host, sample.file, sample.data)
    plan = installed(sample.host, sample.file, sample.data)
    after = servers(sample.host, sample.file, plan.after)
    assert list(after) == list(before)
    for label, server in before.items():
        words = () if server.fault else (*HEAD, *server.words)
        assert (after[label].words, after[label].env) == (words, server.env)


@EVERY
def test_only_lines_of_commands_change(sample: Sample) -> None:
    """Every line of the old file is there still, but for those that hold a command or its list."""
    plan = installed(sample.host, sample.file, sample.data)
    assert plan.after is not None
    lines = plan.after.decode().split("\n")
    for line in sample.text.split("\n"):
        if not any(mark in line for mark in ("command", "cmd", "args", "path")):
            assert line in lines
    assert plan.after.count(b"\r\n") >= sample.data.count(b"\r\n")
    assert (plan.after[:3] == b"\xef\xbb\xbf") == (sample.data[:3] == b"\xef\xbb\xbf")
    if b"\r\n" in sample.data:
        assert plan.after.count(b"\n") == plan.after.count(b"\r\n")


@EVERY
def test_twice_is_once(sample: Sample) -> None:
    plan = installed(sample.host, sample.file, sample.data)
    again = installed(sample.host, sample.file, plan.after)
    assert again.is_empty
    assert not again.changes
    assert len(again.done) == len(plan.changes)


@pytest.mark.thorough
@rows("sample", SHORT.values(), ids=SHORT)
def test_one_at_a_time_is_the_same(sample: Sample) -> None:
    """Servers put in and taken out one by one, in another order, leave the same bytes."""
    whole = installed(sample.host, sample.file, sample.data)
    names = [change.name for change in whole.changes]
    data: bytes | None = sample.data
    backups: list[bytes | None] = []
    for name in reversed(names):
        backups.insert(0, data)
        data = installed(sample.host, sample.file, data, name).after
    assert data == whole.after
    for name in names:
        plan = uninstalled(sample.host, sample.file, data, name, backups=backups)
        backups.insert(0, data)
        data = plan.after
    assert data == sample.data


@EVERY
def test_a_host_that_writes_its_file_anew_keeps_the_old_command(sample: Sample) -> None:
    """A host reads its file and writes it in its own layout: uninstalling restores the servers."""
    plan = installed(sample.host, sample.file, sample.data)
    assert plan.after is not None
    rewritten = _rewritten(sample, plan.after)
    back = uninstalled(sample.host, sample.file, rewritten, backups=[sample.data])
    assert back.after is not None
    assert _plain(sample, back.after) == _plain(sample, sample.data)


def _rewritten(sample: Sample, data: bytes) -> bytes:
    content = {**parse(sample.file, data), "zz_new": "setting"}
    if sample.file.endswith(".yaml"):
        import yaml

        return str(yaml.safe_dump(content, sort_keys=False)).encode()
    if sample.file.endswith(".toml"):
        return data + b"\n[zz_new]\na = 1 # by hand\n"
    return json.dumps(content, indent=4, ensure_ascii=True).encode()


def _plain(sample: Sample, data: bytes) -> object:
    """The content, where a list of arguments that is empty is as good as none."""

    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {
                key: plain(item)
                for key, item in value.items()
                if key != "zz_new" and not (key == "args" and item == [])
            }
        return value

    return plain(dict(parse(sample.file, data)))
