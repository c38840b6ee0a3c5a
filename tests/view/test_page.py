"""The page, opened from disk in a real browser."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.trace.format import Reading
from holdfast.view.page import build_page
from tests.view.hostile import HOSTILE, hostile_trace
from tests.view.sample import TraceWriter, bad_day, text_result
from tools.chromium import Tab, browser, chromium

READY = "document.body.dataset.ready === 'true'"
SHOWN = "document.getElementById('shown').textContent"
DETAIL = "document.getElementById('detail').innerText"
ROWS = "[...document.querySelectorAll('#space .row')].map(row => row.innerText)"


def page_of(text: str, name: str = "run.jsonl") -> str:
    reading = Reading(name)
    return build_page(reading, reading.lines(text.encode().splitlines(keepends=True)))


class Browser:
    """A browser with a page of ours."""

    def __init__(self, tab: Tab, folder: Path) -> None:
        self.tab = tab
        self._file = folder / "run.html"

    async def show(
        self, trace: str, fragment: str = "", size: tuple[int, int] = (1440, 900)
    ) -> Tab:
        self._file.write_text(page_of(trace), encoding="utf-8")
        await self.tab.resize(*size)
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
            *(entry for entry in self.tab.told("Log.entryAdded")),
            *(url for url in urls if not url.startswith((self._file.as_uri(), "data:", "blob:"))),
        ]


@pytest.fixture
async def chrome(tmp_path: Path) -> AsyncIterator[Browser]:
    if (program := chromium()) is None:
        pytest.skip("there is no Chromium")
    async with browser(program) as tab:
        yield Browser(tab, tmp_path)


async def set_query(tab: Tab, text: str) -> None:
    await tab.press("/")
    await tab.ask("document.getElementById('query').select()")
    await tab.type(text)


@pytest.mark.req("W2")
@pytest.mark.long
async def test_the_page_shows_the_trace_and_filters_it(chrome: Browser) -> None:
    tab = await chrome.show(bad_day(30))
    assert "run.jsonl" in await tab.ask("document.title")
    assert "3 servers" in await tab.ask("document.getElementById('meta').textContent")
    labels = await tab.ask("document.getElementById('labels').innerText")
    assert all(word in labels for word in ("git", "browser", "3 links", "docs", "http"))
    # It begins with the call whose end leaves most open.
    detail = await tab.until(f"{DETAIL}.includes('Pay now') && {DETAIL}")
    for words in ("May have run", "exited with code 137", "What happened next", "Out of memory"):
        assert words in detail

    await set_query(tab, "status:timeout")
    assert await tab.until(f"{SHOWN}.startsWith('1 of') && {SHOWN}")
    assert "fetch_page" in (await tab.ask(ROWS))[0]
    await set_query(tab, "tool:git_log server:git")
    await tab.until(f"{ROWS}.length && {ROWS}.every(row => row.includes('git_log'))")
    await set_query(tab, "slow:>9s")
    await tab.until(f"{SHOWN}.startsWith('2 of')")
    # Any other word is looked for in the bodies.
    await set_query(tab, "overwritten")
    await tab.until(f"{SHOWN}.startsWith('1 of')")
    assert "git_checkout" in (await tab.ask(ROWS))[0]
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
    await tab.press("2")
    await tab.until("!document.getElementById('table').hidden")
    table = await tab.ask("document.getElementById('table').innerText")
    assert "p95" in table
    assert "embed" in table
    assert chrome.faults() == []


@pytest.mark.req("W2")
async def test_a_call_is_copied_as_a_command_python_and_json(chrome: Browser) -> None:
    trace = TraceWriter({"git": {}})
    arguments = {"path": "it's here", "deep": {"n": None, "on": True}, "count": "12", "n": 3}
    trace.result(1.5, "git", trace.tool(1.0, "git", "log", arguments), text_result("ok"))
    tab = await chrome.show(trace.text())
    await tab.until("document.querySelectorAll('.take button').length === 3")
    await tab.ask(
        "window.copied = []; Object.defineProperty(navigator, 'clipboard', "
        "{value: {writeText: async text => { copied.push(text); }}}); "
        "document.querySelectorAll('.take button').forEach(node => node.click())"
    )
    command, python, text = await tab.until("copied.length === 3 && copied")
    assert command == (
        """holdfast call git.log path='it'\\''s here' deep='{"n":null,"on":true}' """
        """count='"12"' n=3"""
    )
    namespace: dict[str, Any] = {}
    assert python.startswith('await client.call_tool("log", ')
    exec(f"values = dict({python.partition(', ')[2][:-1]})", namespace)
    assert namespace["values"] == arguments
    assert json.loads(text)["params"]["arguments"] == arguments


PAIRS: list[tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    (
        {"jsonrpc": "2.0", "id": 1, "method": "a/b", "params": {"n": [1, [2]]}},
        {"jsonrpc": "2.0", "id": 1, "result": {"__proto__": [1], "id": "inner"}},
        ("__proto__", "inner"),
    ),
    (
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        {"result": {"order": "other"}, "jsonrpc": "2.0", "id": 2},
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
    trace.put(30.0, "git", "result", "<", id=99, text="the beginning of it", bytes=70_000)
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
    assert chrome.faults() == []


@pytest.mark.req("W2")
@pytest.mark.long
async def test_whatever_a_server_writes_nothing_runs_and_no_request_leaves(
    chrome: Browser,
) -> None:
    tab = await chrome.show(hostile_trace(), "#wire")
    # Every row is chosen, and all of it unfolded; then the statistics, the lanes and the filter.
    count = hostile_trace().count("\n") - 1
    await tab.ask(
        """
        (async () => {
          const turn = () => new Promise(resolve => setTimeout(resolve));
          for (let row = 0; row < COUNT; row++) {
            location.hash = `#wire&m=${row}`;
            await turn();
            await turn();
            for (let deep = 0; deep < 3; deep++)
              document.querySelectorAll("#detail details").forEach(node => { node.open = true; });
          }
        })()
        """.replace("COUNT", str(count))
    )
    assert f"of {count} messages" in await tab.ask(SHOWN)
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
    tab = await chrome.show(trace.text())
    await tab.until(f"{DETAIL}.includes('cannot be shown')")
    assert await tab.ask("window.pwned === undefined")
    assert chrome.faults() == []


@pytest.mark.req("W2")
async def test_a_trace_without_an_end_says_so(chrome: Browser) -> None:
    tab = await chrome.show(bad_day(5)[:-20])
    banner = await tab.ask("document.getElementById('banner').innerText")
    assert "The end of this trace is missing" in banner
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
def test_the_same_trace_gives_the_same_page() -> None:
    assert page_of(bad_day(20)) == page_of(bad_day(20))


@pytest.mark.req("W2")
def test_nothing_of_the_trace_is_markup() -> None:
    page = page_of(hostile_trace())
    assert "pwned" not in page
    assert page.count("<script") == page.count("</script>")
