"""The live page in a real browser: fed, calling, asked, and over a server that dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.testing import Peer
from holdfast.trace.format import Line, Reading
from holdfast.view.feed import Feed, FeedRecorder
from holdfast.view.live import LiveServer
from holdfast.view.questions import PageQuestions
from holdfast.view.workbench import Workbench
from tests.view.hostile import HOSTILE, hostile_trace
from tests.view.sample import png
from tools.chromium import Tab, new_tab

READY = "document.body.dataset.ready === 'true'"
SHOWN = "document.getElementById('shown').textContent"
DETAIL = "document.getElementById('detail').innerText"
PILL = "document.getElementById('live').innerText"
ROWS = "[...document.querySelectorAll('#space .row')].map(row => row.innerText)"
ASKED = "document.getElementById('questions').innerText"


class LivePage:
    """A live page over some clients, in a browser."""

    def __init__(self, tab: Tab, feed: Feed, server: LiveServer) -> None:
        self.tab, self.feed, self.server = tab, feed, server

    async def open(self) -> None:
        await self.tab.open(self.server.url)
        await self.tab.until(READY)

    async def choose_tool(self, name: str) -> None:
        await self.tab.until("!document.getElementById('tab-call').hidden")
        await self.tab.ask("document.getElementById('tab-call').click()")
        row = "[...document.querySelectorAll('.tool-row')]"
        found = f"{row}.find(node => node.querySelector('b').innerText === {json.dumps(name)})"
        await self.tab.until(found)
        await self.tab.ask(f"{found}.click()")

    async def fill(self, name: str, value: str, place: str = ".call-form") -> None:
        """Write into the field of this name, as a person does."""
        field = f"[...document.querySelectorAll('{place} .field')]"
        found = f"{field}.find(node => node.querySelector('label b')?.innerText === '{name}')"
        await self.tab.until(found)
        await self.tab.ask(f"{found}.querySelector('input, textarea, select').focus()")
        await self.tab.ask(f"{found}.querySelector('input, textarea')?.select()")
        await self.tab.type(value)

    async def press(self, words: str, place: str = "body") -> None:
        """Press the button with these words, once it is there."""
        buttons = f"[...document.querySelectorAll({json.dumps(place + ' button')})]"
        found = f"{buttons}.find(node => node.innerText === {json.dumps(words)})"
        await self.tab.until(found)
        await self.tab.ask(f"{found}.click()")

    def faults(self) -> list[Any]:
        """Return what went wrong in the page: exceptions, refused content, requests, dialogs."""
        urls = [event["request"]["url"] for event in self.tab.told("Network.requestWillBeSent")]
        return [
            *self.tab.told("Runtime.exceptionThrown"),
            *self.tab.told("Page.javascriptDialogOpening"),
            *(log for log in self.tab.told("Log.entryAdded") if log["entry"]["level"] != "verbose"),
            *(url for url in urls if not url.startswith((self.server.url, "data:", "blob:"))),
        ]


@asynccontextmanager
async def live_page(
    devtools: str, connect: Callable[[PageQuestions], list[holdfast.Client]]
) -> AsyncIterator[Any]:
    feed = Feed("live", lambda: 0.0)
    questions = PageQuestions(feed.wake)
    recorder = FeedRecorder(feed, asyncio.get_running_loop())
    clients = connect(questions)
    for client in clients:
        recorder.watch(client)
    bench = Workbench(clients)
    server = LiveServer(feed, bench, questions)
    await server.start()
    try:
        async with new_tab(devtools) as tab:
            await tab.resize(1280, 800)
            bench.open()
            page = LivePage(tab, feed, server)
            await page.open()
            yield page
    finally:
        await page.server.close()
        await bench.close()
        recorder.close()


def demo(questions: PageQuestions) -> list[holdfast.Client]:
    command = [sys.executable, "-m", "holdfast.demo.server"]
    handlers = questions.handlers(lambda: "demo")
    backoff = holdfast.Backoff(first=0.1, max=0.1)
    return [holdfast.connect(command, name="demo", handlers=handlers, backoff=backoff)]


def child(words: str) -> int:
    """Return the number of the process that this one has started with these words."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                command = (folder / "cmdline").read_text()
            except OSError:
                continue
            if parent == os.getpid() and words in command:
                return int(folder.name)
    raise AssertionError(f"no child with {words}")


