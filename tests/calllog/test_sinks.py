"""Files, streams and functions that take the lines, and what happens when they cannot."""

from __future__ import annotations

import errno
import gc
import io
import logging
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.calllog.sinks import PAUSE, LogFile, sink_for
from holdfast.errors import ValidationError

NOW = 100.0


def test_a_file_is_private_and_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    for line in (b"one", b"two"):
        sink = LogFile(str(path))
        sink.append([line])
        sink.close()
    assert path.read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_closed_file_is_opened_again(tmp_path: Path) -> None:
    sink = LogFile(str(tmp_path / "a"))
    sink.append([b"one"])
    sink.close()
    sink.close()
    sink.append([b"two"])
    sink.close()
    assert (tmp_path / "a").read_bytes() == b"one\ntwo\n"


def test_a_file_that_nobody_closes_is_closed_with_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "a"
    sink = sink_for(path)
    sink.close()
    sink.write([b"a call that ended after its client was closed"], NOW)
    descriptors = len(os.listdir("/proc/self/fd"))
    del sink
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == descriptors - 1


@pytest.mark.parametrize("how", ["deleted", "moved", "its folder deleted"])
def test_a_file_that_was_taken_away_is_begun_anew(tmp_path: Path, how: str) -> None:
    path = tmp_path / "logs" / "a"
    path.parent.mkdir()
    sink = LogFile(str(path))
    sink.append([b"one"])
    if how == "moved":
        path.rename(tmp_path / "a.1")
    else:
        path.unlink()
    if how == "its folder deleted":
        path.parent.rmdir()
        written, error = sink.append([b"lost"])
        assert (written, type(error)) == (0, FileNotFoundError)
        path.parent.mkdir()
    sink.append([b"two"])
    sink.close()
    assert path.read_bytes() == b"two\n"


def test_another_file_in_its_place_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "a"
    sink = LogFile(str(path))
    sink.append([b"one"])
    path.rename(tmp_path / "old")
    path.touch()
    sink.append([b"two"])
    sink.close()
    assert path.read_bytes() == b"two\n"


def test_nothing_is_opened_before_the_first_line(tmp_path: Path) -> None:
    LogFile(str(tmp_path / "a")).close()
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_somebody_left_unfinished_is_ended_first(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b'{"na')
    sink = LogFile(str(path))
    sink.append([b"one"])
    sink.append([b"two"])
    sink.close()
    assert path.read_bytes() == b'{"na\none\ntwo\n'


def test_a_hopeless_path_is_refused_at_once(tmp_path: Path) -> None:
    cases = {
        str(tmp_path / "none" / "a"): "there is no folder",
        str(tmp_path): "Is a directory",
        "": "an empty path",
        "a\0b": "no file can have",
        "a\ud800b": "no file can have",
    }
    for path, why in cases.items():
        with pytest.raises(ValidationError, match=why):
            sink_for(path)


