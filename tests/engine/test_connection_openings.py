"""Real servers, played by scripts: how each is spoken to, from its start to its first answer.

Each row of the tables names the software that behaves so.
"""

from __future__ import annotations

import pytest

from holdfast._core.boundary import CheckRead, Close, Open
from holdfast._core.eras.conversation import Plan
from holdfast.errors import HandshakeTimeout, RpcError, TransportError
from holdfast.policies import Identity, Policy, Timeouts
from tests.engine.rig import (
    CRASH,
    DIES,
    DISCOVERED,
    INITIALIZED,
    LEGACY,
    MISSING,
    MODERN,
    SILENT,
    Process,
    Reply,
    Rig,
    Script,
    frames,
    initialized,
    methods,
    only,
    ready,
    reconnect,
    refusal,
    unsupported,
)
from tests.rows import rows

DISCOVER, INITIALIZE = "server/discover", "initialize"

pytestmark = pytest.mark.req("L3")


def legacy_once_probed(process: Process) -> Reply:
    """Dies at the message after the probe; lives if it was never probed."""
    return DIES if DISCOVER in process.heard else INITIALIZED


def refused_when_modern(process: Process) -> Reply:
    return unsupported(MODERN) if DISCOVER in process.heard else INITIALIZED


# Every server of the table, what each of its processes hears, and what comes of it.
SERVERS: dict[str, tuple[Script, list[list[str]], str]] = {
    "python sdk 2.3, fastmcp 4: discover answered, initialize then refused": (
        {DISCOVER: DISCOVERED, INITIALIZE: refused_when_modern},
        [[DISCOVER]],
        MODERN,
    ),
    "go sdk 1.8: discover answered, initialize then an error of code 0": (
        {DISCOVER: DISCOVERED, INITIALIZE: refusal(0, 'duplicate "initialize"')},
        [[DISCOVER]],
        MODERN,
    ),
    "typescript sdk 2.4, tmcp, rmcp 3.1: takes either": (
        {DISCOVER: DISCOVERED, INITIALIZE: INITIALIZED},
        [[DISCOVER]],
        MODERN,
    ),
    "typescript sdk 1, mcp-go, c#: -32601, then initialize": (
        {DISCOVER: MISSING, INITIALIZE: INITIALIZED},
        [[DISCOVER, INITIALIZE]],
        LEGACY,
    ),
    "python sdk 1.9 to 1.30, fastmcp 2 and 3: -32602, then initialize": (
        {DISCOVER: refusal(-32602), INITIALIZE: INITIALIZED},
        [[DISCOVER, INITIALIZE]],
        LEGACY,
    ),
    "python sdk 1.0 to 1.8: silence, and it dies at the next message": (
        {DISCOVER: SILENT, INITIALIZE: legacy_once_probed},
        [[DISCOVER, INITIALIZE], [INITIALIZE]],
        LEGACY,
    ),
    "one rust sdk: silence, then initialize works": (
        {DISCOVER: SILENT, INITIALIZE: INITIALIZED},
        [[DISCOVER, INITIALIZE]],
        LEGACY,
    ),
    "a server that dies of the probe at once": (
        {DISCOVER: DIES, INITIALIZE: INITIALIZED},
        [[DISCOVER], [INITIALIZE]],
        LEGACY,
    ),
    "one that lists handshake versions only": (
        {
            DISCOVER: {"result": {"supportedVersions": ["2025-06-18"]}},
            INITIALIZE: initialized("2025-06-18"),
        },
        [[DISCOVER, INITIALIZE]],
        "2025-06-18",
    ),
    "one with a hole in its versions": (
        {DISCOVER: unsupported("2027-01-01", "2025-06-18"), INITIALIZE: initialized("2025-06-18")},
        [[DISCOVER, INITIALIZE]],
        "2025-06-18",
    ),
    "some that speak 2024-11-05 only": (
        {DISCOVER: MISSING, INITIALIZE: initialized("2024-11-05")},
        [[DISCOVER, INITIALIZE]],
        "2024-11-05",
    ),
    "-32000 for whatever comes before initialize": (
        {DISCOVER: refusal(-32000, "not initialized"), INITIALIZE: INITIALIZED},
        [[DISCOVER, INITIALIZE]],
        LEGACY,
    ),
    "garbage for an answer": (
        {DISCOVER: {"result": "pong"}, INITIALIZE: INITIALIZED},
        [[DISCOVER, INITIALIZE]],
        LEGACY,
    ),
    "an error without an id": (
        {DISCOVER: {"id": None, **refusal(-32700)}, INITIALIZE: INITIALIZED},
        [[DISCOVER, INITIALIZE]],
        LEGACY,
    ),
}


