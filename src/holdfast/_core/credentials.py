"""Find credentials in text: by their form, in URLs, and as the value of a secret name.

Every search is linear. A pattern has a bounded part that may fail, after that only possessive runs
that cannot; or it consumes a whole run and a function decides. A pattern like ``eyJ[\\w-]+\\.``
would be quadratic: from each of n beginnings it reads to the end before it fails.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Final, TypeAlias

HIDDEN: Final = "[redacted]"

IsSecret: TypeAlias = Callable[[str], bool]


def hide_credentials(text: str, is_secret: IsSecret, stems: Iterable[str] = ()) -> str:
    """Return the text with its credentials replaced by `HIDDEN`.

    Args:
        text: Any text.
        is_secret: Tells whether a name like ``api_key`` is that of a secret.
        stems: More parts of names, in small letters, that make a text worth a search.
    """
    if "PRIVATE" in text.upper():
        text = _hide_private_keys(text)
    stems = (*_STEMS, *stems)
    return "".join(_hide_in_lines(piece, is_secret, stems) for piece in _pieces(text))


_PIECE: Final = 64 * 1024


def _pieces(text: str) -> Iterator[str]:
    """Split a long text at ends of lines: other threads get their turn between the pieces."""
    start = 0
    while len(text) - start > _PIECE and (end := text.find("\n", start + _PIECE)) >= 0:
        yield text[start : end + 1]
        start = end + 1
    yield text[start:]


def _hide_in_lines(text: str, is_secret: IsSecret, stems: Iterable[str]) -> str:
    if "://" in text:
        text = _URL.sub(_hide_userinfo, text)
        text = _WEBHOOK.sub(rf"\g<1>{HIDDEN}", text)
    if "-u" in text:
        text = _USER.sub(rf"\g<1>\g<2>{HIDDEN}", text)
    small = text.lower()
    if positions := _positions(text, small, stems):
        text = _hide_named(text, is_secret, positions)
    if any(word in small for word in _SCHEME_WORDS):
        text = _SCHEME.sub(_hide_scheme, text)
    if "eyj" in small:
        text = _JWT.sub(_hide_jwt, text)
    return _TOKEN.sub(HIDDEN, text)


# Private keys

_BEGIN: Final = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}", re.I)
_END: Final = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}", re.I)
_PUTTY: Final = re.compile(r"(Private-Lines: ?\d{1,6})(?:\\?[rn\s])", re.I)
_KEY_BODY: Final = re.compile(r"[A-Za-z0-9+/=]{16}")


def _hide_private_keys(text: str) -> str:
    """Hide from the BEGIN line to the END line (RFC 7468), headers (RFC 1421) included."""
    found: list[str] = []
    at = 0
    closed = True
    while begin := _BEGIN.search(text, at):
        end = _END.search(text, begin.end()) if closed else None
        closed = end is not None
        stop = len(text) if end is None else end.end()
        if end is None and not _KEY_BODY.search(text, begin.end(), begin.end() + 400):
            stop = begin.end()  # prose about keys
            found.append(text[at:stop])
        else:
            found += [text[at : begin.start()], HIDDEN]
        at = stop
    text = "".join([*found, text[at:]])
    putty = _PUTTY.search(text)
    return text if putty is None else f"{text[: putty.end(1)]}\n{HIDDEN}"


# URLs

_URL: Final = re.compile(r"(?<=://)[^\s\"'<>`\\]++")
_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.%]{2,64}\]|[^:]*+)(?::\d{0,5})?\Z")
_WEBHOOK: Final = re.compile(
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/\d{1,30}/"
    r"|api\.telegram\.org/(?:file/)?bot)[A-Za-z0-9_/:-]++",
    re.I,
)
_WEB: Final = ("http", "https", "ws", "wss", "file")


def _hide_userinfo(match: re.Match[str]) -> str:
    """Hide user and password of every URL in a run of characters without space."""
    parts = match[0].split("://")
    scheme = match.string[max(0, match.start() - 12) : match.start() - 3]
    for index, part in enumerate(parts):
        scheme = re.split(r"[^A-Za-z0-9+.-]", scheme)[-1].lower()
        parts[index] = _without_userinfo(part, scheme in _WEB)
        scheme = part[-8:]
    return "://".join(parts)


def _without_userinfo(rest: str, web: bool) -> str:
    """Hide up to the last ``@`` that can end the user information (RFC 3986, section 3.2.1).

    Passwords are often written raw, so a ``/`` or an ``@`` may be part of one.
    """
    if "@" not in rest:
        return rest
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        at = re.split(r"[?#]", rest, maxsplit=1)[0].rfind("@")
    elif not _HOST.match(authority) or (":" in authority and not web):
        at = rest.rfind("@")
    else:
        return rest
    user = rest[:at]
    if ":" not in user and not (len(user) >= 16 or _has_digits_and_letters(user, 8)):
        return rest
    return f"{HIDDEN}{rest[at:]}"


# Values of secret names

_STEMS: Final = (
    *("pass", "pwd", "secret", "token", "key", "auth", "credential", "cookie", "bearer", "jwt"),
    *("session", "otp", "cvv", "cvc", "ssn", "sig", "assertion", "verifier", "saml", "code"),
)
"""A name without one of these is that of no secret; custom names have stems of their own."""
_RUN: Final = re.compile(r"[\w.\-]*+")
_ASSIGNED: Final = re.compile(
    r"(?P<close>\\*+[\"']?+)[ \t]*+(?P<sep>=>|:=|[:=](?![:=/]{2}))[ \t]*+(?P<open>\\*+[\"'])?+"
)
_PAIRED: Final = re.compile(
    r"(?:\\{0,9}[\"']\s{0,9},\s{0,9}\\{0,9}[\"']values?\\{0,9}[\"']\s{0,9}:\s{0,9}"
    r"|\\{0,9}[\"']\s{1,9}value\s{0,3}=\s{0,3})(\\{0,9}[\"'])",
    re.I,
)
"""The text after the name in ``{"name": "Authorization", "value": "``, or in an XML tag."""
_STATED: Final = re.compile(r" (?:is|was)(?: ?:)? [\"'`]?+(?P<body>[^\s\"'`]{6,256})")
_LIST: Final = re.compile(r"\[[^][{}\r\n]{0,4096}[A-Za-z][^][{}\r\n]{0,4096}\]")
_BLOCK: Final = re.compile(r"[|>][+-]?[ \t]*+(?:(?:\r?\n|\\n)[ \t]++(?:[^\r\n\\]|\\(?!n))*+)++")
_PAIRED_BEFORE: Final = re.compile(
    r"alues?\\{0,9}[\"']\s{0,9}:\s{0,9}\\{0,9}[\"'](?P<value>[^\"']{1,500})[\"']\s{0,9},\s{0,9}"
    r"\\{0,9}[\"'](?:name|key|header|field|variable)\\{0,9}[\"']\s{0,9}:\s{0,9}\\{0,9}[\"']",
    re.I,
)
_TAGGED: Final = re.compile(r"(?:\s[^<>]{0,200})?>(?P<body>[^<>]{1,4096})(?=</)")
_FLAGGED: Final = re.compile(r"[ \t]++(?![-\s])(?P<open>(?:\\*+[\"'])?+)")
_USER: Final = re.compile(
    r"(?<!\S)(-u|--(?:proxy-)?user)([ \t=]{1,9}[\"']?)[^\s:\"']{0,256}:[^\s\"']++"
)
_VALUE: Final = re.compile(
    r"(?:[^\s\"'&;,\\<>]|[&;,](?![ \t\r\n]|\Z|[\w.\-]{1,40}[=:])|\\(?![nrt\"'\\])|(?<=[=:])<)++"
)
_WORD: Final = re.compile(r"\S++")
_LINE: Final = re.compile(r"[^\r\n]++")
_QUOTE_BEFORE: Final = re.compile(r"([\"']\\{0,9})")
_LINE_END: Final = re.compile(r"[\r\n]|\\[rn]")
_NO_SECRET: Final = re.compile(
    r"|[|>]|(?i:null|true|false|none)|\$\{[\w:.]++\}?|\$[A-Za-z_]\w*+"
    r"|(?:\w++ )?+(?:…|<[^<>]*+>|\*++)\W*+"
)
"""Nothing, the start of a block of lines, a constant, a variable, or a placeholder."""
_WHOLE_LINE: Final = ("authorization", "cookie")
_QUERY_ONLY: Final = frozenset({"sig", "signature"})
_PREVIOUS: Final = re.compile(r"([A-Za-z]{1,24})[ \t]\Z")
_LETTERS: Final = re.compile(r"[A-Za-z][a-z]*[.,;:!?]?\Z|[A-Z]+[.,;:!?]?\Z")
_MORE_WORDS: Final = re.compile(r"[ \t]+[A-Za-z(]")
_SENTENCE: Final = """
    a an and are argument array be been boolean can cannot false field flag for from has header
    if in integer invalid is it missing must no none not null number object of on option optional or
    parameter required see should str string the this to true undefined unknown was were will with
    you your expired empty wrong yes
"""
_NOT_VALUES: Final = frozenset(_SENTENCE.split())


def _hide_named(text: str, is_secret: IsSecret, positions: Iterable[int]) -> str:
    """Hide the values of secret names: ``password=…``, ``"token": "…"``, ``--api-key …``.

    Args:
        text: The text.
        is_secret: Tells whether a name is that of a secret.
        positions: Where stems of such names are, in order.
    """
    found: list[str] = []
    at = scan = 0
    for position in positions:
        if position < scan:
            continue
        begin = position - _run(text[max(at, position - 64) : position][::-1], 0)
        scan = position + _run(text, position)
        start, end = _secret_value(text, begin, scan, is_secret, at)
        if end > start:
            found += [text[at:start], HIDDEN]
            at, scan = end, max(scan, end)
    return "".join([*found, text[at:]])


def _run(text: str, at: int) -> int:
    """Return how many characters of a name follow."""
    found = _RUN.match(text, at)
    return 0 if found is None else found.end() - at


def _secret_value(
    text: str, begin: int, stop: int, is_secret: IsSecret, floor: int
) -> tuple[int, int]:
    """Return where the value of the name at begin:stop is; an empty span if it has none."""
    name = text[max(begin, stop - 128) : stop]
    before = text[max(0, begin - 1) : begin]
    if not is_secret(name):
        query = before in ("?", "&") and name.lower() in _QUERY_ONLY
        if not query and not _is_phrase(text, begin, name, is_secret):
            return stop, stop
    if (match := _ASSIGNED.match(text, stop)) is not None:
        return match.end(), _value_end(text, match, name, begin)
    if (match := _STATED.match(text, stop)) and _has_digits_and_letters(match["body"], 6):
        return match.span("body")
    if before == "<" and (match := _TAGGED.match(text, stop)) is not None:
        return match.span("body")
    if before in ("'", '"') and (match := _value_before(text, begin, floor)) is not None:
        return match.span("value")
    if (match := _PAIRED.match(text, stop)) is not None:
        return match.end(), _closing(text, match.end(), match[1])
    if name.startswith("-") and (match := _FLAGGED.match(text, stop)) is not None:
        return match.end(), _flag_end(text, match)
    return stop, stop


def _value_before(text: str, begin: int, floor: int) -> re.Match[str] | None:
    """Return the value in ``{"value": …, "name": "Authorization"}``, if it is near."""
    at = text.rfind("alue", max(floor, begin - 600), begin)
    match = None if at < 0 else _PAIRED_BEFORE.match(text, at, begin)
    return match if match is not None and match.end() == begin else None


def _is_phrase(text: str, begin: int, name: str, is_secret: IsSecret) -> bool:
    """Return True for a name of two words: ``API key: …``."""
    if name.lower() not in ("key", "keys", "code"):
        return False
    previous = _PREVIOUS.search(text, max(0, begin - 25), begin)
    return previous is not None and is_secret(f"{previous[1]}_{name}")


def _value_end(text: str, match: re.Match[str], name: str, begin: int) -> int:
    start = match.end()
    if match["open"]:
        return _closing(text, start, match["open"])
    line = name.lower().endswith(_WHOLE_LINE)
    quote = _QUOTE_BEFORE.match(text[max(0, begin - 10) : begin][::-1]) if line else None
    if quote is not None:
        # A header in quotes, whose own value may hold quotes: "Authorization: Digest a=\\"b\\"".
        closing = _closing(text, start, quote[1][::-1])
        if (end := _LINE_END.search(text, start, closing)) is not None:
            closing = end.start()
        return start if _NO_SECRET.fullmatch(text, start, closing) else closing
    whole = _BLOCK.match(text, start) or (None if line else _LIST.match(text, start))
    if whole is not None:
        return whole.end()
    if text.startswith(HIDDEN, start) or (not line and text.startswith(("{", "["), start)):
        return start  # an object follows, and is searched by itself
    value = (_LINE if line else _VALUE).match(text, start)
    body = "" if value is None else value[0].rstrip(" \t)]},.")
    if _NO_SECRET.fullmatch(body):
        return start
    loose = ":" in match["sep"] and not match["close"]
    if loose and not line and _is_prose(body, text, start + len(body)):
        return start
    return start + len(body)


def _flag_end(text: str, match: re.Match[str]) -> int:
    start = match.end()
    if match["open"]:
        return _closing(text, start, match["open"])
    word = _WORD.match(text, start)
    if word is None or word[0] == HIDDEN or _is_prose(word[0], text, word.end()):
        return start
    return word.end()


def _is_prose(word: str, text: str, end: int) -> bool:
    """Return True if a word after ``password:`` belongs to a sentence instead."""
    if not _LETTERS.match(word):
        return False
    return word.rstrip(".,;:!?").lower() in _NOT_VALUES or bool(_MORE_WORDS.match(text, end))


def _closing(text: str, start: int, opening: str) -> int:
    """Return where a quoted value ends: at a quote with as few backslashes as the opening one."""
    quote, depth = opening[-1], len(opening) - 1
    at = text.find(quote, start)
    while at >= 0:
        slashes = 0
        while at - slashes > start and text[at - slashes - 1] == "\\":
            slashes += 1
        if slashes <= depth:
            return at - slashes
        at = text.find(quote, at + 1)
    return len(text)


def _positions(text: str, small: str, stems: Iterable[str]) -> list[int]:
    """Return where the stems are, in order."""
    if len(small) != len(text):
        small = "".join(char.lower() if char.isascii() else char for char in text)
    found: list[int] = []
    for stem in stems:
        at = small.find(stem)
        while at >= 0:
            found.append(at)
            at = small.find(stem, at + len(stem))
    return sorted(found)


# Schemes of the Authorization header

_SCHEME_WORDS: Final = (
    *("bearer", "basic", "digest", "dpop", "negotiate", "ntlm", "token", "apikey", "hmac"),
)
_SCHEME: Final = re.compile(
    r"(?<![A-Za-z0-9])(?P<scheme>bearer|basic|digest|dpop|negotiate|ntlm|token|apikey|"
    r"aws4-hmac-sha256)[ \t]++(?P<rest>(?:(?<=digest )|(?<=sha256 ))(?=[a-z-]{1,20}\s?=)"
    r"[^\r\n]{1,4096}|[A-Za-z0-9._~+/=-]++)",
    re.I,
)


def _hide_scheme(match: re.Match[str]) -> str:
    scheme, rest = match["scheme"].lower(), match["rest"]
    token = rest.rstrip(".")
    if scheme in ("digest", "aws4-hmac-sha256"):
        secret = "=" in rest
    elif scheme == "basic":
        secret = _is_basic(token)
    elif scheme == "bearer":
        secret = len(token) >= 8 and _is_random(token)
    else:
        secret = len(token) >= 16 and _is_random(token)
    if not secret:
        return match[0]
    return f"{match[0][: -len(rest)]}{HIDDEN}{rest[len(token) :]}"


def _is_basic(token: str) -> bool:
    """Return True for base64 of ``user:password`` (RFC 7617, section 2)."""
    if len(token) < 4 or len(token) > 4096:
        return len(token) > 4096
    try:
        return b":" in b64decode(token.rstrip("=") + "=" * (-len(token.rstrip("=")) % 4), b"-_")
    except ValueError:
        return False


def _is_random(token: str) -> bool:
    """Return True for what is no word: it has digits, inner capitals, odd signs or length."""
    if any(char.isdigit() for char in token[:256]) or len(token) >= 24:
        return True
    return any(char in "_~+/=." or char.isupper() for char in token[1:])


def _has_digits_and_letters(text: str, least: int) -> bool:
    kinds = {char.isdigit() for char in text[:256] if char.isalnum()}
    return len(text) >= least and len(kinds) == 2


# Tokens that have a form of their own

_JWT: Final = re.compile(r"eyJ[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]*+)*+")


def _hide_jwt(match: re.Match[str]) -> str:
    """Hide JSON Web Tokens (RFC 7519): two or more parts, the first a JSON object."""
    parts = match[0].split(".")
    for first, second in pairwise(parts):
        if "eyJ" in first and len(first) >= 10 and len(second) >= 4:
            return HIDDEN
    return match[0]


_TOKEN: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-(?:ant|proj|or|svcacct|admin|lf|live|test)-[\w-]{12}[\w-]*+"  # OpenAI, Anthropic, …
    r"|sk-(?=[\w-]{0,40}\d)[A-Za-z0-9]{16}[\w-]*+"
    r"|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10}\w*+"  # Stripe
    r"|gh[pousr]_[A-Za-z0-9]{10}\w*+|github_pat_\w{16}\w*+|dckr_pat_[\w-]{16}[\w-]*+"
    r"|gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas|rtr)-[\w.-]{10}[\w.-]*+"  # GitLab
    r"|xox[a-z](?:\.xox[a-z])?-[\w-]{10}[\w-]*+|xapp-[\w-]{10}[\w-]*+"  # Slack
    r"|A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS access key ids
    r"|AIza[\w-]{30}[\w-]*+|ya29\.[\w-]{10}[\w.-]*+|1//0[\w-]{20}[\w-]*+|GOCSPX-[\w-]{20}[\w-]*+"
    r"|[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31}[A-Za-z0-9_~.-]*+"  # Microsoft Entra
    r"|npm_[A-Za-z0-9]{30}\w*+|pypi-[\w-]{16}[\w-]*+|hf_[A-Za-z0-9]{20}\w*+"
    r"|do[opr]_v1_[a-f0-9]{40}\w*+|SG\.[\w-]{16,40}\.[\w-]{16}[\w-]*+|SK[0-9a-f]{32}(?!\w)"
    r"|key-[0-9a-f]{32}(?!\w)|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}\w*+|sq0[a-z]{3}-[\w-]{20}[\w-]*+"
    r"|EAAA[\w-]{50}[\w-]*+|dapi[0-9a-f]{32}[\w-]*+|hv[sbr]\.[\w-]{20}[\w-]*+"
    r"|lin_(?:api|oauth)_\w{20}\w*+|ntn_[A-Za-z0-9]{20}\w*+|secret_[A-Za-z0-9]{40}\w*+"
    r"|figd_[\w-]{20}[\w-]*+|AT[AC]TT3[\w=-]{20}[\w=-]*+|dp\.(?:pt|st|ct|sa)\.[\w.-]{20}[\w.-]*+"
    r"|pscale_[a-z]{2,10}_[\w.-]{20}[\w.-]*+|glsa_\w{20}\w*+|glc_[\w=+/]{20}[\w=+/]*+"
    r"|NRAK-[A-Z0-9]{20}\w*+|sbp_[a-f0-9]{20}\w*+|sb_secret_[\w-]{16}[\w-]*+|PMAK-[\w-]{20}[\w-]*+"
    r"|r8_[A-Za-z0-9]{20}\w*+|gsk_[A-Za-z0-9]{20}\w*+|xai-[A-Za-z0-9]{20}\w*+"
    r"|pplx-[A-Za-z0-9]{20}\w*+|tvly-[\w-]{16}[\w-]*+|AGE-SECRET-KEY-1[A-Z0-9]{20}[A-Z0-9]*+"
    r"|sntry[su]_[\w=+/]{20}[\w=+/]*+|tskey-[\w-]{16}[\w-]*+|whsec_[\w+/=]{16}[\w+/=]*+"
    r"|\d{8,10}:AA[\w-]{30}[\w-]*+|vc[pa]_[A-Za-z0-9]{20}\w*+|rnd_[A-Za-z0-9]{20}\w*+"
    r"|pul-[a-f0-9]{40}|rubygems_[a-f0-9]{40}|EZ[AT]K\w{40}\w*+|ops_eyJ\w{20}\w*+"
    r")"
)
"""Issuers' prefixes, each with a bounded part that may fail and a run that cannot."""
