"""Tables: drawn for a person, lines for a program."""

from __future__ import annotations

import pytest

from holdfast.cli.output import wrap_words
from holdfast.cli.views import first_line
from tests.cli import golden
from tests.cli.conftest import Cli, Seen
from tests.cli.rig import puppet
from tests.rows import rows

TOOLS = [
    {"name": "git_log", "description": "Shows the commits.\nAnd more.", "inputSchema": {}},
    {
        "name": "a_tool_whose_name_is_far_longer_than_anybody_would_want_it_to_be",
        "description": "Has a description that is so long that it does not fit into one line, "
        "neither of a wide window nor of a narrow one, and [bold]brackets[/bold].",
        "inputSchema": {},
    },
    {"name": "weit", "description": "Umlaute äöü, 日本語 and \t tabs.", "inputSchema": {}},
    {"name": "bare", "inputSchema": {}},
]


@pytest.mark.req("F3")
@pytest.mark.parametrize("columns", [80, 40])
def test_a_table_fits_the_window(seen: Seen, columns: int) -> None:
    screen = seen("tools", "--", *puppet(tools=TOOLS), columns=columns)
    assert max(map(len, screen.lines)) <= columns
    golden.check(f"tools-{columns}", screen.lines)


@pytest.mark.req("F3")
def test_names_are_not_taken_apart_where_they_fit(seen: Seen) -> None:
    words = "Toggles simulated resource subscription updates on or off."
    tool = {"name": "toggle-subscriber-updates", "description": words, "inputSchema": {}}
    screen = seen("tools", "--", *puppet(tools=[tool]), columns=40)
    assert max(map(len, screen.lines)) <= 40
    name, *said = " ".join(screen.lines).split()
    assert (name, " ".join(said)) == (f"{tool['name']}()", words)


@pytest.mark.req("F3")
def test_nothing_to_list_is_told_in_words(seen: Seen) -> None:
    assert seen("tools", "--", *puppet(tools=[])).lines == ["python has no tools."]


@pytest.mark.req("F3")
def test_a_program_gets_a_line_for_each_with_tabs_between(cli: Cli) -> None:
    done = cli("tools", "--", *puppet(tools=TOOLS))
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert [len(row) for row in rows] == [2, 2, 2, 2]
    assert rows[0] == ["git_log()", "Shows the commits."]
    assert rows[2] == ["weit()", "Umlaute äöü, 日本語 and tabs."]
    assert rows[3] == ["bare()", ""]


@pytest.mark.req("F3")
def test_colours_are_for_those_who_have_not_objected(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b[" in seen("tools", "--", *puppet()).text
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in seen("tools", "--", *puppet()).text
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in seen("tools", "--", *puppet()).text


@rows(
    ("text", "line"),
    [(None, ""), ("", ""), ("\n\n  a\tb \nc", "a b"), ("a", "a"), (" \u2028x", "x")],
)
def test_the_first_line_is_what_fits_in_a_table(text: str | None, line: str) -> None:
    assert first_line(text) == line


@pytest.mark.req("N3")
def test_words_wrap_whole_and_what_is_longer_than_a_line_can_be_copied() -> None:
    link = "https://example.org/" + "a" * 40
    text = f"one two three {link} fast|slow|over-night four"
    assert wrap_words(text, 20, rest="  ").splitlines() == [
        "one two three",
        f"  {link}",
        "  fast|slow|",
        "  over-night four",
    ]


@pytest.mark.req("N3")
@rows(
    ("text", "lines"),
    [
        ("서울 부산 대구 광주 인천", ["서울 부산", "  대구 광주", "  인천"]),
        ("读取一个文件。返回它的内容。", ["读取一个文", "  件。返回", "  它的内", "  容。"]),
        ("🎉 party 🎊🎊 x", ["🎉 party", "  🎊🎊 x"]),
        ("e\u0301tude de Ce\u0301zanne", ["e\u0301tude de", "  Ce\u0301zanne"]),
        ("m:\x01'a'\x01|\x01'b', n", ["m:\x01'a'\x01|\x01'b',", "  n"]),
    ],
    ids=["korean", "chinese", "emoji", "accents", "a bar that is tied"],
)
def test_lines_are_measured_in_columns(text: str, lines: list[str]) -> None:
    assert wrap_words(text, 11, rest="  ").splitlines() == lines


@pytest.mark.req("N3")
def test_wide_names_stay_in_their_column(seen: Seen) -> None:
    kinds = {"도시": {"type": "string", "default": "서울"}, "where": {"type": "string"}}
    tool = {"name": "x", "inputSchema": {"type": "object", "properties": kinds}}
    lines = seen("describe", "x", "--", *puppet(tools=[tool])).lines
    shown = [" ".join(line.split()) for line in lines]
    assert '도시 str, default "서울"' in shown
    rows = [line for line in lines if line.startswith("  ")]
    starts = {line.index("str") + line.count("도") + line.count("시") for line in rows}
    assert len(starts) == 1, lines
