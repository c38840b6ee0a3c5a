"""Forms made from schemas, in a real browser: what is sent is what a person sees in them."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

import holdfast
from holdfast.testing import Peer
from tests.view.test_live_page import LivePage, live_page

Json = dict[str, Any]

TEXT: Final[Json] = {"type": "string"}
NODE: Final[Json] = {"type": "object", "properties": {"next": {"$ref": "#/properties/tree"}}}
SHAPES: Final = [
    {"type": "object", "required": [side], "properties": {side: {"type": "number"}}}
    for side in ("radius", "edge")
]

# Of each property: its schema, and values that its field must not change. Some fit the schema and
# some do not: which it is, the library says, and only of what was given.
KEPT: Final[dict[str, tuple[Any, list[Any]]]] = {
    "text": (TEXT, ["one\ntwo", "one\r\ntwo\r", "", " x ", 5, None, ["x"], "\u2028\u0000"]),
    "short": ({**TEXT, "maxLength": 9}, ["a\nb", None]),
    "secret": ({**TEXT, "writeOnly": True}, ["-----BEGIN\nKEY-----\n", None]),
    "date": ({**TEXT, "format": "date"}, ["2026-02-28", "soon", "2026-02-31", None]),
    "time": ({**TEXT, "format": "time"}, ["12:00:00Z", "noon"]),
    "number": ({"type": "number"}, [0, -1.5, 1e300, 2**70, "5", "x", True, None]),
    "choice": ({"enum": [None, "1", 1, "a", {"k": [1]}]}, [None, "1", 1, {"k": [1]}, "other"]),
    "constant": ({"const": None}, [None, 1]),
    "yes": ({"type": "boolean"}, [True, False, None, "true"]),
    "boxes": (
        {"type": "array", "items": {"enum": ["a", "b", 1, "1"]}},
        [[], ["b", "a"], ["a", "a"], ["z"], [1], ["1"], None, "a"],
    ),
    "list": (
        {"type": "array", "items": TEXT},
        [[], [""], [None], ["a\nb", 1], "a", {"0": "a"}, None],
    ),
    "pair": ({"type": "array", "prefixItems": [TEXT, {"type": "integer"}]}, [["a", 1], [1, "a"]]),
    "object": (
        {"type": "object", "properties": {"a": {}, "b": TEXT}},
        [{}, {"a": None}, {"a": 1, "c": 2, "__proto__": {"x": 1}}, "a", [1], None],
    ),
    "closed": ({**NODE, "additionalProperties": False}, [{"other": 1}, {"next": {"next": None}}]),
    "free": ({"type": "object"}, [{}, {"a": [1, {"b": None}]}, None, "a"]),
    "map": (
        {"type": "object", "additionalProperties": {"type": "integer"}},
        [{}, {"": 1, "x": None, "__proto__": 3}, {"a": "b"}, [1]],
    ),
    "patterns": (
        {"patternProperties": {"^x-": TEXT}, "additionalProperties": False},
        [{"x-a": "1"}, {"other": 1}],
    ),
    "several": ({"type": ["integer", "string", "null"]}, ["5", 5, None, 1.5, [1]]),
    "either": ({"oneOf": [TEXT, {"type": "array", "items": TEXT}]}, ["a", ["a"], 1, None]),
    "maybe": ({"anyOf": [TEXT, {"type": "null"}], "default": None}, ["a", None, "", 1]),
    "shape": ({"oneOf": SHAPES}, [{"radius": 1}, {"edge": 2}, {"side": 3}, None, "round"]),
    "tree": (NODE, [{"next": {"next": {"next": {"next": {"next": {}}}}}}, {"next": None}]),
    "any": ({}, [None, False, 0, "", "null", [], {"a": None}]),
    "all": (True, [None, "a"]),
}


async def as_written(page: LivePage, values: Json) -> Any:
    """Give a form its values as JSON, and return the JSON that it makes of its fields then."""
    tab = page.tab
    await page.press("as JSON", ".call-form")
    await tab.ask(f"document.querySelector('.raw').value = {json.dumps(json.dumps(values))}")
    await page.press("as a form", ".call-form")
    await page.press("as JSON", ".call-form")
    text = await tab.ask("document.querySelector('.raw').value")
    await page.press("as a form", ".call-form")
    return json.loads(text)


@pytest.mark.req("W3")
@pytest.mark.long
async def test_what_a_form_is_given_it_gives_back(devtools: str) -> None:
    peer = Peer()
    properties = {name: schema for name, (schema, _) in KEPT.items()}
    peer.tool("all", input_schema={"type": "object", "properties": properties})(lambda **_: "")
    async with live_page(devtools, lambda _: [holdfast.connect(peer, name="peer")]) as page:
        await page.choose_tool("all")
        changed: Json = {}
        for turn in range(max(len(values) for _, values in KEPT.values())):
            written = {
                name: values[turn] for name, (_, values) in KEPT.items() if turn < len(values)
            }
            read = await as_written(page, written)
            changed |= {
                f"{name} {json.dumps(value)}": read.get(name, "left out")
                for name, value in written.items()
                if json.dumps(read.get(name, ...), default=str) != json.dumps(value)
            }
            assert read.keys() <= written.keys()
        assert changed == {}
        # What no form can show is not turned into one.
        await page.press("as JSON", ".call-form")
        await page.tab.ask("document.querySelector('.raw').value = '[1]'")
        await page.press("as a form", ".call-form")
        await page.tab.until("document.querySelector('.form > .field-fault').innerText !== ''")
        assert await page.tab.ask("document.querySelector('.raw').value") == "[1]"
        assert page.faults() == []


TYPED: Final[Json] = {
    "type": "object",
    "required": ["unnamed", "level"],
    "properties": {
        "level": {"enum": [None, 1, "1"]},
        "note": TEXT,
        "pin": {**TEXT, "writeOnly": True},
        "tags": {"type": "array", "items": TEXT},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "any": {},
        "width": {"type": ["string", "integer"]},
        "at": {**TEXT, "format": "time", "default": "12:00:00Z"},
        "day": {**TEXT, "format": "date", "default": "today"},
        "maybe": {"anyOf": [TEXT, {"type": "null"}], "default": None},
    },
}


@pytest.mark.req("W3")
@pytest.mark.long
async def test_what_a_person_enters_is_what_is_sent(devtools: str) -> None:
    calls: list[Any] = []
    peer = Peer()
    peer.tool("typed", input_schema=TYPED)(lambda **values: calls.append(values))
    peer.tool("nothing", input_schema={"type": "object"})(lambda **values: calls.append(values))
    async with live_page(devtools, lambda _: [holdfast.connect(peer, name="peer")]) as page:
        tab = page.tab
        await page.choose_tool("typed")
        # Two choices with the same words are told apart.
        choices = "[...document.querySelectorAll('.call-form select')][0]"
        words = await tab.ask(f"[...{choices}.options].map(option => option.text)")
        assert words == ["–", "null", "1", '"1"']
        await tab.ask(f"{choices}.selectedIndex = 1")
        # What is required and has no schema has a field as well.
        await page.fill("unnamed", '{"a": null}')
        await page.fill("note", "first\nsecond")
        await page.fill("any", "null")
        await page.fill("pin", "")
        await tab.ask("document.execCommand('insertText', false, 'seed')")
        # An item that is added and left empty is the empty text.
        await page.press("+ add", ".call-form")
        for name in ("k", "k"):
            await page.press("+ add a name", ".call-form")
            await tab.type(name)
        await tab.ask("document.querySelector('.alternatives select').value = 'integer'")
        await tab.ask("document.querySelector('.alternatives select').onchange()")
        await tab.ask("document.querySelector('.alternatives input').focus()")
        await tab.type("7")
        await page.press("Call", ".call-form")
        fault = "(document.querySelector('.map .field-fault')?.innerText ?? '')"
        assert "twice" in await tab.until(f"{fault} !== '' && {fault}")
        await tab.ask("document.querySelector('.map .remove').click()")
        await page.press("Call", ".call-form")
        await tab.until("document.getElementById('outcome').innerText.includes('ok')")
        assert calls == [
            {
                "unnamed": {"a": None},
                "level": None,
                "note": "first\nsecond",
                "pin": "seed",
                "tags": [""],
                "labels": {"k": ""},
                "any": None,
                "width": 7,
                "at": "12:00:00Z",
            }
        ]
        await page.choose_tool("nothing")
        assert "nothing to fill in" in await tab.until(
            "document.querySelector('#detail h2')?.innerText.startsWith('nothing')"
            " && document.querySelector('.call-form').innerText"
        )
        assert page.faults() == []


SECRETS: Final[Json] = {
    "type": "object",
    "properties": {
        "user": TEXT,
        "pin": {**TEXT, "writeOnly": True},
        "deep": {"type": "object", "properties": {"password": TEXT}},
    },
}


@pytest.mark.req("W3")
@pytest.mark.long
async def test_a_call_that_is_edited_never_sends_what_the_trace_has_for_a_secret(
    devtools: str,
) -> None:
    calls: list[Any] = []
    peer = Peer()
    peer.tool("login", input_schema=SECRETS)(lambda **values: calls.append(values))
    async with live_page(devtools, lambda _: [holdfast.connect(peer, name="peer")]) as page:
        tab = page.tab
        await page.choose_tool("login")
        for name, text in (("user", "ada"), ("pin", "4711-0815"), ("password", "hunter2-x")):
            await page.fill(name, text)
        await page.press("Call", ".call-form")
        await page.press("Show it in the trace", "#outcome")
        await page.press("Edit", "#detail")
        await page.fill("user", "eve")
        await page.press("Call", ".call-form")
        faults = "[...document.querySelectorAll('.bad > .field-fault')].map(node => node.innerText)"
        shown = await tab.until(f"{faults}.length === 2 && {faults}")
        assert all("give it again" in fault for fault in shown)
        assert len(calls) == 1
        await page.fill("pin", "1234-5678")
        await page.fill("password", "correct horse")
        await page.press("Call", ".call-form")
        await tab.until("document.getElementById('outcome')?.innerText.includes('ok')")
        given = {"user": "eve", "pin": "1234-5678", "deep": {"password": "correct horse"}}
        assert calls[1:] == [given]
        assert page.faults() == []
