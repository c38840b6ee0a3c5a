"""Credentials that are known by their form: private keys, user information in URLs, tokens.

The searches are linear, as `holdfast._core.credentials` explains.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from holdfast._core.text import HIDDEN

# Private keys

_BEGIN: Final = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}", re.I)
_END: Final = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}", re.I)
_PUTTY: Final = re.compile(r"(Private-Lines: ?\d{1,6})(?:\\?[rn\s])", re.I)
_KEY_BODY: Final = re.compile(r"[A-Za-z0-9+/=]{16}")


def hide_private_keys(text: str) -> str:
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

_URL: Final = re.compile(r"(?<=//)[^\s\"'<>`\\]++")
_ENCODED: Final = re.compile(r"(?<=%3A%2F%2F)(?:[^\s\"'<>&%]|%(?!2F|3F|40)){1,256}+(?=%40)", re.I)
_PROXY: Final = re.compile(
    r"(proxy\w{0,10}[\"']?\s?[=: ]\s?[\"']?)[^\s:/@\"']{1,64}:[^\s@\"']{1,128}(?=@)", re.I
)
_ORACLE: Final = re.compile(r"(jdbc:oracle:\w{1,10}:)[^\s@\"']{1,256}(?=@)", re.I)
_GO: Final = re.compile(r"[^\s:/@\"']{1,64}:[^\s@\"']{1,128}(?=@(?:tcp|udp|unix)\()")
_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.%]{2,64}\]|[^:]*+)(?::\d{0,5})?\Z")
_WEBHOOK: Final = re.compile(
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/\d{1,30}/"
    r"|api\.telegram\.org/(?:file/)?bot)[A-Za-z0-9_/:-]++",
    re.I,
)
_WEB: Final = ("http", "https", "ws", "wss", "file")


def hide_in_urls(text: str) -> str:
    """Hide user and password of URLs, and the secret paths of webhooks."""
    if "//" in text:
        text = _WEBHOOK.sub(rf"\g<1>{HIDDEN}", _URL.sub(_hide_userinfo, text))
        text = _ORACLE.sub(rf"\g<1>{HIDDEN}", text)
    if "@tcp(" in text or "@udp(" in text or "@unix(" in text:
        text = _GO.sub(HIDDEN, text)
    if "proxy" in text.lower():
        text = _PROXY.sub(rf"\1{HIDDEN}", text)
    if "%40" in text:
        text = _ENCODED.sub(lambda one: HIDDEN if "%3a" in one[0].lower() else one[0], text)
    return text


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
    if ":" not in user and not (len(user) >= 16 or has_digits_and_letters(user, 8)):
        return rest
    return f"{HIDDEN}{rest[at:]}"


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
        secret = "=" in rest and (scheme != "digest" or '"' in rest)
    elif "=" in token.rstrip("="):
        secret = False  # a field of its own: Bearer expires_in=3600
    elif scheme == "basic":
        secret = _is_basic(token)
    elif scheme == "bearer":
        secret = len(token) >= 8 and _is_random(token)
    else:
        secret = len(token) >= 16 and _is_random(token) and not _SNAKE_CASE.fullmatch(token)
    if not secret:
        return match[0]
    return f"{match[0][: -len(rest)]}{HIDDEN}{rest[len(token) :]}"


_SNAKE_CASE: Final = re.compile(r"[a-z]++(?:_[a-z]++)++")


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


def has_digits_and_letters(text: str, least: int) -> bool:
    """Return True for a text of at least so many characters with digits and letters in it."""
    if len(text) < least or _DIGIT.search(text, 0, 256) is None:
        return False
    return _LETTER.search(text, 0, 256) is not None


_DIGIT: Final = re.compile(r"\d")
_LETTER: Final = re.compile(r"[^\W\d_]")


# Tokens that have a form of their own


def hide_tokens(text: str) -> str:
    """Hide what follows a scheme of the Authorization header, JWTs, and issuers' tokens."""
    small = text.lower()
    if any(word in small for word in _SCHEME_WORDS):
        text = _SCHEME.sub(_hide_scheme, text)
    if "eyj" in small:
        text = _JWT.sub(_hide_jwt, text)
    if "identified" in small:
        text = _IDENTIFIED.sub(rf"\1{HIDDEN}", text)
    if "AKIA" in text or "ASIA" in text:
        text = _AWS_SECRET.sub(rf"\1{HIDDEN}", text)
    return _TOKEN.sub(HIDDEN, text)


