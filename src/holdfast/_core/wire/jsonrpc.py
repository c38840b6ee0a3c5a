"""The JSON-RPC codec: one envelope type for whatever a server may send.

The envelope is decoded once, with ``result`` and ``params`` left raw; the caller decodes
those straight into the type that it expects.
"""

import codecs
import re
from collections.abc import Callable
from itertools import islice
from typing import Any, Final, TypeAlias, final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast._core.wire.framing import one_line

Id: TypeAlias = int | str


class ErrorObject(Struct, frozen=True, gc=False):
    """A JSON-RPC error object, as lenient as servers are careless."""

    code: int | float | str | None = None
    message: str | None = None
    data: Any = None


DEFAULT_WAIT: Final = 1.0
"""Seconds to wait if a server says "later" and not how much later."""


def retry_after(fault: ErrorObject | None) -> float | None:
    """Return the seconds after which an error says to try again; None if it does not say."""
    data = None if fault is None else fault.data
    milliseconds = data.get("retryAfterMs") if isinstance(data, dict) else None
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    # An integer may have more digits than a float can hold.
    return min(milliseconds, 10**15) / 1000 if milliseconds >= 0 else None


class Envelope(Struct, gc=False):
    """Any JSON-RPC message: a request, notification or response, by the fields that are set."""

    id: int | str | float | None | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Result(Struct, gc=False):
    """A message that is plainly a result: what says anything else cannot be read as one."""

    id: int
    result: Raw
    method: None = None
    error: None = None


@final
class Junk(Struct):
    """Lines that are not JSON-RPC messages: the fault in them, and how the first began.

    ``id`` is set if a line is a message but for that fault and its id could be read;
    ``asks`` says that it has a method, so that it is a request.
    """

    reason: str
    snippet: str
    count: int = 1
    size: int = 0
    id: Id | None = None
    asks: bool = False


_decoder = msgspec.json.Decoder(Envelope)
_encoder = msgspec.json.Encoder()

encode: Callable[[Any], bytes] = _encoder.encode
decode_result: Callable[[bytes], Result] = msgspec.json.Decoder(Result).decode
"""Decode one message that is known to be short and ASCII; it raises `MALFORMED`."""


def encode_line(message: Any) -> bytes:
    """Encode a message with the end of its line, without a copy of what may be large."""
    # A list: of a tuple, msgspec 0.22 never lets go of the iterator.
    return _encoder.encode_lines([message])


_utf8 = codecs.getincrementaldecoder("utf-8")

_CHUNK = 64 * 1024
"""Bytes that are decoded at once to check them: the text is in memory beside them."""
_SNIPPET = 120
MALFORMED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)
"""The exceptions that decoding raises for malformed bytes."""


def decode_lines(data: bytes, *, batches: bool = False) -> list[Envelope | Junk]:
    """Decode every message of ``data``, which consists of whole lines; never raise."""
    if len(data) > _LARGE and _has_slow_numbers(data):
        return _decode_slowly(data, batches)
    try:
        messages = _decoder.decode_lines(data)
    except MALFORMED:
        return _decode_slowly(data, batches)
    # The decoder skips blank lines, which count as junk. One long line is the common case, and
    # finding is ten times faster than counting.
    single = len(messages) == 1 and data.find(b"\n") == len(data) - 1
    whole = single or data.count(b"\n") == len(messages)
    if not whole or not (data.isascii() or _is_utf8(data)):
        return _decode_slowly(data, batches)
    return messages  # type: ignore[return-value]  # a list of one member of the union


def decode_text(data: bytes, *, batches: bool = False) -> list[Envelope | Junk]:
    """Decode one JSON text that may span lines: a message or, where allowed, a batch."""
    data = one_line(data)
    try:
        return [_decode(data)]
    except MALFORMED:
        return _decode_line(data, batches)


def _decode(text: bytes) -> Envelope:
    """Decode one message, strings that are left raw included."""
    if len(text) > _LARGE and _has_slow_numbers(text):
        raise _SlowNumbersError
    message = _decoder.decode(text)
    if not (text.isascii() or _is_utf8(text)):
        raise msgspec.DecodeError("not UTF-8")
    return message


# Attack: the decoder reads most numbers in 20 ns. One that is close to the middle between two
# floats (1e23) takes 0.4 µs, and one whose exponent is about 300, or below -307, takes 11 µs: it is
# read by arithmetic with hundreds of digits. 16 MiB of ``1e308`` would hold the loop for half a
# minute, wherever in a message they stand, so they are counted before anything is decoded. A
# separator stands before a number: what looks like one inside of a text, such as a hexadecimal
# dump, does not count.

