"""Find credentials in text: by their form, in URLs, and as the value of a secret name.

Every search is linear. A pattern has a bounded part that may fail, after that only possessive runs
that cannot; or it consumes a whole run and a function decides. A pattern like ``eyJ[\\w-]+\\.``
would be quadratic: from each of n beginnings it reads to the end before it fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import repeat
from typing import Final, TypeAlias

from holdfast._core.redact.forms import (
    MARKS,
    TOKENS,
    URLS,
    has_digits_and_letters,
    hide_forms,
    hide_private_keys,
    is_flag,
    is_plain_name,
    is_value,
)
from holdfast._core.redact.names import is_path
from holdfast._core.text import HIDDEN

IsSecret: TypeAlias = Callable[[str], bool]


def hide_credentials(text: str, is_secret: IsSecret, stems: Iterable[str]) -> str:
    """Return the text with its credentials replaced by `HIDDEN`.

    ``is_secret`` judges a name like ``api_key``; ``stems`` are the parts that such names have.
    """
    if "PRIVATE" in text.upper():
        text = hide_private_keys(text)
    return "".join(_hide_in_lines(piece, is_secret, stems) for piece in _pieces(text))


def stems_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the usual parts of secret names and these, without those that contain another."""
    stems = {*_STEMS, *names}
    return tuple(stem for stem in stems if not any(part in stem for part in stems - {stem}))


PROTOCOL_NAMES: Final = (
    *("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientInfo"),
    *("io.modelcontextprotocol/clientCapabilities", "io.modelcontextprotocol/serverInfo"),
    *("protocolVersion", "progressToken", "structuredContent", "input_required"),
    *("requestedSchema", "notifications/progress", "notifications/message"),
)
"""Names of the protocol that look like something to hide, and are in most messages of a trace: they
are long, or have "token" in them. As whole words, and no other way, they hide nothing."""


class PlainWords:
    """A fast check for short texts in which the searches would find nothing.

    Every search needs the stem of a name, one of `MARKS`, a flag, a word as long as a token, or a
    character that may stand for another one. None of them spans several words: a text is plain if
    all of its words are, and words are remembered, for names and vocabulary come again.
    """

    def __init__(self, stems: Iterable[str], names: Iterable[str] = ()) -> None:
        self._stems = stems = tuple(stems)
        self._names = frozenset(name.lower().encode() for name in names)
        """Whole words that hide nothing, whatever they look like."""
        self._plain_words: set[bytes] = set(self._names)
        self._plain_parts: set[bytes] = set()
        """Parts of messages, from comma to comma, that came again and had nothing in them."""
        self._seen_parts: set[bytes] = set()
        """Those that came once."""

    @cached_property
    def _suspicious(self) -> re.Pattern[bytes]:
        parts = "|".join(map(re.escape, (*self._stems, *MARKS))).encode()
        return re.compile(b"%b|%b" % (parts.translate(_ZEROS), _NOT_PLAIN))

    def has(self, data: bytes) -> bool:
        """Return True if a text, or JSON, has nothing in it that could be hidden."""
        return self._has(data.translate(_ZEROS))

    def _has(self, data: bytes) -> bool:
        new = set(data.translate(_FOLDED).split()) - self._plain_words
        if not new:
            return True
        if self._suspicious.search(b" ".join(new)) is not None:
            return False
        if len(self._plain_words) > _MOST_WORDS:
            self._plain_words = set(self._names)
        self._plain_words |= new
        return True

    def most_brackets(self, messages: Sequence[bytes]) -> int | None:
        """Return None unless this holds for each of some messages of JSON.

        Else return how many ``{`` and ``[`` one of them may have at most. Most of their parts come
        again, and what these have was counted before.
        """
        parts = b",".join(messages).translate(_ZEROS).split(b",")
        most = _MOST_BRACKETS * (max(map(bytes.count, messages, repeat(b","))) + 1)
        if self._plain_parts.issuperset(parts):
            return most
        new = set(parts) - self._plain_parts
        joined = b" ".join(new)
        if not self._has(joined):
            return None
        again = {part for part in new & self._seen_parts if _brackets(part) <= _MOST_BRACKETS}
        if len(self._plain_parts) + len(again) > _MOST_WORDS:
            self._plain_parts = set()
        if len(self._seen_parts) > _MOST_WORDS:
            self._seen_parts = set()
        self._plain_parts |= again
        self._seen_parts |= new
        return most + _brackets(joined)


