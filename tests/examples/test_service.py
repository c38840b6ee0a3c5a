"""The web service in examples/service: under fire, and part by part."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from examples.service import clients, faults, inventory, ledger
from examples.service.report import report
from examples.service.settings import LOCK, ROOT, Settings
from examples.service.traffic import SECRET, Outcome, Record, judge
from examples.service.verdict import Evidence, violations
from examples.service.watching import Metrics
from holdfast.lock import guard as locks
from holdfast.testing import Peer
from tests.rows import rows

# Everything, with kills


@pytest.mark.req("L5", "L8", "R2", "R11", "T8", "M2", "H8")
@pytest.mark.hang(300)
@pytest.mark.long
@pytest.mark.thorough(only=True)
def test_killed_servers_cost_no_hung_request_and_no_double_write() -> None:
    """Long timeouts: on a slow machine they must not end what is only slow."""
    arguments = "--seconds 2 --callers 6 --workers 2 --timeout 30"
    done = subprocess.run(
        [sys.executable, "-m", "examples.service.load", *arguments.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every promise was kept" in done.stdout
    # It was a run worth the name: servers were killed, and all of it was written down.
    killed = re.search(r"inventory ([1-9]\d*) times, ledger ([1-9]\d*) times", done.stdout)
    written = re.search(r"([1-9]\d*) audit records, ([1-9]\d*) spans", done.stdout)
    assert killed, done.stdout
    assert written, done.stdout


# The verdict finds what it is there to find


def record(outcome: Outcome = "ok", operation: str = "a", *, began: float = 0.0) -> Record:
    return Record("order", operation, outcome, began, began + 0.1, detail=f"{outcome} {operation}")


def audit(outcome: str = "ok", operation: str = "a", *, unknown: bool = False) -> str:
    arguments = {"operation": operation, "card_token": "[redacted]"}
    told = {"tool": "record_order", "outcome": outcome, "outcome_unknown": unknown}
    return json.dumps({**told, "arguments": arguments})


def evidence(**changes: Any) -> Evidence:
    """An order that went well, before the servers were struck and after."""
    good = Evidence(
        records=[record(), record(operation="b", began=9.0)],
        executions={"a": 1, "b": 1},
        audit=[audit(), audit(operation="b")],
        spans=[],
        struck=1.0,
        steady=5.0,
        bound=2.0,
    )
    return dataclasses.replace(good, **changes)


def test_a_good_run_has_no_violation() -> None:
    assert violations(evidence()) == []


@rows(
    ("changes", "words"),
    [
        ({"executions": {"a": 2, "b": 1}}, "1 operations that ran twice: a"),
        ({"executions": {"b": 1}}, "1 acknowledged and not written: a"),
        ({"executions": {"a": 1, "b": 1, "c": 1}}, "1 written and never asked for: c"),
        ({"steady": None}, "no recovery"),
        ({"left_over": {7: "sh"}}, "1 processes left over: 7: sh"),
        ({"audit": [audit()]}, "1 orders without exactly one audit record: b has 0"),
        ({"audit": [audit(), audit(), audit(operation="b")]}, "audit record: a has 2"),
        ({"audit": [audit("timeout"), audit(operation="b")]}, "told ok, the audit refused"),
        ({"spans": [SECRET]}, "1 secrets told"),
    ],
)
def test_what_must_not_be_is_found(changes: dict[str, Any], words: str) -> None:
    (fault,) = violations(evidence(**changes))
    assert words in fault


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("hung", "1 requests without an answer: hung a"),
        ("broken", "1 broken answers: broken a"),
        ("refused", "1 refused and written all the same: a"),
    ],
)
def test_an_answer_that_must_not_be_is_found(outcome: Outcome, words: str) -> None:
    records = [record(outcome), record(operation="b", began=9.0)]
    assert words in violations(evidence(records=records))[0]


def test_an_unknown_outcome_may_have_run_or_not() -> None:
    records, told = [record("unknown"), record(operation="b")], audit("transport", unknown=True)
    for ran in ({"a": 1, "b": 1}, {"b": 1}):
        seen = evidence(records=records, executions=ran, audit=[told, audit(operation="b")])
        assert violations(seen) == []


def test_a_slow_recovery_and_a_failure_after_it_are_found() -> None:
    records = [record("refused", began=3.5), record("refused", "b", began=9.0)]
    seen = evidence(records=records, executions={}, audit=[audit("state"), audit("state", "b")])
    slow, late = violations(seen)
    assert slow.startswith("recovery took 8.1 s")
    assert late == "1 failures after the recovery: refused b"


def test_the_report_tells_the_numbers() -> None:
    metrics = 'mcp_requests_total{worker="1",method="resources/read",outcome="ok"} 3\n'
    kills = {"inventory": 4, "ledger": 2}
    told = report(evidence(), [], metrics=metrics, kills=kills, workers=2, callers=6)
    assert "inventory 4 times, ledger 2 times" in told
    assert "2 acknowledged, 0 refused, 0 unknown" in told
    assert "0 items shown, 3 reads asked for" in told
    failed = report(evidence(), ["x"], metrics="", kills=kills, workers=2, callers=6)
    assert failed.endswith("VIOLATION: x")


# What callers are told


def every_error() -> list[type[holdfast.HoldfastError]]:
    found, new = [], [holdfast.HoldfastError]
    while new:
        new = [kind for one in new for kind in one.__subclasses__()]
        found += new
    return [kind for kind in found if kind.__module__ == "holdfast.errors"]


@pytest.mark.req("E1", "R11")
@rows("kind", every_error())
def test_every_error_has_a_status_and_only_what_did_not_run_says_try_again(
    kind: type[holdfast.HoldfastError],
) -> None:
    assert any(issubclass(kind, known) for known, _ in faults.STATUS)
    assert 400 <= faults.status_of(kind("no")) < 600
    unknown = kind("no", outcome_unknown=True)
    assert faults.status_of(unknown) != 503
    body = json.loads(bytes(faults.response(unknown).body))
    assert body == {"error": kind.kind, "message": "no", "outcome_unknown": True}


def test_a_server_that_is_down_says_when_to_come_back() -> None:
    told = faults.response(holdfast.StateError("down", state="backoff", retry_in=2.3))
    assert (told.status_code, told.headers["Retry-After"]) == (503, "3")


@rows(
    ("status", "said", "outcome"),
    [
        (201, {}, "ok"),
        (503, {"outcome_unknown": False}, "refused"),
        (502, {"outcome_unknown": True}, "unknown"),
        (502, {}, "broken"),
        (500, {"outcome_unknown": False}, "broken"),
    ],
)
def test_callers_go_by_what_the_service_says(status: int, said: Any, outcome: str) -> None:
    assert judge(status, said) == outcome


# The lock, the numbers, the ledger


@pytest.mark.req("H8")
async def test_the_lock_file_is_of_these_servers(tmp_path: Path) -> None:
    locked = locks.read(LOCK).servers
    book = ledger.Book(tmp_path / "ledger.sqlite")
    for offer in (inventory.OFFER, ledger.offer(book)):
        found = {tool.name: tool.listed() for tool in offer.tools}
        assert locked[offer.name].definitions == found
        assert locked[offer.name].instructions == offer.instructions
    book.close()


@pytest.mark.req("H8")
async def test_another_server_in_the_place_of_the_inventory_is_refused() -> None:
    other = (sys.executable, "-m", "holdfast.demo.server")
    settings = Settings("http://127.0.0.1:9/mcp", Path(), inventory=other)
    async with clients.inventory(settings, holdfast.Observability()) as client:
        with pytest.raises(holdfast.DriftError, match="stock"):
            await client.call_tool("stock", {"item": "item-1"})


@pytest.mark.req("M1")
async def test_the_numbers_count_what_the_clients_do() -> None:
    peer = Peer()
    peer.tool(name="fine")(lambda: "fine")
    metrics = Metrics()
    async with holdfast.connect(peer, name="peer") as client:
        metrics.watch(client)
        await client.call_tool("fine")
        with pytest.raises(holdfast.RpcError):
            await client.request("no/such/method")
    metrics.responded("/item", 200)
    told = "".join(metrics.lines())
    assert 'client="peer",method="tools/call",outcome="ok"} 1\n' in told
    assert 'client="peer",method="no/such/method",outcome="jsonrpc"} 1\n' in told
    assert 'client="peer",state="ready"} 1\n' in told
    assert 'path="/item",status="200"} 1\n' in told


async def test_the_ledger_writes_down_twice_what_it_is_told_twice(tmp_path: Path) -> None:
    """Otherwise a double write would not show."""
    book = ledger.Book(tmp_path / "ledger.sqlite")
    record_order, find_order = ledger.offer(book).tools
    for _ in range(2):
        await record_order.run({"operation": "a", "item": "item-1", "quantity": 1})
    assert await find_order.run({"operation": "a"}) == {"operation": "a", "executions": 2}
    assert book.count() == {"a": 2}
    book.close()
