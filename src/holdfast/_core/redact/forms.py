"""Credentials that are known by their form: private keys, URLs, schemes, issuers' tokens.

The searches are linear, as `holdfast._core.redact.text` explains.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import pairwise
from typing import Final

from holdfast._core.text import HIDDEN


class Form:
    """One kind of credential, and how it is hidden.

    Args:
        marks: A text without any of these, in lower case, has none of the kind; empty: any may.
        expression: Finds them.
        hide: What is left of one.
    """

    def __init__(
        self,
        marks: str,
        expression: str,
        hide: str | Callable[[re.Match[str]], str] = rf"\1{HIDDEN}",
    ) -> None:
        self.marks = marks.split()
        self._expression = expression
        self.hide = hide

    def __repr__(self) -> str:
        return f"<Form {self._expression[:40]!r}>"

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        # Compiled when it is wanted: all of them would be a thirtieth of what a command does.
        return re.compile(self._expression)


def hide_forms(text: str, forms: Iterable[Form]) -> str:
    """Return the text with the credentials of some forms hidden."""
    small = text.lower()
    for form in forms:
        if not form.marks or any(mark in small for mark in form.marks):
            text = form.pattern.sub(form.hide, text)
    return text


# Private keys

_BEGIN: Final = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}", re.I)
_END: Final = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}", re.I)
_PUTTY: Final = re.compile(r"(Private-Lines: ?\d{1,6})(?:\\?[rn\s])", re.I)
_KEY_BODY: Final = re.compile(r"[A-Za-z0-9+/=]{16}")


def hide_private_keys(text: str) -> str:
    """Hide from the BEGIN line to the END line (RFC 7468), headers (RFC 1421) included."""
    parts: list[str] = []
    position, closed = 0, True
    while begin := _BEGIN.search(text, position):
        end = _END.search(text, begin.end()) if closed else None
        closed = end is not None
        stop = len(text) if end is None else end.end()
        if end is None and not _KEY_BODY.search(text, begin.end(), begin.end() + 400):
            stop = begin.end()  # prose about keys
            parts.append(text[position:stop])
        else:
            parts += [text[position : begin.start()], HIDDEN]
        position = stop
    text = "".join([*parts, text[position:]])
    putty = _PUTTY.search(text)
    return text if putty is None else f"{text[: putty.end(1)]}\n{HIDDEN}"


# URLs

_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.%]{2,64}\]|[^:]*+)(?::\d{0,5})?\Z")
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


def _without_userinfo(rest: str, is_web: bool) -> str:
    """Hide up to the last ``@`` that can end the user information (RFC 3986, section 3.2.1).

    Passwords are often written raw, so a ``/`` or an ``@`` may be part of one.
    """
    if "@" not in rest:
        return rest
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        at = re.split(r"[?#]", rest, maxsplit=1)[0].rfind("@")
    elif not _HOST.match(authority) or (":" in authority and not is_web):
        at = rest.rfind("@")
    else:
        return rest
    user = rest[:at]
    if ":" not in user and not (len(user) >= 16 or has_digits_and_letters(user, 8)):
        return rest
    return f"{HIDDEN}{rest[at:]}"


URLS: Final = (
    Form("//", r"(?<=//)[^\s\"'<>`\\]++", _hide_userinfo),
    Form(
        "//",
        r"(?i)(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks"
        r"/\d{1,30}/|api\.telegram\.org/(?:file/)?bot)[A-Za-z0-9_/:-]++",
    ),
    Form("//", r"(?i)(jdbc:oracle:\w{1,10}:)[^\s@\"']{1,256}(?=@)"),
    Form("@tcp( @udp( @unix(", r"()[^\s:/@\"']{1,64}:[^\s@\"']{1,128}(?=@(?:tcp|udp|unix)\()"),
    Form(
        "proxy",
        r"(?i)(proxy\w{0,10}[\"']?\s?[=: ]\s?[\"']?)[^\s:/@\"']{1,64}:[^\s@\"']{1,128}(?=@)",
    ),
    Form(  # encoded in the query of another one
        "%40",
        r"(?i)(?<=%3A%2F%2F)(?:[^\s\"'<>&%]|%(?!2F|3F|40)){1,256}+(?=%40)",
        lambda match: HIDDEN if "%3a" in match[0].lower() else match[0],
    ),
)
"""User and password of URLs, and the secret paths of webhooks."""


# Tokens


def _is_credential(scheme: str, rest: str, token: str) -> bool:
    """Return True if what follows a scheme is a secret; the token is the rest without its dots."""
    if scheme in ("digest", "aws4-hmac-sha256"):
        return "=" in rest and (scheme != "digest" or '"' in rest)
    if "=" in token.rstrip("="):
        return False  # a field of its own: Bearer expires_in=3600
    if scheme == "basic":
        return _is_basic(token)
    if scheme == "bearer":
        return len(token) >= 8 and _is_random(token)
    is_snake_case = re.fullmatch(r"[a-z]++(?:_[a-z]++)++", token) is not None
    return not is_snake_case and len(token) >= 16 and _is_random(token)


def _hide_scheme(match: re.Match[str]) -> str:
    scheme, rest = match["scheme"].lower(), match["rest"]
    token = rest.rstrip(".")
    if not _is_credential(scheme, rest, token):
        return match[0]
    return f"{match[0][: -len(rest)]}{HIDDEN}{rest[len(token) :]}"


def _is_basic(token: str) -> bool:
    """Return True for base64 of ``user:password`` (RFC 7617, section 2)."""
    if len(token) < 4 or len(token) > 4096:
        return len(token) > 4096
    coded = token.rstrip("=")
    try:
        return b":" in b64decode(coded + "=" * (-len(coded) % 4), b"-_")
    except ValueError:
        return False


def _is_random(token: str) -> bool:
    """Return True for a token that is not a word: it has digits, capitals inside, or is long."""
    if any(char.isdigit() for char in token[:256]) or len(token) >= 24:
        return True
    return any(char in "_~+/=." or char.isupper() for char in token[1:])


def has_digits_and_letters(text: str, least: int) -> bool:
    """Return True for a text of at least so many characters with digits and letters in it."""
    if len(text) < least or re.search(r"\d", text[:256]) is None:
        return False
    return re.search(r"[^\W\d_]", text[:256]) is not None


def _hide_jwt(match: re.Match[str]) -> str:
    """Hide JSON Web Tokens (RFC 7519): two or more parts, the first a JSON object."""
    is_jwt = any(
        "eyJ" in first and len(first) >= 10 and len(second) >= 4
        for first, second in pairwise(match[0].split("."))
    )
    return HIDDEN if is_jwt else match[0]


_ISSUED: Final = (
    r"(?<![A-Za-z0-9])(?:"
    r"sk-(?:ant|proj|or|svcacct|admin|lf|live|test)-[\w-]{12,}+"
    r"|sk-(?=[\w-]{0,40}\d)[A-Za-z0-9]{16}[\w-]*+|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10}\w*+"
    r"|gh[pousr]_[A-Za-z0-9]{10}\w*+|github_pat_\w{16,}+|dckr_pat_[\w-]{16,}+"
    r"|gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas|rtr)-[\w.-]{10,}+"
    r"|xox[a-z](?:\.xox[a-z])?-[\w-]{10,}+|xapp-[\w-]{10,}+"
    r"|A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])|AIza[\w-]{30,}+|ya29\.[\w-]{10}[\w.-]*+"
    r"|1//0[\w-]{20,}+|GOCSPX-[\w-]{20,}+|[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,}+"
    r"|npm_[A-Za-z0-9]{30}\w*+|pypi-[\w-]{16,}+|hf_[A-Za-z0-9]{20}\w*+|do[opr]_v1_[a-f0-9]{40}\w*+"
    r"|SG\.[\w-]{16,40}\.[\w-]{16,}+|SK[0-9a-f]{32}(?!\w)|key-[0-9a-f]{32}(?!\w)"
    r"|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}\w*+|sq0[a-z]{3}-[\w-]{20,}+|EAA[A-Z][\w-]{48,}+"
    r"|dapi[0-9a-f]{32}[\w-]*+|hv[sbr]\.[\w-]{20,}+|lin_(?:api|oauth)_\w{20,}+"
    r"|ntn_[A-Za-z0-9]{20}\w*+|secret_[A-Za-z0-9]{40}\w*+|figd_[\w-]{20,}+|AT[AC]TT3[\w=-]{20,}+"
    r"|dp\.(?:pt|st|ct|sa)\.[\w.-]{20,}+|pscale_[a-z]{2,10}_[\w.-]{20,}+|glsa_\w{20,}+"
    r"|glc_[\w=+/]{20,}+|NRAK-[A-Z0-9]{20}\w*+|sbp_[a-f0-9]{20}\w*+|sb_secret_[\w-]{16,}+"
    r"|PMAK-[\w-]{20,}+|r8_[A-Za-z0-9]{20}\w*+|gsk_[A-Za-z0-9]{20}\w*+|xai-[A-Za-z0-9]{20}\w*+"
    r"|pplx-[A-Za-z0-9]{20}\w*+|tvly-[\w-]{16,}+|AGE-SECRET-KEY-1[A-Z0-9]{20,}+"
    r"|sntry[su]_[\w=+/]{20,}+|tskey-[\w-]{16,}+|whsec_[\w+/=]{16,}+|\d{8,10}:AA[\w-]{30,}+"
    r"|vc[pa]_[A-Za-z0-9]{20}\w*+|rnd_[A-Za-z0-9]{20}\w*+|CFPAT-[\w-]{30,}+"
    r"|ph[cx]_[A-Za-z0-9]{30}\w*+|FLWSECK(?:_TEST)?-\w{12}[\w-]*+|sk_[a-f0-9]{40}\w*+"
    r"|[MNO][\w-]{20,28}\.[\w-]{6}\.[\w-]{27,}+|mfa\.[\w-]{40,}+|pul-[a-f0-9]{40}"
    r"|rubygems_[a-f0-9]{40}|EZ[AT]K\w{40,}+|ops_eyJ\w{20,}+"
    r")"
)
"""Issuers' prefixes, each with a bounded part that may fail and a run that cannot."""
TOKENS: Final = (
    Form(
        "bearer basic digest dpop negotiate ntlm token apikey hmac",
        r"(?i)(?<![A-Za-z0-9])(?P<scheme>bearer|basic|digest|dpop|negotiate|ntlm|token|apikey|"
        r"aws4-hmac-sha256)[ \t]++(?P<rest>(?:(?<=digest )|(?<=sha256 ))(?=[a-z-]{1,20}\s?=)"
        r"[^\r\n]{1,4096}|[A-Za-z0-9._~+/=-]++)",
        _hide_scheme,
    ),
    Form("eyj", r"eyJ[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]*+)*+", _hide_jwt),
    Form(  # the secret beside an AWS access key id
        "akia asia",
        r"(A(?:KIA|SIA)[A-Z0-9]{16}[\s:/,;|\"']{1,10})[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
    ),
    Form("", _ISSUED, HIDDEN),
)
"""What follows a scheme of the Authorization header, JWTs, and issuers' own tokens."""

