"""The secret arguments of an observed call: announced, but for calls that have none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast._core.observers.observer import hold_arguments, secret_names_of
from holdfast._core.redact.known import KNOWN
from holdfast.errors import HoldfastError
from holdfast.types.base import decode
from holdfast.types.tools import Tool

SECRET = "wombat-forty-two"


def tool(**properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties}
    return decode(msgspec.json.encode({"name": "t", "inputSchema": schema}), Tool)


@pytest.mark.req("T8")
@pytest.mark.parametrize("is_judged", [True, False], ids=["judged", "first call"])
@pytest.mark.parametrize(
    ("arguments", "properties"),
    [
        ({"password": SECRET}, {}),
        ({"text": "a", "options": {"api_key": SECRET}}, {}),
        ({"steps": [{"token": SECRET}]}, {}),
        ({"text": SECRET}, {"text": {"type": "string", "format": "password"}}),
        ({**{f"a{number}": 1 for number in range(40)}, "secret": SECRET}, {}),
    ],
    ids=["name", "nested", "listed", "schema", "many"],
)
def test_a_secret_argument_is_known_while_its_call_lives(
    arguments: dict[str, Any], properties: dict[str, Any], is_judged: bool
) -> None:
    called, owner = tool(**properties), HoldfastError("it failed")
    if is_judged:
        secret_names_of(called)
    hold_arguments(owner, {"name": "t", "arguments": arguments}, called)
    assert SECRET not in KNOWN.hide(f"it says {SECRET}")


@pytest.mark.req("T8")
def test_arguments_that_are_no_secrets_are_shown() -> None:
    called, owner = tool(), HoldfastError("it failed")
    secret_names_of(called)
    for arguments in ({"text": SECRET, "count": 2}, {"options": {"text": SECRET}}):
        hold_arguments(owner, {"name": "t", "arguments": arguments}, called)
        assert KNOWN.hide(f"it says {SECRET}") == f"it says {SECRET}"