def _brackets(data: bytes) -> int:
    return data.count(b"{") + data.count(b"[")


_MOST_BRACKETS: Final = 3
"""In a part that is remembered."""
_ZEROS: Final = bytes(48 if 48 <= code < 58 else code for code in range(256))
"""Zeros in place of all digits: ids and amounts are others each time, and one stands for all."""
_FOLDED: Final = bytes(32 if code in b'{}[],:"' else code for code in bytes(range(256)).lower())
"""Lower case, with spaces in place of the signs of JSON, which are in no word of `MARKS`."""
_NOT_PLAIN: Final = rb"--|(?<![^ '])-[a-z]|[^ ]{14}|[^\x00-\x7f]|\\"
"""A flag, a word as long as the shortest token, what is not ASCII, an escape."""
_MOST_WORDS: Final = 4096
_PIECE: Final = 64 * 1024


def _pieces(text: str) -> Iterator[str]:
    """Split a long text at ends of lines: other threads get their turn between the pieces."""
    start = 0
    while len(text) - start > _PIECE and (end := text.find("\n", start + _PIECE)) >= 0:
        yield text[start : end + 1]
        start = end + 1
    yield text[start:]


def _hide_in_lines(text: str, is_secret: IsSecret, stems: Iterable[str]) -> str:
    return hide_forms(_hide_named(hide_forms(text, URLS), is_secret, stems), TOKENS)


# Values of secret names

