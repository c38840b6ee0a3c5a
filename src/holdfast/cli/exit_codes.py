"""The exit codes, and which error ends in which."""

from __future__ import annotations

from enum import IntEnum

from holdfast import errors


class Exit(IntEnum):
    """Exit codes, for scripts."""

    OK = 0
    TOOL = 1
    """The server answered, and the answer is an error."""
    USAGE = 2
    """The words on the command line, a file or the configuration are wrong; nothing was sent."""
    CONNECT = 3
    """The server cannot be started or reached, went away, or does not speak the protocol."""
    TIMEOUT = 4
    AUTH = 5
    """The server wants credentials, or its configuration has not been approved."""
    DRIFT = 6
    """The tools are not those of the lock file or of the generated handle."""
    FAULT = 70
    """Something that should not happen, in holdfast itself."""
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANINGS = {
    Exit.OK: "it worked",
    Exit.TOOL: "the server answered with an error",
    Exit.USAGE: "wrong words, file or configuration; nothing was sent",
    Exit.CONNECT: "the server cannot be started or reached, or went away",
    Exit.TIMEOUT: "no answer in time",
    Exit.AUTH: "the server wants a login, or an approval is missing",
    Exit.DRIFT: "the tools are not those of the lock file or of the generated module",
    Exit.FAULT: "a fault of holdfast",
    Exit.INTERRUPTED: "interrupted",
    Exit.BROKEN_PIPE: "nobody reads the output any more",
}
"""For people and agents."""

ENDINGS: tuple[tuple[type[BaseException], Exit], ...] = (
    (errors.DriftError, Exit.DRIFT),
    (errors.AuthError, Exit.AUTH),
    (errors.TrustError, Exit.AUTH),
    (errors.RequestTimeout, Exit.TIMEOUT),
    (errors.ValidationError, Exit.USAGE),
    (errors.ApprovalError, Exit.AUTH),
    (errors.ToolError, Exit.TOOL),
    (errors.HandshakeRefused, Exit.CONNECT),
    (errors.RpcError, Exit.TOOL),
    (errors.HoldfastError, Exit.CONNECT),
)
"""The first that fits counts: what is special stands before what is general."""


def exit_for(error: BaseException) -> Exit:
    """Return the exit code for an error."""
    return next((code for kind, code in ENDINGS if isinstance(error, kind)), Exit.CONNECT)