@pytest.mark.req("W3")
@pytest.mark.long
async def test_a_server_is_killed_and_comes_back_while_the_page_looks_on(devtools: str) -> None:
    async with live_page(devtools, demo) as page:
        tab: Tab = page.tab
        assert await tab.until(f"{PILL} === 'live' && {PILL}")
        await tab.until(f"{ROWS}.some(row => row.includes('initializing → ready'))")
        # A wrong value is refused beside its field, and nothing is sent.
        await page.choose_tool("add")
        await page.fill("a", "many")
        await page.fill("b", "40")
        await page.press("Call", ".call-form")
        fault = "document.querySelector('.field.bad .field-fault')?.innerText ?? ''"
        assert "must be number" in await tab.until(fault)
        assert not any(line.method == "tools/call" for line in page.feed.lines())
        await page.fill("a", "2")
        await page.press("Call", ".call-form")
        await tab.until(f"{DETAIL}.includes('sum: 42')")
        # A call that waits, and is cancelled by hand.
        await page.choose_tool("sleep")
        await page.fill("seconds", "50")
        await page.press("Call", ".call-form")
        await page.press("Cancel", "#outcome")
        await tab.until(f"{DETAIL}.toLowerCase().includes('cancelled')")
        # One under way when the server is killed may have run.
        await page.press("Call", ".call-form")
        await tab.until("[...document.querySelectorAll('#outcome button')].length > 0")
        await page.fill("seconds", "7")
        os.kill(child("holdfast.demo.server"), signal.SIGKILL)
        label = "document.getElementById('labels').innerText"
        await tab.until(f"/[2-9] links/.test({label})")
        # Whoever fills a form in meanwhile goes on where they were.
        await tab.type("5")
        assert await tab.ask("document.activeElement.value") == "75"
        await tab.ask("document.activeElement.blur()")
        await tab.press("1")
        await tab.until(f"{ROWS}.some(row => row.includes('ready → backoff'))")
        state = "document.querySelector('#labels svg')?.getAttribute('aria-label')"
        await tab.until(f"{state} === 'ready'")
        await tab.press("/")
        await tab.ask("document.getElementById('query').select()")
        await tab.type("status:unknown tool:sleep")
        await tab.until(f"{SHOWN}.startsWith('1 of')")
        await tab.press("Escape")
        await tab.press("j")
        await tab.until(f"{DETAIL}.includes('May have run')")
        await tab.until(f"{DETAIL}.includes('killed by SIGKILL after the call had been sent.')")
        # What is chosen ends the following; a press resumes it.
        await tab.until("!document.getElementById('follow').hidden")
        await tab.ask("document.getElementById('follow').click()")
        await tab.until("document.getElementById('follow').hidden")
        assert page.faults() == []


@pytest.mark.req("W3")
@pytest.mark.long
async def test_the_address_of_a_live_page_is_read_before_it_is_written(devtools: str) -> None:
    async with live_page(devtools, demo) as page:
        tab: Tab = page.tab
        await page.choose_tool("echo")
        for view, panel in (("call", ".tools"), ("stats", ".stats")):
            await tab.open("about:blank")
            await tab.open(f"{page.server.url}#dark&{view}&q=kind%3Astate")
            await tab.until(READY)
            await tab.until(f"document.querySelector('{panel}')")
            assert await tab.ask("document.documentElement.style.colorScheme") == "dark"
            assert await tab.ask("document.getElementById('query').value") == "kind:state"
            assert await tab.ask("location.hash") == f"#dark&{view}&q=kind%3Astate"


