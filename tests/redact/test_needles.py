"""Known values are found whatever a text was wrapped in, and nothing else is hidden."""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode, encodebytes
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast._core.redact import escapes
from holdfast._core.redact.escapes import MOST_ESCAPES, SearchBudget, unescaped
from holdfast._core.redact.needles import needles_of
from holdfast._core.text import HIDDEN
from tests.redact.wraps import ENCODINGS, ESCAPES, PLACES, SECRETS, WRAPS, index_of
from tests.thorough import THOROUGH, one_in


@pytest.mark.req("T8")
@pytest.mark.thorough
@pytest.mark.parametrize("others", [0, 300], ids=["few", "many"])
def test_a_value_is_found_in_every_wrapping_and_every_place(others: int) -> None:
    index = index_of(*SECRETS.values(), *(f"other-{number * 7919}-x" for number in range(others)))
    failures = []
    for turn, value in enumerate(SECRETS.values()):
        for number, (wrapping, wrap) in enumerate((ESCAPES if others else WRAPS).items()):
            for place, template in one_in(3, PLACES.items(), place=number + turn):
                if place == "inside of a word" and wrapping in ENCODINGS:
                    continue  # no text of which an encoding is a part
                wrapped = wrap(value)
                hidden = index.hide(template.replace("{}", wrapped))
                if HIDDEN not in hidden or wrapped in hidden or index.spans(hidden):
                    failures.append(f"{value!r}, {wrapping}, {place}: {hidden[:200]}")
                before, after = template.split("{}")
                if place == "inside of a word" and "base64" in wrapping:
                    continue  # all of the word may be base64
                if not (hidden.startswith(before[:5]) and hidden.endswith(after[-8:])):
                    failures.append(f"{value!r}, {wrapping}, {place}: too much: {hidden[:200]}")
    assert not failures, "\n".join(failures)


@pytest.mark.req("T8")
@pytest.mark.parametrize("value", ["!@#$%^&*()", "482913", "🔑🔒🔑🔓🔐🔏", "ΠΑΣΣΩΣ9", "Maß-ß9"])
def test_a_value_with_few_letters_or_odd_ones_is_found(value: str) -> None:
    index = index_of(f" {value}\n")
    names = (
        *ESCAPES,
        *("without a width", "controls", "colours", "comments of a page", "markup"),
        *("marks, joiners and selectors", "wide letters", "UTF-16 read as bytes"),
        *("UTF-16 in base64, marked", "quoted-printable, all", "a typed array"),
    )
    texts = [WRAPS[name](value) for name in names]
    texts += [value.upper(), value.lower()] if value.isupper() or value.istitle() else []
    assert not [text for text in texts if HIDDEN not in index.hide(f"is {text} .")]


@pytest.mark.req("T8")
@pytest.mark.thorough
@given(
    st.text(min_size=6, max_size=30),
    st.sampled_from(sorted(ESCAPES)),
    st.sampled_from(sorted(ESCAPES)),
    st.text(max_size=20),
)
@example("0000\x1f}", "HTML", "HTML of JSON", "")
@example("00000\r", "HTML", "shell, backslashes", "")
@settings(max_examples=150 if THOROUGH else 100, deadline=None)
def test_any_value_is_found_in_two_wrappings(
    value: str, inner: str, outer: str, before: str
) -> None:
    if "base64" in inner + outer or "hexadecimal" in inner + outer or "twice" in inner + outer:
        return
    if "\n" in value and "shell, backslashes" in (inner, outer):
        return  # to a shell, a backslash before a line feed joins two lines
    if len(value) - value.count("\\") < 6:
        return  # read as an escape, it is too short to be searched for
    wrapped = WRAPS[outer](WRAPS[inner](value))
    assert index_of(value).spans(f"{before} {wrapped} ") or "\\" in before, wrapped


