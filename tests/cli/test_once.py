"""``holdfast call --once`` and ``holdfast once``: what is known of calls with a key."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from holdfast import Ledger
from holdfast.stores import SqliteStore
from tests.cli.conftest import Cli

pytestmark = pytest.mark.req("S2")
SERVER = ("--", sys.executable, "-m", "holdfast.demo.server")


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    from holdfast._core.calls import once

    monkeypatch.setattr(once, "_DEFAULT", [])


def test_a_key_at_the_terminal_from_the_call_to_its_end(cli: Cli) -> None:
    for _ in range(2):
        done = cli("call", "add", "a=2", "b=3", "--once", "order-1", *SERVER)
        assert (done.code, done.err) == (0, "")
        assert json.loads(done.out) == {"sum": 5}
    done = cli("call", "add", "a=2", "b=4", "--once", "order-1", *SERVER)
    assert done.code == 2
    assert "other arguments" in done.err
    done = cli("call", "crash", "--once", "order-2", *SERVER)
    assert done.code == 3
    done = cli("call", "crash", "--once", "order-2", *SERVER)
    assert done.code == 4
    assert "holdfast once settle order-2 --ran|--not-run" in done.err.replace("\n", " ")

    done = cli("once", "show", "--json")
    states = {record["key"]: record["state"] for record in json.loads(done.out)["records"]}
    assert states == {"order-1": "done", "order-2": "unknown"}
    done = cli("once", "show", "--open")
    assert "order-2" in done.out
    assert "order-1" not in done.out
    record = json.loads(cli("once", "show", "order-1", "--json").out)
    assert record["outcome"]["result"]["structuredContent"] == {"sum": 5}

    done = cli("once", "settle", "order-2", "--ran", "--result", '{"sum": 7}', "--note", "seen")
    assert done.code == 0
    assert cli("once", "settle", "order-2", "--not-run").code == 2
    done = cli("call", "crash", "--once", "order-2", *SERVER)
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == {"sum": 7}

    assert cli("once", "forget", "--older-than", "90d", "--json").out.strip() == '{"forgotten":0}'
    assert cli("once", "forget", "order-1").code == 0
    assert cli("once", "forget", "order-1").code == 2
    assert cli("once", "show", "order-1").code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("settle", "k"),
        ("settle", "k", "--ran", "--not-run"),
        ("settle", "k", "--ran"),
        ("settle", "k", "--ran", "--result", "{broken"),
        ("forget",),
        ("forget", "k", "--older-than", "1d"),
        ("forget", "--older-than", "soon"),
        ("show", "x" * 300),
        ("show", "--store", "mysql://localhost"),
    ],
)
def test_what_cannot_be_meant_is_told(cli: Cli, words: tuple[str, ...]) -> None:
    done = cli("once", *words)
    assert done.code == 2
    assert done.err.startswith("holdfast: ")


def test_a_ledger_that_cannot_be_reached_is_told(cli: Cli) -> None:
    done = cli("once", "show", "--store", "redis://127.0.0.1:1/0")
    assert done.code == 3
    assert "the ledger cannot be reached" in done.err.replace("\n", " ")


async def test_records_of_a_file_of_ones_own_are_shown_and_settled(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "mine.db"
    store = SqliteStore(path)
    ledger = Ledger(store)
    claim = await ledger.claim("order-7", tool="charge", server="shop")
    await ledger.settle(claim, note="lost")
    words = ("--store", str(path))
    shown = await asyncio.to_thread(cli, "once", "show", "--json", *words)
    assert [record["key"] for record in shown.value["records"]] == ["order-7"]
    settled = await asyncio.to_thread(cli, "once", "settle", "order-7", "--ran", *words)
    assert settled.code == 0, settled.err
    record = await ledger.get("order-7")
    assert record is not None
    assert record.state == "done"
    store.close()
    missing = await asyncio.to_thread(cli, "once", "show", "--store", str(tmp_path / "none.db"))
    assert (missing.code, "there is no such file" in missing.err) == (2, True)
    assert not (tmp_path / "none.db").exists()
