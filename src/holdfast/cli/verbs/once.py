"""``holdfast once``: what the ledger knows of calls with a key; settle and forget them."""

from __future__ import annotations

import asyncio
import os
import re
import time
from typing import Any, Final

import click
import msgspec

from holdfast._core.ledger.ledger import Ledger
from holdfast._core.ledger.record import Record, encode
from holdfast.cli.app import option, output_option
from holdfast.cli.output import Exit, Output
from holdfast.cli.views import table
from holdfast.errors import ValidationError
from holdfast.stores.base import store_at

_SPANS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
STORE = option("--store PLACE", "Records in Redis (redis://HOST), or in a SQLite file.", "store")
SERVER = option("--server NAME", "The server, if several have a record of the key.", "server")


@click.group(no_args_is_help=True)
def once() -> None:
    """Calls with a key (call --once KEY): what is known, and decisions.

    \b
    holdfast call payments.charge cents=500 --once order-4711
    holdfast once show
    holdfast once settle order-4711 --ran --result 'receipt 981'
    """


@once.command("show")
@click.argument("key", required=False)
@option("--open", "Only those without an outcome.", "is_open")
@SERVER
@STORE
@output_option
def show(
    key: str | None, is_open: bool, server: str | None, store: str | None, output: Output
) -> int:
    """Show the record of a key, or all of them, the latest first."""
    ledger = _ledger(store)
    if key is not None:
        record = asyncio.run(ledger.get(key, server))
        if record is None:
            text = f"there is no record of {key!r}; all there are: holdfast once show"
            return output.complain(text, Exit.USAGE, "validation")
        output.value(_facts(record))
        return Exit.OK
    records = [
        record for record in asyncio.run(ledger.records()) if server in (None, record.server)
    ]
    if is_open:
        records = [record for record in records if record.outcome is None and not record.is_free]
    rows = [
        (record.key, record.state, record.server, record.tool, _when(record.changed), record.note)
        for record in records
    ]
    columns = ("open key" if is_open else "key", "state", "server", "tool", "written", "note")
    table(output, {"records": [_facts(record) for record in records]}, columns, rows, "The ledger")
    return Exit.OK


@once.command("settle")
@click.argument("key")
@option("--ran", "It ran at the server.")
@option("--not-run", "It did not run: the key is free again.", "is_free")
@option("--result TEXT", "Its result: a text, or a JSON object.", "result")
@option("--note TEXT", "How you know.", "note", default="")
@SERVER
@STORE
@output_option
def settle(
    key: str,
    *,
    ran: bool,
    is_free: bool,
    result: str | None,
    note: str,
    server: str | None,
    store: str | None,
    output: Output,
) -> int:
    """Decide about a call whose outcome is not known, when you have found out.

    With --not-run the key is free: the next call with it runs. Make sure that the process which
    began it has ended.
    """
    if ran is is_free:
        raise click.UsageError("Say whether it ran: --ran or --not-run.")
    settling = _ledger(store).settle(key, ran=ran, result=_value(result), note=note, server=server)
    record = asyncio.run(settling)
    output.result(_facts(record), f"{record.key} is {'done' if ran else 'free'}.")
    return Exit.OK


@once.command("forget")
@click.argument("key", required=False)
@option("--older-than AGE", "All with an outcome that are older: 90d, 12h, 30m.", "age")
@SERVER
@STORE
@output_option
def forget(
    key: str | None, age: str | None, server: str | None, store: str | None, output: Output
) -> int:
    """Delete the record of a key, or old ones. What is forgotten can run again."""
    if (key is None) == (age is None):
        raise click.UsageError("Give a key, or --older-than.")
    seconds = None if age is None else _seconds(age)
    count = asyncio.run(_ledger(store).forget(key, server=server, older_than=seconds))
    if key is not None and not count:
        return output.complain(f"there is no record of {key!r}", Exit.USAGE, "validation")
    output.result({"forgotten": count}, f"{count} forgotten.")
    return Exit.OK


def _ledger(store: str | None) -> Ledger:
    if store is None:
        return Ledger()
    if "://" not in store and not os.path.isfile(os.path.expanduser(store)):
        raise ValidationError(f"--store {store}: there is no such file")
    return Ledger(store_at(store))


def _facts(record: Record) -> dict[str, Any]:
    """Return a record as people read it."""
    facts: dict[str, Any] = msgspec.json.decode(encode(record))
    facts["begun"], facts["changed"] = _when(record.begun), _when(record.changed)
    return {name: value for name, value in facts.items() if value not in (None, "")}


def _when(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "?"


def _value(text: str | None) -> Any:
    """Return a result: a JSON object, or the text itself."""
    if text is not None and text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise click.UsageError(f"--result: not JSON: {error}") from None
    return text


def _seconds(age: str) -> float:
    match = re.fullmatch(r"(\d{1,9})([smhdw])", age)
    if match is None:
        raise click.UsageError(f"--older-than {age}: must be a number with s, m, h, d or w.")
    return int(match[1]) * _SPANS[match[2]]