@rows(("script", "openings", "version"), SERVERS.values(), ids=SERVERS)
def test_every_kind_of_server_is_reached(
    script: Script, openings: list[list[str]], version: str
) -> None:
    rig = Rig(script)
    ticket = rig.call("tools/list")
    rig.run(2.0)
    assert rig.state == "ready"
    assert rig.openings() == openings
    assert rig.engine.facts is not None
    assert rig.engine.facts.version == version
    assert rig.violations() == []
    assert "tools/list" in rig.processes[-1].heard
    assert isinstance(rig.error(ticket), RpcError), "the script knows no tools: an answer came"


@rows(("script", "openings", "version"), SERVERS.values(), ids=SERVERS)
def test_the_verdict_is_remembered_and_a_reconnect_does_not_probe(
    script: Script, openings: list[list[str]], version: str
) -> None:
    rig = Rig(script)
    rig.connect(2.0)
    lives = len(rig.processes)
    rig.lose()
    rig.run(2.0)
    assert rig.state == "ready"
    assert len(rig.processes) == lives + 1
    (asked,) = rig.openings()[lives:]
    assert asked == ([DISCOVER] if version == MODERN else [INITIALIZE])
    assert rig.engine.facts is not None
    assert rig.engine.facts.version in (version, LEGACY)


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ({DISCOVER: DISCOVERED, INITIALIZE: unsupported(MODERN)}, MODERN),
        ({DISCOVER: MISSING, INITIALIZE: INITIALIZED}, LEGACY),
        ({DISCOVER: SILENT, INITIALIZE: INITIALIZED}, LEGACY),
    ],
    ids=["modern", "legacy", "silent"],
)
def test_a_slow_starter_is_given_its_time_until_it_reads(script: Script, version: str) -> None:
    """5 s and more under load: it has not read the probe, so it is not silent."""
    rig = Rig(script, reads_after=6.0)
    rig.connect(5.9)
    assert rig.openings() == [[]]
    assert rig.processes[0].waiting[0]["method"] == DISCOVER
    assert len(rig.processes[0].waiting) == 1, "no hedge before it has read the probe"
    assert len(only(rig.effects, CheckRead)) > 5
    rig.run(2.0)
    assert rig.state == "ready"
    assert rig.engine.facts is not None
    assert rig.engine.facts.version == version


def hedged(policy: Policy | None = None) -> tuple[Rig, int, int]:
    """A rig that was silent at first: the ids of its two questions."""
    rig = Rig(policy=policy)
    rig.open()
    (probe,) = frames(rig.opened())
    rig.at(0.5)
    assert only(rig.effects, CheckRead) == [CheckRead()]
    (negotiator,) = frames(rig.sounded(unread=False))
    assert negotiator["method"] == INITIALIZE
    return rig, probe["id"], negotiator["id"]


def test_a_late_discovery_and_a_refused_hedge_make_a_modern_server() -> None:
    """It was slow in answering, not silent."""
    rig, probe, negotiator = hedged()
    rig.now = 5.0
    rig.answer(probe, DISCOVERED)
    rig.answer(negotiator, unsupported(MODERN))
    assert rig.state == "ready"
    assert rig.engine.opening == "discover"


def test_a_late_discovery_whose_hedge_is_never_answered_makes_a_modern_server() -> None:
    rig, probe, _ = hedged()
    rig.at(5.0)
    rig.answer(probe, DISCOVERED)
    rig.at(5.5)
    rig.sounded()
    assert rig.state == "ready"
    assert rig.engine.opening == "discover"


def test_a_server_that_takes_both_openings_is_started_again_with_discover() -> None:
    """Which era the process is in now is anybody's guess."""
    rig, probe, negotiator = hedged()
    rig.answer(probe, DISCOVERED)
    effects = rig.answer(negotiator, INITIALIZED)
    assert rig.state == "starting"
    assert len(only(effects, Close)) == len(only(effects, Open)) == 1
    assert methods(rig.opened()) == [DISCOVER]
    rig.answer(3, DISCOVERED)
    assert rig.state == "ready"