@pytest.mark.req("W3")
@pytest.mark.long
async def test_questions_are_answered_in_the_page_and_a_call_is_sent_again(devtools: str) -> None:
    async with live_page(devtools, demo) as page:
        tab: Tab = page.tab
        await page.choose_tool("ask_name")
        await page.press("Call", ".call-form")
        assert "demo asks" in await tab.until(f"{ASKED}.includes('What is your name?') && {ASKED}")
        # A call that the server asks back for is under way, though its first request was answered.
        outcome = "document.getElementById('outcome').innerText"
        shown = await tab.until(f"{outcome}.includes('asks back') && {outcome}")
        assert "Cancel" in shown
        assert "Send again" not in shown
        await page.press("Answer", ".question")
        fault = "(document.querySelector('.question .field-fault')?.innerText ?? '')"
        assert "required" in await tab.until(f"{fault}.includes('required') && {fault}")
        await page.fill("name", "Ada", ".question")
        await page.press("Answer", ".question")
        await tab.until(f"{DETAIL}.includes('Hello, Ada!')")
        await tab.until("document.getElementById('questions').hidden")
        # In the place of a model: with words, or not at all.
        await page.choose_tool("summarise")
        await page.fill("text", "a long story")
        await page.press("Call", ".call-form")
        await tab.until(f"{ASKED}.includes('a long story')")
        await tab.ask("document.querySelector('.question textarea').focus()")
        await tab.type("it was long")
        await page.press("Answer", ".question")
        await tab.until(f"{DETAIL}.includes('it was long')")
        await page.press("Call", ".call-form")
        await tab.until(f"{ASKED}.includes('a long story')")
        await page.press("Decline", ".question")
        await tab.until("document.getElementById('questions').hidden")
        await page.choose_tool("echo")
        await page.fill("text", "once more")
        await page.press("Call", ".call-form")
        await page.press("Show it in the trace", "#outcome")
        await page.press("Send again", "#detail")
        calls = "[...document.querySelectorAll('#space .row .what b')]"
        await tab.until(f"{calls}.filter(node => node.innerText === 'echo').length === 2")
        await tab.until(f"{ROWS}.filter(row => row.includes('once more')).length === 2")
        # Edited after a reload, when no form is there yet.
        await page.open()
        await tab.ask("document.querySelector('#space .row:last-child').click()")
        await page.press("Edit", "#detail")
        assert (
            await tab.until("document.querySelector('.call-form textarea')?.value") == "once more"
        )
        await page.choose_tool("countdown")
        await page.fill("steps", "100")
        await page.fill("seconds", "0.1")
        await page.press("Call", ".call-form")
        await tab.until("/progress \\d+ of 100/.test(document.getElementById('outcome').innerText)")
        await page.press("Cancel", "#outcome")
        assert page.faults() == []


NESTED = {
    "type": "object",
    "required": ["who", "tags"],
    "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string"}}}},
    "properties": {
        "who": {"$ref": "#/$defs/person"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "level": {"enum": ["low", "high"], "default": "high"},
        "loud": {"type": "boolean"},
        "size": {"oneOf": [{"type": "integer", "title": "exact"}, {"type": "string"}]},
        "file": {"type": "string", "contentEncoding": "base64"},
        "pin": {"type": "string", "writeOnly": True},
        "extra": {},
    },
}


SHAPES = [
    {
        "type": "object",
        "required": ["kind", side],
        "properties": {"kind": {"const": kind}, side: {}},
    }
    for kind, side in (("circle", "r"), ("square", "a"))
]
ODD = {
    "type": "object",
    "required": ["labels", "none"],
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    "properties": {
        "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
        "colours": {"type": "array", "items": {"enum": ["red", "green", "blue"]}},
        "big": {"type": "integer", "default": 12345678901234567890},
        "empty": {"type": "string", "default": ""},
        "none": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "never": {"anyOf": [{"type": "null"}]},
        "shape": {"oneOf": SHAPES},
        "tree": {"$ref": "#/$defs/node"},
    },
}
# Each of these would be a million fields, or none at all.
ENDLESS: dict[str, Any] = {
    "self": {"allOf": [{"$ref": "#"}] * 50, "properties": {"x": {"$ref": "#"}}},
    "wide": {
        "$defs": {
            f"d{n}": {"properties": {name: {"$ref": f"#/$defs/d{n + 1}"} for name in "abcdefghij"}}
            for n in range(9)
        },
        "properties": {"x": {"$ref": "#/$defs/d0"}},
    },
}