@given(st.text(alphabet="ab%41\\nu0025&#x;'\" \n", max_size=60))
def test_a_place_in_a_layer_comes_from_a_place_in_the_text(text: str) -> None:
    undone = unescaped(text)
    if undone is None:
        return
    layer, origins = undone
    position = 0
    for at in range(len(layer)):
        start, end = origins.span((at, at + 1))
        assert position <= start < end <= len(text)
        assert layer[at] == text[start:end] or end - start > 1
        position = start


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("the token s3cr3t-Val", f"the token {HIDDEN}"),
        ("the token s3cr3t-Val… (4,000 characters)", f"the token {HIDDEN}… (4,000 characters)"),
        ("the token s3cr3t-Val... and more", f"the token {HIDDEN}... and more"),
        ("-Value/+=x was wrong", f"{HIDDEN} was wrong"),
        ("…3t-Value/+=x was wrong", f"…{HIDDEN} was wrong"),
        ("the token s3cr3t-Val [truncated]", f"the token {HIDDEN} [truncated]"),
        ("the token s3cr3t-Value%2…", f"the token {HIDDEN}%2…"),
        ("the token s 3 c r 3 t - V a l…", f"the token {HIDDEN}…"),
        ("the token s3cr", "the token s3cr"),
        ("a correct-horse", f"a {HIDDEN}"),
        ('"correct-hor…', f'"{HIDDEN}…'),
        ("ry-staple-and-more is wrong", f"{HIDDEN} is wrong"),
        ("correct", "correct"),
        ("t s3cr3t-% off", "t s3cr3t-% off"),
    ],
)
def test_the_rest_of_a_value_is_hidden_where_a_text_was_cut(text: str, hidden: str) -> None:
    index = index_of(SECRETS["token"], "correct-horse-battery-staple-and-more")
    assert index.hide(text) == hidden


def test_a_word_at_the_end_of_a_text_is_not_the_rest_of_a_value() -> None:
    index = index_of("server=db.example;uid=me", "the-name-of-my-server")
    assert index.hide("there is no server") == "there is no server"
    assert index.hide("server not found") == "server not found"
    index.add("connection-to-the-database-of-mine")
    assert index.hide("it has no connection") == "it has no connection"


@pytest.mark.req("T8")
def test_each_line_of_a_key_is_hidden() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEAx7m3\nQb0kq1vY2n8fJ4LrT5wZ\n-----END"
    hidden = index_of(key).hide("2026 | MIIEowIBAAKCAQEAx7m3\n2026 | Qb0kq1vY2n8fJ4LrT5wZ\n")
    assert hidden == f"2026 | {HIDDEN}\n2026 | {HIDDEN}\n"


def test_a_short_value_is_not_searched_for() -> None:
    assert needles_of("12345") == ()
    assert not index_of("a", "12345", " " * 20)


@pytest.mark.req("T8")
def test_the_whole_run_of_base64_around_a_value_is_hidden() -> None:
    text = f"data {WRAPS['base64 of JSON']('hunter2abc')} end"
    assert index_of("hunter2abc").hide(text) == f"data {HIDDEN} end"


@pytest.mark.req("T8")
def test_values_in_structures_are_hidden_and_the_rest_is_the_same_object() -> None:
    index = index_of("hunter2abc", "90210771")
    data = {"a": ["x", {"hunter2abc": "at hunter2abc"}], "n": 90210771, "b": b"is hunter2abc"}
    assert index.hide_in(data) == {
        "a": ["x", {HIDDEN: f"at {HIDDEN}"}],
        "n": HIDDEN,
        "b": b"is [redacted]",
    }
    codes = dict(enumerate(b"is hunter2abc"))
    arrays = [list("hunter2abc"), {str(place): code for place, code in codes.items()}]
    assert index.hide_in(arrays) == [HIDDEN, HIDDEN]
    assert index.hide_in([list("nothing!"), {"0": 1}]) == [list("nothing!"), {"0": 1}]
    plain = {"a": ["x", ({"y": 1.5}, None, True)]}
    assert index.hide_in(plain) is plain
    deep: list[object] = ["hunter2abc"]
    for _ in range(200):
        deep = [deep]
    assert "hunter2abc" not in str(index.hide_in(deep))


