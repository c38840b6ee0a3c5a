"""Text as text, the rest as files, nothing written over."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.output import Output
from holdfast.cli.views import MOST_INLINE, Contents
from holdfast.errors import ProtocolError, ValidationError
from tests.cli.conftest import DEMO, Cli, Seen
from tests.cli.rig import puppet

PNG = b"\x89PNG\r\n\x1a\n"
PROTOCOLS = KITTY, ITERM = "\x1b_G", "\x1b]1337;"


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def image(data: bytes = PNG, kind: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": coded(data), "mimeType": kind}


def shown(folder: Path, stem: str, *contents: dict[str, Any]) -> None:
    Contents(Output(), str(folder), stem).show(contents)


@pytest.mark.req("F3")
def test_a_picture_becomes_a_file_whose_name_is_the_result(cli: Cli, tmp_path: Path) -> None:
    done = cli("call", "picture", "width=2", "height=2", "--save", str(tmp_path / "p"), "--", *DEMO)
    assert done.out == f"{tmp_path / 'p' / 'picture-1.png'}\n"
    assert Path(done.out.strip()).read_bytes().startswith(PNG)
    done = cli("read", "demo://picture", "--", *DEMO)
    assert Path(done.out.strip()).read_bytes().startswith(PNG)


@pytest.mark.req("F3")
def test_no_file_is_written_over(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x-1.png").write_bytes(b"mine")
    (tmp_path / "x-2.png").symlink_to(tmp_path / "elsewhere")
    shown(tmp_path, "x", image(), image(b"2"))
    assert capfd.readouterr().out.split() == [f"{tmp_path}/x-3.png", f"{tmp_path}/x-4.png"]
    assert (tmp_path / "x-1.png").read_bytes() == b"mine"
    assert not (tmp_path / "elsewhere").exists()
    assert (tmp_path / "x-4.png").read_bytes() == b"2"


@pytest.mark.parametrize(
    ("stem", "kind", "name"),
    [
        ("../../etc/passwd", "image/png", "etc_passwd-1.png"),
        ("a b/c\x00", "text/html; charset=x", "a_b_c-1.html"),
        ("...", "no/such", "content-1.bin"),
        ("x" * 300, "", f"{'x' * 80}-1.bin"),
        ("x", "../../y", "x-1.bin"),
    ],
)
def test_a_servers_words_choose_no_other_place(
    tmp_path: Path, stem: str, kind: str, name: str
) -> None:
    shown(tmp_path, stem, {"blob": coded(b"x"), "mimeType": kind})
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_each_kind_has_its_form(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shown(
        tmp_path,
        "x",
        {"type": "text", "text": "one"},
        {"type": "resource", "resource": {"uri": "a:b", "text": "two"}},
        {"type": "resource_link", "uri": "a:c", "name": "n"},
        {"type": "audio", "data": coded(b"x"), "mimeType": "audio/wav"},
        {"type": "new", "field": 1},
    )
    lines = capfd.readouterr().out.splitlines()
    assert lines[:3] == ["one", "two", "a:c"]
    assert lines[3].endswith("x-1.wav")
    assert lines[4] == '{"type":"new","field":1}'


def test_what_cannot_be_saved_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValidationError, match="cannot be written"):
        shown(tmp_path / "file", "x", image())
    with pytest.raises(ProtocolError, match="the server sent image/png that is not base64"):
        shown(tmp_path, "x", {"type": "image", "data": "%%", "mimeType": "image/png"})


@pytest.mark.req("F3")
def test_a_terminal_that_can_draws_pictures(
    seen: Seen, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result = {"content": [image(PNG * 1000)]}
    words = ["call", "echo", "--save", str(tmp_path), "--", *puppet(results={"echo": result})]
    assert not any(one in seen(*words).text for one in PROTOCOLS)
    monkeypatch.setenv("TERM_PROGRAM", "iTerm.app")
    assert f"\x1b]1337;File=inline=1;size=8000:{coded(PNG * 1000)}\x07" in seen(*words).text
    monkeypatch.delenv("TERM_PROGRAM")
    monkeypatch.setenv("KITTY_WINDOW_ID", "1")
    text = seen(*words).text
    assert text.index("\x1b_Ga=T,f=100,m=1;") == text.index(KITTY)
    assert text.count("\x1b_G") == 3
    assert "\x1b_Gm=0;" in text


@pytest.mark.req("N3")
@pytest.mark.parametrize(
    ("environ", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, KITTY),
        ({"TERM": "xterm-ghostty"}, KITTY),
        ({"LC_TERMINAL": "iTerm2"}, ITERM),
        ({"TERM_PROGRAM": "WezTerm", "KITTY_WINDOW_ID": "1"}, ITERM),
        ({"TERM_PROGRAM": "vscode", "KITTY_WINDOW_ID": "1"}, ""),
        ({"TERM_PROGRAM": "iTerm.app", "TERM": "dumb"}, ""),
        ({"TERM_PROGRAM": "ghostty", "TMUX": "/tmp/tmux,1,0"}, ""),
        ({"TERM": "foot"}, ""),
    ],
    ids=lambda value: " ".join(value.values()) if isinstance(value, dict) else "",
)
def test_a_picture_is_drawn_by_the_protocol_of_the_terminal_itself(
    seen: Seen, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], protocol: str
) -> None:
    """The variables of a terminal are inherited by those that are started from it."""
    for name in ("TERM_PROGRAM", "LC_TERMINAL", "KITTY_WINDOW_ID", "TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    text = seen("call", "echo", "--", *puppet(results={"echo": {"content": [image()]}})).text
    assert {one for one in PROTOCOLS if one in text} == ({protocol} if protocol else set())
    assert "(image/png, 8 bytes)" in text


def test_a_huge_picture_is_not_drawn(
    seen: Seen, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TERM_PROGRAM", "WezTerm")
    monkeypatch.setattr("holdfast.cli.views.MOST_INLINE", 7)
    assert MOST_INLINE > 7
    command = puppet(results={"echo": {"content": [image()]}})
    text = seen("call", "echo", "--save", str(tmp_path), "--", *command).text
    assert not any(one in text for one in PROTOCOLS)