# Each of these would take a minute to lay out, field by field.
FLOODS: dict[str, Any] = {
    "fields": {f"p{n}": {"type": "string"} for n in range(10_000)},
    "choices": {f"e{n}": {"enum": [f"v{m}" for m in range(2000)]} for n in range(60)},
    "items": {
        "list": {"type": "array", "items": {"type": "string"}, "default": ["x"] * 20_000},
        "map": {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "default": {f"k{n}": n for n in range(10_000)},
        },
    },
}


@pytest.mark.req("W3")
@pytest.mark.long
async def test_a_schema_that_floods_the_form_is_given_as_json(devtools: str) -> None:
    calls: list[dict[str, Any]] = []
    peer = Peer()
    for name, properties in FLOODS.items():
        schema = {"type": "object", "properties": properties}
        peer.tool(name, input_schema=schema)(lambda **values: calls.append(values))
    proto = {"allOf": [{"properties": {"__proto__": {"type": "string"}, "a": {"type": "string"}}}]}
    peer.tool("proto", input_schema={"type": "object", **proto})(lambda **v: calls.append(v))
    async with live_page(devtools, lambda _: [holdfast.connect(peer, name="peer")]) as page:
        tab: Tab = page.tab
        for name in FLOODS:
            await page.choose_tool(name)
            await tab.until(f"document.querySelector('#detail h2')?.innerText.startsWith('{name}')")
            assert await tab.ask("document.querySelectorAll('#detail *').length") < 40_000
        await page.press("Call", ".call-form")
        await tab.until("document.getElementById('outcome').innerText.includes('ok')")
        defaults = {name: part["default"] for name, part in FLOODS["items"].items()}
        assert calls == [defaults]
        # What has no field of its own is an object of JSON beside the fields.
        await page.choose_tool("fields")
        await page.fill("p3", "three")
        await page.fill("…", '{"p9999": "last"}')
        await page.press("Call", ".call-form")
        await tab.until("document.getElementById('outcome').innerText.includes('ok')")
        assert calls[-1] == {"p3": "three", "p9999": "last"}
        await page.choose_tool("proto")
        await page.fill("__proto__", "mine")
        await page.press("Call", ".call-form")
        await tab.until("document.getElementById('outcome').innerText.includes('ok')")
        assert calls[-1] == {"__proto__": "mine"}
        assert page.faults() == []


async def fill_in_the_odd(page: LivePage) -> None:
    """Fill in rows of names, boxes, a form among several and a part of a tree."""
    tab = page.tab
    await page.choose_tool("odd")
    for number, name in enumerate(("one", "two/three")):
        await page.press("+ add a name")
        await tab.until(f"document.querySelectorAll('.map').length === {number + 1}")
        await tab.type(name)
        row = f"document.querySelectorAll('.map')[{number}]"
        await tab.ask(f"{row}.querySelector(':scope > .field input').focus()")
        await tab.ask(f"{row}.querySelector(':scope > .field input').value = '{number or 'x'}'")
    await tab.ask("document.querySelectorAll('.check input')[1].click()")
    await page.press("+ fill it in")


