"""Credentials that are known by their form: private keys, URLs, command lines, tokens.

The searches are linear, as `holdfast._core.redact_text` explains.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from holdfast._core.text import HIDDEN


class Form(NamedTuple):
    """One kind of credential, and how it is hidden."""

    marks: list[str]
    """A text without any of these, in lower case, has none of the kind; empty: any may."""
    pattern: re.Pattern[str]
    hide: str | Callable[[re.Match[str]], str]


def _form(
    marks: str, pattern: str, hide: str | Callable[[re.Match[str]], str] = rf"\1{HIDDEN}"
) -> Form:
    return Form(marks.split(), re.compile(pattern), hide)


def hide_forms(text: str, forms: Iterable[Form]) -> str:
    """Return the text with the credentials of some forms hidden."""
    small = text.lower()
    for marks, pattern, hide in forms:
        if not marks or any(mark in small for mark in marks):
            text = pattern.sub(hide, text)
    return text


# Private keys

_BEGIN: Final = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}", re.I)
_END: Final = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}", re.I)
_PUTTY: Final = re.compile(r"(Private-Lines: ?\d{1,6})(?:\\?[rn\s])", re.I)
_KEY_BODY: Final = re.compile(r"[A-Za-z0-9+/=]{16}")


def hide_private_keys(text: str) -> str:
    """Hide from the BEGIN line to the END line (RFC 7468), headers (RFC 1421) included."""
    found: list[str] = []
    at, closed = 0, True
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


URLS: Final = (
    _form("//", r"(?<=//)[^\s\"'<>`\\]++", _hide_userinfo),
    _form(
        "//",
        r"(?i)(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks"
        r"/\d{1,30}/|api\.telegram\.org/(?:file/)?bot)[A-Za-z0-9_/:-]++",
    ),
    _form("//", r"(?i)(jdbc:oracle:\w{1,10}:)[^\s@\"']{1,256}(?=@)"),
    _form("@tcp( @udp( @unix(", r"()[^\s:/@\"']{1,64}:[^\s@\"']{1,128}(?=@(?:tcp|udp|unix)\()"),
    _form(
        "proxy",
        r"(?i)(proxy\w{0,10}[\"']?\s?[=: ]\s?[\"']?)[^\s:/@\"']{1,64}:[^\s@\"']{1,128}(?=@)",
    ),
    _form(  # encoded in the query of another one
        "%40",
        r"(?i)(?<=%3A%2F%2F)(?:[^\s\"'<>&%]|%(?!2F|3F|40)){1,256}+(?=%40)",
        lambda one: HIDDEN if "%3a" in one[0].lower() else one[0],
    ),
)
"""User and password of URLs, and the secret paths of webhooks."""


# Tokens


def _hide_scheme(match: re.Match[str]) -> str:
    scheme, rest = match["scheme"].lower(), match["rest"]
    token = rest.rstrip(".")
    if scheme in ("digest", "aws4-hmac-sha256"):
        secret = "=" in rest and (scheme != "digest" or '"' in rest)
    elif "=" in token.rstrip("="):
        secret = False  # a field of its own: Bearer expires_in=3600
    elif scheme == "basic":
        secret = _is_basic(token)
    elif scheme == "bearer" or not re.fullmatch(r"[a-z]++(?:_[a-z]++)++", token):
        secret = len(token) >= (8 if scheme == "bearer" else 16) and _is_random(token)
    else:
        secret = False  # snake_case
    if not secret:
        return match[0]
    return f"{match[0][: -len(rest)]}{HIDDEN}{rest[len(token) :]}"


def _is_basic(token: str) -> bool:
    """Return True for base64 of ``user:password`` (RFC 7617, section 2)."""
    if len(token) < 4 or len(token) > 4096:
        return len(token) > 4096
    return ":" in (_decoded(token.rstrip("="), b"-_") or "")


def _decoded(coded: str, signs: bytes | None) -> str | None:
    """Decode base64 without its padding; None: it is not base64."""
    try:
        data = b64decode(coded + "=" * (-len(coded) % 4), signs)
    except ValueError:
        return None
    return data.decode("utf-8", "replace")


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
    found = any(
        "eyJ" in first and len(first) >= 10 and len(second) >= 4
        for first, second in pairwise(match[0].split("."))
    )
    return HIDDEN if found else match[0]


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
    _form(
        "bearer basic digest dpop negotiate ntlm token apikey hmac",
        r"(?i)(?<![A-Za-z0-9])(?P<scheme>bearer|basic|digest|dpop|negotiate|ntlm|token|apikey|"
        r"aws4-hmac-sha256)[ \t]++(?P<rest>(?:(?<=digest )|(?<=sha256 ))(?=[a-z-]{1,20}\s?=)"
        r"[^\r\n]{1,4096}|[A-Za-z0-9._~+/=-]++)",
        _hide_scheme,
    ),
    _form("eyj", r"eyJ[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]*+)*+", _hide_jwt),
    _form(  # SQL
        "identified",
        r"(?i)(IDENTIFIED(?: WITH \S{1,40})? (?:BY|AS)(?: PASSWORD)? ([\"']))[^\"']{1,256}(?=\2)",
    ),
    _form(  # the secret beside an AWS access key id
        "akia asia",
        r"(A(?:KIA|SIA)[A-Z0-9]{16}[\s:/,;|\"']{1,10})[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
    ),
    _form("", _ISSUED, HIDDEN),
)
"""What follows a scheme of the Authorization header, JWTs, and issuers' own tokens."""

