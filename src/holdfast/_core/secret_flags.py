"""Passwords among the words of a command line: ``sshpass -p x``, ``mysql -px``, ``curl -u a:x``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from holdfast._core.credential_forms import has_digits_and_letters
from holdfast._core.text import HIDDEN

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
    """Hide ``name:password`` of any program; ``1000:1000`` and ``main:app`` are none."""
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