_STEMS: Final = (
    *("pass", "pwd", "secret", "token", "key", "auth", "credential", "cookie", "bearer", "jwt"),
    *("session", "otp", "cvv", "cvc", "ssn", "sig", "assertion", "verifier", "saml", "code"),
    *("pw", "tok", "_pat", "phrase", "mnemonic", "sessid", "t.sid", "kennwort", "connections"),
    *("connection_s", "connection-s", "connection.s", "conn_s", "conn-s", "connstr"),
)
"""A name without one of these is that of no secret; custom names have stems of their own."""
_HEADER: Final = re.compile(
    r"(?P<close>\\*+[\"']?+)[ \t]*+(?P<sep>=>|:=|[:=](?![:=/]{2})|%3[AD])[ \t]*+"
    r"(?P<open>(?:\\*+[\"'])?+)",
    re.I,
)
_RUN: Final = re.compile(r"[\w.\-]*+")
_QUOTE: Final = (
    r"(?:(?:\\{0,3}\"){3}|(?:\\{0,3}'){3}|\\*+[\"'`]|&quot;|&#3[49];|%2[27]|\\{1,9}u002[27])"
)
_ASSIGNED: Final = re.compile(
    rf"(?P<close>{_QUOTE}?+(?:\]|%5D){{0,2}}+(?:\[\])?+[*_]{{0,3}}+)[ \t]*+"
    r"(?P<sep>=>|->|:=|[!=]==?|[:=](?![:=/]{2})|[→：＝]|\\{1,9}u(?:2192|ff1[ad])|%3[AD])"
    r"[*_]{0,3}+[ \t]*+"
    r"(?:!{1,2}\w{1,20}[ \t]++|&\w{1,20}[ \t]++)?+"  # a tag or an anchor of YAML
    r"(?:(?:Optional\[)?(?:str|string|bytes|SecretStr|Any)\]?(?: ?\| ?\w{1,12})?[ \t]*+=[ \t]*+)?+"
    rf"(?:(?:[A-Za-z_][\w.]{{0,40}}\(|[bBrRuUfF]{{1,2}})?(?P<open>{_QUOTE}))?+",
    re.I,
)
_PAIRED: Final = re.compile(
    r"(?:\\{0,9}[\"']\s{0,9},\s{0,9}\\{0,9}[\"']values?\\{0,9}[\"']\s{0,9}:\s{0,9}"
    r"|\\{0,9}[\"']\s{1,9}value\s{0,3}=\s{0,3})(\\{0,9}[\"'])",
    re.I,
)
"""The text after the name in ``{"name": "Authorization", "value": "``, or in an XML tag."""
_LISTED: Final = re.compile(r"\\{0,9}[\"']\s{0,9},\s{0,9}[bu]?(\\{0,9}[\"'])")
_LISTED_BEFORE: Final = re.compile(r"[(\[]\s{0,9}[bu]?\\{0,9}[\"']\Z")
"""Around the name in ``("Authorization", "…")`` and ``["--password", "…"]``."""
_SET_BEFORE: Final = re.compile(
    r"(?:^|[\s;&\"'\[({])(?:setx?|setenv|export)[ \t]+(?:-\w{1,9}[ \t]+){0,2}\Z"
)
_ITEMS: Final = re.compile(  # some of them may be hidden already
    rf"\[(?!redacted\])(?:[^][{{}}\r\n]|{re.escape(HIDDEN)}){{0,8192}}+\]|\([^()\r\n]{{0,8192}}+\)"
)
_BLOCK: Final = re.compile(r"[|>][+-]?[ \t]*+(?:(?:\r?\n|\\n)[ \t]++(?:[^\r\n\\]|\\(?!n))*+)++")
_DASHED: Final = re.compile(r"(?:[ \t]*+(?:\r?\n|\\n)[ \t]*+- (?:[^\r\n\\]|\\(?!n))*+)++")
_BRACED: Final = re.compile(
    r"\{(?![\w.]*+\}(?!\}\w)|\s{0,9}\\{0,9}[\"'])(?:[^{}\r\n:]|:(?! )|\}\}(?=[^\s;,}\]])){1,256}\}"
)
"""Braces are the quotes of ODBC, where ``}}`` is a brace of the value; not those of an object."""
_BRACED_WORD: Final = re.compile(
    r"\{(?P<twice>\{)?+(?P<word>[\w.]++)(?:\}(?(twice)\})(?!\}\w)|(?=[\s\"'\]\\]|\Z))"
)
_PAIRED_BEFORE: Final = re.compile(
    r"alues?\\{0,9}[\"']\s{0,9}:\s{0,9}\\{0,9}[\"'](?P<value>[^\"']{1,500})[\"']\s{0,9},\s{0,9}"
    r"\\{0,9}[\"'](?:name|key|header|field|variable)\\{0,9}[\"']\s{0,9}:\s{0,9}\\{0,9}[\"']",
    re.I,
)
_FLAGGED: Final = re.compile(
    r"[ \t]++(?:\\(?:\r?\n|\\{2,15}n)[ \t]*+)?+(?!\s)(?P<open>(?:\\*+[\"'])?+)"
)
_VALUE_CHARS: Final = (
    r"(?:[^\s\"'&;,\\<>]|[&;,](?![ \t\r\n]|\Z|[\w.\-]{1,40}[=:])|\\(?![nrt\"'\\])|(?<=[=:])<)"
)
_VALUE: Final = re.compile(f"{_VALUE_CHARS}++")
_ENCODED_VALUE: Final = re.compile(f"(?:(?!%2[26C]){_VALUE_CHARS})++")
_WORD: Final = re.compile(r"\S++")
_LINE: Final = re.compile(r"[^\r\n]++")
_QUOTE_BEFORE: Final = re.compile(r"([\"']\\{0,9})")
_SHELL_VARIABLE: Final = re.compile(r"(?:[:=][ \t]?'?|[ \t]{1,4})\"\$[A-Z][A-Z0-9_]*\"")
_QUERY_HEAD: Final = re.compile(r"=([^\s&#\"'<>]{1,256}+)")
_QUERY_REST: Final = re.compile(r"[^\s&#\"'<>]*+")
_NO_SECRET: Final = re.compile(
    r"|[|>]|(?i:null|nil|none|true|false|undefined|enabled|disabled|required|optional|include|omit"
    r"|same-origin|basic)|(?:\w++ )?+(?:\$\{[\w:.]++\}?|\$[A-Za-z_]\w*+|(?i:your)[_-][A-Za-z_-]++)"
    r"|(?:process|import\.meta)\.env(?:\.\w++)?+|os\.(?:environ|getenv)\W?+(?:get\()?+|await|\$?+\{\{"
    r"|\$\d{1,2}|\?|%s|%\(\w{1,40}\)s|(?:\w++ )?+-?+(?:…|<[^<>]*+>|\*++|[xX]{3,}+)\W*+"
)
"""Nothing, the start of a block of lines, a constant, a variable, or a placeholder."""
_PLACEHOLDER: Final = re.compile(r"<([^<>\r\n]{1,60})>")
_WHOLE_LINE: Final = (
    *("authorization", "cookie", "codes", "mnemonic", "_phrase", "connectionstring"),
    *("connection_string", "connection-string", "connstr", "conn_str", "connstring"),
)
_QUERY_ONLY: Final = {"sig": 4, "signature": 4, "tok": 4, "code": 8, "key": 16}
"""Names that are secret in a query, and the length of a value that is no ordinary one."""
_PREVIOUS: Final = re.compile(r"([A-Za-z0-9-]{1,24})[ \t]\Z")
_LETTERS: Final = re.compile(r"[A-Za-z][a-z]*[.,;:!?]?\Z|[A-Z]+[.,;:!?]?\Z")
_MORE_WORDS: Final = re.compile(r"[ \t]+[A-Za-z(]")
_SENTENCE: Final = """
    a an and are argument array be been boolean can cannot false field flag for from has header
    if in integer invalid is it missing must no none not null number object of on option optional or
    parameter required see should str string the this to true undefined unknown was were will with
    you your expired empty wrong yes
"""
_NOT_VALUES: Final = frozenset(_SENTENCE.split())


