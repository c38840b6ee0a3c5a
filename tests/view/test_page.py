"""The page, opened from disk in a real browser."""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.arguments import parse
from holdfast.trace.format import Reading
from holdfast.view.page import build_page
from tests.thorough import THOROUGH, one_in
from tests.view.hostile import HOSTILE, hostile_trace, odd_trace
from tests.view.sample import TraceWriter, bad_day, text_result
from tools.chromium import Tab, new_tab

READY = "document.body.dataset.ready === 'true'"
SHOWN = "document.getElementById('shown').textContent"
DETAIL = "document.getElementById('detail').innerText"
ROWS = "[...document.querySelectorAll('#space .row')].map(row => row.innerText)"


def page_of(text: str, name: str = "run.jsonl") -> str:
    reading = Reading(name)
    return build_page(reading, reading.lines(text.encode().splitlines(keepends=True)))


TAGS = {
    *("div", "span", "b", "i", "p", "h2", "h3", "section", "details", "summary", "button", "br"),
    *("svg", "path", "rect", "circle", "defs", "pattern", "canvas"),
}
"""The elements of which the list and the detail are made."""
LOADING = {"href", "src", "srcset", "srcdoc", "action", "formaction", "data", "poster"}

# Chooses every row, unfolds all of it, and returns what elements and attributes there were. What
# is out of sight is not laid out, which would take most of the time: elements are there as before.
WALK = """
(async () => {
  const { port1, port2 } = new MessageChannel(), tags = new Set(), attributes = new Set();
  const turn = () => new Promise(go => { port1.onmessage = go; port2.postMessage(0); });
  const places = ["detail", "list", "stage", "gutter"].map(id => document.getElementById(id));
  const look = sight => places.forEach(place => { place.style.contentVisibility = sight; });
  const write = history.replaceState.bind(history), chosen = () => address?.match(/m=[0-9]+/)[0];
  let address = location.hash, before;
  history.replaceState = (...facts) => { address = facts[2]; };
  look("hidden");
  do {
    before = chosen();
    do await turn(); while (document.querySelector("#detail .loading"));
    for (let deep = 0; deep < 3; deep++)
      document.querySelectorAll("#detail details").forEach(node => { node.open = true; });
    for (const node of document.querySelectorAll("#detail *, #space *")) {
      tags.add(node.localName);
      for (const name of node.getAttributeNames()) attributes.add(name);
    }
    dispatchEvent(new KeyboardEvent("keydown", { key: "j" }));
  } while (chosen() !== before);
  history.replaceState = write;
  write(null, "", address);
  look("");
  return [[...tags], [...attributes]];
})()
"""


class Browser:
    """A browser with a page of ours."""

    def __init__(self, tab: Tab, folder: Path) -> None:
        self.tab = tab
        self._file = folder / "run.html"

    async def show(
        self, trace: str, fragment: str = "", size: tuple[int, int] = (1440, 900)
    ) -> Tab:
        await self.tab.resize(*size)
        return await self.open(page_of(trace), fragment)

    async def open(self, page: str, fragment: str = "") -> Tab:
        self._file.write_text(page, encoding="utf-8")
        await self.tab.open("about:blank")
        await self.tab.open(f"{self._file.as_uri()}{fragment}")
        await self.tab.until(READY)
        return self.tab

    def faults(self) -> list[Any]:
        """Return what went wrong in the page: exceptions, refused content, requests, dialogs."""
        urls = [event["request"]["url"] for event in self.tab.told("Network.requestWillBeSent")]
        return [
            *self.tab.told("Runtime.exceptionThrown"),
            *self.tab.told("Page.javascriptDialogOpening"),
            *(
                entry
                for entry in self.tab.told("Log.entryAdded")
                if entry["entry"]["level"] != "verbose"
            ),
            *(url for url in urls if not url.startswith((self._file.as_uri(), "data:", "blob:"))),
        ]


@pytest.fixture
async def chrome(devtools: str, tmp_path: Path) -> AsyncIterator[Browser]:
    async with new_tab(devtools) as tab:
        yield Browser(tab, tmp_path)


async def set_query(tab: Tab, text: str) -> None:
    await tab.press("/")
    await tab.ask("document.getElementById('query').select()")
    await tab.type(text)