_IDENTIFIED: Final = re.compile(
    r"(IDENTIFIED(?: WITH \S{1,40})? (?:BY|AS)(?: PASSWORD)? ([\"']))[^\"']{1,256}(?=\2)", re.I
)
_AWS_SECRET: Final = re.compile(
    r"(A(?:KIA|SIA)[A-Z0-9]{16}[\s:/,;|\"']{1,10})[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"
)
_WRAPPED: Final = re.compile(r"(?:eyJ|LS0tLS1CRUdJTi)[A-Za-z0-9+/_-]{8}[A-Za-z0-9+/_-]*+={0,2}")
_JWT_PART: Final = re.compile(r"\.[A-Za-z0-9_-]")
_MOST_WRAPPED: Final = 64 * 1024


def hide_wrapped(text: str, hide: Callable[[str], str]) -> str:
    """Hide base64 of a JSON object or of a PEM file that has a secret in it."""
    if "eyJ" not in text and "LS0tLS1CRUdJTi" not in text:
        return text

    def unwrapped(match: re.Match[str]) -> str:
        if _JWT_PART.match(text, match.end()):
            return match[0]
        coded = match[0].rstrip("=")
        if len(coded) > _MOST_WRAPPED:
            return HIDDEN
        try:
            inner = b64decode(coded + "=" * (-len(coded) % 4), b"-_" if "-" in coded else None)
            plain = inner.decode("utf-8", "replace")
        except ValueError:
            return match[0]
        if plain.startswith("-----"):
            return HIDDEN if "PRIVATE" in plain else match[0]
        return HIDDEN if hide(plain) != plain else match[0]

    return _WRAPPED.sub(unwrapped, text)


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
    r"|EAA[A-Z][\w-]{48}[\w-]*+|dapi[0-9a-f]{32}[\w-]*+|hv[sbr]\.[\w-]{20}[\w-]*+"
    r"|lin_(?:api|oauth)_\w{20}\w*+|ntn_[A-Za-z0-9]{20}\w*+|secret_[A-Za-z0-9]{40}\w*+"
    r"|figd_[\w-]{20}[\w-]*+|AT[AC]TT3[\w=-]{20}[\w=-]*+|dp\.(?:pt|st|ct|sa)\.[\w.-]{20}[\w.-]*+"
    r"|pscale_[a-z]{2,10}_[\w.-]{20}[\w.-]*+|glsa_\w{20}\w*+|glc_[\w=+/]{20}[\w=+/]*+"
    r"|NRAK-[A-Z0-9]{20}\w*+|sbp_[a-f0-9]{20}\w*+|sb_secret_[\w-]{16}[\w-]*+|PMAK-[\w-]{20}[\w-]*+"
    r"|r8_[A-Za-z0-9]{20}\w*+|gsk_[A-Za-z0-9]{20}\w*+|xai-[A-Za-z0-9]{20}\w*+"
    r"|pplx-[A-Za-z0-9]{20}\w*+|tvly-[\w-]{16}[\w-]*+|AGE-SECRET-KEY-1[A-Z0-9]{20}[A-Z0-9]*+"
    r"|sntry[su]_[\w=+/]{20}[\w=+/]*+|tskey-[\w-]{16}[\w-]*+|whsec_[\w+/=]{16}[\w+/=]*+"
    r"|\d{8,10}:AA[\w-]{30}[\w-]*+|vc[pa]_[A-Za-z0-9]{20}\w*+|rnd_[A-Za-z0-9]{20}\w*+"
    r"|CFPAT-[\w-]{30}[\w-]*+|ph[cx]_[A-Za-z0-9]{30}\w*+|FLWSECK(?:_TEST)?-\w{12}[\w-]*+"
    r"|sk_[a-f0-9]{40}\w*+|[MNO][\w-]{20,28}\.[\w-]{6}\.[\w-]{27}[\w-]*+|mfa\.[\w-]{40}[\w-]*+"
    r"|pul-[a-f0-9]{40}|rubygems_[a-f0-9]{40}|EZ[AT]K\w{40}\w*+|ops_eyJ\w{20}\w*+"
    r")"
)
"""Issuers' prefixes, each with a bounded part that may fail and a run that cannot."""

# What is no credential


def is_plain_name(text: str) -> bool:
    """Return True for a word that is rather the name of a field: ``user_name``, ``oauth2``."""
    return re.fullmatch(r"[A-Za-z_]*+|[a-z]{1,5}\d", text) is not None


def is_path(text: str) -> bool:
    """Return True for an absolute path, which ``pwd`` stands for as well."""
    return re.match(r"~?/|[A-Za-z]:\\", text) is not None
