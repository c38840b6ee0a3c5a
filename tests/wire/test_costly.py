"""Messages that were made to take long: what they cost is bounded by their size."""

from __future__ import annotations

import gc
import time
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from holdfast._core.wire import jsonrpc
from holdfast._core.wire.jsonrpc import MOST_EXPONENTS, MOST_HUGE_NUMBERS, Envelope, Junk
from holdfast.types.base import MOST_LENIENT, decode, decode_page
from holdfast.types.content import UnknownContent
from holdfast.types.tools import Tool, ToolResult


def answer(numbers: bytes, count: int, *, member: bytes = b"result") -> bytes:
    listed = b",".join([numbers] * count)
    return b'{"jsonrpc":"2.0","id":7,"' + member + b'":{"data":[' + listed + b"]}}\n"


@pytest.mark.req("M2")
@pytest.mark.parametrize("number", [b"1e308", b"-1E+308", b"1.5e300", b"1e-308", b"1e0300"])
@pytest.mark.parametrize("member", [b"result", b"error"])
@pytest.mark.parametrize("separator", [b",", b" ,\n"])
def test_numbers_that_take_long_to_read_make_a_message_unreadable(
    number: bytes, member: bytes, separator: bytes
) -> None:
    """Each takes 11 µs: 16 MiB of them would hold the loop for half a minute."""
    text = answer(number, 60_000, member=member).replace(b",", separator)
    for message in (
        *jsonrpc.decode_text(text),
        *jsonrpc.decode_text(text.replace(b'"id"', b'"method":null,"id"')),
    ):
        assert isinstance(message, Junk)
        assert (message.id, message.reason) == (7, "too many numbers with large exponents")
    (message,) = jsonrpc.decode_lines(text.replace(b"\n", b" ") + b"\n")
    assert isinstance(message, Junk)
    assert message.id == 7, "the request that it answers fails"


@pytest.mark.req("M2")
@pytest.mark.parametrize(
    ("number", "count"),
    [
        (b"1e308", MOST_HUGE_NUMBERS),
        (b"1.25e-12", 100_000),
        (b"1e23", 100_000),
        (b'"1e308 1e308"', 100_000),
        (b'"hex 1e308f 3e999"', 100_000),
        (b"12345678901234567890", 50_000),
    ],
    ids=["few", "small exponents", "exponents", "text", "hexadecimal", "digits"],
)
def test_other_numbers_are_read_however_many(number: bytes, count: int) -> None:
    (message,) = jsonrpc.decode_lines(answer(number, count))
    assert isinstance(message, Envelope)
    assert len(msgspec.json.decode(message.result)["data"]) == count  # type: ignore[arg-type]


LONG_STRINGS = [
    b"x" * 100_000,
    b"\\\\",
    b'\\"',
    b'\\\\\\"',
    b'\\"1e308 ' * 20_000,
    b"\\n, 1e308" * 20_000,
]


@pytest.mark.req("M2")
@pytest.mark.parametrize("string", LONG_STRINGS, ids=range(len(LONG_STRINGS)))
def test_costly_numbers_do_not_hide_behind_strings(string: bytes) -> None:
    strings = b'"' + string + b'"'
    (message,) = jsonrpc.decode_lines(answer(strings, 3))
    assert isinstance(message, Envelope), "the strings alone"
    costly = b",".join([strings, *([b"1e308"] * 60_000), strings])
    (message,) = jsonrpc.decode_lines(answer(costly, 1))
    assert isinstance(message, Junk)
    assert message.reason == "too many numbers with large exponents"


@pytest.mark.req("M2")
def test_a_string_without_an_end_is_read_once() -> None:
    def cpu_time(size: int) -> float:
        began = time.process_time()
        (message,) = jsonrpc.decode_text(b'{"id":7,"result":"' + b'\\"' * (size // 2))
        assert isinstance(message, Junk)
        assert message.id == 7
        return time.process_time() - began

    # The least of three, as at times the process has something else to do: one will do.
    short = min(cpu_time(8_000) for _ in range(3))
    assert any(cpu_time(64_000) < 24 * short + 0.05 for _ in range(3))


@pytest.mark.req("M2")
def test_a_million_exponents_are_enough() -> None:
    """1e23 takes 0.4 µs: it is in the middle between two floats."""
    assert isinstance(jsonrpc.decode_lines(answer(b"1e23", MOST_EXPONENTS))[0], Envelope)
    assert isinstance(jsonrpc.decode_lines(answer(b"1e23", MOST_EXPONENTS + 1))[0], Junk)


@pytest.mark.req("M2")
def test_other_messages_of_the_same_bytes_are_read() -> None:
    costly = answer(b"1e308", 60_000)
    ping = b'{"jsonrpc":"2.0","id":8,"result":{}}\n'
    junk, message = jsonrpc.decode_lines(costly + ping)
    assert isinstance(junk, Junk)
    assert isinstance(message, Envelope)
    assert message.id == 8


def result(item: bytes, count: int) -> Raw:
    return Raw(b'{"content":[' + b",".join([item] * count) + b"]}")


UNFIT = [b"{}", b"0", b"null", b"[]", b'{"type":"x"}', b'{"type":"text"}', b'{"type":"resource"}']


@pytest.mark.req("T8", "M2")
@pytest.mark.parametrize("item", UNFIT)
def test_contents_that_do_not_fit_are_read_up_to_a_number(item: bytes) -> None:
    """Each takes 16 µs and 650 bytes, for three bytes of the message."""
    contents = decode(result(item, 100), ToolResult).content
    assert len(contents) == 100
    assert all(isinstance(content, UnknownContent) for content in contents)
    for count in (MOST_LENIENT + 1, 1_200_000):
        with pytest.raises(msgspec.ValidationError, match="not all of which fit"):
            decode(result(item, count), ToolResult)


@pytest.mark.req("T8", "M2")
@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_of_garbage_rests_while_a_large_message_is_read(collects: bool) -> None:
    collections = 0

    def note(*_: Any) -> None:
        nonlocal collections
        collections += 1

    text = Raw(b'{"content":[],"structuredContent":[' + b",".join([b"[]"] * 400_000) + b"]}")
    gc.callbacks.append(note)
    try:
        if not collects:
            gc.disable()
        value = decode(text, ToolResult)
        assert gc.isenabled() is collects
        assert collections < 20, "there would be hundreds"
    finally:
        gc.callbacks.remove(note)
        gc.enable()
    assert len(value.structured) == 400_000


@pytest.mark.req("T8")
def test_contents_that_fit_are_read_however_many() -> None:
    text = b'{"type":"text","text":"x"}'
    assert len(decode(result(text, 2 * MOST_LENIENT), ToolResult).content) == 2 * MOST_LENIENT


@pytest.mark.req("T8", "M2")
@pytest.mark.parametrize("item", [b"{}", b"0", b'{"name":5}', b'{"name":"a","title":5}'])
def test_items_of_a_page_that_do_not_fit_are_read_up_to_a_number(item: bytes) -> None:
    def page(count: int) -> Any:
        text = b'{"tools":[' + b",".join([item] * count) + b"]}"
        return decode_page(text, Tool, "tools", 100_000)

    read = page(100)
    assert len(read.items) + len(read.faults) == 100
    with pytest.raises(msgspec.ValidationError, match="items that do not fit"):
        page(MOST_LENIENT + 1)
