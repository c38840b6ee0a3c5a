"""The ledger: claim a key, note what was sent, settle how it ended."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from holdfast._core.ledger import texts
from holdfast._core.ledger.owner import Owner, Unwritten
from holdfast._core.ledger.record import (
    CorruptRecord,
    Record,
    RecordedOutcome,
    State,
    decode,
    digest_of,
    encode,
    moved,
)
from holdfast._core.ledger.rules import Request, decide
from holdfast._core.text import visible
from holdfast.errors import Hint, HoldfastError, StateError, ValidationError
from holdfast.stores.base import Store, StoreError, poll

log: logging.Logger = logging.getLogger("holdfast")

LEASE: Final = 30.0
"""Seconds after which the owner of a record that does not renew its lease counts as dead."""
OUTCOME_BYTES: Final = 1024 * 1024
"""The largest outcome that is kept."""
PREFIX: Final = "once\n"


class Claim(Struct, eq=False):
    """A record that a caller holds, or the outcome that it found."""

    record: Record
    place: str
    """Its key in the store."""
    owner: Owner
    possible: list[bytes | None] = []
    """What the store may hold: one entry, or more after a write of unknown fate."""
    is_held: bool = False
    """True: the caller is the one that runs, or follows the task."""


class Ledger:
    """Records of calls that run at most once, in a store.

    Args:
        store: A `holdfast.stores.Store` with ``swap``. None: a SQLite file in the user's state
            folder, for the processes of one machine. Use `holdfast.stores.RedisStore` for many.
        by: What tells the keys of servers apart. ``"definition"``: how the server is started or
            reached, with its environment, headers and account; another command, or another key of
            an API, is another server. ``"name"``: the name of the client, and the account of its
            login: for servers whose definition changes with every deployment.
        lease: Seconds after which a process that died counts as dead, where it is not seen to
            have ended. One that lives renews it.
        outcome_bytes: The largest outcome that is kept.
        redact: Hide credentials in outcomes before they are stored. Whoever gets a recorded
            outcome then gets the redacted one.
        may_forget: Use a store even if it says that it may forget records.

    Example:
        ```python
        ledger = holdfast.Ledger(holdfast.stores.RedisStore("redis://localhost"))
        async with holdfast.connect("payments", ledger=ledger) as client:
            await client.call_tool("charge", {"cents": 100}, once="order-4711")
        ```
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        by: Literal["definition", "name"] = "definition",
        lease: float = LEASE,
        outcome_bytes: int = OUTCOME_BYTES,
        redact: bool = False,
        may_forget: bool = False,
    ) -> None:
        if store is not None and not hasattr(store, "swap"):
            raise ValidationError(f"Ledger({store!r}): must be a holdfast.stores.Store with swap()")
        if by not in ("definition", "name"):
            raise ValidationError(f"Ledger(by={by!r}): must be 'definition' or 'name'")
        if type(lease) not in (int, float) or not 0 < lease < math.inf:
            raise ValidationError(f"Ledger(lease={lease!r}): must be a number, more than 0")
        if type(outcome_bytes) is not int or outcome_bytes < 0:
            text = f"Ledger(outcome_bytes={outcome_bytes!r}): must be a number, 0 or more"
            raise ValidationError(text)
        self.by: Literal["definition", "name"] = by
        self._store = store
        self._lease = lease
        self._outcome_bytes = outcome_bytes
        self._redact = redact
        self._may_forget = may_forget
        self._owners: WeakKeyDictionary[asyncio.AbstractEventLoop, Owner] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return "<Ledger>" if self._store is None else f"<Ledger in {self._store!r}>"

    @property
    def store(self) -> Store:
        """The store; that of the user's state folder is made when it is first used."""
        if self._store is None:
            self._store = default_store()
        return self._store

    # For calls

    async def claim(
        self,
        key: str,
        *,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        server: str = "",
        scope: str = "",
        pending: str | None = None,
        until: float = math.inf,
    ) -> Claim:
        """Claim a key, or find how it ended.

        Args:
            key: The caller's name for this one call, such as the number of an order.
            tool: The tool.
            arguments: Its arguments.
            server: The name of the server, for people.
            scope: Tells servers and accounts apart: keys of two scopes do not meet.
            pending: A digest of the questions that the call answers.
            until: When to stop waiting for another owner, on the loop's clock.

        Returns:
            A claim. If it ``is_held``, the caller runs the call and settles it; else its record
            has the outcome.

        Raises:
            OutcomeUnknown: It was begun, and how it ended is not known.
            ValidationError: The key is no key, or belongs to another call.
            RequestTimeout: Another process works on it, and was not done in time.
            StateError: The ledger cannot be reached; nothing may be sent.
        """
        texts.check_key(key)
        about = texts.about(server, tool, key)
        try:
            request = Request(tool, digest_of(dict(arguments or {})), pending)
        except (TypeError, ValueError, RecursionError) as error:
            text = f"the arguments cannot be written as JSON: {error}"
            raise ValidationError(f"{about}: {text}; {texts.NOT_SENT}") from None
        place, now = place_of(key, scope), time.time()
        record = Record(
            key=key,
            server=server,
            scope=scope,
            tool=tool,
            arguments=request.arguments,
            state="intended",
            number=1,
            begun=now,
            changed=now,
        )
        limit, is_waiting = asyncio.timeout_at(until if until < math.inf else None), False
        try:
            async with limit:
                owner = await self._owner()
                await owner.flush(place)
                record = replace(record, owner=owner.id, host=owner.host)
                claim = await self._take(owner, place, None, record)
                claim = claim or await self._decide(owner, place, record, request)
                if claim is None:
                    is_waiting = True
                    claim = await poll(lambda: self._decide(owner, place, record, request))
                return claim
        except StoreError as error:
            raise texts.unreachable(about, error) from error
        except TimeoutError:
            if not limit.expired():
                raise
            raise texts.late(about, key, is_waiting=is_waiting) from None

    async def sent(self, claim: Claim, task_id: str | None = None) -> None:
        """Note that a call was sent, and the task that the server has made of it.

        Raises:
            StoreError: It could not be noted.
        """
        task_id = claim.record.task_id if task_id is None else task_id
        record = moved(claim.record, "sent", changed=time.time(), task_id=task_id)
        await self._write(claim, record)

    async def settle(
        self,
        claim: Claim | str,
        *,
        ran: bool | None = None,
        result: Any = None,
        error: HoldfastError | None = None,
        note: str = "",
        pending: str | None = None,
        server: str | None = None,
    ) -> Record:
        """Note how a call ended; by key, decide what nobody could know.

        Args:
            claim: A claim that is held; or a key, by whoever has found out.
            ran: True: it ran. False: it did not, and the key is free. None: that is unknown.
            result: The result: that of the server, a dict with its fields, or a text.
            error: The error that the server answered with.
            note: Why it did not run, or is unknown.
            pending: A digest of the questions that the server waits to be answered.
            server: The server, if several have a record of that key.

        Returns:
            The record as it is now.

        Raises:
            ValidationError: There is no such record, or it has an outcome.
            StateError: Its owner is alive, or the ledger cannot be reached.
        """
        if isinstance(claim, str):
            return await self._settle_by_hand(claim, ran, result, note, server)
        state: State = "unknown" if ran is None else "done" if ran else "failed"
        outcome = None
        if result is not None or error is not None:
            outcome = self._outcome(result, error)
        record = moved(
            claim.record,
            state,
            changed=time.time(),
            outcome=outcome,
            note=visible(note, 500),
            pending=pending,
        )
        try:
            await self._write(claim, record)
        except StoreError as failure:
            log.warning("once %r: its outcome is not noted yet: %s", record.key, failure)
            claim.owner.write_later(claim.place, Unwritten(claim.possible, encode(record)))
        except asyncio.CancelledError:
            claim.owner.write_later(claim.place, Unwritten(claim.possible, encode(record)))
            raise
        finally:
            claim.owner.running.discard(claim.place)
            claim.is_held = False
        return record

    # For people

    async def get(self, key: str, server: str | None = None) -> Record | None:
        """Return the record of a key; None if there is none.

        Raises:
            ValidationError: Several servers have one; ``server`` says which.
            StateError: The ledger cannot be reached.
        """
        entry = await self._find(key, server)
        return None if entry is None else decode(entry[1])

    async def records(self) -> list[Record]:
        """Return all records that can be read, the latest first.

        Raises:
            StateError: The ledger cannot be reached.
        """
        records = []
        for place, data in await self._entries(PREFIX):
            try:
                records.append(decode(data))
            except CorruptRecord as error:
                key = place.removeprefix(PREFIX).partition("\n")[0]
                log.warning("the record %r cannot be read: %s", key, error)
        return sorted(records, key=lambda record: record.changed, reverse=True)

    async def forget(
        self, key: str | None = None, *, server: str | None = None, older_than: float | None = None
    ) -> int:
        """Delete a record, or all with an outcome that are older; return how many.

        A key that is forgotten can run again.

        Args:
            key: The key.
            server: The server, if several have a record of it.
            older_than: Seconds since a record was written, by the clock of whoever wrote it.
                Records without an outcome are kept: they are what a ledger is for.

        Raises:
            ValidationError: Several servers have a record of the key; ``server`` says which.
            StateError: Its owner is alive, or the ledger cannot be reached.
        """
        if (key is None) == (older_than is None):
            raise ValidationError("forget: give a key, or older_than")
        if key is not None:
            entry = await self._find(key, server, readable=False)
            if entry is None:
                return 0
            with suppress(CorruptRecord):
                await self._require_rest("forget", entry[0], decode(entry[1]))
            return int(await self._change(*entry, None))
        assert older_than is not None
        before, count = time.time() - older_than, 0
        for record in await self.records():
            if record.changed < before and (record.outcome is not None or record.is_free):
                place = place_of(record.key, record.scope)
                count += await self._change(place, encode(record), None)
        return count

    # Inside

    async def _owner(self) -> Owner:
        loop = asyncio.get_running_loop()
        owner = self._owners.get(loop)
        if owner is None or owner.pid != os.getpid():
            await self._require_memory()
            owner = self._owners[loop] = Owner(self.store, self._lease)
        await owner.ensure_lease()
        return owner

    async def _require_memory(self) -> None:
        """Refuse a store that says that it forgets: a key would run twice."""
        ask = getattr(self.store, "may_forget", None)
        if ask is None or self._may_forget:
            return
        if (reason := await ask()) is not None:
            text = f"{self.store!r} may forget a record, and its key would run again: {reason}"
            hint = Hint("", "Ledger(may_forget=True) uses it all the same")
            raise StateError(f"{text}; {texts.NOT_SENT}", hints=(hint,))

    async def _decide(
        self, owner: Owner, place: str, intended: Record, request: Request
    ) -> Claim | None:
        """Decide on the record that is there; None: wait, and look again."""
        about = texts.about(intended.server, intended.tool, intended.key)
        data = await self.store.get(place)
        if data is None:
            return await self._take(owner, place, None, intended)
        try:
            record = decode(data)
        except CorruptRecord as error:
            text = f"its record cannot be read: {error}"
            raise texts.unknown(about, intended.key, text, None) from None
        lives = record.is_open and await owner.lives(place, record)
        verdict = decide(record, request, owner_lives=lives)
        if verdict == "run":
            return await self._take(owner, place, data, replace(intended, number=record.number + 1))
        if verdict == "other":
            text = texts.difference(record, request.tool)
            raise ValidationError(f"{about}: {text}; {texts.NOT_SENT}")
        if verdict == "unknown":
            raise texts.unknown(about, record.key, texts.story(record), record)
        if verdict == "follow":
            mine = {"owner": owner.id, "host": owner.host, "number": record.number + 1}
            followed = moved(record, "sent", changed=time.time(), **mine)
            return await self._take(owner, place, data, followed)
        return Claim(record, place, owner) if verdict == "known" else None

    async def _take(
        self, owner: Owner, place: str, old: bytes | None, record: Record
    ) -> Claim | None:
        """Write a record of ours in the place of another; None: somebody else was faster."""
        if place in owner.running:
            return None  # by another task of this process
        new, is_taken = encode(record), False
        owner.running.add(place)
        try:
            is_taken = await self._swap(place, old, new)
        except (StoreError, asyncio.CancelledError) as error:
            # It may be written, now or later, and was not sent: undo it when the store is back.
            note = "cancelled" if isinstance(error, asyncio.CancelledError) else str(error)
            undone = record
            if record.task_id is None:
                undone = moved(record, "failed", note=visible(note, 500))
            owner.write_later(place, Unwritten([new], encode(undone), is_doubtful=True))
            raise
        finally:
            if not is_taken:
                owner.running.discard(place)
        return Claim(record, place, owner, [new], is_held=True) if is_taken else None

    async def _swap(self, place: str, old: bytes | None, new: bytes | None) -> bool:
        """Swap; a store whose answer was lost may have done it before it is asked again."""
        if await self.store.swap(place, old, new):
            return True
        return old is not None and new is not None and await self.store.get(place) == new

    async def _write(self, claim: Claim, record: Record) -> None:
        """Write the next state of a claim, unless somebody has taken it over."""
        new, claim.record = encode(record), record
        for old in tuple(claim.possible):
            try:
                if await self._swap(claim.place, old, new):
                    claim.possible = [new]
                    return
            except (StoreError, asyncio.CancelledError):
                claim.possible = [*claim.possible, new]
                raise
        log.warning("once %r: another has decided about it meanwhile", record.key)

    def _outcome(self, result: Any, error: HoldfastError | None) -> RecordedOutcome:
        """Return an outcome to be kept, redacted if that is asked for, and not too large."""
        value: Any = result
        if error is not None:
            value = {"type": type(error).__name__, "message": error.message, "code": error.code}
            value |= {"data": error.data, "server_message": getattr(error, "server_message", "")}
        elif self._redact and isinstance(result, Raw):
            value = msgspec.json.decode(result)
        if self._redact:
            value = texts.redacted(value)
        # A copy: what came from the wire shares its buffer.
        raw = value.copy() if isinstance(value, Raw) else Raw(msgspec.json.encode(value))
        if len(memory := bytes(raw)) > self._outcome_bytes:
            return RecordedOutcome(size=len(memory))
        return RecordedOutcome(result=raw) if error is None else RecordedOutcome(error=value)

    async def _settle_by_hand(
        self, key: str, ran: bool | None, result: Any, note: str, server: str | None
    ) -> Record:
        if type(ran) is not bool:
            raise ValidationError(f"settle({key!r}): ran must be True or False")
        if result is not None and not ran:
            raise ValidationError(f"settle({key!r}): what did not run has no result")
        place, data, record = await self._find_unsettled(key, server)
        outcome = None
        if ran:
            outcome = replace(self._outcome(texts.as_result(result), None), by_hand=True)
        settled = moved(
            record,
            "done" if ran else "failed",
            outcome=outcome,
            changed=time.time(),
            number=record.number + 1,
            note=visible(note or "settled by hand", 500),
        )
        if not await self._change(place, data, encode(settled)):
            raise StateError(f"settle({key!r}): it was changed meanwhile; look again")
        return settled

    async def _find_unsettled(self, key: str, server: str | None) -> tuple[str, bytes, Record]:
        """Return a record that waits to be settled by hand."""
        entry = await self._find(key, server)
        if entry is None:
            raise ValidationError(f"settle({key!r}): there is no such record")
        place, data = entry
        record = decode(data)
        if record.state in ("done", "failed"):
            raise ValidationError(f"settle({key!r}): it is {record.state}; forget it first")
        await self._require_rest("settle", place, record)
        return place, data, record

    async def _require_rest(self, verb: str, place: str, record: Record) -> None:
        """Refuse to decide about a record that its owner works on. Whoever asks claims nothing."""
        owner = self._owners.get(asyncio.get_running_loop()) or Owner(self.store, self._lease)
        try:
            is_live = record.is_open and await owner.lives(place, record)
        except StoreError as error:
            raise texts.unreachable("", error) from error
        if is_live:
            raise StateError(f"{verb}({record.key!r}): {record.host} is working on it")

    async def _change(self, place: str, old: bytes, new: bytes | None) -> bool:
        try:
            return await self._swap(place, old, new)
        except StoreError as error:
            raise texts.unreachable("", error) from error

    async def _entries(self, prefix: str) -> list[tuple[str, bytes]]:
        try:
            places = await self.store.keys(prefix)
            entries = [(place, await self.store.get(place)) for place in places]
        except StoreError as error:
            raise texts.unreachable("", error) from error
        return [(place, data) for place, data in entries if data is not None]

    async def _find(
        self, key: str, server: str | None, *, readable: bool = True
    ) -> tuple[str, bytes] | None:
        """Return where the record of a key is, and what is there."""
        texts.check_key(key)
        matching: list[tuple[str, bytes]] = []
        names: list[str] = []
        for place, data in await self._entries(place_of(key, "")):
            try:
                name = decode(data).server
            except CorruptRecord as error:
                if readable:
                    raise StateError(f"the record {key!r} cannot be read: {error}") from None
                name = server or ""
            if server is None or name == server:
                matching.append((place, data))
                names.append(name)
        if len(matching) > 1:
            text = f"{len(names)} servers or accounts have a record of {key!r}"
            raise ValidationError(f"{text}: {', '.join(sorted(names))}; say which server")
        return matching[0] if matching else None


def place_of(key: str, scope: str) -> str:
    """Return the key of a record in the store."""
    return f"{PREFIX}{key}\n{scope}"


def default_store() -> Store:
    """Return the store in the user's state folder."""
    from holdfast._core import files
    from holdfast.stores.sqlite import SqliteStore

    folder = files.xdg_folder("state") / "holdfast"
    try:
        files.make_private_folder(folder)
    except OSError as error:
        raise StoreError(f"{folder}: {files.reason(error)}") from error
    return SqliteStore(folder / "ledger.db")
