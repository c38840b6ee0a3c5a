"""What failures usually mean."""

from __future__ import annotations

import pytest

from holdfast import errors
from holdfast.cli.verbs.doctor import advice, missing_variable


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("KeyError: 'GITHUB_TOKEN'", "GITHUB_TOKEN"),
        ("Error: BRAVE_API_KEY environment variable is required", "BRAVE_API_KEY"),
        ("Please set SLACK_BOT_TOKEN and SLACK_TEAM_ID", "SLACK_BOT_TOKEN"),
        ("missing required variable: DATABASE_URL", "DATABASE_URL"),
        ("TOKEN not set", "TOKEN"),
        ("the index was not set", None),
        ("KeyError: 'name'", None),
        ("", None),
    ],
)
def test_a_missing_variable_is_found_in_what_the_server_says(
    text: str, variable: str | None
) -> None:
    assert missing_variable(text) == variable


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.TransportError("command not found: 'x'"), "check the spelling"),
        (errors.TransportError("x: Permission denied"), "chmod +x"),
        (errors.TransportError("cannot start 'x': it is not executable"), "chmod +x"),
        (errors.TransportError("cannot start 'x': it is a directory"), "the program in it"),
        (errors.TransportError("it answered with HTTP status 404: Not Found"), "/mcp"),
        (errors.TransportError("x answered with text/html, not JSON: <html>"), "another path"),
        (errors.TransportError("x gave no answer in its response"), "another path"),
        (errors.TransportError("x answered with HTTP status 502: Bad"), "see its log"),
        (errors.RpcError("it answered initialize: method not found", code=-32601), "speak MCP"),
        (errors.TransportError("x", stderr_tail="No module named 'y'"), "not installed"),
        (errors.TransportError("x", stderr_tail="Error: Cannot find module 'y'"), "npm install"),
        (errors.TransportError("x", stderr_tail="listen EADDRINUSE"), "another process"),
        (
            errors.TransportError("x", stderr_tail="npm error 404 Not Found - GET y"),
            "npm could not",
        ),
        (errors.TransportError("Connection refused"), "nothing listens there"),
        (errors.TransportError("x", stderr_tail="A_KEY is required"), "--env A_KEY=…"),
        (errors.TransportError("x", stderr_tail="HERE_TOKEN not set"), "--env HERE_TOKEN"),
        (errors.TransportError("exited", exit_code=1), "start the command by hand"),
        (errors.HandshakeTimeout("no answer"), "--timeout"),
        (errors.AuthError("401"), "--header 'Authorization"),
        (errors.ValidationError("command not found"), ""),
        (errors.TrustError("not trusted"), ""),
        (errors.ProtocolError("nonsense"), ""),
    ],
)
def test_an_error_comes_with_what_to_try(error: errors.HoldfastError, words: str) -> None:
    found = advice(error, {"HERE_TOKEN": "x"})
    assert words in found
    assert bool(words) == bool(found)