def test_a_folder_that_may_not_be_written_is_refused_at_once(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    if os.access(tmp_path, os.W_OK):  # as root, everything may be
        sink = LogFile(str(tmp_path / "a"))
        sink.append([b"line"])
        sink.close()
        return
    with pytest.raises(ValidationError, match="may not be written"):
        LogFile(str(tmp_path / "a"))


@pytest.mark.parametrize("to", [5, None, object()])
def test_what_takes_no_lines_is_refused(to: Any) -> None:
    with pytest.raises(ValidationError, match="must be a path, a stream or a function, not"):
        sink_for(to)


def test_a_coroutine_function_is_refused() -> None:
    async def take(line: str) -> None: ...

    with pytest.raises(ValidationError, match="plain function"):
        sink_for(take)


@pytest.mark.req("G5")
def test_the_lines_of_several_processes_do_not_run_together(tmp_path: Path) -> None:
    path = tmp_path / "a"
    program = (
        "import sys; from holdfast.calllog.sinks import LogFile\n"
        "sink = LogFile(sys.argv[1])\n"
        "for _ in range(200): sink.append([sys.argv[2].encode() * 300])\n"
    )
    words = [sys.executable, "-c", program, str(path)]
    running = [subprocess.Popen([*words, letter]) for letter in "ab"]
    assert [one.wait(120) for one in running] == [0, 0]
    lines = path.read_text().splitlines()
    assert sorted(lines) == ["a" * 300] * 200 + ["b" * 300] * 200


def test_the_lines_of_several_threads_do_not_run_together() -> None:
    class Slow(io.StringIO):
        def write(self, text: str) -> int:
            return sum(super(Slow, self).write(letter) for letter in text)

    stream = Slow()
    sink = sink_for(stream)

    def work(letter: str) -> None:
        for _ in range(50):
            sink.write([letter.encode() * 20], NOW)

    threads = [threading.Thread(target=work, args=(letter,)) for letter in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {len(set(line)) for line in stream.getvalue().splitlines()} == {1}


# Streams


def test_a_stream_of_text_and_one_of_bytes() -> None:
    texts, data = io.StringIO(), io.BytesIO()
    for stream in (texts, data):
        sink_for(stream).write(["→".encode()], NOW)
    assert texts.getvalue() == "→\n"
    assert data.getvalue() == "→\n".encode()


def test_a_stream_that_knows_ascii_only_gets_escapes() -> None:
    data = io.BytesIO()
    stream = io.TextIOWrapper(data, encoding="ascii")
    sink_for(stream).write(['{"a":"→"}'.encode()], NOW)
    assert data.getvalue() == b'{"a":"\\u2192"}\n'


# Failures


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


class Full(io.StringIO):
    """A stream on a disk that has no space left."""

    name = "/dev/full"

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_once_and_tried_again_later(caplog: pytest.LogCaptureFixture) -> None:
    sink = sink_for(Full())
    for _ in range(3):
        sink.write([b"line"], NOW)
    assert sink.lost == 3
    sink.write([b"line"], NOW + PAUSE)
    assert sink.lost == 4
    (told,) = failures(caplog)
    assert "the call log /dev/full: a line was lost" in told
    assert "No space" in told


def test_a_sink_that_recovers_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    class Moody(io.StringIO):
        broken = True

        def write(self, text: str) -> int:
            if self.broken:
                raise OSError("not now")
            return super().write(text)

    stream = Moody()
    sink = sink_for(stream)
    sink.write([b"one"], NOW)
    stream.broken = False
    sink.write([b"two"], NOW)
    sink.write([b"three"], NOW + PAUSE)
    assert stream.getvalue() == "three\n"
    assert len(failures(caplog)) == 1


def test_a_closed_stream_fails_nobody(caplog: pytest.LogCaptureFixture) -> None:
    stream = io.StringIO()
    stream.close()
    sink = sink_for(stream)
    sink.write([b"line"], NOW)
    sink.close()
    assert "closed" in failures(caplog)[0]


def test_a_folder_that_vanishes_fails_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    sink = sink_for(folder / "a")
    folder.rmdir()
    sink.write([b"line"], NOW)
    assert "No such file" in failures(caplog)[0]


def test_a_function_that_fails_is_called_again_for_the_next_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    taken: list[str] = []

    def take(line: str) -> None:
        taken.append(line)
        raise RuntimeError("no")

    sink = sink_for(take)
    sink.write([b"one"], NOW)
    sink.write([b"two"], NOW)
    assert taken == ["one", "two"]
    assert len(failures(caplog)) == 1


def test_a_line_that_broke_off_half_way_does_not_spoil_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    sink = LogFile(str(path))
    real, rest = os.write, [7]

    def write(descriptor: int, data: bytes) -> int:
        """Write seven bytes; after that the disk is full."""
        if rest and not rest[0]:
            raise OSError(28, "No space left on device")
        if rest:
            data = data[: rest[0]]
            rest[0] -= len(data)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    written, error = sink.append([b"abc", b"defgh", b"ijk"])
    assert written == 1
    assert "No space" in str(error)
    rest.clear()
    assert sink.append([b"next"]) == (1, None)
    sink.close()
    assert path.read_bytes() == b"abc\ndef\nnext\n"


def test_the_lines_of_a_batch_that_are_whole_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, real = sink_for(tmp_path / "a"), os.write
    pieces = [4]

    def write(descriptor: int, data: bytes) -> int:
        if not pieces:
            raise OSError(28, "No space left on device")
        return real(descriptor, data[: pieces.pop()])

    monkeypatch.setattr(os, "write", write)
    sink.write([b"abc", b"def", b"ghi"], NOW)
    assert sink.lost == 2