@pytest.mark.req("L3", "R5")
def test_an_answer_to_the_probe_after_the_agreement_is_late_and_quiet() -> None:
    rig, probe, negotiator = hedged()
    rig.answer(negotiator, INITIALIZED)
    assert rig.state == "ready"
    assert rig.answer(probe, MISSING) == []
    assert rig.violations() == []


def test_an_answer_that_comes_between_the_sounding_and_its_report() -> None:
    rig = Rig()
    rig.open()
    (probe,) = frames(rig.opened())
    rig.at(0.5)
    rig.answer(probe["id"], MISSING)
    assert rig.sounded() == []
    rig.answer(2, INITIALIZED)
    assert rig.state == "ready"
    assert rig.sounded() == []


@pytest.mark.req("L3", "R11")
def test_calls_wait_while_a_server_that_died_of_the_probe_is_started_again() -> None:
    rig = Rig({DISCOVER: DIES, INITIALIZE: INITIALIZED, "tools/list": {"result": {"tools": []}}})
    ticket = rig.call("tools/list")
    rig.run()
    assert rig.now == 0.0, "at once, without a pause"
    assert rig.result(ticket) == {"tools": []}


@pytest.mark.req("L3", "L5", "E2")
def test_a_server_that_dies_of_both_openings_is_a_failure_with_both_deaths() -> None:
    rig = Rig()
    ticket = rig.call()
    rig.opened()
    rig.lose(TransportError("exited with code 3"))
    assert rig.state == "starting"
    assert methods(rig.opened()) == [INITIALIZE]
    rig.lose(TransportError("exited with code 9"))
    assert rig.state == "backoff"
    message = rig.error(ticket).message
    assert "exited with code 9" in message
    assert "exited with code 3" in message
    rig.at(1.0)
    assert methods(rig.opened()) == [DISCOVER], "what was guessed is forgotten"


@pytest.mark.req("L3", "L5")
def test_a_server_that_dies_of_everything_is_not_started_in_a_tight_loop() -> None:
    rig = Rig({DISCOVER: DIES, INITIALIZE: DIES})
    rig.connect(60.0)
    # Pauses of 1, 2, 4, 8, 16, 30 s; two lives to each attempt.
    assert 6 <= len(rig.processes) <= 14


@pytest.mark.req("L3", "L5")
def test_a_server_that_contradicts_itself_is_not_started_in_a_tight_loop() -> None:
    """It names the handshake when discovered, and the modern revision when initialized."""
    script: Script = {
        DISCOVER: {"result": {"supportedVersions": [LEGACY]}},
        INITIALIZE: unsupported(MODERN),
    }
    rig = Rig()
    rig.open()
    lives = 0
    while rig.state == "starting" and lives < 20:
        lives += 1
        (asked,) = frames(rig.opened())
        while rig.state == "initializing":
            reply = script[asked["method"]]
            assert isinstance(reply, dict)
            effects = rig.answer(asked["id"], reply)
            asked = (frames(effects) or [asked])[-1]
    assert lives <= 3


def test_a_crash_after_an_answer_is_not_blamed_on_the_probe() -> None:
    rig = Rig()
    rig.open()
    rig.opened()
    rig.answer(1, MISSING)
    rig.lose()
    assert rig.state == "backoff"


@pytest.mark.parametrize("opening", ["discover", "initialize"])
def test_a_remembered_opening_that_fails_is_forgotten(opening: str) -> None:
    rig = ready("stateless" if opening == "discover" else "handshake")
    rig.lose()
    rig.at(1.0)
    assert len(frames(rig.opened())) == 1
    rig.lose()
    assert rig.state == "backoff", "no second opening: this one had been right"
    rig.at(rig.now + 2.0)
    assert methods(rig.opened()) == [DISCOVER]
    rig.at(rig.now + 0.5)
    assert methods(rig.sounded()) == [INITIALIZE], "and it is hedged again"


def test_a_remembered_handshake_with_a_server_that_is_modern_now() -> None:
    rig = ready("handshake")
    rig.lose()
    rig.at(1.0)
    (asked,) = frames(rig.opened())
    assert asked["method"] == INITIALIZE
    rig.answer(asked["id"], unsupported(MODERN))
    assert rig.state == "starting"
    assert methods(rig.opened()) == [DISCOVER]