# How the value of a name is found in text
#
# Text has no structure that one could trust: it may be JSON that was cut, a line of a log with
# JSON in it, a query, YAML, a command, or all of them in quotes. So it is not parsed. The stems of
# secret names are found first (`_positions`): a text without any is done. Around each stem the
# whole name is taken and judged by `is_secret`; of a name that is secret, the text right after it
# decides in which notation it stands, in the order of `_secret_value`:
#
#     password=…   "password": "…"   password => …    an assignment, with or without quotes
#     {"value": "…", "name": "password"}              a pair, its value first
#     {"name": "password", "value": "…"}              a pair
#     ("password", "…")   ["--password", "…"]         two items of a list
#     --password …   export PASSWORD …                a flag, a command of a shell
#
# Then the end of the value is sought: a quote with as few backslashes as the opening one, the end
# of a line for headers, else the next separator. The value begins where the notation ends, and a
# search goes on behind it: every character is read a bounded number of times, whatever a hostile
# server sends. What can be judged by the beginning of a value is judged before its end is sought.
#
# That a value is none is as important: "password: required", ``token=${TOKEN}``, ``--token TOKEN``
# in a line of help. To hide such words makes an error unreadable, and whoever reads unreadable
# errors switches redaction off.


def _hide_named(text: str, is_secret: IsSecret, stems: Iterable[str]) -> str:
    """Hide the values of secret names: ``password=…``, ``"token": "…"``, ``--api-key …``."""
    parts: list[str] = []
    done = scan = 0
    for position in _positions(text, stems):
        if position < scan:
            continue
        begin = position - _run(text[max(done, position - 64) : position][::-1], 0)
        scan = position + _run(text, position)
        start, end = _secret_value(text, begin, scan, is_secret, done)
        if end > start and not _is_name_of_session(text[begin:scan], text[start:end]):
            parts += [text[done:start], HIDDEN]
            done, scan = end, max(scan, end)
    return "".join([*parts, text[done:]])


def _is_name_of_session(name: str, value: str) -> bool:
    """Return True for ``session=main`` or "the session: 3 of 5": only an id is a secret."""
    is_session = name.lower().rstrip("s").endswith("session")
    return is_session and not has_digits_and_letters(value, 6)


def _positions(text: str, stems: Iterable[str]) -> list[int]:
    """Return where the stems of secret names are, in order."""
    small = text.lower()
    if len(small) != len(text):
        small = "".join(char.lower() if char.isascii() else char for char in text)
    positions: list[int] = []
    for stem in stems:
        position = small.find(stem)
        while position >= 0:
            positions.append(position)
            position = small.find(stem, position + len(stem))
    return sorted(positions)


def _run(text: str, position: int) -> int:
    """Return how many characters of a name follow."""
    match = _RUN.match(text, position)
    return 0 if match is None else match.end() - position


