"""Real servers: installed when first needed, the heavy ones only when all are asked for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.interop.catalogue import Server, Way
from tests.interop.home import Home, Settle
from tests.interop.hosting import Hosted
from tests.interop.install import Broken, NotHere, install

EVERY_SERVER = os.environ.get("HOLDFAST_INTEROP") == "all"
HERE = Path(__file__).parent


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """An ordinary clock: processes of others are waited for, also where nothing tells of them."""
    return {"plain": asyncio.new_event_loop}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the heavy servers out, and give the first test of each the time to install it."""
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        ours = HERE in item.path.parents
        if ours:
            item.add_marker(pytest.mark.hang(900))
        heavy = ours and item.get_closest_marker("slow_interop") is not None
        (left if heavy and not EVERY_SERVER else kept).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


@pytest.fixture(autouse=True)
def swift(request: pytest.FixtureRequest) -> None:
    """Whatever had to be installed is; the test itself has no more time than any other."""
    request.node.add_marker(pytest.mark.hang(240), append=False)


@pytest.fixture(scope="session")
def settle(tmp_path_factory: pytest.TempPathFactory) -> Settle:
    unreachable: list[str] = []

    def make(server: Server, way: Way = "stdio") -> Home:
        if unreachable:
            pytest.skip(unreachable[0])
        try:
            folder = install(server.source, server.name, server.pins)
            work = tmp_path_factory.mktemp(server.name)
            server.prepare(work)
        except NotHere as reason:
            if "cannot be reached" in str(reason):
                unreachable.append(str(reason))
            pytest.skip(f"{server}: {reason}")
        except Broken as fault:
            pytest.fail(f"{server} could not be installed:\n{fault}", pytrace=False)
        kind = Home if way == "stdio" else Hosted
        return kind(server, folder, work, way)

    return make