@pytest.mark.req("W3")
@pytest.mark.long
async def test_a_form_has_what_its_schema_has_and_json_is_the_way_out(
    devtools: str, tmp_path: Path
) -> None:
    calls: list[Any] = []
    peer = Peer()

    @peer.tool("shape", input_schema=NESTED)
    def shape(**values: Any) -> Any:
        calls.append(values)
        image = {"type": "image", "mimeType": "image/png", "data": png()}
        return {"content": [image]}

    odd_calls: list[Any] = []
    peer.tool("odd", input_schema=ODD)(lambda **values: odd_calls.append(values))
    for name, schema in ENDLESS.items():
        peer.tool(name, input_schema={"type": "object", **schema})(lambda: "")

    async with live_page(devtools, lambda _: [holdfast.connect(peer, name="peer")]) as page:
        tab: Tab = page.tab
        await page.choose_tool("shape")
        await page.fill("name", "Ada")
        await page.press("+ add")
        await page.press("+ add")
        items = "document.querySelectorAll('.item textarea')"
        for number, text in enumerate(("red", "blue")):
            await tab.ask(f"{items}[{number}].focus()")
            await tab.type(text)
        await tab.ask("document.querySelector('.item .remove').click()")
        await tab.until(f"{items}.length === 1 && {items}[0].value === 'blue'")
        await page.fill("size", "")
        await tab.ask("document.querySelector('.alternatives input').focus()")
        await tab.type("12")
        chosen = tmp_path / "hello.bin"
        chosen.write_bytes(b"\x00hello")
        node = await tab.send(
            "Runtime.evaluate", expression="document.querySelector('[type=file]')"
        )
        object_id = node["result"]["objectId"]
        await tab.send("DOM.setFileInputFiles", files=[str(chosen)], objectId=object_id)
        await tab.until("document.querySelector('.with-file textarea').value")
        secret = "document.querySelector('input[type=password]')"
        assert await tab.ask(f"{secret} !== null")
        await page.press("Call", ".call-form")
        await tab.until("document.querySelector('canvas.picture')?.width === 16")
        assert calls == [
            {
                "who": {"name": "Ada"},
                "tags": ["blue"],
                "level": "high",
                "size": 12,
                "file": "AGhlbGxv",
            }
        ]
        # As JSON, and back.
        await page.press("as JSON")
        assert json.loads(await tab.ask("document.querySelector('.raw').value")) == calls[0]
        await tab.ask("document.querySelector('.raw').value = '{\"who\": 1, \"tags\": [true]}'")
        await page.press("Call", ".call-form")
        general = "document.querySelector('.form > .field-fault').innerText"
        text = await tab.until(f"{general}.includes('/who') && {general}")
        assert "/tags/0" in text
        await page.press("as a form")
        assert len(calls) == 1
        await fill_in_the_odd(page)
        await page.press("Call", ".call-form")
        fault = "document.querySelector('.map > .field.bad .field-fault')?.innerText ?? ''"
        assert "must be integer" in await tab.until(fault)
        await tab.ask("document.querySelector('.map > .field input').value = '7'")
        await page.press("Call", ".call-form")
        await tab.until("document.querySelector('#outcome .tree')")
        assert odd_calls == [
            {
                "labels": {"one": 7, "two/three": 1},
                "colours": ["green"],
                "big": 12345678901234567890,
                "empty": "",
                "none": None,
                "tree": {"next": {}},
            }
        ]
        for name in ENDLESS:
            await page.choose_tool(name)
            await tab.until(f"document.querySelector('#detail h2').innerText.startsWith('{name}')")
            count = await tab.ask("document.querySelectorAll('.call-form .field').length")
            assert 1 < count < 1000
        assert page.faults() == []


@pytest.mark.req("W3")
@pytest.mark.long
async def test_a_live_page_is_saved_as_a_file(devtools: str, tmp_path: Path) -> None:
    async with live_page(devtools, lambda _: [holdfast.connect(Peer(), name="peer")]) as page:
        tab: Tab = page.tab
        await tab.until(f"{ROWS}.some(row => row.includes('initializing → ready'))")
        await tab.ask(
            "window.saved = {}; URL.createObjectURL = blob => {"
            " blob.text().then(text => { saved.text = text; }); return '#'; };"
            "HTMLAnchorElement.prototype.click = function () { saved.name = this.download; }"
        )
        await tab.ask("document.getElementById('save').click()")
        saved = await tab.until("saved.text && saved.name && saved")
        assert saved["name"] == "live.html"
        await tab.until("!document.getElementById('save').disabled")
        assert page.faults() == []
        # Where the program has ended there is nothing to be had.
        await page.server.close()
        await tab.until("document.getElementById('save').disabled")
        file = tmp_path / saved["name"]
        file.write_text(saved["text"], encoding="utf-8")
        await tab.open(file.as_uri())
        await tab.until(f"{READY} && {ROWS}.some(row => row.includes('initializing → ready'))")
        assert await tab.ask("document.getElementById('save').hidden")
        banner = "document.getElementById('banner').innerText"
        assert "ends with 1 open connection" in await tab.ask(banner)


