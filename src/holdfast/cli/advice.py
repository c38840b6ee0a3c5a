"""What a server's failure usually means, and what to do about it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast.errors import (
    AuthError,
    HandshakeTimeout,
    HoldfastError,
    RpcError,
    StateError,
    TransportError,
    ValidationError,
)

_MISSING_VARIABLE: Final = re.compile(
    r"\b([A-Z][A-Z0-9]*_[A-Z0-9_]*|[A-Z0-9]*(?:TOKEN|KEY|SECRET|PASSWORD))\b"
    r"[^\n]{0,60}\b(?:required|missing|not set|not defined|must be set|undefined|unset)\b",
    re.I,
)
_MISSING_VARIABLE_AFTER: Final = re.compile(
    r"\b(?:required|missing|not set|set|provide|define)\b[^\n]{0,60}?"
    r"\b([A-Z][A-Z0-9]*_[A-Z0-9_]*|[A-Z0-9]*(?:TOKEN|KEY|SECRET|PASSWORD))\b"
)
_KEY_ERROR: Final = re.compile(r"KeyError: '([A-Z][A-Z0-9_]{2,})'")

_BY_TEXT: Final = (
    (r"command not found", "check the spelling, install it, or give its full path"),
    (
        r"permission denied|not executable",
        "make it executable (chmod +x), or start it through its interpreter",
    ),
    (r"it is a directory", "name the program in it, not the folder"),
    (
        r"no such file or directory",
        "a path does not exist: check the command, its arguments, --cwd",
    ),
    (r"ModuleNotFoundError|No module named", "the package is not installed for that interpreter"),
    (r"Cannot find module|ERR_MODULE_NOT_FOUND", "the package is not installed: npm install it"),
    (r"EADDRINUSE|address already in use", "another process has its port: stop that one first"),
    (r"ENOTFOUND|getaddrinfo|Name or service not known", "the name cannot be resolved: check it"),
    (r"connection refused", "nothing listens there: is the server running, is the port right?"),
    (
        r"certificate|CERTIFICATE_VERIFY_FAILED",
        "the certificate is not trusted: name your own with ca in the configuration",
    ),
    (r"npm (error|ERR)|404 Not Found - GET", "npm could not install it: check the package's name"),
    (
        r"\b(404|405)\b|Not Found",
        "there is no MCP endpoint at this path: is it /mcp, /sse, another?",
    ),
    (
        r"answered with text/html|gave no answer in its response",
        "this is no MCP endpoint: is it at another path, such as /mcp or /sse?",
    ),
    (r"HTTP status 5\d\d", "the server, or a proxy before it, failed: see its log, try again"),
    (r"usage:|unrecognized arguments|unknown option", "the server does not take these arguments"),
)


def missing_variable(text: str) -> str | None:
    """The environment variable that a server misses, if its words name one."""
    for pattern in (_KEY_ERROR, _MISSING_VARIABLE, _MISSING_VARIABLE_AFTER):
        found = pattern.search(text)
        if found:
            return found[1]
    return None


def advice(error: HoldfastError, environ: Mapping[str, str]) -> str:
    """Return what to try; empty where nothing better is known than the error itself."""
    if isinstance(error, ValidationError | StateError):
        return ""
    if isinstance(error, AuthError):
        return "it wants credentials: give --header 'Authorization: Bearer …'"
    variable = missing_variable(getattr(error, "stderr_tail", "") or "")
    if variable is not None:
        return _pass_on(variable, environ)
    if isinstance(error, RpcError) and error.code == METHOD_NOT_FOUND:
        return "it does not seem to speak MCP: is it the right program, with the right arguments?"
    for pattern, cure in _BY_TEXT:
        if re.search(pattern, str(error), re.I):
            return cure
    if isinstance(error, HandshakeTimeout):
        return "give it longer with --timeout; see with --verbose what it does meanwhile"
    if isinstance(error, TransportError) and error.exit_code is not None:
        return "it ended by itself: start the command by hand, and see what it says"
    return ""


def _pass_on(variable: str, environ: Mapping[str, str]) -> str:
    if variable in environ:
        return f"{variable} is set here and not passed on: --env {variable}"
    return f"it misses a variable: --env {variable}=…, or env in the configuration"
