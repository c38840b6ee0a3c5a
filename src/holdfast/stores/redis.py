"""Entries in Redis or Valkey, for workers on many machines, by the extra ``holdfast[redis]``."""

# What may be relied on, and what not
# -----------------------------------
#
# Redis runs one command at a time, so a script is a step that nothing comes between. Three
# scripts are all that is needed: a swap (compare, then set), taking a lock with a fencing number,
# and giving back or renewing a lock that is still one's own. Everything else is one command, also
# a swap where nothing must be there.
#
# Ends of entries and leases are by the clock of the Redis server alone. The fencing number is the
# larger of the last one plus one and that clock in microseconds: it grows on when a Redis without
# persistence was started again and has forgotten the last one.
#
# A failure has three forms, and they are told apart:
#
# - Redis answers with an error (no memory left, a replica that cannot be written). Nothing was
#   done, and the error says why.
# - Redis cannot be reached, takes no password of ours, or does not answer within ``patience``. The
#   store then counts as down
#   for ``rest`` seconds, in which every use fails at once, so that a dead store costs a call a
#   quarter of a second and not each call. Whoever watches is told once, until it was up again.
# - The answer is lost after the command was sent. *Nobody knows whether it was done*, now or
#   later: the bytes may wait in a socket of a stopped server. `get`, `put` and `delete` can simply
#   be repeated. A lock that was perhaps taken is given back, and if that overtakes the taking, its
#   lease ends by itself. A swap that was perhaps done is the ledger's problem, which knows what it
#   wrote (see `_core/ledger`).
#
# So nothing is repeated in here: the retries of redis-py are switched off, because a swap that
# was done, and is repeated, says "no".
#
# A cancelled command leaves its connection in the middle of an answer; redis-py then closes it. A
# command that takes a lock is not cancelled at all, but waited for: a release on a second
# connection could overtake it.
#
# Connections belong to an event loop, and a store may be used by several (`holdfast.sync` has one
# of its own). Each loop has a pool of up to ``CONNECTIONS``; waiting for one of them is not the
# fault of Redis, and so not within ``patience``.
#
# The timer has two steps. A loop that was blocked for a second finds the answer and the end of the
# patience at the same time; without the second step the timer would win, and every pause of a busy
# process would look like an outage.

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import importlib
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from hashlib import sha1
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit
from weakref import WeakKeyDictionary, WeakSet

from holdfast._core.redact.known import KNOWN
from holdfast.errors import ValidationError
from holdfast.stores.base import (
    LOCK_TTL,
    StoreError,
    StoreUnreachable,
    TaskLocks,
    Watcher,
    give_back,
    poll,
    renewed,
    require_entry,
    require_swap,
)

if TYPE_CHECKING:
    from holdfast.stores.redis_pool import Pool

log: logging.Logger = logging.getLogger("holdfast")
T = TypeVar("T")

PATIENCE: Final = 0.25
"""Seconds for Redis to answer one command."""
REST: Final = 5.0
"""Seconds for which a Redis that did not answer is left alone."""
_PAGE: Final = 1000
_SCHEMES: Final = ("redis", "rediss", "unix")
_VALKEY: Final = {"valkey": "redis", "valkeys": "rediss"}
_DATABASE: Final = re.compile(r"/?|/\d{1,5}", re.ASCII)
_GLOB: Final = re.compile(r"([*?\[\]\\^])")
_KEY_BYTES: Final = 32