@pytest.mark.req("W3")
@pytest.mark.long
async def test_a_fault_of_a_whole_form_is_brought_into_sight(devtools: str) -> None:
    peer = Peer()
    fields = {f"field{n}": {"type": "string"} for n in range(30)}
    schema = {"type": "object", "properties": fields, "minProperties": 2}
    peer.tool("few", input_schema=schema)(lambda **_: "")
    async with live_page(devtools, lambda _: [holdfast.connect(peer, name="peer")]) as page:
        await page.choose_tool("few")
        await page.press("Call", ".call-form")
        fault = "document.querySelector('.form .field-fault:not([hidden])')"
        seen = "(box => box && box.top >= 0 && box.bottom <= innerHeight)"
        await page.tab.until(f"{seen}({fault}?.getBoundingClientRect())")
        assert "properties" in await page.tab.ask(f"{fault}.innerText")
        # Who uses the keyboard is in the form again.
        await page.tab.until("document.querySelector('.form').contains(document.activeElement)")
        assert page.faults() == []


@pytest.mark.req("W3")
@pytest.mark.long
async def test_a_page_that_loses_its_feed_says_so_and_misses_nothing(devtools: str) -> None:
    def notes(numbers: range) -> list[Line]:
        return [Line(t=n / 10, kind="notification", method=f"note{n}", server="x") for n in numbers]

    async with live_page(devtools, lambda _: [holdfast.connect(Peer(), name="x")]) as page:
        tab: Tab = page.tab
        page.feed.add(notes(range(50)))
        await tab.until(f"{ROWS}.some(row => row.includes('note49'))")
        # The moment that the lanes have reached is marked in the colour of what goes on.
        accent = "at % 4 === 0 && red === 10 && data[at + 1] === 107 && data[at + 2] === 94"
        is_going_on = f"""
            (({{ data }}) => [...data].some((red, at) => {accent}))(
              (canvas => canvas.getContext("2d").getImageData(0, 33, canvas.width, 1))(
                document.getElementById("canvas")))
        """
        await tab.until(is_going_on)
        before = page.server
        port = int(before.url.split(":")[2].split("/")[0])
        await before.close()
        await tab.until(f"{PILL}.startsWith('no feed since')")
        banner = "document.getElementById('banner')"
        assert "has ended, or does not answer" in await tab.ask(f"{banner}.innerText")
        await tab.until(f"!{is_going_on}")
        assert await tab.ask("document.getElementById('questions').inert")
        page.feed.add(notes(range(50, 80)))
        page.server = LiveServer(page.feed)
        page.server._token = before._token
        await page.server.start(port)
        await tab.until(f"{PILL} === 'live' && !document.getElementById('questions').inert")
        await tab.until(f"{ROWS}.some(row => row.includes('note79'))")
        count = len(page.feed)
        await tab.until(f"document.getElementById('meta').innerText.includes('{count} messages')")
        await tab.until(f"{banner}.hidden")
        # Who looks at the whole run sees what comes, too.
        await tab.ask("document.querySelector('#space .row').click()")
        await tab.ask("location.hash = '#wire'")
        page.feed.add(notes(range(250, 251)))
        await tab.until(f"{SHOWN} === '{count + 1} of {count + 1} messages'")
        assert "z=" not in await tab.ask("location.hash")


