"""Closing on the loop of the test.

A client can only be closed on the loop that it was opened on, and that loop belongs to whichever
plugin runs the test: pytest-asyncio ends it with a fixture of its own, anyio as soon as nothing
async is left. So the closing is an async fixture of that plugin's: it is set up before what
depends on ``mcp_client``, which gives it the loop, and torn down after it, while the loop is
still there. A plugin that we do not know leaves it to `Keeper.close`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Final, Literal, TypeAlias, get_args

import pytest

from holdfast.testing.fixtures import Keeper

Scope: TypeAlias = Literal["session", "package", "module", "class", "function"]

PLUGIN: Final = "holdfast-endings"


def fixtures(config: pytest.Config) -> ModuleType:
    """A plugin with one fixture for each kind of loop that a test may run on."""
    made = ModuleType(PLUGIN)
    vars(made)["anyio"] = pytest.fixture(name="_mcp_end_anyio")(_ending())
    if _has_asyncio(config):
        import pytest_asyncio

        for scope in get_args(Scope):
            named = pytest_asyncio.fixture(loop_scope=scope, name=f"_mcp_end_{scope}")
            vars(made)[scope] = named(_ending())
    return made


def _ending() -> Callable[[Keeper], AsyncIterator[None]]:
    async def end(_mcp_keeper: Keeper) -> AsyncIterator[None]:
        yield
        await _mcp_keeper.end()

    return end


def _has_asyncio(config: pytest.Config) -> bool:
    return any(config.pluginmanager.hasplugin(name) for name in ("asyncio", "pytest_asyncio"))


def arrange(request: pytest.FixtureRequest) -> None:
    """Have the test's clients closed on its own loop, whoever runs that."""
    name = _fixture_for(request)
    if name is None:
        return
    manager = request.config.pluginmanager
    if not manager.hasplugin(PLUGIN):
        manager.register(fixtures(request.config), PLUGIN)
    request.getfixturevalue(name)


def _fixture_for(request: pytest.FixtureRequest) -> str | None:
    if "anyio_backend" in request.fixturenames:
        backend = request.getfixturevalue("anyio_backend_name")
        if backend != "asyncio":
            pytest.fail(f"Holdfast runs on asyncio, and this test on {backend}", pytrace=False)
        return "_mcp_end_anyio"
    marker = request.node.get_closest_marker("asyncio")
    if marker is None or not _has_asyncio(request.config):
        return None
    given = marker.kwargs.get("loop_scope") or marker.kwargs.get("scope")
    return f"_mcp_end_{given or request.config.getini('asyncio_default_test_loop_scope')}"
