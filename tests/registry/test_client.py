"""Asking a registry, honest or not."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from holdfast.errors import TransportError, ValidationError
from holdfast.registry import client
from holdfast.registry.client import MAX_PAGES, OFFICIAL_URL, RegistryClient, registry_url
from tests.registry.stub import Stub, listing, npm, ok

pytestmark = [pytest.mark.req("N6"), pytest.mark.hang(400)]


def names(result: Any) -> list[str]:
    return [entry.server.name for entry in result.entries]


async def test_words_are_searched_over_pages(stub: Stub) -> None:
    stub.entries = [listing(f"io.github.a/weather-{n}") for n in range(5)]
    stub.entries += [listing("io.github.b/other"), listing("io.github.c/weather", status="deleted")]
    stub.entries[1]["server"]["description"] = "Tides"
    result = await RegistryClient(stub.url).search(["weather", "everywhere"])
    assert names(result) == [f"io.github.a/weather-{n}" for n in (0, 2, 3, 4)]
    assert not result.is_cut
    result = await RegistryClient(stub.url).search(["weather"], most=2)
    assert len(result.entries) == 2
    assert result.is_cut


async def test_one_is_found_by_its_full_name(stub: Stub) -> None:
    stub.entries = [listing(packages=[npm()])]
    entry = await RegistryClient(stub.url).entry("io.github.owner/weather")
    assert (entry.server.publisher, entry.server.version) == ("io.github.owner", "1.2.3")
    assert entry.server.kinds == ["npm"]
    assert stub.paths == ["/v0.1/servers/io.github.owner%2Fweather/versions/latest"]
    with pytest.raises(
        ValidationError, match=r"no server 'io\.github\.owner/weather' in version 9"
    ):
        await RegistryClient(stub.url).entry("io.github.owner/weather", "9")


async def test_a_bare_word_gets_the_names_that_it_may_mean(stub: Stub) -> None:
    stub.entries = [listing("io.github.a/weather"), listing("io.github.b/weather")]
    error = await RegistryClient(stub.url).refuse_bare("weather")
    assert "there are: io.github.a/weather and io.github.b/weather" in str(error)
    assert "nothing there" in str(await RegistryClient(stub.url).refuse_bare("xyzzy"))


async def test_pages_without_end_are_cut(stub: Stub) -> None:
    pages = 0

    def answer(path: str) -> Any:
        nonlocal pages
        pages += 1
        return ok({"servers": [], "metadata": {"nextCursor": str(pages)}})

    stub.answer = answer
    result = await RegistryClient(stub.url).search(["x"])
    assert (pages, result.is_cut) == (MAX_PAGES, True)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (ok({"servers": [], "metadata": {"nextCursor": "1"}}), ValidationError, "again and again"),
        ((302, {"Location": "https://evil.example"}, b""), ValidationError, "evil.example"),
        ((200, {}, b"<html>"), ValidationError, "not that of a registry"),
        ((200, {}, b"[" * 100_000), ValidationError, "not that of a registry"),
        ((200, {}, b'{"servers": "' + b"x" * (5 << 20) + b'"}'), ValidationError, "longer than"),
        ((404, {}, b""), ValidationError, "is not a registry"),
        ((500, {}, b"\x1b[2J"), TransportError, "HTTP 500"),
    ],
)
async def test_a_bad_answer_is_an_error(
    stub: Stub, answer: Any, error: type[Exception], message: str
) -> None:
    stub.answer = lambda path: answer
    with pytest.raises(error, match=message):
        await RegistryClient(stub.url).search(["x"])


async def test_another_server_than_asked_for_is_refused(stub: Stub) -> None:
    stub.answer = lambda path: ok(listing("io.github.evil/weather"))
    with pytest.raises(ValidationError, match="something else"):
        await RegistryClient(stub.url).entry("io.github.owner/weather")
    stub.answer = lambda path: ok(listing(version="6.6.6"))
    with pytest.raises(ValidationError, match="another version"):
        await RegistryClient(stub.url).entry("io.github.owner/weather", "1.2.3")


async def test_entries_of_no_form_are_counted(stub: Stub) -> None:
    rows = [listing("io.github.a/x"), {"server": {"name": "\x1b[2J"}}, 7]
    stub.answer = lambda path: (200, {}, json.dumps({"servers": rows}).encode())
    result = await RegistryClient(stub.url).search(["x"])
    assert (len(result.entries), result.unreadable) == (1, 2)


async def test_an_entry_of_no_form_is_refused(stub: Stub) -> None:
    stub.answer = lambda path: ok(listing(version=7))
    with pytest.raises(ValidationError, match="has not the form of one"):
        await RegistryClient(stub.url).entry("io.github.owner/weather")


async def test_a_registry_that_does_not_answer_is_left(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = threading.Event()

    def silent(path: str) -> Any:
        end.wait()
        return ok({"servers": []})

    stub.answer = silent
    monkeypatch.setattr(client, "TIMEOUT", 0.5)
    try:
        with pytest.raises(TransportError, match=r"no answer within 0\.5 s"):
            await RegistryClient(stub.url).search(["x"])
    finally:
        end.set()


async def test_nobody_there_is_an_error() -> None:
    with pytest.raises(TransportError, match="cannot be reached"):
        await RegistryClient("http://127.0.0.1:9").search(["x"])


def test_the_address() -> None:
    assert registry_url(None, {}) == OFFICIAL_URL
    assert registry_url(None, {"HOLDFAST_REGISTRY": "https://r.example/"}) == "https://r.example"
    assert registry_url("https://s.example", {"HOLDFAST_REGISTRY": "x"}) == "https://s.example"
    for url in ("http://example.org", "file:///x", "https://[", "ftp://x"):
        with pytest.raises(ValidationError):
            registry_url(url, {})