@pytest.mark.req("W3")
@pytest.mark.long
async def test_what_comes_takes_nothing_from_who_reads_or_presses(devtools: str) -> None:
    async with live_page(devtools, demo) as page:
        tab: Tab = page.tab
        await page.choose_tool("countdown")
        await page.fill("steps", "1000")
        await page.fill("seconds", "0.1")
        await page.press("Call", ".call-form")
        await page.press("Show it in the trace", "#outcome")
        await tab.resize(1280, 570)
        folded = "document.querySelector('#detail details')"
        await tab.until(f"{folded} !== null")
        await tab.ask("document.getElementById('detail').scrollTop = 60")
        cancel = "[...document.querySelectorAll('#detail button')]"
        cancel += ".find(node => node.innerText === 'Cancel')"
        await tab.ask(f"{cancel}.focus({{ preventScroll: true }})")
        ticks = "document.querySelector('.small-labels').innerText"
        before = await tab.until(f"{ticks}.includes('report') && {ticks}")
        await tab.until(f"{ticks} !== {json.dumps(before)}")
        assert await tab.ask("document.activeElement.innerText") == "Cancel"
        assert await tab.ask("document.getElementById('detail').scrollTop") == 60
        # Reports come ten times a second; a person holds a button down for longer.
        await tab.resize(1280, 800)
        x, y = await tab.ask(f"(box => [box.x + 5, box.y + 5])(({cancel}).getBoundingClientRect())")
        await tab.mouse("mousePressed", x, y, button="left", clickCount=1)
        count = len(page.feed)
        while len(page.feed) < count + 5:
            await tab.ask("new Promise(requestAnimationFrame)")
        await tab.mouse("mouseReleased", x, y, button="left", clickCount=1)
        await tab.until(f"{DETAIL}.toLowerCase().includes('cancelled')")
        # Whoever went to a chip by the keyboard is there still.
        await tab.ask("document.querySelector('.chip').focus()")
        await page.press("Send again", "#detail")
        await tab.until(f"{DETAIL}.includes('Waiting')")
        assert await tab.ask("document.activeElement.className") != ""


@pytest.mark.req("W3")
@pytest.mark.long
async def test_a_form_is_filled_in_by_the_keyboard(devtools: str) -> None:
    calls: list[dict[str, Any]] = []
    peer = Peer()
    deep = {"properties": {"kids": {"type": "array", "items": {"type": "integer"}}}}
    properties: dict[str, Any] = {
        "tags": {"type": "array", "description": "What it is about", "items": {"type": "string"}},
        "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
        "deep": {"type": "object", "properties": {"er": {"type": "object", **deep}}},
    }
    peer.tool("say", input_schema={"type": "object", "properties": properties})(
        lambda **values: calls.append(values)
    )
    async with live_page(devtools, lambda _: [holdfast.connect(peer, name="peer")]) as page:
        tab: Tab = page.tab
        focus = "document.activeElement"
        await page.choose_tool("say")
        for word in ("one", "two"):
            await page.press("+ add", ".call-form")
            await tab.type(word)
        assert await tab.ask(f"{focus}.getAttribute('aria-label')") == "tags 2"
        group = "document.querySelector('.call-form [role=group][aria-label=tags]')"
        described = f"{group}.getAttribute('aria-describedby').split(' ')[0]"
        assert await tab.ask(f"document.getElementById({described}).innerText") == (
            "What it is about"
        )
        await tab.ask("document.querySelector('[aria-label=\"Remove tags 1\"]').click()")
        assert await tab.ask(f"{focus}.getAttribute('aria-label')") == "Remove tags 1"
        await page.press("+ add a name", ".call-form")
        await tab.type("width")
        # To leave the name must not take away the field that one goes to.
        await tab.ask("window.value = document.querySelector('.map .field input'), value.focus()")
        assert await tab.ask(f"{focus} === value && value.ariaLabel") == "width"
        await tab.type("7")
        await page.press("+ fill it in", ".call-form")
        assert await tab.ask(f"{focus}.innerText") == "+ fill it in"
        await tab.ask(f"{focus}.click()")
        assert await tab.ask(f"{focus}.innerText") == "+ add"
        await tab.ask(f"{focus}.click()")
        assert await tab.ask(f"{focus}.getAttribute('aria-label')") == "kids 1"
        await tab.type("3")
        await page.press("Call", ".call-form")
        await tab.until("document.querySelector('#outcome .tree')")
        assert calls == [{"tags": ["two"], "sizes": {"width": 7}, "deep": {"er": {"kids": [3]}}}]
        said = "document.querySelector('.said').innerText"
        assert (await tab.ask(said)).startswith("ok · ")
        assert page.faults() == []


