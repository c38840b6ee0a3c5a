"""Exit codes: one for each kind of failure, so that scripts can tell."""

from __future__ import annotations

import pytest

from holdfast import errors
from holdfast.cli.output import Exit, exit_for
from tests.rows import rows

CODES = {
    errors.ToolError: 1,
    errors.ApprovalError: 5,
    errors.RpcError: 1,
    errors.ResourceNotFoundError: 1,
    errors.HandshakeRefused: 3,
    errors.ValidationError: 2,
    errors.TransportError: 3,
    errors.ProtocolError: 3,
    errors.StateError: 3,
    errors.CancelledCallError: 3,
    errors.ShutdownError: 3,
    errors.BackpressureError: 3,
    errors.HoldfastError: 3,
    errors.RequestTimeout: 4,
    errors.HandshakeTimeout: 4,
    errors.OutcomeUnknown: 4,
    errors.AuthError: 5,
    errors.LoginRequired: 5,
    errors.LoginPending: 5,
    errors.LoginFailed: 5,
    errors.ScopeError: 5,
    errors.DiscoveryError: 5,
    errors.GrantError: 5,
    errors.TrustError: 5,
    errors.DriftError: 6,
}


@pytest.mark.req("F3")
@rows("kind", CODES, ids=lambda kind: kind.__name__)
def test_an_error_has_its_code(kind: type[errors.HoldfastError]) -> None:
    assert exit_for(kind("")) == CODES[kind]


def test_every_error_has_one() -> None:
    kinds = {one for one in vars(errors).values() if isinstance(one, type)}
    assert {one for one in kinds if issubclass(one, errors.HoldfastError)} == CODES.keys()


def test_the_codes_stay_as_they_are() -> None:
    assert {one.name: one.value for one in Exit} == {
        "OK": 0,
        "TOOL": 1,
        "USAGE": 2,
        "CONNECT": 3,
        "TIMEOUT": 4,
        "AUTH": 5,
        "DRIFT": 6,
        "FAULT": 70,
        "INTERRUPTED": 130,
        "BROKEN_PIPE": 141,
    }