MARKS: Final = frozenset(
    {"private", "eyj", "ls0tls1", *(mark for form in (*URLS, *TOKENS) for mark in form.marks)}
)
"""One of these is in every text with a credential that has a form, or it is a long word."""

_WRAPPED: Final = re.compile(r"(?:eyJ|LS0tLS1CRUdJTi)[A-Za-z0-9+/_-]{8,}+={0,2}")
_MOST_WRAPPED: Final = 64 * 1024


def hide_wrapped(text: str, hide: Callable[[str], str]) -> str:
    """Hide base64 of a JSON object or of a PEM file that has a secret in it."""
    if "eyJ" not in text and "LS0tLS1CRUdJTi" not in text:
        return text

    def unwrapped(match: re.Match[str]) -> str:
        if re.match(r"\.[A-Za-z0-9_-]", text[match.end() : match.end() + 2]):
            return match[0]  # a JWT
        coded = match[0].rstrip("=")
        if len(coded) > _MOST_WRAPPED:
            return HIDDEN
        plain = _decoded(coded, b"-_" if "-" in coded else None) or ""
        secret = "PRIVATE" in plain if plain.startswith("-----") else hide(plain) != plain
        return HIDDEN if secret else match[0]

    return _WRAPPED.sub(unwrapped, text)


# Passwords in command lines: ``sshpass -p x``, ``mysql -px``, ``curl -u a:x``