MOST_EXPONENTS: Final = 1_000_000
MOST_HUGE_NUMBERS: Final = 10_000
"""Numbers of hundreds of digits in one message: a tenth of a second."""
_LARGE: Final = 6 * MOST_HUGE_NUMBERS
"""Bytes of a message that may have more of them."""
_NUMBER: Final = rb"[\[,:]\s*+-?\d[\d.]*+"
_EXPONENT: Final = rb"[-+]?\d\d"
_HUGE_EXPONENT: Final = rb"[-+]?0*+[1-9]\d\d"


class _SlowNumbersError(msgspec.DecodeError):
    """A message that would take too long to read."""


def _has_slow_numbers(text: bytes) -> bool:
    if _is_mostly_strings(text):
        return False
    if _has_many(_HUGE_EXPONENT, text, MOST_HUGE_NUMBERS):
        return True
    return len(text) > 5 * MOST_EXPONENTS and _has_many(_EXPONENT, text, MOST_EXPONENTS)


def _is_mostly_strings(text: bytes) -> bool:
    """Return True if too little stands outside of the strings for too many numbers.

    It takes a fiftieth of the time of decoding, so it looks at few quotes and then gives up.
    """
    outside = start = 0
    is_inside = False
    for _ in range(len(text) // 1024):
        quote = text.find(b'"', start)
        if quote < 0:
            return outside + len(text) - start <= _LARGE
        if not is_inside:
            outside += quote - start
        elif text.startswith(b"\\\\", quote - 2):
            return False  # An escaped backslash, or one of three: the quote may be escaped or not.
        if not is_inside or text[quote - 1] != _BACKSLASH_CODE:
            is_inside = not is_inside
        start = quote + 1
    return False


_BACKSLASH_CODE: Final = ord("\\")


def _has_many(exponent: bytes, text: bytes, most: int) -> bool:
    """Return True if more than ``most`` numbers have such an exponent.

    A search for a letter is ten times faster than one for what stands before a number, so the
    numbers are looked for only if there are enough exponents, in strings or out of them.
    """
    exponents = _count(b"e" + exponent, text, most)
    if exponents <= most:
        exponents += _count(b"E" + exponent, text, most)
    return exponents > most and _count(_NUMBER + b"[eE]" + exponent, text, most) > most


def _count(pattern: bytes, text: bytes, most: int) -> int:
    """Return how often a pattern occurs; ``most`` + 1 stands for more than ``most``."""
    return sum(1 for _ in islice(re.finditer(pattern, text), most + 1))


def _is_utf8(data: bytes) -> bool:
    """Return True for valid UTF-8; the decoder checks only the strings that it does not skip."""
    decoder = _utf8()
    try:
        for start in range(0, len(data), _CHUNK):
            decoder.decode(data[start : start + _CHUNK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _decode_slowly(data: bytes, batches: bool) -> list[Envelope | Junk]:
    """Decode line by line; report junk of one kind once, so that a flood of it costs little."""
    messages: list[Envelope | Junk] = []
    junk: dict[str, Junk] = {}
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for line in lines:
        if len(line) < _SHORTEST and (reason := _too_short(line)) in junk:
            junk[reason].count += 1
            continue
        for item in _decode_line(line, batches):
            if type(item) is Junk and item.id is None:
                if item.reason in junk:
                    junk[item.reason].count += 1
                    continue
                junk[item.reason] = item
            messages.append(item)
    return messages


_SHORTEST: Final = len('{"method":""}')
"""Attack: of all bytes that are no message, those in the shortest lines cost the most time."""


def _too_short(line: bytes) -> str:
    """Return the kind of junk that a short line is; nothing if it may be a message or a batch."""
    text = line.strip()
    if not text:
        return "blank line"
    try:
        if not text.startswith((b"[", _BOM)):
            _decode(text)
    except MALFORMED as error:
        return _reason(text, error)
    return ""


_BOM: Final = codecs.BOM_UTF8
_NEXT: Final = rb'(?<=\})\s*+(?=\{"jsonrpc")'
"""Where a message follows another on one line. Inside of a string its quotes are escaped."""
_MOST_ON_A_LINE: Final = 16


def _decode_line(line: bytes, batches: bool) -> list[Envelope | Junk]:
    text = _stripped(line)
    if not text:
        return [Junk("blank line", "")]
    if text.startswith(b"["):
        return _decode_batch(text, batches)
    try:
        return [_decode(text)]
    except _SlowNumbersError as error:
        return _unreadable(text, error)
    except MALFORMED as error:
        if not text.startswith(b"{"):
            return _salvage(text) or _unreadable(text, error)
        parts = re.split(_NEXT, text, maxsplit=_MOST_ON_A_LINE)
        if len(parts) > 1:
            return [message for part in parts for message in _decode_object(part)]
        return _broken_object(text, error)


def _decode_object(text: bytes) -> list[Envelope | Junk]:
    try:
        return [_decode(text)]
    except MALFORMED as error:
        return _broken_object(text, error)


def _broken_object(text: bytes, error: Exception) -> list[Envelope | Junk]:
    return _without_method(text) or _repaired(text) or _salvage(text) or _unreadable(text, error)


class _Answer(Struct):
    id: int | str | float | None | UnsetType = UNSET
    method: None = None
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


def _without_method(text: bytes) -> list[Envelope | Junk]:
    """Read an answer whose method is null: some servers write every field."""
    if b"null" not in text:
        return []
    try:
        answer = msgspec.json.decode(text, type=_Answer)
    except MALFORMED:
        return []
    whole = Envelope(answer.id, result=answer.result, error=answer.error)
    return [whole] if _is_utf8(text) else []


_LONE: Final = (
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F][0-9a-fA-F]{2})"
)
"""An escaped surrogate that is no half of a pair (RFC 8259 section 8.2)."""
_MOST_REPAIRED: Final = 10_000
_BACKSLASH: Final = b"\\\\"
_STAND_IN: Final = b"\x01\x01"
"""Stands for an escaped backslash. No JSON text contains it."""


def _repaired(text: bytes) -> list[Envelope | Junk]:
    """Read a message in which half of a pair of surrogates is escaped, as U+FFFD."""
    mended = mend(text)
    try:
        return [] if mended == text else [_decode(mended)]
    except MALFORMED:
        return []


def mend(text: bytes) -> bytes:
    """Return a JSON text without a byte order mark, and with U+FFFD for half of a pair."""
    text = _stripped(text)
    if b"\\u" not in text or _STAND_IN in text:
        return text
    marked = text.replace(_BACKSLASH, _STAND_IN)
    mended = re.sub(_LONE, rb"\\ufffd", marked, count=_MOST_REPAIRED)
    return mended.replace(_STAND_IN, _BACKSLASH)


def _stripped(text: bytes) -> bytes:
    # RFC 8259 section 8.1: no byte order mark may be written; one that was may be ignored.
    return text.strip().removeprefix(_BOM).lstrip()


def id_of_request(text: bytes) -> Id | None:
    """Return the id of a request that cannot be read, if that can be."""
    junk = _unreadable(text, ValueError())[0]
    return junk.id if type(junk) is Junk and junk.asks else None


_LONGEST_KEY: Final = 100
"""Bytes of a key of JSON-RPC, however it is escaped."""
_SEARCHED: Final = 64 * 1024
"""Bytes in which the ids of messages that cannot be read are looked for."""
_TOKEN: Final = rb'"(?:[^"\\]|\\.)*+"?|[][{}]'
"""Attack: a string that does not end is one token, else each quote in it would be tried anew."""
_VALUE: Final = rb'(?:(-?\d{1,18})(?:\.0+)?(?:[eE][+-]?0+)?|"([^"\\\x00-\x1f]{1,200})")'
_ID: Final = rb"\s*+:\s*+" + _VALUE + rb"(?=[\s,}])"
_LAST_ID: Final = (
    rb',\s*+"id"\s*+:\s*+' + _VALUE + rb'(?:\s*+,\s*+"\w+"\s*+:\s*+(?:"2\.0"|null))*+\s*+}$'
)


def _unreadable(text: bytes, error: Exception) -> list[Envelope | Junk]:
    """Describe a text that cannot be read: each message in it whose id can be, else the whole."""
    reason, beginning, size = _reason(text, error), snippet(text), len(text)
    # What is left of UTF-16, if that is what the server writes.
    text = text.replace(b"\0", b"").strip()
    if not text.startswith((b"{", b"[")):
        return [Junk(reason, beginning, size=size)]
    top, depth, end = 2 if text.startswith(b"[") else 1, 0, 0
    messages: list[Envelope | Junk] = []
    junk, answers = Junk(reason, beginning, size=size), False
    for token in re.compile(_TOKEN).finditer(text, 0, _SEARCHED):
        what = token[0]
        if what in b"{[":
            depth += 1
        elif what in b"}]":
            if depth == top and what == b"}":
                messages += [junk] if junk.id is not None else []
                junk, answers = Junk(reason, beginning, size=size), False
            depth -= 1
        elif depth == top and (what := _unescaped(what)) == b'"id"':
            # Of two, the second counts, as everywhere.
            wire_id = _id(re.compile(_ID).match(text, token.end()))
            junk.id = junk.id if wire_id is None else wire_id
        elif depth == top and what == b'"method"':
            junk.asks = not answers
        elif depth == top and what in (b'"result"', b'"error"'):
            junk.asks, answers = False, True
        end = token.end()
    if junk.id is None and end < len(text) and top == 1:
        # Some servers write the id last, behind a long result.
        junk.id = _id(re.compile(_LAST_ID).search(text, len(text) - 300))
    if junk.id is not None or not messages:
        messages.append(junk)
    return messages


def _unescaped(key: bytes) -> bytes:
    r"""Return a string as it is written without ``\\u0041`` and the like (RFC 8259 section 8.3)."""
    if b"\\u00" not in key or len(key) > _LONGEST_KEY:
        return key
    try:
        return encode(msgspec.json.decode(key))
    except MALFORMED:
        return key


def _id(match: re.Match[bytes] | None) -> Id | None:
    if match is None:
        return None
    return int(match[1]) if match[1] is not None else match[2].decode("utf-8", "replace")


def _salvage(text: bytes) -> list[Envelope | Junk]:
    """Find the message behind text that was printed without a newline."""
    start = text.find(b'{"jsonrpc"', 1)
    if start < 0:
        return []
    try:
        message = _decode(text[start:])
    except MALFORMED as error:
        return [] if text.startswith(b"{") else _unreadable(text[start:], error)
    return [Junk("text before a message", snippet(text[:start]), size=start), message]


def _decode_batch(text: bytes, allowed: bool) -> list[Envelope | Junk]:
    try:
        items = msgspec.json.decode(text, type=list[Raw])
    except MALFORMED as error:
        return _salvage(text) or _unreadable(text, error if allowed else _Batch())
    if not allowed:
        return _unreadable(text, _Batch())
    if not items:
        return [Junk("empty batch", snippet(text), size=len(text))]
    messages: list[Envelope | Junk] = []
    for item in items:
        # A batch holds messages, not batches.
        messages.extend(_decode_line(bytes(item), False))
    return messages


class _Batch(Exception):  # noqa: N818  (a kind of junk)
    """Messages in an array, which the revision does not have."""


def _reason(text: bytes, error: Exception) -> str:
    """Return the kind of junk: one of a few, so that each is logged once."""
    if isinstance(error, _Batch):
        return "batch"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, _SlowNumbersError):
        return "too many numbers with large exponents"
    if isinstance(error, msgspec.ValidationError):
        return "not a JSON-RPC message"
    try:
        text.decode()
    except UnicodeDecodeError:
        return "not UTF-8"
    return "not JSON"


