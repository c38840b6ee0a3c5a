"""Where entries are kept that outlive a call: cached responses, logins, and the ledger.

base        Store: what every store does; locks between tasks
memory      MemoryStore: for as long as the process runs, bounded
files       FileStore: a folder of private files, for processes of one user
sqlite      SqliteStore: one file for many processes of one machine
redis       RedisStore: Redis or Valkey, for workers on many machines
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._lazy import lazily

if TYPE_CHECKING:
    from holdfast.stores.base import Store as Store
    from holdfast.stores.base import StoreError as StoreError
    from holdfast.stores.base import StoreUnreachable as StoreUnreachable
    from holdfast.stores.files import FileStore as FileStore
    from holdfast.stores.memory import MemoryStore as MemoryStore
    from holdfast.stores.redis import RedisStore as RedisStore
    from holdfast.stores.sqlite import SqliteStore as SqliteStore

_HOMES = {
    "base": ("Store", "StoreUnreachable", "StoreError"),
    "memory": ("MemoryStore",),
    "files": ("FileStore",),
    "sqlite": ("SqliteStore",),
    "redis": ("RedisStore",),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)  # noqa: PLE0605

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