@pytest.mark.req("W2")
@pytest.mark.long
async def test_the_page_shows_the_trace_and_filters_it(chrome: Browser) -> None:
    tab = await chrome.show(bad_day(30), "#light")
    assert "run.jsonl" in await tab.ask("document.title")
    assert "3 servers" in await tab.ask("document.getElementById('meta').textContent")
    labels = await tab.ask("document.getElementById('labels').innerText")
    assert all(word in labels for word in ("git", "browser", "3 links", "docs", "http"))
    # It begins with the call whose end leaves most open.
    detail = await tab.until(f"{DETAIL}.includes('Pay now') && {DETAIL}")
    for words in ("May have run", "exited with code 137", "What happened next", "Out of memory"):
        assert words in detail

    # What the filter excludes is faint in the lanes: here the junk at 38.8 s.
    junk = """
        ((canvas, copy) => {
          copy.drawImage(canvas, -Math.round(38.8 / (59.81 * 1.012) * canvas.width), -104);
          return [...copy.getImageData(0, 0, 1, 1).data];
        })(document.getElementById("canvas"),
           new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true }))
    """
    assert await tab.ask(junk) == [156, 36, 112, 255]
    await set_query(tab, "status:timeout")
    assert await tab.until(f"{SHOWN}.startsWith('1 of') && {SHOWN}")
    await tab.until(f"({junk})[3] < 100")
    assert "fetch_page" in (await tab.ask(ROWS))[0]
    await set_query(tab, "tool:git_log server:git")
    await tab.until(f"{ROWS}.length && {ROWS}.every(row => row.includes('git_log'))")
    await set_query(tab, "slow:>9s")
    await tab.until(f"{SHOWN}.startsWith('2 of')")
    # Any other word is looked for in the bodies.
    await set_query(tab, "overwritten")
    await tab.until(f"{SHOWN}.startsWith('1 of')")
    assert "git_checkout" in (await tab.ask(ROWS))[0]
    # A value in quotes is one word; a minus excludes.
    await set_query(tab, 'status:"tool error"')
    await tab.until(f"{SHOWN}.startsWith('1 of')")
    await set_query(tab, "-status:ok -kind:state -kind:stderr -method:notifications kind:request")
    await tab.until(f"{SHOWN}.startsWith('6 of')")
    await set_query(tab, "-32602")
    await tab.until(f"{SHOWN}.startsWith('1 of')")
    # An address with a filter begins with the worst that fits.
    await tab.ask("location.hash = '#q=status:timeout'")
    await tab.until(f"{DETAIL}.includes('fetch_page') && !{SHOWN}.includes('hidden')")
    await tab.ask("location.hash = '#q=overwritten'")
    await tab.until(f"{DETAIL}.includes('git_checkout') && !{SHOWN}.includes('hidden')")
    await set_query(tab, "nowhere-to-be-found")
    await tab.until("document.getElementById('space').innerText.includes('Nothing matches')")
    assert chrome.faults() == []


@pytest.mark.req("W2")
async def test_a_misspelt_word_is_marked_and_words_complete(chrome: Browser) -> None:
    tab = await chrome.show(bad_day(10))
    choices = "document.getElementById('choices').innerText"
    await set_query(tab, "stats:error")
    assert "status:error" in await tab.until(f"{choices}.includes('means nothing') && {choices}")
    assert await tab.ask("document.getElementById('query').classList.contains('bad')")
    await chrome.show(bad_day(10), "#q=stats%3Aerror")
    assert await tab.ask("document.getElementById('query').classList.contains('bad')")
    # The empty list offers the word that was meant.
    await tab.ask("document.querySelector('#space .empty button').click()")
    assert await tab.ask("document.getElementById('query').value") == "status:error"
    await tab.until(f"{SHOWN}.startsWith('5 of')")
    await tab.press("Escape")
    await tab.press("?")
    assert "slow:>2s" in await tab.ask("document.querySelector('dialog[open]').innerText")
    await tab.ask("document.getElementById('dialog').close()")
    # A value is marked if no row can have it, and only then.
    for query, count in (("server:it", 0), ("tool:git_logs", 0), ("link:9", 0)):
        await set_query(tab, query)
        assert "fits nothing" in await tab.until(f"{SHOWN}.startsWith('{count} of') && {choices}")
    for query, count in (("status:err", 5), ('status:"may have"', 2), ("slow:>9s", 2)):
        await set_query(tab, query)
        assert "fits nothing" not in await tab.until(
            f"{SHOWN}.startsWith('{count} of') && ({choices} || 'none')"
        )
    await set_query(tab, "tool:brow")
    await tab.until(f"{choices}.includes('tool:browser_click')")
    await tab.press("Tab")
    value = await tab.ask("document.getElementById('query').value")
    assert value.startswith("tool:browser_")


