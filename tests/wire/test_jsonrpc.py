"""The codec: what is written is read again, and junk is named, never raised."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from holdfast._core.wire import jsonrpc
from holdfast._core.wire.codes import METHOD_NOT_FOUND, UNENCODABLE
from holdfast._core.wire.jsonrpc import (
    Envelope,
    ErrorObject,
    Junk,
    decode_error_object,
    decode_lines,
    snippet,
)
from tests.rows import rows

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ids = st.integers(-(2**63), 2**64 - 1) | text
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | text
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=10
)
objects = st.dictionaries(text, values, max_size=5)


def message(frame: bytes) -> Envelope:
    assert frame.endswith(b"\n")
    assert frame.count(b"\n") == 1
    assert json.loads(frame)["jsonrpc"] == "2.0"
    (found,) = decode_lines(frame)
    assert isinstance(found, Envelope)
    return found


def value(raw: Raw | msgspec.UnsetType) -> Any:
    assert isinstance(raw, Raw)
    return msgspec.json.decode(raw)


def junk(data: bytes, *, batches: bool = False) -> list[str]:
    found = decode_lines(data, batches=batches)
    return [one.reason for one in found if isinstance(one, Junk)]


# Encoding and decoding


@pytest.mark.req("V1")
@given(ids, text, objects)
def test_a_request_is_read_as_it_was_written(wire_id: int | str, method: str, params: Any) -> None:
    found = message(jsonrpc.request(wire_id, method, params))
    assert (found.id, found.method, value(found.params)) == (wire_id, method, params)
    assert found.result is UNSET
    assert found.error is UNSET


@pytest.mark.req("V1")
@given(text, objects)
def test_a_notification_is_read_as_it_was_written(method: str, params: Any) -> None:
    found = message(jsonrpc.notification(method, params))
    assert found.id is UNSET
    assert (found.method, value(found.params)) == (method, params)


@pytest.mark.req("V1")
@given(ids, values)
def test_a_response_is_read_as_it_was_written(wire_id: int | str, result: Any) -> None:
    found = message(jsonrpc.response(wire_id, result))
    assert (found.id, value(found.result)) == (wire_id, result)
    assert found.method is UNSET
    assert found.error is UNSET


@pytest.mark.req("V1", "E3")
@given(ids, st.integers(-40_000, 40_000), text, values)
def test_an_error_is_read_as_it_was_written(
    wire_id: int | str, code: int, words: str, data: Any
) -> None:
    found = message(jsonrpc.error_response(wire_id, code, words, data))
    assert found.id == wire_id
    assert isinstance(found.error, Raw)
    assert decode_error_object(found.error) == ErrorObject(code, words, data)


def test_no_params_means_no_params_field() -> None:
    assert b"params" not in jsonrpc.request(1, "ping")
    assert b"params" not in jsonrpc.notification("notifications/initialized")
    assert b"data" not in jsonrpc.error_response(1, -32601, "no")


@pytest.mark.parametrize("hopeless", [object(), {1j: 1}, {"x": object()}])
def test_what_json_cannot_hold_is_one_of_the_named_errors(hopeless: Any) -> None:
    with pytest.raises(UNENCODABLE):
        jsonrpc.request(1, "tools/call", hopeless)


def test_a_value_that_contains_itself_is_one_of_the_named_errors() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(UNENCODABLE):
        jsonrpc.request(1, "tools/call", {"loop": loop})


# Junk

GOOD = b'{"jsonrpc":"2.0","id":1,"result":{}}'

JUNK = {
    b"": "blank line",
    b"  \t\r": "blank line",
    b"Server started on stdio": "not JSON",
    b'{"jsonrpc":"2.0","id":1,': "not JSON",
    b"{'id': 1}": "not JSON",
    b"\xff\xfe": "not UTF-8",
    b'{"method":"\xff"}': "not UTF-8",
    b"42": "not a JSON-RPC message",
    b"null": "not a JSON-RPC message",
    b'"text"': "not a JSON-RPC message",
    b'{"id":true}': "not a JSON-RPC message",
    b'{"id":{},"result":{}}': "not a JSON-RPC message",
    b'{"method":7}': "not a JSON-RPC message",
    b"[" + GOOD + b"]": "batch",
    b'{"id":1,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}": "nested too deeply",
}


@pytest.mark.req("R10")
@pytest.mark.parametrize(("line", "reason"), JUNK.items(), ids=lambda x: repr(x)[:40])
def test_each_kind_of_junk_is_named_and_its_neighbours_are_read(line: bytes, reason: str) -> None:
    assert junk(line + b"\n") == [reason]
    before, between, after = decode_lines(GOOD + b"\n" + line + b"\n" + GOOD + b"\n")
    assert isinstance(before, Envelope)
    assert isinstance(between, Junk)
    assert between.reason == reason
    assert isinstance(after, Envelope)


@pytest.mark.req("R10", "V1")
@given(st.binary(max_size=200), st.booleans())
def test_junk_never_raises(data: bytes, batches: bool) -> None:
    for one in decode_lines(data + b"\n", batches=batches):
        assert isinstance(one, Envelope | Junk)


fragments = st.sampled_from(
    [GOOD, b"", b" ", b"\r", b"{}", b"null", b"[]", b"[{}]", b"\xff", b'{"method":"x"}', b"{", b"}"]
)


@pytest.mark.req("R10", "V1")
@given(st.lists(fragments | st.binary(max_size=8), min_size=1, max_size=8), st.booleans())
def test_lines_are_read_alike_together_and_alone(pieces: list[bytes], batches: bool) -> None:
    lines = [piece.replace(b"\n", b"") for piece in pieces]
    alone = [one for line in lines for one in decode_lines(line + b"\n", batches=batches)]
    together = decode_lines(b"".join(line + b"\n" for line in lines), batches=batches)
    assert told(together) == told(alone)


def told(found: list[Envelope | Junk]) -> tuple[list[str], dict[str, int]]:
    """The messages in order, and how much junk there was of each kind."""
    counted: dict[str, int] = {}
    for one in found:
        if isinstance(one, Junk):
            counted[one.reason] = counted.get(one.reason, 0) + one.count
    return [repr_of(one) for one in found if isinstance(one, Envelope)], counted


def repr_of(found: Envelope) -> str:
    raw = [bytes(one) for one in (found.params, found.result, found.error) if one is not UNSET]
    return repr((found.id, found.method, raw))


@pytest.mark.req("R10")
def test_a_message_over_two_lines_is_no_message() -> None:
    assert junk(b'{"id":\n1}\n') == ["not JSON", "not a JSON-RPC message"]


def test_junk_of_any_length_is_counted_by_its_kind_and_told_once() -> None:
    lines = [b"x", b'"1"', b"not a message", b"[", b"\xff", b'"a text that is no message"'] * 3
    found = decode_lines(b"\n".join([*lines, b'{"id":1,"result":{}}', b""]))
    told = [(one.reason, one.count) for one in found if isinstance(one, Junk)]
    assert told == [("not JSON", 6), ("not a JSON-RPC message", 6), ("batch", 3), ("not UTF-8", 3)]
    assert isinstance(found[-1], Envelope)


@pytest.mark.req("R10")
def test_blank_lines_among_messages_are_counted_and_told_once() -> None:
    found = decode_lines(b"\n" + GOOD + b"\n\n\n" + GOOD + b"\n")
    assert [type(one) for one in found] == [Junk, Envelope, Envelope]
    assert isinstance(found[0], Junk)
    assert found[0].count == 3


@pytest.mark.req("R10")
def test_a_message_that_a_print_ran_into_is_saved() -> None:
    found = decode_lines(b'listening...{"jsonrpc":"2.0","id":1,"result":{}}\n')
    assert [type(one) for one in found] == [Junk, Envelope]
    assert junk(b'listening...{"jsonrpc":"2.0","id":1,\n') == ["not JSON"]


@pytest.mark.req("R10")
def test_a_last_line_without_its_newline_is_a_line_too() -> None:
    assert junk(b"\nnot JSON") == ["blank line", "not JSON"]
    assert len(decode_lines(GOOD)) == 1


def test_carriage_returns_do_no_harm() -> None:
    found = decode_lines(GOOD + b"\r\n" + GOOD + b"\r\n")
    assert [type(one) for one in found] == [Envelope, Envelope]


# Batches


def test_a_batch_is_its_messages_where_batches_are_legal() -> None:
    first, junk_inside, last = decode_lines(b"[" + GOOD + b",7," + GOOD + b"]\n", batches=True)
    assert isinstance(first, Envelope)
    assert isinstance(junk_inside, Junk)
    assert isinstance(last, Envelope)


@pytest.mark.req("R10")
def test_a_batch_holds_messages_and_not_batches() -> None:
    assert junk(b"[[" + GOOD + b"]]\n", batches=True) == ["batch"]


@pytest.mark.req("R10")
def test_a_batch_of_nothing_and_a_broken_batch_are_junk() -> None:
    assert junk(b"[]\n", batches=True) == ["empty batch"]
    assert junk(b"[{},\n", batches=True) == ["not JSON"]


# Faults and snippets


@pytest.mark.req("E3")
@rows(
    ("raw", "fault"),
    [
        (b"{}", ErrorObject()),
        (b'{"code":-32000,"message":"x","data":[1]}', ErrorObject(-32000, "x", [1])),
        (b'{"code":"E_FAIL","message":"x"}', ErrorObject("E_FAIL", "x")),
        (b'{"code":1.0}', ErrorObject(1.0)),
        (b'{"code":0,"message":null}', ErrorObject(0)),
        (b'"text"', None),
        (b"null", None),
        (b'{"message":7}', None),
        (b'{"message":"\xff"}', None),
    ],
)
def test_a_fault_is_read_leniently(raw: bytes, fault: ErrorObject | None) -> None:
    assert decode_error_object(Raw(raw)) == fault


def test_a_snippet_is_short_and_printable() -> None:
    assert snippet(b"plain") == "plain"
    assert snippet(b"a\x1b[31m\xff") == "a\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}"
    assert snippet(b"x" * 1000) == "x" * 120 + "…"


# Answers that cannot be read


def answer_with(result: bytes, wire_id: bytes = b"5") -> bytes:
    return b'{"jsonrpc":"2.0","id":' + wire_id + b',"result":' + result + b"}\n"


UNREADABLE = [
    b'{"n":NaN}',
    b'{"n":-Infinity}',
    b'{"n":01}',
    b'{"n":+1}',
    b'{"n":0x1f}',
    b'{"n":1,}',
    b"{'n':1}",
    b'{"n":undefined}',
    b'{"n":"a\tb"}',
    b'{"n":"\x01"}',
    b'{"n":"\\q"}',
    b'{"n":"\\u12"}',
    b'{"n":"unfinished',
    b'{"n":[1,2',
    b'{"n":1}}',
    b"[" * 100_000 + b"]" * 100_000,
    b'{"n":' * 50_000,
    b'{"n":"\xff"}',
    b'{"n":"\xed\xa0\x80"}',
    b'{"n":"\xc0\x80"}',
    b'{"\xe2\x82":1}',
    b'{"n":"' + "é".encode() * 100_000 + b'\xe9"}',
]


@pytest.mark.req("R2", "R10")
@pytest.mark.parametrize("result", UNREADABLE, ids=lambda result: repr(result[:20]))
@pytest.mark.parametrize(("wire_id", "read"), [(b"5", 5), (b'"five"', "five"), (b" -7 ", -7)])
def test_the_id_of_an_answer_that_cannot_be_read_is_found(
    result: bytes, wire_id: bytes, read: int | str
) -> None:
    (found,) = decode_lines(answer_with(result, wire_id))
    assert isinstance(found, Junk)
    assert (found.id, found.asks) == (read, False)
    assert found.size == len(answer_with(result, wire_id)) - 1


@pytest.mark.req("R10")
@rows("size", [1, 65_500, 65_501, 65_502, 200_000])
def test_text_in_utf8_is_read_wherever_it_is_split_to_be_checked(size: int) -> None:
    text = "." * size + "\U0001f600é" * 30
    data = answer_with(msgspec.json.encode({"n": text}))
    for (found,) in (decode_lines(data), jsonrpc.decode_text(data)):
        assert isinstance(found, Envelope)
        assert isinstance(found.result, Raw)
        assert msgspec.json.decode(found.result) == {"n": text}


@rows(
    ("text", "wire_id", "asks"),
    [
        (b'{"result":{"id":1,"x":NaN},"jsonrpc":"2.0","id":5}', 5, False),
        (b'{"result":{"id":1},"x":NaN}', None, False),
        (b'{"id":"\\u0041","x":NaN}', None, False),
        (b'{"\\u0069d":5,"x":NaN}', 5, False),
        (b'{"\\u0069d":5,"m\\u0065thod":"ping","x":NaN}', 5, True),
        (b'{"\\\\u0069d":5,"x":NaN}', None, False),
        (b'{"\\u00zz":5,"x":NaN}', None, False),
        (b'{"id":1e3,"x":NaN}', None, False),
        (b'{"id":null,"x":NaN}', None, False),
        (b'{"method":"ping","id":5,"params":NaN}', 5, True),
        (b'{"x":"' + b"." * 100_000 + b'","y":NaN,"jsonrpc":"2.0","id":5}', 5, False),
        (b'{"x":"' + b"." * 100_000 + b'","y":NaN,"id":5}', 5, False),
        (b'{"x":"' + b"." * 100_000 + b'","y":NaN,"id":"5","jsonrpc":"2.0"}', "5", False),
        (b'{"x":"' + b"." * 100_000 + b'","y":NaN,"z":{"id":5}}', None, False),
        (b'NaN "id":5', None, False),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_only_the_id_of_the_message_itself_counts(
    text: bytes, wire_id: int | str | None, asks: bool
) -> None:
    (found,) = decode_lines(text + b"\n")
    assert isinstance(found, Junk)
    assert (found.id, found.asks) == (wire_id, asks)


@pytest.mark.req("R10")
@rows(
    ("escaped", "read"),
    [
        (rb"\ud83d", "\ufffd"),
        (rb"\uDE00", "\ufffd"),
        (rb"a\ud83db\ude00c", "a\ufffdb\ufffdc"),
        (rb"\ude00\ud83d", "\ufffd\ufffd"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\\ud83d \ud83d", "\\ud83d \ufffd"),
        (rb"\\\ud83d\\\\ude00", "\\\ufffd\\\\ude00"),
    ],
)
def test_half_of_an_emoji_is_replaced_and_the_rest_delivered(escaped: bytes, read: str) -> None:
    (found,) = decode_lines(answer_with(b'{"n":"' + escaped + b'"}'))
    assert isinstance(found, Envelope)
    assert isinstance(found.result, Raw)
    assert msgspec.json.decode(found.result) == {"n": read}


def test_a_line_with_half_of_an_emoji_that_is_broken_otherwise_stays_unreadable() -> None:
    (found,) = decode_lines(answer_with(rb'{"n":"\ud83d",}'))
    assert isinstance(found, Junk)
    assert found.id == 5


@pytest.mark.req("R8", "R10")
def test_a_flood_of_half_emojis_fails_at_once_instead_of_being_replaced() -> None:
    (found,) = decode_lines(answer_with(b'{"n":"' + rb"\ud83d" * 100_000 + b'"}'))
    assert isinstance(found, Junk)
    assert found.id == 5


@pytest.mark.req("R8", "R10")
def test_only_so_many_messages_are_read_from_one_line() -> None:
    found = decode_lines(b'{"jsonrpc":"2.0","method":"a"}' * 10_000 + b"\n")
    assert len(found) < 100
    assert isinstance(found[0], Envelope)
    assert isinstance(found[-1], Junk)


def test_every_unreadable_answer_of_a_read_is_named_and_other_junk_once() -> None:
    data = answer_with(b"NaN", b"1") + answer_with(b"NaN", b"2") + b"junk\njunk\n"
    found = decode_lines(data)
    assert [(junk.id, junk.count) for junk in found if isinstance(junk, Junk)] == [
        (1, 1),
        (2, 1),
        (None, 2),
    ]


def test_a_text_of_several_lines_is_one_message_or_one_piece_of_junk() -> None:
    (found,) = jsonrpc.decode_text(b'{"id": 5,\n "result": {"a":\r\n[\r1\n]}}\n')
    assert isinstance(found, Envelope)
    assert isinstance(found.result, Raw)
    assert bytes(found.result) == b'{"a":  [ 1 ]}'
    (junk,) = jsonrpc.decode_text(b'{"id": 5,\n "result": NaN}\n')
    assert isinstance(junk, Junk)
    assert junk.id == 5


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (None, {"code": -32601, "message": "no such method"}),
        ({"a": [1]}, {"code": -32601, "message": "no such method", "data": {"a": [1]}}),
        (0, {"code": -32601, "message": "no such method", "data": 0}),
    ],
)
def test_an_error_carries_the_data_that_was_given(data: object, error: object) -> None:
    frame = jsonrpc.error_response(7, METHOD_NOT_FOUND, "no such method", data)
    assert frame.endswith(b"\n")
    assert json.loads(frame) == {"jsonrpc": "2.0", "id": 7, "error": error}


@pytest.mark.req("S3")
@rows(
    ("data", "seconds"),
    [
        ({"retryAfterMs": 1500}, 1.5),
        ({"retryAfterMs": 0.5}, 0.0005),
        ({"retryAfterMs": 0}, 0.0),
        ({"retryAfterMs": 10**400}, 1e12),
        ({"retryAfterMs": -1}, None),
        ({"retryAfterMs": True}, None),
        ({"retryAfterMs": "1500"}, None),
        ({"other": 1}, None),
        ([1500], None),
        (None, None),
    ],
)
def test_an_error_says_when_to_try_again_only_by_a_number(
    data: object, seconds: float | None
) -> None:
    assert jsonrpc.retry_after(ErrorObject(-32023, "later", data)) == seconds


def test_no_error_says_nothing_of_later() -> None:
    assert jsonrpc.retry_after(None) is None


@pytest.mark.parametrize(
    "encode",
    [
        lambda: jsonrpc.request(1, "tools/call", {"name": "add"}),
        lambda: jsonrpc.notification("notifications/initialized"),
    ],
)
def test_what_is_sent_leaves_nothing_in_memory(encode: Callable[[], bytes]) -> None:
    encode()
    gc.collect()
    before = len(gc.get_objects())
    lines = {encode() for _ in range(2000)}
    assert len(lines) == 1
    gc.collect()
    assert len(gc.get_objects()) - before < 1000


@pytest.mark.req("Y1")
@pytest.mark.parametrize(
    ("error", "names"),
    [
        (b'{"code":1,"message":"x","data":{}}', []),
        (b'{"code":1,"message":"x","data":null,"odd":1e999999}', ["data", "odd"]),
        (b'{"code":1,"', []),
        (b"[]", []),
    ],
)
def test_what_an_error_has_beyond_its_fields_is_not_read(error: bytes, names: list[str]) -> None:
    assert [*jsonrpc.unusual_fields(Raw(error))] == names
