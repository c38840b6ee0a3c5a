r"""Command lines for Windows, read back by models of what reads them there.

`c_arguments` is the parser of Microsoft's C runtime, by its published rules and examples. `Cmd`
is as much of ``cmd.exe`` as matters for an attack: percent signs, quotes, carets, and the
characters that end a command or redirect it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast._core.transports.windows_command import (
    batch_line,
    command_line,
    find_program,
    is_batch,
    quoted,
)
from tests.rows import rows

# The C runtime


def c_arguments(line: str) -> list[str]:
    r"""Split a command line as the C runtime does (from 2008 on), the program's name included."""
    words: list[str] = []
    at = 0
    while True:
        while at < len(line) and line[at] in " \t":
            at += 1
        if at >= len(line):
            return words
        word, inside = "", False
        while at < len(line) and (inside or line[at] not in " \t"):
            backslashes = len(line[at:]) - len(line[at:].lstrip("\\"))
            at += backslashes
            if line[at : at + 1] != '"':
                word += "\\" * backslashes
                if not backslashes:
                    word += line[at]
                    at += 1
                continue
            word += "\\" * (backslashes // 2)
            if backslashes % 2:
                word += '"'
            elif inside and line[at + 1 : at + 2] == '"':
                word += '"'
                at += 1
            else:
                inside = not inside
            at += 1
        words.append(word)


PUBLISHED = [
    (r'"a b c" d e', ["a b c", "d", "e"]),
    (r'"ab\"c" "\\" d', ['ab"c', "\\", "d"]),
    (r'a\\\b d"e f"g h', [r"a\\\b", "de fg", "h"]),
    (r"a\\\"b c d", [r"a\"b", "c", "d"]),
    (r'a\\\\"b c" d e', [r"a\\b c", "d", "e"]),
    (r'a"b"" c d', ['ab" c d']),
]
"""Examples of "Parsing C command-line arguments" in Microsoft's documentation."""


@rows(("line", "words"), PUBLISHED)
def test_the_model_reads_the_published_examples(line: str, words: list[str]) -> None:
    assert c_arguments(line) == words


@pytest.mark.req("S5")
@rows("words", [words for _, words in PUBLISHED])
def test_the_published_words_are_written_so_that_they_are_read_back(words: list[str]) -> None:
    assert c_arguments(" ".join(map(quoted, ["x.exe", *words])))[1:] == words


WORD = st.text(st.sampled_from("""ab "\\%^&|<>()!;,=$`'~.:/-\tä€😀"""), max_size=12)


@pytest.mark.req("S5")
@given(st.lists(st.text(st.characters(exclude_characters="\0")) | WORD))
def test_any_words_reach_a_program_as_they_are(words: list[str]) -> None:
    file, line = command_line(r"C:\Program Files\node\node.exe", words, r"C:\cmd.exe")
    assert file == r"C:\Program Files\node\node.exe"
    assert c_arguments(line) == [file, *words]


@given(st.lists(WORD, min_size=1))
def test_the_standard_library_writes_what_is_read_as_the_same(words: list[str]) -> None:
    ours = " ".join(map(quoted, words))
    assert c_arguments(ours) == c_arguments(subprocess.list2cmdline(words)) == words


# cmd.exe

META = set("&|<>()\n\r")


class InjectionError(Exception):
    """A character of an argument would have been obeyed."""


def expanded(text: str, environ: Mapping[str, str]) -> str:
    """Replace variables, as on a command line (not in a batch file): there is no escape."""
    out, at = "", 0
    while at < len(text):
        if text[at] != "%":
            out += text[at]
            at += 1
            continue
        end = text.find("%", at + 1)
        name, _, modifier = text[at + 1 : max(end, at + 1)].partition(":")
        value = environ.get(name.lower())
        if end < 0 or value is None:
            out += "%"  # no such variable: the sign stays, and what follows is read on
            at += 1
            continue
        if modifier.startswith("~"):
            first, comma, length = modifier[1:].partition(",")
            start = int(first or 0)
            value = value[start : start + int(length or 0)] if comma else value[start:]
        elif "=" in modifier:
            before, _, after = modifier.partition("=")
            value = value.replace(before, after)
        out += value
        at = end + 1
    return out


def unescaped(text: str) -> str:
    """Read a command: carets outside of quotes are taken away, and nothing else may happen."""
    out, inside, at = "", False, 0
    while at < len(text):
        char = text[at]
        if char in "\n\r" or (char in META and not inside):
            raise InjectionError(text)
        if char == "^" and not inside:
            at += 1
            char = text[at : at + 1]
        elif char == '"':
            inside = not inside
        out += char
        at += 1
    return out


class Cmd:
    """``cmd.exe`` with a batch file that passes its arguments on to a program by ``%*``."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = {"cd": r"C:\work", **environ}

    def arguments_of(self, line: str) -> list[str]:
        """Return the words that the program is given in the end."""
        match = re.fullmatch(r"\S+ /e:on /v:off /d /s /c (.*)", line, re.S)
        assert match is not None
        whole = match[1]
        assert whole[0] == whole[-1] == '"'  # /s takes away these two
        command = unescaped(expanded(whole[1:-1], self.environ))
        script = re.match(r'"[^"]*"', command)
        assert script is not None
        rest = command[script.end() :].lstrip(" ")
        # The batch file: node "cli.js" %*. What %* stands for is not expanded again.
        return c_arguments(unescaped(f'node "cli.js" {rest}'))[2:]


ENVIRON = {"path": '" & calc.exe & "', "a": "x&y", "b": '"', "cmdcmdline": 'c"md'}

ATTACKS = [
    '"&calc.exe',
    '" & calc.exe & "',
    "%CMDCMDLINE:~-1%&calc.exe",
    '"%CMDCMDLINE:~-1%&calc.exe',
    "%PATH%",
    "%a%&calc",
    "a\\",
    'a\\"&calc&\\"',
    '\\\\"|more',
    "^&calc",
    '^"&calc',
    '"^&calc"',
    "%%cd:~,%PATH%",
    "100%",
    "%",
    "%%",
    "!PATH!",
    "a\tb",
    "",
    ">out.txt",
    "(echo)",
    "https://host.example/a%20b?x=1&y=2",
    '{"a": "b c", "d": ["%e%", "f&g"]}',
]
"""The class of BatBadBut, and arguments that people give."""


@pytest.mark.req("S5")
@rows("attack", ATTACKS)
def test_an_attack_on_a_batch_file_is_an_argument(attack: str) -> None:
    line = batch_line(r"C:\Program Files\nodejs\npx.cmd", ["-y", attack, "x"])
    assert Cmd(ENVIRON).arguments_of(line) == ["-y", attack, "x"]


@pytest.mark.req("S5")
@given(st.lists(WORD.filter(lambda word: "\n" not in word)))
@example(['a" "b'])
def test_any_words_reach_a_batch_file_as_they_are(words: list[str]) -> None:
    line = batch_line(r"C:\tools 100%\x.cmd", words)
    assert Cmd(ENVIRON).arguments_of(line) == words


@pytest.mark.parametrize(
    "naive",
    [
        lambda words: " ".join(f'"{word}"' for word in words),
        subprocess.list2cmdline,
        lambda words: " ".join(quoted(word) for word in words),
        lambda words: " ".join('"' + word.replace('"', '""') + '"' for word in words),
    ],
)
def test_the_model_of_cmd_finds_what_is_wrong_with_other_quoting(naive: object) -> None:
    def arrives(word: str) -> bool:
        assert callable(naive)
        inner = '"C:\\x.cmd" ' + naive([word])
        try:
            line = f'cmd.exe /e:on /v:off /d /s /c "{inner}"'
            return Cmd(ENVIRON).arguments_of(line) == [word]
        except InjectionError:
            return False

    assert not all(arrives(word) for word in ATTACKS)


@pytest.mark.req("S5")
@pytest.mark.parametrize("word", ["a\nb", "a\rb", "\r\ncalc.exe"])
def test_a_line_end_cannot_be_passed_to_a_batch_file(word: str) -> None:
    with pytest.raises(ValueError, match="line end"):
        command_line(r"C:\x.cmd", [word], "cmd.exe")


@pytest.mark.parametrize("file", [r"C:\x.cmd", r"C:\x.exe"])
def test_a_nul_cannot_be_passed_at_all(file: str) -> None:
    with pytest.raises(ValueError, match="NUL"):
        command_line(file, ["a\0b"], "cmd.exe")


@rows("name", ["x.bat", "X.CMD", "x.cmd ", "x.bat.", "x.bat . ", r"C:\a.b\x.BaT"])
def test_batch_files_are_known_whatever_their_name_ends_in(name: str) -> None:
    """CVE-2024-43402: Windows leaves off dots and spaces at the end of a name."""
    assert is_batch(name)
    assert command_line(name, ["&calc"], r"C:\cmd.exe")[0] == r"C:\cmd.exe"


@rows("name", ["x.exe", "bat", "x.batch", r"C:\x.bat\node.exe", "cmd"])
def test_other_programs_are_started_as_they_are(name: str) -> None:
    assert not is_batch(name)


# Which file a name means

FILES = {
    r"C:\Windows\System32\where.exe",
    r"C:\Program Files\nodejs\node.exe",
    r"C:\Program Files\nodejs\npx.cmd",
    r"C:\Program Files\nodejs\npx",
    r"C:\Program Files\nodejs\both.exe",
    r"C:\Program Files\nodejs\both.cmd",
    r"D:\late\node.exe",
    r".\here.exe",
    r"server.exe",
    r"C:\tools\run.ps1",
}
PATH = r'"C:\Program Files\nodejs";;.;C:\Windows\System32;D:\late;C:\tools'


@pytest.mark.req("S5")
@rows(
    ("program", "file"),
    [
        ("node", r"C:\Program Files\nodejs\node.exe"),
        ("node.exe", r"C:\Program Files\nodejs\node.exe"),
        ("npx", r"C:\Program Files\nodejs\npx.cmd"),  # not the script for sh beside it
        ("both", r"C:\Program Files\nodejs\both.exe"),
        ("where", r"C:\Windows\System32\where.exe"),
        (r"D:\late\node", r"D:\late\node.exe"),
        (r".\here", r".\here.exe"),
        ("server", None),  # the current folder is never searched
        ("here", None),
        ("run", None),  # Windows cannot start a .ps1
        ("missing", None),
    ],
)
def test_a_name_is_looked_up_as_windows_does_but_not_in_the_current_folder(
    program: str, file: str | None
) -> None:
    found = {name.lower(): name for name in FILES}
    pathext = ".COM;.EXE;.BAT;.CMD;.VBS;.JS;.PS1"
    answer = find_program(program, PATH, pathext, lambda path: path.lower() in found)
    assert (answer or "").lower() == (file or "").lower()


def test_the_order_of_pathext_decides() -> None:
    files = {r"C:\bin\both.exe", r"C:\bin\both.cmd"}
    look = files.__contains__
    assert find_program("both", r"C:\bin", ".cmd;.exe", look) == r"C:\bin\both.cmd"
    assert find_program("both", r"C:\bin", "", look) == r"C:\bin\both.exe"
