"""The comparison with other clients, without them: its drivers, its faults, its page."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks import http_server, server
from benchmarks.peers import clients, faults, install, link, plot, report, results, rogue_http, rows
from benchmarks.peers.clients import CLIENTS, DRIVERS, OURS, Client
from benchmarks.peers.faults import Outcome
from benchmarks.peers.main import in_turn, once
from benchmarks.peers.results import Measured, Results

SVG = "{http://www.w3.org/2000/svg}"

ABOUT = {
    "machine": "a machine",
    "load": 0.1,
    "python": "CPython 3.11",
    "node": "Node.js 22",
    "http": "a server",
    "server": "another",
    "seconds_each": 0.5,
    "pinned": "on one CPU",
    "rounds": 3,
}


def a_run() -> Results:
    row = Measured("sequential", "one call after another", "µs")
    for ours, theirs in ((10e-6, 30e-6), (20e-6, 40e-6), (10e-6, 50e-6)):
        row.add("holdfast", ours)
        row.add("mcp", theirs)
    memory = Measured("memory", "memory <of> one more", "kB")
    memory.add("holdfast", 20e3)
    memory.add("mcp", 10e3)
    dies = {
        "holdfast": Outcome(call="error", kind="TransportError", seconds=0.002, next_works=True),
        "mcp": Outcome(call="hung", seconds=20.0, next_works=False, next_kind="hung", left=1),
    }
    return Results(
        dict(ABOUT), {"holdfast": "1.0", "mcp": "2.3.0"}, {}, [row, memory], {"dies": dies}
    )


# The page


def test_a_ratio_is_the_median_of_the_rounds_own_ratios() -> None:
    (row, _) = a_run().rows
    assert row.ratio("mcp") == results.Ratio(3.0, 2.0, 5.0)
    assert row.ratio("nobody") is None


def test_a_round_that_failed_does_not_shift_the_others() -> None:
    row = Measured("a", "a", "µs")
    for ours, theirs in ((1.0, None), (2.0, 4.0), (None, 9.0), (4.0, 12.0)):
        row.add("holdfast", ours)
        row.add("mcp", theirs)
    assert row.ratio("mcp") == results.Ratio(2.5, 2.0, 3.0)


def test_the_table_shows_ours_as_it_is_and_others_as_ratios() -> None:
    text = report.page(a_run())
    assert "| one call after another | 10.0 µs | 3.0 (2.0–5.0) |" in text
    assert "| memory <of> one more | 20.0 kB | 0.50 |" in text
    assert "3 rounds of about 0.5 s" in text
    assert "expect noise" not in text


def test_a_busy_machine_is_owned_up_to() -> None:
    found = a_run()
    found.about["load"] = 4.2
    assert "load at the start 4.2, so not idle: expect noise." in report.page(found)


def test_a_peer_that_wins_is_named() -> None:
    text = report.better(a_run())
    assert "memory <of> one more: Python SDK 2 takes 0.50 of what Holdfast takes." in text
    assert "one call after another" not in text


def test_a_peer_that_is_sometimes_ahead_is_named_too() -> None:
    found = a_run()
    found.rows[0].values["mcp"][0] = 5e-6
    assert "was ahead in some rounds (median 2.0 of" in report.better(found)


def test_a_fault_that_a_peer_takes_better_is_named() -> None:
    found = a_run()
    dies = found.faults["dies"]
    dies["holdfast"], dies["mcp"] = dies["mcp"], dies["holdfast"]
    assert "in the middle of a call: Python SDK 2; Holdfast: hung" in report.better(found)


def test_where_nobody_is_better_it_says_so() -> None:
    found = a_run()
    found.rows.pop()
    assert "none was faster than Holdfast" in report.better(found)


def test_a_client_that_failed_or_is_missing_is_not_hidden() -> None:
    found = a_run()
    found.rows[0].failures["mcp"] = "no | way"
    found.missing["fastmcp"] = "no network"
    text = report.page(found)
    assert "| failed: no / way |" in text
    assert "fastmcp is missing: no network." in text


def test_faults_are_told_in_words() -> None:
    text = report.page(a_run())
    assert "| Holdfast | `TransportError` after 2 ms | works | — | — |" in text
    assert "| **hung**: no end after 20.0 s | **hung**: no end after" in text
    assert "| **without fault** | **1 of 1** | **0 of 1** |" in text


def test_a_run_is_kept_and_read_back(tmp_path: Path) -> None:
    found = a_run()
    found.write(tmp_path / "results.json")
    assert results.read(tmp_path / "results.json") == found


def test_the_page_and_the_plot_say_what_was_kept() -> None:
    kept = results.read()
    assert report.PAGE.read_text(encoding="utf-8") == report.page(kept)
    assert report.PLOT.read_text(encoding="utf-8") == plot.svg(kept)


def test_what_is_kept_is_a_whole_run() -> None:
    kept = results.read()
    assert [row.key for row in kept.rows] == [row.key for row in rows.ROWS]
    assert list(kept.faults) == [fault.key for fault in faults.FAULTS]
    names = {client.name for client in CLIENTS}
    assert all(row.values.keys() == names for row in kept.rows)
    assert all(outcomes.keys() == names for outcomes in kept.faults.values())


# The plot


def test_the_plot_has_a_dot_for_each_ratio_inside_its_frame() -> None:
    root = ET.fromstring(plot.svg(a_run()))
    *_, width, height = map(float, root.attrib["viewBox"].split())
    dots = root.findall(f"{SVG}g/{SVG}circle")
    assert len(dots) == 2
    for dot in dots:
        assert plot.LABELS <= float(dot.attrib["cx"]) <= width
        assert 0 < float(dot.attrib["cy"]) < height
    said = [group.findtext(f"{SVG}title") for group in root.findall(f"{SVG}g")]
    assert "memory <of> one more: Python SDK 2 0.50 (0.50 to 0.50)" in said


@pytest.mark.parametrize(("low", "high"), [(0.01, 9999), (1, 1), (3, 40), (0, 1)])
def test_every_ratio_finds_a_place(low: float, high: float) -> None:
    scale = plot.Scale(low, high)
    assert scale.ticks[0] < 1 < scale.ticks[-1]
    assert plot.LABELS <= scale.at(low) <= scale.at(high) <= plot.WIDTH - plot.RIGHT


# The clients, and how they come here


def test_every_client_is_pinned_and_has_a_driver() -> None:
    assert all((DRIVERS / client.driver).exists() for client in CLIENTS)
    for client in CLIENTS[1:]:
        assert client.version.count(".") == 2
        assert str(client.home) in "\0".join(client.command())


def test_ours_is_always_compared_with() -> None:
    assert [client.name for client in clients.chosen("fastmcp")] == ["holdfast", "fastmcp"]
    with pytest.raises(SystemExit, match="no such client: other"):
        clients.chosen("other")


def test_what_is_installed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CACHE", tmp_path)
    ran: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> None:
        ran.append(command)
        clients.named("mcp").home.mkdir(exist_ok=True)

    install.install(clients.named("mcp"), run)
    assert ran[-1][-1] == "mcp==2.3.0"
    count = len(ran)
    install.install(clients.named("mcp"), run)
    assert len(ran) == count


def test_a_failed_installation_leaves_a_client_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "CACHE", tmp_path)

    def fail(client: Client) -> None:
        if client is not OURS:
            raise install.InstallError("no network")

    monkeypatch.setattr(install, "install", fail)
    there, missing = install.install_all(CLIENTS[:2])
    assert there == [OURS]
    assert missing == {"mcp": "no network"}


def test_a_command_that_fails_says_why() -> None:
    with pytest.raises(install.InstallError, match="the reason"):
        install.run(
            [sys.executable, "-c", "print('much'); print('the reason'); raise SystemExit(1)"]
        )


# Measuring, with our own driver


def test_the_order_changes_from_round_to_round() -> None:
    orders = [[client.name for client in in_turn(CLIENTS, number)] for number in range(5)]
    assert all(set(order) == set(orders[0]) for order in orders)
    assert len({order[0] for order in orders}) == 5
    assert all(len({order[place] for order in orders}) > 2 for place in range(5))


EACH_KIND = ("sequential", "1mib", "connect", "http", "sse-c64", "import", "cold", "memory")


@pytest.mark.hang(360)
@pytest.mark.parametrize("key", EACH_KIND)
def test_every_kind_of_row_gives_a_number(
    key: str, web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "LONGEST", 300.0)
    (row,) = rows.chosen(key)
    bench = rows.Bench(server.find(), web, seconds=0.01)
    measured = Measured(row.key, row.title, row.unit)
    once(row, bench, OURS, measured)
    assert measured.failures == {}
    (value,) = measured.of("holdfast")
    assert value >= 0


def test_a_driver_that_fails_leaves_its_round_empty(tmp_path: Path) -> None:
    row, bench = rows.ROWS[0], rows.Bench(server.Server(("/no/such/server",), ""), "")
    measured = Measured(row.key, row.title, row.unit)
    once(row, bench, OURS, measured)
    assert measured.values == {"holdfast": [None]}
    assert measured.failures["holdfast"].startswith("error: ")


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    path = (str(clients.ROOT), str(clients.ROOT / "src"))
    with http_server.running(path) as (address, _):
        yield address


# A driver that is dead, deaf or greedy


def fake(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_client_that_dies_is_seen_as_dead() -> None:
    with link.driver(OURS, fake("import sys; sys.stdin.readline(); sys.exit(7)")) as started:
        reply = started.ask(20, "call")
    assert (reply.ended, reply.message) == ("died", "exit status 7")


def test_a_client_that_does_not_answer_is_hung() -> None:
    with link.driver(OURS, fake("import time; time.sleep(60)")) as started:
        assert started.ask(0.2, "call").ended == "hung"


def test_a_client_that_grows_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "MEMORY_LIMIT", 96 << 20)
    code = (
        "import time; kept = bytearray(128 << 20); kept[::4096] = b'x' * (1 << 15)\ntime.sleep(60)"
    )
    with link.driver(OURS, fake(code)) as started:
        assert started.ask(30, "call").ended == "memory"
        assert started.process.wait(120) != 0


def test_noise_on_a_drivers_output_is_passed_over() -> None:
    said = json.dumps({"id": 1, "seconds": 0.5, "ok": "yes"})
    code = f"input(); print('hello'); print('[]'); print({said!r}, flush=True); input()"
    with link.driver(OURS, fake(code)) as started:
        assert started.ask(20, "call") == link.Reply("answer", 0.5, "yes")


def test_a_fault_of_luck_is_tried_again_and_the_best_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fault, luck = faults.named("chatters"), [Outcome(call="hung"), Outcome(call="error")]
    monkeypatch.setattr(faults, "play", lambda *_: luck.pop(0))
    monkeypatch.setattr(faults, "driver", lambda _: contextlib.nullcontext())
    assert faults.attempt(fault, OURS, "") == Outcome(call="error")
    assert luck == []


def test_a_dead_driver_is_a_fault_like_any_other() -> None:
    with link.driver(OURS, fake("raise SystemExit(3)")) as started:
        outcome = faults.play(faults.named("dies"), started, ["server"])
    assert outcome.opened.startswith("died")
    assert faults.shortcomings(faults.named("dies"), outcome) == ["could not be tried"]


def test_what_is_left_over_is_counted_and_ended() -> None:
    mark = f"peers-test-{os.getpid()}"
    command = [*fake("print(flush=True); input()"), mark]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as left:
        assert left.stdout is not None
        left.stdout.readline()
        assert link.left_over(mark) == {left.pid}
        assert link.remaining(mark, within=0) == 1
        link.end(link.left_over(mark))
        left.wait(120)
        assert link.remaining(mark) == 0


# Faults, with our own driver

SLOW = 60.0
"""Seconds for what comes at once, unless others use the machine as well."""


@pytest.fixture
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TIMEOUT", "WATCHDOG", "NEXT_WITHIN"):
        monkeypatch.setattr(faults, name, SLOW)


def patient(fault: faults.Fault) -> faults.Fault:
    timeout = None if fault.timeout is None else SLOW
    return dataclasses.replace(fault, timeout=timeout, watchdog=2 * SLOW)


@pytest.mark.usefixtures("slow_machine")
@pytest.mark.parametrize("key", ["dies", "closed", "babbles"])
def test_our_own_client_is_without_fault_on_stdio(key: str) -> None:
    fault = patient(faults.named(key))
    outcome = faults.attempt(fault, OURS, faults.target_of(fault, "", 0))
    assert faults.shortcomings(fault, outcome) == []
    assert outcome.call == "error"
    kinds = {"dies": "TransportError", "closed": "ShutdownError", "babbles": "ProtocolError"}
    assert outcome.kind == kinds[key]


@pytest.mark.parametrize(
    ("key", "call", "kind"), [("expired", "answer", ""), ("cut", "error", "TransportError")]
)
@pytest.mark.usefixtures("slow_machine")
def test_our_own_client_is_without_fault_over_http(key: str, call: str, kind: str) -> None:
    fault = patient(faults.named(key))
    with rogue_http.running() as address:
        outcome = faults.attempt(fault, OURS, faults.target_of(fault, address, 0))
    assert faults.shortcomings(fault, outcome) == []
    assert (outcome.call, outcome.kind) == (call, kind)


@pytest.mark.parametrize(
    ("key", "outcome", "expected"),
    [
        ("dies", Outcome(call="error", seconds=0.1, next_works=True, close="answer", left=0), []),
        ("dies", Outcome(call="hung"), ["hung"]),
        ("dies", Outcome(call="died"), ["died"]),
        ("mute", Outcome(call="error", seconds=8.0), ["late"]),
        ("forgotten", Outcome(call="error", seconds=60.0), []),
        ("babbles", Outcome(call="memory"), ["memory"]),
        ("babbles", Outcome(call="error", grown=1 << 29), ["memory"]),
        ("closed", Outcome(call="error", kind=faults.CANCELLED), ["cancelled the caller's task"]),
        ("dies", Outcome(call="error", next_works=False, next_kind="E"), ["next call fails"]),
        ("deaf", Outcome(call="error", next_works=False, next_kind="E"), []),
        ("deaf", Outcome(next_works=False, next_kind="hung"), ["next call hung"]),
        ("deaf", Outcome(next_works=False, next_kind="E", next_seconds=9), ["next call late"]),
        ("stubborn", Outcome(close="error", close_kind="E", left=0), ["close fails"]),
        ("killed", Outcome(left=2), ["left a process"]),
    ],
)
def test_an_outcome_is_judged_by_what_a_caller_would_complain_of(
    key: str, outcome: Outcome, expected: list[str]
) -> None:
    assert faults.shortcomings(faults.named(key), outcome) == expected
