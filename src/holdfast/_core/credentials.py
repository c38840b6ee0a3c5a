"""Find credentials in text: by their form, in URLs, and as the value of a secret name.

Every search is linear. A pattern has a bounded part that may fail, after that only possessive runs
that cannot; or it consumes a whole run and a function decides. A pattern like ``eyJ[\\w-]+\\.``
would be quadratic: from each of n beginnings it reads to the end before it fails.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from itertools import pairwise
from typing import Final, TypeAlias

HIDDEN: Final = "[redacted]"

IsSecret: TypeAlias = Callable[[str], bool]


def hide_credentials(text: str, is_secret: IsSecret) -> str:
    """Return the text with its credentials replaced by `HIDDEN`.

    Args:
        text: Any text.
        is_secret: Tells whether a name like ``api_key`` is that of a secret.
    """
    small = text.lower()
    if "private" in small:
        text = _hide_private_keys(text)
    if "://" in text:
        text = _URL.sub(_hide_userinfo, text)
        text = _WEBHOOK.sub(rf"\g<1>{HIDDEN}", text)
    if any(stem in small for stem in _STEMS):
        text = _hide_named(text, is_secret)
    if any(word in small for word in _SCHEME_WORDS):
        text = _SCHEME.sub(_hide_scheme, text)
    if "eyj" in small:
        text = _JWT.sub(_hide_jwt, text)
    if _PREFIX.search(text):
        text = _TOKEN.sub(HIDDEN, text)
    return text


# Private keys

_BEGIN: Final = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}", re.I)
_END: Final = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}", re.I)
_PUTTY: Final = re.compile(r"(Private-Lines: ?\d{1,6})(?:\\?[rn\s])", re.I)
_KEY_BODY: Final = re.compile(r"[A-Za-z0-9+/=]{16}")


def _hide_private_keys(text: str) -> str:
    """Hide from the BEGIN line to the END line (RFC 7468), headers (RFC 1421) included."""
    found: list[str] = []
    at = 0
    while begin := _BEGIN.search(text, at):
        end = _END.search(text, begin.end())
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
_PORT: Final = re.compile(r"[^:]*+:\d{0,5}\Z")
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
    elif ":" in authority and not (web and _PORT.match(authority)):
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
    *("-u", "--user"),
)
"""Without one of these a text names no secret; custom keys are searched for as well."""
_NAME: Final = re.compile(
    r"(?<![\w.\-])(?P<name>[\w.\-]++)(?P<close>\\*+[\"']?+)[ \t]*+(?P<sep>=>|:=|[:=](?![:=/]{2}))"
    r"[ \t]*+(?P<open>\\*+[\"'])?+"
    r"|<(?P<tag>[A-Za-z][\w.:-]{0,63})(?:\s[^<>]{0,200})?>(?P<body>[^<>]{1,4096}+)(?=</)"
    r"|(?<!\S)--?(?P<flag>[A-Za-z][\w-]{0,63})[ \t]++(?![-\s])(?P<word>[\"']?+)"
)
_VALUE: Final = re.compile(
    r"(?:[^\s\"'&;,\\<>]|[&;,](?![ \t\r\n]|\Z|[\w.\-]{1,40}[=:])|\\(?![nrt\"'\\])|(?<=[=:])<)++"
)
_LINE: Final = re.compile(r"(?:[^\r\n\"'\\]|\\(?![nrt\"'\\]))++")
_PAIR_GAP: Final = 80
_WHOLE_LINE: Final = frozenset({"authorization", "proxyauthorization", "cookie", "setcookie"})
_QUERY_ONLY: Final = frozenset({"sig", "signature"})
_NAMING: Final = frozenset({"name", "key", "header", "field", "variable"})
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


def _hide_named(text: str, is_secret: IsSecret) -> str:
    """Hide the values of secret names: ``password=…``, ``"token": "…"``, ``--api-key …``."""
    found: list[str] = []
    at = scan = paired = 0
    while match := _NAME.search(text, scan):
        scan = match.end()
        if match["tag"] is not None:
            start, end = match.span("body") if is_secret(match["tag"]) else (scan, scan)
        elif match["flag"] is not None:
            secret = is_secret(match["flag"]) or match["flag"] in ("u", "user", "proxy-user")
            start, end = _flag_value(text, match) if secret else (scan, scan)
        else:
            start, end, paired = _named_value(text, match, is_secret, paired)
        if end > start:
            found += [text[at:start], HIDDEN]
            at = scan = end
    return "".join([*found, text[at:]])


def _named_value(
    text: str, match: re.Match[str], is_secret: IsSecret, paired: int
) -> tuple[int, int, int]:
    """Return where the value of a name is, if it is secret, and how far a pair may reach."""
    name, start = match["name"][-128:], match.end()
    end = start
    secret = is_secret(name) or _is_phrase(text, match, is_secret) or _is_query(text, match)
    if name.lower() in ("value", "values") and start <= paired:
        secret = True
    if secret:
        end = _value_end(text, match, name)
    elif name.lower() in _NAMING and match["open"]:
        stop = _closing(text, start, match["open"])
        if stop - start <= 64 and is_secret(text[start:stop]):
            paired = stop + _PAIR_GAP
    return start, end, paired


def _is_phrase(text: str, match: re.Match[str], is_secret: IsSecret) -> bool:
    """Return True for a name of two words: ``API key: …``."""
    before = _PREVIOUS.search(text, max(0, match.start() - 25), match.start())
    if before is None or "key" not in match["name"].lower():
        return False
    return is_secret(f"{before[1]}_{match['name']}")


def _is_query(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - 1) : match.start()]
    return before in ("?", "&") and match["name"].lower() in _QUERY_ONLY


def _value_end(text: str, match: re.Match[str], name: str) -> int:
    start = match.end()
    if match["open"]:
        return _closing(text, start, match["open"])
    line = re.sub(r"[^a-z]", "", name.lower()) in _WHOLE_LINE
    value = (_LINE if line else _VALUE).match(text, start)
    if value is None:
        return start
    body = value[0].rstrip(" \t)]},.")
    if body in ("", "|", ">", "{", "[", HIDDEN) or (body.startswith(("{", "[")) and not line):
        return start  # an object follows, or a block
    loose = ":" in match["sep"] and not match["close"]
    if loose and not line and _is_prose(body, text, start + len(body)):
        return start
    return start + len(body)


def _is_prose(word: str, text: str, end: int) -> bool:
    """Return True if a word after ``password:`` belongs to a sentence instead."""
    if not _LETTERS.match(word):
        return False
    return word.rstrip(".,;:!?").lower() in _NOT_VALUES or bool(_MORE_WORDS.match(text, end))


def _flag_value(text: str, match: re.Match[str]) -> tuple[int, int]:
    start = match.end()
    if match["word"]:
        return start, _closing(text, start, match["word"])
    end = start
    while end < len(text) and not text[end].isspace():
        end += 1
    word = text[start:end]
    if match["flag"] in ("u", "user", "proxy-user") and ":" not in word:
        return start, start
    return start, start if _is_prose(word, text, end) else end


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


_PREFIX: Final = re.compile(
    r"sk[-_]|[rp]k_|gh[pousr]_|_pat_|gl[a-z]{1,5}-|xox|xapp-|A[BCKS][A-Z]A|AIza|ya29|1//0|GOCSPX|Q~"
    r"|npm_|pypi-|hf_|do[opr]_|SG\.|SK|key-|shp|sq0|EAAA|dapi|hv[sbr]\.|lin_|ntn_|secret_|figd_"
    r"|ATATT|ATCTT|dp\.|pscale_|glsa_|glc_|NRAK|sb[ps]_|sb_|PMAK|r8_|gsk_|xai-|pplx-|tvly-|AGE-"
    r"|sntry|tskey-|whsec_|:AA|vc[pa]_|rnd_|pul-|rubygems_|EZ[AT]K|AccountKey|fo1_|ops_|PRIVATE"
)
"""A quick look for any of the prefixes below."""

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
