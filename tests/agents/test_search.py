"""Tools by keywords."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Tool
from holdfast.agents.listing import ServerTool
from holdfast.agents.naming import name_of
from holdfast.agents.search import ToolIndex, words
from tests.rows import rows


def tool(server: str, name: str, description: str = "", *parameters: str) -> ServerTool:
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in parameters}}
    made = Tool.make(name, description=description, input_schema=schema)
    return ServerTool(server, made, name_of(server, name))


TOOLS = [
    tool("fs", "read_text_file", "Read the complete contents of a file as text.", "path", "head"),
    tool("fs", "write_file", "Create a new file or overwrite an existing one.", "path", "content"),
    tool("fs", "list_directory", "Get a listing of all files in a directory.", "path"),
    tool("fs", "directory_tree", "Get a recursive tree view as JSON.", "path"),
    tool("fs", "search_files", "Recursively search for files matching a pattern.", "pattern"),
    tool("git", "git_log", "Shows the commit logs.", "repo_path", "max_count"),
    tool("git", "git_commit", "Records changes to the repository.", "repo_path", "message"),
    tool("git", "git_diff", "Shows differences between branches or commits.", "target"),
    tool("time", "get_current_time", "Get current time in a specific timezone.", "timezone"),
    tool("time", "convert_time", "Convert time between timezones.", "source_timezone"),
    tool("web", "fetchUrl", "Fetches a URL from the internet.", "url", "max_length"),
    tool("mail", "sendMessage", "Sends an e-mail.", "recipient", "subject"),
    tool("db", "query", "Run a SQL query against the database.", "sql"),
]
INDEX = ToolIndex(TOOLS)


@pytest.mark.req("F3")
@rows(
    ("query", "best"),
    [
        ("read a file", "fs.read_text_file"),
        ("list files in a directory", "fs.list_directory"),
        ("write content to file", "fs.write_file"),
        ("show me the commit history log", "git.git_log"),
        ("record changes", "git.git_commit"),
        ("what is the current time", "time.get_current_time"),
        ("convert timezones", "time.convert_time"),
        ("fetch url", "web.fetchUrl"),
        ("send a message", "mail.sendMessage"),
        ("recipient", "mail.sendMessage"),
        ("SQL", "db.query"),
        ("databse", "db.query"),
        ("direcotry tree", "fs.directory_tree"),
        ("recurs tree", "fs.directory_tree"),
        ("commiting", "git.git_commit"),
        ("git diff", "git.git_diff"),
    ],
)
def test_the_tool_that_is_meant_comes_first(query: str, best: str) -> None:
    assert INDEX.search(query)[0].tool.dotted == best


def test_a_question_that_fits_nothing_finds_nothing() -> None:
    assert INDEX.search("xylophone quartz") == []
    assert INDEX.search("") == INDEX.search("!?") == []


def test_small_words_alone_are_taken_for_what_they_are() -> None:
    index = ToolIndex([tool("s", "how", ""), tool("s", "other", "")])
    assert [hit.tool.dotted for hit in index.search("how")] == ["s.how"]


def test_the_answer_does_not_depend_on_the_order_of_the_tools() -> None:
    shuffled = TOOLS[:]
    random.Random(1).shuffle(shuffled)
    for query in ("file", "time", "git commit", "get"):
        assert ToolIndex(shuffled).search(query) == INDEX.search(query)


def test_equals_come_in_the_order_of_their_names() -> None:
    index = ToolIndex([tool("b", "same", "text"), tool("a", "same", "text")])
    assert [hit.tool.server for hit in index.search("same")] == ["a", "b"]


def test_there_are_never_more_than_asked_for() -> None:
    assert len(INDEX.search("file directory git time", 3)) == 3
    scores = [hit.score for hit in INDEX.search("file directory git time", 9)]
    assert scores == sorted(scores, reverse=True)


@rows(
    ("text", "split"),
    [
        ("readTextFile", ["read", "text", "file"]),
        ("read_text.file-now", ["read", "text", "file", "now"]),
        ("HTTPServer2URLs", ["http", "server", "2", "urls"]),
        ("listing files, queries", ["listing", "files", "queries"]),
        ("größte Dateien 検索", ["grösste", "dateien", "検索"]),
    ],
)
def test_names_are_taken_apart_into_words(text: str, split: list[str]) -> None:
    assert words(text) == split


@given(st.text(max_size=60))
def test_any_question_has_an_answer_and_the_same_one(query: str) -> None:
    assert INDEX.search(query) == INDEX.search(query)


def test_hundreds_of_tools_are_searched() -> None:
    many = [tool(f"s{i % 20}", f"do_thing_{i}", "Does a thing.") for i in range(1000)]
    index = ToolIndex([*many, *TOOLS])
    assert len(index) == 1000 + len(TOOLS)
    assert index.search("read text file")[0].tool.dotted == "fs.read_text_file"


def test_it_looks_like_what_it_holds() -> None:
    assert repr(ToolIndex([])) == "<ToolIndex 0 tools, 0 words>"