class _Script:
    """A script, and the digest by which Redis knows it once it has run it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest = sha1(text.encode(), usedforsecurity=False).hexdigest()


# ARGV: the content that there must be; whether there will be one, that content, its milliseconds
# ("" for no end).
_SWAP: Final = _Script("""
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] ~= '1' then redis.call('DEL', KEYS[1])
elseif ARGV[4] == '' then redis.call('SET', KEYS[1], ARGV[3])
else redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4]) end
return 1
""")
_ACQUIRE: Final = _Script("""
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
local now = redis.call('TIME')
local number = math.max(tonumber(redis.call('GET', KEYS[2]) or '0') + 1, now[1] * 1000000 + now[2])
redis.call('SET', KEYS[2], string.format('%.0f', number))
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return string.format('%.0f', number)
""")
# ARGV: the owner, and the milliseconds from now on; "" gives the lock back.
_KEEP: Final = _Script("""
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then return redis.call('DEL', KEYS[1]) end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
""")


class RedisStore:
    """Keep entries in Redis or Valkey, for workers on many machines.

    Args:
        url: ``redis://``, ``rediss://`` (TLS) or ``unix://``, with credentials and database;
            ``valkey://`` and ``valkeys://`` mean the same as the first two.
        prefix: The beginning of all its keys: stores with different ones do not meet.
        login_key: Seals logins: 32 bytes, or the same in base64. All workers need the same one,
            and Redis never gets it. None: a key of this user, from the OS keyring or a private
            file, which is enough on one machine.
        patience: Seconds for one command. Then the store counts as down.
        rest: Seconds for which it then is not asked.

    Raises:
        ValidationError: The URL or the key cannot be used, or the extra is missing.

    Example:
        ```python
        store = holdfast.stores.RedisStore("redis://localhost:6379/0")
        ```
    """

    seals_logins: Final = True
    """Logins are sealed before they are put: whoever runs a Redis reads what is in it."""

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "holdfast:",
        login_key: bytes | str | None = None,
        patience: float = PATIENCE,
        rest: float = REST,
    ) -> None:
        parts = _parsed(url)
        self._place = _place(parts)
        self.login_key: bytes | None = None if login_key is None else _key_bytes(login_key)
        for name, seconds in (("patience", patience), ("rest", rest)):
            if type(seconds) not in (int, float) or not seconds > 0:
                text = f"RedisStore({name}={seconds!r}): must be a number, more than 0"
                raise ValidationError(text)
        try:
            self._link = importlib.import_module("holdfast.stores.redis_pool")
        except ImportError:
            raise ValidationError("RedisStore needs: pip install 'holdfast[redis]'") from None
        self._url = f"{parts.scheme}://{url.partition('://')[2]}"
        try:
            self._link.check_url(self._url)
        except (TypeError, ValueError) as error:
            raise ValidationError(f"RedisStore: an option of the URL: {error}") from None
        self._prefix = prefix
        self._patience = patience
        self._rest = rest
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = WeakKeyDictionary()
        self._tasks = TaskLocks()
        self._down_until = 0.0
        self._reason = ""
        """Why it is down; "" after it has answered."""
        self._watchers: WeakSet[Watcher] = WeakSet()
        if (password := parts.password) is not None:
            KNOWN.hold(self, lambda: [password, unquote(password)])

    def __repr__(self) -> str:
        return f"<RedisStore {self._place}>"

    @property
    def is_down(self) -> bool:
        """True while it is not asked, because it did not answer."""
        return time.monotonic() < self._down_until

    def watch(self, watcher: Watcher) -> None:
        """Tell a watcher when the store goes down, as long as the watcher lives."""
        self._watchers.add(watcher)

    # Entries

    async def get(self, key: str) -> bytes | None:
        """Return an entry."""
        data: bytes | None = await self._command("GET", self._key(key))
        return data

    async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
        """Replace an entry. How durable it is then, the configuration of Redis decides."""
        require_entry(key, data)
        if ttl is None:
            await self._command("SET", self._key(key), data)
        elif ttl <= 0:
            await self.delete(key)
        else:
            await self._command("SET", self._key(key), data, "PX", _milliseconds(ttl))

    async def delete(self, key: str) -> None:
        """Delete an entry."""
        await self._command("DEL", self._key(key))

    async def swap(
        self, key: str, old: bytes | None, new: bytes | None, ttl: float | None = None
    ) -> bool:
        """Replace an entry if it is still ``old``, by one command or script."""
        require_swap(key, old, new)
        if ttl is not None and ttl <= 0:
            new = None
        place, end = self._key(key), "" if ttl is None else _milliseconds(ttl)
        if old is None:
            if new is None:
                return await self.get(key) is None
            lease = () if ttl is None else ("PX", end)
            return await self._command("SET", place, new, "NX", *lease) is not None
        values = (old, int(new is not None), new or b"", end)
        return bool(await self._script(_SWAP, (place,), *values))

    async def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with a prefix."""
        start = self._key(prefix)
        pattern = _GLOB.sub(r"\\\1", start.decode("utf-8", "surrogatepass"))
        matching: set[bytes] = set()
        cursor: bytes | str | int = "0"
        while True:
            match = pattern.encode("utf-8", "surrogatepass") + b"*"
            cursor, page = await self._command("SCAN", cursor, "MATCH", match, "COUNT", _PAGE)
            matching.update(page)
            if int(cursor) == 0:
                break
        skipped = len(self._key(""))
        return sorted(key[skipped:].decode("utf-8", "surrogatepass") for key in matching)

    @asynccontextmanager
    async def lock(self, name: str, ttl: float = LOCK_TTL) -> AsyncIterator[int]:
        """Hold a lease between tasks, processes and machines; it is renewed while it is held."""
        owner, place = secrets.token_hex(16), self._key(name, "lock:")

        async def attempt() -> int | None:
            keys = (place, self._key("", "fence"))
            number = await _whole(self._script(_ACQUIRE, keys, owner, _milliseconds(ttl)))
            return None if number is None else int(number)

        async def renew() -> bool:
            return bool(await self._script(_KEEP, (place,), owner, _milliseconds(ttl)))

        async def release() -> None:
            await _whole(self._script(_KEEP, (place,), owner, ""))

        async with self._tasks.hold(name):
            try:
                number = await poll(attempt)
                async with renewed(self, name, ttl, renew):
                    yield number
            finally:
                await give_back(release, ttl, lambda: asyncio.get_running_loop() in self._loops)

    async def may_forget(self) -> str | None:
        """Return why entries that have no end may be lost; None: they are kept, or it is unknown.

        For the ledger, which must not stand on what forgets.
        """
        try:
            memory = await self._command("INFO", "memory")
            persistence = await self._command("INFO", "persistence")
        except StoreError as error:
            if isinstance(error, StoreUnreachable):
                raise
            return None  # a user that may not ask
        if str(_fact(memory, "maxmemory_policy")).startswith("allkeys"):
            return "it drops entries when its memory is full (maxmemory-policy)"
        if _fact(persistence, "aof_enabled") == "0":
            return "it forgets what it was told last when it ends (appendonly is off)"
        return await self._syncs_late()

    async def _syncs_late(self) -> str | None:
        """Return why an answer may come before what it tells of is on the disk."""
        try:
            answer = await self._command("CONFIG", "GET", "appendfsync")
        except StoreError as error:
            if isinstance(error, StoreUnreachable):
                raise
            return None  # a user that may not ask
        words = str(answer)
        if "always" in words or "appendfsync" not in words:
            return None
        # With "everysec" it answers before it has written, for up to two seconds, while an
        # earlier sync is slow: a kill is enough to lose what was answered.
        return "it answers before it has written (appendfsync is not always)"

    async def close(self) -> None:
        """Close the connections of this loop. The next use opens them again."""
        pool = self._loops.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()

    # Commands

    def _key(self, key: str, kind: str = "entry:") -> bytes:
        return f"{self._prefix}{kind}{key}".encode("utf-8", "surrogatepass")

    async def _script(self, script: _Script, keys: tuple[bytes, ...], *values: Any) -> Any:
        try:
            return await self._command("EVALSHA", script.digest, len(keys), *keys, *values)
        except StoreError as error:
            if not isinstance(error.__cause__, self._link.NoScriptError):
                raise
        return await self._command("EVAL", script.text, len(keys), *keys, *values)

    async def _command(self, *words: Any) -> Any:
        """Run one command within the patience; raise `StoreError` if it did not succeed."""
        loop = asyncio.get_running_loop()
        pool = self._loops.get(loop)
        if pool is None:
            pool = self._loops[loop] = self._link.Pool(self._url, self._patience)
        async with pool.places:
            if self._reason and self.is_down:
                raise StoreUnreachable(
                    f"{self!r} is not asked for {self._rest:g} s: {self._reason}"
                )
            try:
                answer = await pool.run(words)
            except self._link.NO_ANSWER as error:
                raise self._failed(error) from error
            except self._link.RedisError as error:
                raise StoreError(f"{self!r}: {self._link.reason_of(error)}") from error
        if self._reason:
            log.warning("%r answers again", self)
            self._reason = ""
        return answer

    def _failed(self, error: Exception) -> StoreUnreachable:
        """Count as down for a while; tell it if it was up before."""
        was_up, self._down_until = not self._reason, time.monotonic() + self._rest
        self._reason = str(error) or f"no answer within {self._patience:g} s"
        if was_up:
            log.warning("%r is down, and not asked for %g s: %s", self, self._rest, self._reason)
            for watcher in tuple(self._watchers):
                watcher.store_down(repr(self), self._reason)
        return StoreUnreachable(f"{self!r}: {self._reason}")


