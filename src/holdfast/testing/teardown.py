"""Close a test's clients on the event loop of the test.

A client must be closed on the loop that opened it, and that loop belongs to the plugin that runs
the test: pytest-asyncio closes it in a fixture of its own, anyio once nothing async is left. So
clients are closed by an async fixture of that plugin: set up before whatever depends on
``mcp_client``, torn down after it, while the loop still exists. With an unknown plugin
`ClientScope.close` does it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Final, Literal, TypeAlias, get_args

import pytest

from holdfast.testing.fixtures import ClientScope

Scope: TypeAlias = Literal["session", "package", "module", "class", "function"]

PLUGIN: Final = "holdfast-teardown"


def fixtures(config: pytest.Config) -> ModuleType:
    """Return a plugin with one fixture for each kind of loop that a test may run on."""
    made = ModuleType(PLUGIN)
    vars(made)["anyio"] = pytest.fixture(name="_mcp_end_anyio")(_ending())
    if _has_asyncio(config):
        import pytest_asyncio

        for scope in get_args(Scope):
            named = pytest_asyncio.fixture(loop_scope=scope, name=f"_mcp_end_{scope}")
            vars(made)[scope] = named(_ending())
    return made


def _ending() -> Callable[[ClientScope], AsyncIterator[None]]:
    async def end(_mcp_scope: ClientScope) -> AsyncIterator[None]:
        yield
        await _mcp_scope.end()

    return end


def _has_asyncio(config: pytest.Config) -> bool:
    return any(config.pluginmanager.hasplugin(name) for name in ("asyncio", "pytest_asyncio"))


def arrange(request: pytest.FixtureRequest) -> None:
    """Request the fixture that closes the test's clients on its own loop."""
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
