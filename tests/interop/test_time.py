"""One server through three ages of its SDK."""

from __future__ import annotations

import json

import pytest

from holdfast import Timeouts
from holdfast.errors import HandshakeTimeout
from tests.interop.catalogue import TIME, TIME_1_0, TIME_1_9
from tests.interop.home import Counted, Home, Settle, ask


@pytest.fixture
def home(settle: Settle) -> Home:
    return settle(TIME)


@pytest.fixture
def old(settle: Settle) -> Home:
    """Built with the first SDK there was."""
    return settle(TIME_1_0)


@pytest.mark.req("V3", "T2")
@pytest.mark.parametrize("pin", [None, "2025-11-25"])
async def test_a_time_zone_that_is_none_is_an_error_of_the_tool(
    home: Home, pin: str | None
) -> None:
    async with home.visit(protocol=pin) as client:
        now = await client.call_tool("get_current_time", {"timezone": "UTC"})
        assert json.loads(now.text)["timezone"] == "UTC"
        result = await client.call_tool("get_current_time", {"timezone": "Nowhere/Land"})
        assert result.is_error
        assert "Nowhere/Land" in result.text


@pytest.mark.req("V3", "P1", "P3")
async def test_what_is_declared_may_be_empty(home: Home) -> None:
    async with home.visit() as client:
        assert await client.list_resources() == []
        assert await client.list_resource_templates() == []
        assert await client.list_prompts() == []


@pytest.mark.req("V3", "L3", "L5")
async def test_a_server_that_dies_of_the_probe_is_started_again_at_once(old: Home) -> None:
    """Twice for the first client; never again once it is known, whoever asks."""
    target = old.target()
    assert isinstance(target, Counted)
    async with old.visit(target=target) as client:
        assert target.starts == 2
        assert client.protocol_version == "2024-11-05"
        await ask(client, old.question(1))
        await old.crash(client)
        assert target.starts == 3
    again = old.target()
    assert isinstance(again, Counted)
    async with old.visit(target=again) as client:
        assert again.starts == 1
        await ask(client, old.question(2))


@pytest.mark.req("V3", "L3", "L6")
async def test_a_pin_that_is_met_with_silence_is_a_handshake_timeout(old: Home) -> None:
    brief = Timeouts(handshake=1.0)
    async with old.connect(protocol="2026-07-28", timeouts=brief) as client:
        with pytest.raises(HandshakeTimeout, match="server/discover"):
            await client.open()
    assert await old.is_empty()


@pytest.mark.slow_interop
@pytest.mark.req("V3", "L3", "X1")
async def test_a_traceback_on_stderr_does_no_harm(settle: Settle) -> None:
    home = settle(TIME_1_9)
    lines: list[str] = []
    async with home.visit(target=home.target(stderr=lines.append)) as client:
        await ask(client, home.question(1))
        assert client.violations == {}
    assert any("ValidationError" in line or "validation error" in line for line in lines)
