"""A server's questions, at the terminal."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast._core.redact.known import KNOWN
from holdfast._core.text import HIDDEN
from holdfast.cli.elicitation import answer
from holdfast.types.inputs import FormElicitation, UrlElicitation
from tests.cli.conftest import DEMO, Cli, Open, stdio
from tests.cli.rig import puppet


@pytest.mark.req("F3")
@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
def test_a_question_is_asked_and_answered(terminal: Open, protocol: str) -> None:
    one = terminal("call", "ask_name", "--protocol", protocol, "--", *DEMO)
    one.expect("The server asks:\x1b[0m What is your name?")
    one.expect("Answer? [Y/n] ")
    one.send("\n")
    one.expect("How to address you")
    one.expect("Name (string): ")
    one.send("\n")
    one.expect("needed")
    one.expect("Name (string): ")
    one.send("Bo Ström\n")
    one.expect("Hello, Bo Ström!")
    assert one.end() == 0


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("typed", "said"),
    [("n\n", "No name, then."), ("\x04", "put away unanswered"), ("y\n\x04", "put away")],
)
def test_a_question_can_be_declined_or_put_away(terminal: Open, typed: str, said: str) -> None:
    one = terminal("call", "ask_name", "--", *DEMO)
    one.expect("Answer? [Y/n] ")
    one.send(typed[:2])
    if typed[2:]:
        one.expect("Name (string): ")
        one.send(typed[2:])
    one.expect(said)
    assert one.end() == 0


@pytest.mark.req("F3")
def test_an_answer_that_is_neither_yes_nor_no_declines_nothing(terminal: Open) -> None:
    one = terminal("call", "ask_name", "--", *DEMO)
    one.expect("Answer? [Y/n] ")
    one.send("Ada\n")
    one.expect("y or n: ")
    one.send("y\n")
    one.expect("Name (string): ")
    one.send("Ada\n")
    one.expect("Hello, Ada!")
    assert one.end() == 0


@pytest.mark.req("D2")
@pytest.mark.parametrize(("typed", "said"), [("y\n", "exit code 1"), ("\n", "not approved")])
def test_a_call_to_approve_is_asked_about(terminal: Open, typed: str, said: str) -> None:
    one = terminal("call", "crash", "--approve", "--", *DEMO)
    one.expect("Call it? [y/N] ")
    one.send(typed)
    one.expect(said)
    assert one.end() == (5 if said == "not approved" else 3)


@pytest.mark.req("F3")
def test_a_question_can_be_interrupted(terminal: Open) -> None:
    one = terminal("call", "ask_name", "--", *DEMO)
    one.expect("Answer? [Y/n] ")
    one.send("\x03")
    assert one.end() == 130
    assert "holdfast:\x1b[0m interrupted" in one.text


def test_where_nobody_sits_no_question_is_taken(cli: Cli) -> None:
    done = cli("call", "ask_name", "--protocol", "2025-11-25", "--", *DEMO)
    assert done.code == 1
    assert "does not offer elicitation" in done.err


# What is asked, and what counts as an answer

Ask = Callable[..., Awaitable[str]]


def typing(*lines: str) -> tuple[Ask, list[str]]:
    """Somebody who types these lines, and then Ctrl-D; and the questions they were asked."""
    rest, asked = list(lines), list[str]()

    async def ask(text: str, is_secret: bool = False) -> str:
        asked.append(text)
        if not rest:
            raise EOFError
        return rest.pop(0)

    return ask, asked


async def fill(schema: dict[str, Any], *lines: str) -> tuple[Any, list[str]]:
    """A form with one field ``x``, which is needed."""
    ask, asked = typing("y", *lines)
    schema = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    found = await answer(FormElicitation(message="?", requested_schema=schema), ask)
    return found.get("content", {}).get("x", found["action"]), asked[1:]


COLOURS = {"oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]}


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("schema", "lines", "value", "complaint"),
    [
        ({"type": "integer"}, ["x", "5"], 5, "must be a whole number"),
        ({"type": "integer", "maximum": 9}, ["10", "9"], 9, "9"),
        ({"type": "number"}, ["0.5"], 0.5, ""),
        ({"type": "boolean"}, ["perhaps", "yes"], True, "must be true or false"),
        ({"type": "string", "minLength": 2}, ["a", "ab"], "ab", "2"),
        ({"type": "string", "default": "d"}, [""], "d", ""),
        ({"type": "string", "enum": ["a", "b"]}, ["c", "b"], "b", 'one of "a", "b"'),
        ({"type": "string", **COLOURS}, ["Red", "r"], "r", 'must be "r"'),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ["a, c", "a, b"], ["a", "b"], "one of"),
        ({"type": "array", "items": COLOURS}, ['["r"]'], ["r"], ""),
        ({"type": "string", "pattern": "("}, ["a"], "a", ""),
        ({"type": "nonsense", "minimum": "x"}, ["a"], "a", ""),
        (True, ["a"], "a", ""),
    ],
)
async def test_what_does_not_fit_is_asked_again(
    schema: Any,
    lines: list[str],
    value: Any,
    complaint: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, asked = await fill(schema, *lines)
    assert found == value
    assert len(asked) == len(lines) + (value == "cancel")
    assert complaint in capsys.readouterr().err


@pytest.mark.req("T8")
async def test_a_question_is_shown_without_known_secrets() -> None:
    holder = KNOWN.held(lambda: ["hunter2abc"])
    ask, asked = typing("y", "")
    fields = {"x": {"type": "string", "title": "is hunter2abc", "default": "hunter2abc"}}
    schema = {"type": "object", "properties": fields}
    form = FormElicitation(message="hunter2abc?", requested_schema=schema)
    assert (await answer(form, ask))["content"] == {"x": "hunter2abc"}
    assert "hunter2" not in str(asked)
    assert str(asked).count(HIDDEN) == 3
    del holder


async def test_a_question_says_what_may_be_answered() -> None:
    _, (text,) = await fill(
        {"type": "string", "title": "Shade", "description": "!", **COLOURS}, "r"
    )
    assert text == "  !\n  Shade (r (Red)|b (Blue)): "
    _, (text,) = await fill({"type": "integer", "default": 3, "title": "\x1b[2J"}, "")
    assert text == "  \\x1b[2J (integer) [3]: "
    _, (text,) = await fill({"type": "string", "enum": ["Köln", "Zürich"]}, "Köln")
    assert text == "  x (Köln|Zürich): "


async def test_what_is_not_needed_may_be_left_out() -> None:
    ask, asked = typing("y", "", "")
    properties = {"a": {"type": "string"}, "b": {"type": "integer"}}
    form = FormElicitation(message="?", requested_schema={"properties": properties})
    assert await answer(form, ask) == {"action": "accept", "content": {}}
    assert asked[1] == "  a (string) (may be empty): "


@pytest.mark.parametrize(
    ("line", "action"), [("y", "accept"), ("", "decline"), ("no", "decline"), (None, "cancel")]
)
async def test_an_address_is_shown_and_never_opened(line: str | None, action: str) -> None:
    ask, asked = typing(*([] if line is None else [line]))
    request = UrlElicitation(message="Sign in", url="https://x.example/\x1b]8", elicitation_id="1")
    assert await answer(request, ask) == {"action": action}
    assert "https://x.example/\\x1b]8" in asked[0]


# What others wrote in a question

DRAWING = ("\x1b[2J", "\x1b]0;t\x07", "\x9b8m", "\u202e", "\u2066", "\u200b", "\x08", "\r", "\x85")
HOSTILE = "A" + "".join(DRAWING) + "\nholdfast: Password: "


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "title": HOSTILE},
        {"type": "string", "description": HOSTILE},
        {"type": "string", "default": HOSTILE},
        {"type": "string", "enum": [HOSTILE, "b"]},
        {"type": "string", "oneOf": [{"const": HOSTILE, "title": HOSTILE}]},
        {"type": "array", "items": {"enum": [HOSTILE]}},
        {"type": "array", "default": [HOSTILE]},
        {"type": HOSTILE},
        {"type": "string", "title": {"a": HOSTILE}},
        {"type": "string", "minLength": 9, "pattern": HOSTILE},
    ],
    ids=str,
)
async def test_what_a_server_writes_neither_draws_nor_begins_a_line(
    schema: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    _, asked = await fill(schema, "zzz")
    shown = "\n".join(asked) + capsys.readouterr().err
    assert not [mark for mark in DRAWING if mark in shown]
    assert "\nholdfast:" not in shown


@pytest.mark.req("F3")
async def test_a_message_and_an_address_neither_draw_nor_begin_a_line() -> None:
    for request in (
        FormElicitation(message=HOSTILE, requested_schema={}),
        UrlElicitation(message=HOSTILE, url=f"https://x.example/{HOSTILE}", elicitation_id="1"),
    ):
        ask, asked = typing("n")
        await answer(request, ask)
        assert not [mark for mark in DRAWING if mark in asked[0]]
        assert "\nholdfast:" not in asked[0]


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("name", "extra"), [("password", {}), ("x", {"format": "password"}), ("x", {"writeOnly": True})]
)
async def test_the_default_of_a_password_is_not_shown(name: str, extra: dict[str, Any]) -> None:
    ask, asked = typing("y", "")
    schema = {"properties": {name: {"type": "string", "default": "hunter22", **extra}}}
    found = await answer(FormElicitation(message="?", requested_schema=schema), ask)
    assert found["content"] == {name: "hunter22"}
    assert asked[1].endswith("[Enter: the default]: ")
    assert "hunter22" not in asked[1]


@pytest.mark.req("F3")
def test_a_password_is_not_echoed(terminal: Open) -> None:
    properties = {"password": {"type": "string"}, "sure": {"type": "string"}}
    question = {"message": "Who?", "requestedSchema": {"type": "object", "properties": properties}}
    server = puppet(question=question, held=["echo"])
    calling = terminal("call", "echo", "--", *server)
    calling.expect("Answer? [Y/n] ")
    calling.send("y\n")
    calling.expect("password (string)")
    calling.send("hunter22\n")
    calling.expect("sure (string)")
    calling.send("\x03")
    assert calling.end() == 130
    assert "hunter22" not in calling.text


# Inputs of a configuration


@pytest.mark.req("F3", "N2")
@pytest.mark.parametrize("password", [True, False])
def test_an_input_neither_draws_nor_shows_its_password(
    terminal: Open, home: Path, password: bool
) -> None:
    wanted = {
        **{"id": "key", "type": "promptString", "description": f"Key {HOSTILE}"},
        **{"default": f"hunter22{HOSTILE}", "password": password},
    }
    file = home / "config" / "Code" / "User" / "mcp.json"
    file.parent.mkdir(parents=True)
    entry = stdio(DEMO, env={"KEY": "${input:key}"})
    file.write_text(json.dumps({"inputs": [wanted], "servers": {"demo": entry}}))
    calling = terminal("call", "demo.echo", "text=hi")
    shown = calling.expect("the default]: " if password else "Password: ]: ")
    calling.send("typed\n")
    calling.expect("hi\n")
    assert calling.end() == 0
    assert not [mark for mark in DRAWING if mark in shown]
    assert "\nholdfast:" not in shown
    assert ("hunter22" in calling.text) is not password
    assert ("typed" in calling.text) is not password