@pytest.mark.req("W2")
@pytest.mark.long
async def test_keys_and_the_mouse_choose_and_the_address_holds_the_view(chrome: Browser) -> None:
    tab = await chrome.show(bad_day(30))
    chosen = "document.querySelector('#space .chosen')?.innerText ?? ''"
    before = await tab.until(chosen)
    await tab.press("j")
    await tab.until(f"({chosen}) !== {json.dumps(before)}")
    await tab.press("]")
    await tab.until(f"({chosen}).includes('browser_snapshot')")
    await tab.press("w")
    await tab.until(f"{SHOWN}.includes('messages')")
    # A range that is drawn in the lanes rules the list.
    everything = await tab.ask(SHOWN)
    box = await tab.ask("document.getElementById('stage').getBoundingClientRect().toJSON()")
    y = box["y"] + 80
    await tab.drag((box["x"] + 100, y), (box["x"] + 300, y))
    await tab.until(f"!document.getElementById('range').hidden && {SHOWN} !== '{everything}'")
    in_range = await tab.ask(SHOWN)
    assert await tab.until(f"{SHOWN}.includes('hidden by the filter or the range')")
    fragment = await tab.ask("location.hash")
    assert "wire" in fragment
    assert "t=" in fragment
    await tab.press("Escape")
    await tab.until("document.getElementById('range').hidden")
    await chrome.show(bad_day(30), fragment)
    assert await tab.ask(SHOWN) == in_range
    # So does a range that is drawn by keys; what is folded into a call is shown by it.
    await chrome.show(bad_day(30), "#m=60")
    assert "hidden by the filter" not in await tab.ask(SHOWN)
    await tab.ask("document.getElementById('stage').focus()")
    await tab.send("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft")
    for _ in range(3):
        await tab.send("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", modifiers=8)
    await tab.until("!document.getElementById('range').hidden && location.hash.includes('t=29.')")
    stage = "document.getElementById('stage')"
    assert " s; " in await tab.ask(f"{stage}.getAttribute('aria-valuetext')")
    for odd in ("length", "-1", "1e9", "constructor"):
        await tab.ask(f"location.hash = '#m={odd}'")
        await tab.until(f"location.hash !== '#m={odd}' && {DETAIL}.includes('Pay now')")
    await tab.press("2")
    await tab.until("!document.getElementById('table').hidden")
    table = await tab.ask("document.getElementById('table').innerText")
    assert "p95" in table
    assert "embed" in table
    tool = "document.querySelector('#detail h2').innerText"
    before = await tab.ask(tool)
    await tab.press("j")
    await tab.until(f"{tool} !== {json.dumps(before)}")
    assert chrome.faults() == []


ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"path": "it's here", "deep": {"n": None, "on": True}, "count": "12", "n": 3, "text": ""},
    # What a command would read as a file, as JSON or as another type; what a shell would run.
    {"a": "@/etc/passwd", "b": "true", "c": "[1]", "d": "-5", "e": " nan", "f": "~/x", "g": "{"},
    {"$(touch pwned)": 1, "a.b": "`id`", "": 2, "-x": "; true", "k:": None},
    {"text": "two\nlines\t$HOME", "seen": "\x1b[201~\r\u202e\U000e0041", "é🚀": ["'", '"', "\\"]},
    {"whole": 12345678901234567890, "small": 0.1, "list": [[1], {"x": -0.5}]},
    {},
)


