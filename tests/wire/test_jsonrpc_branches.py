"""Errors that we answer with: data is there only if it was given."""

from __future__ import annotations

import json

import pytest

from holdfast._core.wire import jsonrpc
from holdfast._core.wire.codes import METHOD_NOT_FOUND


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (None, {"code": -32601, "message": "no such method"}),
        ({"a": [1]}, {"code": -32601, "message": "no such method", "data": {"a": [1]}}),
        (0, {"code": -32601, "message": "no such method", "data": 0}),
    ],
)
def test_an_error_carries_the_data_that_was_given(data: object, error: object) -> None:
    frame = jsonrpc.error_response(7, METHOD_NOT_FOUND, "no such method", data)
    assert frame.endswith(b"\n")
    assert json.loads(frame) == {"jsonrpc": "2.0", "id": 7, "error": error}
