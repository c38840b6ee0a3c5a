"""A server in Go, behind a launcher in JavaScript."""

from __future__ import annotations

import os
import signal

import pytest

from tests.interop.catalogue import KUBERNETES
from tests.interop.home import Home, Settle, ask
from tests.interop.processes import ended, outermost


@pytest.fixture
def home(settle: Settle) -> Home:
    return settle(KUBERNETES)


@pytest.mark.req("V3", "L5", "L8")
async def test_a_launcher_that_dies_leaves_no_native_program_behind(home: Home) -> None:
    async with home.visit(when_down="wait") as client:
        before = home.processes()
        native = home.process()
        assert outermost(before) != native
        os.kill(outermost(before), signal.SIGKILL)
        await ended(native)
        await ask(client, home.question(1))
        assert not before & home.processes()


@pytest.mark.req("V3", "T2")
async def test_a_cluster_that_is_not_there_is_an_error_of_the_tool(home: Home) -> None:
    async with home.visit() as client:
        result = await client.call_tool("namespaces_list")
        assert result.is_error
        assert "127.0.0.1:9" in result.text


@pytest.mark.req("V3", "P3")
@pytest.mark.parametrize("pin", [None, "2025-11-25"])
async def test_its_prompt_is_described(home: Home, pin: str | None) -> None:
    async with home.visit(protocol=pin) as client:
        (prompt,) = await client.list_prompts()
        assert prompt.name == "cluster-health-check"
        assert {argument.name for argument in prompt.arguments or ()} >= {"namespace"}