def test_a_value_is_known_as_often_as_it_was_added() -> None:
    index = index_of("hunter2abc", "hunter2abc")
    index.discard("hunter2abc")
    assert index.hide("hunter2abc") == HIDDEN
    index.discard("hunter2abc")
    assert index.hide("hunter2abc") == "hunter2abc"
    assert not index


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "unit",
    [
        *("%41", "\\u0041", "\\", "&amp;", "a…", "s3cr3", "czNjcjN0", "\\x41%41&#65;", "'\"'\"'"),
        *(
            "=41",
            "x\n",
            "\n  | ",
            "''",
            "`'",
            "73 ",
            "115, ",
            "1,",
            "UUJD",
            "UVVKRA ",
            "\x1b[0m",
            "0\x00",
            "[31m",
            "<!--",
            "\x1bP",
            "&amp",
            '"1":51,',
            "163 063 ",
            "ＡＢＣＤＥＦ",
            "token-",
        ),
    ],
)
@pytest.mark.parametrize("others", [0, 300], ids=["few", "many"])
def test_hostile_text_takes_linear_time(unit: str, others: int) -> None:
    index = index_of(SECRETS["token"], *(f"token-{number * 7919}-x" for number in range(others)))

    def cpu_time(size: int) -> float:
        began = time.process_time()
        index.hide(unit * (size // len(unit)))
        return time.process_time() - began

    # The least of three, as at times the process has something else to do: one will do.
    short = min(cpu_time(10_000) for _ in range(3))
    assert any(cpu_time(80_000) < 24 * short + 0.05 for _ in range(3))


@pytest.mark.req("T8")
def test_a_run_of_base64_is_read_once_however_often_a_value_is_in_it() -> None:
    index = index_of("hunter2ab")

    def cpu_time(count: int) -> float:
        began = time.process_time()
        assert index.hide(b64encode(b"hunter2ab" * count).decode()) == HIDDEN
        return time.process_time() - began

    short = min(cpu_time(1_000) for _ in range(3))
    assert any(cpu_time(16_000) < 48 * short for _ in range(3))


@pytest.mark.req("T8")
def test_a_text_with_the_head_of_many_values_takes_as_long_as_any_other() -> None:
    index = index_of(*(f"token-{number:06}-{number * 7919}" for number in range(2000)))

    def cpu_time(text: str) -> float:
        began = time.process_time()
        assert index.hide(text) == text
        return time.process_time() - began

    other = min(cpu_time("other-0 " * 5_000 + "end") for _ in range(3))
    assert any(cpu_time("token-0 " * 5_000 + "end") < 8 * other for _ in range(3))


@pytest.mark.req("T8")
def test_a_value_in_several_lines_of_base64_is_hidden_from_its_beginning() -> None:
    value = 'Pa"ss/Word-0123456789-abcdefghij\\x'
    index = index_of(value)
    for size in range(60):
        data = b"-" * size + json.dumps(value).encode() + b"-" * 20
        hidden = index.hide(encodebytes(data).decode())
        lines = "".join(hidden.replace(HIDDEN, "\n").split())
        assert b"Pa" not in b64decode(lines[: len(lines) // 4 * 4]), hidden


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "place", ["https://host.example/path/{}?x=1", "/{}", "path/of/it/{}", "session-{}", "v1_{}"]
)
def test_base64_behind_a_path_or_a_prefix_is_decoded(place: str) -> None:
    index = index_of(SECRETS["odd"])
    for wrapping in ("base64 of JSON that escapes", "base64 of a URL", "base64 of base64"):
        wrapped = WRAPS[wrapping](SECRETS["odd"]).replace("+", "-").replace("/", "_").rstrip("=")
        assert index.hide(place.replace("{}", wrapped)) == place.replace("{}", HIDDEN)


@pytest.mark.req("T8")
def test_hexadecimal_digits_may_be_marked_as_such() -> None:
    index, value = index_of("hunter2abc"), "hunter2abc"
    assert index.hide(f"SELECT 0x{value.encode('utf-16-le').hex()};") == f"SELECT 0x{HIDDEN};"
    assert index.hide(f"0X{quote(value).encode().hex().upper()}") == f"0X{HIDDEN}"


@pytest.mark.req("T8")
def test_escapes_of_different_lengths_are_hidden_where_they_stand() -> None:
    text = "a\\u{0041}\\u{0042}" + "".join(f"\\u{ord(char):04x}" for char in "hunter2abc") + " end"
    assert index_of("hunter2abc").hide(text) == f"a\\u{{0041}}\\u{{0042}}{HIDDEN} end"


@pytest.mark.req("T8")
def test_what_is_encoded_in_a_text_is_searched_once() -> None:
    index, budget = index_of("hunter2abc"), SearchBudget()
    word = b64encode(b"nothing to see here").decode()
    # A nested escape makes layers, each of which has the words again.
    text = "%252525252541 " + f"{word} " * 1000
    assert index.spans(text, budget) == []
    assert MOST_ESCAPES - budget.escapes < 100


@pytest.mark.req("T8")
def test_a_text_with_too_many_escapes_is_hidden_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 10_000
    monkeypatch.setattr(escapes, "MOST_ESCAPES", most)
    index = index_of("hunter2abc")
    assert index.hide("%41" * (most + 1)) == HIDDEN
    words = (b64encode(f"number {number}".encode()).decode() for number in range(most))
    assert index.hide(" ".join(words)) == HIDDEN
    hidden = index.hide_in(["%41" * 1000] * (most // 1000 + 2))
    assert hidden[0] == "%41" * 1000
    assert hidden[-1] == HIDDEN