MARKS: Final = frozenset(
    {"private", "eyj", *(mark for form in (*URLS, *TOKENS) for mark in form.marks)}
)
"""One of these is in every text with a credential that has a form, or it is a long word."""


def is_plain_name(text: str) -> bool:
    """Return True for a word like the name of a field: ``user_name``, ``oauth2``."""
    return re.fullmatch(r"[A-Za-z_]*+|[a-z]{1,5}\d", text) is not None


def is_value(word: str) -> bool:
    """Return True for a word in brackets that is a value, rather than the name of one."""
    is_word = re.fullmatch(r"[\w.]++", word) is not None
    return is_word and has_digits_and_letters(word, 4) and not is_plain_name(word)


# No two of these match the same text: of n parts there would be 2**n readings.
_FLAG_PART: Final = r"(?:[A-Za-z]++(?!\d)|[A-Za-z]\d{1,5}+|[a-z]{2,5}\d)"
_FLAG: Final = rf"--?+(?:{_FLAG_PART}(?:[-_.]{_FLAG_PART})*|\d{{1,3}})?(?:=\S*+)?"
_FLAGS: Final = re.compile(rf"{_FLAG}(?:[|/,]{_FLAG})?")


def is_flag(word: str) -> bool:
    """Return True for ``-v``, ``--no-oauth2``, ``-``; False for a value that begins with a dash."""
    return _FLAGS.fullmatch(word[:256]) is not None
