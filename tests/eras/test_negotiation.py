"""The negotiation as transcripts: what is said, what is heard, what comes of it.

The servers are real ones; the sentence on top of a test says how they behave.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from holdfast._core.eras.conversation import (
    Agreement,
    Heard,
    NoAgreement,
    Opening,
    Plan,
    Reply,
    Silence,
    StartAgain,
    Turn,
)
from holdfast._core.eras.handshake import Handshake
from holdfast._core.eras.negotiation import negotiate
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS, UNSUPPORTED_VERSION, VERSIONS
from holdfast._core.eras.stateless import Stateless
from holdfast._core.wire.jsonrpc import ErrorObject
from holdfast.errors import ProtocolError, RpcError, ValidationError
from holdfast.policies import Identity
from tests.rows import rows

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
PATIENCE = 0.5

pytestmark = pytest.mark.req("L3")


def plan(
    *,
    pin: str | None = None,
    opening: Opening | None = None,
    abilities: frozenset[str] = frozenset(),
) -> Plan:
    identity = Identity(name="me", version="1")
    return Plan(identity, abilities, pin=pin, opening=opening, patience=PATIENCE)


class Talk:
    """One run of a negotiation, turn by turn."""

    def __init__(self, plan: Plan) -> None:
        self.said: list[str] = []
        self.params: list[dict[str, Any]] = []
        self.patience: float | None = None
        self.end: Agreement | StartAgain | NoAgreement | None = None
        self._conversation = negotiate(plan)
        self._note(next(self._conversation))

    def hear(self, heard: Heard) -> Talk:
        assert self.end is None, "it is over already"
        try:
            self._note(self._conversation.send(heard))
        except StopIteration as done:
            self.end = done.value
        except (StartAgain, NoAgreement) as end:
            self.end = end
        return self

    def silence(self, unread: bool = False) -> Talk:
        assert self.patience is not None, "it listens for as long as it takes"
        return self.hear(Silence(unread))

    def discover(self, result: Any) -> Talk:
        return self.hear(Reply("server/discover", result=raw(result)))

    def discover_refused(self, code: Any, data: Any = None, message: str = "no") -> Talk:
        return self.hear(Reply("server/discover", fault=ErrorObject(code, message, data)))

    def initialize(self, result: Any) -> Talk:
        return self.hear(Reply("initialize", result=raw(result)))

    def initialize_refused(self, code: Any, data: Any = None, message: str = "no") -> Talk:
        return self.hear(Reply("initialize", fault=ErrorObject(code, message, data)))

    def _note(self, turn: Turn) -> None:
        self.patience = turn.patience
        self.said.extend(request.method for request in turn.requests)
        self.params.extend(request.params or {} for request in turn.requests)

    # How it ended

    def agreed(self) -> Agreement:
        assert isinstance(self.end, Agreement)
        return self.end

    def agreed_on(self, version: str) -> bool:
        agreement = self.agreed()
        modern = version in STATELESS
        assert type(agreement.era) is (Stateless if modern else Handshake)
        assert agreement.opening == ("discover" if modern else "initialize")
        assert agreement.facts.version == agreement.era.version
        return agreement.era.version == version

    def starts_again_with(self, opening: str) -> bool:
        assert isinstance(self.end, StartAgain)
        return self.end.opening == opening

    def failed(self, *, final: bool) -> str:
        assert isinstance(self.end, NoAgreement)
        assert self.end.final is final
        return self.end.error.message


def raw(value: Any) -> Raw:
    return Raw(value if isinstance(value, bytes) else json.dumps(value).encode())


def discovered(*versions: str, **more: Any) -> dict[str, Any]:
    return {"supportedVersions": list(versions), "capabilities": {"tools": {}}, **more}


def initialized(version: str = LEGACY, **more: Any) -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": {"tools": {}}, **more}


def supported(*versions: str) -> dict[str, Any]:
    return {"supported": list(versions), "requested": MODERN}


# What is said


def test_the_first_word_is_a_discovery_with_all_that_a_request_needs() -> None:
    talk = Talk(plan(abilities=frozenset({"roots", "sampling"})))
    assert talk.said == ["server/discover"]
    assert talk.patience == PATIENCE
    assert talk.params[0]["_meta"] == {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "me", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}, "sampling": {}},
    }


def test_initialize_asks_for_the_newest_handshake_revision() -> None:
    talk = Talk(plan(abilities=frozenset({"roots"}))).discover_refused(-32601)
    assert talk.said == ["server/discover", "initialize"]
    assert talk.patience is None
    assert talk.params[1] == {
        "protocolVersion": LEGACY,
        "capabilities": {"roots": {"listChanged": True}},
        "clientInfo": {"name": "me", "version": "1"},
    }


# Modern servers


def test_a_server_that_answers_discover_is_modern() -> None:
    """Python SDK 2.3, FastMCP 4, Go SDK 1.8, TypeScript SDK 2.4, tmcp, rmcp 3.1."""
    info = {"name": "time", "version": "2.3"}
    meta = {"io.modelcontextprotocol/serverInfo": info}
    result = discovered(MODERN, "2025-06-18", instructions="Ask.", _meta=meta)
    talk = Talk(plan()).discover(result)
    assert talk.agreed_on(MODERN)
    facts = talk.agreed().facts
    assert facts.info is not None
    assert json.loads(bytes(facts.info)) == info
    assert json.loads(bytes(facts.capabilities)) == {"tools": {}}
    assert facts.instructions == "Ask."


def test_a_modern_server_need_not_say_anything_of_itself() -> None:
    facts = Talk(plan()).discover({"supportedVersions": [MODERN]}).agreed().facts
    assert (facts.info, bytes(facts.capabilities), facts.instructions) == (None, b"{}", None)


@pytest.mark.parametrize("odd", [7, [], {"a": 1}, None], ids=repr)
def test_what_a_server_says_of_itself_oddly_does_not_keep_us_from_agreeing(odd: Any) -> None:
    modern = Talk(plan()).discover(discovered(MODERN, instructions=odd, _meta=odd))
    assert modern.agreed_on(MODERN)
    assert modern.agreed().facts.instructions is None
    assert modern.agreed().facts.info is None
    legacy = Talk(plan(opening="initialize")).initialize(initialized(instructions=odd))
    assert legacy.agreed_on(LEGACY)
    assert legacy.agreed().facts.instructions is None


def test_the_era_stamps_requests_with_what_was_agreed() -> None:
    talk = Talk(plan(abilities=frozenset({"sampling"}))).discover(discovered(MODERN))
    stamped = talk.agreed().era.stamp(None, {})
    assert stamped == {"_meta": talk.params[0]["_meta"]}


def test_odd_entries_among_the_versions_are_passed_over() -> None:
    result = {"supportedVersions": [None, 7, ["x"], "2031-01-01", MODERN]}
    assert Talk(plan()).discover(result).agreed_on(MODERN)


def test_a_server_that_discovers_well_but_lists_legacy_versions_is_initialized() -> None:
    """One server answers discover and lists handshake revisions only."""
    talk = Talk(plan()).discover(discovered("2024-11-05", "2025-06-18"))
    assert talk.said == ["server/discover", "initialize"]
    assert talk.params[1]["protocolVersion"] == "2025-06-18"
    assert talk.initialize(initialized("2025-06-18")).agreed_on("2025-06-18")


def test_an_unsupported_version_error_names_the_version_to_use() -> None:
    """A server of a later stateless revision, which also has the handshake."""
    talk = Talk(plan()).discover_refused(-32022, supported("2031-01-01", "2025-03-26"))
    assert talk.params[1]["protocolVersion"] == "2025-03-26"
    assert talk.initialize(initialized("2025-03-26")).agreed_on("2025-03-26")


def test_a_version_set_with_a_hole_gives_the_best_common_version() -> None:
    """One server speaks 2026-07-28 and up to 2025-06-18, but not 2025-11-25."""
    talk = Talk(plan()).discover(discovered("2025-06-18", "2025-03-26", "2024-11-05"))
    assert talk.params[1]["protocolVersion"] == "2025-06-18"


@pytest.mark.parametrize("versions", [["2031-01-01"], []], ids=["later", "none"])
def test_no_common_version_is_given_up_with_both_sides_named(versions: list[str]) -> None:
    for talk in (
        Talk(plan()).discover(discovered(*versions)),
        Talk(plan()).discover_refused(-32022, supported(*versions)),
    ):
        message = talk.failed(final=True)
        assert (versions or ["none"])[0] in message
        assert all(version in message for version in VERSIONS)


# Legacy servers that answer the probe


@rows("code", [-32601, -32602, -32000, -32600, -32603, 0, 1, None, "E", -32022])
def test_any_other_error_falls_back_to_initialize(code: Any) -> None:
    """-32601: TypeScript SDK 1, mcp-go, C#; -32602: Python SDK 1.9 to 1.30, FastMCP 2 and 3;
    -32000: some over HTTP; 0 occurs; -32022 without a list is not the modern error."""
    talk = Talk(plan()).discover_refused(code)
    assert talk.said == ["server/discover", "initialize"]
    assert talk.initialize(initialized()).agreed_on(LEGACY)


@rows(
    "data",
    [None, "2025-06-18", ["2025-06-18"], {"supported": "2025-06-18"}, {"versions": []}],
    ids=repr,
)
def test_versions_named_in_any_other_way_are_not_the_modern_error(data: Any) -> None:
    """Some name supported versions in the message text only."""
    message = "Unsupported protocol version (supported: 2025-06-18)"
    talk = Talk(plan()).discover_refused(-32022, data, message)
    assert talk.params[1]["protocolVersion"] == LEGACY


@rows(
    "result",
    [{}, {"tools": []}, {"supportedVersions": "x"}, [], None, 7, b'{"supportedVersions":'],
    ids=repr,
)
def test_garbage_as_the_answer_to_discover_falls_back_to_initialize(result: Any) -> None:
    talk = Talk(plan()).discover(result)
    assert talk.said == ["server/discover", "initialize"]
    assert talk.initialize(initialized()).agreed_on(LEGACY)


def test_bad_utf8_as_the_answer_to_discover_falls_back_to_initialize() -> None:
    talk = Talk(plan()).discover(b'{"supportedVersions":["\xff"]}')
    assert talk.said == ["server/discover", "initialize"]


@pytest.mark.parametrize("version", HANDSHAKE)
def test_the_server_may_answer_with_any_older_version_that_we_speak(version: str) -> None:
    """Some speak 2024-11-05 only."""
    talk = Talk(plan()).discover_refused(-32601).initialize(initialized(version))
    assert talk.agreed_on(version)


def test_a_server_that_echoes_any_version_is_taken_at_its_word() -> None:
    """One echoes any version, even 1999-01-01: what we ask for is what we get."""
    talk = Talk(plan()).discover_refused(-32601)
    asked = talk.params[1]["protocolVersion"]
    assert talk.initialize(initialized(asked)).agreed_on(LEGACY)


@pytest.mark.parametrize("version", ["1999-01-01", "2031-01-01", MODERN, ""])
def test_a_version_that_the_handshake_does_not_have_is_given_up(version: str) -> None:
    talk = Talk(plan()).discover_refused(-32601).initialize(initialized(version))
    message = talk.failed(final=True)
    assert f"asked for {LEGACY}" in message
    assert repr(version) in message


@rows("result", [{}, {"protocolVersion": 7}, [], None, {"capabilities": {}}], ids=repr)
def test_a_malformed_answer_to_initialize_is_an_error_of_the_server(result: Any) -> None:
    talk = Talk(plan()).discover_refused(-32601).initialize(result)
    assert "initialize is not valid" in talk.failed(final=False)


def test_bad_utf8_in_the_answer_to_initialize_is_an_error_of_the_server() -> None:
    result = b'{"protocolVersion":"2025-11-25","instructions":"\xff"}'
    talk = Talk(plan()).discover_refused(-32601).initialize(result)
    assert "initialize is not valid" in talk.failed(final=False)


def test_what_the_server_says_of_itself_in_the_handshake_is_kept() -> None:
    info = {"name": "old", "version": "1"}
    result = initialized(serverInfo=info, instructions="Mind.")
    facts = Talk(plan(opening="initialize")).initialize(result).agreed().facts
    assert facts.info is not None
    assert json.loads(bytes(facts.info)) == info
    assert facts.instructions == "Mind."
    without = Talk(plan(opening="initialize")).initialize(initialized()).agreed().facts
    assert (without.info, without.instructions) == (None, None)


def test_a_refused_handshake_tries_the_version_that_the_refusal_names() -> None:
    refused = Talk(plan()).discover_refused(-32601)
    talk = refused.initialize_refused(-32022, supported("2024-11-05", LEGACY))
    assert talk.said == ["server/discover", "initialize", "initialize"]
    assert talk.params[2]["protocolVersion"] == "2024-11-05"
    assert talk.initialize(initialized("2024-11-05")).agreed_on("2024-11-05")


@pytest.mark.req("L3", "E2")
def test_when_both_openings_are_refused_the_error_tells_of_both() -> None:
    talk = Talk(plan()).discover_refused(-32601, message="unknown method")
    talk.initialize_refused(-32603, {"why": "disk"}, "out of disk")
    message = talk.failed(final=False)
    assert "initialize with error -32603: out of disk" in message
    assert "server/discover with error -32601: unknown method" in message
    assert isinstance(talk.end, NoAgreement)
    assert isinstance(talk.end.error, RpcError)
    assert (talk.end.error.code, talk.end.error.data) == (-32603, {"why": "disk"})


def test_a_second_refusal_of_the_named_version_is_the_end_of_it() -> None:
    talk = Talk(plan(opening="initialize")).initialize_refused(-32022, supported("2024-11-05"))
    talk.initialize_refused("E", message="no")
    assert "error E: no" in talk.failed(final=False)


def test_something_else_than_an_answer_is_told_as_such() -> None:
    talk = Talk(plan()).discover({"tools": []}).initialize_refused(-32603)
    assert "answered server/discover with something else" in talk.failed(final=False)


# Servers that do not answer the probe


def test_silence_is_hedged_with_initialize() -> None:
    """One Rust SDK stays silent when probed, and takes initialize in the same process."""
    talk = Talk(plan()).silence()
    assert talk.said == ["server/discover", "initialize"]
    assert talk.patience is None
    assert talk.initialize(initialized()).agreed_on(LEGACY)


def test_a_server_that_has_not_read_the_probe_is_not_silent() -> None:
    """Slow starters take 5 s and more under load: patience counts from reading, not spawning."""
    talk = Talk(plan())
    for _ in range(5):
        talk.silence(unread=True)
        assert talk.said == ["server/discover"]
        assert talk.patience == PATIENCE
    assert talk.discover(discovered(MODERN)).agreed_on(MODERN)


def test_patience_begins_again_once_the_probe_is_read() -> None:
    talk = Talk(plan()).silence(unread=True).silence()
    assert talk.said == ["server/discover", "initialize"]


def test_a_late_discovery_with_a_refused_hedge_is_modern_after_all() -> None:
    """Slow starters answer the late discover and refuse the hedged initialize with -32022."""
    talk = Talk(plan()).silence().discover(discovered(MODERN))
    assert talk.end is None
    assert talk.patience == PATIENCE
    assert talk.initialize_refused(-32022, supported(MODERN)).agreed_on(MODERN)


def test_the_order_of_the_two_late_answers_does_not_matter() -> None:
    talk = Talk(plan()).silence().initialize_refused(0, message='duplicate "initialize"')
    assert talk.end is None
    assert talk.discover(discovered(MODERN)).agreed_on(MODERN)


def test_a_late_discovery_whose_hedge_is_ignored_is_modern() -> None:
    talk = Talk(plan()).silence().discover(discovered(MODERN)).silence()
    assert talk.agreed_on(MODERN)


@pytest.mark.parametrize("discover_first", [True, False])
def test_a_server_that_takes_both_openings(discover_first: bool) -> None:
    """TypeScript SDK 2.4, tmcp, another Go server: which era the process is in is unknown, so it
    is started again with what it prefers, unless the handshake was agreed on before."""
    talk = Talk(plan()).silence()
    if discover_first:
        talk.discover(discovered(MODERN)).initialize(initialized())
        assert talk.starts_again_with("discover")
    else:
        assert talk.initialize(initialized()).agreed_on(LEGACY)


def test_a_late_refusal_of_the_probe_leaves_the_hedge_standing() -> None:
    talk = Talk(plan()).silence().discover_refused(-32601)
    assert talk.end is None
    assert talk.patience is None
    assert talk.initialize(initialized()).agreed_on(LEGACY)


def test_a_late_list_of_legacy_versions_leaves_the_hedge_standing() -> None:
    talk = Talk(plan()).silence().discover(discovered("2025-06-18"))
    assert talk.initialize(initialized()).agreed_on(LEGACY)


def test_a_hedge_with_both_openings_refused_fails_with_both_causes() -> None:
    talk = Talk(plan()).silence().discover_refused(-32601, message="first")
    talk.initialize_refused(-32603, message="second")
    message = talk.failed(final=False)
    assert "first" in message
    assert "second" in message


def test_a_late_unsupported_version_error_leads_to_the_version_it_names() -> None:
    talk = Talk(plan()).silence().discover_refused(-32022, supported("2024-11-05"))
    talk.initialize_refused(-32022, supported("2024-11-05"))
    assert talk.params[-1]["protocolVersion"] == "2024-11-05"
    assert talk.initialize(initialized("2024-11-05")).agreed_on("2024-11-05")


# What is remembered


def test_a_server_known_to_want_initialize_is_not_probed() -> None:
    talk = Talk(plan(opening="initialize"))
    assert talk.said == ["initialize"]
    assert talk.patience is None
    assert talk.initialize(initialized()).agreed_on(LEGACY)


def test_a_server_known_to_be_modern_is_not_hedged() -> None:
    talk = Talk(plan(opening="discover"))
    assert talk.said == ["server/discover"]
    assert talk.patience is None
    assert talk.discover(discovered(MODERN)).agreed_on(MODERN)


def test_a_remembered_handshake_refused_by_a_modern_server_starts_again() -> None:
    """The server has been replaced by a modern one since."""
    talk = Talk(plan(opening="initialize")).initialize_refused(-32022, supported(MODERN))
    assert talk.starts_again_with("discover")


def test_a_remembered_handshake_refused_otherwise_is_a_failure() -> None:
    talk = Talk(plan(opening="initialize")).initialize_refused(-32603, message="broken")
    assert "broken" in talk.failed(final=False)
    assert "before that" not in talk.failed(final=False)


def test_a_remembered_discovery_answered_by_a_legacy_server_falls_back() -> None:
    talk = Talk(plan(opening="discover")).discover_refused(-32601)
    assert talk.initialize(initialized()).agreed_on(LEGACY)


def test_answers_that_nobody_waits_for_do_not_disturb_the_handshake() -> None:
    talk = Talk(plan(opening="initialize"))
    talk.discover(discovered(MODERN)).hear(Silence())
    assert talk.end is None
    assert talk.initialize(initialized()).agreed_on(LEGACY)


# Pins


@pytest.mark.parametrize("version", HANDSHAKE)
@pytest.mark.parametrize("opening", [None, "discover", "initialize"])
def test_a_pinned_handshake_version_is_asked_for_at_once(version: str, opening: Opening) -> None:
    talk = Talk(plan(pin=version, opening=opening))
    assert talk.said == ["initialize"]
    assert talk.params[0]["protocolVersion"] == version
    assert talk.initialize(initialized(version)).agreed_on(version)


def test_a_pinned_handshake_version_that_is_answered_with_another_is_given_up() -> None:
    talk = Talk(plan(pin="2025-06-18")).initialize(initialized("2024-11-05"))
    assert "the revision '2025-06-18' is pinned" in talk.failed(final=True)


def test_a_pinned_handshake_version_is_not_bargained_over() -> None:
    refused = Talk(plan(pin="2025-06-18"))
    refused.initialize_refused(-32022, supported("2024-11-05", MODERN))
    assert refused.said == ["initialize"]
    assert "error -32022" in refused.failed(final=True)


@pytest.mark.req("L3")
@pytest.mark.parametrize(
    ("code", "data"),
    [
        (-32022, None),
        (-32022, {}),
        (-32022, supported("1999-01-01")),
        (-32602, supported("1999-01-01")),
        (-32602, supported()),
    ],
)
@pytest.mark.parametrize("before", ["refused", "silent", "nothing"])
def test_a_revision_that_is_refused_is_final(code: int, data: Any, before: str) -> None:
    """As it is when the probe names no revision in common: asking again cannot help."""
    talk = Talk(plan(pin=LEGACY if before == "nothing" else None))
    if before == "refused":
        talk.discover_refused(-32601)
    elif before == "silent":
        talk.silence()
        talk.discover_refused(-32601)
    talk.initialize_refused(code, data)
    assert f"error {code}" in talk.failed(final=True)


@pytest.mark.req("L3")
@pytest.mark.parametrize("code", [-32000, -32603, -32602])
def test_another_refusal_of_the_handshake_is_tried_again(code: int) -> None:
    talk = Talk(plan())
    talk.discover_refused(-32601)
    talk.initialize_refused(code, None)
    talk.failed(final=False)


@pytest.mark.parametrize("opening", [None, "discover", "initialize"])
def test_a_pinned_stateless_version_is_never_hedged(opening: Opening) -> None:
    talk = Talk(plan(pin=MODERN, opening=opening))
    assert talk.said == ["server/discover"]
    assert talk.patience is None
    assert talk.discover(discovered(MODERN)).agreed_on(MODERN)


def test_a_pinned_stateless_version_that_the_server_does_not_speak_is_given_up() -> None:
    refused = Talk(plan(pin=MODERN)).discover_refused(-32601, message="unknown")
    message = refused.failed(final=True)
    assert f"does not speak {MODERN}" in message
    assert "unknown" in message
    assert isinstance(refused.end, NoAgreement)
    assert isinstance(refused.end.error, ProtocolError)
    assert [hint.option for hint in refused.end.error.hints] == ["protocol"]


def test_a_pinned_stateless_version_is_not_exchanged_for_a_listed_one() -> None:
    for talk in (
        Talk(plan(pin=MODERN)).discover(discovered(LEGACY)),
        Talk(plan(pin=MODERN)).discover_refused(-32022, supported(LEGACY)),
    ):
        assert talk.said == ["server/discover"]
        assert "is pinned" in talk.failed(final=True)


@pytest.mark.parametrize("pin", ["1999-01-01", "latest", ""])
def test_a_pin_that_we_do_not_speak_is_refused_before_anything_is_sent(pin: str) -> None:
    with pytest.raises(ValidationError, match="not a revision we speak"):
        plan(pin=pin)


# Whatever the server does

versions = st.lists(st.sampled_from([*VERSIONS, "1999-01-01"]), max_size=4)
results = (
    versions.map(lambda offered: raw(discovered(*offered)))
    | st.sampled_from([*VERSIONS, "1999-01-01"]).map(lambda one: raw(initialized(one)))
    | st.sampled_from([b"{}", b"null", b"[]", b'{"supportedVersions":1}']).map(Raw)
)
faults = st.builds(
    ErrorObject,
    st.sampled_from([-32601, -32022, 0, "E", None]),
    st.none() | st.just("no"),
    st.none() | versions.map(lambda offered: {"supported": offered}),
)
heard = st.tuples(
    st.sampled_from(["server/discover", "initialize"]), results | faults, st.booleans()
)


@pytest.mark.req("L3", "V1")
@given(
    st.none() | st.sampled_from(VERSIONS),
    st.sampled_from([None, "discover", "initialize"]),
    st.lists(heard, max_size=12),
)
def test_every_conversation_ends_in_a_few_turns_whatever_is_heard(
    pin: str | None, opening: Opening, script: list[tuple[str, Raw | ErrorObject, bool]]
) -> None:
    """Every opening is answered at most once; what is agreed is what both sides speak."""
    talk = Talk(plan(pin=pin, opening=opening))
    unanswered = list(talk.said)
    for method, reply, unread in script:
        if talk.end is not None:
            break
        if talk.patience is not None and unread:
            talk.silence(unread)
        elif method in unanswered:
            unanswered.remove(method)
            before = len(talk.said)
            is_result = isinstance(reply, Raw)
            talk.hear(
                Reply(
                    method,
                    result=reply if isinstance(reply, Raw) else None,
                    fault=None if is_result else reply,  # type: ignore[arg-type]
                )
            )
            unanswered.extend(talk.said[before:])
    assert talk.said.count("server/discover") <= 3
    assert talk.said.count("initialize") <= 3
    if isinstance(talk.end, Agreement):
        assert talk.end.era.version in VERSIONS
        assert pin in (None, talk.end.era.version)
    if talk.end is None:
        assert unanswered or talk.patience is not None, "it waits for something"


# A server that refuses the revision it then lists: once it is believed, twice it is not


def refused_with(*versions: str) -> Talk:
    return Talk(plan()).discover_refused(UNSUPPORTED_VERSION, supported(*versions))


@pytest.mark.req("L3")
def test_a_list_with_our_revision_in_it_is_taken_at_its_word() -> None:
    talk = refused_with(MODERN, LEGACY)
    assert talk.said == ["server/discover", "server/discover"]
    assert talk.patience is None
    assert talk.discover(discovered(MODERN)).agreed_on(MODERN)


@pytest.mark.req("L3")
def test_a_second_refusal_with_the_same_list_leads_to_its_handshake_revision() -> None:
    talk = refused_with(MODERN, LEGACY)
    talk.discover_refused(UNSUPPORTED_VERSION, supported(MODERN, LEGACY))
    assert talk.said == ["server/discover", "server/discover", "initialize"]
    assert talk.initialize(initialized(LEGACY)).agreed_on(LEGACY)


@pytest.mark.req("L3")
def test_a_second_refusal_that_names_nothing_else_is_the_end() -> None:
    talk = refused_with(MODERN)
    talk.discover_refused(UNSUPPORTED_VERSION, supported(MODERN))
    assert MODERN in talk.failed(final=True)


@pytest.mark.req("L3")
def test_a_second_answer_of_another_kind_falls_back() -> None:
    talk = refused_with(MODERN).discover_refused(-32601)
    assert talk.said[-1] == "initialize"
    assert talk.initialize(initialized(LEGACY)).agreed_on(LEGACY)