def _secret_value(
    text: str, begin: int, stop: int, is_secret: IsSecret, floor: int
) -> tuple[int, int]:
    """Return where the value of the name at begin:stop is; an empty span if it has none."""
    name, nothing = text[max(begin, stop - 128) : stop], (stop, stop)
    before = text[max(0, begin - 1) : begin]
    if _SHELL_VARIABLE.match(text, stop):
        return nothing
    if not is_secret(name) and not _is_phrase(text, begin, name, is_secret):
        return _query_value(text, stop, name) if before in ("?", "&") else nothing
    assigned = _HEADER if _is_whole_line(name) else _ASSIGNED
    if (match := assigned.match(text, stop)) is not None:
        return match.end(), _value_end(text, match, name, begin)
    if before in ("'", '"') and (match := _value_before(text, begin, floor)) is not None:
        return match.span("value")
    if (match := _PAIRED.match(text, stop)) is not None:
        return match.end(), _closing(text, match.end(), match[1])
    return _listed_or_flagged(text, begin, stop, name) or nothing


def _listed_or_flagged(text: str, begin: int, stop: int, name: str) -> tuple[int, int] | None:
    """Return where the next item of a list is, or the word after a flag; None: neither."""
    context, is_flag_name = text[max(0, begin - 48) : begin], name.startswith("-")
    match = _LISTED.match(text, stop)
    if match is not None and (is_flag_name or _LISTED_BEFORE.search(context)):
        end = _closing(text, match.end(), match[1])
        is_value = is_flag_name or not is_plain_name(text[match.end() : end])
        return match.end(), end if is_value else match.end()
    if is_flag_name or (name.isupper() and _SET_BEFORE.search(context)):
        match = _FLAGGED.match(text, stop)
        return None if match is None else (match.end(), _flag_end(text, match, name))
    return None


def _query_value(text: str, stop: int, name: str) -> tuple[int, int]:
    """Return the value of a name that is secret in a query only; an empty span if it is not."""
    least, head = _QUERY_ONLY.get(name.lower()), _QUERY_HEAD.match(text, stop)
    if least is None or head is None or (least > 4 and not has_digits_and_letters(head[1], least)):
        return stop, stop
    return stop + 1, _QUERY_REST.match(text, head.end()).end()  # type: ignore[union-attr]


def _is_whole_line(name: str) -> bool:
    """Return True for headers and lists of codes or words, whose value has spaces in it."""
    return name.lower().endswith(_WHOLE_LINE) or name.lower() == "phrase"


def _value_before(text: str, begin: int, floor: int) -> re.Match[str] | None:
    """Return the value in ``{"value": …, "name": "Authorization"}``, if it is near."""
    at = text.rfind("alue", max(floor, begin - 600), begin)
    match = None if at < 0 else _PAIRED_BEFORE.match(text, at, begin)
    return match if match is not None and match.end() == begin else None


def _is_phrase(text: str, begin: int, name: str, is_secret: IsSecret) -> bool:
    """Return True for a name of two words: ``API key: …``."""
    if name.lower() not in ("key", "keys", "code", "codes", "phrase"):
        return False
    previous = _PREVIOUS.search(text, max(0, begin - 25), begin)
    return previous is not None and is_secret(f"{previous[1]}_{name}")


def _value_end(text: str, match: re.Match[str], name: str, begin: int) -> int:
    """Return where an assigned value ends; where it begins if it is no secret.

    What can be judged by its beginning is judged before the value is read to its end: a text of n
    such values is read once, and not from each of them to the end.
    """
    start, small, line = match.end(), name.lower(), _is_whole_line(name)
    if match["open"]:
        return _closing(text, start, match["open"])
    quote = _QUOTE_BEFORE.match(text[max(0, begin - 10) : begin][::-1]) if line else None
    if quote is not None:
        # A header in quotes, whose own value may hold quotes: "Authorization: Digest a=\\"b\\"".
        closing = _closing(text, start, quote[1][::-1], or_line=True)
        return start if _NO_SECRET.fullmatch(text, start, closing) else closing
    if not line and (whole := _whole(text, start, name, begin)) is not None:
        return whole.end()
    if text.startswith(HIDDEN, start) or (not line and text.startswith(("{", "["), start)):
        return start  # the members of an object are searched on their own
    loose = match["sep"] in (":", "->") and not line
    if _is_other(text, match, name, begin, loose):
        return start
    chars = _LINE if line else _ENCODED_VALUE if match["sep"].startswith("%") else _VALUE
    return start + _length_of_secret(text, start, chars, small, loose)


