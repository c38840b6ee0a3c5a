"""A server of large results, and a relay that notes how much memory it needed at the most."""

from __future__ import annotations

import asyncio
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import holdfast
from holdfast._core.eras.serving import select
from holdfast._core.serve import stdio
from holdfast._core.server.catalog import Catalog, Offered
from holdfast._core.server.request import text_result
from holdfast._core.server.server import Server
from holdfast.relay.sharing import SharedRelay

SIZE = 10 * 1024 * 1024
"""Bytes of the result."""


def serve_large(era: str) -> None:
    catalog = Catalog()
    definition = {"name": "large", "inputSchema": {"type": "object"}}
    catalog.tools["large"] = Offered(definition, lambda request, _: text_result("x" * SIZE))
    measure = {"name": "measure", "inputSchema": {"type": "object"}}
    catalog.tools["measure"] = Offered(
        measure, lambda request, arguments: text_result(str(len(arguments["text"])))
    )
    options: dict[str, Any] = {"capabilities": lambda: {"tools": {}}, "versions": select(era)}
    stdio.run(Server("large", catalog.handlers(), **options))


async def relay(era: str, note: Path) -> None:
    """Relay to such a server; note the bytes that were in use at the most."""
    async with holdfast.connect([sys.executable, __file__, era]) as client:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        await stdio.serve(SharedRelay(client).join().server)
        note.write_text(str(tracemalloc.get_traced_memory()[1] - before))


async def relay_resident(era: str, note: Path) -> None:
    """Do the same; note by how much the resident memory grew at the most, as Linux counts it."""
    async with holdfast.connect([sys.executable, __file__, era]) as client:
        before = resident("VmRSS")
        await stdio.serve(SharedRelay(client).join().server)
        note.write_text(str(resident("VmHWM") - before))


def resident(field: str) -> int:
    """Return a count of this process, in bytes."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve_large(sys.argv[1])
    else:
        run = relay_resident if "--resident" in sys.argv else relay
        asyncio.run(run(sys.argv[1], Path(sys.argv[2])))
