"""What only the stateless era has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.faults.rows import ANSWER, Fault, at, note, refusal, result, say


def stateless() -> Iterator[Fault]:
    def row(
        name: str, does: str, *rules: str, ends: tuple[str, ...], drive: str = "call", **more: Any
    ) -> Fault:
        more.setdefault("reqs", ("P4", "R2"))
        more.setdefault("after", "same")
        return Fault(name, does, rules, ends, drive=drive, era="modern", **more)

    def wanted(body: bytes) -> tuple[str, bytes]:
        return result(b'{"resultType":"input_required",' + body + b"}")

    form = (
        b'{"method":"elicitation/create","params":{"mode":"form","message":"name?",'
        b'"requestedSchema":{"type":"object","properties":{}}}}'
    )
    content = b'"content":[{"type":"text","text":"x"}]'
    yield row(
        "no-result-type",
        "answers without resultType",
        *at("fault", result(b"{%s}" % content)),
        ends=("ok",),
    )
    yield row(
        "result-type-null",
        "answers with a null resultType",
        *at("fault", result(b'{"resultType":null,%s}' % content)),
        ends=("ok", "protocol"),
    )
    for name, kind in {
        "unknown": b'"partial"',
        "number": b"7",
    }.items():
        yield row(
            f"result-type-{name}",
            f"answers with the resultType {kind.decode()}",
            *at("fault", result(b'{"resultType":%s,%s}' % (kind, content))),
            ends=("protocol",),
        )
    yield row(
        "input-required-bare",
        "wants input and says neither what nor why",
        *at("fault", result(b'{"resultType":"input_required"}')),
        ends=("protocol",),
    )
    yield row(
        "input-required-state-only",
        "wants to be asked again, with a state",
        *at("fault#1", wanted(b'"requestState":"again"')),
        ends=("ok",),
        drive="rounds",
        count=2,
        value='"again"',
    )
    odd = r'"a\"\\b\n\u0000\ud83d\ude00\u2028 e\u0301"'
    yield row(
        "request-state-odd",
        "gives a state of odd characters, to be echoed exactly",
        *at("fault#1", wanted(b'"requestState":' + odd.encode())),
        ends=("ok",),
        drive="rounds",
        count=2,
        value=odd,
    )
    yield row(
        "request-state-long",
        "gives a state of 1 MiB",
        *at("fault#1", wanted(b'"requestState":"@PAD:1048576@"')),
        ends=("ok",),
        drive="rounds",
        count=2,
    )
    yield row(
        "request-state-number",
        "gives a number as state",
        *at("fault#1", wanted(b'"requestState":7')),
        ends=("protocol", "ok"),
    )
    yield row(
        "input-required-for-ever",
        "wants input for ever",
        *at("fault", wanted(b'"requestState":"@COUNT@"')),
        ends=("protocol",),
        drive="rounds",
        count=5,
        options={"limits": {"rounds": 4}},
    )
    yield row(
        "input-required-for-ever-handled",
        "asks the user for ever",
        *at("fault", wanted(b'"inputRequests":{"a":%s}' % form)),
        ends=("protocol",),
        drive="rounds",
        count=5,
        options={"limits": {"rounds": 4}, "handlers": "good"},
    )
    yield row(
        "input-required-unhandled",
        "asks the user of a client that has no handler",
        *at("fault", wanted(b'"inputRequests":{"a":%s}' % form)),
        ends=("protocol", "state"),
    )
    yield row(
        "input-required-handler-raises",
        "asks a handler that fails",
        *at("fault", wanted(b'"inputRequests":{"a":%s}' % form)),
        ends=("protocol", "state"),
        options={"handlers": "raising"},
        reqs=("R12", "R2"),
    )
    yield row(
        "input-required-handler-blocks",
        "asks a handler that never ends",
        *at("fault", wanted(b'"inputRequests":{"a":%s}' % form)),
        ends=("timeout",),
        drive="rounds",
        count=1,
        options={"handlers": "blocking", "timeouts": {"total": 0.5}},
        reqs=("R12", "R2"),
    )
    yield row(
        "input-required-handler-calls",
        "asks a handler that calls a tool of the same server",
        *at("fault#1", wanted(b'"inputRequests":{"a":%s}' % form)),
        ends=("ok",),
        options={"handlers": "calling"},
        reqs=("R12", "R2"),
    )
    for name, asked in {
        "unknown-method": b'{"a":{"method":"rogue/steal","params":{}}}',
        "no-method": b'{"a":{}}',
        "null": b'{"a":null}',
    }.items():
        yield row(
            f"input-request-{name}",
            f"wants the input {asked.decode()}",
            *at("fault", wanted(b'"inputRequests":' + asked)),
            ends=("protocol", "state"),
            options={"handlers": "good"},
        )
    for name, asked in {"list": b"[]", "null": b"null"}.items():
        yield row(
            f"input-requests-{name}",
            f"gives inputRequests as {asked.decode()}",
            *at("fault", wanted(b'"inputRequests":' + asked)),
            ends=("protocol",),
        )
    yield row(
        "input-requests-empty",
        "wants no input at all",
        *at("fault#1", wanted(b'"inputRequests":{}')),
        ends=("ok", "protocol"),
    )
    yield row(
        "input-required-on-list",
        "wants input for a list, which may not be",
        *at("list", wanted(b'"requestState":"x"')),
        ends=("protocol",),
        drive="list",
    )
    yield row(
        "input-required-legacy-shape",
        "mixes a final result with a wish for input",
        *at("fault", wanted(content + b',"requestState":"s"')),
        ends=("protocol",),
        drive="rounds",
        count=5,
        options={"limits": {"rounds": 4}},
    )
    for code in (-32020, -32021, -32022):
        yield row(
            f"modern-error{code}",
            f"refuses a call with {code}",
            *at("fault", refusal(code, b'{"requiredCapabilities":{"sampling":{}}}')),
            ends=(f"rpc:{code}", "protocol"),
            reqs=("E3", "R2"),
        )
    yield row(
        "modern-error-handler-missing",
        "says that a capability is missing",
        *at("fault", refusal(-32021, b'{"deep":[1,{"x":null}]}')),
        ends=("rpc:-32021",),
        drive="refused",
        reqs=("E3",),
        says=("refused",),
    )
    listen = "subscriptions/listen"
    yield row(
        "listen-unacknowledged",
        "never acknowledges a subscription",
        *at(listen),
        ends=("timeout",),
        drive="subscribe",
        reqs=("P2", "R2"),
    )
    yield row(
        "listen-refused",
        "refuses a subscription",
        *at(listen, refusal(-32603)),
        ends=("rpc:-32603",),
        drive="subscribe",
        reqs=("P2", "R2"),
    )
    yield row(
        "listen-ended",
        "acknowledges a subscription and ends it at once",
        *at(listen, "good", result(b'{"resultType":"complete"}')),
        ends=("ok", "protocol"),
        drive="subscribe",
        reqs=("P2", "R2"),
    )
    yield row(
        "listen-ended-unacknowledged",
        "ends a subscription that it never acknowledged",
        *at(listen, result(b'{"resultType":"complete"}')),
        ends=("protocol", "timeout"),
        drive="subscribe",
        reqs=("P2", "R2"),
    )
    yield row(
        "listen-exits",
        "exits when it is asked for a subscription",
        *at(listen, "exit:1"),
        ends=("lost",),
        drive="subscribe",
        after="either",
        reqs=("P2", "R11"),
    )
    yield row(
        "listen-wrong-acknowledgment",
        "acknowledges a subscription nobody asked for",
        *at(
            listen,
            say(
                note(
                    b"notifications/subscriptions/acknowledged",
                    b'{"_meta":{"io.modelcontextprotocol/subscriptionId":999},"notifications":{}}',
                )
            ),
        ),
        ends=("timeout",),
        drive="subscribe",
        reqs=("P2", "R2"),
    )
    yield row(
        "listen-storm",
        "acknowledges a subscription and sends 20,000 updates",
        *at(
            listen,
            "good",
            (
                "flood",
                b"20000:"
                + note(
                    b"notifications/resources/updated",
                    b'{"_meta":{"io.modelcontextprotocol/subscriptionId":@ID@},"uri":"test://one"}',
                ),
            ),
        ),
        ends=("ok",),
        drive="subscribe",
        reqs=("P2", "R8"),
    )
    yield row(
        "listen-updates-of-strangers",
        "sends updates for a subscription nobody has",
        *at(
            "fault",
            say(
                note(
                    b"notifications/resources/updated",
                    b'{"_meta":{"io.modelcontextprotocol/subscriptionId":4242},"uri":"test://one"}',
                )
            ),
            ANSWER,
        ),
        ends=("ok",),
        reqs=("P2", "R10"),
    )