def _length_of_secret(
    text: str, start: int, chars: re.Pattern[str], small: str, loose: bool
) -> int:
    """Return how long the value of a name in lower case is; 0 if it is no secret."""
    value = chars.match(text, start)
    body = "" if value is None else value[0].rstrip(" \t)]},.")
    count = body.isdigit() and (small == "pass" or small.endswith("tokens"))
    parameter = body[:1] in (":", "@") and body[1:].lower() == small  # of SQL
    prose = loose and _is_prose(body, text, start + len(body))
    return 0 if count or parameter or prose or _NO_SECRET.fullmatch(body) else len(body)


def _is_other(text: str, match: re.Match[str], name: str, begin: int, loose: bool) -> bool:
    """Return True if the beginning of a value shows that it is not a secret."""
    small, start = name.lower(), match.end()
    if match["sep"][-2:] in ("==", "!=") or _is_placeholder(text, start):
        return True  # code that compares, or a text that explains
    if small == "pass":
        # "pass: 12" counts what did not fail, unless a user stands before it.
        return loose and not re.search(r"user|login", text[max(0, begin - 48) : begin], re.I)
    if small == "pwd":
        return is_path(text[start : start + 3])
    if not small.endswith(("phrase", "mnemonic")) or not _is_whole_line(name):
        return False
    words = _LINE.match(text, start, start + 512)
    return words is None or words[0].rstrip(" \t)]},.").count(" ") < 3


def _whole(text: str, start: int, name: str, begin: int) -> re.Match[str] | None:
    """Return a value of several parts: lines of YAML, a list, a tuple, braces."""
    if not (braced := _BRACED.match(text, start)) and (word := _BRACED_WORD.match(text, start)):
        odbc = text[begin - 1 : begin] == ";" or text.startswith(";", word.end())
        has_stem = any(stem in word["word"].lower() for stem in _STEMS)
        return word if is_value(word["word"]) or (odbc and not has_stem) else None
    lines = _DASHED.match(text, start) if name[-1:] in "sS" else None
    items = _ITEMS.match(text, start)
    if items is not None and not any(char.isalpha() for char in items[0]):
        items = None
    return lines or _BLOCK.match(text, start) or items or braced


def _flag_end(text: str, match: re.Match[str], name: str) -> int:
    start = match.end()
    if match["open"]:
        return _closing(text, start, match["open"])
    word = _WORD.match(text, start)
    if word is None or word[0] == HIDDEN or _is_prose(word[0], text, word.end()):
        return start
    # A line of help: ``--token TOKEN``, ``--password <text>``.
    value, last = word[0].rstrip("])|,."), name.replace("-", "_").strip("_").rpartition("_")[2]
    is_name = value.isupper() and value.isascii() and value.rpartition("_")[2] == last.upper()
    return start if is_name or is_flag(value) or _is_placeholder(value, 0) else word.end()


def _is_placeholder(text: str, start: int) -> bool:
    """Return True for ``<token>``, which explains where a value goes."""
    match = _PLACEHOLDER.match(text, start)
    return match is not None and not is_value(match[1])


def _is_prose(word: str, text: str, end: int) -> bool:
    """Return True if a word after ``password:`` belongs to a sentence instead."""
    if not _LETTERS.match(word):
        return False
    return word.rstrip(".,;:!?").lower() in _NOT_VALUES or bool(_MORE_WORDS.match(text, end))


def _closing(text: str, start: int, opening: str, *, or_line: bool = False) -> int:
    """Return where a quoted value ends: at a quote with as few backslashes as the opening one."""
    if len(opening.lstrip("\\")) > 1:  # three quotes, or one that is encoded
        end = text.find(opening, start)
        return len(text) if end < 0 else end
    closing = rf"(?<!\\)\\{{0,{len(opening) - 1}}}{opening[-1]}"
    match = re.compile(closing + (r"|[\r\n]|\\[rn]" if or_line else "")).search(text, start)
    return len(text) if match is None else match.start()