def snippet(text: bytes) -> str:
    """Return the beginning of some bytes, printable."""
    from holdfast._core.text import UNSEEN

    cut = text[:_SNIPPET].decode("utf-8", "replace")
    printable = re.sub(UNSEEN, "\N{REPLACEMENT CHARACTER}", cut)
    return printable + ("…" if len(text) > _SNIPPET else "")


def decode_error_object(raw: Raw) -> ErrorObject | None:
    """Return the error object of a response, or None if it is not one."""
    try:
        return msgspec.json.decode(raw, type=ErrorObject)
    except MALFORMED:
        return None


def unusual_fields(error: Raw) -> dict[str, Raw]:
    """Return the fields of an error object that `ErrorObject` does not tell: others, null data.

    They stay as they came: a number in them may be one that Python cannot hold.
    """
    try:
        fields = msgspec.json.decode(error, type=dict[str, Raw])
    except MALFORMED:  # a name that is no text, perhaps
        return {}
    is_null = bytes(fields.get("data", b"")) == b"null"
    return {
        name: value
        for name, value in fields.items()
        if name not in ("code", "message", "data") or (name == "data" and is_null)
    }


def request(wire_id: Id, method: str, params: Any = None) -> bytes:
    message = _Request(wire_id, method, UNSET if params is None else params)
    return _encoder.encode_lines([message])


def notification(method: str, params: Any = None) -> bytes:
    return encode_line(_Notification(method, UNSET if params is None else params))


def response(wire_id: float | str, result: Any) -> bytes:
    return encode_line(_Response(wire_id, result))


def error_response(wire_id: Id, code: int, message: str, data: Any = None) -> bytes:
    fault = {"code": code, "message": message}
    if data is not None:
        fault["data"] = data
    return _encoder.encode(_ErrorResponse(wire_id, fault)) + b"\n"


class _Request(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    id: Id
    method: str
    params: Any = UNSET


class _Notification(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    method: str
    params: Any = UNSET


class _Response(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    id: float | str
    result: Any


class _ErrorResponse(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    id: Id
    error: dict[str, Any]