@pytest.mark.req("W2")
async def test_a_call_is_copied_as_a_command_python_and_json(chrome: Browser) -> None:
    trace = TraceWriter({"python": {"target": "/usr/bin/python -m 'demo server'"}, "g'it": {}})
    servers = ("python", "g'it")
    for number, arguments in enumerate(ARGUMENTS):
        for place, server in enumerate(servers):
            trace.tool(number + place / 2, server, "log", arguments)
    tab = await chrome.show(trace.text())
    await tab.ask(
        "window.copied = []; Object.defineProperty(navigator, 'clipboard', "
        "{value: {writeText: async text => { copied.push(text); }}})"
    )
    script = []
    for number in range(len(ARGUMENTS) * 2):
        arguments = ARGUMENTS[number // 2]
        await tab.ask(f"location.hash = '#m={number}'")
        await tab.until(f"{DETAIL}.includes('sent {number / 2:.3f}')")
        await tab.ask("document.querySelectorAll('.take button').forEach(node => node.click())")
        command, python, text = await tab.until("copied.length === 3 && copied.splice(0)")
        script.append(command)
        assert python.startswith('await client.call_tool("log", ')
        assert eval(python.partition(", ")[2][:-1]) == arguments
        assert json.loads(text)["params"]["arguments"] == arguments
    # A shell takes each command as one, and the program the arguments as they were.
    shell = "holdfast() { printf '%s\\0' \"$@\"; printf '\\n\\0'; }\n" + "\n".join(script)
    process = subprocess.run(["bash", "-c", shell], capture_output=True, check=True)
    calls = process.stdout.decode().split("\0\n\0")
    assert process.stderr == b""
    for number, words in enumerate(call.split("\0") for call in calls[:-1]):
        if number % 2 == 0:
            assert words[:2] == ["call", "log"]
            assert words[-4:] == ["--", "/usr/bin/python", "-m", "demo server"]
            given = words[2:-4]
        else:
            assert words[:2] == ["call", "g'it.log"]
            given = words[2:]
        assert parse(given, {}) == ARGUMENTS[number // 2]


@pytest.mark.req("W2")
@pytest.mark.parametrize(
    ("server", "target", "tool"),
    [
        ("--url=http://127.0.0.1:9/", "", "x"),
        ("127.0.0.1:9", "http://127.0.0.1:9/mcp", "--save=/tmp"),
        ("python", "python server.py", "--env=A=1"),
    ],
)
async def test_no_name_is_copied_as_an_option_of_the_command(
    chrome: Browser, server: str, target: str, tool: str
) -> None:
    trace = TraceWriter({server: {"target": target}})
    trace.tool(1.0, server, tool, {"a": 1})
    tab = await chrome.show(trace.text())
    await tab.until("document.querySelectorAll('#detail .tree').length")
    buttons = "[...document.querySelectorAll('.take button')].map(node => node.innerText)"
    assert await tab.ask(buttons) == ["Python", "JSON"]


PAIRS: list[tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    (
        {"jsonrpc": "2.0", "id": 1, "method": "a/b", "params": {"n": [1, [2]]}},
        {"jsonrpc": "2.0", "id": 1, "result": {"__proto__": [1], "id": 12345678901234567890}},
        ("__proto__", "12345678901234567890"),
    ),
    (
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        {"result": {"order": "other", "content": {}, "isError": True}, "jsonrpc": "2.0", "id": 2},
        ("other",),
    ),
    (
        {"jsonrpc": "2.0", "id": "2", "method": 'quo"te', "params": {}},
        {"jsonrpc": "2.0", "id": "2", "result": [1, "last"]},
        ("last",),
    ),
    (
        {"id": 3, "method": "x", "params": {"method": "y"}, "jsonrpc": "1.0"},
        {"jsonrpc": "2.0", "id": 3, "error": {"code": -5, "message": "no"}},
        ("-5",),
    ),
    (
        {"jsonrpc": "2.0", "id": 4, "method": "escapes", "params": {}},
        {"jsonrpc": "2.0", "id": 4, "result": {"path": 'C:\\new\\"x"', "lines": "one\ntwo"}},
        ('"C:\\\\new\\\\"x""', '"one\ntwo"'),
    ),
]
"""Requests and answers as servers write them, and words of each answer."""


@pytest.mark.req("W2")
async def test_every_message_is_shown_as_it_was_whatever_its_shape(chrome: Browser) -> None:
    trace = TraceWriter({"git": {}})
    for number, (request, answer, _) in enumerate(PAIRS):
        wire_id, method = request["id"], request["method"]
        fields = {"id": wire_id, "body": request, "method": method}
        trace.put(float(number), "git", "request", ">", **fields)
        kind = "error" if "error" in answer else "result"
        trace.put(number + 10.5, "git", kind, "<", id=wire_id, of=wire_id, body=answer)
    # Hours later: times, and a size that has more than 32 bits.
    trace.put(30_000.25, "git", "result", "<", id=99, text="the beginning of it", bytes=2**32)
    sidecar = "run.jsonl.bodies/1-result.json"
    trace.put(30_000.3, "git", "result", "<", id=98, text='{"js', bytes=200_000, sidecar=sidecar)
    trace.put(30_000.4, "git", "result", "<", id=97, text='{"js', bytes=200_000)
    trace.put(30_000.5, "git", "result", "<", id=96, bytes=17_000_000)
    tab = await chrome.show(trace.text())
    await tab.ask(
        "window.copied = []; Object.defineProperty(navigator, 'clipboard', "
        "{value: {writeText: async text => { copied.push(text); }}})"
    )
    copy = "[...document.querySelectorAll('.take button')].find(node => node.innerText === 'JSON')"
    for number, (request, _, words) in enumerate(PAIRS):
        await tab.ask(f"location.hash = '#wire&m={number}'")
        title = json.dumps(request["method"])
        await tab.until(f"document.querySelector('#detail h2')?.innerText.startsWith({title})")
        await tab.until("document.querySelectorAll('#detail .tree').length === 2")
        await tab.ask("document.querySelectorAll('#detail details').forEach(n => n.open = true)")
        detail = await tab.until(f"{DETAIL}.includes('10.50 s') && {DETAIL}")
        assert all(word in detail for word in words)
        await tab.ask(f"{copy}.click()")
        (text,) = await tab.until("copied.length && copied.splice(0)")
        assert list(json.loads(text).items()) == list(request.items())
    await tab.ask(f"location.hash = '#wire&m={2 * len(PAIRS)}'")
    await tab.until(f"{DETAIL}.includes('the beginning of it')")
    assert "30000.250000 s" in await tab.ask(DETAIL)
    assert "4.3 GB" in await tab.ask(DETAIL)
    for number, sentence in enumerate(
        (
            f"The beginning of 200 kB. The whole message is in {sidecar}.",
            "The beginning of 200 kB. The rest is not in the trace.",
            "The trace has the size of this message alone: 17.0 MB.",
        )
    ):
        await tab.ask(f"location.hash = '#wire&m={2 * len(PAIRS) + 1 + number}'")
        await tab.until(f"{DETAIL}.includes({json.dumps(sentence)})")
    assert "8 h 20 m" in await tab.ask("document.getElementById('meta').innerText")
    assert chrome.faults() == []


@pytest.mark.req("W2")
@pytest.mark.long
@pytest.mark.thorough
async def test_whatever_a_server_writes_nothing_runs_and_no_request_leaves(
    chrome: Browser,
) -> None:
    header, *lines = hostile_trace().splitlines(keepends=True)
    # In short: of each string two or three of its fourteen lines, and what it writes to stderr.
    rest = list(one_in(5, lines))
    stderr = [line for line in lines if '"kind":"stderr"' in line and line not in rest]
    count = len(rest) + len(stderr)
    tab = await chrome.show("".join([header, *rest, *stderr]), "#wire&m=0")
    tags, attributes = await tab.ask(WALK)
    assert await tab.until(f"location.hash.includes('m={count - 1}')")
    assert f"of {count} messages" in await tab.ask(SHOWN)
    assert set(tags) <= TAGS
    assert not [name for name in attributes if name.startswith("on") or name in LOADING]
    for fragment in ("#wire", "#stats", "#"):
        await tab.ask(f"location.hash = {json.dumps(fragment)}")
        for key in "jjj]]]":
            await tab.press(key)
    assert await tab.ask("window.pwned === undefined")
    assert (
        await tab.ask("document.querySelectorAll('img, iframe, object, embed, link').length") == 0
    )
    # Each string is there as text, its unseen characters spelled out.
    await tab.ask("location.hash = '#'")
    await set_query(tab, "kind:stderr onerror")
    await tab.until(f"{ROWS}.length && {ROWS}.every(row => row.includes('<img src=x onerror='))")
    await set_query(tab, "kind:stderr cod.exe")
    (shown,) = await tab.until(f"{ROWS}.length === 1 && {ROWS}")
    assert "\u202e" not in shown
    assert "U+202E" in shown
    assert chrome.faults() == []
    assert len(HOSTILE) >= 60


@pytest.mark.req("W2")
async def test_a_part_of_another_type_is_shown_as_json(chrome: Browser) -> None:
    tab = await chrome.show(odd_trace(), "#wire&m=0")
    await tab.ask(WALK)
    # A server's JSON on stdout is no message: its words are in the list all the same.
    await set_query(tab, "kind:junk 12345678901234567890123")
    assert '"text":12345678901234567890123' in (await tab.until(f"{ROWS}.length && {ROWS}"))[1]
    await set_query(tab, "kind:http")
    await tab.until(f"{ROWS}.some(row => row.includes('12345678901234567890123 a: b'))")
    assert chrome.faults() == []


@pytest.mark.req("W2")
async def test_a_picture_is_drawn_and_an_svg_is_not(chrome: Browser) -> None:
    tab = await chrome.show(bad_day(0), "#q=tool:browser_screenshot")
    await tab.press("j")
    await tab.ask("document.querySelectorAll('#detail details').forEach(node => node.open = true)")
    await tab.until("document.querySelector('canvas.picture')?.width === 16")
    trace = TraceWriter({"git": {}})
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>pwned=1</script></svg>'
    data = b64encode(svg.encode()).decode()
    image = {"type": "image", "mimeType": "image/svg+xml", "data": data}
    trace.result(1.5, "git", trace.tool(1.0, "git", "draw", {}), {"content": [image]})
    # A small file that would be 10 GB of pixels.
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (50_000).to_bytes(4, "big") * 2 + bytes(100)
    bomb = {"type": "image", "mimeType": "image/png", "data": b64encode(head).decode()}
    trace.result(2.5, "git", trace.tool(2.0, "git", "burst", {}), {"content": [bomb]})
    tab = await chrome.show(trace.text())
    await tab.until(f"{DETAIL}.includes('cannot be shown')")
    assert data not in await tab.ask(DETAIL)  # Its letters would fill the page.
    await tab.ask("window.createImageBitmap = async () => { window.pwned = 1; }")
    await tab.press("j")
    await tab.until(f"{DETAIL}.includes('burst') && {DETAIL}.includes('cannot be shown')")
    assert await tab.ask("window.pwned === undefined")
    assert chrome.faults() == []


@pytest.mark.req("W2")
async def test_a_trace_without_an_end_says_so(chrome: Browser) -> None:
    tab = await chrome.show(bad_day(5)[:-20])
    banner = await tab.ask("document.getElementById('banner').innerText")
    assert "The end of this trace is missing" in banner
    # Its torn end is where it ends, and nowhere else.
    torn = """
        ((canvas) => {
          const { data } = canvas.getContext("2d").getImageData(canvas.width - 24, 0, 24, 30);
          return [...data].some((red, at) =>
            at % 4 === 0 && red === 133 && data[at + 1] === 92 && data[at + 2] === 0);
        })(document.getElementById("canvas"))
    """
    await tab.ask("location.hash = '#light'")
    await tab.until(torn)
    await tab.ask("location.hash = '#light&z=10-20'")
    await tab.until(f"!({torn})")
    # A program that was killed between two lines left no half line behind.
    closing = '"from":"ready","to":"closing"'
    lines = bad_day(5).splitlines(keepends=True)
    end = next(number for number, line in enumerate(lines) if closing in line)
    tab = await chrome.show("".join(lines[:end]))
    banner = await tab.ask("document.getElementById('banner').innerText")
    assert "This trace ends with 3 open connections" in banner
    assert await tab.ask("document.getElementById('whole').innerText") == ""
    dropped = bad_day(5) + '{"t": 60, "kind": "dropped", "count": 7}\nnot json\n'
    tab = await chrome.show(dropped)
    banner = await tab.ask("document.getElementById('banner').innerText")
    assert "7 messages were dropped" in banner
    assert "1 line could not be read" in banner


@pytest.mark.req("W2")
async def test_servers_out_of_sight_say_their_trouble_and_come_by_choosing(chrome: Browser) -> None:
    trace = TraceWriter({f"s{number}": {} for number in range(6)})
    for number in range(6):
        trace.tool(float(number), f"s{number}", "ask", {})
    trace.state(9.0, "s5", ("ready", "closed"), why="lost")
    tab = await chrome.show(trace.text(), "#m=0")
    labels, pager = (f"document.getElementById('{name}').innerText" for name in ("labels", "pager"))
    assert "s3" in await tab.ask(labels)
    assert "s4" not in await tab.ask(labels)
    assert "2 more · 1 in trouble" in await tab.ask(pager)
    await tab.press("]")
    await tab.until(f"{labels}.includes('s5') && {pager}.includes('2 more')")
    await tab.ask("document.querySelector('#pager button').click()")
    await tab.until(f"{labels}.includes('s1') && !{labels}.includes('s5')")
    assert chrome.faults() == []


@pytest.mark.req("W2")
async def test_a_narrow_window_has_the_list_above_the_detail(chrome: Browser) -> None:
    tab = await chrome.show(bad_day(10), size=(390, 844))
    assert await tab.ask("document.documentElement.scrollWidth") == 390
    assert await tab.ask("innerWidth") == 390
    boxes = "['left', 'detail'].map(id => document.getElementById(id).getBoundingClientRect())"
    left, detail = await tab.ask(f"{boxes}.map(box => box.toJSON())")
    assert left["right"] <= 390
    assert detail["right"] <= 390
    assert detail["top"] >= left["bottom"]
    assert min(left["height"], detail["height"]) > 100


@pytest.mark.req("W2")
@pytest.mark.parametrize("size", [(640, 400), (960, 500), (1280, 620)])
async def test_a_low_window_has_room_for_the_list_and_the_detail(
    chrome: Browser, size: tuple[int, int]
) -> None:
    tab = await chrome.show(bad_day(10), size=size)
    for place in ("list", "detail"):
        assert await tab.ask(f"document.getElementById('{place}').clientHeight") >= 130
    # All of it can be reached.
    await tab.ask("scrollTo(0, 10000)")
    foot = "document.querySelector('footer').getBoundingClientRect().bottom"
    assert await tab.ask(f"{foot} <= innerHeight + 1")
    await tab.press("]")
    await tab.until("document.querySelector('#list .chosen')")
    assert chrome.faults() == []


@pytest.mark.req("W2")
async def test_arguments_that_never_change_come_last(chrome: Browser) -> None:
    trace = TraceWriter({"git": {}})
    for number in range(3):
        arguments = {"repo": "/home/ada/shop", "branch": f"b{number}"}
        trace.result(
            number + 0.5, "git", trace.tool(float(number), "git", "log", arguments), text_result("")
        )
    tab = await chrome.show(trace.text())
    await tab.until(f"{ROWS}.some(row => row.includes('branch=b1 repo=/home/ada/shop'))")


@pytest.mark.req("W2")
async def test_what_fits_inside_of_calls_only_is_offered(chrome: Browser) -> None:
    tab = await chrome.show(bad_day(5), "#q=kind%3Aresult")
    await tab.until("document.getElementById('space').innerText.includes('Nothing matches')")
    await tab.ask("document.querySelector('#space .empty button:last-child').click()")
    await tab.until(f"{ROWS}.length && {ROWS}.every(row => row.includes('answer'))")


@pytest.mark.req("W2")
async def test_an_empty_trace_is_a_page_too(chrome: Browser) -> None:
    tab = await chrome.show('{"holdfast-trace": 1}\n')
    assert "The trace is empty" in await tab.ask("document.getElementById('space').innerText")
    assert chrome.faults() == []


@pytest.mark.req("W2")
async def test_a_stream_that_ended_with_its_connection_is_no_trouble(chrome: Browser) -> None:
    trace = TraceWriter({"git": {}})
    trace.request(0.5, "git", "subscriptions/listen", {})
    trace.state(0.7, "git", ("ready", "closing"))
    trace.state(0.8, "git", ("closing", "closed"))
    tab = await chrome.show(trace.text())
    await tab.until(f"{DETAIL}.includes('A stream. The stream ended with its connection.')")
    assert "ended 0.800" in await tab.ask(DETAIL)
    assert chrome.faults() == []


@pytest.mark.req("W2")
async def test_an_answer_that_does_not_fit_is_marked_beside_a_long_name(chrome: Browser) -> None:
    trace = TraceWriter({"git": {}})
    wire_id = trace.tool(0.5, "git", "a_tool_with_a_long_name_" * 5, {"text": "x" * 500})
    faults = {"/result/structuredContent/count": "must be an integer"}
    trace.result(0.6, "git", wire_id, text_result("3", count="3"), faults=faults)
    tab = await chrome.show(trace.text(), size=(1280, 800))
    right = "document.querySelector('#space {}').getBoundingClientRect().right"
    await tab.until("document.querySelector('#space .what i')")
    assert await tab.ask(f"{right.format('.say')} <= {right.format('.what')}")
    assert await tab.ask("document.querySelector('#space .what b').clientWidth") > 50
    assert chrome.faults() == []


@pytest.mark.req("W2")
async def test_one_message_of_one_server_is_seen_whole(chrome: Browser) -> None:
    trace = TraceWriter({"git": {}})
    trace.tool(0.5, "git", "log", {}, bytes=141_400)
    tab = await chrome.show(trace.text(), size=(1280, 800))
    (row,) = await tab.ask(ROWS)
    assert "141 kB" in row
    assert "git" not in row
    cells = "[...document.querySelectorAll('#space .row > *')]"
    assert await tab.ask(f"{cells}.every(node => node.scrollWidth <= node.clientWidth)")
    # Its bar is inside of the lane: a click on it chooses it.
    left, right, foot = await tab.ask(
        "(box => [box.left, box.right, box.bottom])(document.getElementById('stage')"
        ".getBoundingClientRect())"
    )
    await tab.mouse("mouseMoved", left + (right - left) / 1.012 + 2, foot - 20)
    await tab.until("!document.getElementById('tip').hidden")
    assert chrome.faults() == []


@pytest.mark.req("W2")
def test_the_same_trace_gives_the_same_page() -> None:
    assert page_of(bad_day(20)) == page_of(bad_day(20))


@pytest.mark.req("W2")
def test_nothing_of_the_trace_is_markup() -> None:
    page = page_of(hostile_trace())
    assert "pwned" not in page
    assert page.count("<script") == page.count("</script>")


def crowded_day() -> str:
    """Return a trace with all kinds of trouble, long names, and a flood of junk and of restarts."""
    trace = TraceWriter({"git": {}, "postgres-analytics-warehouse": {}})
    outcomes = ("timeout", "cancelled", "unknown", "failed")
    for number in range(40):
        server = ("git", "postgres-analytics-warehouse")[number % 2]
        wire_id = trace.tool(1.0 + number, server, "list_issues_with_a_long_name", {"n": number})
        if number % 5:
            outcome = outcomes[number % 5 - 1]
            trace.put(1.5 + number, server, "outcome", of=wire_id, outcome=outcome, why="so")
        else:
            trace.error(1.001 + number, server, wire_id, -1, "no")
    late = trace.tool(42.0, "git", "late", {})
    trace.put(43.0, "git", "outcome", of=late, outcome="timeout", why="late")
    trace.result(44.0, "git", late, text_result("late"))
    trace.tool(45.0, "git", "open", {})
    for number in range(20_000):
        trace.put(5 + number / 1000, "git", "junk", "<", text="DEBUG")
        steps = ("ready", "backoff") if number % 2 else ("backoff", "ready")
        trace.state(5 + number / 1000, "git", steps, why="it exited with code 1")
    return trace.text()


@pytest.mark.req("W2")
async def test_a_flood_of_junk_and_restarts_is_drawn_by_pixels(chrome: Browser) -> None:
    tab = await chrome.show(crowded_day())
    drawn = await tab.ask(
        """
        (async () => {
          let count = 0;
          const kind = CanvasRenderingContext2D.prototype;
          for (const name of ["fill", "stroke", "fillRect", "lineTo"]) {
            const draw = kind[name];
            kind[name] = function (...values) { count++; return draw.apply(this, values); };
          }
          dispatchEvent(new Event("resize"));
          await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
          return count;
        })()
        """
    )
    assert 100 < drawn < 20_000
    assert chrome.faults() == []


@pytest.mark.req("W2")
@pytest.mark.long
@pytest.mark.thorough
async def test_as_many_tools_as_calls_and_a_call_with_many_arguments(chrome: Browser) -> None:
    trace = TraceWriter({"git": {}})
    tools, items = (70_000, 300_000) if THOROUGH else (5_000, 20_000)
    for number in range(tools):
        trace.tool(number / 1000, "git", f"tool {number}", {})
    trace.error(
        70.5, "git", trace.tool(70.1, "git", "last", {f"k{n}": n for n in range(items)}), 1, ""
    )
    tab = await chrome.show(trace.text(), "#stats")
    rows = "document.querySelectorAll('.stats tbody tr')"
    assert await tab.ask(f"{rows}.length") == 500
    assert (await tab.ask(f"{rows}[0].innerText")).startswith("last")
    assert f"{tools - 499:,} more tools" in await tab.ask(
        "document.getElementById('table').innerText"
    )
    await tab.press("1")
    await tab.until("document.querySelectorAll('#detail .tree').length === 2")
    await tab.ask("document.querySelectorAll('#detail details').forEach(node => node.open = true)")
    await tab.until(f"{DETAIL}.includes('100 of {items - 100:,} more items')")
    assert chrome.faults() == []


@pytest.mark.req("W2")
@pytest.mark.parametrize("width", [900, 1280, 1920])
async def test_nothing_is_cut_off_where_there_is_little_room(chrome: Browser, width: int) -> None:
    tab = await chrome.show(crowded_day(), "#m=0", size=(width, 800))
    fits = "(node => node.scrollWidth <= node.clientWidth)(document.getElementById('{}'))"
    assert await tab.until(fits.format("chips"))
    # The name of a call stays in one line; what can be done with it goes into the next.
    name = "document.querySelector('#detail h2 > div')?.getBoundingClientRect().height"
    assert await tab.until(f"({name}) < 30 && {name}")
    await tab.press("2")
    assert await tab.until(fits.format("table"))
    assert await tab.until("document.querySelector('#table td .counts') !== null")


@pytest.mark.req("W2")
async def test_a_page_without_room_for_all_rows_says_so(chrome: Browser) -> None:
    reading = Reading("run.jsonl")
    rows = bad_day(0).encode().splitlines(keepends=True)
    page = build_page(reading, reading.lines(rows), most_rows=20)
    await chrome.open(page)
    banner = await chrome.tab.ask("document.getElementById('banner').innerText")
    assert f"{len(rows) - 21} messages left out" in banner
    assert await chrome.tab.ask("document.getElementById('whole').innerText") == ""


@pytest.mark.req("W2")
async def test_a_filter_of_an_address_is_cut(chrome: Browser) -> None:
    tab = await chrome.show(bad_day(5), "#wire&q=" + "x" * 50_000 + "%20&m=99999&t=1e400-2&z=NaN-1")
    assert await tab.ask("document.getElementById('query').value.length") == 2000
    await tab.press("/")
    await tab.until("document.getElementById('space').innerText.includes('Nothing matches')")
    assert chrome.faults() == []


@pytest.mark.req("W2")
async def test_a_header_cannot_break_the_page(chrome: Browser) -> None:
    odd = {"git": {"name": {"x": 1}, "transport": [1], "target": {"a": 1}}, "": {}, "__proto__": {}}
    trace = TraceWriter({"git": {}})
    trace.header["servers"] = odd
    trace.tool(1.0, "git", "log", {})
    tab = await chrome.show(trace.text(), "#q=server%3Agit")
    await tab.until(f"{ROWS}.length === 1 && {DETAIL}.includes('log')")
    assert chrome.faults() == []


@pytest.mark.req("W2")
async def test_the_focus_stays_where_it_was_when_something_is_chosen(chrome: Browser) -> None:
    tab = await chrome.show(bad_day(), "#m=0")
    focus = "document.activeElement"
    await tab.ask("document.querySelector('.chip[title=\"status:unknown\"]').focus()")
    await tab.ask(f"{focus}.click()")
    await tab.until(f"{SHOWN}.startsWith('2 of')")
    assert await tab.ask(f"{focus}.title") == "status:unknown"
    assert await tab.ask(f"{focus}.getAttribute('aria-label')") == "may have run 2"
    await tab.press("j")
    await tab.until("document.querySelector('#detail .step')")
    await tab.ask("document.querySelector('#detail .step').focus()")
    await tab.ask(f"{focus}.click()")
    await tab.until(f"{focus}.id === 'detail'")


@pytest.mark.req("W2")
async def test_what_is_chosen_and_written_is_seen_in_colours_of_the_system(chrome: Browser) -> None:
    forced = [{"name": "forced-colors", "value": "active"}]
    await chrome.tab.send("Emulation.setEmulatedMedia", features=forced)
    tab = await chrome.show(bad_day(), size=(1280, 800))
    chosen = "document.querySelector('.row.chosen')"
    assert await tab.until(f"{chosen} && getComputedStyle({chosen}).outlineStyle") == "solid"
    # How the server ended is written in its lane, on a ground of another colour.
    around = "(({ data }) => data.filter((part, place) => place % 4 === 0 && part > 200).length)"
    canvas = "document.getElementById('canvas').getContext('2d')"
    words = f"{around}({canvas}.getImageData(440, 124, 30, 14)) / (30 * 14)"
    assert await tab.until(f"{words} > .5 && {words} < .98 && {words}")


@pytest.mark.req("W2")
async def test_words_below_a_call_do_not_cover_each_other(chrome: Browser) -> None:
    trace = TraceWriter({"git": {}})
    for number, (end, late) in enumerate([(1.0, 1.1), (1.0, 3.0), (0.1, 3.0), (1.5, 3.0)]):
        wire_id = trace.tool(10.0 * number, "git", "log", {})
        for step in range(5):
            at = 10.0 * number + 0.01 * step
            trace.notify(at, "git", "notifications/progress", {"progress": step}, of=wire_id)
        trace.put(10.0 * number + end, "git", "outcome", of=wire_id, outcome="timeout", why="late")
        trace.result(10.0 * number + late, "git", wire_id, text_result("x"))
    tab = await chrome.show(trace.text(), "#m=0", size=(1280, 800))
    boxes = "[...document.querySelectorAll('.small-labels span')].map(node => "
    boxes += "node.getBoundingClientRect()).sort((a, b) => a.left - b.left)"
    clear = f"({boxes}).every((box, n, all) => !n || all[n - 1].right <= box.left)"
    for number in range(4):
        began = f"sent {number * 10}.000"
        await tab.until(f"document.querySelector('.small-labels')?.innerText.includes('{began}')")
        assert await tab.ask(clear), await tab.ask(DETAIL)
        await tab.press("j")
