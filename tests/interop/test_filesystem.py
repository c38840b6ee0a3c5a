"""The reference server for files."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Handlers, Limits, ProtocolError
from holdfast.types.content import ImageContent
from tests.interop.catalogue import FILESYSTEM
from tests.interop.home import Home, Settle

pytestmark = pytest.mark.slow_interop

BIG = 5_000_000


@pytest.fixture
def home(settle: Settle) -> Home:
    return settle(FILESYSTEM)


@pytest.mark.req("V3", "T2")
async def test_files_are_written_edited_and_read(home: Home) -> None:
    path = str(home.work / "new file.txt")
    async with home.visit() as client:
        await client.call_tool("write_file", {"path": path, "content": "one\ntwo\n"})
        edits = [{"oldText": "two", "newText": "zwei"}]
        await client.call_tool("edit_file", {"path": path, "edits": edits})
        assert (await client.call_tool("read_text_file", {"path": path})).text == "one\nzwei\n"
        listed = await client.call_tool("list_directory", {"path": str(home.work)})
        assert "[FILE] new file.txt" in listed.text
    assert (home.work / "new file.txt").read_text() == "one\nzwei\n"


@pytest.mark.req("V3", "T2")
async def test_a_file_outside_is_refused(home: Home) -> None:
    async with home.visit() as client:
        result = await client.call_tool("read_text_file", {"path": "/etc/hostname"})
        assert result.is_error
        assert "outside allowed directories" in result.text


@pytest.mark.req("V3", "T2")
async def test_a_picture_comes_as_bytes(home: Home) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    (home.work / "picture.png").write_bytes(picture)
    async with home.visit() as client:
        path = str(home.work / "picture.png")
        (content,) = (await client.call_tool("read_media_file", {"path": path})).content
        assert isinstance(content, ImageContent)
        assert content.bytes == picture


@pytest.mark.req("V3", "X1", "R9")
async def test_a_big_file_comes_as_one_line(home: Home) -> None:
    (home.work / "big.txt").write_text("x" * BIG)
    path = str(home.work / "big.txt")
    async with home.visit() as client:
        result = await client.call_tool("read_text_file", {"path": path})
        assert len(result.text) == BIG
        assert len(result.structured["content"]) == BIG
    async with home.visit(limits=Limits(frame_bytes=BIG)) as client:
        with pytest.raises(ProtocolError, match="frame_bytes"):
            await client.call_tool("read_text_file", {"path": path})
        await client.wait_ready(30)
        note = str(home.work / "note-1.txt")
        assert (await client.call_tool("read_text_file", {"path": note})).text == "note 1\n"


@pytest.mark.req("V3", "P4")
async def test_roots_take_the_place_of_the_arguments(home: Home) -> None:
    inner = home.work / "inner"
    inner.mkdir()
    updated = asyncio.Event()

    def read(line: str) -> None:
        if "Updated allowed directories from MCP roots" in line:
            updated.set()

    target = home.target(stderr=read)
    async with home.visit(target=target, handlers=Handlers(roots=[inner.as_uri()])) as client:
        await updated.wait()
        allowed = (await client.call_tool("list_allowed_directories")).text
        assert allowed.splitlines()[1:] == [str(inner)]
