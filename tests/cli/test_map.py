"""``holdfast map``: rows to outcomes, over files and pipes, and after a kill."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast._core.bulk.resume import RowSet
from holdfast._core.bulk.rows import LONGEST_LINE, Selection
from holdfast.cli.verbs.map import CHUNK, Source, piped_rows
from holdfast.errors import ValidationError
from tests.cli.conftest import DEMO, Cli, Seen

COUNT = 2000


def write_rows(path: Path, count: int = 20) -> Path:
    path.write_text("".join(f'{{"a": {number}, "b": 1}}\n' for number in range(count)))
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.req("S4")
def test_each_row_is_a_line_with_its_result(cli: Cli, tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "rows.jsonl"), tmp_path / "out.jsonl"
    done = cli("map", "add", str(rows), "-o", str(out), "-j", "4", "--", *DEMO)
    assert (done.code, done.out) == (0, "")
    assert "20 rows: 20 ok, 0 error, 0 unknown." in done.err
    lines = lines_of(out)
    assert sorted(line["row"] for line in lines) == list(range(20))
    assert {line["row"]: line["result"] for line in lines}[7] == {"sum": 8}
    assert all(list(line) == ["row", "outcome", "result", "attempts", "ms"] for line in lines)


@pytest.mark.req("S4")
@pytest.mark.parametrize(("count", "text"), [(0, "0 rows: 0 ok"), (1, "1 row: 1 ok")])
def test_no_row_and_one_row_are_counted_as_such(
    cli: Cli, tmp_path: Path, count: int, text: str
) -> None:
    done = cli("map", "add", str(write_rows(tmp_path / "rows.jsonl", count)), "--", *DEMO)
    assert (done.code, len(done.out.splitlines())) == (0, count)
    assert f"{text}, 0 error, 0 unknown." in done.err


@pytest.mark.req("S4")
def test_bad_rows_are_lines_and_the_exit_code_is_one(cli: Cli) -> None:
    stdin = '{"a": 1, "b": 2}\n\nnot json\n[1]\n{"a": "x", "b": 1}\n'
    done = cli("map", "add", "-", "--ordered", "--", *DEMO, stdin=stdin)
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 1
    assert [line["outcome"] for line in lines] == ["ok", "error", "error", "error"]
    messages = [line["error"]["message"] for line in lines[1:]]
    assert messages[0].startswith("row 1 (line 3): not JSON")
    assert messages[1] == "row 2 (line 4): must be an object, not a list"
    assert "/a: must be number" in messages[2]
    assert {line["error"]["kind"] for line in lines[1:]} == {"validation"}


@pytest.mark.req("S4")
def test_csv_has_names_in_its_first_line_and_the_tools_types(cli: Cli, tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text('\ufeffx,b\n"1",2\n3,4.5\nfive,6\n7\n')
    words = ("map", "add", str(table), "--ordered", "--arg", "a=.x", "--arg", "b=.b")
    lines = [json.loads(line) for line in cli(*words, "--", *DEMO).out.splitlines()]
    assert [line.get("result") for line in lines] == [{"sum": 3}, {"sum": 7.5}, None, None]
    assert lines[2]["error"]["message"] == "row 2: a='five': must be a number"
    assert lines[3]["error"]["message"] == "row 3 (line 5): 1 cell, not 2"


@pytest.mark.req("S4")
@pytest.mark.parametrize(
    ("kind", "stdin"),
    [
        ("csv", '\ufeffa,b\r\n1,"2"\r\n\r\n3,4\r\n'),
        ("tsv", "a\tb\n1\t2\n3\t4"),
        ("jsonl", '{"a":1,"b":2}\n{"a":3,"b":4}'),
    ],
)
def test_a_pipe_has_rows_of_every_kind(cli: Cli, kind: str, stdin: str) -> None:
    done = cli("map", "add", "-", "--format", kind, "--ordered", "--", *DEMO, stdin=stdin)
    assert done.code == 0, done.err
    assert [json.loads(line)["result"] for line in done.out.splitlines()] == [
        {"sum": 3},
        {"sum": 7},
    ]


@pytest.mark.req("S4")
def test_a_map_of_a_pipe_is_resumed(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    rows = [f'{{"a": {number}, "b": 1}}\n' for number in range(5)]
    cli("map", "add", "-", "-o", str(out), "--", *DEMO, stdin="".join(rows[:3]))
    done = cli("map", "add", "-", "-o", str(out), "--resume", "--", *DEMO, stdin="".join(rows))
    assert done.code == 0, done.err
    assert sorted(line["row"] for line in lines_of(out)) == [0, 1, 2, 3, 4]


@pytest.mark.req("S4")
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
async def test_a_pipe_that_cannot_be_read_ends_the_map(tmp_path: Path, kind: str) -> None:
    """Its thread ended, and the map waited for ever."""
    descriptor = os.open(tmp_path / "rows", os.O_WRONLY | os.O_CREAT)
    with open(descriptor, "rb") as stream, pytest.raises(ValidationError, match="stdin: "):
        _ = [row async for row in piped_rows(stream, kind, RowSet())]


@pytest.mark.req("S4")
async def test_a_long_line_of_a_pipe_is_one_row() -> None:
    text = "x" * (3 * CHUNK)
    data = json.dumps({"a": text}).encode() + b'\n{"a": 2}'
    rows = [row async for row in piped_rows(io.BytesIO(data), "jsonl", RowSet())]
    assert rows == [(0, {"a": text}), (1, {"a": 2})]


@pytest.mark.req("S4")
async def test_a_line_of_a_pipe_that_is_too_long_is_one_row_and_not_the_end() -> None:
    data = b'{"a": 1}\n{"a": "' + b"x" * LONGEST_LINE + b'"}\n{"a": 3}\n' + b"y" * LONGEST_LINE
    rows = [row async for row in piped_rows(io.BytesIO(data + b"y"), "jsonl", RowSet())]
    assert [number for number, _ in rows] == [0, 1, 2, 3]
    assert [str(rows[1][1]), str(rows[3][1])] == [
        "row 1 (line 2): over 64 MiB long",
        "row 3 (line 4): over 64 MiB long",
    ]
    assert [rows[0][1], rows[2][1]] == [{"a": 1}, {"a": 3}]


@pytest.mark.req("S4")
@pytest.mark.parametrize(("kind", "head"), [("jsonl", b""), ("csv", b"a,b\n")])
def test_an_interrupt_while_a_pipe_says_nothing_ends_it_in_peace(kind: str, head: bytes) -> None:
    """The thread that reads held the lock of stdin, and Python aborted at its end."""
    row = b'{"a": 1, "b": 2}\n' if kind == "jsonl" else b"1,2\n"
    command = [sys.executable, "-m", "holdfast", "map", "add", "-", "--format", kind]
    with subprocess.Popen(
        [*command, "--", *DEMO],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(head + row)
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"] == {"sum": 3}
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
        assert (process.wait(), b"Fatal" in err) == (130, False), err


@pytest.mark.req("S4")
def test_a_device_is_no_file_that_is_there_already(cli: Cli, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl")
    done = cli("map", "add", str(rows), "-o", os.devnull, "--", *DEMO)
    assert done.code == 0, done.err


@pytest.mark.req("S4")
def test_arguments_are_taken_from_fields() -> None:
    row = {"town": {"name": "Oslo"}, "tags": ["a", "b"], "id": 7}
    selection = Selection(("city=.town.name", "tag=.tags.1", "unit=km", "all=."), ".id")
    assert selection.arguments(row) == {"city": "Oslo", "tag": "b", "unit": "km", "all": row}
    assert selection.key(row) == "7"
    for fields in (("x=.nothing",), ("x=.tags.9",), ("x=.town.name.more",)):
        with pytest.raises(ValidationError, match="there is no field"):
            Selection(fields).arguments(row)
    for text in ("city", "=.town"):
        with pytest.raises(ValidationError, match=r"NAME=\.FIELD"):
            Selection((text,))
    with pytest.raises(ValidationError, match="no key"):
        Selection(once=".town").key(row)


@pytest.mark.req("S4")
def test_a_column_may_have_dots_in_its_name() -> None:
    """Tables that were made of nested values have such columns."""
    row = {"town.name": "Oslo", "town": {"name": "Bergen", "id": 7}}
    selection = Selection(("city=.town.name", "number=.town.id"), ".town.name")
    assert selection.arguments(row) == {"city": "Oslo", "number": 7}
    assert selection.key(row) == "Oslo"


@pytest.mark.req("S4")
def test_what_cannot_work_is_usage_and_touches_nothing(cli: Cli, tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "rows.jsonl"), tmp_path / "out.jsonl"
    before = rows.read_bytes()
    out.write_text("somebody else's\n")
    attempts = {
        "is there already: --resume": (str(rows), "-o", str(out)),
        "line 1 is no outcome of a row": (str(rows), "-o", str(out), "--resume"),
        "is the file of the rows": (str(rows), "-o", str(rows), "--resume"),
        "No such file": (str(tmp_path / "none.jsonl"), "-o", str(out)),
        "Is a directory": (str(tmp_path), "-o", str(tmp_path / "x.jsonl")),
        "--resume needs a file": (str(rows), "--resume"),
        "must be of transport": (str(rows), "--retry", "always"),
        "must be of jsonl": (str(rows), "--format", "xlsx"),
        "a is given twice": (str(rows), "--arg", "a=.a", "--arg", "a=1"),
        "Give one file": (),
        "There is no tool": (),
    }
    for text, words in attempts.items():
        tool = "subtract" if text == "There is no tool" else "add"
        words = words or ((str(rows),) if tool == "subtract" else ())
        done = cli("map", tool, *words, "--", *DEMO)
        assert text in done.err, done.err
        assert done.code == 2, text
        assert not done.out
    assert rows.read_bytes() == before
    assert out.read_text() == "somebody else's\n"


@pytest.mark.req("S4")
def test_resuming_repairs_a_torn_line_and_repeats_no_row(cli: Cli, tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "rows.jsonl"), tmp_path / "out.jsonl"
    cli("map", "add", str(rows), "-o", str(out), "--", *DEMO)
    text = out.read_text().splitlines(keepends=True)
    unknown = json.dumps({"row": 19, "outcome": "unknown", "error": {}, "attempts": 1, "ms": 1.0})
    whole = [line for line in text if json.loads(line)["row"] < 10]
    out.write_text("".join(whole) + unknown + "\n" + text[-1][:15])
    done = cli("map", "add", str(rows), "-o", str(out), "--resume", "--json", "--", *DEMO)
    assert done.code == 1
    assert done.value == {"rows": 20, "ok": 19, "error": 0, "unknown": 1, "unknown_rows": [19]}
    lines = lines_of(out)
    assert sorted(line["row"] for line in lines) == list(range(20))
    assert [line["outcome"] for line in lines if line["row"] == 19] == ["unknown"]
    again = cli("map", "add", str(rows), "-o", str(out), "--resume", "--", *DEMO)
    assert "May have run, and are not repeated: rows 19." in again.err
    assert lines_of(out) == lines


@pytest.mark.req("S4")
def test_a_number_far_beyond_all_rows_takes_no_memory() -> None:
    """A line of another's file must not fill the memory."""
    rows = RowSet()
    tracemalloc.start()
    for row in (0, 4096, 2**32):
        rows.add(row)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1024 * 1024
    assert [row for row in (0, 1, 4095, 4096, 2**32 - 1, 2**32) if row in rows] == [0, 4096, 2**32]