@pytest.mark.req("W3")
@pytest.mark.long
async def test_tools_that_change_are_asked_for_anew(devtools: str) -> None:
    peer = Peer(versions=["2025-11-25"])
    for name in ("stays", "changes", "goes"):
        peer.tool(name, input_schema={"type": "object", "properties": {"old": {}}})(lambda **_: "")
    async with live_page(devtools, lambda _: [holdfast.connect(peer, name="peer")]) as page:
        tab: Tab = page.tab
        await page.choose_tool("stays")
        await page.fill("old", "1")
        peer.catalog.tools.pop("goes")
        peer.tool("changes", input_schema={"type": "object", "properties": {"new": {}}})(str)
        peer.notify("notifications/tools/list_changed")
        names = "[...document.querySelectorAll('.tool-row b')].map(node => node.innerText).join()"
        await tab.until(f"{names} === 'stays,changes'")
        assert await tab.ask("document.querySelector('.call-form textarea').value") == "1"
        await page.choose_tool("changes")
        label = "document.querySelector('.call-form label b')?.innerText"
        await tab.until(f"{label} === 'new'")
        peer.catalog.tools.pop("changes")
        peer.notify("notifications/tools/list_changed")
        await tab.until(f"{DETAIL}.includes('no such tool any more')")
        assert page.faults() == []


@pytest.mark.req("W3")
@pytest.mark.long
async def test_a_page_that_was_one_too_many_comes_when_there_is_room(
    devtools: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with live_page(devtools, lambda _: [holdfast.connect(Peer(), name="x")]) as page:
        monkeypatch.setattr("holdfast.view.live.MOST_PAGES", 0)
        await page.tab.open("about:blank")
        await page.tab.open(page.server.url)
        await page.tab.until(f"{PILL}.startsWith('no feed since')")
        monkeypatch.undo()
        await page.tab.until(f"{PILL} === 'live'")


async def ask_everything(page: LivePage) -> None:
    """Put each hostile string into each kind of question, and have it shown."""
    questions = page.server._questions
    assert questions is not None
    for start in range(0, len(HOSTILE), 10):
        asking = [
            asyncio.create_task(questions._ask(text, kind, text, schema=schema, url=text))
            for text in HOSTILE[start : start + 10]
            for kind in ("form", "url", "sampling")
            for schema in [{"type": "object", "properties": {text: {"title": text}}}]
        ]
        cards = "document.querySelectorAll('.question').length"
        await page.tab.until(f"{cards} === {len(asking)}")
        for task in asking:
            task.cancel()
        await page.tab.until(f"{cards} === 0")


@pytest.mark.req("W3")
@pytest.mark.long
async def test_whatever_a_server_writes_nothing_runs_in_the_live_page(devtools: str) -> None:
    peer = Peer()
    for number, text in enumerate(HOSTILE):
        schema = {
            "type": "object",
            "description": text,
            "properties": {
                text: {"type": "string", "title": text, "description": text, "default": text},
                "choice": {"enum": [text, "x"], "description": text},
                "deep": {"oneOf": [{"type": "object", "title": text, "properties": {text: {}}}]},
            },
        }
        peer.tool(f"{number} {text}"[:500], description=text, input_schema=schema)(lambda: "")

    async with live_page(devtools, lambda _: [holdfast.connect(peer, name="<b>peer</b>")]) as page:
        tab: Tab = page.tab
        reading = Reading("x")
        lines = reading.lines(hostile_trace().encode().splitlines(keepends=True))
        page.feed.add(lines)
        for name, facts in reading.header.servers.items():
            page.feed.servers[name] = facts
        page.feed.title = HOSTILE[0]
        page.feed.wake()
        for key in "wjjjj]]]2":
            await tab.press(key)
        await tab.until("!document.getElementById('tab-call').hidden")
        await tab.press("3")
        rows = "document.querySelectorAll('.tool-row')"
        await tab.until(f"{rows}.length >= {len(HOSTILE)}")
        for number in range(len(HOSTILE)):
            await tab.ask(f"{rows}[{number}].click()")
        assert await tab.ask("document.querySelectorAll('.call-form .field').length") > 2
        await ask_everything(page)
        assert await tab.ask("window.pwned === undefined")
        foreign = "document.querySelectorAll('img, iframe, object, embed, link, a').length"
        assert await tab.ask(foreign) == 0
        assert page.faults() == []