_APART: Final = {
    **{"sshpass": "-p", "redis-cli": "-a", "zip": "-P", "unzip": "-P", "openssl": "-k"},
    **{"ldapsearch": "-w", "ldapadd": "-w", "ldapmodify": "-w", "ldapdelete": "-w"},
    **{"ldapwhoami": "-w", "ldappasswd": "-w", "sqlcmd": "-P", "bcp": "-P", "ssh-keygen": "-N"},
    **{"keytool": "-storepass", "jarsigner": "-storepass"},
}
"""Flags whose value, in the next word or attached, is a password."""
_LOGIN: Final = frozenset({"docker", "podman", "az", "helm", "oc", "buildah", "skopeo", "nerdctl"})
"""Programs whose ``login`` takes ``-p``."""
_ATTACHED: Final = re.compile(r"-p(?=[^=])")
_WITH_ATTACHED: Final = (
    *("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlsh", "mariadb"),
    *("mariadb-dump", "mariadb-admin", "7z", "7za", "7zz", "rar", "unrar"),
)
_USER: Final = re.compile(r"(?:-[uU]|--user|--proxy-user)=?(?P<value>.*)", re.S)
_PAIR: Final = re.compile(r"[\"']?[^\s:\"']{0,256}:(?=[^\s/])")
_NAMES: Final = (*_APART, *_LOGIN, *_WITH_ATTACHED, "curl", "smbclient", "wget", "http", "xh")
_COMMAND: Final = re.compile(
    rf"(?<![\w.-])(?:{'|'.join(sorted(_NAMES, key=len, reverse=True))})(?:\.exe)?"
    r"(?=[ \t])[^\r\n|;&]{1,1000}"
)
_WORD: Final = re.compile(r"(?:\"[^\"]*+\"|'[^']*+'|\S)++")
_QUICK: Final = re.compile(r"[\"'\s]-[uUpPawkN]|-storepass|--user|--proxy-user|pass:")


def hide_in_commands(text: str) -> str:
    """Return text with the passwords of command lines hidden."""
    if _QUICK.search(text) is None:
        return text
    return _BARE_USER.sub(_hide_user, _COMMAND.sub(_hide_in_command, text))


_BARE_USER: Final = re.compile(
    r"((?<!\S)(?:-u|--(?:proxy-)?user)[ \t=]{1,9}[\"']?)[^\s:\"']{0,256}:([^\s\"']++)"
)


def _hide_user(match: re.Match[str]) -> str:
    """Hide ``name:password`` of any program; ``1000:1000`` and ``main:app`` are not."""
    return f"{match[1]}{HIDDEN}" if has_digits_and_letters(match[2], 4) else match[0]


def _hide_in_command(match: re.Match[str]) -> str:
    spans = [found.span() for found in _WORD.finditer(match[0])]
    text, words = match[0], [match[0][start:end] for start, end in spans]
    for index, at in sorted(secret_words(words), reverse=True):
        start, end = spans[index]
        text = f"{text[: start + at]}{HIDDEN}{text[end:]}"
    return text


def secret_words(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the words of a command that hold a password, each with where it begins in the word."""
    program, flag = "", None
    for index, word in enumerate(words):
        named = re.split(r"[/\\]", word.lstrip("\"'("))[-1].removesuffix(".exe")
        if named in _NAMES:
            program, flag = named, _APART.get(named)
            if program in _LOGIN and "login" in words[index : index + 4]:
                flag = "-p"
            continue
        before = words[index - 1]
        if flag is not None and before == flag:
            yield index, 0
        elif flag in ("-p", "-P", "-w") and word.startswith(flag) and word != flag:
            yield index, len(flag)
        elif program in _WITH_ATTACHED and _ATTACHED.match(word):
            yield index, 2
        elif program == "openssl" and word.startswith("pass:"):
            yield index, 5
        elif program not in _LOGIN:
            yield from _user(program, before, word, index)


def _user(program: str, before: str, word: str, index: int) -> Iterator[tuple[int, int]]:
    """Yield ``name:password`` after ``-u``, or ``name%password`` after smbclient's ``-U``."""
    separator = re.compile(r"[^%]{1,256}%(?=.)") if program == "smbclient" else _PAIR
    if before in ("-u", "-U", "--user", "--proxy-user"):
        start = 0
    elif (match := _USER.fullmatch(word)) is not None and match["value"]:
        start = match.start("value")
    else:
        return
    match = separator.match(word, start)
    if match is not None and (program or has_digits_and_letters(word[match.end() :], 4)):
        yield index, start


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


def is_path(text: str) -> bool:
    """Return True for an absolute path, which ``pwd`` stands for as well."""
    return re.match(r"~?/|[A-Za-z]:\\", text) is not None