async def _whole(work: Coroutine[Any, Any, T]) -> T:
    """Await a command that is not left half done if the caller is cancelled."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()
        raise


def _fact(info: Any, name: str) -> str | None:
    """Return one line of the text of INFO."""
    if isinstance(info, dict):
        return None if name not in info else str(info[name])
    match = re.search(rf"^{name}:(\S*)", bytes(info).decode(errors="replace"), re.MULTILINE)
    return None if match is None else match[1]


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _parsed(url: object) -> SplitResult:
    """Return the parts of a URL; the error does not repeat it."""
    try:
        parts = urlsplit(str(url))
        parts = parts._replace(scheme=_VALKEY.get(parts.scheme, parts.scheme))
        fault = "" if parts.scheme in _SCHEMES else "must begin with redis://, rediss:// or unix://"
        if parts.scheme == "unix":
            fault = fault or ("" if parts.path else "must have the path of a socket")
        elif not _DATABASE.fullmatch(parts.path):
            fault = fault or "must end with the number of a database, as /0"
        _ = parts.port
    except ValueError:
        fault = "has a host or port that is none"  # or a password with a slash
    if fault:
        raise ValidationError(f"RedisStore: the URL {fault}")
    return parts


def _place(parts: SplitResult) -> str:
    """Return a URL without credentials, for people."""
    host = parts.hostname or ""
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path}"


def _key_bytes(key: object) -> bytes:
    """Return the bytes of a key; the error does not repeat it."""
    if isinstance(key, str):
        with contextlib.suppress(binascii.Error, ValueError):
            text = key.strip().replace("-", "+").replace("_", "/").rstrip("=")
            key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    if not isinstance(key, bytes) or len(key) != _KEY_BYTES:
        make = "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        text = f"must be {_KEY_BYTES} bytes, or those in base64, as from: {make}"
        raise ValidationError(f"RedisStore(login_key=…): {text}")
    return key
