"""Ask a registry: API version 0.1, within bounds of time, size and pages."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from holdfast._core.text import did_you_mean, join_words, visible
from holdfast.errors import TransportError, ValidationError
from holdfast.registry.entries import FULL_NAME, RegistryEntry, RegistryPage, read_entry
from holdfast.registry.recipe import is_encrypted

OFFICIAL_URL: Final = "https://registry.modelcontextprotocol.io"
VARIABLE: Final = "HOLDFAST_REGISTRY"
"""The environment variable with the URL of another registry."""
TIMEOUT: Final = 30.0
"""Seconds for a whole search."""
MAX_BODY: Final = 4 << 20
MAX_PAGES: Final = 10
MAX_WORDS: Final = 3
"""Words of a search that are looked for in names."""
PAGE: Final = 100
LONGEST_CURSOR: Final = 2000


class SearchResult(NamedTuple):
    """The entries that fit, and whether there are more."""

    entries: list[RegistryEntry]
    is_cut: bool
    unreadable: int
    """Entries that had not the form of one."""


def registry_url(url: str | None = None, environ: Mapping[str, str] | None = None) -> str:
    """Return the address of the registry: as given, of the environment, or the official one."""
    environ = os.environ if environ is None else environ
    address = (url or environ.get(VARIABLE) or OFFICIAL_URL).rstrip("/")
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        raise ValidationError(f"--registry {visible(address, 80)!r}: is not a URL") from None
    if not is_encrypted(parts.scheme, host):
        raise ValidationError(f"--registry {visible(address, 80)!r}: must begin with https://")
    return address


class RegistryClient:
    """A registry of MCP servers.

    Args:
        url: Its address; by default ``HOLDFAST_REGISTRY``, or the official one.
    """

    def __init__(self, url: str | None = None) -> None:
        self.url = registry_url(url)

    async def search(self, words: Sequence[str], most: int = 20) -> SearchResult:
        """Return the newest versions of servers whose name, title or description has all words.

        Raises:
            TransportError: It cannot be reached.
            ValidationError: It answers in another way than a registry does.
        """
        # The registry compares one text with names alone, so each word may be the one in the name.
        result = SearchResult([], False, 0)
        async with self._time_limit():
            for query in sorted(set(words), key=len, reverse=True)[:MAX_WORDS]:
                result = await self._search(query, words, most)
                if result.entries:
                    break
        return result

    async def _search(self, query: str, words: Sequence[str], most: int) -> SearchResult:
        entries: list[RegistryEntry] = []
        unreadable, cursor, cursors = 0, "", {""}
        for _ in range(MAX_PAGES):
            page = await self._page(query, cursor)
            rows = [read_entry(raw) for raw in page.servers[: 4 * PAGE]]
            unreadable += rows.count(None)
            entries += [row for row in rows if row is not None and _fits(row, words)]
            cursor = page.cursor
            if not cursor or len(entries) >= most:
                break
            if cursor in cursors or len(cursor) > LONGEST_CURSOR:
                raise ValidationError(f"{self.url}: gives the same page again and again")
            cursors.add(cursor)
        return SearchResult(entries[:most], bool(cursor) or len(entries) > most, unreadable)

    async def entry(self, name: str, version: str = "latest") -> RegistryEntry:
        """Return one version of a server by its full name.

        Raises:
            ValidationError: There is none, or the registry answers with another one.
        """
        if FULL_NAME.fullmatch(name) is None:
            raise ValidationError(f"'{visible(name, 80)}' is not the full name of a server")
        path = f"/v0.1/servers/{quote(name, safe='')}/versions/{quote(version, safe='')}"
        async with self._time_limit():
            data = await self._get(path, {})
        if data is None:
            which = "" if version == "latest" else f" in version {visible(version, 40)}"
            raise ValidationError(f"{self.url} has no server '{name}'{which}")
        entry = read_entry(data)
        if entry is None:
            raise ValidationError(f"{self.url}: the entry of '{name}' has not the form of one")
        if entry.server.name != name:
            raise ValidationError(f"{self.url}: answered with something else than '{name}'")
        if version not in ("latest", entry.server.version):
            raise ValidationError(f"{self.url}: answered with another version of '{name}'")
        return entry

    async def refuse_bare(self, word: str) -> ValidationError:
        """Return the error for a word that is not a full name, with the names that it may mean."""
        result = await self.search([word])
        names = [entry.server.name for entry in result.entries]
        near = did_you_mean(word, names)
        listed = f"there are: {join_words(names, 10)}" if names else "nothing there has this word"
        return ValidationError(
            f"'{visible(word, 80)}' is not the full name of a server in {self.url}; "
            f"{near or listed}"
        )

    @asynccontextmanager
    async def _time_limit(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(TIMEOUT):
                yield
        except TimeoutError:
            raise TransportError(f"{self.url}: no answer within {TIMEOUT:g} s") from None

    async def _page(self, query: str, cursor: str) -> RegistryPage:
        parameters = {"search": query, "version": "latest", "limit": str(PAGE)}
        if cursor:
            parameters["cursor"] = cursor
        data = await self._get("/v0.1/servers", parameters)
        if data is None:
            raise ValidationError(f"{self.url}: is not a registry (404 for /v0.1/servers)")
        try:
            return msgspec.json.decode(data, type=RegistryPage)
        except (msgspec.DecodeError, RecursionError):
            raise ValidationError(f"{self.url}: the answer is not that of a registry") from None

    async def _get(self, path: str, parameters: dict[str, str]) -> bytes | None:
        """Return the body of an answer; None for 404. Redirects are not followed."""
        import aiohttp

        try:
            async with (
                aiohttp.ClientSession(trust_env=True, auto_decompress=True) as session,
                session.get(
                    _address(self.url + path, parameters),
                    allow_redirects=False,
                    headers={"Accept": "application/json", "User-Agent": "holdfast"},
                ) as response,
            ):
                return await self._body(response)
        except (aiohttp.ClientError, OSError) as error:
            reason = visible(str(error), 200) or type(error).__name__
            raise TransportError(f"{self.url}: cannot be reached: {reason}") from None

    async def _body(self, response: Any) -> bytes | None:
        if response.status == 404:
            return None
        if 300 <= response.status < 400:
            # Another host would answer for the names of this one.
            where = visible(response.headers.get("Location", ""), 120)
            raise ValidationError(f"{self.url}: sends on to {where!r}, which is not followed")
        if response.status != 200:
            raise TransportError(f"{self.url}: answered with HTTP {response.status}")
        data = bytearray()
        async for piece in response.content.iter_chunked(1 << 16):
            data += piece
            if len(data) > MAX_BODY:
                raise ValidationError(f"{self.url}: an answer is longer than {MAX_BODY >> 20} MiB")
        return bytes(data)


def _address(url: str, parameters: dict[str, str]) -> Any:
    """Return a URL whose path stays encoded: ``/`` in a name is ``%2F``."""
    from yarl import URL

    return URL(url, encoded=True).update_query(parameters) if parameters else URL(url, encoded=True)


def _fits(entry: RegistryEntry, words: Sequence[str]) -> bool:
    if entry.fact("status") == "deleted":
        return False
    text = f"{entry.server.name} {entry.server.title} {entry.server.description}".lower()
    return all(word.lower() in text for word in words)