def test_a_link_lost_when_ready_keeps_what_is_remembered() -> None:
    rig = ready("handshake")
    rig.lose()
    assert methods(reconnect(rig)) == [INITIALIZE, "notifications/initialized"]


def test_a_remembered_opening_skips_the_probe_of_a_new_client() -> None:
    rig = Rig({INITIALIZE: INITIALIZED}, opening="initialize")
    rig.connect()
    assert rig.openings() == [[INITIALIZE]]
    assert rig.state == "ready"


@pytest.mark.parametrize(
    ("pin", "script", "openings"),
    [
        ("2025-06-18", {INITIALIZE: initialized("2025-06-18")}, [[INITIALIZE]]),
        (MODERN, {DISCOVER: DISCOVERED}, [[DISCOVER]]),
    ],
)
def test_a_pin_overrides(pin: str, script: Script, openings: list[list[str]]) -> None:
    rig = Rig(script, pin=pin)
    rig.connect()
    assert rig.state == "ready"
    assert rig.openings() == openings
    assert rig.engine.facts is not None
    assert rig.engine.facts.version == pin


def test_a_pinned_server_that_dies_is_not_offered_another_opening() -> None:
    rig = Rig(pin=MODERN)
    rig.open()
    rig.opened()
    rig.lose()
    assert rig.state == "backoff"
    assert rig.engine.reason is CRASH


@pytest.mark.req("L3", "L6")
def test_a_pinned_stateless_server_that_stays_silent_times_out() -> None:
    rig = Rig({DISCOVER: SILENT}, pin=MODERN)
    rig.connect(10.0)
    assert rig.state == "backoff"
    assert isinstance(rig.engine.reason, HandshakeTimeout)
    assert "no answer to server/discover" in rig.engine.reason.message


@pytest.mark.req("L3", "L6")
def test_a_server_that_stays_silent_to_both_openings_times_out_and_both_are_named() -> None:
    rig = Rig({DISCOVER: SILENT, INITIALIZE: SILENT})
    rig.connect(10.0)
    assert isinstance(rig.engine.reason, HandshakeTimeout)
    assert "no answer to server/discover and initialize" in rig.engine.reason.message


@pytest.mark.req("L3", "L6", "E2")
def test_a_refused_hedge_is_told_even_if_the_probe_is_never_answered() -> None:
    """It refused initialize with a reason; that must not be lost in the timeout."""
    script: Script = {DISCOVER: SILENT, INITIALIZE: refusal(-32603, "no licence")}
    rig = Rig(script, policy=Policy(timeouts=Timeouts(handshake=3.0)))
    rig.connect(3.0)
    assert rig.state == "backoff"
    assert rig.engine.reason is not None
    assert "no licence" in rig.engine.reason.message


def test_abilities_are_declared_in_the_way_of_each_era() -> None:
    rig = Rig(abilities=["roots", "elicitation.form"])
    rig.open()
    (probe,) = frames(rig.opened())
    declared = probe["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert declared == {"roots": {}, "elicitation": {"form": {}}}
    (negotiator,) = frames(rig.answer(probe["id"], MISSING))
    assert negotiator["params"]["capabilities"]["roots"] == {"listChanged": True}


@pytest.mark.req("L3")
def test_an_answer_to_the_probe_that_was_lost_is_asked_for_again() -> None:
    """A print ran into it; the hedge is refused as a modern server refuses it."""
    rig = Rig()
    rig.open()
    rig.opened()
    rig.at(rig.engine.due)
    (hedge,) = frames(rig.sounded())
    assert hedge["method"] == INITIALIZE
    rig.answer(hedge["id"], unsupported(MODERN))
    rig.at(rig.engine.due)
    (again,) = frames(rig.sounded())
    assert again["method"] == DISCOVER
    rig.answer(again["id"], DISCOVERED)
    assert rig.state == "ready"


@pytest.mark.req("Y1")
def test_another_plan_counts_from_the_next_link_on() -> None:
    rig = ready()
    rig.engine.replan(Plan(Identity(name="other", version="2", capabilities={"sampling": {}})))
    ticket, wire_id = rig.request()
    rig.answer(wire_id)
    assert rig.result(ticket) == {}, "the link that stands stays as it was agreed"
    rig.lose()
    params = next(
        frame["params"] for frame in frames(reconnect(rig)) if frame["method"] == "initialize"
    )
    assert params["clientInfo"] == {"name": "other", "version": "2"}
    assert params["capabilities"] == {"sampling": {}}