@pytest.mark.req("S4")
def test_a_command_that_was_wrong_does_not_stand_in_the_way_of_the_right_one(
    cli: Cli, tmp_path: Path
) -> None:
    rows, out = write_rows(tmp_path / "rows.jsonl"), tmp_path / "out.jsonl"
    words = ("map", "add", str(rows), "-o", str(out))
    assert cli(*words, "--once", "id", "--", *DEMO).code == 2
    assert not out.exists()
    out.touch()  # as mktemp does
    done = cli(*words, "--", *DEMO)
    assert done.code == 0, done.err
    assert len(lines_of(out)) == 20


def started(rows: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "holdfast", "map", "add", str(rows), "-o", str(out)]
    return subprocess.Popen(
        [*command, "--resume", "--", *DEMO], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def grown(process: subprocess.Popen[bytes], out: Path, size: int) -> None:
    """Wait until a file has grown, or the process is at its end."""
    while process.poll() is None and (not out.exists() or out.stat().st_size <= size):
        threading.Event().wait(0.005)


@pytest.mark.req("S4")
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_a_map_that_was_ended_is_resumed(tmp_path: Path, signal_number: int) -> None:
    rows, out = write_rows(tmp_path / "rows.jsonl", COUNT), tmp_path / "out.jsonl"
    for _ in range(2):
        before = out.stat().st_size if out.exists() else 0
        process = started(rows, out)
        grown(process, out, before)
        os.kill(process.pid, signal_number)
        _, err = process.communicate()
        if signal_number == signal.SIGINT and process.returncode != 0:
            assert process.returncode == 130
            assert b"with --resume goes on" in err
    process = started(rows, out)
    process.communicate()
    assert process.returncode == 0
    lines = lines_of(out)
    assert sorted(line["row"] for line in lines) == list(range(COUNT))


@pytest.mark.req("S4")
def test_two_maps_do_not_write_to_one_file(cli: Cli, tmp_path: Path) -> None:
    from holdfast._core.bulk.resume import OutcomeFile

    rows, out = write_rows(tmp_path / "rows.jsonl"), tmp_path / "out.jsonl"
    first = OutcomeFile(str(out))
    done = cli("map", "add", str(rows), "-o", str(out), "--resume", "--", *DEMO)
    assert "another process writes to it" in done.err
    first.close()


@pytest.mark.req("S4")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_disk_is_told_and_loses_nothing(cli: Cli, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl")
    done = cli("map", "add", str(rows), "-o", "/dev/full", "--resume", "--", *DEMO)
    assert done.code == 2
    assert "/dev/full: No space left on device; with room again, --resume goes on" in done.err


@pytest.mark.req("S4")
@pytest.mark.parametrize("columns", [40, 120])
def test_a_terminal_shows_a_bar_that_fits(seen: Seen, tmp_path: Path, columns: int) -> None:
    rows, out = write_rows(tmp_path / "rows.jsonl"), tmp_path / "out.jsonl"
    screen = seen("map", "add", str(rows), "-o", str(out), "--", *DEMO, columns=columns)
    text = screen.text
    assert "100 %" in text
    assert "20 ok" in text
    assert ("━" in text) is (columns == 120)


@pytest.mark.req("S4")
def test_a_terminal_that_shows_the_outcomes_has_no_bar_between_them(
    seen: Seen, tmp_path: Path
) -> None:
    rows = write_rows(tmp_path / "rows.jsonl")
    text = seen("map", "add", str(rows), "--", *DEMO, columns=120).text
    assert "20 ok, 0 error" in text
    assert "━" not in text


JSON_ROWS = b'{"a": 1}\n\n{"a": "\xc3\xa4"}\n{"a": 3}\n no\n{"a": 5}\n\n'
CSV_ROWS = '\ufeffa,b\r\n1,"x\r\ny"\r\n\r\nä,2\r\n3,3\r\n4,4\r\n5,\r\n'.encode()


@pytest.mark.req("S4")
@pytest.mark.parametrize(("name", "data"), [("r.jsonl", JSON_ROWS), ("r.csv", CSV_ROWS)])
def test_what_is_done_are_the_bytes_of_rows_that_have_ended(
    tmp_path: Path, name: str, data: bytes
) -> None:
    """Rows that are read ahead are not done; those of an earlier run are."""
    (tmp_path / name).write_bytes(data)
    done = RowSet()
    done.add(1)
    with ExitStack() as stack:
        source = Source(str(tmp_path / name), stack)
        rows = source.rows(done)
        assert [next(rows)[0], next(rows)[0]] == [0, 2]
        earlier = source.read
        assert 0 < earlier < len(data) / 3
        source.end(2)
        shares = [source.read]
        assert earlier < source.read < len(data) / 2
        for number, _ in rows:
            shares.append(source.read)
            source.end(number)
        assert shares == sorted(shares)
        assert source.read < len(data), "the first row has not ended"
        source.end(0)
        assert source.read == len(data) == source.size


@pytest.mark.req("S4", "S2")
def test_rows_with_a_key_run_once_over_all_runs(cli: Cli, tmp_path: Path) -> None:
    rows, seen = tmp_path / "rows.jsonl", tmp_path / "seen"
    rows.write_text('{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}\n{"text": "z"}\n')
    server = tmp_path / "server.py"
    server.write_text(_COUNTING.format(seen=str(seen)))
    words = ("map", "note", str(rows), "--once", ".id", "--arg", "text=.text", "--ordered")
    first = cli(*words, "--", sys.executable, str(server))
    again = cli(*words, "--", sys.executable, str(server))
    assert sorted(seen.read_text()) == ["x", "y"]
    for done in (first, again):
        lines = [json.loads(line) for line in done.out.splitlines()]
        assert [line["outcome"] for line in lines] == ["ok", "ok", "error"]
        assert lines[2]["error"]["message"] == "row 2: there is no field 'id'"


_COUNTING = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if "id" not in message:
        continue
    result = {{}}
    if method == "initialize":
        result = {{"protocolVersion": message["params"]["protocolVersion"],
                  "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "x", "version": "1"}}}}
    elif method == "tools/list":
        result = {{"tools": [{{"name": "note", "inputSchema": {{"type": "object"}}}}]}}
    elif method == "tools/call":
        text = message["params"]["arguments"]["text"]
        open({seen!r}, "a").write(text)
        result = {{"content": [{{"type": "text", "text": text}}]}}
    else:
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"],
                          "error": {{"code": -32601, "message": "no"}}}}), flush=True)
        continue
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"""


@pytest.mark.req("S3")
def test_limits_that_are_not_shared_are_told(cli: Cli, tmp_path: Path) -> None:
    rows, place = write_rows(tmp_path / "rows.jsonl"), tmp_path / "missing" / "limits.db"
    limits = {"limits": {"concurrent": 2, "store": str(place)}}
    entry = {"command": DEMO[0], "args": list(DEMO[1:]), "holdfast": limits}
    config = tmp_path / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"demo": entry}}))
    done = cli("map", "demo.add", str(rows), "--config", str(config))
    assert (done.code, len(done.out.splitlines())) == (0, 20)
    assert "The limits were not shared with other processes: " in done.err
    assert str(place) in done.err
